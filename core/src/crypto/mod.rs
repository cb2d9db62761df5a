//! Keys and signatures, and the seal of events.
//!
//! Decides: which keys are well formed, which signatures hold and which ciphertexts open. Leaves to others: whose key is trusted for what,
//! and where secrets are kept ([`Signer`] is the seam). Believes: no clock. Bounded by: fixed sizes; nothing here allocates.

mod keys;
mod profile;
mod seal;
mod subkeys;
mod verify;

pub use keys::{KeyError, PublicKey, SecretKey, SignError, Signer};
pub use profile::Profile;
pub use seal::{OpenError, PeriodKey, Place, SEAL_SCHEME, SEAL_TAG, Seal, SealError, Subkey};
pub use subkeys::{SubkeyCache, SubkeySlot};

/// What separates a label from what follows it.
pub(crate) const SEPARATOR: &[u8] = &[0];
