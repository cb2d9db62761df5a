//! What lanes and numberings are found by.
//!
//! Decides: how a key is spread over an index. Leaves to others: the tables. Believes: no clock. Bounded by: nothing of its own.

use crate::client::TopicId;
use crate::table::TableKey;
use crate::{NodeId, SubscriptionId};

/// What a lane is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct LaneKey {
    pub(in super::super) publisher: NodeId,
    pub(in super::super) topic: TopicId,
    pub(in super::super) subscription: SubscriptionId,
}

/// What a numbering is found by: the memory of a publication carries its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct NumberingKey {
    pub(in super::super) publisher: NodeId,
    pub(in super::super) topic: TopicId,
    pub(in super::super) epoch: u64,
}

/// Spreads what distinguishes the keys of one publisher over its 16 bytes, which no stranger can choose to collide.
fn mixed(publisher: &NodeId, more: u64) -> [u64; 2] {
    let [low, high] = TableKey::prefix(publisher);
    [low ^ more.wrapping_mul(0x9e37_79b9_7f4a_7c15), high]
}

impl TableKey for LaneKey {
    fn prefix(&self) -> [u64; 2] {
        lane_prefix(&self.publisher, self.topic.index, self.subscription.index)
    }
}

pub(super) fn lane_prefix(publisher: &NodeId, topic: u32, subscription: u32) -> [u64; 2] {
    mixed(publisher, u64::from(topic) << 32 | u64::from(subscription))
}

impl TableKey for NumberingKey {
    fn prefix(&self) -> [u64; 2] {
        mixed(
            &self.publisher,
            self.epoch ^ u64::from(self.topic.index) << 40,
        )
    }
}
