//! What one lane was given and what it handed out, kept as plainly as possible: sets of numbers, no ring, no ranges.
//!
//! It holds a lane to: each fact it took leaves once and as it was; within a numbering nothing leaves twice or out of order, and every
//! number passed over was told once, as skipped or closed; a fact waits for its timeout at most; conflicts are told in full.

use std::collections::{BTreeMap, BTreeSet};

use tidings::inbound::lane::{LaneItem, Mode};

/// A fact the lane took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// 0 where the publication has none.
    pub epoch: u64,
    pub seq: u64,
    /// Outside any numbering.
    pub anycast: bool,
    /// Arrival in µs.
    pub at: u64,
    /// The step of the script it came in.
    pub step: usize,
}

/// One numbering from one `Restarted` to the next.
#[derive(Debug, Default)]
struct Run {
    /// The first number it answers for.
    start: Option<u64>,
    /// It was followed before, so it may go on from an edge of then.
    again: bool,
    /// The last number in order: fact or skipped.
    edge: u64,
    facts: BTreeSet<u64>,
    skipped: Vec<(u64, u64)>,
    /// What was told of it before a `Resynced`, which may be about what is long past.
    earlier: Vec<(u64, u64)>,
}

impl Run {
    /// What was told of it.
    fn spans(&self) -> impl Iterator<Item = (u64, u64)> {
        let facts = self.facts.iter().map(|seq| (*seq, *seq));
        facts.chain(self.skipped.iter().copied())
    }
}

#[derive(Debug)]
pub struct Ledger {
    mode: Mode,
    sparse: bool,
    /// A numbering first heard is followed from 1.
    at_one: bool,
    waiting: BTreeMap<u32, Taken>,
    next: u32,
    runs: BTreeMap<u64, Run>,
    /// The greatest epoch heard.
    greatest: u64,
    closed: BTreeSet<u64>,
    /// (epoch, seq) of those that nothing had been said of, which nothing may say any more.
    passed: BTreeSet<(u64, u64)>,
    newest: Option<(u64, u64)>,
    restarted: Option<u64>,
    /// Something was given up that was known.
    resynced: bool,
    pub restarts: u64,
    conflicts: u64,
    /// Places were given up by command.
    pub gave_up: bool,
    pub delivered: u64,
    pub skipped: u64,
}

impl Ledger {
    pub fn new(mode: Mode, sparse: bool, at_one: bool) -> Self {
        Self {
            mode,
            sparse,
            at_one,
            waiting: BTreeMap::new(),
            next: 0,
            runs: BTreeMap::new(),
            greatest: 0,
            closed: BTreeSet::new(),
            passed: BTreeSet::new(),
            newest: None,
            restarted: None,
            resynced: false,
            restarts: 0,
            conflicts: 0,
            gave_up: false,
            delivered: 0,
            skipped: 0,
        }
    }

    /// The name the next fact travels under.
    pub fn name(&self) -> u32 {
        self.next
    }

    pub fn took(&mut self, fact: Taken) {
        if !fact.anycast {
            self.greatest = self.greatest.max(fact.epoch);
        }
        self.waiting.insert(self.next, fact);
        self.next += 1;
    }

    pub fn conflicted(&mut self) {
        self.conflicts += 1;
    }

    /// `fresh`: the place was not decided before, in no numbering of that epoch which is still to be told.
    pub fn closed(&mut self, epoch: u64, seq: u64, fresh: bool) {
        // It may begin its epoch.
        self.greatest = self.greatest.max(epoch);
        self.closed.insert(seq);
        if fresh {
            self.passed.insert((epoch, seq));
        }
    }

    /// What the lane took and did not hand out.
    pub fn waiting(&self) -> impl Iterator<Item = &Taken> {
        self.waiting.values()
    }

    /// `drained`: the lane was empty before this step of the script.
    pub fn handed_out(&mut self, item: LaneItem<u32>, step: usize, drained: bool) {
        match item {
            LaneItem::Fact {
                epoch,
                seq,
                late,
                item,
            } => {
                let fact = self.waiting.remove(&item).expect("a fact leaves once");
                assert_eq!(fact.seq, seq);
                assert!(fact.epoch == 0 || fact.epoch == epoch);
                self.delivered += 1;
                if fact.anycast {
                    return;
                }
                if self.mode == Mode::LatestOnly {
                    self.latest(epoch, seq);
                } else {
                    self.fact(epoch, seq, late);
                }
            }
            LaneItem::Skipped { epoch, first, last } => {
                assert!(self.mode != Mode::LatestOnly, "nothing is waited for");
                assert!(
                    !self.sparse || self.gave_up,
                    "sparse numbers are not missed"
                );
                if drained {
                    let told = |fact: &&Taken| {
                        fact.epoch == epoch
                            && fact.step < step
                            && (first..=last).contains(&fact.seq)
                    };
                    let held = self.waiting().filter(|fact| !fact.anycast).find(told);
                    assert!(
                        held.is_none(),
                        "{first}..={last} is skipped, yet holds {held:?}"
                    );
                }
                self.skip(epoch, first, last);
            }
            LaneItem::Restarted { epoch, .. } => {
                self.restarted = Some(epoch);
                self.restarts += 1;
                self.greatest = self.greatest.max(epoch);
                self.begins(epoch, Vec::new());
            }
            LaneItem::Resynced { epoch, .. } => {
                let run = self.runs.get(&epoch);
                let earlier = run.map_or_else(Vec::new, |run| {
                    run.earlier.iter().copied().chain(run.spans()).collect()
                });
                self.begins(epoch, earlier);
                self.resynced = true;
            }
            LaneItem::Conflict {
                first, last, count, ..
            } => {
                assert!(first <= last && count > 0);
                self.conflicts = self
                    .conflicts
                    .checked_sub(count)
                    .expect("a conflict is told once");
            }
            _ => {}
        }
    }

