//! The rules one by one, and the machine against a model.

use std::vec::Vec;

use super::*;

mod model;
mod property;

type One = Sources<u64, [Slot<u64>; 10]>;

fn at(millis: u64) -> Now {
    Now::new(
        Instant::from_millis(millis),
        WallMs::new(1_000_000 + millis),
    )
}

fn sources(limits: SourceLimits) -> One {
    let mut rng = crate::Seed::new([1; 32]).fork("sources");
    Sources::new([Slot::EMPTY; 10], limits, &mut rng).expect("valid")
}

fn few() -> SourceLimits {
    SourceLimits {
        max_publishers: 8,
        ..SourceLimits::default()
    }
}

fn until(millis: u64) -> SourceAnswer {
    SourceAnswer::Admit {
        until: WallMs::new(1_000_000 + millis),
    }
}

fn lookup(judged: Judgement) -> LookupId {
    match judged {
        Judgement::Ask(lookup) | Judgement::Admit(Some(lookup)) => lookup.id,
        other => panic!("no lookup: {other:?}"),
    }
}

fn admit(sources: &mut One, now: Now, key: u64) {
    let id = lookup(sources.judge(now, &key, |_| true));
    let settled = sources.answer(now, id, until(1 << 30));
    assert_eq!(settled, Some(Settled::Admit));
}

const NEVER: fn(bool) -> bool = |_| panic!("nothing is asked");

#[test]
fn one_lookup_is_in_flight_for_a_key_and_the_others_wait_behind_it() {
    let mut all = sources(few());
    let id = lookup(all.judge(at(0), &1, |known| !known));
    for _ in 1..64 {
        assert_eq!(all.judge(at(1), &1, NEVER), Judgement::Wait(id));
    }
    assert_eq!((all.held(), all.lookups()), (64, 1));
    let full = Judgement::Drop(SourceDrop::HoldFull);
    assert_eq!(all.judge(at(2), &1, NEVER), full);
    all.leave(id);
    assert_eq!(all.judge(at(2), &1, NEVER), Judgement::Wait(id));
    assert_eq!(all.answer(at(3), id, until(99)), Some(Settled::Admit));
    assert_eq!((all.held(), all.lookups()), (0, 0));
    assert_eq!(all.answer(at(3), id, until(99)), None);
}

#[test]
fn a_verdict_ends_by_whichever_clock_says_so_first_and_use_does_not_extend_it() {
    let limits = SourceLimits {
        refresh_margin_ms: 0,
        ..few()
    };
    let mut all = sources(limits);
    admit(&mut all, at(0), 1);
    for now in (0..300_000).step_by(10_000).chain([299_999]) {
        assert_eq!(all.judge(at(now), &1, NEVER), Judgement::Admit(None));
    }
    // The wall was set back, and mono goes on.
    let mono = Now::new(Instant::from_millis(300_000), WallMs::new(1_000_000));
    let again = lookup(all.judge(mono, &1, |known| known));
    assert_eq!(
        all.answer(mono, again, until(1 << 30)),
        Some(Settled::Admit)
    );
    // Mono stood still in a suspend.
    let wall = Now::new(Instant::from_millis(300_001), WallMs::new(1_300_000));
    let again = lookup(all.judge(wall, &1, |known| known));
    // What was seen to be over stays over, whatever the wall does then.
    let back = Now::new(Instant::from_millis(300_002), WallMs::new(1_000_010));
    assert_eq!(all.judge(back, &1, NEVER), Judgement::Wait(again));
}

#[test]
fn a_verdict_never_outlives_its_record() {
    let mut all = sources(few());
    let id = lookup(all.judge(at(0), &1, |_| true));
    assert_eq!(all.answer(at(10), id, until(50)), Some(Settled::Admit));
    assert_eq!(all.verdict(at(49), &1), Some(Ok(())));
    assert_eq!(all.verdict(at(50), &1), None);
    let id = lookup(all.judge(at(50), &1, |_| true));
    let over = Settled::Refuse(SourceRefusal::Expired);
    assert_eq!(all.answer(at(60), id, until(60)), Some(over));
}

#[test]
fn a_refusal_lasts_its_time_and_what_it_refuses_does_not_refresh_it() {
    let mut all = sources(few());
    let id = lookup(all.judge(at(0), &1, |_| true));
    let refusal = SourceRefusal::Withdrawn;
    let settled = all.answer(at(5), id, SourceAnswer::Refuse(refusal));
    assert_eq!(settled, Some(Settled::Refuse(refusal)));
    for now in (5..10_005).step_by(100) {
        assert_eq!(all.judge(at(now), &1, NEVER), Judgement::Refuse(refusal));
    }
    // It is a stranger again.
    let _asked = lookup(all.judge(at(10_005), &1, |known| !known));
}

