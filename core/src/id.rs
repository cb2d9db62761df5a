//! Names of things: realms, nodes, publications, and the handles of one run.
//!
//! Decides: how ids are derived (WIRE.md section 4) and written. Leaves to others: which key is whose. Believes: no clock.
//! Bounded by: fixed sizes; handles are generational and never reused within a run.

use core::fmt;
use core::str::FromStr;

use sha2::{Digest, Sha256, Sha384};

macro_rules! bytes_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $len]);

        impl $name {
            /// From its bytes.
            pub const fn new(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// Its bytes.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = BadHex;

            fn from_str(text: &str) -> Result<Self, BadHex> {
                let mut bytes = [0; $len];
                read_hex(text, &mut bytes)?;
                Ok(Self(bytes))
            }
        }
    };
}

bytes_id!(/** A realm: SHA-256 of its name. */ RealmId, 32);
bytes_id!(/** A node or station: derived from its public key. */ NodeId, 32);
bytes_id!(/** Any other key's id. */ KeyId, 32);
bytes_id!(/** A publication's identity: SHA-384 of its `tbs` as received. */ PublicationHash, 48);
bytes_id!(/** One run of a realm at a station. */ RunId, 8);

/// Text that is not lower-case hex of the right length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHex;

impl fmt::Display for BadHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not lower-case hex digits of the expected length")
    }
}

impl core::error::Error for BadHex {}

fn read_hex(text: &str, out: &mut [u8]) -> Result<(), BadHex> {
    let digits = text.as_bytes();
    if digits.len() != out.len() * 2 {
        return Err(BadHex);
    }
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(BadHex),
    };
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? * 16 + value(pair[1])?;
    }
    Ok(())
}

impl RealmId {
    /// Whether a realm may be called so: 1 to 255 bytes.
    pub const fn is_name(name: &str) -> bool {
        matches!(name.len(), 1..=255)
    }

    /// The realm called `name`, taken as it is, not normalised. A name has 1 to 255 bytes; longer or shorter ones have an id like any
    /// other, and nobody to share it with.
    pub fn of_name(name: &str) -> Self {
        Self(Sha256::digest(name.as_bytes()).into())
    }
}

/// SHA-256(label ‖ 00 ‖ len(profile) ‖ profile ‖ key).
fn key_id(label: &str, profile: &str, key: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(label.as_bytes())
        .chain_update([0, profile.len() as u8])
        .chain_update(profile.as_bytes())
        .chain_update(key)
        .finalize()
        .into()
}

impl NodeId {
    /// The node that holds `key` of the profile called `profile`.
    pub fn of_key(profile: &str, key: &[u8]) -> Self {
        Self(key_id("TIDINGS-NODE-ID-V1", profile, key))
    }
}

impl KeyId {
    /// The id of a key that is not a node's identity.
    pub fn of_key(profile: &str, key: &[u8]) -> Self {
        Self(key_id("TIDINGS-KEY-ID-V1", profile, key))
    }
}

impl PublicationHash {
    /// The hash of a publication's `tbs` as received.
    pub fn of_tbs(tbs: &[u8]) -> Self {
        Self(Sha384::digest(tbs).into())
    }
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            pub(crate) index: u32,
            pub(crate) generation: u32,
        }

        #[cfg(feature = "alloc")]
        crate::arena::arena_handle!($name);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}.{})"), self.index, self.generation)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}.{}", self.index, self.generation)
            }
        }
    };
}

handle!(/** One link of one machine. */ LinkId);
handle!(/** One local subscription. */ SubscriptionId);
handle!(/** One publication on its way out. */ Ticket);
handle!(/** Publications of one purpose, announced and cancelled together. */ PublisherId);
handle!(/** One question the core asked. */ AskId);
handle!(/** One sealed group that was joined. */ GroupId);

/// What a question is about, which says who answers it: the highest bits of its index.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The keys of a sealed group.
    Keys,
    /// Whether a publisher may speak.
    Source,
    /// A signature.
    Signature,
}

#[cfg(feature = "alloc")]
impl AskId {
    const KIND: u32 = 30;

    /// The question of this kind that its machine knows by these numbers, the first of them below 2^30.
    pub(crate) const fn about(kind: Asked, index: u32, generation: u32) -> Self {
        let kind = match kind {
            Asked::Signature => 0,
            Asked::Source => 1,
            Asked::Keys => 2,
        };
        Self {
            index: index | kind << Self::KIND,
            generation,
        }
    }

    /// What it is about, and the numbers its machine knows it by.
    pub(crate) const fn parts_of(self) -> (Asked, u32, u32) {
        let kind = match self.index >> Self::KIND {
            0 => Asked::Signature,
            1 => Asked::Source,
            _ => Asked::Keys,
        };
        let index = self.index & ((1 << Self::KIND) - 1);
        (kind, index, self.generation)
    }
}
