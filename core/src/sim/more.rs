//! What one seed in ten has beside its plan: committed positions, publisher handles, epochs that are kept before they are used, a station
//! that is held for minutes and then goes on.
//!
//! Decides: which seeds have it, and which part of it. Leaves to others: doing it (the world). Believes: nothing. Bounded by: a dozen acts.
//!
//! It is drawn from a stream of its own: the plans of all other seeds, and the acts of these, stay what they are.

use alloc::vec::Vec;

use super::draw::rng;
use super::plan::{Act, Burst, Op, Plan, Wanted};
use crate::inbound::lane::Mode;
use crate::{Duration, Instant, Rng};

/// What a run has beside its plan.
#[derive(Clone, Debug, Default)]
pub(super) struct More {
    /// Subscriptions that commit, by slot.
    pub(super) commits: Vec<usize>,
    /// Bursts are published by handles.
    pub(super) publishers: bool,
    /// Nothing is published under an epoch that was not written down.
    pub(super) keep_epochs: bool,
    /// Happen beside the acts of the plan, and are counted behind them.
    pub(super) acts: Vec<Act>,
    /// When faults end, if that is later than planned.
    pub(super) calm: Instant,
}

/// The longest a station is held, in milliseconds.
const HELD: [u64; 2] = [60_000, 150_000];

impl More {
    pub(super) fn draw(plan: &Plan) -> Self {
        let mut more = Self::default();
        if !matches!(plan.seed % 20, 0 | 7) {
            return more;
        }
        let mut draw = rng(plan.seed, "more");
        more.publishers = draw.below(2) == 0;
        more.keep_epochs = draw.below(2) == 0;
        if draw.below(4) < 3 {
            more.draw_commits(plan, &mut draw);
        }
        if draw.below(3) == 0 {
            more.draw_held(plan, &mut draw);
        }
        if draw.below(2) == 0 {
            let node = draw.below(plan.nodes.len() as u64) as usize;
            let at = draw.between(1500, 4000);
            more.draw_restart(node, at, &mut draw);
        }
        more
    }

    pub(super) fn is_any(&self) -> bool {
        !self.acts.is_empty() || self.publishers || self.keep_epochs
    }

    fn push(&mut self, at: u64, op: Op) {
        let at = Instant::from_millis(at);
        self.acts.push(Act { at, op });
    }

    /// Subscriptions in order that are alone with their filter at their node commit now and then, and their nodes are started again.
    fn draw_commits(&mut self, plan: &Plan, draw: &mut Rng) {
        let made = plan.acts.iter().filter_map(|act| match act.op {
            Op::Subscribe { slot, wanted } => Some((slot, wanted)),
            _ => None,
        });
        let made: Vec<(usize, Wanted)> = made.collect();
        for (slot, wanted) in &made {
            let same = |other: &&(usize, Wanted)| {
                (other.1.node, other.1.filter) == (wanted.node, wanted.filter)
            };
            if wanted.mode == Mode::Ordered && made.iter().filter(same).count() == 1 {
                self.commits.push(*slot);
            }
        }
        for slot in self.commits.clone() {
            let Some((_, wanted)) = made.iter().find(|(of, _)| *of == slot) else {
                continue;
            };
            let mut at = draw.between(1500, 3500);
            for _ in 0..1 + draw.below(2) {
                let burst = Burst {
                    node: draw.below(plan.nodes.len() as u64) as usize,
                    topic: draw.below(plan.topics.count().into()) as u8,
                    count: draw.between(4, 40) as u16,
                    every: Duration::from_millis(draw.between(1, 120)),
                    size: 8,
                    one: false,
                    ttl: None,
                };
                self.push(at, Op::Burst(burst));
                for _ in 0..1 + draw.below(4) {
                    at += draw.between(1, 400);
                    self.push(at, Op::Commit { slot });
                }
                at += draw.between(0, 500);
                let lasts = Duration::from_millis(draw.between(1, 3000));
                let node = wanted.node;
                let persist = draw.below(4) > 0;
                self.push(
                    at,
                    Op::CrashNode {
                        node,
                        lasts,
                        persist,
                    },
                );
                at += lasts.as_millis() as u64 + draw.between(500, 3000);
            }
            self.calm = self.calm.max(Instant::from_millis(at));
        }
    }

    /// A node that has published is started again behind a wall that was stepped back.
    fn draw_restart(&mut self, node: usize, at: u64, draw: &mut Rng) {
        let burst = |count| Burst {
            node,
            topic: 0,
            count,
            every: Duration::from_millis(20),
            size: 8,
            one: false,
            ttl: None,
        };
        self.push(at, Op::Burst(burst(10)));
        let by = -(draw.between(1000, 20_000) as i64);
        self.push(at + 300, Op::StepNode { node, by });
        let lasts = Duration::from_millis(draw.between(1, 500));
        let persist = true;
        self.push(
            at + 310,
            Op::CrashNode {
                node,
                lasts,
                persist,
            },
        );
        self.push(at + 1500, Op::Burst(burst(10)));
        self.calm = self.calm.max(Instant::from_millis(at + 2500));
    }

    /// A station is stopped for minutes, and runs on.
    fn draw_held(&mut self, plan: &Plan, draw: &mut Rng) {
        let station = draw.below(plan.stations.len() as u64) as usize;
        let at = draw.between(1500, 10_000);
        let lasts = draw.between(HELD[0], HELD[1]);
        self.push(
            at,
            Op::SleepStation {
                station,
                lasts: Duration::from_millis(lasts),
                mono_stands: false,
            },
        );
        self.calm = self.calm.max(Instant::from_millis(at + lasts + 4000));
    }
}
