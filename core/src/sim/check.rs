//! Whether what the streams said is what happened.
//!
//! Decides: which rule is broken, and how. Leaves to others: each rule (one file for each). Believes: the true time. Bounded by: the run.

mod cause;
mod commits;
mod drops;
mod idle;
mod ledger;
mod nobody;
mod order;
mod unopened;
mod windows;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::hash::Hash;
use super::report::Broken;
use super::world::{Told, World};
use crate::notice::Notice;
use crate::{Duration, Instant};

/// A question about a signature is given up after so long.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// One publisher's numbering on one topic: its key, the topic, the epoch.
pub(super) type Numbering = (u8, u8, u64);

/// What a stream said, sorted.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    /// Facts in their order: place in the stream, number, whether late.
    pub(super) facts: Vec<(usize, u32, bool)>,
    pub(super) notices: Vec<(usize, Instant, &'a Notice)>,
    pub(super) missed: u64,
    pub(super) swallowed: u64,
    pub(super) dropped: u64,
    /// What was skipped: place in the stream, whose, first, last.
    pub(super) skipped: Vec<(usize, Numbering, u64, u64)>,
    pub(super) conflicts: Vec<(Numbering, u64, u64)>,
    /// What was not opened: place in the stream, whose, number.
    pub(super) unopened: Vec<(usize, Numbering, u64)>,
}

impl Sorted<'_> {
    /// The numbers of what was not opened.
    fn not_opened(&self) -> impl Iterator<Item = (Numbering, u64)> {
        self.unopened.iter().map(|(_, of, seq)| (*of, *seq))
    }

    /// Whether one of the notices right before that place says that what was known of a numbering was given up.
    fn forgot_before(&self, place: usize) -> bool {
        let next = self.notices.partition_point(|(at, ..)| *at < place);
        let before = self.notices[..next].iter().rev().enumerate();
        before
            .take_while(|(back, (at, ..))| at + back + 1 == place)
            .any(|(_, (.., notice))| matches!(notice, Notice::Resynced { .. }))
    }
}

/// What all rules look things up in.
#[derive(Debug)]
pub(super) struct Index {
    /// The publications of each number of each numbering.
    pub(super) by_number: BTreeMap<(u8, u8, u64, u64), Vec<u32>>,
}

impl Index {
    fn new(world: &World) -> Self {
        let mut by_number: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (number, made) in world.truth.made.iter().enumerate() {
            if let Some(fact) = made.fact.filter(|_| !made.one) {
                let key = (made.key, made.topic, fact.epoch, fact.seq);
                by_number.entry(key).or_default().push(number as u32);
            }
        }
        Self { by_number }
    }

    /// The epochs of a publisher on a topic.
    pub(super) fn epochs(&self, key: u8, topic: u8) -> Vec<u64> {
        let all = self
            .by_number
            .range((key, topic, 0, 0)..=(key, topic, u64::MAX, u64::MAX));
        let mut epochs: Vec<u64> = all.map(|((_, _, epoch, _), _)| *epoch).collect();
        epochs.dedup();
        epochs
    }
}

impl World {
    /// Holds everything against every rule.
    pub(super) fn judge(&mut self) -> Vec<Broken> {
        let wrong = core::mem::take(&mut self.wrong);
        let mut broken: Vec<Broken> = wrong
            .into_iter()
            .map(|(rule, how)| Broken { rule, how })
            .collect();
        for how in core::mem::take(&mut self.truth.broken) {
            broken.push(Broken { rule: "wire", how });
        }
        self.tally.runs = 1;
        self.tally
            .fault(super::Fault::DuplicateCopies, self.truth.copies);
        self.tally
            .fault(super::Fault::Reordered, self.truth.reordered);
        self.tally
            .fault(super::Fault::QuotaMet, self.truth.quota_met());
        self.tally_secrets();
        self.tally_lookups();
        if !broken.is_empty() {
            // It was stopped: nothing else can be said of it.
            return broken;
        }
        self.stale = self.all_stale();
        self.settle_wires();
        self.settle_arrivals();
        let index = Index::new(self);
        let mut found = Findings(Vec::new());
        let mut tally = super::Tally::default();
        for sub in 0..self.subs.len() {
            let sorted = self.sorted(sub);
            tally.delivered += sorted.facts.len() as u64;
            self.check_once(sub, &sorted, &mut found);
            self.check_order(sub, &sorted, &mut found);
            self.check_ledger(sub, &sorted, &index, &mut tally, &mut found);
            self.check_unopened(sub, &sorted, &mut found);
            self.check_causes(sub, &sorted, &index, &mut found);
            self.check_windows(sub, &sorted, &mut found);
            self.check_commits(sub, &sorted, &index, &mut found);
        }
        self.check_anycast(&mut found);
        self.check_epochs(&mut found);
        self.check_stations(&mut found);
        self.check_tickets(&mut found);
        self.check_wakeups(&mut found);
        self.tally.add(&tally);
        found.0
    }

