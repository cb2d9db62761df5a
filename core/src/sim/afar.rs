//! Nodes that are far from the others: by their wall, by as much as is tolerated, or away for longer than a key lasts.
//!
//! Decides: which runs with a group or with lookups have one, and who it is. Leaves to others: doing it (the world), keys and lookups. Believes:
//! nothing. Bounded by: two dozen acts.
//!
//! It is drawn from a stream of its own: the plans of all other seeds, and the acts of these, stay what they are.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::draw::rng;
use super::plan::{Act, Burst, Fault, Op, Plan, Wanted};
use super::secrets::{ROTATION_MS, Secrets};
use super::world::{Sub, World};
use crate::keyring::ACCEPT_MS;
use crate::wire::SKEW_MS;
use crate::{Duration, Instant, Rng};

/// What a run has of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Afar {
    /// Whose wall is ahead, or behind, by so many milliseconds; no other is.
    pub(super) skew: Option<(usize, i64)>,
    /// Happen beside the acts of the plan, and are counted behind them.
    pub(super) acts: Vec<Act>,
    /// When faults end, if that is later than planned.
    pub(super) calm: Instant,
}

impl Afar {
    /// With a group, or with lookups; of those that commit, these slots do.
    pub(super) fn draw(plan: &Plan, sealed: bool, looked_up: bool, commits: &[usize]) -> Self {
        let mut afar = Self::default();
        if !sealed && !looked_up {
            return afar;
        }
        let mut draw = rng(plan.seed, "distant");
        match draw.below(8) {
            0 | 1 if sealed => afar.draw_away(plan, commits, &mut draw),
            2 | 3 => afar.draw_skew(plan, looked_up, &mut draw),
            _ => {}
        }
        afar
    }

    pub(super) fn is_any(&self) -> bool {
        self.skew.is_some() || !self.acts.is_empty()
    }

    fn push(&mut self, at: u64, op: Op) {
        let at = Instant::from_millis(at);
        self.acts.push(Act { at, op });
    }

    /// One of those that subscribe, or another, has a wall that is as far off as it may be.
    fn draw_skew(&mut self, plan: &Plan, looked_up: bool, draw: &mut Rng) {
        let (_, Wanted { node, filter, .. }) = one_of(&subscribed(plan), draw);
        let node = match draw.below(3) {
            0 => draw.below(plan.nodes.len() as u64) as usize,
            _ => node,
        };
        let most = SKEW_MS as i64;
        let by = match draw.below(3) {
            0 if !looked_up => most - draw.between(0, 60_000) as i64,
            _ => most,
        };
        let is_ahead = draw.below(if looked_up { 4 } else { 2 }) > 0;
        self.skew = Some((node, if is_ahead { by } else { -by }));
        // To a wall that is ahead, what lives for moments is over moments after it came.
        for _ in 0..draw.between(3, 6) {
            let at = draw.between(1000, 12_000);
            let ttl = Duration::from_millis(draw.between(50, 1500));
            let burst = burst(plan, (node, filter), Some(ttl), draw);
            self.push(at, Op::Burst(burst));
        }
    }

