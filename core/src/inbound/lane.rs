//! One publisher on one topic in one subscription.
//!
//! Decides: which epoch a fact belongs to, what leaves in which order between two epochs, and every notice about the numbering. Leaves to
//! others: dedup, sources, opening, byte budgets, the stream. Believes: mono for timers, wall only for when an idle lane's memory may
//! go. Bounded by: the slots of its two orders, two epochs, six notices.

mod clash;
#[cfg(feature = "alloc")]
mod fold;
mod follow;
mod item;
mod newest;
mod notes;
mod pair;
mod rest;
mod still;

use super::guess::Guess;
use super::latest::Latest;
pub use super::order::{Admit, Front, Slot};
use super::order::{Left, MISSING, Order, Untold};
use super::ranges::Ranges;
use crate::time::{Instant, Now, WallMs, soonest};
use clash::{Clash, Clashes};
#[cfg(feature = "alloc")]
pub(crate) use fold::Folded;
pub use item::{LaneConfig, LaneItem, LaneStats, Mode, Offer};
use notes::{Note, Notes};
use pair::Pair;
#[cfg(feature = "alloc")]
pub(crate) use rest::Reach;
pub use rest::{REST_AFTER, Resting};
use still::Still;

/// An epoch that began this much after the subscription was first accepted is followed from its number 1.
const JOIN_TOLERANCE_MS: u64 = 5 * 60 * 1000;
/// Notices that the first fact of an epoch may cause: `Restarted`, or `Resynced`, and `TwoCounters`; and an episode that opens or ends.
const NOTES_PER_CALL: usize = 3;

type Missing = Ranges<MISSING>;

/// An epoch that is followed; its order has the same index.
#[derive(Clone, Copy, Debug)]
struct Followed {
    epoch: u64,
    heard: Instant,
}

/// Where the next item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Note,
    Order(usize),
}

