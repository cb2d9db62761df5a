//! The I/O-free half of a driver: what every driver does between its socket and a machine.
//!
//! Decides: how much is gathered into one write. Leaves to others: sockets, clocks, tasks. Believes: the `Now` it is handed. Bounded
//! by: 64 pieces or 64 KiB gathered per write, as far as the last piece goes, one read buffer that grows to one frame.
//!
//! A driver owns one [`LinkIo`] per link and runs this loop for it, in any order and on any executor:
//!
//! ```text
//! readable:  io.reserve(); read into io.input(); io.handle_read(machine, now)   until WouldBlock or not Intake::Open
//! writable:  while io.fill(machine) { write io.chunks(); io.wrote(machine, now, n) }
//! ```
//!
//! What a machine writes of ages counts from the last `now` it was told. A driver that fills without having told it just before, because a
//! transport takes bytes again after a wait or a task runs late, calls `io.wrote(machine, now, 0)` first.
//!
//! A blocked write never stops reading; `Intake::Paused` and `Intake::Later` stop reading that link only. Call `handle_read` again
//! with what is in the buffer, before anything more is read: when streams or links were drained, or after the deadline `poll_timeout`
//! reported.

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use crate::action::{Action, COPIED_BODY, Intake, LinkEvent, Transmit, Turn};
use crate::code::CloseReason;
use crate::error::LinkError;
use crate::refusal::Misuse;
use crate::time::{Instant, Now};
use crate::{Client, LinkId, Station};

/// What a driver needs of a large machine that has links.
pub trait Machine {
    /// A transport came up or ended.
    ///
    /// # Errors
    /// A bug in the caller; nothing was changed.
    fn handle_link(&mut self, now: Now, event: LinkEvent) -> Result<LinkId, Misuse>;
    /// Takes whole frames off the front of `input` and leaves the rest.
    ///
    /// # Errors
    /// What ended the link; a `Close` action follows, and the same error answers further calls.
    fn handle_input(
        &mut self,
        now: Now,
        link: LinkId,
        input: &mut BytesMut,
    ) -> Result<Intake, LinkError>;
    /// So many bytes of what `poll_transmit` handed out were taken by the transport.
    fn handle_written(&mut self, now: Now, link: LinkId, bytes: usize);
    /// Time has passed.
    fn handle_timeout(&mut self, now: Now) -> Turn;
    /// Ends a link from this side.
    ///
    /// # Errors
    /// When there is no such link.
    fn close_link(&mut self, now: Now, link: LinkId, reason: CloseReason) -> Result<(), Misuse>;
    /// The next thing to do.
    fn poll_action(&mut self) -> Option<Action>;
    /// The next bytes for a link.
    fn poll_transmit(&mut self, link: LinkId, out: &mut Vec<u8>) -> Option<Transmit>;
    /// When `handle_timeout` is due.
    fn poll_timeout(&self) -> Option<Instant>;
}

macro_rules! machine {
    ($name:ident) => {
        impl Machine for $name {
            fn handle_link(&mut self, now: Now, event: LinkEvent) -> Result<LinkId, Misuse> {
                $name::handle_link(self, now, event)
            }
            fn handle_input(
                &mut self,
                now: Now,
                link: LinkId,
                input: &mut BytesMut,
            ) -> Result<Intake, LinkError> {
                $name::handle_input(self, now, link, input)
            }
            fn handle_written(&mut self, now: Now, link: LinkId, bytes: usize) {
                $name::handle_written(self, now, link, bytes);
            }
            fn handle_timeout(&mut self, now: Now) -> Turn {
                $name::handle_timeout(self, now)
            }
            fn close_link(
                &mut self,
                now: Now,
                link: LinkId,
                reason: CloseReason,
            ) -> Result<(), Misuse> {
                $name::close_link(self, now, link, reason)
            }
            fn poll_action(&mut self) -> Option<Action> {
                $name::poll_action(self)
            }
            fn poll_transmit(&mut self, link: LinkId, out: &mut Vec<u8>) -> Option<Transmit> {
                $name::poll_transmit(self, link, out)
            }
            fn poll_timeout(&self) -> Option<Instant> {
                $name::poll_timeout(self)
            }
        }
    };
}

machine!(Client);
machine!(Station);

/// Frames gathered into one write.
const FRAMES_PER_WRITE: usize = 64;
/// Bytes gathered into one write.
const BYTES_PER_WRITE: usize = 64 * 1024;
/// The least room handed to one read.
const READ_ROOM: usize = 16 * 1024;

/// One piece of a write: a range of the gathered bytes, or a shared body.
#[derive(Debug)]
enum Piece {
    Gathered { from: usize, to: usize },
    Shared(Bytes),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Gathered { from, to } => to - from,
            Self::Shared(body) => body.len(),
        }
    }
}

