//! Verdicts under a script of facts, answers, times and walls that jump, against the plain list of the core's own tests.
//!
//! Input: eight bytes of bounds, then four for each step. Beside the model: a fact that is admitted has a verdict that no clock has ended, an
//! answer is taken once, after a timeout was handled nothing is due, and calm leaves no lookup and no fact waiting.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::code::SourceRefusal;
use tidings::inbound::sources::{
    Judgement, LookupId, Settled, Slot, SourceAnswer, SourceDrop, SourceLimits, Sources, Window,
};
use tidings::{Instant, Now, Seed, WallMs};

#[path = "../../core/src/inbound/sources/tests/model.rs"]
mod model;

use model::{Model, Said, Windows};

fuzz_target!(|data: &[u8]| {
    if let Some((bounds, steps)) = data.split_first_chunk::<8>() {
        let limits = limits(bounds);
        let rng = || Seed::new([bounds[7]; 32]).fork("sources");
        let room = [limits.max_publishers, limits.max_publishers.div_ceil(4)];
        let growing = Sources::growing(limits, &mut rng()).expect("valid");
        Play::new(growing, limits, room).run(steps);
        // Fewer slots than there may be publishers.
        let room = match limits.slots() {
            all @ ..=5 => [all - room[1], room[1]],
            _ => [4, 1],
        };
        let few = Sources::new([Slot::EMPTY; 5], limits, &mut rng()).expect("valid");
        Play::new(few, limits, room).run(steps);
    }
});

fn limits(bounds: &[u8; 8]) -> SourceLimits {
    let [
        publishers,
        held,
        lookups,
        window,
        ttl,
        margin,
        refusal,
        timeout,
    ] = bounds.map(u64::from);
    let mut limits = SourceLimits::default();
    limits.max_publishers = 1 + publishers as usize % 12;
    limits.held_per_key = 1 + held as u32 % 4;
    limits.lookups_per_window = 1 + lookups as u32 % 12;
    limits.window_ms = 1 + window;
    limits.cache_ttl_ms = 1 + ttl * 8;
    limits.refresh_margin_ms = margin * 4 % limits.cache_ttl_ms;
    limits.refusal_ttl_ms = refusal * 2;
    limits.lookup_timeout_ms = 1 + timeout;
    limits
}

struct Play<S> {
    sources: Sources<u64, S>,
    limits: SourceLimits,
    model: Model,
    window: Window<u8, [Option<(u8, u32)>; 3]>,
    windows: Windows,
    /// The n-th is the model's lookup n + 1.
    lookups: Vec<LookupId>,
    mono: u64,
    wall: u64,
}

impl<S: AsRef<[Slot<u64>]> + AsMut<[Slot<u64>]>> Play<S> {
    fn new(sources: Sources<u64, S>, limits: SourceLimits, room: [usize; 2]) -> Self {
        Self {
            sources,
            limits,
            model: Model::new(limits, room[0], room[1]),
            window: Window::new([None; 3]),
            windows: Windows::default(),
            lookups: Vec::new(),
            mono: 1000,
            wall: 1_000_000,
        }
    }

    fn now(&self) -> Now {
        Now::new(Instant::from_millis(self.mono), WallMs::new(self.wall))
    }

    fn run(mut self, steps: &[u8]) {
        let (steps, _) = steps.as_chunks::<4>();
        for [kind, a, b, c] in steps {
            self.step(*kind, *a, *b, *c);
            self.look();
        }
        // Calm: whatever is asked is given up, and nothing waits any more.
        self.mono += self.limits.lookup_timeout_ms;
        self.timeout();
        self.look();
        assert_eq!((self.sources.lookups(), self.sources.held()), (0, 0));
        assert_eq!(self.sources.poll_timeout(), None);
        // Long after that nobody is remembered.
        self.mono += 2 * self.limits.cache_ttl_ms + self.limits.refusal_ttl_ms;
        self.sources.sweep(self.now(), usize::MAX);
        assert!(self.sources.is_empty(), "{} are left", self.sources.len());
    }

