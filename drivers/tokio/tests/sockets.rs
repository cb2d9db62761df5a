//! What sockets do to a driver: race, vanish with their runtime.

mod common;

use std::time::Duration;

use common::{PATIENCE, fact, key, node, number, numbered, open, station, subscribe, up};

#[tokio::test]
async fn copies_that_race_over_a_slowed_station_are_one_fact() {
    let fast = station().start().await.unwrap();
    let slow = tidings_tokio::StationServer::builder(key(9))
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .delay_writes(Duration::from_millis(15));
    let slow = slow.start().await.unwrap();
    let both = |part| node(part, &fast).station(&slow.address()).unwrap();
    let (reader, writer) = (both(2).start().unwrap(), both(3).start().unwrap());
    reader.connected(2, PATIENCE).await.unwrap();
    writer.connected(2, PATIENCE).await.unwrap();
    let mut facts = reader.subscribe(open("sockets/race")).unwrap();
    facts.carried(2, PATIENCE).await.unwrap();
    for n in 0..100 {
        writer.publish(numbered("sockets/race", n)).await.unwrap();
    }
    for n in 0..100 {
        assert_eq!(number(&fact(&mut facts).await), n);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(facts.status().unwrap().queued, 0, "{:?}", facts.status());
    let duplicates = tidings::code::ObjectFault::Duplicate;
    let counted = reader.status().faults.of(duplicates);
    assert_eq!(counted, 100, "{:?}", reader.status());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_checked_by_other_threads_change_nothing_else() {
    let station = station().start().await.unwrap();
    let asked = node(2, &station).verify_threads(2);
    let (reader, writer) = (up(asked).await, up(node(3, &station)).await);
    let mut facts = subscribe(&reader, open("sockets/asked")).await;
    let publishing = tokio::spawn(async move {
        for n in 0..500 {
            writer.publish(numbered("sockets/asked", n)).await.unwrap();
        }
    });
    for n in 0..500 {
        assert_eq!(number(&fact(&mut facts).await), n);
    }
    publishing.await.unwrap();
}

#[test]
fn a_runtime_that_ends_first_takes_nobody_with_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (station, node, facts, pending) = runtime.block_on(async {
        let station = station().start().await.unwrap();
        let node = up(node(2, &station)).await;
        let facts = subscribe(&node, open("sockets/runtime")).await;
        let pending = node.try_publish(numbered("sockets/runtime", 0)).unwrap();
        (station, node, facts, pending)
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    assert!(
        node.status().links.iter().all(|line| line.link.is_none()),
        "{:?}",
        node.status()
    );
    drop((facts, pending, node, station));
}
