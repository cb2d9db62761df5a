//! A local subscription: its stream, and what its reader is told.
//!
//! Decides: how items are weighed and when a reader is woken. Leaves to others: order (lanes), what a full stream does (the stream machine).
//! Believes: wall times in notices, mono for episodes. Bounded by: the stream's capacity, and one episode per reason.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::commit::Commits;
use super::lanes::LaneSlot;
use super::sources::SourceId;
use super::timers::Timer;
use super::{Client, LaneId, Sources, Subscribe, WireId};
use crate::action::{Action, Ready};
use crate::code::{DiagnosticCode, DropReason, EndReason, SubscribeRefusal};
use crate::inbound::episode::{Dropped, Episodes, Slot};
use crate::inbound::lane::{LaneConfig, Mode};
use crate::inbound::stream::{HeapStream, Next, OnFull, StreamBounds, StreamItem};
use crate::limits::ClientLimits;
use crate::notice::{Item, Notice, Numbering};
use crate::time::{Instant, Now, WallMs};
use crate::wire::SKEW_MS;
use crate::{GroupId, NodeId, RealmId, SubscriptionId};

impl StreamItem for Item {
    type First = Box<(Numbering, u64)>;

    fn missed(&self) -> u64 {
        match self {
            Self::Fact(_) => 1,
            Self::Notice(notice) => match **notice {
                Notice::Skipped { first, last, .. } => last.saturating_sub(first).saturating_add(1),
                Notice::Conflict { count, .. } | Notice::Dropped { count, .. } => count,
                Notice::Lagged { missed, .. } => missed,
                Notice::Unopened { .. } => 1,
                Notice::Gap { count, .. } => count.unwrap_or(0),
                _ => 0,
            },
        }
    }

    fn notices(&self) -> u64 {
        match self {
            Self::Fact(_) => 0,
            Self::Notice(notice) => match **notice {
                Notice::Lagged { notices, .. } => notices,
                _ => 1,
            },
        }
    }

    /// A notice takes a place and nothing of what publications share: it could not be refused.
    fn bytes(&self) -> usize {
        match self {
            Self::Fact(delivery) => delivery.weight(),
            Self::Notice(_) => 0,
        }
    }

    fn window(&self) -> (WallMs, WallMs) {
        match self {
            Self::Fact(delivery) => (delivery.published_at(), delivery.published_at()),
            Self::Notice(notice) => notice.window(),
        }
    }

    fn first(&self) -> Option<Self::First> {
        match self {
            Self::Fact(delivery) => Some(Box::new((
                Numbering {
                    publisher: delivery.publisher(),
                    topic: delivery.topic().to_owned(),
                    epoch: delivery.epoch().unwrap_or(0),
                },
                delivery.seq(),
            ))),
            Self::Notice(notice) => match &**notice {
                Notice::Lagged { first, .. } => first.clone(),
                Notice::Skipped { of, first, .. } => Some(Box::new((of.clone(), *first))),
                _ => None,
            },
        }
    }
}

/// A local subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    /// How many were made before it.
    pub(super) made: u64,
    pub(super) wire: WireId,
    pub(super) realm: RealmId,
    pub(super) filter: String,
    pub(super) sources: Sources,
    /// What verdicts on its publishers are found by, where they are looked up.
    pub(super) source: Option<SourceId>,
    /// With whose keys sealed facts are opened.
    pub(super) group: Option<GroupId>,
    pub(super) mode: Mode,
    sparse: alloc::vec::Vec<NodeId>,
    pub(super) stream: HeapStream<Item>,
    pub(super) pauses: bool,
    /// When a station first accepted it.
    pub(super) accepted: Option<WallMs>,
    /// Lanes with something decided for which a pausing stream had no room.
    pub(super) waiting: VecDeque<LaneId>,
    pub(super) lanes: usize,
    /// When the record of a silent lane was given up last.
    pub(super) forgot: Option<WallMs>,
    episodes: Episodes<DropReason, [Slot<DropReason>; DropReason::ALL.len()]>,
    pub(super) episode_at: Option<Instant>,
    pub(super) refused: Option<SubscribeRefusal>,
    /// Bytes of facts that its lanes hold, and of those that wait for a lookup.
    pub(super) held_bytes: usize,
    pub(super) commits: Option<Box<Commits>>,
    /// The place of the last fact handed out.
    pub(super) handed: Option<u64>,
    pub(super) delivered: u64,
    pub(super) late: u64,
    pub(super) source_refused: u64,
    /// Superseded and late counts of lanes that are gone.
    pub(super) superseded: u64,
}

