//! Facts that wait for a verdict on their publisher.
//!
//! Decides: in which order they go on, when their life is over, and whether a later copy gets another chance. Leaves to others: the verdict
//! (sources), the order in a lane. Believes: the wall for a fact's life, mono for when that is looked at. Bounded by: `SourceLimits::held_per_key`
//! for each lookup, a quarter of `held_bytes` for all, a quarter with its lanes for one publisher.
//!
//! A fact takes its place in its lane when it goes on. All facts of a publisher wait for the same lookup, whatever their topic, and go on in the
//! order in which they came, so none is overtaken on its own way; what a lane was missing before may be given up meanwhile, and comes late.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::lanes::LaneKey;
use super::timers::Timer;
use super::{Client, TopicId};
use crate::arena::{Arena, inner_handle};
use crate::code::{DropReason, ObjectFault};
use crate::delivery::Delivery;
use crate::inbound::lane::Offer;
use crate::inbound::sources::{LookupId, Settled};
use crate::time::{Instant, Now};
use crate::{PublicationHash, SubscriptionId};

inner_handle!(/** A fact that waits. */ HeldId);

/// Slots of the arena that may stay empty.
const KEPT: usize = 64;

/// A fact that waits for one lookup or several.
#[derive(Debug)]
struct Held {
    delivery: Delivery,
    hash: PublicationHash,
    topic: TopicId,
    offer: Offer,
    /// Lookups it waits for.
    lookups: usize,
    /// Some subscription has it.
    taken: bool,
    /// Some subscription dropped it for a bound or a budget, or is gone.
    dropped: bool,
}

/// For whom a fact waits for one lookup.
type Waits = (HeldId, Vec<SubscriptionId>);

/// What waits for one lookup, in the order in which it came.
#[derive(Debug, Default)]
struct Queue {
    facts: VecDeque<Waits>,
    /// When the first life ends.
    armed: Option<Instant>,
}

/// For whom a fact has to wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) lookups: Vec<(LookupId, Vec<SubscriptionId>)>,
    /// Somebody else dropped it for a budget.
    pub(super) dropped: bool,
}

impl Waiting {
    /// Nobody.
    pub(super) const NONE: Self = Self {
        lookups: Vec::new(),
        dropped: false,
    };
}

/// All facts that wait.
#[derive(Debug)]
pub(super) struct Holds {
    facts: Arena<HeldId, Held>,
    queues: BTreeMap<LookupId, Queue>,
    bytes: usize,
}

impl Default for Holds {
    fn default() -> Self {
        Self {
            facts: Arena::keeping(KEPT),
            queues: BTreeMap::new(),
            bytes: 0,
        }
    }
}

impl Holds {
    /// Facts that wait.
    pub(super) fn len(&self) -> usize {
        self.facts.len()
    }

    /// Bytes besides the publications.
    pub(super) fn memory(&self) -> usize {
        let queues = self.queues.values().map(|queue| {
            let readers = queue.facts.iter().map(|(_, readers)| readers.capacity());
            readers.sum::<usize>() * size_of::<SubscriptionId>()
                + queue.facts.capacity() * size_of::<Waits>()
        });
        // A map's nodes are half full at least.
        queues.sum::<usize>()
            + self.queues.len() * 2 * size_of::<(LookupId, Queue)>()
            + self.facts.memory()
    }
}

impl Client {
    /// Whether a fact may wait: what anybody can send takes a quarter at most, and for that much a slow reader makes room.
    pub(super) fn has_room_to_hold(&mut self, delivery: &Delivery) -> bool {
        let (bytes, most) = (delivery.weight(), self.config.limits.held_bytes / 4);
        let its = self.waiting_bytes.get(&delivery.publisher());
        let its = its.copied().unwrap_or(0);
        let fits = |held: usize| held.saturating_add(bytes) <= most;
        fits(its) && fits(self.verdicts.holds.bytes) && self.make_bytes(bytes)
    }

