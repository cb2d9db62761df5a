//! What a station does for readers that are slow, publishers that are fast, and guests that want too much.

mod common;

use common::{TOPIC, ms, open, realm, secs};
use tidings::code::{GapReason, SubscribeRefusal};
use tidings::sim::{Net, fake_signer};
use tidings::{
    ClientConfig, ClientLimits, Item, Notice, OnFull, Outcome, Publish, RealmId, Refusal, Sources,
    StationConfig, StationLimits, Subscribe, SubscriptionId, Verification,
};

fn subscribe(net: &mut Net, client: usize, request: Subscribe) -> SubscriptionId {
    let now = net.now();
    let id = net
        .at(client)
        .subscribe(now, request)
        .expect("accepted here");
    net.run_for(secs(1));
    id
}

fn publish(net: &mut Net, client: usize, number: u64) -> Result<(), Refusal> {
    let now = net.now();
    let request = Publish::new(realm(), TOPIC, &number).expect("a number");
    net.at(client)
        .publish(now, request)
        .map(drop)
        .map_err(|refused| refused.reason)
}

fn facts(items: &[Item]) -> Vec<u64> {
    let fact = |item: &Item| match item {
        Item::Fact(delivery) => Some(delivery.decode().expect("a number")),
        _ => None,
    };
    items.iter().filter_map(fact).collect()
}

fn notices(items: &[Item]) -> Vec<Notice> {
    let notice = |item: &Item| match item {
        Item::Notice(notice) => Some((**notice).clone()),
        _ => None,
    };
    items.iter().filter_map(notice).collect()
}

/// A station with small rings, a publisher, a reader.
fn small(ring_items: usize) -> (Net, usize, usize, usize) {
    let mut net = Net::new(4);
    let mut limits = StationLimits::default();
    limits.ring_items = ring_items;
    let station = net.station(StationConfig::new(fake_signer(100)).limits(limits));
    let publisher = net.client(ClientConfig::new(fake_signer(1)), &[station]);
    let reader = net.client(ClientConfig::new(fake_signer(2)), &[station]);
    net.run_for(secs(1));
    (net, station, publisher, reader)
}

#[test]
fn a_reader_that_never_reads_changes_neither_what_another_gets_nor_when() {
    let run = |with_sleeper: bool| {
        // Half a ring is more than is published: pacing, which holds publishers for a moment, is shown elsewhere.
        let (mut net, station, publisher, reader) = small(40_000);
        let sleeper = net.client(ClientConfig::new(fake_signer(3)), &[station]);
        net.run_for(secs(1));
        net.socket_bytes(4096);
        let stream = subscribe(&mut net, reader, open());
        if with_sleeper {
            subscribe(
                &mut net,
                sleeper,
                open().on_full(OnFull::Pause).queue_capacity(4),
            );
            subscribe(&mut net, reader, open().queue_capacity(4));
        } else {
            net.run_for(secs(2));
        }
        let mut got = Vec::new();
        let mut number = 0;
        while number < 10_000 {
            if publish(&mut net, publisher, number).is_ok() {
                number += 1;
            }
            net.run_for(ms(1));
            let at = net.now().mono;
            let items = net.items(reader, stream);
            got.extend(facts(&items).into_iter().map(|fact| (fact, at)));
        }
        got
    };
    let (with, without) = (run(true), run(false));
    assert_eq!(without.len(), 10_000);
    assert!(with == without, "another reader's facts or times differ");
}

#[test]
fn an_overwritten_reader_is_told_exactly_how_many_it_lost() {
    let (mut net, station, publisher, reader) = small(16);
    net.socket_bytes(512);
    let stream = subscribe(
        &mut net,
        reader,
        open().on_full(OnFull::Pause).queue_capacity(4),
    );
    for number in 0..200 {
        while publish(&mut net, publisher, number).is_err() {
            net.run_for(ms(10));
        }
        net.run_for(ms(1));
    }
    net.run_for(secs(2));
    let mut items = net.items(reader, stream);
    for _ in 0..100 {
        net.run_for(ms(10));
        items.extend(net.items(reader, stream));
    }
    let got = facts(&items).len() as u64;
    let gap: u64 = notices(&items)
        .iter()
        .map(|notice| match notice {
            Notice::Gap {
                reason: GapReason::StationSkipped,
                count: Some(count),
                from,
                to,
            } => {
                assert!(from <= to, "{notice:?}");
                *count
            }
            // The numbers of what the station skipped are missing to the order as well.
            Notice::Skipped { .. } => 0,
            other => panic!("{other:?}"),
        })
        .sum();
    assert!(gap > 0, "the ring was overwritten");
    assert_eq!(got + gap, 200);
    let skipped: u64 = notices(&items)
        .iter()
        .map(|notice| match notice {
            Notice::Skipped { first, last, .. } => last - first + 1,
            _ => 0,
        })
        .sum();
    assert_eq!(skipped, gap, "order and station agree");
    assert!(
        net.at_station(station)
            .status()
            .counters
            .contains(&("skipped", gap))
    );
}

