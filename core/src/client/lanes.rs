//! The lanes of all subscriptions: one per publisher and topic in each.
//!
//! Decides: which lane a fact belongs to, when a lane is made and when its memory goes. Leaves to others: the order inside (the lane
//! machine). Believes: mono, and both clocks for when a resting lane is forgotten. Bounded by: `ClientLimits::lanes`, resting ones
//! included; at the bound a new publisher's facts are `Dropped { lanes_full }`.

mod keys;
mod rest;
mod slots;

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use self::keys::lane_prefix;
pub(super) use self::keys::{LaneKey, NumberingKey};
pub(super) use self::slots::Lanes;
use super::timers::Timer;
use super::{Client, LaneId, TopicId};
use crate::delivery::Delivery;
use crate::inbound::lane::{Folded, Lane, LaneConfig, LaneItem, Offer, Reach, Slot};
use crate::notice::{Item, Notice, Numbering};
use crate::time::{Instant, Now};
use crate::topic;
use crate::wire::Publication;
use crate::{GroupId, NodeId, RealmId, SubscriptionId};

/// A topic somebody was heard on.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) realm: RealmId,
    pub(super) name: String,
    /// Whose filters match it.
    pub(super) subscriptions: Vec<SubscriptionId>,
    /// Lanes and records on it, and one for the publication at hand.
    uses: usize,
}

impl Topic {
    /// Whether a publication is on it.
    #[inline]
    pub(super) fn is(&self, publication: &Publication<'_>) -> bool {
        self.name.as_bytes() == publication.topic.as_bytes() && self.realm == publication.realm
    }
}

/// A lane at work.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) lane: Lane<Delivery, Vec<Option<Slot<Delivery>>>>,
    topic: String,
    /// Bytes of the publications it holds.
    pub(super) held_bytes: usize,
    /// Those of them that its publisher's account knows.
    accounted: usize,
    /// Facts it holds that came sealed.
    pub(super) sealed: usize,
    /// The group whose key its next fact waits for.
    pub(super) awaits: Option<GroupId>,
    /// It is in its stream's waiting list, as it is while it is ready and its stream is full.
    pub(super) waiting: bool,
    armed: Option<Instant>,
    /// The armed deadline is the one at which it may be forgotten.
    resting: bool,
}

impl Work {
    /// A new lane on this topic, in `spare` if there is one: a fact in order finds one there, so that it costs no allocation.
    fn begin(spare: &mut Option<Box<Self>>, topic: &str, config: LaneConfig) -> Box<Self> {
        let Some(mut work) = spare.take() else {
            return Box::new(Self {
                lane: Lane::growing(config),
                topic: topic.to_owned(),
                held_bytes: 0,
                accounted: 0,
                sealed: 0,
                awaits: None,
                waiting: false,
                armed: None,
                resting: false,
            });
        };
        work.lane.renew(config);
        (work.waiting, work.armed, work.resting) = (false, None, false);
        (work.sealed, work.awaits) = (0, None);
        debug_assert!((work.held_bytes, work.accounted) == (0, 0));
        work.topic.clear();
        work.topic.push_str(topic);
        work
    }

    pub(super) fn memory(&self) -> usize {
        self.lane.memory() + self.topic.capacity() + size_of::<Self>()
    }
}

/// What a lane is between two facts: most are folded.
#[derive(Debug)]
enum Kept {
    Folded(Folded),
    Whole(Box<Work>),
}

/// A lane and whose it is. What it names by number outlives it.
#[derive(Debug)]
pub(super) struct LaneSlot {
    pub(super) publisher: NodeId,
    /// One more than the number of the topic's place.
    topic: NonZeroU32,
    /// The number of its place.
    pub(super) subscription: u32,
    kept: Kept,
}

impl LaneSlot {
    fn new(key: &LaneKey, work: Box<Work>) -> Self {
        Self {
            publisher: key.publisher,
            topic: NonZeroU32::MIN.saturating_add(key.topic.index),
            subscription: key.subscription.index,
            kept: Kept::Whole(work),
        }
    }

    #[inline]
    fn is(&self, key: &LaneKey) -> bool {
        self.publisher == key.publisher
            && self.topic() == key.topic.index
            && self.is_of(key.subscription)
    }

    /// The number of its topic's place.
    pub(super) fn topic(&self) -> u32 {
        self.topic.get() - 1
    }

    /// It is one of this subscription.
    #[inline]
    pub(super) fn is_of(&self, subscription: SubscriptionId) -> bool {
        self.subscription == subscription.index
    }

    /// The lane itself, unless it is folded.
    pub(super) fn work(&mut self) -> Option<&mut Work> {
        match &mut self.kept {
            Kept::Folded(_) => None,
            Kept::Whole(work) => Some(work),
        }
    }

