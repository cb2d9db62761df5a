use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn ring(capacity: usize) -> Ring<u64, Vec<Slot<u64>>> {
    Ring::new((0..capacity).map(|_| None).collect(), usize::MAX)
}

#[test]
fn br_15_exact_at_the_brim() {
    for n in [1, 2, 3, 5, 8u64] {
        for mut ring in [
            ring(n as usize),
            HeapRing::with_capacity(n as usize, usize::MAX),
        ] {
            for item in 0..n {
                assert_eq!(ring.push(item, 0), item);
            }
            assert_eq!(
                ring.resume(0),
                Resume::From {
                    position: 0,
                    count: n
                }
            );
            assert_eq!((ring.lag(0), ring.missed(0)), (n, 0));
            assert!((0..n).all(|at| ring.get(at) == Some(&at)));

            ring.push(n, 0);
            assert_eq!(
                ring.resume(0),
                Resume::Expired {
                    oldest: 1,
                    missed: 1
                }
            );
            assert_eq!((ring.lag(0), ring.missed(0)), (n + 1, 1));
            assert_eq!((ring.get(0), ring.get(n)), (None, Some(&n)));
            assert_eq!(ring.len(), n as usize);
        }
    }
}

#[test]
fn br_44_a_position_out_of_range_is_never_an_empty_success() {
    let mut ring = ring(3).starting_at(8);
    (8..=10).for_each(|item| {
        ring.push(item, 1);
    });
    // "After 10" wants 11 next, and so on.
    assert_eq!(ring.resume(11), Resume::Live);
    let all = Resume::From {
        position: 8,
        count: 3,
    };
    assert_eq!(ring.resume(8), all);
    let gone = |missed| Resume::Expired { oldest: 8, missed };
    assert_eq!(ring.resume(7), gone(1));
    assert_eq!(ring.resume(1), gone(7));
    assert_eq!(ring.resume(12), gone(0));
    assert_eq!(ring.resume(100), gone(0));
    assert_eq!(ring.resume(u64::MAX), gone(0));
    // What the ring handed back is a position it knows.
    assert_eq!(ring.resume(8), all);
    while ring.give_up_oldest().is_some() {}
    assert_eq!(
        ring.resume(8),
        Resume::Expired {
            oldest: 11,
            missed: 3
        }
    );
    assert_eq!(ring.resume(11), Resume::Live);
}

#[test]
fn a_lag_of_exactly_the_ring_replays_in_full_and_one_more_expires() {
    let mut ring = HeapRing::with_capacity(10_000, usize::MAX);
    (0..25_000u64).for_each(|item| {
        ring.push(item, 1);
    });
    assert_eq!(
        ring.resume(15_000),
        Resume::From {
            position: 15_000,
            count: 10_000
        }
    );
    assert_eq!(
        ring.resume(14_999),
        Resume::Expired {
            oldest: 15_000,
            missed: 1
        }
    );
}

#[test]
fn an_item_heavier_than_the_ring_is_missed_not_forgotten() {
    let mut ring = Ring::new([const { None }; 4], 10);
    ring.push('a', 4);
    assert_eq!(ring.push('b', 11), 1);
    assert_eq!((ring.len(), ring.bytes()), (0, 0));
    assert_eq!(
        ring.resume(0),
        Resume::Expired {
            oldest: 2,
            missed: 2
        }
    );
    assert_eq!(ring.push('c', 10), 2);
    assert_eq!(ring.get(2), Some(&'c'));
}

#[test]
fn a_ring_without_slots_gives_positions_and_keeps_nothing() {
    let mut ring = ring(0);
    assert_eq!((ring.push(1, 0), ring.push(2, 0)), (0, 1));
    assert_eq!((ring.start(), ring.end(), ring.get(1)), (2, 2, None));
    assert_eq!(ring.give_up_oldest(), None);
}

#[test]
fn a_large_ring_with_few_items_is_small_and_shrinks_again() {
    let mut ring = HeapRing::with_capacity(10_000, usize::MAX);
    assert_eq!(ring.memory(), 0);
    (0..3u64).for_each(|item| {
        ring.push(item, 1);
    });
    assert!(ring.memory() <= 4 * size_of::<Slot<u64>>());
    (3..10_000u64).for_each(|item| {
        ring.push(item, 1);
    });
    assert_eq!(
        ring.memory(),
        10_000 * size_of::<Slot<u64>>(),
        "never rounded up"
    );
    while ring.give_up_oldest().is_some() {}
    assert!(ring.memory() <= KEPT * size_of::<Slot<u64>>());
}

#[derive(Clone, Debug)]
enum Step {
    GiveUp(u8),
    Push(usize),
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..9usize).prop_map(Step::Push),
        1 => (0..20u8).prop_map(Step::GiveUp),
    ];
    proptest::collection::vec(step, 0..300)
}

/// The model keeps every item ever pushed and recounts from the newest what fits.
fn compare<S: AsRef<[Slot<u64>]> + AsMut<[Slot<u64>]>>(
    mut ring: Ring<u64, S>,
    steps: Vec<Step>,
    capacity: usize,
    max_bytes: usize,
) {
    let mut pushed: Vec<usize> = Vec::new();
    let mut floor = 0;
    for step in steps {
        match step {
            Step::Push(bytes) => {
                let item = pushed.len() as u64;
                pushed.push(bytes);
                assert_eq!(ring.push(item, bytes), item);
                let fits = |from: usize| {
                    pushed.len() - from <= capacity
                        && pushed[from..].iter().sum::<usize>() <= max_bytes
                };
                while !fits(floor) {
                    floor += 1;
                }
            }
            Step::GiveUp(times) => {
                for _ in 0..times {
                    let oldest =
                        (floor < pushed.len()).then(|| (floor as u64, floor as u64, pushed[floor]));
                    assert_eq!(ring.give_up_oldest(), oldest);
                    floor = (floor + 1).min(pushed.len());
                }
            }
        }
        let (start, end) = (floor as u64, pushed.len() as u64);
        assert_eq!((ring.start(), ring.end()), (start, end));
        assert_eq!(ring.bytes(), pushed[floor..].iter().sum::<usize>());
        for reader in 0..end + 3 {
            let held = (start..end).contains(&reader);
            assert_eq!(ring.get(reader).copied(), held.then_some(reader));
            let lost = (0..start).filter(|at| *at >= reader).count() as u64;
            assert_eq!(ring.missed(reader), lost);
            assert_eq!(
                ring.lag(reader),
                (0..end).filter(|at| *at >= reader).count() as u64
            );
            let expected = match reader {
                _ if reader == end => Resume::Live,
                _ if held => Resume::From {
                    position: reader,
                    count: end - reader,
                },
                _ => Resume::Expired {
                    oldest: start,
                    missed: lost,
                },
            };
            assert_eq!(ring.resume(reader), expected);
        }
    }
}

proptest! {
    #[test]
    fn every_script_gives_what_a_list_of_all_items_gives(
        steps in script(), capacity in 0..40usize, max_bytes in 0..60usize
    ) {
        let slots: Vec<Slot<u64>> = (0..capacity).map(|_| None).collect();
        compare(Ring::new(slots, max_bytes), steps.clone(), capacity, max_bytes);
        compare(HeapRing::with_capacity(capacity, max_bytes), steps, capacity, max_bytes);
    }
}
