//! Slow sockets and slow readers: less speed, nothing lost.

mod common;

use std::time::Duration;

use common::{PATIENCE, fact, node, number, numbered, open, realm, station, subscribe, up};
use tidings::{ClientLimits, OnFull, Outcome, Publish, Refusal, StationLimits};

#[tokio::test]
async fn writes_that_are_taken_in_part_go_on_where_they_stopped() {
    let station = station().socket_buffers(4096).start().await.unwrap();
    let reader = up(node(2, &station).socket_buffers(4096)).await;
    let writer = up(node(3, &station).socket_buffers(4096)).await;
    let mut facts = subscribe(&reader, open("pressure/partial")).await;
    let text: String = (0..200_000u32)
        .map(|n| char::from(b'a' + (n % 23) as u8))
        .collect();
    for _ in 0..5 {
        let large = Publish::new(realm(), "pressure/partial", &text).unwrap();
        writer.publish(large).await.unwrap();
        assert!(fact(&mut facts).await.decode::<String>().unwrap() == text);
    }
    assert!(station.io().partial_writes > 5, "{:?}", station.io());
    assert!(writer.io().partial_writes > 5, "{:?}", writer.io());
}

#[tokio::test]
async fn long_frames_of_many_links_are_read_in_turn_and_all_arrive() {
    let mut limits = StationLimits::default();
    limits.read_bytes = 1 << 20;
    let most = limits.read_bytes;
    let station = station().limits(limits).socket_buffers(4096);
    let station = station.start().await.unwrap();
    let reader = up(node(2, &station)).await;
    let mut facts = subscribe(&reader, open("pressure/long")).await;
    let mut writers = Vec::new();
    for key in 3..11 {
        let writer = up(node(key, &station).socket_buffers(4096)).await;
        writers.push(tokio::spawn(async move {
            let text = "x".repeat(900_000);
            let long = Publish::new(realm(), "pressure/long", &text).unwrap();
            writer.publish(long).await.unwrap()
        }));
    }
    for _ in 0..8 {
        let text = fact(&mut facts).await.decode::<String>().unwrap();
        assert_eq!(text.len(), 900_000);
        assert!(station.memory().line("read_bytes").unwrap().used <= most);
    }
    for writer in writers {
        assert!(matches!(writer.await.unwrap(), Outcome::Routed { .. }));
    }
    assert_eq!(station.memory().line("read_bytes").unwrap().used, 0);
    let counters = station.status().counters;
    let later = counters.iter().find(|(name, _)| *name == "reads_later");
    assert!(later.unwrap().1 > 0, "{counters:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_reader_loses_nothing_of_50_000_facts() {
    const FACTS: u64 = 50_000;
    let station = station().start().await.unwrap();
    // On a busy machine a thread that checks signatures may itself wait for a quarter of a second.
    let patient = node(2, &station).order_timeout(PATIENCE);
    let (reader, writer) = (up(patient).await, up(node(3, &station)).await);
    let slow = open("pressure/pause")
        .on_full(OnFull::Pause)
        .queue_capacity(32);
    let mut facts = subscribe(&reader, slow).await;
    let publisher = tokio::spawn(async move {
        let mut waiting = std::collections::VecDeque::new();
        for n in 0..FACTS {
            let mut request = numbered("pressure/pause", n);
            loop {
                match writer.try_publish(request) {
                    Ok(pending) => break waiting.push_back(pending),
                    Err(refused) => {
                        assert_eq!(refused.reason, Refusal::WouldBlock);
                        request = refused.request;
                        writer.ready_to_publish().await;
                    }
                }
            }
            while waiting.len() > 200 {
                waiting.pop_front().unwrap().await;
            }
        }
        for pending in waiting {
            pending.await;
        }
        writer
    });
    for n in 0..FACTS {
        assert_eq!(number(&fact(&mut facts).await), n);
        if n % 5000 == 0 {
            // Long enough for the queue, the sockets and the station's answers to fill up.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let writer = publisher.await.unwrap();
    let status = facts.status().unwrap();
    assert_eq!(status.delivered, FACTS, "{status:?}");
    // Many frames go with each write: the writer's, and the station's events and answers.
    let (sent, relayed) = (writer.io(), station.io());
    assert!(sent.writes <= FACTS / 16, "{sent:?}");
    assert!(relayed.writes <= FACTS / 16, "{relayed:?}");
}

#[tokio::test]
async fn publish_waits_for_room_and_keeps_its_turn() {
    let station = station().start().await.unwrap();
    let (reader, builder) = (up(node(2, &station)).await, node(3, &station));
    let mut limits = ClientLimits::default();
    limits.publish_window = 4;
    let writer = up(builder.limits(limits)).await;
    let mut facts = subscribe(&reader, open("pressure/room")).await;
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            let writer = writer.clone();
            tokio::spawn(async move { writer.publish(numbered("pressure/room", n)).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mut heard = Vec::new();
    for _ in 0..200 {
        heard.push(number(&fact(&mut facts).await));
    }
    heard.sort_unstable();
    assert_eq!(heard, (0..200).collect::<Vec<_>>());
}
