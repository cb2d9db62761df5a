//! What goes into an order, what comes out, and what it keeps.
//!
//! Decides: nothing. Leaves to others: everything. Believes: no clock. Bounded by: nothing is kept here.

use core::fmt;

use super::aside::Untold;
use crate::time::Duration;

/// How an [`Order`](super::Order) gives its facts out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderConfig {
    /// How long a missing number is waited for, from the arrival of the first fact behind the gap. Default 250 ms.
    pub timeout: Duration,
    /// With this many facts held the head gap is given up early; at least 1, at most what leaves room for one more fact. Default 1024.
    pub max_held: usize,
    /// Facts leave at once; the same gaps are watched and reported.
    pub as_arrives: bool,
    /// The numbers are not contiguous: facts are put in order within the timeout and nothing is reported as skipped.
    pub sparse: bool,
}

impl Default for OrderConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(250),
            max_held: 1024,
            as_arrives: false,
            sparse: false,
        }
    }
}

/// What became of an offered fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Admit<T> {
    /// No room until something was handed out; nothing has changed. Drain and offer again, or give its place up.
    Busy(T),
    /// Another fact with this number was delivered or is held; this one is not delivered.
    Conflict(T),
    /// A copy of a fact that was delivered.
    Duplicate(T),
    /// A newer fact was delivered before (`latest_only`).
    Superseded(T),
    /// It is held or ready to leave.
    Taken,
}

/// What an [`Order`](super::Order) hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Release<T> {
    /// A fact, in order or `late`.
    Fact {
        /// The epoch it was offered under.
        epoch: u64,
        /// Its number.
        seq: u64,
        /// It comes after its place was given up, or its epoch is no longer the greatest.
        late: bool,
        /// What was offered.
        item: T,
    },
    /// `first..=last` did not arrive in time.
    Skipped {
        /// The epoch of the numbers.
        epoch: u64,
        /// The lowest missing number.
        first: u64,
        /// The highest missing number.
        last: u64,
    },
}

/// The fact an [`Order`](super::Order) would hand out next.
#[derive(Debug)]
#[non_exhaustive]
pub struct Front<'a, T> {
    /// Its epoch.
    pub epoch: u64,
    /// Its number.
    pub seq: u64,
    /// It will be handed out as late.
    pub late: bool,
    /// The fact; it may be changed in place, as opening a sealed one does.
    pub item: &'a mut T,
}

/// One place of an [`Order`](super::Order)'s storage: `[const { None }; N]` of it, or a box or a slice of the like. 24 bytes for a fact of one
/// word: what many publishers wait with is in no cache.
pub struct Slot<T> {
    pub(super) seq: u64,
    pub(super) body: Body<T>,
}

const _: () = assert!(size_of::<Option<Slot<u64>>>() == 24);

/// While it is held: when it arrived. Once it is decided: its rank among all that was decided. In 48 bits, so that it fits in one word with
/// what a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark([u8; 4], [u8; 2]);

impl Mark {
    const MASK: u64 = (1 << 48) - 1;
    /// In place of an arrival: one with a higher number was there before, so that this one does not matter.
    pub(super) const AS_ABOVE: Self = Self([u8::MAX; 4], [u8::MAX; 2]);

    #[inline]
    fn of(bits: u64) -> Self {
        Self(
            (bits as u32).to_le_bytes(),
            ((bits >> 32) as u16).to_le_bytes(),
        )
    }

    #[inline]
    fn bits(self) -> u64 {
        let (low, high) = (u32::from_le_bytes(self.0), u16::from_le_bytes(self.1));
        u64::from(low) | u64::from(high) << 32
    }

    /// In microseconds. More than eight years after `began`, since when something has been held without a break, it counts as those.
    #[inline]
    pub(super) fn arrival(began: u64, at: u64) -> Self {
        Self::of(at.saturating_sub(began).min(Self::MASK - 1))
    }

