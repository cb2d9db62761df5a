//! Whether a verified publisher may speak in each subscription that wants its fact.
//!
//! Decides: for which subscriptions a fact goes on, waits, is refused or dropped; what is asked of the driver. Leaves to others: verdicts and
//! windows (the machine), facts that wait (holds), lists of nodes (receive),
//! whoever would not be heard anyway (strangers). Believes: both clocks, as the machine does. Bounded by:
//! `ClientLimits::sources`.
//!
//! A verdict is found by realm, source and publisher, and judged once for each fact and source, when it arrives. An anycast is judged for the
//! one reader it is for, which is none that is known to refuse it, if another is there.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use super::holds::{Holds, Waiting};
use super::receive::Arrived;
use super::timers::Timer;
use super::{Client, Sources, TopicId, WireId};
use crate::action::{Action, Question, Source, SourceQuestion};
use crate::code::{DropReason, ObjectFault, SourceRefusal};
use crate::delivery::Delivery;
use crate::id::Asked;
use crate::inbound::sources::{
    self, Judgement, Lookup, LookupId, Share, Slot, SourceAnswer, SourceLimits,
};
use crate::refusal::Misuse;
use crate::rng::Rng;
use crate::table::TableKey;
use crate::time::{Instant, Now};
use crate::{AskId, LinkId, NodeId, RealmId, SubscriptionId};

/// A source that has to be looked up, with its realm, as its verdicts are found by it: half of a hash of what this node's own subscriptions say.
pub(super) type SourceId = u128;

/// What a verdict is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceKey {
    pub(super) publisher: NodeId,
    pub(super) source: SourceId,
}

impl TableKey for SourceKey {
    /// The publishers of one source differ in theirs, of which nobody can choose many that are alike.
    #[inline]
    fn prefix(&self) -> [u64; 2] {
        let [publisher, more] = self.publisher.prefix();
        [publisher, more ^ self.source as u64]
    }
}

impl Sources {
    /// What its verdicts are found by, if it is one that has to be looked up.
    pub(super) fn id(&self, realm: &RealmId) -> Option<SourceId> {
        let name = match self {
            // No organisation is called so.
            Self::Members => "",
            Self::Nodes(_) | Self::Open => return None,
            Self::Org(name) => name,
        };
        let hash = Sha256::new()
            .chain_update(realm.as_bytes())
            .chain_update(name.as_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        hash.first_chunk().map(|half| u128::from_le_bytes(*half))
    }
}

/// The lookups of a realm.
#[derive(Debug)]
pub(super) struct Realm {
    pub(super) window: sources::Window<LinkId, Vec<Share<LinkId>>>,
    /// Subscriptions in it whose sources are looked up.
    subscriptions: usize,
}

/// What was found for one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Admit,
    Drop(DropReason),
    Hold(LookupId),
    Refuse(SourceRefusal),
}

/// The verdicts of a node, and what waits for them.
#[derive(Debug)]
pub(super) struct Verdicts {
    pub(super) machine: sources::Sources<SourceKey, Vec<Slot<SourceKey>>>,
    pub(super) realms: BTreeMap<RealmId, Realm>,
    pub(super) holds: Holds,
    armed: Option<Instant>,
    /// What was found for the fact at hand; kept for its memory.
    found: Vec<(SourceId, Found)>,
    refused: [u64; SourceRefusal::ALL.len()],
    dropped: [u64; DropReason::ALL.len()],
}

impl Verdicts {
    pub(super) fn new(limits: SourceLimits, rng: &mut Rng) -> Self {
        Self {
            machine: sources::Sources::heap(limits, rng),
            realms: BTreeMap::new(),
            holds: Holds::default(),
            armed: None,
            found: Vec::new(),
            refused: [0; SourceRefusal::ALL.len()],
            dropped: [0; DropReason::ALL.len()],
        }
    }

    /// Whether the sources of any subscription are looked up.
    #[inline]
    pub(super) fn are_asked(&self) -> bool {
        !self.realms.is_empty()
    }

