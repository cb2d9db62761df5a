//! How long what one link brings can have been under way.
//!
//! Decides: after which moment what is read now was said, and what a side did not read though nobody told it so. Leaves to others: what was
//! said, and whether a side that was away asks who is still there. Believes: mono; the wall where mono stood still. Bounded by: a fixed size.
//!
//! What is read now was said after the probe that was answered last was asked: that is certain. And it was under way for no longer than that
//! probe and its answer were, or than the oldest has been that is not answered, and than was not read since then: who stands still for a
//! while makes what comes later by that while, and by no more. A probe is asked when it is handed out: when it was written nobody knows.
//!
//! One thing no clock shows: a process that is stopped for less than [`SILENT`] while both of its clocks run and nothing of its own is due
//! takes what waited for it as just said. A window may begin too late by as much as it was stopped, until a probe asked after that is
//! answered. To wake up only to be sure of it would cost an idle node its sleep, and to count every pause between two inputs would begin the
//! windows of an idle node a whole probe's interval early.

use crate::time::{Duration, Instant, Now};

/// A side that is there looks at its clocks so soon after it woke, and after what was due.
pub(crate) const PROMPT: Duration = Duration::from_millis(100);

/// After so long without a frame what comes may have been held up on its way: who reads gets something every 10 s.
pub(crate) const SILENT: Duration = Duration::from_secs(11);

/// Whether so little lies between two inputs, by both clocks alike, that this side was there.
pub(crate) fn prompt(before: Now, now: Now) -> bool {
    let waited = now.mono.saturating_since(before.mono);
    let wall = u64::try_from(now.wall.since(before.wall)).map(Duration::from_millis);
    waited <= PROMPT && wall.is_ok_and(|wall| wall <= PROMPT)
}

/// Time in which a side did not read: while its mono ran, and while it stood still. In microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    ran: u64,
    stood: u64,
}

impl Unread {
    /// What may not have been read between two inputs, as the clocks show it: mono stood still for a part of it, or what was `due` then is
    /// long past. A wall that was set forward looks like a mono that stood still. `None`: this side was there.
    pub(crate) fn between(
        before: Now,
        now: Now,
        due: impl FnOnce() -> Option<Instant>,
    ) -> Option<Self> {
        let waited = now.mono.saturating_since(before.mono);
        let wall = u64::try_from(now.wall.since(before.wall)).unwrap_or(0);
        let stood = Duration::from_millis(wall).saturating_sub(waited);
        let late = |due: Instant| now.mono.saturating_since(due) > PROMPT;
        let late = waited > PROMPT && due().is_some_and(late);
        let stood = if stood > PROMPT { micros(stood) } else { 0 };
        let ran = if late { waited } else { waited.min(PROMPT) };
        (late || stood > 0).then_some(Self {
            ran: micros(ran),
            stood,
        })
    }
}

/// A probe was handed out then, and so much had not been read.
#[derive(Clone, Copy, Debug)]
struct Ask {
    at: Now,
    unread: Unread,
}

/// What is known of one link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// What is read now was said after that.
    after: Now,
    /// How long the answer to that took, and what had not been read when it was asked.
    trip: u64,
    base: Unread,
    /// The last probe, whose answer alone counts, and the first one since that answer.
    asked: Ask,
    oldest: Option<Ask>,
    /// When a frame was last taken, and for how long mono had run without reading by then.
    heard: Option<Now>,
    ran: u64,
    /// What was not read so far.
    unread: Unread,
}

impl Way {
    /// A transport that came up at that moment.
    pub(super) const fn new(now: Now) -> Self {
        const NONE: Unread = Unread { ran: 0, stood: 0 };
        Self {
            after: now,
            trip: 0,
            base: NONE,
            asked: Ask {
                at: now,
                unread: NONE,
            },
            oldest: None,
            heard: None,
            ran: 0,
            unread: NONE,
        }
    }

    /// When a frame was last taken.
    pub(super) const fn heard(&self) -> Option<Now> {
        self.heard
    }

    /// For how long mono ran and this link was not read, so far.
    pub(super) const fn ran(&self) -> u64 {
        self.unread.ran
    }

