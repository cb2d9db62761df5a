//! Traces of the small machines: dedup, one lane's order, and the ring with its readers.
//!
//! Decides: nothing but the answers a machine leaves to its owner, which are those of the vectors' folder: what is expired is never
//! looked up, a forged copy is never remembered, and ended entries are swept at each step. Leaves to others: the machines, the core's.
//! Believes: the times of each step. Bounded by: the trace.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidings::inbound::dedup::{Full, HeapDedup, NewEntry, SHARES};
use tidings::inbound::lane::{Admit, Lane, LaneConfig, LaneItem, Mode, Offer, Slot};
use tidings::ring::{HeapRing, Resume};
use tidings::{Duration, Instant, Now, PublicationHash, Seed, WallMs};

use super::{Broken, Judged, text};

pub(super) fn number(value: &Value, key: &str) -> Result<u64, Broken> {
    value[key]
        .as_u64()
        .ok_or_else(|| format!("has a step without {key}"))
}

fn now(step: &Value) -> Result<Now, Broken> {
    let (mono, wall) = (number(step, "at_ms")?, number(step, "wall_ms")?);
    Ok(Now::new(Instant::from_millis(mono), WallMs::new(wall)))
}

pub(super) fn steps(entry: &Value) -> Result<&Vec<Value>, Broken> {
    entry["steps"]
        .as_array()
        .ok_or_else(|| "has no steps".to_owned())
}

/// Compares one key of a step with what came out of it.
pub(super) fn compare(place: usize, step: &Value, key: &str, got: &Value) -> Result<(), Broken> {
    if step[key] == *got {
        return Ok(());
    }
    Err(format!(
        "step {place} gives {key} {got}, wanted {}",
        step[key]
    ))
}

pub(super) fn dedup(entry: &Value) -> Result<Judged, Broken> {
    let capacity = number(&entry["config"], "capacity")? as usize;
    let mut machine =
        HeapDedup::with_capacity(capacity, SHARES, &mut Seed::new([1; 32]).fork("dedup"));
    let mut counts = BTreeMap::from([
        ("new", 0u64),
        ("duplicate", 0),
        ("expired", 0),
        ("unverified", 0),
        ("full", 0),
    ]);
    for (place, step) in steps(entry)?.iter().enumerate() {
        let now = now(step)?;
        machine.sweep(now, usize::MAX);
        let out = if step.get("forget").is_some() {
            if machine.forget(&hash(text(step, "forget")?)) {
                "forgotten"
            } else {
                "absent"
            }
        } else {
            let out = offer(&mut machine, now, &step["offer"])?;
            *counts.entry(out).or_default() += 1;
            out
        };
        compare(place, step, "out", &out.into())?;
    }
    let mut expect = json!(counts);
    expect["remembered"] = machine.len().into();
    Ok(Ok(expect))
}

/// A hash that begins with the vector's name of it.
fn hash(name: &str) -> PublicationHash {
    PublicationHash::of_tbs(name.as_bytes())
}

fn offer(machine: &mut HeapDedup, now: Now, offer: &Value) -> Result<&'static str, Broken> {
    let until = WallMs::new(number(offer, "expires_at")?);
    let id = hash(text(offer, "hash")?);
    if now.wall > until {
        return Ok("expired");
    }
    if machine.check(&id).is_some() {
        return Ok("duplicate");
    }
    if offer["verifies"].as_bool() == Some(false) {
        return Ok("unverified");
    }
    let tag = match offer.get("tag") {
        Some(_) => number(offer, "tag")? as u32,
        None => 0,
    };
    let publisher = hash(text(offer, "publisher")?);
    let mut key_id = [0; 32];
    key_id.copy_from_slice(&publisher.as_bytes()[..32]);
    let mut signed = [0; 64];
    signed[..48].copy_from_slice(id.as_bytes());
    let signature = machine.signature_key(&key_id, &signed);
    match machine.commit(
        now,
        NewEntry {
            id: &id,
            signature,
            until,
            tag,
            seq: 0,
        },
    ) {
        Ok(_) => Ok("new"),
        Err(Full::Share | Full::Table) => Ok("full"),
        Err(other) => Err(format!("is refused as {other}")),
    }
}

/// How long an episode of conflicts stays open after the last one.
const EPISODE_MS: u64 = 1000;

type HeapLane = Lane<(), Vec<Option<Slot<()>>>>;

