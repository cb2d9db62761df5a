//! What a run is made of: who is there, what the ways are like, and what happens when. All of it is drawn from the seed before the run.
//!
//! Decides: everything that is left to chance, but for the jitter of single chunks. Leaves to others: doing it (the world). Believes: the
//! true time. Bounded by: a few hosts, a few dozen acts, a few hundred publications.

use alloc::string::String;
use alloc::vec::Vec;

use super::draw;
use crate::inbound::lane::Mode;
use crate::inbound::stream::OnFull;
use crate::{Duration, Instant, topic};

/// The topics of a run, and the filters it subscribes with: each topic, and all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Topics {
    names: Vec<String>,
}

impl Topics {
    pub(super) fn new(count: usize) -> Self {
        let name = |n| alloc::format!("sim/acme/app/things/measured_{n}");
        Self {
            names: (0..count).map(name).collect(),
        }
    }

    pub(super) fn name(&self, topic: u8) -> &str {
        &self.names[usize::from(topic)]
    }

    pub(super) fn count(&self) -> u8 {
        self.names.len() as u8
    }

    /// What stands in a `subscribe`.
    pub(super) fn filter(&self, filter: u8) -> &str {
        self.names
            .get(usize::from(filter))
            .map_or("sim/**", String::as_str)
    }

    pub(super) fn filter_number(&self, filter: &str) -> u8 {
        let known = self.names.iter().position(|name| name == filter);
        known.unwrap_or(self.names.len()) as u8
    }

    pub(super) fn number(&self, name: &str) -> u8 {
        self.filter_number(name)
    }

    pub(super) fn matches(&self, filter: u8, name: u8) -> bool {
        topic::matches(self.filter(filter), self.name(name))
    }
}

/// A station of a run.
#[derive(Clone, Debug)]
pub(super) struct StationPlan {
    pub(super) ring_items: usize,
    pub(super) subscriptions_per_link: usize,
}

/// A node of a run.
#[derive(Clone, Debug)]
pub(super) struct NodePlan {
    /// Whose key it has.
    pub(super) key: u8,
    pub(super) stations: Vec<usize>,
    pub(super) replication: usize,
    pub(super) order_timeout: Duration,
    pub(super) order_max_buffer: usize,
    pub(super) dedup_entries: usize,
    pub(super) held_bytes: usize,
    pub(super) lanes: usize,
    pub(super) resting_lanes: usize,
    /// How long answers about signatures take, where they are asked for; of so many one is never given.
    pub(super) asks: Option<(Duration, u64)>,
    /// How far its wall is ahead at first, in milliseconds.
    pub(super) skew: i64,
}

/// What the way between a node and a station is like when nothing is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct WayPlan {
    pub(super) delay: Duration,
    pub(super) jitter: Duration,
}

/// A subscription to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) node: usize,
    pub(super) filter: u8,
    pub(super) mode: Mode,
    pub(super) on_full: OnFull,
    pub(super) capacity: usize,
    /// Whose facts it takes, one bit per key; all of them when it is open.
    pub(super) sources: Option<u8>,
}

/// Publications to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) node: usize,
    pub(super) topic: u8,
    pub(super) count: u16,
    pub(super) every: Duration,
    pub(super) size: usize,
    pub(super) one: bool,
    pub(super) ttl: Option<Duration>,
}

