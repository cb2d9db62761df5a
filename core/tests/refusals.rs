//! What is refused to callers and peers: by name, and nothing is changed by it.

mod common;

use common::{Fact, Far, Node, TOPIC, asked, at, client, numbers, open, realm, signer, station};
use tidings::code::{CloseReason, DiagnosticCode, ObjectFault};
use tidings::sim::{entropy, fake_signer};
use tidings::topic::{Name, NameFault};
use tidings::{
    Answer, Binding, ClientConfig, ClientLimits, Intake, LinkEvent, Misuse, Now, Publish, Refusal,
    Sources, Station, StationConfig, StationLimits, StationRef, Subscribe, Verification, WallMs,
};

fn up(dialled: Option<u16>) -> LinkEvent {
    LinkEvent::Up {
        dialled: dialled.map(StationRef),
        binding: Binding::Local,
    }
}

fn number(topic: &str) -> Publish {
    Publish::new(realm(), topic, &1u64).expect("a number")
}

#[test]
fn a_node_takes_no_link_it_did_not_dial() {
    let mut client = client(ClientConfig::new(signer(1)).station(None));
    for event in [up(None), up(Some(1))] {
        assert_eq!(client.handle_link(at(0), event), Err(Misuse::NotDialled));
    }
    let failed = client.handle_dial_failed(at(0), StationRef(1), "refused");
    assert_eq!(failed, Err(Misuse::NotDialled));
    let far = Far::answer(&mut client, at(0), signer(2), StationRef(0));
    // It is up: nothing is being dialled any more.
    let failed = client.handle_dial_failed(at(0), StationRef(0), "refused");
    assert_eq!(failed, Err(Misuse::NotDialled));
    assert_eq!(
        client.handle_link(at(0), up(Some(0))),
        Err(Misuse::NotDialled)
    );
    let down = || LinkEvent::Down {
        link: far.id,
        reason: CloseReason::Io,
    };
    assert_eq!(client.handle_link(at(1), down()), Ok(far.id));
    assert_eq!(client.handle_link(at(1), down()), Err(Misuse::DeadHandle));
    let close = client.close_link(at(1), far.id, CloseReason::Normal);
    assert_eq!(close, Err(Misuse::DeadHandle));
}

#[test]
fn a_station_dials_nobody_and_takes_as_many_links_as_it_may() {
    let mut limits = StationLimits::default();
    limits.links = 1;
    let mut one = station(StationConfig::new(signer(1)).limits(limits));
    assert_eq!(one.handle_link(at(0), up(Some(0))), Err(Misuse::NotDialled));
    let far = Far::dial(&mut one, at(0), signer(2));
    assert_eq!(one.handle_link(at(0), up(None)), Err(Misuse::TooManyLinks));
    let close = one.close_link(at(0), far.id, CloseReason::Normal);
    assert_eq!(close, Ok(()));
    let config = StationConfig::new(fake_signer(1)).build().expect("valid");
    let mut remote = Station::new(config, common::seed(), entropy(1), at(0));
    let local = remote.handle_link(at(0), up(None));
    assert_eq!(local, Err(Misuse::LocalNotAllowed));
}

#[test]
fn a_question_is_answered_once_and_a_signature_that_is_not_good_delivers_nothing() {
    let config = ClientConfig::new(signer(1)).verification(Verification::Asked);
    let mut node = Node::with(config, 1, open());
    node.seq(at(0), 0, 1);
    let (ask, _) = asked(&mut node.client).pop().expect("a question");
    let answer = |answer| Answer::Verified(answer);
    assert_eq!(node.client.answer(at(0), ask, answer(false)), Ok(()));
    let again = node.client.answer(at(0), ask, answer(true));
    assert_eq!(again, Err(Misuse::DeadHandle));
    assert_eq!(node.faults(ObjectFault::SignatureInvalid), 1);
    // It was not remembered: the next copy is asked about anew.
    node.seq(at(1), 0, 1);
    let (ask, _) = asked(&mut node.client).pop().expect("a question");
    assert_eq!(node.client.answer(at(1), ask, answer(true)), Ok(()));
    assert_eq!(node.words(), ["1"]);
}

