//! Whose turn it is, where there is a loop and not a task per link.
//!
//! Decides: the order, which is that of asking, and that nobody waits twice. Leaves to others: what a turn is. Believes: the instants
//! it is handed. Bounded by: one place in the queue, one deadline and one place among the paused for each seat.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidings::Instant;

/// Seats, known by number, and what each of them waits for.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queue: VecDeque<usize>,
    queued: BTreeSet<usize>,
    paused: BTreeSet<usize>,
    deadlines: BTreeSet<(Instant, usize)>,
    armed: BTreeMap<usize, Instant>,
}

impl Turns {
    /// A seat has something to do.
    pub(crate) fn push(&mut self, seat: usize) {
        if self.queued.insert(seat) {
            self.queue.push_back(seat);
        }
    }

    /// A seat has something to do then, whatever happens before; with `None` it has not. The last word counts.
    pub(crate) fn arm(&mut self, seat: usize, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.armed.insert(seat, at),
            None => self.armed.remove(&seat),
        };
        if before != at {
            before.map(|before| self.deadlines.remove(&(before, seat)));
            at.map(|at| self.deadlines.insert((at, seat)));
        }
    }

    /// A seat waits for a reader, and has its turn at [`Self::retry`].
    pub(crate) fn pause(&mut self, seat: usize) {
        self.paused.insert(seat);
    }

    /// Somebody has read.
    pub(crate) fn retry(&mut self) {
        while let Some(seat) = self.paused.pop_first() {
            self.push(seat);
        }
    }

    /// The next seat with something to do, its deadline past or not.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<usize> {
        while let Some((at, seat)) = self.deadlines.first().copied()
            && at <= now
        {
            self.arm(seat, None);
            self.push(seat);
        }
        let seat = self.queue.pop_front()?;
        self.queued.remove(&seat);
        Some(seat)
    }

    /// A seat is empty. A turn it still has is for the driver to pass over.
    pub(crate) fn forget(&mut self, seat: usize) {
        self.arm(seat, None);
        self.paused.remove(&seat);
    }

    /// Whether a seat has something to do before any deadline.
    pub(crate) fn is_due(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The earliest deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn each_has_one_place_in_the_order_of_asking() {
        let mut turns = Turns::default();
        for seat in [3, 1, 3, 2, 1] {
            turns.push(seat);
        }
        let order: Vec<usize> = std::iter::from_fn(|| turns.pop(at(0))).collect();
        assert_eq!(order, [3, 1, 2]);
        assert!(!turns.is_due());
        turns.push(3);
        assert_eq!(turns.pop(at(0)), Some(3));
    }

    #[test]
    fn a_deadline_is_the_last_one_named_and_comes_once() {
        let mut turns = Turns::default();
        turns.arm(1, Some(at(10)));
        turns.arm(2, Some(at(5)));
        turns.arm(1, Some(at(20)));
        assert_eq!(turns.deadline(), Some(at(5)));
        turns.arm(2, None);
        assert_eq!(turns.deadline(), Some(at(20)));
        assert_eq!(turns.pop(at(19)), None);
        assert_eq!((turns.pop(at(20)), turns.pop(at(20))), (Some(1), None));
        assert_eq!(turns.deadline(), None);
    }

    #[test]
    fn who_waits_for_a_reader_has_a_turn_when_one_has_read_unless_it_left() {
        let mut turns = Turns::default();
        turns.pause(1);
        turns.pause(2);
        turns.arm(2, Some(at(1)));
        turns.forget(2);
        assert_eq!(turns.pop(at(9)), None);
        turns.retry();
        assert_eq!((turns.pop(at(9)), turns.pop(at(9))), (Some(1), None));
        turns.retry();
        assert_eq!(turns.pop(at(9)), None);
    }
}