impl Subscription {
    pub(super) fn new(now: Now, request: Subscribe, wire: WireId, limits: &ClientLimits) -> Self {
        let items = request.queue_capacity.unwrap_or(limits.queue_capacity);
        let bounds = StreamBounds {
            items,
            reserve: items.max(256),
            bytes: limits.held_bytes,
        };
        Self {
            made: 0,
            wire,
            realm: request.realm,
            filter: request.filter,
            source: request.sources.id(&request.realm),
            sources: request.sources,
            group: request.group,
            mode: request.mode,
            sparse: request.sparse,
            stream: HeapStream::with_bounds(bounds, request.on_full),
            pauses: request.on_full == OnFull::Pause,
            accepted: None,
            waiting: VecDeque::new(),
            lanes: 0,
            forgot: None,
            episodes: Episodes::new([None; DropReason::ALL.len()]),
            episode_at: None,
            refused: None,
            held_bytes: 0,
            commits: request
                .resume
                .map(|resume| Box::new(Commits::new(now, *resume))),
            handed: None,
            delivered: 0,
            late: 0,
            source_refused: 0,
            superseded: 0,
        }
    }

    /// Whether this publisher may speak here.
    pub(super) fn admits(&self, publisher: &NodeId) -> bool {
        match &self.sources {
            Sources::Nodes(nodes) => nodes.contains(publisher),
            // Whom these admit is looked up once the signature is verified.
            Sources::Members | Sources::Open | Sources::Org(_) => true,
        }
    }

    pub(super) fn lane_config(
        &self,
        publisher: &NodeId,
        epoch: u64,
        now: Now,
        base: LaneConfig,
    ) -> LaneConfig {
        LaneConfig {
            mode: self.mode,
            accepted_wall: self.accepted.unwrap_or(now.wall),
            sparse: self.sparse.contains(publisher),
            // A record's stream was silent for ten minutes, and its publisher's clock is at most five ahead: a numbering that began less than
            // five minutes before was in none.
            forgotten: self
                .forgot
                .is_some_and(|at| epoch / 1000 + SKEW_MS <= at.as_millis()),
            ..base
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.stream.is_full()
    }

    pub(super) fn is_ended(&self) -> bool {
        self.stream.is_ended()
    }

    pub(super) fn queued(&self) -> usize {
        self.stream.len()
    }

    pub(super) fn memory(&self) -> usize {
        let commits = self.commits.as_ref().map_or(0, |commits| commits.memory());
        let notices = self.stream.held().map(|item| match item {
            Item::Fact(_) => 0,
            Item::Notice(notice) => {
                size_of::<Notice>() + notice.numbering().map_or(0, |of| of.topic.capacity())
            }
        });
        let notices: usize = notices.sum();
        let waiting = self.waiting.capacity() * size_of::<LaneId>();
        self.stream.memory() + notices + waiting + self.filter.capacity() + commits
    }
}

impl Client {
    /// The next item of a stream. After `Ended` was handed out the handle is dead.
    pub fn poll_item(&mut self, subscription: SubscriptionId) -> Option<Item> {
        let found = self.subscriptions.get_mut(subscription)?;
        let before = found.stream.bytes();
        let place = found.stream.places().start;
        let mut next = found.stream.poll()?;
        self.held_bytes -= before - found.stream.bytes();
        if let Next::Item(Item::Fact(delivery)) = &mut next {
            delivery.place = place;
            found.handed = Some(place);
        }
        let (waiting, commits) = (!found.waiting.is_empty(), found.commits.is_some());
        let item = match next {
            Next::Item(item) => item,
            Next::Lagged(lagged) => {
                // What it swallowed may have had no time of its own.
                let (from, to) = match lagged.from <= lagged.to {
                    true => (lagged.from, lagged.to),
                    false => (self.now.wall, self.now.wall),
                };
                Item::Notice(Box::new(Notice::Lagged {
                    missed: lagged.missed,
                    notices: lagged.notices,
                    first: lagged.first,
                    from,
                    to,
                }))
            }
            Next::Ended(reason) => {
                self.forget_subscription(subscription);
                return Some(Item::Notice(Box::new(Notice::Ended { reason })));
            }
        };
        if waiting {
            self.refill(subscription);
        }
        if commits {
            self.mark_when_drained(subscription);
        }
        Some(item)
    }

