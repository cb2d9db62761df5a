//! Conflicts, gathered into episodes.
//!
//! Decides: when an episode ends. Leaves to others: what is a conflict. Believes: mono. Bounded by: two episodes.

use super::notes::Note;
use crate::inbound::episode::{LONGEST, QUIET};
use crate::time::Instant;

/// One episode of conflicts in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clash {
    pub(super) epoch: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) count: u64,
    began: Instant,
    latest: Instant,
}

impl Clash {
    /// What is said of it.
    pub(super) fn told(self) -> Note {
        let Self {
            epoch,
            first,
            last,
            count,
            ..
        } = self;
        Note::Conflict {
            epoch,
            first,
            last,
            count,
        }
    }

    fn ends(&self) -> Instant {
        self.latest
            .saturating_add(QUIET)
            .min(self.began.saturating_add(LONGEST))
    }
}

/// The open episodes, at most one for each epoch a lane follows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clashes([Option<Clash>; 2]);

impl Clashes {
    /// One more conflict. Returns the episode that had to end for it: there were two of other epochs.
    pub(super) fn note(&mut self, now: Instant, epoch: u64, seq: u64) -> Option<Clash> {
        let fresh = Clash {
            epoch,
            first: seq,
            last: seq,
            count: 1,
            began: now,
            latest: now,
        };
        if let Some(clash) = self
            .0
            .iter_mut()
            .flatten()
            .find(|clash| clash.epoch == epoch)
        {
            clash.first = clash.first.min(seq);
            clash.last = clash.last.max(seq);
            clash.count += 1;
            clash.latest = now;
            return None;
        }
        if let Some(free) = self.0.iter_mut().find(|clash| clash.is_none()) {
            *free = Some(fresh);
            return None;
        }
        let oldest = usize::from(self.0[1].map(|c| c.began) < self.0[0].map(|c| c.began));
        self.0[oldest].replace(fresh)
    }

    /// How many are open.
    pub(super) fn open(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// One of that epoch is open.
    pub(super) fn is_open(&self, epoch: u64) -> bool {
        self.0.iter().flatten().any(|clash| clash.epoch == epoch)
    }

    /// Ends the episode of that epoch.
    pub(super) fn end(&mut self, epoch: u64) -> Option<Clash> {
        self.0
            .iter_mut()
            .find_map(|clash| clash.take_if(|clash| clash.epoch == epoch))
    }

    /// The episode that ends first, and when.
    pub(super) fn next_end(&self) -> Option<(Instant, u64)> {
        self.0
            .iter()
            .flatten()
            .map(|clash| (clash.ends(), clash.epoch))
            .min()
    }
}
