//! Instruction counts: bodies to be run under valgrind, and the lines made of their counts.
//!
//! Decides: what is counted and what it is held against. Leaves to others: running valgrind (`valgrind`). Believes: no clock. Bounded by: the
//! list of bodies.
//!
//! A body sets itself up and hands back what is counted. A node is brought to its steady state by publications that nobody signed and that
//! it is told are verified: what is counted is the same, and signing under valgrind takes minutes. What a body made for itself is not let go of
//! while it is counted.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use tidings::crypto::{Profile, PublicKey, SecretKey, SignError, Signer};
use tidings::wire::object::PUBLICATION_LABEL;
use tidings::{PublicationHash, Verification};

use crate::goals::publish;
use crate::line::Line;
use crate::reader::{Reader, Setup};
use crate::rights::{LOOKUPS, Turns, held_keys, verdicts};
use crate::world::{Facts, Key, Keys, after, key, key_hash, resigned, signed_parts, view};

/// Events in one count that verifies or signs, and in one that does not.
const FEW: usize = 32;
const MANY: usize = 256;
/// Seconds between two reads, of which as many settle a node as make its memory end again.
const PACE: u64 = 4;

/// What is counted.
type Work = Box<dyn FnOnce()>;

/// One count.
#[derive(Clone, Copy)]
pub struct Body {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Events in it.
    pub events: usize,
    make: fn() -> Work,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Body {
    const fn new(name: &'static str, events: usize, make: fn() -> Work) -> Self {
        Self { name, events, make }
    }

    /// Sets it up and does what is counted.
    pub fn run(&self) {
        counted((self.make)());
    }
}

/// All there are.
pub const BODIES: [Body; 13] = [
    Body::new("new", FEW, || new_events(Verification::Here)),
    Body::new("new-parts", FEW, new_parts),
    Body::new("asked", MANY, || new_events(Verification::Asked)),
    Body::new("asked-parts", MANY, asked_parts),
    Body::new("copy", MANY, copies),
    Body::new("hash", MANY, hashes),
    Body::new("decode", MANY, decodes),
    Body::new("publish", FEW, publishes),
    Body::new("sign", FEW, signs),
    Body::new("verdict", LOOKUPS, verdicts),
    Body::new("key", LOOKUPS, || held_keys(Turns::One)),
    Body::new("key-publishers", LOOKUPS, || held_keys(Turns::Publishers)),
    Body::new("key-periods", LOOKUPS, || held_keys(Turns::Periods)),
];

/// The function whose calls are counted.
#[inline(never)]
pub fn counted(work: Work) {
    work();
    black_box(());
}

/// A signer whose signatures are nobody's.
struct Unsigned([u8; 32]);

impl Signer for Unsigned {
    fn profile(&self) -> Profile {
        Profile::ED25519
    }

