//! The event seal: payloads sealed and opened, every bit a seal binds, sealed publications.

use serde_json::{Value as Json, json};
use tidings::crypto::{PeriodKey, Place, Profile, Seal, Subkey};
use tidings::wire::{Body, Publication};
use tidings::{NodeId, RealmId, WallMs};

use crate::{Verdict, array_of, bytes_of, draft_of, refuse, run, signer_of, text, to_hex};

/// What an entry says of the place, and the keys to it.
#[derive(Clone)]
struct Given {
    period_key: [u8; 32],
    key_id: [u8; 8],
    realm: [u8; 32],
    topic: String,
    publisher: [u8; 32],
    epoch: Option<u64>,
    seq: u64,
    published_at: u64,
    nonce: [u8; 12],
    ct: Vec<u8>,
}

impl Given {
    fn of(entry: &Json) -> Self {
        let opens = entry.get("ct").is_some();
        Self {
            period_key: array_of(entry, "period_key"),
            key_id: array_of(entry, "key_id"),
            realm: array_of(entry, "realm"),
            topic: text(entry, "topic").to_owned(),
            publisher: array_of(entry, "publisher"),
            epoch: entry.get("epoch").map(|epoch| epoch.as_u64().unwrap()),
            seq: entry["seq"].as_u64().unwrap(),
            published_at: entry["published_at"].as_u64().unwrap(),
            nonce: if opens {
                array_of(entry, "nonce")
            } else {
                [0; 12]
            },
            ct: if opens {
                bytes_of(entry, "ct")
            } else {
                Vec::new()
            },
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            realm: RealmId::new(self.realm),
            topic: &self.topic,
            publisher: NodeId::new(self.publisher),
            epoch: self.epoch,
            seq: self.seq,
            published_at: WallMs::new(self.published_at),
            key_id: self.key_id,
        }
    }

    fn subkey(&self) -> Subkey {
        let period = PeriodKey::new(self.key_id, self.period_key);
        Subkey::derive(&period, &self.place().publisher)
    }

    fn open(&self) -> Option<Vec<u8>> {
        let mut ct = self.ct.clone();
        let opened = self.subkey().open(&self.place(), &self.nonce, &mut ct);
        opened.ok().map(|text| text.to_vec())
    }

    /// Itself with one bit of this input changed, each in turn.
    fn flips(&self, name: &str) -> Vec<Self> {
        let bits = match name {
            "ct" => self.ct.len() * 8,
            "nonce" => 96,
            "key_id" => 64,
            "period_key" | "realm" | "publisher" => 256,
            "topic" => self.topic.len() * 7,
            "epoch" | "seq" | "published_at" => 53,
            other => panic!("{other}"),
        };
        let flip = |bit: usize| {
            let mut one = self.clone();
            let (at, mask) = (bit / 8, 1u8 << (bit % 8));
            match name {
                "ct" => one.ct[at] ^= mask,
                "nonce" => one.nonce[at] ^= mask,
                "key_id" => one.key_id[at] ^= mask,
                "period_key" => one.period_key[at] ^= mask,
                "realm" => one.realm[at] ^= mask,
                "publisher" => one.publisher[at] ^= mask,
                "epoch" => one.epoch = one.epoch.map(|epoch| epoch ^ (1 << bit)),
                "seq" => one.seq ^= 1u64 << bit,
                "published_at" => one.published_at ^= 1u64 << bit,
                _ => {
                    let mut topic = one.topic.into_bytes();
                    topic[bit / 7] ^= 1u8 << (bit % 7);
                    one.topic = String::from_utf8(topic).expect("ASCII stays ASCII");
                }
            }
            one
        };
        (0..bits).map(flip).collect()
    }
}

fn sealed(entry: &Json) -> Json {
    let given = Given::of(entry);
    let mut aad = Vec::new();
    given.place().encode_aad(&mut aad);
    let mut ct = bytes_of(entry, "plain");
    let entropy = array_of(entry, "entropy");
    let (nonce, tag) = given
        .subkey()
        .seal(&given.place(), &entropy, &mut ct)
        .unwrap();
    ct.extend(tag);
    let back = Given {
        nonce,
        ct: ct.clone(),
        ..given
    }
    .open();
    assert_eq!(back, Some(bytes_of(entry, "plain")));
    json!({ "aad": to_hex(&aad), "nonce": to_hex(&nonce), "ct": to_hex(&ct) })
}

fn opened(entry: &Json) -> Verdict {
    let given = Given::of(entry);
    let mut plain = given.open();
    if let Some(name) = entry.get("flip") {
        assert!(plain.is_some(), "before any bit is changed it opens");
        let flips = given.flips(name.as_str().unwrap());
        plain = flips.iter().find_map(Given::open);
    }
    match plain {
        Some(plain) => Ok(json!({ "plain": to_hex(&plain) })),
        None => refuse("tag_invalid"),
    }
}

fn event(entry: &Json) -> Verdict {
    let object = bytes_of(entry, "hex");
    let (publication, _) = Publication::open(&object, Profile::ED25519).expect("it verifies");
    let Body::Sealed(sealed) = publication.body else {
        panic!("{entry} is not sealed");
    };
    let period = PeriodKey::new(*sealed.key_id, array_of(entry, "period_key"));
    let subkey = Subkey::derive(&period, &publication.publisher);
    let mut buffer = vec![0; sealed.ct.len()];
    let Ok(payload) = publication.unseal(&subkey, &mut buffer) else {
        return refuse("tag_invalid");
    };
    if entry.get("entropy").is_some() {
        let seal = Seal {
            key_id: *sealed.key_id,
            subkey: &subkey,
            entropy: array_of(entry, "entropy"),
        };
        seals_to_the_same_bytes(&publication, payload, &seal);
    }
    Ok(json!({ "key_id": to_hex(sealed.key_id), "payload": to_hex(payload) }))
}

fn seals_to_the_same_bytes(publication: &Publication<'_>, payload: &[u8], seal: &Seal<'_>) {
    let signer = signer_of(&publication.publisher).expect("one of the four");
    let mut bytes = Vec::new();
    draft_of(publication, Body::Payload(payload))
        .sign_sealed(&signer, seal, &mut bytes)
        .expect("it signs");
    assert_eq!(to_hex(&bytes), to_hex(publication.bytes));
}

#[test]
fn seal() {
    run("seal", |entry| match text(entry, "kind") {
        "seal" => Ok(sealed(entry)),
        "open" => opened(entry),
        "event" => event(entry),
        other => panic!("{other}"),
    });
}
