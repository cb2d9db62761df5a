use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::shares::share_of;
use super::*;
use crate::rng::{Rng, Seed};

fn rng() -> Rng {
    Seed::new([5; 32]).fork("dedup")
}

fn now(mono_ms: u64, wall_ms: u64) -> Now {
    Now::new(Instant::from_millis(mono_ms), WallMs::new(wall_ms))
}

fn id(n: u64) -> PublicationHash {
    PublicationHash::of_tbs(&n.to_le_bytes())
}

/// Of one publisher in a thousand.
fn signature(n: u64) -> SignatureKey {
    signed_by(n % 1000, n)
}

fn signed_by(share: u64, n: u64) -> SignatureKey {
    SignatureKey([n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n << 16 | share])
}

fn entry(id: &PublicationHash, n: u64, until: u64, tag: u32) -> NewEntry<'_> {
    NewEntry {
        id,
        signature: signature(n),
        until: WallMs::new(until),
        tag,
        seq: n,
    }
}

fn of(publisher: u64, id: &PublicationHash, n: u64, tag: u32) -> NewEntry<'_> {
    NewEntry {
        signature: signed_by(publisher, n),
        ..entry(id, n, 100, tag)
    }
}

fn fixed(slots: usize, shares: usize) -> HeapDedup {
    Dedup::new(
        (0..slots).map(|_| Slot::EMPTY).collect(),
        (0..groups_for(slots)).map(|_| Group::EMPTY).collect(),
        (0..shares).map(|_| 0).collect(),
        &mut rng(),
    )
}

#[test]
fn an_entry_takes_75_bytes_all_in() {
    assert_eq!((size_of::<Slot>(), size_of::<Group>()), (64, 64));
    let entries = 120_000;
    let mut dedup = HeapDedup::with_capacity(entries, 1000, &mut rng());
    for n in 0..entries as u64 {
        let tag = (n % 1000) as u32;
        let id = id(n);
        let new = entry(&id, n, 100, tag);
        assert!(dedup.commit(now(0, 0), new).is_ok());
    }
    assert!(dedup.memory() <= entries * 75, "{}", dedup.memory());
    assert!((0..entries as u64).all(|n| dedup.check(&id(n)).is_some()));
}

#[test]
fn the_capacity_is_exact() {
    for capacity in [1, 2, 3, 5, 8] {
        for mut dedup in [
            fixed(capacity, 0),
            HeapDedup::with_capacity(capacity, 0, &mut rng()),
        ] {
            for n in 0..capacity as u64 {
                assert_eq!(
                    dedup.commit(now(0, 0), entry(&id(n), n, 100, 0)).err(),
                    None
                );
            }
            assert_eq!((dedup.len(), dedup.fill()), (capacity, 100));
            let more = id(99);
            let refused = dedup.commit(now(0, 100), entry(&more, 99, 200, 0));
            assert_eq!(refused, Err(Full::Table));
            assert!(dedup.check(&more).is_none() && dedup.check_signature(signature(99)).is_none());
            assert!((0..capacity as u64).all(|n| dedup.check(&id(n)).is_some()));
            // Their time is over: one more finds room without being asked twice.
            assert!(
                dedup
                    .commit(now(40_000, 200), entry(&more, 99, 200, 0))
                    .is_ok()
            );
        }
    }
}

#[test]
fn br_37_no_instant_at_which_a_copy_is_acceptable_and_unknown() {
    const LIFE: u64 = 900_000;
    let mut dedup = fixed(4, 1);
    assert!(dedup.commit(now(0, 0), entry(&id(1), 1, LIFE, 0)).is_ok());
    for at in [60_000, 599_000, 899_000, LIFE] {
        dedup.sweep(now(at, at), 4);
        assert!(dedup.check(&id(1)).is_some(), "{at}");
        // A repeat is not a new sighting: it moves nothing.
        assert!(dedup.commit(now(at, at), entry(&id(1), 1, LIFE, 0)).is_ok());
    }
    assert_eq!(dedup.sweep(now(LIFE + 16_000, LIFE + 1), 4), 1);
    assert!(dedup.check(&id(1)).is_none());
}

#[test]
fn br_37_a_life_ends_by_the_clock_that_says_so_last() {
    let committed = || {
        let mut dedup = fixed(4, 1);
        assert!(
            dedup
                .commit(now(0, 1000), entry(&id(1), 1, 2000, 0))
                .is_ok()
        );
        dedup
    };
    let gone = |mono, wall| committed().sweep(now(mono, wall), 4) == 1;
    assert!(
        !gone(999, 2001),
        "the wall stepped on, or mono stood still in a suspend"
    );
    assert!(!gone(5_000_000, 2000), "the wall stepped back, or stands");
    assert!(!gone(u64::MAX, 0));
    assert!(gone(17_000, 2001));
}

