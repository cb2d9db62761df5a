//! `resume`: a station with one realm, and subscriptions that come back with a position. Each has a link of its own.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tidings::link::PROBE_EVERY_MAX;
use tidings::wire::{self, Body, Draft, Frame, Phase, Position, Publication, ResumeOutcome};
use tidings::{RunId, Station, StationConfig, StationLimits};

use super::common::{self, EPOCH, Far, at, id_of, move_to, realm, signer};
use super::{compare, steps, text, uint};

/// No station draws it.
const NO_RUN: [u8; 8] = [0xEE; 8];

struct World {
    station: Station,
    limits: StationLimits,
    writer: Far,
    published: u64,
    now_ms: u64,
    links: BTreeMap<String, (Far, u64)>,
    last_id: u64,
    runs: Vec<RunId>,
    counts: BTreeMap<&'static str, u64>,
}

fn station(limits: &StationLimits, started: u8) -> Station {
    let config = StationConfig::new(signer(100)).limits(limits.clone());
    // Links are left in peace: these traces are about what is read.
    let config = config.probe_every(PROBE_EVERY_MAX);
    let config = config.allow_local(true).build().expect("valid");
    let entropy = tidings::sim::entropy(started);
    Station::new(config, common::seed(), entropy, at(0))
}

impl World {
    fn new(config: &Json) -> Self {
        let mut limits = StationLimits::default();
        limits.ring_items = uint(config, "items") as usize;
        limits.ring_bytes = uint(config, "bytes") as usize;
        limits.publication_bytes = limits.publication_bytes.min(limits.ring_bytes);
        let mut station = station(&limits, 0);
        let writer = Far::dial(&mut station, at(0), signer(1));
        let counts = ["resumed", "expired", "replayed", "skipped"].map(|name| (name, 0));
        Self {
            station,
            limits,
            writer,
            published: 0,
            now_ms: 0,
            links: BTreeMap::new(),
            last_id: 0,
            runs: Vec::new(),
            counts: counts.into(),
        }
    }

    fn count(&mut self, name: &'static str, more: u64) {
        *self.counts.get_mut(name).expect("a counter") += more;
    }

    fn restart(&mut self) {
        self.links.clear();
        self.station = station(&self.limits, 1 + self.runs.len() as u8);
        move_to(&mut self.station, at(self.now_ms));
        self.writer = Far::dial(&mut self.station, at(self.now_ms), signer(1));
    }

    /// A publication of exactly so many bytes.
    fn publish(&mut self, topic: &str, bytes: usize, ttl_ms: Option<u64>) {
        self.published += 1;
        let key = signer(1);
        let draft = |padding: usize| {
            let payload = wire::to_payload(&"x".repeat(padding)).expect("text");
            let mut object = Vec::new();
            Draft {
                realm: realm(),
                topic,
                publisher: id_of(&key),
                epoch: Some(EPOCH),
                seq: self.published,
                published_at: at(self.now_ms).wall,
                ttl_ms: ttl_ms.map(|ttl| ttl as u32),
                one: false,
                body: Body::Payload(&payload),
            }
            .sign(&key, &mut object)
            .expect("a key in memory signs");
            object
        };
        let object = draft(128 + bytes - draft(128).len());
        assert_eq!(object.len(), bytes);
        let now = at(self.now_ms);
        let (station, id) = (&mut self.station, self.published);
        let taken = self.writer.publish(station, now, id, &object);
        assert!(taken.is_ok());
        self.writer.read(station, now);
    }

