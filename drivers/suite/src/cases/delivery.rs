//! What arrives, in which order, and what its publisher is told.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what
//! comes out. Bounded by: the kit's patience.

use tidings::{Mode, Notice, Outcome, Publish, Refusal, Sources, Subscribe};

use crate::Driver;
use crate::kit::{Kit, PATIENCE, id, key, number, numbered, open, realm, until};

/// One publication, one delivery, with all that belongs to it.
pub fn one_fact_arrives<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut facts = kit.subscribe(&reader, open("one/fact"), 1);
    let outcome = kit.publish(&writer, Publish::new(realm(), "one/fact", "hello").unwrap());
    assert_eq!(outcome, Outcome::Routed { subscribers: 1 });
    let fact = kit.fact(&mut facts);
    assert_eq!(fact.decode::<String>().unwrap(), "hello");
    assert_eq!(fact.publisher(), id(3));
    assert_eq!(
        (fact.topic(), fact.realm(), fact.seq()),
        ("one/fact", realm(), 1)
    );
    kit.quiet(&mut facts);
}

/// Two copies of everything come in, one of each comes out, in order.
pub fn facts_come_in_order_and_once_over_two_stations<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let (one, two) = (kit.station(1), kit.station(2));
    let reader = kit.node(3, &[&one, &two]);
    let writer = kit.node(4, &[&one, &two]);
    let mut facts = kit.subscribe(&reader, open("two/stations"), 2);
    for n in 0..200 {
        kit.routed(&writer, numbered("two/stations", n));
    }
    kit.numbers(&mut facts, 0, 200);
    kit.quiet(&mut facts);
}

/// `as_arrives`: each once.
pub fn as_arrives_delivers_each_once<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let (one, two) = (kit.station(1), kit.station(2));
    let reader = kit.node(3, &[&one, &two]);
    let writer = kit.node(4, &[&one, &two]);
    let mut facts = kit.subscribe(&reader, open("as/arrives").mode(Mode::AsArrives), 2);
    for n in 0..100 {
        kit.routed(&writer, numbered("as/arrives", n));
    }
    let mut heard: Vec<u64> = (0..100).map(|_| number(&kit.fact(&mut facts))).collect();
    heard.sort_unstable();
    assert_eq!(heard, (0..100).collect::<Vec<_>>());
    kit.quiet(&mut facts);
}

/// `latest_only`: numbers rise, and the last one comes.
pub fn latest_only_never_goes_back<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let (one, two) = (kit.station(1), kit.station(2));
    let reader = kit.node(3, &[&one, &two]);
    let writer = kit.node(4, &[&one, &two]);
    let mut facts = kit.subscribe(&reader, open("latest/only").mode(Mode::LatestOnly), 2);
    for n in 0..100 {
        kit.routed(&writer, numbered("latest/only", n));
    }
    let mut last = None;
    while last != Some(99) {
        let now = number(&kit.fact(&mut facts));
        assert!(last.is_none_or(|last| last < now), "{now} after {last:?}");
        last = Some(now);
    }
    kit.quiet(&mut facts);
}

/// Streams of one node are independent and whole.
pub fn two_subscriptions_on_one_topic_hear_the_same<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut one = kit.subscribe(&reader, open("same/topic"), 1);
    let mut two = kit.subscribe(&reader, open("same/topic"), 1);
    for n in 0..50 {
        kit.routed(&writer, numbered("same/topic", n));
    }
    kit.numbers(&mut one, 0, 50);
    kit.numbers(&mut two, 0, 50);
    kit.quiet(&mut one);
    kit.quiet(&mut two);
}

/// A filter hears what it matches and nothing else.
pub fn a_filter_hears_every_topic_it_matches<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut star = kit.subscribe(&reader, open("house/*/light"), 1);
    let mut rest = kit.subscribe(&reader, open("house/**"), 1);
    for (n, topic) in ["house/hall/light", "house/hall/heat", "house/attic/light"]
        .iter()
        .enumerate()
    {
        kit.routed(&writer, numbered(topic, n as u64));
    }
    let outcome = kit.publish(&writer, numbered("garden/hall/light", 9));
    assert_eq!(outcome, Outcome::NoSubscriber);
    let heard = |subscription: &mut D::Subscription, count: usize| {
        let mut topics: Vec<String> = (0..count)
            .map(|_| kit.fact(subscription).topic().to_owned())
            .collect();
        topics.sort();
        topics
    };
    assert_eq!(
        heard(&mut star, 2),
        ["house/attic/light", "house/hall/light"]
    );
    assert_eq!(
        heard(&mut rest, 3),
        ["house/attic/light", "house/hall/heat", "house/hall/light"]
    );
    kit.quiet(&mut star);
    kit.quiet(&mut rest);
}

