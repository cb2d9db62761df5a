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
    handles: core::marker::PhantomData<fn() -> H>,
}

impl<H, T> Default for Arena<H, T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            len: 0,
            handles: core::marker::PhantomData,
        }
    }
}

impl<H: Handle, T> Arena<H, T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, value: T) -> H {
        self.insert_with(|_| value)
    }

    /// Inserts a value that wants to know its own handle.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(H) -> T) -> H {
        self.len += 1;
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            let handle = H::from_parts(index, slot.generation);
            slot.value = Some(make(handle));
            return handle;
        }
        let index = self.slots.len() as u32;
        let handle = H::from_parts(index, 0);
        self.slots.push(Slot {
            generation: 0,
            value: Some(make(handle)),
        });
        handle
    }

    pub(crate) fn get(&self, handle: H) -> Option<&T> {
        let (index, generation) = handle.parts();
        self.slots
            .get(index as usize)
            .filter(|slot| slot.generation == generation)?
            .value
            .as_ref()
    }

    pub(crate) fn get_mut(&mut self, handle: H) -> Option<&mut T> {
        let (index, generation) = handle.parts();
        self.slots
            .get_mut(index as usize)
            .filter(|slot| slot.generation == generation)?
            .value
            .as_mut()
    }

    pub(crate) fn remove(&mut self, handle: H) -> Option<T> {
        let (index, generation) = handle.parts();
        let slot = self
            .slots
            .get_mut(index as usize)
            .filter(|slot| slot.generation == generation)?;
        let value = slot.value.take()?;
        self.len -= 1;
        // A slot whose generations are used up is retired rather than handed out twice.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free.push(index);
        }
        Some(value)
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
