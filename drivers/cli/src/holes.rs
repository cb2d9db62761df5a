//! Numbers of one lane that neither came nor were spoken of.
//!
//! Decides: which they are. Leaves to others: what that means. Believes: no clock. Bounded by: [`MOST`] ranges; numbers of further ones are counted,
//! and stay missing whatever is said of them later.

use std::collections::BTreeMap;

/// Ranges told apart.
const MOST: usize = 512;

/// A set of numbers.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    /// The last number of each range, by its first. Disjoint.
    ranges: BTreeMap<u64, u64>,
    /// Numbers of ranges there was no room for.
    more: u64,
}

impl Holes {
    /// A range that has no number in common with those that are here. One that is upside down is empty.
    pub(crate) fn open(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        if self.ranges.len() < MOST {
            self.ranges.insert(first, last);
        } else {
            self.more = self.more.saturating_add(last - first + 1);
        }
    }

    /// Takes out what is here of a range.
    pub(crate) fn fill(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        let before = self.ranges.range(..first).next_back();
        let from = before.map_or(first, |(from, _)| *from);
        let touched = self.ranges.range(from..=last);
        let touched = touched.map(|(from, to)| (*from, *to));
        let touched: Vec<(u64, u64)> = touched.filter(|(_, to)| *to >= first).collect();
        for (from, to) in touched {
            self.ranges.remove(&from);
            if from < first {
                self.open(from, first - 1);
            }
            if last < to {
                self.open(last + 1, to);
            }
        }
    }

    /// How many numbers are in it.
    pub(crate) fn count(&self) -> u64 {
        let ranges = self.ranges.iter().map(|(first, last)| last - first + 1);
        ranges.fold(self.more, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_exactly_what_was_named() {
        for first in 0..=12 {
            for last in first..=12 {
                let mut holes = Holes::default();
                let mut model: std::collections::BTreeSet<u64> = (3..=5).chain(8..=10).collect();
                holes.open(3, 5);
                holes.open(8, 10);
                holes.fill(first, last);
                model.retain(|n| !(first..=last).contains(n));
                let kept = holes.ranges.iter();
                let kept: Vec<u64> = kept.flat_map(|(first, last)| *first..=*last).collect();
                assert_eq!(kept, model.into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_there_is_no_room_for_stays_missing() {
        let mut holes = Holes::default();
        for n in 0..MOST as u64 + 5 {
            holes.open(2 * n, 2 * n);
        }
        holes.fill(0, u64::MAX);
        assert_eq!(holes.count(), 5);
        holes.open(7, 6);
        assert_eq!(holes.count(), 5);
    }
}
