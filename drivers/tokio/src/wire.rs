//! A socket of tokio as a wire wants it, and waiting for it.
//!
//! Decides: nothing. Leaves to others: reading, writing and how long anything may take (`tidings_common::{Wire, Opening}`). Believes:
//! tokio's timer. Bounded by: the deadlines of an [`Opening`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use tidings::Binding;
use tidings_common::{Clock, Guest, Opening, Socket, Wire};
use tidings_tls::{Session, TlsFault};
use tokio::io::{AsyncWrite, Interest, Ready};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A socket. Its reads and writes end where they would block.
#[derive(Debug)]
pub(crate) struct Stream(TcpStream);

impl Stream {
    /// Waits until it may be ready.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.0.ready(interest).await
    }
}

impl Socket for Stream {
    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }

    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn shut(&mut self) -> io::Result<()> {
        let mut nobody = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.0).poll_shutdown(&mut nobody) {
            Poll::Ready(shut) => shut,
            // It waits for nothing.
            Poll::Pending => Ok(()),
        }
    }
}

/// What a link begins with.
pub(crate) struct Connected {
    pub(crate) wire: Wire<Stream>,
    pub(crate) binding: Binding,
    /// What the other side sent for the link right behind its handshake.
    pub(crate) early: BytesMut,
}

/// Why a connection is no link, in a word, and what TLS has to do with it.
pub(crate) type Failed = (&'static str, Option<TlsFault>);

/// Makes a socket a wire: with a session once it has shaken hands, without at once. Cancelled, the connection is dropped.
pub(crate) async fn open(
    stream: TcpStream,
    session: Option<Session>,
    guest: Option<Guest>,
    clock: &Clock,
) -> Result<Connected, Failed> {
    // Frames are gathered already; waiting for more in the kernel only adds delay.
    stream.set_nodelay(true).ok();
    let wire = Wire::new(Stream(stream), session, guest);
    let mut opening = Opening::new(wire, clock.now());
    loop {
        let opened = opening.step(clock.now());
        if let Some(binding) = opened.map_err(|failure| (failure, opening.fault()))? {
            let (wire, early) = opening.into_parts();
            return Ok(Connected {
                wire,
                binding,
                early,
            });
        }
        let within = clock.until(opening.deadline());
        let interest = match opening.wire().owes() {
            true => Interest::WRITABLE,
            false => Interest::READABLE,
        };
        let ready = timeout(within, opening.wire().socket().ready(interest));
        // When its time is over it is looked at as well.
        if let Ok(Err(_)) = ready.await {
            return Err((TlsFault::Io.text(), Some(TlsFault::Io)));
        }
    }
}
