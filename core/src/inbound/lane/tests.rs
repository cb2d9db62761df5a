use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;

mod model;
mod property;
mod untold;

type Growing = Lane<u32, Vec<Option<Slot<u32>>>>;

const E1: u64 = 1_700_000_000_000_000;
const E2: u64 = E1 + 1_000_000;
const E3: u64 = E2 + 1_000_000;

fn at(ms: u64) -> Now {
    Now::new(
        Instant::from_millis(ms),
        WallMs::new(1_700_000_000_000 + ms),
    )
}

fn fact(epoch: u64, seq: u64) -> Offer {
    Offer {
        epoch,
        seq,
        until: WallMs::new(1_700_000_900_000),
        replayed: false,
        anycast: false,
        copy_possible: false,
    }
}

fn lane(mode: Mode) -> Growing {
    // Accepted long after E1, E2 and E3 began, so that they are joined in the middle.
    let accepted_wall = WallMs::new(1_800_000_000_000);
    Lane::growing(LaneConfig {
        mode,
        accepted_wall,
        ..LaneConfig::default()
    })
}

/// Epochs by name, everything else as in the cases' notation.
fn show(item: LaneItem<u32>) -> String {
    let e = |epoch: u64| match epoch {
        E1 => String::from("e1"),
        E2 => String::from("e2"),
        E3 => String::from("e3"),
        other => format!("{other}"),
    };
    match item {
        LaneItem::Conflict {
            epoch,
            first,
            last,
            count,
        } => {
            format!("CONF({}:{first}..{last} x{count})", e(epoch))
        }
        LaneItem::Fact {
            epoch, seq, late, ..
        } => {
            format!("D{}({}:{seq})", if late { "*" } else { "" }, e(epoch))
        }
        LaneItem::Restarted { epoch, greater } => {
            format!("RST({}{})", e(epoch), if greater { "" } else { " lower" })
        }
        LaneItem::Resynced { epoch } => format!("RESYNC({})", e(epoch)),
        LaneItem::Skipped { epoch, first, last } => format!("SKIP({}:{first}..{last})", e(epoch)),
        LaneItem::TwoCounters { epoch } => format!("TWO({})", e(epoch)),
    }
}

fn drain(lane: &mut Growing) -> String {
    let mut out = Vec::new();
    while let Some(item) = lane.poll() {
        out.push(show(item));
    }
    out.join(" ")
}

fn taken(lane: &mut Growing, ms: u64, epoch: u64, seq: u64) -> String {
    assert_eq!(
        lane.offer(at(ms), fact(epoch, seq), 0),
        Admit::Taken,
        "{epoch}:{seq} at {ms}"
    );
    drain(lane)
}

fn tick(lane: &mut Growing, ms: u64) -> String {
    lane.handle_timeout(at(ms));
    drain(lane)
}

fn due(lane: &Growing) -> Option<u64> {
    lane.poll_timeout().map(|due| due.as_micros() / 1000)
}

#[test]
fn br_25_order_does_not_follow_the_faster_link() {
    let mut ordered = lane(Mode::Ordered);
    assert_eq!(taken(&mut ordered, 0, E1, 1), "D(e1:1)");
    assert_eq!(taken(&mut ordered, 1, E1, 3), "");
    assert_eq!(taken(&mut ordered, 3, E1, 2), "D(e1:2) D(e1:3)");

    let mut latest = lane(Mode::LatestOnly);
    assert_eq!(taken(&mut latest, 0, E1, 1), "D(e1:1)");
    assert_eq!(taken(&mut latest, 1, E1, 3), "D(e1:3)");
    assert_eq!(latest.offer(at(3), fact(E1, 2), 0), Admit::Superseded(0));
    assert_eq!((drain(&mut latest).as_str(), latest.superseded()), ("", 1));

    let mut arrives = lane(Mode::AsArrives);
    assert_eq!(taken(&mut arrives, 0, E1, 1), "D(e1:1)");
    assert_eq!(taken(&mut arrives, 1, E1, 3), "D(e1:3)");
    assert_eq!(taken(&mut arrives, 3, E1, 2), "D(e1:2)");
    assert_eq!(due(&arrives), None);
}

