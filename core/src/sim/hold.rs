//! One subscription at one station over one link, as whoever looks on knows it.
//!
//! Decides: what its station admitted while it held it. Leaves to others: what happens to it (the truth). Believes: the true time. Bounded
//! by: what came over its link.

use alloc::vec::Vec;

use super::said::Said;
use super::truth::Truth;
use crate::Instant;

/// One subscription at one station over one link.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) wire: usize,
    pub(super) run: usize,
    /// The station holds it from here to there, and so many publications were admitted before.
    pub(super) from: Option<(Instant, usize)>,
    pub(super) to: Option<(Instant, usize)>,
    /// The client learnt that it does.
    pub(super) accepted: Option<Instant>,
    /// The client does not count on it any more.
    pub(super) left: Option<Instant>,
    /// Up to here it is known that nothing is missing of it.
    pub(super) known: Said,
    /// Where what its station replays ends.
    pub(super) until: u64,
    pub(super) arrived: Vec<(u32, Instant)>,
    pub(super) skipped: u64,
    /// Its station goes on from where its client had read before.
    pub(super) resumed: bool,
    /// Of each `progress` that was written level: its offset, and what had been admitted then.
    pub(super) marks: Vec<(u64, usize)>,
    /// All that was admitted before that was read or told of.
    pub(super) read: usize,
}

impl Hold {
    /// Its client knows up to where nothing is missing; `whole`: nothing that was missed before is.
    pub(super) fn reads(&mut self, said: Said, whole: bool) {
        let low = if whole {
            said.low
        } else {
            self.known.low.min(said.low)
        };
        self.known = Said { low, ..said };
    }

    /// Whether its client counts on it.
    pub(super) fn is_carrier(&self) -> bool {
        self.accepted.is_some() && self.left.is_none()
    }

    /// What its station admitted while it held it.
    pub(super) fn admitted<'a>(&self, truth: &'a Truth) -> &'a [(u32, Instant)] {
        let all = &truth.runs[self.run].admitted;
        let Some((_, from)) = self.from.filter(|_| self.accepted.is_some()) else {
            return &[];
        };
        let to = self.to.map_or(all.len(), |(_, to)| to);
        all.get(from..to).unwrap_or_default()
    }
}

impl Truth {
    /// The accepted holds of the runs whose committed positions a subscription goes on from.
    pub(super) fn earlier_holds(&self, wire: usize) -> impl Iterator<Item = &Hold> {
        let after = |wire: &usize| self.wires[*wire].after;
        let wires = core::iter::successors(after(&wire), after);
        wires.flat_map(|wire| {
            let holds = self.holds.iter();
            holds.filter(move |hold| hold.wire == wire && hold.accepted.is_some())
        })
    }
}
