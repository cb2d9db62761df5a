//! `tidings conformance`: runs the vectors of a folder against this implementation.
//!
//! Decides: what counts as run, and that nothing is skipped: a family nobody here can run fails whole, and one that holds fewer
//! entries than it says fails too. Leaves to others: the judging of each family. Believes: no clock. Bounded by: the files.

mod cbor;
mod continuity;
mod flow;
mod frames;
mod handshake;
mod keys;
mod links;
mod live;
mod objects;
mod outcomes;
mod resume;
mod seal;
#[path = "../../../../core/tests/vectors_machines/sources.rs"]
mod sources;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::args::ConformanceArgs;
use crate::exit::{Exit, Failure, print, say};
use crate::human::count;

/// The keys of an entry that are its outcome when it is refused.
const REFUSAL_KEYS: [&str; 6] = ["refuse", "segment", "at", "told", "refusal", "step"];

/// What this implementation makes of one entry: the value of `expect`, or the keys of a refusal.
type Judged = Result<Value, Map<String, Value>>;

/// An entry that cannot be judged: what is wrong with it.
type Broken = String;

type Judge = fn(&Value) -> Result<Judged, Broken>;

/// Everything this build can run.
const FAMILIES: [(&str, Judge); 24] = [
    ("backoff", live::backoff),
    ("cbor", cbor::judge),
    ("codes", values::codes),
    ("continuity", continuity::judge),
    ("dedup", flow::dedup),
    ("frames", frames::judge),
    ("guess", flow::guess),
    ("handshake", handshake::judge),
    ("ids", values::ids),
    ("keys", keys::judge),
    ("links", links::judge),
    ("liveness", live::liveness),
    ("objects", objects::objects),
    ("order", flow::order),
    ("outcomes", outcomes::judge),
    ("positions", values::positions),
    ("publications", objects::publications),
    ("resume", resume::judge),
    ("rfc/rfc8032", objects::rfc8032),
    ("rfc/rfc8949", cbor::judge),
    ("ring", flow::ring),
    ("seal", seal::judge),
    ("sources", |entry| sources::feed(entry).map(Ok)),
    ("topics", values::topics),
];

/// How one family went.
#[derive(Debug, Default)]
struct Row {
    family: String,
    accepted: u64,
    refused: u64,
    failed: Vec<String>,
}

/// Runs `tidings conformance`.
pub(crate) fn run(args: &ConformanceArgs) -> Result<Exit, Failure> {
    let shown = args.dir.display();
    let files = files(&args.dir).map_err(|error| {
        Failure::usage(format!(
            "cannot read the vectors in {shown}: {error}. name the folder that holds them"
        ))
    })?;
    if files.is_empty() {
        return Err(Failure::usage(format!(
            "no vectors in {shown}: it holds no .json file. name the folder that holds them"
        )));
    }
    let rows: Vec<Row> = files.iter().map(|file| run_file(&args.dir, file)).collect();
    let failed: usize = rows.iter().map(|row| row.failed.len()).sum();
    for row in &rows {
        for failure in row.failed.iter().take(5) {
            say(format_args!("{}: {failure}", row.family));
        }
        if row.failed.len() > 5 {
            say(format_args!(
                "{}: {} more",
                row.family,
                count(row.failed.len() as u64 - 5)
            ));
        }
    }
    print(&if args.json {
        as_json(&rows, failed)
    } else {
        as_table(&rows)
    })?;
    Ok(if failed == 0 { Exit::Done } else { Exit::Lost })
}

/// The vectors, in a fixed order.
fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn run_file(dir: &Path, file: &Path) -> Row {
    let relative = file.strip_prefix(dir).unwrap_or(file).with_extension("");
    let mut row = Row {
        family: relative.to_string_lossy().replace('\\', "/"),
        ..Row::default()
    };
    if let Err(broken) = run_family(file, &mut row) {
        row.failed.push(broken);
    }
    row
}

