use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::crypto::{PeriodKey, SecretKey, SignError};
use crate::wire::cbor::{SliceSink, TooSmall};
use crate::{RealmId, WallMs};

const SECRET: [u8; 32] = [8; 32];
const KEY_ID: [u8; 8] = [9; 8];

fn draft<'a>(signer: &SecretKey, payload: &'a [u8]) -> Draft<'a> {
    Draft {
        realm: RealmId::of_name("io.example"),
        topic: "a/b",
        publisher: signer.node_id(),
        epoch: Some(5),
        seq: 1,
        published_at: WallMs::new(1_790_000_000_000),
        ttl_ms: None,
        one: false,
        body: Body::Payload(payload),
    }
}

fn subkey_of(signer: &SecretKey) -> Subkey {
    Subkey::derive(&PeriodKey::new(KEY_ID, SECRET), &signer.node_id())
}

fn seal(subkey: &Subkey) -> Seal<'_> {
    Seal {
        key_id: KEY_ID,
        subkey,
        entropy: [3; 32],
    }
}

fn sign(draft: &Draft<'_>, signer: &SecretKey) -> Vec<u8> {
    let mut out = Vec::new();
    draft
        .sign_sealed(signer, &seal(&subkey_of(signer)), &mut out)
        .unwrap();
    out
}

fn unseal(object: &[u8], signer: &SecretKey) -> Result<Vec<u8>, OpenError> {
    let (publication, _) = Publication::open(object, Profile::ED25519).unwrap();
    let mut text = vec![0; object.len()];
    publication
        .unseal(&subkey_of(signer), &mut text)
        .map(<[u8]>::to_vec)
}

#[test]
fn nothing_is_appended_when_the_signer_cannot_sign() {
    struct Broken;
    impl Signer for Broken {
        fn profile(&self) -> Profile {
            Profile::ED25519
        }
        fn public_key(&self) -> [u8; 32] {
            [1; 32]
        }
        fn sign(&self, _: &[&[u8]]) -> Result<[u8; 64], SignError> {
            Err(SignError)
        }
    }
    let signer = SecretKey::from_seed([1; 32]);
    let mut out = vec![7];
    let refused =
        draft(&signer, b"\x01").sign_sealed(&Broken, &seal(&subkey_of(&signer)), &mut out);
    assert_eq!((refused, out), (Err(SealError::Signer), vec![7]));
}

#[test]
fn a_topic_that_is_too_long_is_refused_and_nothing_is_appended() {
    let signer = SecretKey::from_seed([1; 32]);
    let topic = std::string::String::from_utf8(vec![b'a'; 513]).unwrap();
    let draft = Draft {
        topic: &topic,
        ..draft(&signer, b"\x01")
    };
    let mut out = vec![7];
    let refused = draft.sign_sealed(&signer, &seal(&subkey_of(&signer)), &mut out);
    assert_eq!((refused, out), (Err(SealError::TooLong), vec![7]));
}

#[test]
fn a_slice_takes_what_a_vector_takes_and_one_byte_less_is_too_small() {
    let signer = SecretKey::from_seed([1; 32]);
    let draft = draft(&signer, b"\x65hello");
    let subkey = subkey_of(&signer);
    let mut wanted = Vec::new();
    draft
        .encode_sealed_tbs(Profile::ED25519, &seal(&subkey), &mut wanted)
        .unwrap();
    let mut buffer = [0; 512];
    for len in 0..=wanted.len() {
        let mut sink = SliceSink::new(&mut buffer[..len]);
        draft
            .encode_sealed_tbs(Profile::ED25519, &seal(&subkey), &mut sink)
            .unwrap();
        let needed = wanted.len();
        let told = if len < needed {
            Err(TooSmall { needed })
        } else {
            Ok(needed)
        };
        assert_eq!(sink.finish(), told);
        // Nothing readable is left in what was too small.
        assert!(!buffer[..len].windows(5).any(|five| five == b"hello"));
    }
    assert_eq!(buffer[..wanted.len()], wanted);
}

