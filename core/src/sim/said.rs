//! When something that a client reads was said, as far as the client can know.
//!
//! Decides: the earliest and the latest moment a client may take it for, from what passes on its link. Leaves to others: what was said.
//! Believes: the true time. Bounded by: a fixed size.
//!
//! It was said after the last probe that was answered was asked, and was under way for no longer than the longer of that probe with its answer and
//! of the oldest that is not answered yet, and than was not read since. A client may take it for as early as that, counting all that may not have been
//! read, and for no later than it was said; or, where it was under way for longer, than that, counting what surely was not read.

use crate::side::SILENT;
use crate::{Duration, Instant, Now};

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

/// The same moment by the true time and by a client's mono, which may have stood still.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) truth: Instant,
    pub(super) mono: Instant,
}

impl Moment {
    pub(super) fn new(truth: Instant, here: Now) -> Self {
        let mono = here.mono;
        Self { truth, mono }
    }
}

/// One way to count what a link takes: as much as may be, or what is sure.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// What was not read so far; by then, when a frame was last taken; by then, when the last answered probe was asked.
    unread: Duration,
    heard: Duration,
    base: Duration,
    /// The last probe, and what was not read when it was asked; the first one since an answer.
    asked: (Instant, Duration),
    oldest: Option<(Instant, Duration)>,
    /// How long the last one took that was answered, less what was not read.
    trip: Duration,
}

impl Count {
    fn asks(&mut self, at: Instant) {
        self.asked = (at, self.unread);
        self.oldest.get_or_insert(self.asked);
    }

    /// For how long a probe has been under way.
    fn since(&self, now: Instant, (asked, before): (Instant, Duration)) -> Duration {
        let unread = self.unread.saturating_sub(before);
        now.saturating_since(asked).saturating_sub(unread)
    }

    fn hears_answer(&mut self, now: Instant) {
        self.trip = self.since(now, self.asked);
        self.base = self.asked.1;
        self.oldest = None;
    }

    /// All of a time was not read, at whose beginning so much had been counted.
    fn stood_still(&mut self, before: Duration, time: Duration) {
        self.unread = self.unread.max(before + time);
    }

    fn under_way(&self, now: Instant) -> Duration {
        let waits = self.oldest.map(|asked| self.since(now, asked));
        let unread = self.unread.saturating_sub(self.base);
        self.trip.max(waits.unwrap_or_default()) + unread
    }
}

/// What a client knows of how long its link takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    most: Count,
    sure: Count,
    /// What is read now was said after that, as its client surely knows, and as it may know.
    after: [Instant; 2],
    /// The last probe: when it may have been asked, when it was written, its nonce.
    asked: Option<(Instant, Instant, [u8; 16])>,
    up: Moment,
    heard: Option<Moment>,
    /// When it was last found not to have been there.
    missed: Instant,
}

impl Pace {
    pub(super) fn up(now: Moment) -> Self {
        Self {
            up: now,
            after: [now.truth; 2],
            ..Self::default()
        }
    }

    /// A frame of the handshake is taken, maybe its last: it answers the beginning, and what comes behind it is said after it.
    pub(super) fn shakes_hands(&mut self, now: Moment) {
        self.most.trip = now.truth.saturating_since(self.up.truth);
        self.sure.trip = now.mono.saturating_since(self.up.mono);
        for count in [&mut self.most, &mut self.sure] {
            count.trip = count.trip.saturating_sub(count.unread);
        }
        self.after = [now.truth; 2];
    }

    /// A probe is written. It was handed out before that, where the way took nothing since `since`.
    pub(super) fn asks(&mut self, now: Moment, since: Instant, nonce: [u8; 16]) {
        self.asked = Some((since, now.truth, nonce));
        self.most.asks(since);
        self.sure.asks(now.mono);
    }

    pub(super) fn hears_answer(&mut self, now: Moment, nonce: [u8; 16]) {
        if let Some((asked, written, _)) = self.asked.take_if(|(.., asked)| *asked == nonce) {
            // Who woke since may have asked anew, before it read this.
            if self.missed <= written {
                self.most.hears_answer(now.truth);
                self.after[0] = asked;
            }
            self.sure.hears_answer(now.mono);
            self.after[1] = written;
        }
    }

    /// A frame is taken.
    pub(super) fn hears(&mut self, now: Moment) {
        if let Some(heard) = self.heard.replace(now) {
            let silence = now.truth.saturating_since(heard.truth);
            let known = now.mono.saturating_since(heard.mono);
            // It shows as such when its client was there all the while.
            let was_there = self.most.unread == self.most.heard;
            if silence > SILENT {
                self.most.stood_still(self.most.heard, silence);
            }
            if known > SILENT && was_there {
                self.sure.stood_still(self.sure.heard, known);
            }
        }
        self.most.heard = self.most.unread;
        self.sure.heard = self.sure.unread;
    }

    /// Its client would not read between these two.
    pub(super) fn pauses(&mut self, since: Moment, until: Moment) {
        self.most.unread += until.truth.saturating_since(since.truth);
        if self.missed < since.truth {
            self.sure.unread += until.mono.saturating_since(since.mono);
        }
    }

    /// Its client may not have been there for so long, and surely was not for so long, as its clocks show.
    pub(super) fn misses(&mut self, now: Instant, most: Duration, sure: Duration) {
        self.most.unread += most;
        self.sure.unread += sure;
        self.missed = now;
    }

    /// What is taken now and was written then.
    pub(super) fn said(&self, now: Moment, written: Instant) -> Said {
        let low = earlier(now.truth, self.most.under_way(now.truth));
        let high = earlier(now.truth, self.sure.under_way(now.mono));
        Said {
            low: self.after[0].max(low),
            high: self.after[1].max(high).max(written),
        }
    }
}

fn earlier(at: Instant, by: Duration) -> Instant {
    Instant::from_micros(at.as_micros().saturating_sub(by.as_micros() as u64))
}
