//! Indexes from a hash to a number: of the place where what is looked for lies.
//!
//! Decides: in which cell a number lies. Leaves to others: comparing keys, and the hashes. Believes: no clock. Bounded by: its groups; a
//! larger or smaller index takes over one group at a time, so no call moves more than a few entries.
//!
//! A group is one cache line of fifteen cells and a count of those that found it full and went on to the next. A cell holds a number and a tag, eight
//! bits of the hash. The tags of a group lie side by side and are compared at once, so a miss costs one line and mostly no look at a place, and removal
//! needs neither tombstones nor shifting. Several indexes, or ways, of the same numbers share one storage, group by group.

#[cfg(feature = "alloc")]
use crate::rng::Rng;
#[cfg(feature = "alloc")]
use crate::table::fold;

/// Cells of a group.
const CELLS: usize = 15;

/// Entries per group at most, on average: one cell in five stays free.
pub(crate) const LOAD: usize = 12;

/// Numbers are below this.
pub(crate) const MOST: usize = 1 << 24;

/// One line of an index, empty by default. A dedup has two for each twelve slots.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Group {
    /// Of each cell, 0 while it is free and never 1, so that no free one is taken for one that is not. The last is no cell's and stays 0.
    tags: [u8; CELLS + 1],
    numbers: [[u8; 3]; CELLS],
    /// Entries that would be here but for want of a free cell: those of even tags, and those of odd ones. At its greatest a count stays what it is.
    passed: [u8; 2],
}

/// The lowest bit of each byte of a word, and the highest.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHEST: u64 = ONES << 7;

impl Group {
    /// A group that holds nothing.
    pub const EMPTY: Self = Self {
        tags: [0; CELLS + 1],
        numbers: [[0; 3]; CELLS],
        passed: [0; 2],
    };

    /// Somebody with such a tag found it full and went on.
    #[inline]
    fn was_passed(&self, tag: u8) -> bool {
        self.passed[usize::from(tag % 2)] > 0
    }

    /// One more went on.
    #[inline]
    fn pass(&mut self, tag: u8) {
        let passed = &mut self.passed[usize::from(tag % 2)];
        *passed = passed.saturating_add(1);
    }

    /// One of those that went on is gone.
    #[inline]
    fn unpass(&mut self, tag: u8) {
        let passed = &mut self.passed[usize::from(tag % 2)];
        if (1..u8::MAX).contains(passed) {
            *passed -= 1;
        }
    }

    #[inline]
    fn number(&self, cell: usize) -> u32 {
        let [a, b, c] = self.numbers[cell];
        u32::from_le_bytes([a, b, c, 0])
    }

    /// Fills the first free cell, if there is one.
    #[inline]
    fn fill(&mut self, tag: u8, number: u32) -> bool {
        let Some(cell) = self.find(0, Some) else {
            return false;
        };
        let [a, b, c, _] = number.to_le_bytes();
        self.tags[cell] = tag;
        self.numbers[cell] = [a, b, c];
        true
    }

    /// Whether any cell may have this tag: mostly none has, and one comparison of them all says so.
    #[inline]
    fn has_tagged(&self, tag: u8) -> bool {
        let any = |any, held: &u8| any | (*held == tag);
        self.tags.iter().fold(false, any)
    }

    /// What `known` makes of the first number under a tag that it knows; what is `RARE` mostly is not there.
    #[inline(always)]
    fn look<const RARE: bool, T>(&self, tag: u8, known: impl Fn(u32) -> Option<T>) -> Option<T> {
        if RARE && !self.has_tagged(tag) {
            return None;
        }
        self.find(tag, |cell| known(self.number(cell)))
    }

    /// What `known` makes of the first cell with a tag that it knows.
    #[inline(always)]
    fn find<T>(&self, tag: u8, known: impl Fn(usize) -> Option<T>) -> Option<T> {
        let mut cells = equal(&self.tags, tag);
        while cells != 0 {
            let found = known(cells.trailing_zeros() as usize / 8);
            if found.is_some() {
                return found;
            }
            cells &= cells - 1;
        }
        None
    }
}

