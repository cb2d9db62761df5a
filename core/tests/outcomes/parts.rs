//! What the rig is made of where nothing has to be secret.

use tidings::Entropy;
use tidings::crypto::{Profile, Signer};
use tidings::sim::{self, FAKE_PROFILE};

pub(crate) const PROFILE: Profile = FAKE_PROFILE;

pub(crate) fn key(part: u8) -> impl Signer + 'static {
    sim::fake_signer(part.into())
}

pub(crate) fn entropy() -> Entropy {
    sim::entropy(3)
}
