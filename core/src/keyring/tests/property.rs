//! A keyring held against a naive model: lists, linear search, and everything worked out anew at each step.

use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

struct Held {
    id: u64,
    issued_at: u64,
    publish_until: u64,
    /// By mono, in ms.
    taken_at: u64,
    taken_wall: u64,
    over: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Pull {
    Asked(u64),
    Given,
    Failed(UnopenedReason),
    Denied(UnopenedReason, u64),
}

struct Model {
    held: Vec<Held>,
    pulls: Vec<(u64, u8, u64, Pull)>,
    rng: Rng,
    policy: Option<SealPolicy>,
    rotation: u64,
    current: Option<u64>,
    next: Option<u64>,
    not_before: u64,
    failures: u32,
    failed: Option<UnopenedReason>,
    asks: Vec<Which>,
}

/// Both clocks in ms: mono from its origin, the wall from 1970.
type Clocks = (u64, u64);

impl Model {
    fn new() -> Self {
        let mut rng = Seed::new([5; 32]).fork("keyring");
        // Two numbers went to the cache of subkeys.
        for _ in 0..2 {
            rng.next_u64();
        }
        Self {
            held: Vec::new(),
            pulls: Vec::new(),
            rng,
            policy: None,
            rotation: R,
            current: Some(15_000),
            next: None,
            not_before: 0,
            failures: 0,
            failed: None,
            asks: vec![Which::Current],
        }
    }

    fn newest(&self) -> Option<&Held> {
        let held = self.held.iter().filter(|held| !held.over);
        held.max_by_key(|held| held.issued_at)
    }

    fn left(until: u64, held: &Held) -> u64 {
        held.taken_at + until.saturating_sub(held.taken_wall)
    }

    fn act(&mut self, (mono, wall): Clocks) {
        for held in &mut self.held {
            let last = held.publish_until + ACCEPT_MS + SKEW_MS;
            held.over |= wall > last || mono >= Self::left(last + 1, held);
        }
        for (.., pull) in &mut self.pulls {
            if matches!(pull, Pull::Asked(deadline) if *deadline <= mono) {
                *pull = Pull::Failed(UnopenedReason::NoDistributor);
            }
        }
        if self.current.is_some_and(|deadline| deadline <= mono) {
            self.fail(mono, UnopenedReason::NoDistributor);
        }
        let stale = self.policy.is_some()
            && self.failed.is_none()
            && mono >= self.not_before
            && self
                .newest()
                .is_none_or(|newest| newest.publish_until <= wall);
        if self.next.is_some_and(|next| next <= mono) || stale {
            self.pull(mono);
        }
    }

    fn pull(&mut self, mono: u64) {
        if self.current.is_none() {
            self.current = Some(mono + 15_000);
            self.next = None;
            self.asks.push(Which::Current);
        }
    }

    fn fail(&mut self, mono: u64, reason: UnopenedReason) {
        self.asks.retain(|which| *which != Which::Current);
        (self.current, self.failed) = (None, Some(reason));
        let wait = 1000u64 << self.failures.min(30);
        self.failures += 1;
        self.next = Some(mono + wait.min((self.rotation / 3).max(1000)));
    }

    fn known(&self, id: u64, mono: u64) -> Option<Pull> {
        let of_it = self.pulls.iter().filter(|pull| pull.0 == id);
        let of_it: Vec<Pull> = of_it.map(|pull| pull.3).collect();
        let asked = of_it.iter().find(|pull| matches!(pull, Pull::Asked(_)));
        let denied = of_it
            .iter()
            .find(|pull| matches!(pull, Pull::Denied(_, until) if *until > mono));
        let failed = of_it.iter().find(|pull| matches!(pull, Pull::Failed(_)));
        asked.or(denied).or(failed).copied()
    }

    fn ask(&mut self, id: u64, publisher: u8, mono: u64) -> bool {
        let counts = |pull: &&(u64, u8, u64, Pull)| pull.1 == publisher && pull.2 > mono;
        let of_it: Vec<u64> = self
            .pulls
            .iter()
            .filter(counts)
            .map(|pull| pull.2)
            .collect();
        if of_it.len() >= 3 {
            return false;
        }
        let until = of_it.first().copied().unwrap_or(mono + self.rotation);
        self.pulls
            .push((id, publisher, until, Pull::Asked(mono + 15_000)));
        self.asks.push(Which::One(super::id(id)));
        true
    }

    fn find(&self, id: u64) -> Option<&Held> {
        self.held.iter().find(|held| held.id == id)
    }

