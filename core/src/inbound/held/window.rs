//! Entries that lie as far apart as their numbers.
//!
//! Decides: whether the window suits, and the ways in and out of it. Leaves to others: which number is the first place. Believes: no
//! clock. Bounded by: 64 places; sixteen slots for each entry, where they must first be allocated.

use super::{FIRST, Held};

/// Places of the window.
pub(crate) const PLACES: u64 = u64::BITS as u64;
/// Slots that are allocated so that one entry may lie far from the others.
const SPREAD: usize = 16;

impl<E, S: AsRef<[Option<E>]> + AsMut<[Option<E>]>> Held<E, S> {
    /// The last entries are in the window.
    #[inline]
    pub(crate) fn has_window(&self) -> bool {
        self.window != 0
    }

    /// The entry at that place of the window.
    #[inline]
    pub(crate) fn at_place(&self, place: u64) -> Option<&E> {
        let there = place < PLACES && self.window >> place & 1 == 1;
        if !there {
            return None;
        }
        self.slots.as_ref()[self.slot_of(place)].as_ref()
    }

    /// The entry at that place of the window, to change.
    #[inline]
    pub(crate) fn at_place_mut(&mut self, place: u64) -> Option<&mut E> {
        let there = place < PLACES && self.window >> place & 1 == 1;
        if !there {
            return None;
        }
        let slot = self.slot_of(place);
        self.slots.as_mut()[slot].as_mut()
    }

    /// The lowest place of the window that is not empty.
    #[inline]
    pub(crate) fn first_place(&self) -> Option<u64> {
        (self.window != 0).then(|| u64::from(self.window.trailing_zeros()))
    }

    /// The next one above `place` that is not empty.
    #[inline]
    pub(crate) fn next_place(&self, place: u64) -> Option<u64> {
        let above = self.window.checked_shr(place as u32 + 1)?;
        (above != 0).then(|| place + 1 + u64::from(above.trailing_zeros()))
    }

    /// The highest place that is not empty.
    #[inline]
    pub(crate) fn last_place(&self) -> Option<u64> {
        self.window.checked_ilog2().map(u64::from)
    }

    /// Whether a new entry may go to `place`. What is behind the first `fixed` entries lies in the window then, each at the `place_of` it;
    /// else nothing does.
    #[inline]
    pub(crate) fn open_window(
        &mut self,
        fixed: usize,
        place: u64,
        place_of: impl Fn(&E) -> u64,
    ) -> bool {
        let known = self.window != 0;
        let fits = place < PLACES && self.slotted + (place as usize) < self.slots.as_ref().len();
        known && fits || self.make_window(fixed, place, place_of)
    }

    /// Puts an entry to an empty place that `open_window` found good.
    #[inline]
    pub(crate) fn put(&mut self, place: u64, entry: E) {
        let slot = self.slot_of(place);
        self.slots.as_mut()[slot] = Some(entry);
        self.window |= 1 << place;
        self.len += 1;
    }

    /// The entries at the first `by` places of the window are in it no longer: the others are so many places nearer.
    #[inline]
    pub(crate) fn leave_window(&mut self, by: u32) {
        if self.window != 0 {
            self.window = self.window.checked_shr(by).unwrap_or(0);
            self.slotted += by as usize;
        }
    }

    /// The first `by` places are empty, and go.
    #[inline]
    pub(crate) fn skip(&mut self, by: u64) {
        if self.window == 0 {
            return;
        }
        if self.slotted > 0 {
            self.close_window();
        } else {
            self.head = self.wrap(by as usize);
            self.window >>= by;
        }
    }

    /// Takes out the first entry behind the first `fixed` ones; it is at the first place of the window, if there is one.
    pub(crate) fn remove_behind(&mut self, fixed: usize) -> Option<E> {
        if self.window == 0 || self.slotted > 0 {
            return self.remove(fixed);
        }
        let slot = self.slot_of(0);
        let entry = self.slots.as_mut()[slot].take();
        self.head = self.wrap(1);
        self.window >>= 1;
        self.len -= 1;
        self.give_back();
        entry
    }

    /// The entries of the window lie behind the others, without gaps.
    pub(crate) fn close_window(&mut self) {
        while self.window != 0 {
            let first = u64::from(self.window.trailing_zeros());
            let (from, to) = (self.slot_of(first), self.slot_of(0));
            self.slots.as_mut().swap(from, to);
            // It is counted with the others from here on, so what is left in the window is one place nearer.
            self.window = (self.window & (self.window - 1)) >> 1;
            self.slotted += 1;
        }
    }

    #[inline(never)]
    fn make_window(&mut self, fixed: usize, place: u64, place_of: impl Fn(&E) -> u64) -> bool {
        if self.len == 0 && self.slots.as_ref().is_empty() {
            // A lone one needs no slot.
            return false;
        }
        let apart = self.len - fixed;
        let highest = match self.last_place() {
            None if apart > 0 => self.get(self.len - 1).map_or(PLACES, &place_of),
            last => last.unwrap_or(0),
        };
        let highest = highest.max(place);
        let before = fixed - usize::from(self.lone.is_some() && fixed > 0);
        if highest < PLACES && self.has_slots(before, highest as usize + 1, apart) {
            if self.window == 0 && apart > 0 {
                self.spread(before, fixed == 0, place_of);
            }
            return true;
        }
        self.close_window();
        false
    }

    /// So many places behind the first `before` slots are there, or have been allocated.
    fn has_slots(&mut self, before: usize, places: usize, apart: usize) -> bool {
        let needed = before + places;
        let grows = self.room.grows && places <= SPREAD * (apart + 1);
        if needed > self.slots.as_ref().len() && grows {
            self.grow(needed.next_power_of_two().max(FIRST));
        }
        needed <= self.slots.as_ref().len()
    }

    /// What is behind the first `before` slots goes to its places, and so does the lone one if nothing is before it.
    fn spread(&mut self, before: usize, lone: bool, place_of: impl Fn(&E) -> u64) {
        let end = core::mem::replace(&mut self.slotted, before);
        // The highest first: no entry belongs to a lower place than it has.
        for at in (before..end).rev() {
            let from = self.wrap(at);
            if let Some(place) = self.slots.as_ref()[from].as_ref().map(&place_of) {
                let to = self.slot_of(place);
                self.slots.as_mut().swap(from, to);
                self.window |= 1 << place;
            }
        }
        if lone && let Some(lone) = self.lone.take() {
            let place = place_of(&lone);
            self.len -= 1;
            self.put(place, lone);
        }
    }

    #[inline]
    fn slot_of(&self, place: u64) -> usize {
        self.wrap(self.slotted + place as usize)
    }
}
