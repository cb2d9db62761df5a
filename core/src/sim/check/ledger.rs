//! The ledger: what a station admitted while it held a subscription was delivered, or something in the stream says why not.
//!
//! Decides: what is owed to a subscription, and what accounts for it. Leaves to others: whether what accounts for it had a cause. Believes: the
//! true time, and what a node's wall times mean in it. Bounded by: the publications of the run, once per subscription.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

use super::commits::Done;
use super::windows::PATIENCE;
use super::{ANSWER_TIMEOUT, Findings, Index, Numbering, Sorted, named};
use crate::code::GapReason;
use crate::inbound::episode::LONGEST;
use crate::inbound::lane::Mode;
use crate::keyring::PULL_PATIENCE;
use crate::notice::Notice;
use crate::sim::Tally;
use crate::sim::hold::Hold;
use crate::sim::world::{End, World};
use crate::{Duration, Instant, WallMs};

/// What is owed: by which holds, and when each admitted it.
type Owed = BTreeMap<u32, Vec<(usize, Instant)>>;

impl World {
    pub(super) fn check_ledger(
        &self,
        sub: usize,
        sorted: &Sorted<'_>,
        index: &Index,
        tally: &mut Tally,
        found: &mut Findings,
    ) {
        let this = &self.subs[sub];
        if matches!(this.ended, Some((_, End::Lagged))) {
            // It said where it ended; what came after is not owed.
            return;
        }
        let done = self.done(sub);
        let mut owed = self.owed(sub, &done);
        let node = &self.nodes[self.node_of(sub)];
        let forgets = self.plan.nodes[node.plan].dedup_entries < 1024;
        let killed = matches!(this.ended, Some((_, End::Crash)));
        if killed || forgets || this.after.is_some() || sorted.dropped > 0 {
            // A conflict is told when its episode is over, which who is killed does not live to see; where a delivered fact was forgotten
            // early, or was delivered to an earlier run, another of its number cannot be told from a copy; where one was dropped, its place
            // is closed for the other.
            owed.retain(|number, _| self.is_only_one(*number, index));
        }
        // What is not live when it comes stops at the edge of its lane without a look, be it another of a number that was delivered.
        let life = &self.truth.lives[this.life];
        let (arrivals, unsure) = (&life.arrivals, &life.unsure);
        owed.retain(|number, _| {
            let came = arrivals.get(number).copied();
            came.is_none_or(|came| self.is_live(sub, *number, came))
                || self.is_only_one(*number, index)
        });
        tally.owed += owed.len() as u64;
        let delivered: BTreeSet<u32> = sorted.facts.iter().map(|(_, number, _)| *number).collect();
        let windows = self.windows(sub, sorted);
        let resynced: BTreeSet<Numbering> = sorted
            .notices
            .iter()
            .filter_map(|(.., notice)| match notice {
                Notice::Resynced { of } => self.numbering(of),
                _ => None,
            })
            .collect();
        let mut silent = Vec::new();
        let (mut superseded, mut newest) = (0u64, BTreeMap::new());
        // What is told as unopened was the newest as well.
        let placed = delivered.iter().filter_map(|number| self.place_of(*number));
        for ((key, topic, epoch), seq) in placed.chain(sorted.not_opened()) {
            let best = newest.entry((key, topic)).or_insert((epoch, seq));
            *best = (*best).max((epoch, seq));
        }
        for (number, holds) in &owed {
            let Some((numbering, seq)) = self
                .place_of(*number)
                .filter(|_| !delivered.contains(number))
            else {
                continue;
            };
            let skipped = sorted
                .skipped
                .iter()
                .any(|(_, of, first, last)| *of == numbering && (*first..=*last).contains(&seq));
            let conflict = sorted
                .conflicts
                .iter()
                .any(|(of, first, last)| *of == numbering && (*first..=*last).contains(&seq));
            let inside = holds.iter().any(|(_, at)| {
                let at = (at.as_micros() / 1000) as i64;
                windows.iter().any(|(from, to)| (*from..=*to).contains(&at))
            });
            // Where a table is small, what may be a copy is one to a numbering of which all that was known had to be given up.
            let unknown = forgets && resynced.contains(&numbering)
                || self.is_given_up(sorted, &done.given, numbering, seq, usize::MAX);
            let unopened = sorted.not_opened().any(|of| of == (numbering, seq));
            let refused = self.is_refused(sub, *number);
            if skipped
                || unopened
                || refused
                || conflict
                || inside
                || unknown
                || self.is_undecided(sub, holds, &windows)
            {
                continue;
            }
            let (key, topic, epoch) = numbering;
            if this.wanted.mode == Mode::LatestOnly
                && newest
                    .get(&(key, topic))
                    .is_some_and(|best| *best > (epoch, seq))
            {
                // What is not live when it comes is not looked at where something newer was delivered, and so not counted.
                let came = arrivals
                    .get(number)
                    .is_some_and(|came| *came > this.born && self.is_live(sub, *number, *came));
                superseded += u64::from(came && !unsure.contains(number));
                continue;
            }
            match arrivals.get(number) {
                Some(first) if *first <= this.born || unsure.contains(number) => {
                    tally.excused_copy += 1;
                }
                first => silent.push((*number, first.copied())),
            }
        }
        let mut accounted = sorted.missed + sorted.dropped + done.counted;
        if this.wanted.mode == Mode::LatestOnly && sorted.missed > 0 {
            // The newer one may have been swallowed.
            accounted += this.superseded;
        }
        // What never came was not dropped here: only an earlier run may have had it, or what was swallowed have told of it.
        let absent = silent.iter().filter(|(_, arrived)| arrived.is_none());
        let absent: Vec<u32> = absent.map(|(number, _)| *number).collect();
        let unseen = absent
            .iter()
            .filter(|number| !self.came_before(sub, **number));
        // What came is missing for a drop: be as many counted as it may, it was dropped when its stream says so. What notices told of that a
        // slow reader did not get may come at any time, and what is older than a fact it did not get as well.
        let drops = self.drops(sub, sorted);
        let all_told = sorted.swallowed + done.swallowed == 0
            && (this.wanted.mode != Mode::LatestOnly || sorted.missed == 0);
        let elsewhere = silent.iter().find(|(number, arrived)| {
            let came = arrived.is_some() || self.came_before(sub, *number);
            all_told && came && !self.may_be_dropped(*number, &drops)
        });
        if let Some((number, arrived)) = elsewhere {
            found.add("ledger", || {
                let named = named(*number, self.place_of(*number));
                let arrived = arrived.map_or(-1, |at| at.as_micros() as i64);
                format!("q{sub} was owed {named} (arrived at {arrived} us), which was not dropped when it says that others were: {drops:?}")
            });
        }
        let lost = this.wanted.mode != Mode::LatestOnly
            && (absent.len() as u64 > sorted.missed + done.counted
                || unseen.count() as u64 > sorted.missed);
        if lost || silent.len() as u64 > accounted {
            for (number, arrived) in silent {
                found.add("ledger", || {
                    let named = named(number, self.place_of(number));
                    let arrived = arrived.map_or(-1, |at| at.as_micros() as i64);
                    let (missed, dropped) = (sorted.missed, sorted.dropped);
                    format!("q{sub} was owed {named} (arrived at {arrived} us) and nothing accounts for it; missed {missed}, dropped {dropped}")
                });
            }
        }
        let told = this.superseded;
        if this.ended.is_none() && superseded > told + sorted.missed + sorted.dropped {
            found.add("ledger", || {
                format!("q{sub} counts {told} superseded, and {superseded} were")
            });
        }
        if this.wanted.mode != Mode::LatestOnly && told > 0 {
            found.add("ledger", || {
                format!("q{sub} superseded {told}, in a mode in which nothing is")
            });
        }
    }