    pub(super) fn memory(&self) -> usize {
        let windows = self.realms.values().map(|realm| realm.window.memory());
        windows.sum::<usize>()
            + self.realms.len() * 2 * size_of::<(RealmId, Realm)>()
            + self.machine.memory()
            + self.found.capacity() * size_of::<(SourceId, Found)>()
    }

    /// How many facts were refused for this reason, once for each subscription.
    pub(super) fn refused(&self) -> impl Iterator<Item = (SourceRefusal, u64)> {
        SourceRefusal::ALL.iter().copied().zip(self.refused)
    }

    /// How many were dropped without a verdict.
    pub(super) fn dropped(&self) -> impl Iterator<Item = (DropReason, u64)> {
        let all = DropReason::ALL.iter().copied().zip(self.dropped);
        all.filter(|(reason, _)| is_of_sources(*reason))
    }

    fn count_refused(&mut self, reason: SourceRefusal) {
        if let Some(count) = self.refused.get_mut(reason as usize) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn count_dropped(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count = count.saturating_add(1);
        }
    }
}

fn is_of_sources(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::HoldExpired
            | DropReason::HoldFull
            | DropReason::LookupsFull
            | DropReason::Unanswered
            | DropReason::UndecidedSource
            | DropReason::VerdictsFull
    )
}

impl Client {
    /// A subscription whose sources may have to be looked up was made.
    pub(super) fn add_source(&mut self, realm: RealmId, source: Option<SourceId>) {
        if source.is_none() {
            return;
        }
        let links = self.config.limits.links;
        let realm = self.verdicts.realms.entry(realm).or_insert_with(|| Realm {
            window: sources::Window::new(alloc::vec![None; links]),
            subscriptions: 0,
        });
        realm.subscriptions += 1;
    }

    /// It is gone.
    pub(super) fn remove_source(&mut self, realm: RealmId, source: Option<SourceId>) {
        let realms = &mut self.verdicts.realms;
        if source.is_some()
            && let Some(found) = realms.get_mut(&realm)
        {
            found.subscriptions -= 1;
            if found.subscriptions == 0 {
                realms.remove(&realm);
            }
        }
    }

    /// A fact that is live and wanted, where some sources are looked up: for each subscription it goes on, waits, is dropped or refused.
    pub(super) fn take_judged(
        &mut self,
        now: Now,
        arrived: &Arrived,
        topic: TopicId,
        readers: &[SubscriptionId],
    ) {
        self.end_due_lookups(now);
        let mut found = core::mem::take(&mut self.verdicts.found);
        found.clear();
        let mut all_admit = true;
        for reader in readers {
            let Some(source) = self.source_of(*reader) else {
                continue;
            };
            if found.iter().any(|(other, _)| *other == source) {
                continue;
            }
            let judged = self.judge_source(now, arrived, *reader, source);
            all_admit &= judged == Found::Admit;
            found.push((source, judged));
        }
        if all_admit {
            self.remember(now, arrived, topic, readers, &Waiting::NONE);
        } else {
            self.take_apart(now, arrived, topic, readers, &found);
        }
        self.verdicts.found = found;
    }

    pub(super) fn source_of(&self, reader: SubscriptionId) -> Option<SourceId> {
        self.subscriptions.get(reader)?.source
    }

