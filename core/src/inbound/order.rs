//! One epoch of one publisher on one topic, put back in its order.
//!
//! Decides: which fact may leave, which missing numbers are given up, what is late, what is a conflict. Leaves to others: whether a
//! fact is a copy (dedup), which epoch it belongs to (`lane`), when a given-out fact is opened. Believes: mono. Bounded by: its slots,
//! `max_held` facts behind a gap, 16 ranges of missing numbers, 8 epochs that wait; no number a publisher chooses becomes a loop or a list.

mod aside;
mod epochs;
mod item;
mod steps;

use super::held::Held;
use super::ranges::Ranges;
use crate::time::Instant;
#[cfg(feature = "alloc")]
pub(crate) use aside::UNTOLD;
use aside::{Aside, Rare};
pub(crate) use aside::{MISSING, Untold};
#[cfg(test)]
pub(crate) use epochs::EPOCHS;
pub(crate) use item::Left;
pub use item::{Admit, Front, OrderConfig, Release, Slot};
use item::{Body, Gap, Tail};

/// One epoch of one publisher on one topic.
///
/// `offer`, `close` and `give_up` first act on what is due by their `now`, so a trace does not depend on how often `handle_timeout`
/// is called. What is decided waits in the slots until `poll` hands it out.
///
/// What a fact in order touches lies together and first: of a hundred thousand publishers hardly one is in a cache. For the same reason
/// what is needed only when something is missing or waits is kept aside.
#[derive(Debug)]
#[repr(C)]
pub struct Order<T, S> {
    /// All up to here was decided, once it has begun; before that the first facts are held.
    edge: u64,
    /// The fact at the edge, which found nothing else here: it leaves as it came.
    next: Option<T>,
    clock: Instant,
    place: u64,
    epoch: u64,
    /// So many were decided and wait for `poll`, `next` aside.
    ready: u32,
    /// So many are held, by number.
    held: u32,
    max_held: u32,
    has_begun: bool,
    /// A greater epoch is known: what leaves now is late.
    outdated: bool,
    has_tail: bool,
    as_arrives: bool,
    sparse: bool,
    has_vouched: bool,
    /// What was known of this epoch was given up: what may be a copy is taken for one.
    anew: bool,
    /// Of what was decided something is of another epoch, or has numbers before it that were given up.
    has_more: bool,
    /// So many are held or decided at most.
    capacity: u32,
    /// Up to here a fact can only be a copy, where that is known: an earlier run delivered it.
    vouched: u64,
    /// When the first of what is held arrived: all of it is behind the head gap. In microseconds, as the timeout.
    since: u64,
    /// Its number.
    since_at: u64,
    timeout: u64,
    /// Where what is known of missing numbers begins, until something is aside.
    floor: u64,
    aside: Aside<T, S>,
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Order<T, S> {
    /// An order over slots for facts, of which there must be at least one, and as many for what is given up before them. It begins in epoch 0 and
    /// may be joined in the middle.
    pub fn new(slots: [S; 2], config: OrderConfig) -> Self {
        let queues = slots.map(Held::new);
        let [facts, gaps] = queues.each_ref().map(Held::capacity);
        Self::over(Aside::new(queues), facts.min(gaps), config)
    }

    fn over(aside: Aside<T, S>, capacity: usize, config: OrderConfig) -> Self {
        let mut order = Self {
            edge: 0,
            next: None,
            clock: Instant::ORIGIN,
            place: 0,
            epoch: 0,
            ready: 0,
            held: 0,
            max_held: 1,
            has_begun: false,
            outdated: false,
            has_tail: false,
            as_arrives: false,
            sparse: false,
            has_vouched: false,
            anew: false,
            has_more: false,
            capacity: 0,
            vouched: 0,
            since: 0,
            since_at: 0,
            timeout: 0,
            floor: 0,
            aside,
        };
        order.configure(capacity, config);
        order
    }

    /// Whatever is held, one more fits once all is handed out; one that leaves on arrival needs its place behind a gap beside.
    fn configure(&mut self, capacity: usize, config: OrderConfig) {
        let most = capacity - usize::from(config.as_arrives);
        let max_held = config.max_held.min(most).max(1);
        self.max_held = u32::try_from(max_held).unwrap_or(u32::MAX);
        self.capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        self.timeout = u64::try_from(config.timeout.as_micros()).unwrap_or(u64::MAX);
        (self.as_arrives, self.sparse) = (config.as_arrives, config.sparse);
    }

    /// Starts anew as `epoch`: what the epoch before still holds leaves, its holes as `Skipped`. With `at_one` the numbering is known
    /// to start at 1, and what is missing from there is missed; else it is joined where the first facts are. Returns `false`, and has
    /// changed nothing, while a place that was given up waits to be handed out, or facts of seven other epochs do.
    #[must_use]
    pub fn begin(&mut self, epoch: u64, at_one: bool) -> bool {
        self.queue_next();
        if !self.can_begin() {
            return false;
        }
        while self.held > 0 {
            self.pass_head_gap();
        }
        self.end_epoch(epoch);
        self.epoch = epoch;
        (self.has_vouched, self.has_begun, self.edge) = (false, at_one, 0);
        self.anew = false;
        self.know(Ranges::new(u64::from(at_one)), Ranges::new(0));
        true
    }

    /// Starts anew as `epoch`, which was followed before; what was known of it was given up. It is joined where the first facts are, and
    /// what may be a copy is one. Refuses as `begin`.
    #[must_use]
    pub(crate) fn begin_anew(&mut self, epoch: u64) -> bool {
        let begun = self.begin(epoch, false);
        self.anew |= begun;
        begun
    }

    /// Starts anew as `epoch` with what was left of it: what is in `missing` was not delivered, and nothing is known below its floor but
    /// what nobody was told of. Refuses as `begin`.
    #[must_use]
    pub(crate) fn begin_after(
        &mut self,
        epoch: u64,
        left: &Left,
        missing: Ranges<MISSING>,
    ) -> bool {
        let begun = self.begin(epoch, false);
        if begun {
            (self.has_begun, self.edge) = (true, left.edge);
            (self.has_vouched, self.vouched) = (left.vouched.is_some(), left.vouched.unwrap_or(0));
            self.anew = left.anew;
            self.know(missing, left.untold);
        }
        begun
    }

    /// Lets go of all that is held, its holes as `Skipped`, and says what is known then; nothing where no fact came.
    pub(crate) fn leave(&mut self) -> Option<Left> {
        self.queue_next();
        while self.held > 0 {
            self.pass_head_gap();
        }
        Some(Left {
            edge: self.edge()?,
            untold: self.untold(),
            vouched: self.has_vouched.then_some(self.vouched),
            anew: self.anew,
        })
    }

    /// Offers a fact. `copy_possible` says that dedup may have forgotten a delivered fact at or below the edge before its time; what
    /// is offered there is then a duplicate unless its number is known to be missing.
    #[inline]
    pub fn offer(&mut self, now: Instant, seq: u64, copy_possible: bool, item: T) -> Admit<T> {
        if self.is_next(seq) && self.is_idle() && !self.outdated && !(copy_possible && self.anew) {
            self.clock = self.clock.max(now);
            self.advance_to(seq);
            self.next_place();
            self.next = Some(item);
            return Admit::Taken;
        }
        self.judge(now, seq, copy_possible, item)
    }

    #[inline(never)]
    fn judge(&mut self, now: Instant, seq: u64, copy_possible: bool, item: T) -> Admit<T> {
        self.handle_timeout(now);
        if copy_possible && self.anew {
            return match self.close(now, seq) {
                true => Admit::Duplicate(item),
                false => Admit::Busy(item),
            };
        }
        if self.is_covered(seq) {
            return self.offer_below(seq, copy_possible, item);
        }
        match self.slot_of(seq).map(|slot| &slot.body) {
            Some(Body::Closed(_)) => return self.fill(seq, item),
            Some(_) => return Admit::Conflict(item),
            None => (),
        }
        if !self.as_arrives {
            if self.free() == 0 {
                return Admit::Busy(item);
            }
            self.hold(seq, Body::fact(item));
        } else if self.is_next(seq) {
            if let Err(item) = self.push_ready(self.epoch, seq, self.outdated, item) {
                return Admit::Busy(item);
            }
            self.step_to(seq);
        } else {
            if self.free() < 2 {
                return Admit::Busy(item);
            }
            if let Err(item) = self.push_ready(self.epoch, seq, self.outdated, item) {
                return Admit::Busy(item);
            }
            self.hold(seq, Body::GONE);
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
        if self.is_covered(seq) {
            if let Some(rare) = self.aside.get_mut() {
                rare.tell(seq);
            }
            return true;
        }
        if self.slot_of(seq).is_some() {
            return true;
        }
        if self.is_next(seq) && !self.has_tail {
            self.step_to(seq);
            self.rare().missing.insert(seq, seq);
        } else if self.free() > 0 {
            // Behind a tail as well, whose range would else grow over this place.
            self.hold(seq, Body::CLOSED);
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
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next.is_some() {
            self.queue_next();
        }
        self.clock = self.clock.max(now);
        while self.poll_timeout().is_some_and(|due| due <= self.clock) {
            self.pass_head_gap();
        }
    }

    /// When the gap at the head, or the hold of the first facts, ends.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.held == 0 {
            return None;
        }
        Some(Instant::from_micros(
            self.since.saturating_add(self.timeout),
        ))
    }

    /// The next decided thing, oldest decision first.
    #[inline]
    pub fn poll(&mut self) -> Option<Release<T>> {
        if let Some(item) = self.next.take() {
            return Some(Release::Fact {
                epoch: self.epoch,
                seq: self.edge,
                late: false,
                item,
            });
        }
        if self.ready == 0 && !self.has_tail {
            return None;
        }
        self.poll_aside()
    }

    #[inline(never)]
    fn poll_aside(&mut self) -> Option<Release<T>> {
        let rare = self.aside.get_mut()?;
        if self.ready == 0 {
            let Tail { epoch, gap, .. } = rare.tail.take()?;
            let Gap { first, last } = gap;
            self.has_tail = false;
            return Some(Release::Skipped { epoch, first, last });
        }
        let is_gap = self.has_more && rare.gap_first();
        let queue = if is_gap {
            &mut rare.gaps
        } else {
            &mut rare.queue
        };
        let slot = queue.pop()?;
        let number = slot.body.leaves().epoch();
        let epoch = rare.epochs.of(number, self.epoch);
        if !is_gap {
            self.ready -= 1;
            if self.has_more {
                rare.epochs.leave(number);
                self.has_more = self.ready > 0;
            }
        }
        match slot.body {
            Body::Fact { leaves, item, .. } => Some(Release::Fact {
                epoch,
                seq: slot.seq,
                late: leaves.late(),
                item,
            }),
            Body::Gap { first, .. } => Some(Release::Skipped {
                epoch,
                first,
                last: slot.seq,
            }),
            Body::Gone(_) | Body::Closed(_) => {
                unreachable!("what has nothing to say is not kept as decided")
            }
        }
    }

    /// The fact `poll` would hand out; `None` when there is nothing or a `Skipped` comes first.
    pub fn front(&mut self) -> Option<Front<'_, T>> {
        if let Some(item) = &mut self.next {
            return Some(Front {
                epoch: self.epoch,
                seq: self.edge,
                late: false,
                item,
            });
        }
        if self.ready == 0 {
            return None;
        }
        let rare = self.aside.get_mut()?;
        if self.has_more && rare.gap_first() {
            return None;
        }
        let slot = rare.queue.get_mut(0)?;
        match &mut slot.body {
            Body::Fact { leaves, item, .. } => Some(Front {
                epoch: rare.epochs.of(leaves.epoch(), self.epoch),
                seq: slot.seq,
                late: leaves.late(),
                item,
            }),
            _ => None,
        }
    }

