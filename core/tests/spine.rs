//! Facts reach their readers: the whole way through clients and stations, on a clock moved by hand.

mod common;

use common::{TOPIC, ms, open, realm, secs};
use tidings::sim::{Net, fake_signer};
use tidings::{
    ClientConfig, Delivery, Item, Mode, Notice, OnFull, Outcome, Publish, Sources, StationConfig,
    Subscribe, SubscriptionId,
};

/// Two stations, a publisher and a subscriber on both.
struct World {
    net: Net,
    publisher: usize,
    reader: usize,
}

impl World {
    fn new() -> Self {
        let mut net = Net::new(1);
        let stations = [
            net.station(StationConfig::new(fake_signer(100))),
            net.station(StationConfig::new(fake_signer(101))),
        ];
        let publisher = net.client(ClientConfig::new(fake_signer(1)), &stations);
        let reader = net.client(ClientConfig::new(fake_signer(2)), &stations);
        net.run_for(secs(1));
        Self {
            net,
            publisher,
            reader,
        }
    }

    fn subscribe(&mut self, request: Subscribe) -> SubscriptionId {
        let now = self.net.now();
        let subscription = self
            .net
            .at(self.reader)
            .subscribe(now, request)
            .expect("accepted here");
        self.net.run_for(secs(1));
        subscription
    }

    fn publish(&mut self, number: u64) {
        let now = self.net.now();
        let request = Publish::new(realm(), TOPIC, &number).expect("a number");
        self.net
            .at(self.publisher)
            .publish(now, request)
            .expect("room");
    }

    fn items(&mut self, subscription: SubscriptionId) -> Vec<Item> {
        self.net.items(self.reader, subscription)
    }
}

fn number(delivery: &Delivery) -> u64 {
    delivery.decode().expect("a number")
}

/// The numbers of the facts; panics at a notice.
fn facts(items: Vec<Item>) -> Vec<u64> {
    let number = |item: &Item| match item {
        Item::Fact(delivery) => number(delivery),
        other => panic!("not a fact: {other:?}"),
    };
    items.iter().map(number).collect()
}

#[test]
fn every_fact_arrives_once_and_in_order_over_two_stations() {
    let mut world = World::new();
    world.net.delay(world.reader, 0, ms(40));
    world.net.delay(world.publisher, 1, ms(25));
    let stream = world.subscribe(open());
    for number in 1..=100 {
        world.publish(number);
        world.net.run_for(ms(3));
    }
    world.net.run_for(secs(2));
    assert_eq!(facts(world.items(stream)), (1..=100).collect::<Vec<_>>());
    let settled = world.net.settled(world.publisher);
    assert_eq!(settled.len(), 100);
    assert!(
        settled
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Routed { subscribers: 1 })
    );
    assert_eq!(world.net.faults(), 0);
}

#[test]
fn a_subscription_is_carried_by_both_stations_and_the_first_copy_wins() {
    let mut world = World::new();
    let stream = world.subscribe(open());
    let status = world
        .net
        .at(world.reader)
        .subscription(stream)
        .expect("it lives");
    assert_eq!(status.carriers, 2);
    world.publish(7);
    world.net.run_for(secs(1));
    assert_eq!(facts(world.items(stream)), [7]);
    let faults = world.net.at(world.reader).status().faults;
    assert_eq!(faults.of(tidings::code::ObjectFault::Duplicate), 1);
}

#[test]
fn one_station_dies_and_nothing_is_lost_or_doubled() {
    let mut world = World::new();
    let stream = world.subscribe(open());
    for number in 1..=50 {
        world.publish(number);
        if number == 25 {
            world.net.kill(0);
        }
        world.net.run_for(ms(1));
    }
    world.net.run_for(secs(10));
    assert_eq!(facts(world.items(stream)), (1..=50).collect::<Vec<_>>());
    let settled = world.net.settled(world.publisher);
    assert_eq!(settled.len(), 50);
    assert!(
        settled
            .iter()
            .all(|(_, outcome)| matches!(outcome, Outcome::Routed { .. }))
    );
}

