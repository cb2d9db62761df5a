//! Topics and their readers: one ring per topic, a position per reader, no queue per link.
//!
//! Decides: what a reader gets next, what it has lost, when a publisher may go on. Leaves to others: who may read (the registry), the
//! bytes on the wire (the link). Believes: admission times are both clocks; ages told to readers are monotonic. Bounded by:
//! `StationLimits::{topics, ring_items, ring_bytes, subscribers_per_topic}`; what a ring gives up is counted to each reader exactly.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::reader::{Reader, Readers};
use super::{ReaderId, TopicId};
use crate::arena::Arena;
use crate::code::SkipReason;
use crate::ring::HeapRing;
use crate::time::{Instant, WallMs};
use crate::{LinkId, RealmId};

/// How long a `published` waits for the slowest reader at most.
const PACE: Duration = Duration::from_secs(1);
/// How long a topic whose wait ran in full is not held again.
const PACE_REST: Duration = Duration::from_secs(30);

/// One admitted publication.
#[derive(Debug)]
pub(super) struct Entry {
    /// The object as received.
    pub(super) object: Bytes,
    /// The realm's offset of it.
    pub(super) offset: u64,
    /// When it was admitted.
    pub(super) admitted: Instant,
    /// When it stops being live.
    pub(super) expires_at: WallMs,
}

/// One reader's place in one topic.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) reader: ReaderId,
    /// The ring position it reads next.
    next: u64,
    /// Whether it has been level with the ring since it was accepted: only then it paces publishers.
    counts: bool,
    /// Admission of the last entry it read, or its acceptance: where a loss may begin.
    since: Instant,
}

/// A publisher's answer held back until the slowest reader is near enough.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) link: LinkId,
    pub(super) id: u64,
    pub(super) subscribers: u64,
    until: Instant,
}

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) realm: RealmId,
    pub(super) name: String,
    ring: HeapRing<Entry>,
    places: Vec<Place>,
    /// At most the slowest counting reader's position: a bound that is made exact when it matters.
    slowest: u64,
    held: VecDeque<Held>,
    not_held_until: Instant,
    /// Why the ring gave up its last entry.
    gave_up: SkipReason,
}

/// What a reader gets next.
#[derive(Debug)]
pub(super) enum Next {
    Event {
        object: Bytes,
        offset: u64,
    },
    Skipped {
        count: u64,
        from: Duration,
        to: Duration,
        reason: SkipReason,
    },
}

