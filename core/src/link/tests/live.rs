//! Liveness of a link: each rule alone, then scripts against a naive model.

use super::*;
use crate::rng::{Rng, Seed};

/// The interval of these tests: 30 s.
const EVERY: u64 = 30_000;
/// What a probe takes on the wire.
const PROBE_BYTES: usize = 64;

fn at(ms: u64) -> Now {
    Now::new(Instant::from_millis(ms), NOW.wall.saturating_add(ms))
}

fn due(ms: u64) -> Option<Instant> {
    Some(Instant::from_millis(ms))
}

/// A link that came up at 0 and has nothing to write.
fn up() -> Link {
    let settings = LinkSettings {
        probe_every: PROBE_EVERY,
        ..settings(&key(1), Role::Node)
    };
    let mut link = Link::dial(NOW.mono, settings, None, BINDING, [0x5a; 32]).unwrap();
    talk(&mut link, &mut answerer(), |_, _| {}).unwrap();
    assert_eq!(link.written(), link.queued());
    link
}

/// The nonce of the probe it wants to write, which is not written yet.
fn probe(link: &mut Link) -> Option<[u8; 16]> {
    let mut out = Vec::new();
    if !link.poll_transmit(&mut out) {
        return None;
    }
    assert!(out.len() <= PROBE_BYTES, "{} bytes", out.len());
    match Frame::decode(&out[4..], Phase::Established) {
        Ok(Frame::Ping(nonce)) => Some(*nonce),
        other => panic!("{other:?}"),
    }
}

fn write_all(link: &mut Link, now: Now) {
    let left = link.queued() - link.written();
    link.handle_written(now, left as usize);
}

/// A link whose first probe was written at `ms`, and its nonce.
fn probed(ms: u64) -> (Link, [u8; 16]) {
    let mut link = up();
    link.handle_timeout(at(ms).mono).unwrap();
    let nonce = probe(&mut link).expect("a probe is due");
    write_all(&mut link, at(ms));
    (link, nonce)
}

#[test]
fn the_first_probe_goes_out_one_interval_after_the_link_came_up() {
    let mut link = up();
    assert_eq!(link.poll_timeout(), due(EVERY));
    assert_eq!(link.handle_timeout(at(EVERY - 1).mono), Ok(()));
    assert_eq!(probe(&mut link), None);
    assert_eq!(link.handle_timeout(at(EVERY).mono), Ok(()));
    assert!(probe(&mut link).is_some());
    assert_eq!(probe(&mut link), None, "once");
}

#[test]
fn a_probes_clock_starts_when_its_last_byte_was_written() {
    let mut link = up();
    // Frames of the owner that go before it.
    link.handle_queued(1000);
    link.handle_written(at(10), 400);
    link.handle_timeout(at(EVERY).mono).unwrap();
    probe(&mut link).expect("a probe is due");
    let bytes = (link.queued() - link.written()) as usize;
    for (ms, bytes) in [(40_000, 600), (41_000, bytes - 601)] {
        link.handle_written(at(ms), bytes);
        assert!(link.probe_waits());
        assert_eq!(link.handle_timeout(at(ms + 80_000).mono), Ok(()));
    }
    // What is queued behind it does not matter.
    link.handle_queued(5000);
    link.handle_written(at(130_000), 1);
    assert!(!link.probe_waits());
    assert_eq!(link.poll_timeout(), due(130_000 + EVERY));
}

#[test]
fn two_probes_in_a_row_without_an_answer_end_the_link_and_one_does_not() {
    let (mut link, _) = probed(EVERY);
    assert_eq!(link.poll_timeout(), due(2 * EVERY));
    assert_eq!(link.handle_timeout(at(2 * EVERY).mono), Ok(()));
    let second = probe(&mut link).expect("the next probe");
    write_all(&mut link, at(2 * EVERY));
    // The second is answered: the count begins anew.
    assert!(link.handle_pong(at(2 * EVERY + 5), &second));
    assert_eq!(link.handle_timeout(at(3 * EVERY).mono), Ok(()));
    for n in 3..5 {
        probe(&mut link).expect("the next probe");
        write_all(&mut link, at(n * EVERY));
        assert_eq!(link.handle_timeout(at((n + 1) * EVERY - 1).mono), Ok(()));
        let told = link.handle_timeout(at((n + 1) * EVERY).mono);
        assert_eq!(told.is_err(), n == 4, "{n}");
    }
    assert_eq!(link.error(), Some(LinkError::LivenessLost));
    assert_eq!(LinkError::LivenessLost.code(), CloseReason::LivenessLost);
    assert_eq!((link.poll_timeout(), link.is_up()), (None, false));
    let counts = link.probes();
    assert_eq!((counts.sent, counts.missed, counts.stray), (4, 3, 0));
}

