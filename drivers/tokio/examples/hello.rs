//! A station, a node and one fact, in one process.

use std::time::Duration;
use tidings::{Item, Publish, RealmId, Sources, Subscribe, crypto::SecretKey};
use tidings_tokio::{Node, StationServer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listening = StationServer::builder(SecretKey::from_seed([1; 32])).listen("127.0.0.1:0")?;
    let station = listening.start().await?;
    let dialling = Node::builder(SecretKey::from_seed([2; 32])).station(&station.address())?;
    let node = dialling.start()?;

    let (realm, topic) = (RealmId::of_name("example"), "greetings");
    let request = Subscribe::new(realm, topic, Sources::Nodes(vec![node.id()]));
    let mut facts = node.subscribe(request)?;
    facts.carried(1, Duration::from_secs(5)).await?;
    node.publish(Publish::new(realm, topic, "hello")?).await?;

    if let Some(Item::Fact(fact)) = facts.next().await {
        println!("{} says {:?}", fact.publisher(), fact.decode::<String>()?);
    }
    node.close().await;
    station.close().await;
    Ok(())
}
