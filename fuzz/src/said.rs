//! Publications as the input wants them.

use tidings::crypto::Signer;
use tidings::sim::{FAKE_PROFILE, START, fake_signer};
use tidings::wire::{Body, Draft};
use tidings::{NodeId, PublicationHash, RealmId};

use crate::accounts::Sent;

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
        let epoch = (self.epoch > 0).then(|| START.as_millis() * 1000 + self.epoch * 1_000_000);
        let draft = Draft {
            realm: realm(),
            topic: self.topic,
            publisher: node(self.key),
            epoch,
            seq: self.seq,
            published_at: START.saturating_add(u64::from(self.forged)),
            ttl_ms: (self.seq % 3 == 0).then_some(1000),
            one: self.one,
            body: Body::Payload(&[u8::from(self.other)]),
        };
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
            from: draft.published_at.saturating_sub(300_000),
            until: draft
                .published_at
                .saturating_add(u64::from(draft.ttl_ms.unwrap_or(600_000)) + 300_000),
        };
        (object, Some(sent))
    }
}