    fn public_key(&self) -> [u8; 32] {
        self.0
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        let mut signature = [0u8; 64];
        for part in parts {
            // Numbers stand in the part's first half; what differs there differs here.
            for (at, byte) in part.iter().enumerate() {
                let mixed = signature[at % 61].rotate_left(3) ^ byte;
                signature[at % 61] = mixed.wrapping_add(at as u8);
            }
        }
        Ok(signature)
    }
}

fn unsigned() -> Facts {
    let keys = (100..116u8).map(|n| SecretKey::from_seed([n; 32]).public_key());
    Facts::from(keys.map(|key| Key::new(Arc::new(Unsigned(key)))).collect())
}

/// A node at its steady state, the next publications, and the second at which they come.
fn settled(verification: Verification, count: usize) -> (Reader, Vec<Vec<u8>>, u64) {
    let mut reader = Reader::new(Setup {
        verification,
        ..Setup::default()
    });
    let mut facts = match verification {
        Verification::Asked => unsigned(),
        _ => Facts::new(Keys::Real),
    };
    let second = match verification {
        Verification::Asked => reader.settle_every(PACE, &mut facts),
        _ => {
            // Every key known, every lane begun.
            let known = facts.many(after(0), 32);
            for mut read in reader.reads(&known) {
                reader.read(after(0), &mut read);
            }
            1
        }
    };
    let objects = facts.many(after(second), count);
    (reader, objects, second)
}

fn reading(mut reader: Reader, objects: &[Vec<u8>], second: u64, pace: u64) -> Work {
    let mut reads = reader.reads(objects);
    let facts = reader.taken.facts;
    let all = if pace > 0 { objects.len() } else { 0 };
    Box::new(move || {
        for (at, read) in reads.iter_mut().enumerate() {
            reader.read(after(second + at as u64 * pace), read);
        }
        assert_eq!(reader.taken.facts, facts + all);
        std::mem::forget((reader, reads));
    })
}

fn new_events(verification: Verification) -> Work {
    let count = match verification {
        Verification::Asked => MANY,
        _ => FEW,
    };
    let (reader, objects, second) = settled(verification, count);
    reading(reader, &objects, second, PACE)
}

fn copies() -> Work {
    let (mut reader, objects, mut second) = settled(Verification::Asked, MANY);
    for mut read in reader.reads(&objects) {
        // As many end as come.
        second += PACE;
        reader.read(after(second), &mut read);
    }
    let copies: Vec<_> = objects.iter().map(|object| resigned(object)).collect();
    reading(reader, &copies, second, 0)
}

fn new_parts() -> Work {
    let objects = Facts::new(Keys::Real).many(after(0), FEW);
    let decode = |object: &Vec<u8>| PublicKey::decode(Profile::ED25519, view(object).key);
    let keys: Vec<PublicKey> = objects.iter().flat_map(decode).collect();
    Box::new(move || {
        for (object, key) in objects.iter().zip(&keys) {
            let view = view(black_box(object));
            black_box(PublicationHash::of_tbs(view.tbs));
            assert!(key.verify(PUBLICATION_LABEL, view.tbs, view.signature));
        }
        std::mem::forget(objects);
    })
}

fn asked_parts() -> Work {
    let objects = unsigned().many(after(0), MANY);
    Box::new(move || {
        for object in &objects {
            let view = view(black_box(object));
            black_box(PublicationHash::of_tbs(view.tbs));
        }
        std::mem::forget(objects);
    })
}

fn hashes() -> Work {
    let objects = unsigned().many(after(0), MANY);
    let all: Vec<Vec<u8>> = objects
        .iter()
        .map(|object| view(object).tbs.to_vec())
        .collect();
    Box::new(move || {
        for tbs in &all {
            black_box(PublicationHash::of_tbs(black_box(tbs)));
        }
        std::mem::forget(all);
    })
}

fn decodes() -> Work {
    let objects = unsigned().many(after(0), MANY);
    Box::new(move || {
        for object in &objects {
            black_box(view(black_box(object)));
        }
        std::mem::forget(objects);
    })
}

fn publishes() -> Work {
    let mut publish = publish::Publish::new();
    Box::new(move || publish.sign_next(FEW))
}

fn signs() -> Work {
    let (signer, object) = (key(4), Facts::from(vec![key(4)]).next(after(0)));
    let hash = key_hash(&signer);
    Box::new(move || {
        let tbs = view(&object).tbs;
        for _ in 0..FEW {
            black_box(signer.sign(&signed_parts(&hash, black_box(tbs)))).expect("a key");
        }
    })
}

/// What the counts come to, each of one event, in the order of [`BODIES`].
pub fn lines(counts: [f64; BODIES.len()]) -> Vec<Line> {
    let [
        new,
        parts,
        asked,
        asked_parts,
        copy,
        hash,
        decode,
        publish,
        sign,
        verdict,
        key,
        key_publishers,
        key_periods,
    ] = counts;
    let count =
        |goal, what, count, wanted| Line::count(goal, what, (count, "instructions"), wanted);
    vec![
        Line::times(
            1,
            "I: new event, verified, beside its parts",
            [new, parts],
            1.03,
        ),
        count(
            2,
            "I: new event, verified elsewhere, beyond hash and decode",
            asked - asked_parts,
            1500.0,
        ),
        count(
            3,
            "I: duplicate by hash, beyond the hash",
            copy - hash,
            400.0,
        ),
        count(5, "I: one strict decode", decode, 1500.0),
        Line::times(
            6,
            "I: encode and sign, beside the signature",
            [publish, sign],
            1.03,
        ),
        count(
            7,
            "I: a held key, of one publisher again and again",
            key,
            100.0,
        ),
        count(
            7,
            "I: a held key, of 256 publishers in turn",
            key_publishers,
            100.0,
        ),
        count(
            7,
            "I: a held key, of 256 publishers in turn, in two periods in turn",
            key_periods,
            100.0,
        ),
        count(
            19,
            "I: a verdict that admits, of 256 publishers in turn",
            verdict,
            100.0,
        ),
    ]
}