    /// Whether it is owed by stations alone an earlier run had read from, which have not taken this one yet and are waited for; or by such that
    /// were given up, with a window, and refuse when they are back: what they had since is told when they accept, and until then the refusal is.
    fn is_undecided(&self, sub: usize, holds: &[(usize, Instant)], told: &[(i64, i64)]) -> bool {
        let this = &self.subs[sub];
        let all = &self.truth.holds;
        let own = |hold: usize| {
            let station = |run: usize| self.truth.runs[run].station;
            let at = station(all[hold].run);
            let own = all.iter().filter(|own| own.wire == this.wire);
            own.filter(move |own| station(own.run) == at)
        };
        let waits = |(hold, _): &(usize, Instant)| {
            all[*hold].wire != this.wire && !own(*hold).any(|own| own.accepted.is_some())
        };
        let refused = |(hold, at): &(usize, Instant)| {
            let refused = |of: &Hold| {
                of.accepted.is_none() && of.from.is_none() && of.left.is_some_and(|left| left > *at)
            };
            own(*hold).any(refused)
                && !own(*hold).any(|own| own.accepted.is_some_and(|since| since > *at))
        };
        let after = |(_, at): &(usize, Instant)| {
            let at = (at.as_micros() / 1000) as i64;
            !told.is_empty() && told.iter().all(|(_, to)| at > *to)
        };
        let young = self.net.truth() <= this.born.saturating_add(PATIENCE);
        young && holds.iter().all(waits) || holds.iter().all(after) && holds.iter().all(refused)
    }

