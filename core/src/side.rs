//! This side of one link, as both large machines keep it: the frame that comes next, what goes first, the deadline in their index.
//!
//! Decides: when a link is not read, which answers go before everything else, what an end leaves to be written, when the clocks say that
//! this side slept. Leaves to others: what frames mean, how long they were under way (`way`), and the index of deadlines, in which it keeps
//! its own up to date. Believes: mono; the wall is told, and compared with it. Bounded by: the answers allowed.

mod way;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use bytes::BytesMut;

use crate::action::Intake;
use crate::code::CloseReason;
use crate::error::LinkError;
use crate::link::{Answered, Link, Peer, Probes};
use crate::time::{Duration, Instant, Now};
use crate::wire::{Frame, Goodbye, Split, next_frame};
use way::Way;
#[cfg(feature = "sim")]
pub(crate) use way::{PROMPT, SILENT};
pub(crate) use way::{Unread, prompt};

/// What went out once does not keep more room than this.
const KEPT: usize = 64 * 1024;

/// By how much the two clocks may part between two inputs, and by how much a deadline may be missed, before this side is thought to have
/// slept.
const SLEPT: Duration = Duration::from_secs(10);

/// Whether this side slept between two inputs: the wall went on and mono did not, or both did and the deadline that was `due` is long past.
/// A step of the wall looks the same.
pub(crate) fn slept(before: Now, now: Now, due: impl FnOnce() -> Option<Instant>) -> bool {
    let waited = now.mono.saturating_since(before.mono);
    let wall = now.wall.since(before.wall);
    let apart = wall.abs_diff(i64::try_from(waited.as_millis()).unwrap_or(i64::MAX));
    u128::from(apart) > SLEPT.as_millis()
        || waited > SLEPT && due().is_some_and(|due| now.mono.saturating_since(due) > SLEPT)
}

/// What is at the front of a read buffer.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    /// A whole frame. Take `taken` bytes off the buffer when it was handled.
    Frame { body: &'a [u8], taken: usize },
    /// Less than a frame; with its length it will be `whole` bytes, as far as is known.
    More { whole: usize },
    /// Nothing may be taken now.
    Stop(Intake),
}

/// A link with its bookkeeping.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) link: Link,
    /// Whole frames that go before everything else: the handshake, answers, pongs, the goodbye.
    first: Vec<u8>,
    /// How many of them its peer has asked for.
    answers: usize,
    /// `Ready` was raised and not yet drained.
    ready: bool,
    /// It ended; only what is in `first` may still go.
    closed: bool,
    /// The deadline in the owner's index.
    armed: Option<Instant>,
    /// Since when it is what it is.
    since: Now,
    way: Way,
    /// How long this side would not read it; since when it does not, and what had not been read by then. What it could not read, and silences,
    /// are `way`'s alone: a peer is given no more time for what it makes itself.
    unread: Duration,
    unread_since: Option<(Instant, u64)>,
}

impl Side {
    pub(crate) fn new(now: Now, link: Link) -> Self {
        let mut side = Self {
            link,
            first: Vec::new(),
            answers: 0,
            ready: false,
            closed: false,
            armed: None,
            since: now,
            way: Way::new(now),
            unread: Duration::ZERO,
            unread_since: None,
        };
        side.queue_handshake();
        side
    }

    /// Whether its handshake is over and it was not ended.
    pub(crate) fn is_live(&self) -> bool {
        self.link.is_up() && !self.closed
    }

