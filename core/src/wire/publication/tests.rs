mod plain;

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::crypto::SecretKey;

const NOW: u64 = 1_790_000_000_000;

fn draft(signer: &SecretKey) -> Draft<'static> {
    Draft {
        realm: RealmId::of_name("io.example"),
        topic: "a/b",
        publisher: signer.node_id(),
        epoch: Some(5),
        seq: 1,
        published_at: WallMs::new(NOW),
        ttl_ms: None,
        one: false,
        body: Body::Payload(b"\xf6"),
    }
}

fn signed(draft: &Draft<'_>, signer: &SecretKey) -> Vec<u8> {
    let mut out = Vec::new();
    draft.sign(signer, &mut out).unwrap();
    out
}

fn freshness(published_at: u64, ttl_ms: Option<u32>, now: u64) -> Result<(), (ObjectFault, u64)> {
    let signer = SecretKey::from_seed([1; 32]);
    let draft = Draft {
        published_at: WallMs::new(published_at),
        ttl_ms,
        ..draft(&signer)
    };
    let bytes = signed(&draft, &signer);
    let publication = Publication::parse(&bytes, Profile::ED25519).map_err(|fault| (fault, 0))?;
    publication.freshness(WallMs::new(now))
}

#[test]
fn br_54_skew_is_two_sided() {
    let ttl = u64::from(DEFAULT_TTL_MS);
    assert_eq!(freshness(NOW + SKEW_MS - 1, None, NOW), Ok(()));
    assert_eq!(freshness(NOW + SKEW_MS, None, NOW), Ok(()));
    let early = Err((ObjectFault::NotYetValid, 1));
    assert_eq!(freshness(NOW + SKEW_MS + 1, None, NOW), early);
    assert_eq!(freshness(NOW - ttl - SKEW_MS + 1, None, NOW), Ok(()));
    assert_eq!(freshness(NOW - ttl - SKEW_MS, None, NOW), Ok(()));
    let late = Err((ObjectFault::Expired, 1));
    assert_eq!(freshness(NOW - ttl - SKEW_MS - 1, None, NOW), late);
    assert_eq!(freshness(0, None, NOW).unwrap_err().0, ObjectFault::Expired);
    assert_eq!(
        freshness(u64::MAX, None, NOW),
        Err((ObjectFault::Malformed, 0))
    );
    // Clocks at either end of time give an answer too.
    assert_eq!(
        freshness(NOW, None, 0).unwrap_err().0,
        ObjectFault::NotYetValid
    );
    assert_eq!(
        freshness(NOW, None, u64::MAX).unwrap_err().0,
        ObjectFault::Expired
    );
    assert_eq!(freshness(0, Some(0), 0), Ok(()));
    assert_eq!(freshness(NOW, Some(0), NOW + SKEW_MS), Ok(()));
    assert_eq!(freshness(NOW, Some(0), NOW + SKEW_MS + 1), late);
}

#[test]
fn every_number_keeps_its_range() {
    let signer = SecretKey::from_seed([1; 32]);
    let good = draft(&signer);
    let parse = |draft: Draft<'_>| {
        let bytes = signed(&draft, &signer);
        Publication::parse(&bytes, Profile::ED25519).map(|_| ())
    };
    let malformed = Err(ObjectFault::Malformed);
    assert_eq!(parse(good), Ok(()));
    assert_eq!(parse(Draft { seq: 0, ..good }), malformed);
    assert_eq!(
        parse(Draft {
            seq: NUMBER_LIMIT,
            ..good
        }),
        malformed
    );
    assert_eq!(
        parse(Draft {
            seq: NUMBER_LIMIT - 1,
            ..good
        }),
        Ok(())
    );
    assert_eq!(
        parse(Draft {
            epoch: Some(0),
            ..good
        }),
        malformed
    );
    assert_eq!(
        parse(Draft {
            epoch: Some(NUMBER_LIMIT),
            ..good
        }),
        malformed
    );
    assert_eq!(
        parse(Draft {
            epoch: None,
            ..good
        }),
        Ok(())
    );
    assert_eq!(
        parse(Draft {
            ttl_ms: Some(MAX_TTL_MS),
            ..good
        }),
        Ok(())
    );
    assert_eq!(
        parse(Draft {
            ttl_ms: Some(MAX_TTL_MS + 1),
            ..good
        }),
        malformed
    );
    assert_eq!(
        parse(Draft {
            topic: "a/*",
            ..good
        }),
        malformed
    );
    assert_eq!(parse(Draft { topic: "", ..good }), malformed);
    assert_eq!(
        parse(Draft {
            body: Body::Payload(b"\xf7"),
            ..good
        }),
        malformed
    );
    assert_eq!(
        parse(Draft {
            body: Body::Payload(b""),
            ..good
        }),
        malformed
    );
    assert_eq!(
        parse(Draft {
            body: Body::Payload(b"\x01\x01"),
            ..good
        }),
        malformed
    );
    let sealed = Sealed {
        ct: &[0; 16],
        nonce: &[0; 12],
        key_id: &[0; 8],
        scheme: 2,
    };
    assert_eq!(
        parse(Draft {
            body: Body::Sealed(sealed),
            ..good
        }),
        Ok(())
    );
    let short = Sealed {
        ct: &[0; 15],
        ..sealed
    };
    assert_eq!(
        parse(Draft {
            body: Body::Sealed(short),
            ..good
        }),
        malformed
    );
    let scheme = Sealed {
        scheme: 3,
        ..sealed
    };
    assert_eq!(
        parse(Draft {
            body: Body::Sealed(scheme),
            ..good
        }),
        malformed
    );
}

