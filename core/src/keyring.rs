//! The keys of one sealed group, as a member holds them (WIRE.md section 6.2).
//!
//! Decides: which key a fact opens and is sealed under, when keys are asked for, which answers are used, and when a key is wiped. Leaves to
//! others: asking, who may give keys out, opening, and what waits. Believes: both clocks; what a key allows ends by the one that says first.
//! Bounded by: its three storages; what is over, unknown or denied is a reason, never a wait.
//!
//! Sealing and opening under a period that is held never wait for a question. Nothing is ever loosened: the strictest policy that was heard
//! stays.

mod answer;
mod payload;
mod periods;
mod pulls;
mod times;

use core::fmt;

pub use self::answer::{
    ACCEPT_MS, KeyPeriod, KeysFault, MAX_ROTATION_MS, MIN_ROTATION_MS, MOST_PERIODS, Which,
    check_keys,
};
pub use self::payload::{AnswerReader, read_question, write_answer, write_question};
pub use self::periods::PeriodSlot;
use self::periods::{Found, Merged, Periods};
use self::pulls::{Known, Pulls};
pub use self::pulls::{PULLS_PER_PUBLISHER, PullSlot, REMEMBERED};
pub use self::times::{PULL_PATIENCE, backoff, repull_at, shortest_wait};
use crate::NodeId;
use crate::code::{SealPolicy, UnopenedReason};
use crate::crypto::{PeriodKey, Subkey, SubkeyCache, SubkeySlot};
use crate::rng::Rng;
use crate::time::{Duration, Instant, Now, WallMs, soonest};

/// How long a key period is sealed under until an answer says otherwise.
const DEFAULT_ROTATION_MS: u64 = 900_000;

/// A keyring on the heap.
#[cfg(feature = "alloc")]
pub type HeapKeyring =
    Keyring<alloc::vec::Vec<PeriodSlot>, alloc::vec::Vec<PullSlot>, alloc::vec::Vec<SubkeySlot>>;

/// A question to whoever gives the keys of a group out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAsk {
    /// Which key period.
    pub which: Which,
    /// When it is given up.
    pub deadline: Instant,
}

/// Whether a fact may be opened.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum Lookup<'k> {
    /// Under this key: its publisher's subkey, and the period's own, for what is sealed otherwise.
    Held {
        /// The publisher's subkey in that period.
        subkey: &'k Subkey,
        /// The period's key.
        period: &'k PeriodKey,
    },
    /// Its key is not here and never will be for it.
    Unopened(UnopenedReason),
    /// Its key was asked for.
    Waiting,
}

/// Why nothing can be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoKey {
    /// The last question was answered so; it is asked again by itself.
    Failed(UnopenedReason),
    /// It was asked for.
    Pending,
}

/// What a keyring has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyringStats {
    /// Questions about what is current, and by id.
    pub pulls: u64,
    /// Answers that gave no key, or none in time.
    pub failures: u64,
    /// Answers that were refused whole.
    pub refused_answers: u64,
    /// Periods that came again with another key or end.
    pub contradictions: u64,
    /// Keys that were wiped because their time was over.
    pub erased: u64,
    /// Keys that made room for another.
    pub evicted: u64,
    /// Ids that were not asked for: their publisher had its share, or too many are remembered.
    pub over_budget: u64,
}