    fn subscribe(&mut self, step: &Json) -> Json {
        let name = text(step, "subscribe");
        let resume = step.get("resume").map(|asked| Position {
            run: match self.runs.get(uint(asked, "run") as usize) {
                Some(run) => *run,
                None => RunId::new(NO_RUN),
            },
            offset: uint(asked, "offset"),
        });
        let now = at(self.now_ms);
        self.last_id += 1;
        let id = self.last_id;
        let subscribe = wire::Subscribe {
            id,
            realm: realm(),
            filter: text(step, "filter"),
            resume,
        };
        let mut far = Far::dial(&mut self.station, now, signer(1000 + id));
        let taken = far.frame(&mut self.station, now, &Frame::Subscribe(subscribe));
        assert!(taken.is_ok());
        let mut out = Vec::new();
        let answer = self.station.poll_transmit(far.id, &mut out);
        assert_eq!(answer.expect("an answer").len(), out.len());
        let frame = Frame::decode(&out[4..], Phase::Established);
        let Ok(Frame::Subscribed(told)) = frame else {
            panic!("{frame:?}")
        };
        let run = told.position.run;
        let known = self.runs.iter().position(|known| *known == run);
        let run = known.unwrap_or_else(|| {
            self.runs.push(run);
            self.runs.len() - 1
        });
        self.links.insert(name.to_owned(), (far, id));
        let position = json!({ "run": run, "offset": told.position.offset });
        match told.resume {
            ResumeOutcome::None => json!({ "position": position, "outcome": "none" }),
            ResumeOutcome::Expired { oldest } => {
                self.count("expired", 1);
                json!({ "position": position, "outcome": "expired", "oldest": oldest })
            }
            ResumeOutcome::Resumed { count } => {
                self.count("resumed", 1);
                self.count("replayed", count);
                json!({ "position": position, "outcome": "resumed", "count": count })
            }
            other => panic!("{other:?}"),
        }
    }

    fn unsubscribe(&mut self, name: &str) {
        let (mut far, id) = self.links.remove(name).expect("a link");
        let now = at(self.now_ms);
        let taken = far.frame(&mut self.station, now, &Frame::Unsubscribe(id));
        assert!(taken.is_ok());
    }

    /// What a subscription reads now, against what it should. Progress comes when it comes.
    fn read(&mut self, step: &Json) -> Vec<Json> {
        let now = at(self.now_ms);
        let (far, _) = self.links.get_mut(text(step, "read")).expect("a link");
        let wanted = step["out"].as_array().expect("what it reads");
        let mut out = Vec::new();
        let mut skipped = 0;
        for body in far.read(&mut self.station, now) {
            match Frame::decode(&body, Phase::Established).expect("a frame") {
                Frame::Event(event) => {
                    let profile = tidings::crypto::Signer::profile(&signer(1));
                    assert!(Publication::parse(event.publication, profile).is_ok());
                    out.push(json!({ "event": event.offset }));
                }
                Frame::Skipped(told) => {
                    skipped += told.count;
                    // The window has to hold both.
                    let wanted = &wanted[out.len().min(wanted.len() - 1)];
                    let mut said = json!({ "skipped": told.count });
                    let window = self.now_ms.saturating_sub(told.from)..=self.now_ms - told.to;
                    for end in ["first_at_ms", "last_at_ms"] {
                        let lost = wanted[end].as_u64();
                        let held = lost.is_some_and(|lost| window.contains(&lost));
                        said[end] = if held {
                            json!(lost)
                        } else {
                            json!([told.from, told.to])
                        };
                    }
                    out.push(said);
                }
                Frame::Progress(_) | Frame::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
        self.count("skipped", skipped);
        out
    }
}

pub(crate) fn feed(entry: &Json) -> Result<Json, String> {
    let mut world = World::new(&entry["config"]);
    for (number, step) in steps(entry).iter().enumerate() {
        world.now_ms = uint(step, "at_ms");
        let now = at(world.now_ms);
        move_to(&mut world.station, now);
        while world.station.handle_timeout(now) == tidings::Turn::More {}
        let out = if let Some(publish) = step.get("publish") {
            let ttl_ms = publish["ttl_ms"].as_u64();
            world.publish(
                text(publish, "topic"),
                uint(publish, "bytes") as usize,
                ttl_ms,
            );
            Vec::new()
        } else if step.get("subscribe").is_some() {
            vec![world.subscribe(step)]
        } else if step.get("unsubscribe").is_some() {
            world.unsubscribe(text(step, "unsubscribe"));
            Vec::new()
        } else if step.get("read").is_some() {
            world.read(step)
        } else if step.get("restart").is_some() {
            world.restart();
            Vec::new()
        } else {
            return Err(format!("step {number} is of no kind"));
        };
        compare(number, step, "out", &json!(out))?;
    }
    Ok(json!(world.counts))
}
