//! The keyed hashes of a dedup.
//!
//! Decides: where keys go in the indexes, and what of a signature is remembered. Leaves to others: everything else. Believes: no clock.
//! Bounded by: a fixed number of multiplications.
//!
//! For signatures: two passes of the sum of products of key-masked words (NH, as in UMAC), the key of the second shifted by two words. Two
//! different inputs chosen without knowing the key agree in one pass with a chance of at most 2⁻⁶⁴. That is enough, though it is no
//! cryptographic hash: nothing computed with the key ever leaves the process, so collisions cannot be searched for, and entries are made
//! of verified signatures only, so a table holds nothing a stranger put there.
//!
//! Of those 128 bits the 16 weakest, the low ones of the second word, make way for the publisher's share: a hash of its key id alone, by which a
//! table counts what it holds of whom. The 112 that stay are enough: among 2²² entries a new signature meets a known one by accident with a
//! chance of 2⁻⁹⁰, and the share still tells most pairs of publishers apart. The share is one more such pass, folded, with the
//! high bits of a product with a secret odd number taken; two publishers get the same 16 bits with a chance of about 2⁻¹⁵ at most.

use core::fmt;

use super::shares::SHARE_BITS;
use super::{BY_ID, BY_SIGNATURE, SignatureKey};
use crate::id::PublicationHash;
use crate::rng::Rng;

/// The keys, secret and never used elsewhere.
#[derive(Clone)]
pub(super) struct Hashes {
    id: [u64; 2],
    signature: [u64; 14],
    publisher: [u64; 4],
    /// Odd.
    share: u64,
}

impl Hashes {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            id: [rng.next_u64(), rng.next_u64()],
            signature: core::array::from_fn(|_| rng.next_u64()),
            publisher: core::array::from_fn(|_| rng.next_u64()),
            share: rng.next_u64() | 1,
        }
    }

    /// Where a key goes in its index. A signature key is a keyed hash already.
    #[inline]
    pub(super) fn of(&self, which: usize, key: [u64; 2]) -> u64 {
        if which == BY_SIGNATURE {
            return key[0];
        }
        let product = u128::from(key[0] ^ self.id[0]) * u128::from(key[1] ^ self.id[1]);
        product as u64 ^ (product >> 64) as u64
    }

    /// Where both keys of an entry go.
    #[inline]
    pub(super) fn both(&self, keys: [[u64; 2]; 2]) -> [u64; 2] {
        [BY_ID, BY_SIGNATURE].map(|which| self.of(which, keys[which]))
    }

    #[inline]
    pub(super) fn signature(&self, publisher: &[u8; 32], signature: &[u8; 64]) -> SignatureKey {
        let mut sums = [0u128; 2];
        for pair in 0..6 {
            let (a, b) = if pair < 2 {
                (word(publisher, pair * 2), word(publisher, pair * 2 + 1))
            } else {
                (word(signature, pair * 2 - 4), word(signature, pair * 2 - 3))
            };
            for (pass, sum) in sums.iter_mut().enumerate() {
                let key = (pair + pass) * 2;
                let a = a.wrapping_add(self.signature[key]);
                let b = b.wrapping_add(self.signature[key + 1]);
                *sum = sum.wrapping_add(u128::from(a) * u128::from(b));
            }
        }
        let [first, second] = sums;
        let low = (first >> 64) as u64 ^ second as u64;
        SignatureKey([
            first as u64 ^ (second >> 64) as u64,
            low >> SHARE_BITS << SHARE_BITS | self.share(publisher),
        ])
    }

    /// The publisher's share, [`SHARE_BITS`] bits.
    #[inline]
    fn share(&self, publisher: &[u8; 32]) -> u64 {
        let mut sum = 0u128;
        for pair in [0, 2] {
            let a = word(publisher, pair).wrapping_add(self.publisher[pair]);
            let b = word(publisher, pair + 1).wrapping_add(self.publisher[pair + 1]);
            sum = sum.wrapping_add(u128::from(a) * u128::from(b));
        }
        let folded = sum as u64 ^ (sum >> 64) as u64;
        folded.wrapping_mul(self.share) >> (64 - SHARE_BITS)
    }
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
