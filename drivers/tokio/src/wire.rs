//! A connected socket, plain or with TLS above it.
//!
//! Decides: what a read and a write of a link are on either. Leaves to others: what a secure channel
//! is (`tidings-tls`), when to read and write (`link.rs`). Believes: tokio's timer, for the handshake
//! of TLS. Bounded by: one read of 64 KiB, 64 KiB sealed at a time; a handshake of
//! [`patience::SECURE`].

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Write};

use bytes::{BufMut, BytesMut};
use tidings::link::Binding;
use tidings::pump::LinkIo;
use tidings_common::{Guest, patience};
use tidings_tls::{Session, TlsFault};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Reads of what a refused side still says, before it is left.
const MOST_IGNORED: usize = 64;

/// Bytes of one read: what a host may have to take on before it can say that it is busy.
pub(crate) const MOST_READ: usize = 64 * 1024;
/// Slices in one write.
const SLICES: usize = 128;

thread_local! {
    /// What was read and is still sealed: of one thread, since links that say nothing keep no buffer.
    static SEALED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    session: Option<Box<Session>>,
    /// Its place at the doors, where it was accepted.
    guest: Option<Guest>,
    /// This side has said that it sends nothing more.
    closed: bool,
}

/// What a link begins with.
pub(crate) struct Connected {
    pub(crate) wire: Wire,
    pub(crate) binding: Binding,
    /// What the other side sent for the link right behind its handshake.
    pub(crate) early: BytesMut,
}

/// What one read brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Came {
    /// Bytes of the socket.
    pub(crate) bytes: usize,
    /// Nothing more comes.
    pub(crate) ended: bool,
    /// Because TLS cannot go on.
    pub(crate) fault: Option<TlsFault>,
}

/// What one write took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Went {
    /// Bytes of the socket.
    pub(crate) bytes: usize,
    /// Bytes of the link that are thereby written.
    pub(crate) link: usize,
    pub(crate) partial: bool,
}

impl Wire {
    /// Bytes go as they are: on this host alone.
    pub(crate) fn plain(stream: TcpStream, guest: Option<Guest>) -> Connected {
        Connected {
            wire: Self::new(stream, None, guest),
            binding: Binding::Local,
            early: BytesMut::new(),
        }
    }

    fn new(stream: TcpStream, session: Option<Box<Session>>, guest: Option<Guest>) -> Self {
        // Frames are gathered here already; waiting for more in the kernel only adds delay.
        stream.set_nodelay(true).ok();
        Self {
            stream,
            session,
            guest,
            closed: false,
        }
    }

    /// Shakes hands with TLS. Cancelled, the connection is dropped.
    pub(crate) async fn secure(
        stream: TcpStream,
        session: Session,
        guest: Option<Guest>,
    ) -> Result<Connected, TlsFault> {
        let mut wire = Self::new(stream, Some(Box::new(session)), guest);
        let mut early = BytesMut::new();
        let shaken = timeout(patience::SECURE, wire.shake(&mut early)).await;
        match shaken.unwrap_or(Err(TlsFault::HandshakeTimeout)) {
            Ok(binding) => {
                wire.guest.as_mut().map(Guest::shaken);
                Ok(Connected {
                    wire,
                    binding,
                    early,
                })
            }
            Err(fault) => {
                // The other side hears why, if it listens.
                timeout(patience::CLOSE_LINK, wire.leave()).await.ok();
                Err(fault)
            }
        }
    }

    async fn shake(&mut self, early: &mut BytesMut) -> Result<Binding, TlsFault> {
        loop {
            self.flush().await.map_err(|_| TlsFault::Io)?;
            let channel = self.session.as_ref().and_then(|session| session.channel());
            if let Some(channel) = channel {
                return Ok(channel.binding);
            }
            match self.try_read(early) {
                Ok(Came {
                    fault: Some(fault), ..
                }) => return Err(fault),
                Ok(Came { ended: true, .. }) => return Err(TlsFault::Io),
                Ok(_) => {}
                Err(error) if not_now(error.kind()) => {
                    self.stream.readable().await.map_err(|_| TlsFault::Io)?;
                }
                Err(_) => return Err(TlsFault::Io),
            }
        }
    }

