//! `sub --resume FILE` across runs: what was written is not written again, and what was missed comes.
#![cfg(unix)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Station, Subscriber, folder, numbers, publish, run, stderr};

const LONG: Duration = Duration::from_secs(60);

/// A run of `sub` that goes on from `positions` and writes to a new file in `folder`.
struct Run {
    subscriber: Subscriber,
    out: std::path::PathBuf,
}

impl Run {
    fn start(station: &Station, folder: &Path, name: &str, more: &[&str]) -> Self {
        let (out, positions) = (folder.join(name), folder.join("positions"));
        let args = ["sub", "demo/**", "--from", "open", "--resume"];
        let args = [&args, &[positions.to_str().unwrap()][..], more].concat();
        let args = [&args[..], &["--station", &station.address]].concat();
        let file = std::fs::File::create(&out).unwrap();
        Self {
            subscriber: Subscriber::start(&args, file.into(), 1),
            out,
        }
    }

    fn wrote(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    fn end(self) -> (String, String) {
        let out = self.out.clone();
        let (code, said) = self.subscriber.end(LONG);
        assert_eq!(code, 0, "{said}");
        (std::fs::read_to_string(out).unwrap(), said)
    }
}

#[test]
fn a_run_goes_on_behind_the_last_fact_of_the_one_before() {
    let (station, folder) = (Station::start(&[]), folder("behind"));
    let first = Run::start(&station, &folder, "first", &["--count", "3"]);
    assert_eq!(publish(&station, &[], &numbers(0, 5)).0, 0);
    assert_eq!(first.end().0, numbers(0, 3));
    // Nobody listens.
    publish(&station, &[], &numbers(5, 8));
    let second = Run::start(&station, &folder, "second", &["--count", "5"]);
    let (wrote, said) = second.end();
    assert_eq!(wrote, numbers(3, 8), "{said}");
    assert!(said.contains("resumed: "), "{said}");
}

#[test]
fn runs_that_are_told_to_end_write_every_fact_once() {
    let (station, folder) = (Station::start(&[]), folder("once"));
    let all = 4000;
    let mut wrote = String::new();
    std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish(&station, &["--rate", "800"], &numbers(0, all)));
        for (n, signal) in ["-TERM", "-INT", "-TERM"].into_iter().enumerate() {
            let run = Run::start(&station, &folder, &format!("run{n}"), &[]);
            while run.wrote().len() < 500 {
                std::thread::sleep(Duration::from_millis(10));
            }
            run.subscriber.process.signal(signal);
            wrote += &run.end().0;
        }
        publisher.join().unwrap();
    });
    // The first lines were published before anybody subscribed.
    let first: u64 = wrote.lines().next().unwrap().parse().unwrap();
    let had = wrote.lines().count() as u64;
    let left = (all - first - had).to_string();
    let last = Run::start(&station, &folder, "last", &["--count", &left]);
    wrote += &last.end().0;
    assert!(wrote == numbers(first, all), "{first}, {had}");
}

#[test]
fn a_run_that_was_killed_loses_nothing_and_kept_what_it_wrote() {
    let (station, folder) = (Station::start(&[]), folder("killed"));
    let all = 4000;
    let mut first = Run::start(&station, &folder, "first", &[]);
    std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish(&station, &["--rate", "1000"], &numbers(0, all)));
        while first.wrote().lines().count() < 2500 {
            std::thread::sleep(Duration::from_millis(10));
        }
        first.subscriber.process.0.kill().unwrap();
        publisher.join().unwrap();
    });
    let wrote = first.wrote();
    drop(first);
    let last = wrote.rsplit_once('\n').unwrap().0.lines().count() as u64;
    let second = Run::start(&station, &folder, "second", &[]);
    while !second.wrote().ends_with(&format!("{}\n", all - 1)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    second.subscriber.process.signal("-TERM");
    let (again, said) = second.end();
    // Positions are kept once a second, behind what was written: it begins within that, never above.
    let begins: u64 = again.lines().next().unwrap().parse().unwrap();
    assert!(begins <= last && begins > 0, "{begins} of {last}: {said}");
    assert!(again == numbers(begins, all), "{said}");
}

#[test]
fn a_file_that_cannot_be_used_is_one_line_that_says_what_to_do() {
    let folder = folder("unusable");
    let file = folder.join("positions");
    std::fs::write(&file, "{\"form\":1}").unwrap();
    for (file, part) in [
        (file.to_str().unwrap(), "remove it to begin anew"),
        ("/no/such/folder/positions", "make its folder writable"),
        (folder.to_str().unwrap(), "cannot go on from"),
    ] {
        let output = run(&["sub", "demo/**", "--from", "open", "--resume", file]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(part), "{said}");
    }
}
