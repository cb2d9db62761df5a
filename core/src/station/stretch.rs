//! Events of one topic in a row, as frames for one subscription.
//!
//! Decides: how many of them one call hands out, and whether what was written for one reader is what the next one gets. Leaves to others: where
//! readers are and what they have lost (topics), whose turn it is (output). Believes: the wall, for the life of publications. Bounded by: the room
//! there is, 16 KiB at most; for the whole station four times as much is kept.
//!
//! Readers that are level get the same events, but for the id of their subscription. Copying them all at once and putting the ids right costs
//! less than half of copying them one by one. The second reader in a row that comes to a place leaves its frames here, for those after it.

use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use super::TopicId;
use super::reader::Reader;
use super::topics::{Entry, Place};
use crate::action::COPIED_BODY;
use crate::ring::HeapRing;
use crate::time::{Now, WallMs};
use crate::wire::{EVENT_REST, EventStart};

/// Bytes handed out in one call where there is room: so much makes looking the link up cheap.
const MOST: usize = 16 * 1024;
/// The longest event that is copied.
const COPIED: usize = EventStart::MOST + EVENT_REST + COPIED_BODY;
/// So many publications in a row are worth keeping.
const WORTH: u64 = 4;
/// Stretches that are kept: what one write may hold, or one each of some topics.
const KEPT: usize = 4;

/// What goes out: bytes appended to what a driver handed over, and what is lent to it behind them.
#[derive(Debug)]
pub(super) struct Out<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
    pub(super) lent: Option<Bytes>,
    before: usize,
    end: usize,
}

impl<'a> Out<'a> {
    /// One frame, and as many more as there is room for without growing.
    #[inline]
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        let before = bytes.len();
        let room = bytes.capacity() - before;
        Self {
            bytes,
            lent: None,
            before,
            end: before + room.min(MOST),
        }
    }

    /// Bytes appended.
    #[inline]
    pub(super) fn head(&self) -> usize {
        self.bytes.len() - self.before
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.head() + self.lent.as_ref().map_or(0, Bytes::len)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head() == 0 && self.lent.is_none()
    }

    /// Whether what comes next, whatever it is, has to wait for the next call.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.lent.is_some() || self.bytes.len() + COPIED > self.end && self.head() > 0
    }

    /// One event.
    #[inline(always)]
    fn put(&mut self, start: &EventStart, entry: &Entry) {
        start.put(self.bytes, entry.rest.len());
        if entry.rest.len() > COPIED_BODY {
            self.lent = Some(entry.rest.clone());
        } else {
            self.bytes.extend_from_slice(&entry.rest);
        }
    }

    fn fits(&self, bytes: usize) -> bool {
        self.lent.is_none() && self.bytes.len() + bytes <= self.end
    }
}

/// What a link may be handed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    /// Only what lives now.
    pub(super) wall: WallMs,
    /// The longest object it takes.
    pub(super) longest: usize,
    /// More than one event, as none of its other subscriptions waits.
    pub(super) more: bool,
}

/// From where on a reader reads, and how long an id stands in its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    topic: TopicId,
    from: u64,
    start: usize,
}

/// The frames that readers were handed at one spot.
#[derive(Debug, Default)]
struct Stretch {
    spot: Option<Spot>,
    /// As they begin with this. None while one reader came there.
    start: EventStart,
    frames: Bytes,
    /// The position after the last of them, its offset, and when it was admitted.
    to: u64,
    offset: u64,
    admitted: Now,
    longest: usize,
    /// Until when all of them live.
    earliest: WallMs,
}

impl Stretch {
    /// Whether a reader that comes there gets just these frames.
    fn is_for(&self, ring: &HeapRing<Entry>, until: u64, takes: Takes, out: &Out<'_>) -> bool {
        !self.frames.is_empty()
            && self.spot.is_some_and(|spot| spot.from >= ring.start())
            && self.longest <= takes.longest
            && self.offset < until
            && self.earliest >= takes.wall
            && out.fits(self.frames.len())
    }

