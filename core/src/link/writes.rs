//! What was queued for the transport and what it took.
//!
//! Decides: when nothing has been taken for too long. Leaves to others: the bytes. Believes: the monotonic clock. Bounded by: a few words.

use crate::{Duration, Instant};

/// Bytes of one direction of a link, counted from its first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writes {
    queued: u64,
    written: u64,
    /// Since when something waits and nothing was taken.
    stuck: Option<Instant>,
}

impl Writes {
    pub(super) fn queue(&mut self, bytes: usize) {
        self.queued = self.queued.saturating_add(bytes as u64);
    }

    /// More than was queued is not believed.
    pub(super) fn take(&mut self, now: Instant, bytes: usize) {
        self.written = self.written.saturating_add(bytes as u64).min(self.queued);
        if bytes > 0 {
            self.stuck = None;
        }
        self.look(now);
    }

    /// Something may wait since now.
    pub(super) fn look(&mut self, now: Instant) {
        if self.written < self.queued {
            self.stuck.get_or_insert(now);
        }
    }

    /// Something waits from now on, whatever was queued.
    pub(super) fn wait(&mut self, now: Instant) {
        self.stuck.get_or_insert(now);
    }

    pub(super) const fn queued(&self) -> u64 {
        self.queued
    }

    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn deadline(&self, patience: Duration) -> Option<Instant> {
        Some(self.stuck?.saturating_add(patience))
    }
}
