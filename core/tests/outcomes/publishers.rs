//! Publishers: handles that end and are cancelled as one, and what is announced of them.

use std::collections::BTreeMap;

use super::rig::{Rig, TOPIC, Written, refused, request, routed};
use super::{config, limited};
use tidings::wire::cbor;
use tidings::{Outcome, PublisherId, Refusal};

const STARTED: &str = "pubsub.publish_started_v1";
const COMPLETED: &str = "pubsub.publish_completed_v1";

/// The texts of an announcement, and its `publish_id`.
fn announced(written: &Written) -> (BTreeMap<String, String>, Vec<u8>) {
    let mut texts = BTreeMap::new();
    let mut id = Vec::new();
    let mut entries = cbor::Reader::new(&written.payload)
        .entries()
        .expect("a map");
    while let Some(Some((key, value))) = entries.next_entry() {
        let key = String::from_utf8(key.to_vec()).expect("a text");
        match value {
            cbor::Value::Bytes(bytes) => {
                assert_eq!(key, "publish_id");
                id = bytes.to_vec();
            }
            cbor::Value::Text(text) => {
                texts.insert(key, text.to_owned());
            }
            other => panic!("{key}: {other:?}"),
        }
    }
    (texts, id)
}

fn topics(written: &[Written]) -> Vec<&str> {
    written.iter().map(|one| one.topic.as_str()).collect()
}

fn open(rig: &mut Rig, announce: bool) -> PublisherId {
    rig.client.open_publisher(announce).expect("room")
}

/// What it says when it is over.
fn completed(rig: &mut Rig) -> (String, Option<String>) {
    let last = rig.take_written().pop().expect("something was written");
    assert_eq!(last.topic, COMPLETED);
    let (mut texts, id) = announced(&last);
    assert_eq!(id.len(), 16);
    let outcome = texts.remove("outcome").expect("always there");
    (outcome, texts.remove("reason"))
}

#[test]
fn a_publisher_announces_its_start_before_its_first_publication_and_its_end_after_its_last() {
    let mut rig = Rig::up_with(config().replication_factor(1), 1);
    let publisher = open(&mut rig, true);
    assert_eq!(rig.written, [], "nothing has begun");
    rig.publish(request(1).by(publisher)).expect("room");
    rig.publish(request(2).by(publisher)).expect("room");
    assert!(rig.end_publisher(publisher));
    let written = rig.take_written();
    assert_eq!(topics(&written), [STARTED, TOPIC, TOPIC]);
    let (texts, id) = announced(&written[0]);
    assert_eq!(texts, BTreeMap::from([("topic".into(), TOPIC.into())]));
    rig.answer(0, written[0].id, refused());
    rig.answer(0, written[1].id, routed(1));
    assert_eq!(rig.written, [], "one is not settled");
    rig.answer(0, written[2].id, Outcome::NoSubscriber);
    let (texts, again) = announced(&rig.written[0]);
    assert_eq!(again, id, "both name the same");
    assert_eq!(
        texts,
        BTreeMap::from([("outcome".into(), "completed".into())])
    );
    assert_eq!(rig.settled.len(), 2, "announcements are nobody's tickets");
    assert!(!rig.end_publisher(publisher), "it is over");
}

#[test]
fn a_publisher_that_does_not_announce_costs_nothing() {
    let bytes = |with: bool| {
        let mut rig = Rig::up_with(config(), 2);
        let publisher = with.then(|| open(&mut rig, false));
        for number in 0..3 {
            let request = match publisher {
                Some(publisher) => request(number).by(publisher),
                None => request(number),
            };
            rig.publish(request).expect("room");
        }
        rig.end_publisher_if(publisher);
        let sum = rig.client.memory();
        let tickets = sum.lines.iter().find(|line| line.name == "tickets");
        (rig.take_written(), tickets.expect("a line").used)
    };
    assert_eq!(bytes(true), bytes(false));
}

#[test]
fn cancelling_a_publisher_settles_all_it_has_under_way_and_says_so() {
    let mut rig = Rig::up_with(config().replication_factor(1), 1);
    let (publisher, other) = (open(&mut rig, true), open(&mut rig, false));
    let done = rig.publish(request(1).by(publisher)).expect("room");
    let two = rig.publish(request(2).by(publisher)).expect("room");
    let three = rig.publish(request(3).by(publisher)).expect("room");
    rig.publish(request(4).by(other)).expect("room");
    rig.publish(request(5)).expect("room");
    let written = rig.take_written();
    rig.answer(0, written[1].id, routed(1));
    assert!(rig.cancel_publisher(publisher));
    let cancelled = Outcome::Cancelled;
    assert_eq!(
        rig.settled,
        [(done, routed(1)), (two, cancelled), (three, cancelled)]
    );
    assert_eq!(completed(&mut rig), ("cancelled".into(), None));
    assert!(!rig.cancel_publisher(publisher), "it is over");
    assert_eq!(
        rig.publish(request(6).by(publisher)),
        Err(Refusal::PublisherEnded)
    );
    // The answers of what was given up come late.
    rig.answer(0, written[2].id, routed(1));
    assert_eq!(rig.settled.len(), 3);
}

