//! Public keys, secret keys, and the seam where an application puts its own.
//!
//! Decides: the one carried form of a key. Leaves to others: which key is trusted. Believes: no clock. Bounded by: fixed sizes; a decoded
//! key keeps what verification would otherwise compute again (the point, SHA-384 of the key, the node id), about 320 bytes.

use core::fmt;

use ed25519_dalek::ed25519::signature::MultipartSigner;
use ed25519_dalek::{SigningKey, VerifyingKey};
use sha2::{Digest, Sha384};

use super::profile::Kind;
use super::{Profile, SEPARATOR, verify};
use crate::NodeId;

/// Who signs: the one seam for secure elements, key servers and tests.
pub trait Signer: Send {
    /// The profile its signatures belong to.
    fn profile(&self) -> Profile;

    /// Its public key in the carried form.
    fn public_key(&self) -> [u8; 32];

    /// Signs the concatenation of `parts`.
    ///
    /// # Errors
    /// When the key cannot be used now; nothing was signed.
    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError>;
}

/// A signer that could not sign: try again, or look after the key's home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignError;

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the signer could not sign")
    }
}

impl core::error::Error for SignError {}

/// An Ed25519 secret key in memory. Wiped when dropped; shows only its name.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// From the 32 secret bytes of RFC 8032. The caller wipes its own copy.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let seed = zeroize::Zeroizing::new(seed);
        Self(SigningKey::from_bytes(&seed))
    }

    /// The node this key makes its holder.
    pub fn node_id(&self) -> NodeId {
        NodeId::of_key(Profile::ED25519.name(), self.0.verifying_key().as_bytes())
    }
}

impl Signer for SecretKey {
    fn profile(&self) -> Profile {
        Profile::ED25519
    }

    fn public_key(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        match self.0.try_multipart_sign(parts) {
            Ok(signature) => Ok(signature.to_bytes()),
            Err(_) => Err(SignError),
        }
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey")
    }
}

/// Why 32 bytes are not a key (`bad_key_form`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// Not the canonical encoding of a point: make a new key.
    NotCanonical,
    /// A point of small order, under which one signature fits many messages: make a new key.
    SmallOrder,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCanonical => "not the canonical encoding of a point",
            Self::SmallOrder => "a point of small order",
        })
    }
}

impl core::error::Error for KeyError {}

/// A public key that was checked once, kept with what every verification needs.
#[derive(Clone)]
pub struct PublicKey {
    form: Form,
    id: NodeId,
    hash: [u8; 48],
}

#[derive(Clone)]
enum Form {
    Ed25519(VerifyingKey),
    #[cfg(feature = "sim")]
    Fake([u8; 32]),
}

impl PublicKey {
    /// Decodes a key in its carried form: canonical, and not of small order.
    ///
    /// # Errors
    /// [`KeyError`] says which of the two it is not.
    pub fn decode(profile: Profile, bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let form = match profile.0 {
            Kind::Ed25519 => Form::Ed25519(verify::decode(bytes)?),
            #[cfg(feature = "sim")]
            Kind::Fake if *bytes == [0; 32] => return Err(KeyError::SmallOrder),
            #[cfg(feature = "sim")]
            Kind::Fake => Form::Fake(*bytes),
        };
        Ok(Self {
            form,
            id: NodeId::of_key(profile.name(), bytes),
            hash: Sha384::digest(bytes).into(),
        })
    }

    /// The key as carried.
    pub fn as_bytes(&self) -> &[u8; 32] {
        match &self.form {
            Form::Ed25519(key) => key.as_bytes(),
            #[cfg(feature = "sim")]
            Form::Fake(bytes) => bytes,
        }
    }

    /// The profile it was decoded under.
    pub const fn profile(&self) -> Profile {
        match &self.form {
            Form::Ed25519(_) => Profile::ED25519,
            #[cfg(feature = "sim")]
            Form::Fake(_) => Profile::FAKE,
        }
    }

    /// The node whose identity this key is.
    pub const fn node_id(&self) -> NodeId {
        self.id
    }

    /// SHA-384 of the key as carried: what signed objects bind to.
    pub const fn hash(&self) -> &[u8; 48] {
        &self.hash
    }

    /// Whether `signature` signs the object `tbs` under `label` (WIRE.md section 5).
    pub fn verify(&self, label: &str, tbs: &[u8], signature: &[u8; 64]) -> bool {
        self.verify_parts(&[label.as_bytes(), SEPARATOR, &self.hash, tbs], signature)
    }

    /// Whether `signature` signs the concatenation of `parts`.
    pub fn verify_parts(&self, parts: &[&[u8]], signature: &[u8; 64]) -> bool {
        match &self.form {
            Form::Ed25519(key) => verify::verify(key, parts, signature),
            #[cfg(feature = "sim")]
            Form::Fake(key) => crate::sim::fake_signature(key, parts) == *signature,
        }
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id)
    }
}