/// One publisher on one topic in one subscription, in any mode.
///
/// Choices where the rules leave one: the third fact of a lower epoch may itself take over (`latest_only`); an episode of conflicts is
/// told after 10 s even if it goes on; a sparse source waits the whole timeout for every gap, since nothing tells a gap from a jump; a
/// closed place counts as missing, so a copy that gets another chance is late; two counters are told when each has brought a new
/// highest number, not by a replay, a minute after the second was first heard; the epoch that was replaced last is remembered by its edge
/// and by what nobody was told of; one that was replaced before it begins anew behind a `Resynced`, which also precedes a late fact that
/// leaves no room to remember what nobody was told of.
///
/// Commands: `offer`, `close`, `give_up`, `replay_progress`, `replay_end`, `resume`. Inputs: `handle_timeout`. Outputs: `poll`, which
/// decides nothing. Commands and inputs act first on what is due by their `now`; an earlier mono than the last is taken as the last.
#[derive(Debug)]
pub struct Lane<T, S> {
    config: LaneConfig,
    orders: [Order<T, S>; 2],
    followed: [Option<Followed>; 2],
    /// The epoch that was replaced last.
    replaced: Option<(u64, Left)>,
    /// The greatest epoch that was replaced and forgotten; 0 where there was none.
    lost: u64,
    latest: Latest,
    guess: Guess,
    pair: Pair,
    clashes: Clashes,
    notes: Notes,
    still: Still,
    place: u64,
    clock: Instant,
    heard: Instant,
    /// It knows more than a record can say, and does not rest before.
    awake_until: Instant,
    until: WallMs,
    resync: bool,
    stats: LaneStats,
    due: Option<Instant>,
    front: Option<Source>,
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Lane<T, S> {
    /// A lane over slots for its two epochs: for the facts of each, at least one, and as many for what is given up before them.
    pub fn new(slots: [[S; 2]; 2], config: LaneConfig) -> Self {
        let order = config.order();
        Self::over(slots.map(|slots| Order::new(slots, order)), config)
    }

    fn over(orders: [Order<T, S>; 2], config: LaneConfig) -> Self {
        Self {
            config,
            orders,
            followed: [None; 2],
            replaced: None,
            lost: 0,
            latest: Latest::default(),
            guess: Guess::new(config.sparse),
            pair: Pair::default(),
            clashes: Clashes::default(),
            notes: Notes::default(),
            still: Still::default(),
            place: 0,
            clock: Instant::ORIGIN,
            heard: Instant::ORIGIN,
            awake_until: Instant::ORIGIN,
            until: WallMs::new(0),
            resync: config.forgotten,
            stats: LaneStats::default(),
            due: None,
            front: None,
        }
    }

    /// Offers a verified fact that dedup has not seen.
    ///
    /// `Busy` means that something must be handed out first; the fact has then changed nothing.
    pub fn offer(&mut self, now: Now, offer: Offer, item: T) -> Admit<T> {
        self.advance(now.mono);
        let straight = self.straight(&offer);
        let admit = match straight {
            Some(index) => self.put(index, offer.epoch, &offer, item),
            None => self.judge(&offer, item),
        };
        if !matches!(admit, Admit::Busy(_)) {
            self.heard = self.clock;
            self.until = self.until.max(offer.until);
        }
        match admit {
            Admit::Conflict(_) => self.stats.conflicts += 1,
            Admit::Duplicate(_) => self.stats.duplicates += 1,
            _ => (),
        }
        match straight {
            // It was due nowhere, and is decided.
            Some(_) => self.aim(),
            None => self.touch(),
        }
        admit
    }

    /// A verified fact was refused or dropped for any reason, which is accounted for elsewhere: the order passes over its place without a
    /// `Skipped`. `false`: something must be handed out first, nothing has changed. Who cannot wait gives the place up, and tells of the
    /// fact only where that answers `false` as well.
    #[must_use]
    pub fn close(&mut self, now: Now, epoch: u64, seq: u64) -> bool {
        self.advance(now.mono);
        let done = self.config.mode == Mode::LatestOnly || {
            let epoch = self.epoch_of(epoch, seq);
            self.follow(epoch).is_some_and(|index| {
                let at = self.still.at(self.clock);
                let closed = self.with_order(index, |order| order.close(at, seq));
                if closed {
                    self.heard_from(index, seq, false);
                }
                closed
            })
        };
        self.touch();
        done
    }

    /// A fact was answered `Busy`, or its place could not be closed, and draining must wait for something else: all of its epoch up to it
    /// comes out as `Skipped`, behind what is decided. `false`: no `Skipped` will speak of it, the caller has to.
    #[must_use]
    pub fn give_up(&mut self, now: Now, epoch: u64, seq: u64) -> bool {
        self.advance(now.mono);
        let epoch = self.epoch_of(epoch, seq);
        let told = self.config.mode != Mode::LatestOnly
            && self.index_of(epoch).is_some_and(|index| {
                let at = self.still.at(self.clock);
                self.with_order(index, |order| order.give_up(at, seq))
            });
        self.touch();
        told
    }

    /// A replay that may hold what is missing began or brought something: gaps stop being timed, for 10 s at most from here.
    pub fn replay_progress(&mut self, now: Now) {
        self.advance(now.mono);
        self.still.hold(self.clock);
        self.touch();
    }

    /// The replay has ended, whole or not: gaps are timed again.
    pub fn replay_end(&mut self, now: Now) {
        self.advance(now.mono);
        self.still.go_on(self.clock);
        self.touch();
    }

    /// Acts on all that is due.
    pub fn handle_timeout(&mut self, now: Now) {
        self.advance(now.mono);
        self.touch();
    }

    /// When something is due next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// The next item, in the order in which they were decided.
    #[inline]
    pub fn poll(&mut self) -> Option<LaneItem<T>> {
        let item = match self.front? {
            Source::Note => self.notes.pop().map(LaneItem::from),
            Source::Order(index) => self.orders[index].poll().map(LaneItem::from),
        };
        // What is handed out was decided: no deadline hangs on it.
        self.aim();
        item
    }

    /// The fact that `poll` would hand out; `None` when there is nothing or a notice comes first.
    pub fn front(&mut self) -> Option<Front<'_, T>> {
        match self.front? {
            Source::Note => None,
            Source::Order(index) => self.orders[index].front(),
        }
    }

    /// There is something to hand out.
    pub fn is_ready(&self) -> bool {
        self.front.is_some()
    }

    /// The epochs that are followed with their edges, all up to which was decided.
    pub fn edges(&self) -> [Option<(u64, u64)>; 2] {
        if self.config.mode == Mode::LatestOnly {
            return [self.latest.current(), None];
        }
        [0, 1].map(|index| Some((self.followed[index]?.epoch, self.orders[index].edge()?)))
    }

    /// The edges, with what below them was neither delivered nor told of.
    #[cfg(feature = "alloc")]
    pub(crate) fn reaches(&self) -> [Option<Reach>; 2] {
        let mut index = 0;
        self.edges().map(|edge| {
            let order = &self.orders[index];
            index += 1;
            let (epoch, edge) = edge?;
            let untold = match self.config.mode {
                Mode::LatestOnly => Untold::new(0),
                _ => order.untold(),
            };
            Some(Reach {
                epoch,
                edge,
                untold,
            })
        })
    }

