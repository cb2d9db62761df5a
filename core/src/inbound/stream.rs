//! The one output queue of a subscription.
//!
//! Decides: what becomes of items a reader is too slow for. Leaves to others: what an item is, and when to push one. Believes: no clock;
//! the windows of items are wall times it only compares. Bounded by: a number of items and a number of bytes.
//!
//! With [`OnFull::Lag`] the oldest items collapse into one leading [`Lagged`] that counts exactly what it replaces. It takes no slot, nor
//! does the end. An overflow that follows a `Lagged` the reader has just taken gives up a quarter of the queue at once, so that a reader
//! that is always too slow sees one `Lagged` per quarter of a queue and not one per fact.

use crate::code::EndReason;
use crate::ring::{self, Ring};
use crate::time::WallMs;

/// One place of a stream's storage.
pub type Slot<T> = ring::Slot<T>;

/// A stream on the heap.
#[cfg(feature = "alloc")]
pub type HeapStream<T> = Stream<T, alloc::vec::Vec<Slot<T>>>;

/// What a stream needs to know of an item to count it once it is lost.
pub trait StreamItem {
    /// Who a fact is: publisher, topic, epoch, seq, whatever the reader can use.
    type First;

    /// Publications that are missed when this is lost: 1 for a fact, `last − first + 1` for a `Skipped`, what it counts for any other notice.
    fn missed(&self) -> u64;

    /// Notices that are lost with it: 0 for a fact, 1 for a notice, its own number for a `Lagged`.
    fn notices(&self) -> u64;

    /// Its weight.
    fn bytes(&self) -> usize;

    /// The wall times it speaks of: one moment twice for a fact.
    fn window(&self) -> (WallMs, WallMs);

    /// Who it is, if it is a fact, or the first of those it counts, if it knows.
    fn first(&self) -> Option<Self::First>;
}

/// What a reader did not get, because it was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged<F> {
    /// Publications: the facts given up, and those the notices given up had counted.
    pub missed: u64,
    /// Notices given up.
    pub notices: u64,
    /// The first fact given up, if there was one.
    pub first: Option<F>,
    /// The earliest wall time of what was given up.
    pub from: WallMs,
    /// The latest.
    pub to: WallMs,
}

impl<F> Lagged<F> {
    /// Both as one, `after` being what came later.
    fn and_then(self, after: Self) -> Self {
        Self {
            missed: self.missed.saturating_add(after.missed),
            notices: self.notices.saturating_add(after.notices),
            first: self.first.or(after.first),
            from: self.from.min(after.from),
            to: self.to.max(after.to),
        }
    }
}

/// What a full stream does with one item more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFull {
    /// Keeps what it holds, counts all that comes after in one [`Lagged`], and ends with it.
    Disconnect,
    /// Gives the oldest up, counted in one leading [`Lagged`].
    #[default]
    Lag,
    /// Says [`is_full`](Stream::is_full), so that the links that feed it pause. What comes without a link (timeouts, link ends, answers) goes to
    /// the reserve; only when that is spent too, the oldest are given up as with `Lag`.
    Pause,
}

/// What a reader takes from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next<T, F> {
    /// The last of all.
    Ended(EndReason),
    /// An item.
    Item(T),
    /// Items were given up at this place.
    Lagged(Lagged<F>),
}

/// How much a stream may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamBounds {
    /// Items.
    pub items: usize,
    /// Further items that only [`OnFull::Pause`] uses.
    pub reserve: usize,
    /// Bytes of all items; one item may be heavier when it is alone.
    pub bytes: usize,
}

impl StreamBounds {
    /// Slots a stream with these bounds may use.
    pub const fn slots(&self, on_full: OnFull) -> usize {
        match on_full {
            OnFull::Pause => self.items.saturating_add(self.reserve),
            OnFull::Disconnect | OnFull::Lag => self.items,
        }
    }
}

/// A queue of items with one reader. See the module's text.
///
/// Commands: [`push`](Self::push), [`end`](Self::end). Outputs: [`poll`](Self::poll), [`take_ready`](Self::take_ready). It believes no clock.
#[derive(Debug)]
pub struct Stream<T: StreamItem, S> {
    ring: Ring<T, S>,
    bounds: StreamBounds,
    on_full: OnFull,
    lagged: Option<Lagged<T::First>>,
    /// A `Lagged` was taken and the queue has not been below its low mark since.
    lagging: bool,
    end: Option<EndReason>,
    over: bool,
    signalled: bool,
}

