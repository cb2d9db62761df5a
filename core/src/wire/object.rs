//! Signed objects (WIRE.md section 5).
//!
//! Decides: the exact shape, and how one is signed and verified. Leaves to others: what `tbs` holds, and whose key is trusted. Believes:
//! no clock. Bounded by: the bytes handed in; views borrow from them.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

use super::cbor::{Reader, Sink, Strict, Writer};
use crate::code::ObjectFault;
use crate::crypto::{Profile, PublicKey, SEPARATOR, SignError, Signer};

/// Signs publications.
pub const PUBLICATION_LABEL: &str = "TIDINGS-PUBLICATION-V1";
/// Signs the dialling side's proof.
pub const CONNECT_PROOF_LABEL: &str = "TIDINGS-CONNECT-PROOF-V1";
/// Signs the answering side's proof.
pub const HELLO_PROOF_LABEL: &str = "TIDINGS-HELLO-PROOF-V1";
/// Signs records.
pub const RECORD_LABEL: &str = "TIDINGS-RECORD-V1";
/// Signs requests.
pub const REQUEST_LABEL: &str = "TIDINGS-REQUEST-V1";
/// Signs replies.
pub const REPLY_LABEL: &str = "TIDINGS-REPLY-V1";
/// Signs grants.
pub const GRANT_LABEL: &str = "TIDINGS-GRANT-V1";

/// A signed object's three parts, not yet verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    /// The whole map.
    pub bytes: &'a [u8],
    /// The signer's key as carried.
    pub key: &'a [u8],
    /// What is signed.
    pub tbs: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
}

impl<'a> Object<'a> {
    /// Takes a map of exactly `key`, `tbs` and `signature`, each a byte string, apart. Keeps the CBOR rule on its own: no other encoding
    /// of such a map passes.
    ///
    /// # Errors
    /// `malformed` for anything else.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ObjectFault> {
        let object = Self::usual(bytes).or_else(|| Self::split_any(bytes));
        object.ok_or(ObjectFault::Malformed)
    }

    /// How one begins whose key has the size it must have.
    pub(crate) const FRONT: &'static [u8] = b"\xa3\x63key\x58\x20";

    /// The least bytes of one with a key and a signature of the sizes there are.
    pub(crate) const SHORTEST: usize = Self::FRONT.len() + 32 + 4 + 1 + 12 + 64;

    /// With a key and a signature of the sizes there are: all but `tbs` has its place.
    fn usual(bytes: &'a [u8]) -> Option<Self> {
        Self::behind_front(bytes, bytes.strip_prefix(Self::FRONT)?)
    }

    /// [`usual`](Self::usual), from the key on.
    #[inline(always)]
    pub(crate) fn behind_front(bytes: &'a [u8], key_on: &'a [u8]) -> Option<Self> {
        let (front, after) = key_on.split_first_chunk::<{ 32 + 4 }>()?;
        let (tbs, back) = after.split_last_chunk::<{ 12 + 64 }>()?;
        if !front.ends_with(b"\x63tbs") || !back.starts_with(b"\x69signature\x58\x40") {
            return None;
        }
        Some(Self {
            bytes,
            key: &front[..32],
            tbs: Strict::only_bytes(tbs)?,
            signature: &back[12..],
        })
    }

    fn split_any(bytes: &'a [u8]) -> Option<Self> {
        let mut r = Strict::new(bytes);
        let key = r.after(b"\xa3\x63key")?.bytes()?;
        let tbs = r.after(b"\x63tbs")?.bytes()?;
        let signature = r.after(b"\x69signature")?.bytes()?;
        r.rest().is_empty().then_some(Self {
            bytes,
            key,
            tbs,
            signature,
        })
    }

    /// The key as carried and the signature, where they have the sizes they must have in a publication.
    ///
    /// # Errors
    /// `bad_key_form`, `malformed`.
    #[inline]
    pub(crate) fn key_and_signature(&self) -> Result<(&'a [u8; 32], &'a [u8; 64]), ObjectFault> {
        let key = self.key.try_into().ok().ok_or(ObjectFault::BadKeyForm)?;
        let signature = self.signature.try_into().ok();
        Ok((key, signature.ok_or(ObjectFault::Malformed)?))
    }

    /// The key in its carried form.
    ///
    /// # Errors
    /// `bad_key_form`.
    pub fn decode_key(&self, profile: Profile) -> Result<PublicKey, ObjectFault> {
        let bytes = self.key.try_into().ok();
        bytes
            .and_then(|bytes| PublicKey::decode(profile, bytes).ok())
            .ok_or(ObjectFault::BadKeyForm)
    }

    /// Every check of section 5 up to the signature, in order; gives the key that signed.
    ///
    /// # Errors
    /// `bad_key_form`, `malformed` for a signature that is not 64 bytes, `signature_invalid`.
    pub fn verify(&self, profile: Profile, label: &str) -> Result<PublicKey, ObjectFault> {
        let key = self.decode_key(profile)?;
        self.verify_with(&key, label)?;
        Ok(key)
    }

    /// The same with the key that is carried, decoded before.
    pub(crate) fn verify_with(&self, key: &PublicKey, label: &str) -> Result<(), ObjectFault> {
        let signature = self.signature.try_into().ok();
        let signature = signature.ok_or(ObjectFault::Malformed)?;
        match key.verify(label, self.tbs, signature) {
            true => Ok(()),
            false => Err(ObjectFault::SignatureInvalid),
        }
    }

    /// Every check of section 5: those of [`verify`](Self::verify), then `tbs` is a map under the rule whose `alg` names the profile's
    /// own algorithm.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn open(&self, profile: Profile, label: &str) -> Result<PublicKey, ObjectFault> {
        let key = self.verify(profile, label)?;
        if super::cbor::check(self.tbs, false).is_err() {
            return Err(ObjectFault::Malformed);
        }
        let mut alg = None;
        let entries = Reader::new(self.tbs).entries();
        let mut entries = entries.ok_or(ObjectFault::Malformed)?;
        while let Some(entry) = entries.next_entry() {
            let (name, value) = entry.ok_or(ObjectFault::Malformed)?;
            if name == b"alg" {
                alg = value.text();
            }
        }
        if alg.ok_or(ObjectFault::Malformed)? != profile.alg() {
            return Err(ObjectFault::AlgMismatch);
        }
        Ok(key)
    }
}

