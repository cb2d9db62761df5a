//! Randomness, of two kinds that never mix.
//!
//! Decides: how a seed is spread. Leaves to others: where entropy comes from. Believes: no clock. Bounded by: nothing to bound.
//!
//! [`Seed`] makes runs repeatable: jitter, hash keys, spreading. [`Entropy`] makes secrets: nonces, run ids. It has no constructor but
//! from the operating system or hardware, is not `Clone` and shows only its name in `Debug`.

use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// What makes two runs equal. Not a secret, but keep it from peers: it also keys hash tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// From 32 bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A generator of its own for the child named `label`, so that adding a child shifts no other's numbers.
    pub fn fork(&self, label: &str) -> Rng {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(self.0)
            .chain_update(label.as_bytes())
            .finalize()
            .into();
        Rng::from_bytes(&digest)
    }
}

/// A small generator (xoshiro256++ after Blackman and Vigna). For spreading, never for secrets.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut state = [0u64; 4];
        for (word, chunk) in state.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut eight = [0u8; 8];
            eight.copy_from_slice(chunk);
            *word = u64::from_le_bytes(eight);
        }
        // The all-zero state is the one the generator cannot leave.
        if state == [0; 4] {
            state[0] = 0x9e37_79b9_7f4a_7c15;
        }
        Self(state)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, near enough uniform for jitter; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`; `low` when they are reversed.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }
}

/// Secret randomness from outside. Feeds nonces, ephemeral keys and run ids, nothing else.
pub struct Entropy {
    pool: [u8; 32],
    drawn: u64,
}

impl Entropy {
    /// From 32 bytes of a hardware generator. Never from a constant, a clock or a [`Seed`].
    pub const fn from_hardware(bytes: [u8; 32]) -> Self {
        Self {
            pool: bytes,
            drawn: 0,
        }
    }

    /// From 32 bytes of the operating system's generator (drivers call this).
    pub const fn from_os(bytes: [u8; 32]) -> Self {
        Self {
            pool: bytes,
            drawn: 0,
        }
    }

    /// Mixes in more: after a restored snapshot, or whenever the hardware has some.
    pub fn top_up(&mut self, bytes: &[u8]) {
        self.pool = Sha256::new()
            .chain_update(self.pool)
            .chain_update([0])
            .chain_update(bytes)
            .finalize()
            .into();
    }

    /// The next 32 bytes; each draw is independent of those before it.
    pub fn draw(&mut self) -> [u8; 32] {
        self.drawn = self.drawn.wrapping_add(1);
        let out = Sha256::new()
            .chain_update(self.pool)
            .chain_update([1])
            .chain_update(self.drawn.to_be_bytes())
            .finalize()
            .into();
        // The pool moves on, so that reading memory later does not give back what was drawn before.
        self.pool = Sha256::new()
            .chain_update(self.pool)
            .chain_update([2])
            .finalize()
            .into();
        out
    }
}

impl Drop for Entropy {
    fn drop(&mut self) {
        self.pool.zeroize();
    }
}

impl core::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Entropy")
    }
}
