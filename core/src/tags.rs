//! Small numbers for numberings: what the memory of one publication says about whose it was.
//!
//! Decides: which tag a numbering has, and whether the memory of one of its publications was given up early. Leaves to others: whether it
//! may be (the station's contiguous admission, the client's lanes). Believes: both clocks, and of the two the one that says last that a
//! numbering's last publication has expired. Bounded by: 65,536 numberings at most; a place that is used again has another tag, so that a tag
//! never answers for another numbering.

use alloc::vec::Vec;

use crate::rng::Rng;
use crate::table::{HeapTable, TableKey};
use crate::time::{Duration, Instant, Now, WallMs};

/// Rows that may be kept without being used.
const SLACK: usize = 16;

#[derive(Debug)]
struct Row<K, P> {
    key: K,
    kept: P,
    generation: u16,
    /// Up to this seq, memory may be gone: what comes again there is a copy.
    given_up: u64,
    /// Used since the hand last passed.
    used: bool,
    /// When its last publication expires: on the wall, and when as much monotonic time has gone by as it had left.
    until: WallMs,
    until_mono: Instant,
    /// It is in the index.
    live: bool,
}

/// Numberings by key, each with a tag and what its owner keeps for it.
#[derive(Debug)]
pub(crate) struct Tags<K, P> {
    index: HeapTable<K, u16>,
    rows: Vec<Row<K, P>>,
    /// Places of rows that are not live.
    free: Vec<u16>,
    capacity: usize,
    hand: usize,
    /// Above the generation of every row that was given back.
    generation: u16,
}

impl<K: TableKey + Copy, P: Default> Tags<K, P> {
    pub(crate) fn new(capacity: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.clamp(1, 1 << 16);
        Self {
            index: HeapTable::with_capacity(capacity, rng),
            rows: Vec::new(),
            free: Vec::new(),
            capacity,
            hand: 0,
            generation: 0,
        }
    }

    /// The tag of this numbering, made when there is none. `until`: when the publication at hand expires.
    pub(crate) fn tag(&mut self, now: Now, key: K, until: WallMs) -> u32 {
        let place = match self.index.get(&key) {
            Some(place) => *place,
            None => {
                let place = self.place_for(key);
                // There is room: a live row is an entry.
                let _before: Result<_, _> = self.index.insert(key, place);
                place
            }
        };
        let left = u64::try_from(until.since(now.wall)).unwrap_or(0);
        let row = &mut self.rows[usize::from(place)];
        row.used = true;
        row.until = row.until.max(until);
        let over = now.mono.saturating_add(Duration::from_millis(left));
        row.until_mono = row.until_mono.max(over);
        tag_of(place, row.generation)
    }

    fn place_for(&mut self, key: K) -> u16 {
        let fresh = |generation| Row {
            key,
            kept: P::default(),
            generation,
            given_up: 0,
            used: true,
            until: WallMs::new(0),
            until_mono: Instant::ORIGIN,
            live: true,
        };
        if let Some(place) = self.free.pop() {
            let row = &mut self.rows[usize::from(place)];
            *row = fresh(row.generation.wrapping_add(1));
            return place;
        }
        if self.rows.len() < self.capacity {
            self.rows.push(fresh(self.generation));
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

    /// Lets numberings go whose last publication has expired, and gives rows at the end back.
    pub(crate) fn sweep(&mut self, now: Now) {
        for (place, row) in self.rows.iter_mut().enumerate() {
            if row.live && now.wall > row.until && now.mono >= row.until_mono {
                row.live = false;
                self.index.remove(&row.key);
                self.free.push(place as u16);
            }
        }
        while let Some(row) = self.rows.pop_if(|row| !row.live) {
            self.generation = self.generation.max(row.generation.wrapping_add(1));
        }
        let rows = self.rows.len();
        self.free.retain(|place| usize::from(*place) < rows);
        if self.rows.capacity() > 2 * rows + SLACK {
            self.rows.shrink_to(rows + SLACK / 2);
            self.free.shrink_to(SLACK / 2);
        }
    }

    fn row(&self, tag: u32) -> Option<&Row<K, P>> {
        self.rows
            .get((tag & 0xffff) as usize)
            .filter(|row| row.live && row.generation == (tag >> 16) as u16)
    }

    fn row_mut(&mut self, tag: u32) -> Option<&mut Row<K, P>> {
        let generation = (tag >> 16) as u16;
        self.rows
            .get_mut((tag & 0xffff) as usize)
            .filter(|row| row.live && row.generation == generation)
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

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn memory(&self) -> usize {
        self.index.memory()
            + self.rows.capacity() * size_of::<Row<K, P>>()
            + self.free.capacity() * 2
    }
}

fn tag_of(place: u16, generation: u16) -> u32 {
    u32::from(place) | u32::from(generation) << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn a_numbering_goes_when_both_clocks_say_so_and_its_tag_names_no_other() {
        let mut tags: Tags<u64, ()> = Tags::new(100, &mut Seed::new([1; 32]).fork("tags"));
        let now = |mono, wall| Now::new(Instant::from_millis(mono), WallMs::new(wall));
        let first = tags.tag(now(0, 1000), 7, WallMs::new(2000));
        assert!(tags.give_up(first, 5, |_, ()| true));
        tags.sweep(now(5000, 2000));
        assert!(tags.may_be_copy(first, 5), "the wall has not passed");
        tags.sweep(now(999, 9000));
        assert!(tags.may_be_copy(first, 5), "mono has not");
        tags.sweep(now(1000, 2001));
        assert!(!tags.may_be_copy(first, 5));
        assert!(tags.is_empty());
        let again = tags.tag(now(1000, 2001), 8, WallMs::new(3000));
        assert_ne!(again, first);
        assert!(!tags.may_be_copy(again, 1));
    }

    #[test]
    fn places_in_the_middle_are_used_again_under_another_tag() {
        let mut tags: Tags<u64, ()> = Tags::new(4, &mut Seed::new([1; 32]).fork("tags"));
        let now = Now::new(Instant::ORIGIN, WallMs::new(0));
        let long = WallMs::new(1000);
        let short = WallMs::new(1);
        let old = [(1, short), (2, short), (3, long)].map(|(key, until)| tags.tag(now, key, until));
        let later = Now::new(Instant::from_millis(10), WallMs::new(10));
        tags.sweep(later);
        assert_eq!(tags.len(), 1);
        let new: Vec<u32> = (0..3).map(|n| tags.tag(later, 100 + n, long)).collect();
        assert_eq!(tags.len(), 4);
        assert!(new.iter().all(|tag| !old.contains(tag)));
    }
}
