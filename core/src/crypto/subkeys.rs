//! Subkeys of the event seal, kept so that each is derived once.
//!
//! Decides: which subkeys are kept; where all slots are taken, one that was not used lately makes room. Leaves to others: which key periods are
//! good. Believes: no clock. Bounded by: its slots, 64 bytes each and at most 65,535; a lookup walks one short chain.
//!
//! Who makes room is found by a hand that goes round: what was used since it last came by stays once more. A use is one mark and moves nothing, so
//! that finding a subkey costs the same whoever spoke before; a round of the hand is paid for by the uses whose marks it takes.
//!
//! A subkey never moves: it is derived where it stays and wiped there, so no copy of it is left in memory. Key ids are chosen by whoever
//! gives keys out, and two groups may have the same: a cache serves one group.

use core::fmt;

use zeroize::Zeroize;

use super::seal::{PeriodKey, Subkey};
use crate::NodeId;
use crate::rng::Rng;
use crate::table::{TableKey, fold};

/// No slot.
const NONE: u16 = u16::MAX;

/// What a subkey is found by. A node id is a hash, so its first half tells publishers apart.
type Key = [u64; 3];

/// One place of a cache's storage.
pub struct SubkeySlot {
    key: Key,
    subkey: Subkey,
    /// The first slot whose key belongs here.
    head: u16,
    /// The next slot whose key belongs where this one's does; of a free one, the next free one.
    chained: u16,
    /// What the owner of the cache knows the period by.
    period: u16,
    kept: bool,
    /// Since the hand came by.
    used: bool,
}

impl SubkeySlot {
    /// A slot that holds nothing.
    pub const EMPTY: Self = Self {
        key: [0; 3],
        subkey: Subkey::EMPTY,
        head: NONE,
        chained: NONE,
        period: 0,
        kept: false,
        used: false,
    };
}

impl Default for SubkeySlot {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for SubkeySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubkeySlot")
    }
}

/// The subkeys of one group by (key period, publisher). See the module's text.
///
/// ```
/// use tidings::crypto::{PeriodKey, SubkeyCache, SubkeySlot};
/// use tidings::{NodeId, Seed};
///
/// let slots = [const { SubkeySlot::EMPTY }; 4];
/// let mut cache = SubkeyCache::new(slots, &mut Seed::new([7; 32]).fork("subkeys"));
/// let period = PeriodKey::new(*b"period 1", [3; 32]);
/// let publisher = NodeId::new([1; 32]);
/// for _ in 0..10 {
///     cache.subkey(&period, &publisher);
/// }
/// assert_eq!(cache.derivations(), 1);
/// assert_eq!(cache.forget(period.id()), 1);
/// ```
pub struct SubkeyCache<S: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>> {
    slots: S,
    hash_key: [u64; 2],
    capacity: u16,
    /// Slots that were in use once; those behind were not.
    begun: u16,
    /// The first of the slots in use once and free now, chained.
    free: u16,
    len: u16,
    /// Where it is looked next for one that makes room.
    hand: u16,
    /// Where a cache without slots derives.
    spare: Subkey,
    derivations: u64,
    evictions: u64,
}

impl<S: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>> SubkeyCache<S> {
    /// One subkey per slot; whatever the slots held is wiped.
    pub fn new(mut slots: S, rng: &mut Rng) -> Self {
        slots.as_mut().fill_with(SubkeySlot::default);
        let capacity = slots.as_ref().len().min(usize::from(NONE)) as u16;
        Self {
            slots,
            hash_key: [rng.next_u64(), rng.next_u64()],
            capacity,
            begun: 0,
            free: NONE,
            len: 0,
            hand: 0,
            spare: Subkey::EMPTY,
            derivations: 0,
            evictions: 0,
        }
    }

    /// The subkey of `publisher` in the period of this key; derived when it is not kept.
    pub fn subkey(&mut self, period: &PeriodKey, publisher: &NodeId) -> &Subkey {
        self.subkey_in(period, 0, publisher)
    }

    /// The same, for an owner that knows the period by a number.
    pub(crate) fn subkey_in(
        &mut self,
        period: &PeriodKey,
        number: u16,
        publisher: &NodeId,
    ) -> &Subkey {
        if let Some(at) = self.find(period.id(), publisher) {
            return self.used(at).0;
        }
        self.derivations += 1;
        let Some(at) = self.place(key_of(period.id(), publisher)) else {
            self.spare.set(period, publisher);
            return &self.spare;
        };
        let slot = self.slot(at);
        slot.period = number;
        slot.subkey.set(period, publisher);
        &slot.subkey
    }

