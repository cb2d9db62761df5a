//! Goal 19: what an attacker costs, beside one verification.

use std::hint::black_box;

use tidings::code::{DropReason, ObjectFault};
use tidings::crypto::{Profile, PublicKey};
use tidings::wire::object::PUBLICATION_LABEL;
use tidings::{FaultCounts, Sources};

use crate::harness::{Group, each};
use crate::line::Line;
use crate::reader::{Reader, Setup, Taken};
use crate::world::{Facts, Keys, after, key, signed_as, view};

/// Forged facts of one sample.
const FORGED: usize = 128;
/// Facts of unknown publishers in one sample, each with a key of its own.
const UNKNOWN: usize = 1024;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Attack {
    /// Hears everybody.
    open: Reader,
    /// Hears the 16 publishers of `facts` alone.
    closed: Reader,
    /// Hears members, and has no lookup left for whom it does not know.
    spent: Reader,
    facts: Facts,
    /// Facts whose publishers nobody named, their signatures whole.
    strangers: Vec<Vec<u8>>,
    /// The same on a topic nobody subscribed to.
    unmatched: Vec<Vec<u8>>,
    rounds: usize,
}

impl Attack {
    pub(crate) fn new() -> Self {
        let publishers = || (100..116).map(key);
        let sources = Sources::Nodes(publishers().map(|key| key.node_id()).collect());
        let strangers = || Facts::from((5000..5000 + UNKNOWN as u64).map(key).collect());
        let mut attack = Self {
            open: Reader::new(Setup::default()),
            closed: Reader::new(Setup {
                sources,
                ..Setup::default()
            }),
            spent: Reader::new(Setup {
                sources: Sources::Members,
                ..Setup::default()
            }),
            facts: Facts::new(Keys::Real),
            strangers: strangers().many(after(0), UNKNOWN),
            unmatched: strangers()
                .on("other/acme/app/readings/taken_v1")
                .many(after(0), UNKNOWN),
            rounds: 0,
        };
        // Every publisher is known before the attack.
        let known = attack.facts.many(after(0), 16);
        for reader in [&mut attack.open, &mut attack.closed, &mut attack.spent] {
            for mut read in reader.reads(&known) {
                reader.read(after(0), &mut read);
            }
        }
        attack
    }

    fn sample(reader: &mut Reader, objects: &[Vec<u8>]) -> f64 {
        let mut reads = reader.reads(objects);
        each(objects.len(), || {
            for read in &mut reads {
                reader.read(after(0), read);
            }
        })
    }

    /// New facts of known publishers, each under the signature of its publisher's next fact.
    fn forged(&mut self) -> Vec<Vec<u8>> {
        let facts = self.facts.many(after(0), FORGED + 16);
        let forged = facts.iter().zip(&facts[16..]);
        forged
            .map(|(fact, next)| signed_as(fact, view(next).signature))
            .collect()
    }
}

impl Group for Attack {
    fn series(&self) -> &'static [&'static str] {
        &["verify", "forged", "not admitted", "no lookup", "unmatched"]
    }

    fn round(&mut self) -> Vec<f64> {
        self.rounds += 1;
        let forged = self.forged();
        let views: Vec<_> = forged.iter().map(|object| view(object)).collect();
        let keys = views
            .iter()
            .map(|view| PublicKey::decode(Profile::ED25519, view.key).expect("a key"));
        let keys: Vec<PublicKey> = keys.collect();
        let verify = each(FORGED, || {
            for (view, key) in views.iter().zip(&keys) {
                let verified = key.verify(PUBLICATION_LABEL, view.tbs, view.signature);
                assert!(!black_box(verified));
            }
        });
        vec![
            verify,
            Self::sample(&mut self.open, &forged),
            Self::sample(&mut self.closed, &self.strangers),
            Self::sample(&mut self.spent, &self.strangers),
            Self::sample(&mut self.open, &self.unmatched),
        ]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let &[verify, forged, refused, spent, unmatched] = least else {
            unreachable!("one figure for each sample");
        };
        let one_each = Taken {
            facts: 16,
            notices: 0,
        };
        assert_eq!([self.open.taken, self.closed.taken], [one_each; 2]);
        let counted = |reader: &Reader| -> FaultCounts { reader.client.status().faults };
        let (open, closed) = (counted(&self.open), counted(&self.closed));
        let rounds = self.rounds as u64;
        assert_eq!(
            open.of(ObjectFault::SignatureInvalid),
            rounds * FORGED as u64
        );
        assert_eq!(open.of(ObjectFault::Unmatched), rounds * UNKNOWN as u64);
        assert_eq!(
            closed.of(ObjectFault::SourceRefused),
            rounds * UNKNOWN as u64
        );
        let dropped = self.spent.client.status().sources.dropped;
        let full = (DropReason::LookupsFull, rounds * UNKNOWN as u64);
        assert!(dropped.contains(&full), "{dropped:?}");
        vec![
            Line::ratio(
                19,
                "forged fact, beside its verification",
                [forged, verify],
                1.05,
            ),
            Line::ratio(
                19,
                "fact of an unknown publisher no source admits, beside a verification",
                [refused, verify],
                0.1,
            ),
            Line::ratio(
                19,
                "fact of an unknown publisher, no lookup left, beside a verification",
                [spent, verify],
                0.1,
            ),
            Line::ratio(
                19,
                "fact of an unknown publisher on a topic nobody asked for",
                [unmatched, verify],
                0.1,
            ),
        ]
    }
}