    /// Whether no other publication has its numbers.
    fn is_only_one(&self, number: u32, index: &Index) -> bool {
        self.place_of(number)
            .is_none_or(|((key, topic, epoch), seq)| {
                let numbers = index.by_number.get(&(key, topic, epoch, seq));
                numbers.is_none_or(|numbers| numbers.len() == 1)
            })
    }

    /// What is owed to a subscription: admitted by a station that held it, while it was there.
    fn owed(&self, sub: usize, done: &Done) -> Owed {
        let this = &self.subs[sub];
        let arrivals = &self.truth.lives[this.life].arrivals;
        let mut owed = Owed::new();
        let holds = self.truth.holds.iter().enumerate();
        let holds = holds.filter(|(_, hold)| hold.wire == this.wire);
        let own = holds.flat_map(|(index, hold)| {
            let admitted = hold.admitted(&self.truth).iter();
            admitted.map(move |(number, at)| (index, *number, *at))
        });
        let own = own.filter(|(_, _, at)| *at > this.born);
        let all = own.chain(self.owed_since_commit(sub, done));
        for (index, number, at) in all {
            let made = &self.truth.made[number as usize];
            let bits = this.wanted.sources.unwrap_or(u8::MAX);
            let wanted = bits & (1 << made.key) != 0
                && !made.one
                && self.plan.topics.matches(this.wanted.filter, made.topic);
            if !wanted || self.is_done(done, number, at) {
                continue;
            }
            if let Some((end, how)) = this.ended {
                // What was under way when it was ended by its own side is nobody's loss.
                let margin = self.under_way(sub, number, how);
                let arrived = arrivals.get(&number);
                if arrived.is_none_or(|arrived| arrived.saturating_add(margin) > end)
                    || this.was_stalled
                {
                    continue;
                }
            }
            owed.entry(number).or_default().push((index, at));
        }
        owed
    }

    /// Whether a publication is live at that time by the wall of a subscription's node.
    fn is_live(&self, sub: usize, number: u32, at: Instant) -> bool {
        let host = self.truth.lives[self.subs[sub].life].host;
        self.is_live_at(host, number, at)
    }

    /// Whether it is by the wall of that host.
    pub(in crate::sim) fn is_live_at(&self, host: usize, number: u32, at: Instant) -> bool {
        let wall = self.net.hosts[host].clock.wall(at);
        self.truth.made[number as usize].fact.is_some_and(|fact| {
            crate::wire::freshness(fact.published_at, fact.expires_at, wall).is_ok()
        })
    }

    /// How long after its arrival it may not be decided what comes of a fact.
    pub(super) fn waits_at_most(&self, sub: usize) -> Duration {
        let plan = &self.plan.nodes[self.nodes[self.node_of(sub)].plan];
        // Behind what it waits for in its order.
        let mut margin = Duration::from_secs(4);
        if self.net.secrets.on {
            // Its key is asked for, or that of what it waits for; after the first answer once more.
            margin += 2 * PULL_PATIENCE;
        }
        if self.net.lookups.on {
            // Its publisher is looked up.
            margin += Duration::from_millis(self.net.lookups.limits.lookup_timeout_ms);
        }
        if plan.asks.is_some() {
            // Its question is open, or that of what it waits for.
            margin += ANSWER_TIMEOUT;
        }
        margin
    }