    /// All up to this number was decided: delivered, skipped or closed. `None` while the first facts are held.
    #[inline]
    pub fn edge(&self) -> Option<u64> {
        self.has_begun.then_some(self.edge)
    }

    /// The number is at or below the edge, so that a fact there is late, a conflict or a copy, and never new in order.
    #[inline]
    pub fn is_covered(&self, seq: u64) -> bool {
        self.has_begun && seq <= self.edge
    }

    /// What became of the number was told: it was delivered, skipped or closed. What is missing below where the order was joined was not.
    #[cfg(feature = "alloc")]
    pub(crate) fn is_told(&self, seq: u64) -> bool {
        let untold = |rare: &Rare<T, S>| rare.untold.contains(seq);
        self.is_covered(seq) && !self.aside.get().is_some_and(untold)
    }

    /// What of the numbers up to the edge was neither delivered nor told of.
    pub(crate) fn untold(&self) -> Untold {
        let none = Ranges::new(0);
        self.aside.get().map_or(none, |rare| rare.untold)
    }

    /// A fact with this number would be late, and cost what is known of the numbers nobody was told of.
    #[inline]
    pub(crate) fn costs_untold(&self, seq: u64) -> bool {
        let costs = |rare: &Rare<T, S>| rare.untold.costs_one(seq);
        self.is_covered(seq) && self.aside.get().is_some_and(costs)
    }

