//! Small numbers for numberings: what the memory of one publication says about whose it was.
//!
//! Decides: which tag a numbering has, and whether the memory of one of its publications was given up early. Leaves to others: whether it
//! may be (the station's contiguous admission, the client's lanes). Believes: both clocks, and of the two the one that says last that a
//! numbering's last publication has expired. Bounded by: 65,536 numberings at most.
//!
//! A place that is used again has another tag, so that a tag never answers for another numbering. One whose tags are used up rests until
//! nothing can be remembered under any of them. Where no place is left a numbering gets the tag that names none: its memory is whole and lasts
//! as long as it should, it only is never given up early.

use alloc::vec::Vec;

use crate::numbers::Numbers;
use crate::rng::Rng;
use crate::table::TableKey;
use crate::time::{Duration, Instant, Now, WallMs};

/// Rows that may be kept without being used.
const SLACK: usize = 16;

/// The tag that names no numbering.
pub(crate) const NONE: u32 = u32::MAX;

/// The generation of a place that rests; no tag has it.
const RESTING: u16 = u16::MAX;

/// How long after their ends a dedup may still hold entries: its grain, and time to look at all that are due.
const REST: Duration = Duration::from_secs(600);

/// When the last of some publications expires: on the wall, and when as much monotonic time has gone by as it had left.
#[derive(Clone, Copy, Debug)]
struct End {
    wall: WallMs,
    mono: Instant,
}

impl End {
    const NEVER_USED: Self = Self {
        wall: WallMs::new(0),
        mono: Instant::ORIGIN,
    };

    fn max(self, other: Self) -> Self {
        Self {
            wall: self.wall.max(other.wall),
            mono: self.mono.max(other.mono),
        }
    }

    fn is_over(self, now: Now) -> bool {
        now.wall > self.wall && now.mono >= self.mono
    }

    /// Nothing is remembered of them any more.
    fn is_long_over(self, now: Now) -> bool {
        now.wall > self.wall && now.mono >= self.mono.saturating_add(REST)
    }
}

#[derive(Debug)]
struct Row<K, P> {
    key: K,
    kept: P,
    /// Of the tag it has, or will have when it is used again.
    generation: u16,
    /// Up to this seq, memory may be gone: what comes again there is a copy.
    given_up: u64,
    /// Used since the hand last passed.
    used: bool,
    end: End,
    /// Of those that had this place before.
    before: End,
    /// It is in the index.
    live: bool,
}

impl<K, P: Default> Row<K, P> {
    fn new(key: K, generation: u16, before: End) -> Self {
        Self {
            key,
            kept: P::default(),
            generation,
            given_up: 0,
            used: true,
            end: End::NEVER_USED,
            before,
            live: true,
        }
    }

    /// Ends the numbering. Answers whether the place can be used again.
    fn finish(&mut self) -> bool {
        self.live = false;
        self.before = self.before.max(self.end);
        self.generation = self.generation.saturating_add(1);
        self.generation < RESTING
    }
}

/// Numberings by key, each with a tag and what its owner keeps for it.
#[derive(Debug)]
pub(crate) struct Tags<K, P> {
    /// Of each numbering, its place.
    index: Numbers,
    rows: Vec<Row<K, P>>,
    /// Places of rows that are neither live nor resting.
    free: Vec<u16>,
    /// How many are live.
    len: usize,
    capacity: usize,
    hand: usize,
    /// Where the generations of a place begin that was given back: above all it had.
    generation: u16,
    /// Of all that had places that were given back.
    before: End,
}

impl<K: TableKey + Copy, P: Default> Tags<K, P> {
    pub(crate) fn new(capacity: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.clamp(1, 1 << 16);
        Self {
            index: Numbers::new(capacity, rng),
            rows: Vec::new(),
            free: Vec::new(),
            len: 0,
            capacity,
            hand: 0,
            generation: 0,
            before: End::NEVER_USED,
        }
    }

    /// The tag of this numbering, made when there is none; [`NONE`] when it cannot have one. `until`: when the publication at hand expires.
    pub(crate) fn tag(&mut self, now: Now, key: K, until: WallMs) -> u32 {
        self.tag_again(now, NONE, key, until)
    }

    /// [`tag`](Self::tag), which `hint` may be.
    pub(crate) fn tag_again(&mut self, now: Now, hint: u32, key: K, until: WallMs) -> u32 {
        let hinted = self.row(hint).is_some_and(|row| row.key == key);
        let known = match hinted {
            true => Some(hint as u16),
            false => self.place(&key),
        };
        let place = match known {
            Some(place) => place,
            None => {
                let Some(place) = self.place_for(key) else {
                    return NONE;
                };
                let rows = &self.rows;
                self.index
                    .insert(key.prefix(), place.into(), |place| prefix(rows, place));
                self.len += 1;
                place
            }
        };
        let left = u64::try_from(until.since(now.wall)).unwrap_or(0);
        let row = &mut self.rows[usize::from(place)];
        row.used = true;
        row.end = row.end.max(End {
            wall: until,
            mono: now.mono.saturating_add_millis(left),
        });
        tag_of(place, row.generation)
    }

