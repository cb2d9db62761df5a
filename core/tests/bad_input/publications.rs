//! Objects that break WIRE.md sections 5 and 6: dropped alone.

use std::collections::BTreeMap;

use tidings::code::ObjectFault;
use tidings::crypto::SecretKey;
use tidings::{
    ClientConfig, Instant, Intake, Now, RealmId, Sources, StationConfig, StationRef, Subscribe,
    WallMs,
};

use super::common::{self, EPOCH, Far, at, closed, items};
use super::{Json, bytes, read, text};

fn bad() -> Vec<Json> {
    let mut entries = read("publications");
    entries.retain(|entry| entry.get("refuse").is_some());
    assert!(entries.len() > 150, "the family shrank");
    entries
}

/// The vectors' realm.
fn realm() -> RealmId {
    "01d3dfa1c6c504b937a8fd2fca87389e957ed139333f1bdfe952f6897acbb2f2"
        .parse()
        .expect("hex")
}

fn time(entry: &Json, n: usize) -> Now {
    let wall = entry["now"].as_u64().expect("a number");
    Now::new(Instant::from_millis(n as u64), WallMs::new(wall))
}

/// A good publication of the vectors' realm.
fn good(seq: u64, wall: WallMs) -> Vec<u8> {
    let signer = SecretKey::from_seed([9; 32]);
    let mut object = Vec::new();
    tidings::wire::Draft {
        realm: realm(),
        topic: "io.example/acme/shop/orders/placed_v1",
        publisher: signer.node_id(),
        epoch: Some(EPOCH),
        seq,
        published_at: wall,
        ttl_ms: None,
        one: false,
        body: tidings::wire::Body::Payload(&[1]),
    }
    .sign(&signer, &mut object)
    .expect("a key in memory signs");
    object
}

/// Reasons a live machine may find before the one that stands first for a publication taken alone: it looks at what is cheap first, and
/// verifies last.
fn may_be(entry: &Json, found: ObjectFault) -> bool {
    let wanted = text(entry, "refuse");
    let name = text(entry, "name");
    let changed = name.starts_with("signature_before_") || name.starts_with("order_");
    found.text() == wanted || (changed && !matches!(found, ObjectFault::Duplicate))
}

/// The one reason that was counted since.
fn counted(
    before: &mut BTreeMap<ObjectFault, u64>,
    now: impl Iterator<Item = (ObjectFault, u64)>,
) -> Vec<ObjectFault> {
    let mut found = Vec::new();
    for (fault, count) in now {
        let known = before.insert(fault, count).unwrap_or(0);
        found.extend((known..count).map(|_| fault));
    }
    found
}

#[test]
fn every_bad_publication_is_dropped_alone_at_a_client() {
    let config = ClientConfig::new(SecretKey::from_seed([3; 32])).station(None);
    let mut client = common::client(config);
    let station = SecretKey::from_seed([4; 32]);
    let mut far = Far::answer(&mut client, at(0), station, StationRef(0));
    let request = Subscribe::new(realm(), "**", Sources::Open);
    let stream = client.subscribe(at(0), request).expect("accepted here");
    far.accept(&mut client, at(0), 1);
    let mut counts = BTreeMap::new();
    let mut exact = 0;
    for (n, entry) in bad().iter().enumerate() {
        let (name, now) = (text(entry, "name"), time(entry, n));
        let offset = 2 * n as u64 + 1;
        let taken = far.event(&mut client, now, 1, offset, &bytes(entry));
        assert_eq!(taken, Ok(Intake::Open), "{name}");
        let found = counted(&mut counts, client.status().faults.iter());
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(may_be(entry, found[0]), "{name}: {}", found[0]);
        exact += usize::from(found[0].text() == text(entry, "refuse"));
        let fresh = good(n as u64 + 1, now.wall);
        let taken = far.event(&mut client, now, 1, offset + 1, &fresh);
        assert_eq!(taken, Ok(Intake::Open), "{name}");
        let got = items(&mut client, stream);
        let delivered = got.iter().filter_map(|item| match item {
            tidings::Item::Fact(fact) => Some(fact.seq()),
            tidings::Item::Notice(_) => None,
            other => panic!("{other:?}"),
        });
        assert_eq!(delivered.collect::<Vec<_>>(), [n as u64 + 1], "{name}");
    }
    assert!(
        exact >= 145,
        "{exact} by the very reason of a publication taken alone"
    );
    assert!(closed(&mut client).is_empty());
    let memory = client.memory();
    assert_eq!(memory.line("held_bytes").expect("a line").used, 0);
}

#[test]
fn every_bad_publication_is_refused_alone_at_a_station() {
    let gateway = SecretKey::from_seed([5; 32]);
    let config = StationConfig::new(SecretKey::from_seed([4; 32]));
    let mut station = common::station(config.gateway(gateway.node_id()));
    let mut far = Far::dial(&mut station, at(0), gateway);
    let mut reader = Far::dial(&mut station, at(0), SecretKey::from_seed([6; 32]));
    let subscribe = tidings::wire::Frame::Subscribe(tidings::wire::Subscribe {
        id: 1,
        realm: realm(),
        filter: "**",
        resume: None,
    });
    assert_eq!(
        reader.frame(&mut station, at(0), &subscribe),
        Ok(Intake::Open)
    );
    assert_eq!(reader.types(&mut station, at(0)), ["subscribed 1"]);
    let mut counts = BTreeMap::new();
    let mut exact = 0;
    for (n, entry) in bad().iter().enumerate() {
        let (name, now) = (text(entry, "name"), time(entry, n));
        let id = 2 * n as u64 + 1;
        let taken = far.publish(&mut station, now, id, &bytes(entry));
        assert_eq!(taken, Ok(Intake::Open), "{name}");
        let told = far.types(&mut station, now);
        let found = counted(&mut counts, station.status().faults.iter());
        if told == [format!("published {id} route_mismatch")] {
            assert!(found.is_empty(), "{name}: {found:?}");
            continue;
        }
        assert_eq!(found.len(), 1, "{name}: {found:?} and {told:?}");
        assert!(may_be(entry, found[0]), "{name}: {}", found[0]);
        exact += usize::from(found[0].text() == text(entry, "refuse"));
        assert_eq!(told, [format!("published {id} {}", found[0])], "{name}");
        let taken = far.publish(&mut station, now, id + 1, &good(n as u64 + 1, now.wall));
        assert_eq!(taken, Ok(Intake::Open), "{name}");
        assert_eq!(
            far.types(&mut station, now),
            [format!("published {} routed", id + 1)]
        );
        let mut events = reader.types(&mut station, now);
        events.retain(|word| word != "progress");
        assert_eq!(events.len(), 1, "{name}: {events:?}");
    }
    assert!(
        exact >= 145,
        "{exact} by the very reason of a publication taken alone"
    );
    assert!(closed(&mut station).is_empty());
}