    /// A fact waits; `taken`: whether those who need not wait have it, if there are any.
    pub(super) fn hold(
        &mut self,
        now: Now,
        held: (&Delivery, &PublicationHash, Offer),
        topic: TopicId,
        taken: Option<bool>,
        waiting: &Waiting,
    ) {
        let lookups = &waiting.lookups;
        let (delivery, hash, offer) = held;
        let topic = self.enter_topic(Some(topic), delivery);
        let id = self.verdicts.holds.facts.insert(Held {
            delivery: delivery.clone(),
            hash: *hash,
            topic,
            offer,
            lookups: lookups.len(),
            taken: taken == Some(true),
            dropped: waiting.dropped || taken == Some(false),
        });
        self.hold_bytes(delivery, true);
        let ends = ends_at(now, delivery);
        for (lookup, readers) in lookups {
            for reader in readers {
                self.account_stream(*reader, 0, delivery.weight());
            }
            let queues = &mut self.verdicts.holds.queues;
            let queue = queues.entry(*lookup).or_default();
            queue.facts.push_back((id, readers.clone()));
            if queue.armed.is_none_or(|armed| ends < armed) {
                let armed = queue.armed.replace(ends);
                self.disarm(armed, Timer::Hold(*lookup));
                self.timers.insert((ends, Timer::Hold(*lookup)));
            }
        }
    }

    fn hold_bytes(&mut self, delivery: &Delivery, more: bool) {
        let (bytes, publisher) = (delivery.weight(), delivery.publisher());
        let (before, after) = match more {
            true => (0, bytes),
            false => (bytes, 0),
        };
        self.account(publisher, before, after);
        let holds = &mut self.verdicts.holds.bytes;
        *holds = *holds + after - before;
        self.held_bytes = self.held_bytes + after - before;
    }

    /// A lookup has come to an end: what waited for it goes on, in the order in which it came.
    pub(super) fn settle_holds(&mut self, now: Now, lookup: LookupId, settled: Settled) {
        let Some(queue) = self.verdicts.holds.queues.remove(&lookup) else {
            return;
        };
        self.disarm(queue.armed, Timer::Hold(lookup));
        for (id, readers) in queue.facts {
            self.settle_one(now, id, &readers, settled);
        }
    }

    fn settle_one(&mut self, now: Now, id: HeldId, readers: &[SubscriptionId], settled: Settled) {
        let Some(held) = self.verdicts.holds.facts.get_mut(id) else {
            return;
        };
        let (delivery, topic, offer) = (held.delivery.clone(), held.topic, held.offer);
        let bytes = delivery.weight();
        let last = held.lookups == 1;
        if last {
            // Room for where it goes.
            self.hold_bytes(&delivery, false);
        }
        let settled = match settled {
            Settled::Admit if is_over(now, &delivery) => Err(DropReason::HoldExpired),
            Settled::Drop(reason) => Err(reason.reason()),
            other => Ok(other),
        };
        let (mut taken, mut dropped) = (false, false);
        let mut near = None;
        let clear = settled == Ok(Settled::Admit) && self.is_clear_where_sealed(&delivery);
        if clear {
            self.refuse_clear(now, &delivery, topic, readers.iter());
            // That is what it is counted as, and a copy of it would be refused the same.
            taken = true;
        }
        for reader in readers {
            self.account_stream(*reader, bytes, 0);
            match settled {
                Ok(Settled::Refuse(reason)) => {
                    self.refuse_source(now, &delivery, topic, *reader, reason);
                }
                Ok(_) if clear => {}
                Ok(_) => {
                    let key = LaneKey {
                        publisher: delivery.publisher(),
                        topic,
                        subscription: *reader,
                    };
                    let took = self.offer(now, &key, &mut near, &offer, &delivery);
                    taken |= took;
                    dropped |= !took;
                }
                Err(reason) => {
                    dropped = true;
                    self.drop_undecided(now, &delivery, topic, *reader, reason);
                }
            }
        }
        let Some(held) = self.verdicts.holds.facts.get_mut(id) else {
            return;
        };
        held.taken |= taken;
        held.dropped |= dropped;
        // Not before: a stream that ended to make room may have been the last of another lookup.
        held.lookups -= 1;
        if held.lookups == 0 {
            if !last {
                self.hold_bytes(&delivery, false);
            }
            self.end_hold(id);
        }
    }

