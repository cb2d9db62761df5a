//! The goals, by what they measure.
//!
//! Decides: which goals there are, and what shows each. Leaves to others: the rounds. Believes: no clock. Bounded by: the two lists.

pub(crate) mod allocations;
pub(crate) mod attack;
pub(crate) mod codec;
pub(crate) mod cores;
pub(crate) mod dedup;
pub(crate) mod drivers;
pub mod fanout;
pub(crate) mod machines;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod publish;
pub(crate) mod receive;
pub(crate) mod replay;
pub(crate) mod seal;

use crate::harness::Group;
use crate::line::Line;

/// Series measured in rounds, and the goals they show.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// The group's name in reports.
    pub name: &'static str,
    /// The goals.
    pub goals: &'static [u8],
    /// Sets it up.
    pub group: fn() -> Box<dyn Group>,
}

/// Lines that need no rounds.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// The goals.
    pub goals: &'static [u8],
    /// Counts.
    pub lines: fn() -> Vec<Line>,
}

/// All that is timed.
pub const TIMED: &[Timed] = &[
    Timed {
        name: "receive",
        goals: &[1, 2, 3, 4],
        group: || Box::new(receive::Receive::new()),
    },
    Timed {
        name: "codec",
        goals: &[5],
        group: || Box::new(codec::Codec::new()),
    },
    Timed {
        name: "publish",
        goals: &[6],
        group: || Box::new(publish::Publish::new()),
    },
    Timed {
        name: "seal",
        goals: &[6, 7],
        group: || Box::new(seal::Sealing::new()),
    },
    Timed {
        name: "order",
        goals: &[8],
        group: || Box::new(order::InOrder::new()),
    },
    Timed {
        name: "dedup",
        goals: &[9],
        group: || Box::new(dedup::Memories::new()),
    },
    Timed {
        name: "fan-out",
        goals: &[11],
        group: || Box::new(fanout::FanOut::new()),
    },
    Timed {
        name: "replay",
        goals: &[11],
        group: || Box::new(replay::Replay::new()),
    },
    Timed {
        name: "attack",
        goals: &[19],
        group: || Box::new(attack::Attack::new()),
    },
];

/// All that is counted.
pub const COUNTED: &[Counted] = &[
    Counted {
        goals: &[2],
        lines: cores::lines,
    },
    Counted {
        goals: &[7, 10],
        lines: seal::kept,
    },
    Counted {
        goals: &[9],
        lines: dedup::bounded,
    },
    Counted {
        goals: &[10],
        lines: memory::lines,
    },
    Counted {
        goals: &[16],
        lines: drivers::lines,
    },
    Counted {
        goals: &[18],
        lines: allocations::lines,
    },
];
