//! What the small machines ask of the storage they own.
//!
//! Decides: in what steps heap storage grows and shrinks. Leaves to others: when. Believes: no clock. Bounded by: the `max` a machine
//! was built with; storage a caller handed in never changes its length.

/// How many slots a machine may come to use, and how it asks for another number of them. One machine serves every storage: for an
/// array or a slice `resize` does nothing, for a heap vector it allocates.
#[derive(Debug)]
pub(crate) struct Room<S> {
    pub(crate) max: usize,
    /// Whether asking can help.
    pub(crate) grows: bool,
    resize: fn(&mut S, usize),
}

impl<S> Room<S> {
    /// Storage that stays as it is.
    pub(crate) fn fixed(slots: usize) -> Self {
        Self {
            max: slots,
            grows: false,
            resize: |_, _| {},
        }
    }

    /// Asks for `slots` slots, at most `max`. The machine looks at the storage's length afterwards, not at this number.
    pub(crate) fn ask(&self, storage: &mut S, slots: usize) {
        (self.resize)(storage, slots.min(self.max));
    }
}

#[cfg(feature = "alloc")]
impl<T: Default> Room<alloc::vec::Vec<T>> {
    /// A vector of exactly as many slots as were asked for last.
    pub(crate) fn heap(max: usize) -> Self {
        Self {
            max,
            grows: true,
            resize: |storage, slots| {
                if slots > storage.len() {
                    storage.reserve_exact(slots - storage.len());
                    storage.resize_with(slots, T::default);
                } else {
                    storage.truncate(slots);
                    storage.shrink_to_fit();
                }
            },
        }
    }
}
