//! The keyed hashes of a dedup.
//!
//! Decides: where keys go in the indexes, and what of a signature is remembered. Leaves to others: everything else. Believes: no clock.
//! Bounded by: a fixed number of multiplications.
//!
//! For signatures: the sum of products of key-masked words (NH, as in UMAC) of key id and signature, 128 bits, of which 112 are kept: the halves folded, and
//! 48 of the high one. Two different inputs chosen without knowing the key have one sum with a chance of 2⁻⁶⁴ at most. That is enough, though it is no
//! cryptographic hash: nothing computed with the key ever leaves the process, so collisions cannot be searched for, and entries are made
//! of verified signatures only, so a table holds nothing a stranger put there. By accident a new signature meets one of 2²² known ones with a
//! chance of 2⁻⁹⁰.
//!
//! The last 16 bits are the publisher's share, by which a table counts what it holds of whom: the sum of its key id's products alone, folded, with
//! the high bits of a product with a secret odd number taken; two publishers get the same 16 bits with a chance of about 2⁻¹⁵ at most.

use core::fmt;

use super::shares::SHARE_BITS;
use super::{BY_ID, BY_SIGNATURE, SignatureKey};
use crate::id::PublicationHash;
use crate::rng::Rng;

/// The keys, secret and never used elsewhere.
#[derive(Clone)]
pub(super) struct Hashes {
    id: [u64; 2],
    signature: [u64; 12],
    /// Odd.
    share: u64,
}

impl Hashes {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            id: [rng.next_u64(), rng.next_u64()],
            signature: core::array::from_fn(|_| rng.next_u64()),
            share: rng.next_u64() | 1,
        }
    }

    /// Where a key goes in its index. A signature key is a keyed hash already.
    #[inline]
    pub(super) fn of(&self, which: usize, key: [u64; 2]) -> u64 {
        if which == BY_SIGNATURE {
            return key[0];
        }
        fold(u128::from(key[0] ^ self.id[0]) * u128::from(key[1] ^ self.id[1]))
    }

    /// Where both keys of an entry go.
    #[inline]
    pub(super) fn both(&self, keys: [[u64; 2]; 2]) -> [u64; 2] {
        [BY_ID, BY_SIGNATURE].map(|which| self.of(which, keys[which]))
    }

    #[inline]
    pub(super) fn signature(&self, publisher: &[u8; 32], signature: &[u8; 64]) -> SignatureKey {
        let (of_publisher, of_signature) = self.signature.split_at(4);
        let first = products(0, publisher, of_publisher);
        let sum = products(first, signature, of_signature);
        let share = fold(first).wrapping_mul(self.share) >> (64 - SHARE_BITS);
        let high = ((sum >> 64) as u64) << SHARE_BITS;
        SignatureKey([fold(sum), high | share])
    }
}

/// Adds the products of words two by two, each masked by its key.
#[inline]
fn products(sum: u128, bytes: &[u8], keys: &[u64]) -> u128 {
    let (pairs, _) = bytes.as_chunks::<16>();
    let (keys, _) = keys.as_chunks::<2>();
    pairs.iter().zip(keys).fold(sum, |sum, (pair, [a, b])| {
        let a = word(pair, 0).wrapping_add(*a);
        let b = word(pair, 1).wrapping_add(*b);
        sum.wrapping_add(u128::from(a) * u128::from(b))
    })
}

#[inline]
fn fold(sum: u128) -> u64 {
    sum as u64 ^ (sum >> 64) as u64
}

impl fmt::Debug for Hashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hashes")
    }
}

#[inline]
pub(super) fn prefix(id: &PublicationHash) -> [u64; 2] {
    [word(id.as_bytes(), 0), word(id.as_bytes(), 1)]
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
    u64::from_le_bytes(eight)
}
