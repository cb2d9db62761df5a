//! Publications (WIRE.md section 6).
//!
//! Decides: their shape, identity and life. Leaves to others: matching, order, and everything that needs memory. Believes: the wall clock
//! handed to [`Publication::freshness`], in two-sided differences. Bounded by: the bytes handed in; a view borrows from them.

mod read;
mod sealed;

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

use super::cbor::{Counter, Sink, Writer, is_text};
use super::object::{Object, PUBLICATION_LABEL};
use crate::code::ObjectFault;
use crate::crypto::{Profile, PublicKey};
#[cfg(feature = "alloc")]
use crate::crypto::{SignError, Signer};
use crate::{NodeId, PublicationHash, RealmId, WallMs};
use read::Fields;

/// Numbers of the wire are below this: 2^53.
pub const NUMBER_LIMIT: u64 = 1 << 53;

/// The longest life a publication may ask for, in milliseconds.
pub const MAX_TTL_MS: u32 = 3_600_000;

/// The life of a publication that asks for none, in milliseconds.
pub const DEFAULT_TTL_MS: u32 = 600_000;

/// How far clocks may be apart, in milliseconds.
pub const SKEW_MS: u64 = 300_000;

/// What a publication carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body<'a> {
    /// One CBOR value in the clear.
    Payload(&'a [u8]),
    /// Something only a group can open.
    Sealed(Sealed<'a>),
}

/// A sealed body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The ciphertext with its tag: 16 bytes at least.
    pub ct: &'a [u8],
    /// The nonce.
    pub nonce: &'a [u8; 12],
    /// Which key opens it.
    pub key_id: &'a [u8; 8],
    /// 1 or 2.
    pub scheme: u8,
}

/// A publication as received: well formed, not yet verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication<'a> {
    /// The whole object, as it is forwarded.
    pub bytes: &'a [u8],
    /// The publisher's key as carried.
    pub key: &'a [u8; 32],
    /// What is signed.
    pub tbs: &'a [u8],
    /// The signature.
    pub signature: &'a [u8; 64],
    /// In which realm.
    pub realm: RealmId,
    /// On which topic.
    pub topic: &'a str,
    /// Who says to have signed it.
    pub publisher: NodeId,
    /// When its numbering began, in wall microseconds.
    pub epoch: Option<u64>,
    /// Its number, 1 at least.
    pub seq: u64,
    /// When it was signed.
    pub published_at: WallMs,
    /// The life it asks for, in milliseconds.
    pub ttl_ms: Option<u32>,
    /// Whether it is for one subscriber only.
    pub one: bool,
    /// What it carries.
    pub body: Body<'a>,
    /// `realm` and `publisher` where they stand in `tbs`.
    pub(crate) ids: [&'a [u8; 32]; 2],
    profile: Profile,
}

impl<'a> Publication<'a> {
    /// Reads an object as a publication: its shape, the sizes of key and signature, the CBOR rule and the table of section 6 over `tbs`,
    /// and `alg`. Neither the key's form nor the signature is judged; see [`PublicKey::decode`] and [`verify`](Self::verify).
    ///
    /// # Errors
    /// `malformed`, `bad_key_form` (a key that is not 32 bytes) or `alg_mismatch`.
    pub fn parse(object_bytes: &'a [u8], profile: Profile) -> Result<Self, ObjectFault> {
        Self::of_object(&Object::parse(object_bytes)?, profile)
    }

    /// [`Publication::parse`] of an object that was taken apart.
    #[inline]
    pub(crate) fn of_object(object: &Object<'a>, profile: Profile) -> Result<Self, ObjectFault> {
        let (key, signature) = object.key_and_signature()?;
        let fields = Fields::read(object.tbs).ok_or(ObjectFault::Malformed)?;
        if fields.alg != profile.alg().as_bytes() {
            return Err(match is_text(fields.alg) {
                true => ObjectFault::AlgMismatch,
                false => ObjectFault::Malformed,
            });
        }
        Ok(Self {
            bytes: object.bytes,
            key,
            tbs: object.tbs,
            signature,
            ids: [fields.realm, fields.publisher],
            realm: RealmId::new(*fields.realm),
            topic: fields.topic,
            publisher: NodeId::new(*fields.publisher),
            epoch: fields.epoch,
            seq: fields.seq,
            published_at: WallMs::new(fields.published_at),
            ttl_ms: fields.ttl_ms,
            one: fields.one,
            body: fields.body,
            profile,
        })
    }

    /// Every check of section 6 for a publication taken alone, in its order, freshness apart. Gives the key as well.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn open(
        object_bytes: &'a [u8],
        profile: Profile,
    ) -> Result<(Self, PublicKey), ObjectFault> {
        let object = Object::parse(object_bytes)?;
        let key = object.decode_key(profile)?;
        let publication = Self::of_object(&object, profile)?;
        if key.node_id() != publication.publisher {
            return Err(ObjectFault::KeyIdMismatch);
        }
        if !publication.verify(&key) {
            return Err(ObjectFault::SignatureInvalid);
        }
        Ok((publication, key))
    }

    /// Whether `publisher` is the id of `key`. Costs one SHA-256; a decoded key knows its id already.
    pub fn publisher_matches_key(&self) -> bool {
        NodeId::of_key(self.profile.name(), self.key) == self.publisher
    }

    /// Whether the signature holds under `key`, which the caller decoded from [`key`](Self::key) or found by it.
    pub fn verify(&self, key: &PublicKey) -> bool {
        key.as_bytes() == self.key && key.verify(PUBLICATION_LABEL, self.tbs, self.signature)
    }

    /// Its identity: SHA-384 of `tbs` as received.
    pub fn hash(&self) -> PublicationHash {
        PublicationHash::of_tbs(self.tbs)
    }

    /// The last moment it is live, the allowance for skew included.
    pub fn expires_at(&self) -> WallMs {
        let ttl = u64::from(self.ttl_ms.unwrap_or(DEFAULT_TTL_MS));
        self.published_at.saturating_add(ttl + SKEW_MS)
    }

    /// Whether it is live at `wall`; both ends are.
    ///
    /// # Errors
    /// `not_yet_valid` or `expired`, with how far beyond the end it is, in milliseconds.
    pub fn freshness(&self, wall: WallMs) -> Result<(), (ObjectFault, u64)> {
        freshness(self.published_at, self.expires_at(), wall)
    }
}

