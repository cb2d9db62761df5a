//! TLS 1.3 with node keys, for every driver: no socket, no clock, no task.
//!
//! Decides: what a secure link is made of, and whose key may be at its other end. Leaves to others:
//! sockets and deadlines (the drivers), who a node is (the core's handshake, which is bound to the
//! channel made here). Believes: no clock, for raw keys do not expire. Bounded by: one record of
//! 16 KiB on its way in, 64 KiB on their way out, per link.
//!
//! Each side shows its own Ed25519 key as a raw public key (RFC 7250) and signs the handshake with
//! it; there are no certificates, no names, no resumption and no early data, and the key exchange is
//! X25519MLKEM768 where both sides have it. A dialler names the station it means and takes no other.
//! What the TLS session exports is the channel binding of the core's handshake
//! ([`tidings::link::EXPORTER_LABEL`]), so a proof made for one session is worth nothing in another.
//!
//! What it costs (`--example cost`, CPU time of one thread on a machine that others kept busy, development profile with optimised
//! dependencies): a handshake 283 µs at the dialler and 182 µs at the station, 3,108 bytes both ways; a fact of 420 bytes sealed and
//! opened 1.2 µs when it is written alone, 0.25 µs when 64 go with a write. Plain TCP has none of it.
//!
//! A [`Tls`] is made once from a [`NodeKey`]; it makes a [`Session`] per connection.

mod config;
mod fault;
mod key;
mod session;
mod verifier;

pub use config::{ConfigFault, Tls};
pub use fault::{TlsFault, TlsFaults};
pub use key::NodeKey;
pub use session::{Session, Taken};

/// The application protocol both sides must agree on (WIRE.md section 8): tidings, wire version 1.
pub const ALPN: &[u8] = b"tidings/1";