#[test]
fn a_payload_nests_sixty_three_levels_of_its_own() {
    let signer = SecretKey::from_seed([1; 32]);
    let good = draft(&signer);
    let nested = |levels: usize| {
        let mut payload = std::vec![0x81; levels];
        payload.push(0xf5);
        payload
    };
    for (levels, want) in [(63, Ok(())), (64, Err(ObjectFault::Malformed))] {
        let payload = nested(levels);
        let bytes = signed(
            &Draft {
                body: Body::Payload(&payload),
                ..good
            },
            &signer,
        );
        let parsed = Publication::parse(&bytes, Profile::ED25519).map(|_| ());
        assert_eq!(parsed, want, "{levels}");
    }
}

#[test]
fn the_publisher_is_the_id_of_the_key() {
    let (signer, other) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
    let bytes = signed(
        &Draft {
            publisher: other.node_id(),
            ..draft(&signer)
        },
        &signer,
    );
    let publication = Publication::parse(&bytes, Profile::ED25519).unwrap();
    assert!(!publication.publisher_matches_key());
    let opened = Publication::open(&bytes, Profile::ED25519).map(|_| ());
    assert_eq!(opened, Err(ObjectFault::KeyIdMismatch));
    let bytes = signed(&draft(&signer), &signer);
    let (publication, key) = Publication::open(&bytes, Profile::ED25519).unwrap();
    assert!(publication.publisher_matches_key() && publication.verify(&key));
    let (_, stranger) = Publication::open(&signed(&draft(&other), &other), Profile::ED25519)
        .map(|(_, key)| ((), key))
        .unwrap();
    assert!(!publication.verify(&stranger));
}

