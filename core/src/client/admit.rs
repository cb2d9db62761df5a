//! A verified publication that somebody wants.
//!
//! Decides: whether it is remembered, which lanes it is offered to, and at whose cost there is room for it. Leaves to others: whether it is
//! wanted (receive), the order itself (lanes), reading (streams). Believes: the wall for its life. Bounded by: `ClientLimits::{held_bytes,
//! dedup_entries, lanes}`; what a bound drops is a `Dropped` notice, and its place is closed at once.

use alloc::vec::Vec;

use super::holds::Waiting;
use super::lanes::{LaneKey, LaneSlot, NumberingKey};
use super::receive::{Arrived, Last};
use super::streams::Subscription;
use super::{Client, LaneId, TopicId};
use crate::SubscriptionId;
use crate::code::{DropReason, ObjectFault};
use crate::delivery::Delivery;
use crate::inbound::dedup::{Full, NewEntry, SignatureKey};
use crate::inbound::lane::{Admit, Offer};
use crate::notice::{Item, Notice};
use crate::tags;
use crate::time::Now;

/// Remembered publications looked at for one that may be forgotten early.
const MAKE_ROOM: usize = 4096;
/// At this fill of the memory, in percent, readers are warned once.
const WARN_AT: u8 = 80;

impl Client {
    /// A verified, matching, unseen publication that somebody wants.
    pub(super) fn take(&mut self, now: Now, arrived: &Arrived, readers: &[SubscriptionId]) {
        let delivery = &arrived.delivery;
        let one;
        let readers = if delivery.anycast() {
            one = self.one_unrefused(now, delivery.publisher(), arrived.from.wire, readers);
            one.as_slice()
        } else {
            readers
        };
        let topic = self.enter_topic(arrived.topic, delivery);
        if let Err(fault) = delivery.freshness(now.wall) {
            self.faults.add(fault);
            // Where it was told what became of its place, it is not missing.
            let (publisher, epoch, seq) = (
                delivery.publisher(),
                delivery.epoch().unwrap_or(0),
                delivery.seq(),
            );
            let mut missing = self.unrefused(now, delivery.publisher(), readers);
            missing.retain(|subscription| {
                let key = LaneKey {
                    publisher,
                    topic,
                    subscription: *subscription,
                };
                delivery.anycast() || !self.is_told(&key, epoch, seq)
            });
            self.drop_fact(now, delivery, topic, &missing, DropReason::OutOfDate);
        } else if self.verdicts.are_asked() {
            self.take_judged(now, arrived, topic, readers);
        } else {
            self.remember(now, arrived, topic, readers, &Waiting::NONE);
        }
        self.leave_topic(topic);
    }

    /// A fact that `readers` get, and others when their lookups have come to an end.
    pub(super) fn remember(
        &mut self,
        now: Now,
        arrived: &Arrived,
        topic: TopicId,
        readers: &[SubscriptionId],
        waiting: &Waiting,
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
                self.drop_fact(now, delivery, topic, readers, DropReason::DedupFull);
                return self.drop_holds(now, delivery, topic, waiting, DropReason::DedupFull);
            }
        }
        self.published = self.published.max(delivery.published_at());
        self.warn_when_nearly_full();
        self.arm_sweep(now);
        if self.is_clear_where_sealed(delivery) {
            for (lookup, _) in &waiting.lookups {
                self.verdicts.machine.leave(*lookup);
            }
            let others = waiting.lookups.iter().flat_map(|(_, others)| others);
            return self.refuse_clear(now, delivery, topic, readers.iter().chain(others));
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
        if !waiting.lookups.is_empty() {
            let taken = (!readers.is_empty()).then_some(taken);
            self.hold(now, (delivery, hash, offer), topic, taken, waiting);
        } else if !taken {
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
    pub(super) fn offer(
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
        let bytes = delivery.weight();
        let held = self.waiting_bytes.get(&publisher).copied().unwrap_or(0);
        if held.saturating_add(bytes) > self.config.limits.held_bytes / 4 || !self.make_bytes(bytes)
        {
            let told = !offer.anycast && self.close_place(now, *key, offer.epoch, offer.seq);
            if !told {
                self.dropped(now, subscription, DropReason::BytesFull, &publisher);
            }
            return false;
        }
        if let Some(lane) = self.hand_over(now, key, *near, offer, delivery) {
            *near = Some(lane);
            return true;
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
                work.sealed += usize::from(delivery.sealed());
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
        if taken {
            self.want_key(now, subscription, delivery);
        }
        self.touch(lane);
        taken
    }

    /// Hands a fact that is the next of its folded lane to the stream at once, as that lane unfolded would. Answers the lane; `None`, and
    /// nothing has changed, for a fact that has to be offered to it.
    fn hand_over(
        &mut self,
        now: Now,
        key: &LaneKey,
        near: Option<LaneId>,
        offer: &Offer,
        delivery: &Delivery,
    ) -> Option<LaneId> {
        // A replay that goes on is the lane's to know, and a sealed fact its to open.
        if self.replays || delivery.sealed() {
            return None;
        }
        let found = self.subscriptions.get(key.subscription)?;
        if found.pauses && found.is_full() {
            return None;
        }
        let commits = found.commits.is_some();
        let id = self.lanes.find_near(key, near)?;
        if !self.lanes.get_mut(id)?.follow(now.mono, offer) {
            return None;
        }
        self.push(key.subscription, Item::Fact(delivery.clone()));
        if commits {
            self.mark_now_and_then(key.subscription);
        }
        Some(id)
    }

    /// Room for so many bytes more, if need be at the cost of the fullest stream: a reader that is slow pays for it, not the others.
    #[inline]
    pub(super) fn make_bytes(&mut self, bytes: usize) -> bool {
        while self.held_bytes.saturating_add(bytes) > self.config.limits.held_bytes {
            if !self.collapse_fullest() {
                return false;
            }
        }
        true
    }

    /// A verified fact is dropped: its readers are told, and nothing waits for it.
    pub(super) fn drop_fact(
        &mut self,
        now: Now,
        delivery: &Delivery,
        topic: TopicId,
        readers: &[SubscriptionId],
        reason: DropReason,
    ) {
        for subscription in readers {
            if !self.pass_over(now, delivery, topic, *subscription) {
                self.dropped(now, *subscription, reason, &delivery.publisher());
            }
        }
    }

    /// One subscription does not get a fact: nothing there waits for its place, if it has one. Answers as `close_place` does.
    pub(super) fn pass_over(
        &mut self,
        now: Now,
        delivery: &Delivery,
        topic: TopicId,
        subscription: SubscriptionId,
    ) -> bool {
        let key = LaneKey {
            publisher: delivery.publisher(),
            topic,
            subscription,
        };
        let (epoch, seq) = (delivery.epoch().unwrap_or(0), delivery.seq());
        !delivery.anycast() && self.close_place(now, key, epoch, seq)
    }

    /// Passes over the place of a fact that is dropped. Answers whether a `Skipped` speaks of it, so that no `Dropped` has to: where a full
    /// stream stands before the lane, which has no room to remember the place.
    fn close_place(&mut self, now: Now, key: LaneKey, epoch: u64, seq: u64) -> bool {
        // No record wakes for what is not delivered: each copy of what nobody was told of is told of while its lane rests.
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