/// [`Publication::freshness`] of these two times.
pub(crate) fn freshness(
    published_at: WallMs,
    expires_at: WallMs,
    wall: WallMs,
) -> Result<(), (ObjectFault, u64)> {
    let latest = wall.saturating_add(SKEW_MS);
    if published_at > latest {
        let early = published_at.since(latest);
        return Err((ObjectFault::NotYetValid, early.unsigned_abs()));
    }
    if wall > expires_at {
        let late = wall.since(expires_at);
        return Err((ObjectFault::Expired, late.unsigned_abs()));
    }
    Ok(())
}

/// A publication to be written. The caller has validated its parts: numbers below 2^53, a topic, a checked payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft<'a> {
    /// In which realm.
    pub realm: RealmId,
    /// On which topic.
    pub topic: &'a str,
    /// The signer's node id.
    pub publisher: NodeId,
    /// When the numbering began, in wall microseconds.
    pub epoch: Option<u64>,
    /// Its number, 1 at least.
    pub seq: u64,
    /// Now.
    pub published_at: WallMs,
    /// The life it asks for, in milliseconds.
    pub ttl_ms: Option<u32>,
    /// Whether it is for one subscriber only.
    pub one: bool,
    /// What it carries.
    pub body: Body<'a>,
}

impl Draft<'_> {
    /// Appends `tbs`.
    pub fn encode_tbs<S: Sink + ?Sized>(&self, profile: Profile, out: &mut S) {
        self.encode_front(profile, out);
        if let Body::Sealed(sealed) = self.body {
            let w = &mut Writer::new(out);
            w.text("sealed").map(4).text("ct").bytes(sealed.ct);
            w.text("nonce").bytes(sealed.nonce);
            w.text("key_id").bytes(sealed.key_id);
            w.text("scheme").unsigned(sealed.scheme.into());
        }
        let payload = match self.body {
            Body::Payload(payload) => Some(payload),
            Body::Sealed(_) => None,
        };
        self.encode_back(payload, out);
    }

    /// What stands before the body.
    fn encode_front<S: Sink + ?Sized>(&self, profile: Profile, out: &mut S) {
        let optionals = usize::from(self.one)
            + usize::from(self.epoch.is_some())
            + usize::from(self.ttl_ms.is_some());
        let w = &mut Writer::new(out);
        w.map(7 + optionals).text("alg").text(profile.alg());
        if self.one {
            w.text("one").unsigned(1);
        }
        w.text("seq").unsigned(self.seq);
        if let Some(epoch) = self.epoch {
            w.text("epoch").unsigned(epoch);
        }
        w.text("realm").bytes(self.realm.as_bytes());
        w.text("topic").text(self.topic);
    }

    /// What stands behind a sealed body, or around a payload.
    fn encode_back<S: Sink + ?Sized>(&self, payload: Option<&[u8]>, out: &mut S) {
        let w = &mut Writer::new(out);
        if let Some(ttl) = self.ttl_ms {
            w.text("ttl_ms").unsigned(ttl.into());
        }
        if let Some(payload) = payload {
            w.text("payload").raw(payload);
        }
        w.text("publisher").bytes(self.publisher.as_bytes());
        w.text("published_at")
            .unsigned(self.published_at.as_millis());
    }

    /// The length of the whole object once signed.
    pub fn object_len(&self, profile: Profile) -> usize {
        let mut tbs = Counter::default();
        self.encode_tbs(profile, &mut tbs);
        object_len(tbs.0)
    }

    /// Signs it and appends the whole object. `tbs` is written once and signed where it stands.
    ///
    /// # Errors
    /// When the signer cannot sign; nothing is appended then.
    #[cfg(feature = "alloc")]
    pub fn sign(&self, signer: &dyn Signer, out: &mut Vec<u8>) -> Result<(), SignError> {
        let profile = signer.profile();
        let mut length = Counter::default();
        self.encode_tbs(profile, &mut length);
        super::object::sign_object(out, signer, PUBLICATION_LABEL, length.0, |out| {
            self.encode_tbs(profile, out);
            Ok(())
        })
    }
}

/// The length of the object around a `tbs` of this length.
fn object_len(tbs: usize) -> usize {
    let mut head = Counter::default();
    Writer::new(&mut head).bytes_head(tbs);
    // Map, three names, and the byte strings of key and signature with their heads.
    1 + 4 + 34 + 4 + 10 + 66 + head.0 + tbs
}

#[cfg(test)]
mod tests;