/// One link's buffers between a socket and a machine.
#[derive(Debug)]
pub struct LinkIo {
    link: LinkId,
    input: BytesMut,
    /// What `input` may have allocated: taking bytes off its front hides that from its capacity.
    grown: usize,
    gathered: Vec<u8>,
    pieces: Vec<Piece>,
    /// Pieces before this one, and bytes of this one, were written.
    piece: usize,
    offset: usize,
}

impl LinkIo {
    /// For a link that `handle_link` has just named.
    pub fn new(link: LinkId) -> Self {
        Self {
            link,
            input: BytesMut::new(),
            grown: 0,
            gathered: Vec::new(),
            pieces: Vec::new(),
            piece: 0,
            offset: 0,
        }
    }

    /// Its link.
    pub fn link(&self) -> LinkId {
        self.link
    }

    /// Makes room for one read.
    pub fn reserve(&mut self) {
        self.input.reserve(READ_ROOM);
    }

    /// What was read and not yet taken by the machine; read more onto its end.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Hands what was read to the machine, which takes whole frames.
    ///
    /// # Errors
    /// What ended the link. A `Close` action for it follows; until then the driver goes on writing and stops reading.
    pub fn handle_read(
        &mut self,
        machine: &mut (impl Machine + ?Sized),
        now: Now,
    ) -> Result<Intake, LinkError> {
        self.grown = self.grown.max(self.input.capacity());
        let intake = machine.handle_input(now, self.link, &mut self.input)?;
        if self.grown > 4 * READ_ROOM && self.input.len() < self.grown / 4 {
            // One long frame does not make a link's buffer long for ever, whatever comes behind it.
            self.input = BytesMut::from(&self.input[..]);
            self.grown = self.input.capacity();
        }
        Ok(intake)
    }

    /// Gathers frames for one write, unless an earlier write is still under way. True when there is something to write.
    pub fn fill(&mut self, machine: &mut (impl Machine + ?Sized)) -> bool {
        if self.has_pending() {
            return true;
        }
        self.gathered.clear();
        self.pieces.clear();
        (self.piece, self.offset) = (0, 0);
        let mut bytes = 0;
        let mut from = 0;
        for _ in 0..FRAMES_PER_WRITE {
            let Some(transmit) = machine.poll_transmit(self.link, &mut self.gathered) else {
                break;
            };
            bytes += transmit.len();
            let more = transmit.more;
            match transmit.body {
                Some(body) if body.len() > COPIED_BODY => {
                    let to = self.gathered.len();
                    self.pieces.push(Piece::Gathered { from, to });
                    self.pieces.push(Piece::Shared(body));
                    from = to;
                }
                Some(body) => self.gathered.extend_from_slice(&body),
                None => (),
            }
            if !more || bytes >= BYTES_PER_WRITE {
                break;
            }
        }
        if from < self.gathered.len() {
            self.pieces.push(Piece::Gathered {
                from,
                to: self.gathered.len(),
            });
        }
        self.pieces.retain(|piece| piece.len() > 0);
        if self.gathered.capacity() > 4 * BYTES_PER_WRITE && self.pieces.is_empty() {
            self.gathered = Vec::new();
        }
        self.has_pending()
    }

    /// Whether a write is under way.
    pub fn has_pending(&self) -> bool {
        self.piece < self.pieces.len()
    }

    /// The slices still to be written, in order; answers how many were put into `out`.
    pub fn chunks<'a>(&'a self, out: &mut [&'a [u8]]) -> usize {
        let mut skip = self.offset;
        let mut count = 0;
        for (slot, piece) in out.iter_mut().zip(self.pieces.iter().skip(self.piece)) {
            let whole = match piece {
                Piece::Gathered { from, to } => self.gathered.get(*from..*to).unwrap_or_default(),
                Piece::Shared(body) => body,
            };
            *slot = whole.get(skip..).unwrap_or_default();
            skip = 0;
            count += 1;
        }
        count
    }

    /// The transport took so many bytes of what `chunks` showed.
    pub fn wrote(&mut self, machine: &mut (impl Machine + ?Sized), now: Now, bytes: usize) {
        let mut left = bytes;
        while let Some(piece) = self.pieces.get(self.piece) {
            let rest = piece.len() - self.offset;
            if left < rest {
                self.offset += left;
                break;
            }
            left -= rest;
            self.piece += 1;
            self.offset = 0;
        }
        machine.handle_written(now, self.link, bytes);
    }

    /// Bytes this link's buffers take.
    pub fn memory(&self) -> usize {
        let input = match self.input.capacity() {
            // Somebody gave it back.
            0 => 0,
            seen => seen.max(self.grown),
        };
        input + self.gathered.capacity() + self.pieces.capacity() * size_of::<Piece>()
    }
}