    /// A frame is taken.
    pub(super) fn take(&mut self, now: Now) {
        if let Some(heard) = self.heard.replace(now) {
            let silence = micros(now.mono.saturating_since(heard.mono));
            let read = silence.saturating_sub(self.unread.ran.saturating_sub(self.ran));
            if read > micros(SILENT) {
                self.unread.ran = self.unread.ran.max(self.ran.saturating_add(silence));
                // A probe that is asked as the silence ends is asked behind it.
                let asked = self.oldest.as_mut().into_iter().chain([&mut self.asked]);
                asked
                    .filter(|ask| ask.at == now)
                    .for_each(|ask| ask.unread = self.unread);
            }
        }
        self.ran = self.unread.ran;
    }

    /// This side would not read for so long until now; `ran` had been counted when it began.
    pub(super) fn stand_still(&mut self, ran: u64, time: Duration) {
        self.unread.ran = self.unread.ran.max(ran.saturating_add(micros(time)));
    }

    /// This side was away.
    pub(super) fn miss(&mut self, unread: Unread) {
        self.unread.ran = self.unread.ran.saturating_add(unread.ran);
        self.unread.stood = self.unread.stood.saturating_add(unread.stood);
    }

    /// A probe is handed out.
    pub(super) fn ask(&mut self, now: Now) {
        self.asked = Ask {
            at: now,
            unread: self.unread,
        };
        self.oldest.get_or_insert(self.asked);
    }

    /// The last probe is answered, and with it all before it.
    pub(super) fn answer(&mut self, now: Now) {
        self.trip = self.since(now, &self.asked);
        self.base = self.asked.unread;
        self.after = self.asked.at;
        self.oldest = None;
    }

    /// The handshake is over, which answers its beginning; what comes is said after it.
    pub(super) fn rise(&mut self, now: Now) {
        self.answer(now);
        self.after = now;
        self.base.stood = self.unread.stood;
    }

    /// How long ago a probe was asked, less what was not read since.
    fn since(&self, now: Now, ask: &Ask) -> u64 {
        let waited = micros(now.mono.saturating_since(ask.at.mono));
        waited.saturating_sub(self.unread.ran.saturating_sub(ask.unread.ran))
    }

