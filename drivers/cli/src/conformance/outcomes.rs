//! `outcomes`: which links a publication goes to, and what becomes of it.
//!
//! Decides: that real keys sign here. Leaves to others: the steps; they are played by the same hand as in the core's own tests. Believes:
//! the times of the entry. Bounded by: the entry.

#[path = "../../../../core/tests/outcomes/rig.rs"]
mod rig;
#[path = "../../../../core/tests/outcomes/script.rs"]
mod script;

use std::panic::catch_unwind;

use serde_json::Value;

use super::{Broken, Judged};

/// What the rig is made of here.
mod parts {
    use tidings::Entropy;
    use tidings::crypto::{Profile, SecretKey, Signer};

    pub(crate) const PROFILE: Profile = Profile::ED25519;

    pub(crate) fn key(part: u8) -> impl Signer + 'static {
        SecretKey::from_seed([part; 32])
    }

    pub(crate) fn entropy() -> Entropy {
        Entropy::from_hardware([8; 32])
    }
}

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    // A station played by hand takes for granted what the other families show.
    catch_unwind(|| script::feed(entry))
        .unwrap_or_else(|_| Err("the links do not work".to_owned()))
        .map(Ok)
}
