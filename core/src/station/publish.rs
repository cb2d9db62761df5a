//! A publication on its way through a station.
//!
//! Decides: whether it is admitted, and when its publisher is answered. Leaves to others: reading it (topics). Believes: the wall for its
//! life. Bounded by: `StationLimits::{publish_window, publication_bytes, dedup_entries, ring_bytes}`; each is a refusal or a counted loss.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::timers::Timer;
use super::topics::{self, Entry};
use super::{Station, TopicId};
use crate::LinkId;
use crate::client::Publish;
use crate::code::{ObjectFault, OutcomeCode, PublishRefusal};
use crate::inbound::dedup::NewEntry;
use crate::refusal::{Refusal, Refused};
use crate::tags;
use crate::time::Now;
use crate::topic;
use crate::wire::{self, Body, Draft, Frame, PayloadError, Publication, Published, Route};

/// Remembered publications looked at for one that may be given up.
const MAKE_ROOM: usize = 4096;

/// One publisher on one topic in one epoch.
fn numbering(publication: &Publication<'_>) -> [u8; 16] {
    let digest = Sha256::new()
        .chain_update(publication.publisher.as_bytes())
        .chain_update(publication.realm.as_bytes())
        .chain_update(publication.epoch.unwrap_or(0).to_be_bytes())
        .chain_update([u8::from(publication.one)])
        .chain_update(publication.topic.as_bytes())
        .finalize();
    let mut key = [0; 16];
    key.copy_from_slice(&digest[..16]);
    key
}

/// The numbers a publisher was last admitted under without a hole. A hole begins another run: what was before it is remembered to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    first: u64,
    last: u64,
}

impl Run {
    fn holds(&self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }

    fn admit(&mut self, seq: u64) {
        if self.last != 0 && seq == self.last + 1 {
            self.last = seq;
        } else if self.first != 0 && seq + 1 == self.first {
            self.first = seq;
        } else if seq > self.last {
            (self.first, self.last) = (seq, seq);
        }
    }
}

/// What became of a publication here.
enum Admission {
    /// It went into a ring.
    Admitted(TopicId),
    /// It was here before, or nobody wants it.
    Passed { subscribers: u64 },
}

impl Station {
    /// Answers a `publish`.
    pub(super) fn handle_publish(&mut self, now: Now, link: LinkId, frame: &wire::Publish<'_>) {
        let id = frame.id;
        let window = self.config.limits.publish_window;
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        if side.unanswered >= window {
            return self.refuse(link, id, PublishRefusal::WindowFull, Some(window as u64));
        }
        side.unanswered += 1;
        let publisher = side.base.peer().map(|peer| peer.id);
        let outcome = self.judge_publish(now, publisher, frame);
        match outcome {
            Ok(Admission::Admitted(topic)) => {
                let Some(found) = self.topics.get_mut(topic) else {
                    return;
                };
                let subscribers = found.readers() as u64;
                if found.pace(now.mono, link, id, subscribers) {
                    self.published(link, id, subscribers);
                } else if let Some(at) = found.release_at() {
                    self.timers.insert((at, Timer::Release(topic)));
                }
            }
            Ok(Admission::Passed { subscribers }) => self.published(link, id, subscribers),
            Err((reason, limit)) => {
                if let Some(side) = self.links.get_mut(link) {
                    side.unanswered -= 1;
                }
                self.refuse(link, id, reason, limit);
            }
        }
    }

    fn refuse(&mut self, link: LinkId, id: u64, reason: PublishRefusal, limit: Option<u64>) {
        self.counts.publications_refused += 1;
        let outcome = OutcomeCode::Refused;
        self.answer(
            link,
            &Frame::Published(Published {
                id,
                outcome,
                subscribers: 0,
                reason: Some(reason),
                limit,
            }),
        );
    }

    fn published(&mut self, link: LinkId, id: u64, subscribers: u64) {
        let outcome = match subscribers {
            0 => OutcomeCode::NoSubscriber,
            _ => OutcomeCode::Routed,
        };
        if let Some(side) = self.links.get_mut(link) {
            side.unanswered = side.unanswered.saturating_sub(1);
        }
        self.answer(
            link,
            &Frame::Published(Published {
                id,
                outcome,
                subscribers,
                reason: None,
                limit: None,
            }),
        );
    }

