//! An order as plainly as it can be written: one unsorted list of what is held, one set of numbers that are missing, one queue.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::super::{Admit, MISSING, OrderConfig, Release};
use crate::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inbound) enum Body {
    Fact(u32),
    Gone,
    Closed,
}

#[derive(Clone, Debug)]
enum Out {
    Fact {
        epoch: u64,
        seq: u64,
        late: bool,
        item: u32,
    },
    /// Told before the fact behind it.
    Skipped { epoch: u64, first: u64, last: u64 },
    /// Told where a fact was closed or gone: it takes a place.
    Alone { epoch: u64, first: u64, last: u64 },
    /// A fact found no room.
    Tail { epoch: u64, first: u64, last: u64 },
}

pub(in crate::inbound) struct Model {
    config: OrderConfig,
    room: usize,
    pub(in crate::inbound) epoch: u64,
    pub(in crate::inbound) edge: Option<u64>,
    pub(in crate::inbound) held: Vec<(u64, Instant, Body)>,
    missing: Vec<(u64, u64)>,
    floor: u64,
    joined: u64,
    /// What came late from below where it was joined.
    came: Vec<u64>,
    out: VecDeque<Out>,
    clock: Instant,
    pub(in crate::inbound) outdated: bool,
    pub(in crate::inbound) late: u64,
    pub(in crate::inbound) skips: u64,
}

impl Model {
    pub(in crate::inbound) fn new(mut config: OrderConfig, room: usize) -> Self {
        config.max_held = config.max_held.min(room - usize::from(config.as_arrives));
        Self {
            config,
            room,
            epoch: 0,
            edge: None,
            held: Vec::new(),
            missing: Vec::new(),
            floor: 0,
            joined: 0,
            came: Vec::new(),
            out: VecDeque::new(),
            clock: Instant::ORIGIN,
            outdated: false,
            late: 0,
            skips: 0,
        }
    }

    pub(in crate::inbound) fn due(&self) -> Option<Instant> {
        let oldest = self.held.iter().map(|held| held.1).min()?;
        Some(oldest.saturating_add(self.config.timeout))
    }

    pub(in crate::inbound) fn ranges(&self) -> Vec<(u64, u64)> {
        self.missing.clone()
    }

    pub(in crate::inbound) fn tick(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        while self.due().is_some_and(|due| due <= self.clock) {
            self.pass_gap();
            self.settle();
        }
    }

    pub(in crate::inbound) fn begin(&mut self, epoch: u64, at_one: bool) -> bool {
        if matches!(self.out.back(), Some(Out::Tail { .. })) {
            return false;
        }
        while !self.held.is_empty() {
            self.pass_gap();
            self.settle();
        }
        self.epoch = epoch;
        self.edge = if at_one { Some(0) } else { None };
        self.missing.clear();
        self.floor = u64::from(at_one);
        self.joined = 0;
        self.came.clear();
        true
    }

    /// Goes on after `edge`, below which nothing is known.
    pub(in crate::inbound) fn begin_after(&mut self, epoch: u64, edge: u64) {
        assert!(self.begin(epoch, false));
        self.edge = Some(edge);
        self.floor = edge.saturating_add(1);
    }

    pub(in crate::inbound) fn offer(
        &mut self,
        now: Instant,
        seq: u64,
        copy: bool,
        item: u32,
    ) -> Admit<u32> {
        self.tick(now);
        if self.edge.is_some_and(|edge| seq <= edge) {
            let known = self.missing.iter().any(|r| r.0 <= seq && seq <= r.1);
            let lies_between = self.came.iter().any(|came| *came <= seq)
                && self.came.iter().any(|came| *came >= seq);
            let below = seq > 0 && seq < self.floor && seq < self.joined && !lies_between;
            let missing = known || below;
            return match (missing, copy, seq >= self.floor) {
                (false, true, _) => Admit::Duplicate(item),
                (false, false, true) => Admit::Conflict(item),
                _ if self.free() == 0 => Admit::Busy(item),
                _ => {
                    self.out(seq, true, item);
                    self.deliver_missing(seq);
                    if seq < self.joined {
                        self.came.push(seq);
                    }
                    Admit::Taken
                }
            };
        }
        let arrives = self.config.as_arrives;
        match self.held.iter().position(|held| held.0 == seq) {
            Some(at) if self.held[at].2 != Body::Closed => Admit::Conflict(item),
            Some(at) if !arrives => {
                self.held[at].2 = Body::Fact(item);
                Admit::Taken
            }
            Some(_) if self.free() == 0 => Admit::Busy(item),
            Some(at) => {
                self.held[at].2 = Body::Gone;
                self.out(seq, self.outdated, item);
                Admit::Taken
            }
            None => {
                let needed = if arrives && !self.next(seq) { 2 } else { 1 };
                if self.free() < needed {
                    return Admit::Busy(item);
                }
                if arrives {
                    self.out(seq, self.outdated, item);
                    self.held.push((seq, self.clock, Body::Gone));
                } else {
                    self.held.push((seq, self.clock, Body::Fact(item)));
                }
                self.settle();
                Admit::Taken
            }
        }
    }

    pub(in crate::inbound) fn close(&mut self, now: Instant, seq: u64) -> bool {
        self.tick(now);
        if self.edge.is_some_and(|edge| seq <= edge) || self.held.iter().any(|h| h.0 == seq) {
            return true;
        }
        let tail = matches!(self.out.back(), Some(Out::Tail { .. }));
        if self.free() == 0 && (tail || !self.next(seq)) {
            return false;
        }
        self.held.push((seq, self.clock, Body::Closed));
        self.settle();
        true
    }