/// Appends the object made of three parts.
pub fn write_object<S: Sink + ?Sized>(
    out: &mut S,
    key: &[u8; 32],
    tbs: &[u8],
    signature: &[u8; 64],
) {
    let w = &mut Writer::new(out);
    w.map(3).text("key").bytes(key);
    w.text("tbs").bytes(tbs);
    w.text("signature").bytes(signature);
}

/// Appends the object whose `tbs` is written by `tbs`, signing it where it stands. `tbs_len` is its length.
#[cfg(feature = "alloc")]
pub(crate) fn sign_object<E: From<SignError>>(
    out: &mut Vec<u8>,
    signer: &dyn Signer,
    label: &str,
    tbs_len: usize,
    tbs: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mark = out.len();
    let key = signer.public_key();
    let w = &mut Writer::new(out);
    w.map(3).text("key").bytes(&key);
    w.text("tbs").bytes_head(tbs_len);
    let start = out.len();
    let signed = tbs(out).and_then(|()| {
        let written = out.get(start..).unwrap_or_default();
        Ok(sign_tbs(signer, &key, label, written)?)
    });
    match signed {
        Ok(signature) => {
            Writer::new(out).text("signature").bytes(&signature);
            Ok(())
        }
        Err(error) => {
            out.truncate(mark);
            Err(error)
        }
    }
}

/// Signs label ‖ 00 ‖ SHA-384(key) ‖ tbs.
///
/// # Errors
/// When the signer cannot sign.
pub fn sign_tbs(
    signer: &dyn Signer,
    key: &[u8; 32],
    label: &str,
    tbs: &[u8],
) -> Result<[u8; 64], SignError> {
    use sha2::{Digest, Sha384};
    let hash: [u8; 48] = Sha384::digest(key).into();
    signer.sign(&[label.as_bytes(), SEPARATOR, &hash, tbs])
}

#[cfg(test)]
mod tests;