#[test]
fn what_is_sealed_already_is_written_as_it_is() {
    let signer = SecretKey::from_seed([1; 32]);
    let object = sign(&draft(&signer, b"\x01"), &signer);
    let (publication, _) = Publication::open(&object, Profile::ED25519).unwrap();
    let again = Draft {
        body: publication.body,
        ..draft(&signer, b"")
    };
    assert_eq!(sign(&again, &signer), object);
    assert_eq!(again.sealed_object_len(Profile::ED25519), object.len());
}

#[test]
fn what_cannot_be_opened_says_why() {
    let signer = SecretKey::from_seed([1; 32]);
    let mut clear = Vec::new();
    draft(&signer, b"\x01").sign(&signer, &mut clear).unwrap();
    assert_eq!(unseal(&clear, &signer), Err(OpenError::NotSealed));

    let object = sign(&draft(&signer, b"\x01"), &signer);
    let (publication, _) = Publication::open(&object, Profile::ED25519).unwrap();
    let mut text = [0; 16];
    let refused = publication.unseal(&subkey_of(&signer), &mut text);
    assert_eq!(refused, Err(OpenError::TooSmall { needed: 17 }));

    let other = SecretKey::from_seed([2; 32]);
    assert_eq!(unseal(&object, &other), Err(OpenError::TagInvalid));

    let (sealed, _) = publication.sealed().unwrap();
    let first_scheme = Draft {
        body: Body::Sealed(Sealed {
            scheme: 1,
            ..sealed
        }),
        ..draft(&signer, b"")
    };
    let object = sign(&first_scheme, &signer);
    assert_eq!(unseal(&object, &signer), Err(OpenError::OtherScheme));
}

/// A payload of so many items: an array of zeros.
fn items(count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    crate::wire::cbor::Writer::new(&mut out).array(count - 1);
    out.resize(out.len() + count - 1, 0);
    out
}

#[test]
fn what_was_sealed_keeps_the_bounds_of_what_is_clear() {
    let signer = SecretKey::from_seed([1; 32]);
    // Beside the payload stand the map, eight keys and seven values.
    let most = crate::wire::cbor::MAX_ITEMS as usize - 16;
    for count in [most, most + 1] {
        let payload = items(count);
        let mut clear = Vec::new();
        draft(&signer, &payload).sign(&signer, &mut clear).unwrap();
        let read = Publication::open(&clear, Profile::ED25519).is_ok();
        let sealed = unseal(&sign(&draft(&signer, &payload), &signer), &signer);
        assert_eq!(read, count == most);
        let told = if read {
            Ok(payload)
        } else {
            Err(OpenError::TagInvalid)
        };
        assert!(sealed == told, "{count}");
    }
}

proptest! {
    #[test]
    fn a_sealed_draft_opens_and_shows_nothing(
        text in "[a-z]{12,300}",
        epoch in proptest::option::of(1u64..1 << 53),
        seq in 1u64..1 << 53,
        ttl_ms in proptest::option::of(0u32..3_600_000),
        one: bool,
        before in proptest::collection::vec(any::<u8>(), 0..5),
    ) {
        let signer = SecretKey::from_seed([1; 32]);
        let payload = crate::wire::to_payload(&text).unwrap();
        let draft = Draft { epoch, seq, ttl_ms, one, ..draft(&signer, &payload) };
        let mut out = before.clone();
        draft.sign_sealed(&signer, &seal(&subkey_of(&signer)), &mut out).unwrap();
        let object = &out[before.len()..];
        prop_assert!(out.starts_with(&before));
        prop_assert_eq!(object.len(), draft.sealed_object_len(Profile::ED25519));
        prop_assert!(!object.windows(12).any(|part| part == &text.as_bytes()[..12]));
        prop_assert_eq!(unseal(object, &signer), Ok(payload.clone()));
        let (publication, _) = Publication::open(object, Profile::ED25519).unwrap();
        let (sealed, place) = publication.sealed().unwrap();
        prop_assert_eq!(place, draft.place(KEY_ID));
        prop_assert_eq!((sealed.scheme, sealed.ct.len()), (SEAL_SCHEME, payload.len() + SEAL_TAG));
    }
}
