//! A lane as plainly as it can be written: a list of epochs with a model of an order each, lists for everything else, real times only.

use alloc::string::String;
use alloc::vec::Vec;

use super::show;
use crate::inbound::lane::{Admit, LaneConfig, LaneItem, Mode, Offer};
use crate::inbound::order::tests::model::{Left, Model as Order};
use crate::inbound::order::{OrderConfig, Release};
use crate::time::Instant;

struct Epoch {
    epoch: u64,
    heard: u64,
    order: Order,
}

struct Clash {
    epoch: u64,
    seqs: Vec<u64>,
    began: u64,
    latest: u64,
}

/// Times in ms.
pub(super) struct Model {
    config: LaneConfig,
    epochs: Vec<Epoch>,
    replaced: Option<(u64, Left)>,
    /// Epochs that were replaced and forgotten.
    lost: Vec<u64>,
    made_up: u64,
    clashes: Vec<Clash>,
    /// Everything that was heard and not replayed since the two counters are what they are: (when, epoch, seq).
    history: Vec<(u64, u64, u64)>,
    told: bool,
    /// When gaps were not timed; the last may reach into the future.
    stood: Vec<(u64, u64)>,
    clock: u64,
    pub(super) out: Vec<String>,
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

impl Model {
    pub(super) fn new(config: LaneConfig) -> Self {
        Self {
            config,
            epochs: Vec::new(),
            replaced: None,
            lost: Vec::new(),
            made_up: 0,
            clashes: Vec::new(),
            history: Vec::new(),
            told: false,
            stood: Vec::new(),
            clock: 0,
            out: Vec::new(),
        }
    }

    pub(super) fn offer(&mut self, now: u64, offer: Offer) -> Admit<u32> {
        self.tick(now);
        if offer.anycast {
            let Offer { epoch, seq, .. } = offer;
            self.out.push(show(LaneItem::Fact {
                epoch,
                seq,
                late: false,
                item: 0,
            }));
            return Admit::Taken;
        }
        let at = self.follow(offer.epoch, offer.seq);
        let now = ms(self.gap_clock(self.clock));
        if self.epochs[at].order.costs_untold(offer.seq) {
            let epoch = self.epochs[at].epoch;
            self.out.push(show(LaneItem::Resynced { epoch }));
        }
        let admit = self.epochs[at]
            .order
            .offer(now, offer.seq, offer.copy_possible, 0);
        self.collect(at);
        let epoch = self.epochs[at].epoch;
        if matches!(admit, Admit::Conflict(_)) {
            self.clash(epoch, offer.seq);
        }
        if !offer.replayed {
            self.count(epoch, offer.seq);
        }
        admit
    }

    pub(super) fn close(&mut self, now: u64, epoch: u64, seq: u64) {
        self.tick(now);
        let at = self.follow(epoch, seq);
        let now = ms(self.gap_clock(self.clock));
        assert!(self.epochs[at].order.close(now, seq), "there is room");
        self.collect(at);
        self.count(self.epochs[at].epoch, seq);
    }

    pub(super) fn progress(&mut self, now: u64) {
        self.tick(now);
        let until = self.clock + 10_000;
        match self.stood.last_mut().filter(|stood| stood.1 > self.clock) {
            Some(stood) => stood.1 = until,
            None => self.stood.push((self.clock, until)),
        }
    }

    pub(super) fn replay_end(&mut self, now: u64) {
        self.tick(now);
        if let Some(stood) = self.stood.last_mut() {
            stood.1 = stood.1.min(self.clock);
        }
    }

    pub(super) fn tick(&mut self, now: u64) {
        self.clock = self.clock.max(now);
        loop {
            let gaps = self
                .epochs
                .iter()
                .enumerate()
                .map(|(at, e)| (self.gap_due(e), 0, 0, at));
            let ends = self
                .clashes
                .iter()
                .enumerate()
                .map(|(at, c)| (Some(end(c)), 1, c.epoch, at));
            let due = gaps
                .chain(ends)
                .filter_map(|(due, kind, tie, at)| Some((due?, kind, tie, at)));
            // Due together: gaps before episodes, gaps by their place in the list, episodes by epoch.
            let Some((due, kind, _, at)) = due.min() else {
                return;
            };
            if due > self.clock {
                return;
            }
            if kind == 0 {
                let due = self.epochs[at].order.due().unwrap();
                self.epochs[at].order.tick(due);
                self.collect(at);
            } else {
                self.end(at);
            }
        }
    }