    fn judge_publish(
        &mut self,
        now: Now,
        from: Option<crate::NodeId>,
        frame: &wire::Publish<'_>,
    ) -> Result<Admission, (PublishRefusal, Option<u64>)> {
        let plain = |reason| (reason, None);
        if self.draining {
            return Err(plain(PublishRefusal::Draining));
        }
        let limit = self.config.limits.publication_bytes;
        if frame.publication.len() > limit {
            return Err((PublishRefusal::TooLarge, Some(limit as u64)));
        }
        let publication = Publication::parse(frame.publication, self.profile())
            .map_err(|fault| self.fault(fault))?;
        let from_gateway = from.is_some_and(|from| self.config.gateways.contains(&from));
        if from != Some(publication.publisher) && !from_gateway {
            return Err(plain(PublishRefusal::NotThePublisher));
        }
        if (frame.route == Route::One) != publication.one {
            return Err(plain(PublishRefusal::RouteMismatch));
        }
        self.admit(now, &publication)
    }

    fn fault(&mut self, fault: ObjectFault) -> (PublishRefusal, Option<u64>) {
        self.faults.add(fault);
        let reason = PublishRefusal::from_text(fault.text()).unwrap_or(PublishRefusal::Malformed);
        (reason, None)
    }

    /// Verifies once, remembers, and puts it where its readers are.
    fn admit(
        &mut self,
        now: Now,
        publication: &Publication<'_>,
    ) -> Result<Admission, (PublishRefusal, Option<u64>)> {
        let seen = self
            .dedup
            .signature_key(publication.publisher.as_bytes(), publication.signature);
        if self.dedup.check_signature(seen).is_some() {
            return Ok(self.copy(publication));
        }
        let hash = publication.hash();
        if self.dedup.check(&hash).is_some() {
            return Ok(self.copy(publication));
        }
        self.publishers
            .verify(publication)
            .map_err(|fault| self.fault(fault))?;
        publication
            .freshness(now.wall)
            .map_err(|(fault, _)| self.fault(fault))?;
        // Without an epoch a restart is not seen here, so nothing of such a numbering is forgotten early.
        let tag = match publication.epoch {
            None => tags::NONE,
            Some(_) => {
                let until = publication.expires_at();
                self.runs.tag(now, numbering(publication), until)
            }
        };
        let seq = publication.seq;
        if self.runs.may_be_copy(tag, seq)
            && self.runs.kept_mut(tag).is_some_and(|run| run.holds(seq))
        {
            return Ok(self.copy(publication));
        }
        let entry = NewEntry {
            id: &hash,
            signature: seen,
            until: publication.expires_at(),
            tag,
            seq,
        };
        if let Err(full) = self.dedup.commit(now, entry) {
            let runs = &mut self.runs;
            self.dedup
                .make_room(now, full, seen, MAKE_ROOM, |tag, seq| {
                    runs.give_up(tag, seq, |_, run| run.holds(seq))
                });
            if self.dedup.commit(now, entry).is_err() {
                self.counts.dedup_full += 1;
                let limit = self.config.limits.dedup_entries as u64;
                return Err((PublishRefusal::DedupFull, Some(limit)));
            }
        }
        if let Some(run) = self.runs.kept_mut(tag) {
            run.admit(seq);
        }
        self.arm_sweep(now);
        self.counts.admitted += 1;
        if publication.one {
            let subscribers = u64::from(self.send_to_one(publication));
            return Ok(Admission::Passed { subscribers });
        }
        let Some(topic) = self.topic_for(now, publication.realm, publication.topic) else {
            return Ok(Admission::Passed { subscribers: 0 });
        };
        self.put(now, topic, publication);
        Ok(Admission::Admitted(topic))
    }

    /// Anycast: one reader of the realm in turn, whose link has room. Answers whether there was one; else it is a dead letter, counted.
    fn send_to_one(&mut self, publication: &Publication<'_>) -> bool {
        let length = publication.bytes.len();
        let room = self.ones_bytes.saturating_add(length) <= self.config.limits.ones_bytes();
        let realm = self.realms.get_mut(&publication.realm);
        let Some(realm) = realm.filter(|_| room) else {
            self.counts.dead_letters += 1;
            return false;
        };
        let holders = realm.holders_of(publication.topic);
        realm.turn = realm.turn.wrapping_add(1);
        for step in 0..holders.len() {
            let Some(reader) = self
                .readers
                .get(holders[(realm.turn + step) % holders.len()])
            else {
                continue;
            };
            let Some(side) = self.links.get_mut(reader.link) else {
                continue;
            };
            if length <= side.longest
                && side.is_live()
                && side.ones.len() < self.config.limits.ones_per_link
            {
                let link = reader.link;
                self.ones_bytes += length;
                side.ones
                    .push_back((reader.id, Bytes::copy_from_slice(publication.bytes)));
                self.raise(link);
                return true;
            }
        }
        self.counts.dead_letters += 1;
        false
    }

    fn copy(&mut self, publication: &Publication<'_>) -> Admission {
        self.faults.add(ObjectFault::Duplicate);
        let topic = self
            .realms
            .get(&publication.realm)
            .and_then(|realm| realm.topics.get(publication.topic));
        let readers = topic
            .and_then(|topic| self.topics.get(*topic))
            .map_or(0, topics::Topic::readers);
        Admission::Passed {
            subscribers: readers as u64,
        }
    }

