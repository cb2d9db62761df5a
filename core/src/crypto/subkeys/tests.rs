use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Seed;

fn cache(capacity: usize) -> SubkeyCache<Vec<SubkeySlot>> {
    let slots = (0..capacity).map(|_| SubkeySlot::EMPTY).collect();
    SubkeyCache::new(slots, &mut Seed::new([9; 32]).fork("subkeys"))
}

/// Differs from the others in its id and its secret.
fn period(number: u8) -> PeriodKey {
    PeriodKey::new([number; 8], [number ^ 0x55; 32])
}

fn node(number: u8) -> NodeId {
    NodeId::new([number; 32])
}

/// Whether a subkey is that of period and publisher, by what it opens.
fn is_of(subkey: &Subkey, number: u8, publisher: u8) -> bool {
    let place = crate::crypto::Place {
        realm: crate::RealmId::new([0; 32]),
        topic: "a",
        publisher: node(publisher),
        epoch: None,
        seq: 1,
        published_at: crate::WallMs::new(1),
        key_id: *period(number).id(),
    };
    let right = Subkey::derive(&period(number), &node(publisher));
    let mut ct = [0; 16];
    let (nonce, tag) = right.seal(&place, &[0; 32], &mut []).unwrap();
    ct.copy_from_slice(&tag);
    subkey.open(&place, &nonce, &mut ct).is_ok()
}

#[test]
fn a_slot_is_64_bytes() {
    assert_eq!(size_of::<SubkeySlot>(), 64);
    assert_eq!(cache(100).memory(), 6400);
}

#[test]
fn a_subkey_is_derived_once_per_period_and_publisher() {
    let mut cache = cache(1000);
    for _ in 0..3 {
        for number in 0..10 {
            for publisher in 0..100 {
                cache.subkey(&period(number), &node(publisher));
            }
        }
    }
    assert_eq!((cache.derivations(), cache.evictions()), (1000, 0));
    assert_eq!(cache.len(), 1000);
    assert!(is_of(cache.subkey(&period(3), &node(77)), 3, 77));
    assert!(!is_of(cache.subkey(&period(3), &node(77)), 3, 78));
}

#[test]
fn where_all_slots_are_taken_the_one_used_longest_ago_makes_room() {
    let mut cache = cache(3);
    for publisher in [1, 2, 3, 1, 4] {
        cache.subkey(&period(0), &node(publisher));
    }
    assert_eq!((cache.derivations(), cache.evictions()), (4, 1));
    for kept in [1, 3, 4] {
        cache.subkey(&period(0), &node(kept));
    }
    assert_eq!(cache.derivations(), 4);
    cache.subkey(&period(0), &node(2));
    assert_eq!(cache.derivations(), 5);
}

#[test]
fn without_slots_it_derives_each_time() {
    let mut cache = cache(0);
    for _ in 0..2 {
        assert!(is_of(cache.subkey(&period(1), &node(2)), 1, 2));
    }
    assert_eq!((cache.derivations(), cache.len()), (2, 0));
    assert_eq!(cache.forget(&[1; 8]), 0);
}

fn holds_nothing(slots: &[SubkeySlot]) -> bool {
    slots
        .iter()
        .all(|slot| slot.subkey.bytes() == &[0; 32] && slot.key == [0; 3])
}

#[test]
fn nothing_is_left_in_a_slot_whose_period_ended() {
    let mut cache = cache(8);
    for number in 0..2 {
        for publisher in 0..4 {
            cache.subkey(&period(number), &node(publisher + 1));
        }
    }
    assert_eq!(cache.forget(period(0).id()), 4);
    assert_eq!(cache.forget(period(0).id()), 0);
    let left = cache.slots.iter().filter(|slot| slot.newer != FREE);
    assert_eq!(left.count(), 4);
    let freed: Vec<_> = cache
        .slots
        .iter()
        .filter(|slot| slot.newer == FREE)
        .collect();
    assert!(
        freed
            .iter()
            .all(|slot| slot.subkey.bytes() == &[0; 32] && slot.key == [0; 3])
    );
    assert_eq!(cache.forget(period(1).id()), 4);
    assert!(holds_nothing(&cache.slots));
    assert!(cache.is_empty());
}

#[test]
fn nothing_is_left_in_storage_that_was_lent() {
    let mut slots = [const { SubkeySlot::EMPTY }; 4];
    let mut rng = Seed::new([9; 32]).fork("subkeys");
    let mut cache = SubkeyCache::new(&mut slots[..], &mut rng);
    for publisher in 1..9 {
        cache.subkey(&period(1), &node(publisher));
    }
    assert_eq!(cache.len(), 4);
    drop(cache);
    assert!(holds_nothing(&slots));
}

/// The subkeys kept, the one used last at the end.
#[derive(Default)]
struct Model {
    kept: Vec<(u8, u8)>,
    derivations: u64,
    evictions: u64,
}

impl Model {
    fn subkey(&mut self, capacity: usize, wanted: (u8, u8)) {
        match self.kept.iter().position(|kept| *kept == wanted) {
            Some(at) => {
                self.kept.remove(at);
            }
            None => {
                self.derivations += 1;
                if self.kept.len() == capacity {
                    self.kept.remove(0);
                    self.evictions += 1;
                }
            }
        }
        self.kept.push(wanted);
    }

    fn forget(&mut self, number: u8) -> usize {
        let before = self.kept.len();
        self.kept.retain(|(of, _)| *of != number);
        before - self.kept.len()
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Subkey(u8, u8),
    Forget(u8),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (0u8..4, 0u8..12).prop_map(|(number, publisher)| Op::Subkey(number, publisher)),
        1 => (0u8..5).prop_map(Op::Forget),
    ]
}

proptest! {
    #[test]
    fn it_keeps_what_the_model_keeps(
        capacity in prop::sample::select(&[1usize, 2, 3, 5, 8, 40][..]),
        ops in proptest::collection::vec(any_op(), 0..200),
    ) {
        let (mut cache, mut model) = (cache(capacity), Model::default());
        for op in ops {
            match op {
                Op::Subkey(number, publisher) => {
                    let subkey = cache.subkey(&period(number), &node(publisher));
                    prop_assert!(is_of(subkey, number, publisher));
                    model.subkey(capacity, (number, publisher));
                }
                Op::Forget(number) => {
                    prop_assert_eq!(cache.forget(period(number).id()), model.forget(number));
                }
            }
            prop_assert_eq!(cache.len(), model.kept.len());
            prop_assert_eq!(cache.derivations(), model.derivations);
            prop_assert_eq!(cache.evictions(), model.evictions);
            // From the one used last to the one used longest ago.
            let (mut at, mut order) = (cache.newest, Vec::new());
            while at != NONE {
                order.push(cache.slots[usize::from(at)].key);
                at = cache.slots[usize::from(at)].older;
            }
            order.reverse();
            let wanted: Vec<Key> = model.kept.iter().map(|(number, publisher)| {
                let [first, second] = node(*publisher).prefix();
                [u64::from_le_bytes(*period(*number).id()), first, second]
            }).collect();
            prop_assert_eq!(order, wanted);
        }
    }
}
