use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::crypto::SecretKey;
use crate::wire::cbor::check;

const LABELS: [&str; 7] = [
    PUBLICATION_LABEL,
    CONNECT_PROOF_LABEL,
    HELLO_PROOF_LABEL,
    RECORD_LABEL,
    REQUEST_LABEL,
    REPLY_LABEL,
    GRANT_LABEL,
];

#[test]
fn no_label_is_a_prefix_of_another() {
    for (at, one) in LABELS.iter().enumerate() {
        for (other_at, other) in LABELS.iter().enumerate() {
            assert!(at == other_at || !other.starts_with(one), "{one} {other}");
        }
    }
}

#[test]
fn a_signature_holds_under_its_own_label_and_profile_alone() {
    let signer = SecretKey::from_seed([1; 32]);
    let tbs = b"\xa1\x63alg\x67Ed25519";
    let mut bytes = Vec::new();
    sign_object(&mut bytes, &signer, RECORD_LABEL, tbs.len(), |out| {
        out.put(tbs);
        Ok::<(), SignError>(())
    })
    .unwrap();
    let object = Object::parse(&bytes).unwrap();
    for label in LABELS {
        let want = if label == RECORD_LABEL {
            Ok(signer.node_id())
        } else {
            Err(ObjectFault::SignatureInvalid)
        };
        let opened = object.open(Profile::ED25519, label);
        assert_eq!(opened.map(|key| key.node_id()), want, "{label}");
    }
}

#[test]
fn what_is_signed_but_not_under_the_rule_is_malformed() {
    let signer = SecretKey::from_seed([1; 32]);
    let open = |tbs: &[u8]| {
        let mut bytes = Vec::new();
        sign_object(&mut bytes, &signer, RECORD_LABEL, tbs.len(), |out| {
            out.put(tbs);
            Ok::<(), SignError>(())
        })
        .unwrap();
        let object = Object::parse(&bytes).unwrap();
        object.open(Profile::ED25519, RECORD_LABEL).unwrap_err()
    };
    for tbs in [
        b"".as_slice(),
        b"\x80",
        b"\xa0",
        b"\xa1\x63alg\x01",
        b"\xa1\x01\x01",
        b"\xff",
    ] {
        assert_eq!(open(tbs), ObjectFault::Malformed, "{tbs:02x?}");
    }
    assert_eq!(open(b"\xa1\x63alg\x61x"), ObjectFault::AlgMismatch);
}

proptest! {
    #[test]
    fn the_shape_has_one_encoding(
        tbs in prop::collection::vec(any::<u8>(), 0..400),
        at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = Vec::new();
        write_object(&mut bytes, &[1; 32], &tbs, &[2; 64]);
        prop_assert_eq!(check(&bytes, false), Ok(()));
        let object = Object::parse(&bytes).unwrap();
        prop_assert_eq!((object.key, object.tbs), ([1; 32].as_slice(), tbs.as_slice()));
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // What still has the shape is still under the rule.
        if Object::parse(&bytes).is_ok() {
            prop_assert_eq!(check(&bytes, false), Ok(()));
        }
        bytes.push(0);
        prop_assert_eq!(Object::parse(&bytes), Err(ObjectFault::Malformed));
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Object::parse(&bytes).is_err() || check(&bytes, false).is_ok());
    }
}