#[test]
fn br_26_a_skipped_fact_that_comes_is_late_once() {
    let mut lane = lane(Mode::Ordered);
    assert_eq!(taken(&mut lane, 0, E1, 1), "D(e1:1)");
    assert_eq!(taken(&mut lane, 1, E1, 3), "");
    assert_eq!(due(&lane), Some(251));
    assert_eq!(tick(&mut lane, 250), "");
    assert_eq!(tick(&mut lane, 251), "SKIP(e1:2..2) D(e1:3)");
    assert_eq!(taken(&mut lane, 300, E1, 2), "D*(e1:2)");
    let copy = Offer {
        copy_possible: true,
        ..fact(E1, 2)
    };
    assert_eq!(lane.offer(at(301), copy, 0), Admit::Duplicate(0));
    assert_eq!(drain(&mut lane), "");
    let stats = lane.stats();
    assert_eq!((stats.late, stats.skips, stats.duplicates), (1, 1, 1));
}

#[test]
fn br_28_a_restart_at_one_is_heard_in_every_mode() {
    for mode in [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives] {
        let mut lane = lane(mode);
        taken(&mut lane, 0, E1, 5_000_000);
        tick(&mut lane, 250);
        assert_eq!(taken(&mut lane, 300, E2, 1), "RST(e2) D(e2:1)", "{mode:?}");
        assert_eq!(taken(&mut lane, 301, E2, 2), "D(e2:2)");
        assert_eq!(lane.stats().restarts, 1);
    }
}

fn joined_at(wall_ms: u64) -> Growing {
    Lane::growing(LaneConfig {
        accepted_wall: WallMs::new(wall_ms),
        ..LaneConfig::default()
    })
}

fn offered(lane: &mut Growing, ms: u64, offer: Offer) -> (Admit<u32>, String) {
    let admit = lane.offer(at(ms), offer, 0);
    (admit, drain(lane))
}

#[test]
fn an_epoch_that_began_more_than_5_minutes_after_the_acceptance_starts_at_1() {
    let began_ms = E1 / 1000;
    let mut lane = joined_at(began_ms - 300_000 - 1);
    assert_eq!(taken(&mut lane, 0, E1, 3), "");
    assert_eq!(tick(&mut lane, 250), "SKIP(e1:1..2) D(e1:3)");
    let mut lane = joined_at(began_ms - 300_000);
    assert_eq!(taken(&mut lane, 0, E1, 3), "");
    assert_eq!(tick(&mut lane, 250), "D(e1:3)");
}

#[test]
fn a_greater_epoch_starts_while_the_older_runs_out_by_its_own_timeouts() {
    let mut lane = lane(Mode::Ordered);
    taken(&mut lane, 0, E1, 1);
    taken(&mut lane, 10, E1, 3);
    assert_eq!(taken(&mut lane, 20, E2, 1), "RST(e2) D(e2:1)");
    assert_eq!(taken(&mut lane, 30, E2, 3), "");
    assert_eq!(due(&lane), Some(260));
    assert_eq!(tick(&mut lane, 260), "SKIP(e1:2..2) D*(e1:3)");
    assert_eq!(tick(&mut lane, 280), "SKIP(e2:2..2) D(e2:3)");
}

#[test]
fn facts_of_the_lower_epoch_are_late_in_order_among_themselves_and_nothing_flips() {
    let mut lane = lane(Mode::Ordered);
    taken(&mut lane, 0, E1, 1);
    taken(&mut lane, 1, E2, 1);
    assert_eq!(taken(&mut lane, 2, E1, 3), "");
    assert_eq!(taken(&mut lane, 3, E1, 2), "D*(e1:2) D*(e1:3)");
    assert_eq!(taken(&mut lane, 4, E2, 2), "D(e2:2)");
    assert_eq!(taken(&mut lane, 5, E1, 4), "D*(e1:4)");
    assert_eq!(lane.stats().restarts, 1);
}

#[test]
fn an_unknown_lower_epoch_gives_one_restarted_too() {
    let mut lane = lane(Mode::Ordered);
    assert_eq!(
        taken(&mut lane, 0, E2, 1),
        "D(e2:1)",
        "not for the first one heard"
    );
    assert_eq!(taken(&mut lane, 1, E1, 1), "RST(e1 lower) D*(e1:1)");
    assert_eq!(taken(&mut lane, 2, E1, 2), "D*(e1:2)");
}

