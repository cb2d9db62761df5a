//! Connections that come to no link, and what is said of them on each side.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what comes out of a driver. Bounded by: the
//! kit's patience.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tidings_common::StationSettings;
use tidings_tls::TlsFault;

use super::doors::ends;
use crate::Driver;
use crate::kit::{Kit, PATIENCE, host, id, key, numbered, open, until};

/// Waits until the node says why it does not come through.
pub(crate) fn fails<D: Driver>(driver: &D, node: &D::Node, reason: &str) {
    until("the attempt fails", || driver.failure(node).is_some());
    assert_eq!(driver.failure(node), Some(reason));
}

/// A station with another key than the one that was named is not taken, and hears no more than that.
pub fn a_wrong_pin_ends_the_attempt_and_says_so<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let scheme = if D::SECURE { "tls" } else { "tcp" };
    let at = host(&driver.station_address(&station));
    let wrong = format!("{scheme}://{}@{at}", id(9));
    let node = driver.start_node(key(2), &[wrong]).expect("a node starts");
    if !D::SECURE {
        // The handshake of the link finds it.
        assert!(!driver.connected(&node, 1, Duration::from_millis(500)));
        return;
    }
    fails(driver, &node, TlsFault::WrongStation.text());
    let refused = || driver.seen(&station).tls_faults.of(TlsFault::Refused) > 0;
    until("the station counts it", refused);
    assert!(driver.seen(&station).status.links.is_empty());
}

/// Nobody listens there.
pub fn nobody_there_is_said<D: Driver>(driver: &D) {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = gone.local_addr().expect("it has an address");
    drop(gone);
    let scheme = if D::SECURE { "tls" } else { "tcp" };
    let address = format!("{scheme}://{}@{at}", id(1));
    let node = driver.start_node(key(2), &[address]);
    let node = node.expect("a node starts");
    fails(driver, &node, "connection_refused");
}

/// Where one side speaks TLS and the other does not, both say so; a connection that only comes and goes is no handshake either.
pub fn what_speaks_no_tls_is_said_on_both_sides<D: Driver>(driver: &D) {
    if !D::SECURE {
        return;
    }
    let kit = Kit::new(driver);
    let secure = kit.station(1);
    let plain = StationSettings::new(key(3)).listen("tcp://127.0.0.1:0");
    let plain = driver.start_station(plain.expect("a good address"));
    let plain = plain.expect("a station starts on a free port");
    let at = host(&driver.station_address(&plain));
    let node = driver.start_node(key(2), &[format!("tls://{}@{at}", id(3))]);
    let node = node.expect("a node starts");
    fails(driver, &node, TlsFault::NotTls.text());

    let at = host(&driver.station_address(&secure));
    let mut socket = TcpStream::connect(&at).expect("the station accepts");
    let request = socket.write_all(b"GET / HTTP/1.1\r\n\r\n");
    request.expect("written");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).ok();
    assert!(!answer.is_empty(), "it is told why before the end");
    drop(socket);
    let counts = |fault| driver.seen(&secure).tls_faults.of(fault) > 0;
    until("it is counted", || counts(TlsFault::NotTls));
    drop(TcpStream::connect(&at).expect("the station accepts"));
    until("it is counted", || counts(TlsFault::Io));
}

/// Connections that are silent, or stop in the middle of a handshake, are in nobody's way.
pub fn handshakes_that_never_end_hold_up_neither_others_nor_the_end<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let at = host(&driver.station_address(&station));
    let mut silent: Vec<TcpStream> = (0..50)
        .map(|_| TcpStream::connect(&at).expect("the station accepts"))
        .collect();
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    silent[0].write_all(hello).expect("written");
    let reader = kit.node(2, &[&station]);
    let mut facts = kit.subscribe(&reader, open("shaking/held"), 1);
    for n in 0..10 {
        kit.routed(&reader, numbered("shaking/held", n));
        kit.numbers(&mut facts, n, n + 1);
    }
    let since = Instant::now();
    driver.close_station(station);
    // It does not wait for handshakes, which have 10 s.
    assert!(since.elapsed() < Duration::from_secs(8));
    for stream in &silent {
        assert!(ends(stream, PATIENCE), "each is closed");
    }
}
