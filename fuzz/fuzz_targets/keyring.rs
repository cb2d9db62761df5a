//! The keys of a group under a script of facts, answers and times: nothing is held or sealed under past its bound by either clock, no answer that
//! breaks a rule leaves a key, a policy is never loosened, a publisher has its share of questions, and after a timeout nothing is due. And
//! answers as bytes: what is read is what is written again.
//!
//! Input: an even first byte, then the bytes of an answer; or an odd one, then steps of four bytes: what happens, of which period, and by how
//! much mono and the wall move.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use tidings::code::{SealPolicy, UnopenedReason};
use tidings::crypto::SubkeySlot;
use tidings::keyring::{
    ACCEPT_MS, KeyPeriod, Keyring, Lookup, PULLS_PER_PUBLISHER, PeriodSlot, PullSlot, Which,
    write_answer,
};
use tidings::{Instant, KeyPeriods, NodeId, Now, Seed, WallMs};
use tidings_fuzz::keys::Given;

const PREFIX: &str = "io.example/acme/shop";
const START: u64 = 1_790_000_000_000;
const R: u64 = 60_000;
const SKEW: u64 = 300_000;

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((mode, rest)) if mode % 2 == 0 => answer(rest),
    Some((_, rest)) => Play::new().run(rest),
    None => (),
});

/// Whoever reads these bytes as an answer writes such an answer, which is read as the same.
fn answer(bytes: &[u8]) {
    let Ok(read) = KeyPeriods::read(bytes, PREFIX) else {
        return;
    };
    assert!((1..=2).contains(&read.periods.len()));
    let mut written = Vec::new();
    write_answer(read.policy, PREFIX, &read.periods, &mut written);
    let again = KeyPeriods::read(&written, PREFIX).expect("it was written");
    assert_eq!(again.policy, read.policy);
    let times = |answer: &KeyPeriods| -> Vec<_> {
        let all = answer.periods.iter();
        all.map(|period| (*period.key().id(), period.issued_at, period.accept_until))
            .collect()
    };
    assert_eq!(times(&again), times(&read));
}

type Ring = Keyring<Vec<PeriodSlot>, Vec<PullSlot>, Vec<SubkeySlot>>;

struct Play {
    ring: Ring,
    mono: u64,
    wall: u64,
    /// When each period was last given.
    given: BTreeMap<u8, Given>,
    /// Questions by id, and whose fact they were asked for last.
    asked: BTreeMap<u8, u64>,
    policy: Option<SealPolicy>,
    memory: usize,
    pulls: usize,
}

fn period(n: u8) -> KeyPeriod {
    let from = START + u64::from(n) * R;
    KeyPeriod::new(
        [n; 8],
        [n ^ 0x5a; 32],
        WallMs::new(from),
        WallMs::new(from + R),
    )
}

impl Play {
    fn new() -> Self {
        let periods = (0..4).map(|_| PeriodSlot::EMPTY).collect();
        let subkeys = (0..4).map(|_| SubkeySlot::EMPTY).collect();
        let pulls = vec![PullSlot::EMPTY; 6];
        let rng = Seed::new([9; 32]).fork("fuzz");
        let mut ring = Keyring::new(periods, pulls, subkeys, rng);
        ring.join(Now::new(Instant::ORIGIN, WallMs::new(START)));
        Self {
            memory: ring.memory(),
            ring,
            mono: 0,
            wall: START,
            given: BTreeMap::new(),
            asked: BTreeMap::new(),
            policy: None,
            pulls: 0,
        }
    }

    fn now(&self) -> Now {
        Now::new(Instant::from_millis(self.mono), WallMs::new(self.wall))
    }

    fn clocks(&self) -> Given {
        Given {
            mono_ms: self.mono,
            wall_ms: self.wall,
        }
    }

    fn is_over(&self, n: u8, until: u64) -> bool {
        let given = self.given.get(&n);
        given.is_none_or(|given| given.is_over(self.clocks(), until))
    }

    fn run(mut self, steps: &[u8]) {
        for step in steps.chunks_exact(4) {
            let (what, n, mono, wall) = (step[0], step[1] % 96, step[2], step[3]);
            self.mono += u64::from(mono) * u64::from(mono) * 3;
            let by = i64::from(wall as i8);
            let moved = self.wall + u64::from(mono) * u64::from(mono) * 3;
            self.wall = moved.saturating_add_signed(by * by * by / 4).max(1);
            self.step(what, n);
            self.hold();
        }
    }

    fn step(&mut self, what: u8, n: u8) {
        let (now, id) = (self.now(), [n; 8]);
        let by = NodeId::new([what >> 4; 32]);
        let policy = SealPolicy::ALL[usize::from(what >> 4) % 3];
        match what % 8 {
            0 => self.ring.want(now, &id, &by),
            1 => {
                let held = matches!(self.ring.lookup(now, &id, &by), Lookup::Held { .. });
                let until = START + (u64::from(n) + 1) * R + ACCEPT_MS + SKEW;
                assert!(!held || !self.is_over(n, until), "{n} is over");
            }
            2 => {
                if let Ok((id, _)) = self.ring.sealing(now, &by) {
                    let from = START + u64::from(id[0]) * R;
                    assert!((from..from + R).contains(&self.wall), "{} seals", id[0]);
                    assert!(!self.is_over(id[0], from + R), "{} seals", id[0]);
                }
            }
            3 => {
                let both = [period(n), period(n.wrapping_add(1))];
                let given = self.ring.handle_keys(now, Which::Current, policy, &both);
                if given.is_ok() {
                    self.take(n, policy);
                    self.take(n.wrapping_add(1), policy);
                }
            }
            4 => {
                let one = [period(n)];
                let which = if what & 0x80 == 0 {
                    Which::One(id)
                } else {
                    Which::Current
                };
                if self.ring.handle_keys(now, which, policy, &one).is_ok() {
                    self.take(n, policy);
                }
            }
            5 => {
                let reason = UnopenedReason::ALL[usize::from(n) % UnopenedReason::ALL.len()];
                let which = if what & 0x80 == 0 {
                    Which::One(id)
                } else {
                    Which::Current
                };
                let _asked = self.ring.handle_refusal(now, which, reason);
            }
            6 => self.ring.renew(now),
            _ => {
                self.ring.handle_timeout(now);
                let due = self.ring.poll_timeout();
                assert!(
                    due.is_none_or(|due| due > now.mono),
                    "what was due was done"
                );
            }
        }
    }

    fn take(&mut self, n: u8, policy: SealPolicy) {
        let now = self.clocks();
        let until = START + (u64::from(n) + 1) * R + ACCEPT_MS + SKEW;
        self.given.entry(n).or_insert(now).again(now, until);
        self.policy = self.policy.max(Some(policy));
    }

    fn hold(&mut self) {
        let mut by_id = 0;
        while let Some(ask) = self.ring.poll_ask() {
            assert!(ask.deadline > Instant::from_millis(self.mono));
            if let Which::One(id) = ask.which {
                *self.asked.entry(id[0]).or_default() += 1;
                by_id += 1;
            }
        }
        self.pulls += by_id;
        // Sixteen publishers, each with its share in every rotation, one step at a time.
        assert!(by_id <= PULLS_PER_PUBLISHER);
        assert!(self.ring.under_way() <= 7, "six by id, and what is current");
        assert_eq!(self.ring.memory(), self.memory);
        assert!(self.ring.len() <= self.ring.capacity());
        assert!(self.ring.policy() >= self.policy || self.policy.is_none());
    }
}
