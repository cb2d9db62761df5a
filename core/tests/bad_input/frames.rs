//! Frames that break WIRE.md.

use tidings::wire::{Frame, Opener};
use tidings::{ClientConfig, Intake, LinkError, StationConfig};

use super::common::{Far, at, closed, signer};
use super::{
    Honest, HonestClient, HonestStation, Json, bytes, counter, ended, goodbye, read, text,
};

/// Brings a stranger to the phase a frame is for.
fn at_phase(honest: &mut dyn Honest, phase: &str) -> Far {
    let mut far = honest.stranger(at(0));
    let machine = honest.machine();
    match phase {
        "opener" | "challenge" => {}
        "connect" => {
            let opener = Frame::Opener(Opener { first: 1, last: 1 });
            assert_eq!(far.frame(machine, at(0), &opener), Ok(Intake::Open));
        }
        "hello" => far.challenge(machine, at(0)),
        "open" => far.shake_hands(machine, at(0)),
        other => panic!("{other}"),
    }
    // What it has to say so far is not what is looked at.
    drop(far.read(machine, at(0)));
    drop(closed(machine));
    far
}

/// What the other side of this fault reads: a refusal from the answerer of a handshake, nothing from its dialler, else a goodbye.
fn told(phase: &str, error: LinkError) -> Option<String> {
    match phase {
        "open" => Some(goodbye(error)),
        "opener" | "connect" => Some(format!("hello {}", error.refusal())),
        _ => None,
    }
}

fn refuses(honest: &mut dyn Honest, entry: &Json, phase: &str) {
    let name = text(entry, "name");
    let mut far = at_phase(honest, phase);
    let failed = honest.links_failed();
    let result = far.body(honest.machine(), at(0), &bytes(entry));
    let Err(error) = result else {
        panic!("{name}: {result:?}")
    };
    assert_eq!(error.text(), text(entry, "refuse"), "{name}");
    assert_eq!(honest.links_failed(), failed + 1, "{name}");
    match told(phase, error) {
        Some(told) => ended(honest, at(0), &mut far, error, &told),
        None => {
            let machine = honest.machine();
            assert_eq!(closed(machine), [(far.id, error.code())], "{name}");
            assert!(far.read(machine, at(0)).is_empty(), "{name}");
            honest.still_delivers(at(0));
        }
    }
}

fn malformed() -> Vec<Json> {
    let mut entries = read("frames");
    entries.retain(|entry| entry["kind"] == "body" && entry.get("refuse").is_some());
    assert!(entries.len() > 700, "the family shrank");
    entries
}

#[test]
fn every_malformed_frame_ends_its_own_link_at_a_station() {
    let mut station = HonestStation::new(StationConfig::new(signer(1)));
    let mut run = 0;
    for entry in malformed() {
        let phase = text(&entry, "phase");
        if ["opener", "connect", "open"].contains(&phase) {
            refuses(&mut station, &entry, phase);
            run += 1;
        }
    }
    assert!(run > 600, "{run} were run");
    assert_eq!(station.station.status().links.len(), 2, "the honest ones");
}

#[test]
fn every_malformed_frame_ends_its_own_link_at_a_client() {
    let mut run = 0;
    for entry in malformed() {
        let phase = text(&entry, "phase");
        if ["challenge", "hello", "open"].contains(&phase) {
            let mut client = HonestClient::new(ClientConfig::new(signer(1)));
            refuses(&mut client, &entry, phase);
            run += 1;
        }
    }
    assert!(run > 600, "{run} were run");
}

