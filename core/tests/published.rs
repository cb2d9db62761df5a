//! Vectors that another system published, unmodified: the event seal of scheme 1, and the payloads of questions about keys. They are not this
//! project's to hand on, so they are read where `TIDINGS_PUBLISHED_VECTORS` says; without it these tests say so and pass.

use serde_json::Value;
use tidings::code::SealPolicy;
use tidings::crypto::{OpenError, PeriodKey, Place, SEAL_TAG, Subkey1};
use tidings::keyring::{KeyPeriod, Which, check_keys, read_question, write_answer, write_question};
use tidings::{KeyPeriods, NodeId, RealmId, WallMs};

fn published(file: &str) -> Option<Value> {
    let Some(folder) = std::env::var_os("TIDINGS_PUBLISHED_VECTORS") else {
        eprintln!("TIDINGS_PUBLISHED_VECTORS is not set: {file} was not run");
        return None;
    };
    let path = std::path::Path::new(&folder).join(file);
    let text = std::fs::read(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    Some(serde_json::from_slice(&text).expect("JSON"))
}

fn hex(entry: &Value, name: &str) -> Vec<u8> {
    let text = entry[name].as_str().expect("hex digits");
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(byte).collect()
}

fn array<const N: usize>(entry: &Value, name: &str) -> [u8; N] {
    hex(entry, name).try_into().expect("so many bytes")
}

#[test]
fn the_event_seal_of_scheme_1_comes_out_byte_for_byte_and_no_change_of_it_opens() {
    let Some(file) = published("seal_scheme1_events.json") else {
        return;
    };
    let events = file["events"].as_array().expect("a list");
    assert!(!events.is_empty());
    for entry in events {
        let publisher = NodeId::new(array(entry, "publisher"));
        let place = Place {
            realm: RealmId::new(array(entry, "realm")),
            topic: entry["topic"].as_str().expect("a topic"),
            publisher,
            epoch: None,
            seq: entry["seq"].as_u64().expect("a number"),
            published_at: WallMs::new(entry["published_at"].as_u64().expect("a time")),
            key_id: [0; 8],
        };
        let secret = array(entry, "k_g");
        let subkey = Subkey1::derive(&PeriodKey::new([0; 8], secret), &publisher);
        let mut aad = Vec::new();
        Subkey1::encode_aad(&place, &mut aad);
        assert_eq!(aad, hex(entry, "aad"));
        let (nonce, plain, ct) = (array(entry, "nonce"), hex(entry, "plain"), hex(entry, "ct"));
        let mut text = plain.clone();
        let tag = subkey.seal(&place, &nonce, &mut text).expect("it seals");
        text.extend_from_slice(&tag);
        assert_eq!(text, ct);
        let opens = |subkey: &Subkey1, place: &Place<'_>, nonce: &[u8; 12], ct: &[u8]| {
            let mut ct = ct.to_vec();
            subkey.open(place, nonce, &mut ct).map(|text| text.to_vec())
        };
        assert_eq!(opens(&subkey, &place, &nonce, &ct), Ok(plain));
        let refused = Err(OpenError::TagInvalid);
        for bit in 0..ct.len() * 8 {
            let mut flipped = ct.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                opens(&subkey, &place, &nonce, &flipped),
                refused,
                "bit {bit}"
            );
        }
        let other = NodeId::new([7; 32]);
        let moved = [
            Place {
                realm: RealmId::new([7; 32]),
                ..place
            },
            Place {
                topic: "acme/news",
                ..place
            },
            Place {
                publisher: other,
                ..place
            },
            Place {
                seq: place.seq + 1,
                ..place
            },
            Place {
                published_at: place.published_at.saturating_add(1),
                ..place
            },
        ];
        for moved in moved {
            assert_eq!(opens(&subkey, &moved, &nonce, &ct), refused, "{moved:?}");
        }
        for (secret, of) in [(secret, other), ([7; 32], publisher)] {
            let wrong = Subkey1::derive(&PeriodKey::new([0; 8], secret), &of);
            assert_eq!(opens(&wrong, &place, &nonce, &ct), refused);
        }
        assert_eq!(opens(&subkey, &place, &[7; 12], &ct), refused);
        assert_eq!(opens(&subkey, &place, &nonce, &ct[..SEAL_TAG - 1]), refused);
    }
}

#[test]
fn questions_about_keys_and_their_answers_come_out_byte_for_byte() {
    let Some(file) = published("group_key_payloads.json") else {
        return;
    };
    let payloads = &file["payloads"];
    let by_id = &payloads["call_by_id"];
    for (entry, which) in [
        (&payloads["call_current"], Which::Current),
        (by_id, Which::One(array(by_id, "epoch_id"))),
    ] {
        let prefix = entry["prefix"].as_str().expect("a prefix");
        let mut written = Vec::new();
        write_question(which, prefix, &mut written);
        assert_eq!(written, hex(entry, "cbor"));
        assert_eq!(read_question(&written), Ok((which, prefix)));
    }
    let result = &payloads["result"];
    let (bytes, prefix) = (
        hex(result, "cbor"),
        result["prefix"].as_str().expect("text"),
    );
    let read = KeyPeriods::read(&bytes, prefix).expect("an answer");
    assert_eq!(read.policy, SealPolicy::Required);
    let epochs = result["epochs"].as_array().expect("a list");
    assert_eq!(read.periods.len(), epochs.len());
    for (period, epoch) in read.periods.iter().zip(epochs) {
        assert_eq!(*period.key().id(), array(epoch, "id"));
        let times = |name: &str| WallMs::new(epoch[name].as_u64().expect("a time"));
        assert_eq!(period.issued_at, times("issued_at"));
        assert_eq!(period.publish_until, times("publish_until"));
        assert_eq!(period.accept_until, times("accept_until"));
    }
    let now = read.periods[0].issued_at;
    assert_eq!(check_keys(Which::Current, &read.periods, now), Ok(()));
    // Made anew from what it says it is the same bytes.
    let again = epochs.iter().zip(&read.periods).map(|(epoch, period)| {
        let secret = array(epoch, "key");
        let id = *period.key().id();
        KeyPeriod::new(id, secret, period.issued_at, period.publish_until)
    });
    let again: Vec<KeyPeriod> = again.collect();
    let mut written = Vec::new();
    write_answer(read.policy, prefix, &again, &mut written);
    assert_eq!(written, bytes);
}
