//! The programs of the mio driver: what `tidings station`, `pub` and `sub --json` are for the tokio one, as far as this test needs it.

use std::collections::VecDeque;
use std::io::{BufRead, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidings::{
    Delivery, Item, Mode, Notice, OnFull, Outcome, Publish, RealmId, Refusal, Sources, Subscribe,
    crypto::SecretKey,
};
use tidings_mio::{Node, NodeSettings, Pending, StationServer, StationSettings};

use crate::audit::Audit;

const MINUTE: Duration = Duration::from_secs(60);

const PROBE: tidings::Duration = tidings::Duration::from_secs(1);

/// Serves until it is killed. Where, it says as the command does.
pub(crate) fn station(listen: &str) {
    let settings = StationSettings::new(SecretKey::from_seed([0x53; 32]));
    let settings = settings.configure(|config| config.probe_every(PROBE));
    let settings = settings.listen(listen).expect("a good address");
    let station = StationServer::start(settings).expect("it starts");
    println!("--station {}", station.address());
    loop {
        std::thread::park();
    }
}

fn node(seed: u8, stations: &[String]) -> Node {
    let settings = NodeSettings::new(SecretKey::from_seed([seed; 32]));
    let settings = settings.configure(|config| config.probe_every(PROBE));
    let settings = stations.iter().fold(settings, |settings, station| {
        settings.station(station).expect("a good address")
    });
    let node = Node::start(settings).expect("it starts");
    node.connected(1, MINUTE).expect("a station in time");
    node
}

fn realm() -> RealmId {
    RealmId::of_name("faults")
}

/// Publishes each line of its standard input.
pub(crate) fn publish(topic: &str, stations: &[String]) {
    let node = node(0x51, stations);
    let (mut pending, mut counts) = (VecDeque::new(), Counts::default());
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("text");
        pending.push_back(send(&node, topic, &line));
        counts.published += 1;
        while pending.len() > 4096 {
            counts.settle(&mut pending);
        }
    }
    while !pending.is_empty() {
        counts.settle(&mut pending);
    }
    eprintln!(
        "published {}, refused {}, unknown {}",
        counts.published, counts.refused, counts.unknown
    );
    node.close();
}

fn send(node: &Node, topic: &str, line: &str) -> Pending {
    let mut request = Publish::new(realm(), topic, line).expect("a text is a payload");
    loop {
        match node.try_publish(request) {
            Ok(pending) => return pending,
            Err(refused) => {
                assert!(
                    matches!(refused.reason, Refusal::NoStation | Refusal::WouldBlock),
                    "{:?}",
                    refused.reason
                );
                std::thread::sleep(Duration::from_millis(10));
                request = refused.request;
            }
        }
    }
}

#[derive(Default)]
struct Counts {
    published: u64,
    refused: u64,
    unknown: u64,
}

impl Counts {
    fn settle(&mut self, pending: &mut VecDeque<Pending>) {
        match pending.pop_front().map(Pending::wait) {
            Some(Outcome::Refused { .. }) => self.refused += 1,
            Some(Outcome::Unknown) => self.unknown += 1,
            _ => {}
        }
    }
}

/// Writes what comes to its standard output, until its standard input ends.
pub(crate) fn subscribe(filter: &str, stations: &[String]) {
    let node = node(0x52, stations);
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        told.store(true, Ordering::Relaxed);
    });
    let request = Subscribe::new(realm(), filter, Sources::Open).on_full(OnFull::Pause);
    let mut facts = node.subscribe(request).expect("subscribed");
    let (mut audit, mut carriers) = (Audit::default(), 0);
    let mut out = std::io::stdout().lock();
    while !ended.load(Ordering::Relaxed) {
        let item = facts.next(Duration::from_millis(100));
        let now = facts.status().map_or(0, |status| status.carriers);
        if now != carriers {
            carriers = now;
            eprintln!("carried by {now} of {} stations", stations.len());
        }
        let line = match item {
            Some(Item::Fact(fact)) => {
                audit.fact(&fact);
                of_fact(&fact)
            }
            Some(Item::Notice(notice)) => {
                audit.notice(&notice);
                of_notice(&notice)
            }
            _ => continue,
        };
        writeln!(out, "{line}").expect("written");
    }
    let (ledger, _) = audit.close(Mode::Ordered, facts.status().as_ref(), 0);
    eprintln!("{ledger}");
    node.close();
}

/// As `sub --json` writes it.
fn of_fact(fact: &Delivery) -> String {
    let payload: String = fact.decode().expect("a text");
    // The payload last, as the reader of this file looks for it there.
    format!(
        "{{\"topic\":\"{}\",\"seq\":{},\"published_at\":{},\"late\":{},\"payload\":{}}}",
        fact.topic(),
        fact.seq(),
        fact.published_at().as_millis(),
        fact.late(),
        Value::from(payload),
    )
}

fn of_notice(notice: &Notice) -> String {
    let mut line = json!({ "notice": notice.code().text() });
    let more = match notice {
        Notice::Gap {
            from, to, reason, ..
        } => json!({
            "from": from.as_millis(), "to": to.as_millis(), "reason": reason.text(),
        }),
        Notice::Interrupted { from, reason } => json!({
            "from": from.as_millis(), "reason": reason.text(),
        }),
        Notice::Resumed { recovered } => json!({ "recovered": recovered }),
        Notice::Skipped { of, first, last } => json!({
            "topic": of.topic, "first": first, "last": last,
        }),
        _ => json!({}),
    };
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    line.to_string()
}