#[test]
fn only_the_answer_to_the_outstanding_probe_counts() {
    let (mut link, first) = probed(EVERY);
    let mut foreign = first;
    foreign[0] ^= 1;
    assert!(!link.handle_pong(at(EVERY + 1), &foreign), "another link's");
    assert!(!link.handle_pong(at(EVERY + 1), &link.probe_nonce(0)));
    assert!(
        !link.handle_pong(at(EVERY + 1), &link.probe_nonce(2)),
        "not asked yet"
    );
    link.handle_timeout(at(2 * EVERY).mono).unwrap();
    let second = probe(&mut link).expect("the next probe");
    write_all(&mut link, at(2 * EVERY));
    assert!(!link.handle_pong(at(2 * EVERY + 1), &first), "too late");
    // Frames that are heard change nothing either.
    link.handle_partial(at(2 * EVERY + 2).mono, true);
    link.handle_partial(at(2 * EVERY + 2).mono, false);
    assert_eq!(link.probes().stray, 4);
    assert_ne!(first, second);
    let told = link.handle_timeout(at(3 * EVERY).mono);
    assert_eq!(told, Err(LinkError::LivenessLost));
}

#[test]
fn an_answer_counts_once_and_tells_how_long_it_took() {
    let (mut link, nonce) = probed(EVERY);
    assert_eq!(link.answered(), None);
    assert!(link.handle_pong(at(EVERY + 12), &nonce));
    assert!(!link.handle_pong(at(EVERY + 13), &nonce), "twice");
    let answered = link.answered().expect("it was answered");
    assert_eq!(
        (answered.asked, answered.heard),
        (at(EVERY), at(EVERY + 12))
    );
    assert_eq!(answered.round_trip(), Duration::from_millis(12));
    // One probe per interval, answered or not.
    assert_eq!(link.poll_timeout(), due(2 * EVERY));
    assert_eq!(link.probes().stray, 1);
}

#[test]
fn an_answer_that_is_read_before_the_write_was_told_counts_once_it_is() {
    let mut link = up();
    link.handle_timeout(at(EVERY).mono).unwrap();
    let nonce = probe(&mut link).expect("a probe is due");
    assert!(link.handle_pong(at(EVERY + 1), &nonce));
    assert!(!link.handle_pong(at(EVERY + 1), &nonce));
    write_all(&mut link, at(EVERY + 2));
    // It took no longer than since it was due, which is all that is known of when it was written.
    let answered = link.answered().expect("it was answered");
    assert_eq!((answered.asked, answered.heard), (at(EVERY), at(EVERY + 1)));
    link.handle_timeout(at(2 * EVERY + 2).mono).unwrap();
    assert_eq!(link.probes().missed, 0);
}

#[test]
fn the_clock_stands_still_while_this_side_does_not_read() {
    let (mut link, nonce) = probed(EVERY);
    link.handle_paused(at(40_000).mono, true);
    assert_eq!(link.poll_timeout(), None);
    assert_eq!(link.handle_timeout(at(900_000).mono), Ok(()));
    assert_eq!(link.probes().missed, 0);
    link.handle_paused(at(900_000).mono, false);
    assert_eq!(link.poll_timeout(), due(920_000));
    assert!(link.handle_pong(at(900_001), &nonce));
    // A probe that is written while nothing is read waits as well.
    link.handle_timeout(at(920_000).mono).unwrap();
    probe(&mut link).expect("the next probe");
    link.handle_paused(at(920_001).mono, true);
    write_all(&mut link, at(920_002));
    assert_eq!(link.poll_timeout(), None);
    link.handle_paused(at(990_000).mono, false);
    assert_eq!(link.poll_timeout(), due(990_000 + EVERY));
}

#[test]
fn a_side_that_slept_probes_at_once_and_waits_five_seconds() {
    let mut link = up();
    link.handle_suspect(at(1000).mono);
    let nonce = probe(&mut link).expect("at once");
    write_all(&mut link, at(1000));
    assert_eq!(link.poll_timeout(), due(6000));
    assert!(link.handle_pong(at(1030), &nonce));
    assert_eq!(link.poll_timeout(), due(1030 + EVERY), "back to its pace");
    // Not answered: one is enough.
    link.handle_suspect(at(2000).mono);
    probe(&mut link).expect("at once");
    write_all(&mut link, at(2000));
    assert_eq!(link.handle_timeout(at(6999).mono), Ok(()));
    let told = link.handle_timeout(at(7000).mono);
    assert_eq!(told, Err(LinkError::LivenessLost));
}

