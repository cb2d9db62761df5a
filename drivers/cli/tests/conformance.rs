//! The vectors of this repository, and what a runner must not let pass.

mod common;

use std::path::{Path, PathBuf};

use common::{folder, run, stderr, stdout};
use serde_json::Value;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

fn read(file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(vectors().join(file)).unwrap()).unwrap()
}

/// Runs a folder that holds one family; the exit code and what was said.
fn run_one(file: &str, family: &Value) -> (i32, String) {
    let dir = folder("vectors");
    std::fs::write(dir.join(file), family.to_string()).unwrap();
    let output = run(&["conformance", dir.to_str().unwrap()]);
    (output.status.code().unwrap(), stderr(&output))
}

#[test]
fn every_vector_of_the_repository_passes() {
    let output = run(&["conformance", vectors().to_str().unwrap()]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}\n{}",
        stdout(&output),
        stderr(&output)
    );
    for family in [
        "cbor",
        "frames",
        "handshake",
        "publications",
        "order",
        "resume",
        "ring",
    ] {
        assert!(
            stdout(&output).lines().any(|line| line.starts_with(family)),
            "{family}"
        );
    }
    let output = run(&["conformance", "--json", vectors().to_str().unwrap()]);
    let table: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(table["failed"], 0);
}

#[test]
fn a_changed_expectation_fails() {
    let mut topics = read("topics.json");
    topics["entries"][0]["expect"]["segments"] = 99.into();
    let (code, said) = run_one("topics.json", &topics);
    assert_eq!(code, 1);
    assert!(said.contains("wanted accepted"), "{said}");
}

#[test]
fn fewer_entries_than_declared_fail() {
    for kind in ["expect", "refuse"] {
        let mut topics = read("topics.json");
        let entries = topics["entries"].as_array_mut().unwrap();
        let at = entries
            .iter()
            .position(|entry| entry.get(kind).is_some())
            .unwrap();
        entries.remove(at);
        let (code, said) = run_one("topics.json", &topics);
        assert_eq!(code, 1, "{kind}");
        assert!(said.contains("holds"), "{said}");
    }
}

#[test]
fn what_cannot_be_run_fails_and_is_not_skipped() {
    let unknown =
        serde_json::json!({ "family": "dreams", "accepted": 0, "refused": 0, "entries": [] });
    let (code, said) = run_one("dreams.json", &unknown);
    assert_eq!(code, 1);
    assert!(said.contains("cannot run"), "{said}");
    let mut ids = read("ids.json");
    ids["entries"][0]["kind"] = "colour".into();
    assert_eq!(run_one("ids.json", &ids).0, 1);
}

#[test]
fn a_folder_without_vectors_is_a_wrong_folder() {
    for dir in [folder("none"), folder("none").join("gone")] {
        let output = run(&["conformance", dir.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(stderr(&output).lines().count(), 1);
    }
}
