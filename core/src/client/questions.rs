//! Publications whose signature is being checked elsewhere.
//!
//! Decides: which copy waits for the answer to another, and which question has waited too long. Leaves to others: whether one may be asked,
//! and what an answer means. Believes: mono. Bounded by: `ClientLimits::pending_verifications` and [`TWINS`], which its owner asks about first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::receive::Arrived;
use crate::arena::Arena;
use crate::inbound::dedup::SignatureKey;
use crate::time::Instant;
use crate::{AskId, PublicationHash};

/// How long a question about a signature may stay unanswered.
const PATIENCE: Duration = Duration::from_secs(5);
/// Copies of one publication, each under another signature, that may wait at once. Who forges more is not looked through again and again.
pub(super) const TWINS: usize = 16;
/// Answered questions kept in the queue of deadlines beside as many as are open.
const SPARE: usize = 64;

/// One that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) arrived: Arrived,
    /// The key it carries is the one its publisher is known by.
    pub(super) key_known: bool,
    /// A copy under another signature was asked about while this one was: it may have been taken meanwhile.
    pub(super) has_twin: bool,
    /// The one asked before it in the same bucket.
    before: Option<AskId>,
}

/// The open questions.
#[derive(Debug)]
pub(super) struct Questions {
    /// They come and go too fast for storage that grows and shrinks: it stays.
    open: Arena<AskId, Waiting>,
    /// By a keyed hash of the publication's identity: the question asked last in each bucket. A power of two of them, or none.
    buckets: Vec<Option<AskId>>,
    /// All are as patient, so the one asked first is due first. Some here are answered.
    deadlines: VecDeque<(Instant, AskId)>,
    armed: bool,
    /// Of the publications that wait.
    bytes: usize,
}

impl Questions {
    /// At most `capacity` at once.
    pub(super) fn new(capacity: usize) -> Self {
        let buckets = match capacity {
            0 => 0,
            _ => capacity.next_power_of_two(),
        };
        Self {
            open: Arena::keeping(capacity),
            buckets: alloc::vec![None; buckets],
            deadlines: VecDeque::new(),
            armed: false,
            bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Bytes of the publications that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn memory(&self) -> usize {
        let deadlines = self.deadlines.capacity() * size_of::<(Instant, AskId)>();
        self.open.memory() + size_of_val(&*self.buckets) + deadlines
    }

    /// How many copies of a publication wait under other signatures; `None`: one under this signature does, which answers for both.
    pub(super) fn twins(
        &self,
        place: u64,
        hash: &PublicationHash,
        signature: SignatureKey,
    ) -> Option<usize> {
        let mut twins = 0;
        let mut next = self.bucket(place).and_then(|at| self.buckets[at]);
        while let Some(waiting) = next.and_then(|ask| self.open.get(ask)) {
            let arrived = &waiting.arrived;
            let is_copy = arrived.hash == *hash;
            if is_copy && arrived.signature == signature {
                return None;
            }
            twins += usize::from(is_copy);
            next = waiting.before;
        }
        Some(twins)
    }

    fn bucket(&self, place: u64) -> Option<usize> {
        let last = self.buckets.len().checked_sub(1)?;
        Some(place as usize & last)
    }

    /// Asks, and says until when it waits.
    #[inline]
    pub(super) fn ask(
        &mut self,
        now: Instant,
        arrived: Arrived,
        key_known: bool,
    ) -> (AskId, Instant) {
        let deadline = now.saturating_add(PATIENCE);
        self.bytes += arrived.delivery.bytes().len();
        let bucket = self.bucket(arrived.place);
        let before = bucket.and_then(|at| self.buckets[at]);
        let has_twin = before.is_some() && self.mark_twins(before, &arrived.hash);
        let ask = self.open.insert(Waiting {
            arrived,
            key_known,
            has_twin,
            before,
        });
        if let Some(at) = bucket {
            self.buckets[at] = Some(ask);
        }
        self.deadlines.push_back((deadline, ask));
        (ask, deadline)
    }

    /// Whether other copies of a publication wait for their answers; they have a twin from now on.
    #[cold]
    fn mark_twins(&mut self, mut next: Option<AskId>, hash: &PublicationHash) -> bool {
        let mut any = false;
        while let Some(waiting) = next.and_then(|ask| self.open.get_mut(ask)) {
            let is_twin = waiting.arrived.hash == *hash;
            waiting.has_twin |= is_twin;
            any |= is_twin;
            next = waiting.before;
        }
        any
    }

    /// Takes out what was asked about, if it still waits.
    #[inline]
    pub(super) fn answered(&mut self, ask: AskId) -> Option<Waiting> {
        let waiting = self.open.remove(ask);
        if let Some(waiting) = &waiting {
            self.bytes -= waiting.arrived.delivery.bytes().len();
            self.unlink(ask, waiting);
            self.pass_answered();
            if self.deadlines.len() > 2 * self.open.len() + SPARE {
                let open = &self.open;
                self.deadlines.retain(|(_, ask)| open.get(*ask).is_some());
            }
        }
        waiting
    }

    /// Takes it out of its bucket, in which questions are few: whose number is bounded by that of buckets, and nobody chooses where they go.
    fn unlink(&mut self, ask: AskId, waiting: &Waiting) {
        let Some(at) = self.bucket(waiting.arrived.place) else {
            return;
        };
        let mut next = self.buckets[at];
        if next == Some(ask) {
            self.buckets[at] = waiting.before;
            return;
        }
        while let Some(after) = next.and_then(|after| self.open.get_mut(after)) {
            if after.before == Some(ask) {
                after.before = waiting.before;
                return;
            }
            next = after.before;
        }
    }

    /// The deadline was reached that `arm` gave: takes out one that is due.
    pub(super) fn timed_out(&mut self, now: Instant) -> Option<Arrived> {
        self.armed = false;
        self.pass_answered();
        let (deadline, ask) = *self.deadlines.front()?;
        if deadline > now {
            return None;
        }
        self.answered(ask).map(|waiting| waiting.arrived)
    }

    /// When to call `timed_out`, unless that was said already. It may be early: questions are answered meanwhile.
    pub(super) fn arm(&mut self) -> Option<Instant> {
        if self.armed {
            return None;
        }
        let (deadline, _) = *self.deadlines.front()?;
        self.armed = true;
        Some(deadline)
    }

    fn pass_answered(&mut self) {
        while let Some((_, ask)) = self.deadlines.front()
            && self.open.get(*ask).is_none()
        {
            self.deadlines.pop_front();
        }
    }
}