    /// The number is at or below the edge of its epoch, so that dedup may forget it early.
    pub fn covers(&self, epoch: u64, seq: u64) -> bool {
        let epoch = self.epoch_of(epoch, seq);
        match self.config.mode {
            Mode::LatestOnly => self.latest.is_covered(epoch, seq),
            _ => self
                .index_of(epoch)
                .is_some_and(|index| self.orders[index].is_covered(seq)),
        }
    }

    /// What became of the number was told, so that nobody misses what comes under it.
    #[cfg(feature = "alloc")]
    pub(crate) fn is_told(&self, epoch: u64, seq: u64) -> bool {
        let epoch = self.epoch_of(epoch, seq);
        match self.config.mode {
            Mode::LatestOnly => self.latest.is_covered(epoch, seq),
            _ => self
                .index_of(epoch)
                .is_some_and(|index| self.orders[index].is_told(seq)),
        }
    }

    /// An offer of this epoch would be judged, not `Busy`, be it a conflict.
    pub fn has_room(&self, epoch: u64, seq: u64) -> bool {
        let epoch = self.epoch_of(epoch, seq);
        match self.config.mode {
            Mode::LatestOnly => self.latest_has_room(epoch),
            _ => match self.index_of(epoch) {
                Some(index) => {
                    let resyncs = self.orders[index].costs_untold(seq);
                    self.orders[index].has_room()
                        && self.can_clash(epoch)
                        && (!resyncs || self.has_notes(1))
                }
                None => self.can_follow(),
            },
        }
    }

    /// Numbers that wait behind gaps.
    pub fn held(&self) -> usize {
        self.orders.iter().map(Order::held).sum()
    }

    /// What was counted.
    pub fn stats(&self) -> LaneStats {
        LaneStats {
            late: self.orders.iter().map(Order::late).sum(),
            skips: self.orders.iter().map(Order::skips).sum(),
            superseded: self.latest.superseded(),
            ..self.stats
        }
    }

    /// Facts that were not delivered because a newer one was (`latest_only`).
    pub fn superseded(&self) -> u64 {
        self.latest.superseded()
    }