#[test]
fn br_39_a_forged_copy_is_never_recorded() {
    let mut dedup = HeapDedup::with_capacity(1000, 16, &mut rng());
    assert!(dedup.commit(now(0, 0), entry(&id(9), 9, 100, 0)).is_ok());
    let memory = dedup.memory();
    for forged in 10..10_010 {
        let signature = dedup.signature_key(&[1; 32], &[forged as u8; 64]);
        assert!(dedup.check_signature(signature).is_none());
        assert!(dedup.check(&id(forged)).is_none());
    }
    assert_eq!((dedup.len(), dedup.memory()), (1, memory));
    assert!(dedup.check(&id(9)).is_some());
}

#[test]
fn br_40_the_same_payload_under_another_seq_is_another_publication() {
    let mut dedup = fixed(4, 1);
    let one = PublicationHash::of_tbs(b"seq 1, payload ok");
    let two = PublicationHash::of_tbs(b"seq 2, payload ok");
    assert!(dedup.commit(now(0, 0), entry(&one, 1, 100, 0)).is_ok());
    assert!(dedup.check(&two).is_none());
    assert!(dedup.commit(now(0, 0), entry(&two, 2, 100, 0)).is_ok());
    assert_eq!(dedup.len(), 2);
}

#[test]
fn over_half_full_nobody_holds_more_than_a_quarter() {
    // One counter is left over: their number is a power of two.
    let mut dedup = fixed(16, 5);
    let mut commit =
        |publisher, n, tag| dedup.commit(now(0, 0), of(publisher, &id(n), n, tag)).err();
    // Under a tag of its own each, as one publisher on many topics has them.
    for n in 0..9 {
        assert_eq!(commit(0, n, n as u32), None, "{n}");
    }
    for tag in 9..20 {
        assert_eq!(commit(0, 50, tag), Some(Full::Share));
    }
    for n in 20..24 {
        assert_eq!(commit(1, n, n as u32 % 2), None);
    }
    assert_eq!(commit(1, 50, 99), Some(Full::Share));
    // This one has the counter of the second one.
    assert_eq!(commit(5, 50, 99), Some(Full::Share));
    assert_eq!(commit(2, 24, 0), None);
    let held = [0, 1, 2, 3, 5].map(|publisher| dedup.held_by(signed_by(publisher, 7)));
    assert_eq!(held, [9, 4, 1, 0, 4]);
}

#[test]
fn only_its_own_entries_make_room_for_a_publisher_that_holds_its_quarter() {
    let mut dedup = fixed(16, 4);
    for n in 0..12 {
        let (publisher, id) = (n / 4, id(n));
        let new = of(publisher, &id, n, publisher as u32);
        assert!(dedup.commit(now(0, 0), new).is_ok());
    }
    let next = id(50);
    let new = of(1, &next, 50, 1);
    assert_eq!(dedup.commit(now(0, 0), new), Err(Full::Share));
    let key = new.signature;
    // All are covered but two of its own.
    let mut asked = Vec::new();
    let gone = dedup.make_room(now(0, 0), Full::Share, key, 16, |tag, seq| {
        asked.push((tag, seq));
        seq < 6
    });
    assert_eq!(asked, [(1, 4), (1, 5), (1, 6), (1, 7)]);
    assert_eq!(gone, 2);
    assert!(dedup.commit(now(0, 0), new).is_ok());
    assert_eq!(dedup.held_by(key), 3);
    // When there is no slot left, anybody's make room.
    let gone = dedup.make_room(now(0, 0), Full::Table, key, 16, |_, seq| seq < 8);
    assert_eq!(gone, 6);
}

#[test]
fn a_publisher_has_the_same_share_under_every_signature() {
    let dedup = HeapDedup::with_capacity(16, 1 << 20, &mut rng());
    assert_eq!(dedup.shares.capacity(), 1 << 16);
    let share = |publisher: u64, n: u8| {
        let publisher = PublicationHash::of_tbs(&publisher.to_le_bytes());
        let first = publisher.as_bytes()[..32].try_into().unwrap();
        share_of(dedup.signature_key(&first, &[n; 64]).0)
    };
    let mut seen = BTreeSet::new();
    for publisher in 0..1000 {
        let first = share(publisher, 0);
        assert!((1..20).all(|n| share(publisher, n) == first));
        seen.insert(first);
    }
    // Of a thousand among 65,536, eight share with another one.
    assert!(seen.len() > 975, "{}", seen.len());
    // Key ids that differ in one bit, wherever it is, do not have shares that do.
    let mut near = BTreeSet::new();
    for bit in 0..256 {
        let mut publisher = [0; 32];
        publisher[bit / 8] |= 1 << (bit % 8);
        near.insert(share_of(dedup.signature_key(&publisher, &[0; 64]).0) % 4096);
    }
    assert!(near.len() > 230, "{}", near.len());
}

