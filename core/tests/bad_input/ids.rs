//! Ids: reused, never given out, answered twice.

use tidings::code::{ObjectFault, OutcomeCode, SkipReason};
use tidings::wire::{Frame, Progress, Published, Skipped};
use tidings::{
    ClientConfig, Intake, LinkError, Publish, Sources, StationConfig, StationRef, Subscribe,
};

use super::common::{Fact, Far, TOPIC, at, closed, items, realm, signer, words};
use super::{Honest, HonestClient, HonestStation, counter, ended, goodbye};

#[test]
fn an_id_reused_ends_the_link() {
    let mut station = HonestStation::new(StationConfig::new(signer(1)));
    let fact = Fact {
        topic: "weather/unheard",
        ..Fact::numbered(1)
    };
    let object = fact.sign(&signer(66));
    for (first, second) in [(1, 1), (2, 1), (7, 7)] {
        for publish_first in [false, true] {
            for publish_then in [false, true] {
                let mut far = station.stranger(at(0));
                far.shake_hands(&mut station.station, at(0));
                let machine = &mut station.station;
                let mut ask = |publish: bool, id: u64| match publish {
                    true => far.publish(machine, at(0), id, &object),
                    false => far.subscribe(machine, at(0), id, "weather/other"),
                };
                assert_eq!(ask(publish_first, first), Ok(Intake::Open));
                let error = LinkError::IdReused;
                assert_eq!(ask(publish_then, second), Err(error));
                let wrote = far.types(&mut station.station, at(0));
                assert_eq!(wrote.last(), Some(&goodbye(error)));
                assert_eq!(closed(&mut station.station), [(far.id, error.code())]);
                station.still_delivers(at(0));
            }
        }
    }
}

#[test]
fn what_speaks_of_an_id_never_given_out_ends_the_link() {
    let object = Fact::numbered(1).sign(&signer(7));
    let skipped = Skipped {
        id: 9,
        to: 0,
        from: 0,
        peer: None,
        count: 1,
        reason: tidings::code::SkipReason::Overrun,
    };
    let progress = Progress {
        id: 9,
        offset: 1,
        behind_ms: 0,
    };
    let published = Published {
        id: 9,
        limit: None,
        reason: None,
        outcome: OutcomeCode::NoSubscriber,
        subscribers: 0,
    };
    let refused = tidings::wire::Refused {
        id: 9,
        limit: None,
        reason: tidings::code::SubscribeRefusal::Purged,
    };
    let event = tidings::wire::Event {
        id: 9,
        via: tidings::wire::Via::Direct,
        offset: 1,
        publication: &object,
    };
    let frames = [
        Frame::Event(event),
        Frame::Progress(progress),
        Frame::Published(published),
        Frame::Refused(refused),
        Frame::Skipped(skipped),
    ];
    for frame in frames {
        let mut client = HonestClient::new(ClientConfig::new(signer(1)));
        let mut far = client.stranger(at(0));
        far.shake_hands(&mut client.client, at(0));
        assert_eq!(far.types(&mut client.client, at(0)), ["subscribe 1"]);
        drop(closed(&mut client.client));
        let error = LinkError::UnknownId;
        assert_eq!(far.frame(&mut client.client, at(0), &frame), Err(error));
        ended(&mut client, at(0), &mut far, error, &goodbye(error));
    }
}

#[test]
fn what_a_station_says_of_a_stream_it_has_not_accepted_is_counted_and_changes_nothing() {
    let mut client = common_client();
    let mut far = Far::answer(&mut client, at(0), signer(100), StationRef(0));
    let request = Subscribe::new(realm(), TOPIC, Sources::Open);
    let stream = client.subscribe(at(0), request).expect("accepted here");
    assert_eq!(far.types(&mut client, at(0)), ["subscribe 1"]);
    let progress = Frame::Progress(Progress {
        id: 1,
        offset: 7,
        behind_ms: 0,
    });
    let skipped = Frame::Skipped(Skipped {
        id: 1,
        to: 0,
        from: 5,
        peer: None,
        count: 3,
        reason: SkipReason::Overrun,
    });
    for frame in [progress, skipped] {
        assert_eq!(far.frame(&mut client, at(0), &frame), Ok(Intake::Open));
    }
    assert_eq!(counter(&client.status().counters, "unasked_frames"), 2);
    assert!(items(&mut client, stream).is_empty());
}

