//! Machines in a loop of the application's, and handles of many threads.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{
    dialling, fact, key, node, number, numbered, open, settings, station, subscribe, until,
};
use mio::{Events, Poll, Token};
use tidings::code::SealPolicy;
use tidings::{Action, Answer, Group, Item, Misuse, Notice, Outcome, Question, Ready, Refusal};
use tidings_mio::{Driven, Node, NodeSettings, SharedKeys, StartError, Table, WaitError};

#[test]
fn a_station_and_a_node_share_one_loop_and_one_thread() {
    const FACTS: u64 = 500;
    let mut poll = Poll::new().unwrap();
    let registry = poll.registry();
    // The station's tokens are above those the node will ever use.
    let (mut station, at) = Driven::station(settings(), registry, Token(1 << 20)).unwrap();
    let (mut node, _) =
        Driven::node(dialling(2, &format!("tcp://{at}")), registry, Token(1)).unwrap();
    let stream = node.with(|client, now| client.subscribe(now, open("loops/one")).unwrap());
    let mut events = Events::with_capacity(64);
    let (mut published, mut heard, mut routed) = (0, 0, 0);
    let start = Instant::now();
    while !(node.is_closed() && station.is_closed()) {
        assert!(
            start.elapsed() < common::PATIENCE,
            "{published} {heard} {routed}"
        );
        let wait = [node.timeout(), station.timeout()]
            .into_iter()
            .flatten()
            .min();
        poll.poll(&mut events, wait).unwrap();
        for event in &events {
            let Token(token) = event.token();
            assert!(match token < 1 << 20 {
                true => node.handle_event(event),
                false => station.handle_event(event),
            });
        }
        while let Some(action) = station.turn() {
            assert!(matches!(action, Action::Report(_)), "{action:?}");
        }
        while let Some(action) = node.turn() {
            match action {
                Action::Settle { outcome, .. } => {
                    assert_eq!(outcome, Outcome::Routed { subscribers: 1 });
                    routed += 1;
                }
                Action::Ready(Ready::Subscription(ready)) => {
                    assert_eq!(ready, stream);
                    while let Some(item) = node.with(|client, _| client.poll_item(stream)) {
                        match item {
                            Item::Fact(fact) => {
                                assert_eq!(number(&fact), heard);
                                heard += 1;
                            }
                            other => assert!(published == FACTS, "{other:?}"),
                        }
                    }
                }
                _ => {}
            }
        }
        let carried = node.machine().subscription(stream);
        if carried.is_some_and(|status| status.carriers > 0) && published < FACTS {
            let request = numbered("loops/one", published);
            match node.with(|client, now| client.publish(now, request)) {
                Ok(_) => published += 1,
                Err(refused) => assert_eq!(refused.reason, Refusal::WouldBlock),
            }
        }
        if heard == FACTS && routed == FACTS {
            node.close();
            station.close();
        }
    }
    assert_eq!((published, heard, routed), (FACTS, FACTS, FACTS));
}

#[test]
fn handles_of_many_threads_have_their_turn_beside_a_busy_loop() {
    let station = station();
    let node = node(2, &station.address());
    let mut facts = subscribe(&node, open("loops/*"));
    let writers: Vec<_> = (0..8)
        .map(|part| {
            let node = node.clone();
            thread::spawn(move || {
                for n in 0..50 {
                    let outcome = node.publish(numbered(&format!("loops/{part}"), n));
                    assert_eq!(outcome.unwrap(), Outcome::Routed { subscribers: 1 });
                }
            })
        })
        .collect();
    let mut next = [0; 8];
    for _ in 0..8 * 50 {
        let fact = fact(&mut facts);
        let part: usize = fact.topic().trim_start_matches("loops/").parse().unwrap();
        assert_eq!(number(&fact), next[part]);
        next[part] += 1;
    }
    for writer in writers {
        writer.join().unwrap();
    }
}

#[test]
fn a_publication_waits_for_room_and_none_is_lost() {
    let station = station();
    let node = node(2, &station.address());
    let mut facts = subscribe(&node, open("loops/room"));
    // More than the publish window holds, and none is waited for before the last.
    let mut pending = Vec::new();
    let mut waited = 0;
    for n in 0..2000 {
        let request = numbered("loops/room", n);
        match node.try_publish(request) {
            Ok(one) => pending.push(one),
            Err(refused) => {
                assert_eq!(refused.reason, Refusal::WouldBlock);
                waited += 1;
                let outcome = node.publish(refused.request).unwrap();
                assert_eq!(outcome, Outcome::Routed { subscribers: 1 });
            }
        }
        while facts.status().unwrap().queued > 100 {
            // At one time: more may come between two looks.
            let status = facts.status().unwrap();
            let first = status.delivered - status.queued as u64;
            assert_eq!(number(&fact(&mut facts)), first);
        }
    }
    for one in pending {
        assert_eq!(one.wait(), Outcome::Routed { subscribers: 1 });
    }
    assert!(waited > 0, "the window was full at times");
}

