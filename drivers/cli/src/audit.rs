//! The ledger of a run of `sub`, made from the items themselves.
//!
//! Decides: what was delivered, what a notice accounts for, and what neither arrived nor is accounted for. Leaves to others: the
//! machines' own counters; only what was refused or superseded is taken from them, being nowhere in the stream, and which numbers were refused
//! in the clear: those are nobody's loss, and no others are. Believes: no clock. Bounded by: [`MAX_LANES`] publishers and topics watched; what is
//! beyond them is counted as unwatched.

use std::collections::BTreeMap;
use std::fmt::Write;

use tidings::{Delivery, Mode, NodeId, Notice, SubscriptionStatus};

use crate::holes::Holes;
use crate::human::count;

/// Publishers and topics whose numbers are watched.
pub(crate) const MAX_LANES: usize = 65_536;

/// One publisher's numbers on one topic in one epoch.
#[derive(Debug)]
struct Lane {
    /// The highest number seen or reported.
    edge: u64,
    /// Numbers below it that were neither seen nor reported.
    holes: Holes,
    /// Numbers reported as skipped that did not come since.
    missing: u64,
}

/// What came so far.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    lanes: BTreeMap<(NodeId, u64, String), Lane>,
    unwatched: u64,
    pub(crate) delivered: u64,
    late: u64,
    /// Skipped in lanes that are not watched.
    missing_elsewhere: u64,
    out_of_order: u64,
    gaps: u64,
    lagged: u64,
    dropped: u64,
    unopened: u64,
    conflicts: u64,
    interruptions: u64,
}

impl Audit {
    /// A fact was delivered.
    pub(crate) fn fact(&mut self, fact: &Delivery) {
        self.delivered += 1;
        self.late += u64::from(fact.late());
        let (Some(epoch), false) = (fact.epoch(), fact.anycast()) else {
            self.unwatched += 1;
            return;
        };
        self.number(
            fact.publisher(),
            epoch,
            fact.topic(),
            fact.seq(),
            fact.late(),
        );
    }

    fn number(&mut self, publisher: NodeId, epoch: u64, topic: &str, seq: u64, late: bool) {
        let Some(lane) = self.lane(publisher, epoch, topic, seq.saturating_sub(1)) else {
            self.unwatched += 1;
            return;
        };
        if seq > lane.edge {
            lane.holes.open(lane.edge + 1, seq - 1);
            lane.edge = seq;
        } else if late {
            lane.missing = lane.missing.saturating_sub(1);
        } else {
            // In order of arrival it fills a hole; in the publisher's order it may not be.
            lane.holes.fill(seq, seq);
            self.out_of_order += 1;
        }
    }

