//! Sealed facts that were not opened: each said once, and with a reason.
//!
//! Decides: which reasons a run may give. Leaves to others: that they account for what was owed (the ledger). Believes: the true time. Bounded
//! by: the notices of the run.

use alloc::collections::BTreeMap;
use alloc::format;

use super::{Findings, Numbering, Sorted};
use crate::code::UnopenedReason;
use crate::sim::plan::Op;
use crate::sim::secrets::Secrets;
use crate::sim::world::World;

impl World {
    /// What is told as unopened is told once, and is not delivered as well.
    pub(super) fn check_unopened(&self, sub: usize, sorted: &Sorted<'_>, found: &mut Findings) {
        if sorted.unopened.is_empty() {
            return;
        }
        let facts = sorted.facts.iter();
        let delivered = facts.filter_map(|(_, number, _)| self.place_of(*number));
        let mut told: BTreeMap<(Numbering, u64), usize> = BTreeMap::new();
        for place in delivered.chain(sorted.not_opened()) {
            *told.entry(place).or_default() += 1;
        }
        for (place, times) in told.iter().filter(|(_, times)| **times > 1) {
            // Two processes with one key give a number twice, to publications for one subscriber as well.
            let all = 0..self.truth.made.len() as u32;
            let made = all.filter(|number| self.place_of(*number) == Some(*place));
            if *times > made.count() {
                found.add("unopened", || {
                    format!("q{sub} was told of {place:?} twice, or given it as well")
                });
            }
        }
    }

    /// Whether something accounts for a fact that was not opened.
    pub(super) fn unopened(&self, sub: usize, reason: UnopenedReason) -> Result<(), &'static str> {
        let secrets = &self.net.secrets;
        if !secrets.on {
            return Err("nobody seals");
        }
        let named = Secrets::covers(self.plan.topics.filter(self.subs[sub].wanted.filter));
        let plan = &self.plan.nodes[self.nodes[self.node_of(sub)].plan];
        let is_outside = secrets.outsider == Some(plan.key);
        let fails = secrets.fails();
        let sleeps = self.plan.acts.iter().any(|act| {
            matches!(act.op, Op::SleepNode { .. }) || matches!(act.op, Op::CrashNode { .. })
        });
        let accounted = match reason {
            UnopenedReason::NoGroup => !named,
            UnopenedReason::NotAMember => is_outside,
            UnopenedReason::MembershipUnknown => fails,
            UnopenedReason::NoDistributor => {
                fails || sleeps || secrets.comes_late(plan.skew) || self.walls_differ()
            }
            UnopenedReason::UnknownPeriod => fails || self.walls_differ(),
            UnopenedReason::PeriodExpired => self.walls_differ(),
            UnopenedReason::NotAuthorized | UnopenedReason::TagInvalid => false,
        };
        match accounted {
            true => Ok(()),
            false => Err("nothing kept its key from it"),
        }
    }
}
