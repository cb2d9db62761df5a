//! `--config FILE` and `tidings config`: one file for a station and for nodes, checked before anything starts; and how keys are changed
//! with it.
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Running, Station, Subscriber, folder, numbers, publish_with, run, stderr, stdout};

const LONG: Duration = Duration::from_secs(60);

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Makes a key file, and answers its node id.
fn key(folder: &Path, name: &str) -> String {
    let output = run(&["keygen", folder.join(name).to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output).trim().to_owned()
}

#[test]
fn the_example_is_checked_and_starts_a_station_and_its_nodes() {
    let folder = folder("example");
    let example = stdout(&run(&["config", "example"]));
    // A port of its own, which the nodes then name.
    let station_file = write(&folder, "station.toml", &example.replace(":7400", ":0"));
    assert_eq!(
        run(&["config", "check", &station_file]).status.code(),
        Some(0)
    );
    let station = Station::start_with(&["--config", &station_file]);
    let named = format!("stations = [{:?}]", station.address);
    let node = example.replace("stations = [\"tcp://127.0.0.1:7400\"]", &named);
    let node = write(&folder, "node.toml", &node);
    let checked = run(&["config", "check", &node, "--json"]);
    let said: serde_json::Value = serde_json::from_str(&stdout(&checked)).unwrap();
    assert_eq!(said["valid"], true, "{said}");

    let out = folder.join("out");
    let to = std::fs::File::create(&out).unwrap();
    let sub = [
        "sub", "demo/**", "--from", "open", "--count", "3", "--config", &node,
    ];
    let subscriber = Subscriber::start(&sub, to.into(), 1);
    assert_eq!(publish_with(&["--config", &node], &numbers(0, 3)).0, 0);
    assert_eq!(subscriber.end(LONG).0, 0);
    assert_eq!(std::fs::read_to_string(out).unwrap(), numbers(0, 3));
}

#[test]
fn what_is_wrong_is_told_with_key_file_and_line_and_nothing_starts() {
    let folder = folder("wrong");
    let file = write(
        &folder,
        "t.toml",
        "[station]\nring = 5\nprobe_every = \"1ms\"\n",
    );
    let output = run(&["config", "check", &file]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].starts_with(&format!("{file}:2: station.ring: no such key")),
        "{said}"
    );
    assert!(
        lines[1].starts_with(&format!("{file}:3: station.probe_every: ")),
        "{said}"
    );

    let output = run(&["config", "check", &file, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&told["valid"], &told["faults"][1]["line"]),
        (&false.into(), &3.into())
    );

    for command in [
        &["station"][..],
        &["sub", "demo/x", "--from", "open"],
        &["pub", "demo/x"],
        &["bench", "pub"],
        &["bench", "sub"],
    ] {
        let output = run(&[command, &["--config", &file]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let said = stderr(&output);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("t.toml:2: station.ring"), "{said}");
        assert!(
            said.contains(", and 1 more. see tidings config check"),
            "{said}"
        );
    }
    let missing = run(&["station", "--config", "/no/such/file"]);
    assert!(
        stderr(&missing).starts_with("/no/such/file: cannot be read"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn a_key_file_that_others_may_read_is_refused_at_its_line() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("open-key");
    key(&folder, "node.key");
    let file = write(&folder, "t.toml", "[node]\nkey = \"node.key\"\n");
    assert_eq!(run(&["config", "check", &file]).status.code(), Some(0));
    let mode = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(folder.join("node.key"), mode).unwrap();
    let said = stderr(&run(&["config", "check", &file]));
    assert!(said.starts_with(&format!("{file}:2: node.key: ")), "{said}");
    assert!(said.contains("chmod 600"), "{said}");
}

#[test]
fn the_command_line_counts_before_the_file() {
    let folder = folder("before");
    let file = write(
        &folder,
        "t.toml",
        "[station]\nlisten = \"tcp://127.0.0.1:1\"\n[node]\nstations = [\"tcp://127.0.0.1:1\"]\n",
    );
    // Port 1 belongs to nobody here: what was said on the command line is what is used.
    let station = Station::start(&["--config", &file]);
    let given = ["--config", &file, "--station", &station.address];
    assert_eq!(publish_with(&given, &numbers(0, 1)).0, 0);
}

/// A run of `sub` with a file that goes on where the one before ended.
struct Reader {
    subscriber: Subscriber,
    out: PathBuf,
}

impl Reader {
    fn start(folder: &Path, name: &str, stations: &[&Station], from: &[&str]) -> Self {
        let addresses: Vec<&str> = stations.iter().map(|station| &*station.address).collect();
        let file = write(
            folder,
            &format!("{name}.toml"),
            &format!("[node]\nstations = {addresses:?}\n"),
        );
        let (out, positions) = (folder.join(name), folder.join("positions"));
        let positions = positions.to_str().unwrap();
        let mut args = vec!["sub", "demo/**", "--config", &file, "--resume", positions];
        let sources: Vec<String> = from.iter().map(|id| format!("node:{id}")).collect();
        for source in &sources {
            args.extend(["--from", source]);
        }
        let to = std::fs::File::create(&out).unwrap();
        Self {
            subscriber: Subscriber::start(&args, to.into(), stations.len()),
            out,
        }
    }

    /// Ends it after so many lines.
    fn end(self, lines: usize) -> String {
        let wrote = || std::fs::read_to_string(&self.out).unwrap();
        for _ in 0..3000 {
            if wrote().lines().count() >= lines {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.subscriber.process.signal("-TERM");
        let out = self.out.clone();
        let (code, said) = self.subscriber.end(LONG);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("gaps 0"), "{said}");
        std::fs::read_to_string(out).unwrap()
    }
}

/// The procedure of the README, step by step: first a station's key, then a publisher's. No fact is lost and no gap is told.
#[test]
fn keys_are_changed_without_losing_a_fact() {
    let folder = folder("rotation");
    let station = |name: &str| {
        key(&folder, name);
        let file = format!("[station]\nkey = \"{name}\"\nlisten = \"tls://127.0.0.1:0\"\n");
        Station::start_with(&["--config", &write(&folder, &format!("{name}.toml"), &file)])
    };
    let (first, second) = (key(&folder, "p1.key"), key(&folder, "p2.key"));
    let say = |name: &str, stations: &[&Station], from: u64, to: u64| {
        let file = folder.join(name);
        let mut args = vec!["--key", file.to_str().unwrap()];
        for station in stations {
            args.extend(["--station", &station.address]);
        }
        let (code, said) = publish_with(&args, &numbers(from, to));
        assert_eq!(code, 0, "{said}");
    };

    let old = station("old.key");
    let reader = Reader::start(&folder, "1", &[&old], &[&first]);
    say("p1.key", &[&old], 0, 5);
    let mut wrote = reader.end(5);
    // A station under the new key, beside the old one; every node gets both addresses, then the new one alone.
    let new = station("new.key");
    let reader = Reader::start(&folder, "2", &[&old, &new], &[&first]);
    say("p1.key", &[&old], 5, 10);
    say("p1.key", &[&old, &new], 10, 15);
    wrote += &reader.end(10);
    // The publisher's new id is on the list before it speaks under it.
    let reader = Reader::start(&folder, "3", &[&new], &[&first, &second]);
    let mut gone: Running = old.process;
    gone.signal("-INT");
    gone.wait(LONG);
    say("p1.key", &[&new], 15, 20);
    say("p2.key", &[&new], 20, 25);
    wrote += &reader.end(10);
    let reader = Reader::start(&folder, "4", &[&new], &[&second]);
    // The old key is nobody any more.
    say("p1.key", &[&new], 90, 95);
    say("p2.key", &[&new], 25, 30);
    wrote += &reader.end(5);
    assert_eq!(wrote, numbers(0, 30));
}
