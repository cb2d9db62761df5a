use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::time::Duration;

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