    /// A numbering begins, or begins again.
    fn begins(&mut self, epoch: u64, earlier: Vec<(u64, u64)>) {
        // It may start at 1 again, where it had passed over closed places.
        self.passed.retain(|passed| passed.0 != epoch);
        let again = self.runs.contains_key(&epoch);
        self.runs.insert(
            epoch,
            Run {
                again,
                earlier,
                ..Run::default()
            },
        );
        self.at_one = false;
    }

    fn run(&mut self, epoch: u64) -> &mut Run {
        let from_one = self.at_one && epoch > crate::script::MADE_UP;
        self.runs.entry(epoch).or_insert_with(|| Run {
            start: from_one.then_some(1),
            ..Run::default()
        })
    }

    fn fact(&mut self, epoch: u64, seq: u64, late: bool) {
        let (in_order, sparse) = (self.mode == Mode::Ordered, self.sparse);
        let outdated = self.greatest > epoch;
        let closed = self.closed.clone();
        let run = self.run(epoch);
        run.facts.insert(seq);
        // Under a greater epoch all is late; what goes beyond the edge is in order nevertheless.
        let beyond = seq > run.edge && (run.start.is_some() || (!run.again && closed.is_empty()));
        if late && !(outdated && beyond) {
            return;
        }
        let start = *run.start.get_or_insert(seq);
        if !in_order {
            return;
        }
        assert!(
            seq > run.edge,
            "{seq} leaves behind {} and is not late",
            run.edge
        );
        let from = if run.edge == 0 { start } else { run.edge + 1 };
        run.edge = seq;
        let passed = seq.saturating_sub(from);
        assert!(
            sparse || passed <= closed.range(from..seq).count() as u64,
            "a silent hole"
        );
    }

    fn skip(&mut self, epoch: u64, first: u64, last: u64) {
        assert!(first <= last);
        self.skipped += 1;
        let closed = self.passed.range((epoch, first)..=(epoch, last)).next();
        let closed = closed.copied();
        let turned = self.resynced || self.runs.len() > 3;
        let run = self.run(epoch);
        // What was closed is given up with the rest where numberings took turns.
        assert!(
            closed.is_none() || turned,
            "{closed:?} was closed and is skipped"
        );
        run.start.get_or_insert(first);
        let doubled = run.facts.range(first..=last).next();
        assert!(doubled.is_none(), "{doubled:?} left and is skipped");
        let again = run
            .skipped
            .iter()
            .find(|(from, to)| *from <= last && first <= *to);
        assert!(
            again.is_none(),
            "{first}..={last} is skipped twice: {again:?}"
        );
        run.skipped.push((first, last));
        run.edge = run.edge.max(last);
    }

    fn latest(&mut self, epoch: u64, seq: u64) {
        if let Some((old, newest)) = self.newest {
            if old == epoch {
                assert!(seq > newest, "{seq} is not newer than {newest}");
            } else {
                assert_eq!(self.restarted, Some(epoch), "a change of numbering is told");
            }
        }
        self.newest = Some((epoch, seq));
    }

    /// Nothing waits any more and nothing is due.
    pub fn settled(&self) {
        assert!(
            self.waiting.is_empty(),
            "taken and never handed out: {:?}",
            self.waiting
        );
        assert_eq!(self.conflicts, 0, "conflicts that were not told");
        if self.mode == Mode::LatestOnly || self.sparse {
            return;
        }
        for (epoch, run) in &self.runs {
            self.covered(*epoch, run);
        }
    }

    /// Every number between the first and the last is a fact, skipped or closed.
    fn covered(&self, epoch: u64, run: &Run) {
        let mut spans: Vec<(u64, u64)> = run.spans().collect();
        spans.extend(&run.earlier);
        spans.extend(self.closed.iter().map(|seq| (*seq, *seq)));
        spans.sort_unstable();
        let last_fact = run.facts.last().copied().unwrap_or(0);
        let last = run
            .skipped
            .iter()
            .map(|(_, last)| *last)
            .fold(last_fact, u64::max);
        let Some(mut next) = run.start else {
            return;
        };
        for (first, to) in spans {
            if to >= next && next <= last {
                assert!(
                    first <= next,
                    "{next}..{first} of {epoch} went missing in silence"
                );
                next = to + 1;
            }
        }
    }
}
