//! Subscriptions towards stations: one wire subscription per realm and filter, on every link.
//!
//! Decides: what is asked of which station, and when again. Leaves to others: what their answers mean (carriers), facts (receive), streams.
//! Believes: mono. Bounded by: `ClientLimits::subscriptions`; one wire subscription on each link.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::commit::STATIONS;
use super::redial::Redial;
use super::streams::Subscription;
use super::timers::Timer;
use super::{Client, Sources, Subscribe, WireId};
use crate::code::{CloseReason, EndReason, SubscribeRefusal};
use crate::error::LinkError;
use crate::inbound::continuity;
use crate::refusal::{self, Misuse, Refused};
use crate::time::{Instant, Now};
use crate::topic;
use crate::wire::{self, Frame, StationPosition};
use crate::{LinkId, RealmId, SubscriptionId};

/// How long a station may take to answer a subscription; time in which this node does not read apart.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// A link and the positions it leaves behind.
type Continuity = continuity::Continuity<LinkId, Vec<continuity::Slot<LinkId>>>;

/// A station that refused and is asked again.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) link: LinkId,
    pub(super) reason: SubscribeRefusal,
    /// How long it is left alone.
    pub(super) waits: Redial,
}

/// One (realm, filter) asked of every station.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) realm: RealmId,
    pub(super) filter: String,
    pub(super) holders: Vec<SubscriptionId>,
    pub(super) continuity: Continuity,
    /// Links that were asked and have not answered, and when they were.
    pub(super) asked: Vec<(LinkId, Now)>,
    pub(super) refusals: Vec<Refusal>,
    /// Whose turn it is for an anycast.
    turn: usize,
    /// The continuity's deadline in the index.
    pub(super) armed: Option<Instant>,
    /// When lanes were last told that a replay goes on.
    pub(super) held: Instant,
}

impl Wire {
    pub(super) fn carries(&self, link: LinkId) -> bool {
        self.continuity.carrier(link).is_some()
    }

    pub(super) fn memory(&self) -> usize {
        self.filter.capacity()
            + self.holders.capacity() * size_of::<SubscriptionId>()
            + self.continuity.memory()
            + self.asked.capacity() * size_of::<(LinkId, Now)>()
            + self.refusals.capacity() * size_of::<Refusal>()
    }
}

impl Client {
    /// Subscribes: the stream is readable at once, and says what may be missing from its first acceptance on.
    ///
    /// # Errors
    /// `Closed`, `BadFilter`, `SystemTopic`, `NoSources`, `TooManySubscriptions`, `BadGroup`, `Group`; the request comes back.
    pub fn subscribe(
        &mut self,
        now: Now,
        mut request: Subscribe,
    ) -> Result<SubscriptionId, Refused<Subscribe>> {
        let now = self.at(now);
        if let Err(reason) = self.judge_subscribe(&request) {
            return Err(Refused { reason, request });
        }
        if let Some(earlier) = &mut request.resume {
            earlier.read_at(now.wall);
        }
        let key = (request.realm, request.filter.clone());
        // What an earlier run committed is asked for apart: a station replays to a new subscription only.
        let earlier = request.resume.as_ref();
        let earlier = earlier.filter(|earlier| !earlier.stations().is_empty());
        let earlier = earlier.map(|earlier| earlier.stations().to_vec());
        let wire = match (self.wire_index.get(&key), earlier) {
            (Some(wire), None) => *wire,
            (_, earlier) => self.open_wire(now, key, &earlier.unwrap_or_default()),
        };
        self.ask_all(now, wire);
        let limits = &self.config.limits;
        let mut made = Subscription::new(now, request, wire, limits);
        if self
            .wires
            .get(wire)
            .is_some_and(|wire| wire.continuity.live().next().is_some())
        {
            made.accepted = Some(now.wall);
        }
        made.made = self.subscriptions_made;
        self.subscriptions_made += 1;
        let (realm, filter, pauses) = (made.realm, made.filter.clone(), made.pauses);
        self.add_source(realm, made.source);
        let id = self.subscriptions.insert(made);
        self.pausing += usize::from(pauses);
        if let Some(wire) = self.wires.get_mut(wire) {
            wire.holders.push(id);
        }
        for (_, known) in self.topics.iter_mut() {
            if known.realm == realm && topic::matches(&filter, &known.name) {
                known.subscriptions.push(id);
            }
        }
        Ok(id)
    }