    /// Whether it was ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.link.peer()
    }

    /// What to say at an end without a fault, when the other side can read it.
    pub(crate) fn farewell(&self) -> Option<&'static str> {
        self.link.is_up().then_some("")
    }

    /// The frame at the front of `input`, unless the link ended, its peer does not read `answers` answers, or the owner has `held` it.
    pub(crate) fn next<'a>(
        &mut self,
        now: Now,
        held: bool,
        answers: usize,
        input: &'a mut BytesMut,
    ) -> Result<Next<'a>, LinkError> {
        if self.closed {
            input.clear();
            return self.link.error().map_or(Ok(Next::Stop(Intake::Open)), Err);
        }
        let paused = held || self.answers >= answers;
        self.pause(now, paused);
        if paused {
            return Ok(Next::Stop(Intake::Paused));
        }
        let buffered = input.len();
        match next_frame(input, self.link.frame_cap())? {
            Split::Frame { body, taken } => {
                self.way.take(now);
                self.link.handle_partial(now.mono, false);
                Ok(Next::Frame { body, taken })
            }
            Split::More(missing) => {
                self.link.handle_partial(now.mono, buffered > 0);
                Ok(Next::More {
                    whole: buffered + missing,
                })
            }
        }
    }

    /// Says whether this side reads it.
    pub(crate) fn pause(&mut self, now: Now, paused: bool) {
        self.link.handle_paused(now.mono, paused);
        if paused {
            let unread = self.way.ran();
            self.unread_since.get_or_insert((now.mono, unread));
        } else if let Some((since, unread)) = self.unread_since.take() {
            let stood_still = now.mono.saturating_since(since);
            self.unread += stood_still;
            self.way.stand_still(unread, stood_still);
        }
    }

    /// This side was away for a while: what came meanwhile was not read.
    pub(crate) fn miss(&mut self, unread: Unread) {
        self.way.miss(unread);
    }

    /// The moment at or after which what is read now was said, as far as this side can know.
    pub(crate) fn said(&self, now: Now) -> Now {
        self.way.said(now)
    }

    /// Whether this side reads it.
    pub(crate) fn is_read(&self) -> bool {
        self.unread_since.is_none()
    }

    /// How long it was not read until now.
    pub(crate) fn unread(&self, now: Instant) -> Duration {
        let current = self.unread_since;
        let current = current.map(|(since, _)| now.saturating_since(since));
        self.unread.saturating_add(current.unwrap_or_default())
    }

    /// Queues what the link itself has to say.
    pub(crate) fn queue_handshake(&mut self) {
        while self.link.poll_transmit(&mut self.first) {}
    }

    /// The handshake is over.
    pub(crate) fn rise(&mut self, now: Now) {
        self.way.rise(now);
        self.since = now;
    }

    /// Queues an answer.
    pub(crate) fn answer(&mut self, frame: &Frame<'_>) {
        if !self.closed {
            let before = self.first.len();
            frame.encode_framed(&mut self.first);
            self.link.handle_queued(self.first.len() - before);
            self.answers += 1;
        }
    }

    /// So many bytes that are not in `first` were handed out.
    pub(crate) fn handed(&mut self, bytes: usize) {
        self.link.handle_queued(bytes);
    }

    /// The transport took so many bytes. True when the link's deadline is to be looked at.
    pub(crate) fn written(&mut self, now: Now, bytes: usize) -> bool {
        let waited = self.link.probe_waits();
        self.link.handle_written(now, bytes);
        waited && !self.link.probe_waits()
    }

    /// A `pong` came. False: it answers no outstanding probe.
    pub(crate) fn pong(&mut self, now: Now, nonce: &[u8; 16]) -> bool {
        let counts = self.link.handle_pong(now, nonce);
        if counts {
            self.way.answer(now);
        }
        counts
    }

    /// Probes the other side at once.
    pub(crate) fn suspect(&mut self, now: Now) {
        if self.is_live() {
            self.link.handle_suspect(now.mono);
            self.queue_probe(now);
        }
    }

    /// Queues a probe, if one is due.
    fn queue_probe(&mut self, now: Now) {
        let before = self.link.probes().sent;
        self.queue_handshake();
        if self.link.probes().sent != before {
            self.way.ask(now);
        }
    }

    /// When a frame was last taken off it.
    pub(crate) fn heard(&self) -> Option<Now> {
        self.way.heard()
    }

    /// Since when it is what it is: begun, up.
    pub(crate) fn since(&self) -> Now {
        self.since
    }

    /// The last probe that was answered.
    pub(crate) fn answered(&self) -> Option<Answered> {
        self.link.answered()
    }

    /// Counts of its probes.
    pub(crate) fn probes(&self) -> Probes {
        self.link.probes()
    }

    /// Moves what goes first to `out`; false when there is nothing.
    #[inline]
    pub(crate) fn take_first(&mut self, out: &mut Vec<u8>) -> bool {
        let there = !self.first.is_empty();
        if there {
            self.append_first(out);
        }
        there
    }

    #[inline(never)]
    fn append_first(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.first);
        self.answers = 0;
        if self.first.capacity() > KEPT {
            self.first = Vec::new();
        }
    }

    /// Whether something waits, here or (`more`) at its owner, that was not announced. It counts as announced from now on.
    pub(crate) fn take_ready(&mut self, more: bool) -> bool {
        let raise = !self.ready && (more || !self.first.is_empty());
        self.ready |= raise;
        raise
    }

    /// Everything was handed out.
    pub(crate) fn drained(&mut self) {
        self.ready = false;
    }

    /// Ends the link itself for a fault found here. What to say in the goodbye, where the other side can read one.
    pub(crate) fn fail(&mut self, error: LinkError) -> Option<&'static str> {
        // The link finds these by itself, and has failed by now. The handshake's own deadline comes first, so it was up.
        let late = matches!(
            error,
            LinkError::FrameTimeout | LinkError::LivenessLost | LinkError::WriteStalled
        );
        let goodbye = self.link.is_up() || late;
        self.link.fail(error);
        self.queue_handshake();
        goodbye.then_some(error.text())
    }

    /// Nothing more comes of it; `detail` goes into a goodbye. The deadline to be taken out of the index. Once.
    pub(crate) fn end(&mut self, reason: CloseReason, detail: Option<&str>) -> Option<Instant> {
        if let Some(detail) = detail
            && !self.closed
        {
            Frame::Goodbye(Goodbye { reason, detail }).encode_framed(&mut self.first);
        }
        self.closed = true;
        self.armed.take()
    }

    /// Brings its deadline in the index up to date, where `timer` names it. One that moved back stays where it is and is looked at early.
    pub(crate) fn rearm<T: Ord + Copy>(&mut self, index: &mut BTreeSet<(Instant, T)>, timer: T) {
        let Some(at) = self.link.poll_timeout().filter(|_| !self.closed) else {
            return;
        };
        if self.armed.is_some_and(|armed| armed <= at) {
            return;
        }
        if let Some(armed) = self.armed.replace(at) {
            index.remove(&(armed, timer));
        }
        index.insert((at, timer));
    }

    /// The deadline in the index has come.
    pub(crate) fn handle_timeout(&mut self, now: Now) -> Result<(), LinkError> {
        self.armed = None;
        if self.closed {
            return Ok(());
        }
        self.link.handle_timeout(now.mono)?;
        self.queue_probe(now);
        Ok(())
    }

    pub(crate) fn memory(&self) -> usize {
        self.first.capacity()
    }
}