#[test]
fn a_publisher_that_waits_is_paced_by_the_slowest_honest_reader_and_nobody_can_hold_it() {
    let (mut net, _, publisher, reader) = small(100);
    net.socket_bytes(512);
    let stream = subscribe(
        &mut net,
        reader,
        open().on_full(OnFull::Pause).queue_capacity(4),
    );
    let began = net.now().mono;
    let mut number = 0;
    // The reader sleeps: publications are answered until half a ring waits for it.
    while number < 300 && net.now().mono.saturating_since(began) < ms(900) {
        match publish(&mut net, publisher, number) {
            Ok(()) => number += 1,
            Err(reason) => assert_eq!(reason, Refusal::WouldBlock),
        }
        net.run_for(ms(1));
    }
    let answered = net.settled(publisher).len();
    assert!(
        answered < 100,
        "answered {answered}: half a ring and what is on its way"
    );
    assert!(answered >= 50);
    // Nobody holds it: after a second it is answered all the same, and for half a minute after.
    net.run_for(secs(2));
    while number < 600 {
        if publish(&mut net, publisher, number).is_ok() {
            number += 1;
        }
        net.run_for(ms(1));
    }
    net.run_for(ms(50));
    assert_eq!(answered + net.settled(publisher).len(), 600);
    assert!(!net.items(reader, stream).is_empty());
}

#[test]
fn what_is_too_large_for_a_link_is_skipped_there_and_delivered_elsewhere() {
    let (mut net, station, publisher, reader) = small(100);
    let config = ClientConfig::new(fake_signer(5)).max_frame(1024);
    let narrow = net.client(config, &[station]);
    net.run_for(secs(1));
    let wide_stream = subscribe(&mut net, reader, open());
    let narrow_stream = subscribe(&mut net, narrow, open());
    for size in [10, 3000, 20] {
        let now = net.now();
        let request = Publish::new(realm(), TOPIC, &"x".repeat(size)).expect("text");
        net.at(publisher).publish(now, request).expect("room");
    }
    net.run_for(secs(2));
    let wide = net.items(reader, wide_stream);
    assert_eq!(wide.len(), 3);
    let narrow = net.items(narrow, narrow_stream);
    assert_eq!(
        narrow
            .iter()
            .filter(|item| matches!(item, Item::Fact(_)))
            .count(),
        2
    );
    assert!(
        notices(&narrow)
            .iter()
            .any(|notice| matches!(notice, Notice::Gap { count: Some(1), .. })),
        "{narrow:?}"
    );
    assert_eq!(net.faults(), 0, "never the end of the link");
}

#[test]
fn a_purged_node_is_told_on_every_subscription() {
    let (mut net, station, publisher, reader) = small(100);
    let stream = subscribe(&mut net, reader, open());
    let (node, now) = (net.at(reader).id(), net.now());
    assert_eq!(net.at_station(station).purge(now, node), 1);
    net.run_for(secs(1));
    publish(&mut net, publisher, 1).expect("room");
    net.run_for(secs(1));
    let told = notices(&net.items(reader, stream));
    assert!(matches!(told[0], Notice::Interrupted { .. }), "{told:?}");
    assert!(
        matches!(
            told[1],
            Notice::SubscriptionRefused {
                reason: SubscribeRefusal::Purged,
                ..
            }
        ),
        "{told:?}"
    );
    assert_eq!(net.settled(publisher)[0].1, Outcome::NoSubscriber);
    let status = net.at(reader).subscription(stream).expect("it lives");
    assert_eq!(
        (status.carriers, status.refused),
        (0, Some(SubscribeRefusal::Purged))
    );
}

