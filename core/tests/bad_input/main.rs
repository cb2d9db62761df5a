//! What peers get wrong ends exactly their own link, or drops exactly one object, and is counted by its reason.

#[path = "../common/mod.rs"]
mod common;
mod frames;
mod ids;
mod publications;
mod time;

use std::path::PathBuf;

use common::{Fact, Far, TOPIC, at, closed, counter, items, realm, signer, words};
use serde_json::Value as Json;
use tidings::code::CloseReason;
use tidings::pump::Machine;
use tidings::{
    Client, ClientConfig, Intake, LinkError, LinkEvent, Now, Sources, Station, StationConfig,
    StationRef, Subscribe, SubscriptionId,
};

fn read(name: &str) -> Vec<Json> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../vectors/{name}.json"));
    let text = std::fs::read_to_string(path).expect("the family is there");
    let mut file: Json = serde_json::from_str(&text).expect("the family is JSON");
    match file["entries"].take() {
        Json::Array(entries) => entries,
        other => panic!("entries are {other}"),
    }
}

fn text<'a>(entry: &'a Json, key: &str) -> &'a str {
    entry[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {entry}"))
}

fn bytes(entry: &Json) -> Vec<u8> {
    let hex = text(entry, "hex");
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect()
}

/// A machine with one honest link that must go on, whatever the others do.
trait Honest {
    fn machine(&mut self) -> &mut dyn Machine;
    /// A new link, its handshake not begun.
    fn stranger(&mut self, now: Now) -> Far;
    /// What a stranger whose handshake is over owes this machine.
    fn welcome(&mut self, far: &mut Far);
    /// A fact goes its whole way on the honest link.
    fn still_delivers(&mut self, now: Now);
    fn links_failed(&self) -> u64;
}

/// A station with an honest reader and an honest writer.
struct HonestStation {
    station: Station,
    reader: Far,
    writer: Far,
    sent: u64,
}

impl HonestStation {
    fn new(config: StationConfig) -> Self {
        let mut station = common::station(config);
        let mut reader = Far::dial(&mut station, at(0), signer(2));
        let writer = Far::dial(&mut station, at(0), signer(7));
        assert_eq!(
            reader.subscribe(&mut station, at(0), 1, TOPIC),
            Ok(Intake::Open)
        );
        assert_eq!(reader.types(&mut station, at(0)), ["subscribed 1"]);
        Self {
            station,
            reader,
            writer,
            sent: 0,
        }
    }
}

impl Honest for HonestStation {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.station
    }

    fn stranger(&mut self, now: Now) -> Far {
        Far::new(&mut self.station, now, signer(66))
    }

    fn welcome(&mut self, _: &mut Far) {}

    fn still_delivers(&mut self, now: Now) {
        self.sent += 1;
        let fact = Fact {
            published_at: now.wall,
            ..Fact::numbered(self.sent)
        };
        let object = fact.sign(&signer(7));
        let taken = self
            .writer
            .publish(&mut self.station, now, self.sent, &object);
        assert_eq!(taken, Ok(Intake::Open));
        let mut told = self.reader.types(&mut self.station, now);
        told.retain(|word| word != "progress");
        assert_eq!(told, [format!("event {}", self.sent)]);
        let answer = self.writer.types(&mut self.station, now);
        assert_eq!(answer, [format!("published {} routed", self.sent)]);
    }

    fn links_failed(&self) -> u64 {
        counter(&self.station.status().counters, "links_failed")
    }
}

/// A client with an honest station and a place for another.
struct HonestClient {
    client: Client,
    honest: Far,
    stream: SubscriptionId,
    sent: u64,
}

impl HonestClient {
    fn new(config: ClientConfig) -> Self {
        let mut client = common::client(config.station(None).station(None));
        let mut honest = Far::answer(&mut client, at(0), signer(100), StationRef(0));
        let request = Subscribe::new(realm(), TOPIC, Sources::Open);
        let stream = client.subscribe(at(0), request).expect("accepted here");
        assert_eq!(honest.types(&mut client, at(0)), ["subscribe 1"]);
        honest.accept(&mut client, at(0), 1);
        Self {
            client,
            honest,
            stream,
            sent: 0,
        }
    }
}

impl Honest for HonestClient {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.client
    }

    fn stranger(&mut self, now: Now) -> Far {
        Far::answering(&mut self.client, now, signer(101), StationRef(1))
    }

    fn welcome(&mut self, far: &mut Far) {
        far.accept(&mut self.client, at(0), 1);
    }

    fn still_delivers(&mut self, now: Now) {
        self.sent += 1;
        let fact = Fact {
            published_at: now.wall,
            ..Fact::numbered(self.sent)
        };
        let object = fact.sign(&signer(7));
        let taken = self
            .honest
            .event(&mut self.client, now, 1, self.sent, &object);
        assert_eq!(taken, Ok(Intake::Open));
        let told = words(&items(&mut self.client, self.stream));
        assert_eq!(told, [self.sent.to_string()]);
    }

    fn links_failed(&self) -> u64 {
        counter(&self.client.status().counters, "links_failed")
    }
}

/// The fault ended that link and no other: the error is repeated, the driver is told once, a goodbye (or the handshake's refusal) is
/// written where the other side can read one, and the honest link delivers.
fn ended(honest: &mut dyn Honest, now: Now, far: &mut Far, error: LinkError, told: &str) {
    let failed = honest.links_failed();
    let machine = honest.machine();
    assert_eq!(closed(machine), [(far.id, error.code())]);
    assert_eq!(far.types(machine, now), [told], "{error}");
    assert_eq!(far.raw(machine, now, b"more"), Err(error), "it repeats");
    assert!(closed(machine).is_empty());
    assert!(far.read(machine, now).is_empty());
    let down = LinkEvent::Down {
        link: far.id,
        reason: error.code(),
    };
    assert_eq!(machine.handle_link(now, down), Ok(far.id));
    assert_eq!(
        far.raw(machine, now, b"more"),
        Ok(Intake::Open),
        "a dead link's bytes are nothing"
    );
    honest.still_delivers(now);
    assert_eq!(honest.links_failed(), failed, "counted once");
}

/// What the other side reads of a fault after the handshake.
fn goodbye(error: LinkError) -> String {
    format!("goodbye {} {}", CloseReason::ProtocolError, error.text())
}
