//! The traces of the vectors: every family of steps is fed to its machine, step by step, and its counts are held to what the file
//! declares. A family of steps that nobody feeds fails the run.

#[path = "../common/mod.rs"]
mod common;
mod continuity;
mod flow;
mod links;
mod live;
mod order;
#[path = "../outcomes/script.rs"]
mod outcomes;
#[path = "../outcomes/parts.rs"]
mod parts;
mod resume;
#[path = "../outcomes/rig.rs"]
mod rig;
mod sources;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use tidings::{Duration, Instant, Now, WallMs};

/// The families fed here.
const TRACES: [&str; 11] = [
    "backoff",
    "continuity",
    "dedup",
    "guess",
    "links",
    "liveness",
    "order",
    "outcomes",
    "resume",
    "ring",
    "sources",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors")
}

fn read(name: &str) -> Json {
    let path = folder().join(name).with_extension("json");
    let text = std::fs::read_to_string(&path).expect("the family is there");
    serde_json::from_str(&text).expect("the family is JSON")
}

/// Feeds every entry; `feed` answers what went wrong, and that it was refused where it was.
fn run(name: &str, feed: impl Fn(&Json) -> Result<Json, String>) {
    let file = read(name);
    assert_eq!(file["family"], name);
    let entries = file["entries"].as_array().expect("entries");
    let (mut accepted, mut refused) = (0, 0);
    let mut wrong = Vec::new();
    for entry in entries {
        let told = feed(entry);
        let (kind, count) = match entry.get("refuse") {
            Some(_) => ("refuse", &mut refused),
            None => ("expect", &mut accepted),
        };
        *count += 1;
        match told {
            Ok(told) if told == entry[kind] => {}
            Ok(told) => wrong.push(format!(
                "{}: told {told}, wanted {}",
                entry["name"], entry[kind]
            )),
            Err(what) => wrong.push(format!("{}: {what}", entry["name"])),
        }
    }
    assert!(
        wrong.is_empty(),
        "{name}: {} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(file["accepted"], accepted, "{name}");
    assert_eq!(file["refused"], refused, "{name}");
    assert!(accepted > 0, "{name}: nothing was fed");
}

fn steps(entry: &Json) -> &[Json] {
    entry["steps"].as_array().expect("steps")
}

fn uint(value: &Json, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

fn text<'a>(value: &'a Json, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Times of a step that has one; a wall the trace does not give follows the monotonic clock.
fn time(step: &Json, key: &str) -> Now {
    let at = uint(step, key);
    let wall = step["wall_ms"].as_u64().unwrap_or(1_790_000_000_000 + at);
    Now::new(Instant::from_millis(at), WallMs::new(wall))
}

/// What a step brought, against what stands in it.
fn compare(number: usize, step: &Json, key: &str, told: &Json) -> Result<(), String> {
    if step[key] == *told {
        return Ok(());
    }
    Err(format!(
        "step {number}: {key} is {told}, wanted {}",
        step[key]
    ))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn every_family_of_steps_is_fed_to_a_machine() {
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(folder()).expect("the folder is there") {
        let path = file.expect("a file").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let name = path.file_stem().expect("a name").to_string_lossy();
            if read(&name)["entries"][0].get("steps").is_some() {
                found.insert(name.to_string());
            }
        }
    }
    assert_eq!(found, TRACES.map(String::from).into());
}

#[test]
fn order() {
    run("order", order::feed);
}

#[test]
fn guess() {
    run("guess", order::guess);
}

#[test]
fn dedup() {
    run("dedup", flow::dedup);
}

#[test]
fn ring() {
    run("ring", flow::ring);
}

#[test]
fn liveness() {
    run("liveness", live::liveness);
}

#[test]
fn backoff() {
    run("backoff", live::backoff);
}

#[test]
fn outcomes() {
    run("outcomes", outcomes::feed);
}

#[test]
fn resume() {
    run("resume", resume::feed);
}

#[test]
fn continuity() {
    run("continuity", continuity::feed);
}

#[test]
fn sources() {
    run("sources", sources::feed);
}

#[test]
fn links() {
    run("links", links::feed);
}

#[test]
fn a_family_with_an_entry_too_few_fails() {
    let short = std::panic::catch_unwind(|| run("ring", |_| Ok(json!({}))));
    assert!(short.is_err(), "what an entry tells is compared");
}