pub(super) fn order(entry: &Value) -> Result<Judged, Broken> {
    let config = &entry["config"];
    let mode = match text(config, "mode")? {
        "ordered" => Mode::Ordered,
        "latest_only" => Mode::LatestOnly,
        "as_arrives" => Mode::AsArrives,
        other => return Err(format!("has the unknown mode {other}")),
    };
    let mut lane: HeapLane = Lane::growing(LaneConfig {
        mode,
        order_timeout: Duration::from_millis(number(config, "timeout_ms")?),
        order_max_buffer: number(config, "buffer")? as usize,
        accepted_wall: WallMs::new(number(config, "accepted_wall_ms")?),
        sparse: config["sparse"].as_bool() == Some(true),
        ..LaneConfig::default()
    });
    let mut counts = BTreeMap::from([
        ("facts", 0u64),
        ("late", 0),
        ("skipped", 0),
        ("superseded", 0),
        ("conflicts", 0),
    ]);
    // When the episode of the last conflict ends.
    let mut quiet_at = None;
    for (place, step) in steps(entry)?.iter().enumerate() {
        let (mut conflict, mut shown): (_, Vec<Value>) = (None, Vec::new());
        if step.get("timeout").is_some() {
            // The wall moves only what an idle lane may forget, which no trace waits for.
            let mono = Instant::from_millis(number(step, "timeout")?);
            lane.handle_timeout(Now::new(
                mono,
                WallMs::new(number(config, "accepted_wall_ms")?),
            ));
        } else if let Some(closed) = step.get("close") {
            if !lane.close(now(step)?, number(closed, "epoch")?, number(closed, "seq")?) {
                return Err(format!(
                    "step {place} is refused although everything was drained"
                ));
            }
        } else {
            let offered = &step["offer"];
            let (epoch, seq) = (number(offered, "epoch")?, number(offered, "seq")?);
            let until = now(step)?.wall.saturating_add(900_000);
            let offer = Offer {
                epoch,
                seq,
                until,
                replayed: false,
                anycast: false,
                copy_possible: false,
            };
            let at = now(step)?;
            match offer_drained(&mut lane, at, offer, (), |item| {
                shown.extend(show(item, &mut counts))
            }) {
                Admit::Taken => {}
                Admit::Superseded(()) => *counts.entry("superseded").or_default() += 1,
                Admit::Conflict(()) => {
                    *counts.entry("conflicts").or_default() += 1;
                    conflict = Some(json!({ "conflict": [epoch, seq, seq, 1] }));
                    quiet_at = Some(at.mono.as_micros() / 1000 + EPISODE_MS);
                }
                other => {
                    return Err(format!(
                        "step {place} is answered {other:?} although everything was drained"
                    ));
                }
            }
        }
        drain(&mut lane, &mut |item| shown.extend(show(item, &mut counts)));
        shown.extend(conflict);
        compare(place, step, "out", &shown.into())?;
        let deadline = lane.poll_timeout().map(|at| at.as_micros() / 1000);
        // The end of an episode of conflicts is no deadline of the order.
        let deadline = deadline
            .filter(|at| Some(*at) != quiet_at || step["deadline_ms"].as_u64() == Some(*at));
        compare(place, step, "deadline_ms", &deadline.into())?;
    }
    Ok(Ok(json!(counts)))
}

/// Offers until the lane takes it: a lane may ask for what is decided to be handed out first.
fn offer_drained<T: std::fmt::Debug>(
    lane: &mut Lane<T, Vec<Option<Slot<T>>>>,
    now: Now,
    offer: Offer,
    mut item: T,
    mut out: impl FnMut(LaneItem<T>),
) -> Admit<T> {
    loop {
        match lane.offer(now, offer, item) {
            Admit::Busy(back) if lane.is_ready() => item = back,
            admit => return admit,
        }
        drain(lane, &mut out);
    }
}

/// Hands out all that is decided.
fn drain<T>(lane: &mut Lane<T, Vec<Option<Slot<T>>>>, out: &mut impl FnMut(LaneItem<T>)) {
    while let Some(decided) = lane.poll() {
        out(decided);
    }
}

/// What came out as the vectors write it. Conflicts are shown one by one where they are answered; the lane's own notice of an episode is not.
fn show(item: LaneItem<()>, counts: &mut BTreeMap<&'static str, u64>) -> Option<Value> {
    Some(match item {
        LaneItem::Fact {
            epoch, seq, late, ..
        } => {
            *counts.entry("facts").or_default() += 1;
            *counts.entry("late").or_default() += u64::from(late);
            json!({ "fact": [epoch, seq], "late": late })
        }
        LaneItem::Skipped { epoch, first, last } => {
            *counts.entry("skipped").or_default() += last - first + 1;
            json!({ "skipped": [epoch, first, last] })
        }
        LaneItem::Restarted { epoch, greater } => {
            json!({ "restarted": { "epoch": epoch, "greater": greater } })
        }
        LaneItem::TwoCounters { .. } => json!({ "two_counters": true }),
        LaneItem::Conflict { .. } => return None,
        other => json!({ "other": format!("{other:?}") }),
    })
}

