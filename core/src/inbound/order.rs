//! One epoch of one publisher on one topic, put back in its order.
//!
//! Decides: which fact may leave, which missing numbers are given up, what is late, what is a conflict. Leaves to others: whether a
//! fact is a copy (dedup), which epoch it belongs to (`lane`), when a given-out fact is opened. Believes: mono. Bounded by: its slots,
//! `max_held` facts behind a gap, 16 ranges of missing numbers; no number a publisher chooses becomes a loop or a list.

mod item;

use super::held::Held;
use super::ranges::Ranges;
use crate::time::Instant;
pub use item::{Admit, Front, OrderConfig, Release, Slot};
use item::{Body, Tail};

/// Ranges of missing numbers an order remembers.
pub(crate) const MISSING: usize = 16;

/// One epoch of one publisher on one topic.
///
/// `offer`, `close` and `give_up` first act on what is due by their `now`, so a trace does not depend on how often `handle_timeout`
/// is called. What is decided waits in the slots until `poll` hands it out.
///
/// What a fact in order touches lies together and first: of a hundred thousand publishers hardly one is in a cache.
#[derive(Debug)]
#[repr(C)]
pub struct Order<T, S> {
    /// All up to here was decided; `None` while the first facts are held.
    edge: Option<u64>,
    /// The fact at the edge, which found nothing else here: it leaves as it came.
    next: Option<T>,
    clock: Instant,
    place: u64,
    epoch: u64,
    /// A greater epoch is known: what leaves now is late.
    outdated: bool,
    tail: Option<Tail>,
    /// `..ready` was decided and waits for `poll`, in that order; `ready..` is held, by number.
    ready: usize,
    queue: Held<Slot<T>, S>,
    config: OrderConfig,
    late: u64,
    skips: u64,
    /// Up to here a fact can only be a copy: an earlier run delivered it.
    vouched: Option<u64>,
    /// Numbers up to the edge that were not delivered: skipped or closed.
    missing: Ranges<MISSING>,
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Order<T, S> {
    /// An order over `slots`, of which there must be at least one. It begins in epoch 0 and may be joined in the middle.
    pub fn new(slots: S, config: OrderConfig) -> Self {
        Self::over(Held::new(slots), config)
    }

    fn over(queue: Held<Slot<T>, S>, config: OrderConfig) -> Self {
        let config = fitted(config, queue.capacity());
        Self {
            edge: None,
            next: None,
            clock: Instant::ORIGIN,
            place: 0,
            epoch: 0,
            outdated: false,
            tail: None,
            ready: 0,
            queue,
            config,
            late: 0,
            skips: 0,
            vouched: None,
            missing: Ranges::new(0),
        }
    }

    /// Starts anew as `epoch`: what the epoch before still holds leaves, its holes as `Skipped`. With `at_one` the numbering is known
    /// to start at 1, and what is missing from there is missed; else it is joined where the first facts are. Returns `false`, and has
    /// changed nothing, while a place that was given up waits to be handed out.
    #[must_use]
    pub fn begin(&mut self, epoch: u64, at_one: bool) -> bool {
        self.queue_next();
        if self.tail.is_some() {
            return false;
        }
        while self.held() > 0 {
            self.pass_head_gap();
        }
        self.epoch = epoch;
        self.vouched = None;
        self.edge = at_one.then_some(0);
        self.missing = Ranges::new(u64::from(at_one));
        true
    }

    /// Starts anew as `epoch` with all up to `edge` decided: what is in `missing` was not delivered, and nothing is known below its
    /// floor. With `vouched` all up to the edge was delivered by an earlier run, so what comes there is a copy. Refuses as `begin`.
    #[must_use]
    pub(crate) fn begin_after(
        &mut self,
        epoch: u64,
        edge: u64,
        missing: Ranges<MISSING>,
        vouched: bool,
    ) -> bool {
        let begun = self.begin(epoch, false);
        if begun {
            self.edge = Some(edge);
            self.missing = missing;
            self.vouched = vouched.then_some(edge);
        }
        begun
    }

    /// Offers a fact. `copy_possible` says that dedup may have forgotten a delivered fact at or below the edge before its time; what
    /// is offered there is then a duplicate unless its number is known to be missing.
    #[inline]
    pub fn offer(&mut self, now: Instant, seq: u64, copy_possible: bool, item: T) -> Admit<T> {
        if self.is_next(seq) && self.is_idle() && !self.outdated {
            self.clock = self.clock.max(now);
            self.advance_to(seq);
            self.next_place();
            self.next = Some(item);
            return Admit::Taken;
        }
        self.judge(now, seq, copy_possible, item)
    }

    fn judge(&mut self, now: Instant, seq: u64, copy_possible: bool, item: T) -> Admit<T> {
        self.handle_timeout(now);
        if self.edge.is_some_and(|edge| seq <= edge) {
            return self.offer_below(seq, copy_possible, item);
        }
        let at = self.position(seq);
        if let Some(slot) = self.queue.get(at).filter(|slot| slot.seq == seq) {
            if !matches!(slot.body, Body::Closed) {
                return Admit::Conflict(item);
            }
            return self.fill(at, seq, item);
        }
        if !self.config.as_arrives {
            if self.queue.free() == 0 {
                return Admit::Busy(item);
            }
            self.hold(at, seq, Body::Fact(item));
        } else if self.is_next(seq) {
            if let Err(item) = self.push_ready(self.epoch, seq, self.outdated, item) {
                return Admit::Busy(item);
            }
            self.advance_to(seq);
        } else {
            if self.queue.free() < 2 {
                return Admit::Busy(item);
            }
            if let Err(item) = self.push_ready(self.epoch, seq, self.outdated, item) {
                return Admit::Busy(item);
            }
            self.hold(at + 1, seq, Body::Gone);
        }
        self.settle();
        Admit::Taken
    }

    /// A verified fact with this number was refused or dropped, which its own counter or notice accounts for: the order passes over
    /// its place without a `Skipped`. A copy that is offered later is taken. Returns `false`, and has changed nothing, when there is no
    /// room to remember the place until something was handed out.
    #[must_use]
    pub fn close(&mut self, now: Instant, seq: u64) -> bool {
        self.handle_timeout(now);
        if self.is_covered(seq) || self.slot_of(seq).is_some() {
            return true;
        }
        if self.is_next(seq) && self.tail.is_none() {
            self.advance_to(seq);
            self.missing.insert(seq, seq);
        } else if self.queue.free() > 0 {
            // Behind a tail as well, whose range would else grow over this place.
            self.hold(self.position(seq), seq, Body::Closed);
        } else {
            return false;
        }
        self.settle();
        true
    }

    /// A fact with this number found no room: all up to it is given up and comes out as `Skipped` behind what is decided. Returns
    /// `false` when its place was taken or decided before, so that no `Skipped` will speak of it.
    #[must_use]
    pub fn give_up(&mut self, now: Instant, seq: u64) -> bool {
        self.handle_timeout(now);
        let ahead = !self.is_covered(seq) && self.slot_of(seq).is_none();
        if ahead {
            self.give_up_to(seq);
            self.settle();
        }
        ahead
    }

    /// Hands an item out after all that is decided, outside the numbering; gives it back when there is no room.
    pub(crate) fn pass(&mut self, epoch: u64, seq: u64, item: T) -> Result<(), T> {
        self.queue_next();
        self.push_ready(epoch, seq, false, item)
    }

    /// Gives up what has been waited for long enough. An earlier `now` than the last is taken as the last.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.queue_next();
        self.clock = self.clock.max(now);
        while self.poll_timeout().is_some_and(|due| due <= self.clock) {
            self.pass_head_gap();
        }
    }

