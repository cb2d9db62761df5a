//! A socket of mio as a link's wire wants it.
//!
//! Decides: nothing. Leaves to others: when to read and to write (`tidings_common::Link`). Believes: no clock. Bounded by: one read or
//! one write per call.
//!
//! Readiness is edge-triggered: it is remembered here until the socket says that it would block.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;

use mio::event::Event;
use mio::net::TcpStream;
use tidings_common::Socket;

/// A socket and whether it is connected, readable and writable, as far as is known.
#[derive(Debug)]
pub(crate) struct Edged {
    stream: TcpStream,
    connected: bool,
    readable: bool,
    writable: bool,
}

impl Edged {
    /// One that was accepted, or one that is still to be connected.
    pub(crate) fn new(stream: TcpStream, connected: bool) -> Self {
        Self {
            stream,
            connected,
            readable: true,
            writable: true,
        }
    }

    pub(crate) fn handle_event(&mut self, event: &Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.writable |= event.is_writable() || event.is_write_closed() || event.is_error();
    }
}

impl Socket for Edged {
    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let stream = &mut self.stream;
        edge(&mut self.readable, || stream.read(into))
    }

    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let stream = &mut self.stream;
        edge(&mut self.writable, || stream.write_vectored(slices))
    }

    fn shut(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        if !self.connected {
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            match self.stream.peer_addr() {
                Ok(_) => self.connected = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        // Frames are gathered already; waiting for more in the kernel only adds delay.
        self.stream.set_nodelay(true)?;
        Ok(true)
    }
}

/// Tries where it is ready, and remembers where it is not.
fn edge(ready: &mut bool, call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
    if !*ready {
        return Err(ErrorKind::WouldBlock.into());
    }
    let result = call();
    let error = result.as_ref().err().map(io::Error::kind);
    *ready = error != Some(ErrorKind::WouldBlock);
    result
}
