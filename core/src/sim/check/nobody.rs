//! What came at the very moment a subscription ended: before its end, or behind it, where it found nobody.
//!
//! Decides: when such publications reached their client first, and which request to stations carried a subscription. Leaves to others: what
//! follows from it. Believes: the true time, and that a connection is read in its order. Bounded by: the publications of these moments.

use alloc::vec::Vec;

use crate::Instant;
use crate::code::EndReason;
use crate::notice::Notice;
use crate::sim::world::{Told, World};

impl World {
    /// A subscription that lived on when stations were told that nobody wants it any more belongs to what they were asked for next: the stream
    /// whose end they were told of had ended by itself before anybody read that, or they heard late of one that was replaced since.
    pub(super) fn settle_wires(&mut self) {
        for sub in &mut self.subs {
            let too_slow = sub.told.iter().any(|(_, told)| match told {
                Told::Notice(Notice::Ended { reason }) => *reason == EndReason::LaggedOut,
                _ => false,
            });
            let lives = |at| !too_slow && sub.ended.is_none_or(|(ended, _)| ended > at);
            while let Some(ended) = self.truth.wires[sub.wire].ended
                && lives(ended)
            {
                let mut later = self.truth.wires.iter().enumerate().skip(sub.wire + 1);
                let filter = sub.wanted.filter;
                let next = later.find(|(_, wire)| wire.life == sub.life && wire.filter == filter);
                let Some((next, _)) = next else {
                    break;
                };
                self.truth.wires[next].after = self.truth.wires[sub.wire].after;
                sub.wire = next;
            }
        }
    }

    /// What found nobody has not come: a later copy of it is the first, if one came.
    pub(super) fn settle_arrivals(&mut self) {
        let moments = core::mem::take(&mut self.truth.ends);
        for (hold, at) in moments {
            let wire = self.truth.holds[hold].wire;
            let life = self.truth.wires[wire].life;
            let swallows = |told: &(Instant, Told)| match &told.1 {
                Told::Notice(Notice::Lagged { missed, .. }) => *missed > 0,
                _ => false,
            };
            let mut ended = self.subs.iter().filter(|sub| sub.wire == wire);
            let swallowed = ended.any(|sub| sub.told.iter().any(swallows));
            let came = self.truth.holds[hold].arrived.iter();
            let came: Vec<u32> = came
                .filter(|(_, came)| *came == at)
                .map(|(number, _)| *number)
                .collect();
            // What came before, or over another link as well, says nothing of this moment.
            let first = |number| {
                self.truth.lives[life].arrivals.get(number) == Some(&at)
                    && self.next_copy(life, hold, *number, at) != Some(at)
            };
            let taken = came
                .iter()
                .rposition(|number| first(number) && self.was_taken(life, *number, at));
            for number in came.into_iter().skip(taken.map_or(0, |last| last + 1)) {
                if self.truth.lives[life].arrivals.get(&number) != Some(&at) {
                    continue;
                }
                if swallowed {
                    self.truth.lives[life].unsure.insert(number);
                }
                match self.next_copy(life, hold, number, at) {
                    Some(next) => self.truth.lives[life].arrivals.insert(number, next),
                    None => self.truth.lives[life].arrivals.remove(&number),
                };
            }
        }
    }

    /// Whether a stream has what came then, and not from a later copy.
    fn was_taken(&self, life: usize, number: u32, at: Instant) -> bool {
        let next = self.next_copy(life, usize::MAX, number, at.saturating_add(TICK));
        self.subs.iter().filter(|sub| sub.life == life).any(|sub| {
            let over = sub.ended.is_some_and(|(ended, _)| ended <= at);
            let mut told = sub.told.iter();
            told.any(|(when, told)| {
                matches!(told, Told::Fact { number: of, .. } if *of == number)
                    && (over || *when == at || next.is_none_or(|next| *when < next))
            })
        })
    }

    /// When another copy reached that client, at that time or later.
    fn next_copy(&self, life: usize, hold: usize, number: u32, at: Instant) -> Option<Instant> {
        let holds = self.truth.holds.iter().enumerate();
        let others = holds
            .filter(|(index, other)| *index != hold && self.truth.wires[other.wire].life == life);
        let came = others.flat_map(|(_, other)| &other.arrived);
        let came = came.filter(|(of, came)| *of == number && *came >= at);
        came.map(|(_, came)| *came).min()
    }
}

const TICK: crate::Duration = crate::Duration::from_micros(1);
