//! A delivered publication: its bytes as received, and views into them.
//!
//! Decides: nothing. Leaves to others: that it was verified, wanted and is in order. Believes: no clock. Bounded by: one buffer per
//! delivery, shared with nobody but its clones.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;

use crate::code::{ObjectFault, UnopenedReason};
use crate::crypto::{OpenError, PeriodKey, Profile, Subkey};
use crate::time::WallMs;
use crate::wire::{self, Body, PayloadError, Publication, Via};
use crate::{NodeId, PublicationHash, RealmId};

/// A verified, wanted, readable publication. Cloning shares its bytes.
#[derive(Clone)]
pub struct Delivery {
    bytes: Arc<[u8]>,
    tbs: Range<u32>,
    topic: Range<u32>,
    payload: Range<u32>,
    publisher: u32,
    realm: u32,
    epoch: u64,
    seq: u64,
    published_at: WallMs,
    expires_at: WallMs,
    has_epoch: bool,
    anycast: bool,
    via: Via,
    pub(crate) late: bool,
    /// Its place in the stream that handed it out.
    pub(crate) place: u64,
    /// What there is to know of its seal, if it has one; aside, because it moves often and mostly has none.
    seal: Option<Box<Sealed>>,
}

/// A seal on a publication, and what became of it.
#[derive(Clone)]
struct Sealed {
    key_id: [u8; 8],
    state: SealState,
}

#[derive(Clone)]
enum SealState {
    /// It is no delivery yet.
    Closed,
    /// What was sealed, and a tag's length of nothing.
    Opened(Arc<[u8]>),
    /// It is no delivery, and why.
    Unopened(UnopenedReason),
}

/// Where `inner` lies in `outer`; both are views of one buffer.
pub(crate) fn range_in(outer: &[u8], inner: &[u8]) -> Range<u32> {
    let start = (inner.as_ptr() as usize).wrapping_sub(outer.as_ptr() as usize) as u32;
    start..start + inner.len() as u32
}

impl Delivery {
    /// Its own copy of the publication's bytes: a slice of a read buffer would pin all of it.
    pub(crate) fn copied(publication: &Publication<'_>, via: Via) -> Self {
        let (payload, seal) = match publication.body {
            Body::Payload(payload) => (payload, None),
            Body::Sealed(sealed) => {
                let (key_id, state) = (*sealed.key_id, SealState::Closed);
                (sealed.ct, Some(Box::new(Sealed { key_id, state })))
            }
        };
        let bytes = publication.bytes;
        let [realm, publisher] = publication.ids;
        Self {
            tbs: range_in(bytes, publication.tbs),
            topic: range_in(bytes, publication.topic.as_bytes()),
            payload: range_in(bytes, payload),
            publisher: range_in(bytes, publisher).start,
            realm: range_in(bytes, realm).start,
            epoch: publication.epoch.unwrap_or(0),
            seq: publication.seq,
            published_at: publication.published_at,
            expires_at: publication.expires_at(),
            has_epoch: publication.epoch.is_some(),
            anycast: publication.one,
            via,
            late: false,
            place: 0,
            seal,
            bytes: Arc::from(bytes),
        }
    }

    /// Whether it is live, as [`Publication::freshness`] judges it.
    pub(crate) fn freshness(&self, wall: WallMs) -> Result<(), ObjectFault> {
        wire::freshness(self.published_at, self.expires_at, wall).map_err(|(fault, _)| fault)
    }

    fn view(&self, range: &Range<u32>) -> &[u8] {
        self.bytes
            .get(range.start as usize..range.end as usize)
            .unwrap_or_default()
    }

    fn id_at(&self, start: u32) -> [u8; 32] {
        let mut id = [0; 32];
        id.copy_from_slice(self.view(&(start..start + 32)));
        id
    }

    /// The realm it was published in.
    pub fn realm(&self) -> RealmId {
        RealmId::new(self.id_at(self.realm))
    }

    /// Its topic.
    pub fn topic(&self) -> &str {
        core::str::from_utf8(self.view(&self.topic)).unwrap_or_default()
    }

    /// Who signed it.
    pub fn publisher(&self) -> NodeId {
        NodeId::new(self.id_at(self.publisher))
    }

    /// When its publisher's numbering began, in wall µs; `None` for a publication that does not say.
    pub fn epoch(&self) -> Option<u64> {
        self.has_epoch.then_some(self.epoch)
    }