    fn want(&mut self, id: u64, publisher: u8, mono: u64) {
        let known = self.known(id, mono);
        let worth = matches!(known, None | Some(Pull::Given | Pull::Failed(_)));
        if self.find(id).is_none() && self.policy.is_some() && worth {
            self.ask(id, publisher, mono);
        }
    }

    fn opens(&mut self, id: u64, publisher: u8, mono: u64) -> Result<(), Option<UnopenedReason>> {
        match self.find(id) {
            Some(held) if !held.over => return Ok(()),
            Some(_) => return Err(Some(UnopenedReason::PeriodExpired)),
            None => (),
        }
        if self.policy.is_none() {
            return Err(match self.current {
                Some(_) => None,
                None => self.failed,
            });
        }
        Err(match self.known(id, mono) {
            Some(Pull::Asked(_)) => None,
            Some(Pull::Denied(reason, _) | Pull::Failed(reason)) => Some(reason),
            Some(Pull::Given) | None => match self.ask(id, publisher, mono) {
                true => None,
                false => Some(UnopenedReason::UnknownPeriod),
            },
        })
    }

    fn seals(&mut self, (mono, wall): Clocks) -> Result<[u8; 8], NoKey> {
        let good = self.held.iter().filter(|held| {
            !held.over
                && held.issued_at <= wall
                && wall < held.publish_until
                && mono < Self::left(held.publish_until, held)
        });
        if let Some(newest) = good.max_by_key(|held| held.issued_at) {
            return Ok(super::id(newest.id));
        }
        if self.current.is_none() && self.failed.is_none() && mono >= self.not_before {
            self.pull(mono);
        }
        Err(match (self.current, self.failed) {
            (Some(_), _) => NoKey::Pending,
            (None, reason) => NoKey::Failed(reason.unwrap_or(UnopenedReason::NoDistributor)),
        })
    }

    fn take(&mut self, (mono, wall): Clocks, n: u64) {
        let fresh = Held {
            id: n,
            issued_at: START + n * R,
            publish_until: START + (n + 1) * R,
            taken_at: mono,
            taken_wall: wall,
            over: false,
        };
        match self.held.iter_mut().find(|held| held.id == n) {
            Some(held) if held.over => *held = fresh,
            Some(_) => (),
            None => self.held.push(fresh),
        }
    }

    fn give_current(&mut self, clocks: Clocks, first: u64, both: bool) {
        let (mono, wall) = clocks;
        let (from, until) = (START + first * R, START + (first + 1) * R);
        self.asks.retain(|which| *which != Which::Current);
        if from > wall + SKEW_MS || wall >= until + SKEW_MS {
            return self.fail(mono, UnopenedReason::NoDistributor);
        }
        self.take(clocks, first);
        if both {
            self.take(clocks, first + 1);
        }
        self.policy = self.policy.max(Some(SealPolicy::Off));
        (self.current, self.failures, self.failed) = (None, 0, None);
        self.not_before = mono + R / 30;
        let draw = self.rng.next_u64();
        let newest = self.newest().map(|held| held.publish_until);
        let due = newest.map_or(0, |until| {
            let into = (u128::from(R / 3) * u128::from(draw)) >> 64;
            (until - R / 3 + into as u64).saturating_sub(wall)
        });
        self.next = Some((mono + due).max(self.not_before));
    }

    fn give_one(&mut self, clocks: Clocks, n: u64) {
        let (from, until) = (START + n * R, START + (n + 1) * R);
        let in_time = from <= clocks.1 + SKEW_MS + R / 3 && clocks.1 <= until + ACCEPT_MS + SKEW_MS;
        let end = match in_time {
            true => Pull::Given,
            false => Pull::Failed(UnopenedReason::NoDistributor),
        };
        self.settle(n, end);
        if in_time {
            self.take(clocks, n);
            self.policy = self.policy.max(Some(SealPolicy::Off));
        }
    }

    fn settle(&mut self, n: u64, end: Pull) {
        self.asks.retain(|which| *which != Which::One(super::id(n)));
        let mut of_it = self.pulls.iter_mut().filter(|pull| pull.0 == n);
        if let Some(pull) = of_it.find(|pull| matches!(pull.3, Pull::Asked(_))) {
            pull.3 = end;
        }
    }

