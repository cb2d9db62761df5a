//! Where verdicts lie: found by key, and in the order in which they were answered or asked for.
//!
//! Decides: which slot an entry has. Leaves to others: what an entry means, and which one goes. Believes: no clock. Bounded by: its slots; a
//! look-up walks one short chain. An entry does not move while it is kept.

use crate::rng::Rng;
use crate::storage::Room;
use crate::table::{TableKey, fold};

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots a growing storage has at least, once it has any.
const SMALLEST: usize = 8;

/// One place of the storage of [`Sources`](super::Sources).
#[derive(Clone, Copy, Debug)]
pub struct Slot<K> {
    /// The first slot whose key belongs here.
    head: u32,
    /// The next one whose key belongs where this one's does; of a free slot, the next free one.
    chained: u32,
    /// The neighbours in two lists.
    links: [[u32; 2]; 2],
    entry: Option<(K, super::Entry)>,
}

impl<K> Slot<K> {
    /// A slot that holds nothing.
    pub const EMPTY: Self = Self {
        head: NONE,
        chained: NONE,
        links: [[NONE; 2]; 2],
        entry: None,
    };
}

impl<K> Default for Slot<K> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// A list of slots, the first of which has waited longest. One slot is in at most one list of each kind.
#[derive(Debug)]
pub(super) struct List {
    /// Which links of a slot are of this list.
    kind: usize,
    first: u32,
    last: u32,
    len: usize,
}

impl List {
    pub(super) const fn new(kind: usize) -> Self {
        Self {
            kind,
            first: NONE,
            last: NONE,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }
}

const BEFORE: usize = 0;
const AFTER: usize = 1;

/// The slots and what is found by.
#[derive(Debug)]
pub(super) struct Slots<K, S> {
    slots: S,
    hash_key: [u64; 2],
    room: Room<S>,
    len: usize,
    /// Slots from here on were never used.
    begun: usize,
    free: u32,
    key: core::marker::PhantomData<fn() -> K>,
}

impl<K: TableKey + Copy, S: AsRef<[Slot<K>]> + AsMut<[Slot<K>]>> Slots<K, S> {
    pub(super) fn new(mut slots: S, room: impl FnOnce(usize) -> Room<S>, rng: &mut Rng) -> Self {
        slots.as_mut().fill_with(Slot::default);
        let len = slots.as_ref().len();
        Self {
            slots,
            hash_key: [rng.next_u64(), rng.next_u64()],
            room: room(len),
            len: 0,
            begun: 0,
            free: NONE,
            key: core::marker::PhantomData,
        }
    }

    /// Entries there may be.
    pub(super) fn capacity(&self) -> usize {
        self.room.max
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(self.slots.as_ref())
    }

    #[inline]
    fn home(&self, key: &K) -> usize {
        let [a, b] = key.prefix();
        let hash = fold(a ^ self.hash_key[0], b ^ self.hash_key[1]);
        ((u128::from(hash) * self.slots.as_ref().len() as u128) >> 64) as usize
    }