/// After the drop nobody is subscribed, and others still are.
pub fn dropping_a_subscription_ends_its_delivery<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let dropped = kit.subscribe(&reader, open("drop/this"), 1);
    let mut kept = kit.subscribe(&reader, open("drop/not"), 1);
    kit.routed(&writer, numbered("drop/this", 0));
    drop(dropped);
    until("the station hears of it", || {
        kit.publish(&writer, numbered("drop/this", 1)) == Outcome::NoSubscriber
    });
    kit.routed(&writer, numbered("drop/not", 2));
    kit.numbers(&mut kept, 2, 3);
    // The topic can be subscribed to again, and starts with what comes then.
    let mut again = kit.subscribe(&reader, open("drop/this"), 1);
    kit.routed(&writer, numbered("drop/this", 7));
    kit.numbers(&mut again, 7, 8);
}

/// Every stream of a closed node ends with a notice that says so, after what it held.
pub fn closing_ends_every_stream<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut facts = kit.subscribe(&reader, open("closing/time"), 1);
    kit.routed(&writer, numbered("closing/time", 0));
    kit.numbers(&mut facts, 0, 1);
    driver.close_node(reader);
    let notice = kit.notice(&mut facts);
    assert!(matches!(notice, Notice::Ended { .. }), "{notice:?}");
    assert!(driver.next(&mut facts, PATIENCE).is_none());
    until("the station hears of it", || {
        kit.publish(&writer, numbered("closing/time", 1)) == Outcome::NoSubscriber
    });
}

/// The publisher learns whether anybody listens.
pub fn outcomes_tell_routed_from_no_subscriber<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    assert_eq!(
        kit.publish(&writer, numbered("outcome/topic", 0)),
        Outcome::NoSubscriber
    );
    let _facts = kit.subscribe(&reader, open("outcome/topic"), 1);
    let outcome = kit.publish(&writer, numbered("outcome/topic", 1));
    assert_eq!(outcome, Outcome::Routed { subscribers: 1 });
}

/// Nobody to hand it to is an answer, not a wait.
pub fn publishing_without_a_station_is_refused<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let address = driver.station_address(&station);
    driver.kill_station(station);
    let node = driver
        .start_node(key(2), &[address])
        .expect("a node starts without its station");
    assert_eq!(
        driver.publish(&node, numbered("no/station", 0)),
        Err(Refusal::NoStation)
    );
}

/// `Sources::Nodes` admits whom it names, and nobody else.
pub fn a_publisher_outside_the_sources_is_refused<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let reader = kit.node(2, &[&station]);
    let (named, stranger) = (kit.node(3, &[&station]), kit.node(4, &[&station]));
    let request = Subscribe::new(realm(), "who/speaks", Sources::Nodes(vec![id(3)]));
    let mut facts = kit.subscribe(&reader, request, 1);
    for n in 0..10 {
        kit.routed(&stranger, numbered("who/speaks", 100 + n));
        kit.routed(&named, numbered("who/speaks", n));
    }
    kit.numbers(&mut facts, 0, 10);
    kit.quiet(&mut facts);
}

/// More than fits into one read or one write.
pub fn a_fact_of_256_kib_arrives_whole<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut facts = kit.subscribe(&reader, open("large/fact"), 1);
    let text: String = (0..256 * 1024)
        .map(|n| char::from(b'a' + (n % 23) as u8))
        .collect();
    for _ in 0..3 {
        kit.routed(&writer, Publish::new(realm(), "large/fact", &text).unwrap());
        assert!(kit.fact(&mut facts).decode::<String>().unwrap() == text);
    }
}
