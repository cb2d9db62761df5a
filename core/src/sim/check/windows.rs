//! Interruptions and gaps: each has its cause and its window, and no interruption is without a word or without an end.
//!
//! Decides: which outage or which acceptance a notice speaks of. Leaves to others: what was missed (the ledger). Believes: the true time, and
//! what a node's wall times mean in it. Bounded by: the outages and links of the run.
//!
//! Every station here is a mesh of its own. So an interruption is over with the first station that cannot go on from where it was read, or
//! when each that carried before went on; and a station that cannot go on has a window of its own, whoever else carried.

use alloc::format;
use alloc::vec::Vec;

use super::{Findings, Sorted};
use crate::code::GapReason;
use crate::inbound::stream::OnFull;
use crate::notice::Notice;
use crate::sim::hold::Hold;
use crate::sim::said::Said;
use crate::sim::trace::words;
use crate::sim::truth::Outage;
use crate::sim::world::{End, Told, World};
use crate::{Duration, Instant, WallMs};

impl Sorted<'_> {
    /// When an interruption was first said to be over; the end of time when it never was.
    fn first_end(&self) -> Instant {
        let ends = |notice: &Notice| match notice {
            Notice::Resumed { .. } => true,
            Notice::Gap { reason, .. } => {
                matches!(reason, GapReason::Lost | GapReason::Expired)
            }
            _ => false,
        };
        let end = self.notices.iter().find(|(_, _, notice)| ends(notice));
        end.map_or(Instant::from_micros(u64::MAX), |(_, at, _)| *at)
    }
}

/// Milliseconds lost by counting in whole ones.
const ROUNDING: i64 = 3;
/// How long a mesh is waited for that has not come back.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

impl World {
    pub(super) fn check_windows(&self, sub: usize, sorted: &Sorted<'_>, found: &mut Findings) {
        let this = &self.subs[sub];
        let wire = &self.truth.wires[this.wire];
        // What was swallowed, or not read to its end, is not compared one by one.
        let lagged = |(.., notice): &(usize, Instant, &Notice)| {
            this.wanted.on_full == OnFull::Disconnect && matches!(notice, Notice::Lagged { .. })
        };
        // One that was too slow may be left by its reader before that reads so.
        let partly = sorted.swallowed > 0
            || matches!(this.ended, Some((_, End::Lagged | End::Crash)))
            || sorted.notices.iter().any(lagged);
        self.count_told(sub, sorted, partly, found);
        let (born, ended) = this.order;
        let lives = |outage: &&Outage| outage.order.0 > born && outage.order.0 <= ended;
        let mut outages = wire.outages.iter().filter(lives);
        let mut open = None;
        let mut interruptions = 0;
        for (_, at, notice) in &sorted.notices {
            let why = match notice {
                Notice::Interrupted { from, reason } => {
                    interruptions += 1;
                    let before = open.replace(*at);
                    let same = |outage: &&Outage| {
                        outage.reason == *reason
                            && outage.began <= *at
                            && self.begins(sub, (*at, *from), outage.began)
                    };
                    let broke = self
                        .holds_of(sub)
                        .any(|hold| hold.resumed && hold.left.is_some_and(|left| left <= *at))
                        && self.begins(sub, (*at, *from), *at);
                    if before.is_some() && !partly {
                        Some("the one before is not over")
                    } else if outages.any(|outage| same(&outage)) || broke || partly {
                        None
                    } else {
                        Some("nobody ended then, so, or it begins at another time")
                    }
                }
                Notice::Resumed { .. } => {
                    let resumed = self.holds_of(sub).any(|hold| {
                        hold.resumed && hold.accepted.is_some_and(|accepted| accepted <= *at)
                    });
                    let was_open = open.take().is_some() || self.joined_open(sub) || partly;
                    match (resumed, was_open) {
                        (true, true) => None,
                        (false, _) => Some("no station went on"),
                        (_, false) => Some("it was not interrupted"),
                    }
                }
                Notice::Gap {
                    from,
                    to,
                    reason: GapReason::Lost | GapReason::Expired,
                    ..
                } => {
                    open = None;
                    self.gap(sub, *at, (*from, *to))
                }
                _ => None,
            };
            if let Some(why) = why {
                let outages = &wire.outages;
                found.add("windows", || {
                    format!("q{sub}: {}: {why}; {outages:?}", words(notice))
                });
            }
        }
        if partly {
            return;
        }
        // One that was over after its subscription had joined it is told by its end alone, with all that ended in it.
        let joined = self.joined_open(sub).then(|| sorted.first_end());
        let after = |outage: &Outage| joined.is_none_or(|end| outage.began > end);
        let mut outages = wire.outages.iter().filter(lives);
        if interruptions == 0 && outages.any(after) {
            found.add("windows", || {
                format!("q{sub} was not told of {:?}", wire.outages)
            });
        }
        let waits =
            self.holds_of(sub).any(|hold| hold.accepted.is_none()) || !wire.refusals.is_empty();
        if this.ended.is_none() && open.is_some() && !waits {
            found.add("windows", || {
                format!(
                    "q{sub}: its last interruption is never over; {:?}",
                    wire.outages
                )
            });
        }
    }