    /// What was found differs: each subscription gets what was found for its source.
    fn take_apart(
        &mut self,
        now: Now,
        arrived: &Arrived,
        topic: TopicId,
        readers: &[SubscriptionId],
        found: &[(SourceId, Found)],
    ) {
        let delivery = &arrived.delivery;
        let mut admitted = Vec::new();
        let mut waiting = Waiting::default();
        let mut refused = 0;
        for reader in readers {
            let source = self.source_of(*reader);
            let its = found.iter().find(|(other, _)| Some(*other) == source);
            match its.map_or(Found::Admit, |(_, found)| *found) {
                Found::Admit => admitted.push(*reader),
                Found::Drop(reason) => {
                    waiting.dropped = true;
                    self.drop_undecided(now, delivery, topic, *reader, reason);
                }
                Found::Hold(lookup) => {
                    let mut lookups = waiting.lookups.iter_mut();
                    match lookups.find(|(id, _)| *id == lookup) {
                        Some((_, its)) => its.push(*reader),
                        None => waiting.lookups.push((lookup, alloc::vec![*reader])),
                    }
                }
                Found::Refuse(reason) => {
                    refused += 1;
                    self.refuse_source(now, delivery, topic, *reader, reason);
                }
            }
        }
        if refused == readers.len() {
            self.faults.add(ObjectFault::SourceRefused);
        }
        if !waiting.lookups.is_empty() && !self.has_room_to_hold(delivery) {
            self.drop_holds(now, delivery, topic, &waiting, DropReason::BytesFull);
            waiting.lookups.clear();
        }
        if !admitted.is_empty() || !waiting.lookups.is_empty() {
            self.remember(now, arrived, topic, &admitted, &waiting);
        }
    }

    fn judge_source(
        &mut self,
        now: Now,
        arrived: &Arrived,
        reader: SubscriptionId,
        source: SourceId,
    ) -> Found {
        let delivery = &arrived.delivery;
        let key = SourceKey {
            publisher: delivery.publisher(),
            source,
        };
        let link = arrived.from.link;
        let Verdicts {
            machine, realms, ..
        } = &mut self.verdicts;
        let limits = *machine.limits();
        let realm = realms.get_mut(&delivery.realm());
        let judged = machine.judge(now, &key, |known| {
            realm.is_some_and(|realm| realm.window.take(now.mono, &limits, known, link))
        });
        match judged {
            Judgement::Admit(None) => Found::Admit,
            Judgement::Admit(Some(lookup)) => {
                self.ask_source(now, delivery, reader, lookup);
                Found::Admit
            }
            Judgement::Ask(lookup) => {
                self.ask_source(now, delivery, reader, lookup);
                Found::Hold(lookup.id)
            }
            Judgement::Drop(dropped) => Found::Drop(dropped.reason()),
            Judgement::Refuse(reason) => Found::Refuse(reason),
            Judgement::Wait(lookup) => Found::Hold(lookup),
        }
    }

    /// Asks the driver, in the words of a subscription that has this source.
    fn ask_source(
        &mut self,
        now: Now,
        delivery: &Delivery,
        reader: SubscriptionId,
        lookup: Lookup,
    ) {
        let named = self.subscriptions.get(reader).map(|found| &found.sources);
        let source = match named {
            Some(Sources::Org(name)) => Source::Org(name.clone()),
            _ => Source::Members,
        };
        self.actions.push_back(Action::Ask {
            ask: AskId::about(Asked::Source, lookup.id.slot, lookup.id.turn),
            question: Question::Source(Box::new(SourceQuestion {
                realm: delivery.realm(),
                source,
                publisher: delivery.publisher(),
            })),
            deadline: lookup.deadline,
        });
        self.arm_lookups();
        self.arm_sweep(now);
    }

    /// The driver has found out, or not.
    pub(super) fn answer_source(
        &mut self,
        now: Now,
        (slot, turn): (u32, u32),
        answer: SourceAnswer,
    ) -> Result<(), Misuse> {
        let id = LookupId { slot, turn };
        let settled = self.verdicts.machine.answer(now, id, answer);
        let settled = settled.ok_or(Misuse::DeadHandle)?;
        self.settle_holds(now, id, settled);
        self.arm_lookups();
        Ok(())
    }

    /// A lookup was not answered in time.
    pub(super) fn lookup_timeout(&mut self, now: Now) {
        let armed = self.verdicts.armed.take();
        self.disarm(armed, Timer::Lookup);
        if let Some((id, settled)) = self.verdicts.machine.handle_timeout(now) {
            self.settle_holds(now, id, settled);
        }
        self.arm_lookups();
    }