#[test]
fn a_subscription_that_could_get_nothing_is_refused() {
    let mut limits = ClientLimits::default();
    limits.subscriptions = 1;
    let mut client = client(ClientConfig::new(signer(1)).limits(limits));
    let nobody = Subscribe::new(realm(), TOPIC, Sources::Nodes(Vec::new()));
    let mut refusal = |request| client.subscribe(at(0), request).map_err(|no| no.reason);
    assert_eq!(refusal(nobody), Err(Refusal::NoSources));
    assert!(refusal(open()).is_ok());
    assert_eq!(refusal(open()), Err(Refusal::TooManySubscriptions));
}

#[test]
fn nothing_is_published_before_the_wall_was_set_and_no_number_is_used() {
    let unset = Now::new(at(0).mono, WallMs::new(0));
    let mut node = Node::new(1, open());
    let refused = node.client.publish(unset, number(TOPIC)).map(drop);
    assert_eq!(refused.map_err(|no| no.reason), Err(Refusal::UnsetClock));
    let mut one = station(StationConfig::new(signer(1)));
    let refused = one.publish(unset, number(TOPIC));
    assert_eq!(refused.map_err(|no| no.reason), Err(Refusal::UnsetClock));
    let mut reader = Far::dial(&mut one, at(0), signer(2));
    let taken = reader.subscribe(&mut one, at(0), 1, TOPIC);
    assert_eq!(taken, Ok(Intake::Open));
    assert_eq!(
        one.publish(at(1), number(TOPIC)).map_err(|no| no.reason),
        Ok(1)
    );
    let numbers = numbers(&reader.read(&mut one, at(1)));
    assert_eq!(numbers, [(one.id(), 1)]);
}

#[test]
fn a_publication_settles_once_and_is_cancelled_before_that() {
    let mut node = Node::new(1, open());
    let ticket = node.client.publish(at(0), number(TOPIC)).expect("room");
    assert_eq!(node.client.cancel(at(0), ticket), Ok(()));
    let again = node.client.cancel(at(0), ticket);
    assert_eq!(again, Err(Misuse::DeadHandle));
}

#[test]
fn a_stations_own_facts_keep_its_bounds() {
    let mut limits = StationLimits::default();
    (limits.topics, limits.publication_bytes) = (1, 400);
    let mut one = station(StationConfig::new(signer(1)).limits(limits));
    let mut refusal = |request| one.publish(at(0), request).map_err(|no| no.reason);
    let long = Publish::new(realm(), TOPIC, &[0u64; 400][..]).expect("numbers");
    assert_eq!(refusal(long), Err(Refusal::TooLarge { limit: 400 }));
    assert_eq!(refusal(number(TOPIC)), Ok(0));
    let another = number("weather/acme/app/nights/measured_v1");
    assert_eq!(refusal(another), Err(Refusal::WouldBlock));
    one.drain(at(0));
    let closed = one.publish(at(0), number(TOPIC)).map_err(|no| no.reason);
    assert_eq!(closed, Err(Refusal::Closed));
}

#[test]
fn a_station_refuses_by_name_what_a_guest_may_not_ask() {
    let mut limits = StationLimits::default();
    let object = Fact::numbered(1).sign(&signer(7));
    limits.publication_bytes = object.len() - 1;
    let mut one = station(StationConfig::new(signer(1)).limits(limits));
    let mut far = Far::dial(&mut one, at(0), signer(7));
    let taken = far.subscribe(&mut one, at(0), 1, "a//b");
    assert_eq!(taken, Ok(Intake::Open));
    let taken = far.publish(&mut one, at(0), 2, &object);
    assert_eq!(taken, Ok(Intake::Open));
    // A reader that does not read keeps the link while the station drains.
    assert_eq!(far.subscribe(&mut one, at(0), 3, TOPIC), Ok(Intake::Open));
    one.drain(at(0));
    assert_eq!(far.subscribe(&mut one, at(0), 4, TOPIC), Ok(Intake::Open));
    assert_eq!(far.publish(&mut one, at(0), 5, &object), Ok(Intake::Open));
    let said = far.types(&mut one, at(0));
    let wanted = [
        "refused 1 bad_filter",
        "published 2 too_large",
        "subscribed 3",
        "refused 4 draining",
        "published 5 draining",
    ];
    for one in wanted {
        assert!(said.iter().any(|said| said == one), "{one} in {said:?}");
    }
}

