//! Generational slots: handles that are never reused in a run.
//!
//! Decides: which slot a new value takes. Leaves to others: how many there may be. Believes: no clock. Bounded by: the capacity its
//! owner checks before `insert`.

use alloc::vec::Vec;

/// A handle of an [`Arena`]: a slot and the generation that lived in it.
pub(crate) trait Handle: Copy {
    fn from_parts(index: u32, generation: u32) -> Self;
    fn parts(self) -> (u32, u32);
}

/// Makes a type of an index and a generation a handle.
macro_rules! arena_handle {
    ($name:ident) => {
        impl $crate::arena::Handle for $name {
            fn from_parts(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            fn parts(self) -> (u32, u32) {
                (self.index, self.generation)
            }
        }
    };
}

/// A handle that nobody outside a machine sees.
macro_rules! inner_handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        struct $name {
            index: u32,
            generation: u32,
        }

        $crate::arena::arena_handle!($name);
    };
}

pub(crate) use {arena_handle, inner_handle};

/// Slots that may stay empty unless its owner says otherwise, so that an arena that fills and empties all the time does not allocate all the time.
const KEPT: usize = 16;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Values by generational handle, iterated in slot order.
#[derive(Debug)]
pub(crate) struct Arena<H, T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    len: usize,
    /// Of slots that were given back: a slot in their place begins with this generation.
    generation: u32,
    /// Removals until it is looked again whether slots can be given back.
    patience: usize,
    /// Slots that may stay empty.
    kept: usize,
    handles: core::marker::PhantomData<fn() -> H>,
}

impl<H, T> Default for Arena<H, T> {
    fn default() -> Self {
        Self::keeping(KEPT)
    }
}

impl<H, T> Arena<H, T> {
    /// One in which so many slots may stay empty.
    pub(crate) fn keeping(kept: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            len: 0,
            generation: 0,
            patience: 0,
            kept,
            handles: core::marker::PhantomData,
        }
    }
}

impl<H: Handle, T> Arena<H, T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> H {
        self.insert_with(|_| value)
    }

    /// Inserts a value that wants to know its own handle.
    #[inline]
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(H) -> T) -> H {
        self.len += 1;
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            let handle = H::from_parts(index, slot.generation);
            slot.value = Some(make(handle));
            return handle;
        }
        let index = self.slots.len() as u32;
        let generation = self.generation;
        let handle = H::from_parts(index, generation);
        if self.slots.len() == self.slots.capacity() {
            // A little more, not twice as many: most of what a machine holds may lie here.
            self.slots.reserve_exact((self.slots.len() / 32).max(4));
        }
        self.slots.push(Slot {
            generation,
            value: Some(make(handle)),
        });
        handle
    }

    pub(crate) fn get(&self, handle: H) -> Option<&T> {
        let (index, generation) = handle.parts();
        let slot = self.slots.get(index as usize)?;
        if slot.generation != generation {
            return None;
        }
        slot.value.as_ref()
    }

    /// What is in a slot, whatever its generation.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<(H, &T)> {
        let slot = self.slots.get(index as usize)?;
        let value = slot.value.as_ref()?;
        Some((H::from_parts(index, slot.generation), value))
    }

    /// Slots, empty ones included.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether one more value fits, all of them in the first `slots` slots.
    pub(crate) fn has_room(&self, slots: usize) -> bool {
        !self.free.is_empty() || self.slots.len() < slots
    }

    pub(crate) fn get_mut(&mut self, handle: H) -> Option<&mut T> {
        let (index, generation) = handle.parts();
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != generation {
            return None;
        }
        slot.value.as_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, handle: H) -> Option<T> {
        let (index, generation) = handle.parts();
        let slot = self
            .slots
            .get_mut(index as usize)
            .filter(|slot| slot.generation == generation)?;
        let value = slot.value.take();
        if value.is_some() {
            // A slot whose generations are used up is retired rather than handed out twice.
            if let Some(next) = slot.generation.checked_add(1) {
                slot.generation = next;
                self.free.push(index);
            }
            self.removed();
        }
        value
    }

    fn removed(&mut self) {
        self.len -= 1;
        self.patience = self.patience.saturating_sub(1);
        if self.patience == 0 {
            self.give_back();
            self.patience = (self.len / 8).max(1);
        }
    }

    /// Gives empty slots at the end back when most are empty. Looked at again when an eighth of what is left has gone, so that an arena that empties
    /// pays for each slot a few times.
    fn give_back(&mut self) {
        let before = self.slots.len();
        if before <= self.kept || self.len > before / 4 {
            return;
        }
        while let Some(slot) = self
            .slots
            .pop_if(|slot| slot.value.is_none() && slot.generation < u32::MAX)
        {
            self.generation = self.generation.max(slot.generation);
        }
        let slots = self.slots.len();
        if slots == before {
            return;
        }
        self.free.retain(|index| (*index as usize) < slots);
        // The lowest comes first, so that the end empties.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        self.slots.shrink_to(slots + self.kept);
        self.free.shrink_to(self.free.len() + self.kept);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (H, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            slot.value
                .as_ref()
                .map(|value| (H::from_parts(index as u32, slot.generation), value))
        })
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (H, &mut T)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(index, slot)| {
                let generation = slot.generation;
                slot.value
                    .as_mut()
                    .map(|value| (H::from_parts(index as u32, generation), value))
            })
    }

    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>() + self.free.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkId;

    #[test]
    fn room_is_given_back_and_no_handle_names_two_values() {
        let mut arena: Arena<LinkId, u32> = Arena::default();
        let mut seen = alloc::collections::BTreeSet::new();
        for round in 0..5 {
            let handles: Vec<LinkId> = (0..1000).map(|n| arena.insert(n)).collect();
            assert!(handles.iter().all(|handle| seen.insert(*handle)));
            let keep = handles[round];
            for handle in &handles {
                if *handle != keep {
                    assert!(arena.remove(*handle).is_some());
                }
            }
            assert_eq!(arena.len(), round + 1);
            assert!(arena.memory() < 64 * size_of::<Slot<u32>>());
            assert_eq!(arena.get(keep), Some(&(round as u32)));
            let dead = handles.iter().filter(|handle| **handle != keep);
            assert!(dead.into_iter().all(|handle| arena.get(*handle).is_none()));
        }
    }
}
