//! What holds at the last millisecond, the last byte, and for the second copy.

mod common;

use common::{
    EPOCH, Fact, Far, Node, TOPIC, asked, at, id_of, items, open, realm, signer, station,
};
use tidings::code::ObjectFault;
use tidings::sim::{FAKE_PROFILE, Net};
use tidings::wire::{self, Body, Draft, Frame, Phase, Publication};
use tidings::{
    Action, Answer, ClientConfig, ClientLimits, Duration, Instant, Intake, Item, Now, Publish,
    Ready, Station, StationConfig, StationLimits, Verification,
};

#[test]
fn a_fact_that_found_no_room_is_delivered_when_another_station_brings_it() {
    let mut limits = ClientLimits::default();
    limits.held_bytes = 4096;
    let config = ClientConfig::new(signer(1)).max_frame(1024).limits(limits);
    let mut node = Node::with(config, 2, open());
    // Number 1 is missing, so the others wait, and a quarter of the bytes is less than eight of them.
    for seq in 2..=9 {
        node.seq(at(1), 0, seq);
    }
    node.time(at(20_000));
    let told = node.words();
    assert!(
        told.contains(&"2".into()) && !told.contains(&"9".into()),
        "{told:?}"
    );
    node.seq(at(20_001), 1, 9);
    assert_eq!(node.words(), ["*9"]);
}

/// The same publication under another signature, which is no good.
fn other_signature(object: &[u8], with: u8) -> Vec<u8> {
    let parsed = Publication::parse(object, FAKE_PROFILE).expect("well formed");
    let place = object
        .windows(64)
        .position(|window| window == parsed.signature);
    let mut twin = object.to_vec();
    twin[place.expect("it is in there")] ^= with;
    twin
}

#[test]
fn of_one_fact_under_two_signatures_that_wait_for_their_answers_one_is_delivered() {
    for last_first in [false, true] {
        let config = ClientConfig::new(signer(1)).verification(Verification::Asked);
        let mut node = Node::with(config, 1, open());
        let object = Fact::numbered(1).sign(&*node.publisher);
        let twin = other_signature(&object, 1);
        node.object(at(1), 0, &object);
        node.object(at(1), 0, &twin);
        let mut asked = asked(&mut node.client);
        assert_eq!(asked.len(), 2);
        if last_first {
            asked.reverse();
        }
        for (ask, _) in asked {
            let answer = Answer::Verified(true);
            node.client.answer(at(2), ask, answer).expect("open");
        }
        node.time(at(20_000));
        assert_eq!(node.words(), ["1"], "the second is a copy, and no conflict");
    }
}

#[test]
fn of_one_fact_at_most_sixteen_signatures_are_asked_about_at_once_and_who_has_no_room_is_told() {
    let config = ClientConfig::new(signer(1)).verification(Verification::Asked);
    let mut node = Node::with(config, 1, open());
    let object = Fact::numbered(1).sign(&*node.publisher);
    for with in 1..=16 {
        // A second copy under the same signature waits for the answer to the first.
        for _ in 0..2 {
            node.object(at(1), 0, &other_signature(&object, with));
        }
    }
    node.object(at(1), 0, &object);
    assert_eq!(node.faults(ObjectFault::Duplicate), 16);
    // Another publication has room.
    node.seq(at(1), 0, 2);
    let asked_about = asked(&mut node.client);
    assert_eq!(asked_about.len(), 16 + 1);
    for (ask, job) in asked_about {
        let answer = Answer::Verified(job.run());
        node.client.answer(at(2), ask, answer).expect("open");
    }
    assert_eq!(node.faults(ObjectFault::SignatureInvalid), 16);
    // None of them was remembered: a later copy gets another chance.
    node.object(at(3), 0, &object);
    for (ask, job) in asked(&mut node.client) {
        let answer = Answer::Verified(job.run());
        node.client.answer(at(3), ask, answer).expect("open");
    }
    node.time(at(5000));
    assert_eq!(node.words(), ["1", "2", "dropped verify_full 1"]);
}

#[test]
fn nobody_is_asked_about_what_a_stranger_signed_in_the_name_of_somebody_known() {
    let config = ClientConfig::new(signer(1)).verification(Verification::Asked);
    let mut node = Node::with(config, 1, open());
    node.seq(at(1), 0, 1);
    for (ask, job) in asked(&mut node.client) {
        let answer = Answer::Verified(job.run());
        node.client.answer(at(1), ask, answer).expect("open");
    }
    let payload = wire::to_payload(&2u64).expect("a number");
    let draft = Draft {
        realm: realm(),
        topic: TOPIC,
        publisher: id_of(&*node.publisher),
        epoch: Some(EPOCH),
        seq: 2,
        published_at: at(1).wall,
        ttl_ms: None,
        one: false,
        body: Body::Payload(&payload),
    };
    let mut object = Vec::new();
    draft.sign(&signer(9), &mut object).expect("it signs");
    node.object(at(2), 0, &object);
    assert_eq!(asked(&mut node.client).len(), 0);
    assert_eq!(node.faults(ObjectFault::KeyIdMismatch), 1);
    assert_eq!(node.words(), ["1"]);
}

