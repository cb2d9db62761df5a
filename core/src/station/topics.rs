//! Topics and their readers: one ring per topic, a position per reader, no queue per link.
//!
//! Decides: what a reader gets next, what it has lost, what a ring gives up. Leaves to others: who may read from where (registry, resume),
//! publishers that wait (pace). Believes: the wall for the life of publications; of ages both clocks, as mono may stand still in a suspend. Bounded by:
//! `StationLimits::{topics, ring_items, ring_bytes, subscribers_per_topic}`; what a ring gives up is counted to each reader exactly.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::pace::Pace;
use super::reader::{Reader, Readers};
use super::{ReaderId, TopicId};
use crate::arena::Arena;
use crate::code::SkipReason;
use crate::ring::HeapRing;
use crate::time::{Now, WallMs};
use crate::wire::{EVENT_REST, Via, event_rest};
use crate::{LinkId, RealmId};

/// One admitted publication.
#[derive(Debug)]
pub(super) struct Entry {
    /// What follows the id in its `event` frames, its object last: the same bytes for every link, so they are written once.
    pub(super) rest: Bytes,
    /// The object's bytes among them.
    length: usize,
    /// The realm's offset of it.
    pub(super) offset: u64,
    /// When it was admitted.
    pub(super) admitted: Now,
    /// When it stops being live.
    pub(super) expires_at: WallMs,
}

impl Entry {
    /// Bytes of its object.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn new(object: &[u8], offset: u64, admitted: Now, expires_at: WallMs) -> Self {
        let mut rest = Vec::with_capacity(EVENT_REST + object.len());
        event_rest(&mut rest, Via::Direct, offset);
        rest.extend_from_slice(object);
        Self {
            // Its spare room is given back: it stays for as long as the entry.
            rest: Bytes::from(rest.into_boxed_slice()),
            length: object.len(),
            offset,
            admitted,
            expires_at,
        }
    }
}

/// One reader's place in one topic.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) reader: ReaderId,
    /// The ring position it reads next.
    pub(super) next: u64,
    /// Whether it has been level with the ring since it was accepted: only then it paces publishers.
    pub(super) counts: bool,
    /// Admission of the last entry it read, or its acceptance: where a loss may begin.
    since: Now,
}

/// Publications that rings gave up, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GaveUp {
    pub(super) budget: u64,
    pub(super) expired: u64,
    pub(super) overrun: u64,
}

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) realm: RealmId,
    pub(super) name: String,
    pub(super) ring: HeapRing<Entry>,
    pub(super) places: Vec<Place>,
    pub(super) pace: Pace,
    /// The realm's offset of the last entry given up, when it was admitted, and why it went.
    lost: u64,
    lost_at: Now,
    lost_for: SkipReason,
    /// At most the first moment after which an entry held is not live any more.
    earliest: WallMs,
    /// Given up since the index of rings looked.
    gave_up: GaveUp,
}

/// What a reader is told that it does not get: so many, admitted between these ages.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) count: u64,
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) reason: SkipReason,
}

impl Place {
    /// The entry that comes next, unless something was lost before it.
    #[inline]
    pub(super) fn entry<'r>(
        &self,
        ring: &'r HeapRing<Entry>,
        wall: WallMs,
        longest: usize,
    ) -> Option<&'r Entry> {
        let entry = ring.get(self.next)?;
        let lost = entry.expires_at < wall || entry.length > longest;
        (!lost).then_some(entry)
    }

    /// The reader was handed `entry`, which came next.
    #[inline]
    pub(super) fn step(&mut self, entry: &Entry) {
        self.next += 1;
        self.since = entry.admitted;
    }

    /// The reader has all up to position `next`, the last of which was admitted then. Answers the offset of what comes next.
    pub(super) fn pass_to(
        &mut self,
        ring: &HeapRing<Entry>,
        next: u64,
        admitted: Now,
    ) -> Option<u64> {
        (self.next, self.since) = (next, admitted);
        self.look_on(ring)
    }

    /// The offset of what comes next, if there is anything; else the reader is level from now on.
    #[inline]
    pub(super) fn look_on(&mut self, ring: &HeapRing<Entry>) -> Option<u64> {
        let more = ring.get(self.next).map(|entry| entry.offset);
        self.counts |= more.is_none();
        more
    }

    /// Passes what is gone, what is here but not live any more, or, where neither is, what its link cannot take.
    fn pass(
        &mut self,
        now: Now,
        ring: &HeapRing<Entry>,
        (mut last, mut reason): (Now, SkipReason),
    ) -> Option<Loss> {
        let start = ring.start();
        let mut count = start.saturating_sub(self.next);
        self.next = self.next.max(start);
        while let Some(entry) = ring.get(self.next)
            && entry.expires_at < now.wall
        {
            count += 1;
            self.next += 1;
            (last, reason) = (entry.admitted, SkipReason::Expired);
        }
        let entry = ring.get(self.next);
        if count > 0 {
            let from = now.longest_since(self.since);
            self.since = entry.map_or(last, |entry| entry.admitted);
            return Some(Loss {
                count,
                from,
                to: now.shortest_since(last).min(from),
                reason,
            });
        }
        let entry = entry?;
        self.next += 1;
        self.since = entry.admitted;
        Some(Loss {
            count: 1,
            from: now.longest_since(entry.admitted),
            to: now.shortest_since(entry.admitted),
            reason: SkipReason::TooLarge,
        })
    }
}