#[test]
fn a_third_epoch_replaces_the_one_heard_longest_ago_its_holes_as_skipped() {
    let mut lane = lane(Mode::Ordered);
    taken(&mut lane, 0, E1, 1);
    taken(&mut lane, 1, E1, 3);
    taken(&mut lane, 2, E2, 1);
    assert_eq!(
        taken(&mut lane, 3, E3, 1),
        "SKIP(e1:2..2) D*(e1:3) RST(e3) D(e3:1)"
    );
    // What was replaced is remembered by its edge: it comes back without a second life.
    assert_eq!(
        offered(
            &mut lane,
            4,
            Offer {
                copy_possible: true,
                ..fact(E1, 3)
            }
        )
        .1,
        "RST(e1 lower)"
    );
    assert_eq!(taken(&mut lane, 5, E1, 2), "D*(e1:2)");
    assert_eq!(taken(&mut lane, 6, E1, 4), "D*(e1:4)");
}

#[test]
fn both_counters_on_for_a_minute_are_told_once() {
    for mode in [Mode::Ordered, Mode::AsArrives, Mode::LatestOnly] {
        let mut lane = lane(mode);
        let mut told = 0;
        for second in 0..200 {
            for epoch in [E1, E2] {
                let (_, out) = offered(&mut lane, second * 1000, fact(epoch, second + 1));
                told += out.matches("TWO(e2)").count();
            }
            assert_eq!(told, usize::from(second >= 60), "{mode:?} {second}");
        }
    }
}

#[test]
fn a_restart_and_its_stragglers_are_not_two_counters() {
    let mut lane = lane(Mode::Ordered);
    for seq in 1..10 {
        taken(&mut lane, seq, E1, seq);
    }
    for second in 1..200 {
        let out = taken(&mut lane, second * 1000, E2, second);
        assert!(!out.contains("TWO"));
        let replayed = Offer {
            replayed: true,
            ..fact(E1, 9 + second)
        };
        assert!(
            !offered(&mut lane, second * 1000, replayed)
                .1
                .contains("TWO")
        );
    }
}

#[test]
fn conflicts_are_one_notice_per_episode_that_a_second_of_quiet_ends() {
    let mut lane = lane(Mode::Ordered);
    for seq in 1..=5 {
        taken(&mut lane, 0, E1, seq);
    }
    for (ms, seq) in [(100, 4), (900, 2), (1800, 4)] {
        assert_eq!(
            offered(&mut lane, ms, fact(E1, seq)),
            (Admit::Conflict(0), String::new())
        );
    }
    assert_eq!(due(&lane), Some(2800));
    assert_eq!(tick(&mut lane, 2799), "");
    assert_eq!(tick(&mut lane, 2800), "CONF(e1:2..4 x3)");
    assert_eq!(due(&lane), None);
    // One that never becomes quiet is told all the same.
    let mut told = String::new();
    for tenth in 0..101 {
        told += &offered(&mut lane, 3000 + tenth * 100, fact(E1, 5)).1;
    }
    assert_eq!(told, "CONF(e1:5..5 x100)");
    assert_eq!(lane.stats().conflicts, 104);
}

#[test]
fn a_held_seq_conflicts_and_so_does_the_newest_of_latest_only() {
    let mut ordered = lane(Mode::Ordered);
    taken(&mut ordered, 0, E1, 7);
    assert_eq!(ordered.offer(at(1), fact(E1, 7), 4), Admit::Conflict(4));
    let mut latest = lane(Mode::LatestOnly);
    taken(&mut latest, 0, E1, 7);
    assert_eq!(latest.offer(at(1), fact(E1, 7), 4), Admit::Conflict(4));
    let copy = Offer {
        copy_possible: true,
        ..fact(E1, 7)
    };
    assert_eq!(latest.offer(at(1), copy, 4), Admit::Duplicate(4));
    assert_eq!(tick(&mut latest, 1001), "CONF(e1:7..7 x1)");
}

#[test]
fn anycast_facts_pass_at_once_without_numbering_in_any_mode() {
    for mode in [Mode::Ordered, Mode::AsArrives, Mode::LatestOnly] {
        let mut lane = lane(mode);
        let one = |seq| Offer {
            anycast: true,
            ..fact(E1, seq)
        };
        assert_eq!(offered(&mut lane, 0, one(9)).1, "D(e1:9)");
        assert_eq!(offered(&mut lane, 1, one(4)).1, "D(e1:4)");
        assert_eq!(offered(&mut lane, 2, one(4)).1, "D(e1:4)");
        assert_eq!((due(&lane), lane.edges()), (None, [None; 2]));
        assert_eq!(taken(&mut lane, 3, E1, 1), "D(e1:1)");
    }
}

