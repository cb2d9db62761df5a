//! What a link on which nothing happens costs a station, with the station and the nodes in two processes.
//!
//! `TIDINGS_LINKS` (200) and `TIDINGS_LINKS_SECONDS` (3) make it more of them and longer; ten thousand need `ulimit -n 20000`.
#![cfg(target_os = "linux")]

mod common;

use std::time::Duration;

use common::Station;
use tidings::crypto::SecretKey;
use tidings_tokio::Node;

/// The most a station may hold for each.
const EACH_KIB: u64 = 40;
/// Links before the first that is counted: a process takes its own share first.
const WARM: u64 = 100;
/// Handshakes at a time.
const TOGETHER: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// What a process has resident, in KiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.unwrap().split_whitespace().next();
    words.unwrap().parse().unwrap()
}

/// Its processor time so far, in ticks of 10 ms.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name before it may hold spaces; user and system time are the 12th and 13th field after it.
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let times = fields.skip(11).take(2);
    times.map(|field| field.parse::<u64>().unwrap()).sum()
}

/// So many more nodes, all of them up.
async fn join(nodes: &mut Vec<Node>, station: &str, more: u64) {
    for n in 0..more {
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&(nodes.len() as u64).to_le_bytes());
        let node = Node::builder(SecretKey::from_seed(seed)).verify_threads(0);
        nodes.push(node.station(station).unwrap().start().unwrap());
        if n % TOGETHER as u64 == 0 || n + 1 == more {
            for node in nodes.iter().rev().take(TOGETHER) {
                node.connected(1, PATIENCE).await.unwrap();
            }
        }
    }
}

#[test]
fn an_idle_plain_link_takes_at_most_40_kib_of_a_station_and_next_to_no_time() {
    let links = setting("TIDINGS_LINKS", 200);
    let seconds = setting("TIDINGS_LINKS_SECONDS", 3);
    let station = Station::start(&[]);
    let process = station.process.0.id();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut nodes = Vec::new();
        join(&mut nodes, &station.address, WARM).await;
        let before = resident(process);
        join(&mut nodes, &station.address, links).await;
        let joined = resident(process);
        let began = ticks(process);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let spent = (ticks(process) - began) * 10;
        let after = resident(process);
        let each = |resident: u64| (resident.saturating_sub(before)) as f64 / links as f64;
        println!(
            "{links} idle links: {:.1} KiB each when they came, {:.1} KiB {seconds} s later, {spent} ms of processor time in those",
            each(joined),
            each(after)
        );
        for resident in [joined, after] {
            assert!(resident - before.min(resident) <= links * EACH_KIB, "{before} {joined} {after}");
        }
        // A twentieth of a core for ten thousand: two frames for each and 30 s.
        assert!(spent <= 20 * seconds + links * seconds / 200, "{spent} ms");
        for node in nodes {
            assert_eq!(node.status().links.len(), 1);
        }
    });
}
