//! A publisher: publications that are announced and cancelled together.
//!
//! Decides: that a dropped handle ends it. Leaves to others: everything else; it is the core's. Believes: no clock. Bounded by:
//! `ClientLimits::open_publishers`.

use std::fmt;

use tidings::{Outcome, Publish, PublisherId, Refusal, Refused};

use crate::{Node, Pending};

impl Node {
    /// A handle for publications that are cancelled together. With `announce`, `pubsub.publish_started_v1` goes before the first of them
    /// and `pubsub.publish_completed_v1` follows when it is over; without, nothing is sent and nothing is kept but the handle.
    ///
    /// # Errors
    /// When the node was closed, or as many are open as its limits allow.
    pub fn publisher(&self, announce: bool) -> Result<Publisher, Refusal> {
        let id = self
            .engine()
            .with(|state, _| state.host.client.open_publisher(announce))?;
        Ok(Publisher {
            node: self.clone(),
            id,
        })
    }
}

/// Publications of one purpose. Dropping it ends it: what is under way goes its way, and when the last is settled it is announced as
/// completed, or as failed.
pub struct Publisher {
    node: Node,
    id: PublisherId,
}

impl Publisher {
    /// Its handle in the core.
    pub fn id(&self) -> PublisherId {
        self.id
    }

    /// As [`Node::publish`].
    ///
    /// # Errors
    /// Refused with the reason and the publication.
    pub async fn publish(&self, request: Publish) -> Result<Outcome, Refused<Publish>> {
        self.node.publish(request.by(self.id)).await
    }

    /// As [`Node::try_publish`].
    ///
    /// # Errors
    /// Refused with the reason and the publication.
    pub fn try_publish(&self, request: Publish) -> Result<Pending, Refused<Publish>> {
        self.node.try_publish(request.by(self.id))
    }

    /// Gives up what is under way: each of those settles as `Cancelled`, though it may have been routed.
    pub fn cancel(self) {
        let id = self.id;
        self.node.engine().with(|state, now| {
            // It is over only once this handle is gone.
            state.host.client.cancel_publisher(now, id).ok();
        });
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let id = self.id;
        self.node.engine().with(|state, now| {
            // Cancelled, it is over already.
            state.host.client.end_publisher(now, id).ok();
        });
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
