//! How a run is drawn from its seed.
//!
//! Decides: how likely each fault is. Leaves to others: what a fault does. Believes: nothing. Bounded by: what it draws.

use alloc::vec::Vec;

use super::plan::{Act, Burst, NodePlan, Op, Plan, StationPlan, Topics, Wanted, WayPlan};
use crate::inbound::lane::Mode;
use crate::inbound::stream::OnFull;
use crate::{Duration, Instant, Rng, Seed};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A generator for one purpose of one seed.
pub(super) fn rng(seed: u64, label: &str) -> Rng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    Seed::new(bytes).fork(label)
}

/// Draws of one generator.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.between(low, high)
    }

    /// True once in so many draws.
    fn once_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// From `low` to `high` milliseconds, short ones more often.
    fn time(&mut self, low: u64, high: u64) -> Duration {
        let most = self.between(low, high);
        ms(self.between(low, most))
    }
}

pub(super) fn plan(seed: u64) -> Plan {
    let mut draw = Draw(rng(seed, "topology"));
    let topics = Topics::new(1 + draw.below(3));
    let stations = stations(&mut draw);
    let nodes = nodes(&mut draw, stations.len());
    let ways = ways(&mut draw, nodes.len(), stations.len());
    let mut acts = Acts {
        draw: Draw(rng(seed, "acts")),
        topics: topics.count(),
        stations: stations.len(),
        nodes: nodes.len(),
        slots: Vec::new(),
        acts: Vec::new(),
        end: 0,
    };
    acts.draw();
    let Acts {
        mut acts,
        slots,
        end,
        ..
    } = acts;
    acts.sort_by_key(|act| act.at);
    Plan {
        seed,
        topics,
        stations,
        nodes,
        ways,
        acts,
        slots: slots.len(),
        calm: Instant::from_millis(end),
        last_words: !rng(seed, "last words").next_u64().is_multiple_of(3),
    }
}

fn stations(draw: &mut Draw) -> Vec<StationPlan> {
    let count = draw.of(&[1, 2, 2, 2, 3]);
    let station = |draw: &mut Draw| StationPlan {
        ring_items: if draw.once_in(4) {
            draw.of(&[2, 4, 8, 16])
        } else {
            512
        },
        subscriptions_per_link: if draw.once_in(12) { 1 } else { 16 },
    };
    (0..count).map(|_| station(draw)).collect()
}

fn nodes(draw: &mut Draw, stations: usize) -> Vec<NodePlan> {
    let count = draw.of(&[2, 3, 3, 4]);
    let mut nodes = Vec::new();
    for key in 0..count {
        let mut known: Vec<usize> = (0..stations).collect();
        if stations > 1 && draw.once_in(6) {
            known.remove(draw.below(stations));
        }
        let mut node = NodePlan {
            key,
            stations: known,
            replication: draw.of(&[2, 2, 2, 1, 3]),
            order_timeout: ms(draw.of(&[250, 250, 250, 50, 1000])),
            order_max_buffer: 256,
            dedup_entries: 4096,
            held_bytes: 4 << 20,
            lanes: 256,
            resting_lanes: 256,
            asks: None,
            skew: 0,
        };
        match draw.below(24) {
            0 => node.order_max_buffer = draw.of(&[1, 2, 4]),
            1 => (node.order_max_buffer, node.dedup_entries) = (4, draw.of(&[8, 16, 32])),
            2 => node.held_bytes = draw.of(&[2048, 4096]),
            3 => node.lanes = draw.of(&[1, 2]),
            4 => node.resting_lanes = 1,
            5 | 6 => {
                let lose = if draw.once_in(3) {
                    draw.between(5, 20)
                } else {
                    0
                };
                node.asks = Some((ms(draw.between(0, 40)), lose));
            }
            7 | 8 => node.skew = draw.between(0, 240_000) as i64 - 120_000,
            _ => {}
        }
        nodes.push(node);
    }
    nodes
}

fn ways(draw: &mut Draw, nodes: usize, stations: usize) -> Vec<Vec<WayPlan>> {
    let way = |draw: &mut Draw| {
        let delay = draw.of(&[1, 3, 10, 30, 80]);
        WayPlan {
            delay: ms(delay),
            jitter: ms(draw.between(0, delay)),
        }
    };
    let of_node = |draw: &mut Draw| (0..stations).map(|_| way(draw)).collect();
    (0..nodes).map(|_| of_node(draw)).collect()
}

/// The acts of a run while they are drawn.
struct Acts {
    draw: Draw,
    topics: u8,
    stations: usize,
    nodes: usize,
    /// Whose subscription each slot is.
    slots: Vec<usize>,
    acts: Vec<Act>,
    /// When faults end, in milliseconds.
    end: u64,
}

impl Acts {
    fn push(&mut self, at: u64, op: Op) {
        let at = Instant::from_millis(at);
        self.acts.push(Act { at, op });
    }

    fn draw(&mut self) {
        // One run in ten is long, with pauses in it.
        let long = self.draw.once_in(10);
        self.end = match long {
            true => self.draw.between(90_000, 900_000),
            false => self.draw.between(4000, 30_000),
        };
        for _ in 0..1 + self.draw.below(4) {
            let at = self.draw.between(0, 1500);
            self.subscribe(at);
        }
        for _ in 0..2 + self.draw.below(6) {
            let at = self.draw.between(0, self.end);
            self.burst(at);
        }
        // A run has few kinds of faults, so that each meets the others in many combinations.
        let kinds: Vec<usize> = (0..1 + self.draw.below(4))
            .map(|_| self.draw.below(KINDS))
            .collect();
        for _ in 0..self.draw.below(8) {
            let kind = self.draw.of(&kinds);
            let at = self.draw.between(500, self.end);
            self.fault(kind, at);
        }
    }

