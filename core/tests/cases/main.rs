//! Failures that people met elsewhere, each as a test that it is not met here. The first line of each says what they saw.

mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod memory;
mod order;

use common::{Fact, Far, TOPIC, at, client, items, move_to, realm, signer, words};
use tidings::code::ObjectFault;
use tidings::{
    Client, ClientConfig, Intake, Now, Sources, Station, StationRef, Subscribe, SubscriptionId,
};

/// A node with as many links as wanted, one subscription accepted on all of them, and a publisher's key.
struct Node {
    client: Client,
    links: Vec<Far>,
    stream: SubscriptionId,
    publisher: Box<dyn tidings::crypto::Signer>,
    offset: u64,
}

impl Node {
    fn new(links: u16, request: Subscribe) -> Self {
        let dials = |config: ClientConfig, _| config.station(None);
        let mut client = client((0..links).fold(ClientConfig::new(signer(1)), dials));
        let links: Vec<Far> = (0..links)
            .map(|n| {
                let station = signer(100 + u64::from(n));
                Far::answer(&mut client, at(0), station, StationRef(n))
            })
            .collect();
        let stream = client.subscribe(at(0), request).expect("accepted here");
        let mut node = Self {
            client,
            links,
            stream,
            publisher: Box::new(signer(7)),
            offset: 0,
        };
        for far in &mut node.links {
            assert_eq!(far.types(&mut node.client, at(0)), ["subscribe 1"]);
            far.accept(&mut node.client, at(0), 1);
        }
        node
    }

    /// Hands an object over on one link; the link must go on.
    fn object(&mut self, now: Now, link: usize, object: &[u8]) {
        self.offset += 1;
        let offset = self.offset;
        let taken = self.links[link].event(&mut self.client, now, 1, offset, object);
        assert_eq!(taken, Ok(Intake::Open));
    }

    fn seq(&mut self, now: Now, link: usize, seq: u64) {
        self.fact(now, link, Fact::numbered(seq));
    }

    fn fact(&mut self, now: Now, link: usize, fact: Fact<'_>) {
        let object = fact.sign(&*self.publisher);
        self.object(now, link, &object);
    }

    fn time(&mut self, to: Now) {
        move_to(&mut self.client, to);
    }

    fn words(&mut self) -> Vec<String> {
        words(&items(&mut self.client, self.stream))
    }

    fn faults(&self, fault: ObjectFault) -> u64 {
        self.client.status().faults.of(fault)
    }
}

fn open() -> Subscribe {
    Subscribe::new(realm(), TOPIC, Sources::Open)
}

fn subscribe(far: &mut Far, station: &mut Station, now: Now, id: u64) {
    let taken = far.subscribe(station, now, id, TOPIC);
    assert_eq!(taken, Ok(Intake::Open));
}

fn publish(far: &mut Far, station: &mut Station, now: Now, id: u64, fact: Fact<'_>) {
    let taken = far.publish(station, now, id, &fact.sign(&signer(7)));
    assert_eq!(taken, Ok(Intake::Open));
}