    /// Bytes of this lane, without what its items own elsewhere.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.orders.iter().map(Order::outside).sum::<usize>()
    }

    /// The order in which this fact is the next one, where nothing waits and nothing is due.
    #[inline]
    fn straight(&self, offer: &Offer) -> Option<usize> {
        let calm = self.front.is_none() && self.due.is_none();
        if !calm || offer.anycast || offer.epoch == 0 || self.config.mode == Mode::LatestOnly {
            return None;
        }
        let index = self.index_of(offer.epoch)?;
        self.orders[index].is_next(offer.seq).then_some(index)
    }

    fn judge(&mut self, offer: &Offer, item: T) -> Admit<T> {
        if offer.anycast {
            return self
                .pass(offer.epoch, offer.seq, item)
                .map_or_else(Admit::Busy, |()| Admit::Taken);
        }
        let epoch = self.epoch_of(offer.epoch, offer.seq);
        if self.config.mode == Mode::LatestOnly {
            return self.judge_latest(epoch, offer, item);
        }
        match self.follow(epoch) {
            Some(index) => self.put(index, epoch, offer, item),
            None => Admit::Busy(item),
        }
    }

    /// Offers a fact to the order of its epoch.
    #[inline]
    fn put(&mut self, index: usize, epoch: u64, offer: &Offer, item: T) -> Admit<T> {
        let at = self.still.at(self.clock);
        let (seq, copy_possible) = (offer.seq, offer.copy_possible);
        if self.orders[index].costs_untold(seq) {
            if !self.orders[index].has_room() || !self.has_notes(1) {
                return Admit::Busy(item);
            }
            self.note(Note::Resynced { epoch });
        }
        let admit = self.with_order(index, |order| order.offer(at, seq, copy_possible, item));
        match admit {
            Admit::Busy(item) => return Admit::Busy(item),
            Admit::Conflict(item) if !self.can_clash(epoch) => return Admit::Busy(item),
            Admit::Conflict(_) => self.note_clash(epoch, seq),
            _ => (),
        }
        self.heard_from(index, seq, offer.replayed);
        admit
    }

    /// A conflict in that epoch would find its notice a place.
    fn can_clash(&self, epoch: u64) -> bool {
        self.clashes.is_open(epoch) || self.has_notes(1)
    }

    fn has_notes(&self, wanted: usize) -> bool {
        self.notes.free(self.clashes.open()) >= wanted
    }

    /// Out at once, after all that is decided.
    fn pass(&mut self, epoch: u64, seq: u64, item: T) -> Result<(), T> {
        let index = self.greatest().unwrap_or(0);
        self.with_order(index, |order| order.pass(epoch, seq, item))
    }

    fn heard_from(&mut self, index: usize, seq: u64, replayed: bool) {
        if let Some(followed) = &mut self.followed[index] {
            followed.heard = self.clock;
            let epoch = followed.epoch;
            if !replayed {
                self.note_pair(epoch, seq);
            }
        }
    }

    fn note_pair(&mut self, epoch: u64, seq: u64) {
        self.pair.note(self.clock, epoch, seq);
        if let Some(epoch) = self.pair.untold()
            && self.has_notes(1)
        {
            self.pair.set_told();
            self.note(Note::TwoCounters { epoch });
        }
    }

    fn note_clash(&mut self, epoch: u64, seq: u64) {
        if let Some(clash) = self.clashes.note(self.clock, epoch, seq) {
            self.end_clash(clash);
        }
    }

    /// Something that was not delivered is not told of yet: an episode of conflicts is open.
    pub fn has_untold(&self) -> bool {
        self.clashes.open() > 0
    }

    /// Ends an episode of conflicts that was not told yet: nothing more comes, or it has to be told now. Called until there is none.
    pub fn finish(&mut self) -> Option<LaneItem<T>> {
        let (_, epoch) = self.clashes.next_end()?;
        let clash = self.clashes.end(epoch)?;
        self.touch();
        Some(clash.told().into())
    }

    fn end_clash(&mut self, clash: Clash) {
        self.note(clash.told());
    }

    fn note(&mut self, note: Note) {
        let place = self.next_place();
        self.notes.push(place, note);
    }

    fn next_place(&mut self) -> u64 {
        self.place += 1;
        self.place
    }

    /// Both orders count their decisions with one counter, so that `poll` can hand them out in the order they were taken.
    fn with_order<R>(&mut self, index: usize, act: impl FnOnce(&mut Order<T, S>) -> R) -> R {
        let order = &mut self.orders[index];
        order.set_place(self.place);
        let result = act(order);
        self.place = order.place();
        result
    }

    /// Acts on all that is due by `now`, earliest first.
    fn advance(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        self.still.settle(self.clock);
        if self.due.is_none_or(|due| due > self.clock) {
            return;
        }
        loop {
            let gaps = [0, 1].map(|index| self.gap_due(index));
            let episode = self.clashes.next_end();
            let due = soonest(soonest(gaps[0], gaps[1]), episode.map(|(ends, _)| ends));
            let Some(due) = due.filter(|due| *due <= self.clock) else {
                return;
            };
            if let Some(index) = gaps.iter().position(|gap| *gap == Some(due)) {
                let at = self.orders[index].poll_timeout().unwrap_or_default();
                self.with_order(index, |order| order.handle_timeout(at));
            } else if let Some(clash) = episode.and_then(|(_, epoch)| self.clashes.end(epoch)) {
                self.end_clash(clash);
            }
        }
    }

    fn gap_due(&self, index: usize) -> Option<Instant> {
        Some(self.still.when(self.orders[index].poll_timeout()?))
    }

    /// Restores what is derived: the next deadline and where the next item is. Every change ends here.
    fn touch(&mut self) {
        let gaps = soonest(self.gap_due(0), self.gap_due(1));
        self.due = soonest(gaps, self.clashes.next_end().map(|(ends, _)| ends));
        self.aim();
    }

    /// Restores where the next item is.
    #[inline]
    fn aim(&mut self) {
        let places = [
            (self.notes.front_place(), Source::Note),
            (self.orders[0].front_place(), Source::Order(0)),
            (self.orders[1].front_place(), Source::Order(1)),
        ];
        let ready = places
            .into_iter()
            .filter_map(|(place, source)| Some((place?, source)));
        self.front = ready
            .min_by_key(|(place, _)| *place)
            .map(|(_, source)| source);
    }
}

#[cfg(feature = "alloc")]
impl<T> Lane<T, alloc::vec::Vec<Option<Slot<T>>>> {
    /// A lane whose slots are allocated when a second fact waits.
    pub fn growing(config: LaneConfig) -> Self {
        let order = config.order();
        Self::over([Order::growing(order), Order::growing(order)], config)
    }
}

#[cfg(test)]
mod tests;
