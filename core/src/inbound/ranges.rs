//! A bounded set of numbers, kept as inclusive ranges.
//!
//! Decides: which range is forgotten when there are too many (the lowest). Leaves to others: what being in the set means. Believes:
//! no clock. Bounded by: `N` ranges and a floor below which nothing is known; no call loops over the numbers in a range.

/// At most `N` disjoint inclusive ranges, and a floor: of a number below it the set cannot say whether it was ever in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges<const N: usize> {
    ranges: [(u64, u64); N],
    len: usize,
    floor: u64,
}

impl<const N: usize> Default for Ranges<N> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<const N: usize> Ranges<N> {
    /// The empty set that knows everything from `floor` up.
    pub const fn new(floor: u64) -> Self {
        Self {
            ranges: [(0, 0); N],
            len: 0,
            floor,
        }
    }

    /// The lowest number the set can answer for.
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// How many ranges are kept, at most `N`.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Nothing is in the set.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ranges, lowest first, disjoint and not touching.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.ranges[..self.len]
    }

    /// `number` is at or above the floor and in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.find(number).is_ok()
    }

    /// Adds `first..=last`, joining what it overlaps or touches. What lies below the floor is left out; a range that does not fit
    /// costs the lowest one, and the floor rises above it. An upside-down range is empty.
    pub fn insert(&mut self, first: u64, last: u64) {
        let (mut first, mut last) = (first.max(self.floor), last);
        if first > last {
            return;
        }
        let from = self
            .as_slice()
            .partition_point(|r| r.1 < first.saturating_sub(1));
        let to = self
            .as_slice()
            .partition_point(|r| r.0 <= last.saturating_add(1));
        if from < to {
            first = first.min(self.ranges[from].0);
            last = last.max(self.ranges[to - 1].1);
        }
        self.replace(from, to, &[(first, last)]);
    }

    /// Takes `number` out; `true` when it was in. Splitting a range may cost the lowest one.
    pub fn remove(&mut self, number: u64) -> bool {
        let Ok(at) = self.find(number) else {
            return false;
        };
        let (first, last) = self.ranges[at];
        match (first < number, number < last) {
            (false, false) => self.replace(at, at + 1, &[]),
            (true, false) => self.replace(at, at + 1, &[(first, number - 1)]),
            (false, true) => self.replace(at, at + 1, &[(number + 1, last)]),
            (true, true) => self.replace(at, at + 1, &[(first, number - 1), (number + 1, last)]),
        }
        true
    }

    /// Taking `number` out would cost the lowest range.
    pub fn costs_one(&self, number: u64) -> bool {
        let splits = |at: usize| self.ranges[at].0 < number && number < self.ranges[at].1;
        self.len == N && self.find(number).is_ok_and(splits)
    }

    fn find(&self, number: u64) -> Result<usize, usize> {
        self.as_slice().binary_search_by(|&(first, last)| {
            if last < number {
                core::cmp::Ordering::Less
            } else if first > number {
                core::cmp::Ordering::Greater
            } else {
                core::cmp::Ordering::Equal
            }
        })
    }

    /// Puts `with` (at most two) where `from..to` were.
    fn replace(&mut self, mut from: usize, mut to: usize, mut with: &[(u64, u64)]) {
        while self.len - (to - from) + with.len() > N {
            // The lowest of the result goes: it is either before the replaced part or the first of `with`.
            if from > 0 {
                self.floor = self.ranges[0].1.saturating_add(1);
                self.ranges.copy_within(1..self.len, 0);
                self.len -= 1;
                from -= 1;
                to -= 1;
            } else {
                let [(_, last), rest @ ..] = with else {
                    return;
                };
                self.floor = last.saturating_add(1);
                with = rest;
            }
        }
        self.ranges.copy_within(to..self.len, from + with.len());
        self.ranges[from..from + with.len()].copy_from_slice(with);
        self.len = self.len - (to - from) + with.len();
    }
}

#[cfg(test)]
mod tests;