    fn whole(&self) -> Option<&Work> {
        match &self.kept {
            Kept::Folded(_) => None,
            Kept::Whole(work) => Some(work),
        }
    }

    /// As `Lane::covers`.
    pub(super) fn covers(&self, epoch: u64, seq: u64) -> bool {
        match &self.kept {
            Kept::Folded(folded) => folded.covers(epoch, seq),
            Kept::Whole(work) => work.lane.covers(epoch, seq),
        }
    }

    /// As `Lane::is_told`.
    pub(super) fn is_told(&self, epoch: u64, seq: u64) -> bool {
        match &self.kept {
            Kept::Folded(folded) => folded.is_told(epoch, seq),
            Kept::Whole(work) => work.lane.is_told(epoch, seq),
        }
    }

    /// As `Lane::reaches`.
    pub(super) fn reaches(&self) -> [Option<Reach>; 2] {
        match &self.kept {
            Kept::Folded(folded) => [Some(folded.reach()), None],
            Kept::Whole(work) => work.lane.reaches(),
        }
    }

    /// As `Folded::follow`; `false` where it is not folded.
    #[inline]
    pub(super) fn follow(&mut self, now: Instant, offer: &Offer) -> bool {
        match &mut self.kept {
            Kept::Folded(folded) => folded.follow(now, offer),
            Kept::Whole(_) => false,
        }
    }

    /// There is something to hand out.
    pub(super) fn is_ready(&self) -> bool {
        self.whole().is_some_and(|work| work.lane.is_ready())
    }

    /// As [`Lane::has_untold`]; a folded lane has nothing.
    pub(super) fn has_untold(&self) -> bool {
        self.whole().is_some_and(|work| work.lane.has_untold())
    }

    /// Facts that wait behind gaps.
    pub(super) fn held(&self) -> usize {
        self.whole().map_or(0, |work| work.lane.held())
    }

    /// Facts that were not delivered because a newer one was.
    pub(super) fn superseded(&self) -> u64 {
        self.whole().map_or(0, |work| work.lane.superseded())
    }

    /// As [`Lane::finish`]: what is left to say.
    pub(super) fn finish(&mut self) -> Option<Item> {
        let publisher = self.publisher;
        let work = self.work()?;
        let item = work.lane.finish()?;
        Some(told(publisher, &work.topic, item))
    }

    /// The fact that is next, if it is sealed and not opened.
    pub(super) fn sealed_front(&mut self) -> Option<&mut Delivery> {
        let work = self.work().filter(|work| work.sealed > 0)?;
        let front = work.lane.front()?.item;
        front.sealed_under().is_some().then_some(front)
    }

    /// The next item, as the stream wants it.
    pub(super) fn poll(&mut self, held: &mut usize) -> Option<Item> {
        let publisher = self.publisher;
        let work = self.work()?;
        let item = work.lane.poll()?;
        if let LaneItem::Fact { item, .. } = &item {
            let bytes = item.weight();
            work.held_bytes -= bytes;
            *held -= bytes;
            work.sealed -= usize::from(item.sealed());
        }
        Some(told(publisher, &work.topic, item))
    }

    /// Bytes besides its place in the arena.
    pub(super) fn memory(&self) -> usize {
        self.whole().map_or(0, Work::memory)
    }
}

/// What a lane hands out, as its stream wants it.
fn told(publisher: NodeId, topic: &str, item: LaneItem<Delivery>) -> Item {
    let numbering = |epoch| Numbering {
        publisher,
        topic: topic.to_owned(),
        epoch,
    };
    let notice = match item {
        LaneItem::Fact {
            epoch,
            seq,
            late,
            item: mut delivery,
        } => {
            let Some((reason, seal_key_id)) = delivery.unopened() else {
                delivery.late = late;
                return Item::Fact(delivery);
            };
            Notice::Unopened {
                of: numbering(epoch),
                seq,
                seal_key_id,
                reason,
            }
        }
        LaneItem::Conflict {
            epoch,
            first,
            last,
            count,
        } => Notice::Conflict {
            of: numbering(epoch),
            first,
            last,
            count,
        },
        LaneItem::Restarted { epoch, greater } => Notice::Restarted {
            of: numbering(epoch),
            greater,
        },
        LaneItem::Resynced { epoch } => Notice::Resynced {
            of: numbering(epoch),
        },
        LaneItem::Skipped { epoch, first, last } => Notice::Skipped {
            of: numbering(epoch),
            first,
            last,
        },
        LaneItem::TwoCounters { epoch } => Notice::TwoCounters {
            of: numbering(epoch),
        },
    };
    Item::Notice(Box::new(notice))
}