#[test]
fn what_could_not_be_found_out_is_not_remembered() {
    let mut all = sources(few());
    let id = lookup(all.judge(at(0), &1, |_| true));
    let settled = all.answer(at(1), id, SourceAnswer::Unknown);
    assert_eq!(settled, Some(Settled::Drop(SourceDrop::Undecided)));
    assert!(all.is_empty());
    let id = lookup(all.judge(at(1), &1, |_| true));
    assert_eq!(all.poll_timeout(), Some(at(5001).mono));
    assert_eq!(all.handle_timeout(at(5000)), None);
    let late = (id, Settled::Drop(SourceDrop::Unanswered));
    assert_eq!(all.handle_timeout(at(5001)), Some(late));
    assert!(all.is_empty());
    assert_eq!(all.poll_timeout(), None);
}

#[test]
fn an_answer_at_the_deadline_is_too_late_and_changes_nothing() {
    let mut all = sources(few());
    for (key, tick, in_time) in [(1, 5000 - 1, true), (2, 5000, false), (3, 9000, false)] {
        let id = lookup(all.judge(at(0), &key, |_| true));
        let told = all.answer(at(tick), id, until(1 << 30));
        assert_eq!(told, in_time.then_some(Settled::Admit), "{key}");
        assert_eq!(all.lookups(), usize::from(!in_time));
        let late = Settled::Drop(SourceDrop::Unanswered);
        let due = all.handle_timeout(at(tick));
        assert_eq!(due, (!in_time).then_some((id, late)), "{key}");
        assert_eq!(all.answer(at(0), id, until(1 << 30)), None);
    }
}

#[test]
fn a_verdict_near_its_end_is_refreshed_behind_the_fact() {
    let mut all = sources(few());
    admit(&mut all, at(0), 1);
    assert_eq!(all.judge(at(269_999), &1, NEVER), Judgement::Admit(None));
    // A refresh that finds the window spent costs nothing.
    let spent = all.judge(at(270_000), &1, |known| !known);
    assert_eq!(spent, Judgement::Admit(None));
    let id = lookup(all.judge(at(270_000), &1, |known| known));
    assert_eq!(all.judge(at(270_001), &1, NEVER), Judgement::Admit(None));
    // A failed one leaves the verdict, and is not tried again at once.
    let _failed = all.answer(at(270_002), id, SourceAnswer::Unknown);
    assert_eq!(all.judge(at(275_001), &1, NEVER), Judgement::Admit(None));
    let id = lookup(all.judge(at(275_002), &1, |_| true));
    assert_eq!(
        all.answer(at(275_003), id, until(1 << 30)),
        Some(Settled::Admit)
    );
    assert_eq!(all.judge(at(545_002), &1, NEVER), Judgement::Admit(None));
    // One that refuses replaces it at once.
    let id = lookup(all.judge(at(545_003), &1, |_| true));
    let gone = SourceRefusal::Withdrawn;
    let settled = all.answer(at(545_004), id, SourceAnswer::Refuse(gone));
    assert_eq!(settled, Some(Settled::Refuse(gone)));
    assert_eq!(all.judge(at(545_005), &1, NEVER), Judgement::Refuse(gone));
    assert_eq!(all.admitted(at(545_005)), 0);
}

#[test]
fn an_admitted_verdict_is_never_evicted_for_a_stranger() {
    let mut all = sources(few());
    for key in 0..8 {
        admit(&mut all, at(key), key);
    }
    let full = Judgement::Drop(SourceDrop::VerdictsFull);
    for stranger in 100..200 {
        assert_eq!(all.judge(at(10), &stranger, NEVER), full);
    }
    assert_eq!(all.admitted(at(10)), 8);
    // The oldest that is over makes room.
    let _asked = lookup(all.judge(at(300_000), &100, |known| !known));
    assert_eq!(all.len(), 8);
    assert_eq!(all.judge(at(300_000), &101, NEVER), full);
    let known = lookup(all.judge(at(300_002), &2, |known| known));
    assert_eq!(
        all.answer(at(300_002), known, until(1 << 30)),
        Some(Settled::Admit)
    );
}

#[test]
fn refusals_have_a_table_of_their_own() {
    let mut all = sources(few());
    for key in 0..8 {
        admit(&mut all, at(0), key);
    }
    // All places of verdicts are taken, so strangers need one that is over.
    for stranger in 100..107 {
        let now = at(300_000 + stranger);
        let id = lookup(all.judge(now, &stranger, |_| true));
        let refusal = SourceAnswer::Refuse(SourceRefusal::NotFound);
        assert!(all.answer(now, id, refusal).is_some());
    }
    assert_eq!(all.len(), 7 + 2, "two refusals, a quarter of eight");
    let now = at(300_107);
    assert_eq!(all.verdict(now, &104), None, "the oldest made room");
    let refused = Some(Err(SourceRefusal::NotFound));
    assert_eq!(
        (all.verdict(now, &105), all.verdict(now, &106)),
        (refused, refused)
    );
    for known in 1..8 {
        let _known = lookup(all.judge(now, &known, |known| known));
    }
}

