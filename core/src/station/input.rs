//! Bytes that arrive at a station, frame by frame.
//!
//! Decides: what ends a link. Leaves to others: subscriptions (registry), publications (publish). Believes: mono for the handshake.
//! Bounded by: one frame at a time, long ones within a budget (reads); a peer that does not read its answers is not read either.

use bytes::{Buf, BytesMut};

use super::timers::Timer;
use super::topics;
use super::{Station, StationSide, Task};
use crate::LinkId;
use crate::action::Intake;
use crate::code::{CloseReason, HandshakeRefusal};
use crate::error::LinkError;
use crate::link::Step;
use crate::side::Next;
use crate::time::Now;
use crate::wire::{Frame, Phase, Role};

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
            let answers = self.config.limits.answers;
            let (body, taken) = match side.base.next(now, false, answers, input)? {
                Next::Frame { body, taken } => (body, taken),
                Next::More { whole } => return Ok(self.begin_frame(now, link, whole)),
                Next::Stop(intake) => {
                    if intake == Intake::Paused {
                        self.stall(now, link)?;
                    }
                    return Ok(intake);
                }
            };
            let up = side.base.link.is_up();
            self.end_frame(link);
            if up {
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
        let step = side.base.link.handle_frame(now, body, signer);
        let result = match step {
            Ok(Step::Verified(_)) if self.draining => {
                Err(side.base.link.refuse(HandshakeRefusal::Draining))
            }
            // Stations meet through their own list of peers; this one has none.
            Ok(Step::Verified(peer)) if peer.role == Role::Station => {
                Err(side.base.link.refuse(HandshakeRefusal::NotAccepted))
            }
            Ok(Step::Verified(peer)) => side.base.link.admit(signer).map(|()| {
                side.longest = topics::longest_object(peer.max_frame);
                side.base.rise(now);
            }),
            other => other.map(|_| ()),
        };
        side.base.queue_handshake();
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
            Frame::Pong(nonce) => {
                if let Some(side) = self.links.get_mut(link) {
                    self.counts.stray_pongs += u64::from(!side.base.pong(now, nonce));
                }
            }
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
            // Frames of a handshake are refused before; what is left is unknown.
            _ => self.counts.unknown_frames += 1,
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
        if let Some(side) = self.links.get_mut(link) {
            side.base.answer(frame);
        }
        self.raise(link);
    }

    /// The transport took so many bytes: readers moved on, so publishers may be answered.
    pub fn handle_written(&mut self, now: Now, link: LinkId, bytes: usize) {
        let now = self.at(now);
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        self.counts.flushes += u64::from(bytes > 0);
        let probed = side.base.written(now, bytes);
        let has_moved = !side.moved.is_empty();
        if probed {
            self.arm_link(link);
        }
        if has_moved {
            self.release_moved(now, link);
        }
        if self.draining {
            self.leave_if_level(now, link);
        }
    }

    #[inline(never)]
    fn release_moved(&mut self, now: Now, link: LinkId) {
        let side = self.links.get_mut(link);
        let moved = side.map(|side| core::mem::take(&mut side.moved));
        for topic in moved.into_iter().flatten() {
            self.release(now, topic);
        }
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
        self.counts.links_failed += 1;
        self.counts.key_mismatches += u64::from(error == LinkError::KeyMismatch);
        self.end_link(now, link, error.code(), goodbye);
    }

    /// Ends a link: its subscriptions go, a goodbye is queued where the other side can read one, the driver is told.
    pub(super) fn end_link(
        &mut self,
        now: Now,
        link: LinkId,
        reason: CloseReason,
        detail: Option<&str>,
    ) {
        if self.stop_link(now, link, reason, detail) {
            self.raise(link);
            self.actions.push_back(Task {
                link,
                close: Some(reason),
            });
        }
    }

    /// Nothing more comes of this link. False when it had ended.
    pub(super) fn stop_link(
        &mut self,
        now: Now,
        link: LinkId,
        reason: CloseReason,
        detail: Option<&str>,
    ) -> bool {
        self.end_subscriptions(now, link);
        let Some(side) = self.links.get_mut(link) else {
            return false;
        };
        if side.base.is_closed() {
            return false;
        }
        let armed = side.base.end(reason, detail);
        self.end_frame(link);
        self.disarm(armed, Timer::Link(link));
        true
    }
}

impl StationSide {
    /// Whether its handshake is over and it was not ended.
    pub(super) fn is_live(&self) -> bool {
        self.base.is_live()
    }
}
