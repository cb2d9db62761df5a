//! What one party does to the others: nothing.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what
//! comes out. Bounded by: the kit's patience.

use std::io::{Read, Write};
use std::net::TcpStream;

use tidings::Notice;

use super::stations::rest;
use crate::Driver;
use crate::kit::{Kit, PATIENCE, host, numbered, open};

/// A stream that nobody reads lags by itself; its neighbours in the same node and elsewhere hear
/// everything.
pub fn a_reader_that_never_reads_changes_nothing_for_another<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut lazy = kit.subscribe(&reader, open("lazy/reader").queue_capacity(16), 1);
    let mut busy = kit.subscribe(&reader, open("lazy/reader"), 1);
    let other = kit.node(4, &[&station]);
    let mut elsewhere = kit.subscribe(&other, open("lazy/reader"), 1);
    for n in 0..500 {
        kit.routed(&writer, numbered("lazy/reader", n));
        kit.numbers(&mut busy, n, n + 1);
    }
    kit.numbers(&mut elsewhere, 0, 500);
    // What the lazy one did not read is counted to the last fact.
    let (heard, notices) = rest(&kit, &mut lazy);
    let missed: u64 = notices
        .iter()
        .map(|notice| match notice {
            Notice::Lagged { missed, .. } => *missed,
            other => panic!("only a lag, not {other:?}"),
        })
        .sum();
    assert_eq!(heard.len() as u64 + missed, 500, "{notices:?}");
    assert!(
        missed > 0 && heard.last() == Some(&499),
        "{missed} missed, {heard:?}"
    );
}

/// What a port scanner sends ends its own connection.
pub fn a_connection_of_garbage_ends_only_its_own_link<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut facts = kit.subscribe(&reader, open("port/scan"), 1);
    let at = host(&driver.station_address(&station));
    let garbage: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\x00\x00\x00\x04\xa0\xa0\xa0\xa0",
    ];
    for (n, bytes) in garbage.iter().enumerate() {
        let mut scanner = TcpStream::connect(&at).expect("the station accepts");
        scanner
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        scanner.write_all(bytes).expect("written");
        // The station answers what it likes, and ends the connection.
        let mut answer = Vec::new();
        if let Err(error) = scanner.read_to_end(&mut answer) {
            assert_eq!(
                error.kind(),
                std::io::ErrorKind::ConnectionReset,
                "garbage {n}: {error}"
            );
        }
        assert!(answer.len() < 4096);
        kit.routed(&writer, numbered("port/scan", n as u64));
    }
    // One that says nothing at all does not hold anybody up either.
    let _silent = TcpStream::connect(&at).expect("the station accepts");
    kit.routed(&writer, numbered("port/scan", 5));
    kit.numbers(&mut facts, 0, 6);
    kit.quiet(&mut facts);
}
