//! One secure channel between bytes of a socket and bytes of a link.
//!
//! Decides: when the channel is there and who is at its other end. Leaves to others: reading and
//! writing. Believes: no clock. Bounded by: what is received is taken out at once; nothing is sealed
//! while sealed bytes wait, 64 KiB at a time.
//!
//! A driver hands what it reads to [`receive`](Session::receive) and writes with
//! [`write_to`](Session::write_to) while [`wants_write`](Session::wants_write). Once
//! [`channel`](Session::channel) answers, what comes out of `receive` are the link's bytes, and
//! [`seal`](Session::seal) takes the link's.

use std::io::{self, BufRead, IoSlice, Write};

use bytes::BytesMut;
use rustls::Connection;
use tidings::NodeId;
use tidings::link::{Binding, EXPORTER_LABEL, exporter_context};

use crate::{ALPN, TlsFault, key};

/// Slices sealed at a time.
const SLICES: usize = 128;

/// What a transport took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// Bytes of the socket.
    pub wire: usize,
    /// Bytes of the link that are thereby written.
    pub link: usize,
    /// The socket took less than it was offered.
    pub partial: bool,
}

/// One side of one channel.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    id: NodeId,
    channel: Option<Binding>,
    /// Bytes of the link that are sealed and not yet reported as written.
    sealed: usize,
    /// The other side will send nothing more.
    ended: bool,
}

impl Session {
    pub(crate) fn new(connection: Connection, id: NodeId) -> Self {
        Self {
            connection,
            id,
            channel: None,
            sealed: 0,
            ended: false,
        }
    }

    /// The channel, once this side's part of the handshake is done. A dialler has it before the
    /// station has judged its key.
    pub fn channel(&self) -> Option<Binding> {
        self.channel
    }

    /// Whether the other side has said that it sends nothing more.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes bytes of the socket, all of them, and appends what they bring for the link to `into`.
    ///
    /// # Errors
    /// What ends the channel. What came before it is in `into`; an alert for the other side may wait
    /// to be written.
    pub fn receive(&mut self, mut bytes: &[u8], into: &mut BytesMut) -> Result<(), TlsFault> {
        while !bytes.is_empty() && !self.ended {
            // The buffers below are emptied each time, so there is room.
            match self.connection.read_tls(&mut bytes) {
                Ok(read) if read > 0 => {}
                _ => return Err(TlsFault::Protocol),
            }
            let processed = self.connection.process_new_packets();
            self.take(into);
            let state = processed.map_err(|error| TlsFault::of(&error))?;
            self.ended = state.peer_has_closed();
        }
        if self.channel.is_none() && !self.connection.is_handshaking() {
            self.channel = Some(self.establish()?);
        }
        Ok(())
    }

    fn take(&mut self, into: &mut BytesMut) {
        let mut reader = self.connection.reader();
        // An error says that there is nothing now, or nothing more; `receive` knows which.
        while let Ok(plain) = reader.fill_buf() {
            let count = plain.len();
            if count == 0 {
                return;
            }
            into.extend_from_slice(plain);
            reader.consume(count);
        }
    }

    fn establish(&self) -> Result<Binding, TlsFault> {
        if self.connection.alpn_protocol() != Some(ALPN) {
            return Err(TlsFault::WrongAlpn);
        }
        let peer = match self.connection.peer_certificates() {
            Some([shown]) => key::decode(shown)?.node_id(),
            _ => return Err(TlsFault::NoRawKey),
        };
        let context = match &self.connection {
            Connection::Client(_) => exporter_context(&self.id, &peer),
            Connection::Server(_) => exporter_context(&peer, &self.id),
        };
        let exported = self.connection.export_keying_material(
            [0; 32],
            EXPORTER_LABEL.as_bytes(),
            Some(&context),
        );
        let exporter = exported.map_err(|error| TlsFault::of(&error))?;
        Ok(Binding::Proved { exporter, peer })
    }

    /// Whether bytes wait for the socket.
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Seals bytes of the link, from the first on, and answers how many it took: none while sealed
    /// ones still wait.
    pub fn seal(&mut self, chunks: &[&[u8]]) -> usize {
        if self.wants_write() {
            return 0;
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut count = 0;
        for (slice, chunk) in slices.iter_mut().zip(chunks) {
            *slice = IoSlice::new(chunk);
            count += 1;
        }
        let slices = slices.get(..count).unwrap_or_default();
        // It cannot fail: the buffer it goes to is in memory and takes what it has room for.
        let taken = self.connection.writer().write_vectored(slices);
        self.sealed = taken.unwrap_or(0);
        self.sealed
    }

    /// Writes sealed bytes, once.
    ///
    /// # Errors
    /// Those of the socket; nothing was taken then.
    pub fn write_to(&mut self, socket: &mut dyn Write) -> io::Result<Taken> {
        let mut counted = Counted { socket, offered: 0 };
        let wire = self.connection.write_tls(&mut counted)?;
        let offered = counted.offered;
        // A part of the sealed bytes stands for the same part of what they hold.
        let link = match offered.saturating_sub(wire) {
            0 => self.sealed,
            _ => (self.sealed as u64 * wire as u64 / offered as u64) as usize,
        };
        self.sealed -= link;
        Ok(Taken {
            wire,
            link,
            partial: wire < offered,
        })
    }

    /// Says that this side sends nothing more.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
    }
}

/// A socket, and how much it was offered.
struct Counted<'a> {
    socket: &'a mut dyn Write,
    offered: usize,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.offered = bytes.len();
        self.socket.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.offered = slices.iter().map(|slice| slice.len()).sum();
        self.socket.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
