//! One link between a wire and a machine: the part that is the same whoever waits for the wire.
//!
//! Decides: when a link reads, writes and is over. Leaves to others: what bytes mean and what is gathered (`tidings::pump`); waiting, and
//! whose turn it is (the drivers). Believes: the `Now` it is handed. Bounded by: one read and one write between two looks at the
//! machine; the buffers of `LinkIo`.
//!
//! A driver calls [`look`](Link::look), [`is_over`](Link::is_over), [`read`](Link::read) and [`write`](Link::write), in this order, as long
//! as one of the last two moves something, and then waits for the wire, the machine or [`deadline`](Link::deadline). Only `look`
//! needs the machine, so a lock on it is held for that alone. A blocked write does not stop reading, and a paused reader does not stop writing.

use bytes::BytesMut;
use tidings::code::CloseReason;
use tidings::pump::{LinkIo, Machine};
use tidings::{Instant, Intake, LinkId, Now, soonest};
use tidings_tls::TlsFault;

use crate::wire::SLICES;
use crate::{IoCounters, Socket, Wire, not_now, patience};

/// The driver's side of one link.
#[derive(Debug)]
pub struct Link {
    io: LinkIo,
    /// Bytes written since the machine last heard of it.
    wrote: usize,
    /// There are bytes the machine has not seen.
    fresh: bool,
    intake: Intake,
    /// When to try again for a spent budget.
    later: Option<Instant>,
    /// There is something to write.
    pending: bool,
    /// The machine takes nothing more from this link.
    deaf: bool,
    /// The wire takes nothing more.
    mute: bool,
    /// The wire brings nothing more.
    ended: bool,
    closing: Option<CloseReason>,
    /// Why TLS could not go on.
    fault: Option<TlsFault>,
    /// Until when a link that is closing, or whose other side is gone, is kept.
    close_at: Option<Instant>,
    shut: bool,
}

impl Link {
    /// For a link that `handle_link` has just named. `early` is what came before.
    pub fn new(link: LinkId, early: BytesMut) -> Self {
        let mut io = LinkIo::new(link);
        let fresh = !early.is_empty();
        *io.input() = early;
        Self {
            io,
            wrote: 0,
            fresh,
            intake: Intake::Open,
            later: None,
            pending: false,
            deaf: false,
            mute: false,
            ended: false,
            closing: None,
            fault: None,
            close_at: None,
            shut: false,
        }
    }

    /// The machine's name for it.
    pub fn id(&self) -> LinkId {
        self.io.link()
    }

    /// What the machine is told when it is over.
    pub fn reason(&self) -> CloseReason {
        let fault = self.fault.map(reason);
        self.closing.or(fault).unwrap_or(CloseReason::Io)
    }

    /// Why TLS could not go on, where that ended it.
    pub fn fault(&self) -> Option<TlsFault> {
        self.fault
    }

    /// It is to be closed: what is left is written first, for a moment. The first reason counts.
    pub fn close(&mut self, now: Now, reason: CloseReason) {
        self.closing.get_or_insert(reason);
        self.expire(now);
    }

    fn expire(&mut self, now: Now) {
        let at = now.mono.saturating_add(patience::CLOSE_LINK);
        self.close_at.get_or_insert(at);
    }

    /// Whether a busy host did not take what was read.
    pub fn is_held(&self) -> bool {
        !self.discards() && self.fresh
    }

    /// Whether it waits for a reader, or for a busy host, and is to be looked at again when either is done.
    pub fn is_paused(&self) -> bool {
        !self.discards() && (self.intake == Intake::Paused || self.fresh)
    }

    /// When it is to be looked at though nothing happens.
    pub fn deadline(&self) -> Option<Instant> {
        soonest(self.close_at, self.later)
    }

    /// What comes is for nobody.
    fn discards(&self) -> bool {
        self.deaf || self.closing.is_some()
    }

    /// Whether it is to be read.
    pub fn reads(&self) -> bool {
        !self.ended && (self.discards() || self.intake == Intake::Open && !self.fresh)
    }

    /// Whether it waits for something to come: to read it, or to hear the other side close.
    pub fn waits(&self) -> bool {
        self.reads() || self.fault.is_some() && self.has_handed_in()
    }

