//! What a station writes to a link.
//!
//! Decides: nothing; answers go first, then anycast, then the link's subscriptions in turn, each in its own order. Leaves to others: gathering frames
//! into writes (the driver). Believes: ages count from the last input's time. Bounded by: one frame per call, or all queued
//! answers at once; an event's body is shared by every link that gets it.

use alloc::vec::Vec;

use bytes::Bytes;

use super::topics::{self, Next};
use super::{ReaderId, Station};
use crate::LinkId;
use crate::action::Transmit;
use crate::wire::{Frame, Progress, Skipped, Via, event_head};

impl Station {
    /// The next bytes for a link, appended to `out`; `None` when there is nothing to send now.
    pub fn poll_transmit(&mut self, link: LinkId, out: &mut Vec<u8>) -> Option<Transmit> {
        let before = out.len();
        let side = self.links.get_mut(link)?;
        if side.base.take_first(out) {
            return Some(Transmit {
                head: out.len() - before,
                body: Bytes::new(),
                tail: 0,
            });
        }
        if let Some((id, object)) = side.ones.pop_front() {
            self.ones_bytes -= object.len();
            event_head(out, id, Via::Direct, 0, object.len());
            side.base.handed(out.len() - before + object.len());
            self.counts.events += 1;
            return Some(Transmit {
                head: out.len() - before,
                body: object,
                tail: 0,
            });
        }
        while let Some(reader) = self
            .links
            .get(link)
            .and_then(|side| side.round.front().copied())
        {
            if let Some(body) = self.write_next(link, reader, out) {
                if let Some(side) = self.links.get_mut(link) {
                    side.base.handed(out.len() - before + body.len());
                }
                return Some(Transmit {
                    head: out.len() - before,
                    body,
                    tail: 0,
                });
            }
            // Nothing left for this one: it leaves the round.
            if let Some(side) = self.links.get_mut(link) {
                side.round.pop_front();
            }
            if let Some(entry) = self.readers.get_mut(reader) {
                entry.queued = false;
            }
        }
        if let Some(side) = self.links.get_mut(link) {
            side.base.drained();
        }
        None
    }

    /// Writes one frame of a subscription's stream. Its `progress` has its place before what is unread.
    fn write_next(&mut self, link: LinkId, id: ReaderId, out: &mut Vec<u8>) -> Option<Bytes> {
        let side = self.links.get_mut(link)?;
        let longest = topics::longest_object(side.base.peer()?.max_frame);
        let reader = self.readers.get_mut(id)?;
        let now = self.now;
        if core::mem::take(&mut reader.progress_due) {
            let (offset, behind) = match reader.unread() {
                None => (
                    self.realms
                        .get(&reader.realm)
                        .map_or(0, |realm| realm.offset),
                    None,
                ),
                Some((unread, topic)) => {
                    let place = reader.place_in(topic);
                    let found = self.topics.get(topic);
                    let since = place
                        .zip(found)
                        .and_then(|(place, topic)| topic.unread_since(place));
                    (unread - 1, since)
                }
            };
            let behind_ms = behind.map_or(0, |since| topics::age_ms(now.longest_since(since)));
            Frame::Progress(Progress {
                id: reader.id,
                offset,
                behind_ms,
            })
            .encode_framed(out);
            return Some(Bytes::new());
        }
        let (topic_id, holds_answers, next, unread) = loop {
            let (_, topic_id) = reader.take_next()?;
            // A topic that is gone has nothing to read.
            let Some(place) = reader.place_in(topic_id) else {
                continue;
            };
            if let Some(topic) = self.topics.get_mut(topic_id)
                && let Some((next, unread)) = topic.read(place, now, longest)
            {
                break (topic_id, topic.holds_answers(), next, unread);
            }
        };
        if let Some(offset) = unread {
            reader.fall_behind(offset, topic_id);
        }
        if holds_answers && !side.moved.contains(&topic_id) {
            side.moved.push(topic_id);
        }
        // The next subscription of this link has its turn.
        if side.round.len() > 1
            && let Some(first) = side.round.pop_front()
        {
            side.round.push_back(first);
        }
        match next {
            Next::Event { object, offset } => {
                event_head(out, reader.id, Via::Direct, offset, object.len());
                self.counts.events += 1;
                Some(object)
            }
            Next::Skipped {
                count,
                from,
                to,
                reason,
            } => {
                // The window holds every one of them.
                let (from, to) = (topics::age_ms(from), to.as_millis() as u64);
                let skipped = Skipped {
                    id: reader.id,
                    from,
                    to,
                    count,
                    reason,
                    peer: None,
                };
                Frame::Skipped(skipped).encode_framed(out);
                self.counts.skips += 1;
                self.counts.skipped += count;
                // No event moves its position past the loss, so that a resume would tell it again.
                reader.progress_due |= reader.unread().is_none();
                Some(Bytes::new())
            }
        }
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
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        if !side.is_live() {
            return;
        }
        reader.queued = true;
        side.round.push_back(id);
        self.raise(link);
    }
}
