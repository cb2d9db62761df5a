//! `outcomes`: a node between stations that are played by hand.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tidings::code::PublishRefusal;
use tidings::{ClientConfig, ClientLimits, Outcome, Refusal, Ticket};

use super::parts::key;
use super::rig::{Rig, Written, request};

/// Plays the steps of an entry; what each of them brought must be what stands there.
pub(crate) fn feed(entry: &Json) -> Result<Json, String> {
    let mut play = Play::new(&entry["config"])?;
    let steps = entry["steps"].as_array().ok_or("has no steps")?;
    for (number, step) in steps.iter().enumerate() {
        let out = play.step(step)?;
        if step["out"] != out {
            return Err(format!("step {number}: {out}, wanted {}", step["out"]));
        }
    }
    let open = play.tickets.len() - play.settled;
    Ok(json!({
        "published": play.tickets.len(),
        "blocked": play.blocked,
        "no_station": play.no_station,
        "written": play.writes,
        "open": open,
    }))
}

struct Play {
    rig: Rig,
    /// The n-th is ticket n + 1.
    tickets: Vec<Ticket>,
    /// The bytes of each, once some were written.
    objects: BTreeMap<usize, Vec<u8>>,
    /// The id under which a station was handed a ticket.
    ids: BTreeMap<(usize, usize), u64>,
    settled: usize,
    blocked: usize,
    no_station: usize,
    writes: usize,
}

fn number(value: &Json) -> Result<usize, String> {
    let number = value
        .as_u64()
        .ok_or_else(|| format!("{value} is no number"))?;
    Ok(number as usize)
}

fn text(value: &Json) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{value} is no text"))
}

impl Play {
    fn new(config: &Json) -> Result<Self, String> {
        let mut limits = ClientLimits::default();
        limits.publish_window = number(&config["window"])?;
        limits.tickets = number(&config["tickets"])?;
        let client = ClientConfig::new(key(1))
            .replication_factor(number(&config["replication"])?)
            .limits(limits);
        Ok(Self {
            rig: Rig::with(client, 16),
            tickets: Vec::new(),
            objects: BTreeMap::new(),
            ids: BTreeMap::new(),
            settled: 0,
            blocked: 0,
            no_station: 0,
            writes: 0,
        })
    }

    fn step(&mut self, step: &Json) -> Result<Json, String> {
        self.rig.time(number(&step["at_ms"])? as u64);
        let mut out = Vec::new();
        if let Some(route) = step.get("publish") {
            out.push(self.publish(text(route)?)?);
        } else if let Some(to) = step.get("answer") {
            self.answer(number(&to[0])?, number(&to[1])?, step)?;
        } else if let Some(ticket) = step.get("cancel") {
            let ticket = self.tickets[number(ticket)? - 1];
            if !self.rig.cancel(ticket) {
                out.push(json!({ "refused": "dead_handle" }));
            }
        } else if let Some(station) = step.get("up") {
            self.rig.up(number(station)?);
        } else if let Some(station) = step.get("down") {
            self.rig.down(number(station)?);
        } else if let Some(station) = step.get("stall") {
            self.rig.stall(number(station)?, true);
        } else if let Some(station) = step.get("flow") {
            self.rig.stall(number(station)?, false);
        } else if step.get("time").is_none() {
            return Err(format!("{step}: nobody knows what to do"));
        }
        let mut written = self.rig.take_written();
        written.sort_by_key(|one| one.station);
        for one in written {
            out.push(self.written(one)?);
        }
        let mut settled = std::mem::take(&mut self.rig.settled);
        self.settled += settled.len();
        settled.sort_by_key(|(ticket, _)| self.place(*ticket));
        for (ticket, outcome) in settled {
            let mut told = vec![json!(self.place(ticket)), json!(outcome.code().text())];
            match outcome {
                Outcome::Routed { subscribers } => told.push(json!(subscribers)),
                Outcome::Refused(reason) => told.push(json!(reason.text())),
                _ => {}
            }
            out.push(json!({ "settle": told }));
        }
        Ok(json!(out))
    }

    /// Which ticket that is, from 1.
    fn place(&self, ticket: Ticket) -> usize {
        let found = self.tickets.iter().position(|known| *known == ticket);
        found.map_or(0, |place| place + 1)
    }

    fn publish(&mut self, route: &str) -> Result<Json, String> {
        let payload = request(self.tickets.len() as u64 + 1);
        let refused = match self.rig.publish(match route {
            "one" => payload.one(),
            _ => payload,
        }) {
            Ok(ticket) => {
                self.tickets.push(ticket);
                return Ok(json!({ "ticket": self.tickets.len() }));
            }
            Err(refused) => refused,
        };
        match refused {
            Refusal::NoStation => {
                self.no_station += 1;
                Ok(json!({ "refused": "no_station" }))
            }
            Refusal::WouldBlock => {
                self.blocked += 1;
                Ok(json!({ "refused": "would_block" }))
            }
            other => Err(format!("refused: {other}")),
        }
    }

    fn answer(&mut self, station: usize, ticket: usize, step: &Json) -> Result<(), String> {
        let id = self.ids.get(&(station, ticket));
        let id = *id.ok_or_else(|| format!("{station} was not handed {ticket}"))?;
        let outcome = match text(&step["outcome"])? {
            "routed" => Outcome::Routed {
                subscribers: number(&step["with"][0])? as u64,
            },
            "refused" => {
                let reason = text(&step["with"][0])?;
                let known = PublishRefusal::from_text(reason);
                Outcome::Refused(known.ok_or_else(|| format!("{reason} is no reason"))?)
            }
            _ => Outcome::NoSubscriber,
        };
        self.rig.answer(station, id, outcome);
        Ok(())
    }

    /// Its payload says which ticket it is; the bytes of one ticket are the same everywhere.
    fn written(&mut self, one: Written) -> Result<Json, String> {
        self.writes += 1;
        let ticket: u64 = tidings::wire::from_payload(&one.payload)
            .map_err(|error| format!("a payload: {error}"))?;
        let place = ticket as usize;
        let first = self
            .objects
            .entry(place)
            .or_insert_with(|| one.object.clone());
        if *first != one.object {
            return Err(format!("ticket {place} has other bytes at {}", one.station));
        }
        self.ids.insert((one.station, place), one.id);
        Ok(json!({ "write": [one.station, place, one.seq] }))
    }
}
