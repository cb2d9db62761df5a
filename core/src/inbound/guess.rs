//! Epochs for publications that carry none.
//!
//! Decides: whether a number goes on from what is known or begins a new numbering. Leaves to others: the hold of the first facts,
//! and all that follows from an epoch. Believes: no clock. Bounded by: one number.

/// A number this far from the next one, in either direction, still belongs to the same numbering.
pub const JUMP: u64 = 10_000;

/// Made-up epochs stay below, those read from a clock (µs since 1970) above.
const CLOCKS: u64 = 1 << 32;

/// Makes up epochs: 1, 2, 3 and so on, one more for each restart that is seen. They are far below any epoch that is read from a
/// clock, so a publisher that begins to write its own is a greater one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guess {
    last: u64,
    sparse: bool,
}

impl Guess {
    /// For a publisher whose numbers are contiguous, or `sparse`: then no distance is a restart.
    pub const fn new(sparse: bool) -> Self {
        Self { last: 0, sparse }
    }

    /// A fact was taken under `epoch`; one that was made up is not made up again.
    pub fn commit(&mut self, epoch: u64) {
        if Self::made_up(epoch) {
            self.last = self.last.max(epoch);
        }
    }

    /// No clock would give `epoch`.
    pub const fn made_up(epoch: u64) -> bool {
        epoch != 0 && epoch < CLOCKS
    }

    /// The epoch of a publication with this number. `known` are the epochs that are followed, the one to try first first, each with
    /// its edge: all up to it was decided, and `None` while its first facts are held. Near the next number of one of them it belongs
    /// to that; else to one that is still holding; else it begins a new one. Changes nothing: `commit` follows when it was taken.
    pub fn epoch_of(&self, seq: u64, known: &[(u64, Option<u64>)]) -> u64 {
        let mut ours = known.iter().filter(|known| Self::made_up(known.0));
        if self.sparse {
            return ours
                .next()
                .map_or_else(|| self.next_epoch(), |known| known.0);
        }
        let near = |edge: u64| edge.saturating_add(1).abs_diff(seq) <= JUMP;
        let goes_on = ours.clone().find(|known| known.1.is_some_and(near));
        goes_on
            .or_else(|| ours.find(|known| known.1.is_none()))
            .map_or_else(|| self.next_epoch(), |known| known.0)
    }

    fn next_epoch(&self) -> u64 {
        (self.last + 1).min(CLOCKS - 1)
    }
}

#[cfg(test)]
mod tests;