/// Publications without an epoch: which numbering each was taken for is known when its lane hands it out.
pub(super) fn guess(entry: &Value) -> Result<Judged, Broken> {
    let timeout = number(&entry["config"], "timeout_ms")?;
    let config = LaneConfig {
        order_timeout: Duration::from_millis(timeout),
        ..LaneConfig::default()
    };
    let mut lane: Lane<usize, Vec<Option<Slot<usize>>>> = Lane::growing(config);
    let steps = steps(entry)?;
    let mut epochs = vec![None; steps.len()];
    let mut note = |item| {
        if let LaneItem::Fact { epoch, item, .. } = item {
            epochs[item] = Some(epoch);
        }
    };
    let mut last = 0;
    for (place, step) in steps.iter().enumerate() {
        last = number(step, "at_ms")?;
        let now = Now::new(Instant::from_millis(last), WallMs::new(last));
        lane.handle_timeout(now);
        drain(&mut lane, &mut note);
        let seq = number(&step["offer"], "seq")?;
        let until = now.wall.saturating_add(900_000);
        let offer = Offer {
            epoch: 0,
            seq,
            until,
            replayed: false,
            anycast: false,
            copy_possible: false,
        };
        let admit = offer_drained(&mut lane, now, offer, place, &mut note);
        if !matches!(admit, Admit::Taken) {
            return Err(format!("step {place} is answered {admit:?}"));
        }
        drain(&mut lane, &mut note);
    }
    let end = last + 10 * timeout;
    lane.handle_timeout(Now::new(Instant::from_millis(end), WallMs::new(end)));
    drain(&mut lane, &mut note);
    let mut numberings: Vec<u64> = epochs.iter().flatten().copied().collect();
    numberings.sort_unstable();
    numberings.dedup();
    for (place, (step, epoch)) in steps.iter().zip(&epochs).enumerate() {
        // Made-up epochs rise, one for each numbering heard.
        let out = numberings.iter().position(|known| Some(*known) == *epoch);
        compare(place, step, "out", &out.into())?;
    }
    Ok(Ok(json!({ "numberings": numberings.len() })))
}

pub(super) fn ring(entry: &Value) -> Result<Judged, Broken> {
    let config = &entry["config"];
    let (items, bytes) = (
        number(config, "items")? as usize,
        number(config, "bytes")? as usize,
    );
    // The vectors number from 1.
    let mut machine: HeapRing<()> = HeapRing::with_capacity(items, bytes).starting_at(1);
    let mut readers: BTreeMap<String, u64> = BTreeMap::new();
    let mut closed = false;
    let mut counts = BTreeMap::from([("pushed", 0u64), ("read", 0), ("lagged", 0), ("gave_up", 0)]);
    for (place, step) in steps(entry)?.iter().enumerate() {
        let held = machine.len() as u64;
        let mut out = Vec::new();
        if step.get("push").is_some() {
            out.push(json!({ "pushed": machine.push((), number(step, "push")? as usize) }));
            *counts.entry("pushed").or_default() += 1;
            *counts.entry("gave_up").or_default() += held + 1 - machine.len() as u64;
        } else if step.get("give_up").is_some() {
            for _ in 0..number(step, "give_up")? {
                machine
                    .give_up_oldest()
                    .ok_or("gives up what is not held")?;
                *counts.entry("gave_up").or_default() += 1;
            }
        } else if step.get("reader").is_some() {
            readers.insert(text(step, "reader")?.to_owned(), machine.end());
        } else if step.get("resume").is_some() {
            let from = number(step, "after")?.saturating_add(1);
            out.push(match machine.resume(from) {
                Resume::Expired { oldest, .. } => json!({ "expired": oldest }),
                resumed => {
                    let count = if let Resume::From { count, .. } = resumed {
                        count
                    } else {
                        0
                    };
                    readers.insert(text(step, "resume")?.to_owned(), from);
                    json!({ "resumed": count })
                }
            });
        } else if step.get("close").is_some() {
            closed = true;
        } else {
            let reader = readers
                .get_mut(text(step, "read")?)
                .ok_or("reads without a reader")?;
            let missed = machine.missed(*reader);
            if missed > 0 {
                out.push(json!({ "lag": missed }));
                *counts.entry("lagged").or_default() += missed;
                *reader += missed;
            }
            let most = step["most"].as_u64().unwrap_or(u64::MAX);
            let mut taken = 0;
            while taken < most && machine.get(*reader).is_some() {
                out.push(json!({ "item": *reader }));
                *counts.entry("read").or_default() += 1;
                *reader += 1;
                taken += 1;
            }
            if closed && *reader == machine.end() {
                out.push(json!({ "end": true }));
            }
        }
        compare(place, step, "out", &out.into())?;
        compare(place, step, "oldest", &machine.start().into())?;
        compare(place, step, "newest", &(machine.end() - 1).into())?;
    }
    Ok(Ok(json!(counts)))
}