#[test]
fn strangers_that_come_and_go_leave_memory_where_it_was() {
    let mut rng = crate::Seed::new([1; 32]).fork("sources");
    let mut all = Sources::growing(SourceLimits::default(), &mut rng).expect("valid");
    let memory = |all: &Sources<u64, Vec<Slot<u64>>>| all.memory();
    let before = memory(&all);
    let mut most = 0;
    for stranger in 0..10_000 {
        let now = at(stranger * 10);
        let judged = all.judge(now, &stranger, |_| true);
        let id = lookup(judged);
        let found = match stranger % 3 {
            0 => SourceAnswer::Refuse(SourceRefusal::NotFound),
            1 => SourceAnswer::Unknown,
            _ => until(stranger * 10 + 100),
        };
        assert!(all.answer(now, id, found).is_some());
        most = most.max(memory(&all));
        if stranger % 3000 == 0 {
            all.sweep(now, 1 << 16);
        }
    }
    assert!(most <= SourceLimits::default().slots() * size_of::<Slot<u64>>());
    all.sweep(at(1_000_000), 1 << 16);
    assert!(all.is_empty());
    assert!(
        memory(&all) <= before + 8 * size_of::<Slot<u64>>(),
        "{}",
        memory(&all)
    );
}

#[test]
fn a_window_keeps_half_for_whoever_was_admitted_and_half_of_the_rest_from_each_link() {
    let limits = SourceLimits::default();
    let mut window = Window::new([None; 3]);
    let mut took = |now: u64, known, link| {
        let one = |_: &u32| window.take(Instant::from_millis(now), &limits, known, link);
        (0..100).filter(one).count()
    };
    assert_eq!(took(5, false, 'a'), 16);
    assert_eq!(took(5, false, 'b'), 16);
    assert_eq!(took(5, false, 'c'), 0, "strangers have their half");
    assert_eq!(took(5, true, 'c'), 32);
    assert_eq!(took(1004, true, 'd'), 0);
    assert_eq!(took(1005, false, 'd'), 16, "another window");
    assert_eq!(took(1005, true, 'd'), 48);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let fault = |change: fn(&mut SourceLimits)| {
        let mut limits = SourceLimits::default();
        change(&mut limits);
        let mut rng = crate::Seed::new([1; 32]).fork("sources");
        let told = Sources::<u64, _>::growing(limits, &mut rng).err();
        assert_eq!(
            told,
            Sources::new([Slot::<u64>::EMPTY; 1], limits, &mut rng).err()
        );
        told.map(|fault| fault.setting)
    };
    assert_eq!(fault(|_| {}), None);
    assert_eq!(fault(|limits| limits.refusal_ttl_ms = 0), None);
    assert_eq!(fault(|limits| limits.refresh_margin_ms = 0), None);
    assert_eq!(
        fault(|limits| limits.max_publishers = 0),
        Some("max_publishers")
    );
    assert_eq!(
        fault(|limits| limits.max_publishers = usize::MAX),
        Some("max_publishers")
    );
    assert_eq!(
        fault(|limits| limits.held_per_key = 0),
        Some("held_per_key")
    );
    assert_eq!(
        fault(|limits| limits.lookups_per_window = 0),
        Some("lookups_per_window")
    );
    assert_eq!(fault(|limits| limits.window_ms = 0), Some("window_ms"));
    assert_eq!(
        fault(|limits| limits.cache_ttl_ms = 0),
        Some("cache_ttl_ms")
    );
    assert_eq!(
        fault(|limits| limits.cache_ttl_ms = u64::MAX),
        Some("cache_ttl_ms")
    );
    assert_eq!(
        fault(|limits| limits.refresh_margin_ms = 300_000),
        Some("refresh_margin_ms")
    );
    assert_eq!(
        fault(|limits| limits.refusal_ttl_ms = u64::MAX),
        Some("refusal_ttl_ms")
    );
    assert_eq!(
        fault(|limits| limits.lookup_timeout_ms = 0),
        Some("lookup_timeout_ms")
    );
}

#[test]
fn slots_grow_and_shrink_and_every_key_is_found() {
    let limits = SourceLimits {
        max_publishers: 500,
        ..SourceLimits::default()
    };
    let mut rng = crate::Seed::new([2; 32]).fork("sources");
    let mut all = Sources::growing(limits, &mut rng).expect("valid");
    for round in 0..3 {
        let from = round * 2_000_000;
        for key in 0..500_u64 {
            let id = lookup(all.judge(at(from + key), &key, |_| true));
            assert!(all.answer(at(from + key), id, until(from + 5000)).is_some());
        }
        let found = (0..500).filter(|key| all.verdict(at(from + 600), key).is_some());
        assert_eq!(found.count(), 500);
        all.sweep(at(from + 1_000_000), 400);
        let left: Vec<u64> = (0..500)
            .filter(|key| all.slots.find(key).is_some())
            .collect();
        assert_eq!(left, (400..500).collect::<Vec<u64>>());
        all.sweep(at(from + 1_000_000), 400);
        assert!(all.is_empty());
    }
}