/// The keys of one group. See the module's text.
///
/// Commands: `join`, `renew`, `leave`, `want`, `sealing`, `lookup`. Inputs: `handle_keys`, `handle_refusal`, `handle_timeout`. Output:
/// `poll_ask`. Commands and inputs act first on what is due by their `now`, so that an answer at its deadline is late in whatever order
/// answer, fact and timer come.
///
/// ```
/// use tidings::code::SealPolicy;
/// use tidings::crypto::SubkeySlot;
/// use tidings::keyring::{KeyPeriod, Keyring, Lookup, PeriodSlot, PullSlot, Which};
/// use tidings::{Instant, NodeId, Now, Seed, WallMs};
///
/// let periods = [const { PeriodSlot::EMPTY }; 8];
/// let pulls = [PullSlot::EMPTY; 8];
/// let subkeys = [const { SubkeySlot::EMPTY }; 16];
/// let mut keyring = Keyring::new(periods, pulls, subkeys, Seed::new([7; 32]).fork("keyring"));
/// let now = Now::new(Instant::ORIGIN, WallMs::new(1_790_000_000_000));
/// keyring.join(now);
/// let ask = keyring.poll_ask().unwrap();
/// assert_eq!(ask.which, Which::Current);
/// let until = now.wall.as_millis() + 900_000;
/// let period = KeyPeriod::new(*b"period 1", [3; 32], now.wall, WallMs::new(until));
/// keyring.handle_keys(now, ask.which, SealPolicy::Required, &[period]).unwrap();
/// let publisher = NodeId::new([1; 32]);
/// assert!(matches!(keyring.lookup(now, b"period 1", &publisher), Lookup::Held { .. }));
/// assert!(keyring.sealing(now, &publisher).is_ok());
/// ```
pub struct Keyring<P, U, K: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>> {
    periods: Periods<P>,
    pulls: Pulls<U>,
    subkeys: SubkeyCache<K>,
    rng: Rng,
    joined: bool,
    policy: Option<SealPolicy>,
    rotation_ms: u64,
    /// Until when the answer about what is current is waited for.
    current: Option<Instant>,
    /// It was not handed out yet.
    unasked: bool,
    /// When it is asked about next.
    next: Option<Instant>,
    /// Nothing asks about it before, unless it is due.
    not_before: Instant,
    failures: u32,
    failed: Option<UnopenedReason>,
    stats: KeyringStats,
    clock: Instant,
    /// What is due next, by either clock.
    due: Option<Instant>,
    due_wall: Option<WallMs>,
}

