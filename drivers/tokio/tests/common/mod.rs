//! What the driver's own tests share.
#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

use tidings::{Delivery, Item, Subscribe};
use tidings_tokio::{Node, NodeBuilder, StationServer, StationServerBuilder, Subscription};

pub(crate) use tidings_suite::help::*;

pub(crate) fn station() -> StationServerBuilder {
    StationServer::builder(key(1))
        .listen("tcp://127.0.0.1:0")
        .unwrap()
}

pub(crate) fn node(part: u8, station: &StationServer) -> NodeBuilder {
    Node::builder(key(part))
        .station(&station.address())
        .unwrap()
}

pub(crate) async fn up(builder: NodeBuilder) -> Node {
    let node = builder.start().unwrap();
    node.connected(1, PATIENCE).await.unwrap();
    node
}

pub(crate) async fn subscribe(node: &Node, request: Subscribe) -> Subscription {
    let mut subscription = node.subscribe(request).unwrap();
    subscription.carried(1, PATIENCE).await.unwrap();
    subscription
}

pub(crate) async fn fact(subscription: &mut Subscription) -> Delivery {
    let item = tokio::time::timeout(PATIENCE, subscription.next())
        .await
        .expect("an item in time");
    match item.expect("the stream goes on") {
        Item::Fact(fact) => fact,
        other => panic!("a fact, not {other:?}"),
    }
}
