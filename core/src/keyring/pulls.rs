//! Key periods asked for by id: what is under way, what was answered, and who had them asked for.
//!
//! Decides: whether one more may be asked for. Leaves to others: what is held, and asking. Believes: mono. Bounded by: its slots, and three
//! periods of a publisher in a rotation; who invents ids costs so many questions, and what it had asked for is forgotten after 65 minutes.

use core::fmt;

use crate::NodeId;
use crate::code::UnopenedReason;
use crate::table::TableKey;
use crate::time::{Duration, Instant, soonest};

/// Ids that are asked for on behalf of one publisher in one rotation.
pub const PULLS_PER_PUBLISHER: usize = 3;
/// How long it is remembered that there is no such period.
pub const REMEMBERED: Duration = Duration::from_secs(65 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was asked for here.
    Free,
    /// The answer is waited for until then.
    Asked { deadline: Instant, handed: bool },
    /// It was given.
    Given,
    /// It was not given, which says nothing of the next time.
    Failed(UnopenedReason),
    /// There is none; nobody asks again until then.
    Denied {
        reason: UnopenedReason,
        until: Instant,
    },
}

/// One place of the storage for periods asked for by id.
#[derive(Clone, Copy)]
pub struct PullSlot {
    id: [u8; 8],
    publisher: [u64; 2],
    /// Until when it counts against its publisher.
    counts_until: Instant,
    state: State,
}

impl PullSlot {
    /// A slot that holds nothing.
    pub const EMPTY: Self = Self {
        id: [0; 8],
        publisher: [0; 2],
        counts_until: Instant::ORIGIN,
        state: State::Free,
    };

    fn is_of(&self, id: &[u8; 8]) -> bool {
        self.state != State::Free && self.id == *id
    }

    fn counts(&self, now: Instant) -> bool {
        self.state != State::Free && self.counts_until > now
    }

    /// Whether it may make room, and the later the less.
    fn spare(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::Free => Some(Instant::ORIGIN),
            State::Asked { .. } => None,
            _ if self.counts(now) => None,
            State::Given | State::Failed(_) => Some(self.counts_until),
            State::Denied { until, .. } => Some(until.max(self.counts_until)),
        }
    }
}

impl Default for PullSlot {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for PullSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullSlot")
            .field("state", &self.state)
            .finish()
    }
}

/// What is known of an id that is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Asked,
    Denied(UnopenedReason),
    Failed(UnopenedReason),
    Nothing,
}

#[derive(Debug)]
pub(super) struct Pulls<U> {
    slots: U,
    /// Some question was not handed out.
    unasked: bool,
}

impl<U: AsRef<[PullSlot]> + AsMut<[PullSlot]>> Pulls<U> {
    pub(super) fn new(mut slots: U) -> Self {
        slots.as_mut().fill(PullSlot::EMPTY);
        Self {
            slots,
            unasked: false,
        }
    }

    /// The most that is known: a question under way, else a denial, else a failure.
    pub(super) fn known(&self, now: Instant, id: &[u8; 8]) -> Known {
        let mut known = Known::Nothing;
        for slot in self.slots.as_ref().iter().filter(|slot| slot.is_of(id)) {
            match slot.state {
                State::Asked { .. } => return Known::Asked,
                State::Denied { reason, until } if until > now => known = Known::Denied(reason),
                State::Failed(reason) if known == Known::Nothing => known = Known::Failed(reason),
                _ => (),
            }
        }
        known
    }

    /// Asks for an id on behalf of a publisher. `false`: it had its share, or too many are remembered.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        id: [u8; 8],
        publisher: &NodeId,
        rotation: Duration,
        patience: Duration,
    ) -> bool {
        let publisher = publisher.prefix();
        let mut window = None;
        let (mut used, mut place, mut spare) = (0, None, None);
        for (at, slot) in self.slots.as_ref().iter().enumerate() {
            if slot.publisher == publisher && slot.counts(now) {
                used += 1;
                window = Some(slot.counts_until);
            }
            let room = slot.spare(now);
            if room.is_some_and(|room| spare.is_none_or(|spare| room < spare)) {
                (spare, place) = (room, Some(at));
            }
        }
        let (Some(place), true) = (place, used < PULLS_PER_PUBLISHER) else {
            return false;
        };
        self.slots.as_mut()[place] = PullSlot {
            id,
            publisher,
            counts_until: window.unwrap_or_else(|| now.saturating_add(rotation)),
            state: State::Asked {
                deadline: now.saturating_add(patience),
                handed: false,
            },
        };
        self.unasked = true;
        true
    }

    /// The next question that was not handed out, and until when its answer is waited for.
    pub(super) fn poll(&mut self) -> Option<([u8; 8], Instant)> {
        if !self.unasked {
            return None;
        }
        let mut slots = self.slots.as_mut().iter_mut();
        let next = slots.find_map(|slot| match &mut slot.state {
            State::Asked { deadline, handed } if !*handed => {
                *handed = true;
                Some((slot.id, *deadline))
            }
            _ => None,
        });
        self.unasked = next.is_some();
        next
    }

    fn asked(&mut self, id: &[u8; 8]) -> Option<&mut State> {
        let slots = self.slots.as_mut().iter_mut();
        slots
            .filter(|slot| slot.id == *id)
            .map(|slot| &mut slot.state)
            .find(|state| matches!(state, State::Asked { .. }))
    }

    /// Whether an answer about this id is waited for.
    pub(super) fn is_asked(&self, id: &[u8; 8]) -> bool {
        let mut slots = self.slots.as_ref().iter();
        slots.any(|slot| slot.id == *id && matches!(slot.state, State::Asked { .. }))
    }

    /// The period was given. `false`: it was not asked for.
    pub(super) fn give(&mut self, id: &[u8; 8]) -> bool {
        self.asked(id).map(|state| *state = State::Given).is_some()
    }

    /// It was not given. What can never be otherwise is remembered. `false`: it was not asked for.
    pub(super) fn fail(&mut self, now: Instant, id: &[u8; 8], reason: UnopenedReason) -> bool {
        let state = match reason {
            UnopenedReason::UnknownPeriod | UnopenedReason::PeriodExpired => State::Denied {
                reason,
                until: now.saturating_add(REMEMBERED),
            },
            _ => State::Failed(reason),
        };
        self.asked(id).map(|asked| *asked = state).is_some()
    }

    /// What was not answered in time fails. Answers how many did.
    pub(super) fn expire(&mut self, now: Instant) -> u64 {
        let mut failed = 0;
        for slot in self.slots.as_mut() {
            if let State::Asked { deadline, .. } = slot.state
                && deadline <= now
            {
                slot.state = State::Failed(UnopenedReason::NoDistributor);
                failed += 1;
            }
        }
        failed
    }

    /// Another token may be answered otherwise: what failed is not known any more, though it counts.
    pub(super) fn forget_failures(&mut self) {
        for slot in self.slots.as_mut() {
            if matches!(slot.state, State::Failed(_)) {
                slot.state = State::Given;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.as_mut().fill(PullSlot::EMPTY);
    }

    /// When the first of the questions under way is given up.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let slots = self.slots.as_ref().iter();
        slots.fold(None, |due, slot| match slot.state {
            State::Asked { deadline, .. } => soonest(due, Some(deadline)),
            _ => due,
        })
    }

    /// Questions under way.
    pub(super) fn under_way(&self) -> usize {
        let slots = self.slots.as_ref().iter();
        slots
            .filter(|slot| matches!(slot.state, State::Asked { .. }))
            .count()
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(self.slots.as_ref())
    }
}
