//! Sealed bodies, written and read (WIRE.md section 6.1).
//!
//! Decides: what a ciphertext is bound to, and that what it held is a payload. Leaves to others: the cipher (`crypto`), and which key is due.
//! Believes: no clock. Bounded by: the caller's buffer; a payload is copied there once and sealed where it stands.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

use super::read::payload;
use super::{Body, Draft, Publication, Sealed, object_len};
#[cfg(feature = "alloc")]
use crate::crypto::Signer;
use crate::crypto::{
    OpenError, PeriodKey, Place, Profile, SEAL_SCHEME, SEAL_TAG, Seal, SealError, Subkey,
};
use crate::wire::cbor::{Counter, RoomSink, Strict, Writer};
#[cfg(feature = "alloc")]
use crate::wire::object::PUBLICATION_LABEL;

impl Draft<'_> {
    /// Where its payload belongs once it is sealed under the key of this id.
    pub fn place(&self, key_id: [u8; 8]) -> Place<'_> {
        Place {
            realm: self.realm,
            topic: self.topic,
            publisher: self.publisher,
            epoch: self.epoch,
            seq: self.seq,
            published_at: self.published_at,
            key_id,
        }
    }

    /// Appends `tbs` with its payload sealed. A body that is sealed already is written as it is.
    ///
    /// # Errors
    /// [`SealError::TooLong`]; what was appended is of no use then.
    pub fn encode_sealed_tbs<S: RoomSink + ?Sized>(
        &self,
        profile: Profile,
        seal: &Seal<'_>,
        out: &mut S,
    ) -> Result<(), SealError> {
        self.encode_sealed(profile, &seal.key_id, out, |text| {
            let place = self.place(seal.key_id);
            seal.subkey.seal(&place, &seal.entropy, text)
        })
    }

    /// The length of the whole object once its payload is sealed and it is signed.
    pub fn sealed_object_len(&self, profile: Profile) -> usize {
        object_len(self.sealed_tbs_len(profile))
    }

    fn sealed_tbs_len(&self, profile: Profile) -> usize {
        let mut tbs = Counter::default();
        let none = |_: &mut [u8]| Ok(([0; 12], [0; SEAL_TAG]));
        match self.encode_sealed(profile, &[0; 8], &mut tbs, none) {
            Ok(()) | Err(_) => tbs.0,
        }
    }

    /// Seals its payload, signs it and appends the whole object. The payload is copied once, sealed and signed where it stands.
    ///
    /// # Errors
    /// [`SealError`]; nothing is appended then.
    #[cfg(feature = "alloc")]
    pub fn sign_sealed(
        &self,
        signer: &dyn Signer,
        seal: &Seal<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let profile = signer.profile();
        let length = self.sealed_tbs_len(profile);
        crate::wire::object::sign_object(out, signer, PUBLICATION_LABEL, length, |out| {
            self.encode_sealed_tbs(profile, seal, out)
        })
    }

    /// `seal` is handed the payload where it stands; a sink that gives no room is written zeros.
    fn encode_sealed<S: RoomSink + ?Sized>(
        &self,
        profile: Profile,
        key_id: &[u8; 8],
        out: &mut S,
        seal: impl FnOnce(&mut [u8]) -> Result<([u8; 12], [u8; SEAL_TAG]), SealError>,
    ) -> Result<(), SealError> {
        let Body::Payload(plain) = self.body else {
            self.encode_tbs(profile, out);
            return Ok(());
        };
        self.encode_front(profile, out);
        let len = plain.len().saturating_add(SEAL_TAG);
        let w = &mut Writer::new(out);
        w.text("sealed").map(4).text("ct").bytes_head(len);
        let mut nonce = [0; 12];
        if let Some((text, tag)) = out.room(len).and_then(<[u8]>::split_last_chunk_mut) {
            text.copy_from_slice(plain);
            (nonce, *tag) = seal(text)?;
        }
        let w = &mut Writer::new(out);
        w.text("nonce").bytes(&nonce);
        w.text("key_id").bytes(key_id);
        w.text("scheme").unsigned(SEAL_SCHEME.into());
        self.encode_back(None, out);
        Ok(())
    }
}

impl<'a> Publication<'a> {
    /// What is sealed and where it belongs; `None` for a body in the clear.
    pub fn sealed(&self) -> Option<(Sealed<'a>, Place<'a>)> {
        let Body::Sealed(sealed) = self.body else {
            return None;
        };
        let place = Place {
            realm: self.realm,
            topic: self.topic,
            publisher: self.publisher,
            epoch: self.epoch,
            seq: self.seq,
            published_at: self.published_at,
            key_id: *sealed.key_id,
        };
        Some((sealed, place))
    }

    /// Opens a sealed body into `text`, which is as long as the ciphertext at least, and answers the payload: one value that could have
    /// stood in the clear. `subkey` is the publisher's in the period `key_id` names. Verify first: this says who could read, not who spoke.
    ///
    /// # Errors
    /// [`OpenError`]. What `text` holds then is of no use.
    pub fn unseal<'t>(&self, subkey: &Subkey, text: &'t mut [u8]) -> Result<&'t [u8], OpenError> {
        let (sealed, place) = self.sealed().ok_or(OpenError::NotSealed)?;
        if sealed.scheme != SEAL_SCHEME {
            return Err(OpenError::OtherScheme);
        }
        let ct = copied(&sealed, text)?;
        let plain = subkey.open(&place, sealed.nonce, ct)?;
        self.payload_of(plain)
    }

    /// Opens what is sealed under a scheme that this build knows beside [`SEAL_SCHEME`], as [`unseal`](Self::unseal) does.
    ///
    /// # Errors
    /// [`OpenError`]; `OtherScheme` in a build that knows none.
    #[cfg_attr(
        not(feature = "aes-gcm"),
        expect(unused_variables, reason = "no other scheme is known")
    )]
    pub fn unseal_otherwise<'t>(
        &self,
        period: &PeriodKey,
        text: &'t mut [u8],
    ) -> Result<&'t [u8], OpenError> {
        #[cfg(feature = "aes-gcm")]
        if let Some((sealed, place)) = self.sealed()
            && sealed.scheme == crate::crypto::SEAL_SCHEME_1
        {
            let subkey = crate::crypto::Subkey1::derive(period, &self.publisher);
            let plain = subkey.open(&place, sealed.nonce, copied(&sealed, text)?)?;
            return self.payload_of(plain);
        }
        Err(OpenError::OtherScheme)
    }

    /// What was sealed, if it could have stood in the clear.
    fn payload_of<'t>(&self, plain: &'t [u8]) -> Result<&'t [u8], OpenError> {
        let optional = [self.one, self.epoch.is_some(), self.ttl_ms.is_some()];
        let optional = optional.iter().filter(|there| **there).count();
        let mut r = Strict::new(plain);
        let one_value = payload(&mut r, 7 + optional as u64).is_some() && r.rest().is_empty();
        one_value.then_some(plain).ok_or(OpenError::TagInvalid)
    }
}

/// A ciphertext at the beginning of a buffer.
fn copied<'t>(sealed: &Sealed<'_>, text: &'t mut [u8]) -> Result<&'t mut [u8], OpenError> {
    let needed = sealed.ct.len();
    let ct = text.get_mut(..needed);
    let ct = ct.ok_or(OpenError::TooSmall { needed })?;
    ct.copy_from_slice(sealed.ct);
    Ok(ct)
}

#[cfg(test)]
mod tests;
