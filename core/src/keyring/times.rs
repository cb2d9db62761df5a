//! When a keyring asks again.
//!
//! Decides: the instant in the ahead window, the shortest wait, and how failures wait longer. Leaves to others: the clocks and the timer.
//! Believes: no clock. Bounded by: saturating arithmetic.

use super::KeyPeriod;
use crate::time::{Duration, WallMs};

/// How long an answer may take.
pub const PULL_PATIENCE: Duration = Duration::from_secs(15);
/// The wait after a first failure.
const FIRST_BACKOFF_MS: u64 = 1000;

/// When the period after this one is asked for: in the last third of it, its start included and its end not. `draw`, any number, says where,
/// so that members do not ask at once.
pub fn repull_at(newest: &KeyPeriod, draw: u64) -> WallMs {
    repull_between(newest.issued_at, newest.publish_until, draw)
}

pub(super) fn repull_between(issued_at: WallMs, publish_until: WallMs, draw: u64) -> WallMs {
    let rotation = u64::try_from(publish_until.since(issued_at)).unwrap_or(0);
    let window = rotation / 3;
    let into = ((u128::from(window) * u128::from(draw)) >> 64) as u64;
    publish_until.saturating_sub(window).saturating_add(into)
}

/// The shortest wait after an answer, whatever the clocks say: a tenth of the ahead window. Where the other side's clock trails, its answers hold no
/// next period when this side's window has begun.
pub fn shortest_wait(rotation_ms: u64) -> Duration {
    Duration::from_millis(rotation_ms / 30)
}

/// The wait after so many failures in a row: 1 s, doubled with each, a third of a rotation at most.
pub fn backoff(failures: u32, rotation_ms: u64) -> Duration {
    let most = (rotation_ms / 3).max(FIRST_BACKOFF_MS);
    let doubled = 1u64.checked_shl(failures.saturating_sub(1));
    let waits = doubled.map_or(u64::MAX, |doubled| doubled.saturating_mul(FIRST_BACKOFF_MS));
    Duration::from_millis(waits.min(most))
}
