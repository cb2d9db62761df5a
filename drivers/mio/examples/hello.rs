//! A station, a node and one fact, in one process and without a runtime.

use std::time::Duration;
use tidings::{Item, Publish, RealmId, Sources, Subscribe, crypto::SecretKey};
use tidings_mio::{Node, NodeSettings, StationServer, StationSettings};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listening = StationSettings::new(SecretKey::from_seed([1; 32])).listen("127.0.0.1:0")?;
    let station = StationServer::start(listening)?;
    let dialling = NodeSettings::new(SecretKey::from_seed([2; 32])).station(&station.address())?;
    let node = Node::start(dialling)?;

    let (realm, topic) = (RealmId::of_name("example"), "greetings");
    let request = Subscribe::new(realm, topic, Sources::Nodes(vec![node.id()]));
    let mut facts = node.subscribe(request)?;
    facts.carried(1, PATIENCE)?;
    node.publish(Publish::new(realm, topic, "hello")?)?;

    if let Some(Item::Fact(fact)) = facts.next(PATIENCE) {
        println!("{} says {:?}", fact.publisher(), fact.decode::<String>()?);
    }
    node.close();
    station.close();
    Ok(())
}
