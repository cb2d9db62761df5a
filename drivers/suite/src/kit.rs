//! What cases are made of.
//!
//! Decides: keys, topics and patience of the suite. Leaves to others: the cases. Believes: the
//! host's monotonic clock. Bounded by: [`PATIENCE`] for anything waited for.

use std::time::{Duration, Instant};

use tidings::crypto::SecretKey;
use tidings::{Delivery, Item, NodeId, Notice, Outcome, Publish, RealmId, Sources, Subscribe};

use tidings_common::{Answers, StationSettings};

use crate::Driver;

/// How long anything that must happen may take, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must happen before it is believed that nothing does.
pub(crate) const QUIET: Duration = Duration::from_millis(400);

/// A key of its own for each part of a case.
pub fn key(part: u8) -> SecretKey {
    SecretKey::from_seed([part; 32])
}

/// The node of that key.
pub fn id(part: u8) -> NodeId {
    key(part).node_id()
}

/// Where all of it happens.
pub fn realm() -> RealmId {
    RealmId::of_name("suite")
}

/// A subscription to one topic from anyone.
pub fn open(filter: &str) -> Subscribe {
    Subscribe::new(realm(), filter, Sources::Open)
}

/// Host and port of a station's address.
pub(crate) fn host(address: &str) -> String {
    let host = address.rsplit(['@', '/']).next();
    host.expect("an address has a host").to_owned()
}

/// A numbered fact.
///
/// # Panics
/// Never: a number is a payload.
pub fn numbered(topic: &str, number: u64) -> Publish {
    Publish::new(realm(), topic, &number).expect("a number is a payload")
}

/// What a numbered fact says.
///
/// # Panics
/// When it says something else.
pub fn number(fact: &Delivery) -> u64 {
    fact.decode().expect("the payload is a number")
}

/// Tries until it holds, or [`PATIENCE`] is over.
///
/// # Panics
/// When it does not hold in time.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}, in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A driver with its stations and nodes, for shorter cases.
pub(crate) struct Kit<'a, D: Driver> {
    pub(crate) driver: &'a D,
}

impl<'a, D: Driver> Kit<'a, D> {
    pub(crate) fn new(driver: &'a D) -> Self {
        Self { driver }
    }

    /// Those of a station at `HOST:PORT`.
    pub(crate) fn settings_at(&self, part: u8, at: &str) -> StationSettings {
        let scheme = if D::SECURE { "tls" } else { "tcp" };
        let settings = StationSettings::new(key(part)).listen(&format!("{scheme}://{at}"));
        settings.expect("a good address")
    }

    /// Those of a station on a free port.
    pub(crate) fn settings(&self, part: u8) -> StationSettings {
        self.settings_at(part, "127.0.0.1:0")
    }

    /// A station on a free port.
    pub(crate) fn station(&self, part: u8) -> D::Station {
        self.driver
            .start_station(self.settings(part))
            .expect("a station starts on a free port")
    }

    /// A node that is connected to all of these stations.
    pub(crate) fn node(&self, part: u8, stations: &[&D::Station]) -> D::Node {
        let node = self.driver.start_node(key(part), &self.addresses(stations));
        self.connected(node, stations.len())
    }

    /// The same with somebody who answers its questions.
    pub(crate) fn answered_node(
        &self,
        part: u8,
        stations: &[&D::Station],
        answers: impl Answers + 'static,
    ) -> D::Node {
        let at = self.addresses(stations);
        let node = self.driver.start_answered_node(key(part), &at, answers);
        self.connected(node, stations.len())
    }

    fn addresses(&self, stations: &[&D::Station]) -> Vec<String> {
        let stations = stations.iter();
        stations
            .map(|station| self.driver.station_address(station))
            .collect()
    }

    fn connected(&self, node: Result<D::Node, D::Error>, stations: usize) -> D::Node {
        let node = node.expect("a node starts");
        assert!(
            self.driver.connected(&node, stations, PATIENCE),
            "the node connects"
        );
        node
    }

    /// A subscription that so many stations carry.
    pub(crate) fn subscribe(
        &self,
        node: &D::Node,
        request: Subscribe,
        stations: usize,
    ) -> D::Subscription {
        let mut subscription = self.driver.subscribe(node, request).expect("subscribed");
        assert!(
            self.driver.carried(&mut subscription, stations, PATIENCE),
            "the stations accept"
        );
        subscription
    }

    pub(crate) fn publish(&self, node: &D::Node, request: Publish) -> Outcome {
        self.driver
            .publish(node, request)
            .expect("the publication is taken")
    }

    /// Publishes and demands that somebody hears it.
    pub(crate) fn routed(&self, node: &D::Node, request: Publish) {
        let outcome = self.publish(node, request);
        assert!(
            matches!(outcome, Outcome::Routed { .. }),
            "routed, not {outcome:?}"
        );
    }

    pub(crate) fn item(&self, subscription: &mut D::Subscription) -> Item {
        self.driver
            .next(subscription, PATIENCE)
            .expect("an item in time")
    }

    /// The next item, which must be a fact.
    pub(crate) fn fact(&self, subscription: &mut D::Subscription) -> Delivery {
        match self.item(subscription) {
            Item::Fact(fact) => fact,
            other => panic!("a fact, not {other:?}"),
        }
    }

    /// The next item, which must be a notice.
    pub(crate) fn notice(&self, subscription: &mut D::Subscription) -> Notice {
        match self.item(subscription) {
            Item::Notice(notice) => *notice,
            other => panic!("a notice, not {other:?}"),
        }
    }

    /// Reads numbered facts `from..to`, in order, with nothing between them.
    pub(crate) fn numbers(&self, subscription: &mut D::Subscription, from: u64, to: u64) {
        for expected in from..to {
            let fact = self.fact(subscription);
            assert_eq!(number(&fact), expected, "{fact:?}");
            assert!(!fact.late(), "{fact:?}");
        }
    }

    /// Demands that nothing comes for a while.
    pub(crate) fn quiet(&self, subscription: &mut D::Subscription) {
        let item = self.driver.next(subscription, QUIET);
        assert!(item.is_none(), "nothing, not {item:?}");
    }
}
