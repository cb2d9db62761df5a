use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn period(byte: u8) -> PeriodKey {
    PeriodKey::new([byte; 8], [byte; 32])
}

fn place(topic: &str) -> Place<'_> {
    Place {
        realm: RealmId::new([1; 32]),
        topic,
        publisher: NodeId::new([2; 32]),
        epoch: Some(3),
        seq: 4,
        published_at: WallMs::new(5),
        key_id: [6; 8],
    }
}

/// Seals and answers nonce and ciphertext with its tag.
fn sealed(subkey: &Subkey, place: &Place<'_>, text: &[u8]) -> ([u8; 12], Vec<u8>) {
    let mut ct = text.to_vec();
    let (nonce, tag) = subkey.seal(place, &[7; 32], &mut ct).unwrap();
    ct.extend(tag);
    (nonce, ct)
}

#[test]
fn the_cipher_is_that_of_rfc_8439() {
    // Section 2.8.2.
    let key: Vec<u8> = (0x80..=0x9f).collect();
    let nonce: [u8; 12] = hex("070000004041424344454647").try_into().unwrap();
    let aad = hex("50515253c0c1c2c3c4c5c6c7");
    let mut text = *b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
sunscreen would be it.";
    let cipher = ChaCha20Poly1305::new_from_slice(&key).unwrap();
    let tag = cipher.encrypt_inout_detached(&nonce.into(), &aad, (&mut text[..]).into());
    assert_eq!(
        tag.unwrap().to_vec(),
        hex("1ae10b594f09e26a7e902ecbd0600691")
    );
    assert!(text.starts_with(&hex("d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fe")));
    assert!(text.ends_with(&hex("3ff4def08e4b7a9de576d26586cec64b6116")));
}

#[test]
fn a_subkey_is_the_one_worked_out_in_wire_md() {
    let secret = core::array::from_fn(|at| at as u8);
    let publisher = hex("928094415aae1698253ff53e3b67a8de48d1abadabbaf3c6117d60f38d13415f");
    let subkey = Subkey::derive(
        &PeriodKey::new([0; 8], secret),
        &NodeId::new(publisher.try_into().unwrap()),
    );
    let worked = "524e4ab678425aec43ce30dd6aae34a6bacd29a6082e1bc5601842c28f137036";
    assert_eq!(subkey.0.to_vec(), hex(worked));
}

#[test]
fn the_longest_place_fits_and_one_byte_more_is_refused_unchanged() {
    let longest = "a".repeat(MAX_TOPIC_BYTES);
    let widest = Place {
        epoch: Some(u64::MAX),
        seq: u64::MAX,
        published_at: WallMs::new(u64::MAX),
        ..place(&longest)
    };
    let mut written = Vec::new();
    widest.encode_aad(&mut written);
    assert_eq!(written.len(), MAX_AAD);
    let subkey = Subkey::derive(&period(1), &widest.publisher);
    let (nonce, mut ct) = sealed(&subkey, &widest, b"text");
    assert_eq!(
        subkey.open(&widest, &nonce, &mut ct).unwrap(),
        b"text".as_slice()
    );

    let over = "a".repeat(MAX_TOPIC_BYTES + 1);
    let over = Place {
        topic: &over,
        ..widest
    };
    let mut text = *b"text";
    let refused = subkey.seal(&over, &[7; 32], &mut text);
    assert_eq!((refused, &text), (Err(SealError::TooLong), b"text"));
    let mut ct = vec![0; 20];
    assert_eq!(
        subkey.open(&over, &nonce, &mut ct),
        Err(OpenError::TagInvalid)
    );
}

#[test]
fn what_does_not_open_stays_as_it_was() {
    let subkey = Subkey::derive(&period(1), &place("a").publisher);
    let (nonce, ct) = sealed(&subkey, &place("a"), b"a payload");
    for len in 0..ct.len() {
        let mut cut = ct[..len].to_vec();
        assert_eq!(
            subkey.open(&place("a"), &nonce, &mut cut),
            Err(OpenError::TagInvalid),
            "{len}"
        );
        assert_eq!(cut, ct[..len]);
    }
}

fn nonce_of(place: &Place<'_>, entropy: &[u8; 32]) -> [u8; 12] {
    nonce(&place.nonce_blocks(entropy))
}

#[test]
fn the_nonce_is_the_beginning_of_the_hash_of_entropy_and_numbers() {
    for n in 0..20_u64 {
        let mut place = place("a");
        place.epoch = (n % 3 > 0).then_some(n << 40);
        (place.seq, place.published_at) = (u64::MAX / (n + 1), WallMs::new(n * n));
        let entropy = [n as u8 * 11; 32];
        let hash = Sha256::new()
            .chain_update(entropy)
            .chain_update(place.epoch.unwrap_or(0).to_be_bytes())
            .chain_update(place.seq.to_be_bytes())
            .chain_update(place.published_at.as_millis().to_be_bytes())
            .finalize();
        assert_eq!(nonce_of(&place, &entropy), hash[..12]);
    }
}