    /// Its number there, from 1.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// When its publisher published it, by the publisher's clock.
    pub fn published_at(&self) -> WallMs {
        self.published_at
    }

    /// The last moment a verifier accepts it.
    pub fn expires_at(&self) -> WallMs {
        self.expires_at
    }

    /// Its identity. Hashes the signed bytes: once per call.
    pub fn hash(&self) -> PublicationHash {
        PublicationHash::of_tbs(self.view(&self.tbs))
    }

    /// How this copy reached the station that brought it.
    pub fn via(&self) -> Via {
        self.via
    }

    /// Whether its place had been given up: it comes after later ones.
    pub fn late(&self) -> bool {
        self.late
    }

    /// Whether it was published to one subscriber only.
    pub fn anycast(&self) -> bool {
        self.anycast
    }

    /// Whether it was sealed for a group.
    pub fn sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// The id of the key period it was sealed under, if it was.
    pub fn seal_key_id(&self) -> Option<[u8; 8]> {
        self.seal.as_ref().map(|seal| seal.key_id)
    }

    /// The key it is sealed under, while it is neither opened nor given up.
    pub(crate) fn sealed_under(&self) -> Option<[u8; 8]> {
        let seal = self.seal.as_ref()?;
        matches!(seal.state, SealState::Closed).then_some(seal.key_id)
    }

    /// Why it could not be opened, and the key it is sealed under.
    pub(crate) fn unopened(&self) -> Option<(UnopenedReason, [u8; 8])> {
        let seal = self.seal.as_ref()?;
        match seal.state {
            SealState::Opened(_) => None,
            SealState::Closed => Some((UnopenedReason::NoGroup, seal.key_id)),
            SealState::Unopened(reason) => Some((reason, seal.key_id)),
        }
    }

    pub(crate) fn set_unopened(&mut self, reason: UnopenedReason) {
        if let Some(seal) = &mut self.seal {
            seal.state = SealState::Unopened(reason);
        }
    }

    /// Opens what is sealed, where its ciphertext was copied to.
    pub(crate) fn open(
        &mut self,
        subkey: &Subkey,
        period: &PeriodKey,
        profile: Profile,
    ) -> Result<(), UnopenedReason> {
        let tampered = UnopenedReason::TagInvalid;
        let read = Publication::parse(&self.bytes, profile).map_err(|_| tampered)?;
        let sealed = self.payload.len();
        let mut text: Arc<[u8]> = core::iter::repeat_n(0, sealed).collect();
        let room = Arc::get_mut(&mut text).ok_or(tampered)?;
        let opened = match read.unseal(subkey, room) {
            Err(OpenError::OtherScheme) => read.unseal_otherwise(period, room),
            opened => opened,
        };
        let opened = opened.map_err(|_| tampered)?;
        let payload = 0..opened.len() as u32;
        let seal = self.seal.as_mut().ok_or(tampered)?;
        seal.state = SealState::Opened(text);
        self.payload = payload;
        Ok(())
    }

    /// Bytes it takes, once opened.
    pub(crate) fn weight(&self) -> usize {
        let opened = self.seal.as_ref().map_or(0, |seal| match &seal.state {
            SealState::Opened(text) => text.len(),
            _ => self.payload.len(),
        });
        self.bytes.len() + opened
    }

    /// The payload: one CBOR value under the rule of WIRE.md section 2.
    pub fn payload(&self) -> &[u8] {
        let (start, end) = (self.payload.start as usize, self.payload.end as usize);
        let from = match self.seal.as_ref().map(|seal| &seal.state) {
            Some(SealState::Opened(text)) => text,
            _ => &self.bytes,
        };
        from.get(start..end).unwrap_or_default()
    }

    /// The payload as a value of the caller's type.
    ///
    /// # Errors
    /// When the payload has another shape.
    pub fn decode<'de, T: serde::Deserialize<'de>>(&'de self) -> Result<T, PayloadError> {
        wire::from_payload(self.payload())
    }

    /// The publication's object as received, signature and all: what may be stored, checked again or sent on.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, shared.
    pub(crate) fn shared(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }
}

impl core::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Delivery")
            .field("topic", &self.topic())
            .field("publisher", &self.publisher())
            .field("epoch", &self.epoch())
            .field("seq", &self.seq)
            .field("late", &self.late)
            .field("bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}
