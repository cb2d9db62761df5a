//! A queue over the caller's slots, with room for one entry beside them, and a window behind it.
//!
//! Decides: where an entry lies, and when growing storage grows or is given back. Leaves to others: what an entry is and when it may
//! be added. Believes: no clock. Bounded by: the length of the slots (or the limit of growing ones), plus one.
//!
//! Entries lie one behind another and are found by their position. Or the last of them lie apart, each as far behind the others as its
//! number says (`window`), so that none is moved to make room for one.

mod window;

use core::hint::select_unpredictable;
use core::mem;

use crate::storage::Room;

/// One entry lives beside the slots, so that a queue that never holds two at once never touches them and, where they grow, never
/// allocates.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Held<E, S> {
    /// Entries, the lone one included; first, for who asks no more than that.
    len: usize,
    /// Entries in the slots, those of the window aside.
    slotted: usize,
    head: usize,
    /// The places behind those that hold an entry of the window.
    window: u64,
    slots: S,
    lone: Option<E>,
    room: Room<S>,
}

/// The first step of storage that grows.
const FIRST: usize = 4;
/// Growing storage above this many slots is given back when the queue runs empty: who needed a window needs it again.
const KEPT: usize = 64;

impl<E, S: AsRef<[Option<E>]> + AsMut<[Option<E>]>> Held<E, S> {
    pub(crate) fn new(slots: S) -> Self {
        let room = Room::fixed(slots.as_ref().len());
        Self {
            len: 0,
            slotted: 0,
            head: 0,
            window: 0,
            slots,
            lone: None,
            room,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many more entries fit.
    pub(crate) fn free(&self) -> usize {
        self.capacity() - self.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.room.max + 1
    }

    /// Bytes of the slots that are there now.
    pub(crate) fn slot_bytes(&self) -> usize {
        mem::size_of_val(self.slots.as_ref())
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&E> {
        match (&self.lone, at) {
            (Some(lone), 0) => Some(lone),
            (Some(_), at) => self.slots.as_ref().get(self.index(at - 1)?)?.as_ref(),
            (None, at) => self.slots.as_ref().get(self.index(at)?)?.as_ref(),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut E> {
        match (self.lone.is_some(), at) {
            (true, 0) => self.lone.as_mut(),
            (lone, at) => {
                let index = self.index(at - usize::from(lone))?;
                self.slots.as_mut().get_mut(index)?.as_mut()
            }
        }
    }

    /// The first position in `from..len` whose entry is not `below`; the entries must be sorted by that.
    pub(crate) fn partition_point(&self, from: usize, below: impl Fn(&E) -> bool) -> usize {
        let (mut low, mut high) = (from, self.len());
        // An append is the common case.
        if high > low && self.get(high - 1).is_some_and(&below) {
            return high;
        }
        // Which half it is cannot be foreseen, so nothing branches on it.
        while low < high {
            let middle = low + (high - low) / 2;
            let upper = self.get(middle).is_some_and(&below);
            low = select_unpredictable(upper, middle + 1, low);
            high = select_unpredictable(upper, high, middle);
        }
        low
    }

    /// Puts `entry` before position `at`, or hands it back when there is no room.
    pub(crate) fn insert(&mut self, at: usize, entry: E) -> Result<(), E> {
        if self.free() == 0 {
            return Err(entry);
        }
        if self.window != 0 {
            if self.slotted == 0 && self.lone.is_none() {
                // Before the window there is nothing.
                self.len += 1;
                self.lone = Some(entry);
                return Ok(());
            }
            self.close_window();
        }
        self.len += 1;
        if self.len == 1 {
            self.lone = Some(entry);
            return Ok(());
        }
        if self.lone.is_none() && self.slotted == self.room.max {
            self.lone = self.take_first_slot();
        }
        self.make_slot();
        match (self.lone.take(), at) {
            (Some(lone), 0) => {
                self.insert_slot(0, lone);
                self.lone = Some(entry);
            }
            (Some(lone), at) => {
                self.insert_slot(at - 1, entry);
                self.lone = Some(lone);
            }
            (None, at) => self.insert_slot(at, entry),
        }
        Ok(())
    }

    /// Takes the entry at `at` out.
    pub(crate) fn remove(&mut self, at: usize) -> Option<E> {
        if at == 0 {
            return self.pop();
        }
        self.close_window();
        let at = at - usize::from(self.lone.is_some());
        let index = self.index(at)?;
        let entry = self.slots.as_mut()[index].take();
        if at < self.slotted / 2 {
            self.shift_up(0, at);
            self.head = self.wrap(1);
        } else {
            self.shift_down(at, self.slotted - 1);
        }
        self.slotted -= 1;
        self.len -= 1;
        self.give_back();
        entry
    }

    /// Takes the first entry out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<E> {
        let first = match self.lone.take() {
            Some(lone) => lone,
            None => self.take_first_slot()?,
        };
        self.len -= 1;
        self.give_back();
        Some(first)
    }

    #[inline]
    fn take_first_slot(&mut self) -> Option<E> {
        let index = self.index(0)?;
        self.head = self.wrap(1);
        self.slotted -= 1;
        self.slots.as_mut()[index].take()
    }

    fn insert_slot(&mut self, at: usize, entry: E) {
        let length = self.slots.as_ref().len();
        self.slotted += 1;
        if at < self.slotted / 2 {
            self.head = self.wrap(length - 1);
            self.shift_down(0, at);
        } else {
            self.shift_up(at, self.slotted - 1);
        }
        let index = self.wrap(at);
        self.slots.as_mut()[index] = Some(entry);
    }

    fn make_slot(&mut self) {
        let length = self.slots.as_ref().len();
        if self.slotted == length {
            self.grow(length.saturating_mul(2).max(FIRST));
        }
    }

    fn grow(&mut self, length: usize) {
        self.slots.as_mut().rotate_left(self.head);
        self.head = 0;
        self.room.ask(&mut self.slots, length);
    }

    #[inline]
    fn give_back(&mut self) {
        if self.slotted == 0 && self.window == 0 {
            self.head = 0;
            if self.room.grows && self.slots.as_ref().len() > KEPT {
                self.room.ask(&mut self.slots, 0);
            }
        }
    }

    /// Moves what is at `from..to` one place up, and what was at `to` to `from`.
    fn shift_up(&mut self, from: usize, to: usize) {
        let (first, last) = (self.wrap(from), self.wrap(to));
        if first <= last {
            self.slots.as_mut()[first..=last].rotate_right(1);
        } else {
            (from..to).rev().for_each(|at| self.swap(at));
        }
    }

    /// Moves what is above `from` up to `to` one place down, and what was at `from` to `to`.
    fn shift_down(&mut self, from: usize, to: usize) {
        let (first, last) = (self.wrap(from), self.wrap(to));
        if first <= last {
            self.slots.as_mut()[first..=last].rotate_left(1);
        } else {
            (from..to).for_each(|at| self.swap(at));
        }
    }

    /// Swaps what is at `at` and behind it.
    fn swap(&mut self, at: usize) {
        let (a, b) = (self.wrap(at), self.wrap(at + 1));
        self.slots.as_mut().swap(a, b);
    }

    fn index(&self, at: usize) -> Option<usize> {
        (at < self.slotted).then(|| self.wrap(at))
    }

    /// The slot `at` places after the head.
    fn wrap(&self, at: usize) -> usize {
        let length = self.slots.as_ref().len();
        let index = self.head + at;
        if index < length {
            index
        } else {
            index - length
        }
    }
}

#[cfg(feature = "alloc")]
impl<E> Held<E, alloc::vec::Vec<Option<E>>> {
    /// Slots that are allocated when a second entry comes, at most `limit` (at least 1), and given back when a burst has passed.
    pub(crate) fn growing(limit: usize) -> Self {
        let room = Room::heap(limit.max(1));
        Self {
            len: 0,
            slotted: 0,
            head: 0,
            window: 0,
            slots: alloc::vec::Vec::new(),
            lone: None,
            room,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn compare<S: AsRef<[Option<u32>]> + AsMut<[Option<u32>]>>(
        mut held: Held<u32, S>,
        script: &[(bool, usize)],
    ) {
        let mut plain: Vec<u32> = Vec::new();
        for (step, (insert, at)) in script.iter().enumerate() {
            if *insert {
                let at = at % (plain.len() + 1);
                let kept = held.insert(at, step as u32);
                assert_eq!(kept.is_ok(), plain.len() < held.capacity());
                if kept.is_ok() {
                    plain.insert(at, step as u32);
                }
            } else if !plain.is_empty() {
                let at = at % plain.len();
                assert_eq!(held.remove(at), Some(plain.remove(at)));
            }
            assert_eq!(held.len(), plain.len());
            let seen: Vec<u32> = (0..).map_while(|at| held.get(at).copied()).collect();
            assert_eq!(seen, plain);
            if let Some(last) = plain.len().checked_sub(1) {
                assert_eq!(held.get_mut(last).copied(), plain.last().copied());
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_a_vector_with_a_bound(
            script in proptest::collection::vec((prop::bool::weighted(0.6), 0..40_usize), 0..120)
        ) {
            compare(Held::new([None; 1]), &script);
            compare(Held::new([None; 2]), &script);
            compare(Held::new([None; 3]), &script);
            compare(Held::new([None; 5]), &script);
            compare(Held::new([None; 8]), &script);
            compare(Held::growing(1), &script);
            compare(Held::growing(7), &script);
            compare(Held::growing(1000), &script);
        }
    }

    #[test]
    fn one_entry_at_a_time_never_touches_the_slots() {
        let mut held = Held::growing(100);
        for step in 0..10 {
            held.insert(0, step).unwrap();
            assert_eq!((held.slot_bytes(), held.remove(0)), (0, Some(step)));
        }
    }
}
