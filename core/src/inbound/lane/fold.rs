//! A lane in which nothing waits, in a few words.
//!
//! Decides: of which lanes nothing is lost that way. Leaves to others: where the words are kept, and a lane to go on in. Believes: mono for
//! when it was heard. Bounded by: 40 bytes.

use core::num::NonZeroU64;

use super::{Followed, Guess, Lane, LaneConfig, Latest, Mode, Pair, REST_AFTER, Slot, Still};
use crate::inbound::ranges::Ranges;
use crate::time::{Instant, WallMs};

/// All that a lane knows which follows one epoch, misses nothing and has nothing to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    /// One more than the epoch.
    epoch: NonZeroU64,
    edge: u64,
    heard: Instant,
    /// Until when what it delivered lives, wall ms times four; two more where it is sparse, one more where not all of it was replayed.
    until: u64,
    /// How far below what follows the edge knowledge begins.
    known: u32,
    /// One more than how far below the edge is what an earlier run delivered, 0 where there was none.
    vouched: u32,
}

impl Folded {
    /// As `Lane::covers`, for a publication with or without an epoch.
    pub(crate) fn covers(&self, epoch: u64, seq: u64) -> bool {
        let epoch = match epoch {
            0 => self
                .guess()
                .epoch_of(seq, &[(self.epoch(), Some(self.edge))]),
            epoch => epoch,
        };
        epoch == self.epoch() && seq <= self.edge
    }

    /// Its epoch and its edge.
    pub(crate) fn edge(&self) -> (u64, u64) {
        (self.epoch(), self.edge)
    }

    /// As `Lane::rest_at`.
    pub(crate) fn rest_at(&self) -> Instant {
        self.heard.saturating_add(REST_AFTER)
    }

    fn epoch(&self) -> u64 {
        self.epoch.get() - 1
    }

    fn guess(&self) -> Guess {
        let mut guess = Guess::new(self.until & 2 != 0);
        guess.commit(self.epoch());
        guess
    }
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Lane<T, S> {
    /// This lane in a few words, unless something would be lost but what was counted.
    pub(crate) fn fold(&self) -> Option<Folded> {
        let calm = self.front.is_none() && self.due.is_none() && self.still.runs();
        if !calm || self.resync || self.replaced.is_some() {
            return None;
        }
        let (epoch, edge, floor, vouched) = if self.config.mode == Mode::LatestOnly {
            let (epoch, edge) = self.latest.alone(self.heard)?;
            (epoch, edge, edge, None)
        } else {
            let index = match self.followed {
                [Some(_), None] => 0,
                [None, Some(_)] => 1,
                _ => return None,
            };
            let (followed, order) = (self.followed[index]?, &self.orders[index]);
            if !order.missing().is_empty() || followed.heard != self.heard {
                return None;
            }
            let floor = order.floor();
            (followed.epoch, order.edge()?, floor, order.vouched())
        };
        let counted = self.pair.is_only(self.heard, epoch, edge)?;
        let flags = u64::from(self.config.sparse) << 1 | u64::from(counted);
        Some(Folded {
            epoch: NonZeroU64::MIN.checked_add(epoch)?,
            edge,
            known: below(edge.saturating_add(1), floor)?,
            vouched: match vouched {
                Some(vouched) => below(edge, vouched)?.checked_add(1)?,
                None => 0,
            },
            heard: self.heard,
            until: self.until.as_millis().checked_mul(4)? | flags,
        })
    }

    /// As it was when it was folded, counts aside. For a lane that was renewed.
    pub(crate) fn unfold(&mut self, folded: &Folded) {
        let Folded { edge, heard, .. } = *folded;
        let epoch = folded.epoch();
        self.clock = self.clock.max(heard);
        (self.heard, self.until) = (heard, WallMs::new(folded.until >> 2));
        self.guess.commit(epoch);
        if folded.until & 1 != 0 {
            self.pair.note(heard, epoch, edge);
        }
        if self.config.mode == Mode::LatestOnly {
            self.latest = Latest::after(epoch, edge, None, heard);
            return;
        }
        self.followed[0] = Some(Followed { epoch, heard });
        self.orders[0].go_on(
            epoch,
            edge,
            Ranges::new(edge.saturating_add(1) - u64::from(folded.known)),
            (folded.vouched.checked_sub(1)).map(|below| edge - u64::from(below)),
        );
    }

    /// Makes a lane in which nothing waits as good as new: another one goes on in its storage.
    pub(crate) fn renew(&mut self, config: LaneConfig) {
        debug_assert!(self.front.is_none() && self.due.is_none());
        for order in &mut self.orders {
            order.renew(config.order());
        }
        self.followed = [None; 2];
        self.replaced = None;
        self.latest = Latest::default();
        self.guess = Guess::new(config.sparse);
        self.pair = Pair::default();
        self.still = Still::default();
        self.place = 0;
        (self.clock, self.heard) = (Instant::ORIGIN, Instant::ORIGIN);
        self.until = WallMs::new(0);
        self.resync = config.forgotten;
        self.stats = super::LaneStats::default();
        self.config = config;
    }
}

/// How far below the edge, if that can be said in 32 bits.
fn below(edge: u64, seq: u64) -> Option<u32> {
    edge.checked_sub(seq)?.try_into().ok()
}