impl<P, U, K> Keyring<P, U, K>
where
    P: AsRef<[PeriodSlot]> + AsMut<[PeriodSlot]>,
    U: AsRef<[PullSlot]> + AsMut<[PullSlot]>,
    K: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>,
{
    /// A group that was not joined. A slot for each period that may be held: with the shortest rotation 72 of them are accepted at once, with
    /// the usual one 7. Whatever the storages held is wiped.
    pub fn new(periods: P, pulls: U, subkeys: K, mut rng: Rng) -> Self {
        Self {
            periods: Periods::new(periods),
            pulls: Pulls::new(pulls),
            subkeys: SubkeyCache::new(subkeys, &mut rng),
            rng,
            joined: false,
            policy: None,
            rotation_ms: DEFAULT_ROTATION_MS,
            current: None,
            unasked: false,
            next: None,
            not_before: Instant::ORIGIN,
            failures: 0,
            failed: None,
            stats: KeyringStats::default(),
            clock: Instant::ORIGIN,
            due: None,
            due_wall: None,
        }
    }

    /// Asks for what is current, once; joined already, it changes nothing.
    pub fn join(&mut self, now: Now) {
        let now = self.advance(now);
        if !self.joined {
            self.joined = true;
            self.pull(now.mono);
            self.touch();
        }
    }

    /// Another token goes with its questions from now on: what was refused is asked again at once.
    pub fn renew(&mut self, now: Now) {
        let now = self.advance(now);
        if !self.joined {
            return;
        }
        self.pulls.forget_failures();
        if self.failed.is_some() {
            self.failures = 0;
            self.pull(now.mono);
        }
        self.touch();
    }

    /// Wipes every key and forgets the rest; what is under way is not waited for.
    pub fn leave(&mut self) {
        self.subkeys.clear();
        self.periods.clear();
        self.pulls.clear();
        (self.joined, self.policy) = (false, None);
        (self.current, self.unasked, self.next) = (None, false, None);
        (self.failures, self.failed) = (0, None);
        self.touch();
    }

    /// A fact sealed under this period has arrived: its key is asked for, unless it is here or was asked for.
    pub fn want(&mut self, now: Now, id: &[u8; 8], publisher: &NodeId) {
        let now = self.advance(now);
        if self.subkeys.find(id, publisher).is_some() {
            return;
        }
        if self.periods.find(id) == Found::Nothing && self.may_pull_ids() {
            match self.pulls.known(now.mono, id) {
                Known::Nothing | Known::Failed(_) => {
                    self.ask_for(now.mono, id, publisher);
                }
                Known::Asked | Known::Denied(_) => (),
            }
        }
    }

    /// What a fact of this publisher, sealed under this period, is opened with.
    #[inline]
    pub fn lookup(&mut self, now: Now, id: &[u8; 8], publisher: &NodeId) -> Lookup<'_> {
        let now = self.advance(now);
        // What is kept ends with its period, so that it alone has to be found.
        if let Some(at) = self.subkeys.find(id, publisher) {
            let (subkey, period) = self.subkeys.used(at);
            let period = self.periods.key(period);
            return Lookup::Held { subkey, period };
        }
        self.lookup_period(now, id, publisher)
    }

    #[inline(never)]
    fn lookup_period(&mut self, now: Now, id: &[u8; 8], publisher: &NodeId) -> Lookup<'_> {
        match self.periods.find(id) {
            Found::Held(at) => {
                let period = self.periods.key(at);
                let subkey = self.subkeys.subkey_in(period, at, publisher);
                Lookup::Held { subkey, period }
            }
            Found::Over => Lookup::Unopened(UnopenedReason::PeriodExpired),
            Found::Nothing => match self.absent(now.mono, id, publisher) {
                Some(reason) => Lookup::Unopened(reason),
                None => Lookup::Waiting,
            },
        }
    }

    /// Why an id is not here; `None` while it is waited for.
    #[cold]
    fn absent(&mut self, now: Instant, id: &[u8; 8], publisher: &NodeId) -> Option<UnopenedReason> {
        if !self.joined {
            return Some(UnopenedReason::NoGroup);
        }
        if !self.may_pull_ids() {
            // The first answer is waited for, or has not come: it may bring this one.
            return match self.current {
                Some(_) => None,
                None => Some(self.failed.unwrap_or(UnopenedReason::NoDistributor)),
            };
        }
        match self.pulls.known(now, id) {
            Known::Asked => None,
            Known::Denied(reason) | Known::Failed(reason) => Some(reason),
            Known::Nothing => match self.ask_for(now, id, publisher) {
                true => None,
                false => Some(UnopenedReason::UnknownPeriod),
            },
        }
    }

    /// Something was given out once, so that an id that is not here is worth a question of its own.
    fn may_pull_ids(&self) -> bool {
        self.joined && self.policy.is_some()
    }

    fn ask_for(&mut self, now: Instant, id: &[u8; 8], publisher: &NodeId) -> bool {
        let rotation = Duration::from_millis(self.rotation_ms);
        let asked = self.pulls.ask(now, *id, publisher, rotation, PULL_PATIENCE);
        match asked {
            true => self.stats.pulls += 1,
            false => self.stats.over_budget += 1,
        }
        self.touch();
        asked
    }

    /// The period that is sealed under now, and this publisher's subkey in it. Where there is none it is asked for at once, unless that
    /// failed or was answered a moment ago.
    ///
    /// # Errors
    /// [`NoKey`]. Nothing is ever sealed otherwise.
    pub fn sealing(&mut self, now: Now, publisher: &NodeId) -> Result<([u8; 8], &Subkey), NoKey> {
        let now = self.advance(now);
        if let Some(at) = self.periods.sealing(now) {
            let key = self.periods.key(at);
            return Ok((*key.id(), self.subkeys.subkey_in(key, at, publisher)));
        }
        if !self.joined {
            return Err(NoKey::Failed(UnopenedReason::NoGroup));
        }
        if self.current.is_none() && self.failed.is_none() && now.mono >= self.not_before {
            self.pull(now.mono);
            self.touch();
        }
        Err(match (self.current, self.failed) {
            (Some(_), _) => NoKey::Pending,
            (None, Some(reason)) => NoKey::Failed(reason),
            (None, None) => NoKey::Failed(UnopenedReason::NoDistributor),
        })
    }

    /// Keys were given out. What is held already stays as it is.
    ///
    /// # Errors
    /// The answer was refused whole, which counts as one that gave no key.
    pub fn handle_keys(
        &mut self,
        now: Now,
        which: Which,
        policy: SealPolicy,
        periods: &[KeyPeriod],
    ) -> Result<(), KeysFault> {
        let now = self.advance(now);
        if !self.is_asked(which) {
            return Err(KeysFault::NotAsked);
        }
        if let Err(fault) = check_keys(which, periods, now.wall) {
            self.stats.refused_answers += 1;
            self.fail(now.mono, which, UnopenedReason::NoDistributor);
            self.touch();
            return Err(fault);
        }
        for period in periods {
            match self.periods.merge(now, period) {
                Merged::New { gone } => {
                    if let Some(id) = gone {
                        self.subkeys.forget(&id);
                        self.stats.evicted += 1;
                    }
                }
                Merged::Contradicts => self.stats.contradictions += 1,
                Merged::Full => self.stats.evicted += 1,
                Merged::Known => (),
            }
        }
        self.policy = self.policy.max(Some(policy));
        match which {
            Which::Current => {
                self.rotation_ms = periods
                    .first()
                    .map_or(DEFAULT_ROTATION_MS, KeyPeriod::rotation_ms);
                (self.current, self.unasked) = (None, false);
                (self.failures, self.failed) = (0, None);
                self.schedule(now);
            }
            Which::One(id) => {
                self.pulls.give(&id);
            }
        }
        self.touch();
        Ok(())
    }

    /// No key was given out, for this reason. A period that is unknown or over for whoever gives them out is not asked for again.
    ///
    /// # Errors
    /// When that was not asked, or not in time.
    pub fn handle_refusal(
        &mut self,
        now: Now,
        which: Which,
        reason: UnopenedReason,
    ) -> Result<(), KeysFault> {
        let now = self.advance(now);
        if !self.is_asked(which) {
            return Err(KeysFault::NotAsked);
        }
        self.fail(now.mono, which, reason);
        self.touch();
        Ok(())
    }

    /// Acts on all that is due.
    pub fn handle_timeout(&mut self, now: Now) {
        self.advance(now);
    }

    /// When something is due next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// The next question.
    pub fn poll_ask(&mut self) -> Option<KeyAsk> {
        if let (true, Some(deadline)) = (self.unasked, self.current) {
            self.unasked = false;
            return Some(KeyAsk {
                which: Which::Current,
                deadline,
            });
        }
        let (id, deadline) = self.pulls.poll()?;
        Some(KeyAsk {
            which: Which::One(id),
            deadline,
        })
    }

    /// The strictest policy that was heard; `None` before the first answer.
    pub fn policy(&self) -> Option<SealPolicy> {
        self.policy
    }

    /// Why the last question about what is current brought nothing, if it did.
    pub fn failed(&self) -> Option<UnopenedReason> {
        self.failed
    }

    /// Keys held.
    pub fn len(&self) -> usize {
        self.periods.len()
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys it may hold.
    pub fn capacity(&self) -> usize {
        self.periods.capacity()
    }

    /// Whether what is current was asked for and is not answered.
    pub fn is_pending(&self) -> bool {
        self.current.is_some()
    }

    /// Questions that are not answered.
    pub fn under_way(&self) -> usize {
        self.pulls.under_way() + usize::from(self.current.is_some())
    }

    /// What it has done so far.
    pub fn stats(&self) -> KeyringStats {
        self.stats
    }

    /// Bytes of its storages.
    pub fn memory(&self) -> usize {
        self.periods.memory() + self.pulls.memory() + self.subkeys.memory()
    }

    fn is_asked(&self, which: Which) -> bool {
        match which {
            Which::Current => self.current.is_some(),
            Which::One(id) => self.pulls.is_asked(&id),
        }
    }

    fn pull(&mut self, now: Instant) {
        if self.current.is_none() {
            self.current = Some(now.saturating_add(PULL_PATIENCE));
            (self.unasked, self.next) = (true, None);
            self.stats.pulls += 1;
        }
    }

    /// A question brought no key.
    fn fail(&mut self, now: Instant, which: Which, reason: UnopenedReason) {
        self.stats.failures += 1;
        match which {
            Which::Current => self.fail_current(now, reason),
            Which::One(id) => {
                self.pulls.fail(now, &id, reason);
            }
        }
    }

    fn fail_current(&mut self, now: Instant, reason: UnopenedReason) {
        (self.current, self.unasked) = (None, false);
        self.failures = self.failures.saturating_add(1);
        self.failed = Some(reason);
        self.next = Some(now.saturating_add(backoff(self.failures, self.rotation_ms)));
    }

    /// When what comes after the newest period is asked for.
    fn schedule(&mut self, now: Now) {
        let wait = shortest_wait(self.rotation_ms);
        self.not_before = now.mono.saturating_add(wait);
        let draw = self.rng.next_u64();
        let at = self.periods.newest().map(|(issued_at, publish_until)| {
            let at = times::repull_between(issued_at, publish_until, draw);
            u64::try_from(at.since(now.wall)).unwrap_or(0)
        });
        let at = now.mono.saturating_add_millis(at.unwrap_or(0));
        self.next = Some(at.max(self.not_before));
    }

    /// Acts on what is due by `now`; mono does not go back.
    #[inline]
    fn advance(&mut self, now: Now) -> Now {
        self.clock = self.clock.max(now.mono);
        let now = Now::new(self.clock, now.wall);
        let due = self.due.is_some_and(|due| due <= now.mono);
        if due || self.due_wall.is_some_and(|due| due < now.wall) {
            self.act(now);
        }
        now
    }

    #[cold]
    fn act(&mut self, now: Now) {
        while let Some(id) = self.periods.end(now) {
            self.subkeys.forget(&id);
            self.stats.erased += 1;
        }
        self.stats.failures += self.pulls.expire(now.mono);
        if self.current.is_some_and(|deadline| deadline <= now.mono) {
            self.stats.failures += 1;
            self.fail_current(now.mono, UnopenedReason::NoDistributor);
        }
        let due = self.next.is_some_and(|next| next <= now.mono);
        if due || self.is_stale(now) {
            self.pull(now.mono);
        }
        self.touch();
    }

    /// The wall has passed all that is held, whatever mono says: this side slept.
    fn is_stale(&self, now: Now) -> bool {
        let newest = self.periods.newest();
        self.policy.is_some()
            && self.joined
            && self.failed.is_none()
            && now.mono >= self.not_before
            && newest.is_none_or(|(_, until)| until <= now.wall)
    }

    /// Restores what is due next. Every change ends here.
    fn touch(&mut self) {
        let (ends, last) = self.periods.ends();
        let due = soonest(self.current, self.next);
        self.due = soonest(soonest(due, ends), self.pulls.poll_timeout());
        self.due_wall = last;
        if !self.may_pull_ids() || self.current.is_some() || self.failed.is_some() {
            return;
        }
        match self.periods.newest() {
            // One millisecond before, as what is due by the wall is due after that moment.
            Some((_, until)) => {
                let stale = until.saturating_sub(1);
                self.due_wall = Some(last.map_or(stale, |last| last.min(stale)));
            }
            // All was wiped by a wall that ran ahead.
            None => self.due = soonest(self.due, Some(self.not_before)),
        }
    }
}

impl<P, U, K: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>> fmt::Debug for Keyring<P, U, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("policy", &self.policy)
            .field("failed", &self.failed)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