    pub(super) fn due(&self) -> Option<u64> {
        let gaps = self.epochs.iter().filter_map(|epoch| self.gap_due(epoch));
        gaps.chain(self.clashes.iter().map(end)).min()
    }

    pub(super) fn edges(&self) -> Vec<Option<(u64, u64)>> {
        let mut edges: Vec<_> = self
            .epochs
            .iter()
            .map(|e| e.order.edge.map(|edge| (e.epoch, edge)))
            .collect();
        edges.resize(2, None);
        edges
    }

    /// Time that gaps were timed for until `now`.
    fn gap_clock(&self, now: u64) -> u64 {
        let stood = self
            .stood
            .iter()
            .map(|(from, to)| now.min(*to).saturating_sub(*from));
        now - stood.sum::<u64>()
    }

    /// The first moment at which the gaps' clock shows the deadline.
    fn gap_due(&self, epoch: &Epoch) -> Option<u64> {
        let mut due = epoch.order.due()?.as_micros() / 1000;
        for (from, to) in &self.stood {
            if *from < due {
                due += to - from;
            }
        }
        Some(due)
    }

    fn made_up(&self, seq: u64) -> u64 {
        let mut ours: Vec<&Epoch> = self.epochs.iter().filter(|e| e.epoch < 1 << 32).collect();
        ours.sort_by_key(|epoch| core::cmp::Reverse(epoch.epoch));
        let near = |e: &&&Epoch| {
            if self.config.sparse {
                return true;
            }
            let next = e.order.edge.map(|edge| i128::from(edge) + 1);
            next.is_some_and(|next| (next - i128::from(seq)).abs() <= 10_000)
        };
        let found = ours
            .iter()
            .find(near)
            .or_else(|| ours.iter().find(|e| e.order.edge.is_none()));
        found.map_or(self.made_up + 1, |epoch| epoch.epoch)
    }

    fn follow(&mut self, epoch: u64, seq: u64) -> usize {
        let epoch = if epoch == 0 { self.made_up(seq) } else { epoch };
        if epoch < 1 << 32 {
            self.made_up = self.made_up.max(epoch);
        }
        if let Some(at) = self.epochs.iter().position(|known| known.epoch == epoch) {
            self.epochs[at].heard = self.clock;
            return at;
        }
        let known = !self.epochs.is_empty();
        let greater = self.epochs.iter().all(|known| known.epoch < epoch);
        let joined_us = (self.config.accepted_wall.as_millis() + 300_000) * 1000;
        let at_one = epoch >= 1 << 32 && epoch > joined_us;
        let at = if self.epochs.len() < 2 {
            let order = Order::new(
                OrderConfig {
                    timeout: self.config.order_timeout,
                    max_held: self.config.order_max_buffer,
                    as_arrives: self.config.mode == Mode::AsArrives,
                    sparse: self.config.sparse,
                },
                1_000_000,
            );
            self.epochs.push(Epoch {
                epoch,
                heard: self.clock,
                order,
            });
            self.epochs.len() - 1
        } else {
            (0..2)
                .min_by_key(|at| (self.epochs[*at].heard, self.epochs[*at].epoch))
                .unwrap()
        };
        let old = self.epochs[at].epoch;
        let back = self.replaced.take_if(|replaced| replaced.0 == epoch);
        let anew = back.is_none() && self.lost.iter().any(|lost| epoch <= *lost);
        if old != epoch {
            // All it holds leaves; its episode ends with it.
            if let Some(left) = self.epochs[at].order.leave() {
                self.lost
                    .extend(self.replaced.replace((old, left)).map(|lost| lost.0));
            }
        }
        match back {
            Some((_, left)) => self.epochs[at].order.begin_after(epoch, left),
            None if anew => self.epochs[at].order.begin_anew(epoch),
            None => assert!(self.epochs[at].order.begin(epoch, at_one)),
        }
        self.collect(at);
        if let Some(clash) = self
            .clashes
            .iter()
            .position(|c| c.epoch == old && old != epoch)
        {
            self.end(clash);
        }
        self.epochs[at].epoch = epoch;
        self.epochs[at].heard = self.clock;
        let greatest = self.epochs.iter().map(|epoch| epoch.epoch).max();
        for epoch in &mut self.epochs {
            epoch.order.outdated = Some(epoch.epoch) != greatest;
        }
        if anew {
            self.out.push(show(LaneItem::Resynced { epoch }));
        } else if known {
            self.out.push(show(LaneItem::Restarted { epoch, greater }));
        }
        at
    }

