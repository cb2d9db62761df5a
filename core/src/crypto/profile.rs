//! The signature profile a machine was built with.
//!
//! Decides: names. Leaves to others: the arithmetic (`keys.rs`, `verify.rs`). Believes: no clock. Bounded by: one enum.

use core::fmt;

/// One set of algorithms. A machine accepts exactly the profile it was built with; nothing a peer sends selects one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Profile(pub(super) Kind);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ed25519,
    #[cfg(feature = "sim")]
    Fake,
}

impl Profile {
    /// Ed25519 as RFC 8032 has it, verified strictly.
    pub const ED25519: Self = Self(Kind::Ed25519);

    /// A keyed hash in place of signatures; named through `tidings::sim` alone.
    #[cfg(feature = "sim")]
    pub(crate) const FAKE: Self = Self(Kind::Fake);

    /// Its name, as the handshake carries it and as ids hash it.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Ed25519 => "ed25519",
            #[cfg(feature = "sim")]
            // As long as the real name, so that frames are as long.
            Kind::Fake => "fakesig",
        }
    }

    /// What `alg` inside a signed object says.
    pub const fn alg(self) -> &'static str {
        match self.0 {
            Kind::Ed25519 => "Ed25519",
            #[cfg(feature = "sim")]
            Kind::Fake => "FakeSig",
        }
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profile({})", self.name())
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
