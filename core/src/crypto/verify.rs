//! Strict Ed25519 verification in its fast form.
//!
//! Decides: which signatures hold. Leaves to others: what was signed. Believes: no clock. Bounded by: one double scalar multiplication.
//!
//! The verdict is that of `VerifyingKey::verify_strict` for keys of the carried form, without decompressing R: keys of small order are
//! refused when they are decoded, R's bytes are compared with the eight canonical encodings of small-order points, and plain
//! verification compares R's bytes with the canonical encoding of what it computed, so that no other encoding of R can pass.

use ed25519_dalek::ed25519::signature::MultipartVerifier;
use ed25519_dalek::{Signature, VerifyingKey};

use super::KeyError;

/// The canonical encodings of the points whose order divides 8.
const SMALL_ORDER: [[u8; 32]; 8] = [
    ends(0x01, 0x00, 0x00),
    ends(0xec, 0xff, 0x7f),
    ends(0x00, 0x00, 0x00),
    ends(0x00, 0x00, 0x80),
    with_last(ORDER_EIGHT_A, 0x05),
    with_last(ORDER_EIGHT_A, 0x85),
    with_last(ORDER_EIGHT_B, 0x7a),
    with_last(ORDER_EIGHT_B, 0xfa),
];

const ORDER_EIGHT_A: [u8; 32] = [
    0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
    0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
];
const ORDER_EIGHT_B: [u8; 32] = [
    0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
    0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
];

const fn ends(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

const fn with_last(mut bytes: [u8; 32], last: u8) -> [u8; 32] {
    bytes[31] = last;
    bytes
}

/// Whether the y coordinate is below p = 2^255 − 19. The one other way not to be canonical, x = 0 with its sign bit set, needs
/// y = ±1, which is of small order.
fn is_reduced(bytes: &[u8; 32]) -> bool {
    let [first, middle @ .., last] = bytes;
    *first < 0xed || last & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

pub(super) fn decode(bytes: &[u8; 32]) -> Result<VerifyingKey, KeyError> {
    if !is_reduced(bytes) {
        return Err(KeyError::NotCanonical);
    }
    let Ok(key) = VerifyingKey::from_bytes(bytes) else {
        return Err(KeyError::NotCanonical);
    };
    if key.is_weak() {
        return Err(KeyError::SmallOrder);
    }
    Ok(key)
}

// One copy of it: how fast it runs depends on where it is put, and every caller shall find it equally fast.
#[inline(never)]
pub(super) fn verify(key: &VerifyingKey, parts: &[&[u8]], signature: &[u8; 64]) -> bool {
    let signature = Signature::from_bytes(signature);
    !SMALL_ORDER.contains(signature.r_bytes()) && key.multipart_verify(parts, &signature).is_ok()
}

#[cfg(test)]
mod tests;
