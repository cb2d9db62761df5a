//! A station with one realm, and subscriptions that come back with a position.
//!
//! Decides: how a step is put to a station: every subscription has a link of its own, every publication the length it is given. Leaves to
//! others: the rules, the core's. Believes: the times of each step. Bounded by: the steps.

use std::collections::BTreeMap;

use bytes::BytesMut;
use serde_json::{Value, json};
use tidings::crypto::{SecretKey, Signer};
use tidings::link::{Link, PROBE_EVERY_MAX};
use tidings::wire::{self, Body, Draft, Frame, Phase, Position, ResumeOutcome, Role, Route};
use tidings::{
    Binding, Entropy, Intake, LinkEvent, LinkId, NodeId, RealmId, RunId, Seed, Station,
    StationConfig, StationLimits, Turn,
};

use super::flow::number;
use super::links::{now_at, own_key, peer_key, settings, shake_hands, written};
use super::{Broken, Judged, text};

/// A run no station has drawn.
const NO_RUN: [u8; 8] = [0xEE; 8];

struct World {
    station: Station,
    limits: StationLimits,
    writer: LinkId,
    published: u64,
    last_id: u64,
    at_ms: u64,
    /// Each subscription's link and id.
    readers: BTreeMap<String, (LinkId, u64)>,
    runs: Vec<RunId>,
    counts: BTreeMap<&'static str, u64>,
}

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    let mut world = World::new(&entry["config"])?;
    let steps = entry["steps"].as_array().ok_or("has no steps")?;
    for (place, step) in steps.iter().enumerate() {
        let out = Value::from(world.step(step)?);
        if step["out"] != out {
            return Err(format!(
                "step {place}: out is {out}, wanted {}",
                step["out"]
            ));
        }
    }
    Ok(Ok(json!(world.counts)))
}

fn station(limits: &StationLimits, started: u8) -> Result<Station, Broken> {
    let config = StationConfig::new(own_key())
        .limits(limits.clone())
        .probe_every(PROBE_EVERY_MAX)
        .allow_local(true)
        .build()
        .map_err(|error| error.to_string())?;
    let entropy = Entropy::from_hardware([started; 32]);
    Ok(Station::new(config, Seed::new([7; 32]), entropy, now_at(0)))
}

impl World {
    fn new(config: &Value) -> Result<Self, Broken> {
        let mut limits = StationLimits::default();
        limits.ring_items = number(config, "items")? as usize;
        limits.ring_bytes = number(config, "bytes")? as usize;
        limits.publication_bytes = limits.publication_bytes.min(limits.ring_bytes);
        let mut station = station(&limits, 1)?;
        let writer = dial(&mut station, 0, &peer_key())?;
        let counts = ["resumed", "expired", "replayed", "skipped"].map(|name| (name, 0));
        Ok(Self {
            station,
            limits,
            writer,
            published: 0,
            last_id: 0,
            at_ms: 0,
            readers: BTreeMap::new(),
            runs: Vec::new(),
            counts: counts.into(),
        })
    }

    fn count(&mut self, name: &'static str, more: u64) {
        *self.counts.entry(name).or_default() += more;
    }

    fn step(&mut self, step: &Value) -> Result<Vec<Value>, Broken> {
        self.at_ms = number(step, "at_ms")?;
        self.pass_time();
        if let Some(publish) = step.get("publish") {
            let bytes = number(publish, "bytes")? as usize;
            self.publish(text(publish, "topic")?, bytes, publish["ttl_ms"].as_u64())?;
        } else if step.get("subscribe").is_some() {
            return Ok(vec![self.subscribe(step)?]);
        } else if step.get("unsubscribe").is_some() {
            let reader = self.readers.remove(text(step, "unsubscribe")?);
            let (link, id) = reader.ok_or("unsubscribes what is not subscribed")?;
            self.send(link, &Frame::Unsubscribe(id))?;
        } else if step.get("read").is_some() {
            return self.read(step);
        } else if step.get("restart").is_some() {
            self.readers.clear();
            self.station = station(&self.limits, 2 + self.runs.len() as u8)?;
            self.pass_time();
            self.writer = dial(&mut self.station, self.at_ms, &peer_key())?;
        } else {
            return Err("has a step of no kind".to_owned());
        }
        Ok(Vec::new())
    }

    /// Every deadline up to now at its own time.
    fn pass_time(&mut self) {
        let now = now_at(self.at_ms);
        while let Some(due) = self.station.poll_timeout().filter(|due| *due <= now.mono) {
            let at = now_at(due.as_micros().div_ceil(1000));
            while self.station.handle_timeout(at) == Turn::More {}
        }
        while self.station.handle_timeout(now) == Turn::More {}
    }

    fn send(&mut self, link: LinkId, frame: &Frame<'_>) -> Result<(), Broken> {
        let mut bytes = Vec::new();
        frame.encode_framed(&mut bytes);
        let mut input = BytesMut::from(&bytes[..]);
        let now = now_at(self.at_ms);
        match self.station.handle_input(now, link, &mut input) {
            Ok(Intake::Open) => Ok(()),
            Ok(_) => Err("a link is not read on".to_owned()),
            Err(error) => Err(format!("a link ended with {}", error.text())),
        }
    }