#[test]
fn a_full_table_reuses_what_is_covered_and_nothing_else() {
    let mut dedup = fixed(8, 0);
    for n in 0..8 {
        assert!(dedup.commit(now(0, 0), entry(&id(n), n, 100, 0)).is_ok());
    }
    let mut make_room = |at, budget, covered: fn(u64) -> bool| {
        dedup.make_room(at, Full::Table, signature(99), budget, |_, seq| {
            covered(seq)
        })
    };
    assert_eq!(make_room(now(0, 0), 8, |_| false), 0);
    let gone = make_room(now(0, 0), 3, |_| true);
    assert_eq!(gone, 3, "no more than its budget");
    assert_eq!(make_room(now(0, 0), 8, |seq| seq == 7), 1);
    let left: Vec<u64> = (0..8).filter(|n| dedup.check(&id(*n)).is_some()).collect();
    assert_eq!(left.len(), 4);
    assert!(!left.contains(&7));
    let key = signature(99);
    let gone = dedup.make_room(now(101_000, 101), Full::Table, key, 8, |_, _| false);
    assert_eq!(gone, 4, "and what is over");
}

#[test]
fn a_reference_names_one_entry_and_never_another() {
    let mut dedup = HeapDedup::with_capacity(10_000, 1, &mut rng());
    let old = dedup.commit(now(0, 0), entry(&id(1), 1, 100, 3)).unwrap();
    assert_eq!(dedup.entry(old), Some((3, 1)));
    assert_eq!(dedup.check(&id(1)), Some(old));
    assert_eq!(dedup.check_signature(signature(1)), Some(old));
    assert!(dedup.forget_entry(old) && !dedup.forget_entry(old));
    assert!(!dedup.forget(&id(1)) && dedup.check_signature(signature(1)).is_none());
    let new = dedup.commit(now(0, 0), entry(&id(2), 2, 100, 0)).unwrap();
    assert_ne!(new, old);
    assert_eq!(dedup.entry(old), None);
    // Nor after the storage was given back and came again.
    let refs = |dedup: &mut HeapDedup, from: u64, until| -> Vec<EntryRef> {
        let commit = |n| dedup.commit(now(0, 0), entry(&id(n), n, until, 0)).unwrap();
        (from..from + 5000).map(commit).collect()
    };
    let first = refs(&mut dedup, 10, 100);
    let full = dedup.memory();
    while dedup.sweep(now(100_000, 1000), 4096) > 0 || dedup.memory() > full / 10 {}
    let second = refs(&mut dedup, 10_010, 100);
    assert!(first.iter().all(|old| dedup.entry(*old).is_none()));
    assert!(second.iter().all(|new| dedup.entry(*new).is_some()));
}

#[test]
fn churn_leaves_memory_flat_and_strangers_leave_it_where_it_was() {
    const LIFE: u64 = 1_000_000;
    let mut dedup = HeapDedup::with_capacity(1_000_000, 1000, &mut rng());
    assert_eq!(dedup.memory(), 0);
    let mut most = 0;
    // Ten publications a second: ten thousand alive at a time, a hundred thousand in all.
    for at in 0..100_000 {
        let tag = (at % 1000) as u32;
        assert!(
            dedup
                .commit(
                    now(at * 100, at * 100),
                    entry(&id(at), at, at * 100 + LIFE, tag)
                )
                .is_ok()
        );
        if at == 30_000 {
            most = dedup.memory();
        }
    }
    assert!(
        dedup.memory() <= most + most / 8,
        "{} after {most}",
        dedup.memory()
    );
    assert!(
        dedup.used <= LIFE as usize / 100 * 11 / 10,
        "{}",
        dedup.used
    );
    for at in (0..20).map(|turn| 12_000_000 + turn * 1000) {
        dedup.sweep(now(at, at), 4096);
    }
    assert_eq!(dedup.len(), 0);
    assert!(dedup.memory() <= 12 * 1024, "{}", dedup.memory());
    assert!((0..1000).all(|n| dedup.held_by(signature(n)) == 0));
}