#[test]
fn how_a_link_ended_is_reported_by_its_name() {
    use DiagnosticCode::{HandshakeFailed, LinkDown, LivenessLost, ProtocolError};
    type End = fn(&mut Node);
    let ends: [(DiagnosticCode, End); 4] = [
        (LinkDown, |node| {
            let link = node.links[0].id;
            let closed = node.client.close_link(at(1), link, CloseReason::Normal);
            assert_eq!(closed, Ok(()));
        }),
        (ProtocolError, |node| {
            let taken = node.links[0].body(&mut node.client, at(1), b"no frame");
            assert!(taken.is_err());
        }),
        (LivenessLost, |node| {
            node.links[0].answers = false;
            for step in 1..200 {
                let now = at(step * 60_000);
                common::move_to(&mut node.client, now);
                node.links[0].read(&mut node.client, now);
            }
        }),
        (HandshakeFailed, |node| {
            let link = node.links[0].id;
            let reason = CloseReason::Io;
            let down = LinkEvent::Down { link, reason };
            node.client.handle_link(at(1), down).expect("it was up");
            common::move_to(&mut node.client, at(60_000));
            let station = StationRef(0);
            let far = Far::answering(&mut node.client, at(60_000), signer(100), station);
            let (link, reason) = (far.id, CloseReason::Io);
            let down = LinkEvent::Down { link, reason };
            node.client.handle_link(at(60_001), down).expect("it began");
        }),
    ];
    for (code, end) in ends {
        let mut node = Node::new(1, open());
        let before = node.client.reported(code);
        end(&mut node);
        assert_eq!(before, 0);
        assert_eq!(node.client.reported(code), 1, "{code}");
    }
}

#[test]
fn what_has_ended_may_be_ended_again() {
    let mut node = Node::new(1, open());
    assert_eq!(node.client.unsubscribe(at(0), node.stream), Ok(()));
    assert_eq!(node.client.unsubscribe(at(0), node.stream), Ok(()));
    assert_eq!(node.words(), ["ended"]);
    let unknown = node.client.unsubscribe(at(0), node.stream);
    assert_eq!(unknown, Err(Misuse::DeadHandle));
    node.client.close(at(0));
    node.client.close(at(0));
    let mut one = station(StationConfig::new(signer(1)));
    one.drain(at(0));
    one.drain(at(0));
    assert!(one.is_drained());
}

#[test]
fn a_dial_that_ends_after_the_client_was_closed_comes_to_nothing() {
    let config = ClientConfig::new(signer(1)).station(None).station(None);
    let mut client = client(config);
    client.close(at(0));
    let link = client
        .handle_link(at(1), up(Some(0)))
        .expect("it was dialled");
    assert_eq!(common::closed(&mut client), [(link, CloseReason::Normal)]);
    let failed = client.handle_dial_failed(at(1), StationRef(1), "refused");
    assert_eq!(failed, Ok(()));
    common::move_to(&mut client, at(100_000));
    assert_eq!(common::closed(&mut client), [], "and no dial");
}

#[test]
fn a_name_has_a_version_from_1_on_and_its_parts_are_read_back() {
    let app = |version| Name::app_fact("weather", "acme", "app", "days", "measured", version);
    assert_eq!(app(0), Err(NameFault::Version));
    let name = app(7).expect("a name");
    let parts = (name.realm(), name.domain(), name.version());
    assert_eq!(parts, ("weather", "days", 7));
}
