//! The driver's two clocks.
//!
//! Decides: where they are read, which is here alone. Leaves to others: what a time means.
//! Believes: the operating system. Bounded by: nothing to bound; a wall clock before 1970 reads as
//! 1970.

use std::time::{Duration, Instant as Host};

use tidings::{Instant, Now, WallMs};

/// The monotonic clock since the driver started, and the host's date.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Host,
}

impl Clock {
    /// Starts counting now.
    pub fn start() -> Self {
        Self { start: Host::now() }
    }

    /// Both clocks, sampled together.
    pub fn now(&self) -> Now {
        let mono = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now::new(Instant::from_micros(mono), wall())
    }

    /// How long from this moment to `deadline`; zero when it is past.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.saturating_since(self.now().mono)
    }
}

#[allow(
    clippy::disallowed_types,
    reason = "the driver's one place that reads the host's date"
)]
fn wall() -> WallMs {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let millis = since.map(|since| since.as_millis()).unwrap_or_default();
    WallMs::new(u64::try_from(millis).unwrap_or(u64::MAX))
}
