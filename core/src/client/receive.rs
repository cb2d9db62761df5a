//! A publication on its way in.
//!
//! Decides: in this order, the first that stops it: known by its signature, known by its hash, shape, match, life, a source list that refuses the
//! claimed publisher, signature, room, memory, order. The life of what is known its memory knows. Leaves to others: signatures checked elsewhere
//! (asked), the order itself (lanes), reading (streams). Believes: the wall for its life. Bounded by: `ClientLimits::{held_bytes, dedup_entries,
//! lanes}`; what a bound drops is a `Dropped` notice, and its place is closed at once.

use alloc::vec::Vec;

use super::lanes::{LaneKey, LaneSlot, NumberingKey};
use super::streams::Subscription;
use super::{Client, LaneId, TopicId, Verification, WireId};
use crate::code::{DiagnosticCode, DropReason, ObjectFault, UnopenedReason};
use crate::delivery::Delivery;
use crate::error::LinkError;
use crate::inbound::dedup::{EntryRef, Full, NewEntry, SignatureKey};
use crate::inbound::lane::{Admit, Offer};
use crate::notice::Notice;
use crate::tags;
use crate::time::{Now, WallMs};
use crate::wire::{Event, Object, Publication, SKEW_MS, Via};
use crate::{LinkId, PublicationHash, SubscriptionId};

/// Remembered publications looked at for one that may be forgotten early.
const MAKE_ROOM: usize = 4096;
/// At this fill of the memory, in percent, readers are warned once.
const WARN_AT: u8 = 80;

/// How a publication came.
#[derive(Clone, Copy, Debug)]
struct From {
    via: Via,
    /// Whose event it was.
    wire: WireId,
    /// It belongs to a station's replay.
    replayed: bool,
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
struct Hint {
    topic: TopicId,
    tag: u32,
    lane: LaneId,
}

/// What is kept of a [`Hint`]: the number of the lane's place, and the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    lane: u32,
    tag: u32,
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
    pub(super) signature: SignatureKey,
    from: From,
    /// Its topic's place, if somebody had been heard on it.
    pub(super) topic: Option<TopicId>,
    hint: Option<Hint>,
}

impl Client {
    pub(super) fn handle_event(
        &mut self,
        now: Now,
        link: LinkId,
        event: &Event<'_>,
        object: Result<Object<'_>, ObjectFault>,
    ) -> Result<(), LinkError> {
        let Some(wire) = self.wire_of(link, event.id)? else {
            self.faults.add(ObjectFault::Unmatched);
            return Ok(());
        };
        // A position is moved by its own reader only, by duplicates and refusals as well.
        let Some(replayed) = self.moved(now, wire, link, event.offset) else {
            // Asked for and not accepted yet: nothing is promised before that.
            self.faults.add(ObjectFault::Unmatched);
            return Ok(());
        };
        let from = From {
            via: event.via,
            wire,
            replayed,
        };
        if let Err(fault) = object.and_then(|object| self.receive(now, &object, from)) {
            self.faults.add(fault);
        }
        Ok(())
    }

