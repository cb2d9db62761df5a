use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::rng::{Rng, Seed};

fn rng() -> Rng {
    Seed::new([3; 32]).fork("table")
}

/// A key whose prefix says less than the key: only full equality tells some of them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Clash(u8);

impl TableKey for Clash {
    fn prefix(&self) -> [u64; 2] {
        [u64::from(self.0 % 4), 0]
    }
}

#[derive(Clone, Debug)]
enum Step {
    Get(u8),
    Insert(u8, u16),
    Remove(u8),
    Sweep(usize, u16),
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..24u8).prop_map(Step::Get),
        4 => (0..24u8, any::<u16>()).prop_map(|(key, value)| Step::Insert(key, value)),
        3 => (0..24u8).prop_map(Step::Remove),
        1 => (0..20usize, 2..5u16).prop_map(|(budget, of)| Step::Sweep(budget, of)),
    ];
    proptest::collection::vec(step, 0..200)
}

/// Runs a script on a table and on a sorted map side by side.
fn compare<S>(mut table: Table<Clash, u16, S>, steps: Vec<Step>)
where
    S: AsRef<[Slot<Clash, u16>]> + AsMut<[Slot<Clash, u16>]>,
{
    let mut model = BTreeMap::new();
    let mut hand = 0;
    for step in steps {
        match step {
            Step::Get(key) => assert_eq!(table.get(&Clash(key)), model.get(&key)),
            Step::Insert(key, value) => {
                let expected = if model.contains_key(&key) || model.len() < table.capacity() {
                    Ok(model.insert(key, value))
                } else {
                    Err(Full((Clash(key), value)))
                };
                assert_eq!(table.insert(Clash(key), value), expected);
            }
            Step::Remove(key) => assert_eq!(table.remove(&Clash(key)), model.remove(&key)),
            Step::Sweep(budget, of) => {
                let mut refused = Vec::new();
                let mut looked = 0;
                let removed = table.sweep(&mut hand, budget, |key, value| {
                    looked += 1;
                    let keep = *value % of != 0;
                    if !keep {
                        refused.push(key.0);
                    }
                    keep
                });
                assert!(looked <= budget);
                assert_eq!(removed, refused.len());
                for key in refused {
                    assert_eq!(model.remove(&key).map(|value| value % of), Some(0));
                }
            }
        }
        assert_eq!(table.len(), model.len());
        for key in 0..24 {
            assert_eq!(table.get(&Clash(key)), model.get(&key));
        }
    }
    // Nothing is left of what one round refuses, wherever it begins.
    table.sweep(&mut hand, usize::MAX, |_, value| *value % 2 == 0);
    assert_eq!(
        table.len(),
        model.values().filter(|value| *value % 2 == 0).count()
    );
}

proptest! {
    #[test]
    fn every_script_gives_what_a_sorted_map_gives(
        steps in script(), capacity in 0..12usize, more in 0..3usize
    ) {
        let slots: Vec<Slot<Clash, u16>> = (0..capacity + more).map(|_| None).collect();
        compare(Table::new(slots.into_boxed_slice(), capacity, &mut rng()), steps);
    }

    #[test]
    fn a_table_that_grows_gives_the_same(steps in script(), capacity in 0..26usize) {
        compare(HeapTable::with_capacity(capacity, &mut rng()), steps);
    }
}

#[test]
fn the_capacity_is_exact_on_as_many_slots() {
    for capacity in [1, 2, 3, 5, 8u64] {
        let slots: Vec<Slot<u64, u64>> = (0..capacity).map(|_| None).collect();
        let mut fixed = Table::new(slots, usize::MAX, &mut rng());
        let mut heap = HeapTable::with_capacity(capacity as usize, &mut rng());
        for key in 0..capacity {
            assert_eq!(fixed.insert(key, key), Ok(None));
            assert_eq!(heap.insert(key, key), Ok(None));
        }
        assert_eq!(fixed.insert(99, 7), Err(Full((99, 7))));
        assert_eq!(heap.insert(99, 7), Err(Full((99, 7))));
        assert_eq!(fixed.get(&99), None);
        assert_eq!(fixed.insert(0, 5), Ok(Some(0)), "a known key needs no room");
        assert_eq!(fixed.remove(&0), Some(5));
        assert_eq!(fixed.insert(99, 7), Ok(None));
    }
}

#[test]
fn equality_is_on_the_whole_key() {
    let mut table = Table::new([const { None }; 4], 4, &mut rng());
    let mut other = [7; 32];
    other[31] = 8;
    assert_eq!(table.insert(NodeId::new([7; 32]), 'a'), Ok(None));
    assert_eq!(table.get(&NodeId::new(other)), None);
    assert_eq!(table.insert(NodeId::new(other), 'b'), Ok(None));
    assert_eq!(table.get(&NodeId::new([7; 32])), Some(&'a'));
}

#[test]
fn ten_thousand_strangers_leave_memory_where_it_was() {
    let mut table = HeapTable::with_capacity(100_000, &mut rng());
    assert_eq!(table.memory(), 0);
    for key in 0..4u64 {
        assert_eq!(table.insert(key, ()), Ok(None));
    }
    let before = table.memory();
    for key in 100..10_100 {
        assert_eq!(table.insert(key, ()), Ok(None));
    }
    assert!(table.memory() > before * 1000);
    let mut hand = 0;
    while table.sweep(&mut hand, 64, |key, ()| *key < 100) > 0 || table.len() > 4 {}
    assert_eq!(table.memory(), before);
    assert!((0..4).all(|key| table.contains(&key)));
}

#[test]
fn one_round_of_a_sweep_sees_every_entry_wherever_it_begins() {
    for start in 0..32 {
        let mut table = HeapTable::with_capacity(100, &mut rng());
        for key in 0..20u64 {
            assert_eq!(table.insert(key, ()), Ok(None));
        }
        let mut hand = start;
        assert_eq!(table.sweep(&mut hand, usize::MAX, |key, ()| *key < 4), 16);
        assert!((0..4).all(|key| table.contains(&key)));
    }
}

#[test]
fn churn_without_end_costs_what_it_cost_at_first() {
    let slots: Vec<Slot<u64, ()>> = (0..114).map(|_| None).collect();
    let mut table = Table::new(slots, 100, &mut rng());
    for key in 0..100_000u64 {
        assert_eq!(table.insert(key, ()), Ok(None));
        if let Some(old) = key.checked_sub(99) {
            assert_eq!(table.remove(&old), Some(()));
        }
        assert_eq!(table.get(&(key + 1)), None);
    }
    let far = (0..114).filter_map(|index| table.displacement(index)).max();
    assert!(far < Some(40), "{far:?}");
}

#[test]
fn every_kind_of_id_is_a_key() {
    assert_eq!(RealmId::new([1; 32]).prefix(), [0x0101_0101_0101_0101; 2]);
    assert_eq!(RunId::new([1; 8]).prefix(), [0x0101_0101_0101_0101, 0]);
    assert_eq!([2u8; 16].prefix(), [0x0202_0202_0202_0202; 2]);
    let link = LinkId {
        index: 3,
        generation: 4,
    };
    assert_eq!((link.prefix(), (3u64, 4u64).prefix()), ([3, 4], [3, 4]));
    assert_eq!((5u64.prefix(), 5u32.prefix()), ([5, 0], [5, 0]));
}
