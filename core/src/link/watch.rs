//! How long a frame has been on its way.
//!
//! Decides: when a frame has taken too long. Leaves to others: reading and writing. Believes: the monotonic clock. Bounded by: a few words.

use crate::{Duration, Instant};

/// How long a frame may be on its way once its first byte is here.
pub(super) const FRAME_TIMEOUT: Duration = Duration::from_secs(30);

/// The whole-frame rule: its clock stands still while this side does not read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameWatch {
    partial: Option<Partial>,
    paused: bool,
}

#[derive(Clone, Copy, Debug)]
struct Partial {
    left: Duration,
    /// `None` while paused.
    since: Option<Instant>,
}

impl FrameWatch {
    pub(super) fn handle_partial(&mut self, now: Instant, present: bool) {
        if !present {
            self.partial = None;
        } else if self.partial.is_none() {
            self.partial = Some(Partial {
                left: FRAME_TIMEOUT,
                since: (!self.paused).then_some(now),
            });
        }
    }

    pub(super) fn handle_paused(&mut self, now: Instant, paused: bool) {
        self.paused = paused;
        if let Some(partial) = &mut self.partial {
            if paused {
                if let Some(since) = partial.since.take() {
                    partial.left = partial.left.saturating_sub(now.saturating_since(since));
                }
            } else if partial.since.is_none() {
                partial.since = Some(now);
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let partial = self.partial?;
        Some(partial.since?.saturating_add(partial.left))
    }
}
