//! The links of a node: dialling, the handshake, frames in, frames out.
//!
//! Decides: when a station is dialled again, what ends a link. Leaves to others: what an event or an answer means. Believes: mono. Bounded
//! by: `ClientLimits::links` and one link per configured station; a peer that does not read its answers is not read either.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use bytes::{Buf, BytesMut};

use super::receive::Reading;
use super::redial::Redial;
use super::timers::Timer;
use super::{Client, WireId};
use crate::action::{Action, Intake, LinkEvent, Ready, StationRef, Transmit};
use crate::code::{CloseReason, DiagnosticCode, HandshakeRefusal};
use crate::error::LinkError;
use crate::link::{Binding, Link, LinkSettings, Step};
use crate::refusal::Misuse;
use crate::rng::Rng;
use crate::side::{Next, Side};
use crate::time::{Instant, Now};
use crate::wire::{
    Frame, MAX_HEAD, Object, PREFIX, Phase, Role, plain_event, publish_head, whole_frame,
};
use crate::{LinkId, NodeId, Ticket};

/// A configured station.
#[derive(Debug)]
pub(super) struct Dialled {
    pin: Option<NodeId>,
    /// A `Dial` is with the driver.
    dialling: bool,
    pub(super) link: Option<LinkId>,
    redial: Redial,
    /// When its link came up.
    up_at: Option<Instant>,
    pub(super) retry_at: Option<Instant>,
    /// Since when it waits or is being dialled.
    pub(super) since: Now,
    /// Links to it that came up.
    pub(super) links: u64,
    pub(super) last_end: Option<CloseReason>,
    pub(super) last_error: Option<LinkError>,
    /// Why the last attempt failed, until one does not.
    pub(super) dial_failure: Option<&'static str>,
}

impl Dialled {
    pub(super) fn new(pin: Option<NodeId>, now: Now, jitter: Rng) -> Self {
        Self {
            pin,
            dialling: false,
            link: None,
            redial: Redial::new(jitter),
            up_at: None,
            retry_at: None,
            since: now,
            links: 0,
            last_end: None,
            last_error: None,
            dial_failure: None,
        }
    }
}

/// One thing to write, in its order.
#[derive(Debug)]
pub(super) enum Out {
    /// Whole frames.
    Frames(Vec<u8>),
    /// A publication under an id of this link.
    Publish { ticket: Ticket, id: u64 },
}

/// A link as the node sees it.
#[derive(Debug)]
pub(super) struct NodeSide {
    pub(super) base: Side,
    pub(super) station: StationRef,
    /// What it carries, by the id of the `subscribe`.
    pub(super) wires: BTreeMap<u64, WireId>,
    /// The last id given out; subscriptions and publications share them.
    pub(super) last_id: u64,
    /// Publications its station has not answered.
    pub(super) unanswered: BTreeMap<u64, Ticket>,
    pub(super) queue: VecDeque<Out>,
    /// Publications handed out, by the byte count at which they are written.
    pub(super) marks: VecDeque<(u64, Ticket)>,
}

impl NodeSide {
    /// Whether something waits that was not announced.
    pub(super) fn take_ready(&mut self) -> bool {
        self.base.take_ready(!self.queue.is_empty())
    }

    /// Something was handed out: whether more follows. When not, the next is announced.
    fn has_more(&mut self) -> bool {
        let more = !self.queue.is_empty();
        if !more {
            self.base.drained();
        }
        more
    }

    /// Whether its handshake is over and it was not ended.
    pub(super) fn is_live(&self) -> bool {
        self.base.is_live()
    }

