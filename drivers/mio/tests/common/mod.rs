//! What the driver's own tests share.
#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

use tidings::{Delivery, Item, Subscribe};
use tidings_mio::{Node, NodeSettings, StationServer, StationSettings, Subscription};

pub(crate) use tidings_suite::help::*;

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

pub(crate) fn subscribe(node: &Node, request: Subscribe) -> Subscription {
    let subscription = node.subscribe(request).unwrap();
    subscription.carried(1, PATIENCE).unwrap();
    subscription
}

pub(crate) fn fact(subscription: &mut Subscription) -> Delivery {
    match subscription.next(PATIENCE).expect("an item in time") {
        Item::Fact(fact) => fact,
        other => panic!("a fact, not {other:?}"),
    }
}
