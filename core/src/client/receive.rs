//! A publication on its way in.
//!
//! Decides: in this order, the first that stops it: known by its signature, shape, match, known by its hash, life, a source that is known to refuse
//! the claimed publisher, or cannot look it up now (strangers), signature. The life of what is known its memory knows. Leaves to others: signatures
//! checked elsewhere (asked), room, memory and lanes (admit). Believes: the wall for its life. Bounded by: the publication at hand.
//!
//! What no subscription wants is not hashed, but for the first such one: after a publication that was taken, the next is taken for another and
//! hashed before it is read, so that reading costs a copy nothing: one that is known has its shape, and was wanted.

use alloc::vec::Vec;

use super::lanes::LaneKey;
use super::strangers::Claimed;
use super::{Client, LaneId, TopicId, Verification, WireId};
use crate::code::{ObjectFault, SourceRefusal};
use crate::delivery::Delivery;
use crate::error::LinkError;
use crate::inbound::dedup::SignatureKey;
use crate::tags;
use crate::time::{Now, WallMs};
use crate::wire::{Event, Object, Publication, SKEW_MS, Via};
use crate::{LinkId, NodeId, PublicationHash, SubscriptionId};

/// How a publication came.
#[derive(Clone, Copy, Debug)]
pub(super) struct From {
    via: Via,
    /// Whose event it was.
    pub(super) wire: WireId,
    pub(super) link: LinkId,
    /// It belongs to a station's replay.
    pub(super) replayed: bool,
}

/// What is found by looking a publication up.
#[derive(Clone, Copy)]
struct Seen {
    hash: PublicationHash,
    signature: SignatureKey,
    /// It is remembered.
    known: bool,
    /// Whether it carries the key its publisher is known by, if that is kept.
    same_key: Option<bool>,
    hint: Option<Hint>,
    topic: Option<TopicId>,
}

/// Where the last publication of a publisher went, to be looked at first for its next: what is named here is compared before it is believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    topic: TopicId,
    pub(super) tag: u32,
    pub(super) lane: LaneId,
}

/// What is kept of a [`Hint`]: the number of the lane's place, and the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) lane: u32,
    pub(super) tag: u32,
}

impl Default for Last {
    fn default() -> Self {
        Self {
            lane: u32::MAX,
            tag: tags::NONE,
        }
    }
}

/// A publication that is new and wanted, with what it is remembered by.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) delivery: Delivery,
    pub(super) hash: PublicationHash,
    /// A keyed hash of that.
    pub(super) place: u64,
    pub(super) signature: SignatureKey,
    pub(super) from: From,
    /// Its topic's place, if somebody had been heard on it.
    pub(super) topic: Option<TopicId>,
    pub(super) hint: Option<Hint>,
}

/// A link whose events are taken, and what one of them leaves to the next.
#[derive(Debug)]
pub(super) struct Reading {
    link: LinkId,
    /// Under which number the last one came; none has 0.
    id: u64,
    /// The subscription that is.
    wire: Option<WireId>,
    /// It carries that one and no replay, so that copies say nothing but how far it is.
    live: bool,
    /// How far that is: told before anything that is no copy.
    to: u64,
}

impl Reading {
    pub(super) fn of(link: LinkId) -> Self {
        Self {
            link,
            id: 0,
            wire: None,
            live: false,
            to: 0,
        }
    }
}

impl Client {
    /// An event came. When its link is read no further, [`move_on`](Self::move_on) comes next.
    #[inline(always)]
    pub(super) fn handle_event(
        &mut self,
        now: Now,
        reading: &mut Reading,
        event: &Event<'_>,
        object: Result<Object<'_>, ObjectFault>,
    ) -> Result<(), LinkError> {
        if reading.id != event.id {
            self.move_on(now, reading);
            *reading = self.reading(reading.link, event.id)?;
        }
        if let Err(fault) = self.receive(now, reading, event, object) {
            self.faults.add(fault);
        }
        Ok(())
    }

    #[inline(never)]
    fn reading(&self, link: LinkId, id: u64) -> Result<Reading, LinkError> {
        let wire = self.wire_of(link, id)?;
        Ok(Reading {
            id,
            wire,
            live: wire.is_some_and(|wire| self.reads_live(wire, link)),
            ..Reading::of(link)
        })
    }

    /// What copies said of their reader's position is told.
    pub(super) fn move_on(&mut self, now: Now, reading: &mut Reading) {
        let to = core::mem::take(&mut reading.to);
        if to > 0
            && let Some(wire) = reading.wire
        {
            self.moved(now, wire, reading.link, to);
        }
    }