    /// The longest object whose `publish` its station reads.
    pub(super) fn longest_publication(&self) -> Option<usize> {
        let peer = self.base.peer()?;
        Some((peer.max_frame as usize).saturating_sub(MAX_HEAD))
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn queue_frame(&mut self, frame: &Frame<'_>) {
        let mut bytes = Vec::new();
        frame.encode_framed(&mut bytes);
        self.queue.push_back(Out::Frames(bytes));
    }

    pub(super) fn memory(&self) -> usize {
        self.base.memory()
            + self.queue.capacity() * size_of::<Out>()
            + self.marks.capacity() * size_of::<(u64, Ticket)>()
            + (self.wires.len() + self.unanswered.len()) * 32
    }
}

impl Client {
    pub(super) fn dial_all(&mut self) {
        for station in 0..self.stations.len() as u16 {
            self.dial(StationRef(station));
        }
    }

    pub(super) fn dial(&mut self, station: StationRef) {
        let Some(dialled) = self.stations.get_mut(usize::from(station.0)) else {
            return;
        };
        if self.closed || dialled.dialling || dialled.link.is_some() {
            return;
        }
        dialled.dialling = true;
        dialled.retry_at = None;
        dialled.since = self.now;
        self.actions.push_back(Action::Dial { station });
    }

    /// Waits before dialling again, and longer where the station asked for that and another one is there.
    fn dial_later(&mut self, now: Now, station: StationRef, away: bool) {
        let others = self.links.iter().any(|(_, side)| side.is_live());
        let Some(dialled) = self.stations.get_mut(usize::from(station.0)) else {
            return;
        };
        dialled.dialling = false;
        let up_at = dialled.up_at.take();
        let lived = up_at.map_or(Duration::ZERO, |at| now.mono.saturating_since(at));
        if self.closed {
            return;
        }
        let wait = dialled.redial.after(lived, away && others);
        let at = now.mono.saturating_add(wait);
        dialled.retry_at = Some(at);
        dialled.since = now;
        self.timers.insert((at, Timer::Dial(station)));
    }

    /// Dialling that station did not come to a connection. `reason` is a text of the driver's or its transport's, for the report and
    /// [`LinkStatus::dial_failure`](super::LinkStatus::dial_failure).
    ///
    /// # Errors
    /// [`Misuse::NotDialled`].
    pub fn handle_dial_failed(
        &mut self,
        now: Now,
        station: StationRef,
        reason: &'static str,
    ) -> Result<(), Misuse> {
        let now = self.at(now);
        let dialled = self.stations.get_mut(usize::from(station.0));
        let Some(dialled) = dialled.filter(|dialled| dialled.dialling) else {
            return Err(Misuse::NotDialled);
        };
        dialled.dial_failure = Some(reason);
        self.counts.dials_failed += 1;
        self.report(DiagnosticCode::ConnectFailed, Some(station), reason);
        self.dial_later(now, station, false);
        Ok(())
    }

    /// A transport came up or ended.
    ///
    /// # Errors
    /// [`Misuse`]: a bug in the driver; nothing was changed.
    pub fn handle_link(&mut self, now: Now, event: LinkEvent) -> Result<LinkId, Misuse> {
        let now = self.at(now);
        match event {
            LinkEvent::Up {
                dialled: Some(station),
                binding,
            } => self.begin(now, station, binding),
            LinkEvent::Up { dialled: None, .. } => Err(Misuse::NotDialled),
            LinkEvent::Down { link, reason } => self.link_down(now, link, reason),
        }
    }

    fn begin(&mut self, now: Now, station: StationRef, binding: Binding) -> Result<LinkId, Misuse> {
        let dialled = self
            .stations
            .get_mut(usize::from(station.0))
            .ok_or(Misuse::NotDialled)?;
        if !dialled.dialling {
            return Err(Misuse::NotDialled);
        }
        let signer = &self.config.signer.0;
        let settings = LinkSettings {
            max_frame: self.config.max_frame,
            allow_local: self.config.allow_local,
            probe_every: self.config.probe_every,
            ..LinkSettings::new(signer.profile(), signer.public_key(), Role::Node)
        };
        let nonce = self.entropy.draw();
        let link = Link::dial(now.mono, settings, dialled.pin, binding, nonce)
            .map_err(|_| Misuse::LocalNotAllowed)?;
        let id = self.links.insert(NodeSide {
            base: Side::new(now, link),
            station,
            wires: BTreeMap::new(),
            last_id: 0,
            unanswered: BTreeMap::new(),
            queue: VecDeque::new(),
            marks: VecDeque::new(),
        });
        dialled.dialling = false;
        dialled.dial_failure = None;
        dialled.link = Some(id);
        self.arm_link(id);
        self.raise(id);
        if self.closed {
            self.end_link(now, id, CloseReason::Normal, None);
        }
        Ok(id)
    }

