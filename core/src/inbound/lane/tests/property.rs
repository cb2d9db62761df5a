use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::model::Model;
use super::*;

#[derive(Clone, Debug)]
enum Op {
    Offer { wait: u64, offer: Offer },
    Close { wait: u64, epoch: u64, seq: u64 },
    Tick { wait: u64 },
    Due,
    Back { by: u64 },
    Progress { wait: u64 },
    ReplayEnd { wait: u64 },
}

fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![10 => 0..40_u64, 2 => 0..1500_u64, 2 => 0..70_000_u64]
}

fn seqs() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => 0..12_u64,
        4 => 10..30_u64,
        2 => 10_000..10_040_u64,
        1 => (u64::MAX - 3)..=u64::MAX,
    ]
}

fn epochs() -> impl Strategy<Value = u64> {
    prop_oneof![8 => Just(E1), 8 => Just(E2), 2 => Just(E3), 2 => Just(0)]
}

fn ops() -> impl Strategy<Value = Op> {
    let offers =
        (epochs(), seqs(), prop::array::uniform4(0..8_u8)).prop_map(|(epoch, seq, odds)| {
            let [replayed, anycast, copy_possible, _] = odds.map(|odd| odd == 0);
            Offer {
                replayed,
                anycast,
                copy_possible,
                ..fact(epoch, seq)
            }
        });
    prop_oneof![
        14 => (waits(), offers).prop_map(|(wait, offer)| Op::Offer { wait, offer }),
        2 => (waits(), epochs(), seqs()).prop_map(|(wait, epoch, seq)| Op::Close { wait, epoch, seq }),
        2 => waits().prop_map(|wait| Op::Tick { wait }),
        2 => Just(Op::Due),
        1 => (0..300_u64).prop_map(|by| Op::Back { by }),
        1 => waits().prop_map(|wait| Op::Progress { wait }),
        1 => waits().prop_map(|wait| Op::ReplayEnd { wait }),
    ]
}

fn configs() -> impl Strategy<Value = LaneConfig> {
    let mode = prop_oneof![Just(Mode::Ordered), Just(Mode::AsArrives)];
    let bounds = proptest::sample::select(&[1_usize, 2, 3, 5, 8, 1024][..]);
    // E1 is joined in the middle, E2 and E3 start at 1; or none does.
    let accepted = prop_oneof![Just((E1 + 500_000) / 1000 - 300_000), Just(E3 / 1000)];
    (mode, bounds, accepted, prop::bool::weighted(0.2)).prop_map(
        |(mode, order_max_buffer, accepted, sparse)| LaneConfig {
            mode,
            order_max_buffer,
            accepted_wall: WallMs::new(accepted),
            sparse,
            ..LaneConfig::default()
        },
    )
}

/// What a run has shown, so that a run which shows nothing fails.
const SIGNS: [&str; 8] = [
    "D(", "D*(", "SKIP(", "RST(", " lower", "CONF(", "TWO(", "RESYNC(",
];

fn check(
    name: &str,
    cases: u32,
    configs: impl Strategy<Value = LaneConfig>,
    run: impl Fn(&LaneConfig, &[Op], u64) -> Vec<String>,
) {
    let totals = core::cell::RefCell::new([0_usize; SIGNS.len()]);
    let script = (
        configs,
        proptest::collection::vec(ops(), 1..100),
        any::<u64>(),
    );
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
    .run(&script, |(config, script, habit)| {
        let trace = run(&config, &script, habit);
        for (total, sign) in totals.borrow_mut().iter_mut().zip(SIGNS) {
            *total += trace.iter().filter(|item| item.contains(sign)).count();
        }
        Ok(())
    })
    .unwrap();
    let totals = totals.into_inner();
    assert!(
        totals.iter().all(|total| *total > 50),
        "{name}: {SIGNS:?} {totals:?}"
    );
}