/// In which cells a tag is, the highest bit of a byte for each. The first one of each half is right; behind it one that differs in the lowest bit may be
/// among them.
#[inline]
fn equal(tags: &[u8; CELLS + 1], tag: u8) -> u128 {
    let (halves, _) = tags.as_chunks();
    let equal = |half: usize| {
        let differs = u64::from_le_bytes(halves[half]) ^ (u64::from(tag) * ONES);
        differs.wrapping_sub(ONES) & !differs
    };
    let (low, high) = (equal(0) & HIGHEST, equal(1) & HIGHEST >> 8);
    u128::from(low) | u128::from(high) << 64
}

/// Groups for as many slots of a dedup, both its indexes together.
pub const fn groups_for(slots: usize) -> usize {
    slots.div_ceil(LOAD) * 2
}

/// What a lookup goes by: which of the indexes, and a hash uniform in all bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) which: usize,
    pub(crate) hash: u64,
}

impl Place {
    /// What a cell keeps of its hash; [`home`] goes by the other end.
    #[inline]
    fn tag(self) -> u8 {
        (self.hash as u8).max(2)
    }
}

#[derive(Debug)]
pub(crate) struct Index<I, const WAYS: usize> {
    groups: I,
    /// What was the index before, and how many of its groups have moved.
    old: Option<I>,
    moved: usize,
    max: usize,
    /// So many slots it suits as it is.
    suited: usize,
    /// Puts storage of another length in place and answers the old one, if the storage can change.
    replace: Option<fn(&mut I, usize) -> I>,
}

#[cfg(feature = "alloc")]
impl<const WAYS: usize> Index<alloc::vec::Vec<Group>, WAYS> {
    /// For at most `max` slots, growing.
    pub(crate) fn heap(max: usize) -> Self {
        let mut index = Self::new(alloc::vec::Vec::new(), max);
        index.replace =
            Some(|groups, len| core::mem::replace(groups, alloc::vec![Group::EMPTY; len]));
        index
    }
}

impl<I: AsRef<[Group]> + AsMut<[Group]>, const WAYS: usize> Index<I, WAYS> {
    /// For at most `max` slots, [`MOST`] at most.
    pub(crate) fn new(groups: I, max: usize) -> Self {
        Self {
            groups,
            old: None,
            moved: 0,
            max,
            suited: usize::MAX,
            replace: None,
        }
    }

    /// What `known` makes of the first number under a hash that it knows.
    #[inline(always)]
    pub(crate) fn find<T>(&self, place: Place, known: impl Fn(u32) -> Option<T>) -> Option<T> {
        self.search::<false, T>(place, known)
    }

    /// The same, of what mostly is not there.
    #[inline(always)]
    pub(crate) fn find_rare<T>(&self, place: Place, known: impl Fn(u32) -> Option<T>) -> Option<T> {
        self.search::<true, T>(place, known)
    }

    #[inline(always)]
    fn search<const RARE: bool, T>(
        &self,
        place: Place,
        known: impl Fn(u32) -> Option<T>,
    ) -> Option<T> {
        let groups = self.side(place);
        let at = home::<WAYS>(groups, place);
        let (group, tag) = (groups.get(at)?, place.tag());
        let found = group.look::<RARE, T>(tag, &known);
        if found.is_some() {
            return found;
        }
        match group.was_passed(tag) {
            true => Self::search_behind(groups, at, tag, known),
            false => None,
        }
    }

    /// Among those that found the group at `at` full.
    #[inline(never)]
    fn search_behind<T>(
        groups: &[Group],
        mut at: usize,
        tag: u8,
        known: impl Fn(u32) -> Option<T>,
    ) -> Option<T> {
        for _ in 1..groups.len() / WAYS {
            at = next::<WAYS>(groups, at);
            let group = &groups[at];
            let found = group.look::<true, T>(tag, &known);
            if found.is_some() || !group.was_passed(tag) {
                return found;
            }
        }
        None
    }

