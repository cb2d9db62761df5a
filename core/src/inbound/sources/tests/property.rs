//! Random scripts on the machine and on the model.

use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_oneof, proptest};
use proptest::strategy::ValueTree as _;

use super::model::{Model, Said, Windows};
use super::*;

#[derive(Clone, Debug)]
enum Op {
    Judge { key: u64, link: u8 },
    Answer { which: usize, found: u8, left: u64 },
    Leave { which: usize },
    Step { millis: i64 },
    Due,
    Sweep,
}

fn ops() -> impl Strategy<Value = (u64, Op)> {
    let op = prop_oneof![
        12 => (0..12_u64, 0..4_u8).prop_map(|(key, link)| Op::Judge { key, link }),
        6 => (0..8_usize, 0..8_u8, 0..2000_u64).prop_map(|(which, found, left)| Op::Answer { which, found, left }),
        1 => (0..8_usize).prop_map(|which| Op::Leave { which }),
        1 => (-300..600_i64).prop_map(|millis| Op::Step { millis }),
        2 => Just(Op::Due),
        1 => Just(Op::Sweep),
    ];
    (
        prop_oneof![3 => 0..4_u64, 2 => 0..60_u64, 1 => 0..500_u64],
        op,
    )
}

fn limits() -> impl Strategy<Value = SourceLimits> {
    let rates = (1..7_usize, 1..4_u32, 1..9_u32, 1..100_u64);
    (rates, 1..2000_u64, 0..2000_u64, 0..600_u64, 1..400_u64).prop_map(
        |(rates, ttl, margin, refusal, timeout)| SourceLimits {
            max_publishers: rates.0,
            held_per_key: rates.1,
            lookups_per_window: rates.2,
            window_ms: rates.3,
            cache_ttl_ms: ttl,
            refresh_margin_ms: margin % ttl,
            refusal_ttl_ms: refusal,
            lookup_timeout_ms: timeout,
        },
    )
}

fn said(judged: Judgement) -> Said {
    let of = |lookup: Lookup| (lookup.id.turn, lookup.deadline.as_micros() / 1000);
    match judged {
        Judgement::Admit(lookup) => Said::Admit(lookup.map(of)),
        Judgement::Ask(lookup) => Said::Ask(of(lookup).0, of(lookup).1),
        Judgement::Drop(reason) => Said::Drop(reason),
        Judgement::Refuse(reason) => Said::Refuse(reason),
        Judgement::Wait(id) => Said::Wait(id.turn),
    }
}