fn step(lane: &mut Growing, now: &mut u64, op: &Op) -> Option<Admit<u32>> {
    match *op {
        Op::Offer { wait, offer } => {
            *now += wait;
            return Some(lane.offer(at(*now), offer, 0));
        }
        Op::Close { wait, epoch, seq } => {
            *now += wait;
            assert!(lane.close(at(*now), epoch, seq), "it was drained");
        }
        Op::Tick { wait } => {
            *now += wait;
            lane.handle_timeout(at(*now));
        }
        Op::Due => {
            if let Some(due) = due(lane) {
                *now = due.max(*now);
                lane.handle_timeout(at(*now));
            }
        }
        Op::Back { by } => lane.handle_timeout(at(now.saturating_sub(by))),
        Op::Progress { wait } => {
            *now += wait;
            lane.replay_progress(at(*now));
        }
        Op::ReplayEnd { wait } => {
            *now += wait;
            lane.replay_end(at(*now));
        }
    }
    None
}

#[test]
fn the_lane_does_what_the_model_does_deadlines_included() {
    check("model", 6000, configs(), |config, script, _| {
        let mut lane = Lane::growing(*config);
        let mut model = Model::new(*config);
        let mut now = 1000;
        for (number, op) in script.iter().enumerate() {
            let admit = step(&mut lane, &mut now, op);
            match *op {
                Op::Offer { offer, .. } => {
                    assert_eq!(admit, Some(model.offer(now, offer)), "{number} {op:?}");
                }
                Op::Close { epoch, seq, .. } => model.close(now, epoch, seq),
                Op::Tick { .. } | Op::Due => model.tick(now),
                Op::Back { by } => model.tick(now.saturating_sub(by)),
                Op::Progress { .. } => model.progress(now),
                Op::ReplayEnd { .. } => model.replay_end(now),
            }
            let items: Vec<String> = core::iter::from_fn(|| lane.poll()).map(show).collect();
            let known = model.out.len() - items.len().min(model.out.len());
            assert_eq!(items, model.out[known..], "{number} {op:?}");
            assert!(!lane.is_ready() && lane.front().is_none());
            assert_eq!(due(&lane), model.due(), "{number} {op:?}");
            assert_eq!(&lane.edges()[..], &model.edges()[..]);
            if matches!(op, Op::Tick { .. } | Op::Due) {
                assert!(due(&lane).is_none_or(|due| due > now));
            }
        }
        model.out
    });
}

#[test]
fn the_trace_is_the_same_for_every_drain_habit_and_every_timer_habit() {
    let latest = configs().prop_map(|config| LaneConfig {
        mode: Mode::LatestOnly,
        ..config
    });
    let every = prop_oneof![4 => configs(), 1 => latest];
    check("habits", 4000, every, |config, script, mut habit| {
        let mut eager = Lane::growing(*config);
        let mut lazy = Lane::growing(*config);
        let (mut trace, mut lazy_trace) = (Vec::new(), Vec::new());
        let (mut now, mut lazy_now) = (1000, 1000);
        for op in script {
            habit = habit.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let admit = step(&mut eager, &mut now, op);
            trace.extend(core::iter::from_fn(|| eager.poll()).map(show));
            // The lazy one skips timers where an input follows, and drains when it must.
            let needs_room = lazy.notes.free(2) < 4 || matches!(op, Op::Close { .. });
            let most = if needs_room {
                usize::MAX
            } else {
                (habit >> 60) as usize % 4
            };
            let drained = core::iter::from_fn(|| lazy.poll()).map(show);
            lazy_trace.extend(drained.take(most));
            match op {
                Op::Tick { .. } | Op::Due if habit & 64 == 0 => lazy_now = now,
                Op::Due => {
                    lazy_now = now;
                    lazy.handle_timeout(at(now));
                }
                _ => {
                    let mut lazy_admit = step(&mut lazy, &mut lazy_now, op);
                    if matches!(lazy_admit, Some(Admit::Busy(_))) {
                        lazy_trace.extend(core::iter::from_fn(|| lazy.poll()).map(show));
                        let Op::Offer { offer, .. } = op else {
                            unreachable!("only offers are busy")
                        };
                        lazy_admit = Some(lazy.offer(at(lazy_now), *offer, 0));
                    }
                    assert_eq!(lazy_admit, admit, "{op:?}");
                }
            }
            assert_eq!(lazy_now, now);
        }
        for lane in [&mut eager, &mut lazy] {
            lane.handle_timeout(at(now + 100_000));
        }
        trace.extend(core::iter::from_fn(|| eager.poll()).map(show));
        lazy_trace.extend(core::iter::from_fn(|| lazy.poll()).map(show));
        assert_eq!(lazy_trace, trace);
        assert_eq!(lazy.stats(), eager.stats());
        trace
    });
}

