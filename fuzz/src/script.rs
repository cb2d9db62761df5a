//! Bytes into a script for a lane: three bytes of configuration, then steps of four bytes each.

use tidings::inbound::lane::{LaneConfig, Mode, Offer};
use tidings::{Duration, WallMs};

/// Epochs of the scripts are greater; those a lane makes up are not.
pub const MADE_UP: u64 = 1 << 50;

/// Wall ms at the script's start, and the µs its first epoch began.
pub const WALL: u64 = 1_790_000_000_000;
const EPOCH: u64 = WALL * 1000;

const LAST_SEQ: u64 = (1 << 53) - 1;
/// Milliseconds a step may take.
const WAITS: [u64; 16] = [
    0, 0, 0, 0, 1, 5, 100, 249, 250, 251, 500, 1_000, 9_999, 10_001, 60_000, 600_001,
];

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub lane: LaneConfig,
    /// Slots of each of the two orders.
    pub slots: usize,
    /// Hand everything out after each step.
    pub eager: bool,
    pub at_one: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Offer(Offer),
    Close {
        epoch: u64,
        seq: u64,
    },
    /// Offers it, and gives its place up where the lane is busy.
    OfferOrGiveUp(Offer),
    ReplayProgress,
    ReplayEnd,
    Tick,
    /// Goes to exactly what the lane says is due next.
    TickDue,
    PollOne,
    Drain,
}

/// The configuration, and steps with the milliseconds that pass before each.
pub fn read(data: &[u8]) -> Option<(Config, Vec<(u64, Step)>)> {
    let ([flags, slots, buffer], steps) = data.split_first_chunk()?;
    let mode = [
        Mode::Ordered,
        Mode::Ordered,
        Mode::AsArrives,
        Mode::LatestOnly,
    ];
    let at_one = flags & 4 != 0;
    let lane = LaneConfig {
        mode: mode[usize::from(flags & 3)],
        order_timeout: Duration::from_millis(250),
        order_max_buffer: 1 + usize::from(buffer % 16),
        accepted_wall: WallMs::new(if at_one { WALL - 3_600_000 } else { WALL }),
        sparse: flags & 16 != 0,
        forgotten: flags & 32 != 0,
    };
    let config = Config {
        lane,
        slots: 1 + usize::from(slots % 24),
        eager: flags & 8 != 0,
        at_one: at_one && !lane.forgotten,
    };
    Some((config, steps.chunks_exact(4).take(400).map(step).collect()))
}

fn step(bytes: &[u8]) -> (u64, Step) {
    let (kind, who, number, wait) = (bytes[0], bytes[1], bytes[2], bytes[3]);
    let epoch = match who % 6 {
        0 => 0,
        which => EPOCH + u64::from(which) * 1_000_000,
    };
    let seq = match number {
        0..200 => 1 + u64::from(number % 40),
        200..240 => 1 + u64::from(number - 200) * 9_973,
        _ => LAST_SEQ - u64::from(number - 240),
    };
    let offer = Offer {
        epoch,
        seq,
        until: WallMs::new(WALL + 900_000),
        replayed: kind & 16 != 0,
        anycast: kind & 0xe0 == 0xe0,
        copy_possible: kind & 0xe0 == 0x20,
    };
    let step = match kind % 16 {
        0..9 => Step::Offer(offer),
        9 => Step::Close { epoch, seq },
        10 => Step::OfferOrGiveUp(Offer {
            anycast: false,
            ..offer
        }),
        11 => Step::ReplayProgress,
        12 => Step::ReplayEnd,
        13 => Step::PollOne,
        14 => Step::Drain,
        _ if number & 1 == 0 => Step::Tick,
        _ => Step::TickDue,
    };
    (WAITS[usize::from(wait % 16)], step)
}