fn run_family(file: &Path, row: &mut Row) -> Result<(), Broken> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot be read: {error}"))?;
    let family: Value =
        serde_json::from_str(&text).map_err(|error| format!("is not JSON: {error}"))?;
    let name = family["family"].as_str().ok_or("does not say its family")?;
    if name != row.family {
        return Err(format!("says it is the family {name}"));
    }
    let (_, judge) = FAMILIES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or("this build cannot run that family")?;
    for entry in family["entries"].as_array().ok_or("has no entries")? {
        let name = entry["name"].as_str().unwrap_or("an entry without name");
        let ran = if entry.get("expect").is_some() {
            &mut row.accepted
        } else {
            &mut row.refused
        };
        match run_entry(*judge, entry) {
            Ok(()) => *ran += 1,
            Err(broken) => row.failed.push(format!("{name}: {broken}")),
        }
    }
    let entries = family["entries"].as_array().map_or(&[][..], Vec::as_slice);
    for (key, outcome) in [("accepted", "expect"), ("refused", "refuse")] {
        let says = family[key]
            .as_u64()
            .ok_or_else(|| format!("does not say how many are {key}"))?;
        let holds = entries
            .iter()
            .filter(|entry| entry.get(outcome).is_some())
            .count() as u64;
        if holds < says {
            return Err(format!(
                "says {} {key} entries and holds {}",
                count(says),
                count(holds)
            ));
        }
    }
    Ok(())
}

/// Judges one entry and compares the whole outcome.
fn run_entry(judge: Judge, entry: &Value) -> Result<(), Broken> {
    let judged = judge(entry)?;
    let wanted: Judged = match entry.get("expect") {
        Some(expect) => Ok(expect.clone()),
        None => {
            let keys = REFUSAL_KEYS
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), entry.get(*key)?.clone())));
            Err(keys.collect())
        }
    };
    if judged == wanted {
        Ok(())
    } else {
        Err(format!(
            "gives {}, wanted {}",
            brief(&judged),
            brief(&wanted)
        ))
    }
}

fn brief(judged: &Judged) -> String {
    let text = match judged {
        Ok(value) => format!("accepted {value}"),
        Err(keys) => format!("refused {}", Value::Object(keys.clone())),
    };
    if text.chars().count() <= 300 {
        text
    } else {
        text.chars().take(300).chain(['…']).collect()
    }
}

/// A refusal for `reason` alone.
fn refuse(reason: &str) -> Map<String, Value> {
    Map::from_iter([("refuse".to_owned(), reason.into())])
}

/// A refusal that says more.
fn refuse_with(reason: &str, more: &[(&str, &str)]) -> Map<String, Value> {
    let mut keys = refuse(reason);
    keys.extend(
        more.iter()
            .map(|(key, value)| ((*key).to_owned(), Value::from(*value))),
    );
    keys
}

fn text<'a>(entry: &'a Value, key: &str) -> Result<&'a str, Broken> {
    entry[key].as_str().ok_or_else(|| format!("has no {key}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap_or_default();
            text
        })
}

fn unhex(digits: &str) -> Result<Vec<u8>, Broken> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some((value(*high)? * 16 + value(*low)?) as u8),
        _ => None,
    });
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| "holds what is not hex".to_owned())
}

fn bytes_of(entry: &Value, key: &str) -> Result<Vec<u8>, Broken> {
    unhex(text(entry, key)?)
}

fn array_of<const N: usize>(entry: &Value, key: &str) -> Result<[u8; N], Broken> {
    bytes_of(entry, key)?
        .try_into()
        .map_err(|_| format!("has a {key} of the wrong length"))
}

fn as_table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<16} {:>8} {:>8} {:>8}\n",
        "family", "accepted", "refused", "failed"
    );
    let mut sums = BTreeMap::from([("accepted", 0), ("failed", 0), ("refused", 0)]);
    let mut line = |name: &str, accepted: u64, refused: u64, failed: u64| {
        writeln!(
            text,
            "{name:<16} {:>8} {:>8} {:>8}",
            count(accepted),
            count(refused),
            count(failed)
        )
        .unwrap_or_default();
    };
    for row in rows {
        line(
            &row.family,
            row.accepted,
            row.refused,
            row.failed.len() as u64,
        );
        for (key, number) in [
            ("accepted", row.accepted),
            ("refused", row.refused),
            ("failed", row.failed.len() as u64),
        ] {
            *sums.entry(key).or_default() += number;
        }
    }
    line("all", sums["accepted"], sums["refused"], sums["failed"]);
    text
}

fn as_json(rows: &[Row], failed: usize) -> String {
    let families: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "family": row.family, "accepted": row.accepted, "refused": row.refused, "failed": row.failed }))
        .collect();
    format!("{:#}\n", json!({ "families": families, "failed": failed }))
}
