use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

fn newer(restarted: Option<bool>) -> Judged {
    Judged::Newer { restarted }
}

#[test]
fn newer_only_and_superseded_ones_are_counted() {
    let mut latest = Latest::default();
    assert_eq!(latest.judge(at(0), 7, 5, false), newer(None));
    assert_eq!(latest.judge(at(0), 7, 900_000, false), newer(None));
    assert_eq!(latest.judge(at(0), 7, 6, false), Judged::Superseded);
    assert_eq!(latest.judge(at(0), 7, 900_000, false), Judged::Same);
    assert_eq!(latest.judge(at(0), 8, 1, true), newer(Some(true)));
    assert_eq!((latest.superseded(), latest.current()), (1, Some((8, 1))));
}

/// Epoch 8 was heard at 0 and not again.
fn silent() -> Latest {
    let mut latest = Latest::default();
    assert_eq!(latest.judge(at(0), 8, 40, false), newer(None));
    latest
}

#[test]
fn a_lower_epoch_takes_over_after_three_of_its_facts_and_10_s_without_the_greater_one() {
    let mut latest = silent();
    assert_eq!(latest.judge(at(1), 7, 1, false), Judged::Superseded);
    assert_eq!(latest.judge(at(2), 7, 2, false), Judged::Superseded);
    assert_eq!(latest.judge(at(9), 7, 3, false), Judged::Superseded);
    assert_eq!(latest.judge(at(10), 7, 4, false), newer(Some(false)));
    assert_eq!(latest.judge(at(10), 7, 5, false), newer(None));
    assert_eq!(latest.superseded(), 3);

    let mut latest = silent();
    assert_eq!(latest.judge(at(11), 7, 1, false), Judged::Superseded);
    assert_eq!(latest.judge(at(12), 7, 2, false), Judged::Superseded);
    assert_eq!(
        latest.judge(at(13), 7, 3, false),
        newer(Some(false)),
        "the third itself"
    );
}

#[test]
fn the_greater_epoch_need_only_be_heard_to_stay() {
    let mut latest = silent();
    for second in 1..30 {
        assert_eq!(
            latest.judge(at(second), 7, second, false),
            Judged::Superseded
        );
        if second % 9 == 0 {
            assert_eq!(latest.judge(at(second), 8, 39, false), Judged::Superseded);
        }
    }
}

#[test]
fn replayed_facts_never_make_a_lower_epoch_take_over() {
    let mut latest = silent();
    for second in 11..20 {
        assert_eq!(
            latest.judge(at(second), 7, second, true),
            Judged::Superseded
        );
    }
}

#[test]
fn the_fact_that_takes_over_is_the_newest_of_its_epoch() {
    let mut latest = silent();
    assert_eq!(latest.judge(at(11), 7, 5, false), Judged::Superseded);
    assert_eq!(latest.judge(at(12), 7, 6, false), Judged::Superseded);
    assert_eq!(latest.judge(at(13), 7, 4, false), Judged::Superseded);
    assert_eq!(latest.judge(at(14), 7, 7, false), newer(Some(false)));
}

#[test]
fn neither_epoch_moves_back_when_they_take_turns() {
    let mut latest = silent();
    for (second, seq) in [(11, 1), (12, 2), (13, 3)] {
        assert_ne!(latest.judge(at(second), 7, seq, false), Judged::Same);
    }
    assert_eq!(latest.current(), Some((7, 3)));
    assert_eq!(latest.judge(at(14), 8, 39, false), Judged::Superseded);
    assert_eq!(latest.judge(at(14), 8, 40, false), Judged::Same);
    assert_eq!(latest.judge(at(14), 8, 41, false), newer(Some(true)));
    assert_eq!(latest.judge(at(15), 7, 3, false), Judged::Same);
    assert!(latest.is_covered(7, 3) && latest.is_covered(8, 41) && !latest.is_covered(7, 4));
}

