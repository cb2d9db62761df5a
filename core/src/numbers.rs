//! Indexes from a hash to a number: of the place where what is looked for lies.
//!
//! Decides: in which cell a number lies. Leaves to others: comparing keys, and the hashes. Believes: no clock. Bounded by: its groups; a
//! larger or smaller index takes over one group at a time, so no call moves more than a few entries.
//!
//! A group is one cache line of fifteen cells and a count of those that found it full and went on to the next. A cell holds a
//! number and as many bits of the hash as are left, so a miss costs one line and no look at a place, and removal needs neither tombstones nor
//! shifting. Several indexes, or ways, of the same numbers share one storage, group by group.

#[cfg(feature = "alloc")]
use crate::rng::Rng;
#[cfg(feature = "alloc")]
use crate::table::fold;

/// Cells of a group.
const CELLS: usize = 15;

/// Entries per group at most, on average: one cell in five stays free.
pub(crate) const LOAD: usize = 12;

/// One line of an index, empty by default. A dedup has two for each twelve slots.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Group {
    /// The cells, then which of them are taken, a bit each, and above these bits the number of entries that would be here but for want of a
    /// free cell: one array, to be compared as a whole.
    lanes: [u32; CELLS + 1],
}

/// One more in the count of those that went on. At its greatest it stays what it is.
const PASSED: u32 = 1 << CELLS;
const MOST_PASSED: u32 = u32::MAX - (PASSED - 1);

impl Group {
    /// A group that holds nothing.
    pub const EMPTY: Self = Self {
        lanes: [0; CELLS + 1],
    };

    /// Somebody found it full and went on.
    #[inline]
    fn was_passed(&self) -> bool {
        self.lanes[CELLS] >= PASSED
    }

    /// One more went on.
    #[inline]
    fn pass(&mut self) {
        if self.lanes[CELLS] < MOST_PASSED {
            self.lanes[CELLS] += PASSED;
        }
    }

    /// One of those that went on is gone.
    #[inline]
    fn unpass(&mut self) {
        if (PASSED..MOST_PASSED).contains(&self.lanes[CELLS]) {
            self.lanes[CELLS] -= PASSED;
        }
    }

    /// Fills the first free cell, if there is one.
    #[inline]
    fn fill(&mut self, cell: u32) -> bool {
        let lane = self.lanes[CELLS].trailing_ones() as usize;
        let free = lane < CELLS;
        if free {
            self.lanes[lane] = cell;
            self.lanes[CELLS] |= 1 << lane;
        }
        free
    }

    #[inline]
    fn clear(&mut self, lane: usize) {
        self.lanes[lane] = 0;
        self.lanes[CELLS] &= !(1 << lane);
    }

    /// The cells that equal `cell` in the bits of `mask`, each as the bit above its number; the bit of the last word means nothing. All words are
    /// compared and no bit is the lowest, because then four vectors of a plain x86-64 do it.
    #[inline]
    fn equal(&self, cell: u32, mask: u32) -> u32 {
        let mut hits = 0;
        for (lane, held) in self.lanes.iter().enumerate() {
            hits |= if (held ^ cell) & mask == 0 {
                2 << lane
            } else {
                0
            };
        }
        hits
    }
}

