//! Sealed facts on their way to their reader, and clear ones where they may not be.
//!
//! Decides: when a key is asked for, whether the fact at the front of a lane may leave, and that it is told when it cannot be opened. Leaves to
//! others: which key is due (the keyring), the order (the lane). Believes: both clocks. Bounded by: what lanes hold; a lane waits no longer
//! than its question; [`CLEAR_RUNS`] runs of facts in the clear.

use alloc::string::String;

use super::groups::Groups;
use super::lanes::LaneSlot;
use super::{Client, LaneId, TopicId};
use crate::code::{DiagnosticCode, ObjectFault, SealPolicy, UnopenedReason};
use crate::delivery::Delivery;
use crate::keyring::Lookup;
use crate::limits::CLEAR_RUNS;
use crate::time::Now;
use crate::{NodeId, RealmId, SubscriptionId};

/// Facts that one publisher numbered one after the other, and that were refused because they were in the clear where seals are required. Nothing
/// in a stream speaks of them: whoever adds up what came finds here which numbers nobody lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedInClear {
    /// In which realm.
    pub realm: RealmId,
    /// Who signed them.
    pub publisher: NodeId,
    /// On which topic.
    pub topic: String,
    /// In which of its numberings, if it says.
    pub epoch: Option<u64>,
    /// The number of the first.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
}

impl RefusedInClear {
    /// Whether a fact's number is in this run, or the next, which it is in then.
    fn takes(&mut self, delivery: &Delivery) -> bool {
        let seq = delivery.seq();
        let takes = (self.first..=self.last + 1).contains(&seq)
            && self.epoch == delivery.epoch()
            && self.realm == delivery.realm()
            && self.publisher == delivery.publisher()
            && self.topic == delivery.topic();
        if takes {
            self.last = self.last.max(seq);
        }
        takes
    }
}

/// Whether the fact at the front of a lane leaves it.
enum Front {
    /// It may, or there is none that is sealed.
    Leaves,
    /// It does, and could not be opened.
    Unopened(UnopenedReason),
    /// Its key was asked for.
    Waits,
}

impl Groups {
    fn remember_clear(&mut self, delivery: &Delivery) {
        let clear = &mut self.clear;
        if delivery.anycast() || clear.iter_mut().rev().any(|run| run.takes(delivery)) {
            return;
        }
        if clear.len() == CLEAR_RUNS {
            clear.pop_front();
        }
        clear.push_back(RefusedInClear {
            realm: delivery.realm(),
            publisher: delivery.publisher(),
            topic: delivery.topic().into(),
            epoch: delivery.epoch(),
            first: delivery.seq(),
            last: delivery.seq(),
        });
    }
}

impl Client {
    /// A sealed fact has come for a subscription: its key is asked for before it is its turn.
    pub(super) fn want_key(&mut self, now: Now, id: SubscriptionId, delivery: &Delivery) {
        let Some(key_id) = delivery.sealed_under() else {
            return;
        };
        let Some(group) = self.subscriptions.get(id).and_then(|found| found.group) else {
            return;
        };
        if let Some(joined) = self.groups.get_mut(group) {
            joined.keyring.want(now, &key_id, &delivery.publisher());
            self.touch_group(group);
        }
    }

    /// Whether a fact is in the clear where a group of this node requires seals.
    pub(super) fn is_clear_where_sealed(&self, delivery: &Delivery) -> bool {
        if self.groups.len() == 0 || delivery.sealed_under().is_some() {
            return false;
        }
        let covering = self.groups.covering(&delivery.realm(), delivery.topic());
        let joined = covering.and_then(|group| self.groups.get(group));
        joined.is_some_and(|joined| joined.keyring.policy() == Some(SealPolicy::Required))
    }

    /// Refuses it to all its readers: nothing waits for its place.
    pub(super) fn refuse_clear<'a>(
        &mut self,
        now: Now,
        delivery: &Delivery,
        topic: TopicId,
        readers: impl Iterator<Item = &'a SubscriptionId>,
    ) {
        self.faults.add(ObjectFault::ClearRefused);
        self.groups.remember_clear(delivery);
        self.report(
            DiagnosticCode::ClearRefused,
            None,
            ObjectFault::ClearRefused.text(),
        );
        for subscription in readers {
            self.counts.clear_refused += 1;
            self.pass_over(now, delivery, topic, *subscription);
        }
    }

    /// Opens what is next in a lane, if it is sealed. `false`: its key is waited for, and the lane with it.
    pub(super) fn open_front(&mut self, id: LaneId, subscription: SubscriptionId) -> bool {
        let (now, profile) = (self.now, self.profile());
        let group = self
            .subscriptions
            .get(subscription)
            .and_then(|found| found.group);
        let Some(slot) = self.lanes.get_mut(id) else {
            return true;
        };
        let front = match (slot.sealed_front(), group) {
            (None, _) => Front::Leaves,
            (Some(_), None) => Front::Unopened(UnopenedReason::NoGroup),
            (Some(delivery), Some(group)) => match self.groups.get_mut(group) {
                None => Front::Unopened(UnopenedReason::NoGroup),
                Some(joined) => {
                    let key_id = delivery.sealed_under().unwrap_or_default();
                    match joined.keyring.lookup(now, &key_id, &delivery.publisher()) {
                        Lookup::Held { subkey, period } => {
                            match delivery.open(subkey, period, profile) {
                                Ok(()) => Front::Leaves,
                                Err(reason) => Front::Unopened(reason),
                            }
                        }
                        Lookup::Unopened(reason) => Front::Unopened(reason),
                        Lookup::Waiting => {
                            joined.waiting.insert(id);
                            Front::Waits
                        }
                    }
                }
            },
        };
        if let Some(group) = group {
            self.touch_group(group);
        }
        match front {
            Front::Leaves => true,
            Front::Waits => {
                self.set_awaits(id, group);
                false
            }
            Front::Unopened(reason) => {
                if let Some(delivery) = self.lanes.get_mut(id).and_then(LaneSlot::sealed_front) {
                    delivery.set_unopened(reason);
                }
                self.counts.unopened += 1;
                self.report(DiagnosticCode::EventUnopened, None, reason.text());
                true
            }
        }
    }

    fn set_awaits(&mut self, id: LaneId, group: Option<crate::GroupId>) {
        if let Some(work) = self.lanes.get_mut(id).and_then(LaneSlot::work) {
            work.awaits = group;
        }
    }

    /// A lane is gone: no group wakes it.
    pub(super) fn stop_awaiting(&mut self, id: LaneId, group: Option<crate::GroupId>) {
        if let Some(joined) = group.and_then(|group| self.groups.get_mut(group)) {
            joined.waiting.remove(&id);
        }
    }
}