    /// Something of the line where what has this hash is, or would be.
    #[inline]
    pub(crate) fn peek(&self, place: Place) -> u8 {
        let groups = self.side(place);
        let group = groups.get(home::<WAYS>(groups, place));
        group.map_or(0, |group| group.passed[0])
    }

    /// Adds a number. The owner never adds more than the index was made for.
    pub(crate) fn insert(&mut self, place: Place, number: u32) {
        put::<WAYS>(self.side_mut(place), place, number);
    }

    /// Takes a number out that is there.
    pub(crate) fn remove(&mut self, place: Place, number: u32) {
        let groups = self.side_mut(place);
        let mut at = home::<WAYS>(groups, place);
        for _ in 0..groups.len() / WAYS {
            let group = &mut groups[at];
            let is_it = |cell| (group.number(cell) == number).then_some(cell);
            if let Some(cell) = group.find(place.tag(), is_it) {
                group.tags[cell] = 0;
                return;
            }
            group.unpass(place.tag());
            at = next::<WAYS>(groups, at);
        }
    }

    /// Sees to it that the index suits `slots` slots, and moves one group if it is moving; answers whether there was anything to do. `hash` knows
    /// the hash of a number. Called with each insertion at least, so that a larger index has taken over long before it is full.
    #[inline]
    pub(crate) fn adapt(&mut self, slots: usize, hash: impl Fn(usize, u32) -> u64) -> bool {
        if self.old.is_some() {
            self.move_group(hash);
            return true;
        }
        if self.suited != slots {
            self.suited = if self.replace_for(slots) {
                usize::MAX
            } else {
                slots
            };
        }
        self.suited != slots
    }

    /// Begins an index that suits `slots` slots, unless this one does.
    #[inline(never)]
    fn replace_for(&mut self, slots: usize) -> bool {
        let Some(replace) = self.replace else {
            return false;
        };
        let len = self.groups.as_ref().len();
        let for_slots = |slots: usize| slots.div_ceil(LOAD) * WAYS;
        let needed = for_slots(slots);
        let most = for_slots(self.max);
        let wanted = if needed > len {
            let wanted = for_slots(slots.saturating_add(slots / GROWTH));
            // The last step is made early, so that it is over when the owner is full.
            let last = wanted.saturating_add(wanted / GROWTH) > most;
            if last { most } else { wanted }
        } else if needed <= len / 4 {
            len / 2
        } else {
            return false;
        };
        let wanted = wanted.max(for_slots(SMALLEST)).min(most);
        // One group for each index.
        let wanted = wanted.next_multiple_of(WAYS);
        if wanted == len {
            return false;
        }
        let old = replace(&mut self.groups, wanted);
        if !old.as_ref().is_empty() {
            self.old = Some(old);
            self.moved = 0;
        }
        true
    }

    /// Bytes of both storages.
    pub(crate) fn memory(&self) -> usize {
        let old = self.old.as_ref().map_or(&[][..], AsRef::as_ref);
        size_of_val(self.groups.as_ref()) + size_of_val(old)
    }

    /// The storage in which what has this hash is, or would be.
    #[inline]
    fn side(&self, place: Place) -> &[Group] {
        match &self.old {
            Some(old) if home::<WAYS>(old.as_ref(), place) / WAYS >= self.moved => old.as_ref(),
            _ => self.groups.as_ref(),
        }
    }

    fn side_mut(&mut self, place: Place) -> &mut [Group] {
        match &mut self.old {
            Some(old) if home::<WAYS>(old.as_ref(), place) / WAYS >= self.moved => old.as_mut(),
            _ => self.groups.as_mut(),
        }
    }

