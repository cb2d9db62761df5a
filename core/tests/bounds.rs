//! Memory: where it was after ten thousand strangers, and never above what the limits allow.

mod common;

use common::{Fact, Far, TOPIC, at, closed, ms, realm, secs, signer};
use tidings::code::CloseReason;
use tidings::sim::Net;
use tidings::{
    ClientConfig, Intake, Item, LinkEvent, LinkId, MemoryReport, Sources, Station, StationConfig,
    Subscribe,
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