    /// The slot of a key, and what lies there.
    #[inline]
    pub(super) fn find(&self, key: &K) -> Option<(u32, &super::Entry)> {
        let slots = self.slots.as_ref();
        let mut at = slots.get(self.home(key))?.head;
        loop {
            let slot = slots.get(at as usize)?;
            if let Some((held, entry)) = &slot.entry
                && held == key
            {
                return Some((at, entry));
            }
            at = slot.chained;
        }
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&(K, super::Entry)> {
        self.slots.as_ref().get(at as usize)?.entry.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut super::Entry> {
        let slot = self.slots.as_mut().get_mut(at as usize)?;
        slot.entry.as_mut().map(|(_, entry)| entry)
    }

    /// Puts an entry under a key that has none. `None` when all slots are taken.
    pub(super) fn insert(&mut self, key: K, entry: super::Entry) -> Option<u32> {
        if self.free == NONE && self.begun == self.slots.as_ref().len() {
            let slots = self.slots.as_ref().len();
            self.room
                .ask(&mut self.slots, slots.saturating_mul(2).max(SMALLEST));
            self.index_anew();
        }
        let at = match self.slots.as_ref().get(self.free as usize) {
            Some(slot) => core::mem::replace(&mut self.free, slot.chained),
            None if self.begun < self.slots.as_ref().len() => {
                self.begun += 1;
                (self.begun - 1) as u32
            }
            None => return None,
        };
        self.slots.as_mut()[at as usize].entry = Some((key, entry));
        self.chain(at);
        self.len += 1;
        Some(at)
    }

    /// Puts a slot at the head of the chain it belongs to.
    fn chain(&mut self, at: u32) {
        let Some((key, _)) = self.get(at) else { return };
        let home = self.home(key);
        let slots = self.slots.as_mut();
        let next = core::mem::replace(&mut slots[home].head, at);
        slots[at as usize].chained = next;
    }

    /// Takes an entry out; it is in no list any more.
    pub(super) fn remove(&mut self, at: u32) {
        let Some((key, _)) = self.get(at) else { return };
        let home = self.home(key);
        let free = self.free;
        let slots = self.slots.as_mut();
        let after = slots[at as usize].chained;
        if slots[home].head == at {
            slots[home].head = after;
        } else {
            let mut before = slots[home].head;
            while let Some(slot) = slots.get_mut(before as usize) {
                if slot.chained == at {
                    slot.chained = after;
                    break;
                }
                before = slot.chained;
            }
        }
        slots[at as usize].entry = None;
        slots[at as usize].chained = free;
        self.free = at;
        self.len -= 1;
    }

    /// Gives slots back that nothing lies behind, when most are free.
    pub(super) fn shrink(&mut self) {
        let slots = self.slots.as_ref().len();
        if !self.room.grows || slots <= SMALLEST || self.len > slots / 4 {
            return;
        }
        let used = self
            .slots
            .as_ref()
            .iter()
            .rposition(|slot| slot.entry.is_some());
        let used = used.map_or(0, |last| last + 1);
        let wanted = used.max(self.len * 2);
        if wanted > slots / 2 {
            return;
        }
        let wanted = if self.len == 0 {
            0
        } else {
            wanted.max(SMALLEST)
        };
        self.room.ask(&mut self.slots, wanted);
        self.begun = used;
        self.free = NONE;
        for at in (0..used).rev() {
            let slot = &mut self.slots.as_mut()[at];
            if slot.entry.is_none() {
                slot.chained = core::mem::replace(&mut self.free, at as u32);
            }
        }
        self.index_anew();
    }

    /// The number of slots has changed, and with it where every key belongs.
    fn index_anew(&mut self) {
        for slot in self.slots.as_mut() {
            slot.head = NONE;
        }
        for at in 0..self.begun as u32 {
            self.chain(at);
        }
    }

    /// Puts a slot at the end of a list.
    pub(super) fn attach(&mut self, list: &mut List, at: u32) {
        let slots = self.slots.as_mut();
        let last = core::mem::replace(&mut list.last, at);
        slots[at as usize].links[list.kind] = [last, NONE];
        match slots.get_mut(last as usize) {
            Some(slot) => slot.links[list.kind][AFTER] = at,
            None => list.first = at,
        }
        list.len += 1;
    }

    /// Takes a slot out of the list it is in.
    pub(super) fn detach(&mut self, list: &mut List, at: u32) {
        let slots = self.slots.as_mut();
        let [before, after] = slots[at as usize].links[list.kind];
        match slots.get_mut(before as usize) {
            Some(slot) => slot.links[list.kind][AFTER] = after,
            None => list.first = after,
        }
        match slots.get_mut(after as usize) {
            Some(slot) => slot.links[list.kind][BEFORE] = before,
            None => list.last = before,
        }
        list.len -= 1;
    }

    /// The slots of a list, the first one first.
    pub(super) fn walk(&self, list: &List) -> impl Iterator<Item = (u32, &super::Entry)> {
        let (kind, mut next) = (list.kind, list.first);
        core::iter::from_fn(move || {
            let at = next;
            let slot = self.slots.as_ref().get(at as usize)?;
            next = slot.links[kind][AFTER];
            slot.entry.as_ref().map(|(_, entry)| (at, entry))
        })
    }
}