#[cfg(feature = "sim")]
#[test]
fn a_machine_accepts_its_own_profile_alone() {
    use crate::sim::{FAKE_PROFILE, fake_signer};
    let signer = fake_signer(3);
    let publisher = NodeId::of_key(FAKE_PROFILE.name(), &signer.public_key());
    let real = SecretKey::from_seed([1; 32]);
    let mut bytes = Vec::new();
    Draft {
        publisher,
        ..draft(&real)
    }
    .sign(&signer, &mut bytes)
    .unwrap();
    assert!(Publication::open(&bytes, FAKE_PROFILE).is_ok());
    assert!(Publication::open(&bytes, Profile::ED25519).is_err());
    let bytes = signed(&draft(&real), &real);
    assert!(Publication::open(&bytes, FAKE_PROFILE).is_err());
    let mut flipped = Vec::new();
    Draft {
        publisher,
        ..draft(&real)
    }
    .sign(&signer, &mut flipped)
    .unwrap();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(Publication::open(&flipped, FAKE_PROFILE).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_draft_comes_back_as_it_was_signed(
        topic in "[a-z]{1,9}(/[a-z]{1,9}){0,15}", epoch in prop::option::of(1..NUMBER_LIMIT),
        seq in 1..NUMBER_LIMIT, published_at in 0..NUMBER_LIMIT,
        ttl_ms in prop::option::of(0..=MAX_TTL_MS), one in any::<bool>(),
        payload in prop::collection::vec(any::<u8>(), 0..300), seal in any::<bool>(),
    ) {
        let signer = SecretKey::from_seed([9; 32]);
        let mut encoded = Vec::new();
        Writer::new(&mut encoded).bytes(&payload);
        let mut ct = payload.clone();
        ct.extend([0; 16]);
        let sealed = Sealed { ct: &ct, nonce: &[1; 12], key_id: &[2; 8], scheme: 1 };
        let draft = Draft {
            topic: &topic, epoch, seq, published_at: WallMs::new(published_at), ttl_ms, one,
            body: if seal { Body::Sealed(sealed) } else { Body::Payload(&encoded) },
            ..draft(&signer)
        };
        let bytes = signed(&draft, &signer);
        prop_assert_eq!(bytes.len(), draft.object_len(Profile::ED25519));
        let (read, _) = Publication::open(&bytes, Profile::ED25519).unwrap();
        let again = Draft {
            realm: read.realm, topic: read.topic, publisher: read.publisher, epoch: read.epoch,
            seq: read.seq, published_at: read.published_at, ttl_ms: read.ttl_ms, one: read.one,
            body: read.body,
        };
        prop_assert_eq!(again, draft);
        prop_assert_eq!(read.hash(), PublicationHash::of_tbs(read.tbs));
    }

    #[test]
    fn any_tbs_is_judged_without_a_panic(tbs in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = Vec::new();
        super::super::object::write_object(&mut bytes, &[9; 32], &tbs, &[1; 64]);
        prop_assert!(Publication::parse(&bytes, Profile::ED25519).is_err());
    }
}

/// `tbs` with every choice of what may be left out, and payloads of many kinds.
fn any_tbs(choice: u32) -> Vec<u8> {
    let signer = SecretKey::from_seed([1; 32]);
    let sealed = Sealed {
        ct: &[7; 20],
        nonce: &[8; 12],
        key_id: &[9; 8],
        scheme: 2,
    };
    let payloads: [&[u8]; 8] = [
        b"\xf6",
        b"\x43abc",
        b"\x63abc",
        b"\x18\x20",
        b"\x83\x01\xf5\x62\xc3\xa9",
        b"\xa2\x01\x81\xf4\x61a\xa1\x20\x40",
        b"\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x38\x63",
    ];
    let draft = Draft {
        epoch: (choice & 1 == 0).then_some(1_790_000_000_000_000),
        ttl_ms: (choice & 2 == 0).then_some(60_000),
        one: choice & 4 == 0,
        body: match choice >> 3 & 3 {
            0 => Body::Sealed(sealed),
            _ => Body::Payload(payloads[(choice >> 5) as usize % 8]),
        },
        ..draft(&signer)
    };
    let mut tbs = Vec::new();
    draft.encode_tbs(Profile::ED25519, &mut tbs);
    tbs
}

fn around(tbs: &[u8]) -> Object<'_> {
    Object {
        bytes: tbs,
        key: &[3; 32],
        tbs,
        signature: &[4; 64],
    }
}

fn one_pass<'a>(object: &Object<'a>) -> Result<Publication<'a>, ObjectFault> {
    Publication::of_object(object, Profile::ED25519)
}

#[test]
fn one_pass_reads_what_the_plain_reading_reads() {
    let mut accepted = 0;
    for choice in 0..256 {
        let tbs = any_tbs(choice);
        let whole = around(&tbs);
        assert!(plain::read(&whole).is_ok());
        assert_eq!(one_pass(&whole), plain::read(&whole));
        // Every byte in turn: changed a little, changed much, left out, doubled, the end of it all.
        for at in 0..tbs.len() {
            let (before, after) = (&tbs[..at], &tbs[at + 1..]);
            let mut others = vec![before.to_vec(), [before, after].concat()];
            others.push([before, &[tbs[at]], &[tbs[at]], after].concat());
            for change in [1, 2, 0x20, 0x40, 0x80, 0xff] {
                others.push([before, &[tbs[at] ^ change], after].concat());
            }
            for other in others {
                let other = around(&other);
                let plain = plain::read(&other);
                accepted += u32::from(plain != Err(ObjectFault::Malformed));
                assert_eq!(one_pass(&other), plain, "{choice} at {at}");
            }
        }
    }
    assert!(accepted > 10_000, "{accepted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn one_pass_agrees_on_pieces_of_two(
        choices in (0u32..256, 0u32..256),
        cuts in (0usize..400, 0usize..400),
    ) {
        let (one, two) = (any_tbs(choices.0), any_tbs(choices.1));
        let mixed = [&one[..cuts.0.min(one.len())], &two[cuts.1.min(two.len())..]].concat();
        let mixed = around(&mixed);
        prop_assert_eq!(one_pass(&mixed), plain::read(&mixed));
    }
}
