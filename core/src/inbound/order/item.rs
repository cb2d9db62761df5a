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

/// One place of an [`Order`](super::Order)'s storage: `[const { None }; N]` of it, or a box or a slice of the like.
pub struct Slot<T> {
    pub(super) epoch: u64,
    pub(super) seq: u64,
    /// While it is held: when it arrived, in microseconds, or [`AS_ABOVE`]. Once it is decided: its rank among all that was decided.
    pub(super) mark: u64,
    /// Once it is decided: what was given up before it.
    pub(super) skipped: Gap,
    pub(super) late: bool,
    pub(super) body: Body<T>,
}

/// In place of an arrival: one with a higher number was there before, so that this one does not matter.
pub(super) const AS_ABOVE: u64 = u64::MAX;

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
    Fact(T),
    /// Its fact went out on arrival.
    Gone,
    /// Its fact was refused or dropped, and accounted for elsewhere.
    Closed,
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("epoch", &self.epoch)
            .field("seq", &self.seq)
            .finish()
    }
}

/// A range given up where there was no slot to hang it on: it follows all that is decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub(super) epoch: u64,
    pub(super) gap: Gap,
    pub(super) place: u64,
}
