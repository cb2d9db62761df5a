//! The two drivers with each other: what one publishes through a station of the other is heard by both.

mod common;

use std::time::Duration;

use common::{PATIENCE, fact, key, node, number, numbered, open, realm, subscribe};
use tidings::{Item, Outcome, Sources, Subscribe};
use tidings_mio::{StationServer, StationSettings};
use tokio::runtime::Runtime;

/// Each of a node here and a node there publishes; each hears both, in order.
fn meet(address: &str, runtime: &Runtime) {
    let here = node(2, address);
    let mut heard_here = subscribe(&here, open("mixed/*"));
    let there = runtime.block_on(async {
        let builder = tidings_tokio::Node::builder(key(3)).station(address);
        let there = builder.unwrap().start().unwrap();
        there.connected(1, PATIENCE).await.unwrap();
        there
    });
    let mut heard_there = runtime.block_on(async {
        let request = Subscribe::new(realm(), "mixed/*", Sources::Open);
        let mut stream = there.subscribe(request).unwrap();
        stream.carried(1, PATIENCE).await.unwrap();
        stream
    });
    for n in 0..100 {
        let routed = Outcome::Routed { subscribers: 2 };
        assert_eq!(here.publish(numbered("mixed/here", n)).unwrap(), routed);
        let published = runtime.block_on(there.publish(numbered("mixed/there", n)));
        assert_eq!(published.unwrap(), routed);
    }
    let mut next = [[0; 2]; 2];
    for _ in 0..200 {
        let theirs = runtime.block_on(async {
            let item = tokio::time::timeout(PATIENCE, heard_there.next()).await;
            match item.unwrap().unwrap() {
                Item::Fact(fact) => fact,
                other => panic!("a fact, not {other:?}"),
            }
        });
        for (who, fact) in [fact(&mut heard_here), theirs].into_iter().enumerate() {
            let from = usize::from(fact.topic() == "mixed/there");
            assert_eq!(number(&fact), next[who][from]);
            next[who][from] += 1;
        }
    }
    runtime.block_on(there.close());
}

#[test]
fn nodes_of_both_drivers_meet_at_stations_of_either_over_tls_and_plain() {
    let runtime = Runtime::new().unwrap();
    for scheme in ["tls", "tcp"] {
        let at = format!("{scheme}://127.0.0.1:0");
        let settings = StationSettings::new(key(1)).listen(&at).unwrap();
        let ours = StationServer::start(settings).unwrap();
        meet(&ours.address(), &runtime);
        let builder = tidings_tokio::StationServer::builder(key(1)).listen(&at);
        let theirs = runtime.block_on(builder.unwrap().start()).unwrap();
        meet(&theirs.address(), &runtime);
        runtime.block_on(theirs.close());
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
}
