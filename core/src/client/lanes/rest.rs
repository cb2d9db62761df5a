//! Lanes nobody spoke on for ten minutes, and what is kept of them; and how those of a subscription go.
//!
//! Decides: when a lane goes, and when its record does. Leaves to others: what a record says (the lane machine). Believes: mono, and both
//! clocks for when a record is forgotten. Bounded by: `ClientLimits::resting_lanes`, and what a sweep may look at.

use alloc::vec::Vec;

use super::{Kept, LaneSlot};
use crate::SubscriptionId;
use crate::client::{Client, LaneId};
use crate::time::Now;

impl Client {
    /// Makes records of folded lanes that were silent for long enough, looking at `budget` lanes.
    pub(in crate::client) fn sweep_lanes(&mut self, now: Now, budget: usize) {
        let silent = self
            .lanes
            .sweep(&mut self.lanes_hand, budget, |slot| match &slot.kept {
                Kept::Folded(folded) => folded.rest_at() <= now.mono,
                Kept::Whole(_) => false,
            });
        for id in silent {
            self.rest_lane(now, id);
        }
    }

    /// A lane that is idle with nothing held: 64 bytes remember what it must not deliver twice.
    pub(super) fn rest_lane(&mut self, now: Now, id: LaneId) {
        let Some(slot) = self.lanes.get(id) else {
            return;
        };
        let Some(key) = self.key_of(slot) else {
            return;
        };
        let was_folded = slot.whole().is_none();
        self.unfold(now, id);
        let Some(work) = self.lanes.get_mut(id).and_then(LaneSlot::work) else {
            return;
        };
        let Some(rest) = work.lane.rest(now) else {
            return self.touch(id);
        };
        let kept = self.resting.insert(key, rest).is_ok();
        if let Some(slot) = self.take_lane(id)
            && let Kept::Whole(work) = slot.kept
            && was_folded
        {
            self.spare.get_or_insert(work);
        }
        if kept {
            self.arm_sweep(now);
        } else {
            self.leave_topic(key.topic);
            self.forgot(key.subscription);
        }
    }

    /// Lets records go that answer for nothing any more.
    pub(in crate::client) fn sweep_resting(&mut self, now: Now, budget: usize) {
        let mut gone = Vec::new();
        self.resting
            .sweep(&mut self.resting_hand, budget, |key, rest| {
                let keep = !rest.is_expired(now);
                if !keep {
                    gone.push(*key);
                }
                keep
            });
        for key in gone {
            self.forgot(key.subscription);
            self.leave_topic(key.topic);
        }
    }

    /// A record was given up: a numbering from before now that is heard for the first time in this subscription may have been heard before.
    fn forgot(&mut self, id: SubscriptionId) {
        if let Some(found) = self.subscriptions.get_mut(id) {
            found.forgot = Some(self.now.wall);
        }
    }

    /// Forgets every lane and every record of a subscription that is gone.
    pub(in crate::client) fn forget_lanes(&mut self, id: SubscriptionId) {
        let of_it = self.lanes.iter().filter(|(_, slot)| slot.is_of(id));
        let lanes: Vec<LaneId> = of_it.map(|(lane, _)| lane).collect();
        for lane in lanes {
            self.remove_lane(lane);
        }
        let mut gone = Vec::new();
        self.resting.sweep(&mut 0, usize::MAX, |key, _| {
            let keep = key.subscription != id;
            if !keep {
                gone.push(key.topic);
            }
            keep
        });
        for topic in gone {
            self.leave_topic(topic);
        }
        for (_, topic) in self.topics.iter_mut() {
            topic.subscriptions.retain(|other| *other != id);
        }
        self.wanted = false;
    }
}
