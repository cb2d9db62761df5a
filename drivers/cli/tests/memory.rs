//! What lies in memory: nothing of a sealed topic that could be read at its station, and no key that is over at a member.
#![cfg(target_os = "linux")]

mod common;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::Duration;

use common::{Running, Station, Subscriber, folder, run, stderr, tidings};
use tidings::code::SealPolicy;
use tidings::crypto::SubkeySlot;
use tidings::keyring::{HeapKeyring, KeyPeriod, Lookup, PeriodSlot, PullSlot, Which, write_answer};
use tidings::{Instant, NodeId, Now, RealmId, Seed, WallMs};
use tidings_tokio::SharedKeys;

/// What is searched for is kept like this, so that nobody finds it here.
const MASK: u8 = 0x5A;
const CHUNK: usize = 1 << 20;

/// Bytes to search for.
struct Wanted(Vec<u8>);

impl Wanted {
    fn new(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|byte| byte ^ MASK).collect())
    }

    fn begins(&self, bytes: &[u8]) -> bool {
        let mut pairs = self.0.iter().zip(bytes);
        bytes.len() >= self.0.len() && pairs.all(|(masked, byte)| masked ^ MASK == *byte)
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let first = self.0[0] ^ MASK;
        let mut at = 0;
        while let Some(next) = bytes[at..].iter().position(|byte| *byte == first) {
            at += next;
            if self.begins(&bytes[at..]) {
                return true;
            }
            at += 1;
        }
        false
    }
}

/// Which of these the memory of a process holds.
fn search(process: &str, wanted: &[Wanted]) -> Vec<bool> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let longest = wanted.iter().map(|wanted| wanted.0.len()).max().unwrap();
    let mut found = vec![false; wanted.len()];
    let mut buffer = vec![0; CHUNK + longest];
    let mut seen = 0;
    for line in maps.lines().filter(|line| !line.contains("[v")) {
        let mut words = line.split_whitespace();
        let (range, mode) = (words.next().unwrap(), words.next().unwrap());
        let (from, to) = range.split_once('-').unwrap();
        let [mut from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
        if !mode.starts_with('r') {
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
                *found |= wanted.is_in(&buffer[..read]);
            }
            from += (read as u64).clamp(1, CHUNK as u64);
        }
    }
    // It is memory of this process too.
    buffer.fill(0);
    std::hint::black_box(&buffer);
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
    assert_eq!(process.wait(Duration::from_secs(60)), 0);
}

/// The keys that the holders of a file work out now and next.
fn keys_of(file: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(file).unwrap();
    let digits = text.split("secret = \"").nth(1).unwrap();
    let secret: Vec<u8> = (0..32)
        .map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap())
        .collect();
    let mut whole = [0; 32];
    whole.copy_from_slice(&secret);
    let realm = RealmId::of_name("demo");
    let policy = SealPolicy::Required;
    let shared = SharedKeys::new(realm, "demo/acme", policy, 900_000, &whole).unwrap();
    let mut keys = vec![secret, digits.as_bytes()[..64].to_vec()];
    let made = std::fs::metadata(file).unwrap().modified().unwrap();
    let since = made.duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = since.as_millis() as u64;
    for at in [now, now + 900_000] {
        let given = shared.periods(Which::Current, WallMs::new(at)).unwrap();
        let mut answer = Vec::new();
        write_answer(policy, "demo/acme", &given.periods, &mut answer);
        let head = b"\x63key\x58\x20";
        let ends = (head.len()..answer.len()).filter(|at| answer[..*at].ends_with(head));
        keys.extend(ends.map(|at| answer[at..at + 32].to_vec()));
    }
    assert!(keys.len() >= 4, "the secret twice, and two keys");
    keys
}

#[test]
fn a_station_holds_nothing_of_a_sealed_topic_that_could_be_read() {
    let folder = folder("memory");
    let file = folder.join("acme.keys").to_str().unwrap().to_owned();
    let made = run(&["group", "keygen", "demo/acme", &file]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let station = Station::start(&[]);
    // What nobody subscribes to is not kept.
    let args = ["sub", "demo/**", "--from", "open"];
    let args = [&args[..], &["--station", &station.address]].concat();
    let _kept = Subscriber::start(&args, Stdio::null(), 1);
    let (clear, sealed) = ("everybody may know: 48151623", "nobody may know: 42108421");
    publish(&station, "demo/open", &[], clear);
    publish(&station, "demo/acme/closed", &["--keys", &file], sealed);
    let mut wanted = vec![
        Wanted::new(clear.as_bytes()),
        Wanted::new(b"demo/acme/closed"),
        Wanted::new(sealed.as_bytes()),
    ];
    wanted.extend(keys_of(&file).iter().map(|key| Wanted::new(key)));
    let found = search(&station.process.0.id().to_string(), &wanted);
    assert_eq!(found[..2], [true, true], "what is in the clear is found");
    assert!(found[2..].iter().all(|found| !found), "{found:?}");
}

const START: u64 = 1_796_040_000_000;

fn at(ms: u64) -> Now {
    Now::new(Instant::from_millis(ms), WallMs::new(START + ms))
}

/// What it leaves on the stack is what every call leaves there until another writes over it.
#[inline(never)]
fn hold(keyring: &mut HeapKeyring, masked: &Wanted) {
    keyring.join(at(0));
    assert_eq!(keyring.poll_ask().unwrap().which, Which::Current);
    let mut secret = [0; 32];
    for (byte, masked) in secret.iter_mut().zip(&masked.0) {
        *byte = masked ^ MASK;
    }
    let [from, until] = [START, START + 900_000].map(WallMs::new);
    let period = [KeyPeriod::new(*b"period 1", secret, from, until)];
    keyring
        .handle_keys(at(1), Which::Current, SealPolicy::Required, &period)
        .unwrap();
    let publisher = NodeId::new([1; 32]);
    let held = keyring.lookup(at(2), b"period 1", &publisher);
    assert!(matches!(held, Lookup::Held { .. }));
    assert!(keyring.sealing(at(3), &publisher).is_ok());
    secret.fill(0);
    std::hint::black_box(&secret);
}

#[inline(never)]
fn write_over_the_stack() {
    std::hint::black_box(&mut [0u8; 1 << 16]);
}

#[test]
fn a_member_holds_no_key_that_is_over() {
    let periods = (0..8).map(|_| PeriodSlot::EMPTY).collect();
    let subkeys = (0..16).map(|_| SubkeySlot::EMPTY).collect();
    let rng = Seed::new([7; 32]).fork("keyring");
    let mut keyring = HeapKeyring::new(periods, vec![PullSlot::EMPTY; 8], subkeys, rng);
    let wanted = [Wanted((0..32).map(|n| n * 7 + 11).collect())];
    hold(&mut keyring, &wanted[0]);
    write_over_the_stack();
    assert_eq!(
        search("self", &wanted),
        [true],
        "it is held as long as it opens"
    );
    // It is sealed under for 15 minutes, opens for 65 more, and 5 for clocks that differ.
    keyring.handle_timeout(at(85 * 60_000));
    assert_eq!(keyring.len(), 1);
    keyring.handle_timeout(at(85 * 60_000 + 1));
    assert_eq!(keyring.len(), 0);
    write_over_the_stack();
    assert_eq!(search("self", &wanted), [false]);
}
