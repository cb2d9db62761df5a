//! A ring of items at absolute positions, overwritten from the oldest.
//!
//! Decides: which items are still held, and what a reader that asks for a position gets. Leaves to others: what an item is, where each
//! reader stands, what a loss is called. Believes: no clock. Bounded by: a number of items, exact and never rounded, and a number of bytes.
//!
//! A position is the number of items pushed before that one, so it never repeats and never moves. A reader keeps the position of the
//! next item it wants: `end()` when it is level. Any number of readers cost the ring nothing.

use crate::storage::Room;

/// An absolute place in a ring: of an item, or of the next one a reader wants.
pub type Position = u64;

/// Slots a heap ring keeps when it is empty, so that a ring that fills and drains all the time does not allocate all the time.
const KEPT: usize = 32;

/// One place of a ring's storage: an item and its weight in bytes.
pub type Slot<T> = Option<(T, usize)>;

/// A ring on the heap.
#[cfg(feature = "alloc")]
pub type HeapRing<T> = Ring<T, alloc::vec::Vec<Slot<T>>>;

/// What a reader finds that wants to go on at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resume {
    /// It is level: nothing was missed and nothing waits.
    Live,
    /// All it missed is still here: read `count` items from `position` on.
    From {
        /// The position asked for.
        position: Position,
        /// Items from there to the end.
        count: u64,
    },
    /// Something it missed is gone, or the position is one this ring never gave: what is left begins at `oldest`.
    Expired {
        /// The oldest item held, or the end when none is: resuming there never expires again by itself.
        oldest: Position,
        /// Exactly how many items are gone that it had not read; 0 when the position lies in the future.
        missed: u64,
    },
}

/// Items at absolute positions in a storage of slots. See the module's text.
///
/// Getters take no time, and neither do the commands: a ring believes no clock.
///
/// ```
/// use tidings::ring::{Resume, Ring, Slot};
///
/// let slots: [Slot<&str>; 2] = [const { None }; 2];
/// let mut ring = Ring::new(slots, 1024);
/// let first = ring.push("a", 1);
/// ring.push("b", 1);
/// assert_eq!(ring.resume(first), Resume::From { position: 0, count: 2 });
/// ring.push("c", 1);
/// assert_eq!(ring.resume(first), Resume::Expired { oldest: 1, missed: 1 });
/// assert_eq!(ring.get(2), Some(&"c"));
/// ```
#[derive(Debug)]
pub struct Ring<T, S> {
    slots: S,
    room: Room<S>,
    max_bytes: usize,
    bytes: usize,
    /// Where the oldest item lies in `slots`.
    head: usize,
    len: usize,
    start: Position,
    item: core::marker::PhantomData<fn() -> T>,
}

#[cfg(feature = "alloc")]
impl<T> HeapRing<T> {
    /// At most `capacity` items of at most `max_bytes` together. Nothing is allocated until items come; storage doubles up to exactly
    /// `capacity` slots, and halves when three quarters are empty, down to 16 slots.
    pub fn with_capacity(capacity: usize, max_bytes: usize) -> Self {
        Self::build(alloc::vec::Vec::new(), Room::heap(capacity), max_bytes)
    }
}

impl<T, S: AsRef<[Slot<T>]> + AsMut<[Slot<T>]>> Ring<T, S> {
    /// As many items as there are slots, of at most `max_bytes` together.
    pub fn new(slots: S, max_bytes: usize) -> Self {
        let room = Room::fixed(slots.as_ref().len());
        Self::build(slots, room, max_bytes)
    }

    fn build(slots: S, room: Room<S>, max_bytes: usize) -> Self {
        Self {
            slots,
            room,
            max_bytes,
            bytes: 0,
            head: 0,
            len: 0,
            start: 0,
            item: core::marker::PhantomData,
        }
    }

    /// The same ring, empty, whose next item gets `position`. For a numbering that does not begin at 0.
    #[must_use]
    pub fn starting_at(mut self, position: Position) -> Self {
        while self.give_up_oldest().is_some() {}
        self.start = position;
        self
    }

