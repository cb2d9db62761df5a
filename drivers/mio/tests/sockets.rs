//! What sockets do to a driver: block one way, end by halves, come in bursts, run out.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    PATIENCE, dialling, fact, node, number, numbered, open, realm, station, subscribe, until,
};
use tidings::{OnFull, Publish};
use tidings_mio::{Node, StationServer};

/// Forwards one connection to `to`; what comes back from there only while `back` says so.
fn valve(to: SocketAddr, back: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut far = TcpStream::connect(to).unwrap();
        let (mut near_out, mut far_in) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || {
            let mut buffer = vec![0; 4096];
            loop {
                if !back.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                }
                match far_in.read(&mut buffer) {
                    Ok(bytes) if bytes > 0 => near_out.write_all(&buffer[..bytes]).unwrap(),
                    _ => return,
                }
            }
        });
        std::io::copy(&mut near, &mut far).ok();
    });
    at
}

#[test]
fn a_blocked_write_does_not_stop_reading() {
    const FACTS: u64 = 150;
    let station = station();
    let reader = node(2, &station.address());
    let mut facts = subscribe(&reader, open("sockets/blocked"));
    let back = Arc::new(AtomicBool::new(true));
    let at = valve(station.local_addr(), Arc::clone(&back));
    let through = node(3, &format!("tcp://{at}"));
    // It hears itself, so the station has far more to write to it than the sockets between hold.
    let mut own = subscribe(&through, open("sockets/blocked"));
    back.store(false, Ordering::SeqCst);
    let large: String = "x".repeat(100_000);
    let pending: Vec<_> = (0..FACTS)
        .map(|n| {
            let request = Publish::new(realm(), "sockets/blocked", &(n, &large)).unwrap();
            through.try_publish(request).unwrap()
        })
        .collect();
    for n in 0..FACTS {
        let heard: (u64, String) = fact(&mut facts).decode().unwrap();
        assert_eq!(heard.0, n);
    }
    let unread = own.status().unwrap();
    assert!(
        unread.delivered < FACTS / 2,
        "the way back was shut: {unread:?}"
    );
    back.store(true, Ordering::SeqCst);
    for n in 0..FACTS {
        let heard: (u64, String) = fact(&mut own).decode().unwrap();
        assert_eq!(heard.0, n);
    }
    for pending in pending {
        pending.wait();
    }
}

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

#[cfg(unix)]
mod exhaustion {
    use super::*;

    /// Runs the test below in a process with few file descriptors.
    #[test]
    fn a_station_out_of_file_descriptors_goes_on_accepting_later() {
        let me = std::env::current_exe().unwrap();
        let status = std::process::Command::new("sh")
            .args([
                "-c",
                "ulimit -n 48; exec \"$0\" --ignored --exact exhaustion::inside",
            ])
            .arg(me)
            .status()
            .unwrap();
        assert!(status.success());
    }

    #[test]
    #[ignore = "run by the test above, which limits file descriptors first"]
    fn inside() {
        let station = station();
        let reader = node(2, &station.address());
        let mut facts = subscribe(&reader, open("sockets/exhausted"));
        let mut taken = Vec::new();
        while let Ok(stream) = TcpStream::connect(station.local_addr()) {
            taken.push(stream);
        }
        until("it ran out", || station.io().refused_connections > 0);
        // Those it has go on, and new ones come when there is room again.
        reader.publish(numbered("sockets/exhausted", 0)).unwrap();
        assert_eq!(number(&fact(&mut facts)), 0);
        taken.clear();
        let late = node(3, &station.address());
        late.publish(numbered("sockets/exhausted", 1)).unwrap();
        assert_eq!(number(&fact(&mut facts)), 1);
    }
}
