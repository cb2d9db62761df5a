//! No notice without a cause.
//!
//! Decides: what may have caused each notice. Leaves to others: interruptions and gaps (their windows). Believes: the true time. Bounded
//! by: the notices of the run.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

use super::{Findings, Index, Numbering, Sorted, named};
use crate::code::DropReason;
use crate::inbound::lane::Mode;
use crate::inbound::order::UNTOLD;
use crate::notice::Notice;
use crate::sim::plan::Op;
use crate::sim::secrets::Secrets;
use crate::sim::trace::words;
use crate::sim::world::{Told, World};
use crate::{Duration, Instant};

/// Numbers of one notice that are looked at.
const LOOKED_AT: u64 = 4096;

impl World {
    pub(super) fn check_causes(
        &self,
        sub: usize,
        sorted: &Sorted<'_>,
        index: &Index,
        found: &mut Findings,
    ) {
        for (place, at, notice) in &sorted.notices {
            if let Err(why) = self.cause(sub, (*place, *at), notice, sorted, index) {
                found.add("cause", || {
                    format!("q{sub}, place {place}: {}: {why}", words(notice))
                });
            }
        }
        self.check_late(sub, sorted, index, found);
    }

    fn cause(
        &self,
        sub: usize,
        (place, at): (usize, Instant),
        notice: &Notice,
        sorted: &Sorted<'_>,
        index: &Index,
    ) -> Result<(), &'static str> {
        let this = &self.subs[sub];
        let plan = &self.plan.nodes[self.nodes[self.node_of(sub)].plan];
        let numbering = match notice.numbering() {
            Some(of) => self.numbering(of).ok_or("of a publisher nobody knows")?,
            None => (0, 0, 0),
        };
        let (key, topic, epoch) = numbering;
        let ensure = |is: bool, why| if is { Ok(()) } else { Err(why) };
        match notice {
            Notice::Skipped { first, last, .. } => {
                self.skipped(sub, place, numbering, (*first, *last), sorted, index)
            }
            Notice::Restarted { greater, .. } => {
                let arrived = self.arrived_epochs(sub, key, topic, at);
                ensure(arrived.contains(&epoch), "nothing of that epoch came")?;
                ensure(arrived.len() > 1, "there was no other epoch before")?;
                if let [low, high] = arrived[..]
                    && low != high
                    && sorted.swallowed == 0
                    && self.is_roomy(sub)
                {
                    ensure(*greater == (epoch == high), "greater is wrong")?;
                    // Later a third may have taken its place.
                    let so_far = sorted.notices.iter().take_while(|(at, ..)| *at <= place);
                    let same = so_far.filter(|(_, _, other)| *other == notice);
                    ensure(
                        same.count() == 1 || this.wanted.mode == Mode::LatestOnly,
                        "it was told before",
                    )?;
                }
                Ok(())
            }
            Notice::TwoCounters { .. } => {
                let arrived = self.arrived_epochs(sub, key, topic, at);
                ensure(arrived.len() > 1, "there is only one epoch")
            }
            Notice::Conflict {
                first, last, count, ..
            } => {
                let range = (key, topic, epoch, *first)..=(key, topic, epoch, *last);
                let mut all = index.by_number.range(range);
                ensure(*count > 0, "of nothing")?;
                ensure(
                    all.any(|(_, numbers)| numbers.len() > 1),
                    "every number was used once",
                )
            }
            Notice::Lagged { .. } => {
                let small = this.wanted.capacity < 64 || plan.held_bytes < 1 << 20;
                ensure(this.was_stalled || small, "its reader was never slow")
            }
            Notice::Dropped { reason, .. } => ensure(
                match reason {
                    DropReason::OutOfDate => self.walls_differ() || self.had_stale(sub),
                    DropReason::BytesFull => {
                        let small = plan.held_bytes < 1 << 20 || plan.order_max_buffer < 64;
                        small || self.is_crowded(sub, at)
                    }
                    DropReason::DedupFull => plan.dedup_entries < 1024,
                    DropReason::LanesFull => plan.lanes < 64,
                    DropReason::Unanswered => plan.asks.is_some() || this.looked_up.is_some(),
                    DropReason::HoldExpired => {
                        this.looked_up.is_some()
                            && (self.walls_differ() || self.went_stale(sub, at))
                    }
                    DropReason::HoldFull
                    | DropReason::LookupsFull
                    | DropReason::UndecidedSource
                    | DropReason::VerdictsFull => this.looked_up.is_some(),
                    _ => false,
                },
                "no bound and no clock accounts for it",
            ),
            Notice::Warning { .. } => ensure(plan.dedup_entries < 1024, "the table is large"),
            Notice::Resynced { .. } => {
                // Two are followed, the one before is remembered, and so are two that an earlier run committed.
                let before = if this.after.is_some() { 2 } else { 0 };
                let replaced = self.arrived_epochs(sub, key, topic, at).len() + before > 3;
                // Each that comes late from below a join, or is dropped there, may leave one range more of what did not.
                let late = sorted.facts.iter().filter(|(at, number, late)| {
                    let of = self.place_of(*number).map(|(of, _)| of);
                    *late && *at < place && of == Some(numbering)
                });
                let missed = usize::try_from(sorted.missed).unwrap_or(usize::MAX);
                let scattered = sorted.dropped > 0
                    || this.after.is_some()
                    || late.count().saturating_add(missed) + 1 >= UNTOLD;
                ensure(
                    plan.resting_lanes < 64 || self.was_silent(sub, at) || replaced || scattered,
                    "records have room, it was not silent for long, no others took its place, and few came late",
                )
            }
            Notice::Unopened { reason, .. } => self.unopened(sub, *reason),
            Notice::SubscriptionRefused { .. }
            | Notice::Ended { .. }
            | Notice::Interrupted { .. }
            | Notice::Resumed { .. }
            | Notice::Gap { .. } => Ok(()),
        }
    }

    /// Whether a lane may have waited for a key while more epochs of its publisher took turns than it has places to say so.
    fn is_crowded(&self, sub: usize, at: Instant) -> bool {
        let filter = self.subs[sub].wanted.filter;
        let waits = self.net.secrets.on && Secrets::covers(self.plan.topics.filter(filter));
        let mut keys = self.plan.nodes.iter().map(|node| node.key);
        waits
            && keys.any(|key| {
                let mut topics = 0..self.plan.topics.count();
                topics.any(|topic| self.arrived_epochs(sub, key, topic, at).len() > 2)
            })
    }

    /// Whether some publisher was silent for ten minutes by then: what was known of it is given up, and of nobody heard later for the first
    /// time can it be said that it was not the one.
    fn was_silent(&self, sub: usize, at: Instant) -> bool {
        let life = &self.truth.lives[self.subs[sub].life];
        let mut last: BTreeMap<(u8, u8), Instant> = BTreeMap::new();
        for (number, came) in life.arrivals.iter().filter(|(_, came)| **came <= at) {
            let made = &self.truth.made[*number as usize];
            let last = last.entry((made.key, made.topic)).or_insert(*came);
            *last = (*last).min(*came);
        }
        let silence = Duration::from_secs(590);
        last.values()
            .any(|first| at.saturating_since(*first) > silence)
    }

    /// The epochs of a publisher that reached a subscription's client by then, from the lowest: by what came, be it with the fact that ended
    /// the stream.
    fn arrived_epochs(&self, sub: usize, key: u8, topic: u8, at: Instant) -> Vec<u64> {
        let before = self.ancestors(sub).map(|of| of.sub);
        let lives: Vec<usize> = before.chain([sub]).map(|sub| self.subs[sub].life).collect();
        let holds = self.truth.holds.iter();
        let holds = holds.filter(|hold| lives.contains(&self.truth.wires[hold.wire].life));
        let came = holds.flat_map(|hold| &hold.arrived);
        let came = came.filter(|(_, came)| *came <= at);
        // What is in the stream has come, though it be at the moment in which its stream ended by itself.
        let told = self.subs[sub].told.iter().filter(|(told, _)| *told <= at);
        let told = told.filter_map(|(_, told)| match told {
            Told::Fact { number, .. } => Some(number),
            Told::Notice(_) => None,
        });
        let numbers = came.map(|(number, _)| number).chain(told);
        let places = numbers.filter_map(|number| self.place_of(*number));
        let epochs: BTreeSet<u64> = places
            .filter(|((of, on, _), _)| (*of, *on) == (key, topic))
            .map(|((.., epoch), _)| epoch)
            .collect();
        epochs.into_iter().collect()
    }

    /// What was skipped had not come when it was given up.
    fn skipped(
        &self,
        sub: usize,
        place: usize,
        (key, topic, epoch): Numbering,
        (first, last): (u64, u64),
        sorted: &Sorted<'_>,
        index: &Index,
    ) -> Result<(), &'static str> {
        let this = &self.subs[sub];
        if this.wanted.mode == Mode::LatestOnly {
            return Err("nothing is waited for in this mode");
        }
        // One that others had replaced begins anew; what was swallowed may have said so.
        let begun = sorted.notices.iter().filter(|(at, _, notice)| {
            let anew = match notice {
                Notice::Restarted { of, .. } | Notice::Resynced { of } => {
                    self.numbering(of) == Some((key, topic, epoch))
                }
                Notice::Lagged { notices, .. } => *notices > 0,
                _ => false,
            };
            *at < place && anew
        });
        let begun = begun.map(|(at, ..)| *at).last().unwrap_or(0);
        let before = |(at, number, late): &(usize, u32, bool)| {
            let same = self.place_of(*number);
            let skips = same.is_some_and(|(of, seq)| {
                of == (key, topic, epoch) && (first..=last).contains(&seq)
            });
            (begun..place).contains(at) && skips && !*late && !self.truth.made[*number as usize].one
        };
        if sorted.facts.iter().any(before) {
            return Err("it was delivered before");
        }
        // What was swallowed may have told of drops.
        let dropped = sorted.dropped + sorted.swallowed > 0;
        // It may have waited for a verdict.
        let waits = this.looked_up.is_some();
        if waits || !self.is_roomy(sub) || index.epochs(key, topic).len() > 2 || dropped {
            return Ok(());
        }
        let arrivals = &self.truth.lives[this.life].arrivals;
        let came = |seq: u64| {
            let numbers = index.by_number.get(&(key, topic, epoch, seq))?;
            numbers
                .iter()
                .filter_map(|number| arrivals.get(number))
                .min()
                .copied()
        };
        let behind = index
            .by_number
            .range((key, topic, epoch, last + 1)..=(key, topic, epoch, u64::MAX));
        let next = behind.filter_map(|((.., seq), _)| came(*seq)).min();
        let Some(next) = next else {
            return Err("nothing behind it came");
        };
        let plan = &self.plan.nodes[self.nodes[self.node_of(sub)].plan];
        let patience = next.saturating_add(plan.order_timeout);
        for seq in (first..=last).take(LOOKED_AT as usize) {
            if came(seq).is_some_and(|came| came > this.born && came < patience) {
                return Err("it came in time");
            }
        }
        Ok(())
    }

    /// A fact is late when it was given up before, when its numbering is an older one, or when it came before where the reader joined.
    fn check_late(&self, sub: usize, sorted: &Sorted<'_>, index: &Index, found: &mut Findings) {
        if !self.is_roomy(sub) || sorted.missed + sorted.dropped + sorted.swallowed > 0 {
            return;
        }
        let committed = self.committed_joins(sub);
        let done = self.done(sub);
        let mut joined: BTreeMap<Numbering, u64> = BTreeMap::new();
        let mut notices = sorted.notices.iter().peekable();
        for (place, number, late) in &sorted.facts {
            let Some((of, seq)) = self.place_of(*number) else {
                continue;
            };
            // What was known of a numbering was given up: it is joined anew.
            while let Some((.., notice)) = notices.next_if(|(at, ..)| at < place) {
                let Some(of) = notice.numbering().and_then(|of| self.numbering(of)) else {
                    continue;
                };
                match notice {
                    Notice::Resynced { .. } => {
                        joined.remove(&of);
                    }
                    // It was joined with what could not be opened.
                    Notice::Unopened { seq, .. } => {
                        joined.entry(of).or_insert(*seq);
                    }
                    _ => {}
                }
            }
            if !late {
                joined.entry(of).or_insert(seq);
            }
            let mut joins = joined.get(&of).into_iter().chain(committed.get(&of));
            let below = joins.any(|joined| seq < *joined);
            let skipped = sorted.skipped.iter().any(|(at, other, first, last)| {
                at < place && *other == of && (*first..=*last).contains(&seq)
            });
            let epochs = index.epochs(of.0, of.1);
            // One whose edge was committed and that others have replaced since is late up to that edge.
            let replaced = self.subs[sub].after.is_some() && epochs.len() > 2;
            let older = replaced || epochs.last().is_some_and(|last| *last > of.2);
            // Nor is it known any more what came of it.
            let given_up = self.is_given_up(sorted, &done.given, of, seq, *place);
            // A copy of what was dropped or refused gets another chance.
            let (at, _) = self.subs[sub].told[*place];
            let again = self.may_be_untold(sub, of, seq) || self.was_refused(sub, of, seq, at);
            let caused = below || skipped || older || given_up || again;
            if *late && !caused && sorted.conflicts.is_empty() {
                found.add("cause", || {
                    format!(
                        "q{sub} got {} marked late without a cause",
                        named(*number, Some((of, seq)))
                    )
                });
            }
        }
    }

    /// Whether one of the facts that had come by then was not live any more.
    fn went_stale(&self, sub: usize, at: Instant) -> bool {
        let life = &self.truth.lives[self.subs[sub].life];
        let mut came = life.arrivals.iter().filter(|(_, came)| **came <= at);
        came.any(|(number, _)| !self.is_live_at(life.host, *number, at))
    }

    /// Whether a fact may have been dropped there for having come when it was not live.
    pub(in crate::sim) fn may_be_stale(&self, sub: usize, number: u32) -> bool {
        self.stale.contains(&(self.subs[sub].life, number)) || self.walls_differ()
    }

    /// Whether one with these numbers was not live when it came there.
    pub(super) fn was_stale(&self, sub: usize, of: Numbering, seq: u64) -> bool {
        let mut all = self.numbered(of, seq);
        all.any(|number| self.stale.contains(&(self.subs[sub].life, number)))
    }

    /// Whether any was.
    fn had_stale(&self, sub: usize) -> bool {
        let life = self.subs[sub].life;
        let mut all = self.stale.range((life, 0)..=(life, u32::MAX));
        all.next().is_some()
    }

    /// Whether two hosts may have disagreed on the time by more than is tolerated, or something took very long.
    pub(in crate::sim) fn walls_differ(&self) -> bool {
        let long = Duration::from_secs(240);
        self.plan.calm > Instant::ORIGIN.saturating_add(long)
            || self.net.hosts.iter().any(|host| host.clock.was_stepped())
            || self.plan.acts.iter().any(|act| match act.op {
                Op::SleepNode { lasts, .. } | Op::SleepStation { lasts, .. } => lasts > long,
                _ => false,
            })
    }
}
