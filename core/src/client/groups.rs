//! Sealed groups: which were joined, and what their keys are asked for.
//!
//! Decides: which group covers a topic, what of its keyring becomes a question or wakes a lane, and what an answer of a driver is worth. Leaves
//! to others: which key is due (the keyring), opening (opening), the tokens' meaning. Believes: both clocks, as the keyring does. Bounded by:
//! `ClientLimits::{groups, group_periods, group_pulls, group_publishers}`; at the bound of groups another is refused.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::opening::RefusedInClear;
use super::timers::Timer;
use super::{Client, Group, LaneId, Token};
use crate::action::{Action, KeyPeriods, KeyQuestion, Question};
use crate::arena::{Arena, Handle, inner_handle};
use crate::code::{DiagnosticCode, SealPolicy, UnopenedReason};
use crate::crypto::SubkeySlot;
use crate::id::Asked;
use crate::keyring::{HeapKeyring, KeyringStats, NoKey, PeriodSlot, PullSlot, Which};
use crate::limits::ClientLimits;
use crate::refusal::{Misuse, Refusal, Refused};
use crate::rng::Seed;
use crate::time::{Duration, Instant, Now, soonest};
use crate::topic;
use crate::{AskId, GroupId, RealmId};

inner_handle!(/** One question about keys. */ KeyAskId);

/// A group that was joined.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) realm: RealmId,
    pub(super) prefix: String,
    token: Option<Token>,
    pub(super) keyring: HeapKeyring,
    /// The keyring's deadline in the index.
    armed: Option<Instant>,
    /// Lanes whose next fact waits for a key.
    pub(super) waiting: BTreeSet<LaneId>,
    /// Failures they had looked at when they began to wait.
    failures: u64,
    /// What was said of it last.
    told: Option<Result<SealPolicy, UnopenedReason>>,
}

impl Joined {
    fn memory(&self) -> usize {
        // A set's nodes are half full at least.
        2 * self.waiting.len() * size_of::<LaneId>()
            + self.prefix.capacity()
            + self.keyring.memory()
    }

    /// How joining went, if that is known.
    fn outcome(&self) -> Option<Result<SealPolicy, UnopenedReason>> {
        match (self.keyring.failed(), self.keyring.policy()) {
            (Some(reason), _) => Some(Err(reason)),
            (None, policy) => policy.map(Ok),
        }
    }
}

/// A question that is open.
#[derive(Debug)]
struct Open {
    group: GroupId,
    which: Which,
    deadline: Instant,
}

/// The groups of a node.
#[derive(Debug)]
pub(super) struct Groups {
    open: Arena<GroupId, Joined>,
    index: BTreeMap<RealmId, BTreeMap<String, GroupId>>,
    asks: Arena<KeyAskId, Open>,
    /// What was refused last because it was in the clear.
    pub(super) clear: VecDeque<RefusedInClear>,
    seed: Seed,
    made: u64,
}