    /// The moment at or after which what is read now was said.
    pub(super) fn said(&self, now: Now) -> Now {
        let waits = self.oldest.map_or(0, |ask| self.since(now, &ask));
        let ran = self.unread.ran.saturating_sub(self.base.ran);
        let ran = self.trip.max(waits).saturating_add(ran);
        let stood = self.unread.stood.saturating_sub(self.base.stood);
        let mono = now.before(Duration::from_micros(ran)).mono;
        let all = Duration::from_micros(ran.saturating_add(stood));
        let said = Now::new(mono, now.before(all).wall);
        if self.after.mono > said.mono {
            self.after
        } else {
            said
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WallMs;

    fn at(mono: u64, wall: u64) -> Now {
        Now::new(Instant::from_millis(mono), WallMs::new(1_000_000 + wall))
    }

    /// Both clocks, of a side that was always there.
    fn both(ms: u64) -> Now {
        at(ms, ms)
    }

    fn ms(mono: u64) -> Option<Instant> {
        Some(Instant::from_millis(mono))
    }

    /// Up since 1,000, after a handshake of 40 ms.
    fn way() -> Way {
        let mut way = Way::new(both(960));
        way.take(both(1000));
        way.rise(both(1000));
        way
    }

    fn probed(way: &mut Way, asked: Now, heard: Now) {
        way.ask(asked);
        way.take(heard);
        way.answer(heard);
    }

    #[test]
    fn what_is_read_was_under_way_for_one_round_trip_and_said_after_what_was_answered() {
        let mut way = way();
        assert_eq!(way.said(both(5000)), both(4960));
        assert_eq!(way.said(both(1010)), both(1000));
        probed(&mut way, both(6000), both(6007));
        assert_eq!(way.said(both(6100)), both(6093));
        assert_eq!(way.said(both(6001)), both(6000));
        // One that waits for its answer shows that it takes longer by now.
        way.ask(both(9000));
        assert_eq!(way.said(both(9005)), both(8998));
        assert_eq!(way.said(both(9500)), both(9000));
    }

    #[test]
    fn the_oldest_probe_without_an_answer_counts_until_a_later_one_has_its_own() {
        let mut way = way();
        way.ask(both(9000));
        way.stand_still(0, Duration::from_millis(200));
        way.ask(both(12_000));
        // Under way for 3,100 ms but for the 200 in which nothing was read, and for those.
        assert_eq!(way.said(both(12_100)), both(9000));
        way.answer(both(12_130));
        assert_eq!(way.said(both(12_200)), both(12_070));
        assert_eq!(way.said(both(12_100)), both(12_000));
    }

    #[test]
    fn what_was_not_read_is_added_until_a_probe_asked_later_is_answered() {
        let mut way = way();
        way.stand_still(0, Duration::from_millis(700));
        assert_eq!(way.said(both(5000)), both(4260));
        assert_eq!(way.said(both(7000)), both(6260));
        // It is no part of the probe in which it lies.
        way.ask(both(8000));
        let ran = way.ran();
        way.stand_still(ran, Duration::from_millis(300));
        way.take(both(8310));
        way.answer(both(8310));
        assert_eq!(way.said(both(9000)), both(8690));
        probed(&mut way, both(9000), both(9010));
        assert_eq!(way.said(both(9500)), both(9490));
    }

    #[test]
    fn a_silence_counts_once_with_what_was_not_read_in_it() {
        let mut way = way();
        let sleep = Unread {
            ran: 9_000_000,
            stood: 0,
        };
        way.miss(sleep);
        way.take(both(20_999));
        assert_eq!(way.ran(), 9_000_000, "it was there for less than 11 s");
        way.miss(sleep);
        way.take(both(41_000));
        assert_eq!(way.ran(), 9_000_000 + 20_001_000);
    }

    #[test]
    fn a_silence_lies_before_the_probe_that_is_asked_as_it_ends() {
        let mut way = way();
        way.ask(both(13_000));
        way.take(both(13_000));
        assert_eq!(way.said(both(13_000)), both(1000));
        way.answer(both(13_010));
        assert_eq!(way.said(both(14_000)), both(13_990));
    }

    #[test]
    fn a_side_was_away_when_mono_stood_still_or_when_what_was_due_is_past() {
        let between = |before, now, due| Unread::between(before, now, || due);
        assert!(prompt(both(0), both(100)) && !prompt(both(0), both(101)));
        assert!(!prompt(both(0), at(0, 101)) && !prompt(at(0, 1), both(0)));
        assert_eq!(between(both(0), both(60_000), None), None);
        assert_eq!(between(both(0), both(60_000), ms(59_900)), None);
        let unread = |ran: u64, stood: u64| {
            Some(Unread {
                ran: ran * 1000,
                stood: stood * 1000,
            })
        };
        assert_eq!(
            between(both(0), both(60_000), ms(59_899)),
            unread(60_000, 0)
        );
        assert_eq!(between(both(0), both(100), ms(0)), None, "too soon to tell");
        assert_eq!(between(both(0), at(5000, 5100), None), None);
        assert_eq!(between(both(0), at(5000, 5101), None), unread(100, 101));
        assert_eq!(between(both(0), at(50, 3050), None), unread(50, 3000));
        assert_eq!(between(both(0), at(400, 3400), ms(0)), unread(400, 3000));
        // A wall that was set back is no sleep.
        assert_eq!(between(at(0, 9000), at(5000, 0), None), None);
    }

    #[test]
    fn a_suspend_is_taken_off_the_wall_alone() {
        let mut way = way();
        let awake = at(2050, 5050);
        way.miss(Unread::between(both(2000), awake, || None).expect("it slept"));
        // Mono had stood at 2,000 when that was said, or ran for the 50 ms in which it woke.
        assert_eq!(way.said(awake), at(1960, 1960));
        assert_eq!(way.said(at(3050, 6050)), at(2960, 2960));
        // What comes after a handshake was not said in a suspend before its end.
        let mut way = Way::new(both(960));
        way.miss(Unread::between(both(960), at(970, 3970), || None).expect("it slept"));
        way.rise(at(1000, 4000));
        assert_eq!(way.said(at(1050, 4050)), at(1010, 4010));
    }
}
