//! A node's key, as the core and as TLS want to sign with it, and the carried form of a raw public key.
//!
//! Decides: the one form a raw key is carried in. Leaves to others: where the secret is kept
//! ([`Signer`] is the seam). Believes: no clock. Bounded by: one signature at a time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use tidings::crypto::{Profile, PublicKey, SignError, Signer};

use crate::TlsFault;

/// What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
const SPKI_HEAD: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A key as TLS carries it.
pub(crate) fn encode(key: &[u8; 32]) -> Vec<u8> {
    [&SPKI_HEAD[..], key].concat()
}

/// Reads a carried key: Ed25519, canonical, not of small order.
pub(crate) fn decode(carried: &[u8]) -> Result<PublicKey, TlsFault> {
    let key = carried
        .strip_prefix(&SPKI_HEAD)
        .and_then(|key| key.try_into().ok())
        .ok_or(TlsFault::BadKeyForm)?;
    PublicKey::decode(Profile::ED25519, key).map_err(|_| TlsFault::BadKeyForm)
}

/// A node's key for both of its uses. Cloning gives the same key; the secret stays where it is.
#[derive(Clone)]
pub struct NodeKey {
    signer: Arc<Mutex<dyn Signer>>,
    profile: Profile,
    public: [u8; 32],
}

impl NodeKey {
    /// The key that `signer` holds.
    pub fn new(signer: impl Signer + 'static) -> Self {
        Self {
            profile: signer.profile(),
            public: signer.public_key(),
            signer: Arc::new(Mutex::new(signer)),
        }
    }

    fn signer(&self) -> MutexGuard<'_, dyn Signer + 'static> {
        self.signer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signer for NodeKey {
    fn profile(&self) -> Profile {
        self.profile
    }

    fn public_key(&self) -> [u8; 32] {
        self.public
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        self.signer().sign(parts)
    }
}

impl rustls::sign::SigningKey for NodeKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn rustls::sign::Signer>> {
        let both = offered.contains(&SignatureScheme::ED25519);
        both.then(|| Box::new(self.clone()) as Box<dyn rustls::sign::Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(encode(&self.public).into())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl rustls::sign::Signer for NodeKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        match self.signer().sign(&[message]) {
            Ok(signature) => Ok(signature.to_vec()),
            Err(SignError) => Err(TlsFault::SignerFailed.into()),
        }
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings::crypto::SecretKey;

    #[test]
    fn a_key_is_carried_and_read_again() {
        let key = SecretKey::from_seed([3; 32]);
        let carried = encode(&key.public_key());
        assert_eq!(carried.len(), 44);
        assert_eq!(decode(&carried).unwrap().node_id(), key.node_id());
    }

    #[test]
    fn a_key_of_small_order_or_another_form_is_none() {
        let key = SecretKey::from_seed([3; 32]).public_key();
        let mut identity = [0; 32];
        identity[0] = 1;
        let mut not_canonical = [0xff; 32];
        not_canonical[31] = 0x7f;
        let long = [encode(&key), vec![0]].concat();
        let mut other_curve = encode(&key);
        // X25519 instead of Ed25519.
        other_curve[8] = 0x6e;
        let bad = [
            encode(&identity),
            encode(&[0; 32]),
            encode(&not_canonical),
            long,
            other_curve,
            key.to_vec(),
            Vec::new(),
        ];
        for carried in bad {
            assert_eq!(decode(&carried).unwrap_err(), TlsFault::BadKeyForm);
        }
    }

    #[test]
    fn a_key_shows_only_its_name() {
        let key = NodeKey::new(SecretKey::from_seed([3; 32]));
        assert_eq!(format!("{key:?}"), "NodeKey");
    }
}
