//! Where a subscription begins to read.
//!
//! Decides: whether a position is covered, so that all after it is replayed, or not, so that reading begins now. Leaves to others: the
//! reading, which is the same for a replay. Believes: the wall, for what is not live any more. Bounded by: the rings of one realm.
//!
//! A position is covered when it is of this run, not from the future, not before the recording of its interest, and when no publication of
//! the filter after it was given up or has expired.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use super::reader::{PROGRESS_EVERY, Reader};
use super::timers::Timer;
use super::{ReaderId, Station, TopicId};
use crate::time::Now;
use crate::topic;
use crate::wire::{self, Frame, Position, ResumeOutcome};
use crate::{LinkId, RunId};

impl Station {
    /// Takes a subscription that may be taken, and answers it.
    pub(super) fn take(
        &mut self,
        now: Now,
        link: LinkId,
        wanted: &wire::Subscribe<'_>,
    ) -> Frame<'static> {
        let side = self.links.get_mut(link);
        let node = side.and_then(|side| side.base.peer().map(|peer| peer.id));
        if !self.realms.contains_key(&wanted.realm) {
            self.open_realm(wanted.realm, node);
        }
        let reader = self.readers.insert(Reader::new(
            now.mono,
            link,
            wanted.id,
            wanted.realm,
            wanted.filter.to_owned(),
        ));
        let progress_at = now.mono.saturating_add(PROGRESS_EVERY);
        self.timers.insert((progress_at, Timer::Progress(reader)));
        if let Some(side) = self.links.get_mut(link) {
            side.readers.insert(wanted.id, reader);
            side.filters += usize::from(topic::has_wildcard(wanted.filter));
        }
        let (position, resume) = self.begin(now, reader, wanted);
        self.queue(reader);
        Frame::Subscribed(wire::Subscribed {
            id: wanted.id,
            position,
            resume,
        })
    }

    /// Gives a reader its places. Answers where live reading begins, and what it reads before that.
    fn begin(
        &mut self,
        now: Now,
        reader: ReaderId,
        wanted: &wire::Subscribe<'_>,
    ) -> (Position, ResumeOutcome) {
        self.end_linger(&wanted.realm, wanted.filter);
        let Some(realm) = self.realms.get_mut(&wanted.realm) else {
            let run = RunId::new([0; 8]);
            return (Position { run, offset: 0 }, ResumeOutcome::None);
        };
        let position = Position {
            run: realm.run,
            offset: realm.offset,
        };
        let fresh = realm.interests.get(wanted.filter).is_none();
        let interest = realm.interests.entry(wanted.filter);
        if fresh {
            interest.floor = position.offset;
        }
        let floor = interest.floor;
        interest.holders.push(reader);
        let matching = realm.topics_of(wanted.filter);
        let mut matching: Vec<TopicId> = matching.map(|(_, topic)| *topic).collect();
        // In their order a place is appended, not inserted.
        matching.sort_unstable();
        let mut after = u64::MAX;
        let mut resume = ResumeOutcome::None;
        if let Some(asked) = wanted.resume {
            let whole = |id: &TopicId| self.topics.change(*id, |topic| topic.whole_after(now.wall));
            let gone = matching.iter().filter_map(whole).max();
            let floor = floor.max(gone.unwrap_or(0));
            let here = asked.run == position.run;
            if here && (floor..=position.offset).contains(&asked.offset) {
                after = asked.offset;
                resume = ResumeOutcome::Resumed { count: 0 };
                self.counts.resumed += 1;
            } else {
                resume = ResumeOutcome::Expired { oldest: floor + 1 };
                self.counts.resumes_expired += 1;
            }
        }
        let mut replayed = 0;
        for topic in matching {
            replayed += self.join(now, topic, reader, after);
        }
        if let ResumeOutcome::Resumed { count } = &mut resume {
            *count = replayed;
            self.counts.replayed += replayed;
        }
        (position, resume)
    }

    /// Gives a reader its place in a topic, behind what has an offset up to `after`. Answers how much waits for it there.
    pub(super) fn join(&mut self, now: Now, topic: TopicId, reader: ReaderId, after: u64) -> u64 {
        let (Some(found), Some(entry)) = (self.topics.get_mut(topic), self.readers.get_mut(reader))
        else {
            return 0;
        };
        let (place, count, unread) = found.join(now, reader, after);
        entry.join(topic, place);
        if let Some(offset) = unread {
            entry.fall_behind(offset, topic, place);
        }
        count
    }
}
