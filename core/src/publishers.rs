//! Public keys kept decoded: the one place that checks a publication's signature.
//!
//! Decides: whether a publication is what its publisher signed, and whose key is kept. Leaves to others: freshness, who may speak.
//! Believes: no clock. Bounded by: a capacity; at the bound a key not used lately makes room, which costs its publisher one decoding, and
//! a key not used for twenty sweeps goes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::NodeId;
use crate::code::ObjectFault;
use crate::crypto::{Profile, PublicKey};
use crate::numbers::{MOST, Numbers};
use crate::rng::Rng;
use crate::table::TableKey;
use crate::wire::{Object, Publication};

#[derive(Debug)]
struct Known<P> {
    key: PublicKey,
    kept: P,
}

/// When a key was last used, in a byte: sweeps since, and whether it was since the hand last passed.
#[derive(Clone, Copy, Debug)]
struct Use(u8);

impl Use {
    const MARK: u8 = 0x80;
    const NOW: Self = Self(Self::MARK);

    /// Takes the hand's mark away, if there is one.
    fn take_mark(&mut self) -> bool {
        let marked = self.0 & Self::MARK != 0;
        self.0 &= !Self::MARK;
        marked
    }

    /// One sweep more; whether it was used lately.
    fn is_recent(&mut self) -> bool {
        self.0 += 1;
        self.0 & !Self::MARK <= OLDEST
    }
}

/// Decoded keys by node, each with what its owner keeps for it.
#[derive(Debug)]
pub(crate) struct Publishers<P> {
    profile: Profile,
    index: Numbers,
    /// Without a gap: the last one takes the place of one that goes.
    known: Vec<Box<Known<P>>>,
    /// Of each of them.
    uses: Vec<Use>,
    capacity: usize,
    hand: usize,
}

/// Entries looked at for one that can go.
const LOOK_AT: usize = 64;

/// Sweeps a key is kept without being used.
const OLDEST: u8 = 20;

/// Places that may be kept without being used.
const SLACK: usize = 16;

impl<P: Default> Publishers<P> {
    pub(crate) fn new(profile: Profile, capacity: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.min(MOST);
        Self {
            profile,
            index: Numbers::new(capacity, rng),
            known: Vec::new(),
            uses: Vec::new(),
            capacity,
            hand: 0,
        }
    }

    /// Checks key id, key form and signature. A key is kept once something it signed has verified, so that strangers who sign nothing
    /// valid push nobody out.
    pub(crate) fn verify(&mut self, publication: &Publication<'_>) -> Result<(), ObjectFault> {
        if let Some(known) = self.known(&publication.publisher) {
            // An id is the hash of its key: another key under it is a lie.
            if known.key.as_bytes() != publication.key {
                return Err(ObjectFault::KeyIdMismatch);
            }
            return match publication.verify(&known.key) {
                true => Ok(()),
                false => Err(ObjectFault::SignatureInvalid),
            };
        }
        // The form before the id: WIRE.md section 6 fixes the order of reasons.
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
        let known = self.known(publisher)?;
        Some((known.key.as_bytes(), &known.kept))
    }

    /// What is kept with a key, if that is.
    pub(crate) fn kept_mut(&mut self, publisher: &NodeId) -> Option<&mut P> {
        let place = self.place(publisher)?;
        Some(&mut self.known[place].kept)
    }

    /// One that is used.
    #[inline]
    fn known(&mut self, publisher: &NodeId) -> Option<&mut Known<P>> {
        let place = self.place(publisher)?;
        self.uses[place] = Use::NOW;
        Some(&mut self.known[place])
    }

    #[inline]
    fn place(&self, publisher: &NodeId) -> Option<usize> {
        let is_it = |place: u32| self.known[place as usize].key.node_id() == *publisher;
        let place = self.index.find(publisher.prefix(), is_it)?;
        Some(place as usize)
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
        let id = key.node_id();
        let known = Known {
            key,
            kept: P::default(),
        };
        if let Some(place) = self.place(&id) {
            self.uses[place] = Use::NOW;
            *self.known[place] = known;
            return;
        }
        if self.known.len() >= self.capacity {
            self.make_room();
        }
        if self.known.len() >= self.capacity {
            // The next publication of this publisher decodes its key again.
            return;
        }
        if self.known.len() == self.known.capacity() {
            let more = (self.known.len() / 32).max(SLACK / 4);
            self.known.reserve_exact(more);
            self.uses.reserve_exact(more);
        }
        let place = self.known.len() as u32;
        self.known.push(Box::new(known));
        self.uses.push(Use::NOW);
        let known = &self.known;
        self.index
            .insert(id.prefix(), place, |place| prefix(known, place));
    }

    fn make_room(&mut self) {
        for _ in 0..LOOK_AT.min(self.known.len()) {
            if self.hand >= self.known.len() {
                self.hand = 0;
            }
            if !self.uses[self.hand].take_mark() {
                return self.remove(self.hand);
            }
            self.hand += 1;
        }
    }

    fn remove(&mut self, place: usize) {
        let (number, last) = (place as u32, self.known.len() as u32 - 1);
        let gone = self.known[place].key.node_id();
        if number != last {
            // It goes from the end, where nothing follows it.
            self.known.swap(place, last as usize);
            self.uses.swap(place, last as usize);
            self.index
                .swap((gone.prefix(), number), (prefix(&self.known, number), last));
        }
        self.known.pop();
        self.uses.pop();
        let known = &self.known;
        self.index
            .remove(gone.prefix(), last, |place| prefix(known, place));
    }

    /// Lets keys go that were not used for a while. Called every so often.
    pub(crate) fn sweep(&mut self) {
        let mut place = 0;
        while let Some(of) = self.uses.get_mut(place) {
            match of.is_recent() {
                true => place += 1,
                false => self.remove(place),
            }
        }
        let kept = self.known.len() + SLACK;
        if self.known.capacity() > 2 * kept {
            self.known.shrink_to(kept);
            self.uses.shrink_to(kept);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn memory(&self) -> usize {
        self.index.memory()
            + self.known.capacity() * size_of::<usize>()
            + self.uses.capacity() * size_of::<Use>()
            + self.known.len() * size_of::<Known<P>>()
    }
}

fn prefix<P>(known: &[Box<Known<P>>], place: u32) -> [u64; 2] {
    known[place as usize].key.node_id().prefix()
}