#[test]
fn an_answer_to_a_probe_from_before_the_sleep_does_not_count() {
    let (mut link, before) = probed(EVERY);
    link.handle_suspect(at(EVERY + 10).mono);
    let after = probe(&mut link).expect("at once");
    write_all(&mut link, at(EVERY + 10));
    assert!(!link.handle_pong(at(EVERY + 11), &before));
    assert!(link.handle_pong(at(EVERY + 11), &after));
    // One that waits to be written needs no second.
    link.handle_timeout(at(2 * EVERY + 11).mono).unwrap();
    probe(&mut link).expect("the next probe");
    link.handle_suspect(at(2 * EVERY + 12).mono);
    assert_eq!(probe(&mut link), None);
    write_all(&mut link, at(2 * EVERY + 20));
    assert_eq!(link.poll_timeout(), due(2 * EVERY + 5020));
}

#[test]
fn a_transport_that_takes_nothing_for_three_intervals_ends_the_link() {
    let mut link = up();
    link.handle_queued(100_000);
    // Seen with the next look at the clock.
    link.handle_paused(at(500).mono, false);
    link.handle_timeout(at(EVERY).mono).unwrap();
    probe(&mut link).expect("a probe is due");
    assert_eq!(link.poll_timeout(), due(500 + 3 * EVERY));
    link.handle_written(at(90_000), 1);
    assert_eq!(link.poll_timeout(), due(90_000 + 3 * EVERY));
    link.handle_written(at(100_000), 0);
    // Reading nothing does not stop this clock: the two may wait for each other.
    link.handle_paused(at(100_000).mono, true);
    assert_eq!(link.handle_timeout(at(179_999).mono), Ok(()));
    let told = link.handle_timeout(at(180_000).mono);
    assert_eq!(told, Err(LinkError::WriteStalled));
    assert_eq!(LinkError::WriteStalled.code(), CloseReason::SlowReader);
}

#[test]
fn an_interval_is_brought_into_its_bounds() {
    for (asked, kept) in [
        (0, 1000),
        (999, 1000),
        (2000, 2000),
        (99_000_000, 3_600_000),
    ] {
        let settings = LinkSettings {
            probe_every: Duration::from_millis(asked),
            ..settings(&key(1), Role::Node)
        };
        let mut link = Link::dial(NOW.mono, settings, None, BINDING, [0x5a; 32]).unwrap();
        talk(&mut link, &mut answerer(), |_, _| {}).unwrap();
        assert_eq!(link.poll_timeout(), due(kept));
    }
}

/// The rules once more, as a clock that is wound by hand one millisecond at a time.
struct Naive {
    now: u64,
    /// What the hand has counted, and where it rings.
    counted: u64,
    rings: u64,
    paused: bool,
    /// A probe: `None` it rests, else whether it was written.
    probe: Option<bool>,
    urgent: bool,
    answered: bool,
    in_a_row: u32,
    sent: u64,
    missed: u64,
    stray: u64,
    /// Bytes that go before and with the probe, and all that wait.
    before: u64,
    waiting: u64,
    stuck_since: Option<u64>,
}

impl Naive {
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += 1;
            self.counted += u64::from(!self.paused && self.probe != Some(false));
        }
    }

    fn look(&mut self) {
        if self.waiting > 0 && self.stuck_since.is_none() {
            self.stuck_since = Some(self.now);
        }
    }

    fn ask(&mut self, urgent: bool, bytes: u64) {
        (self.probe, self.urgent, self.answered) = (Some(false), urgent, false);
        self.sent += 1;
        self.waiting += bytes;
        self.before = self.waiting;
        self.stuck_since.get_or_insert(self.now);
    }

    fn timeout(&mut self, bytes: u64) -> Result<(), LinkError> {
        self.look();
        if self
            .stuck_since
            .is_some_and(|since| self.now - since >= 3 * EVERY)
        {
            return Err(LinkError::WriteStalled);
        }
        if self.paused || self.probe == Some(false) || self.counted < self.rings {
            return Ok(());
        }
        if self.probe == Some(true) {
            self.in_a_row += 1;
            self.missed += 1;
            if self.urgent || self.in_a_row == 2 {
                return Err(LinkError::LivenessLost);
            }
        }
        self.ask(false, bytes);
        Ok(())
    }

    fn write(&mut self, bytes: u64) {
        self.waiting -= bytes;
        if bytes > 0 {
            self.stuck_since = None;
        }
        self.look();
        self.before = self.before.saturating_sub(bytes);
        if self.probe == Some(false) && self.before == 0 {
            self.probe = Some(true);
            (self.counted, self.rings) = (0, if self.urgent { 5000 } else { EVERY });
            if self.answered {
                self.settle();
            }
        }
    }

    fn settle(&mut self) {
        (self.probe, self.in_a_row) = (None, 0);
        if self.urgent {
            (self.counted, self.rings, self.urgent) = (0, EVERY, false);
        }
    }

    fn pong(&mut self, number: u64) -> bool {
        let good = number == self.sent && self.probe.is_some() && !self.answered;
        if !good {
            self.stray += 1;
        } else if self.probe == Some(true) {
            self.settle();
        } else {
            self.answered = true;
        }
        good
    }

    /// The next moment at which a timeout would do something.
    fn due(&self) -> Option<u64> {
        let rings = (!self.paused && self.probe != Some(false))
            .then(|| self.now + self.rings.saturating_sub(self.counted));
        let stuck = self.stuck_since.map(|since| since + 3 * EVERY);
        rings.into_iter().chain(stuck).min()
    }
}

