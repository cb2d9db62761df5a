//! How long verdicts last, and how much may be asked and wait.
//!
//! Decides: which settings go together. Leaves to others: everything at run time. Believes: no clock. Bounded by: nothing is kept here.

use core::fmt;

/// No time here is longer: one day.
const LONGEST_MS: u64 = 86_400_000;

/// No table here has more places.
const MOST: usize = 1 << 24;

/// The bounds of [`Sources`](super::Sources) and of its [`Window`](super::Window)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceLimits {
    /// Publishers with a verdict that admits them, or that are being looked up. Default 4096, at least 1; a quarter as many refusals have room
    /// beside them. About 200 bytes each.
    pub max_publishers: usize,
    /// Facts that may wait for one lookup. Default 64, at least 1.
    pub held_per_key: u32,
    /// Lookups that one realm may cost in each window. Default 64, at least 1. Half of them, rounded down, are kept for publishers that were
    /// admitted before; the strangers of one link take at most half of the rest, rounded up.
    pub lookups_per_window: u32,
    /// How long a window is, in ms. Default 1000, at least 1.
    pub window_ms: u64,
    /// How long a verdict that admits lasts at most, in ms from its answer. Default 300,000, at least 1.
    pub cache_ttl_ms: u64,
    /// A fact that finds a verdict so close to its end, in ms, has it looked up again. Default 30,000, less than `cache_ttl_ms`; 0: never.
    pub refresh_margin_ms: u64,
    /// How long a refusal lasts, in ms from its answer. Default 10,000; 0: it is not kept.
    pub refusal_ttl_ms: u64,
    /// How long a lookup may take, in ms; a publisher's verdict is refreshed no more often than that. Default 5000, at least 1.
    pub lookup_timeout_ms: u64,
}

impl Default for SourceLimits {
    fn default() -> Self {
        Self {
            max_publishers: 4096,
            held_per_key: 64,
            lookups_per_window: 64,
            window_ms: 1000,
            cache_ttl_ms: 300_000,
            refresh_margin_ms: 30_000,
            refusal_ttl_ms: 10_000,
            lookup_timeout_ms: 5000,
        }
    }
}

impl SourceLimits {
    /// Checks the settings against each other.
    ///
    /// # Errors
    /// The first that contradicts another or itself.
    pub fn check(&self) -> Result<(), SourceLimitsFault> {
        let fault = |setting, must| Err(SourceLimitsFault { setting, must });
        if !(1..=MOST).contains(&self.max_publishers) {
            return fault("max_publishers", "1 to 16777216");
        }
        if self.held_per_key == 0 {
            return fault("held_per_key", "at least 1");
        }
        if self.lookups_per_window == 0 {
            return fault("lookups_per_window", "at least 1");
        }
        let times = [
            ("window_ms", self.window_ms),
            ("cache_ttl_ms", self.cache_ttl_ms),
            ("lookup_timeout_ms", self.lookup_timeout_ms),
        ];
        let longest = 1..=LONGEST_MS;
        if let Some((setting, _)) = times.iter().find(|(_, time)| !longest.contains(time)) {
            return fault(setting, "1 to 86400000 ms");
        }
        if self.refresh_margin_ms >= self.cache_ttl_ms {
            return fault("refresh_margin_ms", "less than `cache_ttl_ms`");
        }
        if self.refusal_ttl_ms > LONGEST_MS {
            return fault("refusal_ttl_ms", "at most 86400000 ms");
        }
        Ok(())
    }

    /// Refusals that are kept.
    pub(super) fn refusals(&self) -> usize {
        self.max_publishers.div_ceil(4)
    }

    /// Slots in which every verdict and every refusal has room.
    pub fn slots(&self) -> usize {
        self.max_publishers.saturating_add(self.refusals())
    }

    /// What strangers may take of a window.
    pub(super) fn for_strangers(&self) -> u32 {
        self.lookups_per_window.div_ceil(2)
    }

    /// What those of one link may.
    pub(super) fn for_one_link(&self) -> u32 {
        self.for_strangers().div_ceil(2)
    }
}

/// A setting that contradicts another or itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLimitsFault {
    /// The setting.
    pub setting: &'static str,
    /// What it must be, naming the other setting when there is one.
    pub must: &'static str,
}

impl fmt::Display for SourceLimitsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: must be {}", self.setting, self.must)
    }
}

impl core::error::Error for SourceLimitsFault {}