    fn link_down(&mut self, now: Now, link: LinkId, reason: CloseReason) -> Result<LinkId, Misuse> {
        self.links.get(link).ok_or(Misuse::DeadHandle)?;
        self.stop_link(now, link, reason, None);
        if let Some(side) = self.links.remove(link) {
            let error = side.base.link.error();
            let mut away = matches!(
                error,
                Some(LinkError::RefusedByStation(
                    HandshakeRefusal::Full | HandshakeRefusal::Draining
                ))
            );
            if let Some(dialled) = self.stations.get_mut(usize::from(side.station.0)) {
                dialled.link = None;
                dialled.last_error = error.or(dialled.last_error);
                away |= dialled.last_end == Some(CloseReason::Draining);
            }
            self.dial_later(now, side.station, away);
        }
        Ok(link)
    }

    /// Ends a link from this side: a goodbye, then a `Close` action.
    ///
    /// # Errors
    /// When there is no such link.
    pub fn close_link(
        &mut self,
        now: Now,
        link: LinkId,
        reason: CloseReason,
    ) -> Result<(), Misuse> {
        let now = self.at(now);
        let side = self.links.get(link).ok_or(Misuse::DeadHandle)?;
        let detail = side.base.farewell();
        self.end_link(now, link, reason, detail);
        Ok(())
    }

    /// Takes whole frames off the front of `input` and leaves the rest.
    ///
    /// # Errors
    /// What ended this link, again at each further call. A `Close` action was raised.
    pub fn handle_input(
        &mut self,
        now: Now,
        link: LinkId,
        input: &mut BytesMut,
    ) -> Result<Intake, LinkError> {
        let now = self.at(now);
        let taken = self.take_frames(now, link, input);
        if let Err(error) = taken {
            self.fail_link(now, link, error);
            input.clear();
        }
        self.arm_link(link);
        self.raise(link);
        taken
    }

    fn take_frames(
        &mut self,
        now: Now,
        link: LinkId,
        input: &mut BytesMut,
    ) -> Result<Intake, LinkError> {
        loop {
            let held = self.feeds_full_stream(link);
            let Some(side) = self.links.get_mut(link) else {
                input.clear();
                return Ok(Intake::Open);
            };
            let answers = self.config.limits.answers;
            let (body, taken) = match side.base.next(now, held, answers, input)? {
                Next::Frame { body, taken } => (body, taken),
                Next::More { .. } => return Ok(Intake::Open),
                Next::Stop(intake) => return Ok(intake),
            };
            if !side.base.link.is_up() {
                self.handshake(now, link, body)?;
                input.advance(taken);
                continue;
            }
            let cap = side.base.link.frame_cap();
            let events = self.take_events(now, link, cap, input)?;
            if events > 0 {
                input.advance(events);
                continue;
            }
            let body = input.get(PREFIX..taken).unwrap_or_default();
            let frame = Frame::decode(body, Phase::Established)?;
            self.handle_frame(now, link, &frame)?;
            input.advance(taken);
        }
    }

    /// Takes the events at the front of what was read, and answers their bytes. One that follows another finds its link as that one left it, and
    /// mostly comes under the same subscription.
    #[inline(never)]
    fn take_events(
        &mut self,
        now: Now,
        link: LinkId,
        cap: u32,
        input: &[u8],
    ) -> Result<usize, LinkError> {
        let (mut left, mut reading) = (input, Reading::of(link));
        while let Some((body, behind)) = whole_frame(left, cap)
            && let Some((event, object)) = plain_event(body)
        {
            self.handle_event(now, &mut reading, &event, Ok(object))?;
            left = behind;
            if self.pausing > 0 {
                break;
            }
        }
        self.move_on(now, &mut reading);
        Ok(input.len() - left.len())
    }

