//! Ids of keys, signed objects, publications, and RFC 8032's own signatures.

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha384};
use tidings::code::ObjectFault;
use tidings::crypto::{Profile, PublicKey, SecretKey, Signer};
use tidings::wire::object::{self, Object, write_object};
use tidings::wire::{Body, Publication};
use tidings::{KeyId, NodeId, WallMs};

use crate::{Verdict, array_of, bytes_of, draft_of, family, refuse, run, signer_of, text, to_hex};

pub(crate) fn id_of_key(kind: &str, key: &[u8]) -> Verdict {
    let decoded = key.try_into().ok();
    let decoded = decoded.and_then(|key| PublicKey::decode(Profile::ED25519, key).ok());
    let Some(decoded) = decoded else {
        return refuse("bad_key_form");
    };
    let name = Profile::ED25519.name();
    Ok(json!(match kind {
        "node" => {
            assert_eq!(decoded.node_id(), NodeId::of_key(name, key));
            decoded.node_id().to_string()
        }
        "key" => KeyId::of_key(name, key).to_string(),
        other => panic!("{other}"),
    }))
}

fn signed(label: &str, key: &[u8], tbs: &[u8]) -> String {
    let hash = Sha384::digest(key);
    to_hex(&[label.as_bytes(), &[0], &hash, tbs].concat())
}

fn label(purpose: &str) -> &'static str {
    match purpose {
        "publication" => object::PUBLICATION_LABEL,
        "connect" => object::CONNECT_PROOF_LABEL,
        "hello" => object::HELLO_PROOF_LABEL,
        "record" => object::RECORD_LABEL,
        "request" => object::REQUEST_LABEL,
        "reply" => object::REPLY_LABEL,
        "grant" => object::GRANT_LABEL,
        other => panic!("{other}"),
    }
}

#[test]
fn objects() {
    run("objects", |entry| {
        let bytes = bytes_of(entry, "hex");
        let label = label(text(entry, "purpose"));
        let opened = Object::parse(&bytes)
            .and_then(|object| object.open(Profile::ED25519, label).map(|_| object));
        match opened {
            Ok(object) => Ok(json!({
                "key": to_hex(object.key),
                "tbs": to_hex(object.tbs),
                "signature": to_hex(object.signature),
                "label": label,
                "signed": signed(label, object.key, object.tbs),
            })),
            Err(fault) => refuse(fault.text()),
        }
    });
}

fn open(bytes: &[u8], now: u64) -> Result<Publication<'_>, ObjectFault> {
    let (publication, _) = Publication::open(bytes, Profile::ED25519)?;
    match publication.freshness(WallMs::new(now)) {
        Ok(()) => Ok(publication),
        Err((fault, past)) => {
            assert!(past > 0);
            Err(fault)
        }
    }
}

#[test]
fn publications() {
    run("publications", |entry| {
        let bytes = bytes_of(entry, "hex");
        let publication = match open(&bytes, entry["now"].as_u64().expect("a time")) {
            Ok(publication) => publication,
            Err(fault) => return refuse(fault.text()),
        };
        assert!(publication.publisher_matches_key());
        signs_to_the_same_bytes(&publication);
        let mut expect = json!({
            "publication_hash": publication.hash().to_string(),
            "expires_at": publication.expires_at().as_millis(),
            "signed": signed(object::PUBLICATION_LABEL, publication.key, publication.tbs),
            "publisher": publication.publisher.to_string(),
            "realm": publication.realm.to_string(),
            "topic": publication.topic,
            "seq": publication.seq,
            "published_at": publication.published_at.as_millis(),
        });
        if let Some(epoch) = publication.epoch {
            expect["epoch"] = json!(epoch);
        }
        if let Some(ttl_ms) = publication.ttl_ms {
            expect["ttl_ms"] = json!(ttl_ms);
        }
        if publication.one {
            expect["one"] = json!(1);
        }
        if let Body::Sealed(sealed) = publication.body {
            expect["sealed"] = json!({
                "ct": to_hex(sealed.ct),
                "nonce": to_hex(sealed.nonce),
                "key_id": to_hex(sealed.key_id),
                "scheme": sealed.scheme,
            });
        }
        Ok(expect)
    });
}

