//! Nobody does anything, and nothing is done: a hot loop anywhere shows here. Alone in its process, because it counts the process's
//! time.
#![cfg(target_os = "linux")]

mod common;

use std::net::TcpStream;
use std::time::Duration;

use common::{dialling, fact, node, number, numbered, open, station, subscribe};
use tidings::OnFull;
use tidings_mio::Node;

/// Processor time of this process so far, in ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name before it may hold spaces; user and system time are the 12th and 13th field after it.
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let times = fields.skip(11).take(2);
    times.map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn idle_paused_lonely_and_closed_nodes_cost_no_time() {
    let station = station();
    let streams: Vec<_> = (10..30)
        .map(|part| subscribe(&node(part, &station.address()), open("idle/topic")))
        .collect();
    // One whose stream is full and whose link is therefore not read.
    let paused = node(2, &station.address());
    let full = open("idle/paused").on_full(OnFull::Pause).queue_capacity(4);
    let mut full = subscribe(&paused, full);
    let writer = node(3, &station.address());
    for n in 0..50 {
        let pending = writer.try_publish(numbered("idle/paused", n)).unwrap();
        pending.wait();
    }
    // One whose station is not there, one that is closed and kept, and one whose station says nothing.
    let lonely = Node::start(dialling(4, "tcp://127.0.0.1:9")).unwrap();
    let closed = node(5, &station.address());
    closed.close();
    let silent = TcpStream::connect(station.local_addr()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks();
    std::thread::sleep(Duration::from_secs(3));
    let spent = ticks() - before;
    assert!(spent < 30, "{spent} ticks of 300 were spent on nothing");
    for n in 0..50 {
        assert_eq!(number(&fact(&mut full)), n);
    }
    drop((lonely, closed, streams, silent));
}
