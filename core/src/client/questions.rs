//! Publications whose signature is being checked elsewhere.
//!
//! Decides: which copy waits for the answer to another, and which question has waited too long. Leaves to others: whether one may be asked,
//! and what an answer means. Believes: mono. Bounded by: `ClientLimits::pending_verifications`, which its owner asks about first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::receive::Arrived;
use crate::arena::Arena;
use crate::inbound::dedup::SignatureKey;
use crate::rng::Rng;
use crate::table::{self, HeapTable, Table, TableKey};
use crate::time::Instant;
use crate::{AskId, PublicationHash};

/// How long a question about a signature may stay unanswered.
const PATIENCE: Duration = Duration::from_secs(5);
/// Answered questions kept in the queue of deadlines beside as many as are open.
const SPARE: usize = 64;

/// What a question is found by: its hash and its signature, so that no other publication under the same signature stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked([u64; 2]);

impl Asked {
    fn new(hash: &PublicationHash, signature: SignatureKey) -> Self {
        let [a, b] = TableKey::prefix(hash);
        let [c, d] = signature.words();
        Self([a ^ c, b ^ d])
    }
}

impl TableKey for Asked {
    fn prefix(&self) -> [u64; 2] {
        self.0
    }
}

/// One that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) arrived: Arrived,
    /// The key it carries is the one its publisher is known by.
    pub(super) key_known: bool,
}

/// The open questions.
#[derive(Debug)]
pub(super) struct Questions {
    open: Arena<AskId, Waiting>,
    index: HeapTable<Asked, AskId>,
    /// All are as patient, so the one asked first is due first. Some here are answered.
    deadlines: VecDeque<(Instant, AskId)>,
    armed: bool,
    /// Of the publications that wait.
    bytes: usize,
}

impl Questions {
    /// At most `capacity` at once. Their index is allocated here, for they come and go too fast for one that grows and shrinks.
    pub(super) fn new(capacity: usize, rng: &mut Rng) -> Self {
        let mut slots: Vec<table::Slot<Asked, AskId>> = Vec::new();
        slots.resize_with(capacity + capacity / 7, || None);
        Self {
            open: Arena::default(),
            index: Table::new(slots, capacity, rng),
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
        self.open.memory() + self.index.memory() + deadlines
    }

    /// Whether a copy with the same bytes waits for its answer.
    pub(super) fn is_asked(
        &self,
        hash: &PublicationHash,
        signature: SignatureKey,
        object: &[u8],
    ) -> bool {
        let ask = self.index.get(&Asked::new(hash, signature));
        let waiting = ask.and_then(|ask| self.open.get(*ask));
        waiting.is_some_and(|waiting| waiting.arrived.delivery.bytes() == object)
    }

    /// Asks, and says until when it waits.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        arrived: Arrived,
        key_known: bool,
    ) -> (AskId, Instant) {
        let asked = Asked::new(&arrived.hash, arrived.signature);
        let deadline = now.saturating_add(PATIENCE);
        self.bytes += arrived.delivery.bytes().len();
        let ask = self.open.insert(Waiting { arrived, key_known });
        // One with another key field may have had the place: that one is found by its answer alone from now on.
        let _before: Result<_, _> = self.index.insert(asked, ask);
        self.deadlines.push_back((deadline, ask));
        (ask, deadline)
    }

    /// Takes out what was asked about, if it still waits.
    pub(super) fn answered(&mut self, ask: AskId) -> Option<Waiting> {
        let waiting = self.open.remove(ask)?;
        self.bytes -= waiting.arrived.delivery.bytes().len();
        let asked = Asked::new(&waiting.arrived.hash, waiting.arrived.signature);
        if let Some(other) = self.index.remove(&asked).filter(|found| *found != ask) {
            let _before: Result<_, _> = self.index.insert(asked, other);
        }
        self.pass_answered();
        if self.deadlines.len() > 2 * self.open.len() + SPARE {
            let open = &self.open;
            self.deadlines.retain(|(_, ask)| open.get(*ask).is_some());
        }
        Some(waiting)
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
