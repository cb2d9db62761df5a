//! Bounded open addressing over slots the caller owns.
//!
//! Decides: where an entry lies, and that a table is full. Leaves to others: what to do then, and when an entry's time is over. Believes: no
//! clock. Bounded by: a number of entries, exact; a probe never looks at more slots than there are.
//!
//! Entries are placed by a keyed multiply of the first 16 bytes of their key, which suits ids: they are uniform already, and the secret
//! key keeps a peer from choosing ids that collide. Robin Hood order makes a miss as cheap as a hit, and removal shifts back, so there are
//! no tombstones and a table that churns for ever stays as it was. There is no iteration: no output can depend on the order of slots.

use core::fmt;

use crate::id::{AskId, KeyId, LinkId, NodeId, PublicationHash, RealmId, RunId, SubscriptionId};
#[cfg(feature = "alloc")]
pub use crate::numbers::Numbers;
use crate::rng::Rng;

/// One place of a table's storage.
pub type Slot<K, V> = Option<(K, V)>;

/// A table on the heap.
#[cfg(feature = "alloc")]
pub type HeapTable<K, V> = Table<K, V, alloc::vec::Vec<Slot<K, V>>>;

/// What a table looks up by.
pub trait TableKey: Eq {
    /// 16 bytes that differ between most keys: the first ones of an id. Equality is decided on the whole key.
    fn prefix(&self) -> [u64; 2];
}

/// The table holds as many entries as it may. Carries what was to be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table is full")
    }
}

impl<T: fmt::Debug> core::error::Error for Full<T> {}

/// Entries by key in a storage of slots. See the module's text.
///
/// ```
/// use tidings::table::{Full, Slot, Table};
/// use tidings::{NodeId, Seed};
///
/// let slots: [Slot<NodeId, u8>; 4] = [None; 4];
/// let mut table = Table::new(slots, 3, &mut Seed::new([7; 32]).fork("nodes"));
/// for n in 0..3 {
///     assert_eq!(table.insert(NodeId::new([n; 32]), n), Ok(None));
/// }
/// assert_eq!(table.get(&NodeId::new([2; 32])), Some(&2));
/// let fourth = (NodeId::new([3; 32]), 3);
/// assert_eq!(table.insert(fourth.0, fourth.1), Err(Full(fourth)));
/// ```
#[derive(Debug)]
pub struct Table<K, V, S> {
    slots: S,
    key: [u64; 2],
    len: usize,
    capacity: usize,
    /// Puts storage of another length in place and answers the old one, if the storage can change.
    replace: Option<fn(&mut S, usize) -> S>,
    entry: core::marker::PhantomData<fn() -> (K, V)>,
}

#[cfg(feature = "alloc")]
impl<K: TableKey, V> HeapTable<K, V> {
    /// At most `capacity` entries. Nothing is allocated until the first; then storage doubles when five eighths full and halves when a
    /// quarter is left. One call in as many as there are entries moves them all; the others do bounded work.
    pub fn with_capacity(capacity: usize, rng: &mut Rng) -> Self {
        let mut table = Self::build(alloc::vec::Vec::new(), capacity, rng);
        table.replace = Some(|slots, len| {
            let mut fresh = alloc::vec::Vec::new();
            fresh.reserve_exact(len);
            fresh.resize_with(len, || None);
            core::mem::replace(slots, fresh)
        });
        table
    }
}

impl<K: TableKey, V, S: AsRef<[Slot<K, V>]> + AsMut<[Slot<K, V>]>> Table<K, V, S> {
    /// At most `capacity` entries on `slots`, all of them empty. Give half more slots than entries: a table filled to its last slot is
    /// correct and slow. With fewer slots than `capacity` their number is the capacity.
    pub fn new(slots: S, capacity: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.min(slots.as_ref().len());
        Self::build(slots, capacity, rng)
    }