#[test]
fn while_a_replay_makes_progress_a_missing_seq_is_not_timed() {
    let mut lane = lane(Mode::Ordered);
    taken(&mut lane, 0, E1, 1);
    taken(&mut lane, 100, E1, 3);
    lane.replay_progress(at(200));
    // 100 ms were waited; 10 s at most without progress, then the other 150.
    assert_eq!(due(&lane), Some(10_350));
    lane.replay_progress(at(5_000));
    assert_eq!(due(&lane), Some(15_150));
    assert_eq!(tick(&mut lane, 9_000), "");
    lane.replay_end(at(9_000));
    assert_eq!(due(&lane), Some(9_150));
    assert_eq!(tick(&mut lane, 9_149), "");
    assert_eq!(tick(&mut lane, 9_150), "SKIP(e1:2..2) D(e1:3)");

    taken(&mut lane, 10_000, E1, 5);
    lane.replay_progress(at(10_100));
    assert_eq!(
        tick(&mut lane, 20_100),
        "",
        "a replay without progress is given up here"
    );
    assert_eq!(due(&lane), Some(20_250));
    assert_eq!(tick(&mut lane, 20_250), "SKIP(e1:4..4) D(e1:5)");
}

#[test]
fn publications_without_epoch_get_one_that_is_made_up() {
    let mut lane = lane(Mode::Ordered);
    assert_eq!(taken(&mut lane, 0, 0, 5_000_000), "");
    assert_eq!(tick(&mut lane, 250), "D(1:5000000)");
    assert_eq!(taken(&mut lane, 251, 0, 1), "RST(2) D(2:1)");
    // A straggler of the numbering before does not flip it back.
    assert_eq!(taken(&mut lane, 252, 0, 5_000_001), "D*(1:5000001)");
    assert_eq!(taken(&mut lane, 253, 0, 2), "D(2:2)");
    // Exactly 10,000 from the next one is a gap, one more a restart.
    assert_eq!(taken(&mut lane, 254, 0, 10_003), "");
    assert_eq!(taken(&mut lane, 255, 0, 10_004), "RST(3)");
    assert_eq!(lane.edges()[1], Some((2, 2)), "the older one made room");
}

#[test]
fn br_34_hostile_numbers_without_epoch_are_bounded() {
    let mut lane = lane(Mode::Ordered);
    let mut out = String::new();
    for (ms, seq) in [(0, 0), (1, u64::MAX), (2, u64::MAX - 1), (3, 1), (4, 0)] {
        out += &format!("{:?} ", lane.offer(at(ms), fact(0, seq), 0));
        out += &drain(&mut lane);
        out += "; ";
    }
    out += &tick(&mut lane, 2000);
    let (top, next) = (u64::MAX, u64::MAX - 1);
    assert_eq!(
        out,
        format!(
            "Taken D(1:0); Taken RST(2); Taken ; Taken D*(1:1); Conflict(0) ; \
             D(2:{next}) D(2:{top}) CONF(1:0..0 x1)"
        )
    );
}

#[test]
fn br_27_a_sparse_source_is_reordered_within_the_timeout_and_never_skipped() {
    let mut lane = Lane::growing(LaneConfig {
        sparse: true,
        ..LaneConfig::default()
    });
    let mut out = String::new();
    for (ms, seq) in [(0, 1000), (5, 21_000), (20, 6000)] {
        out += &taken(&mut lane, ms, 0, seq);
    }
    assert_eq!(out, "");
    assert_eq!(tick(&mut lane, 250), "D(1:1000)");
    assert_eq!(tick(&mut lane, 270), "D(1:6000) D(1:21000)");
    assert_eq!((lane.stats().skips, lane.stats().restarts), (0, 0));
}

#[test]
fn a_closed_place_is_passed_over_and_begins_an_epoch() {
    let mut lane = lane(Mode::Ordered);
    assert!(lane.close(at(0), E1, 1));
    assert_eq!(taken(&mut lane, 1, E1, 2), "D(e1:2)");
    assert!(lane.close(at(2), E2, 1));
    assert_eq!(drain(&mut lane), "RST(e2)");
    assert_eq!(taken(&mut lane, 3, E2, 2), "D(e2:2)");
    assert!(lane.covers(E2, 1) && !lane.covers(E2, 3) && !lane.covers(E3, 1));
}