/// One thing that happens. What lasts is undone by itself after `lasts`, at the latest when the calm begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Burst(Burst),
    Cancel {
        node: usize,
    },
    Commit {
        slot: usize,
    },
    CrashNode {
        node: usize,
        lasts: Duration,
        persist: bool,
    },
    CrashStation {
        station: usize,
        lasts: Duration,
    },
    Cut {
        node: usize,
        station: usize,
        after: [Duration; 2],
    },
    DrainStation {
        station: usize,
        lasts: Duration,
    },
    Hangup {
        node: usize,
        station: usize,
    },
    Part {
        node: usize,
        station: usize,
        lasts: Duration,
    },
    Purge {
        station: usize,
        node: usize,
    },
    Refuse {
        node: usize,
        station: usize,
        lasts: Duration,
    },
    Resubscribe {
        slot: usize,
    },
    SleepNode {
        node: usize,
        lasts: Duration,
        mono_stands: bool,
    },
    SleepStation {
        station: usize,
        lasts: Duration,
        mono_stands: bool,
    },
    Slow {
        node: usize,
        station: usize,
        lasts: Duration,
        rate: u32,
        budget: usize,
    },
    Stall {
        slot: usize,
        lasts: Duration,
    },
    StepNode {
        node: usize,
        by: i64,
    },
    StepStation {
        station: usize,
        by: i64,
    },
    Stretch {
        node: usize,
        station: usize,
        lasts: Duration,
        delay: Duration,
    },
    Subscribe {
        slot: usize,
        wanted: Wanted,
    },
    Twin {
        node: usize,
        lasts: Duration,
    },
    Unsubscribe {
        slot: usize,
    },
}

/// An op and when it happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) at: Instant,
    pub(super) op: Op,
}

/// A whole run, drawn.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) topics: Topics,
    pub(super) stations: Vec<StationPlan>,
    pub(super) nodes: Vec<NodePlan>,
    /// By node, then by station.
    pub(super) ways: Vec<Vec<WayPlan>>,
    pub(super) acts: Vec<Act>,
    /// Subscriptions that are made in all.
    pub(super) slots: usize,
    /// When faults end.
    pub(super) calm: Instant,
    /// Everybody publishes once more when all is calm: what was lost before is missed then at the latest.
    pub(super) last_words: bool,
}

impl Plan {
    pub(super) fn draw(seed: u64) -> Self {
        draw::plan(seed)
    }
}

/// What a run counts of what was done to it, by kind.
macro_rules! faults {
    ($($name:ident = $text:literal,)+) => {
        /// What is done to a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Fault {
            $(#[doc = $text] $name,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// What it is called in reports.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

faults! {
    Announced = "publisher announced itself",
    AwayAcceptance = "reader away for longer than a key opens",
    AwayPeriod = "reader away for longer than a key is sealed under",
    Cancel = "publish cancelled",
    CancelPublisher = "publisher cancelled",
    Commit = "positions committed",
    CrashForgetful = "node crashed, last epoch lost",
    CrashNode = "node crashed, last epoch kept",
    CrashStation = "station crashed",
    Cut = "link cut",
    CutHalf = "link cut, one end learns late",
    DialRefused = "dials refused",
    Drain = "station drained",
    DuplicateCopies = "copies over two links",
    EpochKept = "epoch kept before it was used",
    Hangup = "node hung up",
    HeldStation = "station held for minutes",
    Import = "positions imported",
    KeysById = "missed keys asked for",
    KeysContradicted = "answers with other keys",
    KeysLost = "questions about keys unanswered",
    KeysPast = "keys of past periods asked for",
    KeysRefused = "keys refused",
    KeysRotated = "keys asked for after a rotation",
    LateJoin = "late joiner",
    LookupsContradicted = "lookups of members refused",
    LookupsLost = "lookups unanswered",
    LookupsUnknown = "lookups that found nothing out",
    LostAnswers = "questions unanswered",
    Partition = "partition",
    Purge = "subscriptions purged",
    QuotaMet = "subscription over a station's limit",
    Reordered = "facts reordered across links",
    Resubscribe = "unsubscribed and subscribed in one tick",
    Revoked = "publisher revoked",
    Skew = "wall ahead or behind from the start",
    SleepNodeRuns = "node suspended, mono runs",
    SleepNodeStands = "node suspended, mono stands still",
    SleepStation = "station suspended",
    SlowLink = "slow link",
    SmallBounds = "small bounds at a node",
    SmallRing = "small ring at a station",
    Stall = "reader stopped draining",
    StepNodeBack = "node's wall stepped back",
    StepNodeOn = "node's wall stepped on",
    StepStation = "station's wall stepped",
    Stretch = "latency stretched",
    Stranger = "strangers refused",
    ToleratedAhead = "wall ahead by all that is tolerated",
    ToleratedBehind = "wall behind by all that is tolerated",
    Twin = "two processes with one key",
    Unsubscribe = "unsubscribed",
}
