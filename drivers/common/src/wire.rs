//! A connected socket, plain or with TLS above it, whoever waits for it.
//!
//! Decides: what a read and a write of a link are on either. Leaves to others: what a secure channel is (`tidings-tls`), when to read
//! and write (`opening.rs`, `link.rs`), waiting (the drivers). Believes: no clock. Bounded by: one read of 64 KiB, 64 KiB sealed at a
//! time; 64 reads of what a refused side still says.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Write};

use bytes::BytesMut;
use tidings::Binding;
use tidings_tls::{Session, TlsFault};

use crate::Guest;

/// Bytes of one read: what a host may have to take on before it can say that it is busy.
pub const MOST_READ: usize = 64 * 1024;
/// Room of a plain socket's first read, and of each while little comes.
const LEAST_READ: usize = 4 * 1024;
/// Reads of 4 KiB of what a refused side still says, all calls together.
const MOST_IGNORED: u32 = 64;
/// Slices of one write.
pub(crate) const SLICES: usize = 128;

thread_local! {
    /// What was read and is still sealed: of one thread, since links that say nothing keep no buffer.
    static READ: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A socket of a driver. It never blocks: where it would, it says `WouldBlock`.
pub trait Socket {
    /// Reads once. Answers the bytes that came, 0 at their end.
    ///
    /// # Errors
    /// Those of the socket.
    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes once. Answers the bytes that went.
    ///
    /// # Errors
    /// Those of the socket.
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Says that nothing more is sent.
    ///
    /// # Errors
    /// Those of the socket.
    fn shut(&mut self) -> io::Result<()>;

    /// Whether it is connected by now. One that was accepted is.
    ///
    /// # Errors
    /// Why it never will be.
    fn is_connected(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

/// What one read brought.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Came {
    /// Bytes of the socket.
    pub bytes: usize,
    /// Nothing more comes.
    pub ended: bool,
    /// Because TLS cannot go on.
    pub fault: Option<TlsFault>,
}

/// What one write took.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Went {
    /// Bytes of the socket.
    pub bytes: usize,
    /// Bytes of the link that are thereby written.
    pub link: usize,
    /// The socket took less than it was offered.
    pub partial: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Wire<S> {
    socket: S,
    session: Option<Box<Session>>,
    /// Bytes of the next read without a session, as many as the last ones show to be worth their clearing.
    room: usize,
    /// Its place at the doors, where it was accepted.
    guest: Option<Guest>,
    /// Something came.
    heard: bool,
    /// This side has said that it sends nothing more.
    closed: bool,
    /// Reads of what was not listened to.
    ignored: u32,
}

impl<S: Socket> Wire<S> {
    /// With a session, bytes are sealed for it; without, they go as they are: on this host alone.
    pub fn new(socket: S, session: Option<Session>, guest: Option<Guest>) -> Self {
        Self {
            socket,
            session: session.map(Box::new),
            room: LEAST_READ,
            guest,
            heard: false,
            closed: false,
            ignored: 0,
        }
    }

    /// The socket, to wait for.
    pub fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Goes on shaking hands as far as the socket allows. Answers what a link is bound to, once there can be one; `early` is what the
    /// other side sent for it right behind its handshake.
    ///
    /// # Errors
    /// What TLS found; [`Self::leave`] tells the other side.
    pub fn shake(&mut self, early: &mut BytesMut) -> Result<Option<Binding>, TlsFault> {
        let shaken = self.try_shake(early);
        if let (Ok(Some(_)), Some(guest)) = (&shaken, &mut self.guest) {
            guest.shaken();
        }
        shaken
    }

    fn try_shake(&mut self, early: &mut BytesMut) -> Result<Option<Binding>, TlsFault> {
        loop {
            match self.flush() {
                Ok(()) => {}
                // Whoever does not read is not read either.
                Err(error) if not_now(&error) => return Ok(None),
                Err(_) => return Err(self.lost()),
            }
            let Some(session) = &self.session else {
                return Ok(Some(Binding::Local));
            };
            if let Some(binding) = session.channel() {
                return Ok(Some(binding));
            }
            match self.read(early) {
                Ok(came) => match came.fault {
                    Some(fault) => return Err(fault),
                    None if came.ended => return Err(self.lost()),
                    None => self.heard = true,
                },
                Err(error) if not_now(&error) => return Ok(None),
                Err(_) => return Err(self.lost()),
            }
        }
    }

    /// Why the connection is gone: a station that has no place for one more closes it before anything else.
    fn lost(&self) -> TlsFault {
        match self.guest.is_none() && !self.heard {
            true => TlsFault::Closed,
            false => TlsFault::Io,
        }
    }

    /// Writes a last alert and waits for the other side's end: a socket closed with bytes unread would take it back.
    ///
    /// # Errors
    /// `WouldBlock` when it is to be called again; anything else ends it.
    pub fn leave(&mut self) -> io::Result<()> {
        self.flush()?;
        if !std::mem::replace(&mut self.closed, true) {
            self.socket.shut()?;
        }
        let mut ignored = [0; 4096];
        while self.ignored < MOST_IGNORED {
            self.ignored += 1;
            if again(|| self.socket.try_read(&mut ignored))? == 0 {
                return Ok(());
            }
        }
        Err(ErrorKind::ConnectionAborted.into())
    }

    /// Reads once, onto the end of `into`.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn read(&mut self, into: &mut BytesMut) -> io::Result<Came> {
        let Some(session) = &mut self.session else {
            return self.read_plain(into);
        };
        READ.with_borrow_mut(|read| {
            read.resize(MOST_READ, 0);
            let bytes = again(|| self.socket.try_read(read))?;
            let fault = session.receive(read.get(..bytes).unwrap_or_default(), into);
            let fault = fault.err();
            Ok(Came {
                bytes,
                ended: bytes == 0 || fault.is_some() || session.has_ended(),
                fault,
            })
        })
    }

    /// Reads to where it is to lie: a copy of each frame costs more than clearing the room it comes to.
    fn read_plain(&mut self, into: &mut BytesMut) -> io::Result<Came> {
        let before = into.len();
        // Beside a frame that began, so that the buffer holds one read as long as frames are shorter than that.
        let room = match MOST_READ.saturating_sub(before) {
            beside if beside < LEAST_READ => self.room,
            beside => beside.min(self.room),
        };
        into.resize(before + room, 0);
        let read = again(|| {
            self.socket
                .try_read(into.get_mut(before..).unwrap_or_default())
        });
        let bytes = read.as_ref().map_or(0, |bytes| *bytes);
        into.truncate(before + bytes);
        read?;
        if bytes >= room {
            self.room = MOST_READ.min(2 * self.room);
        } else if bytes < self.room / 4 {
            self.room = LEAST_READ.max(self.room / 2);
        }
        Ok(Came {
            bytes,
            ended: bytes == 0,
            fault: None,
        })
    }

    /// Writes once: what TLS has to say, or else what the link has.
    ///
    /// # Errors
    /// Those of the socket; nothing was taken then.
    pub fn write(&mut self, chunks: &[&[u8]]) -> io::Result<Went> {
        if let Some(session) = &mut self.session {
            // Takes nothing while sealed bytes wait.
            session.seal(chunks);
            return self.write_sealed();
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut offered = 0;
        for (slice, chunk) in slices.iter_mut().zip(chunks) {
            *slice = IoSlice::new(chunk);
            offered += chunk.len();
        }
        let slices = slices.get(..chunks.len()).unwrap_or(&slices);
        let bytes = again(|| self.socket.try_write(slices))?;
        Ok(Went {
            bytes,
            link: bytes,
            partial: bytes < offered,
        })
    }

    fn write_sealed(&mut self) -> io::Result<Went> {
        let Some(session) = &mut self.session else {
            return Err(ErrorKind::NotConnected.into());
        };
        let taken = session.write_to(&mut Sealed(&mut self.socket))?;
        match taken.wire {
            0 => Err(ErrorKind::WriteZero.into()),
            bytes => Ok(Went {
                bytes,
                link: taken.link,
                partial: taken.partial,
            }),
        }
    }

    /// Writes what TLS has to say.
    fn flush(&mut self) -> io::Result<()> {
        while self.owes() {
            self.write_sealed()?;
        }
        Ok(())
    }

    /// Whether sealed bytes wait, those of the link among them.
    pub fn owes(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.wants_write())
    }

    /// Says that nothing more is sent. False when there is still that to be written first.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn close(&mut self) -> io::Result<bool> {
        if let Some(session) = self.session.as_mut().filter(|_| !self.closed) {
            self.closed = true;
            session.close();
            return Ok(false);
        }
        self.socket.shut()?;
        Ok(true)
    }
}

/// The socket as TLS writes to it.
struct Sealed<'a, S>(&'a mut S);

impl<S: Socket> Write for Sealed<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        again(|| self.0.try_write(&[IoSlice::new(bytes)]))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        again(|| self.0.try_write(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Goes on where a signal broke it off: no event would follow.
fn again<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Whether it is to be tried again once the socket is ready.
pub fn not_now(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Why a connection came to nothing, in a word for reports.
pub fn dial_failure(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection_refused",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "unreachable",
        ErrorKind::TimedOut => "connect_timeout",
        _ => TlsFault::Io.text(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
