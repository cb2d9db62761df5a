//! The two indexes of a dedup: from a hash to the number of a slot.
//!
//! Decides: in which cell a number lies. Leaves to others: comparing keys, and the hashes. Believes: no clock. Bounded by: its groups; a
//! larger or smaller index takes over one group at a time, so no call moves more than a few entries.
//!
//! A group is one cache line of fifteen cells and a count of those that found it full and went on to the next. A cell holds a slot's
//! number and as many bits of the hash as are left, so a miss costs one line and no look at a slot, and removal needs neither tombstones nor
//! shifting. Both indexes share one storage, group by group.

/// Cells of a group.
const CELLS: usize = 15;

/// Entries per group at most, on average: one cell in five stays free.
pub(super) const LOAD: usize = 12;

/// One line of a dedup's index, empty by default. There are two for each twelve slots.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Group {
    /// The cells, then the number of entries that would be here but for want of a free cell: one array, to be compared as a whole.
    lanes: [u32; CELLS + 1],
}

impl Group {
    /// A group that holds nothing.
    pub const EMPTY: Self = Self {
        lanes: [0; CELLS + 1],
    };

    #[inline]
    fn passed(&mut self) -> &mut u32 {
        &mut self.lanes[CELLS]
    }

    /// The cells that equal `cell` in the bits of `mask`, as bits.
    #[inline]
    fn equal(&self, cell: u32, mask: u32) -> u32 {
        let mut hits = 0;
        for (lane, held) in self.lanes.iter().enumerate() {
            hits |= if (held ^ cell) & mask == 0 {
                1 << lane
            } else {
                0
            };
        }
        hits & ((1 << CELLS) - 1)
    }
}

/// The number of the lowest bit set.
#[inline]
fn lowest(bits: u32) -> Option<usize> {
    (bits != 0).then(|| bits.trailing_zeros() as usize)
}

/// Groups for as many slots, both indexes together.
pub const fn groups_for(slots: usize) -> usize {
    slots.div_ceil(LOAD) * 2
}

/// What a lookup goes by: which of the two indexes, and a hash uniform in all bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) which: usize,
    pub(super) hash: u64,
}