impl Topic {
    pub(super) fn new(realm: RealmId, name: String, ring_items: usize, ring_bytes: usize) -> Self {
        Self {
            realm,
            name,
            ring: HeapRing::with_capacity(ring_items, ring_bytes),
            places: Vec::new(),
            pace: Pace::default(),
            lost: 0,
            lost_at: Now::default(),
            lost_for: SkipReason::Overrun,
            earliest: WallMs::new(u64::MAX),
            gave_up: GaveUp::default(),
        }
    }

    pub(super) fn readers(&self) -> usize {
        self.places.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.ring.bytes()
    }

    pub(super) fn memory(&self) -> usize {
        self.ring.memory()
            + self.ring.len() * EVENT_REST
            + self.places.capacity() * size_of::<Place>()
            + self.pace.memory()
            + self.name.capacity()
    }

    /// A reader that wants what has an offset above `after`. Answers where its place is, how much waits for it, and the offset of the first.
    pub(super) fn join(
        &mut self,
        now: Now,
        reader: ReaderId,
        after: u64,
    ) -> (u32, u64, Option<u64>) {
        let end = self.ring.end();
        let next = self.ring.partition_point(|entry| entry.offset <= after);
        let first = self.ring.get(next);
        self.places.push(Place {
            reader,
            next,
            counts: next == end,
            since: first.map_or(now, |entry| entry.admitted),
        });
        if self.places.len() == 1 {
            self.pace.slowest = next;
        }
        let unread = first.map(|entry| entry.offset);
        ((self.places.len() - 1) as u32, end - next, unread)
    }

    /// Takes a reader out. Answers which reader moved into its place.
    pub(super) fn leave(&mut self, place: u32) -> Option<ReaderId> {
        self.places.swap_remove(place as usize);
        self.places.get(place as usize).map(|moved| moved.reader)
    }

    /// Adds a publication. Answers its position: readers whose place is there were level, and have something to read now.
    pub(super) fn admit(&mut self, entry: Entry) -> u64 {
        let bytes = entry.length;
        while !self.ring.is_empty() && !self.ring.has_room(bytes) {
            self.give_up(match self.ring.len() == self.ring.capacity() {
                true => SkipReason::Overrun,
                false => SkipReason::Budget,
            });
        }
        self.earliest = match self.ring.is_empty() {
            true => entry.expires_at,
            false => self.earliest.min(entry.expires_at),
        };
        self.ring.push(entry, bytes)
    }

    /// Gives up what has expired at the old end. Only a prefix goes, so that positions stay whole.
    pub(super) fn expire(&mut self, wall: WallMs) {
        while self
            .ring
            .get(self.ring.start())
            .is_some_and(|entry| entry.expires_at < wall)
        {
            self.give_up(SkipReason::Expired);
        }
    }

    pub(super) fn give_up(&mut self, reason: SkipReason) {
        let Some((_, entry, _)) = self.ring.give_up_oldest() else {
            return;
        };
        (self.lost, self.lost_at, self.lost_for) = (entry.offset, entry.admitted, reason);
        match reason {
            SkipReason::Expired => self.gave_up.expired += 1,
            SkipReason::Overrun => self.gave_up.overrun += 1,
            _ => self.gave_up.budget += 1,
        }
    }

    /// The offset of the last publication given up.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether nothing is held, every reader knows that, and no publisher waits.
    pub(super) fn is_done(&self) -> bool {
        let end = self.ring.end();
        self.ring.is_empty()
            && !self.holds_answers()
            && self.places.iter().all(|place| place.next == end)
    }

    /// The lowest offset after which nothing of this topic is gone, or here but not live any more.
    pub(super) fn whole_after(&mut self, wall: WallMs) -> u64 {
        self.expire(wall);
        let mut last = self.lost;
        if self.earliest < wall {
            self.earliest = WallMs::new(u64::MAX);
            for at in self.ring.start()..self.ring.end() {
                let Some(entry) = self.ring.get(at) else {
                    continue;
                };
                self.earliest = self.earliest.min(entry.expires_at);
                if entry.expires_at < wall {
                    last = entry.offset;
                }
            }
        }
        last
    }

    /// A reader's place, and what is read from there.
    #[inline]
    pub(super) fn place(&mut self, place: u32) -> Option<(&mut Place, &HeapRing<Entry>)> {
        let place = self.places.get_mut(place as usize)?;
        Some((place, &self.ring))
    }