    /// Moves what belongs to the next group of the old storage, in both indexes.
    #[inline(never)]
    fn move_group(&mut self, hash: impl Fn(usize, u32) -> u64) {
        let Some(old) = self.old.as_mut().map(AsMut::as_mut) else {
            return;
        };
        for which in 0..WAYS {
            let first = self.moved * WAYS + which;
            let mut at = first;
            for _ in 0..old.len() / WAYS {
                let passed = old[at].passed != [0; 2];
                for cell in 0..CELLS {
                    if old[at].tags[cell] == 0 {
                        continue;
                    }
                    let number = old[at].number(cell);
                    let place = Place {
                        which,
                        hash: hash(which, number),
                    };
                    if home::<WAYS>(old, place) != first {
                        continue;
                    }
                    old[at].tags[cell] = 0;
                    let mut before = first;
                    while before != at {
                        old[before].unpass(place.tag());
                        before = next::<WAYS>(old, before);
                    }
                    put::<WAYS>(self.groups.as_mut(), place, number);
                }
                if !passed {
                    break;
                }
                at = next::<WAYS>(old, at);
            }
        }
        self.moved += 1;
        if self.moved * WAYS >= old.len() {
            self.old = None;
        }
    }
}

/// The numbers of places on the heap, found by 16 bytes of what lies there ([`TableKey::prefix`](crate::table::TableKey::prefix)): six bytes for each,
/// so that an index of a hundred thousand lies in a processor's cache. What has a place of its own anyway is looked up with one miss of memory.
///
/// ```
/// use tidings::table::{Numbers, TableKey};
/// use tidings::{NodeId, Seed};
///
/// let nodes = [NodeId::new([1; 32]), NodeId::new([2; 32])];
/// let mut index = Numbers::new(100, &mut Seed::new([7; 32]).fork("nodes"));
/// for (number, node) in (0..).zip(&nodes) {
///     index.insert(node.prefix(), number, |number| nodes[number as usize].prefix());
/// }
/// let number = index.find(nodes[1].prefix(), |number| nodes[number as usize] == nodes[1]);
/// assert_eq!(number, Some(1));
/// ```
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct Numbers {
    index: Index<alloc::vec::Vec<Group>, 1>,
    /// Secret, so that no stranger chooses what collides.
    secret: [u64; 2],
    len: usize,
}

#[cfg(feature = "alloc")]
impl Numbers {
    /// For at most `max` numbers, 2^24 at most, each below `max`: a greater one, or one inserted twice or removed without being there, is a defect of the
    /// caller and breaks what this answers. Nothing is allocated until the first.
    pub fn new(max: usize, rng: &mut Rng) -> Self {
        Self {
            index: Index::heap(max),
            secret: [rng.next_u64(), rng.next_u64()],
            len: 0,
        }
    }

    /// The number under these 16 bytes that `is_it` accepts.
    #[inline]
    pub fn find(&self, key: [u64; 2], is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let known = |number| is_it(number).then_some(number);
        self.index.find(self.place(key), known)
    }

    /// Adds a number that is not there; `key_of` knows the keys of those that are.
    pub fn insert(&mut self, key: [u64; 2], number: u32, key_of: impl Fn(u32) -> [u64; 2]) {
        self.len += 1;
        self.adapt(key_of);
        self.index.insert(self.place(key), number);
    }

    /// Takes a number out that is there; `key_of` knows the keys of those that stay.
    pub fn remove(&mut self, key: [u64; 2], number: u32, key_of: impl Fn(u32) -> [u64; 2]) {
        self.index.remove(self.place(key), number);
        self.len -= 1;
        self.adapt(key_of);
    }

    /// The places of two keys change.
    pub fn swap(&mut self, one: ([u64; 2], u32), other: ([u64; 2], u32)) {
        for (key, number) in [one, other] {
            self.index.remove(self.place(key), number);
        }
        for (key, number) in [(one.0, other.1), (other.0, one.1)] {
            self.index.insert(self.place(key), number);
        }
    }

