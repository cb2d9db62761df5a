//! What an order needs only once something was missing or had to wait.
//!
//! Decides: where it is: where memory can be allocated, in a box that is made when it is first needed; else in the order itself. Leaves to
//! others: what it means. Believes: no clock. Bounded by: the slots, 16 ranges of missing numbers, and as many of those nobody
//! was told of.

use super::epochs::Epochs;
use super::item::{Body, Gap, Leaves, Mark, Slot, Tail};
use crate::inbound::held::Held;
use crate::inbound::ranges::Ranges;

/// Ranges of missing numbers an order remembers.
pub(crate) const MISSING: usize = 16;

/// Ranges of numbers nobody was told of: the bound of WIRE.md section 11.
pub(crate) const UNTOLD: usize = 16;

/// Numbers that were neither delivered nor told of.
pub(crate) type Untold = Ranges<UNTOLD>;

/// What finds a held fact's slot is one line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Rare<T, S> {
    /// What was decided and waits for `poll`, in that order, and behind it what is held, by number.
    pub(super) queue: Held<Slot<T>, S>,
    /// When the first was held since nothing was, in microseconds.
    pub(super) began: u64,
    pub(super) epochs: Epochs,
    /// What was given up before something that was decided, in that order.
    pub(super) gaps: Held<Slot<T>, S>,
    pub(super) tail: Option<Tail>,
    pub(super) late: u64,
    pub(super) skips: u64,
    /// Numbers up to the edge that were not delivered: skipped or closed.
    pub(super) missing: Ranges<MISSING>,
    /// Numbers below where the order was joined that were neither delivered nor told of.
    pub(super) untold: Untold,
}

impl<T, S> Rare<T, S> {
    fn new([queue, gaps]: [Held<Slot<T>, S>; 2]) -> Self {
        Self {
            queue,
            began: 0,
            epochs: Epochs::NONE,
            gaps,
            tail: None,
            late: 0,
            skips: 0,
            missing: Ranges::new(0),
            untold: Ranges::new(0),
        }
    }

    /// The number was not delivered, for certain.
    pub(super) fn is_missing(&self, seq: u64) -> bool {
        self.missing.contains(seq) || self.untold.contains(seq)
    }

    /// A missing number came after all. Where there is no room to remember that, nothing is known any more of what nobody was told of, at once:
    /// else each that comes after it would cost some.
    pub(super) fn comes(&mut self, seq: u64) {
        self.missing.remove(seq);
        if self.untold.costs_one(seq)
            && let Some((_, last)) = self.untold.as_slice().last()
        {
            self.untold = Ranges::new(last.saturating_add(1));
        }
        self.untold.remove(seq);
    }

    /// What became of a number is told elsewhere: it stays missing. Where there is no room to remember that it was told of, it will be once
    /// more.
    pub(super) fn tell(&mut self, seq: u64) {
        if !self.untold.costs_one(seq) && self.untold.remove(seq) {
            self.missing.insert(seq, seq);
        }
    }

    /// The lowest number of which it is known whether it is missing.
    pub(super) fn floor(&self) -> u64 {
        self.missing.floor().max(self.untold.floor())
    }
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Rare<T, S> {
    /// That gap is told before what has this rank, which was decided last.
    pub(super) fn tell_before(&mut self, mark: Mark, leaves: Leaves, gap: Gap) {
        let (seq, first) = (gap.last, gap.first);
        let body = Body::Gap {
            leaves,
            mark,
            first,
        };
        let kept = self.gaps.insert(self.gaps.len(), Slot { seq, body });
        debug_assert!(kept.is_ok(), "there is a place for each that is decided");
    }

    /// A gap is told before the first of all that is decided.
    #[inline]
    pub(super) fn gap_first(&self) -> bool {
        match (self.gaps.get(0), self.queue.get(0)) {
            (Some(gap), Some(slot)) => gap.body.mark() == slot.body.mark(),
            _ => false,
        }
    }

    fn slot_bytes(&self) -> usize {
        self.queue.slot_bytes() + self.gaps.slot_bytes()
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
        pub(in super::super) fn new(queues: [Held<Slot<T>, S>; 2]) -> Self {
            Self {
                rare: Some(Box::new(Rare::new(queues))),
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
                let mut rare = Rare::new([make(limit), make(limit)]);
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
                .map_or(0, |rare| size_of::<Rare<T, S>>() + rare.slot_bytes())
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
        pub(in super::super) fn new(queues: [Held<Slot<T>, S>; 2]) -> Self {
            Self(Rare::new(queues))
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
            self.0.slot_bytes()
        }
    }
}

pub(super) use place::Aside;