#[test]
fn unknown_types_are_read_past_and_counted() {
    let mut entries = read("frames");
    entries.retain(|entry| entry["expect"]["known"] == false);
    assert!(entries.len() >= 12, "the family shrank");
    let mut station = HonestStation::new(StationConfig::new(signer(1)));
    let mut client = HonestClient::new(ClientConfig::new(signer(1)));
    let mut at_station = at_phase(&mut station, "open");
    let mut at_client = at_phase(&mut client, "open");
    for (n, entry) in entries.iter().enumerate() {
        let body = bytes(entry);
        let taken = at_station.body(&mut station.station, at(0), &body);
        assert_eq!(taken, Ok(Intake::Open), "{}", entry["name"]);
        let taken = at_client.body(&mut client.client, at(0), &body);
        assert_eq!(taken, Ok(Intake::Open), "{}", entry["name"]);
        for counters in [
            station.station.status().counters,
            client.client.status().counters,
        ] {
            assert_eq!(counter(&counters, "unknown_frames"), n as u64 + 1);
        }
    }
    assert!(at_station.read(&mut station.station, at(0)).is_empty());
    station.still_delivers(at(0));
    client.still_delivers(at(0));
}

#[test]
fn a_length_too_great_ends_its_link_from_four_bytes() {
    let mut run = 0;
    for entry in read("frames") {
        if entry["kind"] != "stream" || entry.get("refuse").is_none() {
            continue;
        }
        run += 1;
        let max_frame = u32::try_from(entry["max_frame"].as_u64().expect("a number")).expect("u32");
        let station = StationConfig::new(signer(1)).max_frame(max_frame);
        let limits = {
            let mut limits = tidings::StationLimits::default();
            limits.publication_bytes = limits.publication_bytes.min(max_frame as usize - 128);
            limits
        };
        let mut station = HonestStation::new(station.limits(limits));
        let mut limits = tidings::ClientLimits::default();
        limits.held_bytes = 128 << 20;
        let client = ClientConfig::new(signer(1))
            .max_frame(max_frame)
            .limits(limits);
        let mut client = HonestClient::new(client);
        let machines: [&mut dyn Honest; 2] = [&mut station, &mut client];
        for (honest, before) in machines.into_iter().zip(["opener", "challenge"]) {
            let phase = match entry["handshake_ended"] == true {
                true => "open",
                false => before,
            };
            let mut far = at_phase(honest, phase);
            let error = LinkError::FrameTooLarge;
            let result = far.raw(honest.machine(), at(0), &bytes(&entry));
            assert_eq!(result, Err(error), "{}", entry["name"]);
            // A ping before it was answered.
            let mut wrote = far.types(honest.machine(), at(0));
            let last = wrote.pop();
            assert_eq!(last, told(phase, error), "{}", entry["name"]);
            assert!(wrote.iter().all(|word| word == "pong"), "{wrote:?}");
            assert_eq!(closed(honest.machine()), [(far.id, error.code())]);
            honest.still_delivers(at(0));
        }
    }
    assert_eq!(run, 5);
}

#[test]
fn frames_of_the_other_side_are_unexpected() {
    let bodies = read("frames");
    let named = |name: &str| {
        let found = bodies.iter().find(|entry| entry["name"] == name);
        bytes(found.unwrap_or_else(|| panic!("no entry {name}")))
    };
    for name in [
        "subscribe",
        "publish",
        "unsubscribe",
        "interest",
        "interest_wanted",
    ] {
        let mut client = HonestClient::new(ClientConfig::new(signer(1)));
        let mut far = at_phase(&mut client, "open");
        let error = LinkError::UnexpectedFrame;
        assert_eq!(
            far.body(&mut client.client, at(0), &named(name)),
            Err(error),
            "{name}"
        );
        ended(&mut client, at(0), &mut far, error, &goodbye(error));
    }
    let answers = [
        ("subscribed", LinkError::UnknownId),
        ("refused", LinkError::UnknownId),
        ("published", LinkError::UnknownId),
        ("event", LinkError::UnknownId),
        ("progress", LinkError::UnknownId),
        ("skipped", LinkError::UnknownId),
        ("interest", LinkError::UnexpectedFrame),
        ("interest_wanted", LinkError::UnexpectedFrame),
    ];
    let mut station = HonestStation::new(StationConfig::new(signer(1)));
    for (name, error) in answers {
        let mut far = at_phase(&mut station, "open");
        assert_eq!(
            far.body(&mut station.station, at(0), &named(name)),
            Err(error),
            "{name}"
        );
        ended(&mut station, at(0), &mut far, error, &goodbye(error));
    }
}
