use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::RunId;

type Machine = Continuity<u16, Vec<Slot<u16>>>;

fn at(millis: u64) -> Now {
    Now::new(
        Instant::from_millis(millis),
        WallMs::new(1_000_000 + millis),
    )
}

fn position(run: u8, offset: u64) -> Position {
    Position {
        run: RunId::new([run; 8]),
        offset,
    }
}

fn accepted(
    at_ms: u64,
    link: u16,
    station: u8,
    resume: Resume,
    position: Position,
) -> Accepted<u16> {
    Accepted {
        link,
        station: NodeId::new([station; 32]),
        mesh: [station % 2; 32],
        since: at(at_ms),
        resume,
        position,
    }
}

#[test]
fn no_slot_carries_nothing_and_panics_nowhere() {
    let mut none: Machine = Continuity::new(Vec::new());
    let accepted = accepted(0, 1, 1, Resume::None, position(1, 0));
    assert_eq!(none.handle_accepted(at(0), accepted), None);
    assert_eq!(none.handle_ended(at(1), 1, CloseReason::Io), None);
    assert_eq!(none.handle_event(1, 5), None);
    assert!(!none.import(
        at(2),
        NodeId::new([1; 32]),
        [1; 32],
        position(1, 1),
        WallMs::new(0)
    ));
}

#[test]
fn it_lives_in_an_array() {
    let mut one: Continuity<u16, [Slot<u16>; 1]> = Continuity::new([None]);
    let plain = accepted(5, 1, 1, Resume::None, position(1, 3));
    assert_eq!(one.handle_accepted(at(6), plain), None);
    let told = one.handle_ended(at(9), 1, CloseReason::Io);
    assert_eq!(
        told,
        Some(Told::Interrupted {
            from: at(5).wall,
            reason: CloseReason::Io
        })
    );
    assert_eq!(one.position_of(&NodeId::new([1; 32])), Some(position(1, 3)));
    assert_eq!(one.interrupted_since(), Some(at(5).wall));
}

/// Mono does not reach back to what an earlier run had read, an hour before this one began.
#[test]
fn a_window_that_began_in_an_earlier_run_is_told_by_the_wall_of_now() {
    const HOUR: u64 = 3_600_000;
    let started = Now::new(at(5000).mono, at(HOUR).wall);
    for (step, begins) in [(0, 0), (600_000, -600_000), (-600_000, 0)] {
        let mut one: Machine = Continuity::new(vec![None; 2]);
        let (station, mesh) = (NodeId::new([1; 32]), [1; 32]);
        assert!(one.import(started, station, mesh, position(1, 3), at(0).wall));
        let now = Now::new(
            at(6000).mono,
            WallMs::new(
                at(HOUR + 1000)
                    .wall
                    .as_millis()
                    .saturating_add_signed(-step),
            ),
        );
        let mut taken: Vec<_> = one.positions(now).collect();
        let (.., from) = taken.pop().expect("the one taken over");
        assert_eq!(from.since(at(0).wall), begins, "kept on");
        let expired = accepted(6000, 1, 1, Resume::Expired, position(2, 1));
        let Some(Told::Gap { from, to, .. }) = one.handle_accepted(now, expired) else {
            panic!("it cannot go on");
        };
        assert_eq!((from.since(at(0).wall), to), (begins, now.wall));
    }
}

/// One station as plainly as possible: whether it is there, what it was asked last.
#[derive(Clone, Copy, Debug)]
enum Step {
    Accept { station: u8, resume: u8, count: u64 },
    End { station: u8 },
    Event { station: u8 },
    Progress { station: u8, behind: u64 },
    Wait { millis: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..4, 0u8..3, 0u64..4).prop_map(|(station, resume, count)| Step::Accept { station, resume, count }),
        2 => (0u8..4).prop_map(|station| Step::End { station }),
        2 => (0u8..4).prop_map(|station| Step::Event { station }),
        1 => (0u8..4, 0u64..3000).prop_map(|(station, behind)| Step::Progress { station, behind }),
        2 => (1u64..40_000).prop_map(|millis| Step::Wait { millis }),
    ]
}

