//! What the driver's own tests share.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::time::{Duration, Instant};

use tidings::crypto::SecretKey;
use tidings::{Delivery, Item, Publish, RealmId, Sources, Subscribe};
use tidings_mio::{Node, NodeSettings, StationServer, StationSettings, Subscription};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn key(part: u8) -> SecretKey {
    SecretKey::from_seed([part; 32])
}

pub(crate) fn realm() -> RealmId {
    RealmId::of_name("tests")
}

pub(crate) fn settings() -> StationSettings {
    StationSettings::new(key(1))
        .listen("tcp://127.0.0.1:0")
        .unwrap()
}

pub(crate) fn station() -> StationServer {
    StationServer::start(settings()).unwrap()
}

pub(crate) fn dialling(part: u8, address: &str) -> NodeSettings {
    NodeSettings::new(key(part)).station(address).unwrap()
}

pub(crate) fn node(part: u8, address: &str) -> Node {
    let node = Node::start(dialling(part, address)).unwrap();
    node.connected(1, PATIENCE).unwrap();
    node
}

pub(crate) fn open(topic: &str) -> Subscribe {
    Subscribe::new(realm(), topic, Sources::Open)
}

pub(crate) fn subscribe(node: &Node, request: Subscribe) -> Subscription {
    let subscription = node.subscribe(request).unwrap();
    subscription.carried(1, PATIENCE).unwrap();
    subscription
}

pub(crate) fn numbered(topic: &str, number: u64) -> Publish {
    Publish::new(realm(), topic, &number).unwrap()
}

pub(crate) fn fact(subscription: &mut Subscription) -> Delivery {
    match subscription.next(PATIENCE).expect("an item in time") {
        Item::Fact(fact) => fact,
        other => panic!("a fact, not {other:?}"),
    }
}

pub(crate) fn number(fact: &Delivery) -> u64 {
    fact.decode().unwrap()
}

/// Tries until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}, in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}
