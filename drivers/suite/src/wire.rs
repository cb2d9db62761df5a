//! A socket of the suite's own, plain or secure, that blocks.
//!
//! Decides: nothing. Leaves to others: what is said over it. Believes: the socket's own timeout. Bounded by: 4 KiB read at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use bytes::{Buf, BytesMut};
use tidings::link::Binding;
use tidings::wire::{Role, Split, next_frame};
use tidings_tls::{NodeKey, Session, Tls};

use crate::kit::{id, key};

/// One connection, and what was read from it.
pub(crate) struct Wire {
    stream: TcpStream,
    session: Option<Session>,
    pub(crate) input: BytesMut,
    /// Nothing more comes.
    pub(crate) ended: bool,
}

impl Wire {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self {
            stream,
            session: None,
            input: BytesMut::new(),
            ended: false,
        }
    }

    /// Shakes hands with TLS: as the station of that key, or as its node with station 1.
    pub(crate) fn secure(stream: TcpStream, role: Role, part: u8) -> (Self, Binding) {
        let tls = Tls::new(&NodeKey::new(key(part))).expect("a good key");
        let session = match role {
            Role::Station => tls.answer(),
            _ => tls.dial(id(1)),
        };
        let mut wire = Self {
            session: Some(session.expect("there is randomness")),
            ..Self::plain(stream)
        };
        loop {
            wire.flush();
            let session = wire.session.as_ref().expect("it is secure");
            if let Some(binding) = session.channel() {
                return (wire, binding);
            }
            assert!(!wire.ended, "an honest handshake");
            wire.read();
        }
    }

    /// The body of the next frame, which is at most so long, or `None` when the other side closed.
    pub(crate) fn frame(&mut self, cap: u32) -> Option<Vec<u8>> {
        loop {
            if let Ok(Split::Frame { body, taken }) = next_frame(&self.input, cap) {
                let body = body.to_vec();
                self.input.advance(taken);
                return Some(body);
            }
            if self.ended {
                return None;
            }
            self.read();
        }
    }

    /// Reads once.
    pub(crate) fn read(&mut self) {
        let mut bytes = [0; 4096];
        let count = match self.stream.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("the other side writes or closes in time: {error}"),
        };
        let bytes = &bytes[..count];
        self.ended = count == 0;
        match &mut self.session {
            Some(session) => {
                let received = session.receive(bytes, &mut self.input);
                received.expect("an honest channel");
                self.ended |= session.has_ended();
            }
            None => self.input.extend_from_slice(bytes),
        }
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        let Some(session) = &mut self.session else {
            return self.stream.write_all(bytes).expect("written");
        };
        while !bytes.is_empty() {
            let sealed = session.seal(&[bytes]);
            bytes = &bytes[sealed..];
            while session.wants_write() {
                session.write_to(&mut self.stream).expect("written");
            }
        }
    }

    fn flush(&mut self) {
        let session = self.session.as_mut().expect("it is secure");
        while session.wants_write() {
            session.write_to(&mut self.stream).expect("written");
        }
    }
}
