//! Keys and signatures.
//!
//! Decides: which keys are well formed and which signatures hold. Leaves to others: whose key is trusted for what, and where secrets are
//! kept ([`Signer`] is the seam). Believes: no clock. Bounded by: fixed sizes; nothing here allocates.

mod keys;
mod profile;
mod verify;

pub use keys::{KeyError, PublicKey, SecretKey, SignError, Signer};
pub use profile::Profile;

/// What separates a label from what follows it.
pub(crate) const SEPARATOR: &[u8] = &[0];
