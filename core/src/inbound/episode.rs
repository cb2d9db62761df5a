//! Repeated events become one notice per episode.
//!
//! Decides: when an episode of dropped facts ends and what its notice counts. Leaves to others: where the notice goes. Believes: mono for
//! the ends, wall only for the times people read. Bounded by: one slot per reason, eight distinct publishers remembered in each.

use crate::time::{Duration, Instant, Now, WallMs};

/// This long without another event ends an episode.
pub const QUIET: Duration = Duration::from_secs(1);

/// An episode is reported at the latest this long after its first event; what goes on after that is another one.
pub const LONGEST: Duration = Duration::from_secs(10);

/// Distinct publishers told apart in one episode.
pub const PUBLISHERS: usize = 8;

/// One place of the storage of [`Episodes`].
pub type Slot<R> = Option<Running<R>>;

/// An episode under way.
#[derive(Clone, Copy, Debug)]
pub struct Running<R> {
    dropped: Dropped<R>,
    publishers: [u64; PUBLISHERS],
    began: Instant,
    last: Instant,
}

/// What one episode came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<R> {
    /// Why the facts were dropped.
    pub reason: R,
    /// How many, exactly.
    pub count: u64,
    /// From how many publishers; [`PUBLISHERS`] means that many or more.
    pub publishers: u32,
    /// The earliest wall time at which one was dropped.
    pub from: WallMs,
    /// The latest.
    pub to: WallMs,
}

/// The running episodes of one stream, by reason.
///
/// Input: [`record`](Self::record). [`handle_timeout`](Self::handle_timeout) hands out one ended episode per call and is called until it
/// has none; after that `poll_timeout` is `None` or later.
///
/// ```
/// use tidings::inbound::episode::{Episodes, Slot};
/// use tidings::{Instant, Now, WallMs};
///
/// let slots: [Slot<&str>; 2] = [None; 2];
/// let mut episodes = Episodes::new(slots);
/// let at = |ms| Now::new(Instant::from_millis(ms), WallMs::new(ms));
/// assert!(episodes.record(at(0), "full", 7, 1).is_none());
/// assert!(episodes.record(at(900), "full", 8, 1).is_none());
/// assert_eq!(episodes.poll_timeout(), Some(Instant::from_millis(1900)));
/// let dropped = episodes.handle_timeout(Instant::from_millis(1900)).unwrap();
/// assert_eq!((dropped.count, dropped.publishers), (2, 2));
/// ```
#[derive(Debug)]
pub struct Episodes<R, S> {
    slots: S,
    reason: core::marker::PhantomData<fn() -> R>,
}

impl<R: Copy + Eq, S: AsRef<[Slot<R>]> + AsMut<[Slot<R>]>> Episodes<R, S> {
    /// One slot for each reason there may be; with fewer, the episode that would end first makes room, early but whole.
    pub fn new(slots: S) -> Self {
        Self {
            slots,
            reason: core::marker::PhantomData,
        }
    }

    /// Counts `count` facts of `publisher` (any number that tells publishers apart) dropped for `reason`. Answers an episode that ends by
    /// this: an older one of the same reason whose time is up, or one that had to make room. With no slot at all every call is an episode.
    pub fn record(
        &mut self,
        now: Now,
        reason: R,
        publisher: u64,
        count: u64,
    ) -> Option<Dropped<R>> {
        let slots = self.slots.as_mut();
        let same = slots
            .iter()
            .position(|slot| slot.is_some_and(|running| running.dropped.reason == reason));
        if let Some(running) = same.and_then(|index| slots[index].as_mut())
            && running.ends() > now.mono
        {
            running.add(now, publisher, count);
            return None;
        }
        let fresh = Running::begin(now, reason, publisher, count);
        let index = same
            .or_else(|| slots.iter().position(Option::is_none))
            .or_else(|| soonest_end(slots));
        match index {
            Some(index) => slots[index].replace(fresh).map(|running| running.dropped),
            None => Some(fresh.dropped),
        }
    }

    /// Ends one episode whose time is up, the earliest first. Call until `None`.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Dropped<R>> {
        let slots = self.slots.as_mut();
        let index = soonest_end(slots)?;
        if slots[index]?.ends() > now {
            return None;
        }
        slots[index].take().map(|running| running.dropped)
    }

    /// Ends one episode, the one that would end first, whatever the time: for a stream that is about to end, or that has to say now what is
    /// missing. Call until `None`.
    pub fn finish(&mut self) -> Option<Dropped<R>> {
        let slots = self.slots.as_mut();
        let index = soonest_end(slots)?;
        slots[index].take().map(|running| running.dropped)
    }

    /// When the next episode ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let slots = self.slots.as_ref();
        Some(slots[soonest_end(slots)?]?.ends())
    }
}

impl<R: Copy> Running<R> {
    fn begin(now: Now, reason: R, publisher: u64, count: u64) -> Self {
        let mut publishers = [0; PUBLISHERS];
        publishers[0] = publisher;
        Self {
            dropped: Dropped {
                reason,
                count,
                publishers: 1,
                from: now.wall,
                to: now.wall,
            },
            publishers,
            began: now.mono,
            last: now.mono,
        }
    }

    fn add(&mut self, now: Now, publisher: u64, count: u64) {
        let dropped = &mut self.dropped;
        dropped.count = dropped.count.saturating_add(count);
        dropped.from = dropped.from.min(now.wall);
        dropped.to = dropped.to.max(now.wall);
        let known = dropped.publishers as usize;
        if known < PUBLISHERS && !self.publishers[..known].contains(&publisher) {
            self.publishers[known] = publisher;
            dropped.publishers += 1;
        }
        self.last = self.last.max(now.mono);
    }

    fn ends(&self) -> Instant {
        self.last
            .saturating_add(QUIET)
            .min(self.began.saturating_add(LONGEST))
    }
}

/// The slot whose episode ends first, the lowest of equals.
fn soonest_end<R: Copy>(slots: &[Slot<R>]) -> Option<usize> {
    let ends = |index: &usize| slots[*index].map(|running| running.ends());
    (0..slots.len())
        .filter(|index| slots[*index].is_some())
        .min_by_key(ends)
}

#[cfg(test)]
mod tests;
