//! A clock for gaps that stands still while a replay may bring what is missing.
//!
//! Decides: nothing. Leaves to others: when a replay runs. Believes: mono. Bounded by: 10 s without progress.

use crate::time::{Duration, Instant};

/// A replay that brings nothing for this long is no longer waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Maps mono to the time that gaps have been waited for, and back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Still {
    stood: Duration,
    standing: Option<(Instant, Instant)>,
}

impl Still {
    /// A replay began or brought something: stand still from now, for 10 s at most.
    pub(super) fn hold(&mut self, now: Instant) {
        self.settle(now);
        let since = self.standing.map_or(now, |(since, _)| since);
        self.standing = Some((since, now.saturating_add(PATIENCE)));
    }

    /// The replay has ended.
    pub(super) fn go_on(&mut self, now: Instant) {
        self.settle(now);
        if let Some((since, _)) = self.standing.take() {
            self.stood = self.stood.saturating_add(now.saturating_since(since));
        }
    }

    /// Time has come to `now`.
    pub(super) fn settle(&mut self, now: Instant) {
        if let Some((since, until)) = self.standing.take_if(|(_, until)| *until <= now) {
            self.stood = self.stood.saturating_add(until.saturating_since(since));
        }
    }

    /// It stands for no replay.
    #[cfg(feature = "alloc")]
    pub(super) fn runs(&self) -> bool {
        self.standing.is_none()
    }

    /// What the gaps' clock shows at `now`, not before the last `settle`.
    pub(super) fn at(&self, now: Instant) -> Instant {
        let now = self.standing.map_or(now, |(since, _)| now.min(since));
        Instant::ORIGIN
            .saturating_add(now.saturating_since(Instant::ORIGIN.saturating_add(self.stood)))
    }

    /// When the gaps' clock will show `due`, which it does not yet, if nothing more comes.
    pub(super) fn when(&self, due: Instant) -> Instant {
        let stands = self.standing.map_or(Duration::ZERO, |(since, until)| {
            until.saturating_since(since)
        });
        due.saturating_add(self.stood).saturating_add(stands)
    }
}
