//! Public keys kept decoded: the one place that checks a publication's signature.
//!
//! Decides: whether a publication is what its publisher signed, and whose key is kept. Leaves to others: freshness, who may speak.
//! Believes: no clock. Bounded by: a capacity; at the bound a key not used lately makes room, which costs its publisher one decoding, and
//! a key not used for twenty sweeps goes.

use alloc::boxed::Box;

use crate::NodeId;
use crate::code::ObjectFault;
use crate::crypto::{Profile, PublicKey};
use crate::rng::Rng;
use crate::table::HeapTable;
use crate::wire::{Object, Publication};

#[derive(Debug)]
struct Known<P> {
    key: Box<PublicKey>,
    kept: P,
    /// Used since the hand last passed.
    used: bool,
    /// Sweeps since it was used.
    age: u8,
}

/// Decoded keys by node, each with what its owner keeps for it.
#[derive(Debug)]
pub(crate) struct Publishers<P> {
    profile: Profile,
    known: HeapTable<NodeId, Known<P>>,
    hand: usize,
}

/// Entries looked at for one that can go.
const LOOK_AT: usize = 64;

/// Sweeps a key is kept without being used.
const OLDEST: u8 = 20;

impl<P: Default> Publishers<P> {
    pub(crate) fn new(profile: Profile, capacity: usize, rng: &mut Rng) -> Self {
        Self {
            profile,
            known: HeapTable::with_capacity(capacity, rng),
            hand: 0,
        }
    }

    /// Checks key form, key id and signature. A key is kept once something it signed has verified, so that strangers who sign nothing
    /// valid push nobody out.
    pub(crate) fn verify(&mut self, publication: &Publication<'_>) -> Result<(), ObjectFault> {
        if let Some(known) = self.known.get_mut(&publication.publisher) {
            (known.used, known.age) = (true, 0);
            // An id is the hash of its key: another key under it is a lie.
            if known.key.as_bytes() != publication.key {
                return Err(ObjectFault::KeyIdMismatch);
            }
            return match publication.verify(&known.key) {
                true => Ok(()),
                false => Err(ObjectFault::SignatureInvalid),
            };
        }
        let key = PublicKey::decode(self.profile, publication.key)
            .map_err(|_| ObjectFault::BadKeyForm)?;
        if key.node_id() != publication.publisher {
            return Err(ObjectFault::KeyIdMismatch);
        }
        if !publication.verify(&key) {
            return Err(ObjectFault::SignatureInvalid);
        }
        self.keep(key);
        Ok(())
    }

    /// The key of a publisher heard from, as carried, where it is kept, and what is kept with it.
    #[inline]
    pub(crate) fn heard(&mut self, publisher: &NodeId) -> Option<(&[u8; 32], &P)> {
        let known = self.known.get_mut(publisher)?;
        (known.used, known.age) = (true, 0);
        Some((known.key.as_bytes(), &known.kept))
    }

    /// What is kept with a key, if that is.
    pub(crate) fn kept_mut(&mut self, publisher: &NodeId) -> Option<&mut P> {
        self.known.get_mut(publisher).map(|known| &mut known.kept)
    }

    /// Keeps the key of an object whose signature was verified elsewhere, if it is that publisher's.
    pub(crate) fn keep_verified(
        &mut self,
        object: &[u8],
        publisher: &NodeId,
    ) -> Result<(), ObjectFault> {
        let key = Object::parse(object)?.decode_key(self.profile)?;
        if key.node_id() != *publisher {
            return Err(ObjectFault::KeyIdMismatch);
        }
        self.keep(key);
        Ok(())
    }

    /// Keeps a key whose signature was verified elsewhere.
    pub(crate) fn keep(&mut self, key: PublicKey) {
        if self.known.len() >= self.known.capacity() {
            self.make_room();
        }
        let known = Known {
            key: Box::new(key),
            kept: P::default(),
            used: true,
            age: 0,
        };
        // Full still: the next publication of this publisher decodes its key again.
        drop(self.known.insert(known.key.node_id(), known));
    }

    fn make_room(&mut self) {
        let mut gone = false;
        self.known.sweep(&mut self.hand, LOOK_AT, |_, known| {
            let keep = gone || core::mem::take(&mut known.used);
            gone |= !keep;
            keep
        });
    }

    /// Lets keys go that were not used for a while. Called every so often.
    pub(crate) fn sweep(&mut self) {
        let mut hand = 0;
        self.known.sweep(&mut hand, usize::MAX, |_, known| {
            known.age += 1;
            known.age <= OLDEST
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.known.capacity()
    }

    pub(crate) fn memory(&self) -> usize {
        self.known.memory() + self.known.len() * size_of::<PublicKey>()
    }
}
