use alloc::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn what_touches_or_overlaps_becomes_one_range() {
    let mut ranges = Ranges::<4>::new(0);
    ranges.insert(5, 6);
    ranges.insert(9, 9);
    ranges.insert(7, 8);
    assert_eq!(ranges.as_slice(), [(5, 9)]);
    ranges.insert(20, 30);
    ranges.insert(8, 21);
    assert_eq!(ranges.as_slice(), [(5, 30)]);
    ranges.insert(9, 8);
    assert_eq!(ranges.as_slice(), [(5, 30)]);
}

#[test]
fn over_its_bound_the_lowest_range_is_forgotten_and_the_floor_rises() {
    let mut ranges = Ranges::<2>::new(1);
    ranges.insert(1, 3);
    ranges.insert(5, 6);
    ranges.insert(10, 10);
    assert_eq!(
        (ranges.as_slice(), ranges.floor()),
        (&[(5, 6), (10, 10)][..], 4)
    );
    assert!(!ranges.contains(2));
    ranges.insert(0, 3);
    assert_eq!(
        ranges.as_slice(),
        [(5, 6), (10, 10)],
        "below the floor nothing is kept"
    );
}

#[test]
fn taking_one_out_splits_and_a_split_may_cost_the_lowest() {
    let mut ranges = Ranges::<2>::new(0);
    ranges.insert(5, 9);
    assert!(ranges.remove(7) && !ranges.remove(7));
    assert_eq!(ranges.as_slice(), [(5, 6), (8, 9)]);
    ranges.remove(5);
    ranges.insert(9, 12);
    assert!(ranges.remove(10));
    assert_eq!(
        (ranges.as_slice(), ranges.floor()),
        (&[(8, 9), (11, 12)][..], 7)
    );
}

#[test]
fn br_34_the_whole_of_u64_is_one_range() {
    let mut ranges = Ranges::<3>::default();
    ranges.insert(0, u64::MAX);
    assert!(ranges.contains(0) && ranges.contains(u64::MAX));
    assert!(ranges.remove(u64::MAX) && ranges.remove(0) && ranges.remove(1 << 63));
    assert_eq!(
        ranges.as_slice(),
        [(1, (1 << 63) - 1), ((1 << 63) + 1, u64::MAX - 1)]
    );
    ranges.insert(u64::MAX, u64::MAX);
    ranges.insert(0, 0);
    assert_eq!(ranges.as_slice()[0].0, 0);
}

fn compare<const N: usize>(script: &[(bool, u64, u64)]) {
    let mut ranges = Ranges::<N>::new(2);
    let mut plain: BTreeSet<u64> = BTreeSet::new();
    let mut floor = 2;
    for &(insert, first, more) in script {
        if insert {
            ranges.insert(first, first + more);
            plain.extend((first..=first + more).filter(|number| *number >= floor));
        } else {
            assert_eq!(ranges.remove(first), plain.remove(&first));
        }
        let starts = |plain: &BTreeSet<u64>| {
            plain
                .iter()
                .filter(|n| **n == 0 || !plain.contains(&(**n - 1)))
                .count()
        };
        while starts(&plain) > N {
            let mut last = *plain.first().unwrap();
            while plain.remove(&last) {
                last += 1;
            }
            floor = last;
        }
        assert_eq!((ranges.floor(), ranges.len()), (floor, starts(&plain)));
        for number in 0..60 {
            assert_eq!(ranges.contains(number), plain.contains(&number), "{number}");
        }
    }
}

proptest! {
    #[test]
    fn it_is_a_set_with_a_floor(
        script in proptest::collection::vec((any::<bool>(), 0..50_u64, 0..6_u64), 0..100)
    ) {
        compare::<1>(&script);
        compare::<2>(&script);
        compare::<5>(&script);
        compare::<16>(&script);
    }
}
