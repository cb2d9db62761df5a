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
fn where_all_slots_are_taken_one_that_was_not_used_lately_makes_room() {
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
    assert_eq!((cache.derivations(), cache.len()), (5, 3));
}

#[test]
fn strangers_heard_once_make_room_for_each_other_and_not_for_who_goes_on() {
    let mut cache = cache(4);
    for stranger in 10..110 {
        cache.subkey(&period(0), &node(stranger));
        cache.subkey(&period(0), &node(1));
    }
    assert_eq!(cache.derivations(), 101);
}

#[test]
fn what_was_found_is_the_subkey_and_the_number_of_that_period() {
    let mut cache = cache(8);
    for (number, publisher) in [(1, 7), (2, 7), (1, 8)] {
        assert_eq!(cache.find(period(number).id(), &node(publisher)), None);
        cache.subkey_in(&period(number), u16::from(number), &node(publisher));
    }
    for (number, publisher) in [(1, 7), (2, 7), (1, 8)] {
        let at = cache.find(period(number).id(), &node(publisher)).unwrap();
        let (subkey, found) = cache.used(at);
        assert!(is_of(subkey, number, publisher));
        assert_eq!(found, u16::from(number));
    }
    cache.forget(period(1).id());
    assert_eq!(cache.find(period(1).id(), &node(7)), None);
    assert!(cache.find(period(2).id(), &node(7)).is_some());
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
    let (left, freed): (Vec<_>, Vec<_>) = cache.slots.iter().partition(|slot| slot.kept);
    assert_eq!(left.len(), 4);
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

/// The subkeys kept, each at its place and whether it was used since the hand came by.
struct Model {
    kept: Vec<Option<((u8, u8), bool)>>,
    /// Places that were given up, the last one last, and the places never taken before them.
    free: Vec<usize>,
    hand: usize,
    derivations: u64,
    evictions: u64,
}

impl Model {
    fn new(capacity: usize) -> Self {
        Self {
            kept: std::vec![None; capacity],
            free: (0..capacity).rev().collect(),
            hand: 0,
            derivations: 0,
            evictions: 0,
        }
    }

    fn subkey(&mut self, wanted: (u8, u8)) {
        let mut kept = self.kept.iter_mut().flatten();
        if let Some((_, used)) = kept.find(|(kept, _)| *kept == wanted) {
            *used = true;
            return;
        }
        self.derivations += 1;
        while self.free.is_empty() {
            let at = self.hand;
            self.hand = (at + 1) % self.kept.len();
            match &mut self.kept[at] {
                Some((_, used)) if *used => *used = false,
                place => {
                    *place = None;
                    self.free.push(at);
                    self.evictions += 1;
                }
            }
        }
        let at = self.free.pop().unwrap();
        self.kept[at] = Some((wanted, false));
    }

    fn forget(&mut self, number: u8) -> usize {
        let before = self.free.len();
        for (at, place) in self.kept.iter_mut().enumerate() {
            if place.is_some_and(|((of, _), _)| of == number) {
                *place = None;
                self.free.push(at);
            }
        }
        self.free.len() - before
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
        let (mut cache, mut model) = (cache(capacity), Model::new(capacity));
        for op in ops {
            match op {
                Op::Subkey(number, publisher) => {
                    let subkey = cache.subkey(&period(number), &node(publisher));
                    prop_assert!(is_of(subkey, number, publisher));
                    model.subkey((number, publisher));
                }
                Op::Forget(number) => {
                    prop_assert_eq!(cache.forget(period(number).id()), model.forget(number));
                }
            }
            prop_assert_eq!(cache.derivations(), model.derivations);
            prop_assert_eq!(cache.evictions(), model.evictions);
            let mut wanted: Vec<(u8, u8)> = Vec::new();
            for ((number, publisher), _) in model.kept.iter().flatten() {
                let found = cache.find(period(*number).id(), &node(*publisher));
                prop_assert!(found.is_some(), "{number} {publisher}");
                wanted.push((*number, *publisher));
            }
            prop_assert_eq!(cache.len(), wanted.len());
        }
    }
}