    /// How long after its arrival that fact may be neither in the stream nor told of.
    fn under_way(&self, sub: usize, number: u32, how: End) -> Duration {
        let plan = &self.plan.nodes[self.nodes[self.node_of(sub)].plan];
        let bounded = plan.lanes < 64
            || plan.dedup_entries < 1024
            || plan.held_bytes < 1 << 20
            || plan.order_max_buffer < 64;
        let mut margin = self.waits_at_most(sub);
        let counted = bounded || plan.asks.is_some() || self.net.lookups.on;
        if how == End::Crash && (counted || self.may_be_stale(sub, number)) {
            // It is counted in an episode which is not over.
            margin += LONGEST;
        }
        margin
    }

    /// The windows in which something may be missing, in true milliseconds since the start, as wide as the node's walls may have meant them.
    pub(super) fn windows(&self, sub: usize, sorted: &Sorted<'_>) -> Vec<(i64, i64)> {
        let life = &self.truth.lives[self.subs[sub].life];
        let clock = &self.net.hosts[life.host].clock;
        let transit = (life.transit / 1000) as i64 + 2;
        let window = |at: Instant, from: WallMs, to: WallMs| {
            let (from, to) = (clock.meant(from, at).0, clock.meant(to, at).1);
            (from.saturating_sub(transit), to.saturating_add(2))
        };
        let mut windows = Vec::new();
        let mut interrupted = None;
        for (_, at, notice) in &sorted.notices {
            match notice {
                Notice::Interrupted { from, .. } => interrupted = Some((*at, *from)),
                Notice::Resumed { .. } => interrupted = None,
                Notice::Gap {
                    from, to, reason, ..
                } => {
                    windows.push(window(*at, *from, *to));
                    if matches!(reason, GapReason::Lost | GapReason::Expired) {
                        interrupted = None;
                    }
                }
                Notice::Lagged {
                    notices, from, to, ..
                } if *notices > 0 => windows.push(window(*at, *from, *to)),
                _ => {}
            }
        }
        // One that is not over says that what is missing since it began is not decided. Whether it should be over is another rule.
        windows.extend(interrupted.map(|(at, from)| (window(at, from, from).0, i64::MAX)));
        windows
    }

    /// What a station admitted while it held a subscription was written to its link, or it said how much was not.
    pub(super) fn check_stations(&self, found: &mut Findings) {
        for (index, hold) in self.truth.holds.iter().enumerate() {
            let wire = &self.truth.wires[hold.wire];
            let wanted = |number: u32| {
                let made = &self.truth.made[number as usize];
                !made.one && self.plan.topics.matches(wire.filter, made.topic)
            };
            let owed: BTreeSet<u32> = hold
                .admitted(&self.truth)
                .iter()
                .map(|(number, _)| *number)
                .filter(|number| wanted(*number))
                .collect();
            let arrived = hold.arrived.iter().filter(|(number, _)| wanted(*number));
            let mut came = 0;
            for (number, _) in arrived {
                came += 1;
                if !owed.contains(number) {
                    found.add("station", || {
                        format!("hold {index} brought #{number}, not admitted while it was held")
                    });
                }
            }
            let given = came + hold.skipped;
            let open = hold.to.is_none() && hold.left.is_none() && hold.accepted.is_some();
            let owed = owed.len() as u64;
            // Where a resume begins is known to a frame, and what was told before it began may be told again.
            let over = given > owed && !hold.resumed;
            if over || (open && given < owed && wire.after.is_none()) {
                let skipped = hold.skipped;
                found.add("station", || {
                    format!(
                        "hold {index} of wire {}: {owed} admitted, {came} came, {skipped} skipped",
                        hold.wire
                    )
                });
            }
        }
    }
}
