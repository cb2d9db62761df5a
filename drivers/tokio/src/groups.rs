//! Sealed groups of a node.
//!
//! Decides: nothing. Leaves to others: keys, which the core asks for ([`NodeBuilder::answers`](crate::NodeBuilder::answers) says whom), and what
//! they seal and open, which is the core's. Believes: no clock. Bounded by: `ClientLimits::groups`.

use tidings::{Group, GroupId, GroupStatus, Misuse, Refused};

use crate::Node;

impl Node {
    /// Joins a group, for `Publish::group` and `Subscribe::group`. Its keys are asked for at once, and
    /// as they change; nothing is published in the clear under its prefix from now on.
    ///
    /// # Errors
    /// Refused with the reason and the request.
    pub fn join_group(&self, group: Group) -> Result<GroupId, Refused<Group>> {
        self.engine()
            .with(|state, now| state.host.client.join_group(now, group))
    }

    /// Leaves a group: its keys are wiped.
    ///
    /// # Errors
    /// When it was left before.
    pub fn leave_group(&self, group: GroupId) -> Result<(), Misuse> {
        self.engine()
            .with(|state, now| state.host.client.leave_group(now, group))
    }

    /// How a group stands: whether its keys are there, or why they are not. `None` once it was left.
    pub fn group(&self, group: GroupId) -> Option<GroupStatus> {
        self.engine().lock().host.client.group(group)
    }
}