    fn sorted(&self, sub: usize) -> Sorted<'_> {
        let mut sorted = Sorted::default();
        for (place, (at, told)) in self.subs[sub].told.iter().enumerate() {
            let notice = match told {
                Told::Fact { number, late } => {
                    sorted.facts.push((place, *number, *late));
                    continue;
                }
                Told::Notice(notice) => notice,
            };
            sorted.notices.push((place, *at, notice));
            match notice {
                Notice::Lagged {
                    missed, notices, ..
                } => {
                    sorted.missed += missed;
                    sorted.swallowed += notices;
                }
                Notice::Dropped { count, .. } => sorted.dropped += count,
                Notice::Skipped { of, first, last } => {
                    if let Some(of) = self.numbering(of) {
                        sorted.skipped.push((place, of, *first, *last));
                    }
                }
                Notice::Conflict {
                    of, first, last, ..
                } => {
                    if let Some(of) = self.numbering(of) {
                        sorted.conflicts.push((of, *first, *last));
                    }
                }
                Notice::Unopened { of, seq, .. } => {
                    if let Some(of) = self.numbering(of) {
                        sorted.unopened.push((place, of, *seq));
                    }
                }
                _ => {}
            }
        }
        sorted
    }

    /// Whose numbering that is.
    pub(super) fn numbering(&self, of: &crate::notice::Numbering) -> Option<Numbering> {
        let key = self.key_of(&of.publisher)?;
        Some((key, self.plan.topics.number(&of.topic), of.epoch))
    }

    /// The numbers of a publication, as they were on the wire: numbering and seq.
    pub(super) fn place_of(&self, number: u32) -> Option<(Numbering, u64)> {
        let made = self.truth.made.get(number as usize)?;
        let fact = made.fact?;
        Some(((made.key, made.topic, fact.epoch), fact.seq))
    }

    pub(super) fn hash_told(&mut self, sub: usize, told: &Told) {
        let mut hash = self.subs[sub].hash;
        match told {
            Told::Fact { number, late } => {
                hash.word(u64::from(*number));
                hash.word(u64::from(*late));
            }
            Told::Notice(notice) => {
                hash.word(1 << 40 | u64::from(notice.code().number()));
                let (from, to) = notice.window();
                hash.word(from.as_millis());
                hash.word(to.as_millis());
                if let Some(of) = notice.numbering() {
                    hash.word(self.key_of(&of.publisher).map_or(99, u64::from));
                    hash.word(of.epoch);
                }
                let more = match notice {
                    Notice::Skipped { first, last, .. } => (*first, *last),
                    Notice::Lagged {
                        missed, notices, ..
                    } => (*missed, *notices),
                    Notice::Conflict { first, count, .. } => (*first, *count),
                    Notice::Dropped {
                        count, publishers, ..
                    } => (*count, u64::from(*publishers)),
                    Notice::Gap { count, .. } => (count.unwrap_or(0), 0),
                    Notice::Unopened { seq, reason, .. } => (*seq, u64::from(reason.number())),
                    _ => (0, 0),
                };
                hash.word(more.0);
                hash.word(more.1);
            }
        }
        self.subs[sub].hash = hash;
    }

    pub(super) fn stream_hashes(&self) -> Vec<u128> {
        self.subs.iter().map(|sub| sub.hash.value()).collect()
    }

    /// The hash of the whole run, the streams' among it.
    pub(super) fn whole_hash(&self) -> u128 {
        let mut hash: Hash = self.hash;
        for stream in self.stream_hashes() {
            hash.word(stream as u64);
            hash.word((stream >> 64) as u64);
        }
        hash.value()
    }
}

/// Rules found broken.
#[derive(Debug)]
pub(super) struct Findings(Vec<Broken>);

impl Findings {
    /// One more; of each rule a few are enough.
    pub(super) fn add(&mut self, rule: &'static str, how: impl FnOnce() -> String) {
        if self.0.iter().filter(|broken| broken.rule == rule).count() < 4 {
            self.0.push(Broken { rule, how: how() });
        }
    }
}

/// A publication as people find it in a trace.
pub(super) fn named(number: u32, place: Option<(Numbering, u64)>) -> String {
    match place {
        Some(((key, topic, epoch), seq)) => {
            alloc::format!("#{number} (key {key}, topic {topic}, epoch {epoch}, seq {seq})")
        }
        None => alloc::format!("#{number}"),
    }
}