fn signs_to_the_same_bytes(publication: &Publication<'_>) {
    let signer = signer_of(&publication.publisher).expect("one of the four");
    let mut bytes = Vec::new();
    let draft = draft_of(publication, publication.body);
    draft.sign(&signer, &mut bytes).expect("it signs");
    assert_eq!(to_hex(&bytes), to_hex(publication.bytes));
    assert_eq!(bytes.len(), draft.object_len(Profile::ED25519));
}

#[test]
fn flipping_any_byte_of_a_signed_vector_refuses_it() {
    let mut flips = 0;
    for entry in family("publications")
        .entries
        .iter()
        .filter(|entry| entry.get("expect").is_some())
    {
        let mut bytes = bytes_of(entry, "hex");
        // The largest ones differ from the others in their bulk alone.
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(800)) {
            for mask in [0x01, 0x80] {
                bytes[at] ^= mask;
                let verdict = Publication::open(&bytes, Profile::ED25519);
                assert!(verdict.is_err(), "{} at {at}", entry["name"]);
                bytes[at] ^= mask;
                flips += 1;
            }
        }
    }
    for entry in family("objects")
        .entries
        .iter()
        .filter(|entry| entry.get("expect").is_some())
    {
        let mut bytes = bytes_of(entry, "hex");
        let label = label(text(entry, "purpose"));
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            let verdict = Object::parse(&bytes)
                .and_then(|object| object.open(Profile::ED25519, label).map(|_| ()));
            assert!(verdict.is_err(), "{} at {at}", entry["name"]);
            bytes[at] ^= 1;
            flips += 1;
        }
    }
    assert!(flips > 10_000, "{flips}");
}

#[test]
fn swapping_any_field_between_two_valid_objects_refuses_both() {
    let entries = family("publications").entries;
    let all: Vec<Vec<u8>> = entries
        .iter()
        .filter(|entry| entry.get("expect").is_some())
        .map(|entry| bytes_of(entry, "hex"))
        .collect();
    let objects: Vec<Object<'_>> = all.iter().map(|one| Object::parse(one).unwrap()).collect();
    let mut swaps = 0;
    for one in &objects {
        for other in &objects {
            let swapped = [
                (other.key, one.tbs, one.signature, one.key == other.key),
                (one.key, other.tbs, one.signature, one.tbs == other.tbs),
                (
                    one.key,
                    one.tbs,
                    other.signature,
                    one.signature == other.signature,
                ),
            ];
            for (key, tbs, signature, same) in swapped {
                if same {
                    continue;
                }
                let mut bytes = Vec::new();
                let (key, signature) = (key.try_into().unwrap(), signature.try_into().unwrap());
                write_object(&mut bytes, key, tbs, signature);
                let fault = Publication::open(&bytes, Profile::ED25519).unwrap_err();
                assert!(
                    matches!(
                        fault,
                        ObjectFault::KeyIdMismatch | ObjectFault::SignatureInvalid
                    ),
                    "{fault}"
                );
                swaps += 1;
            }
        }
    }
    assert!(swaps > 1000, "{swaps}");
}

#[test]
fn rfc8032() {
    run("rfc/rfc8032", |entry: &Json| {
        let key = bytes_of(entry, "key").try_into().ok();
        let key = key.and_then(|key: [u8; 32]| PublicKey::decode(Profile::ED25519, &key).ok());
        let Some(key) = key else {
            return refuse("bad_key_form");
        };
        let message = bytes_of(entry, "message");
        let signature: [u8; 64] = array_of(entry, "signature");
        // In parts, wherever they are cut.
        let (first, second) = message.split_at(message.len() / 3);
        if !key.verify_parts(&[first, second], &signature) {
            return refuse("signature_invalid");
        }
        if entry.get("seed").is_some() {
            let secret = SecretKey::from_seed(array_of(entry, "seed"));
            assert_eq!(secret.public_key(), *key.as_bytes());
            assert_eq!(secret.sign(&[first, second]), Ok(signature));
        }
        Ok(json!(true))
    });
}
