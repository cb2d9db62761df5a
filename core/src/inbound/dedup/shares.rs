//! How much of a table each publisher holds.
//!
//! Decides: which publishers are counted together. Leaves to others: how much is too much, and the hash (hashes). Believes: no clock. Bounded
//! by: its counters, at most 65,536.
//!
//! A publisher's share is the low 16 bits of its signature keys, a keyed hash of its key id alone, so that it is counted as one whatever topics and
//! epochs it numbers in. Two publishers that share a counter share a quarter; which ones do is another chance with every seed,
//! among 4096 counters one in 4096.

use crate::storage::Room;

/// Bits of a signature key that are its publisher's share.
pub(super) const SHARE_BITS: u32 = 16;

/// Counters where nothing speaks for another number: 16 KiB.
pub const SHARES: usize = 4096;

/// A power of two of counters, or none.
#[derive(Debug)]
pub(super) struct Shares<C> {
    counts: C,
    room: Room<C>,
}

#[cfg(feature = "alloc")]
impl Shares<alloc::vec::Vec<u32>> {
    pub(super) fn heap(wanted: usize) -> Self {
        Self {
            counts: alloc::vec::Vec::new(),
            room: Room::heap(used_of(wanted)),
        }
    }
}

impl<C: AsRef<[u32]> + AsMut<[u32]>> Shares<C> {
    pub(super) fn new(counts: C) -> Self {
        let room = Room::fixed(used_of(counts.as_ref().len()));
        Self { counts, room }
    }

    /// Which counter the publisher of this signature key has; `None` when nothing is counted.
    #[inline]
    pub(super) fn of(&self, signature: [u64; 2]) -> Option<usize> {
        let last = self.room.max.checked_sub(1)?;
        Some(share_of(signature) & last)
    }

    /// What it counts; `None` when nothing is counted.
    pub(super) fn held(&self, signature: [u64; 2]) -> Option<u32> {
        let index = self.of(signature)?;
        Some(self.counts.as_ref().get(index).map_or(0, |held| *held))
    }

    pub(super) fn count(&mut self, signature: [u64; 2], change: i32) {
        let Some(index) = self.of(signature) else {
            return;
        };
        if self.counts.as_ref().len() < self.room.max {
            self.room.ask(&mut self.counts, self.room.max);
        }
        if let Some(held) = self.counts.as_mut().get_mut(index) {
            *held = held.saturating_add_signed(change);
        }
    }

    /// Gives the storage back; every counter is 0.
    pub(super) fn give_back(&mut self) {
        self.room.ask(&mut self.counts, 0);
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(self.counts.as_ref())
    }

    /// How many there may be.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.room.max
    }
}

/// The publisher's share in a signature key's words.
#[inline]
pub(super) fn share_of(signature: [u64; 2]) -> usize {
    (signature[1] & ((1 << SHARE_BITS) - 1)) as usize
}

/// How many of so many counters are used: a power of two, no more than there are shares.
fn used_of(wanted: usize) -> usize {
    wanted
        .min(1 << SHARE_BITS)
        .checked_ilog2()
        .map_or(0, |bits| 1 << bits)
}