    fn place(&self, key: &K) -> Option<u16> {
        let is_it = |place: u32| self.rows[place as usize].key == *key;
        let place = self.index.find(key.prefix(), is_it)?;
        Some(place as u16)
    }

    /// Ends the numbering of a row. Answers whether the place can be used again.
    fn finish(&mut self, place: usize) -> bool {
        let rows = &self.rows;
        let key = rows[place].key.prefix();
        self.index
            .remove(key, place as u32, |place| prefix(rows, place));
        self.len -= 1;
        self.rows[place].finish()
    }

    fn place_for(&mut self, key: K) -> Option<u16> {
        if let Some(place) = self.free.pop() {
            let row = &mut self.rows[usize::from(place)];
            *row = Row::new(key, row.generation, row.before);
            return Some(place);
        }
        if self.rows.len() < self.capacity {
            if self.rows.len() == self.rows.capacity() {
                self.rows.reserve_exact((self.rows.len() / 16).max(SLACK));
            }
            self.rows.push(Row::new(key, self.generation, self.before));
            return Some((self.rows.len() - 1) as u16);
        }
        if self.len == 0 {
            return None;
        }
        // Second chance: one round clears every mark, and the next ends it unless every place it comes to is used up.
        for _ in 0..=2 * self.rows.len() {
            self.hand = (self.hand + 1) % self.rows.len();
            let row = &mut self.rows[self.hand];
            if !row.live || core::mem::take(&mut row.used) {
                continue;
            }
            if self.finish(self.hand) {
                let row = &mut self.rows[self.hand];
                *row = Row::new(key, row.generation, row.before);
                return Some(self.hand as u16);
            }
        }
        None
    }

    /// Lets numberings go whose last publication has expired, and gives rows at the end back.
    pub(crate) fn sweep(&mut self, now: Now) {
        for place in 0..self.rows.len() {
            let row = &mut self.rows[place];
            let usable = if row.live && row.end.is_over(now) {
                self.finish(place)
            } else if row.generation == RESTING && row.before.is_long_over(now) {
                row.generation = 0;
                true
            } else {
                false
            };
            if usable {
                self.free.push(place as u16);
            }
        }
        if self.before.is_long_over(now) {
            self.generation = 0;
        }
        while let Some(row) = self
            .rows
            .pop_if(|row| !row.live && row.generation < RESTING)
        {
            self.generation = self.generation.max(row.generation);
            self.before = self.before.max(row.before);
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
        self.len
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

fn prefix<K: TableKey, P>(rows: &[Row<K, P>], place: u32) -> [u64; 2] {
    rows[place as usize].key.prefix()
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

    #[test]
    fn a_place_whose_tags_are_used_up_rests_until_nothing_can_be_remembered_under_them() {
        let mut tags: Tags<u32, ()> = Tags::new(2, &mut Seed::new([1; 32]).fork("tags"));
        let now = |ms| Now::new(Instant::from_millis(ms), WallMs::new(ms));
        let until = WallMs::new(1000);
        let mut seen = alloc::collections::BTreeSet::new();
        let all = 2 * u32::from(RESTING);
        for key in 0..all {
            let tag = tags.tag(now(0), key, until);
            assert!(tag != NONE && seen.insert(tag), "{key}");
        }
        // Those that hold the last tags keep them; who comes now takes them away and has none.
        let last = all - 1;
        let held = tags.tag(now(0), last, until);
        assert!(seen.contains(&held));
        for key in all..all + 10 {
            assert_eq!(tags.tag(now(0), key, until), NONE);
        }
        assert_eq!(tags.len(), 0);
        assert!(!tags.may_be_copy(NONE, 1) && !tags.give_up(NONE, 1, |_, ()| true));
        for (at, rested) in [(1001, false), (600_999, false), (601_000, true)] {
            tags.sweep(now(at));
            assert_eq!(tags.tag(now(at), 7, WallMs::new(at)) != NONE, rested);
        }
    }

    #[test]
    fn places_that_were_given_back_begin_above_the_tags_they_had_until_those_are_forgotten() {
        let mut tags: Tags<u32, ()> = Tags::new(1, &mut Seed::new([1; 32]).fork("tags"));
        let now = |ms| Now::new(Instant::from_millis(ms), WallMs::new(ms));
        let mut seen = alloc::collections::BTreeSet::new();
        for n in 0..u64::from(RESTING) {
            let tag = tags.tag(now(n), 1, WallMs::new(n));
            assert!(tag != NONE && seen.insert(tag), "{n}");
            tags.sweep(now(n + 1));
            assert_eq!(tags.len(), 0);
        }
        let end = u64::from(RESTING);
        assert_eq!(tags.tag(now(end), 1, WallMs::new(end)), NONE);
        tags.sweep(now(end + 600_000));
        assert!(tags.is_empty());
        assert_ne!(tags.tag(now(end + 600_000), 1, WallMs::new(end)), NONE);
    }
}