    /// Writes what TLS itself has to say.
    async fn flush(&mut self) -> io::Result<()> {
        while self.owes() {
            match self.try_flush() {
                Ok(_) => {}
                Err(error) if not_now(error.kind()) => self.stream.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes a last alert and waits for the other side's end: a socket closed with bytes unread would
    /// take it back.
    async fn leave(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.stream.shutdown().await?;
        let mut ignored = [0; 1024];
        for _ in 0..MOST_IGNORED {
            self.stream.readable().await?;
            match self.stream.try_read(&mut ignored) {
                Ok(0) => return Ok(()),
                Err(error) if !not_now(error.kind()) => return Err(error),
                _ => {}
            }
        }
        // Who goes on talking keeps nobody here.
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Reads once, onto the end of `into`.
    pub(crate) fn try_read(&mut self, into: &mut BytesMut) -> io::Result<Came> {
        let Some(session) = &mut self.session else {
            let bytes = self.stream.try_read_buf(&mut into.limit(MOST_READ))?;
            return Ok(Came {
                bytes,
                ended: bytes == 0,
                fault: None,
            });
        };
        SEALED.with_borrow_mut(|sealed| {
            sealed.resize(MOST_READ, 0);
            let bytes = self.stream.try_read(sealed)?;
            let fault = session
                .receive(sealed.get(..bytes).unwrap_or_default(), into)
                .err();
            Ok(Came {
                bytes,
                ended: bytes == 0 || fault.is_some() || session.has_ended(),
                fault,
            })
        })
    }

    /// Writes once: what TLS has to say, or else what the link has.
    pub(crate) fn try_write(&mut self, io: &LinkIo) -> io::Result<Went> {
        if self.owes() {
            return self.try_flush();
        }
        let mut chunks = [&[][..]; SLICES];
        let count = io.chunks(&mut chunks);
        let chunks = chunks.get(..count).unwrap_or_default();
        if let Some(session) = &mut self.session {
            session.seal(chunks);
            return self.try_flush();
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        for (slice, chunk) in slices.iter_mut().zip(chunks) {
            *slice = IoSlice::new(chunk);
        }
        let slices = slices.get(..count).unwrap_or_default();
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        let bytes = self.stream.try_write_vectored(slices)?;
        Ok(Went {
            bytes,
            link: bytes,
            partial: bytes < offered,
        })
    }

    fn try_flush(&mut self) -> io::Result<Went> {
        let Some(session) = &mut self.session else {
            return Err(ErrorKind::NotConnected.into());
        };
        let taken = session.write_to(&mut Socket(&self.stream))?;
        match taken.wire {
            0 => Err(ErrorKind::WriteZero.into()),
            bytes => Ok(Went {
                bytes,
                link: taken.link,
                partial: taken.partial,
            }),
        }
    }

    /// Whether sealed bytes wait, those of the link among them.
    pub(crate) fn owes(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.wants_write())
    }

    /// Says that nothing more is sent. False when there is still that to be written first.
    pub(crate) async fn close(&mut self) -> io::Result<bool> {
        if let Some(session) = self.session.as_mut().filter(|_| !self.closed) {
            self.closed = true;
            session.close();
            return Ok(false);
        }
        self.stream.shutdown().await?;
        Ok(true)
    }

    /// Waits until the socket may be ready.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<tokio::io::Ready> {
        self.stream.ready(interest).await
    }
}

/// The socket as TLS writes to it.
struct Socket<'a>(&'a TcpStream);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether it is to be tried again once the socket is ready.
pub(crate) fn not_now(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
