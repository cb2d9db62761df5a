//! What one run hands to the next: nothing that was committed comes again, nothing after it is lost, no epoch is used twice.
//!
//! Decides: what a committed stream owes the one that goes on from it. Leaves to others: what accounts for it (the ledger), windows. Believes:
//! the true time. Bounded by: the publications of the run, once per subscription that goes on.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

use super::{Findings, Index, Numbering, Sorted, named};
use crate::Instant;
use crate::code::GapReason;
use crate::notice::Notice;
use crate::sim::said::Said;
use crate::sim::world::{Earlier, Told, World};

/// What earlier runs account for.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) given: BTreeSet<u32>,
    /// What their sources had refused.
    refused: BTreeSet<u32>,
    skipped: Vec<(Numbering, u64, u64)>,
    unopened: BTreeSet<(Numbering, u64)>,
    windows: Vec<(i64, i64)>,
    open: bool,
    /// What was counted, and is not known one by one.
    pub(super) counted: u64,
    /// Notices that a slow reader did not get: what they counted is not known.
    pub(super) swallowed: u64,
}

/// Whether an interruption is open after that notice.
fn is_open(notice: &Notice) -> Option<bool> {
    match notice {
        Notice::Interrupted { .. } => Some(true),
        Notice::Resumed { .. } => Some(false),
        Notice::Gap { reason, .. } => {
            matches!(reason, GapReason::Lost | GapReason::Expired).then_some(false)
        }
        _ => None,
    }
}

impl World {
    /// Those a subscription goes on from, the last one first.
    pub(super) fn ancestors(&self, sub: usize) -> impl Iterator<Item = Earlier> {
        let after = |of: &Earlier| self.subs[of.sub].after;
        core::iter::successors(self.subs[sub].after, after)
    }

    /// Whether a publication reached a run that a subscription goes on from.
    pub(super) fn came_before(&self, sub: usize, number: u32) -> bool {
        let mut lives = self.ancestors(sub).map(|of| self.subs[of.sub].life);
        lives.any(|life| self.truth.lives[life].arrivals.contains_key(&number))
    }

    /// The publications a stream had given out when it was committed.
    fn given(&self, of: Earlier) -> impl Iterator<Item = u32> {
        let told = self.subs[of.sub].told[..of.place].iter();
        told.filter_map(|(_, told)| match told {
            Told::Fact { number, .. } => Some(*number),
            Told::Notice(_) => None,
        })
    }

    /// What was committed is not given again.
    pub(super) fn check_commits(
        &self,
        sub: usize,
        sorted: &Sorted<'_>,
        index: &Index,
        found: &mut Findings,
    ) {
        if self.subs[sub].after.is_none() || !self.is_roomy(sub) {
            return;
        }
        let given: BTreeSet<u32> = self.ancestors(sub).flat_map(|of| self.given(of)).collect();
        for (_, number, _) in &sorted.facts {
            let Some(of) = self.place_of(*number).filter(|_| given.contains(number)) else {
                continue;
            };
            let ((key, topic, _), _) = of;
            // The edges of two numberings of one publisher on one topic are kept.
            if index.epochs(key, topic).len() <= 2 && !self.truth.made[*number as usize].one {
                found.add("commits", || {
                    let named = named(*number, Some(of));
                    format!("q{sub} got {named}, which was committed before")
                });
            }
        }
    }

    /// Whether a stream said before that place that what was known of a numbering was given up, when it had reached beyond that number: from then
    /// on nobody can tell what came of it.
    pub(super) fn is_given_up(
        &self,
        sorted: &Sorted<'_>,
        given: &BTreeSet<u32>,
        numbering: Numbering,
        seq: u64,
        place: usize,
    ) -> bool {
        let beyond = |number: &u32| {
            let of = self.place_of(*number);
            of.is_some_and(|(of, other)| of == numbering && other > seq)
        };
        let reached = |upto: usize| {
            let mut facts = sorted.facts.iter().take_while(|(at, ..)| *at < upto);
            let mut skipped = sorted.skipped.iter().filter(|(at, ..)| *at < upto);
            let mut unopened = sorted.unopened.iter().filter(|(at, ..)| *at < upto);
            facts.any(|(_, number, _)| beyond(number))
                || skipped.any(|(_, of, _, last)| *of == numbering && *last > seq)
                || unopened.any(|(_, of, other)| *of == numbering && *other > seq)
                || given.iter().any(beyond)
        };
        let mut notices = sorted.notices.iter().take_while(|(at, ..)| *at < place);
        notices.any(|(at, _, notice)| match notice {
            Notice::Resynced { of } => self.numbering(of) == Some(numbering) && reached(*at),
            _ => false,
        })
    }

