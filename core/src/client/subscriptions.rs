//! Subscriptions towards stations: one wire subscription per realm and filter, on every link.
//!
//! Decides: when a subscription is carried, interrupted, and carried again, and what its readers are told of it. Leaves to others: facts
//! (receive), streams. Believes: wall times in notices. Bounded by: `ClientLimits::subscriptions`; one wire subscription on each link.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::streams::Subscription;
use super::timers::Timer;
use super::{Client, Sources, Subscribe, WireId};
use crate::code::{CloseReason, EndReason, GapReason, SkipReason, SubscribeRefusal};
use crate::error::LinkError;
use crate::notice::Notice;
use crate::refusal::{Misuse, Refusal, Refused};
use crate::time::{Now, WallMs};
use crate::topic;
use crate::wire::{self, Frame, Position};
use crate::{LinkId, RealmId, SubscriptionId};

/// How long a station may take to answer a subscription; time in which this node does not read apart.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// A link whose station accepted the subscription and has not withdrawn it.
#[derive(Debug)]
pub(super) struct Carrier {
    link: LinkId,
    pub(super) position: Position,
    /// Nothing is missing up to here: the last `progress` less what it was behind, or the acceptance.
    known_until: WallMs,
}

/// One (realm, filter) asked of every station.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) realm: RealmId,
    pub(super) filter: String,
    pub(super) holders: Vec<SubscriptionId>,
    pub(super) carriers: Vec<Carrier>,
    /// Whose turn it is for an anycast.
    turn: usize,
    /// When the last carrier ended, while none carries: since when publications may be missing.
    interrupted: Option<WallMs>,
    /// The greatest `known_until` of carriers that ended while others carried.
    known_until: WallMs,
}

impl Client {
    /// Subscribes: the stream is readable at once, and says what may be missing from its first acceptance on.
    ///
    /// # Errors
    /// `Closed`, `BadFilter`, `SystemTopic`, `NoSources`, `TooManySubscriptions`; the request comes back.
    pub fn subscribe(
        &mut self,
        now: Now,
        request: Subscribe,
    ) -> Result<SubscriptionId, Refused<Subscribe>> {
        let now = self.at(now);
        if let Err(reason) = self.judge_subscribe(&request) {
            return Err(Refused { reason, request });
        }
        let key = (request.realm, request.filter.clone());
        let wire = match self.wire_index.get(&key) {
            Some(wire) => *wire,
            None => self.open_wire(key),
        };
        self.ask_all(now, wire);
        let limits = &self.config.limits;
        let mut made = Subscription::new(request, wire, limits.queue_capacity, limits.held_bytes);
        if self
            .wires
            .get(wire)
            .is_some_and(|wire| !wire.carriers.is_empty())
        {
            made.accepted = Some(now.wall);
        }
        let (realm, filter, pauses) = (made.realm, made.filter.clone(), made.pauses);
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

    fn judge_subscribe(&self, request: &Subscribe) -> Result<(), Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        topic::check_filter(&request.filter).map_err(Refusal::BadFilter)?;
        if topic::is_system(&request.filter) {
            return Err(Refusal::SystemTopic);
        }
        if matches!(&request.sources, Sources::Nodes(nodes) if nodes.is_empty()) {
            return Err(Refusal::NoSources);
        }
        if self.subscriptions.len() >= self.config.limits.subscriptions {
            return Err(Refusal::TooManySubscriptions);
        }
        Ok(())
    }