    fn judge_subscribe(&self, request: &Subscribe) -> Result<(), refusal::Refusal> {
        if self.closed {
            return Err(refusal::Refusal::Closed);
        }
        topic::check_filter(&request.filter).map_err(refusal::Refusal::BadFilter)?;
        if topic::is_system(&request.filter) {
            return Err(refusal::Refusal::SystemTopic);
        }
        if matches!(&request.sources, Sources::Nodes(nodes) if nodes.is_empty()) {
            return Err(refusal::Refusal::NoSources);
        }
        if matches!(&request.sources, Sources::Org(name) if !topic::is_topic_segment(name)) {
            return Err(refusal::Refusal::BadOrg);
        }
        if self.subscriptions.len() >= self.config.limits.subscriptions {
            return Err(refusal::Refusal::TooManySubscriptions);
        }
        self.check_group(request.group, &request.realm, &request.filter)?;
        // A group that never had keys gives none to this one either.
        if let Some(group) = request.group
            && let Some(status) = self.group(group)
            && let (None, Some(reason)) = (status.policy, status.failed)
        {
            return Err(refusal::Refusal::Group { group, reason });
        }
        Ok(())
    }

    fn open_wire(
        &mut self,
        now: Now,
        key: (RealmId, String),
        earlier: &[StationPosition],
    ) -> WireId {
        let earlier = earlier.iter().take(STATIONS);
        let slots = 2 * self.stations.len() + earlier.len();
        let mut continuity = Continuity::new(vec![None; slots]);
        for of in earlier {
            let kept = continuity.import(now, of.station, of.mesh, of.position, of.from);
            debug_assert!(kept, "there is a slot for each");
        }
        let id = self.wires.insert(Wire {
            realm: key.0,
            filter: key.1.clone(),
            holders: Vec::new(),
            continuity,
            asked: Vec::new(),
            refusals: Vec::new(),
            turn: 0,
            armed: None,
            held: Instant::ORIGIN,
        });
        self.wire_index.entry(key).or_insert(id);
        id
    }

