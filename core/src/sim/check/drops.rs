//! Drops: when a stream says that facts were dropped, and which may be among them.
//!
//! Decides: whether a fact that is neither in a stream nor told of may be one of those that were counted. Leaves to others: whether as many
//! were counted (the ledger). Believes: the true time, and what a node's wall times mean in it. Bounded by: the notices of the run.

use alloc::vec::Vec;

use super::{ANSWER_TIMEOUT, Sorted};
use crate::code::DropReason;
use crate::notice::Notice;
use crate::sim::world::{Earlier, World};
use crate::{Duration, Instant, WallMs};

/// When facts were dropped or given up, as one notice says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Drops {
    /// Between these true times, in milliseconds since the start, by that run of a client; each when it had waited for at most so long.
    Within {
        life: usize,
        from: i64,
        to: i64,
        waits: Duration,
    },
    /// Those published between these times by the walls of their publishers.
    Published { from: WallMs, to: WallMs },
}

impl World {
    /// When facts were dropped, as a stream says and those it goes on from had said when they were committed.
    pub(super) fn drops(&self, sub: usize, sorted: &Sorted<'_>) -> Vec<Drops> {
        let mut drops = Vec::new();
        self.add_drops(sub, sorted, &mut drops);
        for Earlier { sub, place, .. } in self.ancestors(sub) {
            let mut sorted = self.sorted(sub);
            sorted.notices.retain(|(at, ..)| *at < place);
            self.add_drops(sub, &sorted, &mut drops);
        }
        drops
    }

    fn add_drops(&self, sub: usize, sorted: &Sorted<'_>, drops: &mut Vec<Drops>) {
        let life = self.subs[sub].life;
        let clock = &self.net.hosts[self.truth.lives[life].host].clock;
        for (_, at, notice) in &sorted.notices {
            match **notice {
                Notice::Dropped {
                    reason, from, to, ..
                } => drops.push(Drops::Within {
                    life,
                    from: clock.meant(from, *at).0,
                    to: clock.meant(to, *at).1.saturating_add(2),
                    waits: self.waits_for(sub, reason),
                }),
                Notice::Lagged {
                    missed, from, to, ..
                } if missed > 0 => drops.push(Drops::Published { from, to }),
                _ => {}
            }
        }
    }

    /// How long after it came a fact may be dropped for that reason.
    fn waits_for(&self, sub: usize, reason: DropReason) -> Duration {
        let this = &self.subs[sub];
        let plan = &self.plan.nodes[self.nodes[self.node_of(sub)].plan];
        let host = self.truth.lives[this.life].host;
        let verified = self.net.hosts[host].answers_after;
        let looked_up = match this.looked_up {
            Some(_) => Duration::from_millis(self.net.lookups.limits.lookup_timeout_ms),
            None => Duration::ZERO,
        };
        let waits = match reason {
            DropReason::OutOfDate | DropReason::HoldFull | DropReason::LookupsFull => verified,
            DropReason::DedupFull
            | DropReason::HoldExpired
            | DropReason::LanesFull
            | DropReason::UndecidedSource
            | DropReason::VerdictsFull => verified + looked_up,
            DropReason::Unanswered if plan.asks.is_some() => ANSWER_TIMEOUT + looked_up,
            DropReason::Unanswered => looked_up,
            _ => self.waits_at_most(sub),
        };
        // Counted in whole milliseconds.
        waits + Duration::from_millis(1)
    }

    /// Whether a publication may be one of those that were dropped then.
    pub(super) fn may_be_dropped(&self, number: u32, drops: &[Drops]) -> bool {
        let fact = self.truth.made[number as usize].fact;
        let holds = self.truth.holds.iter();
        let came = holds.flat_map(|hold| {
            let life = self.truth.wires[hold.wire].life;
            let arrived = hold.arrived.iter().filter(|(of, _)| *of == number);
            arrived.map(move |(_, at)| (life, *at))
        });
        let came: Vec<(usize, Instant)> = came.collect();
        drops.iter().any(|drops| match *drops {
            Drops::Published { from, to } => {
                fact.is_some_and(|fact| (from..=to).contains(&fact.published_at))
            }
            Drops::Within {
                life,
                from,
                to,
                waits,
            } => {
                let clock = &self.net.hosts[self.truth.lives[life].host].clock;
                let mut came = came.iter().filter(|(of, _)| *of == life);
                came.any(|(_, at)| {
                    // It waits no less for a node that sleeps.
                    let waits = (waits + clock.slept_since(*at)).as_millis() as i64;
                    let at = (at.as_micros() / 1000) as i64;
                    (from.saturating_sub(waits)..=to).contains(&at)
                })
            }
        })
    }
}