    fn open_wire(&mut self, key: (RealmId, String)) -> WireId {
        let id = self.wires.insert(Wire {
            realm: key.0,
            filter: key.1.clone(),
            holders: Vec::new(),
            carriers: Vec::new(),
            turn: 0,
            interrupted: None,
            known_until: WallMs::new(0),
        });
        self.wire_index.insert(key, id);
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
    fn ask(&mut self, now: Now, link: LinkId, id: WireId) {
        let Some(wire) = self.wires.get(id) else {
            return;
        };
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let number = side.next_id();
        side.wires.insert(number, id);
        side.queue_frame(&Frame::Subscribe(wire::Subscribe {
            id: number,
            realm: wire.realm,
            filter: &wire.filter,
            resume: None,
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
        let carries = |carrier: &Carrier| carrier.link == link;
        if self
            .wires
            .get(*wire)
            .is_none_or(|wire| wire.carriers.iter().any(carries))
        {
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
        self.wire_index.remove(&(wire.realm, wire.filter));
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
        if self
            .subscriptions
            .remove(id)
            .is_some_and(|gone| gone.pauses)
        {
            self.pausing -= 1;
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

    pub(super) fn handle_subscribed(
        &mut self,
        now: Now,
        link: LinkId,
        subscribed: &wire::Subscribed,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, subscribed.id)? else {
            return Ok(());
        };
        let Some(wire) = self.wires.get_mut(id) else {
            return Ok(());
        };
        if wire.carriers.iter().any(|carrier| carrier.link == link) {
            // Accepted before: its position is moved by its reader alone.
            self.counts.unasked_frames += 1;
            return Ok(());
        }
        wire.carriers.push(Carrier {
            link,
            position: subscribed.position,
            known_until: now.wall,
        });
        let interrupted = wire.interrupted.take();
        let holders = wire.holders.clone();
        for holder in holders {
            if let Some(found) = self.subscriptions.get_mut(holder) {
                found.accepted.get_or_insert(now.wall);
                found.refused = None;
            }
            // Nothing was asked to be replayed, so what was published meanwhile is lost to this stream.
            if let Some(from) = interrupted {
                let to = now.wall;
                let from = from.min(to);
                self.notify(
                    holder,
                    Notice::Gap {
                        from,
                        to,
                        reason: GapReason::Lost,
                        count: None,
                    },
                );
            }
        }
        Ok(())
    }

    pub(super) fn handle_refused(
        &mut self,
        now: Now,
        link: LinkId,
        refused: &wire::Refused,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, refused.id)? else {
            return Ok(());
        };
        let Some(side) = self.links.get_mut(link) else {
            return Ok(());
        };
        side.wires.remove(&refused.id);
        let station = side.station;
        self.carrier_ended(now, id, link, CloseReason::Refused);
        let holders = self
            .wires
            .get(id)
            .map_or_else(Vec::new, |wire| wire.holders.clone());
        let reason: SubscribeRefusal = refused.reason;
        for holder in holders {
            if let Some(found) = self.subscriptions.get_mut(holder) {
                found.refused = Some(reason);
            }
            self.notify(holder, Notice::SubscriptionRefused { station, reason });
        }
        Ok(())
    }

    /// A link no longer carries a wire subscription. When it was the last one, the readers are told.
    pub(super) fn carrier_ended(
        &mut self,
        now: Now,
        id: WireId,
        link: LinkId,
        reason: CloseReason,
    ) {
        let Some(wire) = self.wires.get_mut(id) else {
            return;
        };
        let Some(at) = wire
            .carriers
            .iter()
            .position(|carrier| carrier.link == link)
        else {
            return;
        };
        let carrier = wire.carriers.swap_remove(at);
        wire.known_until = wire.known_until.max(carrier.known_until);
        if !wire.carriers.is_empty() {
            return;
        }
        // Not later than now, whatever the wall did meanwhile.
        let from = core::mem::take(&mut wire.known_until).min(now.wall);
        wire.interrupted = Some(from);
        let holders = wire.holders.clone();
        for holder in holders {
            self.notify(holder, Notice::Interrupted { from, reason });
        }
    }

    pub(super) fn handle_progress(
        &mut self,
        now: Now,
        link: LinkId,
        progress: &wire::Progress,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, progress.id)? else {
            return Ok(());
        };
        let Some(carrier) = self.carrier_mut(id, link) else {
            self.counts.unasked_frames += 1;
            return Ok(());
        };
        carrier.position.offset = carrier.position.offset.max(progress.offset);
        carrier.known_until = now.wall.saturating_sub(progress.behind_ms);
        Ok(())
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

    /// The carrier of a wire subscription on a link.
    pub(super) fn carrier_mut(&mut self, id: WireId, link: LinkId) -> Option<&mut Carrier> {
        self.wires
            .get_mut(id)?
            .carriers
            .iter_mut()
            .find(|carrier| carrier.link == link)
    }

    /// A live station gave publications up at this place.
    pub(super) fn handle_skipped(
        &mut self,
        now: Now,
        link: LinkId,
        skipped: &wire::Skipped,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, skipped.id)? else {
            return Ok(());
        };
        if self.carrier_mut(id, link).is_none() {
            self.counts.unasked_frames += 1;
            return Ok(());
        }
        let reason = match skipped.reason {
            SkipReason::PeerInterrupted => GapReason::PeerInterrupted,
            _ => GapReason::StationSkipped,
        };
        let (from, to) = (
            now.wall.saturating_sub(skipped.from),
            now.wall.saturating_sub(skipped.to),
        );
        let count = (skipped.count > 0).then_some(skipped.count);
        let holders = self
            .wires
            .get(id)
            .map_or_else(Vec::new, |wire| wire.holders.clone());
        for holder in holders {
            self.notify(
                holder,
                Notice::Gap {
                    from,
                    to,
                    reason,
                    count,
                },
            );
        }
        Ok(())
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
