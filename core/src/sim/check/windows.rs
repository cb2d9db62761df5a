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
            .filter(|(_, at, notice)| !self.is_between_meshes(sub, *at, notice, &due))
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

    /// A station of another mesh carried, and one that came back could not replay: the window of that one alone. The stations here are each a mesh
    /// of their own.
    fn is_between_meshes(&self, sub: usize, at: Instant, notice: &Notice, due: &[Due]) -> bool {
        let Notice::Gap {
            from,
            to,
            reason: GapReason::Expired,
            ..
        } = notice
        else {
            return false;
        };
        let over = due.iter().any(|due| match due {
            Due::Over(outage) => {
                let ended = outage.ended.unwrap_or(outage.began);
                self.means(sub, at, *to, ended, ended)
            }
            Due::Interrupted(_) => false,
        });
        let wire = self.subs[sub].wire;
        let holds = self.truth.holds.iter().filter(|hold| hold.wire == wire);
        !over
            && holds.clone().any(|back| {
                let Some(accepted) = back.accepted else {
                    return false;
                };
                self.means(sub, at, *to, accepted, accepted)
                    && holds.clone().any(|gone| {
                        gone.left.is_some_and(|left| left <= accepted)
                            && self.means(sub, at, *from, gone.known, gone.known)
                    })
            })
    }

    /// Whether a wall time of a stream may mean a true time between these two.
    fn means(&self, sub: usize, at: Instant, wall: WallMs, low: Instant, high: Instant) -> bool {
        let host = self.truth.lives[self.subs[sub].life].host;
        let (from, to) = self.net.hosts[host].clock.meant(wall, at);
        let millis = |at: Instant| (at.as_micros() / 1000) as i64;
        from <= millis(high) + ROUNDING && to >= millis(low) - ROUNDING
    }

    /// What stations said of themselves is told as often as they said it; a refusal that one repeats is told once.
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
        let least = [usize::from(due[0] > 0), due[1]];
        let counts = told.into_iter().zip(due).zip(least);
        for (((told, due), least), what) in counts.zip(["refusals", "skips"]) {
            if told > due || (!partly && told < least) {
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
        let within =
            |wall: WallMs, low: Instant, high: Instant| self.means(sub, at, wall, low, high);
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
                // A station that came back may have ended before the last one did.
                let wire = self.subs[sub].wire;
                let mut holds = self.truth.holds.iter().filter(|hold| hold.wire == wire);
                let right = within(*from, outage.known, outage.known)
                    || (clock.was_stepped() && within(*from, outage.known, outage.began))
                    || holds.any(|gone| {
                        gone.known <= outage.known
                            && gone.left.is_some_and(|left| left <= ended)
                            && within(*from, gone.known, gone.known)
                    });
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
