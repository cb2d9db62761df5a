//! What a station writes to a link.
//!
//! Decides: nothing; answers go first, then anycast, then the link's subscriptions in turn, each in its own order. Leaves to others: gathering frames
//! into writes (the driver). Believes: ages count from the last input's time. Bounded by: all queued answers at once, or one frame per call and
//! as many more as there is room for in what it is handed, 16 KiB at most. What is the same for every link is encoded once, and copied where that
//! is cheaper than sharing it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::reader::{Reader, Readers};
use super::registry::Realm;
use super::status::Counts;
use super::stretch::{Out, Stretches, Takes};
use super::topics::{self, Loss, Topics};
use super::{ReaderId, Station, StationSide, Task, TopicId};
use crate::action::Transmit;
use crate::time::Now;
use crate::wire::{Frame, Progress, Skipped, Via, event_head};
use crate::{LinkId, RealmId};

impl Station {
    /// The next bytes for a link, appended to `out`; `None` when there is nothing to send now. More than one frame as far as `out` has room without
    /// growing.
    pub fn poll_transmit(&mut self, link: LinkId, out: &mut Vec<u8>) -> Option<Transmit> {
        let side = self.links.get_mut(link)?;
        let mut out = Out::new(out);
        // What goes first was counted when it was queued.
        if !side.base.take_first(out.bytes) {
            if let Some((id, object)) = side.ones.pop_front() {
                self.ones_bytes -= object.len();
                self.counts.events += 1;
                event_head(out.bytes, id, Via::Direct, 0, object.len());
                out.lent = Some(object);
            } else {
                let mut shelf = Shelf {
                    now: self.now,
                    readers: &mut self.readers,
                    topics: &mut self.topics,
                    realms: &self.realms,
                    counts: &mut self.counts,
                    stretches: &mut self.stretches,
                };
                shelf.next_frames(side, &mut out);
                if out.is_empty() {
                    side.base.drained();
                    return None;
                }
            }
            side.base.handed(out.len());
        }
        let more = !side.ones.is_empty() || !side.round.is_empty();
        if !more {
            side.base.drained();
        }
        Some(Transmit {
            head: out.head(),
            body: out.lent,
            more,
        })
    }

    /// Puts a subscription into its link's round.
    pub(super) fn queue(&mut self, id: ReaderId) {
        let Some(reader) = self.readers.get_mut(id) else {
            return;
        };
        if reader.queued || !reader.has_something() {
            return;
        }
        let link = reader.link;
        if let Some(side) = self.links.get_mut(link)
            && side.queue(id, reader)
        {
            self.actions.push_back(Task::send(link));
        }
    }

    /// Tells every reader of a topic that was level, so that its place is at `position`, that there is something at `offset` to read.
    pub(super) fn wake(&mut self, id: TopicId, position: u64, offset: u64) {
        let Some(topic) = self.topics.get(id) else {
            return;
        };
        for (at, place) in topic.places.iter().enumerate() {
            if place.next == position
                && let Some(reader) = self.readers.get_mut(place.reader)
                && reader.fall_behind(offset, id, at as u32)
                && let link = reader.link
                && let Some(side) = self.links.get_mut(link)
                && side.push(place.reader, reader)
            {
                self.actions.push_back(Task::send(link));
            }
        }
    }
}

impl StationSide {
    /// Puts a subscription into the round. True when the link has to be announced.
    fn queue(&mut self, id: ReaderId, reader: &mut Reader) -> bool {
        self.is_live() && self.push(id, reader)
    }

    /// The same for a link that is live: one that ends takes its subscriptions with it.
    #[inline]
    fn push(&mut self, id: ReaderId, reader: &mut Reader) -> bool {
        debug_assert!(self.is_live(), "it has a subscription");
        reader.queued = true;
        self.round.push(id);
        self.base.take_ready(true)
    }
}