    /// Numbers that wait behind a gap or in the first hold, closed places included.
    pub fn held(&self) -> usize {
        self.held as usize
    }

    /// Nothing is held and nothing waits for `poll`.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.next.is_none() && self.ready | self.held == 0 && !self.has_tail
    }

    /// One more fact with any number would be taken or judged, not `Busy`.
    pub fn has_room(&self) -> bool {
        let free = self.free() - usize::from(self.next.is_some());
        free > usize::from(self.as_arrives)
    }

    /// Facts that left as late.
    pub fn late(&self) -> u64 {
        self.aside.get().map_or(0, |rare| rare.late)
    }

    /// Ranges that were given up.
    pub fn skips(&self) -> u64 {
        self.aside.get().map_or(0, |rare| rare.skips)
    }

    /// The edge up to which an earlier run delivered.
    pub(crate) fn vouched(&self) -> Option<u64> {
        self.has_vouched.then_some(self.vouched)
    }

    /// An order that is idle is as good as new, with the storage it has where that suits.
    #[cfg(feature = "alloc")]
    pub(crate) fn renew(&mut self, config: OrderConfig) {
        debug_assert!(self.is_idle(), "nothing is lost");
        if self.capacity as usize != config.max_held.max(1).saturating_add(1) {
            self.aside.forget();
        }
        let capacity = self.aside.get().map(|rare| rare.queue.capacity());
        let grown = || config.max_held.max(1).saturating_add(1);
        self.configure(capacity.unwrap_or_else(grown), config);
        self.go_on(0, 0, (0, false), None);
        self.has_begun = false;
        self.clock = Instant::ORIGIN;
        self.place = 0;
        self.outdated = false;
        if let Some(rare) = self.aside.get_mut() {
            (rare.late, rare.skips) = (0, 0);
        }
    }

    /// An order that is idle knows this from now on.
    #[cfg(feature = "alloc")]
    pub(crate) fn go_on(
        &mut self,
        epoch: u64,
        edge: u64,
        (begins, joined): (u64, bool),
        vouched: Option<u64>,
    ) {
        (self.epoch, self.has_begun, self.edge) = (epoch, true, edge);
        (self.has_vouched, self.vouched) = (vouched.is_some(), vouched.unwrap_or(0));
        self.anew = false;
        match joined {
            true => self.join_at(begins),
            false => self.know(Ranges::new(begins), Ranges::new(0)),
        }
    }

    /// Where what it knows begins, if nothing is missing from there on, and whether it was joined there. `None` when something is.
    #[cfg(feature = "alloc")]
    pub(crate) fn knows_from(&self) -> Option<(u64, bool)> {
        if self.anew || !self.missing().is_empty() {
            return None;
        }
        match (self.untold().as_slice(), self.floor()) {
            ([], floor) => Some((floor, false)),
            ([(1, last)], floor) if floor <= last + 1 => Some((last + 1, true)),
            _ => None,
        }
    }

    /// What is missing of the numbers up to the edge, from `floor` on, lowest first.
    pub(crate) fn missing(&self) -> &[(u64, u64)] {
        self.aside.get().map_or(&[], |rare| rare.missing.as_slice())
    }

    /// The lowest number of which it is known whether it is missing.
    pub(crate) fn floor(&self) -> u64 {
        self.aside.get().map_or(self.floor, Rare::floor)
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
        if self.ready == 0 && !self.has_tail {
            return None;
        }
        let rare = self.aside.get()?;
        match self.ready {
            0 => rare.tail.map(|tail| tail.place),
            _ => (rare.queue.get(0)).map(|slot| slot.body.mark().rank(self.place)),
        }
    }

    /// Nothing decided waits for `poll` behind a place without a slot, and one epoch more would be known.
    pub(crate) fn can_begin(&self) -> bool {
        !self.has_tail && self.has_epochs()
    }

    /// What is of an epoch unlike all that waits could be passed on.
    pub(crate) fn has_epochs(&self) -> bool {
        !self.has_more || self.aside.get().is_none_or(|rare| rare.epochs.has_room())
    }

    /// Bytes outside of the value itself.
    pub(crate) fn outside(&self) -> usize {
        self.aside.bytes()
    }
}

#[cfg(feature = "alloc")]
impl<T> Order<T, alloc::vec::Vec<Option<Slot<T>>>> {
    /// An order that allocates when something is missing or a second fact waits, so that one in order whose owner drains allocates
    /// nothing. At most `max_held` slots, and one more.
    pub fn growing(config: OrderConfig) -> Self {
        let capacity = config.max_held.max(1).saturating_add(1);
        Self::over(Aside::later(Held::growing), capacity, config)
    }
}

#[cfg(test)]
pub(super) mod tests;
