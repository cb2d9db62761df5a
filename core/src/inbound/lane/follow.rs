//! Which epochs a lane follows.
//!
//! Decides: the place of an epoch, which one makes room for it, and what is known when one begins, again or for the first time. Leaves to
//! others: the order inside an epoch. Believes: mono for what was heard longest ago, the wall of the subscription for what can be joined.
//! Bounded by: two epochs, what is left of a third, and the number of the greatest that was forgotten.

use super::{Followed, Guess, JOIN_TOLERANCE_MS, Lane, Mode, NOTES_PER_CALL, Note, Ranges, Slot};

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Lane<T, S> {
    /// The index of that epoch, which is followed from now on; `None` when something must be handed out first.
    pub(super) fn follow(&mut self, epoch: u64) -> Option<usize> {
        if let Some(index) = self.index_of(epoch) {
            return Some(index);
        }
        if !self.can_follow() {
            return None;
        }
        let index = self.next_index();
        let known = self.followed.iter().flatten().count() > 0;
        let greater = self
            .followed
            .iter()
            .flatten()
            .all(|followed| followed.epoch < epoch);
        let mut forgotten = core::mem::take(&mut self.resync);
        let old = self.followed[index].map(|old| old.epoch);
        let ended = old.and_then(|old| self.clashes.end(old));
        let at_one = !forgotten && self.starts_at_one(epoch);
        let back = self.replaced.take_if(|replaced| replaced.0 == epoch);
        // It may be the one that was forgotten, or be heard for the first time.
        let anew = back.is_none() && epoch <= self.lost;
        let (left, begun) = self.with_order(index, |order| {
            let left = order.leave();
            let begun = match back {
                Some((_, back)) => {
                    order.begin_after(epoch, &back, Ranges::new(back.edge.saturating_add(1)))
                }
                None if anew => order.begin_anew(epoch),
                None => order.begin(epoch, at_one),
            };
            (left, begun)
        });
        debug_assert!(begun, "can_follow asked the order");
        if let Some(left) = old.zip(left)
            && let Some((lost, _)) = self.replaced.replace(left)
        {
            self.lost = self.lost.max(lost);
        }
        forgotten |= anew;
        if let Some(clash) = ended {
            self.end_clash(clash);
        }
        self.followed[index] = Some(Followed {
            epoch,
            heard: self.clock,
        });
        self.mark_outdated();
        self.guess.commit(epoch);
        if forgotten {
            self.note(Note::Resynced { epoch });
        } else if known {
            self.stats.restarts += 1;
            self.note(Note::Restarted { epoch, greater });
        }
        Some(index)
    }

    pub(super) fn can_follow(&self) -> bool {
        let order = &self.orders[self.next_index()];
        order.can_begin() && order.has_room() && self.has_notes(NOTES_PER_CALL)
    }

    /// A free one, or that of the epoch heard longest ago.
    pub(super) fn next_index(&self) -> usize {
        let age =
            |index: usize| self.followed[index].map(|followed| (followed.heard, followed.epoch));
        usize::from(age(1) < age(0))
    }

    pub(super) fn index_of(&self, epoch: u64) -> Option<usize> {
        self.followed
            .iter()
            .position(|followed| followed.is_some_and(|f| f.epoch == epoch))
    }

    pub(super) fn greatest(&self) -> Option<usize> {
        let epoch = self
            .followed
            .iter()
            .flatten()
            .map(|followed| followed.epoch)
            .max()?;
        self.index_of(epoch)
    }

    pub(super) fn mark_outdated(&mut self) {
        let greatest = self.greatest();
        for (index, order) in self.orders.iter_mut().enumerate() {
            order.set_outdated(self.followed[index].is_some() && greatest != Some(index));
        }
    }

    pub(super) fn starts_at_one(&self, epoch: u64) -> bool {
        let joined = self.config.accepted_wall.saturating_add(JOIN_TOLERANCE_MS);
        !Guess::made_up(epoch) && epoch > joined.as_millis().saturating_mul(1000)
    }

    /// The epoch of a publication, made up where it has none.
    pub(super) fn epoch_of(&self, epoch: u64, seq: u64) -> u64 {
        if epoch != 0 {
            return epoch;
        }
        if self.config.mode == Mode::LatestOnly {
            let known = self
                .latest
                .current()
                .map_or((0, None), |(epoch, seq)| (epoch, Some(seq)));
            return self.guess.epoch_of(seq, &[known]);
        }
        let known = |index: usize| {
            self.followed[index].map_or((0, Some(0)), |f| (f.epoch, self.orders[index].edge()))
        };
        let first = self.greatest().unwrap_or(0);
        self.guess.epoch_of(seq, &[known(first), known(1 - first)])
    }
}
