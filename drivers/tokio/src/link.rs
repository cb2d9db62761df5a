//! One link's task: a socket on one side, the engine on the other.
//!
//! Decides: when to read, to write and to wait. Leaves to others: what bytes mean
//! (`tidings::pump`). Believes: tokio's timer, for the second a closing link is given. Bounded by:
//! one read and one write between two looks at the machine; the buffers of `LinkIo`.
//!
//! A blocked write does not stop reading, and a paused reader does not stop writing.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tidings::Intake;
use tidings::code::CloseReason;
use tidings::pump::{LinkIo, Machine};
use tidings_common::{IoCounters, patience};
use tidings_tls::TlsFault;
use tokio::io::Interest;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::{Host, Life, Seat};
pub(crate) use crate::wire::MOST_READ;
use crate::wire::{Wire, not_now};

/// What the machine said to one look.
struct Look {
    /// There is something to write.
    pending: bool,
    killed: bool,
    /// When to look again for a spent budget.
    later: Duration,
}

struct Task<H: Host> {
    /// Closed before the seat is given up: whoever waits for that finds the socket gone.
    wire: Wire,
    seat: Seat<H>,
    io: LinkIo,
    /// Bytes written since the machine last heard of it.
    wrote: usize,
    /// Whether there are bytes the machine has not seen.
    fresh: bool,
    intake: Intake,
    /// The host is busy: what was read waits to be handed in.
    held: bool,
    /// The machine takes nothing more from this link.
    deaf: bool,
    /// The socket takes nothing more.
    mute: bool,
    /// The socket may have something to read.
    readable: bool,
    /// The socket brings nothing more.
    ended: bool,
    /// Why the link is being closed.
    closing: Option<CloseReason>,
    /// Until when a link that is closing, or whose other side is gone, is kept.
    close_at: Option<Instant>,
    shut: bool,
    /// When an artificially delayed write may go.
    write_at: Option<Instant>,
    /// What the socket did since the last look.
    counters: IoCounters,
}

/// Runs a link until its end. `early` is what came before it was one.
pub(crate) async fn run<H: Host>(seat: Seat<H>, wire: Wire, early: BytesMut, wake: Arc<Notify>) {
    let mut io = LinkIo::new(seat.link);
    let fresh = !early.is_empty();
    *io.input() = early;
    let mut task = Task {
        wire,
        seat,
        io,
        wrote: 0,
        fresh,
        intake: Intake::Open,
        held: false,
        deaf: false,
        mute: false,
        readable: false,
        ended: false,
        closing: None,
        close_at: None,
        shut: false,
        write_at: None,
        counters: IoCounters::default(),
    };
    loop {
        let look = task.look();
        if look.killed || task.over(&look).await {
            return;
        }
        let moved = task.read() | task.write(&look);
        if moved {
            tokio::task::consume_budget().await;
        } else if task.held && H::help(&task.seat.engine) {
            // Whoever reads the answers has its turn.
            tokio::task::yield_now().await;
        } else {
            task.wait(&look, &wake).await;
        }
    }
}

impl<H: Host> Task<H> {
    /// One locked turn: reports the last write, hands in the last read, gathers the next write.
    fn look(&mut self) -> Look {
        let engine = Arc::clone(&self.seat.engine);
        let link = self.seat.link;
        let look = engine.with_own(link, |state, now| {
            state.io.add(std::mem::take(&mut self.counters));
            self.closing = state.closing(link);
            let wrote = std::mem::take(&mut self.wrote);
            let fresh = std::mem::take(&mut self.fresh);
            // Read or not, the machine knows the time before it writes how old something is.
            if wrote > 0 || !fresh {
                self.io.wrote(state.host.machine(), now, wrote);
            }
            let waiting = fresh || self.held || self.intake != Intake::Open;
            self.held = waiting && !self.deaf && state.host.is_busy();
            if self.held {
                state.set_paused(link, true);
            } else if waiting && !self.deaf {
                match self.io.handle_read(state.host.machine(), now) {
                    Ok(intake) => self.intake = intake,
                    // The machine has queued its goodbye and asked for the link to be closed.
                    Err(_) => (self.deaf, self.intake) = (true, Intake::Open),
                }
                state.host.moved();
                state.set_paused(link, self.intake == Intake::Paused);
            }
            let later = match state.host.machine().poll_timeout() {
                Some(at) => at.saturating_since(now.mono).max(patience::LATER),
                None => patience::LATER,
            };
            Look {
                pending: !self.mute && self.io.fill(state.host.machine()),
                killed: state.life == Life::Killed,
                later,
            }
        });
        if self.closing.is_some() && self.close_at.is_none() {
            self.close_at = Some(Instant::now() + patience::CLOSE_LINK);
        }
        if look.pending && self.write_at.is_none() {
            self.write_at = engine
                .tuning
                .delay_writes
                .map(|delay| Instant::now() + delay);
        }
        look
    }