#[test]
fn an_epoch_that_was_replaced_does_not_bring_again_what_it_brought() {
    let mut latest = silent();
    assert_eq!(latest.judge(at(1), 9, 1, false), newer(Some(true)));
    assert_eq!(latest.judge(at(2), 10, 1, false), newer(Some(true)));
    // All of it was here, and it is long silent since: nothing of it comes again.
    for seq in 30..=39 {
        assert_eq!(latest.judge(at(60), 8, seq, false), Judged::Superseded);
    }
    assert_eq!(latest.judge(at(60), 8, 40, false), Judged::Same);
    assert!(latest.is_covered(8, 40) && latest.is_covered(9, 1) && !latest.is_covered(8, 41));
    // What is new of it takes over, and then the one between is the one before the last.
    assert_eq!(latest.judge(at(61), 8, 41, false), newer(Some(false)));
    assert!(latest.is_covered(9, 1) && latest.is_covered(10, 1) && latest.is_covered(8, 41));
    assert_eq!(latest.judge(at(62), 9, 1, false), Judged::Same);
}

#[test]
fn a_still_lower_epoch_does_not_disturb_the_rival() {
    let mut latest = silent();
    assert_eq!(latest.judge(at(11), 7, 1, false), Judged::Superseded);
    assert_eq!(latest.judge(at(12), 7, 2, false), Judged::Superseded);
    assert_eq!(latest.judge(at(12), 6, 1, false), Judged::Superseded);
    assert_eq!(latest.judge(at(13), 7, 3, false), newer(Some(false)));
}

/// The rule read off the whole history: (when, epoch, seq, replayed, delivered).
fn plainly(
    history: &[(u64, u64, u64, bool, bool)],
    now: u64,
    epoch: u64,
    seq: u64,
    replayed: bool,
) -> Judged {
    let delivered: Vec<_> = history.iter().filter(|fact| fact.4).collect();
    let Some(last) = delivered.last() else {
        return newer(None);
    };
    // Where each of the two epochs delivered last was left.
    let left = delivered.iter().rev().find(|fact| fact.1 != last.1);
    for known in [Some(last), left].into_iter().flatten() {
        if known.1 == epoch && seq <= known.2 {
            return if seq == known.2 {
                Judged::Same
            } else {
                Judged::Superseded
            };
        }
    }
    if epoch >= last.1 {
        return newer((epoch > last.1).then_some(true));
    }
    let before = history
        .iter()
        .rposition(|fact| fact.4 && fact.1 != last.1)
        .map_or(0, |at| at + 1);
    let since = before + history[before..].iter().position(|fact| fact.4).unwrap();
    let rivals = history[since..]
        .iter()
        .filter(|fact| fact.1 == epoch && !fact.3);
    let newest = rivals.clone().all(|rival| rival.2 <= seq);
    let heard = history
        .iter()
        .filter(|fact| fact.1 == last.1)
        .map(|fact| fact.0)
        .max()
        .unwrap();
    if !replayed && newest && rivals.count() >= 2 && now >= heard + 10 {
        return newer(Some(false));
    }
    Judged::Superseded
}

#[test]
fn two_epochs_in_any_order_are_judged_as_the_history_says() {
    use proptest::test_runner::{Config, TestRunner};
    let fact = (0..6_u64, 7..9_u64, 0..9_u64, any::<bool>());
    let script = proptest::collection::vec(fact, 1..40);
    let taken_over = core::cell::Cell::new(0);
    TestRunner::new(Config {
        cases: 5000,
        failure_persistence: None,
        ..Config::default()
    })
    .run(&script, |script| {
        let (mut latest, mut history, mut now) = (Latest::default(), Vec::new(), 0);
        for (wait, epoch, seq, replayed) in script {
            now += wait;
            let judged = latest.judge(at(now), epoch, seq, replayed);
            assert_eq!(judged, plainly(&history, now, epoch, seq, replayed));
            let delivered = matches!(judged, Judged::Newer { .. });
            taken_over.set(taken_over.get() + u32::from(judged == newer(Some(false))));
            history.push((now, epoch, seq, replayed, delivered));
        }
        Ok(())
    })
    .unwrap();
    assert!(taken_over.get() > 100);
}
