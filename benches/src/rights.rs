//! What is counted of the two look-ups that stand between a fact and its reader: whether its publisher may speak, and the key that opens it.
//!
//! Decides: how the two machines are filled, and who is looked up in turn. Leaves to others: counting (`counts`). Believes: no clock, time
//! stands still. Bounded by: [`LOOKUPS`] of each.

use std::hint::black_box;

use tidings::code::SealPolicy;
use tidings::crypto::SubkeySlot;
use tidings::inbound::sources::{Judgement, Slot, SourceAnswer, SourceLimits, Sources, Window};
use tidings::keyring::{HeapKeyring, KeyPeriod, Lookup, PeriodSlot, PullSlot, Which};
use tidings::table::TableKey;
use tidings::{NodeId, Now, Seed, WallMs};

use crate::world::after;

/// Look-ups in one count.
pub(crate) const LOOKUPS: usize = 4096;

/// Publishers that are known.
const PUBLISHERS: usize = 256;

fn publishers() -> Vec<NodeId> {
    let mut rng = Seed::new([41; 32]).fork("publishers");
    let ids = (0..PUBLISHERS).map(|_| {
        let mut id = [0; 32];
        for eight in id.chunks_exact_mut(8) {
            eight.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        NodeId::new(id)
    });
    ids.collect()
}

/// What a node finds a verdict by: publisher, and half a hash of realm and source.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    publisher: NodeId,
    source: u128,
}

impl TableKey for Key {
    #[inline]
    fn prefix(&self) -> [u64; 2] {
        let [publisher, more] = self.publisher.prefix();
        [publisher, more ^ self.source as u64]
    }
}

/// Verdicts that admit, each publisher's in turn.
pub(crate) fn verdicts() -> Box<dyn FnOnce()> {
    let now = after(0);
    let limits = SourceLimits::default();
    let mut sources: Sources<Key, Vec<Slot<Key>>> =
        Sources::growing(limits, &mut Seed::new([42; 32]).fork("sources"))
            .expect("the defaults are good");
    let mut window = Window::new(vec![None; 4]);
    let keys = publishers().into_iter();
    let keys: Vec<Key> = keys
        .map(|publisher| Key {
            publisher,
            source: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321,
        })
        .collect();
    for key in &keys {
        let Judgement::Ask(lookup) = sources.judge(now, key, |_| true) else {
            unreachable!("nobody knows it");
        };
        let until = WallMs::new(u64::MAX);
        let _ = sources.answer(now, lookup.id, SourceAnswer::Admit { until });
    }
    Box::new(move || {
        for _ in 0..LOOKUPS / PUBLISHERS {
            for key in &keys {
                let judged = sources.judge(now, black_box(key), |known| {
                    window.take(now.mono, &limits, known, 1u8)
                });
                assert!(matches!(judged, Judgement::Admit(None)));
            }
        }
        std::mem::forget((sources, keys));
    })
}

/// Who comes after whom.
#[derive(Clone, Copy)]
pub(crate) enum Turns {
    /// One publisher, in one period.
    One,
    /// Each publisher in turn, in one period.
    Publishers,
    /// The same, every other fact of each in the period before.
    Periods,
}

/// A member's keys: those of two periods of the four it holds are in use.
pub(crate) fn held_keys(turns: Turns) -> Box<dyn FnOnce()> {
    const ROTATION: u64 = 900_000;
    let now = after(0);
    let mut slots = Vec::new();
    slots.resize_with(1024, SubkeySlot::default);
    let mut periods = Vec::new();
    periods.resize_with(96, PeriodSlot::default);
    let pulls = vec![PullSlot::EMPTY; 8];
    let rng = Seed::new([43; 32]).fork("keyring");
    let mut keyring = HeapKeyring::new(periods, pulls, slots, rng);
    let period = |n: u64| {
        let from = now.wall.as_millis() - n * ROTATION;
        let (from, until) = (WallMs::new(from), WallMs::new(from + ROTATION));
        KeyPeriod::new([n as u8 + 1; 8], [n as u8 + 51; 32], from, until)
    };
    let publishers = publishers();
    keyring.join(now);
    give(&mut keyring, now, Which::Current, period(0));
    for n in [3, 2, 1] {
        let id = [n as u8 + 1; 8];
        keyring.want(now, &id, &publishers[0]);
        give(&mut keyring, now, Which::One(id), period(n));
    }
    let facts = (0..LOOKUPS).map(|n| match turns {
        Turns::One => (0, 1),
        Turns::Publishers => (n % PUBLISHERS, 1),
        Turns::Periods => (n / 2 % PUBLISHERS, 1 + n as u8 % 2),
    });
    let facts: Vec<(NodeId, [u8; 8])> = facts.map(|(at, id)| (publishers[at], [id; 8])).collect();
    // All are derived.
    for (publisher, id) in &facts {
        assert!(matches!(
            keyring.lookup(now, id, publisher),
            Lookup::Held { .. }
        ));
    }
    Box::new(move || {
        for (publisher, id) in &facts {
            let found = keyring.lookup(now, black_box(id), black_box(publisher));
            assert!(matches!(black_box(found), Lookup::Held { .. }));
        }
        std::mem::forget((keyring, facts));
    })
}

fn give(keyring: &mut HeapKeyring, now: Now, which: Which, period: KeyPeriod) {
    while keyring.poll_ask().is_some() {}
    let given = keyring.handle_keys(now, which, SealPolicy::Required, &[period]);
    given.expect("as it was asked");
}
