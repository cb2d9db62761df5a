//! `links`: what holds between the frames of one link, on a station or on a client.
//!
//! A trace is seen from `self`. Where its peer subscribes or publishes, `self` is a station; else it is a client, which gives its ids out by
//! itself: it is made to write as many frames as the trace has, and what its peer says of the trace's ids is said of the client's.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tidings::wire::{Frame, Phase};
use tidings::{
    Client, ClientConfig, Intake, LinkError, Now, Publish, Sources, StationConfig, StationRef,
    Subscribe, SubscriptionId,
};

use super::common::{self, Far, at};
use super::{steps, text, time};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}

/// A frame's body with another id: the key `id` comes first, and the ids of the traces are below 24.
fn with_id(body: &[u8], id: u64) -> Vec<u8> {
    assert_eq!(body[1..4], *b"\x62id", "id is the first key");
    assert!(body[4] < 24, "a short id");
    let mut changed = body[..4].to_vec();
    match id {
        0..24 => changed.push(id as u8),
        _ => changed.extend([0x18, u8::try_from(id).expect("a short id")]),
    }
    changed.extend_from_slice(&body[5..]);
    changed
}

pub(crate) fn feed(entry: &Json) -> Result<Json, String> {
    let told = match steps(entry)[0].get("at_ms") {
        Some(_) => timed(entry),
        None => spoken(entry),
    };
    match told {
        Ok(()) => Ok(json!({ "steps": steps(entry).len() })),
        Err((step, error)) if entry["step"] == step => Ok(json!(error.text())),
        Err((step, error)) => Err(format!("ended by step {step}: {error}")),
    }
}

/// What a step told, with its number when it ended the link.
fn ended(number: usize, told: Result<Intake, LinkError>) -> Result<(), (usize, LinkError)> {
    let intake = told.map_err(|error| (number, error))?;
    assert_eq!(intake, Intake::Open);
    Ok(())
}

/// The bytes of one frame after another, in time.
fn timed(entry: &Json) -> Result<(), (usize, LinkError)> {
    let signer = common::signer(1);
    let mut client = common::client(ClientConfig::new(common::signer(2)).station(None));
    let mut far = Far::answer(&mut client, at(0), signer, StationRef(0));
    let whole = {
        let mut bytes = Vec::new();
        Frame::Ping(&[1; 16]).encode_framed(&mut bytes);
        bytes
    };
    let mut buffer = bytes::BytesMut::new();
    for (number, step) in steps(entry).iter().enumerate() {
        let now = time(step, "at_ms");
        common::move_to(&mut client, now);
        match step["bytes"].as_str() {
            Some("begin") => buffer.extend_from_slice(&whole[..1]),
            Some("more") => buffer.extend_from_slice(&whole[buffer.len()..buffer.len() + 1]),
            Some("end") => buffer.extend_from_slice(&whole[buffer.len()..]),
            Some(other) => panic!("{other}"),
            None => {}
        }
        ended(number, client.handle_input(now, far.id, &mut buffer))?;
        let _pong = far.read(&mut client, now);
    }
    Ok(())
}

/// Frames of both sides.
fn spoken(entry: &Json) -> Result<(), (usize, LinkError)> {
    let peer_asks = steps(entry).iter().any(|step| {
        step["from"] == "peer"
            && matches!(
                Frame::decode(&hex(text(step, "hex")), Phase::Established),
                Ok(Frame::Subscribe(_) | Frame::Publish(_) | Frame::Unsubscribe(_))
            )
    });
    if peer_asks {
        return to_a_station(entry);
    }
    to_a_client(entry)
}

fn to_a_station(entry: &Json) -> Result<(), (usize, LinkError)> {
    let mut station = common::station(StationConfig::new(common::signer(1)));
    let mut far = Far::dial(&mut station, at(0), common::signer(2));
    for (number, step) in steps(entry).iter().enumerate() {
        // What a station writes is its own affair.
        if step["from"] == "peer" {
            let told = far.body(&mut station, at(0), &hex(text(step, "hex")));
            ended(number, told)?;
        }
    }
    Ok(())
}

/// A client that asks for what a trace's `self` asks for.
struct Asking {
    client: Client,
    far: Far,
    streams: BTreeMap<u64, SubscriptionId>,
    /// The trace's ids, and the client's.
    ids: BTreeMap<u64, u64>,
    last: u64,
}

impl Asking {
    fn write(&mut self, now: Now, body: &[u8]) {
        let frame = Frame::decode(body, Phase::Established).expect("a frame of its own");
        let asked = match frame {
            Frame::Subscribe(subscribe) => {
                // Equal filters would share one subscription.
                let filter = format!("weather/acme/app/days/n{}_v1", subscribe.id);
                let request = Subscribe::new(subscribe.realm, filter, Sources::Open);
                let stream = self.client.subscribe(now, request).expect("accepted");
                self.streams.insert(subscribe.id, stream);
                Some(subscribe.id)
            }
            Frame::Publish(publish) => {
                let request = Publish::new(common::realm(), common::TOPIC, &1).expect("a number");
                self.client.publish(now, request).expect("room");
                Some(publish.id)
            }
            Frame::Unsubscribe(id) => {
                // Twice is nothing the second time.
                if let Some(stream) = self.streams.remove(&id) {
                    self.client.unsubscribe(now, stream).expect("it lives");
                }
                None
            }
            other => panic!("{other:?}"),
        };
        for body in self.far.read(&mut self.client, now) {
            let id = match Frame::decode(&body, Phase::Established).expect("a frame") {
                Frame::Subscribe(subscribe) => subscribe.id,
                Frame::Publish(publish) => publish.id,
                Frame::Unsubscribe(_) => continue,
                other => panic!("{other:?}"),
            };
            assert!(id > self.last, "ids rise");
            self.last = id;
            self.ids.extend(asked.map(|asked| (asked, id)));
        }
    }
}

fn to_a_client(entry: &Json) -> Result<(), (usize, LinkError)> {
    let mut client = common::client(ClientConfig::new(common::signer(2)).station(None));
    let far = Far::answer(&mut client, at(0), common::signer(1), StationRef(0));
    let mut asking = Asking {
        client,
        far,
        streams: BTreeMap::new(),
        ids: BTreeMap::new(),
        last: 0,
    };
    for (number, step) in steps(entry).iter().enumerate() {
        let body = hex(text(step, "hex"));
        if step["from"] == "self" {
            asking.write(at(0), &body);
            continue;
        }
        let body = match Frame::decode(&body, Phase::Established) {
            Ok(_) => {
                let id = u64::from(body[4]);
                with_id(&body, asking.ids.get(&id).copied().unwrap_or(id))
            }
            Err(_) => body,
        };
        ended(number, asking.far.body(&mut asking.client, at(0), &body))?;
    }
    Ok(())
}
