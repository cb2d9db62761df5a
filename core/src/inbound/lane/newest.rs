//! A lane that hands out only what is newest.
//!
//! Decides: what `latest` found becomes which item or answer. Leaves to others: the rule itself. Believes: mono. Bounded by: the slots of
//! the lane's first order, which keeps what waits for `poll`.

use super::notes::Note;
use super::{Admit, Lane, NOTES_PER_CALL, Offer, Slot};
use crate::inbound::latest::Judged;

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Lane<T, S> {
    pub(super) fn judge_latest(&mut self, epoch: u64, offer: &Offer, item: T) -> Admit<T> {
        if !self.latest_has_room(epoch) {
            return Admit::Busy(item);
        }
        self.guess.commit(epoch);
        if core::mem::take(&mut self.resync) {
            self.note(Note::Resynced { epoch });
        }
        let judged = self
            .latest
            .judge(self.clock, epoch, offer.seq, offer.replayed);
        let admit = match judged {
            Judged::Newer { restarted } => {
                if let Some(greater) = restarted {
                    self.stats.restarts += 1;
                    self.note(Note::Restarted { epoch, greater });
                }
                self.pass(epoch, offer.seq, item)
                    .map_or_else(Admit::Busy, |()| Admit::Taken)
            }
            Judged::Same if offer.copy_possible => Admit::Duplicate(item),
            Judged::Same => {
                self.note_clash(epoch, offer.seq);
                Admit::Conflict(item)
            }
            Judged::Superseded => Admit::Superseded(item),
        };
        if !offer.replayed {
            self.note_pair(epoch, offer.seq);
        }
        admit
    }

    pub(super) fn latest_has_room(&self, epoch: u64) -> bool {
        let known = self
            .latest
            .current()
            .is_some_and(|current| current.0 == epoch);
        let notes = if known {
            self.can_clash(epoch)
        } else {
            self.has_notes(NOTES_PER_CALL)
        };
        self.orders[0].has_room() && self.orders[0].has_epochs() && notes
    }
}