    fn put(&mut self, now: Now, id: TopicId, publication: &Publication<'_>) {
        let Some(realm) = self.realms.get_mut(&publication.realm) else {
            return;
        };
        realm.offset += 1;
        let offset = realm.offset;
        let expires_at = publication.expires_at();
        let entry = Entry::new(publication.bytes, offset, now, expires_at);
        let at = self.topics.change(id, |topic| {
            topic.expire(now.wall);
            topic.admit(entry)
        });
        if let Some(at) = at {
            self.wake(id, at, offset);
        }
        self.topics.shrink(self.config.limits.ring_bytes);
        let near = self
            .topics
            .get_mut(id)
            .and_then(|topic| topic.warn(now.mono));
        if let Some(lag) = near {
            self.warn(now, id, lag);
        }
    }

    /// Answers the publishers whose readers came near enough, or that waited in full.
    pub(super) fn release(&mut self, now: Now, id: TopicId) {
        let Some(topic) = self.topics.get_mut(id) else {
            return;
        };
        let mut due = Vec::new();
        let armed = topic.release_at();
        while let Some(held) = topic.release(now.mono) {
            due.push(held);
        }
        let next = topic.release_at();
        if armed != next {
            self.disarm(armed, Timer::Release(id));
        }
        if let Some(at) = next {
            self.timers.insert((at, Timer::Release(id)));
        }
        for held in due {
            self.published(held.link, held.id, held.subscribers);
        }
    }

    /// Publishes a fact of the station's own, under its identity, to every reader: `one` and `by` are a node's. Answers how many
    /// subscriptions it reached here.
    ///
    /// # Errors
    /// What [`crate::Client::publish`] refuses too; nothing was changed, no number was used.
    pub fn publish(&mut self, now: Now, request: Publish) -> Result<u64, Refused<Publish>> {
        let now = self.at(now);
        self.publish_own(now, &request)
            .map_err(|reason| Refused { reason, request })
    }

    fn publish_own(&mut self, now: Now, request: &Publish) -> Result<u64, Refusal> {
        if self.draining {
            return Err(Refusal::Closed);
        }
        topic::check_topic(&request.topic).map_err(Refusal::BadTopic)?;
        wire::check_payload(&request.payload)
            .map_err(|fault| Refusal::BadPayload(PayloadError::Cbor(fault)))?;
        let ttl_ms = request.ttl_ms()?;
        if now.wall.as_millis() == 0 {
            return Err(Refusal::UnsetClock);
        }
        let fresh = (now.wall.as_millis().saturating_mul(1000)).max(self.own_epoch + 1);
        let key = (request.realm, request.topic.to_owned());
        let (epoch, seq) = self
            .own
            .get(&key)
            .map_or((fresh, 1), |(epoch, last)| (*epoch, last + 1));
        let mut object = Vec::new();
        Draft {
            realm: request.realm,
            topic: &request.topic,
            publisher: self.id,
            epoch: Some(epoch),
            seq,
            published_at: now.wall,
            ttl_ms,
            one: false,
            body: Body::Payload(&request.payload),
        }
        .sign(&*self.config.signer.0, &mut object)
        .map_err(|_| Refusal::Signer)?;
        let limit = self.config.limits.publication_bytes;
        if object.len() > limit {
            return Err(Refusal::TooLarge {
                limit: limit as u32,
            });
        }
        if self.own.len() >= self.config.limits.topics && !self.own.contains_key(&key) {
            return Err(Refusal::WouldBlock);
        }
        let parsed = Publication::parse(&object, self.profile()).ok();
        let admitted = parsed.and_then(|publication| self.admit(now, &publication).ok());
        let admission = admitted.ok_or(Refusal::WouldBlock)?;
        self.own.insert(key, (epoch, seq));
        self.own_epoch = self.own_epoch.max(epoch);
        Ok(match admission {
            Admission::Admitted(topic) => {
                let found = self.topics.get(topic);
                found.map_or(0, |topic| topic.readers() as u64)
            }
            Admission::Passed { subscribers } => subscribers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_anywhere_and_begins_again_behind_a_hole() {
        let mut run = Run::default();
        for seq in [50, 51, 52] {
            run.admit(seq);
        }
        assert!(run.holds(50) && run.holds(52) && !run.holds(49) && !run.holds(53));
        run.admit(49);
        assert!(run.holds(49));
        run.admit(60);
        assert_eq!(
            run,
            Run {
                first: 60,
                last: 60
            }
        );
        run.admit(55);
        assert_eq!(
            run,
            Run {
                first: 60,
                last: 60
            },
            "a late one leaves the run as it is"
        );
    }
}