    /// Takes an item that weighs `bytes` and answers its position. While the ring has more than its items or bytes, the oldest go. An item
    /// heavier than the whole ring takes its position and is gone at once, so that readers see it as missed.
    pub fn push(&mut self, item: T, bytes: usize) -> Position {
        let position = self.end();
        while self.len > 0 && !self.has_room(bytes) {
            self.drop_oldest();
        }
        if !self.has_room(bytes) {
            self.start = position.saturating_add(1);
            self.settle();
            return position;
        }
        if self.len == self.slots.as_ref().len() {
            self.resize(self.len.saturating_mul(2).max(4));
        }
        let index = self.index(self.len);
        self.slots.as_mut()[index] = Some((item, bytes));
        self.len += 1;
        self.bytes += bytes;
        position
    }

    /// Lets the oldest item go and hands it out with its position and weight. A reader that had not read it has missed it.
    pub fn give_up_oldest(&mut self) -> Option<(Position, T, usize)> {
        let position = self.start;
        let (item, bytes) = self.drop_oldest()?;
        self.settle();
        Some((position, item, bytes))
    }

    /// The item at a position, if it is still held.
    pub fn get(&self, at: Position) -> Option<&T> {
        let place = usize::try_from(at.checked_sub(self.start)?).ok()?;
        if place >= self.len {
            return None;
        }
        let (item, _) = self.slots.as_ref()[self.index(place)].as_ref()?;
        Some(item)
    }

    /// Position of the first item held for which `before` is false, or the end. For items in an order of their own: those for which it is
    /// true come first.
    pub fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> Position {
        let (mut low, mut high) = (self.start, self.end());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(&mut before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// What a reader finds whose next item is `from`.
    pub fn resume(&self, from: Position) -> Resume {
        let end = self.end();
        if from > end || from < self.start {
            Resume::Expired {
                oldest: self.start,
                missed: self.start.saturating_sub(from),
            }
        } else if from == end {
            Resume::Live
        } else {
            Resume::From {
                position: from,
                count: end - from,
            }
        }
    }

    /// How many items were pushed since the reader whose next item is `reader` was level, held or gone.
    pub fn lag(&self, reader: Position) -> u64 {
        self.end().saturating_sub(reader)
    }

    /// How many items are gone that the reader whose next item is `reader` had not read.
    pub fn missed(&self, reader: Position) -> u64 {
        self.start.saturating_sub(reader)
    }

    /// Position of the oldest item held, or the end.
    pub fn start(&self) -> Position {
        self.start
    }

    /// Position the next item will get.
    pub fn end(&self) -> Position {
        self.start.saturating_add(self.len as u64)
    }

    /// Items held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no item is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Weight of the items held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Items it may hold.
    pub fn capacity(&self) -> usize {
        self.room.max
    }

    /// Weight it may hold.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Bytes of the slots, items' own weight aside.
    pub fn memory(&self) -> usize {
        core::mem::size_of_val(self.slots.as_ref())
    }

    /// Whether an item of so many bytes can be taken without another going.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.len < self.room.max && self.fits(bytes)
    }

    fn fits(&self, bytes: usize) -> bool {
        self.bytes
            .checked_add(bytes)
            .is_some_and(|sum| sum <= self.max_bytes)
    }

    fn drop_oldest(&mut self) -> Option<(T, usize)> {
        let head = self.head;
        let taken = self.slots.as_mut().get_mut(head)?.take()?;
        self.head = self.index(1);
        self.len -= 1;
        self.bytes -= taken.1;
        self.start = self.start.saturating_add(1);
        Some(taken)
    }

    /// Where the item `place` after the oldest lies.
    fn index(&self, place: usize) -> usize {
        let slots = self.slots.as_ref().len();
        let index = self.head + place;
        if index >= slots { index - slots } else { index }
    }

    /// Gives storage back after items went without others coming.
    fn settle(&mut self) {
        let slots = self.slots.as_ref().len();
        if self.room.grows && slots > KEPT && self.len <= slots / 4 {
            self.resize((slots / 2).max(KEPT));
        }
    }

    fn resize(&mut self, slots: usize) {
        let head = self.head;
        self.slots.as_mut().rotate_left(head);
        self.head = 0;
        self.room.ask(&mut self.slots, slots);
    }
}

#[cfg(test)]
mod tests;