#[cfg(feature = "alloc")]
impl<T: StreamItem> HeapStream<T> {
    /// A stream within `bounds`, whose storage grows with what it holds and shrinks when it is drained.
    pub fn with_bounds(bounds: StreamBounds, on_full: OnFull) -> Self {
        let slots = bounds.slots(on_full);
        let bounds = StreamBounds {
            reserve: slots - bounds.items,
            ..bounds
        };
        Self::build(Ring::with_capacity(slots, usize::MAX), bounds, on_full)
    }
}

impl<T: StreamItem, S: AsRef<[Slot<T>]> + AsMut<[Slot<T>]>> Stream<T, S> {
    /// A stream of at most `bytes` on `slots`. With [`OnFull::Pause`] the last `reserve` of the slots are the reserve, else they are all alike.
    pub fn new(slots: S, reserve: usize, bytes: usize, on_full: OnFull) -> Self {
        let ring = Ring::new(slots, usize::MAX);
        let reserve = match on_full {
            OnFull::Pause => reserve.min(ring.capacity()),
            OnFull::Disconnect | OnFull::Lag => 0,
        };
        let items = ring.capacity() - reserve;
        let bounds = StreamBounds {
            items,
            reserve,
            bytes,
        };
        Self::build(ring, bounds, on_full)
    }

    fn build(ring: Ring<T, S>, bounds: StreamBounds, on_full: OnFull) -> Self {
        Self {
            ring,
            bounds,
            on_full,
            lagged: None,
            lagging: false,
            end: None,
            over: false,
            signalled: false,
        }
    }

