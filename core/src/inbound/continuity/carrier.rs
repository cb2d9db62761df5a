//! One station's part in the continuity of a subscription.
//!
//! Decides: how far its stream is known to have been read, and when a promised replay has come. Leaves to others: what that means for the
//! readers. Believes: the moments it is told. Bounded by: a fixed size.

use crate::NodeId;
use crate::time::{Instant, Now};
use crate::wire::Position;

/// What the station said of a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resume {
    /// It cannot replay what was missed.
    Expired,
    /// Nothing was to be resumed.
    None,
    /// All that was missed follows.
    Resumed {
        /// How many.
        count: u64,
    },
}

impl Resume {
    pub(super) const fn count(self) -> u64 {
        match self {
            Self::Resumed { count } => count,
            Self::Expired | Self::None => 0,
        }
    }
}

/// A station's acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted<L> {
    /// On which link.
    pub link: L,
    /// Which station.
    pub station: NodeId,
    /// Its mesh; a lone station is its own.
    pub mesh: [u8; 32],
    /// From when on it counts: the latest moment at or after which it can be taken to have been said.
    pub since: Now,
    /// What it said of the position it was asked to resume from.
    pub resume: Resume,
    /// Where live reading begins.
    pub position: Position,
}

impl<L> Accepted<L> {
    /// Whether it goes on from what was kept. An offset before that is no continuation, whatever the station says.
    pub(super) fn continues(&self, kept: &Carrier<L>) -> bool {
        matches!(self.resume, Resume::Resumed { .. })
            && self.position.run == kept.position.run
            && self.position.offset >= kept.position.offset
    }
}

/// A replay that was promised and has not come whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replay {
    /// Live reading begins behind this offset.
    pub(super) until: u64,
    pub(super) left: u64,
    /// All that was admitted before is part of it.
    since: Now,
    /// Readers were told of it.
    pub(super) relied: bool,
}

/// A link that carries, or the position kept of a station that did.
#[derive(Clone, Copy, Debug)]
pub struct Carrier<L> {
    pub(super) station: NodeId,
    pub(super) mesh: [u8; 32],
    pub(super) link: Option<L>,
    pub(super) position: Position,
    pub(super) level: Now,
    /// Its level when it was accepted: nothing before is asked of this acceptance.
    pub(super) floor: Now,
    /// The last `progress` said that it is behind.
    pub(super) lagging: bool,
    /// Since when it has brought everything, or promised to.
    pub(super) covers: Instant,
    pub(super) replay: Option<Replay>,
    /// Where its part ends without a mate, and when it ended.
    pub(super) hole: Instant,
    pub(super) ended: Instant,
    /// Nobody covered its end, and readers were not told.
    pub(super) owes: bool,
    /// It was given up: readers were told of all up to its level.
    pub(super) told: bool,
    /// It carried in this period: since the last interruption was over.
    pub(super) counts: bool,
}

impl<L> Carrier<L> {
    /// Which station.
    pub const fn station(&self) -> NodeId {
        self.station
    }

    /// Its mesh.
    pub const fn mesh(&self) -> [u8; 32] {
        self.mesh
    }

    /// Up to where its stream was read.
    pub const fn position(&self) -> Position {
        self.position
    }

    /// What it admitted before this was read.
    pub const fn level(&self) -> Now {
        self.level
    }

    /// Whether it carries.
    pub const fn is_live(&self) -> bool {
        self.link.is_some()
    }

    pub(super) fn begin(now: Now, accepted: &Accepted<L>) -> Self
    where
        L: Copy,
    {
        Self {
            station: accepted.station,
            mesh: accepted.mesh,
            link: Some(accepted.link),
            position: accepted.position,
            level: accepted.since,
            floor: accepted.since,
            lagging: false,
            covers: now.mono,
            replay: None,
            hole: Instant::ORIGIN,
            ended: Instant::ORIGIN,
            owes: false,
            told: false,
            counts: true,
        }
    }

    pub(super) fn imported(
        station: NodeId,
        mesh: [u8; 32],
        position: Position,
        level: Now,
        ended: Instant,
    ) -> Self {
        Self {
            station,
            mesh,
            link: None,
            position,
            level,
            floor: level,
            lagging: false,
            covers: Instant::ORIGIN,
            replay: None,
            hole: Instant::ORIGIN,
            ended,
            owes: true,
            told: false,
            counts: true,
        }
    }

    /// The same, carrying again from where it was.
    pub(super) fn resume(self, accepted: &Accepted<L>) -> Self
    where
        L: Copy,
    {
        let count = accepted.resume.count();
        let mut resumed = Self {
            mesh: accepted.mesh,
            link: Some(accepted.link),
            floor: self.level,
            lagging: false,
            replay: Some(Replay {
                until: accepted.position.offset,
                left: count,
                since: accepted.since,
                relied: false,
            }),
            told: false,
            counts: true,
            ..self
        };
        // None is missing, or none can be.
        resumed.end_replay(self.position.offset);
        resumed
    }

    /// Ends the replay when nothing is left of it or its stream was read past it. Answers whether it ended.
    pub(super) fn end_replay(&mut self, offset: u64) -> bool {
        let over = |replay: &mut Replay| replay.left == 0 || offset >= replay.until;
        let Some(replay) = self.replay.take_if(over) else {
            return false;
        };
        // The rest of it concerned others.
        self.position.offset = self.position.offset.max(replay.until);
        self.level = replay.since;
        true
    }

    /// It carries no more. Answers whether readers rely on a replay that has not come.
    pub(super) fn end(&mut self, now: Now) -> bool {
        let replay = self.replay.take();
        self.link = None;
        self.ended = now.mono;
        self.hole = match self.lagging || replay.is_some() {
            true => self.level.mono,
            false => now.mono,
        };
        replay.is_some_and(|replay| replay.relied)
    }

    /// An interruption is not over before its mesh is back.
    pub(super) fn is_waited_for(&self) -> bool {
        self.link.is_none() && self.owes && !self.told && self.counts
    }

    /// It has not come back, and readers were not told of its hole.
    pub(super) fn is_overdue(&self) -> bool {
        self.link.is_none() && self.owes && !self.told
    }
}
