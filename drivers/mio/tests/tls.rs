//! Secure links: who is let in, and what is said to whom.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use common::{dialling, fact, key, node, number, numbered, open, station, subscribe, until};
use tidings_mio::{Node, StationServer, StationSettings, TlsFault};

fn secure() -> StationServer {
    let settings = StationSettings::new(key(1)).listen("tls://127.0.0.1:0");
    StationServer::start(settings.unwrap()).unwrap()
}

/// Waits until the node says why it does not come through.
fn fails(node: &Node, reason: &str) {
    until("the attempt fails", || {
        node.status().links[0].dial_failure.is_some()
    });
    assert_eq!(node.status().links[0].dial_failure, Some(reason));
}

/// Waits until the station has counted a fault.
fn counts(station: &StationServer, fault: TlsFault) {
    until("it is counted", || station.tls_faults().of(fault) > 0);
}

#[test]
fn a_wrong_pin_ends_the_attempt_and_says_so() {
    let station = secure();
    let wrong = format!("tls://{}@{}", key(9).node_id(), station.local_addr());
    let node = Node::start(dialling(2, &wrong)).unwrap();
    fails(&node, TlsFault::WrongStation.text());
    // The station hears no more than that it was not taken.
    counts(&station, TlsFault::Refused);
    assert!(station.status().links.is_empty());
}

#[test]
fn what_speaks_no_tls_is_said_on_both_sides() {
    let (secure, plain) = (secure(), station());
    let mistaken = format!("tls://{}@{}", plain.id(), plain.local_addr());
    let node = Node::start(dialling(2, &mistaken)).unwrap();
    fails(&node, TlsFault::NotTls.text());
    let mut socket = TcpStream::connect(secure.local_addr()).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).ok();
    assert!(!answer.is_empty(), "it is told why before the end");
    drop(socket);
    counts(&secure, TlsFault::NotTls);
    // A connection that only comes and goes is no handshake either.
    drop(TcpStream::connect(secure.local_addr()).unwrap());
    counts(&secure, TlsFault::Io);
}

#[test]
fn nobody_there_and_nobody_listening_are_said() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = gone.local_addr().unwrap();
    drop(gone);
    let address = format!("tls://{}@{at}", key(1).node_id());
    let node = Node::start(dialling(2, &address)).unwrap();
    fails(&node, "connection_refused");
}

#[test]
fn handshakes_that_never_end_hold_up_neither_others_nor_the_end() {
    let station = secure();
    let silent: Vec<TcpStream> = (0..50)
        .map(|_| TcpStream::connect(station.local_addr()).unwrap())
        .collect();
    let mut half = TcpStream::connect(station.local_addr()).unwrap();
    half.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        .unwrap();
    let reader = node(2, &station.address());
    let mut facts = subscribe(&reader, open("tls/held"));
    for n in 0..10 {
        reader.publish(numbered("tls/held", n)).unwrap();
        assert_eq!(number(&fact(&mut facts)), n);
    }
    assert_eq!(station.status().links.len(), 1);
    let since = Instant::now();
    station.close();
    assert!(since.elapsed() < Duration::from_secs(2));
    drop(silent);
}

#[test]
fn long_facts_and_slow_sockets_go_through_tls_whole() {
    let station = secure();
    let reader = node(2, &station.address());
    let writer = node(3, &station.address());
    let mut facts = subscribe(&reader, open("tls/long"));
    let writing = thread::spawn(move || {
        let large: String = "x".repeat(300_000);
        let pending: Vec<_> = (0..40_u64)
            .map(|n| {
                let request = tidings::Publish::new(common::realm(), "tls/long", &(n, &large));
                writer.try_publish(request.unwrap()).unwrap()
            })
            .collect();
        for one in pending {
            assert_eq!(one.wait(), tidings::Outcome::Routed { subscribers: 1 });
        }
        writer.io()
    });
    for n in 0..40 {
        let heard: (u64, String) = fact(&mut facts).decode().unwrap();
        assert_eq!((heard.0, heard.1.len()), (n, 300_000));
    }
    let io = writing.join().unwrap();
    assert!(io.bytes_written > 40 * 300_000, "{io:?}");
}