#[test]
fn an_idle_lane_shrinks_to_64_bytes_and_wakes_as_it_was() {
    let mut lane = lane(Mode::Ordered);
    taken(&mut lane, 0, E1, 7);
    taken(&mut lane, 1, E2, 1);
    taken(&mut lane, 2, E2, 4);
    assert_eq!(
        (lane.rest_at(), lane.rest(at(900_000)).is_some()),
        (None, false),
        "something is held"
    );
    tick(&mut lane, 600);
    assert_eq!(lane.rest(at(600_001)), None);
    let resting = lane.rest(at(600_002)).unwrap();
    assert_eq!(size_of_val(&resting), 64);
    assert!(resting.covers(E2, 4) && resting.covers(E1, 7) && !resting.covers(E2, 5));

    let mut woken = super::tests::lane(Mode::Ordered);
    woken.wake(at(700_000), resting);
    assert_eq!(
        offered(&mut woken, 700_001, fact(E2, 4)).0,
        Admit::Conflict(0)
    );
    assert_eq!(taken(&mut woken, 700_001, E2, 5), "D(e2:5)");
    assert_eq!(taken(&mut woken, 700_002, E2, 3), "D*(e2:3)");
    assert_eq!(taken(&mut woken, 700_003, E1, 8), "D*(e1:8)");
    let copy = Offer {
        copy_possible: true,
        ..fact(E1, 7)
    };
    assert_eq!(offered(&mut woken, 700_004, copy).0, Admit::Duplicate(0));
}

#[test]
fn heard_again_after_the_last_publication_expired_resynced_precedes() {
    let mut first = lane(Mode::Ordered);
    taken(&mut first, 0, E1, 7);
    tick(&mut first, 250);
    let resting = first.rest(at(600_250)).unwrap();
    // Both clocks must have passed it.
    let wall = |mono, wall| Now::new(Instant::from_millis(mono), WallMs::new(wall));
    assert!(!resting.is_expired(at(900_000)) && resting.is_expired(at(900_001)));
    assert!(!resting.is_expired(wall(700_000, 1_700_009_000_000)));
    assert!(!resting.is_expired(wall(9_000_000, 1_700_000_000_000)));
    for mode in [Mode::Ordered, Mode::LatestOnly] {
        let mut woken = Lane::growing(LaneConfig {
            mode,
            ..LaneConfig::default()
        });
        woken.wake(at(900_001), resting);
        let mut out = taken(&mut woken, 900_002, E1, 9);
        out += &tick(&mut woken, 900_252);
        assert_eq!(
            out.replace("RESYNC(e1)D", "RESYNC(e1) D"),
            "RESYNC(e1) D(e1:9)",
            "joined in the middle"
        );
    }
}

#[test]
fn a_record_lives_as_long_as_the_longest_life_it_saw() {
    let mut first = lane(Mode::LatestOnly);
    let long = fact(E1, 7);
    let short = Offer {
        until: WallMs::new(1_700_000_000_002),
        ..fact(E1, 8)
    };
    assert_eq!(offered(&mut first, 0, long).0, Admit::Taken);
    assert_eq!(offered(&mut first, 1, short).0, Admit::Taken);
    let resting = first.rest(at(600_001)).unwrap();
    assert!(!resting.is_expired(at(900_000)), "a copy of 7 is accepted");
    assert!(resting.is_expired(at(900_001)));
}

#[test]
fn latest_only_rests_and_wakes_with_both_epochs() {
    let mut first = lane(Mode::LatestOnly);
    taken(&mut first, 0, E1, 7);
    taken(&mut first, 1, E2, 2);
    let resting = first.rest(at(600_001)).unwrap();
    let mut woken = lane(Mode::LatestOnly);
    woken.wake(at(600_002), resting);
    assert_eq!(
        offered(&mut woken, 600_003, fact(E2, 1)).0,
        Admit::Superseded(0)
    );
    assert_eq!(taken(&mut woken, 600_004, E2, 3), "D(e2:3)");
}

#[test]
fn what_an_earlier_run_delivered_is_a_duplicate_and_the_stream_goes_on_there() {
    let mut lane = lane(Mode::Ordered);
    assert!(lane.resume(E1, 5, &[]) && lane.resume(E2, 2, &[]) && !lane.resume(E3, 1, &[]));
    assert_eq!(
        offered(&mut lane, 0, fact(E1, 5)),
        (Admit::Duplicate(0), String::new())
    );
    assert_eq!(taken(&mut lane, 1, E2, 3), "D(e2:3)");
    assert_eq!(taken(&mut lane, 2, E2, 5), "");
    assert_eq!(tick(&mut lane, 252), "SKIP(e2:4..4) D(e2:5)");
    assert_eq!(taken(&mut lane, 253, E2, 4), "D*(e2:4)");
    assert_eq!(lane.edges(), [Some((E1, 5)), Some((E2, 5))]);
}

