//! A publication on its way in.
//!
//! Decides: in this order, the first that stops it: shape, match, life, known by its signature, known by its hash, a source list that
//! refuses the claimed publisher, signature, room, memory, order. Leaves to others: the order itself (lanes), reading (streams). Believes:
//! the wall for its life. Bounded by: `ClientLimits::{held_bytes, dedup_entries, lanes, pending_verifications}`; what a bound drops is a
//! `Dropped` notice, and its place is closed at once.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::lanes::{LaneKey, NumberingKey};
use super::timers::Timer;
use super::{Client, TopicId, Verification};
use crate::action::{Action, Answer, Question, VerifyJob};
use crate::code::{DropReason, ObjectFault};
use crate::delivery::Delivery;
use crate::error::LinkError;
use crate::inbound::dedup::NewEntry;
use crate::inbound::lane::{Admit, Offer};
use crate::notice::Notice;
use crate::refusal::Misuse;
use crate::time::Now;
use crate::wire::{Event, Publication, Via};
use crate::{AskId, LinkId, NodeId, SubscriptionId};

/// How long a question about a signature may stay unanswered.
const ASK_PATIENCE: Duration = Duration::from_secs(5);
/// Remembered publications looked at for one that may be forgotten early.
const MAKE_ROOM: usize = 4096;
/// At this fill of the memory, in percent, readers are warned once.
const WARN_AT: u8 = 80;

/// A fact whose signature is being checked elsewhere, with the copies that came meanwhile under the same signature.
#[derive(Debug)]
pub(super) struct Unverified {
    object: Bytes,
    via: Via,
    deadline: crate::Instant,
}

impl Client {
    pub(super) fn handle_event(
        &mut self,
        now: Now,
        link: LinkId,
        event: &Event<'_>,
    ) -> Result<(), LinkError> {
        let Some(wire) = self.wire_of(link, event.id)? else {
            self.faults.add(ObjectFault::Unmatched);
            return Ok(());
        };
        // A position is moved by its own reader only, by duplicates and refusals as well.
        let Some(carrier) = self.carrier_mut(wire, link) else {
            // Asked for and not accepted yet: nothing is promised before that.
            self.faults.add(ObjectFault::Unmatched);
            return Ok(());
        };
        carrier.position.offset = carrier.position.offset.max(event.offset);
        match Publication::parse(event.publication, self.profile()) {
            Ok(publication) => self.receive(now, &publication, event.via),
            Err(fault) => self.faults.add(fault),
        }
        Ok(())
    }

    fn receive(&mut self, now: Now, publication: &Publication<'_>, via: Via) {
        let matching = self.matching(&publication.realm, publication.topic);
        if matching.is_empty() {
            return self.faults.add(ObjectFault::Unmatched);
        }
        let seen = self
            .dedup
            .signature_key(publication.publisher.as_bytes(), publication.signature);
        // Life is judged before presence, on arrival. What is over stops here when it is known or its place is decided; else it is verified, so
        // that it can be reported.
        let life = publication
            .freshness(now.wall)
            .err()
            .map(|(fault, _)| fault);
        if self.dedup.check_signature(seen).is_some() {
            return self.faults.add(life.unwrap_or(ObjectFault::Duplicate));
        }
        if let Some(fault) = life
            && self.is_decided(publication, &matching)
        {
            return self.faults.add(fault);
        }
        let hash = publication.hash();
        if self.dedup.check(&hash).is_some() {
            return self.faults.add(life.unwrap_or(ObjectFault::Duplicate));
        }
        let admitted = self.admitted(publication, matching);
        if admitted.is_empty() {
            return self.faults.add(ObjectFault::SourceRefused);
        }
        if self.config.verification == Verification::Asked {
            return self.ask_verification(now, publication, via, &admitted);
        }
        if let Err(fault) = self.publishers.verify(publication) {
            return self.faults.add(fault);
        }
        self.take(now, publication, via, &admitted);
    }

    /// The subscriptions whose sources do not refuse the publisher.
    fn admitted(
        &mut self,
        publication: &Publication<'_>,
        mut matching: Vec<SubscriptionId>,
    ) -> Vec<SubscriptionId> {
        matching.retain(|id| {
            let Some(found) = self.subscriptions.get_mut(*id) else {
                return false;
            };
            let admits = found.admits(&publication.publisher);
            found.source_refused += u64::from(!admits);
            admits
        });
        matching
    }

    /// Whether every lane that would take it has decided its place already.
    fn is_decided(&self, publication: &Publication<'_>, matching: &[SubscriptionId]) -> bool {
        let Some(topic) = self.topic_of(&publication.realm, publication.topic) else {
            return false;
        };
        let publisher = publication.publisher;
        matching.iter().all(|subscription| {
            let key = LaneKey {
                publisher,
                topic,
                subscription: *subscription,
            };
            self.covers(&key, publication.epoch.unwrap_or(0), publication.seq)
        })
    }

