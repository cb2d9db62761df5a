//! Publications as the input wants them.

use tidings::crypto::{Place, Signer};
use tidings::sim::{FAKE_PROFILE, fake_signer};
use tidings::wire::{Body, Draft, Sealed};
use tidings::{NodeId, PublicationHash, RealmId, WallMs};

use crate::accounts::Sent;
use crate::keys;

/// What a publication says, and whether its publisher said it.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// The seed of the publisher's key; 1 and the following are the peers' own.
    pub key: u64,
    pub topic: &'static str,
    /// 0 for none.
    pub epoch: u64,
    pub seq: u64,
    pub one: bool,
    /// Another payload under the same number.
    pub other: bool,
    pub forged: bool,
    /// When its publisher says it did.
    pub at: WallMs,
    pub seal: Option<Seal>,
}

/// Under which key a publication is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// One of [`keys::PREFIXES`].
    pub group: usize,
    pub period: u64,
    pub how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Scheme1,
    Scheme2,
    /// A bit of it was changed before it was signed.
    Tampered,
    /// What it holds is no payload.
    Garbage,
}

impl Seal {
    /// Whether it opens under its key.
    pub fn opens(self) -> bool {
        matches!(self.how, How::Scheme1 | How::Scheme2)
    }

    /// The ciphertext with its tag, its nonce and the scheme.
    fn seal(self, place: &Place<'_>, plain: &[u8]) -> (Vec<u8>, [u8; 12], u8) {
        let mut ct = match self.how {
            How::Garbage => vec![0xff],
            _ => plain.to_vec(),
        };
        let publisher = &place.publisher;
        let sealed = match self.how {
            How::Scheme1 => {
                let nonce = [place.seq as u8; 12];
                let key = keys::subkey1(self.group, self.period, publisher);
                key.seal(place, &nonce, &mut ct).map(|tag| (nonce, tag, 1))
            }
            _ => {
                let key = keys::subkey(self.group, self.period, publisher);
                let sealed = key.seal(place, &[7; 32], &mut ct);
                sealed.map(|(nonce, tag)| (nonce, tag, 2))
            }
        };
        let (nonce, tag, scheme) = sealed.expect("short enough");
        ct.extend_from_slice(&tag);
        ct[0] ^= u8::from(self.how == How::Tampered);
        (ct, nonce, scheme)
    }
}

pub fn realm() -> RealmId {
    RealmId::of_name("fuzz")
}

/// The node that signs with the key of this seed.
pub fn node(key: u64) -> NodeId {
    NodeId::of_key(FAKE_PROFILE.name(), &fake_signer(key).public_key())
}

impl Said {
    /// The object, and what it is where its publisher did sign it.
    pub fn sign(&self) -> (Vec<u8>, Option<Sent>) {
        let signer = fake_signer(self.key);
        let epoch = (self.epoch > 0)
            .then(|| tidings::sim::START.as_millis() * 1000 + self.epoch * 1_000_000);
        let payload = u8::from(self.other);
        let plain = [payload];
        let mut draft = Draft {
            realm: realm(),
            topic: self.topic,
            publisher: node(self.key),
            epoch,
            seq: self.seq,
            published_at: self.at.saturating_add(u64::from(self.forged)),
            ttl_ms: self.seq.is_multiple_of(3).then_some(1000),
            one: self.one,
            body: Body::Payload(&plain),
        };
        let (sealed, key_id);
        if let Some(seal) = self.seal {
            key_id = keys::id_of(seal.period);
            sealed = seal.seal(&draft.place(key_id), &plain);
            draft.body = Body::Sealed(Sealed {
                ct: &sealed.0,
                nonce: &sealed.1,
                key_id: &key_id,
                scheme: sealed.2,
            });
        }
        let mut object = Vec::new();
        draft
            .sign(&signer, &mut object)
            .expect("the fake signer signs");
        if self.forged {
            object.last_mut().into_iter().for_each(|byte| *byte ^= 1);
            return (object, None);
        }
        let mut tbs = Vec::new();
        draft.encode_tbs(FAKE_PROFILE, &mut tbs);
        let sent = Sent {
            hash: PublicationHash::of_tbs(&tbs),
            publisher: draft.publisher,
            topic: self.topic,
            epoch,
            seq: self.seq,
            one: self.one,
            payload,
            seal: self.seal,
            from: draft.published_at.saturating_sub(300_000),
            until: draft
                .published_at
                .saturating_add(u64::from(draft.ttl_ms.unwrap_or(600_000)) + 300_000),
        };
        (object, Some(sent))
    }
}
