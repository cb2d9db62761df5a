//! `dedup` and `ring`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use tidings::inbound::dedup::{HeapDedup, NewEntry, SHARES};
use tidings::ring::{HeapRing, Resume};
use tidings::{Now, PublicationHash, Seed, WallMs};

use super::{compare, steps, text, time, uint};

/// What a trace calls a publication, as a hash.
fn hash(name: &str) -> PublicationHash {
    PublicationHash::of_tbs(name.as_bytes())
}

/// Looks, verifies, remembers, as every caller of a dedup does.
fn offered(dedup: &mut HeapDedup, now: Now, offer: &Json) -> &'static str {
    let until = WallMs::new(uint(offer, "expires_at"));
    let id = hash(text(offer, "hash"));
    let mut signature = [0; 64];
    signature[..48].copy_from_slice(id.as_bytes());
    let publisher = hash(text(offer, "publisher"));
    let mut key_id = [0; 32];
    key_id.copy_from_slice(&publisher.as_bytes()[..32]);
    let signature = dedup.signature_key(&key_id, &signature);
    if now.wall > until {
        return "expired";
    }
    let known = dedup.check(&id).is_some();
    assert_eq!(known, dedup.check_signature(signature).is_some());
    if known {
        return "duplicate";
    }
    if offer["verifies"] == false {
        return "unverified";
    }
    let entry = NewEntry {
        id: &id,
        signature,
        until,
        tag: offer.get("tag").map_or(0, |_| uint(offer, "tag")) as u32,
        seq: 1,
    };
    match dedup.commit(now, entry) {
        Ok(_) => "new",
        Err(_) => "full",
    }
}

pub(crate) fn dedup(entry: &Json) -> Result<Json, String> {
    let capacity = uint(&entry["config"], "capacity") as usize;
    let mut rng = Seed::new([5; 32]).fork("dedup");
    let mut dedup = HeapDedup::with_capacity(capacity, SHARES, &mut rng);
    let mut names = BTreeSet::new();
    let mut counts: BTreeMap<&str, u64> = ["new", "duplicate", "expired", "unverified", "full"]
        .map(|out| (out, 0))
        .into();
    for (number, step) in steps(entry).iter().enumerate() {
        let now = time(step, "at_ms");
        if step.get("forget").is_some() {
            let forgot = dedup.forget(&hash(text(step, "forget")));
            let out = if forgot { "forgotten" } else { "absent" };
            compare(number, step, "out", &json!(out))?;
            continue;
        }
        let offer = &step["offer"];
        names.insert(text(offer, "hash"));
        let out = offered(&mut dedup, now, offer);
        compare(number, step, "out", &json!(out))?;
        *counts.entry(out).or_default() += 1;
    }
    let mut expect = json!(counts);
    let must = uint(&entry["expect"], "remembered");
    let known = names
        .iter()
        .filter(|name| dedup.check(&hash(name)).is_some());
    let known = known.count() as u64;
    // What must be known is; what is over may stay a few seconds longer.
    if known < must {
        return Err(format!("{known} are known, {must} must be"));
    }
    expect["remembered"] = json!(must);
    Ok(expect)
}

pub(crate) fn ring(entry: &Json) -> Result<Json, String> {
    let config = &entry["config"];
    let items = uint(config, "items") as usize;
    let ring = HeapRing::with_capacity(items, uint(config, "bytes") as usize);
    let mut ring: HeapRing<u64> = ring.starting_at(1);
    let mut readers = BTreeMap::new();
    let mut closed = false;
    let (mut pushed, mut read, mut lagged) = (0, 0, 0);
    for (number, step) in steps(entry).iter().enumerate() {
        let mut out = Vec::new();
        if step.get("push").is_some() {
            let bytes = uint(step, "push") as usize;
            let position = ring.push(ring.end(), bytes);
            pushed += 1;
            out.push(json!({ "pushed": position }));
        } else if step.get("give_up").is_some() {
            for _ in 0..uint(step, "give_up") {
                if ring.give_up_oldest().is_none() {
                    return Err(format!("step {number}: nothing to give up"));
                }
            }
        } else if step.get("reader").is_some() {
            readers.insert(text(step, "reader"), ring.end());
        } else if step.get("resume").is_some() {
            let from = uint(step, "after").saturating_add(1);
            let told = match ring.resume(from) {
                Resume::Live => Ok(0),
                Resume::From { count, .. } => Ok(count),
                Resume::Expired { oldest, .. } => Err(oldest),
                other => return Err(format!("step {number}: {other:?}")),
            };
            match told {
                Ok(count) => {
                    readers.insert(text(step, "resume"), from);
                    out.push(json!({ "resumed": count }));
                }
                Err(oldest) => out.push(json!({ "expired": oldest })),
            }
        } else if step.get("close").is_some() {
            closed = true;
        } else {
            let most = step["most"].as_u64().unwrap_or(u64::MAX);
            let next = readers.get_mut(text(step, "read")).expect("a reader");
            let missed = ring.missed(*next);
            if missed > 0 {
                out.push(json!({ "lag": missed }));
                lagged += missed;
                *next += missed;
            }
            for _ in 0..most.min(ring.lag(*next)) {
                let Some(item) = ring.get(*next) else {
                    return Err(format!("step {number}: {next} is not held"));
                };
                if item != next {
                    return Err(format!("step {number}: {item} is at {next}"));
                }
                out.push(json!({ "item": item }));
                *next += 1;
                read += 1;
            }
            if closed && *next == ring.end() {
                out.push(json!({ "end": true }));
            }
        }
        compare(number, step, "out", &json!(out))?;
        compare(number, step, "oldest", &json!(ring.start()))?;
        compare(number, step, "newest", &json!(ring.end() - 1))?;
    }
    let gave_up = ring.start() - 1;
    Ok(json!({ "pushed": pushed, "read": read, "lagged": lagged, "gave_up": gave_up }))
}
