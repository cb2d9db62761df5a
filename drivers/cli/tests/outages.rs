//! Outages over real sockets, and what `sub --json` says of them.
//!
//! `TIDINGS_OUTAGE_SECONDS` (10) and `TIDINGS_OUTAGE_RATE` (500 a second) make them longer and faster.
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Running, Station, Subscriber, folder, numbers, publish, run, tidings};
use serde_json::Value;

const PROBE: [&str; 2] = ["--probe", "2s"];
/// A node says how far it is every 10 s; an interruption begins there at the earliest.
const PROGRESS_MS: u64 = 12_000;

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

fn outage() -> Duration {
    Duration::from_secs(setting("TIDINGS_OUTAGE_SECONDS", 10))
}

fn rate() -> u64 {
    setting("TIDINGS_OUTAGE_RATE", 500)
}

#[allow(
    clippy::disallowed_types,
    reason = "windows are compared with the host's date"
)]
fn wall() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.unwrap().as_millis() as u64
}

/// `sub --json` into a file.
struct Reader {
    subscriber: Subscriber,
    out: PathBuf,
}

impl Reader {
    fn start(station: &Station, folder: &Path) -> Self {
        let out = folder.join("out");
        let args = [
            "sub",
            "demo/**",
            "--from",
            "open",
            "--json",
            "--station",
            &station.address,
        ];
        let file = std::fs::File::create(&out).unwrap();
        Self {
            subscriber: Subscriber::start(&[&args[..], &PROBE].concat(), file.into(), 1),
            out,
        }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    fn wait_for(&self, part: &str) {
        let deadline = Instant::now() + outage() + Duration::from_secs(60);
        while !self.text().contains(part) {
            assert!(Instant::now() < deadline, "no {part}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the fact with this number, and ends the run.
    fn end(self, last: u64) -> Heard {
        self.wait_for(&format!("\"payload\":\"{last}\""));
        self.subscriber.process.signal("-TERM");
        let text = self.text();
        let (code, said) = self.subscriber.end(Duration::from_secs(30));
        let (mut heard, mut facts) = (
            Heard {
                code,
                said,
                ..Heard::default()
            },
            Vec::new(),
        );
        for line in text.lines() {
            let item: Value = serde_json::from_str(line).unwrap();
            match item["notice"].as_str() {
                Some(notice) => heard.notices.push((notice.to_owned(), item)),
                None => {
                    let number: u64 = item["payload"].as_str().unwrap().parse().unwrap();
                    facts.push((number, item["published_at"].as_u64().unwrap()));
                }
            }
        }
        heard.facts = facts;
        heard
    }
}

#[derive(Debug, Default)]
struct Heard {
    code: i32,
    said: String,
    /// Number and time of each.
    facts: Vec<(u64, u64)>,
    notices: Vec<(String, Value)>,
}

impl Heard {
    fn of(&self, kind: &str) -> Vec<&Value> {
        let found = self.notices.iter().filter(|(notice, _)| notice == kind);
        found.map(|(_, item)| item).collect()
    }

    /// All of them, once and in order.
    fn is_whole(&self, all: u64) -> bool {
        self.facts.iter().map(|(number, _)| *number).eq(0..all)
    }

    /// Exactly one gap, `expired`, no resume, and every number that is missing inside its window.
    fn has_one_right_gap(&self, began: u64, ended: u64) -> usize {
        let gaps = self.of("gap");
        assert_eq!(gaps.len(), 1, "{:?}", self.notices);
        assert_eq!(self.of("interrupted").len(), 1, "{:?}", self.notices);
        assert_eq!(self.of("resumed").len(), 0, "{:?}", self.notices);
        assert_eq!(gaps[0]["reason"], "expired");
        let edge = |name: &str| gaps[0][name].as_u64().unwrap();
        let (from, to) = (edge("from"), edge("to"));
        assert!(
            from >= began.saturating_sub(PROGRESS_MS) && to <= ended,
            "{from} {to}: {began} {ended}"
        );
        let mut holes = 0;
        for pair in self.facts.windows(2) {
            let ((before, left), (after, came)) = (pair[0], pair[1]);
            assert!(after > before, "{after} after {before}");
            if after > before + 1 {
                holes += 1;
                // Numbers follow each other within milliseconds.
                assert!(
                    from <= left + 100 && to + 100 >= came,
                    "{from} {to}: {left} {came}"
                );
            }
        }
        assert_eq!(self.code, 1, "{}", self.said);
        holes
    }
}

/// A subscriber is stopped while a publisher goes on; what it heard, and when it was stopped and came back.
fn a_stopped_subscriber(ring: &str) -> (Heard, u64, u64, u64) {
    let station = Station::start(&[&PROBE[..], &["--ring", ring]].concat());
    let reader = Reader::start(&station, &folder("stopped"));
    let all = rate() * (outage().as_secs() + 4);
    let (began, ended) = std::thread::scope(|scope| {
        let every = rate().to_string();
        let station = &station;
        let publisher = scope.spawn(move || {
            publish(
                station,
                &["--rate", &every, "--probe", "2s"],
                &numbers(0, all),
            )
        });
        reader.wait_for("\"payload\":\"500\"");
        reader.subscriber.process.signal("-STOP");
        let began = wall();
        std::thread::sleep(outage());
        reader.subscriber.process.signal("-CONT");
        let ended = wall();
        let (code, said) = publisher.join().unwrap();
        assert!(said.contains(", refused 0, unknown 0"), "{code}: {said}");
        (began, ended)
    });
    (reader.end(all - 1), all, began, ended)
}

#[test]
fn a_subscriber_that_was_stopped_recovers_everything() {
    let (heard, all, ..) = a_stopped_subscriber("1000000");
    assert!(heard.is_whole(all), "{}: {:?}", heard.said, heard.notices);
    assert_eq!(heard.of("interrupted").len(), 1, "{:?}", heard.notices);
    let resumed = heard.of("resumed");
    assert_eq!(resumed.len(), 1, "{:?}", heard.notices);
    assert!(resumed[0]["recovered"].as_u64().unwrap() > 0, "{resumed:?}");
    assert_eq!(
        heard.of("gap").len() + heard.of("skipped").len(),
        0,
        "{:?}",
        heard.notices
    );
    assert_eq!(heard.code, 0, "{}", heard.said);
}

#[test]
fn a_subscriber_that_was_stopped_until_the_ring_expired_has_one_gap() {
    // A second of facts.
    let (heard, _, began, ended) = a_stopped_subscriber(&rate().to_string());
    let holes = heard.has_one_right_gap(began, ended + 15_000);
    assert!(holes > 0, "nothing was missing");
}

#[test]
fn a_station_that_was_stopped_is_resumed_and_nothing_it_had_taken_is_missing() {
    let station = Station::start(&PROBE);
    let reader = Reader::start(&station, &folder("station"));
    let all = rate() * 2;
    assert_eq!(publish(&station, &[], &numbers(0, all)).0, 0);
    reader.wait_for(&format!("\"payload\":\"{}\"", all - 1));
    station.process.signal("-STOP");
    std::thread::sleep(outage());
    station.process.signal("-CONT");
    let (code, said) = publish(&station, &["--wait", "1m"], &numbers(all, 2 * all));
    assert_eq!(code, 0, "{said}");
    let heard = reader.end(2 * all - 1);
    assert!(
        heard.is_whole(2 * all),
        "{}: {:?}",
        heard.said,
        heard.notices
    );
    assert_eq!(heard.of("interrupted").len(), 1, "{:?}", heard.notices);
    assert_eq!(heard.of("resumed").len(), 1, "{:?}", heard.notices);
    assert_eq!(heard.of("gap").len(), 0, "{:?}", heard.notices);
    assert_eq!(heard.code, 0, "{}", heard.said);
}

#[test]
fn a_station_that_was_killed_and_started_again_is_one_gap() {
    let folder = folder("killed");
    let key = folder.join("key");
    let key = key.to_str().unwrap();
    assert!(run(&["keygen", key]).status.success());
    let mut station = Station::start(&["--key", key]);
    let reader = Reader::start(&station, &folder);
    let at = station.address.rsplit_once('@').unwrap().1.to_owned();
    let all = rate() * 8;
    // Lines it cannot have taken are answered `unknown`.
    let every = rate().to_string();
    let mut command = tidings(&["pub", "demo/lines", "--rate", &every, "--wait", "1m"]);
    command
        .args(["--station", &station.address])
        .stdin(Stdio::piped());
    let mut publisher = Running::start(command.stderr(Stdio::null()));
    let mut stdin = publisher.0.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, numbers(0, all).as_bytes()).unwrap();
    drop(stdin);
    reader.wait_for(&format!("\"payload\":\"{}\"", rate()));
    let began = wall();
    station.process.0.kill().unwrap();
    station.process.0.wait().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let again = Station::start_at(&format!("tcp://{at}"), &["--key", key]);
    assert_eq!(again.address, station.address);
    publisher.wait(Duration::from_secs(120));
    let heard = reader.end(all - 1);
    // What the publisher had no answer for it handed over again: there may be nothing in the gap.
    heard.has_one_right_gap(began, wall());
}
