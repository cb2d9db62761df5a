//! When a station is dialled again.
//!
//! Decides: the wait after each end, spread by the seed. Leaves to others: dialling, what ended the link. Believes: no clock; it is told how
//! long the last link lived. Bounded by: 250 ms and 30 s.

use core::time::Duration;

use crate::rng::Rng;

/// The shortest wait.
const LEAST: Duration = Duration::from_millis(250);
/// The shortest when the station asked for others to be preferred, and there are others.
const LEAST_AWAY: Duration = Duration::from_secs(5);
/// The longest.
const MOST: Duration = Duration::from_secs(30);
/// How far a wait may go beyond the last one.
const GROWTH: u64 = 3;

/// The waits of one station: decorrelated jitter, from a generator of its own.
#[derive(Clone, Debug)]
pub(super) struct Redial {
    jitter: Rng,
    wait: Duration,
}

impl Redial {
    pub(super) const fn new(jitter: Rng) -> Self {
        Self {
            jitter,
            wait: LEAST,
        }
    }

    /// The wait after a link that lived so long, zero when none came up. One that lived as long as the wait before it is a new beginning. `away`:
    /// the station is full or going away, and another one is connected.
    pub(super) fn after(&mut self, lived: Duration, away: bool) -> Duration {
        if lived >= self.wait {
            self.wait = LEAST;
        }
        let least = if away { LEAST_AWAY } else { LEAST };
        let most = (self.wait.max(least).as_millis() as u64).saturating_mul(GROWTH);
        let wait = self.jitter.between(least.as_millis() as u64, most);
        self.wait = Duration::from_millis(wait).min(MOST);
        self.wait
    }
}