    /// A copy of what is known needs no other look: its signature gives it away, or its hash.
    #[inline(always)]
    fn receive(
        &mut self,
        now: Now,
        reading: &mut Reading,
        event: &Event<'_>,
        object: Result<Object<'_>, ObjectFault>,
    ) -> Result<(), ObjectFault> {
        // A position is moved by its own reader only, by duplicates and refusals as well.
        reading.to = reading.to.max(event.offset);
        let moved = match reading.live {
            true => None,
            false => Some(self.event_from(now, reading, event)?),
        };
        let object = object?;
        let (key, signed) = object.key_and_signature()?;
        // By the key as carried, which has one id and stands before `tbs`.
        let signature = self.dedup.signature_key(key, signed);
        let mut known = self.dedup.until_by_signature(signature);
        if let Some(fault) = known.and_then(|until| self.copy(now, until)) {
            return Err(fault);
        }
        let mut hash = None;
        if self.wanted {
            hash = Some(self.hashed(now, object.tbs, &mut known)?);
        }
        let from = match moved {
            Some(from) => from,
            None => self.event_from(now, reading, event)?,
        };
        // Put together again, so that it is not in memory for copies.
        let object = Object {
            key,
            signature: signed,
            ..object
        };
        self.receive_new(now, object, from, signature, known, hash)
    }

    /// How an event came. Its reader's position moves, and has moved with what came before it.
    fn event_from(
        &mut self,
        now: Now,
        reading: &mut Reading,
        event: &Event<'_>,
    ) -> Result<From, ObjectFault> {
        // Under a subscription that ended meanwhile, or not accepted yet: nothing is promised before that.
        let wire = reading.wire.ok_or(ObjectFault::Unmatched)?;
        let to = core::mem::take(&mut reading.to);
        let replayed = self.moved(now, wire, reading.link, to);
        Ok(From {
            via: event.via,
            wire,
            link: reading.link,
            replayed: replayed.ok_or(ObjectFault::Unmatched)?,
        })
    }

    /// One that is not known, or whose life has to be judged again. `hash`: if it was made.
    #[inline(never)]
    fn receive_new(
        &mut self,
        now: Now,
        object: Object<'_>,
        from: From,
        signature: SignatureKey,
        mut known: Option<WallMs>,
        hash: Option<PublicationHash>,
    ) -> Result<(), ObjectFault> {
        self.wanted = false;
        let publication = &Publication::of_object(&object, self.profile());
        let publication = publication.as_ref().map_err(|fault| *fault)?;
        let publisher = self.publishers.heard(&publication.publisher);
        let same_key = publisher.map(|(key, _)| key == publication.key);
        let last = publisher.map_or_else(Last::default, |(_, last)| *last);
        let hint = self.hint(last);
        let mut readers = core::mem::take(&mut self.readers);
        let hinted = hint.filter(|hint| {
            self.topics
                .get(hint.topic)
                .is_some_and(|topic| topic.is(publication))
                && self.readers_on(hint.topic, &mut readers)
        });
        let topic = match hinted {
            Some(hint) => Some(hint.topic),
            None => self.matching(&publication.realm, publication.topic, &mut readers),
        };
        let hash = match hash {
            _ if readers.is_empty() => Err(ObjectFault::Unmatched),
            Some(hash) => Ok(hash),
            None => self.hashed(now, object.tbs, &mut known),
        };
        let judged = hash.and_then(|hash| {
            let seen = Seen {
                hash,
                signature,
                known: known.is_some(),
                same_key,
                hint,
                topic,
            };
            self.judge(now, publication, &seen, from, &mut readers)
        });
        self.readers = readers;
        self.wanted = judged.is_ok();
        judged
    }

    /// Its hash, unless that is known and says what it is counted as.
    #[inline(always)]
    fn hashed(
        &self,
        now: Now,
        tbs: &[u8],
        known: &mut Option<WallMs>,
    ) -> Result<PublicationHash, ObjectFault> {
        let hash = PublicationHash::of_tbs(tbs);
        if known.is_none() {
            *known = self.dedup.until_by_id(&hash);
            if let Some(fault) = known.and_then(|until| self.copy(now, until)) {
                return Err(fault);
            }
        }
        Ok(hash)
    }

    fn hint(&self, Last { lane, tag }: Last) -> Option<Hint> {
        let (lane, slot) = self.lanes.at(lane)?;
        let (topic, _) = self.topics.at(slot.topic())?;
        Some(Hint { topic, tag, lane })
    }