    /// A reader is stopped, or cut off, for longer than a period is sealed under, or than it opens. Others publish before, meanwhile, and after.
    fn draw_away(&mut self, plan: &Plan, commits: &[usize], draw: &mut Rng) {
        let all = subscribed(plan);
        let named = |(_, wanted): &(usize, Wanted)| {
            Secrets::covers(plan.topics.filter(wanted.filter)) && wanted.sources.is_none()
        };
        let named: Vec<(usize, Wanted)> = all.iter().copied().filter(named).collect();
        let (slot, Wanted { node, filter, .. }) =
            one_of(if named.is_empty() { &all } else { &named }, draw);
        let at = draw.between(2500, 9000);
        let lasts = match draw.below(3) {
            0 => ROTATION_MS + ACCEPT_MS + SKEW_MS + draw.between(1000, 90_000),
            _ => 2 * ROTATION_MS + draw.between(1000, 55_000),
        };
        let whole = Duration::from_millis(lasts);
        for share in [0, 1, 4, 6, 9, 11] {
            let at = match share {
                0 => at - draw.between(0, 1500),
                _ => at + lasts * share / 10,
            };
            let hour = Duration::from_millis(3_600_000);
            let ttl = (draw.below(2) == 0).then_some(hour);
            let burst = burst(plan, (node, filter), ttl, draw);
            self.push(at, Op::Burst(burst));
        }
        let mono_stands = draw.below(2) == 0;
        let persist = true;
        match draw.below(3) {
            0 if commits.contains(&slot) => {
                self.push(at - 1, Op::Commit { slot });
                let lasts = whole;
                self.push(
                    at,
                    Op::CrashNode {
                        node,
                        lasts,
                        persist,
                    },
                );
            }
            0 => {
                for station in plan.nodes[node].stations.clone() {
                    let lasts = whole;
                    self.push(
                        at,
                        Op::Part {
                            node,
                            station,
                            lasts,
                        },
                    );
                }
            }
            _ => self.push(
                at,
                Op::SleepNode {
                    node,
                    lasts: whole,
                    mono_stands,
                },
            ),
        }
        self.calm = Instant::from_millis(at + lasts * 11 / 10 + 4000);
    }
}

/// Those that are made: slot and wish.
fn subscribed(plan: &Plan) -> Vec<(usize, Wanted)> {
    let made = plan.acts.iter().filter_map(|act| match act.op {
        Op::Subscribe { slot, wanted } => Some((slot, wanted)),
        _ => None,
    });
    made.collect()
}

fn one_of(all: &[(usize, Wanted)], draw: &mut Rng) -> (usize, Wanted) {
    all[draw.below(all.len() as u64) as usize]
}

/// A few publications for this node, of another.
fn burst(plan: &Plan, (node, filter): (usize, u8), ttl: Option<Duration>, draw: &mut Rng) -> Burst {
    let (nodes, topics) = (plan.nodes.len(), plan.topics.count());
    let topic = draw.below(topics.into()) as u8;
    Burst {
        node: (node + 1 + draw.below(nodes as u64 - 1) as usize) % nodes,
        topic: if filter < topics { filter } else { topic },
        count: draw.between(2, 8) as u16,
        every: Duration::from_millis(draw.between(1, 120)),
        size: 8,
        one: false,
        ttl,
    }
}

impl World {
    /// A node stops for so long, or is cut off, which matters where it reads sealed facts.
    pub(super) fn goes_away(&mut self, node: usize, lasts: Duration) {
        let life = self.nodes[node].life;
        let reads = |sub: &Sub| {
            let filter = self.plan.topics.filter(sub.wanted.filter);
            sub.life == life && sub.ended.is_none() && Secrets::covers(filter)
        };
        if !self.net.secrets.on || !self.subs.iter().any(reads) {
            return;
        }
        let rotation = Duration::from_millis(self.net.secrets.rotation);
        let opens = rotation + Duration::from_millis(ACCEPT_MS + SKEW_MS);
        if lasts > opens {
            self.count(Fault::AwayAcceptance);
        } else if lasts > rotation {
            self.count(Fault::AwayPeriod);
        }
    }

    /// Whether no way of a node is open.
    pub(super) fn is_cut_off(&self, node: usize) -> bool {
        let state = &self.nodes[node];
        let mut stations = self.plan.nodes[state.plan].stations.iter();
        stations.all(|station| self.net.way(state.client, *station).parted)
    }

    /// The facts that were not live by the wall of a node when that had them and knew that they are genuine: in which of its runs, and which.
    pub(super) fn all_stale(&self) -> BTreeSet<(usize, u32)> {
        let holds = self.truth.holds.iter();
        let stale = holds.flat_map(|hold| {
            let life = self.truth.wires[hold.wire].life;
            let host = self.truth.lives[life].host;
            let verified = self.net.hosts[host].answers_after;
            let arrived = hold.arrived.iter();
            let late = arrived.filter(move |(number, at)| {
                !self.is_live_at(host, *number, at.saturating_add(verified))
            });
            late.map(move |(number, _)| (life, *number))
        });
        stale.collect()
    }
}
