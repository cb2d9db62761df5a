//! Lines through real stations and pipes.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Running, Station, Subscriber, folder, run, stderr, tidings};

const LONG: Duration = Duration::from_secs(120);

/// `sub` until `count` facts, with what it printed.
fn subscribe(stations: &[&Station], more: &[&str]) -> (Subscriber, std::path::PathBuf) {
    let file = folder("out").join("out");
    let out = std::fs::File::create(&file).unwrap();
    (start(stations, more, out.into()), file)
}

fn start(stations: &[&Station], more: &[&str], out: Stdio) -> Subscriber {
    let mut args = vec!["sub", "demo/**", "--from", "open"];
    for station in stations {
        args.extend(["--station", &station.address]);
    }
    args.extend(more);
    Subscriber::start(&args, out, stations.len())
}

fn publish(stations: &[&Station], more: &[&str], input: &[u8]) -> (i32, String) {
    let mut args = vec!["pub", "demo/lines"];
    for station in stations {
        args.extend(["--station", &station.address]);
    }
    args.extend(more);
    let mut command = tidings(&args);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Running::start(&mut command);
    let mut stdin = process.0.stdin.take().unwrap();
    // A publisher that refused the first line reads no more.
    stdin.write_all(input).ok();
    drop(stdin);
    let mut said = String::new();
    process
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    (process.wait(LONG), said)
}

#[test]
fn every_line_once_and_in_order_though_a_station_dies() {
    let (mut first, second) = (Station::start(&[]), Station::start(&[]));
    let (subscriber, file) = subscribe(&[&first, &second], &["--count", "20000"]);
    let mut lines = Vec::new();
    for n in 0..20_000 {
        writeln!(
            lines,
            "line {n} of a file that is long enough to be cut somewhere"
        )
        .unwrap();
    }
    let (published, said) = std::thread::scope(|scope| {
        let stations = [first.address.clone(), second.address.clone()];
        let input = &lines;
        let publisher = scope.spawn(move || {
            publish(
                &[],
                &["--station", &stations[0], "--station", &stations[1]],
                input,
            )
        });
        // In the middle: some of it came, most of it did not.
        let deadline = Instant::now() + LONG;
        while std::fs::metadata(&file).unwrap().len() < 200_000 {
            assert!(Instant::now() < deadline, "nothing comes");
            std::thread::sleep(Duration::from_millis(2));
        }
        first.process.0.kill().unwrap();
        publisher.join().unwrap()
    });
    let (code, ledger) = subscriber.end(LONG);
    assert_eq!(std::fs::read(&file).unwrap(), lines, "{ledger}\n{said}");
    assert_eq!(code, 0, "{ledger}");
    assert!(
        ledger.contains("delivered 20,000") && ledger.contains("silently lost: 0"),
        "{ledger}"
    );
    assert!(ledger.contains("carried by 1 of 2"), "{ledger}");
    assert!(said.contains("published 20,000"), "{said}");
    assert_eq!(published, 0, "{said}");
}

