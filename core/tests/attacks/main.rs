//! Attacks on the handshake, each with its transcript: who said what to whom, how it ended and what it cost either side.
//!
//! A transcript stands in its test as it must be; a test that fails prints the one there was. `signed` and `verified` count signatures,
//! `out` and `in` bytes of the wire. The rules are those of WIRE.md section 8; `vectors/handshake.json` holds the same refusals as single
//! transcripts for other implementations (`connect_of_another_handshake`, `hello_proof_echoed`, `connect_proof_over_…`, `key_…`).
//!
//! What the order of the four frames gives: a station signs nothing before a proof has held, so whoever is refused has cost it one
//! verification at most, and less bytes than were sent to it. A node signs once for each challenge of the station it named; who named none,
//! once for each of any. It is the node that dials, so its redial waits bound that.

#[path = "../common/mod.rs"]
mod common;
mod downgrade;
mod keys;
mod relay;
mod replay;
mod scene;
mod slow;