/// A driver asks no further, and hears of what comes then.
#[test]
fn what_is_handed_out_says_that_more_follows_only_where_it_does() {
    let mut node = Node::new(2, open());
    while node.client.poll_action().is_some() {}
    let link = node.links[0].id;
    let publish = |node: &mut Node, times: u64| {
        for n in 0..times {
            let request = Publish::new(realm(), TOPIC, &n).expect("a number");
            node.client.publish(at(1), request).expect("there is room");
        }
        let mut announced = 0;
        while let Some(action) = node.client.poll_action() {
            announced += u32::from(matches!(action, Action::Ready(Ready::Link(id)) if id == link));
        }
        announced
    };
    let next = |node: &mut Node| {
        let transmit = node.client.poll_transmit(link, &mut Vec::new());
        transmit.map(|transmit| transmit.more)
    };
    assert_eq!(publish(&mut node, 2), 1);
    assert_eq!(
        [next(&mut node), next(&mut node)],
        [Some(true), Some(false)]
    );
    assert_eq!(publish(&mut node, 1), 1);
    // An answer goes first.
    let far = &mut node.links[0];
    let taken = far.frame(&mut node.client, at(1), &Frame::Ping(&[1; 16]));
    assert_eq!(taken, Ok(Intake::Open));
    assert_eq!(
        [next(&mut node), next(&mut node)],
        [Some(true), Some(false)]
    );
    assert_eq!(next(&mut node), None);
    assert_eq!(publish(&mut node, 1), 1);
}

#[test]
fn an_entry_of_a_ring_is_read_through_its_last_millisecond_and_not_beyond() {
    for (over, read) in [(0, "event 1"), (1, "skipped 1")] {
        let (mut station, mut from, mut reader) = busy(StationLimits::default());
        let short = Fact {
            published_at: at(0).wall.saturating_sub(wire::SKEW_MS),
            ttl_ms: Some(10),
            ..Fact::numbered(1)
        };
        for (now, id, fact) in [(1, 1, short), (10 + over, 2, Fact::numbered(2))] {
            let object = fact.sign(&signer(7));
            let taken = from.publish(&mut station, at(now), id, &object);
            assert_eq!(taken, Ok(Intake::Open));
        }
        let types = reader.types(&mut station, at(10 + over));
        assert_eq!(types, [read, "event 2"]);
    }
}

#[test]
fn the_ages_of_what_a_reader_lost_are_whole_milliseconds_of_a_window_that_holds_it() {
    let mut limits = StationLimits::default();
    limits.ring_items = 1;
    let (mut station, mut from, mut reader) = busy(limits);
    for seq in 1..=2 {
        let object = Fact::numbered(seq).sign(&signer(7));
        let taken = from.publish(&mut station, at(seq), seq, &object);
        assert_eq!(taken, Ok(Intake::Open));
    }
    // Its place began with the topic at 1 ms, when the lost one was admitted.
    let now = Now::new(
        Instant::from_millis(3).saturating_add(Duration::from_micros(1)),
        at(3).wall,
    );
    // Handing out takes no time: the station has to be told what time it is.
    common::move_to(&mut station, now);
    let _turn = station.handle_timeout(now);
    let bodies = reader.read(&mut station, now);
    let ages: Vec<_> = bodies
        .iter()
        .filter_map(|body| match Frame::decode(body, Phase::Established) {
            Ok(Frame::Skipped(skipped)) => Some((skipped.count, skipped.from, skipped.to)),
            _ => None,
        })
        .collect();
    assert_eq!(ages, [(1, 3, 2)]);
}

#[test]
fn an_object_that_fits_its_link_to_the_byte_is_delivered_and_one_byte_more_is_not() {
    let mut net = Net::new(4);
    let station = net.station(StationConfig::new(signer(100)));
    let publisher = net.client(ClientConfig::new(signer(1)), &[station]);
    let reader = net.client(ClientConfig::new(signer(2)).max_frame(1024), &[station]);
    net.run_for(common::secs(1));
    let now = net.now();
    let stream = net.at(reader).subscribe(now, open()).expect("accepted");
    net.run_for(common::secs(1));
    // A zero is one byte, so each object is one byte longer than the one before.
    for zeros in 500..900 {
        let request = Publish::new(realm(), TOPIC, &vec![0u8; zeros]).expect("an array");
        let now = net.now();
        net.at(publisher).publish(now, request).expect("room");
        net.run_for(common::ms(5));
    }
    net.run_for(common::secs(1));
    let got = items(net.at(reader), stream);
    let longest = got.iter().filter_map(|item| match item {
        Item::Fact(fact) => Some(fact.bytes().len()),
        _ => None,
    });
    assert_eq!(longest.max(), Some(1024 - wire::MAX_HEAD));
}