    /// What is due is given up first, where the timer is late: nobody joins a lookup that is over. At most `max_publishers` of them, after a sleep.
    pub(super) fn end_due_lookups(&mut self, now: Now) {
        while let Some(at) = self.verdicts.machine.poll_timeout()
            && at <= now.mono
        {
            self.lookup_timeout(now);
        }
    }

    fn arm_lookups(&mut self) {
        let at = self.verdicts.machine.poll_timeout();
        let armed = core::mem::replace(&mut self.verdicts.armed, at);
        if armed != at {
            self.disarm(armed, Timer::Lookup);
            self.timers.extend(at.map(|at| (at, Timer::Lookup)));
        }
    }

    /// The one reader of an anycast: none that is known to refuse its publisher, if another is there.
    pub(super) fn one_unrefused(
        &mut self,
        now: Now,
        publisher: NodeId,
        wire: WireId,
        readers: &[SubscriptionId],
    ) -> Option<SubscriptionId> {
        if self.verdicts.are_asked() {
            let unrefused = self.unrefused(now, publisher, readers);
            if !unrefused.is_empty() {
                return self.one_reader(wire, &unrefused);
            }
        }
        self.one_reader(wire, readers)
    }

    /// The readers whose source is not known to refuse a publisher.
    pub(super) fn unrefused(
        &self,
        now: Now,
        publisher: NodeId,
        readers: &[SubscriptionId],
    ) -> Vec<SubscriptionId> {
        let readers = readers.iter().copied();
        readers
            .filter(|reader| self.refusal(now, publisher, *reader).is_none())
            .collect()
    }

    /// Why a subscription's source is known to refuse a publisher, if it is.
    fn refusal(
        &self,
        now: Now,
        publisher: NodeId,
        reader: SubscriptionId,
    ) -> Option<SourceRefusal> {
        let key = SourceKey {
            publisher,
            source: self.source_of(reader)?,
        };
        self.verdicts.machine.verdict(now, &key)?.err()
    }

    /// A fact cannot wait: for those who would have, it is dropped.
    pub(super) fn drop_holds(
        &mut self,
        now: Now,
        delivery: &Delivery,
        topic: TopicId,
        waiting: &Waiting,
        reason: DropReason,
    ) {
        for (lookup, waiting) in &waiting.lookups {
            self.verdicts.machine.leave(*lookup);
            self.drop_fact(now, delivery, topic, waiting, reason);
        }
    }

    /// Its source refuses a fact to one subscription: counted, and nothing waits for its place.
    pub(super) fn refuse_source(
        &mut self,
        now: Now,
        delivery: &Delivery,
        topic: TopicId,
        reader: SubscriptionId,
        reason: SourceRefusal,
    ) {
        self.count_refusal(reader, reason);
        self.pass_over(now, delivery, topic, reader);
    }

    pub(super) fn count_refusal(&mut self, reader: SubscriptionId, reason: SourceRefusal) {
        self.verdicts.count_refused(reason);
        if let Some(found) = self.subscriptions.get_mut(reader) {
            found.source_refused += 1;
        }
    }

    /// It is dropped for one subscription, without a verdict.
    pub(super) fn drop_undecided(
        &mut self,
        now: Now,
        delivery: &Delivery,
        topic: TopicId,
        reader: SubscriptionId,
        reason: DropReason,
    ) {
        self.verdicts.count_dropped(reason);
        self.drop_fact(now, delivery, topic, &[reader], reason);
    }
}

/// What a subscription says of its sources when it is made: `members`, `org` and its name, how many nodes, or that anybody may speak.
impl core::fmt::Display for Sources {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Members => f.write_str("members"),
            Self::Nodes(nodes) => write!(f, "{} listed nodes", nodes.len()),
            Self::Open => f.write_str("open, which is anybody"),
            Self::Org(name) => write!(f, "org {name}"),
        }
    }
}
