//! What is said of a fact, of a lookup and of its answer.
//!
//! Decides: nothing. Leaves to others: everything. Believes: no clock. Bounded by: nothing is kept here.

use core::fmt;

use crate::code::{DropReason, SourceRefusal};
use crate::time::{Instant, WallMs};

/// A lookup under way, or one that was: no two of a run are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupId {
    pub(crate) slot: u32,
    pub(crate) turn: u32,
}

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceAnswer {
    /// The source admits the publisher.
    Admit {
        /// When the record that says so ends: from then on it admits nobody. One that is over refuses, as `expired`.
        until: WallMs,
    },
    /// The source does not admit it.
    Refuse(SourceRefusal),
    /// It could not be found out. Nothing is remembered of that.
    Unknown,
}

/// Why a fact is dropped without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceDrop {
    /// As many facts wait for this publisher's lookup as may.
    HoldFull,
    /// Its lookup did not come to an end in time.
    Unanswered,
    /// It could not be found out whether its publisher is admitted.
    Undecided,
    /// No place was left for its publisher's verdict.
    VerdictsFull,
    /// The realm has spent its window of lookups, or this publisher's share of it.
    WindowSpent,
}

impl SourceDrop {
    /// As it is told to readers (table 10.10).
    pub const fn reason(self) -> DropReason {
        match self {
            Self::HoldFull => DropReason::HoldFull,
            Self::Unanswered => DropReason::Unanswered,
            Self::Undecided => DropReason::UndecidedSource,
            Self::VerdictsFull => DropReason::VerdictsFull,
            Self::WindowSpent => DropReason::LookupsFull,
        }
    }
}

/// What [`Sources::judge`](super::Sources::judge) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Judgement {
    /// It is admitted. Where a lookup is named it begins now, behind the fact: its verdict is about to end.
    Admit(Option<Lookup>),
    /// A lookup begins now, and the fact waits for it.
    Ask(Lookup),
    /// It is dropped.
    Drop(SourceDrop),
    /// It is refused.
    Refuse(SourceRefusal),
    /// The fact waits for a lookup that has begun.
    Wait(LookupId),
}

/// A lookup that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Which one.
    pub id: LookupId,
    /// When it is given up.
    pub deadline: Instant,
}

/// What becomes of the facts that waited for a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Settled {
    /// They are admitted.
    Admit,
    /// They are dropped.
    Drop(SourceDrop),
    /// They are refused.
    Refuse(SourceRefusal),
}

impl fmt::Display for SourceDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason().text())
    }
}
