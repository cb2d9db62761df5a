//! Nobody does anything, and nothing is done: a hot loop anywhere shows here. Alone in its process,
//! because it counts the process's time.
#![cfg(target_os = "linux")]

mod common;

use std::time::Duration;

use common::{fact, key, node, number, numbered, open, station, subscribe, up};
use tidings::OnFull;
use tidings_tokio::Node;

/// Processor time of this process so far, in ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name before it may hold spaces; user and system time are the 12th and 13th field after
    // it.
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap())
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_paused_lonely_and_closed_nodes_cost_no_time() {
    let station = station().start().await.unwrap();
    let mut streams = Vec::new();
    for part in 10..30 {
        let reader = up(node(part, &station)).await;
        streams.push(subscribe(&reader, open("idle/topic")).await);
    }
    // One whose stream is full and whose link is therefore not read.
    let paused = up(node(2, &station)).await;
    let full = open("idle/paused").on_full(OnFull::Pause).queue_capacity(4);
    let mut full = subscribe(&paused, full).await;
    let writer = up(node(3, &station)).await;
    for n in 0..50 {
        writer
            .try_publish(numbered("idle/paused", n))
            .unwrap()
            .await;
    }
    // One whose station is not there, and one that is closed and kept.
    let lonely = Node::builder(key(4))
        .station("tcp://127.0.0.1:9")
        .unwrap()
        .start()
        .unwrap();
    let closed = up(node(5, &station)).await;
    closed.close().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = ticks();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let spent = ticks() - before;
    assert!(spent < 30, "{spent} ticks of 300 were spent on nothing");
    for n in 0..50 {
        assert_eq!(number(&fact(&mut full).await), n);
    }
    drop((lonely, closed, streams));
}