    /// A pausing stream has room again: what its lanes decided meanwhile follows.
    fn refill(&mut self, id: SubscriptionId) {
        while let Some(found) = self.subscriptions.get_mut(id)
            && !found.stream.is_full()
            && let Some(lane) = found.waiting.pop_front()
        {
            if let Some(work) = self.lanes.get_mut(lane).and_then(LaneSlot::work) {
                work.waiting = false;
            }
            self.touch(lane);
        }
    }

    /// Puts an item at the end of a stream and wakes its reader.
    pub(super) fn push(&mut self, id: SubscriptionId, item: Item) {
        let Some(found) = self.subscriptions.get_mut(id) else {
            return;
        };
        if found.stream.is_ended() {
            return;
        }
        match &item {
            Item::Fact(delivery) => {
                found.delivered += 1;
                found.late += u64::from(delivery.late());
            }
            Item::Notice(_) => {}
        }
        let before = found.stream.bytes();
        drop(found.stream.push(item));
        self.held_bytes = self.held_bytes + found.stream.bytes() - before;
        if found.stream.take_ready() {
            self.actions
                .push_back(Action::Ready(Ready::Subscription(id)));
        }
        if found.stream.is_ended() {
            self.disconnect(id);
        }
    }

    /// A stream that was to end rather than lag has ended. What its lanes had decided is counted in the `Lagged` it ends with.
    fn disconnect(&mut self, id: SubscriptionId) {
        if let Some(found) = self.subscriptions.get_mut(id) {
            let lanes = self.lanes.iter_mut();
            for (_, slot) in lanes.filter(|(_, slot)| slot.is_of(id)) {
                while let Some(item) = slot.poll(&mut self.held_bytes) {
                    drop(found.stream.push(item));
                }
            }
        }
        self.end_subscription(id, EndReason::LaggedOut);
    }

    /// Gives up the oldest item of the stream that holds most bytes; streams that pause lose nothing. Answers whether there was one.
    pub(super) fn collapse_fullest(&mut self) -> bool {
        let fullest = self
            .subscriptions
            .iter_mut()
            .filter(|(_, found)| !found.pauses && found.stream.bytes() > 0)
            .max_by_key(|(_, found)| found.stream.bytes());
        let Some((id, found)) = fullest else {
            return false;
        };
        let (before, ended) = (found.stream.bytes(), found.stream.is_ended());
        let any = found.stream.collapse_oldest();
        self.held_bytes = self.held_bytes + found.stream.bytes() - before;
        if found.stream.is_ended() && !ended {
            self.disconnect(id);
        }
        any
    }

    pub(super) fn notify(&mut self, id: SubscriptionId, notice: Notice) {
        self.push(id, Item::Notice(Box::new(notice)));
    }

    /// Says something to a stream that is about to end.
    fn say_last(found: &mut Subscription, held: &mut usize, item: Item) {
        let before = found.stream.bytes();
        // A stream that has ended had its last word.
        drop(found.stream.push(item));
        *held = *held + found.stream.bytes() - before;
    }

    /// Tells of the conflicts whose episodes are open: nothing more comes of this subscription's lanes.
    pub(super) fn finish_lanes(&mut self, id: SubscriptionId) {
        let Some(found) = self.subscriptions.get_mut(id) else {
            return;
        };
        for (_, slot) in self.lanes.iter_mut().filter(|(_, slot)| slot.is_of(id)) {
            while let Some(item) = slot.finish() {
                Self::say_last(found, &mut self.held_bytes, item);
            }
        }
    }