#[test]
fn a_slow_pipe_loses_nothing() {
    let station = Station::start(&[]);
    let mut subscriber = start(&[&station], &["--count", "6000"], Stdio::piped());
    let mut out = subscriber.process.0.stdout.take().unwrap();
    let mut lines = Vec::new();
    for n in 0..6000 {
        writeln!(lines, "{n:0200}").unwrap();
    }
    let input = lines.clone();
    let publisher = std::thread::spawn(move || publish(&[&station], &[], &input));
    let mut got = Vec::new();
    let mut buffer = [0; 8192];
    while got.len() < lines.len() {
        let read = out.read(&mut buffer).unwrap();
        assert!(
            read > 0,
            "it ended after {} of {} bytes",
            got.len(),
            lines.len()
        );
        got.extend_from_slice(&buffer[..read]);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(got == lines, "other lines came out");
    let (code, ledger) = subscriber.end(LONG);
    assert_eq!(code, 0, "{ledger}");
    assert_eq!(publisher.join().unwrap().0, 0);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let station = Station::start(&[]);
    let mut subscriber = start(&[&station], &[], Stdio::piped());
    let mut out = BufReader::new(subscriber.process.0.stdout.take().unwrap());
    let mut lines = String::new();
    (0..1000).for_each(|n| lines += &format!("{n}\n"));
    let publisher =
        std::thread::spawn(move || publish(&[&station], &["--rate", "500"], lines.as_bytes()));
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    drop(out);
    let (code, said) = subscriber.end(LONG);
    assert_eq!((code, first.as_str()), (0, "0\n"), "{said}");
    publisher.join().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_left_ends_the_run_though_nothing_comes() {
    let station = Station::start(&[]);
    let mut subscriber = start(&[&station], &[], Stdio::piped());
    drop(subscriber.process.0.stdout.take());
    let (code, ledger) = subscriber.end(Duration::from_secs(20));
    assert_eq!(code, 0, "{ledger}");
    assert!(ledger.contains("delivered 0"), "{ledger}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_run_with_one_line() {
    let station = Station::start(&[]);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let subscriber = start(&[&station], &[], full.into());
    assert_eq!(publish(&[&station], &[], b"one\n").0, 0);
    let (code, said) = subscriber.end(LONG);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
}

#[test]
fn json_goes_through_and_comes_out() {
    let station = Station::start(&[]);
    let (subscriber, file) = subscribe(&[&station], &["--json", "--count", "4"]);
    let input =
        "{\"b\":[1,-2,3.5,null,true],\"a\":\"é\\n\"}\n\n9223372036854775807\n\"text\"\nfalse\n";
    let (code, said) = publish(&[&station], &["--json"], input.as_bytes());
    assert_eq!(code, 0, "{said}");
    let (code, ledger) = subscriber.end(LONG);
    assert_eq!(code, 0, "{ledger}");
    let text = std::fs::read_to_string(&file).unwrap();
    let items: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let payloads: Vec<String> = items
        .iter()
        .map(|item| item["payload"].to_string())
        .collect();
    assert_eq!(
        payloads,
        [
            "{\"a\":\"é\\n\",\"b\":[1,-2,3.5,null,true]}",
            "9223372036854775807",
            "\"text\"",
            "false"
        ]
    );
    for (n, item) in items.iter().enumerate() {
        assert_eq!(item["topic"], "demo/lines");
        assert_eq!(item["seq"], n + 1);
        assert_eq!(item["late"], false);
        assert_eq!(item["publisher"].as_str().unwrap().len(), 64);
        assert!(item["epoch"].as_u64().unwrap() > 1_700_000_000_000_000);
        assert!(item["published_at"].as_u64().unwrap() > 1_700_000_000_000);
    }
}

#[test]
fn a_whole_file_goes_through_as_bytes() {
    let station = Station::start(&[]);
    let (subscriber, file) = subscribe(&[&station], &["--raw", "--count", "1"]);
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n * 7 % 251) as u8).collect();
    assert_eq!(publish(&[&station], &["--raw"], &bytes).0, 0);
    assert_eq!(subscriber.end(LONG).0, 0);
    assert!(std::fs::read(&file).unwrap() == bytes);
}

#[test]
fn a_bad_line_is_named_and_what_came_before_stands() {
    let station = Station::start(&[]);
    let (subscriber, file) = subscribe(&[&station], &["--count", "2"]);
    let (code, said) = publish(&[&station], &["--json"], b"1\n2\n9223372036854775808\n4\n");
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("cannot publish line 3: the integer 9223372036854775808"),
        "{said}"
    );
    assert!(said.contains("published 2: routed 2"), "{said}");
    assert_eq!(subscriber.end(LONG).0, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\n2\n");
    let (code, said) = publish(&[&station], &[], b"good\n\xff\xfe\n");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("line 2: it is not UTF-8"), "{said}");
}

#[test]
fn nobody_listening_is_said_and_is_no_failure() {
    let station = Station::start(&[]);
    let (code, said) = publish(&[&station], &[], b"one\ntwo\n");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("no subscriber 2"), "{said}");
}