#[test]
fn the_first_failure_is_the_reason_of_a_publisher_that_failed() {
    let mut rig = Rig::up_with(config().replication_factor(1), 1);
    let publisher = open(&mut rig, true);
    rig.publish(request(1).by(publisher)).expect("room");
    rig.publish(request(2).by(publisher)).expect("room");
    rig.publish(request(3).by(publisher)).expect("room");
    let written = rig.take_written();
    rig.answer(0, written[1].id, routed(1));
    rig.answer(0, written[2].id, refused());
    assert!(rig.end_publisher(publisher));
    assert_eq!(rig.written, [], "the third is not settled");
    assert_eq!(
        rig.publish(request(4).by(publisher)),
        Err(Refusal::PublisherEnded)
    );
    rig.time(5000);
    assert_eq!(
        completed(&mut rig),
        ("failed".into(), Some("dedup_full".into()))
    );
}

#[test]
fn an_ended_publisher_can_be_cancelled_until_its_last_publication_is_settled() {
    let mut rig = Rig::up_with(config().replication_factor(1), 1);
    let publisher = open(&mut rig, true);
    let ticket = rig.publish(request(1).by(publisher)).expect("room");
    rig.end_publisher(publisher);
    assert!(rig.cancel_publisher(publisher));
    assert_eq!(rig.settled, [(ticket, Outcome::Cancelled)]);
    assert_eq!(completed(&mut rig), ("cancelled".into(), None));
}

#[test]
fn announcements_are_never_in_the_way_of_a_publication_and_what_cannot_be_said_is_counted() {
    let small = limited(|limits| {
        (limits.publish_window, limits.open_publishers) = (1, 2);
    });
    let mut rig = Rig::up_with(small.replication_factor(1), 1);
    let publisher = open(&mut rig, true);
    rig.publish(request(1).by(publisher))
        .expect("the announcement takes no room");
    assert_eq!(topics(&rig.written), [STARTED, TOPIC]);
    rig.down(0);
    rig.end_publisher(publisher);
    rig.time(5000);
    assert_eq!(rig.counted("announcements_dropped"), 1, "no link was up");
    assert_eq!(rig.settled.len(), 1);
}

#[test]
fn a_refused_first_publication_announces_nothing() {
    let mut rig = Rig::with(config(), 1);
    let publisher = open(&mut rig, true);
    assert_eq!(
        rig.publish(request(1).by(publisher)),
        Err(Refusal::NoStation)
    );
    rig.up(0);
    assert_eq!(rig.written, []);
    rig.cancel_publisher(publisher);
    assert_eq!(rig.written, [], "what never began is not over");
}

#[test]
fn as_many_publishers_are_open_as_the_limit_says() {
    let mut rig = Rig::with(limited(|limits| limits.open_publishers = 2), 1);
    let first = open(&mut rig, false);
    open(&mut rig, true);
    assert_eq!(
        rig.client.open_publisher(false),
        Err(Refusal::TooManyPublishers)
    );
    rig.end_publisher(first);
    let third = open(&mut rig, false);
    assert_ne!(third, first, "a handle is never used again");
    rig.client.close(rig.now);
    assert_eq!(rig.client.open_publisher(false), Err(Refusal::Closed));
}

#[test]
fn announcements_keep_to_the_epochs_that_are_kept() {
    let kept = super::rig::START * 1000 + 2;
    let mut rig = Rig::up_with(config().keep_epochs(true).replication_factor(1), 1);
    rig.client.epochs_kept(kept);
    let publisher = open(&mut rig, true);
    rig.publish(request(1).by(publisher)).expect("kept");
    let written = rig.take_written();
    rig.time(60);
    rig.answer(0, written[1].id, routed(1));
    rig.end_publisher(publisher);
    let epochs: Vec<u64> = written
        .iter()
        .chain(&rig.written)
        .map(|one| one.epoch)
        .collect();
    assert_eq!(epochs, [kept - 1, kept - 2, kept]);
}