    fn holds_of(&self, sub: usize) -> impl Iterator<Item = &Hold> {
        let wire = self.subs[sub].wire;
        self.truth
            .holds
            .iter()
            .filter(move |hold| hold.wire == wire)
    }

    /// Whether it was made while nobody carried, or while an interruption was not over.
    fn joined_open(&self, sub: usize) -> bool {
        let this = &self.subs[sub];
        let wire = &self.truth.wires[this.wire];
        // Its first acceptance is told as after an interruption.
        let goes_on = this.after.is_some();
        let mut outages = wire.outages.iter();
        goes_on || outages.any(|outage| outage.order.0 <= this.order.0)
    }

    /// Whether a window may begin there that was told at `at`: up to where one of those was read that had ended by `before`, as far as its
    /// client could know, or where a window ended that was told before.
    fn begins(&self, sub: usize, (at, from): (Instant, WallMs), before: Instant) -> bool {
        let gone = self
            .holds_of(sub)
            .filter(|hold| hold.accepted.is_some() && hold.left.is_some_and(|left| left <= before));
        // The window was the wire's, whichever of its subscriptions lived to be told.
        let wire = self.subs[sub].wire;
        let of_wire = self.subs.iter().filter(|one| one.wire == wire);
        let told = of_wire.flat_map(|one| &one.told).filter(|(told, what)| {
            *told < at
                && matches!(
                    what,
                    Told::Notice(Notice::Gap {
                        reason: GapReason::Lost,
                        ..
                    })
                )
        });
        let told = told.map(|(told, _)| Said::at(*told));
        let known = gone.map(|hold| hold.known).chain(told);
        let known: Vec<Said> = known.chain(self.committed(sub)).collect();
        let Some(first) = known.iter().map(|known| known.low).min() else {
            return false;
        };
        // Runs have the wall alone in common: where it was stepped, a window may begin before anything was there, and never late.
        if self.subs[sub].after.is_some() && self.is_stepped(sub) {
            let last = known.iter().map(|known| known.high.min(before)).max();
            return last.is_some_and(|last| self.means(sub, at, from, None, last));
        }
        known
            .iter()
            .any(|known| self.means(sub, at, from, Some(known.low), known.high.min(before)))
            || (self.is_stepped(sub)
                && self.means(sub, at, from, Some(self.behind(sub, first)), before))
    }

    /// A wall that was set forward looks like a sleep: a moment may be taken for one that lies so far back.
    fn behind(&self, sub: usize, moment: Instant) -> Instant {
        let host = self.truth.lives[self.subs[sub].life].host;
        let forward = self.net.hosts[host].clock.stepped_on();
        let micros = u64::try_from(forward.as_micros()).unwrap_or(u64::MAX);
        Instant::from_micros(moment.as_micros().saturating_sub(micros))
    }

    pub(super) fn is_stepped(&self, sub: usize) -> bool {
        let host = self.truth.lives[self.subs[sub].life].host;
        self.net.hosts[host].clock.was_stepped()
    }

    /// A gap ends when a station that cannot go on accepts, or when one is given up that did not come back.
    fn gap(&self, sub: usize, at: Instant, (from, to): (WallMs, WallMs)) -> Option<&'static str> {
        let accepted = self
            .holds_of(sub)
            .filter(|hold| !hold.resumed)
            .filter_map(|hold| hold.accepted);
        let mut ends =
            accepted.filter(|end| *end <= at && self.means(sub, at, to, Some(*end), *end));
        let earlier = self.subs[sub].after.map(|_| self.subs[sub].born);
        let gone = self.holds_of(sub).filter_map(|hold| hold.left);
        let mut gone = gone.chain(earlier);
        // A reader that was slow reads later of it.
        let late = self.subs[sub].was_stalled;
        let given_up = gone.any(|left| {
            let end = left.saturating_add(PATIENCE);
            let first = if late { end } else { at };
            end <= at && self.means(sub, at, to, Some(first), at)
        });
        let is_end = ends.next().is_some() || given_up;
        if !is_end {
            return Some("it ends at another time");
        }
        let begins = self.begins(sub, (at, from), at);
        (!begins).then_some("it begins at another time")
    }

    /// Whether a wall time of a stream may mean a true time between these two; without the first, any up to the second.
    fn means(
        &self,
        sub: usize,
        at: Instant,
        wall: WallMs,
        low: Option<Instant>,
        high: Instant,
    ) -> bool {
        let host = self.truth.lives[self.subs[sub].life].host;
        let (from, to) = self.net.hosts[host].clock.meant(wall, at);
        let millis = |at: Instant| (at.as_micros() / 1000) as i64;
        from <= millis(high) + ROUNDING && low.is_none_or(|low| to >= millis(low) - ROUNDING)
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
}