    /// Reads once, where it is to be read. True when something came, or the end did.
    pub fn read(&mut self, wire: &mut Wire<impl Socket>, counters: &mut IoCounters) -> bool {
        if !self.reads() {
            return false;
        }
        let input = self.io.input();
        let before = input.len();
        match wire.read(input) {
            Ok(came) => {
                self.fresh = input.len() > before;
                self.ended = came.ended;
                self.fault = came.fault;
                counters.reads += u64::from(came.bytes > 0);
                counters.bytes_read += came.bytes as u64;
            }
            Err(error) if not_now(&error) => {
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

    /// Tells the machine what was written and, unless the host is `busy`, what was read; and gathers the next write. True when the
    /// machine was handed something.
    pub fn look(&mut self, machine: &mut impl Machine, now: Now, busy: bool) -> bool {
        let wrote = std::mem::take(&mut self.wrote);
        let hands_in = !busy && (self.fresh || self.intake != Intake::Open);
        // Read or not, the machine knows the time before it writes how old something is.
        if wrote > 0 || !hands_in {
            self.io.wrote(machine, now, wrote);
        }
        if self.fault.is_some() {
            self.expire(now);
        }
        let takes = hands_in && !self.discards();
        if self.discards() {
            self.io.input().clear();
            (self.fresh, self.later) = (false, None);
        } else if hands_in {
            (self.fresh, self.later) = (false, None);
            match self.io.handle_read(machine, now) {
                Ok(intake) => self.intake = intake,
                // The machine has queued its goodbye and asked for the link to be closed.
                Err(_) => (self.deaf, self.intake) = (true, Intake::Open),
            }
            if self.intake == Intake::Later {
                // The machine's next deadline may be for something else.
                let soonest = now.mono.saturating_add(patience::LATER);
                let due = machine.poll_timeout().unwrap_or(soonest);
                self.later = Some(due.max(soonest));
            }
        } else if self.later.is_some_and(|at| at <= now.mono) {
            self.later = Some(now.mono.saturating_add(patience::LATER));
        }
        self.pending = !self.mute && self.fault.is_none() && self.io.fill(machine);
        takes
    }

    /// Whether there is something to write.
    pub fn writes(&self, wire: &Wire<impl Socket>) -> bool {
        !self.mute && (self.pending || wire.owes())
    }

    /// Writes once, where there is something. True when something went, or the other side did.
    pub fn write(
        &mut self,
        wire: &mut Wire<impl Socket>,
        now: Now,
        counters: &mut IoCounters,
    ) -> bool {
        if !self.writes(wire) {
            return false;
        }
        let mut chunks = [&[][..]; SLICES];
        let count = self.io.chunks(&mut chunks);
        match wire.write(chunks.get(..count).unwrap_or_default()) {
            Ok(went) if went.bytes > 0 => {
                self.wrote = went.link;
                counters.writes += 1;
                counters.bytes_written += went.bytes as u64;
                counters.partial_writes += u64::from(went.partial);
                true
            }
            Err(error) if not_now(&error) => false,
            // The other side is gone, but what it said before may still be here to read.
            Ok(_) | Err(_) => {
                self.mute = true;
                self.expire(now);
                true
            }
        }
    }

    /// Whether it has come to its end, asked after a look. A closing link that wrote all it had says so first,
    /// and has a moment to hear the other side close: a socket closed with bytes unread would take the goodbye back.
    pub fn is_over(&mut self, wire: &mut Wire<impl Socket>, now: Now) -> bool {
        if self.close_at.is_some_and(|at| now.mono >= at) {
            return true;
        }
        if self.fault.is_some() {
            // The other side hears why, if it listens. It says nothing more that counts.
            let left = wire.leave();
            return self.has_handed_in() && !left.is_err_and(|error| not_now(&error));
        }
        if self.closing.is_none() {
            return self.ended && self.has_handed_in();
        }
        if !self.ended && !self.shut && !self.writes(wire) {
            let closed = wire.close();
            self.shut = closed.as_ref().is_ok_and(|all| *all);
            return closed.is_err();
        }
        self.ended
    }

    /// What came before the end is the machine's first.
    fn has_handed_in(&self) -> bool {
        self.discards() || self.intake == Intake::Open && !self.fresh
    }
}

/// What the machine is told of a channel that cannot go on.
fn reason(fault: TlsFault) -> CloseReason {
    match fault {
        TlsFault::Refused | TlsFault::NoRawKey | TlsFault::BadKeyForm => CloseReason::Refused,
        _ => CloseReason::ProtocolError,
    }
}

#[cfg(test)]
mod tests;