    /// A notice was delivered.
    pub(crate) fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Skipped { of, first, last } => {
                let many = last.saturating_sub(*first).saturating_add(1);
                let edge = first.saturating_sub(1);
                let Some(lane) = self.lane(of.publisher, of.epoch, &of.topic, edge) else {
                    self.missing_elsewhere = self.missing_elsewhere.saturating_add(many);
                    return;
                };
                lane.missing = lane.missing.saturating_add(many);
                if *last > lane.edge {
                    lane.holes.open(lane.edge + 1, edge);
                    lane.edge = *last;
                } else {
                    lane.holes.fill(*first, *last);
                }
            }
            Notice::Conflict { count, .. } => {
                self.conflicts = self.conflicts.saturating_add(*count)
            }
            Notice::Dropped { count, .. } => self.dropped = self.dropped.saturating_add(*count),
            // It has its number, and was not read.
            Notice::Unopened { of, seq, .. } => {
                self.number(of.publisher, of.epoch, &of.topic, *seq, false);
                self.unopened += 1;
            }
            Notice::Gap { .. } => self.gaps += 1,
            Notice::Interrupted { .. } => self.interruptions += 1,
            Notice::Lagged { missed, .. } => self.lagged = self.lagged.saturating_add(*missed),
            Notice::Resynced { of } => {
                self.lanes
                    .remove(&(of.publisher, of.epoch, of.topic.clone()));
            }
            _ => {}
        }
    }

    /// These numbers were refused because they were in the clear.
    pub(crate) fn refused(
        &mut self,
        publisher: NodeId,
        epoch: u64,
        topic: &str,
        (first, last): (u64, u64),
    ) {
        let key = (publisher, epoch, topic.to_owned());
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.holes.fill(first, last);
        }
    }

    fn lane(&mut self, publisher: NodeId, epoch: u64, topic: &str, edge: u64) -> Option<&mut Lane> {
        let full = self.lanes.len() >= MAX_LANES;
        let key = (publisher, epoch, topic.to_owned());
        if full && !self.lanes.contains_key(&key) {
            return None;
        }
        Some(self.lanes.entry(key).or_insert_with(|| Lane {
            edge,
            holes: Holes::default(),
            missing: 0,
        }))
    }

    /// Numbers that neither came nor stand in a notice, in the modes where every number must do one of the two.
    fn silently_lost(&self) -> u64 {
        let holes = self.lanes.values().map(|lane| lane.holes.count());
        let holes = holes.fold(0, u64::saturating_add);
        // A conflict is about a number that came.
        holes.saturating_sub(self.dropped.saturating_add(self.lagged))
    }

    /// The ledger for people, and whether anything is missing. `clear_refused`: what this node refused because it was in the clear.
    pub(crate) fn close(
        &self,
        mode: Mode,
        status: Option<&SubscriptionStatus>,
        clear_refused: u64,
    ) -> (String, bool) {
        let mut text = format!("delivered {}", count(self.delivered));
        let missing = self
            .lanes
            .values()
            .fold(self.missing_elsewhere, |sum, lane| {
                sum.saturating_add(lane.missing)
            });
        let told = [
            ("late", self.late),
            ("superseded", status.map_or(0, |status| status.superseded)),
            (
                "refused by source",
                status.map_or(0, |status| status.source_refused),
            ),
            ("refused in the clear", clear_refused),
            ("interruptions", self.interruptions),
            ("missing", missing),
            ("gaps", self.gaps),
            ("lagged", self.lagged),
            ("dropped", self.dropped),
            ("unopened", self.unopened),
            ("conflicts", self.conflicts),
            ("not watched", self.unwatched),
        ];
        for (name, number) in told {
            if number > 0 || matches!(name, "late" | "missing" | "gaps" | "lagged") {
                write!(text, ", {name} {}", count(number)).unwrap_or_default();
            }
        }
        let told = self.gaps + self.lagged + self.dropped + self.unopened + self.conflicts;
        let mut bad = missing + told > 0;
        match mode {
            Mode::Ordered => {
                let (silent, wrong) = (self.silently_lost(), self.out_of_order);
                bad |= silent + wrong > 0;
                if wrong > 0 {
                    write!(text, ", out of order {}", count(wrong)).unwrap_or_default();
                }
                write!(text, ", silently lost: {}", count(silent)).unwrap_or_default();
            }
            // What is not reported yet when the run ends may still come.
            Mode::AsArrives => {
                let awaited = count(self.silently_lost());
                write!(text, ", still awaited: {awaited}").unwrap_or_default();
            }
            _ => {}
        }
        (text, bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(audit: &mut Audit, topic: &str, seqs: &[u64]) {
        for seq in seqs {
            audit.number(NodeId::new([1; 32]), 7, topic, *seq, false);
        }
    }

    fn refused(audit: &mut Audit, topic: &str, first: u64, last: u64) {
        audit.refused(NodeId::new([1; 32]), 7, topic, (first, last));
    }

    #[test]
    fn what_was_refused_in_the_clear_is_no_hole_and_hides_none() {
        let mut audit = Audit::default();
        heard(&mut audit, "a", &[3, 6, 8]);
        assert_eq!(audit.silently_lost(), 3);
        refused(&mut audit, "a", 4, 5);
        assert_eq!(audit.silently_lost(), 1, "7 is nowhere");
        // What came before the first fact and behind the last is in no hole, nor is what was refused elsewhere.
        refused(&mut audit, "a", 1, 2);
        refused(&mut audit, "a", 9, 20);
        refused(&mut audit, "b", 7, 7);
        heard(&mut audit, "b", &[1, 2]);
        assert_eq!(audit.silently_lost(), 1);
        // It is said again, each time with all of a run.
        heard(&mut audit, "a", &[10]);
        refused(&mut audit, "a", 9, 9);
        refused(&mut audit, "a", 9, 9);
        assert_eq!(audit.silently_lost(), 1);
    }
}
