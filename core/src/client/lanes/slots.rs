//! Where lanes lie, and how one is found.
//!
//! Decides: the place of a lane. Leaves to others: what a lane knows, and when it goes. Believes: no clock. Bounded by: a number of lanes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{LaneKey, LaneSlot, Work, lane_prefix};
use crate::arena::Arena;
use crate::client::LaneId;
use crate::numbers::{MOST, Numbers};
use crate::rng::Rng;
use crate::table::TableKey;

/// Lanes by handle and by key.
#[derive(Debug)]
pub(in crate::client) struct Lanes {
    slots: Arena<LaneId, LaneSlot>,
    /// Of each lane, the number of its slot.
    index: Numbers,
    capacity: usize,
}

impl Lanes {
    pub(in crate::client) fn new(capacity: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.min(MOST);
        Self {
            slots: Arena::default(),
            index: Numbers::new(capacity, rng),
            capacity,
        }
    }

    pub(in crate::client) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_full(&self) -> bool {
        !self.slots.has_room(self.capacity)
    }

    #[inline]
    pub(in crate::client) fn find(&self, key: &LaneKey) -> Option<LaneId> {
        let slot = |number| self.slots.at(number);
        let number = self.index.find(key.prefix(), |number| {
            slot(number).is_some_and(|(_, slot)| slot.is(key))
        })?;
        slot(number).map(|(id, _)| id)
    }

    /// The lane of a key, which `near` may be.
    #[inline]
    pub(in crate::client) fn find_near(
        &self,
        key: &LaneKey,
        near: Option<LaneId>,
    ) -> Option<LaneId> {
        let is_it = |id: &LaneId| self.get(*id).is_some_and(|slot| slot.is(key));
        near.filter(is_it).or_else(|| self.find(key))
    }

    /// The lane with this number, if there is one.
    #[inline]
    pub(in crate::client) fn at(&self, number: u32) -> Option<(LaneId, &LaneSlot)> {
        self.slots.at(number)
    }

    #[inline]
    pub(in crate::client) fn get(&self, id: LaneId) -> Option<&LaneSlot> {
        self.slots.get(id)
    }

    #[inline]
    pub(in crate::client) fn get_mut(&mut self, id: LaneId) -> Option<&mut LaneSlot> {
        self.slots.get_mut(id)
    }

    /// Adds a lane whose key none has. It was looked whether there is room.
    pub(super) fn insert(&mut self, key: &LaneKey, work: Box<Work>) -> LaneId {
        debug_assert!(!self.is_full());
        let id = self.slots.insert(LaneSlot::new(key, work));
        let key = key.prefix();
        let slots = &self.slots;
        self.index
            .insert(key, id.index, |number| prefix(slots, number));
        id
    }

    pub(super) fn remove(&mut self, id: LaneId) -> Option<LaneSlot> {
        let slot = self.slots.remove(id)?;
        let slots = &self.slots;
        self.index
            .remove(prefix_of(&slot), id.index, |number| prefix(slots, number));
        Some(slot)
    }

    pub(in crate::client) fn iter(&self) -> impl Iterator<Item = (LaneId, &LaneSlot)> {
        self.slots.iter()
    }

    pub(in crate::client) fn iter_mut(&mut self) -> impl Iterator<Item = (LaneId, &mut LaneSlot)> {
        self.slots.iter_mut()
    }

    /// The lanes among the next `budget` slots from `hand` on that `is_it` accepts.
    pub(super) fn sweep(
        &self,
        hand: &mut usize,
        budget: usize,
        is_it: impl Fn(&LaneSlot) -> bool,
    ) -> Vec<LaneId> {
        let mut found = Vec::new();
        for _ in 0..budget.min(self.slots.slots()) {
            if *hand >= self.slots.slots() {
                *hand = 0;
            }
            let slot = self.slots.at(*hand as u32);
            found.extend(slot.filter(|(_, slot)| is_it(slot)).map(|(id, _)| id));
            *hand += 1;
        }
        found
    }

    /// Bytes of the slots and the index.
    pub(in crate::client) fn memory(&self) -> usize {
        self.slots.memory() + self.index.memory()
    }
}

fn prefix(slots: &Arena<LaneId, LaneSlot>, number: u32) -> [u64; 2] {
    let slot = slots.at(number);
    slot.map_or([0; 2], |(_, slot)| prefix_of(slot))
}

fn prefix_of(slot: &LaneSlot) -> [u64; 2] {
    lane_prefix(&slot.publisher, slot.topic(), slot.subscription)
}

#[cfg(test)]
mod tests {
    use super::super::Kept;
    use super::*;

    #[test]
    fn a_folded_lane_takes_88_bytes_with_its_slot() {
        assert_eq!(size_of::<Kept>(), 40);
        assert_eq!(size_of::<(u32, Option<LaneSlot>)>(), 88);
    }
}
