//! What was before a lane was joined, and nobody was told of: it is never taken for a copy in silence.

use super::*;

fn copy(epoch: u64, seq: u64) -> Offer {
    Offer {
        copy_possible: true,
        ..fact(epoch, seq)
    }
}

/// A lane that joined E1 at 7.
fn joined() -> Growing {
    let mut joined = lane(Mode::Ordered);
    taken(&mut joined, 0, E1, 7);
    assert_eq!(tick(&mut joined, 250), "D(e1:7)");
    joined
}

/// A lane that followed so many epochs, the first of them joined at 7.
fn after(epochs: u64) -> Growing {
    let mut lane = joined();
    for n in 1..epochs {
        taken(&mut lane, 1000 * n, E1 + n, 1);
    }
    lane
}

#[test]
fn an_epoch_that_was_replaced_knows_what_nobody_was_told_of_when_it_comes_back() {
    let mut lane = after(3);
    assert!(!lane.is_told(E1, 7), "others took its place");
    // Dedup gave 7 up early, so that all below may be copies as well, if that is all that is known.
    assert_eq!(
        offered(&mut lane, 4000, copy(E1, 3)),
        (Admit::Taken, String::from("RST(e1 lower) D*(e1:3)"))
    );
    for seq in [3, 7] {
        assert_eq!(
            offered(&mut lane, 4001, copy(E1, seq)).0,
            Admit::Duplicate(0)
        );
    }
    assert!(lane.is_told(E1, 3) && !lane.is_told(E1, 4));
}

#[test]
fn an_epoch_that_was_replaced_knows_what_an_earlier_run_delivered_when_it_comes_back() {
    let mut lane = lane(Mode::Ordered);
    assert!(lane.resume(E1, 7, &[(1, 2)]));
    for n in 1..3 {
        taken(&mut lane, 1000 * n, E1 + n, 1);
    }
    assert_eq!(taken(&mut lane, 4000, E1, 2), "RST(e1 lower) D*(e1:2)");
    let known = offered(&mut lane, 4001, fact(E1, 3)).0;
    assert_eq!(known, Admit::Duplicate(0));
}

#[test]
fn an_epoch_that_was_forgotten_begins_anew_behind_a_resynced_and_what_may_be_a_copy_is_one() {
    let mut lane = after(4);
    assert_eq!(
        offered(&mut lane, 5000, copy(E1, 5)),
        (Admit::Duplicate(0), String::from("RESYNC(e1)"))
    );
    assert_eq!(taken(&mut lane, 5001, E1, 8), "");
    // It is joined where the copy is, whose place is closed; what is between did not come.
    assert_eq!(tick(&mut lane, 5251), "SKIP(e1:6..7) D*(e1:8)");
    assert_eq!(offered(&mut lane, 5252, copy(E1, 7)).0, Admit::Duplicate(0));
    assert_eq!(taken(&mut lane, 5253, E1, 4), "D*(e1:4)", "it was unseen");
    assert!(lane.is_told(E1, 1), "by the notice");
    // One above all that were forgotten is as new as any.
    assert_eq!(taken(&mut lane, 6000, E3, 1), "RST(e3) D(e3:1)");
}

#[test]
fn an_epoch_that_begins_anew_remains_so_while_others_take_its_place() {
    let mut lane = after(4);
    taken(&mut lane, 5000, E1, 8);
    assert_eq!(tick(&mut lane, 5250), "D*(e1:8)");
    for (ms, n) in [(6000, 1), (6001, 2)] {
        taken(&mut lane, ms, E1 + n, 1);
    }
    assert_eq!(
        offered(&mut lane, 7000, copy(E1, 9)),
        (Admit::Duplicate(0), String::from("RST(e1 lower)"))
    );
}

#[test]
fn what_finds_no_room_among_the_untold_costs_what_is_known_of_them_and_is_told_once() {
    let mut lane = lane(Mode::Ordered);
    taken(&mut lane, 0, E1, 101);
    tick(&mut lane, 250);
    let mut told = Vec::new();
    for seq in (2..=60).step_by(2) {
        let out = taken(&mut lane, 300, E1, seq);
        told.extend(out.contains("RESYNC").then_some(seq));
        assert!(out.ends_with(&format!("D*(e1:{seq})")), "{out}");
    }
    // 15 of them split one range into 16.
    assert_eq!(told, [32]);
    for seq in [4, 31, 60, 99] {
        let known = offered(&mut lane, 301, copy(E1, seq)).0;
        assert_eq!(known, Admit::Duplicate(0), "{seq}");
    }
    assert_eq!(taken(&mut lane, 302, E1, 99), "D*(e1:99)", "it was unseen");
}

#[test]
fn where_no_notice_fits_the_last_of_the_untold_wait() {
    let mut lane = lane(Mode::Ordered);
    taken(&mut lane, 0, E1, 101);
    tick(&mut lane, 250);
    for seq in (2..=30).step_by(2) {
        taken(&mut lane, 300, E1, seq);
    }
    let mut ms = 301;
    loop {
        assert_eq!(lane.offer(at(ms), fact(E1, 101), 0), Admit::Conflict(0));
        if !lane.has_notes(1) {
            break;
        }
        ms += 1000;
        lane.handle_timeout(at(ms));
    }
    assert!(lane.has_room(E1, 102) && !lane.has_room(E1, 50));
    assert_eq!(lane.offer(at(ms), fact(E1, 50), 0), Admit::Busy(0));
    assert_eq!(drain(&mut lane).matches("CONF").count(), 5);
    assert_eq!(taken(&mut lane, ms, E1, 50), "RESYNC(e1) D*(e1:50)");
}