    fn node(&mut self) -> usize {
        self.draw.below(self.nodes)
    }

    fn station(&mut self) -> usize {
        self.draw.below(self.stations)
    }

    fn slot(&mut self) -> usize {
        self.draw.below(self.slots.len())
    }

    fn subscribe(&mut self, at: u64) {
        let node = self.node();
        let on_full = self.draw.of(&[
            OnFull::Lag,
            OnFull::Lag,
            OnFull::Lag,
            OnFull::Lag,
            OnFull::Disconnect,
            OnFull::Pause,
        ]);
        let wanted = Wanted {
            node,
            filter: self.draw.below(usize::from(self.topics) + 1) as u8,
            mode: self.draw.of(&[
                Mode::Ordered,
                Mode::Ordered,
                Mode::Ordered,
                Mode::LatestOnly,
                Mode::AsArrives,
            ]),
            on_full,
            capacity: if self.draw.once_in(5) {
                self.draw.of(&[1, 2, 4, 16])
            } else {
                1024
            },
            sources: self
                .draw
                .once_in(8)
                .then(|| self.draw.between(1, (1 << self.nodes) - 1) as u8),
        };
        let slot = self.slots.len();
        self.slots.push(node);
        self.push(at, Op::Subscribe { slot, wanted });
    }

    fn burst(&mut self, at: u64) {
        let burst = Burst {
            node: self.node(),
            topic: self.draw.below(self.topics.into()) as u8,
            count: self.draw.time(1, 40).as_millis() as u16,
            every: Duration::from_micros(self.draw.of(&[0, 500, 5000, 20_000, 100_000, 400_000])),
            size: self.draw.of(&[8, 8, 40, 200]),
            one: self.draw.once_in(10),
            ttl: self
                .draw
                .once_in(8)
                .then(|| ms(self.draw.between(1, 60_000))),
        };
        self.push(at, Op::Burst(burst));
        // A second publisher on the topic, or the same one over again, soon after.
        if self.draw.once_in(3) {
            let node = self.node();
            let at = at + self.draw.between(0, 500);
            self.push(at, Op::Burst(Burst { node, ..burst }));
        }
    }

    fn fault(&mut self, kind: usize, at: u64) {
        let (node, station) = (self.node(), self.station());
        let lasts = self.draw.time(1, 8000);
        let d = &mut self.draw;
        let op = match kind {
            0 => {
                let late = d.once_in(3);
                let late = if late {
                    d.time(1, 3000)
                } else {
                    Duration::ZERO
                };
                let after = if d.once_in(2) {
                    [late, Duration::ZERO]
                } else {
                    [Duration::ZERO, late]
                };
                Op::Cut {
                    node,
                    station,
                    after,
                }
            }
            1 => Op::Part {
                node,
                station,
                lasts,
            },
            2 => Op::CrashStation { station, lasts },
            3 => Op::CrashNode {
                node,
                lasts,
                persist: d.once_in(2),
            },
            4 => {
                let longest = if d.once_in(4) { 120_000 } else { 5000 };
                let lasts = d.time(1, longest);
                Op::SleepNode {
                    node,
                    lasts,
                    mono_stands: d.once_in(2),
                }
            }
            5 => Op::SleepStation {
                station,
                lasts,
                mono_stands: d.once_in(2),
            },
            6 => Op::StepNode { node, by: step(d) },
            7 => Op::StepStation {
                station,
                by: step(d),
            },
            8 => Op::Stall {
                slot: self.slot(),
                lasts,
            },
            9 => {
                let rate = d.of(&[1, 2, 8]);
                let budget = d.of(&[256, 1024, 8192]);
                Op::Slow {
                    node,
                    station,
                    lasts,
                    rate,
                    budget,
                }
            }
            10 => {
                let delay = d.time(50, 1500);
                Op::Stretch {
                    node,
                    station,
                    lasts,
                    delay,
                }
            }
            11 => Op::Hangup { node, station },
            12 => Op::Purge { station, node },
            13 => Op::Refuse {
                node,
                station,
                lasts,
            },
            14 => Op::DrainStation { station, lasts },
            15 => {
                let mut lasts = d.time(100, 5000);
                if d.once_in(3) {
                    // More than the minute after which two counters are told.
                    lasts = ms(75_000);
                    self.end = self.end.max(at + 78_000);
                }
                Op::Twin { node, lasts }
            }
            16 => Op::Unsubscribe { slot: self.slot() },
            17 => Op::Resubscribe { slot: self.slot() },
            18 => Op::Cancel { node },
            _ => return self.subscribe(at),
        };
        self.push(at, op);
        // Often something is published just then.
        if self.draw.once_in(2) {
            let at = at.saturating_sub(self.draw.between(0, 300));
            self.burst(at);
        }
    }
}

/// Kinds of faults `fault` knows.
const KINDS: usize = 20;

/// A step of a wall: a moment, or more than what publications live.
fn step(draw: &mut Draw) -> i64 {
    let size = match draw.below(3) {
        0 => draw.between(1, 5000),
        1 => draw.between(5000, 400_000),
        _ => draw.between(400_000, 4_000_000),
    } as i64;
    if draw.once_in(2) { size } else { -size }
}
