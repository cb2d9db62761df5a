//! The event seal, scheme 1: AES-256-GCM, for interoperation (feature `aes-gcm`).
//!
//! Decides: how such a payload is sealed and opened. Leaves to others: whose key is trusted, which one is due; nothing keeps its subkeys, each is
//! derived when it is needed. Believes: no clock. Bounded by: the caller's buffer; a subkey is 32 bytes, and nothing here allocates.
//!
//! Its labels are another system's, so that no key serves two ciphers. What it is bound to lacks the epoch and the id of the key; what is
//! published here is sealed under scheme 2.

use core::fmt;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use zeroize::Zeroize;

use super::seal::{MAX_AAD, derive_under, open_detached};
use super::{OpenError, PeriodKey, Place, SEAL_TAG, SealError};
use crate::NodeId;
use crate::topic::MAX_TOPIC_BYTES;
use crate::wire::cbor::{Sink, SliceSink, Writer};

/// The number this scheme has in `sealed`.
pub const SEAL_SCHEME_1: u8 = 1;

/// Derives subkeys.
const KEY_LABEL: &str = "MACULA-E2E-EVENT-V1";

/// Begins the associated data.
const AAD_LABEL: &str = "MACULA-E2E-EVENT-AAD-V1";

/// What one publisher's payloads are sealed under in one key period, in scheme 1. Wiped when dropped; shows only its name.
pub struct Subkey1([u8; 32]);

impl Subkey1 {
    /// Derives it: one HKDF.
    pub fn derive(period: &PeriodKey, publisher: &NodeId) -> Self {
        let mut subkey = Self([0; 32]);
        derive_under(KEY_LABEL, period, publisher, &mut subkey.0);
        subkey
    }

    /// Appends what a ciphertext of this place is bound to.
    pub fn encode_aad<S: Sink + ?Sized>(place: &Place<'_>, out: &mut S) {
        let w = &mut Writer::new(out);
        w.array(6).text(AAD_LABEL).bytes(place.realm.as_bytes());
        w.text(place.topic).bytes(place.publisher.as_bytes());
        w.unsigned(place.seq);
        w.unsigned(place.published_at.as_millis());
    }

    /// Seals `text` where it stands and answers the tag. `nonce` is 12 random bytes just drawn, which travel beside it.
    ///
    /// # Errors
    /// [`SealError::TooLong`]; `text` is as it was.
    pub fn seal(
        &self,
        place: &Place<'_>,
        nonce: &[u8; 12],
        text: &mut [u8],
    ) -> Result<[u8; SEAL_TAG], SealError> {
        let mut buffer = [0; MAX_AAD];
        let aad = aad(place, &mut buffer).ok_or(SealError::TooLong)?;
        let sealed = self
            .cipher()
            .encrypt_inout_detached(nonce.into(), aad, text.into());
        sealed.map(Into::into).map_err(|_| SealError::TooLong)
    }

    /// Opens `ct`, a ciphertext with its tag behind it, where it stands, and answers the part that is plain now.
    ///
    /// # Errors
    /// [`OpenError::TagInvalid`] unless exactly these bytes were sealed under this subkey for this place; `ct` is as it was.
    pub fn open<'t>(
        &self,
        place: &Place<'_>,
        nonce: &[u8; 12],
        ct: &'t mut [u8],
    ) -> Result<&'t mut [u8], OpenError> {
        let mut buffer = [0; MAX_AAD];
        let aad = aad(place, &mut buffer).ok_or(OpenError::TagInvalid)?;
        open_detached(&self.cipher(), nonce, aad, ct)
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new((&self.0).into())
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for Subkey1 {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Subkey1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subkey1")
    }
}

/// The associated data of a place whose topic is not too long.
fn aad<'b>(place: &Place<'_>, buffer: &'b mut [u8; MAX_AAD]) -> Option<&'b [u8]> {
    if place.topic.len() > MAX_TOPIC_BYTES {
        return None;
    }
    let mut sink = SliceSink::new(buffer);
    Subkey1::encode_aad(place, &mut sink);
    let len = sink.finish().ok()?;
    buffer.get(..len)
}

#[cfg(test)]
mod tests;