/// The lowest cell among these bits.
#[inline]
fn lowest(bits: u32) -> Option<usize> {
    let lane = bits.trailing_zeros().wrapping_sub(1) as usize;
    (lane < CELLS).then_some(lane)
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

#[derive(Debug)]
pub(crate) struct Index<I, const WAYS: usize> {
    groups: I,
    /// What was the index before, and how many of its groups have moved.
    old: Option<I>,
    moved: usize,
    /// Bits of a cell that hold hash; the others hold the number plus one.
    hash_bits: u32,
    max: usize,
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
    pub(crate) fn new(groups: I, max: usize) -> Self {
        let number_bits = usize::BITS - max.leading_zeros();
        Self {
            groups,
            old: None,
            moved: 0,
            hash_bits: u32::MAX.checked_shl(number_bits).unwrap_or(0),
            max,
            replace: None,
        }
    }

    /// The first number under a hash that `is_it` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, place: Place, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let groups = self.side(place);
        let mut at = home::<WAYS>(groups, place);
        for _ in 0..groups.len() / WAYS {
            let group = &groups[at];
            let mut hits = group.equal(place.hash as u32, self.hash_bits);
            while let Some(lane) = lowest(hits) {
                if let Some(number) = self.number(group.lanes[lane])
                    && is_it(number)
                {
                    return Some(number);
                }
                hits &= hits - 1;
            }
            if !group.was_passed() {
                return None;
            }
            at = next::<WAYS>(groups, at);
        }
        None
    }

    /// Something of the line where what has this hash is, or would be.
    #[inline]
    pub(crate) fn peek(&self, place: Place) -> u32 {
        let groups = self.side(place);
        let group = groups.get(home::<WAYS>(groups, place));
        group.map_or(0, |group| group.lanes[CELLS])
    }

    /// Adds a number. The owner never adds more than the index was made for.
    pub(crate) fn insert(&mut self, place: Place, number: u32) {
        let cell = (place.hash as u32 & self.hash_bits) | (number + 1);
        put::<WAYS>(self.side_mut(place), place, cell);
    }

    /// Takes a number out that is there.
    pub(crate) fn remove(&mut self, place: Place, number: u32) {
        let hash_bits = self.hash_bits;
        let groups = self.side_mut(place);
        let mut at = home::<WAYS>(groups, place);
        for _ in 0..groups.len() / WAYS {
            let group = &mut groups[at];
            if let Some(lane) = lowest(group.equal(number + 1, !hash_bits)) {
                group.clear(lane);
                return;
            }
            group.unpass();
            at = next::<WAYS>(groups, at);
        }
    }

    /// Sees to it that the index suits `slots` slots, and moves one group if it is moving; answers whether there was anything to do. `hash` knows
    /// the hash of a number. Called with each insertion at least, so that a larger index has taken over long before it is full.
    pub(crate) fn adapt(&mut self, slots: usize, hash: impl Fn(usize, u32) -> u64) -> bool {
        if self.old.is_some() {
            self.move_group(hash);
            return true;
        }
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

    #[inline]
    fn number(&self, cell: u32) -> Option<u32> {
        (cell & !self.hash_bits).checked_sub(1)
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
    fn move_group(&mut self, hash: impl Fn(usize, u32) -> u64) {
        let Some(old) = self.old.as_mut().map(AsMut::as_mut) else {
            return;
        };
        for which in 0..WAYS {
            let first = self.moved * WAYS + which;
            let mut at = first;
            for _ in 0..old.len() / WAYS {
                let passed = old[at].was_passed();
                for cell in 0..CELLS {
                    let held = old[at].lanes[cell];
                    let Some(number) = (held & !self.hash_bits).checked_sub(1) else {
                        continue;
                    };
                    let place = Place {
                        which,
                        hash: hash(which, number),
                    };
                    if home::<WAYS>(old, place) != first {
                        continue;
                    }
                    old[at].clear(cell);
                    let mut before = first;
                    while before != at {
                        old[before].unpass();
                        before = next::<WAYS>(old, before);
                    }
                    put::<WAYS>(self.groups.as_mut(), place, held);
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
    /// For at most `max` numbers, each below `max`: a greater one, or one inserted twice or removed without being there, is a defect of the caller and
    /// breaks what this answers. Nothing is allocated until the first.
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
        self.index.find(self.place(key), is_it)
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
    let group = (u128::from(place.hash) * (groups.len() / WAYS) as u128) >> 64;
    group as usize * WAYS + place.which
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
fn put<const WAYS: usize>(groups: &mut [Group], place: Place, cell: u32) {
    let mut at = home::<WAYS>(groups, place);
    for _ in 0..groups.len() / WAYS {
        let group = &mut groups[at];
        if group.fill(cell) {
            return;
        }
        group.pass();
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
        groups.all(|group| group.lanes == [0; CELLS + 1])
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