#[test]
fn buckets_split_and_merge_without_losing_an_entry() {
    let mut dedup = HeapDedup::with_capacity(100_000, 0, &mut rng());
    let found = |dedup: &HeapDedup, n: u64| {
        let by_id = dedup.check(&id(n));
        assert_eq!(by_id, dedup.check_signature(signature(n)));
        by_id.is_some()
    };
    for n in 0..5000 {
        assert!(
            dedup
                .commit(now(0, 0), entry(&id(n), n, 100_000 + n % 7 * 1_000_000, 0))
                .is_ok()
        );
    }
    let mut left: BTreeSet<u64> = (0..5000).collect();
    assert!(left.iter().all(|n| found(&dedup, *n)));
    for n in (0..5000).step_by(3) {
        assert!(dedup.forget(&id(n)));
        left.remove(&n);
    }
    for at in [1, 1_140_000, 3_140_000, 5_140_000, 6_140_000] {
        dedup.sweep(now(at, at), 10_000);
        left.retain(|n| 100_000 + n % 7 * 1_000_000 >= at);
        assert_eq!(dedup.len(), left.len());
        assert!((0..5000).all(|n| found(&dedup, n) == left.contains(&n)));
    }
}

#[test]
fn an_index_is_blank_again_when_the_last_entry_goes() {
    let capacity = 5000;
    for mut dedup in [
        fixed(capacity, 0),
        HeapDedup::with_capacity(capacity, 0, &mut rng()),
    ] {
        // Again and again, and the heap's index moves in the middle of it.
        for round in 0..3 {
            let ids = || (0..capacity as u64).map(|n| n + round * 1000);
            for n in ids() {
                assert!(dedup.commit(now(0, 0), entry(&id(n), n, 100, 0)).is_ok());
            }
            assert!(!dedup.index.is_blank());
            assert!(ids().all(|n| dedup.forget(&id(n))));
            assert!(dedup.index.is_blank());
        }
    }
}

#[test]
fn every_bit_of_key_id_and_signature_counts() {
    let dedup = fixed(1, 0);
    let mut bytes = [0x55u8; 96];
    let key = |bytes: &[u8; 96]| {
        let (publisher, signature) = bytes.split_at(32);
        dedup.signature_key(publisher.try_into().unwrap(), signature.try_into().unwrap())
    };
    let plain = key(&bytes);
    assert_eq!(plain, key(&bytes));
    let mut seen = BTreeSet::new();
    for bit in 0..96 * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let SignatureKey(words) = key(&bytes);
        assert_ne!(plain, SignatureKey(words));
        assert!(seen.insert(words), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    let other = Dedup::new([], [], [], &mut Seed::new([6; 32]).fork("dedup"));
    assert_ne!(
        plain,
        other.signature_key(&[0x55; 32], &[0x55; 64]),
        "keyed by the seed"
    );
}

#[test]
fn room_is_told_in_per_cent_and_seconds() {
    let mut dedup = fixed(10, 0);
    for n in 0..8 {
        assert!(dedup.commit(now(0, 0), entry(&id(n), n, 100, 0)).is_ok());
    }
    assert_eq!(
        (
            dedup.fill(),
            dedup.seconds_of_room(1),
            dedup.seconds_of_room(0)
        ),
        (80, Some(2), None)
    );
    let empty = fixed(0, 0);
    assert_eq!((empty.fill(), empty.check(&id(1))), (100, None));
}

#[derive(Clone, Debug)]
enum Step {
    Commit {
        n: u64,
        life: u64,
        tag: u32,
    },
    Forget(u64),
    MakeRoom {
        budget: usize,
        below: u64,
        publisher: u64,
        full: Full,
    },
    Sweep(usize),
    Turn {
        mono: u64,
        wall: i64,
    },
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..40u64, 0..300_000u64, 0..5u32).prop_map(|(n, life, tag)| Step::Commit { n, life, tag }),
        1 => (0..40u64).prop_map(Step::Forget),
        1 => (0..30usize, 0..40u64, 0..8u64, any::<bool>()).prop_map(|(budget, below, publisher, share)| {
            let full = if share { Full::Share } else { Full::Table };
            Step::MakeRoom { budget, below, publisher, full }
        }),
        1 => (0..30usize).prop_map(Step::Sweep),
        // Both run; a suspend with mono standing or running; steps both ways.
        3 => (0..150_000u64).prop_map(|by| Step::Turn { mono: by, wall: by as i64 }),
        1 => (0..400_000u64, -400_000..400_000i64).prop_map(|(mono, wall)| Step::Turn { mono, wall }),
    ];
    proptest::collection::vec(step, 0..200)
}

/// One entry as a list keeps it. `lapsed`: both clocks once agreed that its life was over, so it may be gone.
#[derive(Clone, Debug)]
struct Known {
    n: u64,
    tag: u32,
    until: u64,
    at_least: u64,
    lapsed: bool,
}

