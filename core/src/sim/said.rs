//! When something that a client reads was said, as far as the client can know.
//!
//! Decides: the earliest and the latest moment a client may take it for, from what passes on its link. Leaves to others: what was said.
//! Believes: the true time. Bounded by: a fixed size.

use crate::{Duration, Instant, WallMs};

/// A reader hears something every 10 s; after so long it may think otherwise, and after so long it has to.
const SILENT: [Duration; 2] = [Duration::from_secs(10), Duration::from_millis(11_001)];
/// By so much a wall may part from the true time before its host may think that it slept.
const APART: u64 = 9_990;

/// Something was said between these two; the client may take it for any moment in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) low: Instant,
    pub(super) high: Instant,
}

impl Said {
    pub(super) fn at(at: Instant) -> Self {
        Self { low: at, high: at }
    }

    /// So many milliseconds before that.
    pub(super) fn before(self, millis: u64) -> Self {
        let by = Duration::from_millis(millis);
        Self {
            low: earlier(self.low, by),
            high: earlier(self.high, by),
        }
    }
}

/// What a client knows of how long its link takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    up: Instant,
    /// The handshake was over then.
    risen: Instant,
    /// The probe that waits for its answer.
    asked: Option<(Instant, [u8; 16])>,
    /// The last one that was answered: when it was asked, how long it took.
    answered: Option<(Instant, Duration)>,
    heard: Option<(Instant, WallMs)>,
    /// What is read may have been said since then, until a probe is answered that was asked after that; whether the client has to see that.
    doubt: Option<(Instant, Instant, bool)>,
}

impl Pace {
    pub(super) fn up(now: Instant) -> Self {
        Self {
            up: now,
            risen: now,
            ..Self::default()
        }
    }

    pub(super) fn shakes_hands(&mut self, now: Instant) {
        self.risen = now;
    }

    pub(super) fn asks(&mut self, now: Instant, nonce: [u8; 16]) {
        self.asked = Some((now, nonce));
    }

    pub(super) fn hears_answer(&mut self, now: Instant, nonce: [u8; 16]) {
        if let Some((asked, _)) = self.asked.take_if(|(_, asked)| *asked == nonce) {
            self.answered = Some((asked, now.saturating_since(asked)));
        }
    }

    /// A frame is taken.
    pub(super) fn hears(&mut self, now: Instant, wall: WallMs) {
        let Some((heard, shown)) = self.heard.replace((now, wall)) else {
            return;
        };
        let silent = now.saturating_since(heard);
        let apart = wall.since(shown).abs_diff(silent.as_millis() as i64);
        if silent > SILENT[0] || apart > APART {
            let sees = silent > SILENT[1] && apart < 100;
            self.doubts(heard, now, sees);
        }
    }

    /// Nothing was read between these two.
    pub(super) fn doubts(&mut self, since: Instant, until: Instant, sees: bool) {
        let (since, sees) = match self.doubted() {
            Some((earlier, saw)) => (earlier, saw && sees),
            None => (since, sees),
        };
        self.doubt = Some((since, until, sees));
    }

    fn doubted(&self) -> Option<(Instant, bool)> {
        let (since, until, sees) = self.doubt?;
        let told = self.answered.is_some_and(|(asked, _)| asked >= until);
        (!told && self.risen < until).then_some((since, sees))
    }

    /// What is taken now and was written then.
    pub(super) fn said(&self, now: Instant, written: Instant) -> Said {
        let trip = match self.answered {
            Some((_, trip)) => trip,
            None => self.risen.saturating_since(self.up),
        };
        let waits = self.asked.map(|(asked, _)| now.saturating_since(asked));
        let trip = trip.max(waits.unwrap_or_default());
        let first = self.answered.map_or(self.risen, |(asked, _)| asked);
        let (since, sees) = self.doubted().unwrap_or((now, false));
        let high = match sees {
            true => written,
            false => written.max(earlier(now, trip)),
        };
        Said {
            low: first.max(earlier(since, trip)),
            high: first.max(high),
        }
    }
}

fn earlier(at: Instant, by: Duration) -> Instant {
    Instant::from_micros(at.as_micros().saturating_sub(by.as_micros() as u64))
}
