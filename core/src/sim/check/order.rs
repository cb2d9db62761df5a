//! At most once, nobody's facts but those that were asked for, and in order unless marked late.
//!
//! Decides: what a stream may hold at which place. Leaves to others: whether all is there (the ledger). Believes: no clock. Bounded by: the
//! streams of the run.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;

use super::{Findings, Numbering, Sorted, named};
use crate::inbound::lane::Mode;
use crate::notice::Notice;
use crate::sim::world::{End, Told, World};

impl World {
    /// Each publication once, and none that was not asked for.
    pub(super) fn check_once(&self, sub: usize, sorted: &Sorted<'_>, found: &mut Findings) {
        let wanted = &self.subs[sub].wanted;
        let mut seen = BTreeMap::new();
        for (place, number, _) in &sorted.facts {
            if let Some(first) = seen.insert(*number, *place) {
                found.add("once", || {
                    let named = named(*number, self.place_of(*number));
                    format!("q{sub} got {named} at places {first} and {place}")
                });
            }
            let Some(made) = self.truth.made.get(*number as usize) else {
                found.add("once", || {
                    format!("q{sub} got #{number}, which nobody made")
                });
                continue;
            };
            let admitted = wanted
                .sources
                .is_none_or(|bits| bits & (1 << made.key) != 0);
            if !admitted || !self.plan.topics.matches(wanted.filter, made.topic) {
                found.add("unwanted", || {
                    format!("q{sub} got #{number}, which it did not ask for")
                });
            }
        }
    }

    /// A publication for one subscriber goes to one.
    pub(super) fn check_anycast(&self, found: &mut Findings) {
        let mut seen = BTreeMap::new();
        for (index, sub) in self.subs.iter().enumerate() {
            for (_, told) in &sub.told {
                if let Told::Fact { number, .. } = told
                    && self
                        .truth
                        .made
                        .get(*number as usize)
                        .is_some_and(|made| made.one)
                    && let Some(first) = seen.insert(*number, index)
                {
                    found.add("once", || {
                        format!("#{number}, for one, went to q{first} and q{index}")
                    });
                }
            }
        }
    }

    /// In order unless late, and no hole that nothing tells of.
    pub(super) fn check_order(&self, sub: usize, sorted: &Sorted<'_>, found: &mut Findings) {
        match self.subs[sub].wanted.mode {
            Mode::LatestOnly => self.check_newest(sub, sorted, found),
            Mode::AsArrives => {}
            _ => self.check_runs(sub, sorted, found),
        }
    }

    fn check_runs(&self, sub: usize, sorted: &Sorted<'_>, found: &mut Findings) {
        let mut edges: BTreeMap<Numbering, u64> = BTreeMap::new();
        // What is late is where it belongs in no order, and is not missing behind it: so an epoch goes on that others had replaced.
        let mut came_late = BTreeSet::new();
        // Places that were closed are told of elsewhere, and not one by one; who is killed does not live to see it.
        let killed = matches!(self.subs[sub].ended, Some((_, End::Crash)));
        let whole = sorted.missed == 0
            && !(killed && self.walls_differ())
            && sorted.dropped == 0
            && sorted.conflicts.is_empty()
            && self.is_roomy(sub);
        let mut notices = sorted.notices.iter().peekable();
        for (place, number, late) in &sorted.facts {
            if sorted.forgot_before(*place) {
                edges.clear();
            }
            // One that others had replaced begins anew.
            while let Some((_, _, notice)) = notices.next_if(|(at, ..)| at < place) {
                if let Notice::Restarted { of, .. } | Notice::Resynced { of } = notice
                    && let Some(of) = self.numbering(of)
                {
                    edges.remove(&of);
                }
            }
            let made = &self.truth.made[*number as usize];
            let Some((numbering, seq)) = self.place_of(*number).filter(|_| !made.one) else {
                continue;
            };
            if *late {
                came_late.insert((numbering, seq));
                continue;
            }
            let Some(before) = edges.insert(numbering, seq) else {
                continue;
            };
            if seq <= before {
                found.add("order", || {
                    let named = named(*number, Some((numbering, seq)));
                    format!("q{sub} got {named} behind seq {before}, not marked late")
                });
                continue;
            }
            let (at, _) = self.subs[sub].told[*place];
            let told = |missing: u64| {
                came_late.contains(&(numbering, missing))
                    || sorted.skipped.iter().any(|(told, of, first, last)| {
                        told < place && *of == numbering && (*first..=*last).contains(&missing)
                    })
                    || sorted
                        .unopened
                        .iter()
                        .any(|(told, of, seq)| told < place && *of == numbering && *seq == missing)
                    || self.was_refused(sub, numbering, missing, at)
                    || self.may_be_untold(sub, numbering, missing)
                    || killed && self.was_stale(sub, numbering, missing)
            };
            if whole && let Some(missing) = (before + 1..seq).find(|missing| !told(*missing)) {
                found.add("order", || {
                    let named = named(*number, Some((numbering, seq)));
                    format!("q{sub} got {named} behind seq {before}, and nothing says where {missing} is")
                });
            }
        }
    }

    /// Newer and newer, unless another numbering took over.
    fn check_newest(&self, sub: usize, sorted: &Sorted<'_>, found: &mut Findings) {
        let mut newest: BTreeMap<(u8, u8), (u64, u64)> = BTreeMap::new();
        let mut restarts = sorted.notices.iter().peekable();
        for (place, number, _) in &sorted.facts {
            while let Some((at, _, notice)) = restarts.peek()
                && at < place
            {
                if let Notice::Restarted { of, .. } | Notice::Resynced { of } = notice
                    && let Some((key, topic, _)) = self.numbering(of)
                {
                    newest.remove(&(key, topic));
                }
                if let Notice::Lagged { .. } = notice {
                    // It may have swallowed one.
                    newest.clear();
                }
                restarts.next();
            }
            let made = &self.truth.made[*number as usize];
            let Some(((key, topic, epoch), seq)) = self.place_of(*number).filter(|_| !made.one)
            else {
                continue;
            };
            if let Some(before) = newest.insert((key, topic), (epoch, seq))
                && before >= (epoch, seq)
            {
                found.add("order", || {
                    let named = named(*number, Some(((key, topic, epoch), seq)));
                    format!("q{sub} got {named} behind the newer {before:?}")
                });
            }
        }
    }

    /// Whether nothing but the wire limits what its node can put in order.
    pub(super) fn is_roomy(&self, sub: usize) -> bool {
        let node = self.node_of(sub);
        let plan = &self.plan.nodes[self.nodes[node].plan];
        plan.order_max_buffer >= 64
            && plan.dedup_entries >= 1024
            && plan.held_bytes >= 1 << 20
            && plan.lanes >= 64
            && plan.resting_lanes >= 64
            && plan.asks.is_none()
    }
}