    fn covers(&self, key: &LaneKey, epoch: u64, seq: u64) -> bool {
        match self
            .lane_index
            .get(key)
            .and_then(|lane| self.lanes.get(*lane))
        {
            Some(slot) => slot.lane.covers(epoch, seq),
            None => self
                .resting
                .get(key)
                .is_some_and(|rest| rest.covers(epoch, seq)),
        }
    }

    /// A verified, matching, unseen publication that somebody wants.
    fn take(
        &mut self,
        now: Now,
        publication: &Publication<'_>,
        via: Via,
        admitted: &[SubscriptionId],
    ) {
        let topic = self.make_topic(publication.realm, publication.topic);
        if let Err((fault, _)) = publication.freshness(now.wall) {
            self.faults.add(fault);
            self.drop_fact(now, publication, topic, admitted, DropReason::OutOfDate);
        } else {
            self.remember(now, publication, via, topic, admitted);
        }
        self.drop_topic_if_idle(topic);
    }

    fn remember(
        &mut self,
        now: Now,
        publication: &Publication<'_>,
        via: Via,
        topic: TopicId,
        admitted: &[SubscriptionId],
    ) {
        let epoch = publication.epoch.unwrap_or(0);
        let numbering = NumberingKey {
            publisher: publication.publisher,
            topic,
            epoch,
        };
        let tag = self.tags.tag(numbering);
        let copy_possible = self.tags.may_be_copy(tag, publication.seq);
        let hash = publication.hash();
        let signature = self
            .dedup
            .signature_key(publication.publisher.as_bytes(), publication.signature);
        let until = publication.expires_at();
        let entry = NewEntry {
            id: &hash,
            signature,
            until,
            tag,
            seq: publication.seq,
        };
        if self.dedup.commit(now, entry).is_err() {
            self.forget_decided(now);
            if self.dedup.commit(now, entry).is_err() {
                return self.drop_fact(now, publication, topic, admitted, DropReason::DedupFull);
            }
        }
        self.warn_when_nearly_full();
        self.arm_sweep(now);
        // Kept, so copied: a slice would pin the link's whole read buffer.
        let object = Bytes::copy_from_slice(publication.bytes);
        let Some(delivery) = Delivery::new(object, via, self.profile()) else {
            // Sealed, and nobody here can open it.
            self.dedup.forget(&hash);
            return self.faults.add(ObjectFault::Malformed);
        };
        let offer = Offer {
            epoch,
            seq: publication.seq,
            until,
            replayed: false,
            anycast: publication.one,
            copy_possible,
        };
        let mut taken = false;
        for subscription in admitted {
            taken |= self.offer(now, *subscription, topic, &offer, delivery.clone());
        }
        if !taken {
            // Nobody has it: a later copy gets another chance.
            self.dedup.forget(&hash);
        }
    }

