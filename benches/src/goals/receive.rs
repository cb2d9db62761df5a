//! Goals 1 to 4: an event on its way in through `Client::handle_input`, beside the parts it cannot do without.

use std::hint::black_box;

use ed25519_dalek::{Signature, VerifyingKey};
use tidings::code::ObjectFault;
use tidings::crypto::{Profile, PublicKey};
use tidings::wire::object::PUBLICATION_LABEL;
use tidings::{PublicationHash, Verification};

use crate::harness::{Group, each};
use crate::line::Line;
use crate::reader::{PER_READ, Reader, Setup, Taken};
use crate::world::{Facts, Keys, after, resigned, signed_parts, view};

/// New events of one sample, where each is verified.
const VERIFIED: usize = 128;
/// New events of one sample, where they are not.
const UNVERIFIED: usize = 2048;
/// Copies of one sample.
const COPIES: usize = 2048;

pub(crate) struct Receive {
    here: (Facts, Reader),
    asked: (Facts, Reader),
    second: u64,
    rounds: usize,
}

/// An event apart, for what is measured by itself.
struct Parts {
    object: Vec<u8>,
    key: PublicKey,
    strict: VerifyingKey,
    message: Vec<u8>,
}

impl Parts {
    fn of(object: &[u8]) -> Self {
        let publication = view(object);
        let key = PublicKey::decode(Profile::ED25519, publication.key).expect("a key");
        let strict = VerifyingKey::from_bytes(publication.key).expect("a key");
        Self {
            object: object.to_vec(),
            message: signed_parts(key.hash(), publication.tbs).concat(),
            key,
            strict,
        }
    }
}

impl Receive {
    pub(crate) fn new() -> Self {
        let asked = Setup {
            verification: Verification::Asked,
            ..Setup::default()
        };
        let mut here = (Facts::new(Keys::Real), Reader::new(Setup::default()));
        let mut asked = (Facts::new(Keys::Real), Reader::new(asked));
        let second = here.1.settle(&mut here.0);
        asked.1.settle(&mut asked.0);
        Self {
            here,
            asked,
            second,
            rounds: 0,
        }
    }

    /// One sample of events that are new, in reads a second apart.
    fn new_events(reader: &mut Reader, second: u64, objects: &[Vec<u8>]) -> f64 {
        let mut reads = reader.reads(objects);
        each(objects.len(), || {
            for (at, read) in reads.iter_mut().enumerate() {
                reader.read(after(second + at as u64), read);
            }
        })
    }

    fn copies(reader: &mut Reader, second: u64, objects: &[Vec<u8>]) -> f64 {
        let mut reads = reader.reads(objects);
        each(objects.len(), || {
            for read in &mut reads {
                reader.read(after(second), read);
            }
        })
    }
}

impl Group for Receive {
    fn series(&self) -> &'static [&'static str] {
        &[
            "new event, verified",
            "its parts",
            "its parts, strict",
            "hash and decode",
            "hash",
            "new event, asked",
            "duplicate by hash",
            "duplicate by signature",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        let second = self.second;
        let objects = self.here.0.many(after(second), VERIFIED);
        let parts: Vec<Parts> = objects.iter().map(|object| Parts::of(object)).collect();

        let whole = Self::new_events(&mut self.here.1, second, &objects);
        // The parts of one event one after the other, as they come in the whole: what one leaves in the caches, the next one meets.
        let verified = each(VERIFIED, || {
            for part in &parts {
                let view = view(black_box(&part.object));
                black_box(PublicationHash::of_tbs(view.tbs));
                let key = &part.key;
                assert!(key.verify(PUBLICATION_LABEL, view.tbs, view.signature));
            }
        });
        let strictly = each(VERIFIED, || {
            for part in &parts {
                let view = view(black_box(&part.object));
                black_box(PublicationHash::of_tbs(view.tbs));
                let signature = Signature::from_bytes(view.signature);
                assert!(part.strict.verify_strict(&part.message, &signature).is_ok());
            }
        });
        let many = self.asked.0.many(after(second), UNVERIFIED);
        let read = each(UNVERIFIED, || {
            for object in &many {
                let view = view(black_box(object));
                black_box(PublicationHash::of_tbs(view.tbs));
            }
        });
        let views: Vec<_> = many.iter().map(|object| view(object)).collect();
        let hash = each(UNVERIFIED, || {
            for view in &views {
                black_box(PublicationHash::of_tbs(black_box(view.tbs)));
            }
        });
        let asked = Self::new_events(&mut self.asked.1, second, &many);

        let copies = || objects.iter().cycle().take(COPIES);
        let exact: Vec<_> = copies().cloned().collect();
        let resigned: Vec<_> = copies().map(|object| resigned(object)).collect();
        let by_hash = Self::copies(&mut self.here.1, second, &resigned);
        let by_signature = Self::copies(&mut self.here.1, second, &exact);
        self.second += (UNVERIFIED / PER_READ) as u64;
        self.rounds += 1;
        vec![
            whole,
            verified,
            strictly,
            read,
            hash,
            asked,
            by_hash,
            by_signature,
        ]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let &[
            whole,
            verified,
            strictly,
            read,
            hash,
            asked,
            by_hash,
            by_signature,
        ] = least
        else {
            unreachable!("one figure for each sample");
        };
        let facts = |count| Taken {
            facts: count * self.rounds,
            notices: 0,
        };
        assert_eq!(self.here.1.taken, facts(VERIFIED));
        assert_eq!(self.asked.1.taken, facts(UNVERIFIED));
        for (reader, duplicates) in [(&self.here.1, 2 * COPIES * self.rounds), (&self.asked.1, 0)] {
            let faults = reader.client.status().faults;
            for (fault, count) in faults.iter() {
                let expected = match fault {
                    ObjectFault::Duplicate => duplicates as u64,
                    _ => 0,
                };
                assert_eq!(count, expected, "{fault:?}");
            }
        }
        vec![
            Line::ratio(
                1,
                "new event, verified, beside its parts",
                [whole, verified],
                1.10,
            ),
            Line::ratio(
                1,
                "... beside its parts with verify_strict",
                [whole, strictly],
                0.92,
            ),
            Line::ratio(
                2,
                "new event, verified elsewhere, beside hash and decode",
                [asked, read],
                1.15,
            ),
            Line::ratio(
                3,
                "duplicate by hash, beside the hash",
                [by_hash, hash],
                1.10,
            ),
            Line::ratio(
                4,
                "duplicate by signature, beside the hash",
                [by_signature, hash],
                0.10,
            ),
            Line::time(4, "duplicate by signature", by_signature, 100.0),
        ]
    }
}