    fn build(slots: S, capacity: usize, rng: &mut Rng) -> Self {
        Self {
            slots,
            key: [rng.next_u64(), rng.next_u64()],
            len: 0,
            capacity,
            replace: None,
            entry: core::marker::PhantomData,
        }
    }

    /// Puts a value under a key and answers the one it replaces.
    ///
    /// # Errors
    /// Key and value, when the key is not known and the table is full. Nothing has changed.
    pub fn insert(&mut self, key: K, value: V) -> Result<Option<V>, Full<(K, V)>> {
        if let Some(old) = self.get_mut(&key) {
            return Ok(Some(core::mem::replace(old, value)));
        }
        if self.len >= self.capacity {
            return Err(Full((key, value)));
        }
        if self.len >= self.slots.as_ref().len() / 8 * 5 {
            self.resize(self.slots.as_ref().len().saturating_mul(2));
        }
        self.place((key, value));
        self.len += 1;
        Ok(None)
    }

    /// The value under a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        let index = self.find(key)?;
        self.slots.as_ref()[index].as_ref().map(|(_, value)| value)
    }

    /// The value under a key, to change.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let index = self.find(key)?;
        self.slots.as_mut()[index].as_mut().map(|(_, value)| value)
    }

    /// Whether there is a value under a key.
    pub fn contains(&self, key: &K) -> bool {
        self.find(key).is_some()
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let index = self.find(key)?;
        let value = self.remove_at(index);
        self.shrink();
        value
    }

    /// Looks at slots from `hand` on, one round and `budget` looks at most, and removes the entries `keep` refuses; answers how many those
    /// were. For lives that end: a budget of twice the slots comes by every entry, a smaller one when it is called again and again with the
    /// same `hand`, also in a table that changes meanwhile, though one may be seen twice or only a round later. `hand` starts at 0.
    pub fn sweep(
        &mut self,
        hand: &mut usize,
        budget: usize,
        mut keep: impl FnMut(&K, &mut V) -> bool,
    ) -> usize {
        let before = self.len;
        let slots = self.slots.as_ref().len();
        let (mut passed, mut looks) = (0, budget);
        while passed < slots && looks > 0 {
            looks -= 1;
            if *hand >= slots {
                *hand = 0;
            }
            let kept = match &mut self.slots.as_mut()[*hand] {
                Some((key, value)) => keep(key, value),
                None => true,
            };
            if kept {
                *hand += 1;
                passed += 1;
            } else {
                // What followed has moved to this slot: stay.
                self.remove_at(*hand);
            }
        }
        let removed = before - self.len;
        if removed > 0 {
            self.shrink();
        }
        removed
    }

    /// Entries held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no entry is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries it may hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes of the slots, what values own elsewhere aside.
    pub fn memory(&self) -> usize {
        core::mem::size_of_val(self.slots.as_ref())
    }

    /// The slot an entry wants.
    #[inline]
    fn home(&self, key: &K) -> usize {
        let [a, b] = key.prefix();
        let hash = fold(a ^ self.key[0], b ^ self.key[1]);
        ((u128::from(hash) * self.slots.as_ref().len() as u128) >> 64) as usize
    }

    fn next(&self, index: usize) -> usize {
        let next = index + 1;
        if next == self.slots.as_ref().len() {
            0
        } else {
            next
        }
    }

    /// How far the entry at `index` is from the slot it wants.
    fn displacement(&self, index: usize) -> Option<usize> {
        let (key, _) = self.slots.as_ref()[index].as_ref()?;
        let home = self.home(key);
        Some(if index >= home {
            index - home
        } else {
            index + self.slots.as_ref().len() - home
        })
    }

    #[inline]
    fn find(&self, key: &K) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let home = self.home(key);
        let (held, _) = self.slots.as_ref()[home].as_ref()?;
        if held == key {
            return Some(home);
        }
        self.find_behind(home, key)
    }

    fn find_behind(&self, home: usize, key: &K) -> Option<usize> {
        let slots = self.slots.as_ref();
        let mut index = home;
        for distance in 1..slots.len() {
            index = self.next(index);
            let (held, _) = slots[index].as_ref()?;
            if held == key {
                return Some(index);
            }
            // An entry nearer to its own slot than we are to ours: ours would have taken its place.
            if self.displacement(index)? < distance {
                return None;
            }
        }
        None
    }

    /// Puts a new entry in its place. There is an empty slot.
    fn place(&mut self, mut entry: (K, V)) {
        let mut index = self.home(&entry.0);
        let mut distance = 0;
        while let Some(there) = self.displacement(index) {
            if there < distance
                && let Some(held) = &mut self.slots.as_mut()[index]
            {
                core::mem::swap(held, &mut entry);
                distance = there;
            }
            index = self.next(index);
            distance += 1;
        }
        self.slots.as_mut()[index] = Some(entry);
    }

    fn remove_at(&mut self, index: usize) -> Option<V> {
        let (_, value) = self.slots.as_mut()[index].take()?;
        self.len -= 1;
        let mut hole = index;
        loop {
            let next = self.next(hole);
            if self.displacement(next).is_none_or(|far| far == 0) {
                return Some(value);
            }
            self.slots.as_mut().swap(hole, next);
            hole = next;
        }
    }

    fn shrink(&mut self) {
        let mut slots = self.slots.as_ref().len();
        while slots > SMALLEST && self.len <= slots / 4 {
            slots /= 2;
        }
        if slots < self.slots.as_ref().len() {
            self.resize(slots);
        }
    }

    /// Moves every entry to storage of about `slots` slots.
    fn resize(&mut self, slots: usize) {
        let Some(replace) = self.replace else { return };
        let most = self.capacity.saturating_add(self.capacity / 5 * 3 + 1);
        let slots = slots.max(SMALLEST).min(most);
        if slots == self.slots.as_ref().len() {
            return;
        }
        let mut old = replace(&mut self.slots, slots);
        for entry in old.as_mut().iter_mut().filter_map(Option::take) {
            self.place(entry);
        }
    }
}

