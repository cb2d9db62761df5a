//! How an order decides: what is held, what is released, what is given up.
//!
//! Decides: nothing by itself; the order's calls are made of these. Leaves to others: when. Believes: the order's clock. Bounded by: what is
//! held.

use super::aside::{MISSING, Rare, Untold};
use super::item::{Admit, Body, Gap, Leaves, Mark, Slot, Tail};
use super::{Order, Ranges};

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Order<T, S> {
    /// What is kept aside, from now on.
    #[inline]
    pub(super) fn rare(&mut self) -> &mut Rare<T, S> {
        self.aside.need(self.max_held as usize, self.floor)
    }

    /// How many more would find room.
    #[inline]
    pub(super) fn free(&self) -> usize {
        (self.capacity - self.ready - self.held) as usize
    }

    /// Only these numbers are missing, and of those nobody was told.
    pub(super) fn know(&mut self, missing: Ranges<MISSING>, untold: Untold) {
        self.floor = missing.floor();
        if !missing.is_empty() || !untold.is_empty() {
            self.rare();
        }
        if let Some(rare) = self.aside.get_mut() {
            (rare.missing, rare.untold) = (missing, untold);
        }
    }

    /// Where something may come behind it, the fact at the edge waits like every other.
    #[inline(never)]
    pub(super) fn queue_next(&mut self) {
        let Some(item) = self.next.take() else {
            return;
        };
        let (seq, mark) = (self.edge, Mark::ranked(self.place));
        let rare = self.rare();
        let leaves = Leaves::new(false, rare.epochs.own());
        let body = Body::Fact { leaves, mark, item };
        let kept = rare.queue.insert(0, Slot { seq, body });
        debug_assert!(kept.is_ok(), "it found nothing else here");
        self.ready = 1;
    }

    /// What comes from here on is of another epoch than what was decided.
    pub(super) fn end_epoch(&mut self, epoch: u64) {
        let (before, ready) = (self.epoch, self.ready);
        if ready > 0 {
            self.rare().epochs.begin(before, epoch, ready);
            self.has_more = true;
        }
    }

    #[inline(never)]
    pub(super) fn offer_below(&mut self, seq: u64, copy_possible: bool, item: T) -> Admit<T> {
        let vouched = self.has_vouched && seq <= self.vouched;
        let missing = self.aside.get().is_some_and(|rare| rare.is_missing(seq));
        let known = seq >= self.floor();
        if !missing && (copy_possible || vouched) {
            return Admit::Duplicate(item);
        }
        if !missing && known {
            return Admit::Conflict(item);
        }
        if let Err(item) = self.push_ready(self.epoch, seq, true, item) {
            return Admit::Busy(item);
        }
        self.rare().comes(seq);
        Admit::Taken
    }

    /// The fact of a closed place came after all.
    #[inline(never)]
    pub(super) fn fill(&mut self, seq: u64, item: T) -> Admit<T> {
        let mut body = Body::GONE;
        if !self.as_arrives {
            body = Body::fact(item);
        } else if let Err(item) = self.push_ready(self.epoch, seq, self.outdated, item) {
            return Admit::Busy(item);
        }
        if let Some(slot) = self.slot_of_mut(seq) {
            body.set_mark(slot.body.mark());
            slot.body = body;
        }
        Admit::Taken
    }

    /// Where `seq` is or belongs among the held, none of which is in a window.
    fn position(&self, rare: &Rare<T, S>, seq: u64) -> usize {
        rare.queue
            .partition_point(self.ready as usize, |slot| slot.seq < seq)
    }

    /// The held place of that number, which is above the edge.
    #[inline]
    pub(super) fn slot_of(&self, seq: u64) -> Option<&Slot<T>> {
        if self.held == 0 {
            return None;
        }
        let rare = self.aside.get()?;
        if rare.queue.has_window() {
            return rare.queue.at_place(far(self.edge, seq));
        }
        let slot = rare.queue.get(self.position(rare, seq))?;
        (slot.seq == seq).then_some(slot)
    }

    fn slot_of_mut(&mut self, seq: u64) -> Option<&mut Slot<T>> {
        let at = self.position(self.aside.get()?, seq);
        let edge = self.edge;
        let rare = self.aside.get_mut()?;
        if rare.queue.has_window() {
            return rare.queue.at_place_mut(far(edge, seq));
        }
        rare.queue.get_mut(at)
    }

    /// The lowest held.
    #[inline]
    pub(super) fn head(&self) -> Option<&Slot<T>> {
        if self.held == 0 {
            return None;
        }
        let queue = &self.aside.get()?.queue;
        match queue.first_place() {
            Some(place) => queue.at_place(place),
            None => queue.get(self.ready as usize),
        }
    }

    /// The lowest held waits for nothing.
    #[inline]
    fn holds_next(&self) -> bool {
        if self.held == 0 {
            return false;
        }
        let Some(rare) = self.aside.get() else {
            return false;
        };
        match rare.queue.first_place() {
            Some(place) => place == 0,
            None => {
                let head = rare.queue.get(self.ready as usize);
                head.is_some_and(|head| self.is_next(head.seq))
            }
        }
    }

    /// It may leave without waiting for anything.
    #[inline]
    pub(crate) fn is_next(&self, seq: u64) -> bool {
        match self.edge() {
            Some(edge) => seq.wrapping_sub(edge) == 1 && seq > 0,
            None => seq <= 1,
        }
    }

    /// Moves the edge, or starts the order there.
    #[inline]
    pub(super) fn advance_to(&mut self, seq: u64) {
        if !self.has_begun {
            self.has_begun = true;
            self.join_at(seq);
        }
        self.edge = seq;
    }

    /// The order starts at `seq`: nothing before it was delivered, so what comes from there is late, never a copy of something forgotten.
    /// Where it was followed before, that is not known.
    #[cold]
    #[inline(never)]
    pub(super) fn join_at(&mut self, seq: u64) {
        let mut untold = Ranges::new(0);
        if self.anew {
            return self.know(Ranges::new(seq), untold);
        }
        untold.insert(1, seq.saturating_sub(1));
        self.know(Ranges::new(seq.min(1)), untold);
    }

    /// Moves the edge to a number that is not held and below all that is.
    pub(super) fn step_to(&mut self, seq: u64) {
        if self.held > 0
            && let Some(rare) = self.aside.get_mut()
        {
            rare.queue.skip(seq.saturating_sub(self.edge));
        }
        self.advance_to(seq);
    }

    /// Holds it at its place. The caller looked for room.
    #[inline]
    pub(super) fn hold(&mut self, seq: u64, mut body: Body<T>) {
        let (edge, ready) = (self.edge, self.ready as usize);
        let arrival = self.clock.as_micros();
        // The earliest of all stays the earliest.
        if self.held == 0 {
            (self.since, self.since_at) = (arrival, seq);
            self.rare().began = arrival;
        }
        self.held += 1;
        let has_begun = self.has_begun;
        let Rare { queue, began, .. } = self.rare();
        let place = far(edge, seq);
        let in_window = has_begun && queue.open_window(ready, place, |slot| far(edge, slot.seq));
        // Time does not go back, so a new arrival is the earliest only where nothing higher is held.
        if in_window {
            if queue.last_place().is_none_or(|last| last < place) {
                body.set_mark(Mark::arrival(*began, arrival));
            }
            queue.put(place, Slot { seq, body });
            return;
        }
        self.hold_behind(Slot { seq, body });
    }

    /// Holds it where it belongs among the others, which are in no window.
    #[inline(never)]
    fn hold_behind(&mut self, mut slot: Slot<T>) {
        let (ready, arrival) = (self.ready as usize, self.clock.as_micros());
        let Rare { queue, began, .. } = self.rare();
        let at = queue.partition_point(ready, |held| held.seq < slot.seq);
        if at == queue.len() {
            slot.body.set_mark(Mark::arrival(*began, arrival));
        }
        let kept = queue.insert(at, slot);
        debug_assert!(kept.is_ok(), "the caller looked for room");
    }

    /// Appends a fact to what is decided.
    pub(super) fn push_ready(
        &mut self,
        epoch: u64,
        seq: u64,
        late: bool,
        item: T,
    ) -> Result<(), T> {
        let at = self.ready as usize;
        if self.free() == 0 {
            return Err(item);
        }
        let (rank, own) = (self.place + 1, self.epoch);
        let rare = self.rare();
        if rare.tail.is_some_and(|tail| tail.epoch != epoch) {
            return Err(item);
        }
        let number = match epoch == own {
            true => Some(rare.epochs.own()),
            false => rare.epochs.add(epoch),
        };
        let Some(number) = number else {
            return Err(item);
        };
        let (leaves, mark) = (Leaves::new(late, number), Mark::ranked(rank));
        let tail = rare.tail.take();
        if let Some(Tail { gap, .. }) = tail {
            rare.tell_before(mark, Leaves::new(false, number), gap);
        }
        let body = Body::Fact { leaves, mark, item };
        let kept = rare.queue.insert(at, Slot { seq, body });
        debug_assert!(kept.is_ok(), "looked for room above");
        rare.late += u64::from(late);
        self.has_more |= epoch != own || tail.is_some();
        self.has_tail = false;
        self.ready += 1;
        self.place = rank;
        Ok(())
    }

    /// Lets go of all that waits for nothing, and of the head gap where too many are held.
    #[inline]
    pub(super) fn settle(&mut self) {
        loop {
            self.release_run();
            while self.holds_next() {
                self.release(Gap::NONE);
            }
            if self.held < self.max_held {
                return;
            }
            self.pass_gap();
        }
    }

    pub(super) fn pass_head_gap(&mut self) {
        self.pass_gap();
        self.settle();
    }

    /// Gives up what is missing before the lowest held, or starts the order there.
    #[inline(never)]
    fn pass_gap(&mut self) {
        let Some(head) = self.head().map(|slot| slot.seq) else {
            return;
        };
        let gap = match self.edge() {
            Some(edge) => Gap::between(edge, head),
            None => Gap::NONE,
        };
        let mut told = gap;
        if self.sparse {
            told = Gap::NONE;
        }
        let rare = self.rare();
        if !gap.is_none() {
            rare.missing.insert(gap.first, gap.last);
            rare.queue.skip(gap.last - gap.first + 1);
        }
        rare.skips += u64::from(!told.is_none());
        self.release(told);
    }

    /// Decides the lowest held, before which nothing is missing or all is given up; `skipped` is told before it.
    #[inline(never)]
    fn release(&mut self, mut skipped: Gap) {
        let rank = self.next_place();
        let (outdated, at) = (self.outdated, self.ready as usize);
        let rare = self.rare();
        let number = rare.epochs.own();
        let slot = match rare.queue.has_window() {
            true => rare.queue.at_place_mut(0),
            false => rare.queue.get_mut(at),
        };
        let Some(slot) = slot else { return };
        let seq = slot.seq;
        let is_closed = matches!(slot.body, Body::Closed(_));
        // A place that says nothing itself carries the tail's range, so that what is given up after it cannot join that over it.
        if let Some(Tail { gap, .. }) = rare.tail.take() {
            let last = if skipped.is_none() { gap } else { skipped }.last;
            skipped = Gap { last, ..gap };
        }
        let (told, mark) = (!skipped.is_none(), Mark::ranked(rank));
        let mut is_fact = false;
        if let Body::Fact { leaves, .. } = &mut slot.body {
            (is_fact, *leaves) = (true, Leaves::new(outdated, number));
            slot.body.set_mark(mark);
        } else if told {
            slot.seq = skipped.last;
            slot.body = Body::Gap {
                leaves: Leaves::new(false, number),
                mark,
                first: skipped.first,
            };
        }
        if is_fact && told {
            rare.tell_before(mark, Leaves::new(false, number), skipped);
        }
        let stays = is_fact || told;
        if stays {
            rare.queue.leave_window(1);
            rare.late += u64::from(is_fact && outdated);
        } else {
            rare.queue.remove_behind(at);
        }
        self.has_more |= is_fact && told;
        self.has_tail = false;
        self.held -= 1;
        self.ready += u32::from(stays);
        self.advance_to(seq);
        if is_closed {
            self.rare().missing.insert(seq, seq);
        }
        self.look_for_first(seq);
    }

    /// Decides the facts of the window that wait for nothing. Others may be left that wait for nothing either.
    #[inline]
    fn release_run(&mut self) {
        if self.held == 0 || self.has_tail {
            return;
        }
        let Some(rare) = self.aside.get_mut() else {
            return;
        };
        let as_decided = Leaves::new(self.outdated, rare.epochs.own());
        let (mut run, mut seq) = (0, 0);
        while let Some(slot) = rare.queue.at_place_mut(u64::from(run))
            && let Body::Fact { leaves, mark, .. } = &mut slot.body
        {
            run += 1;
            (*mark, *leaves) = (Mark::ranked(self.place + u64::from(run)), as_decided);
            seq = slot.seq;
        }
        if run > 0 {
            rare.queue.leave_window(run);
            self.place += u64::from(run);
            self.held -= run;
            self.ready += run;
            self.edge = seq;
            if self.outdated {
                rare.late += u64::from(run);
            }
            self.look_for_first(seq);
        }
    }

    /// `seq` is held no longer: if it was the first to arrive, another one is now.
    #[inline]
    fn look_for_first(&mut self, seq: u64) {
        if seq >= self.since_at || self.held == 0 {
            (self.since, self.since_at) = self.first_held();
        }
    }

    /// When the first of the held arrived, and its number. Looks at no slot twice before it is released, but for the one it finds.
    fn first_held(&self) -> (u64, u64) {
        let Some(rare) = self.aside.get().filter(|_| self.held > 0) else {
            return (0, 0);
        };
        let queue = &rare.queue;
        let mut place = queue.first_place();
        if place.is_none() {
            let held = (self.ready as usize..queue.len()).filter_map(|at| queue.get(at));
            return first_of(rare.began, held);
        }
        let held = core::iter::from_fn(|| {
            let slot = queue.at_place(place?);
            place = queue.next_place(place?);
            slot
        });
        first_of(rare.began, held)
    }

    /// Decides everything up to `seq`, which has no slot.
    pub(super) fn give_up_to(&mut self, seq: u64) {
        while self.head().is_some_and(|head| head.seq < seq) {
            self.pass_gap();
        }
        let first = self.edge().map_or(seq, |edge| edge.saturating_add(1));
        self.step_to(seq);
        let place = self.next_place();
        let epoch = self.epoch;
        let rare = self.rare();
        rare.missing.insert(first, seq);
        rare.skips += u64::from(rare.tail.is_none());
        let gap = Gap { first, last: seq };
        let tail = rare.tail.get_or_insert(Tail { epoch, gap, place });
        tail.gap.last = seq;
        self.has_tail = true;
    }

    #[inline]
    pub(super) fn next_place(&mut self) -> u64 {
        self.place += 1;
        self.place
    }
}

/// When the first of these arrived, and its number.
fn first_of<'s, T: 's>(began: u64, mut held: impl Iterator<Item = &'s Slot<T>>) -> (u64, u64) {
    let first = held.find_map(|slot| Some((slot.body.mark().arrived(began)?, slot.seq)));
    first.unwrap_or((u64::MAX, u64::MAX))
}

/// The place in the window of a number above the edge.
#[inline]
fn far(edge: u64, seq: u64) -> u64 {
    seq.wrapping_sub(edge).wrapping_sub(1)
}