    /// Hands them out: lent where the subscription has the same id, else copied.
    fn hand_out(&self, start: &EventStart, out: &mut Out<'_>) {
        if *start == self.start {
            out.lent = Some(self.frames.clone());
            return;
        }
        let before = out.bytes.len();
        out.bytes.extend_from_slice(&self.frames);
        start.put_right(&mut out.bytes[before..]);
    }

    /// Keeps frames, one for each publication at these positions.
    fn fill(
        &mut self,
        ring: &HeapRing<Entry>,
        positions: Range<u64>,
        start: EventStart,
        frames: &[u8],
    ) {
        (self.start, self.frames) = (start, Bytes::copy_from_slice(frames));
        (self.to, self.longest, self.earliest) = (positions.end, 0, WallMs::new(u64::MAX));
        for entry in positions.filter_map(|at| ring.get(at)) {
            self.longest = self.longest.max(entry.length());
            self.earliest = self.earliest.min(entry.expires_at);
            (self.offset, self.admitted) = (entry.offset, entry.admitted);
        }
    }
}

/// The last spots that readers came to.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    kept: [Stretch; KEPT],
    /// The one that goes next.
    oldest: usize,
}

impl Stretches {
    /// Writes what the reader at `place` reads next: one event, or those that follow as well where that is worth it. Answers how many that was, and
    /// the offset of the next one. None: it has lost something before one, or there is none.
    #[inline]
    pub(super) fn write(
        &mut self,
        id: TopicId,
        (place, ring): (&mut Place, &HeapRing<Entry>),
        reader: &Reader,
        takes: Takes,
        out: &mut Out<'_>,
    ) -> (u64, Option<u64>) {
        if takes.more && ring.lag(place.next) >= WORTH {
            return self.write_many(id, (place, ring), reader, takes, out);
        }
        let Some(entry) = place.entry(ring, takes.wall, takes.longest) else {
            return (0, None);
        };
        out.put(&reader.start, entry);
        place.step(entry);
        (1, place.look_on(ring))
    }

    #[inline(never)]
    fn write_many(
        &mut self,
        id: TopicId,
        (place, ring): (&mut Place, &HeapRing<Entry>),
        reader: &Reader,
        takes: Takes,
        out: &mut Out<'_>,
    ) -> (u64, Option<u64>) {
        let (start, until) = (&reader.start, reader.until());
        let spot = Spot {
            topic: id,
            from: place.next,
            start: start.len(),
        };
        let known = self.kept.iter().find(|one| one.spot == Some(spot));
        if let Some(stretch) = known.filter(|one| one.is_for(ring, until, takes, out)) {
            stretch.hand_out(start, out);
            let next = place.pass_to(ring, stretch.to, stretch.admitted);
            return (stretch.to - spot.from, next);
        }
        let (before, mut events) = (out.bytes.len(), 0);
        while let Some(entry) = place.entry(ring, takes.wall, takes.longest)
            && (events == 0 || entry.offset < until && !out.is_full())
        {
            out.put(start, entry);
            place.step(entry);
            events += 1;
        }
        if events == 0 {
            return (0, None);
        }
        if events >= WORTH && out.lent.is_none() {
            let frames = out.bytes.get(before..).unwrap_or_default();
            self.note(ring, spot, place.next, start, frames);
        }
        (events, place.look_on(ring))
    }

    /// A reader was handed the events from this spot up to position `to`.
    fn note(
        &mut self,
        ring: &HeapRing<Entry>,
        spot: Spot,
        to: u64,
        start: &EventStart,
        frames: &[u8],
    ) {
        if let Some(stretch) = self.kept.iter_mut().find(|one| one.spot == Some(spot)) {
            if stretch.frames.is_empty() {
                stretch.fill(ring, spot.from..to, *start, frames);
            }
        } else if let Some(stretch) = self.kept.get_mut(self.oldest) {
            (stretch.spot, stretch.frames) = (Some(spot), Bytes::new());
            self.oldest = (self.oldest + 1) % KEPT;
        }
    }

    /// Lets go what has expired.
    pub(super) fn expire(&mut self, wall: WallMs) {
        for stretch in &mut self.kept {
            if stretch.earliest < wall {
                *stretch = Stretch::default();
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.kept.iter().map(|one| one.frames.len()).sum()
    }
}
