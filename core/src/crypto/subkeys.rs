//! Subkeys of the event seal, kept so that each is derived once.
//!
//! Decides: which subkeys are kept; where all slots are taken, the one used longest ago makes room. Leaves to others: which key periods are
//! good. Believes: no clock. Bounded by: its slots, 64 bytes each and at most 65,534; a lookup walks one short chain.
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

/// In place of a neighbour: the slot holds nothing.
const FREE: u16 = NONE - 1;

/// What a subkey is found by. A node id is a hash, so its first half tells publishers apart.
type Key = [u64; 3];

/// One place of a cache's storage.
pub struct SubkeySlot {
    key: Key,
    subkey: Subkey,
    /// The first slot whose key belongs here.
    head: u16,
    /// The next slot whose key belongs where this one's does.
    chained: u16,
    /// Who was used just after and just before this one.
    newer: u16,
    older: u16,
}

impl SubkeySlot {
    /// A slot that holds nothing.
    pub const EMPTY: Self = Self {
        key: [0; 3],
        subkey: Subkey::EMPTY,
        head: NONE,
        chained: NONE,
        newer: FREE,
        older: NONE,
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
    newest: u16,
    oldest: u16,
    /// Where a cache without slots derives.
    spare: Subkey,
    derivations: u64,
    evictions: u64,
}

impl<S: AsRef<[SubkeySlot]> + AsMut<[SubkeySlot]>> SubkeyCache<S> {
    /// One subkey per slot; whatever the slots held is wiped.
    pub fn new(mut slots: S, rng: &mut Rng) -> Self {
        slots.as_mut().fill_with(SubkeySlot::default);
        let capacity = slots.as_ref().len().min(usize::from(FREE)) as u16;
        Self {
            slots,
            hash_key: [rng.next_u64(), rng.next_u64()],
            capacity,
            begun: 0,
            free: NONE,
            len: 0,
            newest: NONE,
            oldest: NONE,
            spare: Subkey::EMPTY,
            derivations: 0,
            evictions: 0,
        }
    }

    /// The subkey of `publisher` in the period of this key; derived when it is not kept.
    #[inline]
    pub fn subkey(&mut self, period: &PeriodKey, publisher: &NodeId) -> &Subkey {
        let [first, second] = publisher.prefix();
        let key = [u64::from_le_bytes(*period.id()), first, second];
        // One publisher's facts come one after the other.
        let newest = usize::from(self.newest);
        let same = self.slots.as_ref().get(newest);
        if same.is_some_and(|slot| slot.key == key) {
            return &self.slots.as_ref()[newest].subkey;
        }
        self.other_subkey(key, period, publisher)
    }

    #[inline(never)]
    fn other_subkey(&mut self, key: Key, period: &PeriodKey, publisher: &NodeId) -> &Subkey {
        let at = match self.find(&key) {
            Some(at) => at,
            None => {
                self.derivations += 1;
                let Some(at) = self.place(key) else {
                    self.spare.set(period, publisher);
                    return &self.spare;
                };
                self.slot(at).subkey.set(period, publisher);
                at
            }
        };
        self.touch(at);
        &self.slots.as_ref()[usize::from(at)].subkey
    }

    /// Wipes every subkey of a key period; answers how many there were. Looks at every slot.
    pub fn forget(&mut self, key_id: &[u8; 8]) -> usize {
        let before = self.len;
        let id = u64::from_le_bytes(*key_id);
        for at in 0..self.begun {
            let slot = self.slot(at);
            if slot.newer != FREE && slot.key[0] == id {
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
        (self.free, self.newest, self.oldest) = (NONE, NONE, NONE);
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

    fn slot(&mut self, at: u16) -> &mut SubkeySlot {
        &mut self.slots.as_mut()[usize::from(at)]
    }

    /// The slot whose chain a key belongs to.
    fn home(&self, [id, first, second]: &Key) -> u16 {
        let hash = fold(first ^ id ^ self.hash_key[0], second ^ self.hash_key[1]);
        ((u128::from(hash) * u128::from(self.capacity)) >> 64) as u16
    }

    fn find(&self, key: &Key) -> Option<u16> {
        let slots = self.slots.as_ref();
        let mut at = slots.get(usize::from(self.home(key)))?.head;
        while at != NONE {
            let slot = &slots[usize::from(at)];
            if slot.key == *key {
                return Some(at);
            }
            at = slot.chained;
        }
        None
    }

    /// A slot for a key that has none, chained and used last.
    fn place(&mut self, key: Key) -> Option<u16> {
        if self.capacity == 0 {
            return None;
        }
        if self.len == self.capacity {
            self.evictions += 1;
            self.remove(self.oldest);
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
        self.len += 1;
        self.lead(at);
        Some(at)
    }

    /// Wipes a slot and takes it out of its chain.
    fn remove(&mut self, at: u16) {
        self.unlink(at);
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
        (slot.newer, slot.older, slot.chained) = (FREE, NONE, free);
        self.len -= 1;
    }

    /// Makes a slot the one used last.
    fn touch(&mut self, at: u16) {
        if self.newest != at {
            self.unlink(at);
            self.lead(at);
        }
    }

    fn lead(&mut self, at: u16) {
        let before = core::mem::replace(&mut self.newest, at);
        let slot = self.slot(at);
        (slot.newer, slot.older) = (NONE, before);
        if before == NONE {
            self.oldest = at;
        } else {
            self.slot(before).newer = at;
        }
    }

    fn unlink(&mut self, at: u16) {
        let SubkeySlot { newer, older, .. } = *self.slot(at);
        if newer == NONE {
            self.newest = older;
        } else {
            self.slot(newer).older = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            self.slot(older).newer = newer;
        }
    }
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