    fn handshake(&mut self, now: Now, link: LinkId, body: &[u8]) -> Result<(), LinkError> {
        let Some(side) = self.links.get_mut(link) else {
            return Ok(());
        };
        let step = side
            .base
            .link
            .handle_frame(now, body, &*self.config.signer.0);
        side.base.queue_handshake();
        if let Step::Established(_) = step? {
            side.base.rise(now);
            let station = side.station;
            if let Some(dialled) = self.stations.get_mut(usize::from(station.0)) {
                dialled.up_at = Some(now.mono);
                dialled.links += 1;
                dialled.last_error = None;
            }
            self.link_up(now, link);
        }
        Ok(())
    }

    fn handle_frame(&mut self, now: Now, link: LinkId, frame: &Frame<'_>) -> Result<(), LinkError> {
        match *frame {
            Frame::Event(event) => {
                let object = Object::parse(event.publication);
                let mut reading = Reading::of(link);
                self.handle_event(now, &mut reading, &event, object)?;
                self.move_on(now, &mut reading);
            }
            Frame::Goodbye(goodbye) => self.end_link(now, link, goodbye.reason, None),
            Frame::Ping(nonce) => {
                if let Some(side) = self.links.get_mut(link) {
                    side.base.answer(&Frame::Pong(nonce));
                }
            }
            Frame::Pong(nonce) => {
                if let Some(side) = self.links.get_mut(link) {
                    self.counts.stray_pongs += u64::from(!side.base.pong(now, nonce));
                }
            }
            Frame::Progress(progress) => self.handle_progress(now, link, &progress)?,
            Frame::Published(published) => self.handle_published(link, &published)?,
            Frame::Refused(refused) => self.handle_refused(now, link, &refused)?,
            Frame::Skipped(skipped) => self.handle_skipped(now, link, &skipped)?,
            Frame::Subscribed(subscribed) => self.handle_subscribed(now, link, &subscribed)?,
            Frame::Interest(_)
            | Frame::InterestWanted
            | Frame::Publish(_)
            | Frame::Subscribe(_)
            | Frame::Unsubscribe(_) => return Err(LinkError::UnexpectedFrame),
            // Frames of a handshake are refused before; what is left is unknown.
            _ => self.counts.unknown_frames += 1,
        }
        Ok(())
    }

    /// This side found a fault that ends the link.
    pub(super) fn fail_link(&mut self, now: Now, link: LinkId, error: LinkError) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        if side.base.is_closed() {
            return;
        }
        let goodbye = side.base.fail(error);
        let station = side.station;
        if let Some(dialled) = self.stations.get_mut(usize::from(station.0)) {
            dialled.last_error = Some(error);
        }
        self.counts.links_failed += 1;
        self.end_link(now, link, error.code(), goodbye);
    }

    /// Ends a link: what it carried goes, a goodbye is queued where the other side can read one, the driver is told.
    pub(super) fn end_link(
        &mut self,
        now: Now,
        link: LinkId,
        reason: CloseReason,
        detail: Option<&str>,
    ) {
        if self.stop_link(now, link, reason, detail) {
            self.raise(link);
            self.actions.push_back(Action::Close { link, reason });
        }
    }

