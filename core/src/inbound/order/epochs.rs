//! Which epoch each thing is of that was decided and waits.
//!
//! Decides: by which small number it is known. Leaves to others: what waits. Believes: no clock. Bounded by: 8 epochs at a time, the
//! order's own included; where one more would be needed nothing begins, and nothing is passed on, until something was handed out.

/// Epochs an order knows at a time.
pub(crate) const EPOCHS: usize = 8;

#[derive(Debug)]
pub(super) struct Epochs {
    /// The number of the order's own.
    own: u8,
    /// Of all but the order's own, how many wait.
    waiting: [u32; EPOCHS],
    epochs: [u64; EPOCHS],
}

impl Epochs {
    pub(super) const NONE: Self = Self {
        own: 0,
        waiting: [0; EPOCHS],
        epochs: [0; EPOCHS],
    };

    #[inline]
    pub(super) fn own(&self) -> u8 {
        self.own
    }

    /// The numbers under which others wait.
    fn others(&self) -> impl Iterator<Item = usize> {
        let is_other = |at: &usize| *at != usize::from(self.own) && self.waiting[*at] > 0;
        (0..EPOCHS).filter(is_other)
    }

    /// One more than those that wait finds its number, whichever it is.
    pub(super) fn has_room(&self) -> bool {
        self.others().nth(EPOCHS - 2).is_none()
    }

    /// The number of an epoch other than the order's own; `None` when there is none left.
    fn number_of(&self, epoch: u64) -> Option<usize> {
        if let Some(known) = self.others().find(|at| self.epochs[*at] == epoch) {
            return Some(known);
        }
        let is_free = |at: &usize| *at != usize::from(self.own) && self.waiting[*at] == 0;
        (0..EPOCHS).find(is_free)
    }

    /// Another one is the order's own from now on; of `ready` that wait, all that are of no other one are of that before. There is room.
    pub(super) fn begin(&mut self, before: u64, epoch: u64, ready: u32) {
        let others: u32 = self.others().map(|at| self.waiting[at]).sum();
        let own = usize::from(self.own);
        (self.epochs[own], self.waiting[own]) = (before, ready - others);
        if before != epoch
            && let Some(at) = self.number_of(epoch)
        {
            self.own = at as u8;
        }
    }

    /// One of that epoch, which is not the order's own, waits from now on: its number, if there is one left.
    pub(super) fn add(&mut self, epoch: u64) -> Option<u8> {
        let at = self.number_of(epoch)?;
        self.epochs[at] = epoch;
        self.waiting[at] += 1;
        Some(at as u8)
    }

    /// Whose number it is, in an order of `own`.
    #[inline]
    pub(super) fn of(&self, number: u8, own: u64) -> u64 {
        match number == self.own {
            true => own,
            false => self.epochs[usize::from(number) % EPOCHS],
        }
    }

    /// One of that number was handed out.
    pub(super) fn leave(&mut self, number: u8) {
        if number != self.own {
            self.waiting[usize::from(number) % EPOCHS] -= 1;
        }
    }
}
