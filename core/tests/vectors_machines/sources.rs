//! `sources`: publishers that are looked up, and facts that wait for it.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tidings::code::SourceRefusal;
use tidings::inbound::sources::{
    Judgement, Lookup, LookupId, Settled, Slot, SourceAnswer, SourceLimits, Sources, Window,
};
use tidings::{Instant, Now, Seed, WallMs};

type Realm = Window<usize, Vec<Option<(usize, u32)>>>;

struct Play {
    sources: Sources<u64, Vec<Slot<u64>>>,
    limits: SourceLimits,
    realms: BTreeMap<String, Realm>,
    /// The n-th key is known to the machine as n.
    keys: Vec<[String; 3]>,
    links: Vec<String>,
    lookups: Vec<LookupId>,
    waiting: BTreeMap<LookupId, Vec<u64>>,
    admitted: usize,
    refused: usize,
    dropped: usize,
}

/// Plays the steps of an entry; what each of them brought must be what stands there.
pub(crate) fn feed(entry: &Json) -> Result<Json, String> {
    let mut play = Play::new(&entry["config"])?;
    let steps = entry["steps"].as_array().ok_or("has no steps")?;
    for (number, step) in steps.iter().enumerate() {
        let (out, due) = (play.step(step)?, play.sources.poll_timeout());
        if step["out"] != out {
            return Err(format!("step {number}: {out}, wanted {}", step["out"]));
        }
        let due = json!(due.map(|due| due.as_micros() / 1000));
        if step["deadline_ms"] != due {
            let wanted = &step["deadline_ms"];
            return Err(format!("step {number}: due at {due}, wanted {wanted}"));
        }
    }
    Ok(json!({
        "admitted": play.admitted,
        "refused": play.refused,
        "dropped": play.dropped,
        "lookups": play.lookups.len(),
    }))
}

fn uint(value: &Json, key: &str) -> Result<u64, String> {
    value[key]
        .as_u64()
        .ok_or_else(|| format!("{key} of {value}"))
}

fn text(value: &Json, key: &str) -> Result<String, String> {
    let found = match &value[key] {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    };
    found.ok_or_else(|| format!("{key} of {value}"))
}

/// Its place in a list, where it is put if it is in none.
fn number_of<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    if let Some(known) = all.iter().position(|other| *other == one) {
        return known;
    }
    all.push(one);
    all.len() - 1
}

impl Play {
    fn new(config: &Json) -> Result<Self, String> {
        let mut limits = SourceLimits::default();
        limits.max_publishers = uint(config, "max_publishers")? as usize;
        limits.held_per_key = uint(config, "held_per_key")? as u32;
        limits.lookups_per_window = uint(config, "lookups_per_window")? as u32;
        limits.window_ms = uint(config, "window_ms")?;
        limits.cache_ttl_ms = uint(config, "cache_ttl_ms")?;
        limits.refresh_margin_ms = uint(config, "refresh_margin_ms")?;
        limits.refusal_ttl_ms = uint(config, "refusal_ttl_ms")?;
        limits.lookup_timeout_ms = uint(config, "lookup_timeout_ms")?;
        let sources = Sources::growing(limits, &mut Seed::new([3; 32]).fork("sources"));
        Ok(Self {
            sources: sources.map_err(|fault| fault.to_string())?,
            limits,
            realms: BTreeMap::new(),
            keys: Vec::new(),
            links: Vec::new(),
            lookups: Vec::new(),
            waiting: BTreeMap::new(),
            admitted: 0,
            refused: 0,
            dropped: 0,
        })
    }

