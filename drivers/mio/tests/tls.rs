//! Secure links: long facts.

mod common;

use std::thread;

use common::{fact, key, node, open, subscribe};
use tidings_mio::{StationServer, StationSettings};

fn secure() -> StationServer {
    let settings = StationSettings::new(key(1)).listen("tls://127.0.0.1:0");
    StationServer::start(settings.unwrap()).unwrap()
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