#[test]
fn the_last_station_goes_and_comes_back_interrupted_then_resumed() {
    let mut world = World::new();
    let stream = world.subscribe(open());
    world.publish(1);
    world.net.run_for(secs(1));
    world.net.cut(world.reader, 0);
    world.net.run_for(ms(1));
    assert_eq!(
        facts(world.items(stream)),
        [1],
        "nothing while the other one carries it"
    );
    world.net.cut(world.reader, 1);
    world.net.cut(world.reader, 0);
    world.net.run_for(ms(1));
    world.publish(2);
    world.net.run_for(secs(60));
    world.publish(3);
    world.net.run_for(secs(1));
    let items = world.items(stream);
    let notices: Vec<&Notice> = items
        .iter()
        .filter_map(|item| match item {
            Item::Notice(notice) => Some(&**notice),
            _ => None,
        })
        .collect();
    assert!(
        matches!(notices[0], Notice::Interrupted { .. }),
        "{items:?}"
    );
    assert!(matches!(notices[1], Notice::Resumed { .. }), "{items:?}");
    let delivered = items.iter().filter(|item| matches!(item, Item::Fact(_)));
    assert_eq!(delivered.count(), 2, "{items:?}");
}

#[test]
fn modes_differ_and_each_accounts_for_every_fact() {
    for mode in [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives] {
        let mut world = World::new();
        world.net.delay(world.reader, 0, ms(30));
        let stream = world.subscribe(open().mode(mode));
        for number in 1..=40 {
            world.publish(number);
            world.net.run_for(ms(1));
        }
        world.net.run_for(secs(2));
        let got = facts(world.items(stream));
        let status = world
            .net
            .at(world.reader)
            .subscription(stream)
            .expect("it lives");
        assert_eq!(got.len() as u64 + status.superseded, 40, "{mode:?}");
        let mut sorted = got.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), got.len(), "{mode:?}: one fact twice");
    }
}

#[test]
fn a_pausing_stream_loses_nothing_however_slow_its_reader_is() {
    let mut world = World::new();
    let stream = world.subscribe(open().on_full(OnFull::Pause).queue_capacity(8));
    let mut got = Vec::new();
    for number in 1..=600 {
        world.publish(number);
        world.net.run_for(ms(10));
        if number % 50 == 0 {
            let now = world.net.now();
            while let Some(item) = world.net.at(world.reader).poll_item(stream) {
                got.extend(facts(vec![item]));
            }
            assert_eq!(now, world.net.now());
        }
    }
    for _ in 0..200 {
        world.net.run_for(ms(100));
        got.extend(facts(world.items(stream)));
    }
    assert_eq!(got, (1..=600).collect::<Vec<_>>());
}

#[test]
fn a_slow_reader_that_lags_is_told_exactly_what_it_missed() {
    let mut world = World::new();
    let stream = world.subscribe(open().queue_capacity(4));
    for number in 1..=10 {
        world.publish(number);
        world.net.run_for(ms(2));
    }
    world.net.run_for(secs(1));
    let items = world.items(stream);
    let Some(Item::Notice(notice)) = items.first() else {
        panic!("{items:?}")
    };
    assert!(
        matches!(
            **notice,
            Notice::Lagged {
                missed: 6,
                notices: 0,
                ..
            }
        ),
        "{notice:?}"
    );
    assert_eq!(facts(items.into_iter().skip(1).collect()), [7, 8, 9, 10]);
}

#[test]
fn unsubscribed_streams_end_and_nothing_follows() {
    let mut world = World::new();
    let stream = world.subscribe(open());
    world.publish(1);
    world.net.run_for(secs(1));
    let now = world.net.now();
    world
        .net
        .at(world.reader)
        .unsubscribe(now, stream)
        .expect("it lives");
    world.publish(2);
    world.net.run_for(secs(1));
    let items = world.items(stream);
    assert_eq!(items.len(), 2, "{items:?}");
    let Some(Item::Notice(last)) = items.last() else {
        panic!("{items:?}")
    };
    assert!(matches!(**last, Notice::Ended { .. }));
    assert!(world.net.at(world.reader).subscription(stream).is_none());
}

#[test]
fn only_named_publishers_are_admitted() {
    let mut world = World::new();
    let stranger = tidings::NodeId::new([9; 32]);
    let refused = world.subscribe(Subscribe::new(
        realm(),
        TOPIC,
        Sources::Nodes(vec![stranger]),
    ));
    let publisher = world.net.at(world.publisher).id();
    let admitted = world.subscribe(Subscribe::new(
        realm(),
        TOPIC,
        Sources::Nodes(vec![publisher]),
    ));
    world.publish(1);
    world.net.run_for(secs(1));
    assert!(world.items(refused).is_empty());
    assert_eq!(facts(world.items(admitted)), [1]);
}

#[test]
fn a_filter_and_a_topic_on_one_node_each_get_every_fact_once() {
    let mut world = World::new();
    let filter = world.subscribe(Subscribe::new(realm(), "weather/*/app/**", Sources::Open));
    let exact = world.subscribe(open());
    for number in 1..=20 {
        world.publish(number);
        world.net.run_for(ms(5));
    }
    world.net.run_for(secs(1));
    assert_eq!(facts(world.items(filter)), (1..=20).collect::<Vec<_>>());
    assert_eq!(facts(world.items(exact)), (1..=20).collect::<Vec<_>>());
}