/// Runs a script on both and compares all that can be seen; counts what occurred.
fn compare<S>(
    mut sources: Sources<u64, S>,
    limits: SourceLimits,
    room: [usize; 2],
    script: &[(u64, Op)],
) -> [u64; 10]
where
    S: AsRef<[Slot<u64>]> + AsMut<[Slot<u64>]>,
{
    let mut model = Model::new(limits, room[0], room[1]);
    let (mut window, mut windows) = (Window::new([None; 3]), Windows::default());
    let (mut mono, mut wall) = (1000, 50_000_u64);
    let mut open: Vec<LookupId> = Vec::new();
    let mut seen = [0; 10];
    for (step, (wait, op)) in script.iter().enumerate() {
        (mono, wall) = (mono + wait, wall + wait);
        let now = Now::new(Instant::from_millis(mono), WallMs::new(wall));
        match *op {
            Op::Judge { key, link } => {
                let before = sources.verdict(now, &key);
                assert_eq!(before, model.verdict(mono, wall, key), "{step} {op:?}");
                let stops = sources.stops(now, &key, |known| {
                    window.has(now.mono, &limits, known, link)
                });
                let judged = sources.judge(now, &key, |known| {
                    window.take(now.mono, &limits, known, link)
                });
                let stopped =
                    matches!(judged, Judgement::Drop(_) | Judgement::Refuse(_)).then_some(judged);
                assert_eq!(stops, stopped, "{step} {op:?}");
                let want = model.judge(mono, wall, key, |known| {
                    windows.take(mono, &limits, 3, known, link)
                });
                assert_eq!(said(judged), want, "{step} {op:?}");
                match judged {
                    Judgement::Ask(lookup) | Judgement::Admit(Some(lookup)) => open.push(lookup.id),
                    _ => {}
                }
                let kind = match judged {
                    Judgement::Admit(None) => 0,
                    Judgement::Admit(Some(_)) => 1,
                    Judgement::Ask(_) => 2,
                    Judgement::Drop(SourceDrop::HoldFull) => 3,
                    Judgement::Drop(SourceDrop::VerdictsFull) => 4,
                    Judgement::Drop(_) => 5,
                    Judgement::Refuse(_) => 6,
                    Judgement::Wait(_) => 7,
                };
                seen[kind] += 1;
            }
            Op::Answer { which, found, left } => {
                let Some(id) = open.get(which % open.len().max(1)).copied() else {
                    continue;
                };
                let answer = match found {
                    0..4 => SourceAnswer::Admit {
                        until: WallMs::new(wall + left),
                    },
                    4 => SourceAnswer::Refuse(SourceRefusal::NotFound),
                    5 => SourceAnswer::Refuse(SourceRefusal::Withdrawn),
                    _ => SourceAnswer::Unknown,
                };
                let settled = sources.answer(now, id, answer);
                assert_eq!(
                    settled,
                    model.answer(mono, wall, id.turn, answer),
                    "{step} {op:?}"
                );
                assert_eq!(sources.answer(now, id, answer), None, "once");
                open.retain(|other| *other != id);
                seen[8] += u64::from(settled.is_some());
            }
            Op::Leave { which } => {
                let Some(id) = open.get(which % open.len().max(1)).copied() else {
                    continue;
                };
                sources.leave(id);
                model.leave(id.turn);
            }
            Op::Step { millis } => wall = wall.saturating_add_signed(millis),
            Op::Due => {
                loop {
                    let settled = sources.handle_timeout(now);
                    let told = settled.map(|(id, settled)| (id.turn, settled));
                    assert_eq!(told, model.timeout(mono, wall), "{step} {op:?}");
                    let Some((id, _)) = settled else { break };
                    // Now and then a late answer comes.
                    open.retain(|other| *other != id || id.turn % 8 == 0);
                    seen[9] += 1;
                }
                assert!(sources.poll_timeout().is_none_or(|due| due > now.mono));
            }
            Op::Sweep => {
                sources.sweep(now, usize::MAX);
                model.sweep(mono, wall);
            }
        }
        let due = sources.poll_timeout().map(|due| due.as_micros() / 1000);
        assert_eq!(due, model.due(), "{step} {op:?}");
        let now = Now::new(Instant::from_millis(mono), WallMs::new(wall));
        let counts = [
            sources.len(),
            sources.lookups(),
            sources.held(),
            sources.admitted(now),
        ];
        assert_eq!(counts, model.counts(mono, wall), "{step} {op:?}");
        assert!(sources.len() <= sources.capacity());
    }
    seen
}

fn rng() -> Rng {
    crate::Seed::new([5; 32]).fork("sources")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn it_does_what_the_plain_list_does(limits in limits(), script in prop::collection::vec(ops(), 1..200)) {
        let room = [limits.max_publishers, limits.max_publishers.div_ceil(4)];
        compare(Sources::growing(limits, &mut rng()).expect("valid"), limits, room, &script);
        let few = limits.slots().min(5);
        let room = if few == limits.slots() { room } else { [4, 1] };
        compare(Sources::new([Slot::EMPTY; 5], limits, &mut rng()).expect("valid"), limits, room, &script);
        compare(Sources::new([Slot::EMPTY; 1], limits, &mut rng()).expect("valid"), limits, [1, 0], &script);
    }
}

#[test]
fn the_scripts_come_by_everything() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = [0; 10];
    for _ in 0..200 {
        let script = prop::collection::vec(ops(), 200)
            .new_tree(&mut runner)
            .expect("drawn")
            .current();
        let limits = limits().new_tree(&mut runner).expect("drawn").current();
        let room = [limits.max_publishers, limits.max_publishers.div_ceil(4)];
        let sources = Sources::growing(limits, &mut rng()).expect("valid");
        for (all, one) in seen.iter_mut().zip(compare(sources, limits, room, &script)) {
            *all += one;
        }
    }
    assert!(seen.iter().all(|count| *count > 40), "{seen:?}");
}