    fn step(&mut self, kind: u8, a: u8, b: u8, c: u8) {
        match kind % 16 {
            0..=6 => self.fact(u64::from(a % 16), b % 5),
            7..=10 => self.answer(a, b, u64::from(c) * 16),
            11 => {
                if let Some(id) = self.lookup(a) {
                    self.sources.leave(self.lookups[id]);
                    self.model.leave(id as u32 + 1);
                }
            }
            12 => {
                let by = u64::from(b) << (c % 8);
                self.wall = if a % 2 == 0 {
                    self.wall + by
                } else {
                    self.wall.saturating_sub(by)
                };
            }
            13 => {
                let by = u64::from(a) << (b % 4);
                (self.mono, self.wall) = (self.mono + by, self.wall + by);
            }
            14 => self.timeout(),
            _ => {
                self.sources.sweep(self.now(), usize::MAX);
                self.model.sweep(self.mono, self.wall);
            }
        }
    }

    fn fact(&mut self, key: u64, link: u8) {
        let (now, limits) = (self.now(), self.limits);
        let before = self.sources.verdict(now, &key);
        assert_eq!(before, self.model.verdict(self.mono, self.wall, key));
        let window = &mut self.window;
        let stops = self.sources.stops(now, &key, |known| {
            window.has(now.mono, &limits, known, link)
        });
        let judged = self.sources.judge(now, &key, |known| {
            window.take(now.mono, &limits, known, link)
        });
        let windows = &mut self.windows;
        let mono = self.mono;
        let stopped = matches!(judged, Judgement::Drop(_) | Judgement::Refuse(_)).then_some(judged);
        assert_eq!(stops, stopped, "what would be refused or dropped is");
        let wanted = self.model.judge(mono, self.wall, key, |known| {
            windows.take(mono, &limits, 3, known, link)
        });
        if let Judgement::Ask(lookup) | Judgement::Admit(Some(lookup)) = judged {
            self.lookups.push(lookup.id);
        }
        let admits = matches!(judged, Judgement::Admit(_));
        assert_eq!(
            admits,
            before == Some(Ok(())),
            "who is admitted has a verdict"
        );
        let begun = (self.lookups.len() as u32, mono + limits.lookup_timeout_ms);
        let said = match judged {
            Judgement::Admit(lookup) => Said::Admit(lookup.map(|_| begun)),
            Judgement::Ask(_) => Said::Ask(begun.0, begun.1),
            Judgement::Drop(reason) => Said::Drop(reason),
            Judgement::Refuse(reason) => Said::Refuse(reason),
            Judgement::Wait(id) => Said::Wait(self.turn(id)),
            other => panic!("{other:?}"),
        };
        assert_eq!(said, wanted);
    }

    /// One of the last lookups.
    fn lookup(&self, back: u8) -> Option<usize> {
        self.lookups.len().checked_sub(1 + usize::from(back % 8))
    }

    fn turn(&self, id: LookupId) -> u32 {
        let at = self.lookups.iter().rposition(|other| *other == id);
        at.expect("a lookup that was begun") as u32 + 1
    }

    fn answer(&mut self, which: u8, found: u8, left: u64) {
        let Some(id) = self.lookup(which) else { return };
        let answer = match found % 8 {
            0..4 => SourceAnswer::Admit {
                until: WallMs::new(self.wall + left),
            },
            4 => SourceAnswer::Refuse(SourceRefusal::NotFound),
            5 => SourceAnswer::Refuse(SourceRefusal::Withdrawn),
            _ => SourceAnswer::Unknown,
        };
        let now = self.now();
        let settled = self.sources.answer(now, self.lookups[id], answer);
        let wanted = self
            .model
            .answer(self.mono, self.wall, id as u32 + 1, answer);
        assert_eq!(settled, wanted);
        let again = self.sources.answer(now, self.lookups[id], answer);
        assert_eq!(again, None, "it was settled");
    }

    fn timeout(&mut self) {
        let now = self.now();
        loop {
            let settled = self.sources.handle_timeout(now);
            let told = settled.map(|(id, settled)| (self.turn(id), settled));
            assert_eq!(told, self.model.timeout(self.mono, self.wall));
            if told.is_none() {
                break;
            }
        }
        assert!(self.sources.poll_timeout().is_none_or(|due| due > now.mono));
    }

    /// Everything that can be seen.
    fn look(&self) {
        let due = self
            .sources
            .poll_timeout()
            .map(|due| due.as_micros() / 1000);
        assert_eq!(due, self.model.due());
        let of = &self.sources;
        let counts = [of.len(), of.lookups(), of.held(), of.admitted(self.now())];
        assert_eq!(counts, self.model.counts(self.mono, self.wall));
        assert!(of.len() <= of.capacity());
    }
}
