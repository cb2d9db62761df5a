//! Room for one more topic when every ring is taken.
//!
//! Decides: which topic goes. Leaves to others: whether there is to be a new one (registry). Believes: no clock. Bounded by: one pass over
//! all topics when some are empty, else a few lingering interests.
//!
//! What has nothing left goes first: the interests that matched it keep how far it had come as their floor, so that a position from before its
//! last publication is still `expired`. Then what nobody holds any more, for a topic somebody holds.

use alloc::vec::Vec;

use super::{Station, TopicId};

/// Empty topics closed at once at most.
const CLOSED: usize = 64;
/// Lingering interests ended for one topic at most.
const CUTS: usize = 16;

impl Station {
    /// Makes room for a topic that somebody holds, or is only recorded. False when there is none.
    pub(super) fn make_topic_room(&mut self, held: bool) -> bool {
        let limit = self.config.limits.topics;
        if self.topics.some_are_empty() {
            self.close_empty();
        }
        let mut cuts = if held { CUTS } else { 0 };
        while self.topics.len() >= limit && cuts > 0 && self.cut_linger() {
            cuts -= 1;
        }
        self.topics.len() < limit
    }

    /// Closes topics whose rings are empty and whose readers know of all that was in them.
    fn close_empty(&mut self) {
        let empty = self.topics.iter().filter(|(_, topic)| topic.is_done());
        let empty: Vec<TopicId> = empty.map(|(id, _)| id).take(CLOSED).collect();
        for id in empty {
            let Some(gone) = self.topics.remove(id) else {
                continue;
            };
            for reader in gone.places.iter().map(|place| place.reader) {
                if let Some(reader) = self.readers.get_mut(reader) {
                    reader.leave(id);
                }
            }
            if let Some(realm) = self.realms.get_mut(&gone.realm) {
                realm.topics.remove(&gone.name);
                let interests = &mut realm.interests;
                interests.change_matching(&gone.name, |interest| {
                    interest.floor = interest.floor.max(gone.lost());
                });
            }
        }
    }
}