    /// When the gap at the head, or the hold of the first facts, ends.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.held() == 0 {
            return None;
        }
        let head = self.queue.get(self.ready)?;
        Some(head.since.saturating_add(self.config.timeout))
    }

    /// The next decided thing, oldest decision first.
    #[inline]
    pub fn poll(&mut self) -> Option<Release<T>> {
        if let Some(item) = self.next.take() {
            return Some(Release::Fact {
                epoch: self.epoch,
                seq: self.edge.unwrap_or_default(),
                late: false,
                item,
            });
        }
        if self.ready == 0 {
            let Tail {
                epoch, first, last, ..
            } = self.tail.take()?;
            return Some(Release::Skipped { epoch, first, last });
        }
        self.poll_queue()
    }

    fn poll_queue(&mut self) -> Option<Release<T>> {
        let slot = self.queue.get_mut(0)?;
        if let Some((first, last)) = slot.skipped.take() {
            let epoch = slot.epoch;
            if !matches!(slot.body, Body::Fact(_)) {
                self.ready -= 1;
                self.queue.remove(0);
            }
            return Some(Release::Skipped { epoch, first, last });
        }
        self.ready -= 1;
        let Slot {
            epoch,
            seq,
            late,
            body,
            ..
        } = self.queue.remove(0)?;
        match body {
            Body::Fact(item) => Some(Release::Fact {
                epoch,
                seq,
                late,
                item,
            }),
            Body::Gone | Body::Closed => {
                unreachable!("what has nothing to say is not kept as decided")
            }
        }
    }

    /// The fact `poll` would hand out; `None` when there is nothing or a `Skipped` comes first.
    pub fn front(&mut self) -> Option<Front<'_, T>> {
        self.queue_next();
        if self.ready == 0 {
            return None;
        }
        let Slot {
            epoch,
            seq,
            late,
            skipped: None,
            body: Body::Fact(item),
            ..
        } = self.queue.get_mut(0)?
        else {
            return None;
        };
        Some(Front {
            epoch: *epoch,
            seq: *seq,
            late: *late,
            item,
        })
    }

    /// All up to this number was decided: delivered, skipped or closed. `None` while the first facts are held.
    pub fn edge(&self) -> Option<u64> {
        self.edge
    }

    /// The number is at or below the edge, so that a fact there is late, a conflict or a copy, and never new in order.
    pub fn is_covered(&self, seq: u64) -> bool {
        self.edge.is_some_and(|edge| seq <= edge)
    }

    /// Numbers that wait behind a gap or in the first hold, closed places included.
    pub fn held(&self) -> usize {
        self.queue.len() - self.ready
    }

    /// Nothing is held and nothing waits for `poll`.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.next.is_none() && self.queue.is_empty() && self.tail.is_none()
    }

    /// One more fact with any number would be taken or judged, not `Busy`.
    pub fn has_room(&self) -> bool {
        let free = self.queue.free() - usize::from(self.next.is_some());
        free > usize::from(self.config.as_arrives)
    }

    /// Facts that left as late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Ranges that were given up.
    pub fn skips(&self) -> u64 {
        self.skips
    }

    /// The edge that `begin` would leave behind.
    pub(crate) fn last_edge(&self) -> Option<u64> {
        match self.held() {
            0 => self.edge,
            _ => self.queue.get(self.queue.len() - 1).map(|slot| slot.seq),
        }
    }

    /// An earlier run delivered what is below some edge.
    pub(crate) fn is_vouched(&self) -> bool {
        self.vouched.is_some()
    }

    /// The edge up to which an earlier run delivered.
    #[cfg(feature = "alloc")]
    pub(crate) fn vouched(&self) -> Option<u64> {
        self.vouched
    }

    /// An order that is idle is as good as new, with the storage it has.
    #[cfg(feature = "alloc")]
    pub(crate) fn renew(&mut self, config: OrderConfig) {
        debug_assert!(self.is_idle(), "nothing is lost");
        self.config = fitted(config, self.queue.capacity());
        self.go_on(0, 0, Ranges::new(0), None);
        self.edge = None;
        self.clock = Instant::ORIGIN;
        (self.place, self.late, self.skips) = (0, 0, 0);
        self.outdated = false;
    }

    /// An order that is idle knows this from now on.
    #[cfg(feature = "alloc")]
    pub(crate) fn go_on(
        &mut self,
        epoch: u64,
        edge: u64,
        missing: Ranges<MISSING>,
        vouched: Option<u64>,
    ) {
        (self.epoch, self.edge) = (epoch, Some(edge));
        (self.missing, self.vouched) = (missing, vouched);
    }

    pub(crate) fn missing(&self) -> &Ranges<MISSING> {
        &self.missing
    }

    /// What leaves from now on is late, or not.
    pub(crate) fn set_outdated(&mut self, outdated: bool) {
        self.outdated = outdated;
    }

    /// The rank that the next decision gets; a lane hands one counter to both of its orders.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    #[inline]
    pub(crate) fn set_place(&mut self, place: u64) {
        if self.next.is_some() {
            self.queue_next();
        }
        self.place = place;
    }

    /// The rank of what `poll` would hand out.
    #[inline]
    pub(crate) fn front_place(&self) -> Option<u64> {
        if self.next.is_some() {
            return Some(self.place);
        }
        if self.ready == 0 {
            return self.tail.map(|tail| tail.place);
        }
        self.queue.get(0).map(|slot| slot.place)
    }

    /// Nothing decided waits for `poll` behind a place without a slot.
    pub(crate) fn can_begin(&self) -> bool {
        self.tail.is_none()
    }

    /// Bytes outside of the value itself.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.queue.slot_bytes()
    }

    /// Where something may come behind it, the fact at the edge waits like every other.
    fn queue_next(&mut self) {
        let Some(item) = self.next.take() else {
            return;
        };
        let slot = Slot {
            epoch: self.epoch,
            seq: self.edge.unwrap_or_default(),
            since: self.clock,
            place: self.place,
            skipped: None,
            late: false,
            body: Body::Fact(item),
        };
        let kept = self.queue.insert(0, slot);
        debug_assert!(kept.is_ok(), "it found nothing else here");
        self.ready = 1;
    }

    fn offer_below(&mut self, seq: u64, copy_possible: bool, item: T) -> Admit<T> {
        let vouched = self.vouched.is_some_and(|edge| seq <= edge);
        let missing = self.missing.contains(seq);
        let known = seq >= self.missing.floor();
        if !missing && (copy_possible || vouched) {
            return Admit::Duplicate(item);
        }
        if !missing && known {
            return Admit::Conflict(item);
        }
        if let Err(item) = self.push_ready(self.epoch, seq, true, item) {
            return Admit::Busy(item);
        }
        self.missing.remove(seq);
        Admit::Taken
    }

    /// The fact of a closed place came after all.
    fn fill(&mut self, at: usize, seq: u64, item: T) -> Admit<T> {
        if !self.config.as_arrives {
            if let Some(slot) = self.queue.get_mut(at) {
                slot.body = Body::Fact(item);
            }
            return Admit::Taken;
        }
        if let Err(item) = self.push_ready(self.epoch, seq, self.outdated, item) {
            return Admit::Busy(item);
        }
        if let Some(slot) = self.queue.get_mut(at + 1) {
            slot.body = Body::Gone;
        }
        Admit::Taken
    }

    /// Where `seq` is or belongs among the held.
    fn position(&self, seq: u64) -> usize {
        self.queue
            .partition_point(self.ready, |slot| slot.seq < seq)
    }

    /// The held place of that number.
    fn slot_of(&self, seq: u64) -> Option<&Slot<T>> {
        self.queue
            .get(self.position(seq))
            .filter(|slot| slot.seq == seq)
    }

    /// It may leave without waiting for anything.
    #[inline]
    pub(crate) fn is_next(&self, seq: u64) -> bool {
        match self.edge {
            Some(edge) => edge.checked_add(1) == Some(seq),
            None => seq <= 1,
        }
    }

    /// Moves the edge, or starts the order there.
    fn advance_to(&mut self, seq: u64) {
        if self.edge.is_none() {
            self.join_at(seq);
        }
        self.edge = Some(seq);
    }

    /// The order starts at `seq`: nothing before it was delivered, so what comes from there is late, never a copy of something forgotten.
    fn join_at(&mut self, seq: u64) {
        self.missing = Ranges::new(seq.min(1));
        self.missing.insert(1, seq.saturating_sub(1));
    }

    fn hold(&mut self, at: usize, seq: u64, body: Body<T>) {
        // Time does not go back, so a new arrival is the earliest only where nothing higher is held.
        let since = self.queue.get(at).map_or(self.clock, |slot| slot.since);
        let slot = Slot {
            epoch: self.epoch,
            seq,
            since,
            place: 0,
            skipped: None,
            late: false,
            body,
        };
        let kept = self.queue.insert(at, slot);
        debug_assert!(kept.is_ok(), "the caller looked for room");
    }

    /// Appends a fact to what is decided.
    fn push_ready(&mut self, epoch: u64, seq: u64, late: bool, item: T) -> Result<(), T> {
        if self.queue.free() == 0 || self.tail.is_some_and(|tail| tail.epoch != epoch) {
            return Err(item);
        }
        let skipped = self.tail.take().map(|tail| (tail.first, tail.last));
        let place = self.next_place();
        let body = Body::Fact(item);
        let slot = Slot {
            epoch,
            seq,
            since: self.clock,
            place,
            skipped,
            late,
            body,
        };
        let kept = self.queue.insert(self.ready, slot);
        debug_assert!(kept.is_ok(), "looked for room above");
        self.ready += 1;
        self.late += u64::from(late);
        Ok(())
    }

    /// Lets go of all that waits for nothing, and of the head gap where too many are held.
    fn settle(&mut self) {
        loop {
            while self
                .queue
                .get(self.ready)
                .is_some_and(|head| self.is_next(head.seq))
            {
                self.release(None);
            }
            if self.held() < self.config.max_held {
                return;
            }
            self.pass_gap();
        }
    }

    fn pass_head_gap(&mut self) {
        self.pass_gap();
        self.settle();
    }

    /// Gives up what is missing before the lowest held, or starts the order there.
    fn pass_gap(&mut self) {
        let Some(head) = self.queue.get(self.ready).map(|slot| slot.seq) else {
            return;
        };
        let gap = self.edge.and_then(|edge| gap(edge, head));
        if let Some((first, last)) = gap {
            self.missing.insert(first, last);
        }
        let told = gap.filter(|_| !self.config.sparse);
        self.skips += u64::from(told.is_some());
        self.release(told);
    }

    /// Decides the lowest held; `skipped` is told before it.
    fn release(&mut self, skipped: Option<(u64, u64)>) {
        let place = self.next_place();
        let outdated = self.outdated;
        let at = self.ready;
        let Some(slot) = self.queue.get_mut(at) else {
            return;
        };
        let seq = slot.seq;
        let is_fact = matches!(slot.body, Body::Fact(_));
        let is_closed = matches!(slot.body, Body::Closed);
        // A place that says nothing itself carries the tail's range, so that what is given up after it cannot join that over it.
        let skipped = match (self.tail.take(), skipped) {
            (Some(tail), Some((_, last))) => Some((tail.first, last)),
            (Some(tail), None) => Some((tail.first, tail.last)),
            (None, skipped) => skipped,
        };
        (slot.place, slot.skipped, slot.late) = (place, skipped, outdated);
        self.advance_to(seq);
        if is_closed {
            self.missing.insert(seq, seq);
        }
        if is_fact || skipped.is_some() {
            self.ready += 1;
            self.late += u64::from(is_fact && outdated);
        } else {
            self.queue.remove(at);
        }
    }

    /// Decides everything up to `seq`, which has no slot.
    fn give_up_to(&mut self, seq: u64) {
        while self
            .queue
            .get(self.ready)
            .is_some_and(|head| head.seq < seq)
        {
            self.pass_gap();
        }
        let first = self.edge.map_or(seq, |edge| edge.saturating_add(1));
        if self.edge.is_none() {
            self.join_at(seq);
        }
        self.edge = Some(seq);
        self.missing.insert(first, seq);
        self.skips += u64::from(self.tail.is_none());
        let place = self.next_place();
        let tail = self.tail.get_or_insert(Tail {
            epoch: self.epoch,
            first,
            last: seq,
            place,
        });
        tail.last = seq;
    }

    fn next_place(&mut self) -> u64 {
        self.place += 1;
        self.place
    }
}

#[cfg(feature = "alloc")]
impl<T> Order<T, alloc::vec::Vec<Option<Slot<T>>>> {
    /// An order whose slots are allocated when a second fact waits, so that one in order whose owner drains allocates nothing. At most
    /// `max_held` and one more.
    pub fn growing(config: OrderConfig) -> Self {
        Self::over(Held::growing(config.max_held), config)
    }
}

/// Whatever is held, one more fits once all is handed out; one that leaves on arrival needs its place behind a gap beside.
fn fitted(mut config: OrderConfig, capacity: usize) -> OrderConfig {
    let most = capacity - usize::from(config.as_arrives);
    config.max_held = config.max_held.min(most).max(1);
    config
}

fn gap(edge: u64, head: u64) -> Option<(u64, u64)> {
    let first = edge.checked_add(1)?;
    (first < head).then(|| (first, head - 1))
}

#[cfg(test)]
pub(super) mod tests;
