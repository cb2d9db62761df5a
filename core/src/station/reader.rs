//! One wire subscription: which topics it reads, and where it is in each.
//!
//! Decides: which of its topics comes next (the oldest unread offset of the realm). Leaves to others: the rings. Believes: the
//! monotonic clock, for `progress`. Bounded by: one place per topic it matches, one entry per topic it is behind in.

use alloc::collections::BinaryHeap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use super::{ReaderId, TopicId};
use crate::arena::Arena;
use crate::time::Instant;
use crate::wire::EventStart;
use crate::{LinkId, RealmId};

/// A `progress` is written at least this often.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(10);

pub(super) type Readers = Arena<ReaderId, Reader>;

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) link: LinkId,
    /// The `id` of its `subscribe`.
    pub(super) id: u64,
    /// How its events begin.
    pub(super) start: EventStart,
    pub(super) realm: RealmId,
    pub(super) filter: String,
    /// Its topics with its place in each, sorted by topic.
    places: Vec<(TopicId, u32)>,
    behind: Behind,
    /// Whether it waits in its link's round.
    pub(super) queued: bool,
    /// A `progress` is due at its place.
    pub(super) progress_due: bool,
    pub(super) progress_at: Instant,
}

impl Reader {
    pub(super) fn new(now: Instant, link: LinkId, id: u64, realm: RealmId, filter: String) -> Self {
        Self {
            link,
            id,
            start: EventStart::new(id),
            realm,
            filter,
            places: Vec::new(),
            behind: Behind::default(),
            queued: false,
            progress_due: false,
            progress_at: now.saturating_add(PROGRESS_EVERY),
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = (TopicId, u32)> + '_ {
        self.places.iter().copied()
    }

    pub(super) fn join(&mut self, topic: TopicId, place: u32) {
        if let Err(at) = self
            .places
            .binary_search_by_key(&topic, |(topic, _)| *topic)
        {
            self.places.insert(at, (topic, place));
        }
    }

    /// Its place in `topic` is another one now.
    pub(super) fn moved(&mut self, topic: TopicId, place: u32) {
        if let Ok(at) = self
            .places
            .binary_search_by_key(&topic, |(topic, _)| *topic)
        {
            self.places[at].1 = place;
            self.behind.moved(topic, Some(place));
        }
    }

    /// `topic` is no more.
    pub(super) fn leave(&mut self, topic: TopicId) {
        let places = &mut self.places;
        if let Ok(at) = places.binary_search_by_key(&topic, |(topic, _)| *topic) {
            places.remove(at);
            self.behind.moved(topic, None);
        }
    }

    pub(super) fn place_in(&self, topic: TopicId) -> Option<u32> {
        let at = self
            .places
            .binary_search_by_key(&topic, |(topic, _)| *topic)
            .ok()?;
        Some(self.places[at].1)
    }

    /// It was level with `topic`, where its place is `place`; that now has an entry at `offset`. True when it has to be queued at its link.
    #[inline]
    pub(super) fn fall_behind(&mut self, offset: u64, topic: TopicId, place: u32) -> bool {
        match &mut self.behind.first {
            Some(_) => self.behind.push(offset, topic, place),
            // Put together where it stays: a handle that is moved just after it was written in parts is waited for.
            first => {
                *first = Some(Unread {
                    offset,
                    topic,
                    place: Some(place),
                });
            }
        }
        !self.queued
    }

    /// The oldest it has not read: what it reads next.
    #[inline]
    pub(super) fn unread(&self) -> Option<Unread> {
        self.behind.first
    }

    /// The offset at which the turn of another of its topics comes.
    #[inline]
    pub(super) fn until(&self) -> u64 {
        match self.behind.others.peek() {
            Some(Reverse((offset, _))) => *offset,
            None => u64::MAX,
        }
    }

    /// It has read what came next, and in the same topic what is before `offset`, or all.
    #[inline]
    pub(super) fn read_on(&mut self, offset: Option<u64>) {
        if !self.behind.others.is_empty() {
            return self.turn(offset);
        }
        match (offset, &mut self.behind.first) {
            (Some(offset), Some(first)) => first.offset = offset,
            (_, first) => *first = None,
        }
    }

    #[inline(never)]
    fn turn(&mut self, offset: Option<u64>) {
        let read = self.behind.first.take();
        self.behind.first = self.behind.others.pop().map(|Reverse((offset, topic))| {
            let place = self.place_in(topic);
            Unread {
                offset,
                topic,
                place,
            }
        });
        if let Some((offset, read)) = offset.zip(read)
            && let Some(place) = read.place
        {
            self.fall_behind(offset, read.topic, place);
        }
    }

    pub(super) fn has_something(&self) -> bool {
        self.progress_due || self.behind.first.is_some()
    }

    pub(super) fn memory(&self) -> usize {
        self.places.capacity() * size_of::<(TopicId, u32)>()
            + self.behind.others.capacity() * size_of::<(u64, TopicId)>()
            + self.filter.capacity()
    }
}

/// Where a reader goes on in one of its topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// The realm's offset of what it has not read.
    pub(super) offset: u64,
    pub(super) topic: TopicId,
    /// Its place there; `None` when the topic is no more.
    pub(super) place: Option<u32>,
}

/// The topics with something unread, by the realm's offset of it. Most readers have one, which needs no heap.
#[derive(Debug, Default)]
struct Behind {
    first: Option<Unread>,
    /// None of them is before the first.
    others: BinaryHeap<Reverse<(u64, TopicId)>>,
}

impl Behind {
    /// Adds one where there is a first.
    #[inline(never)]
    fn push(&mut self, offset: u64, topic: TopicId, place: u32) {
        let mut later = Unread {
            offset,
            topic,
            place: Some(place),
        };
        if let Some(first) = &mut self.first
            && offset < first.offset
        {
            core::mem::swap(first, &mut later);
        }
        self.others.push(Reverse((later.offset, later.topic)));
    }

    /// The reader's place in a topic is another one now.
    fn moved(&mut self, topic: TopicId, place: Option<u32>) {
        if let Some(first) = &mut self.first
            && first.topic == topic
        {
            first.place = place;
        }
    }
}