impl Client {
    /// Whose filters match this topic, put into `found` in place of what is there: looked up, or worked out for one nobody was heard on yet.
    /// Answers the topic's place, if somebody was.
    pub(super) fn matching(
        &self,
        realm: &RealmId,
        name: &str,
        found: &mut Vec<SubscriptionId>,
    ) -> Option<TopicId> {
        found.clear();
        if let Some(id) = self.topic_of(realm, name) {
            if let Some(topic) = self.topics.get(id) {
                found.extend_from_slice(&topic.subscriptions);
            }
            return Some(id);
        }
        let all = self.subscriptions.iter();
        let matching = all.filter(|(_, found)| {
            found.realm == *realm && !found.is_ended() && topic::matches(&found.filter, name)
        });
        found.extend(matching.map(|(id, _)| id));
        // In the order in which they were made, as for a topic that is known: their places depend on when others' readers took `Ended`.
        found.sort_unstable_by_key(|id| self.subscriptions.get(*id).map(|found| found.made));
        None
    }

    fn topic_of(&self, realm: &RealmId, name: &str) -> Option<TopicId> {
        self.topic_index.get(realm)?.get(name).copied()
    }

    /// One use of a topic more; `known` is its place, if it has one.
    pub(super) fn enter_topic(&mut self, known: Option<TopicId>, delivery: &Delivery) -> TopicId {
        if let Some(id) = known
            && let Some(topic) = self.topics.get_mut(id)
        {
            topic.uses += 1;
            return id;
        }
        let (realm, name) = (delivery.realm(), delivery.topic());
        let mut subscriptions = Vec::new();
        let known = self.matching(&realm, name, &mut subscriptions);
        debug_assert!(known.is_none(), "a topic has one place");
        let id = self.topics.insert(Topic {
            realm,
            name: name.to_owned(),
            subscriptions,
            uses: 1,
        });
        self.topic_index
            .entry(realm)
            .or_default()
            .insert(name.to_owned(), id);
        id
    }

    /// One use of a topic less; the last one forgets it.
    pub(super) fn leave_topic(&mut self, id: TopicId) {
        let Some(topic) = self.topics.get_mut(id) else {
            return;
        };
        topic.uses = topic.uses.saturating_sub(1);
        if topic.uses > 0 {
            return;
        }
        let Some(topic) = self.topics.remove(id) else {
            return;
        };
        if let Some(names) = self.topic_index.get_mut(&topic.realm) {
            names.remove(&topic.name);
            if names.is_empty() {
                self.topic_index.remove(&topic.realm);
            }
        }
    }

    /// The lane of a key, which `near` may be, made for a fact of this epoch when there is room for one more.
    pub(super) fn lane_for(
        &mut self,
        now: Now,
        key: LaneKey,
        near: Option<LaneId>,
        epoch: u64,
    ) -> Option<LaneId> {
        if let Some(id) = self.lanes.find_near(&key, near) {
            self.unfold(now, id);
            self.hold_lane(now, id);
            return Some(id);
        }
        let base = self.lane_base();
        let found = self.subscriptions.get_mut(key.subscription)?;
        let topic = self.topics.get_mut(key.topic)?;
        if self.lanes.is_full() {
            return None;
        }
        let config = found.lane_config(&key.publisher, epoch, now, base);
        let work = Work::begin(&mut self.spare, &topic.name, config);
        let id = self.lanes.insert(&key, work);
        found.lanes += 1;
        match self.resting.remove(&key) {
            // The record had kept its topic.
            Some(rest) => {
                if let Some(work) = self.lanes.get_mut(id).and_then(LaneSlot::work) {
                    work.lane.wake(now, rest);
                }
            }
            None => {
                topic.uses += 1;
                let work = self.lanes.get_mut(id).and_then(LaneSlot::work);
                if let (Some(commits), Some(work)) = (&mut found.commits, work) {
                    for left in commits.take(&key.publisher, &topic.name) {
                        let begun = work.lane.resume(left.epoch, left.seq, &left.untold);
                        debug_assert!(begun, "a lane has two places, and is new");
                    }
                }
            }
        }
        self.hold_lane(now, id);
        Some(id)
    }

    fn lane_base(&self) -> LaneConfig {
        LaneConfig {
            order_timeout: self.config.order_timeout,
            order_max_buffer: self.config.limits.order_max_buffer,
            ..LaneConfig::default()
        }
    }

