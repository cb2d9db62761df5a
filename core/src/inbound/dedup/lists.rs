//! The lists a dedup's slots wait in: for their end, or to be used again.
//!
//! Decides: nothing; first in, first out. Leaves to others: which list (the dedup). Believes: no clock. Bounded by: one word for each list,
//! two in each slot.
//!
//! Lives are mostly equally long. Slots that are freed in the order they were filled, and filled in the order they were freed, keep lying in
//! memory in the order in which they are looked at, and so are read before anybody asks.

use super::{GRAIN, NONE, Slot};
use crate::time::Instant;

/// Lists of waiting entries, one for each grain of the time to come. Their horizon, 136 minutes, is beyond the longest life there is.
pub(super) const WAITING: usize = 512;

/// Lists of free slots: in the front half of those in use, and in the back half.
pub(super) const FREE_FRONT: usize = WAITING;
pub(super) const FREE_BACK: usize = WAITING + 1;
const ALL_LISTS: usize = WAITING + 2;

/// From here on the neighbour before a slot says which list it is the first of.
const HEADS: u32 = NONE - ALL_LISTS as u32;

/// Which neighbour.
const BEFORE: usize = 0;
const AFTER: usize = 1;

/// The last slot of each list, behind which the first is.
#[derive(Debug)]
pub(super) struct Lists([u32; ALL_LISTS]);

impl Lists {
    pub(super) const EMPTY: Self = Self([NONE; ALL_LISTS]);

    #[inline]
    pub(super) fn is_empty(&self, list: usize) -> bool {
        self.0[list] == NONE
    }

    /// Takes slots out of a list, the first ones, until `batch` is full or the list empty; answers how many.
    #[inline]
    pub(super) fn take(&mut self, slots: &mut [Slot], list: usize, batch: &mut [u32]) -> usize {
        let last = self.0[list];
        if last == NONE {
            return 0;
        }
        let mut next = slots[last as usize].links[AFTER];
        for (taken, place) in batch.iter_mut().enumerate() {
            *place = next;
            if next == last {
                self.0[list] = NONE;
                return taken + 1;
            }
            next = slots[next as usize].links[AFTER];
        }
        slots[last as usize].links[AFTER] = next;
        slots[next as usize].links[BEFORE] = HEADS + list as u32;
        batch.len()
    }

    /// Puts a slot at the end of a list.
    #[inline]
    pub(super) fn attach(&mut self, slots: &mut [Slot], list: usize, index: u32) {
        let last = core::mem::replace(&mut self.0[list], index);
        let links = match last {
            NONE => [HEADS + list as u32, index],
            _ => [
                last,
                core::mem::replace(&mut slots[last as usize].links[AFTER], index),
            ],
        };
        slots[index as usize].links = links;
    }

    /// Takes a slot out of the list it is in.
    #[inline]
    pub(super) fn detach(&mut self, slots: &mut [Slot], index: u32) {
        let [before, after] = slots[index as usize].links;
        if let Some(list) = before.checked_sub(HEADS) {
            let last = &mut self.0[list as usize];
            if *last == index {
                *last = NONE;
            } else {
                slots[*last as usize].links[AFTER] = after;
                slots[after as usize].links[BEFORE] = before;
            }
            return;
        }
        slots[before as usize].links[AFTER] = after;
        match slots[after as usize].links[BEFORE].checked_sub(HEADS) {
            // Behind the last one is the first.
            Some(list) => self.0[list as usize] = before,
            None => slots[after as usize].links[BEFORE] = before,
        }
    }
}

/// Which grain a time lies in.
pub(super) fn grains(mono: Instant) -> u64 {
    mono.as_micros() / GRAIN.as_micros() as u64
}