    /// Puts the readers of a topic into `readers` in place of what is there; false when the topic is gone.
    pub(super) fn readers_on(&self, topic: TopicId, readers: &mut Vec<SubscriptionId>) -> bool {
        let Some(topic) = self.topics.get(topic) else {
            return false;
        };
        readers.clear();
        readers.extend_from_slice(&topic.subscriptions);
        true
    }

    /// What a copy is counted as. Life is judged before presence, and its entry knows when it ends. None that is remembered can be early, unless
    /// the wall has gone back since: then `None`, the copy has to say.
    #[inline]
    fn copy(&self, now: Now, until: WallMs) -> Option<ObjectFault> {
        if self.published > now.wall.saturating_add(SKEW_MS) {
            return None;
        }
        Some(match now.wall > until {
            true => ObjectFault::Expired,
            false => ObjectFault::Duplicate,
        })
    }

    /// Each check in its order; the first that fails says why.
    fn judge(
        &mut self,
        now: Now,
        publication: &Publication<'_>,
        seen: &Seen,
        from: From,
        readers: &mut Vec<SubscriptionId>,
    ) -> Result<(), ObjectFault> {
        let Seen { topic, .. } = *seen;
        // What is over stops here when it is known or its place is told of; else it is verified, so that it can be reported.
        let life = publication.freshness(now.wall).err();
        let life = life.map(|(fault, _)| fault);
        if seen.known {
            return Err(life.unwrap_or(ObjectFault::Duplicate));
        }
        if let Some(fault) = life
            && !publication.one
            && topic.is_some_and(|topic| self.is_told_of(publication, topic, readers))
        {
            return Err(fault);
        }
        // A copy under the same signature waits for the same answer.
        let place = self.dedup.place_of(&seen.hash);
        let twins = self.unverified.twins(place, &seen.hash, seen.signature);
        let twins = twins.ok_or(ObjectFault::Duplicate)?;
        self.keep_admitting(publication, readers);
        if readers.is_empty() {
            return Err(ObjectFault::SourceRefused);
        }
        if self.verdicts.are_asked() {
            let claimed = Claimed {
                publication,
                from,
                topic,
                life,
            };
            if self.stop_stranger(now, &claimed, readers)? {
                return Ok(());
            }
        }
        let key_known = match self.config.verification {
            Verification::Here => self.publishers.verify(publication).map(|()| true),
            Verification::Asked => match seen.same_key {
                Some(false) => Err(ObjectFault::KeyIdMismatch),
                known => Ok(known.is_some()),
            },
        }?;
        if self.config.verification == Verification::Asked
            && !self.may_ask(now, publication, twins, readers)
        {
            return Ok(());
        }
        let delivery = Delivery::copied(publication, from.via);
        let arrived = Arrived {
            delivery,
            hash: seen.hash,
            place,
            signature: seen.signature,
            from,
            topic,
            hint: seen.hint,
        };
        match self.config.verification {
            Verification::Here => self.take(now, &arrived, readers),
            Verification::Asked => self.ask_verification(now, arrived, key_known),
        }
        Ok(())
    }

    /// Leaves the subscriptions whose sources do not refuse the publisher.
    fn keep_admitting(&mut self, publication: &Publication<'_>, readers: &mut Vec<SubscriptionId>) {
        if self.all_admit(&publication.publisher, readers) {
            return;
        }
        readers.retain(|id| {
            let admits = self.all_admit(&publication.publisher, &[*id]);
            if !admits {
                self.count_refusal(*id, SourceRefusal::NotListed);
            }
            admits
        });
    }

    /// Whether no source refuses a publisher, as mostly none does.
    pub(super) fn all_admit(&self, publisher: &NodeId, readers: &[SubscriptionId]) -> bool {
        readers.iter().all(|id| {
            let found = self.subscriptions.get(*id);
            found.is_some_and(|found| found.admits(publisher))
        })
    }

    /// Whether every lane that would take it has told what became of its place.
    fn is_told_of(
        &self,
        publication: &Publication<'_>,
        topic: TopicId,
        readers: &[SubscriptionId],
    ) -> bool {
        let publisher = publication.publisher;
        readers.iter().all(|subscription| {
            let key = LaneKey {
                publisher,
                topic,
                subscription: *subscription,
            };
            self.is_told(&key, publication.epoch.unwrap_or(0), publication.seq)
        })
    }

    pub(super) fn is_told(&self, key: &LaneKey, epoch: u64, seq: u64) -> bool {
        let lane = self.lanes.find(key);
        match lane.and_then(|lane| self.lanes.get(lane)) {
            Some(slot) => slot.is_told(epoch, seq),
            None => self
                .resting
                .get(key)
                .is_some_and(|rest| rest.is_told(epoch, seq)),
        }
    }
}
