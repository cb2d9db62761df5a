//! The vectors of the wire: every family that has to do with bytes is judged entry by entry, and its counts are held to what the file
//! declares. A file that nobody reads fails the run.

mod bytes;
mod frames;
mod handshake;
mod keys;
mod names;
mod objects;
mod seal;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};
use tidings::crypto::{SecretKey, Signer};
use tidings::wire::{Body, Draft, Publication};
use tidings::{NodeId, RealmId, RunId};

/// The families read here.
const WIRE: [&str; 13] = [
    "cbor",
    "codes",
    "frames",
    "handshake",
    "ids",
    "keys",
    "objects",
    "positions",
    "publications",
    "rfc/rfc8032",
    "rfc/rfc8949",
    "seal",
    "topics",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors")
}

struct Family {
    name: &'static str,
    entries: Vec<Json>,
    accepted: u64,
    refused: u64,
}

fn read(name: &str) -> Json {
    let path = folder().join(name).with_extension("json");
    let text = std::fs::read_to_string(&path).expect("the family is there");
    serde_json::from_str(&text).expect("the family is JSON")
}

fn family(name: &'static str) -> Family {
    assert!(WIRE.contains(&name), "{name} is not in the list");
    let mut file = read(name);
    assert_eq!(file["family"], name);
    Family {
        name,
        accepted: file["accepted"].as_u64().expect("a count"),
        refused: file["refused"].as_u64().expect("a count"),
        entries: match file["entries"].take() {
            Json::Array(entries) => entries,
            other => panic!("{name}: entries are {other}"),
        },
    }
}

/// What a judge answers: what is expected, or `{"refuse": …}` with what else is told.
type Verdict = Result<Json, Json>;

fn refuse(reason: &str) -> Verdict {
    Err(json!({ "refuse": reason }))
}

/// Judges every entry, compares the whole verdict, and counts.
fn run(name: &'static str, judge: impl Fn(&Json) -> Verdict) {
    let family = family(name);
    let (mut accepted, mut refused) = (0, 0);
    let mut wrong = Vec::new();
    for entry in &family.entries {
        let told = match judge(entry) {
            Ok(expect) => {
                accepted += 1;
                json!({ "expect": expect })
            }
            Err(refusal) => {
                refused += 1;
                refusal
            }
        };
        let mut want = Map::new();
        for key in ["expect", "refuse", "segment", "told", "refusal", "at"] {
            if let Some(value) = entry.get(key) {
                want.insert(key.into(), value.clone());
            }
        }
        let want = Json::Object(want);
        if told != want {
            wrong.push(format!("{}: told {told}, wanted {want}", entry["name"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{name}: {} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(
        (accepted, refused),
        (family.accepted, family.refused),
        "{name}"
    );
    assert!(accepted > 0 && refused > 0, "{}: one-sided", family.name);
}

fn text<'a>(entry: &'a Json, key: &str) -> &'a str {
    entry[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {entry}"))
}

fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2) && text.is_ascii(), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(entry: &Json, key: &str) -> Vec<u8> {
    hex(text(entry, key))
}

fn array_of<const N: usize>(entry: &Json, key: &str) -> [u8; N] {
    bytes_of(entry, key).try_into().expect("the length")
}

/// The four signers of the vectors, whose seeds are one byte over and over.
fn signer_of(id: &NodeId) -> Option<SecretKey> {
    (1..=4)
        .map(|byte| SecretKey::from_seed([byte; 32]))
        .find(|key| key.node_id() == *id)
}

/// What this publication says, with another body.
fn draft_of<'a>(publication: &Publication<'a>, body: Body<'a>) -> Draft<'a> {
    Draft {
        realm: publication.realm,
        topic: publication.topic,
        publisher: publication.publisher,
        epoch: publication.epoch,
        seq: publication.seq,
        published_at: publication.published_at,
        ttl_ms: publication.ttl_ms,
        one: publication.one,
        body,
    }
}

/// Traces of steps need a machine and are read beside it.
fn is_trace(name: &str) -> bool {
    read(name)["entries"][0].get("steps").is_some()
}

#[test]
fn every_file_is_read_by_somebody() {
    let mut found = BTreeSet::new();
    for (prefix, at) in [("", folder()), ("rfc/", folder().join("rfc"))] {
        for file in std::fs::read_dir(at).expect("the folder is there") {
            let path = file.expect("a file").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let stem = path.file_stem().expect("a name").to_string_lossy();
                found.insert(format!("{prefix}{stem}"));
            }
        }
    }
    for name in &found {
        let name = name.as_str();
        assert!(WIRE.contains(&name) || is_trace(name), "{name} is unread");
    }
    for name in WIRE {
        assert!(found.contains(name), "{name} is gone");
    }
}

#[test]
fn keys() {
    run("keys", |entry| {
        let judged = keys::judge(entry).unwrap_or_else(|broken| panic!("{broken}"));
        judged.or_else(|reason| refuse(&reason))
    });
}

#[test]
fn ids() {
    run("ids", |entry| match text(entry, "kind") {
        "realm" => {
            let name = String::from_utf8(bytes_of(entry, "name_hex")).expect("a name");
            if !RealmId::is_name(&name) {
                return refuse("bad_length");
            }
            Ok(json!(RealmId::of_name(&name).to_string()))
        }
        "text" => match text(entry, "text").parse::<NodeId>() {
            Ok(id) => Ok(json!(id.to_string())),
            Err(_) => refuse("bad_text_form"),
        },
        "exporter" => {
            let id = |key| NodeId::new(array_of(entry, key));
            let context = tidings::link::exporter_context(&id("dialler"), &id("answerer"));
            let label = tidings::link::EXPORTER_LABEL;
            Ok(json!({ "label": label, "context": to_hex(&context), "bytes": 32 }))
        }
        kind => objects::id_of_key(kind, &bytes_of(entry, "key")),
    });
}

#[test]
fn seeds_make_the_keys_of_the_vectors() {
    let alice = SecretKey::from_seed([1; 32]);
    let id = alice.node_id().to_string();
    assert!(id.starts_with("928094415aae1698"), "{id}");
    assert!(to_hex(&alice.public_key()).starts_with("8a88e3dd7409f195"));
    let run = RunId::new([0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(run.to_string(), "0001020304050607");
}
