//! Whole nodes and stations: nothing is lost without a word.

use tidings::sim::{Net, START};
use tidings::{
    ClientConfig, Item, Notice, Publish, RealmId, Sources, StationConfig, StationLimits, Subscribe,
    SubscriptionId,
};

use super::common::{TOPIC, ms, realm, secs, signer};
use super::word;

struct Town {
    net: Net,
    stations: Vec<usize>,
    reader: usize,
    writer: usize,
    stream: SubscriptionId,
    published: u64,
}

fn station(net: &mut Net, key: u64, ring_items: usize) -> usize {
    let mut limits = StationLimits::default();
    limits.ring_items = ring_items;
    net.station(StationConfig::new(signer(key)).limits(limits))
}

impl Town {
    fn new(seed: u8, ring_items: usize) -> Self {
        let mut net = Net::new(seed);
        let stations = vec![station(&mut net, 1, ring_items)];
        let reader = net.client(ClientConfig::new(signer(2)), &stations);
        let writer = net.client(ClientConfig::new(signer(3)), &stations);
        net.run_for(secs(1));
        let now = net.now();
        let request = Subscribe::new(realm(), TOPIC, Sources::Open);
        let stream = net.at(reader).subscribe(now, request).expect("a stream");
        net.run_for(secs(1));
        Self {
            net,
            stations,
            reader,
            writer,
            stream,
            published: 0,
        }
    }

    fn publish_to(&mut self, realm: RealmId, topic: &str, times: u64) {
        for _ in 0..times {
            self.published += 1;
            let request = Publish::new(realm, topic, &self.published).expect("a number");
            let now = self.net.now();
            self.net
                .at(self.writer)
                .publish(now, request)
                .expect("taken");
            self.net.run_for(ms(5));
        }
    }

    fn publish(&mut self, times: u64) {
        self.publish_to(realm(), TOPIC, times);
    }

    fn cut(&mut self) {
        self.net.cut(self.reader, self.stations[0]);
    }

    fn read(&mut self) -> Vec<Item> {
        self.net.items(self.reader, self.stream)
    }

    fn words(&mut self) -> Vec<String> {
        self.read().iter().map(word).collect()
    }
}

#[test]
fn br_02_a_cut_link_is_resumed_and_nothing_is_missing() {
    let mut town = Town::new(1, 1000);
    town.publish(3);
    town.cut();
    town.publish(4);
    town.net.run_for(secs(40));
    town.publish(2);
    let words = town.words();
    let notices: Vec<&String> = words
        .iter()
        .filter(|word| word.parse::<u64>().is_err())
        .collect();
    assert_eq!(notices.len(), 2, "{words:?}");
    assert!(notices[0].starts_with("interrupted"));
    assert_eq!(notices[1], "resumed 4");
    let facts: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(facts, (1..=9).collect::<Vec<u64>>());
}

#[test]
fn br_44_too_old_a_position_is_a_gap_once_and_the_next_resumes() {
    for (missed, replayed) in [(0, true), (2, true), (3, true), (4, false), (9, false)] {
        let mut town = Town::new(2, 3);
        town.publish(5);
        let _before = town.words();
        town.cut();
        town.publish(missed);
        town.net.run_for(secs(40));
        let words = town.words();
        assert!(words[0].starts_with("interrupted"), "{words:?}");
        if replayed {
            assert_eq!(words[1], format!("resumed {missed}"));
            assert_eq!(words.len() as u64, 2 + missed, "{words:?}");
        } else {
            assert!(words[1].ends_with("expired"), "{missed}: {words:?}");
            assert_eq!(words.len(), 2);
        }
        // The position that came with it is no reason for another one.
        town.cut();
        town.net.run_for(secs(40));
        let words = town.words();
        assert_eq!(words.len(), 2, "{words:?}");
        assert_eq!(words[1], "resumed 0");
    }
}

#[test]
fn br_44_a_station_that_has_restarted_has_another_run() {
    let mut town = Town::new(3, 100);
    town.publish(5);
    let killed = town.net.now().wall;
    town.net.kill(town.stations[0]);
    town.net.run_for(secs(1));
    let items = town.read();
    let Some(Item::Notice(notice)) = items.last() else {
        panic!("{items:?}");
    };
    let Notice::Interrupted { from, .. } = **notice else {
        panic!("{notice:?}");
    };
    assert!(from >= START && from <= killed);
}

#[test]
fn br_46_a_quiet_topic_is_resumed_though_others_turned_the_rings_over() {
    let mut town = Town::new(4, 3);
    town.publish(1);
    for _ in 0..3 {
        town.publish_to(realm(), "weather/acme/app/days/other_v1", 30);
        town.net.run_for(secs(11));
        town.cut();
        town.publish_to(realm(), "weather/acme/app/days/other_v1", 30);
        town.net.run_for(secs(40));
    }
    let words = town.words();
    assert_eq!(words[0], "1");
    assert_eq!(words.len(), 7, "{words:?}");
    assert!(
        words
            .iter()
            .skip(2)
            .step_by(2)
            .all(|word| word == "resumed 0"),
        "{words:?}"
    );
}

#[test]
fn br_48_a_replay_that_is_cut_again_and_again_delivers_each_once() {
    let mut town = Town::new(5, 1000);
    town.publish(2);
    town.net.delay(town.reader, town.stations[0], ms(40));
    town.net.socket_bytes(2000);
    town.cut();
    town.publish(200);
    for _ in 0..6 {
        town.net.run_for(ms(900));
        town.cut();
    }
    town.net.socket_bytes(usize::MAX);
    town.net.run_for(secs(60));
    town.publish(3);
    town.net.run_for(secs(2));
    let words = town.words();
    let facts: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(facts, (1..=205).collect::<Vec<u64>>(), "{words:?}");
    let gaps = words
        .iter()
        .filter(|word| word.starts_with("gap") || word.starts_with("skipped"));
    assert_eq!(gaps.count(), 0, "{words:?}");
}