#[test]
fn limits_are_refusals_with_their_reason_and_the_link_is_kept() {
    let mut net = Net::new(4);
    let mut limits = StationLimits::default();
    limits.subscriptions_per_link = 3;
    limits.filters_per_link = 1;
    limits.subscribed_realms = 1;
    let station = net.station(StationConfig::new(fake_signer(100)).limits(limits));
    let reader = net.client(ClientConfig::new(fake_signer(2)), &[station]);
    net.run_for(secs(1));
    let on = |filter: &str| Subscribe::new(realm(), filter, Sources::Open);
    let wanted = [
        (on("weather/**"), None),
        (on("weather/*"), Some(SubscribeRefusal::TooManyFilters)),
        (
            Subscribe::new(RealmId::of_name("other"), "other/a", Sources::Open),
            Some(SubscribeRefusal::TooManyRealms),
        ),
        (on("weather/a"), None),
        (on("weather/b"), None),
        (
            on("weather/c"),
            Some(SubscribeRefusal::TooManySubscriptions),
        ),
    ];
    for (request, refused) in wanted {
        let stream = subscribe(&mut net, reader, request.clone());
        let status = net.at(reader).subscription(stream).expect("it lives");
        assert_eq!(status.refused, refused, "{request:?}");
        assert_eq!(status.carriers, usize::from(refused.is_none()));
    }
    assert_eq!(net.at_station(station).status().links.len(), 1);
}

#[test]
fn unsubscribe_and_subscribe_within_one_tick_ends_subscribed() {
    let (mut net, _, publisher, reader) = small(100);
    let first = subscribe(&mut net, reader, open());
    let now = net.now();
    net.at(reader).unsubscribe(now, first).expect("it lives");
    let second = net
        .at(reader)
        .subscribe(now, open())
        .expect("accepted here");
    net.run_for(secs(1));
    publish(&mut net, publisher, 1).expect("room");
    net.run_for(secs(1));
    assert_eq!(facts(&net.items(reader, second)), [1]);
    assert!(facts(&net.items(reader, first)).is_empty());
}

#[test]
fn a_signature_checked_elsewhere_gives_the_same_items() {
    let run = |verification| {
        let mut net = Net::new(4);
        let stations = [100, 101].map(|n| net.station(StationConfig::new(fake_signer(n))));
        let publisher = net.client(ClientConfig::new(fake_signer(1)), &stations);
        let config = ClientConfig::new(fake_signer(2)).verification(verification);
        let reader = net.client(config, &stations);
        net.run_for(secs(1));
        net.delay(reader, 1, ms(3));
        let stream = subscribe(&mut net, reader, open());
        for number in 0..100 {
            publish(&mut net, publisher, number).expect("room");
            net.run_for(ms(2));
        }
        net.run_for(secs(1));
        let items = net.items(reader, stream);
        assert!(notices(&items).is_empty());
        facts(&items)
    };
    assert_eq!(run(Verification::Asked), run(Verification::Here));
}

#[test]
fn a_station_publishes_facts_of_its_own() {
    let (mut net, station, _, reader) = small(100);
    let id = net.at_station(station).id();
    let stream = subscribe(
        &mut net,
        reader,
        Subscribe::new(realm(), TOPIC, Sources::Nodes(vec![id])),
    );
    for number in 0..5u64 {
        let now = net.now();
        let request = Publish::new(realm(), TOPIC, &number).expect("a number");
        assert_eq!(
            net.at_station(station)
                .publish(now, request)
                .expect("admitted"),
            1
        );
    }
    // Whoever calls a machine beside its links looks at its actions as well.
    net.run_for(secs(1));
    assert_eq!(facts(&net.items(reader, stream)), [0, 1, 2, 3, 4]);
}

#[test]
fn many_publications_wait_in_no_queue_of_the_clients_own() {
    let mut limits = ClientLimits::default();
    limits.publish_window = 8;
    let mut net = Net::new(4);
    let station = net.station(StationConfig::new(fake_signer(100)));
    let publisher = net.client(ClientConfig::new(fake_signer(1)).limits(limits), &[station]);
    net.run_for(secs(1));
    let mut taken = 0;
    while publish(&mut net, publisher, taken).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 8);
    assert_eq!(publish(&mut net, publisher, 9), Err(Refusal::WouldBlock));
    net.run_for(secs(1));
    assert_eq!(net.settled(publisher).len(), 8);
    publish(&mut net, publisher, 9).expect("the refused one used no number");
}
