//! Memory: where it was after ten thousand strangers, and never above what the limits allow.

mod common;

use common::{Fact, Far, TOPIC, at, closed, ms, realm, secs, signer};
use tidings::code::CloseReason;
use tidings::sim::Net;
use tidings::{
    ClientConfig, ClientLimits, Intake, Item, LinkEvent, LinkId, MemoryReport, Sources, Station,
    StationConfig, StationLimits, StationRef, Subscribe,
};

/// What a line may have grown by when nothing more is in use: storage kept so that what fills and empties does not allocate each time.
const KEPT_BYTES: usize = 32 * 1024;

fn show(report: &MemoryReport) -> String {
    let line = |line: &tidings::MemoryLine| {
        format!(
            "{}: {} of {}, {} B",
            line.name, line.used, line.capacity, line.bytes
        )
    };
    report.lines.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// Every line is where it was.
fn back(before: &MemoryReport, after: &MemoryReport) {
    for (before, after) in before.lines.iter().zip(&after.lines) {
        assert_eq!(before.name, after.name);
        assert_eq!(after.used, before.used, "{}", before.name);
        let most = before.bytes + KEPT_BYTES;
        assert!(
            after.bytes <= most,
            "{}: {} B, was {} B",
            before.name,
            after.bytes,
            before.bytes
        );
    }
}

fn down(station: &mut Station, now: tidings::Now, link: LinkId) {
    let reason = CloseReason::Io;
    let told = station.handle_link(now, LinkEvent::Down { link, reason });
    assert_eq!(told, Ok(link));
}

/// A station with one reader that stays, and strangers that do not.
struct Town {
    net: Net,
    station: usize,
    reader: usize,
    stream: tidings::SubscriptionId,
    heard: u64,
}

impl Town {
    fn new() -> Self {
        let mut net = Net::new(66);
        let station = net.station(StationConfig::new(signer(100)));
        let reader = net.client(ClientConfig::new(signer(2)), &[station]);
        net.run_for(secs(1));
        let request = Subscribe::new(realm(), TOPIC, Sources::Open);
        let now = net.now();
        let stream = net.at(reader).subscribe(now, request).expect("accepted");
        net.run_for(secs(5));
        Self {
            net,
            station,
            reader,
            stream,
            heard: 0,
        }
    }

    /// One identity that was never seen comes, subscribes, publishes on two topics and goes.
    fn stranger(&mut self, n: u64) {
        let now = self.net.now();
        let there = self.net.at_station(self.station);
        let key = signer(1000 + n);
        let mut far = Far::dial(there, now, key.clone());
        let topic = format!("strangers/n{n}/app/x/y_v1");
        assert_eq!(far.subscribe(there, now, 1, &topic), Ok(Intake::Open));
        for (id, topic) in [(2, TOPIC), (3, topic.as_str())] {
            let fact = Fact {
                topic,
                published_at: now.wall,
                epoch: Some(now.wall.as_millis() * 1000),
                ..Fact::numbered(1)
            };
            let taken = far.publish(there, now, id, &fact.sign(&key));
            assert_eq!(taken, Ok(Intake::Open));
        }
        let told = far.types(there, now);
        assert!(told.contains(&"subscribed 1".to_string()), "{told:?}");
        down(there, now, far.id);
        self.net.run_for(ms(300));
        for item in self.net.items(self.reader, self.stream) {
            match item {
                Item::Fact(_) => self.heard += 1,
                // Nobody of these was heard before.
                other => panic!("{other:?}"),
            }
        }
    }

    fn memory(&mut self) -> [MemoryReport; 2] {
        let there = self.net.at_station(self.station).memory();
        [there, self.net.at(self.reader).memory()]
    }
}

/// State of peers long gone grew without end, because cleanup ran on one of several exits, or never.
#[test]
fn br_66_ten_thousand_strangers_leave_memory_where_it_was() {
    let mut town = Town::new();
    // Interests linger, publications live, lanes rest; after that nothing is left of anybody.
    let calm = secs(3600);
    (0..10).for_each(|n| town.stranger(n));
    town.net.run_for(calm);
    let before = town.memory();
    (10..10_010).for_each(|n| town.stranger(n));
    let most = town.memory();
    town.net.run_for(calm);
    let after = town.memory();
    assert_eq!(town.heard, 10_010);
    for (before, after) in before.iter().zip(&after) {
        back(before, after);
    }
    for (before, most) in before.iter().zip(&most) {
        assert!(
            most.bytes() > 4 * before.bytes(),
            "they left a trace: {}",
            show(most)
        );
    }
    assert_eq!(town.net.faults(), 0);
}

/// The same when they come all at once, and when they end in the middle of their handshake.
#[test]
fn br_66_a_crowd_that_leaves_gives_its_room_back() {
    let mut station = common::station(StationConfig::new(signer(100)));
    let before = station.memory();
    let mut links = Vec::new();
    for n in 0..2000u64 {
        let mut far = Far::new(&mut station, at(n), signer(1000 + n));
        if n % 3 > 0 {
            far.shake_hands(&mut station, at(n));
        }
        if n % 3 > 1 {
            let taken = far.subscribe(&mut station, at(n), 1, TOPIC);
            assert_eq!(taken, Ok(Intake::Open));
        }
        links.push(far.id);
    }
    assert_eq!(station.status().links.len(), 2000);
    for link in links {
        down(&mut station, at(2000), link);
        assert!(closed(&mut station).is_empty());
    }
    common::move_to(&mut station, at(4_000_000));
    back(&before, &station.memory());
}

/// Tiny tables, all of them filled and asked for more: what is reported stays within what the limits allow.
#[test]
fn measured_bytes_never_exceed_the_worst_case() {
    for n in [1, 2, 3, 5, 8] {
        let mut limits = StationLimits::default();
        (limits.links, limits.subscribed_realms, limits.topics) = (n + 1, n, n);
        (limits.subscribers_per_topic, limits.subscriptions_per_link) = (n, n);
        (
            limits.filters_per_link,
            limits.ring_items,
            limits.publish_window,
        ) = (n, n, n);
        (limits.dedup_entries, limits.publishers, limits.ring_bytes) = (n, n, 4096);
        (limits.publication_bytes, limits.answers) = (1024, 64);
        limits.read_bytes = 4096;
        let most = limits.worst_case_bytes(0);
        let mut station = common::station(
            StationConfig::new(signer(100))
                .limits(limits)
                .max_frame(4096),
        );
        let mut client_limits = ClientLimits::default();
        (client_limits.links, client_limits.subscriptions) = (1, n);
        (client_limits.lanes, client_limits.resting_lanes) = (n, n);
        (client_limits.order_max_buffer, client_limits.dedup_entries) = (n, 2 * n);
        (client_limits.held_bytes, client_limits.queue_capacity) = (2048, n);
        (
            client_limits.publishers,
            client_limits.tickets,
            client_limits.counters,
            client_limits.open_publishers,
        ) = (n, n, n, n);
        let client_most = client_limits.worst_case_bytes();
        let config = ClientConfig::new(signer(2)).limits(client_limits);
        let mut client = common::client(config.max_frame(512).station(None));
        let far = &mut Far::answer(&mut client, at(0), signer(101), StationRef(0));
        let mut streams = Vec::new();
        for _ in 0..2 * n {
            let request = Subscribe::new(realm(), TOPIC, Sources::Open);
            streams.extend(client.subscribe(at(0), request).ok());
        }
        assert_eq!(streams.len(), n);
        far.accept(&mut client, at(0), 1);
        let mut links: Vec<Far> = (0..=n as u64)
            .map(|key| Far::dial(&mut station, at(0), signer(7 + key)))
            .collect();
        for round in 0..200u64 {
            let now = at(round * 10);
            for (key, link) in links.iter_mut().enumerate() {
                let topic = format!("t{}/x", round % 11);
                let id = 2 * round + 1;
                let taken = link.subscribe(&mut station, now, id, &topic);
                assert_eq!(taken, Ok(Intake::Open));
                let fact = Fact {
                    topic: &topic,
                    ..Fact::numbered(1 + round * 2)
                };
                let object = fact.sign(&signer(7 + key as u64));
                let taken = link.publish(&mut station, now, id + 1, &object);
                assert_eq!(taken, Ok(Intake::Open));
                if round % 3 == 0 {
                    drop(link.read(&mut station, now));
                }
                let fact = Fact::numbered(1 + round * 2).sign(&signer(7 + key as u64));
                let taken = far.event(&mut client, now, 1, round + 1, &fact);
                assert_eq!(taken, Ok(Intake::Open));
            }
            let request = tidings::Publish::new(realm(), TOPIC, &round).expect("a number");
            drop(client.publish(now, request));
            common::move_to(&mut client, now);
            common::move_to(&mut station, now);
            let (used, most) = (station.memory(), most);
            assert!(
                used.bytes() <= most,
                "{n}: {} of {most}: {}",
                used.bytes(),
                show(&used)
            );
            let used = client.memory();
            let most = client_most;
            assert!(
                used.bytes() <= most,
                "{n}: {} of {most}: {}",
                used.bytes(),
                show(&used)
            );
            for line in &used.lines {
                // Items weigh a little more in a stream, where they cannot be refused.
                let over = if line.name == "held_bytes" {
                    n * 1152 * 2
                } else {
                    0
                };
                assert!(line.used <= line.capacity + over, "{n}: {}", show(&used));
            }
        }
    }
    assert!(ClientLimits::default().worst_case_bytes() > 64 << 20);
    assert!(StationLimits::default().worst_case_bytes(0) > 256 << 20);
}