    /// Where the subkey of a publisher lies, if it is kept, until the next change.
    #[inline]
    pub(crate) fn find(&self, key_id: &[u8; 8], publisher: &NodeId) -> Option<u16> {
        let key = key_of(key_id, publisher);
        let slots = self.slots.as_ref();
        let mut at = slots.get(usize::from(self.home(&key)))?.head;
        loop {
            let slot = slots.get(usize::from(at))?;
            if slot.key == key {
                return Some(at);
            }
            at = slot.chained;
        }
    }

    /// The subkey that was found there, and what its owner knows the period by.
    #[inline]
    pub(crate) fn used(&mut self, at: u16) -> (&Subkey, u16) {
        let slot = self.slot(at);
        slot.used = true;
        (&slot.subkey, slot.period)
    }

    /// Wipes every subkey of a key period; answers how many there were. Looks at every slot.
    pub fn forget(&mut self, key_id: &[u8; 8]) -> usize {
        let before = self.len;
        let id = u64::from_le_bytes(*key_id);
        for at in 0..self.begun {
            let slot = self.slot(at);
            if slot.kept && slot.key[0] == id {
                self.remove(at);
            }
        }
        self.spare.wipe();
        usize::from(before - self.len)
    }

    /// Wipes every subkey.
    pub fn clear(&mut self) {
        self.slots.as_mut().fill_with(SubkeySlot::default);
        self.spare.wipe();
        (self.begun, self.len) = (0, 0);
        (self.free, self.hand) = (NONE, 0);
    }

    /// Subkeys kept.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Subkeys it may keep.
    pub fn capacity(&self) -> usize {
        usize::from(self.capacity)
    }

    /// Subkeys derived since it was made: one per (period, publisher) while there is room.
    pub fn derivations(&self) -> u64 {
        self.derivations
    }

    /// Subkeys that made room for another.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Bytes of its slots.
    pub fn memory(&self) -> usize {
        size_of_val(self.slots.as_ref())
    }

    #[inline]
    fn slot(&mut self, at: u16) -> &mut SubkeySlot {
        &mut self.slots.as_mut()[usize::from(at)]
    }

    /// The slot whose chain a key belongs to.
    #[inline]
    fn home(&self, [id, first, second]: &Key) -> u16 {
        let hash = fold(first ^ id ^ self.hash_key[0], second ^ self.hash_key[1]);
        ((u128::from(hash) * u128::from(self.capacity)) >> 64) as u16
    }

    /// A slot for a key that has none, in its chain.
    fn place(&mut self, key: Key) -> Option<u16> {
        if self.capacity == 0 {
            return None;
        }
        if self.len == self.capacity {
            self.evictions += 1;
            self.make_room();
        }
        let at = if self.free == NONE {
            self.begun += 1;
            self.begun - 1
        } else {
            let at = self.free;
            self.free = self.slot(at).chained;
            at
        };
        let home = self.home(&key);
        let chained = core::mem::replace(&mut self.slot(home).head, at);
        let slot = self.slot(at);
        (slot.key, slot.chained) = (key, chained);
        (slot.kept, slot.used) = (true, false);
        self.len += 1;
        Some(at)
    }

    /// All slots are taken: the first from the hand on that was not used since it came by goes. One round takes every mark.
    fn make_room(&mut self) {
        loop {
            let at = self.hand;
            self.hand = if at + 1 < self.capacity { at + 1 } else { 0 };
            if !core::mem::take(&mut self.slot(at).used) {
                return self.remove(at);
            }
        }
    }

    /// Wipes a slot and takes it out of its chain.
    fn remove(&mut self, at: u16) {
        let key = self.slot(at).key;
        let after = self.slot(at).chained;
        let home = self.home(&key);
        if self.slot(home).head == at {
            self.slot(home).head = after;
        } else {
            let mut before = self.slot(home).head;
            while self.slot(before).chained != at {
                before = self.slot(before).chained;
            }
            self.slot(before).chained = after;
        }
        let free = core::mem::replace(&mut self.free, at);
        let slot = self.slot(at);
        slot.subkey.wipe();
        slot.key.zeroize();
        (slot.kept, slot.used, slot.chained) = (false, false, free);
        self.len -= 1;
    }
}

#[inline]
fn key_of(key_id: &[u8; 8], publisher: &NodeId) -> Key {
    let [first, second] = publisher.prefix();
    [u64::from_le_bytes(*key_id), first, second]
}

impl<S: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>> Drop for SubkeyCache<S> {
    fn drop(&mut self) {
        // Storage that is only lent is not dropped with it.
        self.slots.as_mut().fill_with(SubkeySlot::default);
    }
}

impl<S: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>> fmt::Debug for SubkeyCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubkeyCache")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .field("derivations", &self.derivations)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