proptest! {
    /// An interruption is told once and ended once, by one of two notices; nothing is told of a time in which a mate carried; every
    /// window begins before it ends; deadlines are kept.
    #[test]
    fn interruptions_and_their_ends_take_turns(steps in prop::collection::vec(step(), 1..120)) {
        let mut machine: Machine = Continuity::new(vec![None; 8]);
        let (mut now, mut link) = (0u64, 0u16);
        let mut links = [None; 4];
        let mut offsets = [0u64; 4];
        let mut interrupted = false;
        for step in steps {
            let before = links;
            let mut told = Vec::new();
            match step {
                Step::Accept { station, resume, count } if links[usize::from(station)].is_none() => {
                    link += 1;
                    let kept = machine.position_of(&NodeId::new([station; 32]));
                    let resume = match resume {
                        0 => Resume::None,
                        1 => Resume::Expired,
                        _ => Resume::Resumed { count },
                    };
                    let position = match (resume, kept) {
                        (Resume::Resumed { .. }, Some(kept)) => position(kept.run.as_bytes()[0], kept.offset + count),
                        _ => position(link as u8, 0),
                    };
                    offsets[usize::from(station)] = position.offset;
                    links[usize::from(station)] = Some(link);
                    told.extend(machine.handle_accepted(at(now), accepted(now, link, station, resume, position)));
                }
                Step::End { station } => {
                    if let Some(link) = links[usize::from(station)].take() {
                        told.extend(machine.handle_ended(at(now), link, CloseReason::Io));
                    }
                }
                Step::Event { station } => {
                    offsets[usize::from(station)] += 1;
                    if let Some(link) = links[usize::from(station)] {
                        prop_assert!(machine.handle_event(link, offsets[usize::from(station)]).is_some());
                    }
                }
                Step::Progress { station, behind } => {
                    if let Some(link) = links[usize::from(station)] {
                        let offset = offsets[usize::from(station)];
                        prop_assert!(machine.handle_progress(at(now), link, offset, behind, None).is_some());
                    }
                }
                Step::Wait { millis } => {
                    now += millis;
                    // One for each mesh that is given up.
                    told.extend(core::iter::from_fn(|| machine.handle_timeout(at(now))).take(2));
                    prop_assert!(machine.poll_timeout().is_none_or(|due| due > at(now).mono));
                }
                Step::Accept { .. } => {}
            }
            let waited = matches!(step, Step::Wait { .. });
            prop_assert!(told.len() <= 1 || waited);
            for told in told {
                match told {
                    Told::Interrupted { from, .. } => {
                        prop_assert!(!interrupted, "one interruption at a time");
                        prop_assert!(from <= at(now).wall);
                        interrupted = true;
                    }
                    Told::Resumed { .. } => {
                        prop_assert!(interrupted, "what goes on was interrupted");
                        interrupted = false;
                    }
                    Told::Gap { from, to, .. } => {
                        prop_assert!(from <= to && to <= at(now).wall);
                        let Step::Accept { station, .. } = step else {
                            // A deadline ends an interruption, or tells of a mesh that is lost while another carries.
                            prop_assert!(links.iter().any(Option::is_some), "somebody carries");
                            interrupted = false;
                            continue;
                        };
                        prop_assert_eq!(to, at(now).wall);
                        // A gap beside an interruption is between meshes.
                        let mates = (0..4u8).any(|of| of != station && of % 2 == station % 2 && before[usize::from(of)].is_some());
                        prop_assert!(interrupted || !mates || machine.carriers().count() > 1);
                        interrupted = false;
                    }
                }
            }
            prop_assert_eq!(interrupted, machine.interrupted_since().is_some());
            let carried = links.iter().any(Option::is_some);
            prop_assert!(carried || interrupted || machine.carriers().count() == 0, "nobody carries and nobody was told");
            prop_assert_eq!(machine.live().count(), links.iter().flatten().count());
        }
    }
}
