//! Futures that are dropped half way lose nothing they do not say they lose.

mod common;

use std::time::Duration;

use common::{fact, node, number, numbered, open, station, subscribe, up};
use tidings::{Item, Notice, Outcome};
use tidings_tokio::WaitError;

#[tokio::test]
async fn next_can_be_dropped_at_any_poll_without_losing_an_item() {
    let station = station().start().await.unwrap();
    let (reader, writer) = (up(node(2, &station)).await, up(node(3, &station)).await);
    let mut facts = subscribe(&reader, open("cancel/next")).await;
    let publisher = tokio::spawn(async move {
        for n in 0..300 {
            writer.publish(numbered("cancel/next", n)).await.unwrap();
        }
    });
    let mut heard = Vec::new();
    let mut cancelled = 0;
    while heard.len() < 300 {
        // `next` is polled, registers its waker, and is dropped while its item may be on the way.
        tokio::select! {
            biased;
            item = facts.next() => match item {
                Some(Item::Fact(fact)) => heard.push(number(&fact)),
                other => panic!("a fact, not {other:?}"),
            },
            () = tokio::task::yield_now() => cancelled += 1,
        }
    }
    assert!(cancelled > 10, "{cancelled} futures were dropped");
    assert_eq!(heard, (0..300).collect::<Vec<_>>());
    publisher.await.unwrap();
}

#[tokio::test]
async fn a_dropped_pending_cancels_nothing_and_cancel_does() {
    let station = station().start().await.unwrap();
    let (reader, writer) = (up(node(2, &station)).await, up(node(3, &station)).await);
    let mut facts = subscribe(&reader, open("cancel/pending")).await;
    drop(writer.try_publish(numbered("cancel/pending", 0)).unwrap());
    assert_eq!(number(&fact(&mut facts).await), 0);
    let pending = writer.try_publish(numbered("cancel/pending", 1)).unwrap();
    pending.cancel().unwrap();
    assert_eq!(pending.await, Outcome::Cancelled);
    // The next one is not held up, whether the cancelled one was heard or not.
    writer.publish(numbered("cancel/pending", 2)).await.unwrap();
    loop {
        match facts.next().await.unwrap() {
            Item::Fact(fact) if number(&fact) == 2 => break,
            Item::Fact(fact) => assert_eq!(number(&fact), 1),
            // Its number stays used, so its reader is told.
            Item::Notice(notice) => assert!(matches!(
                *notice,
                Notice::Skipped {
                    first: 2,
                    last: 2,
                    ..
                }
            )),
            other => panic!("a fact or a notice, not {other:?}"),
        }
    }
}

#[tokio::test]
async fn waits_can_be_dropped_and_asked_again() {
    let station = station().start().await.unwrap();
    let reader = node(2, &station).start().unwrap();
    let mut facts = reader.subscribe(open("cancel/waits")).unwrap();
    for _ in 0..20 {
        tokio::time::timeout(Duration::ZERO, reader.connected(1, common::PATIENCE))
            .await
            .ok();
        tokio::time::timeout(Duration::ZERO, facts.carried(1, common::PATIENCE))
            .await
            .ok();
        tokio::time::timeout(Duration::ZERO, reader.ready_to_publish())
            .await
            .ok();
    }
    assert_eq!(reader.connected(1, common::PATIENCE).await, Ok(1));
    assert_eq!(facts.carried(1, common::PATIENCE).await, Ok(1));
    let short = Duration::from_millis(20);
    let expected = WaitError::TimedOut {
        reached: 1,
        wanted: 2,
    };
    assert_eq!(facts.carried(2, short).await, Err(expected));
    assert_eq!(reader.connected(2, short).await, Err(expected));
    tokio::time::timeout(Duration::ZERO, reader.close())
        .await
        .ok();
    reader.close().await;
    assert_eq!(facts.carried(1, short).await, Err(WaitError::Ended));
    assert_eq!(reader.connected(1, short).await, Err(WaitError::Ended));
}

#[tokio::test]
async fn the_last_handle_says_goodbye() {
    let station = station().start().await.unwrap();
    let reader = up(node(2, &station)).await;
    let facts = subscribe(&reader, open("cancel/handles")).await;
    drop(reader);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(
        station.status().links.len(),
        1,
        "a subscription is a handle"
    );
    drop(facts);
    for _ in 0..200 {
        if station.status().links.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", station.status());
}
