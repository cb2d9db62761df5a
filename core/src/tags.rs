//! Small numbers for numberings: what the memory of one publication says about whose it was.
//!
//! Decides: which tag a numbering has, and whether the memory of one of its publications was given up early. Leaves to others: whether it
//! may be (the station's contiguous admission, the client's lanes). Believes: no clock. Bounded by: 65,536 numberings at most; a place that
//! is used again has another tag, so that a tag never answers for another numbering.

use alloc::vec::Vec;

use crate::rng::Rng;
use crate::table::{HeapTable, TableKey};

#[derive(Debug)]
struct Row<K, P> {
    key: K,
    kept: P,
    generation: u16,
    /// Up to this seq, memory may be gone: what comes again there is a copy.
    given_up: u64,
    /// Used since the hand last passed.
    used: bool,
}

/// Numberings by key, each with a tag and what its owner keeps for it.
#[derive(Debug)]
pub(crate) struct Tags<K, P> {
    index: HeapTable<K, u16>,
    rows: Vec<Row<K, P>>,
    capacity: usize,
    hand: usize,
}

impl<K: TableKey + Copy, P: Default> Tags<K, P> {
    pub(crate) fn new(capacity: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.clamp(1, 1 << 16);
        Self {
            index: HeapTable::with_capacity(capacity, rng),
            rows: Vec::new(),
            capacity,
            hand: 0,
        }
    }

    /// The tag of this numbering, made when there is none.
    pub(crate) fn tag(&mut self, key: K) -> u32 {
        if let Some(place) = self.index.get(&key) {
            let place = *place;
            let row = &mut self.rows[usize::from(place)];
            row.used = true;
            return tag_of(place, row.generation);
        }
        let place = self.place_for(key);
        // There is room: a row in use is an entry.
        let _before: Result<_, _> = self.index.insert(key, place);
        tag_of(place, self.rows[usize::from(place)].generation)
    }

    fn place_for(&mut self, key: K) -> u16 {
        let fresh = |generation| Row {
            key,
            kept: P::default(),
            generation,
            given_up: 0,
            used: true,
        };
        if self.rows.len() < self.capacity {
            self.rows.push(fresh(0));
            return (self.rows.len() - 1) as u16;
        }
        // Second chance: one round clears every mark, so this ends.
        loop {
            self.hand = (self.hand + 1) % self.rows.len();
            let row = &mut self.rows[self.hand];
            if !core::mem::take(&mut row.used) {
                self.index.remove(&row.key);
                *row = fresh(row.generation.wrapping_add(1));
                return self.hand as u16;
            }
        }
    }

    fn row(&self, tag: u32) -> Option<&Row<K, P>> {
        self.rows
            .get((tag & 0xffff) as usize)
            .filter(|row| row.generation == (tag >> 16) as u16)
    }

    fn row_mut(&mut self, tag: u32) -> Option<&mut Row<K, P>> {
        let generation = (tag >> 16) as u16;
        self.rows
            .get_mut((tag & 0xffff) as usize)
            .filter(|row| row.generation == generation)
    }

    /// What its owner keeps for a numbering.
    pub(crate) fn kept_mut(&mut self, tag: u32) -> Option<&mut P> {
        self.row_mut(tag).map(|row| &mut row.kept)
    }

    /// Whether memory of this seq was given up: a publication that is not remembered may be a copy then.
    pub(crate) fn may_be_copy(&self, tag: u32, seq: u64) -> bool {
        self.row(tag).is_some_and(|row| seq <= row.given_up)
    }

    /// Gives the memory of a seq up when `covered` says that something else remembers it. Answers whether it did.
    pub(crate) fn give_up(
        &mut self,
        tag: u32,
        seq: u64,
        covered: impl FnOnce(&K, &P) -> bool,
    ) -> bool {
        match self.row_mut(tag) {
            Some(row) if covered(&row.key, &row.kept) => {
                row.given_up = row.given_up.max(seq);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn memory(&self) -> usize {
        self.index.memory() + self.rows.capacity() * size_of::<Row<K, P>>()
    }
}

fn tag_of(place: u16, generation: u16) -> u32 {
    u32::from(place) | u32::from(generation) << 16
}
