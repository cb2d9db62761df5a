//! What a stream holds: facts, and notices of everything that may be missing.
//!
//! Decides: nothing. Leaves to others: when a notice is due. Believes: times in notices are wall times, for people. Bounded by:
//! an item is at most 128 bytes; notices are boxed.

use alloc::boxed::Box;
use alloc::string::String;

use crate::code::{
    CloseReason, DropReason, EndReason, GapReason, NoticeCode, SubscribeRefusal, UnopenedReason,
};
use crate::delivery::Delivery;
use crate::time::WallMs;
use crate::{NodeId, action::StationRef};

/// The next thing in a stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum Item {
    /// A verified, wanted, readable publication.
    Fact(Delivery),
    /// What may be missing here, and why.
    Notice(Box<Notice>),
}

const _: () = assert!(size_of::<Item>() <= 128);

/// One publisher's numbering on one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// Who signed.
    pub publisher: NodeId,
    /// On which topic.
    pub topic: String,
    /// When the numbering began: wall µs, as its publisher says; made up for publications without one.
    pub epoch: u64,
}

/// What may be missing here, and why. WIRE.md table 10.8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Another publication under a number that was taken; the second is not delivered.
    Conflict {
        /// Whose.
        of: Numbering,
        /// The lowest number of the episode.
        first: u64,
        /// The highest.
        last: u64,
        /// How many publications were not delivered.
        count: u64,
    },
    /// Facts dropped by a bound or a budget, one notice per episode.
    Dropped {
        /// Which bound.
        reason: DropReason,
        /// How many facts.
        count: u64,
        /// How many publishers, counted up to a bound.
        publishers: u32,
        /// The first drop.
        from: WallMs,
        /// The last drop.
        to: WallMs,
    },
    /// The last item of the stream.
    Ended {
        /// Why.
        reason: EndReason,
    },
    /// Publications of this window may be missing.
    Gap {
        /// Its beginning: what was admitted before was read. When a station said so is known to how long its link takes: a round trip, and
        /// what this node did not read meanwhile. A window begins that much early rather than late. 0 where nothing is known of when an earlier
        /// run had read: the wall was set back since. One thing no clock shows: a process that is stopped for less than 11 s, while both its
        /// clocks run and nothing of its own is due, takes what waited for it as just said, and may begin a window late by as much as it stood.
        from: WallMs,
        /// Its end.
        to: WallMs,
        /// Why.
        reason: GapReason,
        /// How many, where that is known.
        count: Option<u64>,
    },
    /// No station carries the subscription.
    Interrupted {
        /// Since when, as a `Gap` begins.
        from: WallMs,
        /// Why the last link ended.
        reason: CloseReason,
    },
    /// This reader was too slow: the oldest items collapsed into this one.
    Lagged {
        /// Facts given up, with the numbers inside given-up `Skipped` notices.
        missed: u64,
        /// Notices given up.
        notices: u64,
        /// The first fact given up.
        first: Option<Box<(Numbering, u64)>>,
        /// The earliest time of what was given up.
        from: WallMs,
        /// The latest.
        to: WallMs,
    },
    /// That publisher began a new numbering, or one not heard before was heard.
    Restarted {
        /// The one that is new here.
        of: Numbering,
        /// Whether it is later than the one before.
        greater: bool,
    },
    /// A station carries the subscription again and replayed what was missed.
    Resumed {
        /// How many publications the stations replay, as they said when they accepted: one mesh counts once, and what two meshes bring is
        /// counted by each. It is told before the first of them comes, so what is known already is among them.
        recovered: u64,
    },
    /// What was known of that numbering was given up, while it was idle or for other numberings of its publisher: its earlier numbers may
    /// be missing.
    Resynced {
        /// Which.
        of: Numbering,
    },
    /// These numbers did not arrive in time. One that still comes is delivered late.
    Skipped {
        /// Whose.
        of: Numbering,
        /// The first missing number.
        first: u64,
        /// The last.
        last: u64,
    },
    /// A station refused the subscription, or withdrew it.
    SubscriptionRefused {
        /// Which station.
        station: StationRef,
        /// Why.
        reason: SubscribeRefusal,
    },
    /// Two processes publish with one key.
    TwoCounters {
        /// The greater of the two numberings.
        of: Numbering,
    },
    /// A sealed fact that could not be opened. Said once for each.
    Unopened {
        /// Whose.
        of: Numbering,
        /// Its number.
        seq: u64,
        /// The key it is sealed under.
        seal_key_id: [u8; 8],
        /// Why it was not opened.
        reason: UnopenedReason,
    },
    /// A table is nearly full: its bound should be raised before facts are dropped.
    Warning {
        /// Which table.
        table: &'static str,
        /// How full, in percent.
        fill: u8,
    },
}

impl Notice {
    /// Its code in table 10.8.
    pub const fn code(&self) -> NoticeCode {
        match self {
            Self::Conflict { .. } => NoticeCode::Conflict,
            Self::Dropped { .. } => NoticeCode::Dropped,
            Self::Ended { .. } => NoticeCode::Ended,
            Self::Gap { .. } => NoticeCode::Gap,
            Self::Interrupted { .. } => NoticeCode::Interrupted,
            Self::Lagged { .. } => NoticeCode::Lagged,
            Self::Restarted { .. } => NoticeCode::Restarted,
            Self::Resumed { .. } => NoticeCode::Resumed,
            Self::Resynced { .. } => NoticeCode::Resynced,
            Self::Skipped { .. } => NoticeCode::Skipped,
            Self::SubscriptionRefused { .. } => NoticeCode::SubscriptionRefused,
            Self::TwoCounters { .. } => NoticeCode::TwoCounters,
            Self::Unopened { .. } => NoticeCode::Unopened,
            Self::Warning { .. } => NoticeCode::Warning,
        }
    }

    /// Whose numbering it speaks of, if it speaks of one.
    pub fn numbering(&self) -> Option<&Numbering> {
        match self {
            Self::Conflict { of, .. }
            | Self::Restarted { of, .. }
            | Self::Resynced { of }
            | Self::Skipped { of, .. }
            | Self::TwoCounters { of }
            | Self::Unopened { of, .. } => Some(of),
            _ => None,
        }
    }

    /// The wall times it speaks of; the epoch's beginning for a numbering, and nothing (the end of time before its beginning) for what
    /// has no time.
    pub fn window(&self) -> (WallMs, WallMs) {
        match self {
            Self::Dropped { from, to, .. }
            | Self::Gap { from, to, .. }
            | Self::Lagged { from, to, .. } => (*from, *to),
            Self::Interrupted { from, .. } => (*from, *from),
            _ => (WallMs::new(u64::MAX), WallMs::new(0)),
        }
    }
}