    /// When it arrived, if that matters.
    #[inline]
    pub(super) fn arrived(self, began: u64) -> Option<u64> {
        (self != Self::AS_ABOVE).then(|| began.saturating_add(self.bits()))
    }

    #[inline]
    pub(super) fn ranked(rank: u64) -> Self {
        Self::of(rank)
    }

    /// Its rank; `last` is the last one so far.
    #[inline]
    pub(super) fn rank(self, last: u64) -> u64 {
        last.wrapping_sub(last.wrapping_sub(self.bits()) & Self::MASK)
    }
}

/// The numbers `first..=last`; none when upside down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Gap {
    pub(super) const NONE: Self = Self { first: 1, last: 0 };

    /// What is between two numbers.
    pub(super) fn between(edge: u64, next: u64) -> Self {
        match edge.checked_add(1) {
            Some(first) if first < next => Self {
                first,
                last: next - 1,
            },
            _ => Self::NONE,
        }
    }

    pub(super) fn is_none(self) -> bool {
        self.first > self.last
    }
}

/// What is left of an epoch that is not followed any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// All up to here was decided.
    pub(crate) edge: u64,
    /// But nobody was told of this.
    pub(crate) untold: Untold,
    /// Up to here an earlier run delivered.
    pub(crate) vouched: Option<u64>,
    /// What was known of it had been given up before.
    pub(crate) anew: bool,
}

pub(super) enum Body<T> {
    Fact {
        leaves: Leaves,
        mark: Mark,
        item: T,
    },
    /// Its fact went out on arrival.
    Gone(Mark),
    /// Its fact was refused or dropped, and accounted for elsewhere.
    Closed(Mark),
    /// The numbers from `first` up to the slot's were given up, which is told before what has the same rank, if anything has.
    Gap {
        leaves: Leaves,
        mark: Mark,
        first: u64,
    },
}

impl<T> Body<T> {
    pub(super) const GONE: Self = Self::Gone(Mark::AS_ABOVE);
    pub(super) const CLOSED: Self = Self::Closed(Mark::AS_ABOVE);

    #[inline]
    pub(super) fn fact(item: T) -> Self {
        Self::Fact {
            leaves: Leaves::UNDECIDED,
            mark: Mark::AS_ABOVE,
            item,
        }
    }

    #[inline]
    pub(super) fn mark(&self) -> Mark {
        match self {
            Self::Fact { mark, .. }
            | Self::Gone(mark)
            | Self::Closed(mark)
            | Self::Gap { mark, .. } => *mark,
        }
    }

    #[inline]
    pub(super) fn set_mark(&mut self, to: Mark) {
        match self {
            Self::Fact { mark, .. }
            | Self::Gone(mark)
            | Self::Closed(mark)
            | Self::Gap { mark, .. } => *mark = to,
        }
    }

    /// How it leaves, if it is decided.
    #[inline]
    pub(super) fn leaves(&self) -> Leaves {
        match self {
            Self::Fact { leaves, .. } | Self::Gap { leaves, .. } => *leaves,
            Self::Gone(_) | Self::Closed(_) => Leaves::UNDECIDED,
        }
    }
}

/// How something leaves that is decided: as late or not, and under which epoch's number.
#[derive(Clone, Copy)]
pub(super) struct Leaves(u8);

impl Leaves {
    const UNDECIDED: Self = Self(0);
    const LATE: u8 = 1 << 7;

    #[inline]
    pub(super) fn new(late: bool, epoch: u8) -> Self {
        Self(epoch | if late { Self::LATE } else { 0 })
    }

    #[inline]
    pub(super) fn late(self) -> bool {
        self.0 >= Self::LATE
    }

    /// The number of its epoch.
    #[inline]
    pub(super) fn epoch(self) -> u8 {
        self.0 & !Self::LATE
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

/// A range given up where there was no slot to hang it on: it follows all that is decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub(super) epoch: u64,
    pub(super) gap: Gap,
    pub(super) place: u64,
}