#[test]
fn a_second_answer_is_counted_and_changes_nothing() {
    let mut client = common_client();
    let mut far = Far::answer(&mut client, at(0), signer(100), StationRef(0));
    let request = Publish::new(realm(), TOPIC, &1).expect("a number");
    let ticket = client.publish(at(0), request).expect("room");
    assert_eq!(far.types(&mut client, at(0)), ["publish 1"]);
    let answer = |outcome, subscribers| {
        Frame::Published(Published {
            id: 1,
            limit: None,
            reason: None,
            outcome,
            subscribers,
        })
    };
    let first = answer(OutcomeCode::Routed, 3);
    assert_eq!(far.frame(&mut client, at(0), &first), Ok(Intake::Open));
    let second = answer(OutcomeCode::NoSubscriber, 0);
    assert_eq!(far.frame(&mut client, at(0), &second), Ok(Intake::Open));
    let mut settled = Vec::new();
    while let Some(action) = client.poll_action() {
        if let tidings::Action::Settle { ticket, outcome } = action {
            settled.push((ticket, outcome));
        }
    }
    let routed = tidings::Outcome::Routed { subscribers: 3 };
    assert_eq!(settled, [(ticket, routed)], "settled once, by the first");
    assert_eq!(counter(&client.status().counters, "unasked_frames"), 1);

    let request = Subscribe::new(realm(), TOPIC, Sources::Open);
    let stream = client.subscribe(at(0), request).expect("accepted here");
    assert_eq!(far.types(&mut client, at(0)), ["subscribe 2"]);
    far.accept(&mut client, at(0), 2);
    far.accept(&mut client, at(0), 2);
    assert_eq!(counter(&client.status().counters, "unasked_frames"), 2);
    let carriers = client.subscription(stream).expect("it lives").carriers;
    assert_eq!(carriers, 1);
    let object = Fact::numbered(1).sign(&signer(7));
    assert_eq!(
        far.event(&mut client, at(1), 2, 1, &object),
        Ok(Intake::Open)
    );
    assert_eq!(words(&items(&mut client, stream)), ["1"]);
}

fn common_client() -> tidings::Client {
    super::common::client(ClientConfig::new(signer(1)).station(None))
}

#[test]
fn what_comes_before_the_acceptance_is_passed_over() {
    let mut client = common_client();
    let mut far = Far::answer(&mut client, at(0), signer(100), StationRef(0));
    let request = Subscribe::new(realm(), TOPIC, Sources::Open);
    let stream = client.subscribe(at(0), request).expect("accepted here");
    let object = Fact::numbered(1).sign(&signer(7));
    assert_eq!(
        far.event(&mut client, at(0), 1, 1, &object),
        Ok(Intake::Open)
    );
    let faults = client.status().faults;
    assert_eq!(faults.of(ObjectFault::Unmatched), 1);
    far.accept(&mut client, at(0), 1);
    assert!(items(&mut client, stream).is_empty());
    assert_eq!(
        far.event(&mut client, at(0), 1, 2, &object),
        Ok(Intake::Open)
    );
    assert_eq!(words(&items(&mut client, stream)), ["1"]);
}

#[test]
fn events_after_an_unsubscribe_are_dropped_and_the_link_lives() {
    let mut client = common_client();
    let mut far = Far::answer(&mut client, at(0), signer(100), StationRef(0));
    let request = Subscribe::new(realm(), TOPIC, Sources::Open);
    let stream = client.subscribe(at(0), request).expect("accepted here");
    far.accept(&mut client, at(0), 1);
    client.unsubscribe(at(1), stream).expect("it lives");
    let object = Fact::numbered(1).sign(&signer(7));
    assert_eq!(
        far.event(&mut client, at(2), 1, 1, &object),
        Ok(Intake::Open)
    );
    assert_eq!(client.status().faults.of(ObjectFault::Unmatched), 1);
    assert_eq!(words(&items(&mut client, stream)), ["ended"]);
    assert!(closed(&mut client).is_empty());
}

#[test]
fn what_nobody_wants_any_more_is_not_looked_up_by_its_hash() {
    let mut client = common_client();
    let mut far = Far::answer(&mut client, at(0), signer(100), StationRef(0));
    let mut streams = Vec::new();
    for (id, topic) in [(1, TOPIC), (2, "weather/other")] {
        let request = Subscribe::new(realm(), topic, Sources::Open);
        streams.push(client.subscribe(at(0), request).expect("accepted here"));
        far.accept(&mut client, at(0), id);
    }
    let object = Fact::numbered(1).sign(&signer(7));
    // The last bytes are its signature's.
    let mut resigned = object.clone();
    *resigned.last_mut().expect("it is not empty") ^= 1;
    for (id, offset, object) in [(1, 1, &object), (2, 1, &resigned)] {
        let taken = far.event(&mut client, at(1), id, offset, object);
        assert_eq!(taken, Ok(Intake::Open));
    }
    assert_eq!(words(&items(&mut client, streams[0])), ["1"]);
    assert_eq!(client.status().faults.of(ObjectFault::Duplicate), 1);
    client.unsubscribe(at(1), streams[0]).expect("it lives");
    for offset in [2, 3] {
        let taken = far.event(&mut client, at(2), 2, offset, &resigned);
        assert_eq!(taken, Ok(Intake::Open));
    }
    let faults = client.status().faults;
    assert_eq!(faults.of(ObjectFault::Duplicate), 1);
    assert_eq!(faults.of(ObjectFault::Unmatched), 2);
}
