//! What is kept of lanes that fell silent, and what a turn works off when much is due at once.

mod common;

use common::{EPOCH, Fact, Far, Node, TOPIC, at, open, realm, signer, station};
use tidings::pump::LinkIo;
use tidings::wire::{Frame, MAX_MAX_FRAME, Phase, Split, next_frame};
use tidings::{
    Binding, ClientConfig, ClientLimits, Intake, LinkEvent, Publish, Sources, StationConfig,
    StationLimits, Subscribe, Turn,
};

const OTHER: &str = "weather/acme/app/nights/measured_v1";

fn all() -> Subscribe {
    Subscribe::new(realm(), "weather/**", Sources::Open)
}

fn records(node: &Node) -> usize {
    let memory = node.client.memory();
    memory.line("resting_lanes").expect("a line").used
}

/// A node that heard one fact on each of two topics, and eleven minutes of silence since.
fn silent(resting_lanes: usize) -> Node {
    let mut limits = ClientLimits::default();
    limits.resting_lanes = resting_lanes;
    let config = ClientConfig::new(signer(1)).limits(limits);
    let mut node = Node::with(config, 1, all());
    for topic in [TOPIC, OTHER] {
        let first = Fact {
            topic,
            ..Fact::numbered(1)
        };
        node.fact(at(0), 0, first);
    }
    assert_eq!(node.words(), ["1", "1"]);
    node.time(at(11 * 60_000));
    node
}

fn goes_on(node: &mut Node) -> Vec<String> {
    let now = at(12 * 60_000);
    node.time(now);
    for topic in [TOPIC, OTHER] {
        let second = Fact {
            topic,
            published_at: now.wall,
            ..Fact::numbered(2)
        };
        node.fact(now, 0, second);
    }
    node.words()
}

#[test]
fn a_stream_whose_record_found_no_room_is_resynced_and_the_other_goes_on() {
    let mut node = silent(2);
    assert_eq!(records(&node), 2);
    assert_eq!(goes_on(&mut node), ["2", "2"]);
    let mut node = silent(1);
    assert_eq!(records(&node), 1);
    let mut words = goes_on(&mut node);
    node.time(at(13 * 60_000));
    words.extend(node.words());
    words.sort();
    assert_eq!(words, ["2", "2", "resynced"]);
}

#[test]
fn the_records_of_a_subscription_go_with_it() {
    let mut node = silent(2);
    let now = at(11 * 60_000);
    let other = node.client.subscribe(now, open()).expect("room");
    node.client
        .unsubscribe(now, node.stream)
        .expect("it is there");
    assert_eq!(node.words(), ["ended"]);
    assert_eq!(records(&node), 0);
    assert!(node.client.subscription(other).is_some());
}

#[test]
fn a_turn_works_off_a_bounded_number_of_deadlines_and_says_when_there_are_more() {
    let mut one = station(StationConfig::new(signer(1)));
    for _ in 0..600 {
        let up = LinkEvent::Up {
            dialled: None,
            binding: Binding::Local,
        };
        one.handle_link(at(0), up).expect("room");
    }
    let turns: Vec<Turn> = (0..3).map(|_| one.handle_timeout(at(60_000))).collect();
    assert_eq!(turns, [Turn::More, Turn::More, Turn::Done]);
    assert_eq!(common::closed(&mut one).len(), 600);

    let mut node = Node::new(1, all());
    for n in 0..600 {
        let topic = format!("weather/{n}");
        let second = Fact {
            topic: &topic,
            epoch: Some(EPOCH),
            ..Fact::numbered(2)
        };
        node.fact(at(1), 0, second);
    }
    let turns: Vec<Turn> = (0..3)
        .map(|_| node.client.handle_timeout(at(251)))
        .collect();
    assert_eq!(turns, [Turn::More, Turn::More, Turn::Done]);
    assert_eq!(node.words().len(), 600);
}

#[test]
fn an_answer_that_is_held_goes_with_the_link_it_is_for() {
    let mut limits = StationLimits::default();
    limits.ring_items = 2;
    let mut one = station(StationConfig::new(signer(1)).limits(limits));
    let mut from = Far::dial(&mut one, at(0), signer(7));
    let mut reader = Far::dial(&mut one, at(0), signer(8));
    assert_eq!(
        reader.subscribe(&mut one, at(0), 1, TOPIC),
        Ok(Intake::Open)
    );
    reader.read(&mut one, at(0));
    for seq in 1..=2 {
        let object = Fact::numbered(seq).sign(&signer(7));
        assert_eq!(
            from.publish(&mut one, at(1), seq, &object),
            Ok(Intake::Open)
        );
    }
    // The reader is more than half a ring behind from the second on.
    assert_eq!(from.types(&mut one, at(1)), ["published 1 routed"]);
    let down = LinkEvent::Down {
        link: from.id,
        reason: tidings::code::CloseReason::Io,
    };
    one.handle_link(at(2), down).expect("it was up");
    let mut again = Far::dial(&mut one, at(2), signer(7));
    assert_eq!(reader.types(&mut one, at(2)), ["event 1", "event 2"]);
    common::move_to(&mut one, at(5000));
    assert_eq!(again.types(&mut one, at(5000)), Vec::<String>::new());
}

#[test]
fn what_the_transport_takes_in_pieces_of_any_size_is_what_was_written() {
    let long = "x".repeat(3000);
    for step in [1, 3, 1000, usize::MAX] {
        let mut one = station(StationConfig::new(signer(1)));
        let mut reader = Far::dial(&mut one, at(0), signer(2));
        assert_eq!(
            reader.subscribe(&mut one, at(0), 1, TOPIC),
            Ok(Intake::Open)
        );
        for text in [&long, "short"] {
            let request = Publish::new(realm(), TOPIC, text).expect("text");
            assert_eq!(one.publish(at(1), request).ok(), Some(1));
        }
        let mut io = LinkIo::new(reader.id);
        let mut written = Vec::new();
        while io.fill(&mut one) {
            let mut slices: [&[u8]; 1] = [&[]];
            assert_eq!(io.chunks(&mut slices), 1);
            let taken = slices[0].len().min(step);
            written.extend_from_slice(&slices[0][..taken]);
            io.wrote(&mut one, at(1), taken);
        }
        let mut kinds = Vec::new();
        let mut rest = &written[..];
        while let Ok(Split::Frame { body, taken }) = next_frame(rest, MAX_MAX_FRAME) {
            let frame = Frame::decode(body, Phase::Established).expect("a frame");
            kinds.push(common::kind(&frame));
            rest = &rest[taken..];
        }
        assert_eq!(kinds, ["subscribed 1", "event 1", "event 2"]);
        assert!(rest.is_empty());
    }
}
