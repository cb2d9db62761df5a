//! Keys, clocks, and signed publications for machines to receive.
//!
//! Decides: what a publication of the benches looks like. Leaves to others: who receives it. Believes: clocks moved by hand. Bounded by:
//! what is asked for.

use std::fmt;
use std::sync::Arc;

use tidings::crypto::{Profile, SecretKey, SignError, Signer};
use tidings::sim::fake_signer;
use tidings::wire::{Body, Draft, Publication};
use tidings::{Instant, NodeId, Now, RealmId, WallMs};

/// What the benches publish on.
pub const TOPIC: &str = "bench/acme/app/readings/taken_v1";
/// The wall when the clocks start.
pub const START: WallMs = WallMs::new(1_790_000_000_000);
/// Publishers the events come from in turn.
const PUBLISHERS: u64 = 16;

/// Where they publish it.
pub fn realm() -> RealmId {
    RealmId::of_name("bench")
}

/// Whose signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// The simulation's, which cost one SHA-256.
    Fake,
    /// Ed25519.
    #[default]
    Real,
}

/// A signer of either kind.
#[derive(Clone)]
pub struct Key(Arc<dyn Signer + Sync>);

impl Keys {
    /// The key of a number.
    pub fn key(self, n: u64) -> Key {
        match self {
            Self::Fake => Key(Arc::new(fake_signer(n))),
            Self::Real => {
                let mut seed = [0x6b; 32];
                seed[..8].copy_from_slice(&n.to_le_bytes());
                Key(Arc::new(SecretKey::from_seed(seed)))
            }
        }
    }
}

impl Key {
    /// Any signer.
    pub fn new(signer: Arc<dyn Signer + Sync>) -> Self {
        Self(signer)
    }

    /// Whose it is.
    pub fn node_id(&self) -> NodeId {
        NodeId::of_key(self.profile().name(), &self.public_key())
    }
}

impl Signer for Key {
    fn profile(&self) -> Profile {
        self.0.profile()
    }

    fn public_key(&self) -> [u8; 32] {
        self.0.public_key()
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        self.0.sign(parts)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The real key of a number.
pub fn key(n: u64) -> Key {
    Keys::Real.key(n)
}

/// 256 bytes of payload: one byte string.
pub fn payload(fill: u8) -> [u8; 256] {
    let mut payload = [fill; 256];
    payload[..2].copy_from_slice(&[0x58, 0xfe]);
    payload
}

/// Both clocks after so many seconds.
pub fn after(seconds: u64) -> Now {
    after_millis(seconds * 1000)
}

/// Both clocks after so many milliseconds.
pub fn after_millis(millis: u64) -> Now {
    Now::new(Instant::from_millis(millis), START.saturating_add(millis))
}

/// Signs one publication after another, each publisher's in order.
#[derive(Debug)]
pub struct Facts {
    keys: Vec<Key>,
    topic: &'static str,
    epoch: u64,
    made: u64,
}

impl Facts {
    /// From 16 publishers in turn.
    pub fn new(keys: Keys) -> Self {
        Self::from((100..100 + PUBLISHERS).map(|n| keys.key(n)).collect())
    }

    /// From these publishers in turn.
    pub fn from(keys: Vec<Key>) -> Self {
        Self {
            keys,
            topic: TOPIC,
            epoch: START.as_millis() * 1000,
            made: 0,
        }
    }

    /// On another topic.
    #[must_use]
    pub fn on(mut self, topic: &'static str) -> Self {
        self.topic = topic;
        self
    }

    /// Numbered since then, in wall microseconds.
    #[must_use]
    pub fn since(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// The next one.
    pub fn next(&mut self, now: Now) -> Vec<u8> {
        let turn = self.made / self.keys.len() as u64;
        let signer = &self.keys[self.made as usize % self.keys.len()];
        self.made += 1;
        let payload = payload(self.made as u8);
        let draft = Draft {
            realm: realm(),
            topic: self.topic,
            publisher: signer.node_id(),
            epoch: Some(self.epoch),
            seq: turn + 1,
            published_at: now.wall,
            ttl_ms: Some(1),
            one: false,
            body: Body::Payload(&payload),
        };
        let mut object = Vec::with_capacity(draft.object_len(signer.profile()));
        draft.sign(signer, &mut object).expect("a key in memory");
        object
    }

    /// The next ones.
    pub fn many(&mut self, now: Now, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.next(now)).collect()
    }
}

/// The same publication under a signature nobody made: another object with the same hash.
pub fn resigned(object: &[u8]) -> Vec<u8> {
    signed_as(object, &[0x55; 64])
}

/// The same publication under this signature.
pub fn signed_as(object: &[u8], signature: &[u8; 64]) -> Vec<u8> {
    let mut object = object.to_vec();
    let end = object.len();
    object[end - 64..].copy_from_slice(signature);
    object
}

/// A view of an object this crate has signed.
pub fn view(object: &[u8]) -> Publication<'_> {
    Publication::parse(object, Profile::ED25519).expect("its own object")
}

/// What a signer signs for a publication, in parts.
pub fn signed_parts<'a>(hash: &'a [u8; 48], tbs: &'a [u8]) -> [&'a [u8]; 4] {
    let label = tidings::wire::object::PUBLICATION_LABEL;
    [label.as_bytes(), &[0], hash, tbs]
}

/// SHA-384 of a signer's key, as its signatures bind to.
pub fn key_hash(signer: &Key) -> [u8; 48] {
    use sha2::Digest;
    sha2::Sha384::digest(signer.public_key()).into()
}