    /// Nothing is waited for any more. Where nobody has it and somebody only had no room or no time, a later copy gets another chance.
    fn end_hold(&mut self, id: HeldId) {
        if let Some(held) = self.verdicts.holds.facts.remove(id) {
            match (held.taken, held.dropped) {
                (true, _) => {}
                (false, true) => {
                    self.dedup.forget(&held.hash);
                }
                (false, false) => self.faults.add(ObjectFault::SourceRefused),
            }
            self.leave_topic(held.topic);
        }
    }

    /// The life of a fact that waits for this lookup may be over.
    pub(super) fn hold_timeout(&mut self, now: Now, lookup: LookupId) {
        let holds = &mut self.verdicts.holds;
        let Some(queue) = holds.queues.get_mut(&lookup) else {
            return;
        };
        queue.armed = None;
        let facts = &holds.facts;
        let mut over = Vec::new();
        let mut left = VecDeque::new();
        for waits in queue.facts.drain(..) {
            match facts.get(waits.0) {
                Some(held) if !is_over(now, &held.delivery) => left.push_back(waits),
                _ => over.push(waits),
            }
        }
        let lives = left.iter().filter_map(|(id, _)| facts.get(*id));
        let ends = lives.map(|held| ends_at(now, &held.delivery)).min();
        queue.facts = left;
        queue.armed = ends;
        self.timers
            .extend(ends.map(|ends| (ends, Timer::Hold(lookup))));
        for (id, readers) in over {
            self.verdicts.machine.leave(lookup);
            // Whatever the verdict would be: its life is over.
            self.settle_one(now, id, &readers, Settled::Admit);
        }
    }

    /// A subscription is gone: nothing waits for it.
    pub(super) fn forget_holds(&mut self, subscription: SubscriptionId) {
        if self.verdicts.holds.facts.len() == 0 {
            return;
        }
        let (mut alone, mut bytes) = (Vec::new(), 0usize);
        let Holds { facts, queues, .. } = &mut self.verdicts.holds;
        for (lookup, queue) in queues {
            queue.facts.retain_mut(|(id, readers)| {
                let before = readers.len();
                readers.retain(|reader| *reader != subscription);
                if readers.len() < before {
                    let weight = facts.get(*id).map_or(0, |held| held.delivery.weight());
                    bytes = bytes.saturating_add(weight);
                }
                if readers.is_empty() {
                    alone.push((*lookup, *id));
                }
                !readers.is_empty()
            });
        }
        self.account_stream(subscription, bytes, 0);
        for (lookup, id) in alone {
            self.verdicts.machine.leave(lookup);
            let Some(held) = self.verdicts.holds.facts.get_mut(id) else {
                continue;
            };
            held.lookups -= 1;
            held.dropped = true;
            if held.lookups == 0 {
                let delivery = held.delivery.clone();
                self.hold_bytes(&delivery, false);
                self.end_hold(id);
            }
        }
    }
}

fn is_over(now: Now, delivery: &Delivery) -> bool {
    now.wall > delivery.expires_at()
}

/// When a life ends by the monotonic clock, if the wall goes on as it does.
fn ends_at(now: Now, delivery: &Delivery) -> Instant {
    let left = delivery.expires_at().as_millis();
    let left = left.saturating_sub(now.wall.as_millis());
    now.mono.saturating_add_millis(left.saturating_add(1))
}
