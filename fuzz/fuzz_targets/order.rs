//! A lane under a script of facts, closed places, replays and times, against a ledger.
//!
//! Input: see `script.rs`. Beside the ledger: after a timeout was handled nothing is due, what is due next is known exactly, what is
//! held stays within its bound, `has_room` keeps its word, and calm ends everything.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::inbound::lane::{Admit, Lane, Mode, Offer, Slot};
use tidings::{Instant, Now, WallMs};
use tidings_fuzz::ledger::{Ledger, Taken};
use tidings_fuzz::script::{self, Config, Step, WALL};

fuzz_target!(|data: &[u8]| {
    if let Some((config, steps)) = script::read(data) {
        let trace = std::env::var_os("TIDINGS_TRACE").is_some();
        if trace {
            println!("{config:?}");
        }
        Play::new(config, trace).run(&steps);
    }
});

struct Play {
    config: Config,
    lane: Lane<u32, Vec<Option<Slot<u32>>>>,
    ledger: Ledger,
    now_us: u64,
    step: usize,
    /// Everything was handed out before the step at hand.
    drained: bool,
    /// Only facts were given: what is due next is the oldest of those held.
    plain: bool,
    /// Say what goes in and comes out.
    trace: bool,
}

impl Play {
    fn new(config: Config, trace: bool) -> Self {
        let slots = || (0..config.slots).map(|_| None).collect();
        Self {
            config,
            lane: Lane::new([[slots(), slots()], [slots(), slots()]], config.lane),
            ledger: Ledger::new(config.lane.mode, config.lane.sparse, config.at_one),
            now_us: 1_000_000,
            step: 0,
            drained: true,
            plain: config.lane.mode == Mode::Ordered,
            trace,
        }
    }

    fn now(&self) -> Now {
        Now::new(
            Instant::from_micros(self.now_us),
            WallMs::new(WALL + self.now_us / 1000),
        )
    }

    fn run(mut self, steps: &[(u64, Step)]) {
        for (wait, step) in steps {
            self.step += 1;
            self.now_us += wait * 1000;
            if self.trace {
                println!("@{} ms: {step:?}", self.now_us / 1000);
            }
            self.play(step);
            assert!(
                self.lane.held() <= 2 * self.config.slots,
                "more is held than there are slots"
            );
            if self.config.eager {
                self.drain();
            } else {
                self.drained = !self.lane.is_ready();
            }
        }
        self.calm(steps.len());
    }

    fn play(&mut self, step: &Step) {
        let now = self.now();
        match *step {
            Step::Offer(offer) => {
                self.offer(offer);
            }
            Step::Close { epoch, seq } => {
                self.plain = false;
                self.tick();
                let (due, edges) = (self.lane.poll_timeout(), self.lane.edges());
                let stats = self.lane.stats();
                let fresh = !self.lane.covers(epoch, seq) && stats.restarts == self.ledger.restarts;
                if self.lane.close(now, epoch, seq) {
                    self.ledger.closed(epoch, seq, fresh);
                } else {
                    assert!(self.lane.is_ready(), "refused with nothing to hand out");
                    assert_eq!(due, self.lane.poll_timeout(), "a refusal changes nothing");
                    assert_eq!((edges, stats), (self.lane.edges(), self.lane.stats()));
                }
            }
            Step::OfferOrGiveUp(offer) => {
                if self.offer(offer) {
                    (self.plain, self.ledger.gave_up) = (false, true);
                    let _told = self.lane.give_up(now, offer.epoch, offer.seq);
                }
            }
            Step::ReplayProgress => {
                self.plain = false;
                self.lane.replay_progress(now);
            }
            Step::ReplayEnd => self.lane.replay_end(now),
            Step::Tick => self.tick(),
            Step::TickDue => {
                let due = self.lane.poll_timeout();
                self.now_us = self.now_us.max(due.map_or(0, Instant::as_micros));
                self.tick();
            }
            Step::PollOne => {
                self.poll();
            }
            Step::Drain => self.drain(),
        }
    }

    /// Whether the lane was busy.
    fn offer(&mut self, offer: Offer) -> bool {
        self.tick();
        let room = self.lane.has_room(offer.epoch, offer.seq);
        let name = self.ledger.name();
        let admit = self.lane.offer(self.now(), offer, name);
        if self.trace {
            println!("    {admit:?}, due {:?}", self.lane.poll_timeout());
        }
        match admit {
            Admit::Taken => self.ledger.took(Taken {
                epoch: offer.epoch,
                seq: offer.seq,
                anycast: offer.anycast,
                at: self.now_us,
                step: self.step,
            }),
            Admit::Busy(back) => {
                assert_eq!(back, name);
                assert!(self.lane.is_ready(), "busy with nothing to hand out");
                assert!(!room || offer.anycast, "there was room");
                return true;
            }
            Admit::Conflict(back) => {
                assert_eq!(back, name);
                self.plain = false;
                self.ledger.conflicted();
            }
            Admit::Duplicate(back) | Admit::Superseded(back) => {
                assert_eq!(back, name);
                if offer.copy_possible {
                    // Where a numbering begins anew it may be the first of its number, and closes its place.
                    self.plain = false;
                    self.ledger.closed(offer.epoch, offer.seq, false);
                }
            }
            other => panic!("an answer this target does not know: {other:?}"),
        }
        false
    }

    fn tick(&mut self) {
        let now = self.now();
        self.lane.handle_timeout(now);
        let due = self.lane.poll_timeout();
        assert!(
            due.is_none_or(|due| due > now.mono),
            "still due after its time"
        );
    }

    fn poll(&mut self) -> bool {
        let Some(item) = self.lane.poll() else {
            return false;
        };
        if self.trace {
            println!("    {item:?}");
        }
        self.ledger.handed_out(item, self.step, self.drained);
        true
    }

    fn drain(&mut self) {
        while self.poll() {}
        self.drained = true;
        if self.plain {
            let timeout = self.config.lane.order_timeout.as_micros() as u64;
            let oldest = self.ledger.waiting().map(|fact| fact.at + timeout).min();
            let due = self.lane.poll_timeout().map(Instant::as_micros);
            assert_eq!(
                due, oldest,
                "due when the oldest held fact has waited long enough"
            );
        }
    }

    /// No more input: all that is due comes, and then nothing is.
    fn calm(&mut self, steps: usize) {
        self.lane.replay_end(self.now());
        self.drain();
        for _ in 0..=4 * steps + 8 {
            let Some(due) = self.lane.poll_timeout() else {
                self.ledger.settled();
                return;
            };
            self.now_us = self.now_us.max(due.as_micros());
            self.step += 1;
            self.tick();
            self.drain();
        }
        panic!("it never comes to rest");
    }
}
