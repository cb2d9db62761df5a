//! An order as plainly as it can be written: one unsorted list of what is held, one set of numbers that are missing, one queue.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::super::{Admit, EPOCHS, MISSING, OrderConfig, Release, UNTOLD};
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

/// An edge, what below it nobody was told of and from where on that is known, and whether more had been known.
pub(in crate::inbound) type Left = (u64, (Vec<(u64, u64)>, u64), bool);

pub(in crate::inbound) struct Model {
    config: OrderConfig,
    room: usize,
    pub(in crate::inbound) epoch: u64,
    pub(in crate::inbound) edge: Option<u64>,
    pub(in crate::inbound) held: Vec<(u64, Instant, Body)>,
    missing: Vec<(u64, u64)>,
    floor: u64,
    /// What nobody was told of.
    untold: Vec<(u64, u64)>,
    untold_floor: u64,
    anew: bool,
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
            untold: Vec::new(),
            untold_floor: 0,
            anew: false,
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
        if matches!(self.out.back(), Some(Out::Tail { .. })) || self.others() == EPOCHS - 1 {
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
        self.untold.clear();
        self.untold_floor = 0;
        self.anew = false;
        true
    }

    pub(in crate::inbound) fn begin_anew(&mut self, epoch: u64) {
        assert!(self.begin(epoch, false));
        self.anew = true;
    }

    /// Lets go of all that is held. What is known then is taken up by an order that begins after it.
    pub(in crate::inbound) fn leave(&mut self) -> Option<Left> {
        while !self.held.is_empty() {
            self.pass_gap();
            self.settle();
        }
        let untold = (self.untold.clone(), self.untold_floor);
        Some((self.edge?, untold, self.anew))
    }

    /// Goes on after an edge, below which nothing is known but what nobody was told of.
    pub(in crate::inbound) fn begin_after(&mut self, epoch: u64, left: Left) {
        assert!(self.begin(epoch, false));
        let (edge, untold, anew) = left;
        self.edge = Some(edge);
        self.floor = edge.saturating_add(1);
        (self.untold, self.untold_floor) = untold;
        self.anew = anew;
    }

    /// A fact with that number would cost a range nobody was told of.
    pub(in crate::inbound) fn costs_untold(&self, seq: u64) -> bool {
        let mut without = self.untold.clone();
        take_out(&mut without, seq);
        self.edge.is_some_and(|edge| seq <= edge) && without.len() > UNTOLD
    }

    pub(in crate::inbound) fn offer(
        &mut self,
        now: Instant,
        seq: u64,
        copy: bool,
        item: u32,
    ) -> Admit<u32> {
        self.tick(now);
        if copy && self.anew {
            return match self.close(now, seq) {
                true => Admit::Duplicate(item),
                false => Admit::Busy(item),
            };
        }
        if self.edge.is_some_and(|edge| seq <= edge) {
            let missing = is_in(&self.missing, seq) || is_in(&self.untold, seq);
            return match (missing, copy, seq >= self.floor.max(self.untold_floor)) {
                (false, true, _) => Admit::Duplicate(item),
                (false, false, true) => Admit::Conflict(item),
                _ if self.free() == 0 => Admit::Busy(item),
                _ => {
                    self.out(seq, true, item);
                    self.deliver_missing(seq);
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
        if self.edge.is_some_and(|edge| seq <= edge) {
            if is_in(&self.untold, seq) && !self.costs_untold(seq) {
                take_out(&mut self.untold, seq);
                self.miss(seq, seq);
            }
            return true;
        }
        if self.held.iter().any(|h| h.0 == seq) {
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

    /// How many epochs but its own there are of what waits.
    fn others(&self) -> usize {
        let epoch = |out: &Out| match *out {
            Out::Fact { epoch, .. }
            | Out::Skipped { epoch, .. }
            | Out::Alone { epoch, .. }
            | Out::Tail { epoch, .. } => epoch,
        };
        let all: BTreeSet<u64> = self.out.iter().map(epoch).collect();
        all.len() - usize::from(all.contains(&self.epoch))
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
        self.floor = if self.anew { seq } else { seq.min(1) };
        if !self.anew && seq > 1 {
            self.untold.push((1, seq - 1));
        }
    }

    fn deliver_missing(&mut self, seq: u64) {
        take_out(&mut self.missing, seq);
        if self.costs_untold(seq) {
            self.untold_floor = self.untold.last().unwrap().1 + 1;
            self.untold.clear();
        }
        take_out(&mut self.untold, seq);
        self.tidy();
    }

    fn tidy(&mut self) {
        tidy(&mut self.missing, MISSING, &mut self.floor);
        tidy(&mut self.untold, usize::MAX, &mut 0);
    }
}

fn is_in(ranges: &[(u64, u64)], seq: u64) -> bool {
    ranges.iter().any(|r| r.0 <= seq && seq <= r.1)
}

fn take_out(ranges: &mut Vec<(u64, u64)>, seq: u64) {
    let Some(at) = ranges.iter().position(|r| r.0 <= seq && seq <= r.1) else {
        return;
    };
    let (first, last) = ranges.remove(at);
    if first < seq {
        ranges.push((first, seq - 1));
    }
    if seq < last {
        ranges.push((seq + 1, last));
    }
}

fn tidy(ranges: &mut Vec<(u64, u64)>, most: usize, floor: &mut u64) {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (first, last) in ranges.drain(..) {
        match joined.last_mut() {
            Some(before) if before.1.saturating_add(1) >= first => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    while joined.len() > most {
        *floor = joined.remove(0).1.saturating_add(1);
    }
    *ranges = joined;
}
