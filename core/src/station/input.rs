//! Bytes that arrive at a station, frame by frame.
//!
//! Decides: what ends a link. Leaves to others: subscriptions (registry), publications (publish). Believes: mono for the handshake.
//! Bounded by: one frame at a time; a peer that does not read its answers is not read either.

use bytes::{Buf, BytesMut};

use super::timers::Timer;
use super::{Station, StationSide};
use crate::LinkId;
use crate::action::{Action, Intake};
use crate::code::{CloseReason, HandshakeRefusal};
use crate::error::LinkError;
use crate::link::Step;
use crate::time::Now;
use crate::wire::{Frame, Goodbye, Phase, Role, Split, next_frame};

impl Station {
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
            let Some(side) = self.links.get_mut(link) else {
                input.clear();
                return Ok(Intake::Open);
            };
            if side.closed {
                input.clear();
                return side.link.error().map_or(Ok(Intake::Open), Err);
            }
            let paused = side.answers >= self.config.limits.answers;
            side.link.handle_paused(now.mono, paused);
            if paused {
                return Ok(Intake::Paused);
            }
            let Split::Frame { body, taken } = next_frame(input, side.link.frame_cap())? else {
                side.link.handle_partial(now.mono, !input.is_empty());
                return Ok(Intake::Open);
            };
            side.link.handle_partial(now.mono, false);
            if side.link.is_up() {
                let frame = Frame::decode(body, Phase::Established)?;
                self.handle_frame(now, link, &frame)?;
            } else {
                self.handshake(now, link, body)?;
            }
            input.advance(taken);
        }
    }

    fn handshake(&mut self, now: Now, link: LinkId, body: &[u8]) -> Result<(), LinkError> {
        let Some(side) = self.links.get_mut(link) else {
            return Ok(());
        };
        let signer = &*self.config.signer.0;
        let step = side.link.handle_frame(now, body, signer);
        let result = match step {
            Ok(Step::Verified(_)) if self.draining => {
                Err(side.link.refuse(HandshakeRefusal::Draining))
            }
            // Stations meet through their own list of peers; this one has none.
            Ok(Step::Verified(peer)) if peer.role == Role::Station => {
                Err(side.link.refuse(HandshakeRefusal::NotAccepted))
            }
            Ok(Step::Verified(_)) => side.link.admit(signer),
            other => other.map(|_| ()),
        };
        while side.link.poll_transmit(&mut side.out) {}
        result
    }

    fn handle_frame(&mut self, now: Now, link: LinkId, frame: &Frame<'_>) -> Result<(), LinkError> {
        match *frame {
            // Answers and events: a station asked its client for nothing.
            Frame::Event(_)
            | Frame::Progress(_)
            | Frame::Published(_)
            | Frame::Refused(_)
            | Frame::Skipped(_)
            | Frame::Subscribed(_) => return Err(LinkError::UnknownId),
            Frame::Goodbye(goodbye) => self.end_link(now, link, goodbye.reason, None),
            Frame::Ping(nonce) => self.answer(link, &Frame::Pong(nonce)),
            Frame::Publish(publish) => {
                self.next_id(link, publish.id)?;
                self.handle_publish(now, link, &publish);
            }
            Frame::Subscribe(subscribe) => {
                self.next_id(link, subscribe.id)?;
                self.subscribe(now, link, &subscribe);
            }
            Frame::Unsubscribe(id) => self.unsubscribe(now, link, id),
            Frame::Interest(_) | Frame::InterestWanted => return Err(LinkError::UnexpectedFrame),
            Frame::Unknown(_) => self.counts.unknown_frames += 1,
            // An answer to a probe this station did not send.
            _ => self.counts.unasked_frames += 1,
        }
        Ok(())
    }

    /// Ids of one direction rise.
    fn next_id(&mut self, link: LinkId, id: u64) -> Result<(), LinkError> {
        let side = self.links.get_mut(link).ok_or(LinkError::IdReused)?;
        if id <= side.last_id {
            return Err(LinkError::IdReused);
        }
        side.last_id = id;
        Ok(())
    }

    /// Queues an answer; it goes before events.
    pub(super) fn answer(&mut self, link: LinkId, frame: &Frame<'_>) {
        if let Some(side) = self.links.get_mut(link)
            && !side.closed
        {
            frame.encode_framed(&mut side.out);
            side.answers += 1;
        }
        self.raise(link);
    }

    /// The transport took so many bytes: readers moved on, so publishers may be answered.
    pub fn handle_written(&mut self, now: Now, link: LinkId, bytes: usize) {
        let now = self.at(now);
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        side.link.handle_written(now.mono, bytes);
        let moved = core::mem::take(&mut side.moved);
        for topic in moved {
            self.release(now, topic);
        }
    }

    /// This side found a fault that ends the link.
    pub(super) fn fail_link(&mut self, now: Now, link: LinkId, error: LinkError) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        if side.closed {
            return;
        }
        // The link finds a frame that is not whole in time by itself, and has failed by now. The handshake's own deadline comes first, so it
        // was up.
        let goodbye = side.link.is_up() || error == LinkError::FrameTimeout;
        side.link.fail(error);
        while side.link.poll_transmit(&mut side.out) {}
        self.counts.links_failed += 1;
        self.end_link(now, link, error.code(), goodbye.then_some(error.text()));
    }

    /// Ends a link: its subscriptions go, a goodbye is queued where the other side can read one, the driver is told.
    pub(super) fn end_link(
        &mut self,
        now: Now,
        link: LinkId,
        reason: CloseReason,
        detail: Option<&str>,
    ) {
        self.end_subscriptions(now, link);
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        if side.closed {
            return;
        }
        side.closed = true;
        if let Some(detail) = detail {
            Frame::Goodbye(Goodbye { reason, detail }).encode_framed(&mut side.out);
        }
        let armed = side.armed.take();
        self.disarm(armed, Timer::Link(link));
        self.raise(link);
        self.actions.push_back(Action::Close { link, reason });
    }
}

impl StationSide {
    /// Whether its handshake is over and it was not ended.
    pub(super) fn is_live(&self) -> bool {
        self.link.is_up() && !self.closed
    }
}