impl Groups {
    pub(super) fn new(seed: Seed) -> Self {
        Self {
            open: Arena::default(),
            index: BTreeMap::new(),
            asks: Arena::default(),
            clear: VecDeque::new(),
            seed,
            made: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn get(&self, id: GroupId) -> Option<&Joined> {
        self.open.get(id)
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut Joined> {
        self.open.get_mut(id)
    }

    /// The group with the longest prefix that covers a topic.
    pub(super) fn covering(&self, realm: &RealmId, name: &str) -> Option<GroupId> {
        let prefixes = self.index.get(realm)?;
        if let Some(id) = prefixes.get(name) {
            return Some(*id);
        }
        let mut ends = name.rmatch_indices('/');
        ends.find_map(|(end, _)| prefixes.get(name.get(..end)?).copied())
    }

    fn make(&mut self, group: Group, limits: &ClientLimits) -> GroupId {
        let rng = self.seed.fork(&alloc::format!("group {}", self.made));
        self.made += 1;
        let mut subkeys = Vec::new();
        subkeys.resize_with(limits.group_publishers, SubkeySlot::default);
        let mut periods = Vec::new();
        periods.resize_with(limits.group_periods, PeriodSlot::default);
        let pulls = alloc::vec![PullSlot::EMPTY; limits.group_pulls];
        let Group {
            realm,
            prefix,
            token,
        } = group;
        let id = self.open.insert(Joined {
            realm,
            prefix: prefix.clone(),
            token,
            keyring: HeapKeyring::new(periods, pulls, subkeys, rng),
            armed: None,
            waiting: BTreeSet::new(),
            failures: 0,
            told: None,
        });
        self.index.entry(realm).or_default().insert(prefix, id);
        id
    }

    fn forget(&mut self, id: GroupId) -> Option<Joined> {
        let gone = self.open.remove(id)?;
        if let Some(prefixes) = self.index.get_mut(&gone.realm) {
            prefixes.remove(&gone.prefix);
            if prefixes.is_empty() {
                self.index.remove(&gone.realm);
            }
        }
        self.close_asks(|open| open.group == id);
        Some(gone)
    }

    /// Questions that nobody may answer any more.
    fn close_asks(&mut self, closed: impl Fn(&Open) -> bool) {
        let gone = self.asks.iter().filter(|(_, open)| closed(open));
        let gone: Vec<KeyAskId> = gone.map(|(ask, _)| ask).collect();
        for ask in gone {
            self.asks.remove(ask);
        }
    }

    pub(super) fn memory(&self) -> usize {
        let groups: usize = self.open.iter().map(|(_, joined)| joined.memory()).sum();
        let names = self.index.values().flat_map(BTreeMap::keys);
        let names: usize = names.map(|name| 2 * name.capacity() + 64).sum();
        let clear = self.clear.iter().map(|run| run.topic.capacity());
        let clear: usize =
            clear.sum::<usize>() + self.clear.capacity() * size_of::<RefusedInClear>();
        groups + names + clear + self.open.memory() + self.asks.memory()
    }
}

/// Whether a topic, or a filter, lies under a group's prefix.
pub(super) fn covers(prefix: &str, name: &str) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A group at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupStatus {
    /// The strictest policy that was heard; `None` before the first answer.
    pub policy: Option<SealPolicy>,
    /// Why the last question about what is current brought no key, if it did.
    pub failed: Option<UnopenedReason>,
    /// Key periods held.
    pub periods: usize,
    /// What is current was asked for, and is not answered: a publication under it is refused as `GroupPending` meanwhile, unless a key is held.
    pub pending: bool,
    /// Questions that are not answered.
    pub under_way: usize,
    /// Lanes whose next fact waits for a key.
    pub waiting: usize,
    /// What was counted.
    pub stats: KeyringStats,
}

impl Client {
    /// Joins a group: its keys are asked for, now and as they rotate, and no fact under its prefix is published in the clear from now on.
    /// [`Action::Keys`] says how it went, and when that changes. Where it was joined before, its token is the one that goes with its questions
    /// from now on, and what was refused is asked again.
    ///
    /// # Errors
    /// `Closed`, `BadGroup`, `TooManyGroups`; the request comes back.
    pub fn join_group(&mut self, now: Now, group: Group) -> Result<GroupId, Refused<Group>> {
        let now = self.at(now);
        let found = self.groups.index.get(&group.realm);
        let found = found.and_then(|prefixes| prefixes.get(&group.prefix));
        let refused = if self.closed {
            Some(Refusal::Closed)
        } else if !is_prefix(&group.prefix) {
            Some(Refusal::BadGroup)
        } else if found.is_none() && self.groups.len() >= self.config.limits.groups {
            Some(Refusal::TooManyGroups)
        } else {
            None
        };
        if let Some(reason) = refused {
            return Err(Refused {
                reason,
                request: group,
            });
        }
        let id = match found.copied() {
            Some(id) => {
                if let Some(joined) = self.groups.get_mut(id) {
                    joined.token = group.token;
                    joined.keyring.renew(now);
                }
                id
            }
            None => {
                let id = self.groups.make(group, &self.config.limits);
                if let Some(joined) = self.groups.get_mut(id) {
                    joined.keyring.join(now);
                }
                id
            }
        };
        self.touch_group(id);
        Ok(id)
    }

    /// Leaves a group: its keys are wiped, and what waits for one is told as `no_group`.
    ///
    /// # Errors
    /// When it was left before.
    pub fn leave_group(&mut self, now: Now, group: GroupId) -> Result<(), Misuse> {
        self.at(now);
        let gone = self.groups.forget(group).ok_or(Misuse::DeadHandle)?;
        self.disarm(gone.armed, Timer::Group(group));
        for lane in gone.waiting {
            self.touch(lane);
        }
        Ok(())
    }

    /// The node is closed: no key is left.
    pub(super) fn leave_all_groups(&mut self) {
        let all: Vec<GroupId> = self.groups.open.iter().map(|(id, _)| id).collect();
        for id in all {
            if let Some(gone) = self.groups.forget(id) {
                self.disarm(gone.armed, Timer::Group(id));
            }
        }
    }

    /// A group; `None` once it was left.
    pub fn group(&self, group: GroupId) -> Option<GroupStatus> {
        let joined = self.groups.get(group)?;
        let keyring = &joined.keyring;
        Some(GroupStatus {
            policy: keyring.policy(),
            failed: keyring.failed(),
            periods: keyring.len(),
            pending: keyring.is_pending(),
            under_way: keyring.under_way(),
            waiting: joined.waiting.len(),
            stats: keyring.stats(),
        })
    }

    /// Whether something may be published or subscribed to under a group, or, in the clear, under none.
    pub(super) fn check_group(
        &self,
        group: Option<GroupId>,
        realm: &RealmId,
        name: &str,
    ) -> Result<(), Refusal> {
        let Some(group) = group else { return Ok(()) };
        let reason = UnopenedReason::NoGroup;
        let joined = self.groups.get(group);
        let joined = joined.ok_or(Refusal::Group { group, reason })?;
        match joined.realm == *realm && covers(&joined.prefix, name) {
            true => Ok(()),
            false => Err(Refusal::BadGroup),
        }
    }

    /// Whether the key for a publication under this group is there; it is asked for if it is not.
    pub(super) fn check_sealing(&mut self, now: Now, group: GroupId) -> Result<(), Refusal> {
        let Some(joined) = self.groups.get_mut(group) else {
            return Ok(());
        };
        let refusal = match joined.keyring.sealing(now, &self.id) {
            Ok(_) => return Ok(()),
            Err(NoKey::Pending) => Refusal::GroupPending { group },
            Err(NoKey::Failed(reason)) => Refusal::Group { group, reason },
        };
        self.touch_group(group);
        Err(refusal)
    }

    /// An answer to a question about keys.
    pub(super) fn answer_keys(
        &mut self,
        now: Now,
        (index, generation): (u32, u32),
        answer: Result<KeyPeriods, UnopenedReason>,
    ) -> Result<(), Misuse> {
        let ask = KeyAskId::from_parts(index, generation);
        let open = self.groups.asks.remove(ask).ok_or(Misuse::DeadHandle)?;
        let Some(joined) = self.groups.get_mut(open.group) else {
            return Err(Misuse::DeadHandle);
        };
        let late = open.deadline <= now.mono;
        let failed = match answer {
            Ok(KeyPeriods { policy, periods }) => {
                let given = joined
                    .keyring
                    .handle_keys(now, open.which, policy, &periods);
                given.err().map(|fault| fault.text())
            }
            Err(reason) => {
                let refused = joined.keyring.handle_refusal(now, open.which, reason);
                Some(refused.map_or_else(|fault| fault.text(), |()| reason.text()))
            }
        };
        if let Some(reason) = failed.filter(|_| !late) {
            self.report(DiagnosticCode::KeysFailed, None, reason);
        }
        self.wake_group(open.group);
        match late {
            true => Err(Misuse::DeadHandle),
            false => Ok(()),
        }
    }

    pub(super) fn group_timeout(&mut self, now: Now, id: GroupId) {
        let Some(joined) = self.groups.get_mut(id) else {
            return;
        };
        joined.armed = None;
        joined.keyring.handle_timeout(now);
        if joined.keyring.stats().failures > joined.failures {
            let reason = UnopenedReason::NoDistributor.text();
            self.report(DiagnosticCode::KeysFailed, None, reason);
        }
        self.groups.close_asks(|open| open.deadline <= now.mono);
        self.wake_group(id);
    }

    /// The clocks disagree: what a key allows ends by the one that says first.
    pub(super) fn suspect_keys(&mut self, now: Now) {
        let all: Vec<GroupId> = self.groups.open.iter().map(|(id, _)| id).collect();
        for id in all {
            if let Some(joined) = self.groups.get_mut(id) {
                joined.keyring.handle_timeout(now);
            }
            self.wake_group(id);
        }
    }

    /// Something became of a group's questions: lanes that wait look again.
    fn wake_group(&mut self, id: GroupId) {
        let Some(joined) = self.groups.get_mut(id) else {
            return;
        };
        joined.failures = joined.keyring.stats().failures;
        for lane in core::mem::take(&mut joined.waiting) {
            self.touch(lane);
        }
        self.touch_group(id);
    }

    /// Restores what is derived from a keyring: its questions, its deadline in the index, and what was said of it.
    pub(super) fn touch_group(&mut self, id: GroupId) {
        let Groups { open, asks, .. } = &mut self.groups;
        let Some(joined) = open.get_mut(id) else {
            return;
        };
        while let Some(ask) = joined.keyring.poll_ask() {
            let open = Open {
                group: id,
                which: ask.which,
                deadline: ask.deadline,
            };
            let (index, generation) = asks.insert(open).parts();
            let question = KeyQuestion {
                realm: joined.realm,
                prefix: joined.prefix.clone(),
                which: ask.which,
                token: joined.token.clone(),
            };
            self.actions.push_back(Action::Ask {
                ask: AskId::about(Asked::Keys, index, generation),
                question: Question::KeyPeriods(Box::new(question)),
                deadline: ask.deadline,
            });
        }
        let outcome = joined.outcome();
        if let Some(ready) = outcome
            && joined.told != outcome
        {
            joined.told = outcome;
            self.actions.push_back(Action::Keys { group: id, ready });
        }
        // A question was given up by whatever came before the timer did: lanes look at once, but later than now, as this may be called by an output.
        let missed = joined.keyring.stats().failures > joined.failures;
        let soon = self.now.mono.saturating_add(Duration::from_micros(1));
        let soon = joined.armed.map_or(soon, |armed| armed.min(soon));
        let at = soonest(joined.keyring.poll_timeout(), missed.then_some(soon));
        let armed = core::mem::replace(&mut joined.armed, at);
        if armed != at {
            self.disarm(armed, Timer::Group(id));
            self.timers.extend(at.map(|at| (at, Timer::Group(id))));
        }
    }
}

/// A group's prefix: a topic of two segments at least, none of the system's.
fn is_prefix(prefix: &str) -> bool {
    topic::check_topic(prefix).is_ok() && !topic::is_system(prefix) && prefix.contains('/')
}