    /// Puts a folded lane back to work; `touch` folds it again.
    pub(super) fn unfold(&mut self, now: Now, id: LaneId) {
        let base = self.lane_base();
        let Some(slot) = self.lanes.get_mut(id) else {
            return;
        };
        let Kept::Folded(folded) = slot.kept else {
            return;
        };
        let found = self.subscriptions.at(slot.subscription);
        let topic = self.topics.at(slot.topic());
        let (Some((_, found)), Some((_, topic))) = (found, topic) else {
            return;
        };
        // It follows a numbering, so it is none that may have been forgotten.
        let config = LaneConfig {
            forgotten: false,
            ..found.lane_config(&slot.publisher, 0, now, base)
        };
        let mut work = Work::begin(&mut self.spare, &topic.name, config);
        work.lane.unfold(&folded);
        slot.kept = Kept::Whole(work);
    }

    /// The one place that restores what is derived from a lane after any change of it: its items in the stream, its deadline in the index.
    pub(super) fn touch(&mut self, id: LaneId) {
        self.drain_lane(id);
        let Some(slot) = self.lanes.get(id) else {
            return;
        };
        let publisher = slot.publisher;
        let Some(subscription) = self.subscription_of(slot) else {
            return;
        };
        let Some(work) = self.lanes.get_mut(id).and_then(LaneSlot::work) else {
            return self.mark_now_and_then(subscription);
        };
        if work.held_bytes != work.accounted {
            let after = work.held_bytes;
            let before = core::mem::replace(&mut work.accounted, after);
            self.account(publisher, before, after);
            self.account_stream(subscription, before, after);
        }
        self.mark_now_and_then(subscription);
        let Some(slot) = self.lanes.get_mut(id) else {
            return;
        };
        let Kept::Whole(work) = &mut slot.kept else {
            return;
        };
        if let Some(folded) = work.lane.fold() {
            // The sweep looks when it may be forgotten.
            let armed = work.armed;
            if let Kept::Whole(work) = core::mem::replace(&mut slot.kept, Kept::Folded(folded)) {
                self.spare.get_or_insert(work);
            }
            return self.disarm(armed, Timer::Lane(id));
        }
        let due = work.lane.poll_timeout();
        // A lane that could not be drained for long rests at once, but later than now: this may be called by an output.
        let soon = self.now.mono.saturating_add(Duration::from_micros(1));
        let rest_at = || work.lane.rest_at().map(|at| at.max(soon));
        let at = due.or_else(rest_at);
        work.resting = due.is_none();
        // One that moved back stays where it is and is looked at early: else every fact would move the end of the lane's rest.
        let Some(at) = at.filter(|at| work.armed.is_none_or(|armed| *at < armed)) else {
            return;
        };
        let armed = work.armed.replace(at);
        self.disarm(armed, Timer::Lane(id));
        self.timers.insert((at, Timer::Lane(id)));
    }

    /// Bytes of one publisher that wait in lanes: it takes at most a quarter of all. Who keeps nothing waiting has no account.
    pub(super) fn account(&mut self, publisher: NodeId, before: usize, after: usize) {
        if before == after {
            return;
        }
        let held = self.waiting_bytes.entry(publisher).or_default();
        *held = held.saturating_sub(before).saturating_add(after);
        if *held == 0 {
            self.waiting_bytes.remove(&publisher);
        }
    }

    pub(super) fn lane_timeout(&mut self, now: Now, id: LaneId) {
        let Some(work) = self.lanes.get_mut(id).and_then(LaneSlot::work) else {
            return;
        };
        work.armed = None;
        if work.resting {
            return self.rest_lane(now, id);
        }
        work.lane.handle_timeout(now);
        self.touch(id);
    }

    fn key_of(&self, slot: &LaneSlot) -> Option<LaneKey> {
        Some(LaneKey {
            publisher: slot.publisher,
            topic: self.topics.at(slot.topic())?.0,
            subscription: self.subscription_of(slot)?,
        })
    }

    pub(super) fn subscription_of(&self, slot: &LaneSlot) -> Option<SubscriptionId> {
        self.subscriptions.at(slot.subscription).map(|(id, _)| id)
    }

    fn take_lane(&mut self, id: LaneId) -> Option<LaneSlot> {
        let slot = self.lanes.remove(id)?;
        if let Some(work) = slot.whole() {
            self.held_bytes -= work.held_bytes;
            self.account(slot.publisher, work.accounted, 0);
            if let Some(id) = self.subscription_of(&slot) {
                self.account_stream(id, work.accounted, 0);
            }
            self.disarm(work.armed, Timer::Lane(id));
            self.stop_awaiting(id, work.awaits);
        }
        if let Some(id) = self.subscription_of(&slot)
            && let Some(found) = self.subscriptions.get_mut(id)
        {
            Self::count_lane(found, &slot);
        }
        Some(slot)
    }

    pub(super) fn remove_lane(&mut self, id: LaneId) {
        if let Some(slot) = self.take_lane(id)
            && let Some((topic, _)) = self.topics.at(slot.topic())
        {
            self.leave_topic(topic);
        }
    }
}
