use std::vec::Vec;

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};

use super::*;
use crate::Seed;
use crate::crypto::{Profile, PublicKey};

#[test]
fn the_table_holds_exactly_the_small_order_points() {
    let mut expected: Vec<[u8; 32]> = EIGHT_TORSION
        .iter()
        .map(|point| point.compress().to_bytes())
        .collect();
    let mut table = SMALL_ORDER.to_vec();
    expected.sort_unstable();
    table.sort_unstable();
    assert_eq!(table, expected);
}

/// Encodings that are not canonical, or of small order, or both.
fn hostile_encodings() -> Vec<[u8; 32]> {
    let mut all = SMALL_ORDER.to_vec();
    // y + p for every y below 19, with either sign.
    for low in 0xed..=0xffu8 {
        for high in [0x7f, 0xff] {
            all.push(ends(low, 0xff, high));
        }
    }
    // x = 0 with the sign set, y = 1 and y = −1.
    all.push(ends(0x01, 0x00, 0x80));
    all.push(ends(0xec, 0xff, 0xff));
    all
}

struct Case {
    key: [u8; 32],
    message: [u8; 8],
    signature: [u8; 64],
}

/// s such that s·B = R + k·A holds but for torsion: what a signer with a mixed-order key or nonce can make.
fn fitted(key: [u8; 32], r: [u8; 32], secret: Scalar, nonce: Scalar, message: [u8; 8]) -> Case {
    let hash: [u8; 64] = Sha512::new()
        .chain_update(r)
        .chain_update(key)
        .chain_update(message)
        .finalize()
        .into();
    let s = nonce + Scalar::from_bytes_mod_order_wide(&hash) * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(s.as_bytes());
    Case {
        key,
        message,
        signature,
    }
}

fn cases() -> Vec<Case> {
    let mut rng = Seed::new([7; 32]).fork("verify");
    let mut wide = || {
        let mut bytes = [0; 64];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&rng.next_u64().to_be_bytes());
        }
        Scalar::from_bytes_mod_order_wide(&bytes)
    };
    let encode = |point: EdwardsPoint| point.compress().to_bytes();
    let hostile = hostile_encodings();
    let mut cases = Vec::new();
    for round in 0u64..16 {
        let (secret, nonce) = (wide(), wide());
        let a = ED25519_BASEPOINT_POINT * secret;
        let r = ED25519_BASEPOINT_POINT * nonce;
        for (i, ta) in EIGHT_TORSION.iter().enumerate() {
            for (j, tr) in EIGHT_TORSION.iter().enumerate() {
                let message = (round * 64 + (i * 8 + j) as u64).to_be_bytes();
                let (key, r) = (encode(a + ta), encode(r + tr));
                cases.push(fitted(key, r, secret, nonce, message));
                // R of small order alone: the signer's nonce is nothing.
                cases.push(fitted(key, encode(*tr), secret, Scalar::ZERO, message));
                // A of small order alone: the signer has no secret.
                cases.push(fitted(encode(*ta), r, Scalar::ZERO, nonce, message));
            }
        }
        if round >= 4 {
            continue;
        }
        for (at, encoding) in hostile.iter().enumerate() {
            for more in 0u64..8 {
                let message = (round << 32 | (at as u64) << 8 | more).to_be_bytes();
                cases.push(fitted(*encoding, encode(r), secret, nonce, message));
                cases.push(fitted(*encoding, encode(r), Scalar::ZERO, nonce, message));
                cases.push(fitted(encode(a), *encoding, secret, nonce, message));
                cases.push(fitted(encode(a), *encoding, secret, Scalar::ZERO, message));
                for other in &hostile {
                    if more == 0 && round == 0 {
                        let s = Scalar::ZERO;
                        cases.push(fitted(*encoding, *other, s, s, message));
                    }
                }
            }
        }
        // Flipped bits of a good signature, and s + L.
        let good = fitted(encode(a), encode(r), secret, nonce, [9; 8]);
        for bit in 0..512 {
            let mut signature = good.signature;
            signature[bit / 8] ^= 1 << (bit % 8);
            cases.push(Case { signature, ..good });
        }
        cases.push(Case {
            signature: plus_order(good.signature),
            ..good
        });
        cases.push(good);
    }
    cases
}

/// The same s, written as s + L.
fn plus_order(mut signature: [u8; 64]) -> [u8; 64] {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0u16;
    for (byte, add) in signature[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    signature
}

#[test]
fn the_fast_form_gives_the_verdicts_of_the_strict_one() {
    let (mut accepted, mut plain_only, mut all) = (0, 0, 0);
    for case in cases() {
        let signature = Signature::from_bytes(&case.signature);
        let canonical = is_reduced(&case.key);
        let reference = VerifyingKey::from_bytes(&case.key).is_ok_and(|key| {
            // The carried form is canonical; verify_strict itself does not ask for that.
            canonical && key.verify_strict(&case.message, &signature).is_ok()
        });
        let plain = VerifyingKey::from_bytes(&case.key)
            .is_ok_and(|key| key.multipart_verify(&[&case.message], &signature).is_ok());
        let ours = PublicKey::decode(Profile::ED25519, &case.key).is_ok_and(|key| {
            let (first, second) = case.message.split_at(3);
            key.verify_parts(&[first, second], &case.signature)
        });
        assert_eq!(
            ours, reference,
            "key {:?} signature {:?}",
            case.key, case.signature
        );
        all += 1;
        accepted += u32::from(ours);
        plain_only += u32::from(plain && !ours);
    }
    assert!(all > 8000, "{all}");
    assert!(accepted > 100, "{accepted}");
    assert!(
        plain_only > 100,
        "plain verification would differ: {plain_only}"
    );
}

#[test]
fn a_key_is_canonical_and_not_of_small_order() {
    for encoding in hostile_encodings() {
        assert!(decode(&encoding).is_err(), "{encoding:?}");
    }
    assert_eq!(decode(&SMALL_ORDER[4]).err(), Some(KeyError::SmallOrder));
    assert_eq!(decode(&[0xff; 32]).err(), Some(KeyError::NotCanonical));
    // Canonical decodings come back as the same bytes.
    let mut rng = Seed::new([8; 32]).fork("keys");
    let mut decoded = 0;
    for _ in 0..500 {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&rng.next_u64().to_be_bytes());
        }
        if let Ok(key) = decode(&bytes) {
            assert_eq!(key.to_edwards().compress().to_bytes(), bytes);
            decoded += 1;
        }
    }
    assert!(decoded > 100, "{decoded}");
}
