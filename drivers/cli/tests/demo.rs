//! The demonstration checks itself.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Running, run, stderr, stdout, tidings};

#[test]
fn it_balances_on_one_screen_within_20_seconds() {
    let began = Instant::now();
    let output = run(&["demo"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", stderr(&output));
    assert!(
        began.elapsed() <= Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    assert!(text.contains("silently lost: 0"), "{text}");
    for happened in [
        "latest_only is cut from station A",
        "ordered sleeps for 4.5 s",
        "station C is killed",
        "ordered: interrupted",
        "ordered: resumed, ",
        "as_arrives: interrupted",
        "as_arrives: gap (expired)",
        "the sealed group changes its key",
        "40 sealed, 40 opened under 2 keys; without keys 40 unopened",
        "40 published, 40 refused: no member, and in the clear",
        "what was sealed 0 times",
    ] {
        assert!(text.contains(happened), "no {happened}: {text}");
    }
    assert!(text.lines().count() <= 30, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        text.contains("sub 'demo/**' --from open --station tcp://127.0.0.1:"),
        "{text}"
    );
}

#[test]
fn its_ledger_is_json_that_adds_up() {
    let output = run(&["demo", "--json", "--seconds", "6"]);
    let ledger: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{ledger:#}");
    assert_eq!(
        (
            &ledger["published"],
            &ledger["silently_lost"],
            &ledger["balances"]
        ),
        (&1461.into(), &0.into(), &true.into())
    );
    let rows = ledger["subscribers"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let number = |key: &str| row[key].as_u64().unwrap();
        assert_eq!(
            number("delivered") + number("superseded") + number("in_gaps") + number("in_notices"),
            1461,
            "{row}"
        );
    }
    assert!(ledger["second_copies_dropped"].as_u64().unwrap() > 0);
    // Who slept got all of it back; who had one station alone has a gap.
    assert_eq!(rows[0]["delivered"], 1461, "{ledger:#}");
    assert!(rows[0]["recovered"].as_u64().unwrap() > 0, "{ledger:#}");
    assert!(rows[2]["in_gaps"].as_u64().unwrap() > 0, "{ledger:#}");
}

#[test]
fn each_sabotage_is_found() {
    for (how, finding) in [
        ("drop", "is missing"),
        ("dup", "came twice"),
        ("swap", "out of order"),
    ] {
        let output = run(&["demo", "--seconds", "1", "--sabotage", how]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{how}: {text}");
        assert!(
            text.contains(finding) && text.contains("does not balance"),
            "{how}: {text}"
        );
        assert!(text.lines().count() <= 28, "{text}");
    }
}

#[test]
fn a_newcomer_can_attach_with_the_line_it_prints() {
    let mut command = tidings(&["demo", "--seconds", "6"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut demo = Running::start(&mut command);
    let mut lines = BufReader::new(demo.0.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| {
        let line = line.unwrap();
        line.contains("sub 'demo/**'").then_some(line)
    });
    let line = line.unwrap();
    let (_, arguments) = line.split_once("sub ").unwrap();
    let arguments: Vec<&str> = arguments
        .split(' ')
        .map(|word| word.trim_matches('\''))
        .collect();
    let output = run(&[&["sub"], &arguments[..], &["--count", "5", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for line in stdout(&output).lines() {
        let day: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            day["payload"]["date"].as_str().unwrap().starts_with("201"),
            "{day}"
        );
    }
    // Nobody reads the demonstration any more, which is no failure.
    drop(lines);
    assert_eq!(demo.wait(Duration::from_secs(20)), 0);
}