/// Slots a heap table has at least, once it has any.
const SMALLEST: usize = 8;

/// Both halves of the product: every bit of the result depends on every bit of `a` and `b`.
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The first 16 bytes, in an order that does not depend on the machine.
fn first_words(bytes: &[u8]) -> [u64; 2] {
    let mut words = [0; 2];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut eight = [0; 8];
        eight.copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    words
}

macro_rules! bytes_key {
    ($($id:ty),+) => {$(
        impl TableKey for $id {
            fn prefix(&self) -> [u64; 2] {
                first_words(self.as_bytes())
            }
        }
    )+};
}

macro_rules! handle_key {
    ($($id:ty),+) => {$(
        impl TableKey for $id {
            fn prefix(&self) -> [u64; 2] {
                spread(u64::from(self.index), u64::from(self.generation))
            }
        }
    )+};
}

bytes_key!(KeyId, NodeId, PublicationHash, RealmId, RunId);
handle_key!(AskId, LinkId, SubscriptionId, crate::id::Ticket);

/// Small numbers, spread over all bits.
fn spread(a: u64, b: u64) -> [u64; 2] {
    [a, b]
}

impl<const N: usize> TableKey for [u8; N] {
    fn prefix(&self) -> [u64; 2] {
        first_words(self)
    }
}

impl TableKey for u64 {
    fn prefix(&self) -> [u64; 2] {
        spread(*self, 0)
    }
}

impl TableKey for u32 {
    fn prefix(&self) -> [u64; 2] {
        spread(u64::from(*self), 0)
    }
}

impl TableKey for (u64, u64) {
    fn prefix(&self) -> [u64; 2] {
        spread(self.0, self.1)
    }
}

#[cfg(test)]
mod tests;