    fn is_asked(&self, n: u64) -> bool {
        let mut of_it = self.pulls.iter().filter(|pull| pull.0 == n);
        of_it.any(|pull| matches!(pull.3, Pull::Asked(_)))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass { mono: u64, wall: i64 },
    Want(u64, u8),
    Open(u64, u8),
    Seal,
    Current { first: u64, both: bool },
    One(u64),
    Refuse(Option<u64>, usize),
    Renew,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let n = || 0u64..6;
    let pass = prop_oneof![
        6 => (0u64..400_000).prop_map(|ms| Step::Pass { mono: ms, wall: ms as i64 }),
        2 => (14_998u64..15_003).prop_map(|ms| Step::Pass { mono: ms, wall: ms as i64 }),
        1 => (0u64..1000, -3_000_000i64..6_000_000).prop_map(|(mono, wall)| Step::Pass { mono, wall }),
        1 => (0u64..100_000, -9_000_000i64..9_000_000).prop_map(|(mono, wall)| Step::Pass { mono, wall }),
    ];
    let step = prop_oneof![
        6 => pass,
        3 => (n(), 1u8..4).prop_map(|(n, who)| Step::Want(n, who)),
        4 => (n(), 1u8..4).prop_map(|(n, who)| Step::Open(n, who)),
        3 => Just(Step::Seal),
        5 => (n(), any::<bool>()).prop_map(|(first, both)| Step::Current { first, both }),
        3 => n().prop_map(Step::One),
        2 => (proptest::option::of(n()), 0usize..8).prop_map(|(which, why)| Step::Refuse(which, why)),
        1 => Just(Step::Renew),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn it_does_what_the_model_does(steps in steps()) {
        let mut keyring = keyring(16, 512);
        keyring.join(at(0));
        let mut model = Model::new();
        let (mut mono, mut wall) = (0u64, START);
        for step in steps {
            if let Step::Pass { mono: more, wall: by } = step {
                mono += more;
                wall = wall.saturating_add_signed(by);
            }
            let now = Now::new(Instant::from_millis(mono), WallMs::new(wall));
            let clocks = (mono, wall);
            model.act(clocks);
            match step {
                Step::Pass { .. } => keyring.handle_timeout(now),
                Step::Want(n, by) => {
                    keyring.want(now, &id(n), &who(by));
                    model.want(n, by, mono);
                }
                Step::Open(n, by) => {
                    let opened = match keyring.lookup(now, &id(n), &who(by)) {
                        Lookup::Held { .. } => Ok(()),
                        Lookup::Waiting => Err(None),
                        Lookup::Unopened(reason) => Err(Some(reason)),
                    };
                    prop_assert_eq!(opened, model.opens(n, by, mono));
                }
                Step::Seal => {
                    prop_assert_eq!(seals(&mut keyring, now), model.seals(clocks));
                }
                Step::Current { first, both } => {
                    let mut periods = vec![period(first)];
                    periods.extend(both.then(|| period(first + 1)));
                    let asked = model.current.is_some();
                    let given = keyring.handle_keys(now, Which::Current, SealPolicy::Off, &periods);
                    prop_assert_eq!(given == Err(KeysFault::NotAsked), !asked);
                    if asked {
                        model.give_current(clocks, first, both);
                    }
                }
                Step::One(n) => {
                    let asked = model.is_asked(n);
                    let one = Which::One(id(n));
                    let given = keyring.handle_keys(now, one, SealPolicy::Off, &[period(n)]);
                    prop_assert_eq!(given == Err(KeysFault::NotAsked), !asked);
                    if asked {
                        model.give_one(clocks, n);
                    }
                }
                Step::Refuse(which, why) => {
                    let reason = UnopenedReason::ALL[why];
                    let (asked, which) = match which {
                        None => (model.current.is_some(), Which::Current),
                        Some(n) => (model.is_asked(n), Which::One(id(n))),
                    };
                    let refused = keyring.handle_refusal(now, which, reason);
                    prop_assert_eq!(refused.is_ok(), asked);
                    match which {
                        _ if !asked => (),
                        Which::Current => model.fail(mono, reason),
                        Which::One(id) => {
                            let known = matches!(reason, UnopenedReason::UnknownPeriod | UnopenedReason::PeriodExpired);
                            let end = match known {
                                true => Pull::Denied(reason, mono + 65 * 60_000),
                                false => Pull::Failed(reason),
                            };
                            model.settle(u64::from_be_bytes(id), end);
                        }
                    }
                }
                Step::Renew => {
                    keyring.renew(now);
                    for (.., pull) in &mut model.pulls {
                        if matches!(pull, Pull::Failed(_)) {
                            *pull = Pull::Given;
                        }
                    }
                    if model.failed.is_some() {
                        model.failures = 0;
                        model.pull(mono);
                    }
                }
            }
            let mut asked = asks(&mut keyring);
            let mut wanted = core::mem::take(&mut model.asks);
            asked.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(asked, wanted);
            prop_assert_eq!(keyring.policy(), model.policy);
            prop_assert_eq!(keyring.len(), model.held.iter().filter(|held| !held.over).count());
            if let Some(due) = keyring.poll_timeout() {
                prop_assert!(due > now.mono, "what was due was done");
            }
        }
    }
}
