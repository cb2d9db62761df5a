//! What TLS costs: a whole handshake, and each frame, sealed and opened, in CPU time of one thread without sockets.
//!
//! Decides: what is done at which side. Leaves to others: the transport. Believes: the thread's CPU clock. Bounded by: a fixed number of
//! handshakes, of which the mean counts, and of frames, the least of 25 samples.

use std::time::Duration;

use bytes::BytesMut;
use tidings::crypto::SecretKey;
use tidings_tls::{NodeKey, Session, Tls};

use super::raw::PER_WRITE;
use crate::harness::{ROUNDS, cpu, each};

const HANDSHAKES: u32 = 200;
/// In one sample.
const FRAMES: usize = 4_000;

/// What one connection and one frame cost.
#[derive(Debug)]
pub(super) struct Cost {
    /// A handshake at the dialler and at the station.
    pub(super) handshake: [Duration; 2],
    /// Its bytes, both ways.
    pub(super) bytes: usize,
    /// Nanoseconds for a frame that goes alone, and for one of so many.
    pub(super) frame: [f64; 2],
}

/// Hands everything one side has to say to the other; answers how many bytes that was.
fn carry(from: &mut Session, to: &mut Session, into: &mut BytesMut) -> usize {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_to(&mut bytes).expect("memory takes all");
    }
    to.receive(&bytes, into).expect("two good ends");
    bytes.len()
}

/// Two ends that know each other, what it cost either, and the bytes between them.
fn pair(node: &Tls, station: &Tls) -> (Session, Session, [Duration; 2], usize) {
    let mut none = BytesMut::new();
    let mut before = cpu();
    let mut dials = node.dial(station.id()).expect("a good key");
    // Making the sides is the dialler's: it makes the first key share.
    let mut spent = [cpu() - before, Duration::ZERO];
    let mut answers = station.answer().expect("a good key");
    let mut bytes = 0;
    while answers.channel().is_none() {
        // What one side makes and the other reads: sealing is little beside what reading sets off.
        before = cpu();
        bytes += carry(&mut dials, &mut answers, &mut none);
        let between = cpu();
        bytes += carry(&mut answers, &mut dials, &mut none);
        spent[1] += between - before;
        spent[0] += cpu() - between;
    }
    (dials, answers, spent, bytes)
}

/// Measures it with frames of this length.
pub(super) fn cost(length: usize) -> Cost {
    let key = |part| NodeKey::new(SecretKey::from_seed([part; 32]));
    let tls = |part| Tls::new(&key(part)).expect("a good key");
    let (node, station) = (tls(1), tls(2));
    let (mut spent, mut bytes) = ([Duration::ZERO; 2], 0);
    for _ in 0..HANDSHAKES {
        let (_, _, each, length) = pair(&node, &station);
        spent = [spent[0] + each[0], spent[1] + each[1]];
        bytes = length;
    }
    let (mut dials, mut answers, ..) = pair(&node, &station);
    let frame = vec![7; length];
    let frame = [1, PER_WRITE].map(|batch| {
        let chunks = vec![&frame[..]; batch];
        let mut into = BytesMut::new();
        let samples = (0..ROUNDS).map(|_| {
            each(FRAMES, || {
                for _ in 0..FRAMES / batch {
                    dials.seal(&chunks);
                    carry(&mut dials, &mut answers, &mut into);
                    assert_eq!(into.len(), length * batch);
                    into.clear();
                }
            })
        });
        samples.fold(f64::INFINITY, f64::min)
    });
    Cost {
        handshake: spent.map(|spent| spent / HANDSHAKES),
        bytes,
        frame,
    }
}
