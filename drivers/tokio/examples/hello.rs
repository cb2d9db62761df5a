//! A station, a node and one fact, in one process.

use std::time::Duration;
use tidings::crypto::SecretKey;
use tidings::{Item, Publish, RealmId, Sources, Subscribe};
use tidings_tokio::{Node, StationServer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let station = StationServer::builder(SecretKey::from_seed([1; 32]))
        .listen("127.0.0.1:0")?
        .start()
        .await?;
    let node = Node::builder(SecretKey::from_seed([2; 32]))
        .station(&station.address())?
        .start()?;

    let realm = RealmId::of_name("example");
    let mut facts = node.subscribe(Subscribe::new(
        realm,
        "greetings",
        Sources::Nodes(vec![node.id()]),
    ))?;
    facts.carried(1, Duration::from_secs(5)).await?;
    node.publish(Publish::new(realm, "greetings", "hello")?)
        .await?;

    if let Some(Item::Fact(fact)) = facts.next().await {
        println!("{} says {:?}", fact.publisher(), fact.decode::<String>()?);
    }
    node.close().await;
    station.close().await;
    Ok(())
}
