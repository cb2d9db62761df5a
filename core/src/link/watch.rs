//! Time that stands still while this side does not read, and how long a frame has been on its way.
//!
//! Decides: when a frame has taken too long. Leaves to others: reading and writing. Believes: the monotonic clock. Bounded by: a few words.

use crate::{Duration, Instant};

/// How long a frame may be on its way once its first byte is here.
pub(super) const FRAME_TIMEOUT: Duration = Duration::from_secs(30);

/// So much time, less what passed while it was not stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Countdown {
    left: Duration,
    /// `None` while stopped.
    since: Option<Instant>,
}

impl Countdown {
    pub(super) fn new(now: Instant, left: Duration, stopped: bool) -> Self {
        Self {
            left,
            since: (!stopped).then_some(now),
        }
    }

    pub(super) fn stop(&mut self, now: Instant, stopped: bool) {
        if !stopped {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(now.saturating_since(since));
        }
    }

    /// When it is over, unless it is stopped.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Some(self.since?.saturating_add(self.left))
    }
}

/// The whole-frame rule: its clock stands still while this side does not read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameWatch {
    partial: Option<Countdown>,
    paused: bool,
}

impl FrameWatch {
    pub(super) fn handle_partial(&mut self, now: Instant, present: bool) {
        if !present {
            self.partial = None;
        } else if self.partial.is_none() {
            self.partial = Some(Countdown::new(now, FRAME_TIMEOUT, self.paused));
        }
    }

    pub(super) fn handle_paused(&mut self, now: Instant, paused: bool) {
        self.paused = paused;
        if let Some(partial) = &mut self.partial {
            partial.stop(now, paused);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.partial?.deadline()
    }
}
