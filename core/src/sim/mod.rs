//! The simulation (feature `sim`): its own keys, and a network on a clock moved by hand.
//!
//! Decides: a fake profile whose signatures are cheap, so that a simulated day is spent in the machines and not in curve arithmetic.
//! Leaves to others: real keys. Believes: no clock. Bounded by: fixed sizes.
//!
//! A machine built with [`FAKE_PROFILE`] accepts no other profile, and no machine built with another accepts this one.

mod net;

use sha2::{Digest, Sha256};

pub use self::net::{Net, START, entropy};
use crate::crypto::{Profile, SignError, Signer};

/// A keyed hash in place of signatures. Anyone can forge it: for simulations alone.
pub const FAKE_PROFILE: Profile = Profile::FAKE;

/// A signer of the fake profile; equal seeds make equal keys.
pub fn fake_signer(seed: u64) -> impl Signer + Clone + core::fmt::Debug + 'static {
    let key = Sha256::new()
        .chain_update(b"tidings fake key")
        .chain_update(seed.to_be_bytes())
        .finalize()
        .into();
    FakeSigner { key }
}

#[derive(Clone, Debug)]
struct FakeSigner {
    key: [u8; 32],
}

impl Signer for FakeSigner {
    fn profile(&self) -> Profile {
        FAKE_PROFILE
    }

    fn public_key(&self) -> [u8; 32] {
        self.key
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        Ok(fake_signature(&self.key, parts))
    }
}

pub(crate) fn fake_signature(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 64] {
    let mut hash = Sha256::new_with_prefix(key);
    for part in parts {
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut signature = [0; 64];
    let (first, second) = signature.split_at_mut(32);
    first.copy_from_slice(&digest);
    second.copy_from_slice(key);
    signature
}