    fn publish(&mut self, topic: &str, bytes: usize, ttl_ms: Option<u64>) -> Result<(), Broken> {
        self.published += 1;
        let probe = self.sign(topic, 128, ttl_ms)?.len();
        let padding = (128 + bytes).checked_sub(probe).ok_or("is too short")?;
        let publication = self.sign(topic, padding, ttl_ms)?;
        if publication.len() != bytes {
            return Err(format!("no publication of {bytes} bytes can be made"));
        }
        let publish = wire::Publish {
            id: self.published,
            route: Route::All,
            publication: &publication,
        };
        self.send(self.writer, &Frame::Publish(publish))?;
        written(&mut self.station, self.writer, now_at(self.at_ms));
        Ok(())
    }

    fn sign(&self, topic: &str, padding: usize, ttl_ms: Option<u64>) -> Result<Vec<u8>, Broken> {
        let key = peer_key();
        let payload = wire::to_payload(&"x".repeat(padding)).map_err(|error| error.to_string())?;
        let mut object = Vec::new();
        let draft = Draft {
            realm: realm(),
            topic,
            publisher: NodeId::of_key(key.profile().name(), &key.public_key()),
            epoch: Some(now_at(0).wall.as_millis() * 1000),
            seq: self.published,
            published_at: now_at(self.at_ms).wall,
            ttl_ms: ttl_ms.map(|ttl| ttl as u32),
            one: false,
            body: Body::Payload(&payload),
        };
        draft
            .sign(&key, &mut object)
            .map_err(|error| error.to_string())?;
        Ok(object)
    }

    fn subscribe(&mut self, step: &Value) -> Result<Value, Broken> {
        let resume = match step.get("resume") {
            None => None,
            Some(asked) => Some(Position {
                run: match self.runs.get(number(asked, "run")? as usize) {
                    Some(run) => *run,
                    None => RunId::new(NO_RUN),
                },
                offset: number(asked, "offset")?,
            }),
        };
        self.last_id += 1;
        let id = self.last_id;
        let key = SecretKey::from_seed([id as u8; 32]);
        let link = dial(&mut self.station, self.at_ms, &key)?;
        let subscribe = wire::Subscribe {
            id,
            realm: realm(),
            filter: text(step, "filter")?,
            resume,
        };
        self.send(link, &Frame::Subscribe(subscribe))?;
        // The answer alone: what is read is read in a step of its own.
        let mut out = Vec::new();
        self.station.poll_transmit(link, &mut out);
        let Some(Ok(Frame::Subscribed(told))) = out
            .get(4..)
            .map(|body| Frame::decode(body, Phase::Established))
        else {
            return Err("a subscription was not answered".to_owned());
        };
        let known = self.runs.iter().position(|run| *run == told.position.run);
        let run = known.unwrap_or_else(|| {
            self.runs.push(told.position.run);
            self.runs.len() - 1
        });
        self.readers
            .insert(text(step, "subscribe")?.to_owned(), (link, id));
        let mut out = json!({
            "position": { "run": run, "offset": told.position.offset },
            "outcome": "none",
        });
        match told.resume {
            ResumeOutcome::Resumed { count } => {
                out["outcome"] = "resumed".into();
                out["count"] = count.into();
                self.count("resumed", 1);
                self.count("replayed", count);
            }
            ResumeOutcome::Expired { oldest } => {
                out["outcome"] = "expired".into();
                out["oldest"] = oldest.into();
                self.count("expired", 1);
            }
            _ => {}
        }
        Ok(out)
    }

    /// Everything a subscription reads now. Progress comes when it comes.
    fn read(&mut self, step: &Value) -> Result<Vec<Value>, Broken> {
        let reader = self.readers.get(text(step, "read")?);
        let (link, _) = *reader.ok_or("reads what is not subscribed")?;
        let mut out = Vec::new();
        for body in written(&mut self.station, link, now_at(self.at_ms)) {
            match Frame::decode(&body, Phase::Established).map_err(|error| error.to_string())? {
                Frame::Event(event) => out.push(json!({ "event": event.offset })),
                Frame::Skipped(told) => {
                    self.count("skipped", told.count);
                    let mut said = json!({ "skipped": told.count });
                    // The window has to hold the first and the last of them.
                    let wanted = &step["out"][out.len()];
                    let window = self.at_ms.saturating_sub(told.from)..=self.at_ms - told.to;
                    for end in ["first_at_ms", "last_at_ms"] {
                        let lost = wanted[end].as_u64();
                        said[end] = match lost.filter(|lost| window.contains(lost)) {
                            Some(lost) => lost.into(),
                            None => format!("not in {window:?}").into(),
                        };
                    }
                    out.push(said);
                }
                _ => {}
            }
        }
        Ok(out)
    }
}

fn realm() -> RealmId {
    RealmId::of_name("resume")
}

/// A link whose handshake is over.
fn dial(station: &mut Station, at_ms: u64, key: &SecretKey) -> Result<LinkId, Broken> {
    let now = now_at(at_ms);
    let up = LinkEvent::Up {
        dialled: None,
        binding: Binding::Local,
    };
    let link = station
        .handle_link(now, up)
        .map_err(|error| error.to_string())?;
    let settings = settings(key, Role::Node);
    let other = Link::dial(now.mono, settings, None, Binding::Local, [3; 32]);
    let other = other.map_err(|error| error.to_string())?;
    shake_hands(station, link, now, other, key)?;
    Ok(link)
}