    /// Ends a stream: its reader gets what it holds, then `Ended`.
    pub(super) fn end_stream(&mut self, id: SubscriptionId, reason: EndReason) {
        let Some(found) = self.subscriptions.get_mut(id) else {
            return;
        };
        while let Some(dropped) = found.episodes.finish() {
            let item = Item::Notice(Box::new(dropped_notice(dropped)));
            Self::say_last(found, &mut self.held_bytes, item);
        }
        found.stream.end(reason);
        let armed = found.episode_at.take();
        if found.stream.take_ready() {
            self.actions
                .push_back(Action::Ready(Ready::Subscription(id)));
        }
        self.disarm(armed, Timer::Episode(id));
    }

    /// A fact for this stream was dropped by a bound or a budget: one notice per episode.
    pub(super) fn dropped(
        &mut self,
        now: Now,
        id: SubscriptionId,
        reason: DropReason,
        publisher: &NodeId,
    ) {
        self.counts.dropped += 1;
        self.report(DiagnosticCode::FactsDropped, None, reason.text());
        let Some(found) = self.subscriptions.get_mut(id) else {
            return;
        };
        let mut who = [0; 8];
        who.copy_from_slice(&publisher.as_bytes()[..8]);
        let ended = found
            .episodes
            .record(now, reason, u64::from_le_bytes(who), 1);
        if let Some(dropped) = ended {
            self.notify(id, dropped_notice(dropped));
        }
        self.arm_episode(id);
    }

    pub(super) fn episode_timeout(&mut self, now: Now, id: SubscriptionId) {
        while let Some(found) = self.subscriptions.get_mut(id)
            && let Some(dropped) = found.episodes.handle_timeout(now.mono)
        {
            self.notify(id, dropped_notice(dropped));
        }
        self.arm_episode(id);
    }

    fn arm_episode(&mut self, id: SubscriptionId) {
        let Some(found) = self.subscriptions.get_mut(id) else {
            return;
        };
        let at = found.episodes.poll_timeout();
        let armed = core::mem::replace(&mut found.episode_at, at);
        if armed != at {
            self.disarm(armed, Timer::Episode(id));
            self.timers.extend(at.map(|at| (at, Timer::Episode(id))));
        }
    }

    /// Tells now of what was dropped and of conflicts, though their episodes go on: what comes after is another episode.
    pub(super) fn tell_open_episodes(&mut self, id: SubscriptionId) {
        while let Some(found) = self.subscriptions.get_mut(id)
            && let Some(dropped) = found.episodes.finish()
        {
            self.notify(id, dropped_notice(dropped));
        }
        self.arm_episode(id);
        let all = self.lanes.iter();
        let untold: Vec<LaneId> = all
            .filter(|(_, slot)| slot.is_of(id) && slot.has_untold())
            .map(|(lane, _)| lane)
            .collect();
        for lane in untold {
            while let Some(item) = self.lanes.get_mut(lane).and_then(LaneSlot::finish) {
                self.push(id, item);
            }
            self.touch(lane);
        }
    }

    /// Moves what a lane has decided into its stream, as far as a pausing stream has room.
    pub(super) fn drain_lane(&mut self, id: LaneId) {
        let slot = self.lanes.get(id);
        let Some(subscription) = slot.and_then(|slot| self.subscription_of(slot)) else {
            return;
        };
        while let Some(slot) = self.lanes.get_mut(id) {
            let Some(found) = self.subscriptions.get_mut(subscription) else {
                return;
            };
            if found.pauses && found.stream.is_full() {
                if slot.is_ready()
                    && let Some(work) = slot.work()
                    && !core::mem::replace(&mut work.waiting, true)
                {
                    found.waiting.push_back(id);
                }
                return;
            }
            if slot.sealed_front().is_some() && !self.open_front(id, subscription) {
                return;
            }
            let slot = self.lanes.get_mut(id);
            let Some(item) = slot.and_then(|slot| slot.poll(&mut self.held_bytes)) else {
                return;
            };
            self.push(subscription, item);
        }
    }

    /// Forgets a lane, counting what only it knew.
    pub(super) fn count_lane(found: &mut Subscription, slot: &LaneSlot) {
        found.superseded += slot.superseded();
        found.lanes = found.lanes.saturating_sub(1);
    }
}

fn dropped_notice(dropped: Dropped<DropReason>) -> Notice {
    Notice::Dropped {
        reason: dropped.reason,
        count: dropped.count,
        publishers: dropped.publishers,
        from: dropped.from,
        to: dropped.to,
    }
}