#[test]
fn a_stream_goes_on_in_the_next_run_where_it_was_committed() {
    let station = station();
    let writer = node(3, &station.address());
    let reader = node(2, &station.address());
    let mut facts = subscribe(&reader, open("loops/commit").committing());
    for n in 0..10 {
        writer.publish(numbered("loops/commit", n)).unwrap();
    }
    let mut last = None;
    for _ in 0..5 {
        last = Some(fact(&mut facts));
    }
    let kept = facts.commit(last.as_ref().unwrap()).unwrap();
    let other = subscribe(&reader, open("loops/else"));
    assert_eq!(
        other.commit(last.as_ref().unwrap()),
        Err(Misuse::NotCommitting)
    );
    reader.close();
    let again = node(2, &station.address());
    let request = open("loops/commit").resume_from(&kept).unwrap();
    let mut facts = subscribe(&again, request);
    let Some(Item::Notice(notice)) = facts.next(common::PATIENCE) else {
        panic!("the end of the interruption");
    };
    assert!(matches!(*notice, Notice::Resumed { .. }), "{notice:?}");
    for n in 5..10 {
        assert_eq!(number(&fact(&mut facts)), n);
    }
}

#[test]
fn the_last_handle_dropped_says_goodbye_and_a_closed_node_answers() {
    let station = station();
    let node_one = node(2, &station.address());
    let facts = subscribe(&node_one, open("loops/drop"));
    drop(node_one);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(station.status().links.len(), 1, "the stream is a handle");
    drop(facts);
    until("it left", || station.status().links.is_empty());

    let node_two = node(3, &station.address());
    let mut facts = subscribe(&node_two, open("loops/drop"));
    node_two.close();
    node_two.close();
    let Some(Item::Notice(notice)) = facts.next(common::PATIENCE) else {
        panic!("the stream ends");
    };
    assert!(matches!(*notice, Notice::Ended { .. }), "{notice:?}");
    assert!(facts.has_ended() && facts.next(common::PATIENCE).is_none());
    let refused = node_two.publish(numbered("loops/drop", 1)).unwrap_err();
    assert_eq!(refused.reason, Refusal::Closed);
    assert_eq!(
        node_two.connected(1, common::PATIENCE),
        Err(WaitError::Ended)
    );
}

#[test]
fn in_a_loop_of_the_applications_own_questions_are_handed_out_to_be_answered_there() {
    let station = station();
    let realm = tidings_suite::help::realm();
    let keys = SharedKeys::new(realm, "loops/acme", SealPolicy::Required, 60_000, &[5; 32]);
    let table = Table::new().group(keys.unwrap());
    let poll = Poll::new().unwrap();
    let settings = dialling(2, &station.address());
    let (mut node, _) = Driven::node(settings, poll.registry(), Token(1)).unwrap();
    let group = Group::new(realm, "loops/acme");
    let group = node.with(|client, now| client.join_group(now, group).unwrap());
    let mut ready = None;
    while let Some(action) = node.turn() {
        match action {
            Action::Ask {
                ask,
                question: Question::KeyPeriods(question),
                ..
            } => node.with(|client, now| {
                let answer = Answer::KeyPeriods(table.key_periods(&question, now.wall));
                client.answer(now, ask, answer).unwrap();
            }),
            Action::Keys {
                group: of,
                ready: now,
            } if of == group => ready = Some(now),
            _ => {}
        }
    }
    assert_eq!(ready, Some(Ok(SealPolicy::Required)));
    // No station is there yet, but the key is.
    let sealed = numbered("loops/acme/one", 1).group(group);
    let refused = node.with(|client, now| client.publish(now, sealed).unwrap_err());
    assert_eq!(refused.reason, Refusal::NoStation);
}

#[test]
fn a_node_without_stations_does_not_start() {
    let refused = Node::start(NodeSettings::new(key(2))).unwrap_err();
    assert_eq!(refused, StartError::NoStation);
}

#[test]
fn a_station_that_drains_lets_its_readers_have_all_there_is() {
    let station = station();
    let reader = node(2, &station.address());
    let mut facts = subscribe(&reader, open("loops/drain"));
    for n in 0..100 {
        reader.publish(numbered("loops/drain", n)).unwrap();
    }
    station.drain();
    for n in 0..100 {
        assert_eq!(number(&fact(&mut facts)), n);
    }
    let Some(Item::Notice(notice)) = facts.next(common::PATIENCE) else {
        panic!("an interruption");
    };
    assert!(matches!(*notice, Notice::Interrupted { .. }), "{notice:?}");
}