impl Topic {
    pub(super) fn new(realm: RealmId, name: String, ring_items: usize, ring_bytes: usize) -> Self {
        Self {
            realm,
            name,
            ring: HeapRing::with_capacity(ring_items, ring_bytes),
            places: Vec::new(),
            slowest: 0,
            held: VecDeque::new(),
            not_held_until: Instant::ORIGIN,
            gave_up: SkipReason::Overrun,
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
            + self.places.capacity() * size_of::<Place>()
            + self.held.capacity() * size_of::<Held>()
            + self.name.capacity()
    }

    /// A reader that wants what comes from now on. Answers where its place is.
    pub(super) fn join(&mut self, now: Instant, reader: ReaderId) -> u32 {
        let next = self.ring.end();
        self.places.push(Place {
            reader,
            next,
            counts: true,
            since: now,
        });
        if self.places.len() == 1 {
            self.slowest = next;
        }
        (self.places.len() - 1) as u32
    }

    /// Takes a reader out. Answers which reader moved into its place.
    pub(super) fn leave(&mut self, place: u32) -> Option<ReaderId> {
        self.places.swap_remove(place as usize);
        self.places.get(place as usize).map(|moved| moved.reader)
    }

    /// Adds a publication and tells every reader that was level that there is something to read.
    pub(super) fn admit(
        &mut self,
        topic: TopicId,
        entry: Entry,
        readers: &mut Arena<ReaderId, Reader>,
        woken: &mut Vec<ReaderId>,
    ) {
        let before = self.ring.end();
        let (offset, bytes) = (entry.offset, entry.object.len());
        if self.ring.len() == self.ring.capacity() {
            self.gave_up = SkipReason::Overrun;
        }
        self.ring.push(entry, bytes);
        for place in &self.places {
            if place.next == before
                && let Some(reader) = readers.get_mut(place.reader)
                && reader.fall_behind(offset, topic)
            {
                woken.push(place.reader);
            }
        }
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
        self.gave_up = reason;
        self.ring.give_up_oldest();
    }

    /// Reads the next entry for the reader at `place`, or what it lost before it. The second answer is the offset of the entry after
    /// it, if there is one.
    pub(super) fn read(
        &mut self,
        place: u32,
        now: Instant,
        longest: usize,
    ) -> Option<(Next, Option<u64>)> {
        let place = self.places.get_mut(place as usize)?;
        let start = self.ring.start();
        let next = if place.next < start {
            let count = start - place.next;
            place.next = start;
            let oldest = self.ring.get(start).map_or(now, |entry| entry.admitted);
            let from = now.saturating_since(place.since);
            place.since = oldest;
            Next::Skipped {
                count,
                from,
                to: now.saturating_since(oldest),
                reason: self.gave_up,
            }
        } else {
            let entry = self.ring.get(place.next)?;
            place.next += 1;
            place.since = entry.admitted;
            if entry.object.len() > longest {
                let age = now.saturating_since(entry.admitted);
                Next::Skipped {
                    count: 1,
                    from: age,
                    to: age,
                    reason: SkipReason::TooLarge,
                }
            } else {
                Next::Event {
                    object: entry.object.clone(),
                    offset: entry.offset,
                }
            }
        };
        if place.next == self.ring.end() {
            place.counts = true;
        }
        Some((next, self.ring.get(place.next).map(|entry| entry.offset)))
    }

    /// Whether a publisher may go on at once: every counting reader is at most half a ring behind.
    fn near_enough(&mut self) -> bool {
        let half = self.ring.capacity() as u64 / 2;
        let end = self.ring.end();
        if end.saturating_sub(self.slowest) > half {
            self.slowest = self
                .places
                .iter()
                .filter(|p| p.counts)
                .map(|p| p.next)
                .min()
                .unwrap_or(end);
        }
        end - self.slowest.min(end) <= half
    }

    /// Whether the answer to a publication of this topic is given now. When not, it is held.
    pub(super) fn pace(&mut self, now: Instant, link: LinkId, id: u64, subscribers: u64) -> bool {
        if now < self.not_held_until || (self.held.is_empty() && self.near_enough()) {
            return true;
        }
        self.held.push_back(Held {
            link,
            id,
            subscribers,
            until: now.saturating_add(PACE),
        });
        false
    }

    /// The answers that are due: all of them when the readers came near enough, or those that waited in full.
    pub(super) fn release(&mut self, now: Instant) -> Option<Held> {
        let oldest = self.held.front()?;
        if now >= oldest.until {
            self.not_held_until = now.saturating_add(PACE_REST);
        } else if now >= self.not_held_until && !self.near_enough() {
            return None;
        }
        self.held.pop_front()
    }

    /// When the oldest held answer is given anyway.
    pub(super) fn release_at(&self) -> Option<Instant> {
        self.held.front().map(|held| held.until)
    }

    pub(super) fn holds_answers(&self) -> bool {
        !self.held.is_empty()
    }

    /// Forgets answers held for a link that has ended.
    pub(super) fn forget_link(&mut self, link: LinkId) {
        self.held.retain(|held| held.link != link);
    }

    /// Up to when the reader of that place has all there was: the admission of its next entry, or, where that was given up, of the last
    /// one it read.
    pub(super) fn unread_since(&self, place: u32) -> Option<Instant> {
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

/// Topics and what they share.
pub(super) type Topics = Arena<TopicId, Topic>;

/// The ring that takes the most bytes: the one that gives up its oldest when the budget of all rings is spent.
pub(super) fn largest(topics: &Topics) -> Option<TopicId> {
    topics
        .iter()
        .max_by_key(|(_, topic)| topic.bytes())
        .map(|(id, _)| id)
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
