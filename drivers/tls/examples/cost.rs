//! What TLS costs: a whole handshake, and each fact beside plain TCP, in CPU time of one thread without sockets.
//!
//! `cargo run --profile dist -p tidings-tls --example cost`

use std::time::Duration;

use bytes::BytesMut;
use rustix::time::{ClockId, clock_gettime};
use tidings::crypto::SecretKey;
use tidings_tls::{NodeKey, Session, Tls};

const HANDSHAKES: u32 = 500;
const FACTS: u32 = 200_000;
/// An event of the wire with a payload of 100 bytes.
const FACT: usize = 420;

type Error = Box<dyn std::error::Error>;

fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// Hands everything one side has to say to the other; answers how many bytes that was.
fn carry(from: &mut Session, to: &mut Session, into: &mut BytesMut) -> Result<usize, Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_to(&mut bytes)?;
    }
    to.receive(&bytes, into)?;
    Ok(bytes.len())
}

fn pair(node: &Tls, station: &Tls) -> Result<(Session, Session, [Duration; 2], usize), Error> {
    let mut none = BytesMut::new();
    let (mut dials, mut answers) = (node.dial(station.id())?, station.answer()?);
    let (mut spent, mut bytes) = ([Duration::ZERO; 2], 0);
    while answers.channel().is_none() {
        // What one side makes and the other reads: sealing is little beside what reading sets off.
        let before = cpu();
        bytes += carry(&mut dials, &mut answers, &mut none)?;
        let between = cpu();
        bytes += carry(&mut answers, &mut dials, &mut none)?;
        spent[1] += between - before;
        spent[0] += cpu() - between;
    }
    Ok((dials, answers, spent, bytes))
}

fn main() -> Result<(), Error> {
    let key = |part| NodeKey::new(SecretKey::from_seed([part; 32]));
    let (node, station) = (Tls::new(&key(1))?, Tls::new(&key(2))?);
    let mut spent = [Duration::ZERO; 2];
    let mut length = 0;
    for _ in 0..HANDSHAKES {
        let begun = cpu();
        let (_, _, each, bytes) = pair(&node, &station)?;
        // Making the two sides is the dialler's: it makes the first key share.
        let making = (cpu() - begun).saturating_sub(each[0] + each[1]);
        spent[0] += each[0] + making;
        spent[1] += each[1];
        length = bytes;
    }
    let micros = |spent: Duration| spent.as_secs_f64() * 1e6 / f64::from(HANDSHAKES);
    println!(
        "a handshake: {:.0} us at the dialler, {:.0} us at the station, {length} bytes",
        micros(spent[0]),
        micros(spent[1])
    );
    let (mut dials, mut answers, ..) = pair(&node, &station)?;
    let fact = [7; FACT];
    for batch in [1, 8, 64] {
        let chunks = vec![&fact[..]; batch as usize];
        let (mut into, mut wire) = (BytesMut::new(), 0);
        let before = cpu();
        for _ in 0..FACTS / batch {
            dials.seal(&chunks);
            wire += carry(&mut dials, &mut answers, &mut into)?;
            into.clear();
        }
        let each = (cpu() - before).as_nanos() as f64 / f64::from(FACTS);
        println!(
            "{FACT} bytes, {batch} to a write: {each:.0} ns for sealing and opening, {:.1} bytes more each",
            wire as f64 / f64::from(FACTS) - FACT as f64
        );
    }
    Ok(())
}