    /// Asks every station that was not asked yet, or that refused.
    fn ask_all(&mut self, now: Now, id: WireId) {
        let open: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, side)| side.is_live() && !side.wires.values().any(|wire| *wire == id))
            .map(|(link, _)| link)
            .collect();
        for link in open {
            self.ask(now, link, id);
        }
    }

    /// Asks one station for a wire subscription.
    pub(super) fn ask(&mut self, now: Now, link: LinkId, id: WireId) {
        let Some(wire) = self.wires.get_mut(id) else {
            return;
        };
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let station = side.base.peer().map(|peer| peer.id);
        wire.asked.push((link, now));
        let number = side.next_id();
        side.wires.insert(number, id);
        side.queue_frame(&Frame::Subscribe(wire::Subscribe {
            id: number,
            realm: wire.realm,
            filter: &wire.filter,
            resume: station.and_then(|station| wire.continuity.position_of(&station)),
        }));
        let unread = side.base.unread(now.mono);
        self.timers.insert((
            now.mono.saturating_add(ANSWER_PATIENCE),
            Timer::Subscribe(link, number, unread),
        ));
        self.raise(link);
    }

    /// A station had its time to answer a subscription. One that did not is no station to rely on. `before`: how long its link had not been
    /// read when this deadline was set; an answer may wait behind what this node does not read.
    pub(super) fn subscribe_timeout(
        &mut self,
        now: Now,
        link: LinkId,
        number: u64,
        before: Duration,
    ) {
        let Some(side) = self.links.get(link) else {
            return;
        };
        let Some(wire) = side.wires.get(&number) else {
            return;
        };
        let unread = side.base.unread(now.mono);
        if self.wires.get(*wire).is_none_or(|wire| wire.carries(link)) {
            return;
        }
        if unread > before {
            self.timers.insert((
                now.mono.saturating_add(unread - before),
                Timer::Subscribe(link, number, unread),
            ));
            return;
        }
        self.end_link(
            now,
            link,
            CloseReason::LivenessLost,
            Some("subscribe_unanswered"),
        );
    }

    /// A link's handshake is over: it is asked for everything, and takes publications that wait for a link.
    pub(super) fn link_up(&mut self, now: Now, link: LinkId) {
        let wires: Vec<WireId> = self.wires.iter().map(|(id, _)| id).collect();
        for wire in wires {
            self.ask(now, link, wire);
        }
        self.place_displaced();
    }

    /// Ends a subscription: its stream yields what it holds, then `Ended`; after that the handle is dead.
    ///
    /// # Errors
    /// When it has ended.
    pub fn unsubscribe(&mut self, now: Now, subscription: SubscriptionId) -> Result<(), Misuse> {
        self.at(now);
        let found = self
            .subscriptions
            .get(subscription)
            .ok_or(Misuse::DeadHandle)?;
        if found.is_ended() {
            return Ok(());
        }
        self.end_subscription(subscription, EndReason::Unsubscribed);
        Ok(())
    }

    /// Nothing more comes for a subscription; what its stream holds can still be read.
    pub(super) fn end_subscription(&mut self, id: SubscriptionId, reason: EndReason) {
        self.leave_wire(id);
        self.forget_holds(id);
        self.finish_lanes(id);
        self.forget_lanes(id);
        self.end_stream(id, reason);
    }

    /// The last holder of a wire subscription ends it on every link.
    fn leave_wire(&mut self, subscription: SubscriptionId) {
        let Some(found) = self.subscriptions.get(subscription) else {
            return;
        };
        let id = found.wire;
        let Some(wire) = self.wires.get_mut(id) else {
            return;
        };
        wire.holders.retain(|holder| *holder != subscription);
        if !wire.holders.is_empty() {
            return;
        }
        let Some(wire) = self.wires.remove(id) else {
            return;
        };
        self.disarm(wire.armed, Timer::Wire(id));
        let key = (wire.realm, wire.filter);
        if self.wire_index.get(&key) == Some(&id) {
            self.wire_index.remove(&key);
        }
        let mut asked = Vec::new();
        for (link, side) in self.links.iter_mut() {
            let number = side
                .wires
                .iter()
                .find(|(_, wire)| **wire == id)
                .map(|(number, _)| *number);
            if let Some(number) = number {
                side.wires.remove(&number);
                side.queue_frame(&Frame::Unsubscribe(number));
                asked.push(link);
            }
        }
        for link in asked {
            self.raise(link);
        }
    }

    /// A stream was read to its end.
    pub(super) fn forget_subscription(&mut self, id: SubscriptionId) {
        self.leave_wire(id);
        self.forget_lanes(id);
        if let Some(gone) = self.subscriptions.remove(id) {
            self.pausing -= usize::from(gone.pauses);
            self.remove_source(gone.realm, gone.source);
        }
    }

    /// Ends everything: a goodbye on every link, `Ended` at the end of every stream, every publication settled.
    pub fn close(&mut self, now: Now) {
        let now = self.at(now);
        if self.closed {
            return;
        }
        self.closed = true;
        let streams: Vec<SubscriptionId> = self.subscriptions.iter().map(|(id, _)| id).collect();
        for id in streams {
            self.forget_holds(id);
            self.finish_lanes(id);
            self.forget_lanes(id);
            self.end_stream(id, EndReason::Closed);
        }
        let links: Vec<(LinkId, Option<&str>)> = self
            .links
            .iter()
            .map(|(link, side)| (link, side.base.farewell()))
            .collect();
        for (link, detail) in links {
            self.end_link(now, link, CloseReason::Normal, detail);
        }
        self.settle_all();
        self.leave_all_groups();
    }

    /// The wire subscription an event, an answer or a mark belongs to; none when it ended meanwhile.
    pub(super) fn wire_of(&self, link: LinkId, id: u64) -> Result<Option<WireId>, LinkError> {
        let Some(side) = self.links.get(link) else {
            return Ok(None);
        };
        match side.wires.get(&id) {
            Some(wire) => Ok(Some(*wire)),
            // Unsubscribed meanwhile: what was under way is dropped.
            None if id <= side.last_id => Ok(None),
            None => Err(LinkError::UnknownId),
        }
    }

    /// Whom an anycast is for that came by this wire subscription: one of its holders in turn, or anybody who wants it when none of them does.
    pub(super) fn one_reader(
        &mut self,
        id: WireId,
        readers: &[SubscriptionId],
    ) -> Option<SubscriptionId> {
        let holder = self.wires.get_mut(id).and_then(|wire| {
            wire.turn = wire.turn.wrapping_add(1);
            let wants = |holder: &&SubscriptionId| readers.contains(holder);
            let count = wire.holders.iter().filter(wants).count();
            let turn = wire.turn.checked_rem(count)?;
            wire.holders.iter().filter(wants).nth(turn).copied()
        });
        holder.or_else(|| readers.first().copied())
    }

    /// Whether a pausing stream that this link feeds is full.
    pub(super) fn feeds_full_stream(&self, link: LinkId) -> bool {
        if self.pausing == 0 {
            return false;
        }
        let Some(side) = self.links.get(link) else {
            return false;
        };
        let holders = side.wires.values().filter_map(|wire| self.wires.get(*wire));
        holders.flat_map(|wire| wire.holders.iter()).any(|holder| {
            self.subscriptions
                .get(*holder)
                .is_some_and(Subscription::is_full)
        })
    }
}
