//! The newest fact of one publisher on one topic, and nothing older.
//!
//! Decides: whether a fact is newer than all that was delivered, and when a lower epoch has taken over. Leaves to others: handing facts
//! out, the notices. Believes: mono. Bounded by: four (epoch, number) pairs.

use crate::time::{Duration, Instant};

/// Facts a lower epoch must bring before it may take over.
const FACTS: u8 = 3;
/// How long the greater epoch must have been silent by then.
const SILENCE: Duration = Duration::from_secs(10);

/// What [`Latest::judge`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Judged {
    /// Newer than all before: deliver it.
    Newer {
        /// The epoch is another than that of the fact before; `true` when it is greater.
        restarted: Option<bool>,
    },
    /// The number of a fact that was delivered.
    Same,
    /// Older than what was delivered.
    Superseded,
}

/// A lower epoch that may take over.
#[derive(Clone, Copy, Debug)]
struct Rival {
    epoch: u64,
    newest: u64,
    facts: u8,
    heard: Instant,
}

/// The newest (epoch, number) of one publisher on one topic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latest {
    current: Option<(u64, u64)>,
    /// Where the epoch before was left, so that neither moves back when they take turns.
    left: Option<(u64, u64)>,
    /// Where the one before that was: who remembers publications may have given up what is below, as it is for two epochs.
    replaced: Option<(u64, u64)>,
    heard: Instant,
    rival: Option<Rival>,
    superseded: u64,
}

impl Latest {
    /// Goes on after what an earlier lane knew.
    pub(crate) fn after(epoch: u64, seq: u64, left: Option<(u64, u64)>, now: Instant) -> Self {
        Self {
            current: Some((epoch, seq)),
            left,
            heard: now,
            ..Self::default()
        }
    }

    /// The newest (epoch, number), heard then, where nothing else is known and nothing was counted.
    #[cfg(feature = "alloc")]
    pub(crate) fn alone(&self, heard: Instant) -> Option<(u64, u64)> {
        let alone = self.left.is_none()
            && self.replaced.is_none()
            && self.rival.is_none()
            && self.superseded == 0;
        self.current.filter(|_| alone && self.heard == heard)
    }

    /// It knows of three epochs.
    pub(crate) fn knows_three(&self) -> bool {
        self.replaced.is_some()
    }

    /// Where the epoch before the current one was left.
    pub(crate) fn left(&self) -> Option<(u64, u64)> {
        self.left
    }

    /// The newest (epoch, number) that was delivered.
    pub fn current(&self) -> Option<(u64, u64)> {
        self.current
    }

    /// Facts that were not delivered because a newer one was.
    pub fn superseded(&self) -> u64 {
        self.superseded
    }

    /// The fact was delivered or can no longer be.
    pub fn is_covered(&self, epoch: u64, seq: u64) -> bool {
        let covers = |at: Option<(u64, u64)>| at.is_some_and(|at| at.0 == epoch && seq <= at.1);
        [self.current, self.left, self.replaced]
            .into_iter()
            .any(covers)
    }

    /// Judges a fact and remembers it. A replayed one never helps a lower epoch to take over.
    pub fn judge(&mut self, now: Instant, epoch: u64, seq: u64, replayed: bool) -> Judged {
        let Some((current, newest)) = self.current else {
            self.current = Some((epoch, seq));
            self.heard = now;
            return Judged::Newer { restarted: None };
        };
        if epoch == current {
            self.heard = self.heard.max(now);
            if seq > newest {
                self.current = Some((epoch, seq));
                return Judged::Newer { restarted: None };
            }
            return self.not_newer(seq == newest);
        }
        let mut earlier = [self.left, self.replaced].into_iter().flatten();
        let covers = |at: &(u64, u64)| at.0 == epoch && seq <= at.1;
        if let Some((_, left)) = earlier.find(covers) {
            if epoch < current {
                self.heard_rival(now, epoch, seq, replayed);
            }
            return self.not_newer(seq == left);
        }
        if epoch > current || self.heard_rival(now, epoch, seq, replayed) {
            if self.left.is_some_and(|left| left.0 != epoch) {
                self.replaced = self.left;
            }
            self.left = self.current;
            self.current = Some((epoch, seq));
            self.heard = self.heard.max(now);
            self.rival = None;
            return Judged::Newer {
                restarted: Some(epoch > current),
            };
        }
        self.not_newer(false)
    }

    /// A fact of a lower epoch came; `true` when it takes over with it.
    fn heard_rival(&mut self, now: Instant, epoch: u64, seq: u64, replayed: bool) -> bool {
        if replayed {
            return false;
        }
        // The greatest of several lower epochs is the rival, while it is heard.
        let rival = match self.rival {
            Some(rival) if rival.epoch == epoch => Rival {
                newest: rival.newest.max(seq),
                facts: rival.facts.saturating_add(1).min(FACTS),
                heard: now,
                ..rival
            },
            Some(rival) if rival.epoch > epoch && now.saturating_since(rival.heard) < SILENCE => {
                return false;
            }
            _ => Rival {
                epoch,
                newest: seq,
                facts: 1,
                heard: now,
            },
        };
        self.rival = Some(rival);
        rival.facts == FACTS && seq == rival.newest && now.saturating_since(self.heard) >= SILENCE
    }

    fn not_newer(&mut self, same: bool) -> Judged {
        if same {
            return Judged::Same;
        }
        self.superseded += 1;
        Judged::Superseded
    }
}

#[cfg(test)]
mod tests;