#[test]
fn a_full_lane_is_busy_and_what_is_given_up_is_skipped_at_its_place() {
    let config = LaneConfig {
        accepted_wall: WallMs::new(1_800_000_000_000),
        ..LaneConfig::default()
    };
    let mut lane = Lane::new([const { [const { [const { None }; 1] }; 2] }; 2], config);
    assert_eq!(lane.offer(at(0), fact(E1, 1), 1), Admit::Taken);
    assert_eq!(lane.offer(at(0), fact(E1, 2), 2), Admit::Taken);
    assert_eq!(lane.offer(at(0), fact(E1, 3), 3), Admit::Busy(3));
    assert!(!lane.has_room(E1, 3) && lane.has_room(E2, 1));
    assert!(lane.give_up(at(0), E1, 3));
    assert_eq!(lane.offer(at(0), fact(E2, 1), 4), Admit::Taken);
    let items: Vec<String> = core::iter::from_fn(|| lane.poll()).map(show).collect();
    assert_eq!(
        items.join(" "),
        "D(e1:1) D(e1:2) SKIP(e1:3..3) RST(e2) D(e2:1)"
    );
}

#[test]
fn a_place_that_cannot_be_closed_is_told_once_by_giving_it_up() {
    let config = LaneConfig {
        accepted_wall: WallMs::new(1_800_000_000_000),
        ..LaneConfig::default()
    };
    let mut lane = Lane::new([const { [const { [const { None }; 1] }; 2] }; 2], config);
    for seq in 1..=2 {
        assert_eq!(lane.offer(at(0), fact(E1, seq), 0), Admit::Taken);
    }
    let before = format!("{lane:?}");
    assert!(!lane.close(at(0), E1, 4));
    assert_eq!(format!("{lane:?}"), before, "a refusal changes nothing");
    assert!(lane.give_up(at(0), E1, 4));
    assert!(lane.close(at(0), E1, 4), "its place is decided");
    let items: Vec<String> = core::iter::from_fn(|| lane.poll()).map(show).collect();
    assert_eq!(items.join(" "), "D(e1:1) D(e1:2) SKIP(e1:3..4)");
}

#[test]
fn a_lane_joined_in_the_middle_folds_and_knows_what_it_has_not_delivered() {
    let mut joined = lane(Mode::Ordered);
    taken(&mut joined, 0, E1, 7);
    assert_eq!(tick(&mut joined, 250), "D(e1:7)");
    let mut folded = joined.fold().expect("all is handed out");
    let replayed = Offer {
        replayed: true,
        ..fact(E1, 8)
    };
    assert!(
        !folded.follow(at(251).mono, &replayed),
        "the lane's to know"
    );
    assert!(folded.follow(at(251).mono, &fact(E1, 8)));
    assert!(!folded.follow(at(251).mono, &fact(E1, 10)));
    joined.renew(joined.config);
    joined.unfold(&folded);
    let copy = |seq| Offer {
        copy_possible: true,
        ..fact(E1, seq)
    };
    for seq in [7, 8] {
        assert_eq!(joined.offer(at(252), copy(seq), 0), Admit::Duplicate(0));
    }
    // The last before it leaves it one range as before, one further down does not.
    for (seq, folds) in [(6, true), (4, false), (5, true)] {
        assert_eq!(joined.offer(at(252), copy(seq), 0), Admit::Taken);
        assert_eq!(drain(&mut joined), format!("D*(e1:{seq})"));
        assert_eq!(joined.fold().is_some(), folds, "{seq}");
    }
}

#[test]
fn where_there_is_room_not_even_a_conflict_is_busy() {
    let mut lane = lane(Mode::Ordered);
    assert_eq!(lane.offer(at(0), fact(E1, 1), 0), Admit::Taken);
    let mut ms = 1;
    // Each episode leaves one notice that waits.
    while lane.has_room(E1, 1) {
        assert_eq!(lane.offer(at(ms), fact(E1, 1), 0), Admit::Conflict(0));
        ms += 1000;
        lane.handle_timeout(at(ms));
    }
    assert_eq!(lane.offer(at(ms), fact(E1, 1), 0), Admit::Busy(0));
    assert_eq!(drain(&mut lane).matches("CONF").count(), 6);
    assert!(lane.has_room(E1, 1));
}