/// What the streams of a link are read from.
struct Shelf<'a> {
    now: Now,
    readers: &'a mut Readers,
    topics: &'a mut Topics,
    realms: &'a BTreeMap<RealmId, Realm>,
    counts: &'a mut Counts,
    stretches: &'a mut Stretches,
}

impl Shelf<'_> {
    /// Writes frames of the subscriptions that have some, in turn, until `out` is full; those that have nothing left leave the round.
    #[inline]
    fn next_frames(&mut self, side: &mut StationSide, out: &mut Out<'_>) {
        while let Some(id) = side.round.first() {
            let Some(reader) = self.readers.get_mut(id) else {
                side.round.pop();
                continue;
            };
            // Its `progress` has its place before what is unread.
            let turn = !core::mem::take(&mut reader.progress_due);
            if turn {
                let (topics, stretches) = (&mut *self.topics, &mut *self.stretches);
                write_unread(self.now, topics, stretches, self.counts, side, reader, out);
            } else {
                write_progress(self.now, self.realms, self.topics, reader, out.bytes);
            }
            if !reader.has_something() {
                reader.queued = false;
                side.round.pop();
            } else if turn {
                // The next subscription of this link has its turn.
                side.round.turn();
            }
            if out.is_full() {
                return;
            }
        }
    }
}

#[inline(never)]
fn write_progress(
    now: Now,
    realms: &BTreeMap<RealmId, Realm>,
    topics: &Topics,
    reader: &Reader,
    out: &mut Vec<u8>,
) {
    let (offset, behind) = match reader.unread() {
        None => {
            let realm = realms.get(&reader.realm);
            (realm.map_or(0, |realm| realm.offset), None)
        }
        Some(unread) => {
            let found = unread.place.zip(topics.get(unread.topic));
            let since = found.and_then(|(place, topic)| topic.unread_since(place));
            (unread.offset - 1, since)
        }
    };
    let behind_ms = behind.map_or(0, |since| topics::age_ms(now.longest_since(since)));
    Frame::Progress(Progress {
        id: reader.id,
        offset,
        behind_ms,
    })
    .encode_framed(out);
}

/// Writes what a reader gets next: one frame, and where nobody else of its link waits those that follow in the same topic.
#[inline]
fn write_unread(
    now: Now,
    topics: &mut Topics,
    stretches: &mut Stretches,
    counts: &mut Counts,
    side: &mut StationSide,
    reader: &mut Reader,
    out: &mut Out<'_>,
) {
    while let Some(unread) = reader.unread() {
        // A topic that is gone has nothing to read.
        let topic = topics.get_mut(unread.topic);
        let Some((place, topic)) = unread.place.zip(topic) else {
            reader.read_on(None);
            continue;
        };
        if topic.holds_answers() && !side.moved.contains(&unread.topic) {
            side.moved.push(unread.topic);
        }
        let takes = Takes {
            wall: now.wall,
            longest: side.longest,
            more: side.round.is_alone(),
        };
        if let Some(here) = topic.place(place) {
            let (events, next) = stretches.write(unread.topic, here, reader, takes, out);
            counts.events += events;
            if events > 0 {
                return reader.read_on(next);
            }
        }
        let lost = topic.pass(place, now);
        reader.read_on(topic.look_on(place));
        if let Some(loss) = lost {
            write_skipped(&loss, counts, reader.id, out.bytes);
            // No event moves its position past the loss, so that a resume would tell it again.
            reader.progress_due |= reader.unread().is_none();
            return;
        }
    }
}

#[inline(never)]
fn write_skipped(loss: &Loss, counts: &mut Counts, id: u64, out: &mut Vec<u8>) {
    // The window holds every one of them.
    let (from, to) = (topics::age_ms(loss.from), loss.to.as_millis() as u64);
    let skipped = Skipped {
        id,
        from,
        to,
        count: loss.count,
        reason: loss.reason,
        peer: None,
    };
    Frame::Skipped(skipped).encode_framed(out);
    counts.skips += 1;
    counts.skipped += loss.count;
}
