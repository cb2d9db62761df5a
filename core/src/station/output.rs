//! What a station writes to a link.
//!
//! Decides: nothing; answers go first, then anycast, then the link's subscriptions in turn, each in its own order. Leaves to others: gathering frames
//! into writes (the driver). Believes: ages count from the last input's time. Bounded by: one frame per call, or all queued
//! answers at once; an event's body is shared by every link that gets it, and copied where that is cheaper.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;

use super::reader::{Reader, Readers};
use super::registry::Realm;
use super::status::Counts;
use super::topics::{self, Loss, Topics};
use super::{ReaderId, Station, StationSide, Task, TopicId};
use crate::action::{COPIED_BODY, Transmit};
use crate::time::Now;
use crate::wire::{Frame, Progress, Skipped, Via, event_head, event_start};
use crate::{LinkId, RealmId};

impl Station {
    /// The next bytes for a link, appended to `out`; `None` when there is nothing to send now.
    pub fn poll_transmit(&mut self, link: LinkId, out: &mut Vec<u8>) -> Option<Transmit> {
        let before = out.len();
        let side = self.links.get_mut(link)?;
        let mut body = None;
        // What goes first was counted when it was queued.
        if !side.base.take_first(out) {
            body = if let Some((id, object)) = side.ones.pop_front() {
                self.ones_bytes -= object.len();
                self.counts.events += 1;
                event_head(out, id, Via::Direct, 0, object.len());
                Some(object)
            } else {
                let mut shelf = Shelf {
                    now: self.now,
                    readers: &mut self.readers,
                    topics: &mut self.topics,
                    realms: &self.realms,
                    counts: &mut self.counts,
                };
                let Some(body) = shelf.next_frame(side, out) else {
                    side.base.drained();
                    return None;
                };
                body
            };
            let behind = body.as_ref().map_or(0, Bytes::len);
            side.base.handed(out.len() - before + behind);
        }
        let more = !side.ones.is_empty() || !side.round.is_empty();
        if !more {
            side.base.drained();
        }
        Some(Transmit {
            head: out.len() - before,
            body,
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
}

impl Shelf<'_> {
    /// Writes one frame of the first subscription that has one; those that have nothing left leave the round. Answers what of it was not
    /// copied.
    #[inline]
    fn next_frame(&mut self, side: &mut StationSide, out: &mut Vec<u8>) -> Option<Option<Bytes>> {
        while let Some(id) = side.round.first() {
            let Some(reader) = self.readers.get_mut(id) else {
                side.round.pop();
                continue;
            };
            // Its `progress` has its place before what is unread.
            let (body, turn) = match core::mem::take(&mut reader.progress_due) {
                true => {
                    write_progress(self.now, self.realms, self.topics, reader, out);
                    (Some(None), false)
                }
                false => {
                    let body = write_unread(self.now, self.topics, self.counts, side, reader, out);
                    (body, true)
                }
            };
            if !reader.has_something() {
                reader.queued = false;
                side.round.pop();
            } else if turn {
                // The next subscription of this link has its turn.
                side.round.turn();
            }
            if body.is_some() {
                return body;
            }
        }
        None
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

/// Writes what a reader gets next.
#[inline]
fn write_unread(
    now: Now,
    topics: &mut Topics,
    counts: &mut Counts,
    side: &mut StationSide,
    reader: &mut Reader,
    out: &mut Vec<u8>,
) -> Option<Option<Bytes>> {
    loop {
        let unread = reader.take_next()?;
        // A topic that is gone has nothing to read.
        let Some((place, topic)) = unread.place.zip(topics.get_mut(unread.topic)) else {
            continue;
        };
        if topic.holds_answers() && !side.moved.contains(&unread.topic) {
            side.moved.push(unread.topic);
        }
        let (mut body, mut lost) = (None, false);
        if let Some(entry) = topic.read(place, now, side.longest) {
            counts.events += 1;
            event_start(out, reader.id, entry.rest.len());
            if entry.rest.len() > COPIED_BODY {
                body = Some(entry.rest.clone());
            } else {
                out.extend_from_slice(&entry.rest);
            }
        } else if let Some(loss) = topic.pass(place, now) {
            write_skipped(&loss, counts, reader.id, out);
            lost = true;
        } else {
            continue;
        }
        if let Some(offset) = topic.look_on(place) {
            reader.fall_behind(offset, unread.topic, place);
        }
        if lost {
            // No event moves its position past the loss, so that a resume would tell it again.
            reader.progress_due |= reader.unread().is_none();
        }
        return Some(body);
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
