//! What sockets do to a driver: end by halves, come in bursts.

mod common;

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{PATIENCE, dialling, fact, node, number, numbered, open, station, subscribe, until};
use tidings::OnFull;
use tidings_mio::{Node, StationServer};

#[test]
fn br_72_a_paused_link_is_read_again_without_a_new_edge() {
    let station = station();
    let reader = node(2, &station.address());
    let full = open("sockets/paused")
        .on_full(OnFull::Pause)
        .queue_capacity(4);
    let mut facts = subscribe(&reader, full);
    let writer = node(3, &station.address());
    let pending: Vec<_> = (0..200)
        .map(|n| writer.try_publish(numbered("sockets/paused", n)).unwrap())
        .collect();
    // All of it was written to the socket long before anybody reads.
    thread::sleep(Duration::from_millis(300));
    assert!(facts.status().unwrap().delivered < 10, "it waits");
    for n in 0..200 {
        assert_eq!(number(&fact(&mut facts)), n);
    }
    for pending in pending {
        pending.wait();
    }
}

#[test]
fn what_came_before_the_other_sides_end_is_read_and_the_end_is_noticed_at_once() {
    let station = station();
    let before = station.status().links.len();
    for reset in [false, true] {
        let mut peer = TcpStream::connect(station.local_addr()).unwrap();
        until("it is a link", || station.status().links.len() > before);
        if reset {
            // Unread bytes of the station's opener make this a reset.
            thread::sleep(Duration::from_millis(50));
        } else {
            peer.write_all(b"\x00\x00").unwrap();
            peer.shutdown(Shutdown::Write).unwrap();
        }
        let since = Instant::now();
        drop(peer);
        until("it is gone", || station.status().links.len() == before);
        assert!(since.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_burst_of_connections_holds_nobody_up() {
    let station = station();
    let reader = node(2, &station.address());
    let mut facts = subscribe(&reader, open("sockets/burst"));
    let burst: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(station.local_addr()).unwrap())
        .collect();
    for n in 0..20 {
        reader.publish(numbered("sockets/burst", n)).unwrap();
        assert_eq!(number(&fact(&mut facts)), n);
    }
    until("all are links", || {
        station.status().links.len() == burst.len() + 1
    });
    drop(burst);
    until("all are gone", || station.status().links.len() == 1);
}

#[test]
fn a_station_that_comes_later_is_dialled_again_until_it_is_there() {
    let probe = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = probe.local_addr().unwrap().to_string();
    drop(probe);
    let node = Node::start(dialling(2, &format!("tcp://{at}"))).unwrap();
    assert!(node.connected(1, Duration::from_millis(300)).is_err());
    let settings = tidings_mio::StationSettings::new(common::key(1));
    let _station = StationServer::start(settings.listen(&format!("tcp://{at}")).unwrap()).unwrap();
    node.connected(1, PATIENCE).unwrap();
}
