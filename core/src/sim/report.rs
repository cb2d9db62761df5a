//! What runs count, and what a run that failed says of itself.
//!
//! Decides: nothing. Leaves to others: printing. Believes: no clock. Bounded by: one number per fault, notice and outcome.

use alloc::string::String;
use alloc::vec::Vec;

use super::plan::Fault;
use crate::Outcome;
use crate::code::{DropReason, GapReason, NoticeCode, OutcomeCode};
use crate::notice::Notice;

/// How often each thing occurred in one run or in many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Publications that were accepted by their client.
    pub published: u64,
    /// Publications that it refused.
    pub refused: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Publications that had to be accounted for, one per subscription.
    pub owed: u64,
    /// Those of them that came before their subscription over another link, which nothing tells of yet.
    pub excused_copy: u64,
    faults: Faults,
    notices: [u64; NoticeCode::ALL.len() + 1],
    gaps: [u64; GapReason::ALL.len() + 1],
    drops: [u64; DropReason::ALL.len() + 1],
    outcomes: [u64; OutcomeCode::ALL.len() + 1],
}

/// One number per fault.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Faults([u64; Fault::ALL.len()]);

impl Default for Faults {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

impl Tally {
    pub(super) fn fault(&mut self, fault: Fault, times: u64) {
        self.faults.0[fault as usize] += times;
    }

    pub(super) fn notice(&mut self, notice: &Notice) {
        self.notices[usize::from(notice.code().number())] += 1;
        match notice {
            Notice::Gap { reason, .. } => self.gaps[usize::from(reason.number())] += 1,
            Notice::Dropped { reason, .. } => self.drops[usize::from(reason.number())] += 1,
            _ => {}
        }
    }

    pub(super) fn outcome(&mut self, outcome: Outcome) {
        self.outcomes[usize::from(outcome.code().number())] += 1;
    }

    /// Adds another's numbers.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.published += other.published;
        self.refused += other.refused;
        self.delivered += other.delivered;
        self.owed += other.owed;
        self.excused_copy += other.excused_copy;
        let pairs = [
            (&mut self.faults.0[..], &other.faults.0[..]),
            (&mut self.notices[..], &other.notices[..]),
            (&mut self.gaps[..], &other.gaps[..]),
            (&mut self.drops[..], &other.drops[..]),
            (&mut self.outcomes[..], &other.outcomes[..]),
        ];
        for (into, from) in pairs {
            for (into, from) in into.iter_mut().zip(from) {
                *into += from;
            }
        }
    }

    /// Every name with its number: what was done, what was told, what became of publications.
    pub fn lines(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut lines: Vec<(&'static str, &'static str, u64)> = Vec::new();
        let faults = Fault::ALL.iter();
        lines.extend(faults.map(|fault| ("fault", fault.text(), self.faults.0[*fault as usize])));
        let notices = NoticeCode::ALL.iter();
        lines.extend(notices.map(|code| {
            (
                "notice",
                code.text(),
                self.notices[usize::from(code.number())],
            )
        }));
        let gaps = GapReason::ALL.iter();
        lines.extend(gaps.map(|code| ("gap", code.text(), self.gaps[usize::from(code.number())])));
        let drops = DropReason::ALL.iter();
        lines.extend(drops.map(|code| {
            (
                "dropped",
                code.text(),
                self.drops[usize::from(code.number())],
            )
        }));
        let outcomes = OutcomeCode::ALL.iter();
        lines.extend(outcomes.map(|code| {
            (
                "outcome",
                code.text(),
                self.outcomes[usize::from(code.number())],
            )
        }));
        lines
    }

    /// What never occurred and could have: a band in which that is so shows less than it seems to.
    pub fn absent(&self) -> Vec<(&'static str, &'static str)> {
        let lines = self.lines().into_iter();
        let absent =
            lines.filter(|(set, name, count)| *count == 0 && !NOT_YET.contains(&(set, name)));
        absent.map(|(set, name, _)| (set, name)).collect()
    }
}

/// What cannot occur before the machines can do it: replay, a mesh, sealed groups, lookups.
const NOT_YET: &[(&str, &str)] = &[
    ("gap", "peer_interrupted"),
    ("dropped", "conflict_full"),
    ("dropped", "verify_full"),
];

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// Which checker found it.
    pub rule: &'static str,
    /// How.
    pub how: String,
}

impl Broken {
    /// A rule that whoever compares runs found broken.
    pub fn new(rule: &'static str, how: impl Into<String>) -> Self {
        Self {
            rule,
            how: how.into(),
        }
    }
}

/// What came of one run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcomes {
    /// Of which seed.
    pub seed: u64,
    /// The hash of everything that was written, taken and told, by names.
    pub trace: u128,
    /// What each stream said, one hash per subscription in the order they were made.
    pub streams: Vec<u128>,
    /// What occurred.
    pub tally: Tally,
    /// The rules that were broken.
    pub broken: Vec<Broken>,
    /// The lines of the trace, where they were asked for.
    pub lines: Vec<String>,
    /// Acts that were drawn.
    pub acts: usize,
}