    /// Whether the link has come to its end. A closing one that wrote all it had says so to the
    /// other side first, and then waits for its answer: a socket closed with bytes unread would
    /// take the goodbye back.
    async fn over(&mut self, look: &Look) -> bool {
        if let Some(reason) = self.closing {
            self.seat.reason = reason;
        }
        if self.close_at.is_some_and(|at| Instant::now() >= at) {
            return true;
        }
        if self.closing.is_some() {
            if self.ended {
                return true;
            }
            if !look.pending && !self.shut && (self.mute || !self.wire.owes()) {
                match self.wire.close().await {
                    Ok(shut) => self.shut = shut,
                    Err(_) => return true,
                }
            }
            return false;
        }
        // What came before the end is the machine's first.
        self.ended && (self.reads_on() || self.deaf)
    }

    /// The machine has seen what was read and takes more.
    fn reads_on(&self) -> bool {
        self.intake == Intake::Open && !self.held
    }

    /// Reads once. True when something came, or the end did.
    fn read(&mut self) -> bool {
        let discard = self.deaf || self.closing.is_some();
        if self.ended || !self.readable || !(discard || self.reads_on()) {
            return false;
        }
        self.io.reserve();
        let before = self.io.input().len();
        match self.wire.try_read(self.io.input()) {
            Ok(came) => {
                self.ended = came.ended;
                self.counters.reads += u64::from(came.bytes > 0);
                self.counters.bytes_read += came.bytes as u64;
                if let Some(fault) = came.fault {
                    self.seat.reason = reason(fault);
                }
                if discard {
                    self.io.input().clear();
                } else {
                    self.fresh |= self.io.input().len() > before;
                }
            }
            Err(error) if not_now(error.kind()) => {
                self.readable = false;
                if self.io.input().is_empty() {
                    // Links that say nothing keep no buffer; there may be thousands.
                    drop(std::mem::take(self.io.input()));
                }
                return false;
            }
            Err(_) => self.ended = true,
        }
        true
    }

    /// Writes once. True when something went.
    fn write(&mut self, look: &Look) -> bool {
        if !self.writes(look) || self.write_at.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        match self.wire.try_write(&self.io) {
            Ok(went) if went.bytes > 0 => {
                self.wrote += went.link;
                self.write_at = None;
                self.counters.writes += 1;
                self.counters.bytes_written += went.bytes as u64;
                self.counters.partial_writes += u64::from(went.partial);
            }
            Err(error) if not_now(error.kind()) => return false,
            // The other side is gone, but what it said before may still be here to read.
            Ok(_) | Err(_) => {
                self.mute = true;
                self.close_at
                    .get_or_insert_with(|| Instant::now() + patience::CLOSE_LINK);
            }
        }
        true
    }

    /// There is something to write: the machine's, or TLS's own.
    fn writes(&self, look: &Look) -> bool {
        look.pending || (!self.mute && self.wire.owes())
    }

    /// Waits for the socket, the engine or a deadline.
    async fn wait(&mut self, look: &Look, wake: &Notify) {
        let discard = self.deaf || self.closing.is_some();
        let reads = !self.ended && (discard || self.reads_on());
        let delayed = self
            .write_at
            .filter(|at| look.pending && Instant::now() < *at);
        let interest = match (reads, self.writes(look) && delayed.is_none()) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        let later = (self.intake == Intake::Later).then(|| Instant::now() + look.later);
        let until = [self.close_at, delayed, later].into_iter().flatten().min();
        let ready = async {
            match interest {
                Some(interest) => self.wire.ready(interest).await,
                None => pending().await,
            }
        };
        let deadline = async {
            match until {
                Some(at) => tokio::time::sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = wake.notified() => {
                // Whoever woke this link may have more to send: one write then takes all of it.
                if !look.pending {
                    tokio::task::yield_now().await;
                }
            }
            ready = ready => match ready {
                Ok(ready) => self.readable |= ready.is_readable(),
                Err(_) => self.ended = true,
            },
            () = deadline => {}
        }
    }
}

/// What the machine is told of a channel that cannot go on.
fn reason(fault: TlsFault) -> CloseReason {
    match fault {
        TlsFault::Refused | TlsFault::NoRawKey | TlsFault::BadKeyForm => CloseReason::Refused,
        _ => CloseReason::ProtocolError,
    }
}
