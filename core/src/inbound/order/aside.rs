//! What an order needs only once something was missing or had to wait.
//!
//! Decides: where it is: where memory can be allocated, in a box that is made when it is first needed; else in the order itself. Leaves to
//! others: what it means. Believes: no clock. Bounded by: the slots, 16 ranges.

use super::item::{Slot, Tail};
use crate::inbound::held::Held;
use crate::inbound::ranges::Ranges;

/// Between these two lies no number.
const NOTHING: (u64, u64) = (u64::MAX, 0);

/// Ranges of missing numbers an order remembers.
pub(crate) const MISSING: usize = 16;

#[derive(Debug)]
pub(super) struct Rare<T, S> {
    /// What was decided and waits for `poll`, in that order, and behind it what is held, by number.
    pub(super) queue: Held<Slot<T>, S>,
    pub(super) tail: Option<Tail>,
    pub(super) late: u64,
    pub(super) skips: u64,
    /// Numbers up to the edge that were not delivered: skipped or closed.
    pub(super) missing: Ranges<MISSING>,
    /// The order was joined here, in the middle: of what is missing below nobody was told.
    pub(super) joined: u64,
    /// What came late from below there lies between these two.
    came: (u64, u64),
}

impl<T, S> Rare<T, S> {
    fn new(queue: Held<Slot<T>, S>) -> Self {
        Self {
            queue,
            tail: None,
            late: 0,
            skips: 0,
            missing: Ranges::new(0),
            joined: 0,
            came: NOTHING,
        }
    }

    /// Only these numbers are missing, and the order was joined at `joined`, where that is not 0.
    pub(super) fn know(&mut self, missing: Ranges<MISSING>, joined: u64) {
        (self.missing, self.joined, self.came) = (missing, joined, NOTHING);
    }

    /// The number was not delivered, for certain: where the ranges do not reach any more, that is all below the join but what lies between
    /// what came late from there.
    pub(super) fn is_missing(&self, seq: u64) -> bool {
        let (first, last) = self.came;
        let below = (1..self.joined.min(self.missing.floor())).contains(&seq);
        self.missing.contains(seq) || below && !(first..=last).contains(&seq)
    }

    /// A missing number came after all.
    pub(super) fn comes(&mut self, seq: u64) {
        self.missing.remove(seq);
        if seq < self.joined {
            self.came = (self.came.0.min(seq), self.came.1.max(seq));
        }
    }
}

#[cfg(feature = "alloc")]
mod place {
    use alloc::boxed::Box;

    use super::*;

    /// Makes a queue with slots for so many.
    type Make<T, S> = fn(usize) -> Held<Slot<T>, S>;

    #[derive(Debug)]
    pub(in super::super) struct Aside<T, S> {
        rare: Option<Box<Rare<T, S>>>,
        /// None where the queue was there from the start.
        make: Option<Make<T, S>>,
    }

    impl<T, S> Aside<T, S> {
        pub(in super::super) fn new(queue: Held<Slot<T>, S>) -> Self {
            Self {
                rare: Some(Box::new(Rare::new(queue))),
                make: None,
            }
        }

        pub(in super::super) fn later(make: Make<T, S>) -> Self {
            Self {
                rare: None,
                make: Some(make),
            }
        }

        #[inline]
        pub(in super::super) fn get(&self) -> Option<&Rare<T, S>> {
            self.rare.as_deref()
        }

        #[inline]
        pub(in super::super) fn get_mut(&mut self) -> Option<&mut Rare<T, S>> {
            self.rare.as_deref_mut()
        }

        /// As it is, or new, for at most `limit` that are held and with nothing known below `floor`.
        #[inline]
        pub(in super::super) fn need(&mut self, limit: usize, floor: u64) -> &mut Rare<T, S> {
            if self.rare.is_none() {
                self.make(limit, floor);
            }
            match &mut self.rare {
                Some(rare) => rare,
                None => unreachable!("it is there from the start, or was made"),
            }
        }

        #[cold]
        fn make(&mut self, limit: usize, floor: u64) {
            if let Some(make) = self.make {
                let mut rare = Rare::new(make(limit));
                rare.missing = Ranges::new(floor);
                self.rare = Some(Box::new(rare));
            }
        }

        /// Bytes outside of the value itself.
        pub(in super::super) fn bytes(&self) -> usize
        where
            S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>,
        {
            self.get()
                .map_or(0, |rare| size_of::<Rare<T, S>>() + rare.queue.slot_bytes())
        }

        /// The next one that is needed has another limit.
        pub(in super::super) fn forget(&mut self) {
            if self.make.is_some() {
                self.rare = None;
            }
        }
    }
}

#[cfg(not(feature = "alloc"))]
mod place {
    use super::*;

    #[derive(Debug)]
    pub(in super::super) struct Aside<T, S>(Rare<T, S>);

    impl<T, S> Aside<T, S> {
        pub(in super::super) fn new(queue: Held<Slot<T>, S>) -> Self {
            Self(Rare::new(queue))
        }

        #[inline]
        pub(in super::super) fn get(&self) -> Option<&Rare<T, S>> {
            Some(&self.0)
        }

        #[inline]
        pub(in super::super) fn get_mut(&mut self) -> Option<&mut Rare<T, S>> {
            Some(&mut self.0)
        }

        #[inline]
        pub(in super::super) fn need(&mut self, _: usize, _: u64) -> &mut Rare<T, S> {
            &mut self.0
        }

        /// Bytes outside of the value itself.
        pub(in super::super) fn bytes(&self) -> usize
        where
            S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>,
        {
            self.0.queue.slot_bytes()
        }
    }
}

pub(super) use place::Aside;
