//! Interruptions and gaps: each has its outage, and each outage is told once, with its window.
//!
//! Decides: which of them a stream should hold, from when nobody carried its subscription. Leaves to others: what was missed (the ledger).
//! Believes: the true time, and what a node's wall times mean in it. Bounded by: the outages of the run.

use alloc::format;
use alloc::vec::Vec;

use super::{Findings, Sorted};
use crate::code::GapReason;
use crate::notice::Notice;
use crate::sim::trace::words;
use crate::sim::truth::Outage;
use crate::sim::world::{End, World};
use crate::{Instant, WallMs};

/// What a stream should say of an outage.
#[derive(Clone, Copy, Debug)]
enum Due {
    Interrupted(Outage),
    Over(Outage),
}

/// Milliseconds lost by counting in whole ones.
const ROUNDING: i64 = 2;

impl World {
    pub(super) fn check_windows(&self, sub: usize, sorted: &Sorted<'_>, found: &mut Findings) {
        let this = &self.subs[sub];
        let wire = &self.truth.wires[this.wire];
        let (born, ended) = this.order;
        let lives = |order: u64| order > born && order <= ended;
        let mut due = Vec::new();
        for outage in &wire.outages {
            if lives(outage.order.0) {
                due.push(Due::Interrupted(*outage));
            }
            if outage.order.1.is_some_and(lives) {
                due.push(Due::Over(*outage));
            }
        }
        let told: Vec<_> = sorted
            .notices
            .iter()
            .filter(|(_, _, notice)| {
                matches!(
                    notice,
                    Notice::Interrupted { .. }
                        | Notice::Resumed { .. }
                        | Notice::Gap {
                            reason: GapReason::Lost | GapReason::Expired,
                            ..
                        }
                )
            })
            .collect();
        // What was swallowed, or not read to its end, is not compared one by one.
        let partly =
            sorted.swallowed > 0 || matches!(this.ended, Some((_, End::Lagged | End::Crash)));
        if told.len() > due.len() || (!partly && told.len() < due.len()) {
            found.add("windows", || {
                let told: Vec<_> = told.iter().map(|(_, _, notice)| words(notice)).collect();
                format!("q{sub} says {told:?}, and what happened is {due:?}")
            });
            return;
        }
        if sorted.swallowed == 0 {
            for ((_, at, notice), due) in told.iter().zip(&due) {
                if let Err(why) = self.window(sub, *at, notice, due) {
                    found.add("windows", || {
                        format!("q{sub}: {}: {why}; {due:?}", words(notice))
                    });
                }
            }
        }
        self.count_told(sub, sorted, partly, found);
    }

    /// What stations said of themselves is told as often as they said it.
    fn count_told(&self, sub: usize, sorted: &Sorted<'_>, partly: bool, found: &mut Findings) {
        let this = &self.subs[sub];
        let wire = &self.truth.wires[this.wire];
        let (born, ended) = this.order;
        let lives = |order: &u64| *order > born && *order <= ended;
        let count = |which: fn(&Notice) -> bool| {
            sorted
                .notices
                .iter()
                .filter(|(_, _, notice)| which(notice))
                .count()
        };
        let told = [
            count(|notice| matches!(notice, Notice::SubscriptionRefused { .. })),
            count(|notice| {
                matches!(
                    notice,
                    Notice::Gap {
                        reason: GapReason::StationSkipped,
                        ..
                    }
                )
            }),
        ];
        let due = [
            wire.refusals
                .iter()
                .filter(|(order, _)| lives(order))
                .count(),
            wire.skips.iter().filter(|(order, _)| lives(order)).count(),
        ];
        for ((told, due), what) in told.into_iter().zip(due).zip(["refusals", "skips"]) {
            if told > due || (!partly && told < due) {
                found.add("windows", || {
                    format!("q{sub} tells {told} {what} of its stations, of {due}")
                });
            }
        }
    }

    fn window(
        &self,
        sub: usize,
        at: Instant,
        notice: &Notice,
        due: &Due,
    ) -> Result<(), &'static str> {
        let host = self.truth.lives[self.subs[sub].life].host;
        let clock = &self.net.hosts[host].clock;
        // Whether a wall time may mean a true time between these two.
        let within = |wall: WallMs, low: Instant, high: Instant| {
            let (from, to) = clock.meant(wall, at);
            let millis = |at: Instant| (at.as_micros() / 1000) as i64;
            from <= millis(high) + ROUNDING && to >= millis(low) - ROUNDING
        };
        match (notice, due) {
            (Notice::Interrupted { from, reason }, Due::Interrupted(outage)) => {
                if *reason != outage.reason {
                    return Err("another reason");
                }
                let right = within(*from, outage.known, outage.known)
                    || (clock.was_stepped() && within(*from, outage.known, outage.began));
                if right {
                    Ok(())
                } else {
                    Err("it begins at another time")
                }
            }
            (Notice::Gap { from, to, .. }, Due::Over(outage)) => {
                let ended = outage.ended.unwrap_or(outage.began);
                let right = within(*from, outage.known, outage.known)
                    || (clock.was_stepped() && within(*from, outage.known, outage.began));
                if !right {
                    return Err("it begins at another time");
                }
                if within(*to, ended, ended) {
                    Ok(())
                } else {
                    Err("it ends at another time")
                }
            }
            (Notice::Resumed { .. }, Due::Over(_)) => Ok(()),
            _ => Err("something else was due"),
        }
    }
}
