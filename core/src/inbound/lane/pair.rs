//! Two numberings that both go on.
//!
//! Decides: when two epochs of one publisher have both brought new facts for a minute. Leaves to others: telling it. Believes: mono.
//! Bounded by: two epochs.

use crate::time::{Duration, Instant};

/// A restart looks like two counters for a moment; after this it does not.
const BOTH_FOR: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Counter {
    epoch: u64,
    highest: u64,
    heard: Instant,
    /// It brought a number above all its others at least a minute after both were known.
    goes_on: bool,
}

/// The two epochs heard last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    counters: [Option<Counter>; 2],
    /// When the second of them was first heard.
    since: Instant,
    told: bool,
}

impl Pair {
    /// A fact came that was not replayed.
    pub(super) fn note(&mut self, now: Instant, epoch: u64, seq: u64) {
        let long = now >= self.since.saturating_add(BOTH_FOR);
        if let Some(counter) = self
            .counters
            .iter_mut()
            .flatten()
            .find(|c| c.epoch == epoch)
        {
            counter.heard = now;
            if seq > counter.highest {
                counter.highest = seq;
                counter.goes_on |= long;
            }
            return;
        }
        let age = |at: usize| self.counters[at].map(|counter| (counter.heard, counter.epoch));
        let oldest = usize::from(age(1) < age(0));
        self.counters[oldest] = Some(Counter {
            epoch,
            highest: seq,
            heard: now,
            goes_on: false,
        });
        if let Some(other) = &mut self.counters[1 - oldest] {
            other.goes_on = false;
        }
        self.since = now;
        self.told = false;
    }

    /// Both go on, and it was not told: the greater epoch.
    pub(super) fn untold(&self) -> Option<u64> {
        let [Some(a), Some(b)] = self.counters else {
            return None;
        };
        (!self.told && a.goes_on && b.goes_on).then(|| a.epoch.max(b.epoch))
    }

    /// Whether it knows this epoch up to this number, heard then, or nothing at all; `None` when it knows anything else.
    #[cfg(feature = "alloc")]
    pub(super) fn is_only(&self, heard: Instant, epoch: u64, highest: u64) -> Option<bool> {
        let mut known = self.counters.iter().flatten();
        let Some(one) = known.next() else {
            return Some(false);
        };
        let known_as = (one.heard, one.epoch, one.highest);
        let only = known_as == (heard, epoch, highest) && known.next().is_none();
        only.then_some(true)
    }

    pub(super) fn set_told(&mut self) {
        self.told = true;
    }
}