/// The `n`th publication is the `n`th publisher's, whatever its tag.
fn compare(mut dedup: HeapDedup, steps: &[Step], capacity: usize, shares: u64) {
    let mut model: Vec<Known> = Vec::new();
    let (mut mono, mut wall) = (0u64, 1_000_000u64);
    let share = capacity.div_ceil(4);
    // Until the clocks first disagree it is known, too, when an entry is gone at the latest.
    let mut agree = true;
    for step in steps {
        let at = now(mono, wall);
        match *step {
            Step::Commit { n, life, tag } => {
                let until = wall + life;
                let hash = id(n);
                let known = dedup.check(&hash);
                let result = dedup.commit(at, entry(&hash, n, until, tag));
                model.retain(|known| dedup.check(&id(known.n)).is_some() || !known.lapsed);
                let others: Vec<_> = model.iter().filter(|known| known.n != n).collect();
                let held = others
                    .iter()
                    .filter(|known| shares > 0 && known.n % shares == n % shares)
                    .count();
                let over_share = shares > 0 && others.len() > capacity / 2 && held >= share;
                match result {
                    Ok(entry) if known == Some(entry) => {}
                    Ok(_) => {
                        assert!(known.is_none() && others.len() < capacity && !over_share);
                        model.retain(|known| known.n != n);
                        model.push(Known {
                            n,
                            tag,
                            until,
                            at_least: mono + life,
                            lapsed: false,
                        });
                    }
                    Err(Full::Share) => assert!(over_share && others.len() < capacity),
                    Err(Full::Table) => {
                        assert_eq!(others.len(), capacity);
                        let over =
                            |known: &&&Known| wall > known.until && mono >= known.at_least + 16_000;
                        assert_eq!(
                            others
                                .iter()
                                .find(over)
                                .map(|known| known.n)
                                .filter(|_| agree),
                            None
                        );
                    }
                }
            }
            Step::Forget(n) => {
                let known = dedup.check(&id(n)).is_some();
                assert_eq!(dedup.forget(&id(n)), known);
                model.retain(|known| known.n != n);
            }
            Step::MakeRoom {
                budget,
                below,
                publisher,
                full,
            } => {
                let before = dedup.len();
                let mut taken = Vec::new();
                let key = signed_by(publisher, 99);
                let freed = dedup.make_room(at, full, key, budget, |tag, seq| {
                    if let (Full::Share, Some(others)) = (full, seq.checked_rem(shares)) {
                        assert_eq!(others, publisher % shares);
                    }
                    let covered = seq < below;
                    if covered {
                        taken.push((tag, seq));
                    }
                    covered
                });
                assert!(freed <= budget * 2 && before - dedup.len() == freed);
                model.retain(|known| !taken.contains(&(known.tag, known.n)));
            }
            Step::Sweep(budget) => {
                assert!(dedup.sweep(at, budget) <= budget);
            }
            Step::Turn {
                mono: more,
                wall: change,
            } => {
                agree &= more as i64 == change;
                mono += more;
                wall = wall.saturating_add_signed(change);
            }
        }
        for known in &mut model {
            known.lapsed |= wall > known.until && mono >= known.at_least;
        }
        for n in 0..40 {
            let found = dedup.check(&id(n));
            assert_eq!(found, dedup.check_signature(signature(n)));
            match model.iter().position(|known| known.n == n) {
                None => assert_eq!(found, None),
                Some(at) if found.is_none() => {
                    assert!(model.remove(at).lapsed, "forgotten too early")
                }
                Some(at) => assert_eq!(dedup.entry(found.unwrap()), Some((model[at].tag, n))),
            }
        }
        assert_eq!(dedup.len(), model.len());
        for publisher in 0..shares {
            let held = model
                .iter()
                .filter(|known| known.n % shares == publisher)
                .count();
            assert_eq!(dedup.held_by(signature(publisher)) as usize, held);
        }
    }
    // With time, everything ends.
    let end = now(mono + 10_000_000, wall + 10_000_000);
    dedup.sweep(end, capacity);
    assert!(dedup.is_empty());
}

proptest! {
    #[test]
    fn every_script_gives_what_a_list_gives(
        steps in script(), capacity in 1..30usize, shares in prop_oneof![Just(0usize), Just(1), Just(4)]
    ) {
        let on_heap = HeapDedup::with_capacity(capacity, shares, &mut rng());
        for dedup in [fixed(capacity, shares), on_heap] {
            compare(dedup, &steps, capacity, shares as u64);
        }
    }
}