    pub(in crate::inbound) fn give_up(&mut self, now: Instant, seq: u64) -> bool {
        self.tick(now);
        if self.edge.is_some_and(|edge| seq <= edge) || self.held.iter().any(|h| h.0 == seq) {
            return false;
        }
        self.give_up_to(seq);
        self.settle();
        true
    }

    pub(in crate::inbound) fn poll(&mut self) -> Option<Release<u32>> {
        Some(match self.out.pop_front()? {
            Out::Fact {
                epoch,
                seq,
                late,
                item,
            } => Release::Fact {
                epoch,
                seq,
                late,
                item,
            },
            Out::Skipped { epoch, first, last }
            | Out::Alone { epoch, first, last }
            | Out::Tail { epoch, first, last } => Release::Skipped { epoch, first, last },
        })
    }

    fn free(&self) -> usize {
        let places = |out: &&Out| matches!(out, Out::Fact { .. } | Out::Alone { .. });
        self.room - self.held.len() - self.out.iter().filter(places).count()
    }

    fn next(&self, seq: u64) -> bool {
        self.edge
            .map_or(seq <= 1, |edge| edge != u64::MAX && seq == edge + 1)
    }

    fn lowest(&self) -> Option<usize> {
        (0..self.held.len()).min_by_key(|at| self.held[*at].0)
    }

    fn settle(&mut self) {
        loop {
            while let Some(at) = self.lowest().filter(|at| self.next(self.held[*at].0)) {
                self.release(at, None);
            }
            if self.held.len() < self.config.max_held {
                return;
            }
            self.pass_gap();
        }
    }

    fn pass_gap(&mut self) {
        let Some(at) = self.lowest() else { return };
        let seq = self.held[at].0;
        let gap = self
            .edge
            .filter(|edge| seq - edge > 1)
            .map(|edge| (edge + 1, seq - 1));
        if let Some((first, last)) = gap {
            self.miss(first, last);
        }
        let told = gap.filter(|_| !self.config.sparse);
        self.skips += u64::from(told.is_some());
        self.release(at, told);
    }

    fn release(&mut self, at: usize, mut gap: Option<(u64, u64)>) {
        let (seq, _, body) = self.held.remove(at);
        if self.edge.is_none() {
            self.join_at(seq);
        }
        self.edge = Some(seq);
        if body == Body::Closed {
            self.miss(seq, seq);
        }
        let epoch = self.epoch;
        if let Some(Out::Tail { first, last, .. }) = self.out.back().cloned() {
            self.out.pop_back();
            gap = Some((first, gap.map_or(last, |gap| gap.1)));
        }
        match (body, gap) {
            (Body::Fact(item), gap) => {
                if let Some((first, last)) = gap {
                    self.out.push_back(Out::Skipped { epoch, first, last });
                }
                self.out(seq, self.outdated, item);
            }
            (_, Some((first, last))) => self.out.push_back(Out::Alone { epoch, first, last }),
            (_, None) => (),
        }
    }

    fn out(&mut self, seq: u64, late: bool, item: u32) {
        let epoch = self.epoch;
        if let Some(Out::Tail { epoch, first, last }) = self.out.back().cloned() {
            self.out.pop_back();
            self.out.push_back(Out::Skipped { epoch, first, last });
        }
        self.late += u64::from(late);
        self.out.push_back(Out::Fact {
            epoch,
            seq,
            late,
            item,
        });
    }

    fn give_up_to(&mut self, seq: u64) {
        while self.lowest().is_some_and(|at| self.held[at].0 < seq) {
            self.pass_gap();
        }
        let start = match self.edge {
            Some(edge) => edge + 1,
            None => {
                self.join_at(seq);
                seq
            }
        };
        self.edge = Some(seq);
        self.miss(start, seq);
        if let Some(Out::Tail { last, .. }) = self.out.back_mut() {
            *last = seq;
        } else {
            self.skips += 1;
            self.out.push_back(Out::Tail {
                epoch: self.epoch,
                first: start,
                last: seq,
            });
        }
    }

    fn miss(&mut self, first: u64, last: u64) {
        self.missing.push((first.max(self.floor), last));
        self.missing.retain(|range| range.0 <= range.1);
        self.tidy();
    }

    /// Nothing before the first was delivered.
    fn join_at(&mut self, seq: u64) {
        self.floor = seq.min(1);
        self.joined = seq;
        self.miss(1, seq.saturating_sub(1));
    }

    fn deliver_missing(&mut self, seq: u64) {
        let Some(at) = self.missing.iter().position(|r| r.0 <= seq && seq <= r.1) else {
            return;
        };
        let (first, last) = self.missing.remove(at);
        if first < seq {
            self.missing.push((first, seq - 1));
        }
        if seq < last {
            self.missing.push((seq + 1, last));
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        self.missing.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in self.missing.drain(..) {
            match joined.last_mut() {
                Some(before) if before.1.saturating_add(1) >= first => {
                    before.1 = before.1.max(last)
                }
                _ => joined.push((first, last)),
            }
        }
        while joined.len() > MISSING {
            self.floor = joined.remove(0).1.saturating_add(1);
        }
        self.missing = joined;
    }
}