#[test]
fn a_publication_nobody_wants_is_answered_no_subscriber() {
    let mut world = World::new();
    world.publish(1);
    world.net.run_for(secs(1));
    let settled = world.net.settled(world.publisher);
    assert_eq!(settled[0].1, Outcome::NoSubscriber);
    assert_eq!(
        world.net.at_station(0).status().topics,
        0,
        "it starts no ring"
    );
}

#[test]
fn two_runs_of_one_seed_give_the_same_trace_and_so_does_every_cut_of_the_bytes() {
    let run = |cut: usize| {
        let mut world = World::new();
        world.net.cut_reads(cut);
        world.net.delay(world.reader, 0, ms(7));
        let stream = world.subscribe(open());
        for number in 1..=30 {
            world.publish(number);
            world.net.run_for(ms(2));
        }
        world.net.run_for(secs(1));
        (facts(world.items(stream)), world.net.trace())
    };
    let whole = run(usize::MAX);
    assert_eq!(whole, run(usize::MAX));
    assert_eq!(whole, run(1));
    assert_eq!(whole, run(7));
}

#[test]
fn an_anycast_goes_to_one_subscriber_and_enters_no_ring() {
    let mut world = World::new();
    let one = world.subscribe(open());
    let now = world.net.now();
    let (other, request) = (world.publisher, open());
    let two = world
        .net
        .at(other)
        .subscribe(now, request)
        .expect("accepted");
    world.net.run_for(secs(1));
    for number in 1..=10u64 {
        let now = world.net.now();
        let request = Publish::new(realm(), TOPIC, &number)
            .expect("a number")
            .one();
        world
            .net
            .at(world.publisher)
            .publish(now, request)
            .expect("room");
        world.net.run_for(ms(5));
    }
    world.net.run_for(secs(1));
    let first = facts(world.items(one));
    let second = facts(world.net.items(other, two));
    assert_eq!(first.len() + second.len(), 10, "{first:?} {second:?}");
    assert!(!first.is_empty() && !second.is_empty(), "each has its turn");
    assert_eq!(world.net.at_station(0).status().topics, 0);
    let settled = world.net.settled(world.publisher);
    assert!(
        settled
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Routed { subscribers: 1 })
    );
}

#[test]
fn the_fullest_stream_pays_for_the_shared_bytes() {
    let mut net = Net::new(3);
    let station = net.station(StationConfig::new(fake_signer(100)));
    let publisher = net.client(ClientConfig::new(fake_signer(1)), &[station]);
    let mut limits = tidings::ClientLimits::default();
    limits.held_bytes = 64 * 1024;
    let config = ClientConfig::new(fake_signer(2))
        .max_frame(16 * 1024)
        .limits(limits);
    let reader = net.client(config, &[station]);
    net.run_for(secs(1));
    let now = net.now();
    let asleep = net.at(reader).subscribe(now, open()).expect("accepted");
    let awake = net.at(reader).subscribe(now, open()).expect("accepted");
    net.run_for(secs(1));
    let mut got = 0;
    for number in 0..100u64 {
        let now = net.now();
        let value = (number, "x".repeat(4000));
        let request = Publish::new(realm(), TOPIC, &value).expect("a value");
        net.at(publisher).publish(now, request).expect("room");
        net.run_for(ms(5));
        for item in net.items(reader, awake) {
            assert!(matches!(item, Item::Fact(_)), "{item:?}");
            got += 1;
        }
    }
    assert_eq!(got, 100, "the reader that reads gets everything");
    let items = net.items(reader, asleep);
    let Some(Item::Notice(first)) = items.first() else {
        panic!("{items:?}")
    };
    let Notice::Lagged { missed, .. } = **first else {
        panic!("{first:?}")
    };
    assert_eq!(missed + items.len() as u64 - 1, 100);
}

#[test]
fn system_topics_are_refused_to_applications() {
    let mut world = World::new();
    let now = world.net.now();
    for filter in ["_call/x", "_sys/**"] {
        let request = Subscribe::new(realm(), filter, Sources::Open);
        let refused = world
            .net
            .at(world.reader)
            .subscribe(now, request)
            .expect_err("a system one");
        assert_eq!(refused.reason, tidings::Refusal::SystemTopic);
    }
    let request = Publish::new(realm(), "_call/x", &1u64).expect("a number");
    let refused = world
        .net
        .at(world.publisher)
        .publish(now, request)
        .expect_err("a system one");
    assert_eq!(refused.reason, tidings::Refusal::SystemTopic);
}
