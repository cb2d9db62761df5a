//! What goes into a lane and what comes out.
//!
//! Decides: nothing. Leaves to others: everything. Believes: no clock. Bounded by: nothing is kept here.

use super::notes::Note;
use crate::inbound::order::{OrderConfig, Release};
use crate::time::{Duration, WallMs};

/// How a subscription wants its facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// At once; what is missing is still reported.
    AsArrives,
    /// Only what is newer than all before.
    LatestOnly,
    /// In the publisher's order.
    #[default]
    Ordered,
}

/// How a [`Lane`](super::Lane) works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneConfig {
    /// How facts are given out.
    pub mode: Mode,
    /// How long a missing number is waited for; default 250 ms.
    pub order_timeout: Duration,
    /// Facts held in one epoch before the head gap is given up early; default 1024, at least 1.
    pub order_max_buffer: usize,
    /// When the subscription was first accepted by a station. An epoch that began more than 5 minutes later starts at 1.
    pub accepted_wall: WallMs,
    /// The publisher's numbers are not contiguous: order them within the timeout, report nothing as skipped.
    pub sparse: bool,
    /// A record of this stream may have been given up: `Resynced` precedes its first fact, and it is joined in the middle.
    pub forgotten: bool,
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Ordered,
            order_timeout: Duration::from_millis(250),
            order_max_buffer: 1024,
            accepted_wall: WallMs::new(0),
            sparse: false,
            forgotten: false,
        }
    }
}

/// What a lane needs to know about a fact it does not look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// When the publisher's numbering began, in wall µs; 0 where the publication does not say.
    pub epoch: u64,
    /// Its number.
    pub seq: u64,
    /// When the publication expires for good.
    pub until: WallMs,
    /// It came from a station's replay.
    pub replayed: bool,
    /// It went to one subscriber: no numbering, no order.
    pub anycast: bool,
    /// Dedup may have forgotten facts at or below this lane's edge before their time.
    pub copy_possible: bool,
}

/// What a lane hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneItem<T> {
    /// `count` facts carried numbers of other facts, `first..=last`; they are not delivered.
    Conflict {
        /// Their epoch.
        epoch: u64,
        /// The lowest number.
        first: u64,
        /// The highest number.
        last: u64,
        /// How many facts were not delivered.
        count: u64,
    },
    /// A fact.
    Fact {
        /// Its epoch, made up where the publication has none.
        epoch: u64,
        /// Its number.
        seq: u64,
        /// It comes after its place, or a greater epoch is known.
        late: bool,
        /// What was offered.
        item: T,
    },
    /// The first fact of another numbering was heard.
    Restarted {
        /// The new one.
        epoch: u64,
        /// It is greater than those before.
        greater: bool,
    },
    /// What was known of this stream was given up, while it was idle or for other epochs.
    Resynced {
        /// The epoch that is heard now.
        epoch: u64,
    },
    /// `first..=last` did not arrive in time.
    Skipped {
        /// Their epoch.
        epoch: u64,
        /// The lowest number.
        first: u64,
        /// The highest number.
        last: u64,
    },
    /// Two numberings have gone on side by side for a minute.
    TwoCounters {
        /// The greater one.
        epoch: u64,
    },
}

/// What a lane has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Facts that left as late.
    pub late: u64,
    /// Ranges that were given up.
    pub skips: u64,
    /// Facts that carried the number of another one.
    pub conflicts: u64,
    /// Copies that dedup had forgotten.
    pub duplicates: u64,
    /// Facts older than the newest (`latest_only`).
    pub superseded: u64,
    /// Numberings after the first.
    pub restarts: u64,
}

impl LaneConfig {
    pub(super) fn order(&self) -> OrderConfig {
        OrderConfig {
            timeout: self.order_timeout,
            max_held: self.order_max_buffer,
            as_arrives: self.mode == Mode::AsArrives,
            sparse: self.sparse,
        }
    }
}

impl<T> From<Release<T>> for LaneItem<T> {
    fn from(release: Release<T>) -> Self {
        match release {
            Release::Fact {
                epoch,
                seq,
                late,
                item,
            } => Self::Fact {
                epoch,
                seq,
                late,
                item,
            },
            Release::Skipped { epoch, first, last } => Self::Skipped { epoch, first, last },
        }
    }
}

impl<T> From<Note> for LaneItem<T> {
    fn from(note: Note) -> Self {
        match note {
            Note::Conflict {
                epoch,
                first,
                last,
                count,
            } => Self::Conflict {
                epoch,
                first,
                last,
                count,
            },
            Note::Restarted { epoch, greater } => Self::Restarted { epoch, greater },
            Note::Resynced { epoch } => Self::Resynced { epoch },
            Note::TwoCounters { epoch } => Self::TwoCounters { epoch },
        }
    }
}
