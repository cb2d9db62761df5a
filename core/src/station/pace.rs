//! Publishers paced by the readers of their topic.
//!
//! Decides: when a publication is answered, and when a ring is so full for a reader that an operator is told. Leaves to others: writing the
//! answer. Believes: mono. Bounded by: one held answer per unanswered publication; a second each, after which a topic is left alone for 30.
//!
//! Only readers that have been level with the ring since their acceptance count, so one that replays holds nobody.

use alloc::collections::VecDeque;

use super::topics::Topic;
use crate::LinkId;
use crate::time::{Duration, Instant};

/// How long a `published` waits for the slowest reader at most.
const PACE: Duration = Duration::from_secs(1);
/// How long a topic whose wait ran in full is not held again.
const PACE_REST: Duration = Duration::from_secs(30);
/// A topic is told to be near its capacity at most so often.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// A publisher's answer held back until the slowest reader is near enough.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) link: LinkId,
    pub(super) id: u64,
    pub(super) subscribers: u64,
    until: Instant,
}

/// What a topic knows of its slowest reader, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// At most the slowest counting reader's position: a bound that is made exact when it matters.
    pub(super) slowest: u64,
    /// A place that was the slowest once: while it is far behind, nobody else need be looked at.
    witness: usize,
    held: VecDeque<Held>,
    not_held_until: Instant,
    warned: Option<Instant>,
}

impl Pace {
    pub(super) fn memory(&self) -> usize {
        self.held.capacity() * size_of::<Held>()
    }
}

impl Topic {
    /// Whether a counting reader is more than `most` behind.
    fn lags(&mut self, most: u64) -> bool {
        let end = self.ring.end();
        let far = |next: u64| end.saturating_sub(next) > most;
        if !far(self.pace.slowest) {
            return false;
        }
        let witness = self.places.get(self.pace.witness);
        if witness.is_some_and(|place| place.counts && far(place.next)) {
            return true;
        }
        let counting = self.places.iter().enumerate().filter(|(_, p)| p.counts);
        let slowest = counting.min_by_key(|(_, place)| place.next);
        (self.pace.witness, self.pace.slowest) =
            slowest.map_or((0, end), |(at, place)| (at, place.next));
        far(self.pace.slowest)
    }

    /// Whether a publisher may go on at once: every counting reader is at most half a ring behind.
    fn near_enough(&mut self) -> bool {
        !self.lags(self.ring.capacity() as u64 / 2)
    }

    /// How far the slowest counting reader is behind, when that is two fifths of the ring or more and was not told for a minute.
    pub(super) fn warn(&mut self, now: Instant) -> Option<u64> {
        let told = self.pace.warned;
        let fresh = told.is_none_or(|told| now.saturating_since(told) >= WARN_EVERY);
        let most = (self.ring.capacity() as u64 * 2).div_ceil(5) - 1;
        if !fresh || !self.lags(most) {
            return None;
        }
        self.pace.warned = Some(now);
        let counting = self.places.iter().filter(|place| place.counts);
        counting.map(|place| self.ring.lag(place.next)).max()
    }

    /// Whether the answer to a publication of this topic is given now. When not, it is held.
    pub(super) fn pace(&mut self, now: Instant, link: LinkId, id: u64, subscribers: u64) -> bool {
        if now < self.pace.not_held_until || (self.pace.held.is_empty() && self.near_enough()) {
            return true;
        }
        self.pace.held.push_back(Held {
            link,
            id,
            subscribers,
            until: now.saturating_add(PACE),
        });
        false
    }

    /// The answers that are due: all of them when the readers came near enough, or those that waited in full.
    pub(super) fn release(&mut self, now: Instant) -> Option<Held> {
        let oldest = self.pace.held.front()?;
        if now >= oldest.until {
            self.pace.not_held_until = now.saturating_add(PACE_REST);
        } else if now >= self.pace.not_held_until && !self.near_enough() {
            return None;
        }
        self.pace.held.pop_front()
    }

    /// When the oldest held answer is given anyway.
    pub(super) fn release_at(&self) -> Option<Instant> {
        self.pace.held.front().map(|held| held.until)
    }

    pub(super) fn holds_answers(&self) -> bool {
        !self.pace.held.is_empty()
    }

    /// Forgets answers held for a link that has ended.
    pub(super) fn forget_link(&mut self, link: LinkId) {
        self.pace.held.retain(|held| held.link != link);
    }
}