    /// A copy of what is known needs no other look: its signature gives it away, or its hash.
    fn receive(&mut self, now: Now, object: &Object<'_>, from: From) -> Result<(), ObjectFault> {
        let (key, signature) = object.key_and_signature()?;
        // By the key as carried, which has one id and stands before `tbs`.
        let signature = self.dedup.signature_key(key, signature);
        let mut known = self.dedup.check_signature(signature);
        if let Some(fault) = known.and_then(|entry| self.copy(now, entry)) {
            return Err(fault);
        }
        let hash = PublicationHash::of_tbs(object.tbs);
        known = known.or_else(|| self.dedup.check(&hash));
        if let Some(fault) = known.and_then(|entry| self.copy(now, entry)) {
            return Err(fault);
        }
        let publication = &Publication::of_object(object, self.profile());
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
        let seen = Seen {
            hash,
            signature,
            known: known.is_some(),
            same_key,
            hint,
            topic,
        };
        let judged = self.judge(now, publication, &seen, from, &mut readers);
        self.readers = readers;
        judged
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
    fn copy(&self, now: Now, entry: EntryRef) -> Option<ObjectFault> {
        if self.published > now.wall.saturating_add(SKEW_MS) {
            return None;
        }
        let until = self.dedup.until(entry)?;
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
        if readers.is_empty() {
            return Err(ObjectFault::Unmatched);
        }
        // What is over stops here when it is known or its place is told of; else it is verified, so that it can be reported.
        let life = publication.freshness(now.wall).map_err(|(fault, _)| fault);
        let life = self.is_alive(life, publication.expires_at()).err();
        if seen.known {
            return Err(life.unwrap_or(ObjectFault::Duplicate));
        }
        if let Some(fault) = life
            && !publication.one
            && topic.is_some_and(|topic| self.is_told_of(publication, topic, readers))
        {
            return Err(fault);
        }
        // A copy with the same bytes waits for the same answer.
        if self
            .unverified
            .is_asked(&seen.hash, seen.signature, publication.bytes)
        {
            return Err(ObjectFault::Duplicate);
        }
        self.keep_admitting(publication, readers);
        if readers.is_empty() {
            return Err(ObjectFault::SourceRefused);
        }
        let key_known = match self.config.verification {
            Verification::Here => self.publishers.verify(publication).map(|()| true),
            Verification::Asked => match seen.same_key {
                Some(false) => Err(ObjectFault::KeyIdMismatch),
                known => Ok(known.is_some()),
            },
        }?;
        if self.config.verification == Verification::Asked
            && !self.may_ask(now, publication, readers)
        {
            return Ok(());
        }
        let delivery = Delivery::copied(publication, from.via);
        let arrived = Arrived {
            delivery,
            hash: seen.hash,
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
        readers.retain(|id| {
            let Some(found) = self.subscriptions.get_mut(*id) else {
                return false;
            };
            let admits = found.admits(&publication.publisher);
            found.source_refused += u64::from(!admits);
            admits
        });
    }

    /// A life that was over stays over when the wall steps back: a copy of what was forgotten is not new.
    fn is_alive(&self, life: Result<(), ObjectFault>, until: WallMs) -> Result<(), ObjectFault> {
        life?;
        let known = self.dedup.reaches(until);
        known.then_some(()).ok_or(ObjectFault::Expired)
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

    fn is_told(&self, key: &LaneKey, epoch: u64, seq: u64) -> bool {
        let lane = self.lanes.find(key);
        match lane.and_then(|lane| self.lanes.get(lane)) {
            Some(slot) => slot.is_told(epoch, seq),
            None => self
                .resting
                .get(key)
                .is_some_and(|rest| rest.covers(epoch, seq)),
        }
    }

    /// A verified, matching, unseen publication that somebody wants.
    pub(super) fn take(&mut self, now: Now, arrived: &Arrived, readers: &[SubscriptionId]) {
        let delivery = &arrived.delivery;
        let one;
        let readers = if delivery.anycast() {
            one = self.one_reader(arrived.from.wire, readers);
            one.as_slice()
        } else {
            readers
        };
        let topic = self.enter_topic(arrived.topic, delivery);
        let life = delivery.freshness(now.wall);
        if let Err(fault) = self.is_alive(life, delivery.expires_at()) {
            self.faults.add(fault);
            // Where it was told what became of its place, it is not missing.
            let (publisher, epoch, seq) = (
                delivery.publisher(),
                delivery.epoch().unwrap_or(0),
                delivery.seq(),
            );
            let mut missing = readers.to_vec();
            missing.retain(|subscription| {
                let key = LaneKey {
                    publisher,
                    topic,
                    subscription: *subscription,
                };
                delivery.anycast() || !self.is_told(&key, epoch, seq)
            });
            self.drop_fact(now, delivery, topic, &missing, DropReason::OutOfDate);
        } else {
            self.remember(now, arrived, topic, readers);
        }
        self.leave_topic(topic);
    }

    fn remember(
        &mut self,
        now: Now,
        arrived: &Arrived,
        topic: TopicId,
        readers: &[SubscriptionId],
    ) {
        let Arrived {
            delivery,
            hash,
            from,
            ..
        } = arrived;
        let hint = arrived.hint;
        let epoch = delivery.epoch().unwrap_or(0);
        let numbering = NumberingKey {
            publisher: delivery.publisher(),
            topic,
            epoch,
        };
        let seq = delivery.seq();
        let until = delivery.expires_at();
        // An anycast has no place in any lane, so nothing but its entry remembers it: that is never given up early.
        let tag = match delivery.anycast() {
            true => tags::NONE,
            false => {
                let hint = hint.map_or(tags::NONE, |hint| hint.tag);
                self.tags.tag_again(now, hint, numbering, until)
            }
        };
        let copy_possible = self.tags.may_be_copy(tag, seq);
        let entry = NewEntry {
            id: hash,
            signature: arrived.signature,
            until,
            tag,
            seq,
        };
        if let Err(full) = self.dedup.commit_new(now, entry) {
            self.forget_decided(now, full, entry.signature);
            if self.dedup.commit_new(now, entry).is_err() {
                return self.drop_fact(now, delivery, topic, readers, DropReason::DedupFull);
            }
        }
        self.published = self.published.max(delivery.published_at());
        self.warn_when_nearly_full();
        self.arm_sweep(now);
        if delivery.sealed_under.is_some() {
            let reason = UnopenedReason::NoGroup.text();
            self.report(DiagnosticCode::EventUnopened, None, reason);
        }
        let offer = Offer {
            epoch,
            seq,
            until,
            replayed: from.replayed,
            anycast: delivery.anycast(),
            copy_possible,
        };
        let publisher = numbering.publisher;
        let (mut lane, mut taken) = (hint.map(|hint| hint.lane), false);
        for subscription in readers {
            let key = LaneKey {
                publisher,
                topic,
                subscription: *subscription,
            };
            taken |= self.offer(now, &key, &mut lane, &offer, delivery);
        }
        if !taken {
            // Nobody has it: a later copy gets another chance.
            self.dedup.forget(hash);
        }
        let last = hint.map(|hint| (hint.lane, hint.tag));
        if let Some(lane) = lane
            && last != Some((lane, tag))
            && !offer.anycast
            && let Some(kept) = self.publishers.kept_mut(&publisher)
        {
            let lane = lane.index;
            *kept = Last { lane, tag };
        }
    }

    /// Offers a fact to one subscription, whose lane may be `near`, and is left there. Answers whether its place there is taken, by it or by another.
    fn offer(
        &mut self,
        now: Now,
        key: &LaneKey,
        near: &mut Option<LaneId>,
        offer: &Offer,
        delivery: &Delivery,
    ) -> bool {
        let LaneKey {
            publisher,
            subscription,
            ..
        } = *key;
        let found = self.subscriptions.get(subscription);
        if found.is_none_or(Subscription::is_ended) {
            return false;
        }
        let bytes = delivery.bytes().len();
        let held = self.waiting_bytes.get(&publisher).copied().unwrap_or(0);
        if held.saturating_add(bytes) > self.config.limits.held_bytes / 4 || !self.make_bytes(bytes)
        {
            let told = !offer.anycast && self.close_place(now, *key, offer.epoch, offer.seq);
            if !told {
                self.dropped(now, subscription, DropReason::BytesFull, &publisher);
            }
            return false;
        }
        let Some(lane) = self.lane_for(now, *key, *near, offer.epoch) else {
            self.dropped(now, subscription, DropReason::LanesFull, &publisher);
            return false;
        };
        *near = Some(lane);
        let Some(work) = self.lanes.get_mut(lane).and_then(LaneSlot::work) else {
            return false;
        };
        let taken = match work.lane.offer(now, *offer, delivery.clone()) {
            Admit::Taken => {
                work.held_bytes += bytes;
                self.held_bytes += bytes;
                true
            }
            Admit::Superseded(_) => {
                self.faults.add(ObjectFault::Superseded);
                true
            }
            Admit::Duplicate(_) => {
                self.faults.add(ObjectFault::Duplicate);
                true
            }
            // Its notice comes from the lane.
            Admit::Conflict(_) => true,
            // A pausing stream that is full stands before this lane: no more is read from its links, and what a timeout brought is counted.
            Admit::Busy(_) => {
                let told = !offer.anycast && work.lane.give_up(now, offer.epoch, offer.seq);
                if !told {
                    self.dropped(now, subscription, DropReason::BytesFull, &publisher);
                }
                false
            }
        };
        self.touch(lane);
        taken
    }

    /// Room for so many bytes more, if need be at the cost of the fullest stream: a reader that is slow pays for it, not the others.
    pub(super) fn make_bytes(&mut self, bytes: usize) -> bool {
        let limit = self.config.limits.held_bytes;
        while self.held_bytes.saturating_add(bytes) > limit {
            if !self.collapse_fullest() {
                return false;
            }
        }
        true
    }

    /// A verified fact is dropped: its readers are told, and nothing waits for it.
    fn drop_fact(
        &mut self,
        now: Now,
        delivery: &Delivery,
        topic: TopicId,
        readers: &[SubscriptionId],
        reason: DropReason,
    ) {
        let publisher = delivery.publisher();
        for subscription in readers {
            let key = LaneKey {
                publisher,
                topic,
                subscription: *subscription,
            };
            let (epoch, seq) = (delivery.epoch().unwrap_or(0), delivery.seq());
            let told = !delivery.anycast() && self.close_place(now, key, epoch, seq);
            if !told {
                self.dropped(now, *subscription, reason, &publisher);
            }
        }
    }

    /// Passes over the place of a fact that is dropped. Answers whether a `Skipped` speaks of it, so that no `Dropped` has to: where a full
    /// stream stands before the lane, which has no room to remember the place.
    fn close_place(&mut self, now: Now, key: LaneKey, epoch: u64, seq: u64) -> bool {
        let Some(lane) = self.lanes.find(&key) else {
            return false;
        };
        self.unfold(now, lane);
        let Some(work) = self.lanes.get_mut(lane).and_then(LaneSlot::work) else {
            return false;
        };
        // An epoch that cannot begin before something is read has no places yet: it may skip this one when it does.
        let told = !work.lane.close(now, epoch, seq) && work.lane.give_up(now, epoch, seq);
        self.touch(lane);
        told
    }

    /// Forgets publications whose place every lane that matched has decided.
    fn forget_decided(&mut self, now: Now, full: Full, signature: SignatureKey) {
        let Self {
            subscriptions,
            dedup,
            tags,
            topics,
            lanes,
            resting,
            ..
        } = self;
        dedup.make_room(now, full, signature, MAKE_ROOM, |tag, seq| {
            tags.give_up(tag, seq, |numbering, ()| {
                let Some(topic) = topics.get(numbering.topic) else {
                    return false;
                };
                topic.subscriptions.iter().all(|subscription| {
                    let key = LaneKey {
                        publisher: numbering.publisher,
                        topic: numbering.topic,
                        subscription: *subscription,
                    };
                    let found = subscriptions.get(*subscription);
                    if !found.is_some_and(|found| found.admits(&numbering.publisher)) {
                        return true;
                    }
                    match lanes.find(&key).and_then(|lane| lanes.get(lane)) {
                        Some(slot) => slot.covers(numbering.epoch, seq),
                        // A subscription without a lane was not offered it: it would be new there.
                        None => resting
                            .get(&key)
                            .is_some_and(|rest| rest.covers(numbering.epoch, seq)),
                    }
                })
            })
        });
    }

    fn warn_when_nearly_full(&mut self) {
        let (held, capacity) = (self.dedup.len() as u64, self.dedup.capacity() as u64);
        if !self.dedup_warned && held * 100 < capacity * u64::from(WARN_AT) {
            return;
        }
        let fill = self.dedup.fill();
        if fill < WARN_AT {
            self.dedup_warned &= fill >= WARN_AT / 2;
            return;
        }
        if !core::mem::replace(&mut self.dedup_warned, true) {
            let all: Vec<SubscriptionId> = self.subscriptions.iter().map(|(id, _)| id).collect();
            for id in all {
                self.notify(
                    id,
                    Notice::Warning {
                        table: "dedup",
                        fill,
                    },
                );
            }
        }
    }
}
