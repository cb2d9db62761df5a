//! Nodes and connections that come and go leave nothing behind.

mod common;

use std::time::Duration;

use common::{PATIENCE, fact, key, node, number, numbered, open, station, subscribe, up};
use tidings_tokio::{Node, StartError, StationServer};
use tokio::net::TcpStream;

async fn links(station: &StationServer, count: usize) {
    for _ in 0..1000 {
        if station.status().links.len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{count} links, not {}", station.status().links.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connects_and_disconnects_leave_memory_where_it_was() {
    let station = station().start().await.unwrap();
    let (reader, writer) = (up(node(2, &station)).await, up(node(3, &station)).await);
    let mut facts = subscribe(&reader, open("churn/facts")).await;
    let mut before = 0;
    for round in 0..1000u64 {
        // One that joins in the middle waits this long for what may come before its first fact.
        let joins = node(4, &station).order_timeout(Duration::from_millis(1));
        let passing = up(joins).await;
        let mut heard = subscribe(&passing, open("churn/facts")).await;
        writer
            .publish(numbered("churn/facts", round))
            .await
            .unwrap();
        assert_eq!(number(&fact(&mut facts).await), round);
        assert_eq!(number(&fact(&mut heard).await), round);
        if round % 3 == 0 {
            drop((passing, heard));
        } else {
            passing.close().await;
        }
        if round == 100 {
            links(&station, 2).await;
            before = station.memory().bytes();
        }
    }
    links(&station, 2).await;
    let after = station.memory().bytes();
    // 900 facts more are in the ring and remembered; the 900 nodes are not.
    assert!(after < before + 900 * 1024, "{before} bytes, then {after}");
}

#[tokio::test]
async fn connections_that_say_nothing_are_dropped_with_the_station() {
    let station = station().start().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(station.local_addr()).await.unwrap());
    }
    links(&station, 50).await;
    silent.truncate(20);
    links(&station, 20).await;
    station.close().await;
    assert_eq!(station.status().links.len(), 0);
    assert!(TcpStream::connect(station.local_addr()).await.is_err());
}

#[tokio::test]
async fn connections_beyond_the_limit_are_dropped_at_once() {
    let mut limits = tidings::StationLimits::default();
    limits.links = 3;
    let station = station().limits(limits).start().await.unwrap();
    let reader = up(node(2, &station)).await;
    let mut others = Vec::new();
    for _ in 0..10 {
        others.push(TcpStream::connect(station.local_addr()).await.unwrap());
    }
    for _ in 0..200 {
        if station.io().refused_connections == 8 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(station.io().refused_connections, 8);
    assert_eq!(reader.connected(1, PATIENCE).await, Ok(1));
}

#[tokio::test]
async fn a_killed_station_frees_its_port_at_once() {
    let first = station().start().await.unwrap();
    let at = first.local_addr();
    let reader = up(node(2, &first)).await;
    first.kill().await;
    let second = StationServer::builder(key(1))
        .listen(&at.to_string())
        .unwrap()
        .start()
        .await
        .unwrap();
    assert_eq!(second.local_addr(), at);
    reader.connected(1, PATIENCE).await.unwrap();
    let third = StationServer::builder(key(9))
        .listen(&at.to_string())
        .unwrap()
        .start()
        .await;
    assert_eq!(third.err(), Some(StartError::PortInUse { address: at }));
}

#[test]
fn starting_without_a_runtime_or_a_station_is_refused() {
    let builder = Node::builder(key(2))
        .station("tcp://127.0.0.1:7400")
        .unwrap();
    assert_eq!(builder.start().err(), Some(StartError::NoRuntime));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    assert_eq!(
        Node::builder(key(2)).start().err(),
        Some(StartError::NoStation)
    );
}