    /// What the streams had said when they were committed that a subscription goes on from.
    pub(super) fn done(&self, sub: usize) -> Done {
        let mut done = Done::default();
        for of in self.ancestors(sub) {
            done.given.extend(self.given(of));
            let came = self.truth.lives[self.subs[of.sub].life].arrivals.keys();
            let refused = came.filter(|number| self.was_refused_by(of.sub, **number, of.at));
            done.refused.extend(refused);
            let mut sorted = self.sorted(of.sub);
            sorted.notices.retain(|(place, ..)| *place < of.place);
            let mut last = sorted.notices.iter().rev();
            let open = last.find_map(|(.., notice)| is_open(notice));
            done.open |= open == Some(true);
            for (.., notice) in &sorted.notices {
                match notice {
                    Notice::Dropped { count, .. } => done.counted += count,
                    Notice::Lagged {
                        missed, notices, ..
                    } => {
                        done.counted += missed;
                        done.swallowed += notices;
                    }
                    _ => {}
                }
            }
            done.windows.extend(self.windows(of.sub, &sorted));
            let skipped = sorted.skipped.iter().filter(|(at, ..)| *at < of.place);
            let skipped = skipped.map(|(_, of, first, last)| (*of, *first, *last));
            done.skipped.extend(skipped);
            let unopened = sorted.unopened.iter().filter(|(at, ..)| *at < of.place);
            let unopened = unopened.map(|(_, of, seq)| (*of, *seq));
            done.unopened.extend(unopened);
        }
        done
    }

    /// The number at which the runs a subscription goes on from joined each numbering.
    pub(super) fn committed_joins(&self, sub: usize) -> BTreeMap<Numbering, u64> {
        let mut joined = BTreeMap::new();
        for of in self.ancestors(sub) {
            let sorted = self.sorted(of.sub);
            let facts = sorted.facts.iter().filter(|(.., late)| !late);
            let facts = facts.filter_map(|(place, number, _)| {
                let (numbering, seq) = self.place_of(*number)?;
                Some((*place, numbering, seq))
            });
            for (place, numbering, seq) in facts.chain(sorted.unopened.iter().copied()) {
                if place < of.place {
                    let joined = joined.entry(numbering).or_insert(seq);
                    *joined = (*joined).min(seq);
                }
            }
        }
        joined
    }

    /// Whether an earlier stream accounts for a publication that was admitted then.
    pub(super) fn is_done(&self, done: &Done, number: u32, at: Instant) -> bool {
        let millis = (at.as_micros() / 1000) as i64;
        let inside = |(from, to): &(i64, i64)| (*from..=*to).contains(&millis);
        let place = self.place_of(number);
        let skipped = place.is_some_and(|(numbering, seq)| {
            let mut skipped = done.skipped.iter();
            skipped.any(|(of, first, last)| *of == numbering && (*first..=*last).contains(&seq))
        });
        let unopened = place.is_some_and(|place| done.unopened.contains(&place));
        let known = done.given.contains(&number) || done.refused.contains(&number);
        skipped || unopened || known || done.windows.iter().any(inside)
    }

    /// What stations admitted that had the committed stream, or go on with it.
    pub(super) fn owed_since_commit(&self, sub: usize, done: &Done) -> Vec<(usize, u32, Instant)> {
        let this = &self.subs[sub];
        let mut owed = Vec::new();
        let Some(of) = this.after else {
            return owed;
        };
        let earlier = &self.subs[of.sub];
        let holds = self.truth.holds.iter();
        let mut own = holds.clone().filter(|hold| hold.wire == this.wire);
        let accepted = own.any(|hold| hold.accepted.is_some());
        // As long as no station has said whether it goes on, what is missing is not decided.
        let decided = this.told.iter().any(|(_, told)| match told {
            Told::Notice(notice) => is_open(notice) == Some(false),
            Told::Fact { .. } => false,
        });
        if done.open || done.swallowed > 0 || !decided || !accepted || !self.is_roomy(sub) {
            return owed;
        }
        let arrivals = &self.truth.lives[earlier.life].arrivals;
        for (index, hold) in holds.enumerate() {
            let carried = hold.wire == earlier.wire
                && hold.accepted.is_some_and(|accepted| accepted <= of.at)
                && hold.left.is_none_or(|left| left > of.at);
            let goes_on = hold.wire == this.wire && hold.resumed;
            if !carried && !goes_on {
                continue;
            }
            let since = if goes_on { of.at } else { earlier.born };
            let admitted = hold.admitted(&self.truth).iter();
            for (number, at) in admitted.filter(|(_, at)| *at > since) {
                let copy = arrivals
                    .get(number)
                    .is_some_and(|came| *came <= earlier.born);
                if !copy {
                    owed.push((index, *number, *at));
                }
            }
        }
        owed
    }

    /// Up to where the streams were read that a subscription goes on from: from their beginning to their commit. Runs have the wall alone in
    /// common, so that where it was stepped, a window may be off by the step.
    pub(super) fn committed(&self, sub: usize) -> impl Iterator<Item = Said> {
        let stepped = self.is_stepped(sub);
        self.ancestors(sub).map(move |of| Said {
            low: match stepped {
                true => Instant::ORIGIN,
                false => self.subs[of.sub].born,
            },
            high: of.at,
        })
    }

    /// A run publishes under epochs that none before it has used, where those were written down.
    pub(super) fn check_epochs(&self, found: &mut Findings) {
        for (number, made) in self.truth.made.iter().enumerate() {
            let floor = self.truth.lives[made.life].floor;
            if made.fact.is_some_and(|fact| fact.epoch <= floor) {
                found.add("epochs", || {
                    let named = named(number as u32, self.place_of(number as u32));
                    format!("{named} is published under an epoch that was there before {floor}")
                });
            }
        }
    }
}
