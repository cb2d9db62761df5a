//! Counts by reason.
//!
//! Decides: nothing. Leaves to others: when to count. Believes: no clock. Bounded by: one number per reason of the closed sets.

use crate::code::ObjectFault;

/// How many objects were passed over, by reason (WIRE.md table 10.12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; ObjectFault::ALL.len()]);

impl FaultCounts {
    pub(crate) fn add(&mut self, fault: ObjectFault) {
        // `ALL` lists the variants as they are declared.
        if let Some(count) = self.0.get_mut(fault as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// How many for this reason.
    pub fn of(&self, fault: ObjectFault) -> u64 {
        self.0.get(fault as usize).copied().unwrap_or(0)
    }

    /// Every reason with its count, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectFault, u64)> + '_ {
        ObjectFault::ALL.iter().copied().zip(self.0)
    }
}
