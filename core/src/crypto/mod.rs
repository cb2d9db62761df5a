//! Keys and signatures, and the seal of events.
//!
//! Decides: which keys are well formed, which signatures hold and which ciphertexts open. Leaves to others: whose key is trusted for what,
//! and where secrets are kept ([`Signer`] is the seam). Believes: no clock. Bounded by: fixed sizes; nothing here allocates.

mod keys;
mod profile;
mod seal;
#[cfg(feature = "aes-gcm")]
mod seal1;
mod subkeys;
mod verify;

pub use keys::{KeyError, PublicKey, SecretKey, SignError, Signer};
pub use profile::Profile;
pub use seal::{OpenError, PeriodKey, Place, SEAL_SCHEME, SEAL_TAG, Seal, SealError, Subkey};
#[cfg(feature = "aes-gcm")]
pub use seal1::{SEAL_SCHEME_1, Subkey1};
pub use subkeys::{SubkeyCache, SubkeySlot};

/// What separates a label from what follows it.
pub(crate) const SEPARATOR: &[u8] = &[0];