#[test]
fn the_same_entropy_twice_makes_two_nonces_for_two_numbers() {
    let first = nonce_of(&place("a"), &[7; 32]);
    for other in [
        Place {
            epoch: Some(4),
            ..place("a")
        },
        Place {
            epoch: None,
            ..place("a")
        },
        Place {
            seq: 5,
            ..place("a")
        },
        Place {
            published_at: WallMs::new(6),
            ..place("a")
        },
    ] {
        assert_ne!(nonce_of(&other, &[7; 32]), first, "{other:?}");
    }
    assert_ne!(nonce_of(&place("a"), &[8; 32]), first);
}

#[test]
fn no_secret_is_shown() {
    let period = PeriodKey::new([0x0a; 8], [0xbb; 32]);
    let subkey = Subkey::derive(&period, &NodeId::new([2; 32]));
    let seal = Seal {
        key_id: *period.id(),
        subkey: &subkey,
        entropy: [0xcc; 32],
    };
    let shown: String = format!("{period:?} {subkey:?} {seal:?}");
    assert_eq!(shown, "PeriodKey(0a0a0a0a0a0a0a0a) Subkey Seal");
}

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    realm: [u8; 32],
    topic: String,
    publisher: [u8; 32],
    epoch: Option<u64>,
    seq: u64,
    published_at: u64,
    key_id: [u8; 8],
}

impl Owned {
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
}

prop_compose! {
    fn any_place()(
        realm: [u8; 32],
        topic in "[a-z/]{1,40}",
        publisher: [u8; 32],
        epoch in proptest::option::of(1u64..1 << 53),
        seq in 1u64..1 << 53,
        published_at in 0u64..1 << 53,
        key_id: [u8; 8],
    ) -> Owned {
        Owned { realm, topic, publisher, epoch, seq, published_at, key_id }
    }
}

proptest! {
    #[test]
    fn what_was_sealed_opens_at_its_place_and_nowhere_else(
        secret: [u8; 32],
        here in any_place(),
        there in any_place(),
        take in 0usize..7,
        text in proptest::collection::vec(any::<u8>(), 0..300),
        flip: prop::sample::Index,
    ) {
        let period = PeriodKey::new(here.key_id, secret);
        let subkey = Subkey::derive(&period, &here.place().publisher);
        let (nonce, ct) = sealed(&subkey, &here.place(), &text);
        prop_assert_eq!(ct.len(), text.len() + SEAL_TAG);
        let mut whole = ct.clone();
        prop_assert_eq!(&*subkey.open(&here.place(), &nonce, &mut whole).unwrap(), &text[..]);

        // One field of another place.
        let mut moved = here.clone();
        match take {
            0 => moved.realm = there.realm,
            1 => moved.topic = there.topic,
            2 => moved.publisher = there.publisher,
            3 => moved.epoch = there.epoch,
            4 => moved.seq = there.seq,
            5 => moved.published_at = there.published_at,
            _ => moved.key_id = there.key_id,
        }
        if moved != here {
            let mut copy = ct.clone();
            prop_assert_eq!(subkey.open(&moved.place(), &nonce, &mut copy), Err(OpenError::TagInvalid));
        }
        // Another publisher's subkey, and another period's.
        let other = NodeId::new(there.publisher);
        if other != here.place().publisher {
            let wrong = Subkey::derive(&period, &other);
            prop_assert!(wrong.open(&here.place(), &nonce, &mut ct.clone()).is_err());
        }
        let mut changed = secret;
        changed[flip.index(32)] ^= 1;
        let wrong = Subkey::derive(&PeriodKey::new(here.key_id, changed), &here.place().publisher);
        prop_assert!(wrong.open(&here.place(), &nonce, &mut ct.clone()).is_err());
        // Any bit.
        let bit = flip.index(ct.len() * 8);
        let mut flipped = ct.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(subkey.open(&here.place(), &nonce, &mut flipped).is_err());
        let bit = flip.index(96);
        let mut other = nonce;
        other[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(subkey.open(&here.place(), &other, &mut ct.clone()).is_err());
    }

    #[test]
    fn two_places_never_share_their_associated_data(one in any_place(), other in any_place()) {
        let write = |owned: &Owned| {
            let mut aad = Vec::new();
            owned.place().encode_aad(&mut aad);
            aad
        };
        prop_assert_eq!(write(&one) == write(&other), one == other);
        prop_assert!(crate::wire::cbor::check(&write(&one), false).is_ok());
    }
}
