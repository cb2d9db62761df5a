//! Signatures that threads of the node's own check. One test alone in its process: it counts threads.
#![cfg(target_os = "linux")]

mod common;

use common::{fact, node, number, numbered, open, realm, station, subscribe, up};
use tidings::{Item, Publish};

fn verifiers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.starts_with("tidings-verify"))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_start_when_needed_and_end_with_the_node_and_a_burst_waits_for_them() {
    let station = station().start().await.unwrap();
    let reader = up(node(2, &station).verify_threads(2)).await;
    let mut facts = subscribe(&reader, open("verify/burst").queue_capacity(10_000)).await;
    assert_eq!(verifiers(), 0);

    // The station signs faster than two threads verify, and says more at once than may be asked at once.
    const BURST: u64 = 6000;
    let reading = tokio::spawn(async move {
        for n in 0..BURST {
            match facts.next().await.unwrap() {
                Item::Fact(fact) => assert_eq!(fact.decode::<u64>().unwrap(), n),
                other => panic!("{other:?} before {n}"),
            }
        }
        facts
    });
    for n in 0..BURST {
        let own = Publish::new(realm(), "verify/burst", &n).unwrap();
        station.publish(own).unwrap();
    }
    let mut facts = reading.await.unwrap();
    assert_eq!(verifiers(), 2);

    let writer = up(node(3, &station).verify_threads(0)).await;
    writer
        .publish(numbered("verify/burst", BURST))
        .await
        .unwrap();
    assert_eq!(number(&fact(&mut facts).await), BURST);
    assert_eq!(verifiers(), 2);
    reader.close().await;
    assert_eq!(verifiers(), 0);
}
