//! The two clocks.
//!
//! Decides: nothing. Leaves to others: reading any clock. Believes: `Instant` is monotonic and drives timers, `WallMs` is the host's
//! idea of the date and drives expiry and times people read; nothing here turns one into the other. Bounded by: saturating arithmetic.

pub use core::time::Duration;

/// Microseconds since an origin the caller picks. Never goes back; a caller that hands in an earlier one is clamped by the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The caller's origin.
    pub const ORIGIN: Self = Self(0);

    /// From microseconds since the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// From milliseconds since the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero when it was not.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// This moment and so many milliseconds more, at most the end of time.
    pub(crate) const fn saturating_add_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis.saturating_mul(1000)))
    }

    /// This moment and `wait` more, at most the end of time.
    pub const fn saturating_add(self, wait: Duration) -> Self {
        let micros = wait.as_micros();
        if micros > u64::MAX as u128 {
            Self(u64::MAX)
        } else {
            Self(self.0.saturating_add(micros as u64))
        }
    }
}

/// Milliseconds since 1970 as the host believes. May jump either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallMs(u64);

impl WallMs {
    /// From Unix milliseconds.
    pub const fn new(unix_ms: u64) -> Self {
        Self(unix_ms)
    }

    /// Unix milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// `self − other` in milliseconds, with its sign; saturates at the ends of `i64`.
    pub const fn since(self, other: Self) -> i64 {
        match self.0.checked_signed_diff(other.0) {
            Some(difference) => difference,
            None if self.0 > other.0 => i64::MAX,
            None => i64::MIN,
        }
    }

    /// This time and `millis` more, at most the end of time.
    pub const fn saturating_add(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// This time less `millis`, at least 1970.
    pub const fn saturating_sub(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis))
    }
}

/// Both clocks, sampled together by the driver once per turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For timers.
    pub mono: Instant,
    /// For expiry and for times people read.
    pub wall: WallMs,
}

impl Now {
    /// Both clocks.
    pub const fn new(mono: Instant, wall: WallMs) -> Self {
        Self { mono, wall }
    }

    /// A moment so much earlier by both clocks; the wall in whole milliseconds, no later than that.
    pub(crate) fn before(self, by: Duration) -> Self {
        let since = self.mono.saturating_since(Instant::ORIGIN);
        let mono = Instant::ORIGIN.saturating_add(since.saturating_sub(by));
        let millis = u64::try_from(by.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
        Self::new(mono, self.wall.saturating_sub(millis))
    }
}

/// What the machines make of the two clocks.
#[cfg(feature = "alloc")]
impl Now {
    /// This moment for who has been at `before`: mono does not go back.
    pub(crate) fn after(self, before: Self) -> Self {
        Self::new(self.mono.max(before.mono), self.wall)
    }

    /// How long ago that was at most: mono may have stood still in a suspend, the wall may have been stepped.
    pub(crate) fn longest_since(self, at: Self) -> Duration {
        let mono = self.mono.saturating_since(at.mono);
        mono.max(self.walled_since(at))
    }

    /// How long ago that was at least.
    pub(crate) fn shortest_since(self, at: Self) -> Duration {
        let mono = self.mono.saturating_since(at.mono);
        mono.min(self.walled_since(at))
    }

    fn walled_since(self, at: Self) -> Duration {
        let millis = self.wall.as_millis().saturating_sub(at.wall.as_millis());
        Duration::from_millis(millis)
    }
}

/// The sooner of two optional deadlines: the fold every `poll_timeout` is made of.
pub fn soonest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