    /// Puts an item at the end. What a full stream does is its policy's matter; nothing it gives up goes uncounted.
    ///
    /// # Errors
    /// The item, when the stream was ended before.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.on_full == OnFull::Disconnect && self.lagged.is_some() {
            self.swallow(&item);
            return Ok(());
        }
        if self.end.is_some() {
            return Err(item);
        }
        let bytes = item.bytes();
        if self.overflows(bytes, self.hard_items(), self.hard_bytes()) {
            if self.on_full == OnFull::Disconnect {
                self.end = Some(EndReason::LaggedOut);
                self.swallow(&item);
                return Ok(());
            }
            let (items, total) = if self.lagging {
                (low_mark(self.hard_items()), low_mark(self.hard_bytes()))
            } else {
                (self.hard_items(), self.hard_bytes())
            };
            while self.overflows(bytes, items, total) && self.give_up_oldest() {}
        }
        if self.hard_items() == 0 {
            self.swallow(&item);
        } else {
            self.ring.push(item, bytes);
        }
        Ok(())
    }

    /// Says that nothing comes after what is held: the reader gets that, then [`Next::Ended`]. The first reason stays.
    pub fn end(&mut self, reason: EndReason) {
        self.end.get_or_insert(reason);
    }

    /// Gives the oldest item up as if the queue were full, for a budget that several streams share; with [`OnFull::Disconnect`] all that is
    /// held, and the stream ends. Answers whether there was one.
    pub fn collapse_oldest(&mut self) -> bool {
        if self.on_full != OnFull::Disconnect {
            return self.give_up_oldest();
        }
        // What comes after the items held was counted before them.
        let after = self.lagged.take();
        let any = !self.ring.is_empty();
        while self.give_up_oldest() {}
        if any {
            self.end.get_or_insert(EndReason::LaggedOut);
        }
        self.lagged = match (self.lagged.take(), after) {
            (Some(before), Some(after)) => Some(before.and_then(after)),
            (before, after) => before.or(after),
        };
        any
    }

    /// Hands out what comes next.
    pub fn poll(&mut self) -> Option<Next<T, T::First>> {
        let next = self.take_next();
        if !self.is_readable() {
            self.signalled = false;
        }
        next
    }

    /// True once when there is something to read, and again only after everything was read.
    pub fn take_ready(&mut self) -> bool {
        let raise = !self.signalled && self.is_readable();
        self.signalled |= raise;
        raise
    }

    /// The item [`poll`](Self::poll) would hand out, unless something else comes first.
    pub fn peek(&self) -> Option<&T> {
        if self.lagged.is_some() && self.on_full != OnFull::Disconnect {
            return None;
        }
        self.ring.get(self.ring.start())
    }

    /// Whether there is anything to read: an item, a [`Lagged`], or the end.
    pub fn is_readable(&self) -> bool {
        !self.ring.is_empty() || self.lagged.is_some() || (self.end.is_some() && !self.over)
    }

    /// Whether the links that feed this stream must pause: with [`OnFull::Pause`], when it holds its items or bytes. Reading cures it.
    pub fn is_full(&self) -> bool {
        self.on_full == OnFull::Pause
            && (self.ring.len() >= self.bounds.items || self.ring.bytes() >= self.bounds.bytes)
    }

    /// Whether [`Next::Ended`] was handed out: nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether it takes no more items.
    pub fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Items held, a [`Lagged`] and the end aside.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// The places of the items held: each that was pushed has one, in order.
    pub fn places(&self) -> core::ops::Range<u64> {
        self.ring.start()..self.ring.end()
    }

    /// The items held, oldest first.
    pub fn held(&self) -> impl Iterator<Item = &T> {
        self.places().filter_map(|place| self.ring.get(place))
    }

    /// Whether it has to say that items were given up.
    pub fn is_lagged(&self) -> bool {
        self.lagged.is_some()
    }

    /// Whether no item is held.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Weight of the items held.
    pub fn bytes(&self) -> usize {
        self.ring.bytes()
    }

    /// What it was built with.
    pub fn bounds(&self) -> StreamBounds {
        self.bounds
    }

    /// Bytes of the slots, items' own weight aside.
    pub fn memory(&self) -> usize {
        self.ring.memory()
    }

    fn take_next(&mut self) -> Option<Next<T, T::First>> {
        if self.on_full != OnFull::Disconnect
            && let Some(lagged) = self.take_lagged()
        {
            return Some(lagged);
        }
        if let Some((_, item, _)) = self.ring.give_up_oldest() {
            if self.ring.len() <= low_mark(self.hard_items()) {
                self.lagging = false;
            }
            return Some(Next::Item(item));
        }
        if let Some(lagged) = self.take_lagged() {
            return Some(lagged);
        }
        let reason = self.end.filter(|_| !self.over)?;
        self.over = true;
        Some(Next::Ended(reason))
    }

    fn take_lagged(&mut self) -> Option<Next<T, T::First>> {
        let lagged = self.lagged.take()?;
        self.lagging = self.ring.len() > low_mark(self.hard_items());
        Some(Next::Lagged(lagged))
    }

    /// Whether one more item of `bytes` needs room made; an item that would be alone never does.
    fn overflows(&self, bytes: usize, items: usize, total: usize) -> bool {
        let held = self.ring.len();
        held >= items || (held > 0 && self.ring.bytes().saturating_add(bytes) > total)
    }

    fn give_up_oldest(&mut self) -> bool {
        let Some((_, item, _)) = self.ring.give_up_oldest() else {
            return false;
        };
        self.swallow(&item);
        true
    }

    fn swallow(&mut self, item: &T) {
        let (from, to) = item.window();
        let before = self.lagged.take();
        let known = before.as_ref().is_some_and(|lagged| lagged.first.is_some());
        let lost = Lagged {
            missed: item.missed(),
            notices: item.notices(),
            first: if known { None } else { item.first() },
            from,
            to,
        };
        self.lagged = Some(match before {
            Some(before) => before.and_then(lost),
            None => lost,
        });
    }

    fn hard_items(&self) -> usize {
        self.ring.capacity()
    }

    /// With [`OnFull::Pause`] as much again as the bound: what was under way when the links were paused.
    fn hard_bytes(&self) -> usize {
        match self.on_full {
            OnFull::Pause => self.bounds.bytes.saturating_mul(2),
            OnFull::Disconnect | OnFull::Lag => self.bounds.bytes,
        }
    }
}

/// Below this an overflow counts as a new episode.
fn low_mark(bound: usize) -> usize {
    bound - bound / 4
}

#[cfg(test)]
mod tests;
