//! A lane in which nothing waits, in a few words.
//!
//! Decides: of which lanes nothing is lost that way. Leaves to others: where the words are kept, and a lane to go on in. Believes: mono for
//! when it was heard. Bounded by: 40 bytes.

use core::num::NonZeroU64;

use super::{
    Followed, Guess, Lane, LaneConfig, Latest, Mode, Offer, Pair, REST_AFTER, Reach, Slot, Still,
    Untold,
};
use crate::time::{Instant, WallMs};

/// What stands in the low bits of [`Folded::until`].
const FLAGS: u32 = 4;
/// Not all of it was replayed.
const COUNTED: u64 = 1;
const SPARSE: u64 = 2;
/// It has an order, in which a fact that is not newer than all before may matter.
const ORDERED: u64 = 4;
/// All before where its knowledge begins is missing: it was joined there.
const JOINED: u64 = 8;

/// All that a lane knows which follows one epoch, misses nothing since it was joined and has nothing to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    /// One more than the epoch.
    epoch: NonZeroU64,
    /// Below the greatest number there is.
    edge: u64,
    heard: Instant,
    /// Until when what it delivered lives, wall ms, above the flags.
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

    /// As `Lane::is_told`.
    pub(crate) fn is_told(&self, epoch: u64, seq: u64) -> bool {
        self.covers(epoch, seq) && (self.until & JOINED == 0 || seq >= self.begins())
    }

    /// As `Lane::reaches`.
    pub(crate) fn reach(&self) -> Reach {
        let mut untold = Untold::new(0);
        if self.until & JOINED != 0 {
            untold.insert(1, self.begins().saturating_sub(1));
        }
        Reach {
            epoch: self.epoch(),
            edge: self.edge,
            untold,
        }
    }

    /// Takes the next fact of a lane with an order, as that lane would that hands it out at once. `false`: the lane itself has to judge it,
    /// nothing has changed.
    #[inline]
    pub(crate) fn follow(&mut self, now: Instant, offer: &Offer) -> bool {
        let next = offer.epoch == self.epoch() && offer.seq == self.edge + 1;
        let plain = !offer.replayed && !offer.anycast && offer.epoch != 0;
        // The last number there is has none behind it, by which a fold knows where it is.
        if !next || !plain || self.until & ORDERED == 0 || offer.seq == u64::MAX {
            return false;
        }
        let (Some(known), Some(vouched), Some(until)) = (
            self.known.checked_add(1),
            self.vouched.checked_add(u32::from(self.vouched > 0)),
            above_flags(offer.until),
        ) else {
            return false;
        };
        (self.edge, self.known, self.vouched) = (offer.seq, known, vouched);
        self.heard = self.heard.max(now);
        let flags = self.until & ((1 << FLAGS) - 1) | COUNTED;
        self.until = (self.until >> FLAGS << FLAGS).max(until) | flags;
        true
    }

    /// As `Lane::rest_at`.
    pub(crate) fn rest_at(&self) -> Instant {
        self.heard.saturating_add(REST_AFTER)
    }

    fn epoch(&self) -> u64 {
        self.epoch.get() - 1
    }

    /// Where its knowledge begins.
    fn begins(&self) -> u64 {
        self.edge + 1 - u64::from(self.known)
    }

    fn guess(&self) -> Guess {
        let mut guess = Guess::new(self.until & SPARSE != 0);
        guess.commit(self.epoch());
        guess
    }
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Lane<T, S> {
    /// This lane in a few words, unless something would be lost but what was counted.
    pub(crate) fn fold(&self) -> Option<Folded> {
        let calm = self.front.is_none() && self.due.is_none() && self.still.runs();
        if !calm || self.resync || self.replaced.is_some() || self.lost > 0 {
            return None;
        }
        let mut flags = 0;
        let (epoch, edge, floor, vouched) = if self.config.mode == Mode::LatestOnly {
            let (epoch, edge) = self.latest.alone(self.heard)?;
            (epoch, edge, edge, None)
        } else {
            flags |= ORDERED;
            let index = match self.followed {
                [Some(_), None] => 0,
                [None, Some(_)] => 1,
                _ => return None,
            };
            let (followed, order) = (self.followed[index]?, &self.orders[index]);
            if followed.heard != self.heard {
                return None;
            }
            let (floor, joined) = order.knows_from()?;
            flags |= if joined { JOINED } else { 0 };
            (followed.epoch, order.edge()?, floor, order.vouched())
        };
        let counted = self.pair.is_only(self.heard, epoch, edge)?;
        flags |= if counted { COUNTED } else { 0 };
        flags |= if self.config.sparse { SPARSE } else { 0 };
        Some(Folded {
            epoch: NonZeroU64::MIN.checked_add(epoch)?,
            edge,
            known: below(edge.checked_add(1)?, floor)?,
            vouched: match vouched {
                Some(vouched) => below(edge, vouched)?.checked_add(1)?,
                None => 0,
            },
            heard: self.heard,
            until: above_flags(self.until)? | flags,
        })
    }

    /// As it was when it was folded, counts aside. For a lane that was renewed.
    pub(crate) fn unfold(&mut self, folded: &Folded) {
        let Folded { edge, heard, .. } = *folded;
        let epoch = folded.epoch();
        self.clock = self.clock.max(heard);
        (self.heard, self.until) = (heard, WallMs::new(folded.until >> FLAGS));
        self.guess.commit(epoch);
        if folded.until & COUNTED != 0 {
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
            (folded.begins(), folded.until & JOINED != 0),
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
        (self.replaced, self.lost) = (None, 0);
        self.latest = Latest::default();
        self.guess = Guess::new(config.sparse);
        self.pair = Pair::default();
        self.still = Still::default();
        self.place = 0;
        (self.clock, self.heard) = (Instant::ORIGIN, Instant::ORIGIN);
        self.awake_until = Instant::ORIGIN;
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

/// Wall ms with room for the flags, unless they are too many for that.
fn above_flags(until: WallMs) -> Option<u64> {
    until.as_millis().checked_mul(1 << FLAGS)
}
