//! Stations die and come back under load, one at a time: nothing is lost, nothing comes twice.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{PATIENCE, key, number, numbered, open};
use tidings::code::GapReason;
use tidings::{Item, Notice, Outcome, Refusal};
use tidings_tokio::{Node, StationServer};

async fn start(part: u8, at: &str) -> StationServer {
    let builder = StationServer::builder(key(part)).listen(at).unwrap();
    builder.start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stations_that_die_in_turn_lose_nothing() {
    const DEATHS: u8 = 6;
    let mut stations = [start(1, "127.0.0.1:0").await, start(2, "127.0.0.1:0").await];
    let both = |part| {
        let builder = Node::builder(key(part))
            .station(&stations[0].address())
            .unwrap();
        builder
            .station(&stations[1].address())
            .unwrap()
            .start()
            .unwrap()
    };
    let (reader, writer) = (both(3), both(4));
    reader.connected(2, PATIENCE).await.unwrap();
    writer.connected(2, PATIENCE).await.unwrap();
    let mut facts = reader.subscribe(open("chaos/facts")).unwrap();
    facts.carried(2, PATIENCE).await.unwrap();
    let mut watch = reader.subscribe(open("chaos/none")).unwrap();

    let over = Arc::new(AtomicBool::new(false));
    let publishing = tokio::spawn({
        let (writer, over) = (writer.clone(), Arc::clone(&over));
        async move {
            let mut published = 0;
            while !over.load(Ordering::SeqCst) {
                match writer.publish(numbered("chaos/facts", published)).await {
                    Ok(outcome) => {
                        assert!(matches!(outcome, Outcome::Routed { .. }), "{outcome:?}");
                        published += 1;
                    }
                    Err(refused) => assert_eq!(refused.reason, Refusal::NoStation),
                }
            }
            published
        }
    });
    let reading = tokio::spawn(async move {
        let mut expected = 0;
        loop {
            // Each station is a mesh of its own: what it alone admitted may have died with it, and it says so.
            let item = facts.next().await.expect("the stream goes on");
            let fact = match item {
                Item::Fact(fact) => fact,
                Item::Notice(notice) => {
                    let expired = GapReason::Expired;
                    assert!(
                        matches!(*notice, Notice::Gap { reason, .. } if reason == expired),
                        "{notice:?}"
                    );
                    continue;
                }
                other => panic!("{other:?}"),
            };
            if fact.decode::<String>().is_ok() {
                return expected;
            }
            assert_eq!(number(&fact), expected, "{fact:?}");
            expected += 1;
        }
    });
    for death in 0..DEATHS {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let dies = usize::from(death % 2);
        let at = stations[dies].local_addr().to_string();
        stations[dies].kill().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        stations[dies] = start(u8::try_from(dies).unwrap() + 1, &at).await;
        // Both carry again before the other one dies.
        watch.carried(2, PATIENCE).await.unwrap();
        reader.connected(2, PATIENCE).await.unwrap();
        writer.connected(2, PATIENCE).await.unwrap();
    }
    over.store(true, Ordering::SeqCst);
    let published = publishing.await.unwrap();
    let last = tidings::Publish::new(common::realm(), "chaos/facts", "last").unwrap();
    writer.publish(last).await.unwrap();
    assert_eq!(reading.await.unwrap(), published);
    assert!(
        published > 100,
        "{published} facts went through {DEATHS} deaths"
    );
    println!("{published} facts through {DEATHS} deaths");
}
