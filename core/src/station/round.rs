//! Whose turn it is among a link's subscriptions.
//!
//! Decides: the order, first come, first served. Leaves to others: who is in it, at most once (`Reader::queued`). Believes: no clock. Bounded by:
//! the link's subscriptions. One that waits alone, as most do, lies beside its link and needs no queue.

use alloc::collections::VecDeque;

use super::ReaderId;

/// Subscriptions of one link that have something to read, in turn.
#[derive(Debug, Default)]
pub(super) struct Round {
    first: Option<ReaderId>,
    /// Empty where there is no first.
    others: VecDeque<ReaderId>,
}

impl Round {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Whether nobody waits beside the first.
    pub(super) fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// Whose turn it is.
    pub(super) fn first(&self) -> Option<ReaderId> {
        self.first
    }

    pub(super) fn push(&mut self, reader: ReaderId) {
        match self.first {
            None => self.first = Some(reader),
            Some(_) => self.others.push_back(reader),
        }
    }

    /// The first leaves.
    pub(super) fn pop(&mut self) {
        self.first = None;
        if !self.others.is_empty() {
            self.first = self.others.pop_front();
        }
    }

    /// The first goes behind the others.
    pub(super) fn turn(&mut self) {
        if let Some(next) = self.others.pop_front()
            && let Some(first) = self.first.replace(next)
        {
            self.others.push_back(first);
        }
    }

    /// Takes one out, wherever it waits.
    pub(super) fn remove(&mut self, reader: ReaderId) {
        if self.first == Some(reader) {
            self.pop();
        } else {
            self.others.retain(|other| *other != reader);
        }
    }

    pub(super) fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ReaderId> + '_ {
        self.first.into_iter().chain(self.others.iter().copied())
    }

    pub(super) fn memory(&self) -> usize {
        self.others.capacity() * size_of::<ReaderId>()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::arena::Handle;

    fn round(of: core::ops::Range<u32>) -> (Round, Vec<ReaderId>) {
        let ids: Vec<ReaderId> = of.map(|n| ReaderId::from_parts(n, 0)).collect();
        let mut round = Round::default();
        for id in &ids {
            round.push(*id);
        }
        (round, ids)
    }

    #[test]
    fn each_has_its_turn_before_any_has_another() {
        let (mut round, ids) = round(0..3);
        for _ in 0..2 {
            for id in &ids {
                assert_eq!(round.first(), Some(*id));
                round.turn();
            }
        }
        let (mut alone, ids) = self::round(0..1);
        alone.turn();
        assert_eq!(alone.first(), Some(ids[0]));
    }

    #[test]
    fn the_others_stay_in_order_when_one_leaves() {
        for gone in 0..3 {
            let (mut round, mut ids) = round(0..3);
            round.remove(ids.remove(gone));
            assert_eq!(round.iter().collect::<Vec<_>>(), ids);
            round.pop();
            assert_eq!(round.iter().collect::<Vec<_>>(), ids[1..]);
            round.pop();
            assert!(round.is_empty());
        }
        let (mut round, ids) = round(0..2);
        round.clear();
        assert!(round.is_empty());
        round.push(ids[1]);
        assert_eq!(round.iter().collect::<Vec<_>>(), ids[1..]);
    }
}