    /// Nothing more comes of this link: its subscriptions are not carried by it, its publications go elsewhere. False when it had ended.
    fn stop_link(
        &mut self,
        now: Now,
        link: LinkId,
        reason: CloseReason,
        detail: Option<&str>,
    ) -> bool {
        let Some(side) = self.links.get_mut(link) else {
            return false;
        };
        if side.base.is_closed() {
            return false;
        }
        // A link that failed is not up any more: what tells is whether it came up.
        let dialled = self.stations.get(usize::from(side.station.0));
        let code = match reason {
            _ if dialled.is_none_or(|dialled| dialled.up_at.is_none()) => {
                DiagnosticCode::HandshakeFailed
            }
            CloseReason::LivenessLost => DiagnosticCode::LivenessLost,
            CloseReason::ProtocolError => DiagnosticCode::ProtocolError,
            _ => DiagnosticCode::LinkDown,
        };
        let why = side
            .base
            .link
            .error()
            .map_or_else(|| reason.text(), LinkError::text);
        let armed = side.base.end(reason, detail);
        side.queue.clear();
        side.marks.clear();
        let station = side.station;
        let carried = core::mem::take(&mut side.wires);
        let unanswered = core::mem::take(&mut side.unanswered);
        self.disarm(armed, Timer::Link(link));
        if let Some(dialled) = self.stations.get_mut(usize::from(station.0)) {
            dialled.last_end = Some(reason);
        }
        if !self.closed {
            self.report(code, Some(station), why);
        }
        for wire in carried.into_values() {
            self.carrier_ended(now, wire, link, reason);
        }
        self.link_lost(link, unanswered);
        true
    }

    /// The transport took so many bytes.
    pub fn handle_written(&mut self, now: Now, link: LinkId, bytes: usize) {
        let now = self.at(now);
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let probed = side.base.written(now, bytes);
        let written = side.base.link.written();
        let mut taken = Vec::new();
        while side.marks.front().is_some_and(|(mark, _)| *mark <= written) {
            taken.extend(side.marks.pop_front().map(|(_, ticket)| ticket));
        }
        for ticket in taken {
            self.bytes_taken(ticket);
        }
        if probed {
            self.arm_link(link);
        }
    }

    /// The next bytes for a link, appended to `out`; `None` when there is nothing to send now.
    pub fn poll_transmit(&mut self, link: LinkId, out: &mut Vec<u8>) -> Option<Transmit> {
        let before = out.len();
        let side = self.links.get_mut(link)?;
        if side.base.take_first(out) {
            return Some(Transmit {
                head: out.len() - before,
                body: None,
                more: side.has_more(),
            });
        }
        while let Some(next) = side.queue.pop_front() {
            let (body, ticket) = match next {
                Out::Frames(bytes) => {
                    out.extend_from_slice(&bytes);
                    (None, None)
                }
                Out::Publish { ticket, id } => {
                    // Settled meanwhile: its id stays unused.
                    let Some(outgoing) = self.tickets.get(ticket) else {
                        side.unanswered.remove(&id);
                        continue;
                    };
                    publish_head(out, id, outgoing.route, outgoing.object.len());
                    (Some(outgoing.object.clone()), Some(ticket))
                }
            };
            let transmit = Transmit {
                head: out.len() - before,
                body,
                more: side.has_more(),
            };
            side.base.handed(transmit.len());
            side.marks
                .extend(ticket.map(|ticket| (side.base.link.queued(), ticket)));
            return Some(transmit);
        }
        side.base.drained();
        None
    }

    pub(super) fn arm_link(&mut self, link: LinkId) {
        if let Some(side) = self.links.get_mut(link) {
            side.base.rearm(&mut self.timers, Timer::Link(link));
        }
    }

    pub(super) fn link_timeout(&mut self, now: Now, link: LinkId) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        match side.base.handle_timeout(now) {
            Ok(()) => self.arm_link(link),
            Err(error) => self.fail_link(now, link, error),
        }
        self.raise(link);
    }

    /// The clocks say that this side slept: every station is asked at once whether it is still there.
    pub(super) fn suspect_all(&mut self, now: Now) {
        self.counts.clock_jumps += 1;
        for (link, side) in self.links.iter_mut() {
            side.base.suspect(now);
            side.base.rearm(&mut self.timers, Timer::Link(link));
            if side.take_ready() {
                self.actions.push_back(Action::Ready(Ready::Link(link)));
            }
        }
    }
}