    /// What the reader at `place` has lost where it finds no [`entry`](Place::entry): what is gone, and what is here but not live any more, or
    /// else what its link cannot take.
    #[inline(never)]
    pub(super) fn pass(&mut self, place: u32, now: Now) -> Option<Loss> {
        let place = self.places.get_mut(place as usize)?;
        place.pass(now, &self.ring, (self.lost_at, self.lost_for))
    }

    /// The offset of what the reader at `place` reads next, if there is anything; else it is level from now on.
    pub(super) fn look_on(&mut self, place: u32) -> Option<u64> {
        let (place, ring) = self.place(place)?;
        place.look_on(ring)
    }

    /// Up to when the reader of that place has all there was: the admission of its next entry, or, where that was given up, of the last
    /// one it read.
    pub(super) fn unread_since(&self, place: u32) -> Option<Now> {
        let place = self.places.get(place as usize)?;
        if place.next < self.ring.start() {
            return Some(place.since);
        }
        self.ring.get(place.next).map(|entry| entry.admitted)
    }
}

/// Ages on the wire are whole milliseconds, rounded away from the reader's favour.
pub(super) fn age_ms(age: Duration) -> u64 {
    u64::try_from(age.as_micros().div_ceil(1000)).unwrap_or(u64::MAX >> 11)
}

/// The longest object that fits an event frame of at most `max_frame` bytes.
pub(super) fn longest_object(max_frame: u32) -> usize {
    (max_frame as usize).saturating_sub(crate::wire::MAX_HEAD)
}

/// Topics and what their rings take together.
#[derive(Debug, Default)]
pub(super) struct Topics {
    topics: Arena<TopicId, Topic>,
    /// The rings that hold something, by their bytes.
    sizes: BTreeSet<(usize, TopicId)>,
    bytes: usize,
    gave_up: GaveUp,
}

impl Topics {
    pub(super) fn len(&self) -> usize {
        self.topics.len()
    }

    /// Whether there are topics whose rings hold nothing.
    pub(super) fn some_are_empty(&self) -> bool {
        self.sizes.len() < self.topics.len()
    }

    pub(super) fn insert(&mut self, topic: Topic) -> TopicId {
        self.topics.insert(topic)
    }

    pub(super) fn get(&self, id: TopicId) -> Option<&Topic> {
        self.topics.get(id)
    }

    /// For everything but what a ring holds: see [`Self::change`].
    pub(super) fn get_mut(&mut self, id: TopicId) -> Option<&mut Topic> {
        self.topics.get_mut(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TopicId, &Topic)> {
        self.topics.iter()
    }

    /// Changes what a ring holds, and keeps its place among the others.
    pub(super) fn change<R>(
        &mut self,
        id: TopicId,
        change: impl FnOnce(&mut Topic) -> R,
    ) -> Option<R> {
        let topic = self.topics.get_mut(id)?;
        let before = topic.bytes();
        let result = change(topic);
        let after = topic.bytes();
        let gone = core::mem::take(&mut topic.gave_up);
        self.gave_up.budget += gone.budget;
        self.gave_up.expired += gone.expired;
        self.gave_up.overrun += gone.overrun;
        self.resize(id, before, after);
        Some(result)
    }

    fn resize(&mut self, id: TopicId, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.sizes.remove(&(before, id));
        if after > 0 {
            self.sizes.insert((after, id));
        }
        self.bytes = self.bytes - before + after;
    }

    pub(super) fn remove(&mut self, id: TopicId) -> Option<Topic> {
        let gone = self.topics.remove(id)?;
        self.resize(id, gone.bytes(), 0);
        Some(gone)
    }

    /// Bytes of all rings.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What all rings have given up.
    pub(super) fn gave_up(&self) -> GaveUp {
        self.gave_up
    }

    /// Gives up the oldest of the largest ring until all rings take at most `most` bytes.
    pub(super) fn shrink(&mut self, most: usize) {
        while self.bytes > most
            && let Some((_, largest)) = self.sizes.last().copied()
        {
            self.change(largest, |topic| topic.give_up(SkipReason::Budget));
        }
    }

    /// Gives up what has expired at the old end of every ring.
    pub(super) fn expire(&mut self, wall: WallMs) {
        let rings: Vec<TopicId> = self.sizes.iter().map(|(_, id)| *id).collect();
        for id in rings {
            self.change(id, |topic| topic.expire(wall));
        }
    }

    /// Forgets answers held for a link that has ended.
    pub(super) fn forget_link(&mut self, link: LinkId) {
        for (_, topic) in self.topics.iter_mut() {
            topic.forget_link(link);
        }
    }

    /// Bytes of its own tables, rings apart.
    pub(super) fn memory(&self) -> usize {
        self.topics.memory() + self.sizes.len() * 40
    }
}

/// Takes `reader` out of every topic it reads.
pub(super) fn leave_all(topics: &mut Topics, readers: &mut Readers, reader: &Reader) {
    for (topic, place) in reader.places() {
        let Some(found) = topics.get_mut(topic) else {
            continue;
        };
        if let Some(moved) = found.leave(place)
            && let Some(moved) = readers.get_mut(moved)
        {
            moved.moved(topic, place);
        }
    }
}