    /// Bytes of the storage.
    pub fn memory(&self) -> usize {
        self.index.memory()
    }

    fn adapt(&mut self, key_of: impl Fn(u32) -> [u64; 2]) {
        let secret = self.secret;
        self.index.adapt(self.len, |_, number| {
            let [a, b] = key_of(number);
            fold(a ^ secret[0], b ^ secret[1])
        });
    }

    fn place(&self, [a, b]: [u64; 2]) -> Place {
        let hash = fold(a ^ self.secret[0], b ^ self.secret[1]);
        Place { which: 0, hash }
    }
}

/// A growing index grows by this part, half of which is enough to move it in, a group at a time.
const GROWTH: usize = 6;

/// Slots a growing index has room for at least.
const SMALLEST: usize = 48;

/// Where a hash's first group lies; groups of the two indexes alternate.
#[inline]
fn home<const WAYS: usize>(groups: &[Group], place: Place) -> usize {
    let group = (u128::from(place.hash) * groups.len() as u128) >> 64;
    group as usize / WAYS * WAYS + place.which
}

#[inline]
fn next<const WAYS: usize>(groups: &[Group], at: usize) -> usize {
    if at + WAYS < groups.len() {
        at + WAYS
    } else {
        at % WAYS
    }
}

#[inline]
fn put<const WAYS: usize>(groups: &mut [Group], place: Place, number: u32) {
    let mut at = home::<WAYS>(groups, place);
    for _ in 0..groups.len() / WAYS {
        let group = &mut groups[at];
        if group.fill(place.tag(), number) {
            return;
        }
        group.pass(place.tag());
        at = next::<WAYS>(groups, at);
    }
    unreachable!("an index has more cells than its owner has slots");
}

#[cfg(test)]
impl<I: AsRef<[Group]>, const WAYS: usize> Index<I, WAYS> {
    /// Whether no cell is taken and nobody was sent on.
    pub(crate) fn is_blank(&self) -> bool {
        let old = self.old.iter().flat_map(|old| old.as_ref());
        let mut groups = self.groups.as_ref().iter().chain(old);
        groups.all(|group| group.tags == [0; CELLS + 1] && group.passed == [0; 2])
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Seed;

    #[test]
    fn numbers_are_found_by_what_lies_at_their_places_through_growth_moves_and_shrinking() {
        let mut rng = Seed::new([3; 32]).fork("numbers");
        let mut numbers = Numbers::new(5000, &mut rng);
        let mut keys: Vec<[u64; 2]> = Vec::new();
        let check = |numbers: &Numbers, keys: &[[u64; 2]]| {
            for (place, key) in keys.iter().enumerate() {
                let found = numbers.find(*key, |number| keys[number as usize] == *key);
                assert_eq!(found, Some(place as u32));
            }
            assert_eq!(
                numbers.find([1, 2], |number| keys[number as usize] == [1, 2]),
                None
            );
        };
        for round in 0..4 {
            while keys.len() < 5000 {
                let key = [rng.next_u64(), rng.next_u64()];
                let place = keys.len() as u32;
                keys.push(key);
                numbers.insert(key, place, |number| keys[number as usize]);
                if place % 500 == 7 {
                    check(&numbers, &keys);
                }
            }
            check(&numbers, &keys);
            // Any one goes, and the last takes its place.
            while keys.len() > round {
                let place = rng.next_u64() as usize % keys.len();
                let last = keys.len() - 1;
                let gone = keys[place];
                if place != last {
                    numbers.swap((gone, place as u32), (keys[last], last as u32));
                    keys.swap(place, last);
                }
                keys.pop();
                numbers.remove(gone, last as u32, |number| keys[number as usize]);
                if keys.len() % 500 == 7 {
                    check(&numbers, &keys);
                }
            }
            check(&numbers, &keys);
            assert!(numbers.memory() < 4096);
        }
    }
}