fn script(rng: &mut Rng) -> (u64, Option<LinkError>) {
    let mut link = up();
    let mut naive = Naive {
        now: 0,
        counted: 0,
        rings: EVERY,
        paused: false,
        probe: None,
        urgent: false,
        answered: false,
        in_a_row: 0,
        sent: 0,
        missed: 0,
        stray: 0,
        before: 0,
        waiting: 0,
        stuck_since: None,
    };
    let mut size = 0;
    for step in 0..400 {
        let now = at(naive.now);
        match rng.below(12) {
            0..4 => {
                // To just before, at, or past the deadline; or any time.
                let due = naive.due().unwrap_or(naive.now + 1000);
                let wait = match rng.below(4) {
                    _ if naive.waiting > 0 && rng.below(30) > 0 => rng.below(3000),
                    0 => rng.below(40_000),
                    1 => due.saturating_sub(naive.now + 1),
                    2 => due.saturating_sub(naive.now),
                    _ => due.saturating_sub(naive.now) + rng.below(3000),
                };
                naive.pass(wait);
                let now = at(naive.now);
                let told = link.handle_timeout(now.mono);
                let before = link.queued();
                let asked = probe(&mut link).is_some();
                size = size.max(link.queued() - before);
                let sent = naive.sent;
                assert_eq!(told, naive.timeout(size), "step {step}");
                assert_eq!(asked, naive.sent > sent, "step {step}");
                if let Err(error) = told {
                    return (naive.sent, Some(error));
                }
            }
            4 => {
                let bytes = rng.below(3000);
                link.handle_queued(bytes as usize);
                naive.waiting += bytes;
            }
            5..8 => {
                let some = rng.below(naive.waiting + 1);
                let bytes = if rng.below(3) == 0 {
                    some
                } else {
                    naive.waiting
                };
                link.handle_written(now, bytes as usize);
                naive.write(bytes);
            }
            8 => {
                let paused = rng.below(3) == 0;
                link.handle_paused(now.mono, paused);
                naive.paused = paused;
                naive.look();
            }
            9 if rng.below(4) == 0 => {
                link.handle_suspect(now.mono);
                if naive.probe == Some(false) {
                    naive.urgent = true;
                    naive.stuck_since.get_or_insert(naive.now);
                } else {
                    let before = link.queued();
                    probe(&mut link).expect("at once");
                    naive.ask(true, link.queued() - before);
                }
            }
            _ => {
                let number = naive.sent.saturating_sub(rng.below(4) / 3);
                let nonce = link.probe_nonce(number);
                assert_eq!(
                    link.handle_pong(now, &nonce),
                    naive.pong(number),
                    "step {step}"
                );
            }
        }
        let counts = link.probes();
        assert_eq!(
            (counts.sent, counts.missed, counts.stray),
            (naive.sent, naive.missed, naive.stray),
            "step {step}"
        );
        let due = naive.due().map(Instant::from_millis);
        assert_eq!(link.poll_timeout(), due, "step {step}");
        // Nothing is outstanding without a deadline, but while this side does not read.
        assert!(link.poll_timeout().is_some() || naive.paused, "step {step}");
    }
    (naive.sent, None)
}

#[test]
fn every_script_gives_what_a_clock_wound_by_hand_gives() {
    let mut rng = Seed::new([4; 32]).fork("live");
    let mut ends = [0; 3];
    let mut probes = 0;
    for _ in 0..400 {
        let (sent, error) = script(&mut rng);
        probes += sent;
        ends[match error {
            None => 0,
            Some(LinkError::LivenessLost) => 1,
            _ => 2,
        }] += 1;
    }
    assert!(
        probes > 2000 && ends.iter().all(|count| *count > 0),
        "{probes} {ends:?}"
    );
}