#[test]
fn a_pinned_station_is_not_replaced_by_another() {
    let station = Station::start(&[]);
    let (_, at) = station.address.rsplit_once('@').unwrap();
    let wrong = format!("tcp://{}@{at}", "ab".repeat(32));
    let output = run(&["pub", "demo/x", "--station", &wrong, "--wait", "500ms"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    // Without the pin the same address is taken.
    assert_eq!(
        run(&["pub", "demo/x", "--station", &format!("tcp://{at}")])
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn lines_go_over_tls_to_the_station_that_is_named_and_to_no_other() {
    let key = folder("tls").join("key");
    let key = key.to_str().unwrap();
    let id = run(&["keygen", key]).stdout;
    let id = String::from_utf8(id).unwrap();
    let station = Station::start_at("tls://127.0.0.1:0", &["--key", key]);
    let named = format!("tls://{}@", id.trim());
    assert!(station.address.starts_with(&named), "{}", station.address);
    let (mut reader, out) = subscribe(&[&station], &["--count", "2"]);
    let (code, said) = publish(&[&station], &[], b"one\ntwo\n");
    assert_eq!(code, 0, "{said}");
    assert_eq!(reader.process.wait(LONG), 0);
    assert_eq!(std::fs::read_to_string(out).unwrap(), "one\ntwo\n");
    let (_, at) = station.address.rsplit_once('@').unwrap();
    let wrong = format!("tls://{}@{at}", "ab".repeat(32));
    let output = run(&["pub", "demo/x", "--station", &wrong, "--wait", "2s"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("another key than the one that was named. compare the node id"),
        "{said}"
    );
    // In plain it is not there at all.
    let plain = format!("tcp://{at}");
    let output = run(&["pub", "demo/x", "--station", &plain, "--wait", "500ms"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn only_wanted_publishers_are_shown() {
    let station = Station::start(&[]);
    let key = folder("wanted").join("key");
    let id = run(&["keygen", key.to_str().unwrap()]).stdout;
    let id = format!("node:{}", String::from_utf8(id).unwrap().trim());
    let file = folder("out").join("out");
    let out = std::fs::File::create(&file).unwrap();
    let args = [
        "sub",
        "demo/**",
        "--from",
        &id,
        "--count",
        "1",
        "--station",
        &station.address,
    ];
    let subscriber = Subscriber::start(&args, out.into(), 1);
    assert_eq!(publish(&[&station], &[], b"stranger\n").0, 0);
    assert_eq!(
        publish(&[&station], &["--key", key.to_str().unwrap()], b"wanted\n").0,
        0
    );
    let (code, ledger) = subscriber.end(LONG);
    assert_eq!(code, 0, "{ledger}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "wanted\n");
    assert!(ledger.contains("refused by source 1"), "{ledger}");
    // The epoch is kept beside the key, a little more than was used.
    assert!(
        std::fs::read_to_string(key.with_extension("epoch"))
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
            > 0
    );
}

#[cfg(unix)]
#[test]
fn an_interrupt_or_being_told_to_end_prints_the_ledger() {
    let station = Station::start(&[]);
    for signal in ["-INT", "-TERM"] {
        let (subscriber, _) = subscribe(&[&station], &[]);
        assert_eq!(publish(&[&station], &[], b"one\ntwo\n").0, 0);
        std::thread::sleep(Duration::from_millis(300));
        subscriber.process.signal(signal);
        let (code, ledger) = subscriber.end(LONG);
        assert_eq!(code, 0, "{ledger}");
        assert!(ledger.contains("delivered 2"), "{ledger}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_before_a_station_answered_prints_the_ledger() {
    for (args, ledger) in [
        (&["sub", "demo/x", "--from", "open"][..], "delivered 0"),
        (&["pub", "demo/x"], "published 0"),
    ] {
        let far = ["--station", "tcp://127.0.0.1:1", "--wait", "1h"];
        let mut command = tidings(&[args, &far].concat());
        let mut process = Running::start(command.stderr(std::process::Stdio::piped()));
        std::thread::sleep(Duration::from_millis(500));
        process.signal("-INT");
        assert_eq!(process.wait(LONG), 3, "{args:?}");
        let mut said = String::new();
        let mut stderr = process.0.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        assert!(said.starts_with(ledger), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// A figure of a result.
fn figure(line: &[u8], name: &str) -> f64 {
    let result: serde_json::Value = serde_json::from_slice(line).unwrap();
    result[name].as_f64().unwrap()
}

#[test]
fn bench_pair_misses_nothing_and_says_how_fast_it_was() {
    let output = run(&["bench", "pair", "--count", "500", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(figure(&output.stdout, "missing"), 0.0);
    for name in ["published", "received", "latency_p50", "latency_p99"] {
        assert!(figure(&output.stdout, name) > 0.0, "{name}");
    }
}

#[test]
fn bench_sub_fails_when_something_went_missing() {
    let station = Station::start(&[]);
    let at = ["--station", station.address.as_str()];
    let mut command = tidings(&["bench", "sub", "--json", at[0], at[1]]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut reader = Running::start(&mut command);
    std::thread::sleep(Duration::from_secs(1));
    // The second of two, as `bench pub` would publish it.
    let file = folder("bench").join("fact");
    std::fs::write(&file, "[1,2,0,\"\"]\n").unwrap();
    let fact = [
        "pub",
        "bench/facts",
        file.to_str().unwrap(),
        "--json",
        at[0],
        at[1],
    ];
    assert_eq!(run(&fact).status.code(), Some(0));
    assert_eq!(reader.wait(LONG), 1);
    let mut said = Vec::new();
    let mut stdout = reader.0.stdout.take().unwrap();
    std::io::Read::read_to_end(&mut stdout, &mut said).unwrap();
    assert_eq!(figure(&said, "missing"), 1.0);
}

#[test]
fn a_key_that_stands_twice_in_a_json_object_is_refused() {
    let station = Station::start(&[]);
    let (code, said) = publish(&[&station], &["--json"], b"{\"a\":1}\n{\"a\":1,\"a\":2}\n");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("cannot publish line 2: "), "{said}");
    assert!(said.contains("\"a\" stands twice"), "{said}");
}