    /// Offers a fact to one subscription. Answers whether its place there is taken, by it or by another.
    fn offer(
        &mut self,
        now: Now,
        subscription: SubscriptionId,
        topic: TopicId,
        offer: &Offer,
        delivery: Delivery,
    ) -> bool {
        let publisher = delivery.publisher();
        let bytes = delivery.bytes().len();
        let key = LaneKey {
            publisher,
            topic,
            subscription,
        };
        let Some(lane) = self.lane_for(now, key) else {
            self.dropped(now, subscription, DropReason::LanesFull, &publisher);
            return false;
        };
        let held = self.lanes.get(lane).map_or(0, |slot| slot.held_bytes);
        if held.saturating_add(bytes) > self.config.limits.held_bytes / 4 || !self.make_bytes(bytes)
        {
            if !offer.anycast {
                self.close_place(now, key, offer.epoch, offer.seq);
            }
            self.dropped(now, subscription, DropReason::BytesFull, &publisher);
            return false;
        }
        let Some(slot) = self.lanes.get_mut(lane) else {
            return false;
        };
        let taken = match slot.lane.offer(now, *offer, delivery) {
            Admit::Taken => {
                slot.held_bytes += bytes;
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
                let told = slot.lane.give_up(now, offer.epoch, offer.seq);
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
    fn make_bytes(&mut self, bytes: usize) -> bool {
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
        publication: &Publication<'_>,
        topic: TopicId,
        admitted: &[SubscriptionId],
        reason: DropReason,
    ) {
        let publisher = publication.publisher;
        for subscription in admitted {
            let key = LaneKey {
                publisher,
                topic,
                subscription: *subscription,
            };
            if !publication.one {
                self.close_place(now, key, publication.epoch.unwrap_or(0), publication.seq);
            }
            self.dropped(now, *subscription, reason, &publisher);
        }
    }

    fn close_place(&mut self, now: Now, key: LaneKey, epoch: u64, seq: u64) {
        let Some(lane) = self.lane_index.get(&key).copied() else {
            return;
        };
        if let Some(slot) = self.lanes.get_mut(lane) {
            // One that cannot be closed now comes out as skipped: told twice rather than not at all.
            let _closed: bool = slot.lane.close(now, epoch, seq);
            self.touch(lane);
        }
    }

    /// Forgets publications whose place every lane that matched has decided.
    fn forget_decided(&mut self, now: Now) {
        let Self {
            subscriptions,
            dedup,
            tags,
            topics,
            lane_index,
            lanes,
            resting,
            ..
        } = self;
        dedup.make_room(now, MAKE_ROOM, |tag, seq| {
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
                    match lane_index.get(&key).and_then(|lane| lanes.get(*lane)) {
                        Some(slot) => slot.lane.covers(numbering.epoch, seq),
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

    /// Hands a signature to be checked elsewhere. A copy with the same bytes waits for the same answer.
    fn ask_verification(
        &mut self,
        now: Now,
        publication: &Publication<'_>,
        via: Via,
        admitted: &[SubscriptionId],
    ) {
        let same = |(_, waiting): (AskId, &Unverified)| waiting.object == publication.bytes;
        if self.unverified.iter().any(same) {
            return self.faults.add(ObjectFault::Duplicate);
        }
        let full = self.unverified.len() >= self.config.limits.pending_verifications;
        let bytes = publication.bytes.len();
        if full || self.held_bytes.saturating_add(bytes) > self.config.limits.held_bytes {
            // Not verified, so nobody's place is closed by it.
            for subscription in admitted {
                self.dropped(
                    now,
                    *subscription,
                    DropReason::VerifyFull,
                    &publication.publisher,
                );
            }
            return;
        }
        let object = Bytes::copy_from_slice(publication.bytes);
        self.held_bytes += bytes;
        let deadline = now.mono.saturating_add(ASK_PATIENCE);
        let job = VerifyJob::new(object.clone(), self.profile());
        let ask = self.unverified.insert(Unverified {
            object,
            via,
            deadline,
        });
        self.timers.insert((deadline, Timer::Ask(ask)));
        self.actions.push_back(Action::Ask {
            ask,
            question: Question::Verify(job),
            deadline,
        });
    }

    /// Answers a question, in any order.
    ///
    /// # Errors
    /// When it was answered or given up before.
    pub fn answer(&mut self, now: Now, ask: AskId, answer: Answer) -> Result<(), Misuse> {
        let now = self.at(now);
        let waiting = self.unverified.remove(ask).ok_or(Misuse::DeadHandle)?;
        self.timers.remove(&(waiting.deadline, Timer::Ask(ask)));
        self.held_bytes -= waiting.object.len();
        let Answer::Verified(verified) = answer;
        let Ok(publication) = Publication::parse(&waiting.object, self.profile()) else {
            return Ok(());
        };
        if !verified || !publication.publisher_matches_key() {
            let fault = if verified {
                ObjectFault::KeyIdMismatch
            } else {
                ObjectFault::SignatureInvalid
            };
            self.faults.add(fault);
            return Ok(());
        }
        // Looked up again: another copy may have been taken meanwhile, and subscriptions may have ended.
        if self.dedup.check(&publication.hash()).is_some() {
            self.faults.add(ObjectFault::Duplicate);
            return Ok(());
        }
        let mut admitted = self.matching(&publication.realm, publication.topic);
        admitted.retain(|id| {
            self.subscriptions
                .get(*id)
                .is_some_and(|found| found.admits(&publication.publisher))
        });
        if !admitted.is_empty() {
            self.take(now, &publication, waiting.via, &admitted);
        }
        Ok(())
    }

    /// A question was not answered in time: its fact is dropped, and its readers are told.
    pub(super) fn ask_timeout(&mut self, now: Now, ask: AskId) {
        let Some(waiting) = self.unverified.remove(ask) else {
            return;
        };
        self.held_bytes -= waiting.object.len();
        let Ok(publication) = Publication::parse(&waiting.object, self.profile()) else {
            return;
        };
        let publisher: NodeId = publication.publisher;
        for subscription in self.matching(&publication.realm, publication.topic) {
            if self
                .subscriptions
                .get(subscription)
                .is_some_and(|found| found.admits(&publisher))
            {
                self.dropped(now, subscription, DropReason::Unanswered, &publisher);
            }
        }
    }
}