#[test]
fn a_record_keeps_what_nobody_was_told_of() {
    let mut first = joined();
    taken(&mut first, 1000, E2, 4);
    tick(&mut first, 1250);
    let resting = first.rest(at(601_000)).unwrap();
    assert!(resting.is_told(E1, 7) && !resting.is_told(E1, 6));
    assert!(resting.is_told(E2, 4) && !resting.is_told(E2, 3));
    let untold = |reach: &Option<Reach>| reach.map(|reach| reach.untold.as_slice().to_vec());
    let reaches = resting.reaches();
    assert_eq!(
        reaches.iter().map(untold).collect::<Vec<_>>(),
        [Some([(1, 3)].to_vec()), Some([(1, 6)].to_vec())]
    );
    let mut woken = lane(Mode::Ordered);
    woken.wake(at(601_001), resting);
    assert!(!woken.is_told(E1, 6) && !woken.is_told(E2, 3));
    for (epoch, seq) in [(E1, 6), (E2, 1)] {
        assert_eq!(
            offered(&mut woken, 601_002, copy(epoch, seq)).0,
            Admit::Taken
        );
        assert_eq!(
            offered(&mut woken, 601_003, copy(epoch, seq)).0,
            Admit::Duplicate(0)
        );
    }
}

#[test]
fn a_record_keeps_which_epoch_an_earlier_run_delivered() {
    let mut first = lane(Mode::Ordered);
    assert!(first.resume(E1, 7, &[]));
    taken(&mut first, 1000, E2, 1);
    let resting = first.rest(at(601_000)).unwrap();
    let mut woken = lane(Mode::Ordered);
    woken.wake(at(601_001), resting);
    let known = offered(&mut woken, 601_002, fact(E1, 6)).0;
    assert_eq!(known, Admit::Duplicate(0), "the earlier run's");
    let two = offered(&mut woken, 601_002, fact(E2, 1)).0;
    assert_eq!(two, Admit::Conflict(0), "this run's");
}

#[test]
fn what_a_record_cannot_say_is_kept_until_all_it_answers_for_has_expired() {
    let mut split = joined();
    taken(&mut split, 300, E1, 4);
    for mut lane in [split, after(3)] {
        let heard = lane.heard;
        assert_eq!(lane.rest(at(700_000)), None);
        // The last life ends at 900,000.
        assert_eq!(lane.rest_at(), Some(at(900_001).mono));
        let resting = lane.rest(at(900_001)).expect("nothing is left to know");
        assert!(resting.is_expired(at(900_001)));
        assert!(
            resting.is_expired(Now::new(at(900_001).mono, at(1).wall)),
            "for good"
        );
        assert_eq!(lane.heard, heard);
    }
}

#[test]
fn what_is_dropped_below_the_join_is_told_of_once_and_a_copy_that_lives_is_late() {
    let mut lane = joined();
    assert!(!lane.is_told(E1, 3));
    assert!(lane.close(at(300), E1, 3));
    assert!(lane.is_told(E1, 3) && !lane.is_told(E1, 2));
    assert_eq!(taken(&mut lane, 301, E1, 3), "D*(e1:3)");
}

#[test]
fn what_a_run_heard_only_from_its_middle_is_late_in_the_next_one_too() {
    let mut first = joined();
    taken(&mut first, 300, E1, 4);
    let reach = first.reaches()[0].expect("it was followed");
    assert_eq!(reach.untold.as_slice(), [(1, 3), (5, 6)]);
    let mut next = lane(Mode::Ordered);
    assert!(next.resume(E1, reach.edge, reach.untold.as_slice()));
    for (seq, told) in [(3, false), (4, true), (5, false), (7, true), (8, false)] {
        assert_eq!(next.is_told(E1, seq), told, "{seq}");
    }
    for seq in [4, 7] {
        let known = offered(&mut next, 0, fact(E1, seq)).0;
        assert_eq!(known, Admit::Duplicate(0), "{seq}");
    }
    assert_eq!(taken(&mut next, 1, E1, 8), "D(e1:8)");
    assert_eq!(taken(&mut next, 2, E1, 5), "D*(e1:5)");
    // What is one range from 1 folds, and knows as much.
    assert!(next.fold().is_none());
    assert_eq!(taken(&mut next, 3, E1, 6), "D*(e1:6)");
    let folded = next.fold().expect("one range");
    assert!(!folded.is_told(E1, 3) && folded.is_told(E1, 4));
    assert_eq!(folded.reach().untold.as_slice(), [(1, 3)]);
    next.renew(next.config);
    next.unfold(&folded);
    let known = offered(&mut next, 4, fact(E1, 4)).0;
    assert_eq!(known, Admit::Duplicate(0));
    assert_eq!(taken(&mut next, 5, E1, 3), "D*(e1:3)");
}