/// Two of three facts offered to a lane that can be folded are made the next of its epoch.
fn often_next(lane: &Growing, op: &Op) -> Op {
    match (op, lane.fold()) {
        (Op::Offer { wait, offer }, Some(folded)) if offer.seq % 3 != 0 => {
            let Reach { epoch, edge, .. } = folded.reach();
            let offer = Offer {
                epoch,
                seq: edge.saturating_add(1),
                ..*offer
            };
            Op::Offer { wait: *wait, offer }
        }
        _ => op.clone(),
    }
}

/// Offers a fact to a lane that is folded, where the fold can follow it.
fn follow(lane: &mut Growing, now: &mut u64, config: &LaneConfig, op: &Op) -> Option<String> {
    let mut folded = lane.fold()?;
    let Op::Offer { wait, offer } = op else {
        return None;
    };
    let before = folded;
    if !folded.follow(at(*now + wait).mono, offer) {
        assert_eq!(folded, before);
        return None;
    }
    *now += wait;
    lane.renew(*config);
    lane.unfold(&folded);
    Some(show(LaneItem::Fact {
        epoch: offer.epoch,
        seq: offer.seq,
        late: false,
        item: 0,
    }))
}

/// Folds what can be folded and goes on in the same storage. Answers whether it did.
fn refold(lane: &mut Growing, config: &LaneConfig) -> bool {
    let folded = lane.fold();
    if let Some(folded) = folded {
        let covered = |epoch, seq| {
            lane.covers(epoch, seq) == folded.covers(epoch, seq)
                && (seq == 0 || lane.is_told(epoch, seq) == folded.is_told(epoch, seq))
        };
        assert!(
            [0, E1, E2]
                .iter()
                .all(|epoch| (0..40).all(|seq| covered(*epoch, seq)))
        );
        assert_eq!(lane.rest_at(), Some(folded.rest_at()));
        lane.renew(*config);
        lane.unfold(&folded);
    }
    folded.is_some()
}

#[test]
fn a_lane_that_is_folded_whenever_it_can_be_does_what_one_does_that_never_is() {
    let latest = configs().prop_map(|config| LaneConfig {
        mode: Mode::LatestOnly,
        ..config
    });
    let every = prop_oneof![3 => configs(), 1 => latest];
    let (folds, followed) = (core::cell::Cell::new(0), core::cell::Cell::new(0));
    check("folds", 4000, every, |config, script, _| {
        let mut plain = Lane::growing(*config);
        let mut folding = Lane::growing(*config);
        let (mut now, mut same_now) = (1000, 1000);
        let mut trace = Vec::new();
        for (number, op) in script.iter().enumerate() {
            let op = &often_next(&folding, op);
            let admit = step(&mut plain, &mut now, op);
            let items: Vec<String> = core::iter::from_fn(|| plain.poll()).map(show).collect();
            let (same_admit, same) = match follow(&mut folding, &mut same_now, config, op) {
                Some(item) => {
                    followed.set(followed.get() + 1);
                    (Some(Admit::Taken), Vec::from([item]))
                }
                None => (
                    step(&mut folding, &mut same_now, op),
                    core::iter::from_fn(|| folding.poll()).map(show).collect(),
                ),
            };
            assert_eq!(same_admit, admit, "{number} {op:?}");
            assert_eq!(same, items, "{number} {op:?}");
            folds.set(folds.get() + usize::from(refold(&mut folding, config)));
            assert_eq!(due(&folding), due(&plain), "{number} {op:?}");
            assert_eq!(folding.rest_at(), plain.rest_at(), "{number} {op:?}");
            trace.extend(items);
        }
        trace
    });
    assert!(folds.get() > 1000, "{}", folds.get());
    assert!(followed.get() > 100, "{}", followed.get());
}