#[derive(Debug)]
pub(super) struct Index<I> {
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
impl Index<alloc::vec::Vec<Group>> {
    /// For at most `max` slots, growing.
    pub(super) fn heap(max: usize) -> Self {
        let mut index = Self::new(alloc::vec::Vec::new(), max);
        index.replace =
            Some(|groups, len| core::mem::replace(groups, alloc::vec![Group::EMPTY; len]));
        index
    }
}

impl<I: AsRef<[Group]> + AsMut<[Group]>> Index<I> {
    pub(super) fn new(groups: I, max: usize) -> Self {
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
    pub(super) fn find(&self, place: Place, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let groups = self.side(place);
        let mut at = home(groups, place);
        for _ in 0..groups.len() / 2 {
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
            if group.lanes[CELLS] == 0 {
                return None;
            }
            at = next(groups, at);
        }
        None
    }

    /// Something of the line where what has this hash is, or would be.
    #[inline]
    pub(super) fn peek(&self, place: Place) -> u32 {
        let groups = self.side(place);
        let group = groups.get(home(groups, place));
        group.map_or(0, |group| group.lanes[CELLS])
    }

    /// Adds a number. The owner never adds more than the index was made for.
    pub(super) fn insert(&mut self, place: Place, number: u32) {
        let cell = (place.hash as u32 & self.hash_bits) | (number + 1);
        put(self.side_mut(place), place, cell);
    }

    /// Takes a number out that is there.
    pub(super) fn remove(&mut self, place: Place, number: u32) {
        let hash_bits = self.hash_bits;
        let groups = self.side_mut(place);
        let mut at = home(groups, place);
        for _ in 0..groups.len() / 2 {
            let group = &mut groups[at];
            if let Some(lane) = lowest(group.equal(number + 1, !hash_bits)) {
                group.lanes[lane] = 0;
                return;
            }
            *group.passed() = group.passed().saturating_sub(1);
            at = next(groups, at);
        }
    }

    /// Sees to it that the index suits `slots` slots, and moves one group if it is moving; answers whether there was anything to do. `hash` knows
    /// the hash of a number. Called with each insertion at least, so that a larger index has taken over long before it is full.
    pub(super) fn adapt(&mut self, slots: usize, hash: impl Fn(usize, u32) -> u64) -> bool {
        if self.old.is_some() {
            self.move_group(hash);
            return true;
        }
        let Some(replace) = self.replace else {
            return false;
        };
        let len = self.groups.as_ref().len();
        let needed = groups_for(slots);
        let wanted = if needed > len {
            groups_for(slots.saturating_add(slots / GROWTH))
        } else if needed <= len / 4 {
            len / 2
        } else {
            return false;
        };
        let wanted = wanted.max(groups_for(SMALLEST)).min(groups_for(self.max));
        // Two groups make a pair, one for each index.
        let wanted = wanted.next_multiple_of(2);
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
    pub(super) fn memory(&self) -> usize {
        let old = self.old.as_ref().map_or(&[][..], AsRef::as_ref);
        size_of_val(self.groups.as_ref()) + size_of_val(old)
    }

    fn number(&self, cell: u32) -> Option<u32> {
        (cell & !self.hash_bits).checked_sub(1)
    }

    /// The storage in which what has this hash is, or would be.
    fn side(&self, place: Place) -> &[Group] {
        match &self.old {
            Some(old) if home(old.as_ref(), place) / 2 >= self.moved => old.as_ref(),
            _ => self.groups.as_ref(),
        }
    }

    fn side_mut(&mut self, place: Place) -> &mut [Group] {
        match &mut self.old {
            Some(old) if home(old.as_ref(), place) / 2 >= self.moved => old.as_mut(),
            _ => self.groups.as_mut(),
        }
    }

    /// Moves what belongs to the next group of the old storage, in both indexes.
    fn move_group(&mut self, hash: impl Fn(usize, u32) -> u64) {
        let Some(old) = self.old.as_mut().map(AsMut::as_mut) else {
            return;
        };
        for which in 0..2 {
            let first = self.moved * 2 + which;
            let mut at = first;
            for _ in 0..old.len() / 2 {
                let passed = *old[at].passed();
                for cell in 0..CELLS {
                    let held = old[at].lanes[cell];
                    let Some(number) = (held & !self.hash_bits).checked_sub(1) else {
                        continue;
                    };
                    let place = Place {
                        which,
                        hash: hash(which, number),
                    };
                    if home(old, place) != first {
                        continue;
                    }
                    old[at].lanes[cell] = 0;
                    let mut before = first;
                    while before != at {
                        let passed = old[before].passed();
                        *passed = passed.saturating_sub(1);
                        before = next(old, before);
                    }
                    put(self.groups.as_mut(), place, held);
                }
                if passed == 0 {
                    break;
                }
                at = next(old, at);
            }
        }
        self.moved += 1;
        if self.moved * 2 >= old.len() {
            self.old = None;
        }
    }
}

/// A growing index grows by this part, half of which is enough to move it in, a group at a time.
const GROWTH: usize = 6;

/// Slots a growing index has room for at least.
const SMALLEST: usize = 48;

/// Where a hash's first group lies; groups of the two indexes alternate.
#[inline]
fn home(groups: &[Group], place: Place) -> usize {
    let group = (u128::from(place.hash) * (groups.len() / 2) as u128) >> 64;
    group as usize * 2 + place.which
}

#[inline]
fn next(groups: &[Group], at: usize) -> usize {
    if at + 2 < groups.len() {
        at + 2
    } else {
        at & 1
    }
}

#[inline]
fn put(groups: &mut [Group], place: Place, cell: u32) {
    let mut at = home(groups, place);
    for _ in 0..groups.len() / 2 {
        let group = &mut groups[at];
        if let Some(lane) = lowest(group.equal(0, u32::MAX)) {
            group.lanes[lane] = cell;
            return;
        }
        *group.passed() += 1;
        at = next(groups, at);
    }
    unreachable!("an index has more cells than its owner has slots");
}

#[cfg(test)]
impl<I: AsRef<[Group]>> Index<I> {
    /// Whether no cell is taken and nobody was sent on.
    pub(super) fn is_blank(&self) -> bool {
        let old = self.old.iter().flat_map(|old| old.as_ref());
        let mut groups = self.groups.as_ref().iter().chain(old);
        groups.all(|group| group.lanes == [0; CELLS + 1])
    }
}