    fn step(&mut self, step: &Json) -> Result<Json, String> {
        let at = uint(step, "at_ms")?;
        let wall = step["wall_ms"].as_u64().unwrap_or(1_790_000_000_000 + at);
        let now = Now::new(Instant::from_millis(at), WallMs::new(wall));
        let mut out = Vec::new();
        if step.get("fact").is_some() {
            self.fact(now, step, &mut out)?;
        } else if step.get("answer").is_some() {
            let id = self.lookups[uint(step, "answer")? as usize];
            let answer = if let Some(until) = step["admit_until_ms"].as_u64() {
                let until = WallMs::new(until);
                SourceAnswer::Admit { until }
            } else if let Some(reason) = step["refuse"].as_str() {
                let reason = SourceRefusal::from_text(reason);
                SourceAnswer::Refuse(reason.ok_or_else(|| format!("{step} for no reason"))?)
            } else {
                SourceAnswer::Unknown
            };
            match self.sources.answer(now, id, answer) {
                Some(settled) => out.push(self.settle(id, settled)?),
                None => out.push(json!("too_late")),
            }
        } else if step.get("leave").is_some() {
            let fact = uint(step, "leave")?;
            for (id, facts) in &mut self.waiting {
                let before = facts.len();
                facts.retain(|other| *other != fact);
                if facts.len() < before {
                    self.sources.leave(*id);
                }
            }
        } else {
            while let Some((id, settled)) = self.sources.handle_timeout(now) {
                out.push(self.settle(id, settled)?);
            }
        }
        let held: usize = self.waiting.values().map(Vec::len).sum();
        if held != self.sources.held() {
            return Err(format!("{held} wait, and not {}", self.sources.held()));
        }
        Ok(json!(out))
    }

    fn fact(&mut self, now: Now, step: &Json, out: &mut Vec<Json>) -> Result<(), String> {
        let fact = uint(step, "fact")?;
        let (realm, link) = (text(step, "realm")?, text(step, "link")?);
        let key = [
            realm.clone(),
            text(step, "source")?,
            text(step, "publisher")?,
        ];
        let number = number_of(&mut self.keys, key);
        let link = number_of(&mut self.links, link);
        let windows = &mut self.realms;
        let window = windows
            .entry(realm)
            .or_insert_with(|| Window::new(vec![None; 64]));
        let mut known = false;
        let limits = &self.limits;
        let judged = self.sources.judge(now, &(number as u64), |before| {
            known = before;
            window.take(now.mono, limits, before, link)
        });
        match judged {
            Judgement::Admit(lookup) => {
                self.admitted += 1;
                out.push(json!("admit"));
                if let Some(lookup) = lookup {
                    self.ask(lookup, known, out);
                }
            }
            Judgement::Ask(lookup) => {
                self.ask(lookup, known, out);
                self.waiting.insert(lookup.id, vec![fact]);
            }
            Judgement::Drop(dropped) => {
                self.dropped += 1;
                out.push(json!({ "drop": dropped.reason().text() }));
            }
            Judgement::Refuse(reason) => {
                self.refused += 1;
                out.push(json!({ "refuse": reason.text() }));
            }
            Judgement::Wait(id) => {
                let lookup = self.lookups.iter().position(|other| *other == id);
                out.push(json!({ "wait": lookup }));
                self.waiting.entry(id).or_default().push(fact);
            }
            other => return Err(format!("{other:?}")),
        }
        Ok(())
    }

    fn ask(&mut self, lookup: Lookup, known: bool, out: &mut Vec<Json>) {
        out.push(json!({ "ask": self.lookups.len(), "known": known }));
        self.lookups.push(lookup.id);
    }

    fn settle(&mut self, id: LookupId, settled: Settled) -> Result<Json, String> {
        let facts = self.waiting.remove(&id).unwrap_or_default();
        let lookup = self.lookups.iter().position(|other| *other == id);
        let (count, found, value) = match settled {
            Settled::Admit => (&mut self.admitted, "admit", json!(true)),
            Settled::Drop(dropped) => (&mut self.dropped, "drop", json!(dropped.reason().text())),
            Settled::Refuse(reason) => (&mut self.refused, "refuse", json!(reason.text())),
            other => return Err(format!("{other:?}")),
        };
        *count += facts.len();
        Ok(json!({ "settled": lookup, found: value, "facts": facts }))
    }
}