#[test]
fn the_numbers_of_the_wire_are_those_of_its_document() {
    assert_eq!(wire::VERSION, 1);
    assert_eq!(wire::HANDSHAKE_CAP, 4096);
    assert_eq!(wire::MIN_MAX_FRAME, 512);
    assert_eq!(wire::DEFAULT_MAX_FRAME, 1_048_576);
    assert_eq!(wire::MAX_MAX_FRAME, 16_777_215);
    assert_eq!(wire::MAX_HEAD, 128);
    assert_eq!(wire::MAX_DETAIL, 256);
    assert_eq!(wire::NUMBER_LIMIT, 9_007_199_254_740_992);
    assert_eq!(wire::DEFAULT_TTL_MS, 600_000);
    assert_eq!(wire::MAX_TTL_MS, 3_600_000);
    assert_eq!(wire::SKEW_MS, 300_000);
}

#[test]
fn a_copy_whose_memory_was_given_up_is_no_conflict_whatever_was_given_up_after_it() {
    let mut limits = ClientLimits::default();
    limits.order_max_buffer = 4;
    limits.dedup_entries = 8;
    let config = ClientConfig::new(signer(1)).limits(limits);
    let mut node = Node::with(config, 2, open());
    // With number 6 a publisher holds its share, and what is decided goes in the order in which it came.
    for seq in [1, 2, 3, 5, 4, 6] {
        node.seq(at(1), 0, seq);
    }
    assert_eq!(node.words(), ["1", "2", "3", "4", "5", "6"]);
    node.seq(at(2), 1, 5);
    node.time(at(20_000));
    assert_eq!(node.words(), Vec::<String>::new());
}

/// A station with a publisher and a reader that has not read anything.
fn busy(limits: StationLimits) -> (Station, Far, Far) {
    let mut station = station(StationConfig::new(signer(100)).limits(limits));
    let from = Far::dial(&mut station, at(0), signer(7));
    let mut reader = Far::dial(&mut station, at(0), signer(8));
    let taken = reader.subscribe(&mut station, at(0), 1, TOPIC);
    assert_eq!(taken, Ok(Intake::Open));
    assert_eq!(reader.types(&mut station, at(0)), ["subscribed 1"]);
    (station, from, reader)
}

fn publish(station: &mut Station, from: &mut Far, id: u64, route: wire::Route, object: &[u8]) {
    let publish = wire::Publish {
        id,
        route,
        publication: object,
    };
    let taken = from.frame(station, at(1), &Frame::Publish(publish));
    assert_eq!(taken, Ok(Intake::Open));
}

#[test]
fn as_many_publications_as_the_window_says_wait_for_their_answers_and_no_more() {
    let mut limits = StationLimits::default();
    limits.ring_items = 2;
    limits.publish_window = 2;
    let (mut station, mut from, _reader) = busy(limits);
    for seq in 1..=4 {
        let object = Fact::numbered(seq).sign(&signer(7));
        publish(&mut station, &mut from, seq, wire::Route::All, &object);
    }
    // The reader is more than half a ring behind from the second on.
    let answers = from.types(&mut station, at(1));
    assert_eq!(answers, ["published 1 routed", "published 4 window_full"]);
}

#[test]
fn what_another_signed_and_what_says_another_route_is_refused() {
    let (mut station, mut from, mut reader) = busy(StationLimits::default());
    let one = Fact {
        one: true,
        ..Fact::numbered(2)
    };
    let other = Fact::numbered(1).sign(&signer(9));
    publish(&mut station, &mut from, 1, wire::Route::All, &other);
    let one = one.sign(&signer(7));
    publish(&mut station, &mut from, 2, wire::Route::All, &one);
    let all = Fact::numbered(3).sign(&signer(7));
    publish(&mut station, &mut from, 3, wire::Route::One, &all);
    let answers = [
        "published 1 not_the_publisher",
        "published 2 route_mismatch",
        "published 3 route_mismatch",
    ];
    assert_eq!(from.types(&mut station, at(1)), answers);
    assert_eq!(reader.types(&mut station, at(1)), Vec::<String>::new());
}

#[test]
fn a_copy_under_another_signature_is_answered_as_the_first_was() {
    let (mut station, mut from, mut reader) = busy(StationLimits::default());
    let object = Fact::numbered(1).sign(&signer(7));
    let twin = other_signature(&object, 1);
    publish(&mut station, &mut from, 1, wire::Route::All, &object);
    publish(&mut station, &mut from, 2, wire::Route::All, &twin);
    let answers = ["published 1 routed", "published 2 routed"];
    assert_eq!(from.types(&mut station, at(1)), answers);
    assert_eq!(reader.types(&mut station, at(1)), ["event 1"]);
}

#[test]
fn a_station_that_makes_room_remembers_what_came_before_a_hole() {
    let mut limits = StationLimits::default();
    limits.dedup_entries = 8;
    let (mut station, mut from, mut reader) = busy(limits);
    for (id, seq) in [1, 5, 6, 7, 8, 9, 1].into_iter().enumerate() {
        let object = Fact::numbered(seq).sign(&signer(7));
        publish(
            &mut station,
            &mut from,
            id as u64 + 1,
            wire::Route::All,
            &object,
        );
    }
    let answers = from.types(&mut station, at(1));
    assert!(
        answers.iter().all(|answer| answer.ends_with("routed")),
        "{answers:?}"
    );
    assert_eq!(reader.types(&mut station, at(1)).len(), 6);
}