    fn collect(&mut self, at: usize) {
        while let Some(release) = self.epochs[at].order.poll() {
            self.out.push(show(match release {
                Release::Fact {
                    epoch,
                    seq,
                    late,
                    item,
                } => LaneItem::Fact {
                    epoch,
                    seq,
                    late,
                    item,
                },
                Release::Skipped { epoch, first, last } => LaneItem::Skipped { epoch, first, last },
            }));
        }
    }

    fn clash(&mut self, epoch: u64, seq: u64) {
        match self.clashes.iter_mut().find(|clash| clash.epoch == epoch) {
            Some(clash) => {
                clash.seqs.push(seq);
                clash.latest = self.clock;
            }
            None => {
                let (began, latest) = (self.clock, self.clock);
                self.clashes.push(Clash {
                    epoch,
                    seqs: [seq].to_vec(),
                    began,
                    latest,
                });
            }
        }
    }

    fn end(&mut self, at: usize) {
        let Clash { epoch, seqs, .. } = self.clashes.remove(at);
        let (first, last) = (*seqs.iter().min().unwrap(), *seqs.iter().max().unwrap());
        let count = seqs.len() as u64;
        self.out.push(show(LaneItem::Conflict {
            epoch,
            first,
            last,
            count,
        }));
    }

    /// Told when both counters have brought a new number at least a minute after the second of them was first heard.
    fn count(&mut self, epoch: u64, seq: u64) {
        let mut known: Vec<u64> = self.history.iter().map(|heard| heard.1).collect();
        known.sort_unstable();
        known.dedup();
        if known.len() == 2 && !known.contains(&epoch) {
            let last = |epoch: u64| {
                (
                    self.history
                        .iter()
                        .filter(|h| h.1 == epoch)
                        .map(|h| h.0)
                        .max(),
                    epoch,
                )
            };
            let gone = if last(known[0]) < last(known[1]) {
                known[0]
            } else {
                known[1]
            };
            // The one that stays keeps its highest number and is asked to go on anew.
            let stays = known[0] + known[1] - gone;
            let stayed = self.history.iter().filter(|heard| heard.1 == stays);
            let highest = stayed.clone().map(|heard| heard.2).max().unwrap();
            let heard = stayed.map(|heard| heard.0).max().unwrap();
            self.history = [(heard, stays, highest)].to_vec();
            self.told = false;
        }
        self.history.push((self.clock, epoch, seq));
        let first = |wanted: u64| {
            self.history
                .iter()
                .find(|heard| heard.1 == wanted)
                .unwrap()
                .0
        };
        let Some(other) = self
            .history
            .iter()
            .map(|heard| heard.1)
            .find(|e| *e != epoch)
        else {
            return;
        };
        // The second place's beginning; the first has been there longer.
        let since = if self.history[0].1 == epoch {
            first(other)
        } else {
            first(epoch)
        };
        let goes_on = |wanted: u64| {
            let mut highest = None;
            self.history
                .iter()
                .filter(|heard| heard.1 == wanted)
                .any(|heard| {
                    let new = highest.is_some_and(|highest| heard.2 > highest);
                    highest = highest.max(Some(heard.2));
                    new && heard.0 >= since + 60_000
                })
        };
        if !self.told && goes_on(epoch) && goes_on(other) {
            self.told = true;
            self.out.push(show(LaneItem::TwoCounters {
                epoch: epoch.max(other),
            }));
        }
    }
}

fn end(clash: &Clash) -> u64 {
    (clash.latest + 1000).min(clash.began + 10_000)
}
