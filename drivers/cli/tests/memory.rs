//! What lies in memory: nothing of a sealed topic that could be read at its station, and no key that is over at a member.
#![cfg(target_os = "linux")]

mod common;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::byhand::{Keys, Publisher, wall};
use common::{Running, Station, Subscriber, folder, tidings};
use hkdf::Hkdf;
use sha2::Sha384;
use tidings::keyring::ACCEPT_MS;
use tidings::wire::SKEW_MS;
use tidings::{NodeId, WallMs};

const CHUNK: usize = 1 << 20;
const LONG: Duration = Duration::from_secs(60);

/// Whether the bytes searched for are in these.
fn is_in(wanted: &[u8], bytes: &[u8]) -> bool {
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == wanted[0]) {
        at += next;
        if bytes[at..].starts_with(wanted) {
            return true;
        }
        at += 1;
    }
    false
}

/// Which of these the memory of a process holds: all of it that was ever written to.
fn search(process: &Running, wanted: &[Vec<u8>]) -> Vec<bool> {
    let id = process.0.id();
    let maps = std::fs::read_to_string(format!("/proc/{id}/maps")).unwrap();
    let memory = File::open(format!("/proc/{id}/mem")).unwrap();
    let longest = wanted.iter().map(Vec::len).max().unwrap();
    let mut found = vec![false; wanted.len()];
    let mut buffer = vec![0; CHUNK + longest];
    let mut seen = 0;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (range, mode) = (words.next().unwrap(), words.next().unwrap());
        let (from, to) = range.split_once('-').unwrap();
        let [mut from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
        if !mode.starts_with("rw") {
            continue;
        }
        while from < to {
            let most = buffer.len().min((to - from) as usize);
            // A page may be gone by now.
            let Ok(read) = memory.read_at(&mut buffer[..most], from) else {
                break;
            };
            seen += read;
            for (found, wanted) in found.iter_mut().zip(wanted) {
                *found |= is_in(wanted, &buffer[..read]);
            }
            from += (read as u64).clamp(1, CHUNK as u64);
        }
    }
    assert!(seen > CHUNK, "{seen} bytes are no process");
    found
}

fn publish(station: &Station, topic: &str, more: &[&str], line: &str) {
    let args = ["pub", topic, "--station", &station.address];
    let mut command = tidings(&[&args, more].concat());
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut process = Running::start(&mut command);
    let mut stdin = process.0.stdin.take().unwrap();
    stdin.write_all(line.as_bytes()).unwrap();
    drop(stdin);
    assert_eq!(process.wait(LONG), 0);
}

#[test]
fn a_station_holds_nothing_of_a_sealed_topic_that_could_be_read() {
    let keys = Keys::make("acme.keys", 900_000);
    let station = Station::start(&[]);
    // What nobody subscribes to is not kept.
    let args = ["sub", "demo/**", "--from", "open"];
    let args = [&args[..], &["--station", &station.address]].concat();
    let _kept = Subscriber::start(&args, Stdio::null(), 1);
    let (clear, sealed) = ("everybody may know: 48151623", "nobody may know: 42108421");
    publish(&station, "demo/open", &[], clear);
    let now = wall();
    publish(
        &station,
        "demo/acme/closed",
        &["--keys", &keys.file],
        sealed,
    );
    let mut wanted: Vec<Vec<u8>> = [clear, "demo/acme/closed", sealed]
        .map(|text| text.as_bytes().to_vec())
        .into();
    wanted.extend([keys.digits.clone(), keys.secret.to_vec()]);
    wanted.extend([now, now + 900_000].map(|at| keys.at(at).1.to_vec()));
    let found = search(&station.process, &wanted);
    assert_eq!(found[..2], [true, true], "what is in the clear is found");
    assert!(found[2..].iter().all(|found| !found), "{found:?}");
}

/// What this publisher's facts are opened with in a period of that key (WIRE.md section 6.1).
fn subkey(key: &[u8; 32], publisher: NodeId) -> Vec<u8> {
    let label = b"TIDINGS-EVENT-KEY-V1";
    let info = [b"\x82\x74", &label[..], b"\x58\x20", publisher.as_bytes()].concat();
    let mut subkey = vec![0; 32];
    let hkdf = Hkdf::<Sha384>::new(Some(label), key);
    hkdf.expand(&info, &mut subkey).unwrap();
    subkey
}

/// How long keys must change so that those of one period are over about then, and when exactly.
fn over_at(about: u64) -> (u64, u64) {
    let opens = ACCEPT_MS + SKEW_MS;
    let sealed_until = about - opens;
    let fits = |rotation: &u64| sealed_until % rotation < 500;
    let rotation = (60_000..86_400_000).find(fits).unwrap();
    (rotation, about - sealed_until % rotation)
}

/// What a member holds of a fact it has opened while its key may be used, and when that is over; `None` where it came too late to be opened.
fn opened_then_over(patience: u64) -> Option<[Vec<bool>; 2]> {
    let (rotation_ms, over) = over_at(wall() + patience);
    let keys = Keys::make("acme.keys", rotation_ms);
    let (period, key) = keys.at(over - ACCEPT_MS - SKEW_MS - 1);
    assert_eq!(
        period.accept_until,
        WallMs::new(over - SKEW_MS),
        "it ends when it was meant to"
    );
    let station = Station::start(&[]);
    let out = folder("memory").join("heard");
    let args = ["sub", "demo/acme/**", "--from", "open", "--json"];
    let more = ["--keys", &keys.file, "--station", &station.address];
    let file = File::create(&out).unwrap();
    let member = Subscriber::start(&[&args[..], &more].concat(), file.into(), 1);
    let mut publisher = Publisher::connect(&station);
    publisher.publish(Some(&period), "nobody else may know");
    let heard = loop {
        let heard = std::fs::read_to_string(&out).unwrap();
        if heard.ends_with('\n') {
            break heard;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    if !heard.contains("nobody else may know") {
        return None;
    }
    let wanted = [
        keys.secret.to_vec(),
        key.to_vec(),
        subkey(&key, publisher.id()),
        keys.digits,
    ];
    let before = search(&member.process, &wanted);
    if wall() >= over {
        return None;
    }
    while wall() <= over {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Its timer may come a little late.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let after = search(&member.process, &wanted);
        if !after[1..].iter().any(|found| *found) || Instant::now() > deadline {
            return Some([before, after]);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_members_memory_holds_no_key_that_is_over_and_never_the_text_of_its_file() {
    // On a machine that has much else to do the fact may come too late.
    let patience = [6_000, 24_000, 96_000].into_iter();
    let [before, after] = patience
        .filter_map(opened_then_over)
        .next()
        .expect("the fact is opened in time");
    // The secret of the group is not over: the keys to come are made of it.
    assert_eq!(before, [true, true, true, false]);
    assert_eq!(after, [true, false, false, false]);
}
