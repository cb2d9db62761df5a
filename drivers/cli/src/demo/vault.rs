//! A sealed group in the demonstration: its members, a reader without keys, an intruder, and somebody who looks at what the station gets.
//!
//! Decides: who knows what, and when the keys change. Leaves to others: sealing, opening and refusing, which are the core's. Believes: the host's date, for
//! which key period it is, and the runtime's clock, for the pace. Bounded by: [`FACTS`] of each of two publishers, 5 s for the last of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tidings::code::{SealPolicy, UnopenedReason};
use tidings::inbound::sources::SourceAnswer;
use tidings::{
    Delivery, Group, GroupId, Item, KeyPeriods, KeyQuestion, NodeId, Notice, Publish, RealmId,
    Source, Sources, Subscribe, WallMs,
};
use tidings_tokio::{Answers, Node, Reply, SharedKeys, Subscription, Table};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::scene::{WITHIN, broken};
use super::wire::Tap;
use crate::exit::Failure;
use crate::human::{self, count};
use crate::keyfile;

/// A realm of its own, so that whoever attaches to the demonstration sees the weather alone.
const REALM: &str = "vault";
const PREFIX: &str = "vault/acme";
const TOPIC: &str = "vault/acme/safe_v1";
/// Facts that are sealed, and as many of the intruder's.
const FACTS: u64 = 40;
/// As often as keys may change at most.
const ROTATION_MS: u64 = 60_000;
/// What is sealed begins with it.
const SECRET: &str = "the safe opens with";
/// What the intruder says begins with it.
const LIE: &str = "trust me, it opens with";

fn realm() -> RealmId {
    RealmId::of_name(REALM)
}

/// Whoever has the group's secret, with the time so shifted that its keys change while somebody looks.
struct Keeper {
    table: Table,
    keys: SharedKeys,
    /// In ms; set before a group is joined.
    ahead: Arc<AtomicU64>,
}

impl Answers for Keeper {
    fn keys(&mut self, question: KeyQuestion, reply: Reply<Result<KeyPeriods, UnopenedReason>>) {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let wall = WallMs::new(human::now()).saturating_add(ahead);
        let given = self.keys.periods(question.which, wall);
        reply.answer(given.map(|mut given| {
            for period in &mut given.periods {
                let times = [
                    &mut period.issued_at,
                    &mut period.publish_until,
                    &mut period.accept_until,
                ];
                for time in times {
                    *time = time.saturating_sub(ahead);
                }
            }
            given
        }));
    }

    fn source(
        &mut self,
        realm: RealmId,
        source: Source,
        publisher: NodeId,
        reply: Reply<SourceAnswer>,
    ) {
        self.table.source(realm, source, publisher, reply);
    }
}

/// What a reader got.
#[derive(Debug, Default)]
struct Got {
    texts: Vec<String>,
    /// Ids of the keys it was sealed under, as they changed.
    keys: Vec<[u8; 8]>,
    unopened: u64,
    /// Notices of another kind.
    others: u64,
}

impl Got {
    /// Whether a key is another than that of the last fact.
    fn take(&mut self, fact: &Delivery) -> bool {
        self.texts.push(fact.decode().unwrap_or_default());
        let key = fact.seal_key_id().unwrap_or_default();
        let changed = self.keys.last() != Some(&key);
        if changed {
            self.keys.push(key);
        }
        changed && self.keys.len() > 1
    }
}

/// A node with one subscription, and what it got.
struct Reader {
    node: Node,
    got: Arc<Mutex<Got>>,
    reading: JoinHandle<()>,
}

impl Reader {
    fn start(node: Node, mut facts: Subscription, told: mpsc::Sender<String>) -> Self {
        let got = Arc::new(Mutex::new(Got::default()));
        let book = Arc::clone(&got);
        let reading = tokio::spawn(async move {
            while let Some(item) = facts.next().await {
                let mut got = lock(&book);
                match item {
                    Item::Fact(fact) if got.take(&fact) => {
                        let news = "the sealed group changes its key";
                        told.try_send(news.to_owned()).ok();
                    }
                    Item::Notice(notice) => match *notice {
                        Notice::Unopened { .. } => got.unopened += 1,
                        _ => got.others += 1,
                    },
                    _ => {}
                }
            }
        });
        Self { node, got, reading }
    }

    fn got(&self) -> MutexGuard<'_, Got> {
        lock(&self.got)
    }

    async fn end(self) -> Got {
        self.reading.abort();
        self.node.close().await;
        std::mem::take(&mut lock(&self.got))
    }
}

fn lock(got: &Mutex<Got>) -> MutexGuard<'_, Got> {
    got.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everybody of it.
pub(super) struct Vault {
    publisher: Node,
    group: GroupId,
    /// When its keys change, in ms as the host's date has it.
    change: u64,
    intruder: Node,
    member: Reader,
    outsider: Reader,
    tap: Tap,
}

impl Vault {
    /// Starts everybody at one station, whose `address` names its identity. The keys change when some of `pace` is over.
    pub(super) async fn open(
        address: &str,
        pace: Duration,
        told: mpsc::Sender<String>,
    ) -> Result<Self, Failure> {
        let (id, at) = address.rsplit_once('@').unwrap_or(("tcp://", address));
        let at = at.parse().map_err(|error| broken(&error))?;
        let tap = Tap::lay(at).await.map_err(|error| broken(&error))?;
        let tapped = format!("{id}@{}", tap.address());

        let secret = keyfile::random_seed()?;
        let policy = SealPolicy::Required;
        let keys = SharedKeys::new(realm(), PREFIX, policy, ROTATION_MS, &secret)
            .map_err(|error| broken(&error))?;
        let ahead = Arc::new(AtomicU64::new(0));
        let key = keyfile::throwaway()?;
        let table = Table::new().member(realm(), key.node_id());
        let keeper = || Keeper {
            table: table.clone(),
            keys: keys.clone(),
            ahead: Arc::clone(&ahead),
        };
        let start = |key, address: &str| Node::builder(key).station(address);
        let run = |builder: tidings_tokio::NodeBuilder| builder.start().map_err(|e| broken(&e));

        let publisher = start(key, &tapped).map_err(|error| broken(&error))?;
        let publisher = run(publisher.answers(keeper()))?;
        let intruder = start(keyfile::throwaway()?, &tapped).map_err(|error| broken(&error))?;
        let intruder = run(intruder)?;
        let member = start(keyfile::throwaway()?, address).map_err(|error| broken(&error))?;
        let member = run(member.answers(keeper()))?;
        let outsider = start(keyfile::throwaway()?, address).map_err(|error| broken(&error))?;
        let outsider = run(outsider.answers(table))?;
        for node in [&publisher, &intruder, &member, &outsider] {
            let connected = node.connected(1, WITHIN).await;
            connected.map_err(|error| broken(&error))?;
        }
        // From here on it goes fast.
        let change = human::now() + pace.mul_f64(0.4).as_millis() as u64 + 300;
        ahead.store(ROTATION_MS - change % ROTATION_MS, Ordering::Relaxed);
        let group = join(&publisher)?;
        let opened = subscribe(&member, wanted().group(join(&member)?)).await?;
        let closed = subscribe(&outsider, wanted()).await?;
        let member = Reader::start(member, opened, told.clone());
        let outsider = Reader::start(outsider, closed, told);
        Ok(Self {
            publisher,
            group,
            change,
            intruder,
            member,
            outsider,
            tap,
        })
    }

    /// Publishes, both of them, within most of `pace`, and says what came of it.
    pub(super) async fn play(self, pace: Duration) -> Result<Report, Failure> {
        let began = Instant::now();
        for n in 0..FACTS {
            let share = n as f64 / FACTS as f64;
            tokio::time::sleep_until(began + pace.mul_f64(0.8 * share)).await;
            // However long the pace: half of it under one key, half under the next.
            while n == FACTS / 2 && human::now() <= self.change {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let sealed = said(SECRET, n)?.group(self.group);
            for (node, request) in [(&self.publisher, sealed), (&self.intruder, said(LIE, n)?)] {
                let published = node.publish(request).await;
                published.map_err(|refused| broken(&refused.reason))?;
            }
        }
        let deadline = Instant::now() + WITHIN;
        // One whose lookup is not over is refused for being in the clear.
        let refused = || -> u64 {
            let status = self.member.node.status();
            let sources = status.sources.refused.iter().map(|(_, count)| *count);
            let counters = status.counters.iter();
            let clear = counters.filter(|(name, _)| *name == "clear_refused");
            sources.chain(clear.map(|(_, count)| *count)).sum()
        };
        let come = || {
            let opened = self.member.got().texts.len() as u64;
            opened >= FACTS && self.outsider.got().unopened >= FACTS && refused() >= FACTS
        };
        while !come() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let refused = refused();
        let (member, outsider) = (self.member.end().await, self.outsider.end().await);
        self.publisher.close().await;
        self.intruder.close().await;
        let seen = self.tap.seen();
        Ok(Report {
            opened: member.texts,
            keys: member.keys.len() as u64,
            unopened: outsider.unopened,
            read_without_keys: outsider.texts.len() as u64,
            others: member.others + outsider.others,
            refused,
            bytes: seen.len() as u64,
            topics: times(&seen, TOPIC),
            secrets: times(&seen, SECRET),
            lies: times(&seen, LIE),
        })
    }
}

fn wanted() -> Subscribe {
    Subscribe::new(realm(), TOPIC, Sources::Members)
}

fn join(node: &Node) -> Result<GroupId, Failure> {
    let joined = node.join_group(Group::new(realm(), PREFIX));
    joined.map_err(|refused| broken(&refused.reason))
}

async fn subscribe(node: &Node, request: Subscribe) -> Result<Subscription, Failure> {
    let facts = node.subscribe(request);
    let mut facts = facts.map_err(|refused| broken(&refused.reason))?;
    let carried = facts.carried(1, WITHIN).await;
    carried.map_err(|error| broken(&error))?;
    Ok(facts)
}

fn text(head: &str, n: u64) -> String {
    format!("{head} {n}")
}

fn said(head: &str, n: u64) -> Result<Publish, Failure> {
    Publish::new(realm(), TOPIC, &text(head, n)).map_err(|error| broken(&error))
}

/// How often a text stands in these bytes.
fn times(bytes: &[u8], text: &str) -> u64 {
    let windows = bytes.windows(text.len());
    windows
        .filter(|window| *window == text.as_bytes())
        .count()
        .try_into()
        .unwrap_or(u64::MAX)
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Report {
    /// What the member read.
    opened: Vec<String>,
    /// Under so many keys, one after the other.
    keys: u64,
    /// What the reader without keys was told it cannot read.
    unopened: u64,
    read_without_keys: u64,
    others: u64,
    /// Of the intruder's, by the member.
    refused: u64,
    /// What the station was sent by both publishers, and how often it holds the topic, what was sealed, and what was not.
    bytes: u64,
    topics: u64,
    secrets: u64,
    lies: u64,
}

impl Report {
    /// What is not as it must be.
    pub(super) fn findings(&self) -> Vec<String> {
        let expected = (0..FACTS).map(|n| text(SECRET, n));
        let rules = [
            (
                expected.eq(self.opened.iter().cloned()),
                "a member did not open all, in order and nothing else",
            ),
            (self.keys >= 2, "its key did not change"),
            (
                self.unopened == FACTS && self.read_without_keys == 0,
                "a reader without keys was not told of each fact once",
            ),
            (self.others == 0, "its readers were told of something else"),
            (
                self.refused == FACTS,
                "the intruder was not refused each time",
            ),
            (self.secrets == 0, "the station could read it"),
            (
                self.topics > 0 && self.lies > 0,
                "the station did not see what is in the clear",
            ),
        ];
        let broken = rules.iter().filter(|(holds, _)| !holds);
        broken
            .map(|(_, what)| format!("sealed group: {what}"))
            .collect()
    }

    /// Three lines for the ledger.
    pub(super) fn lines(&self) -> String {
        let opened = count(self.opened.len() as u64);
        format!(
            "  sealed group  {} sealed, {opened} opened under {} keys; without keys {} unopened\n\
             \x20 intruder      {} published, {} refused: no member, and in the clear\n\
             \x20 station A     of {} bytes: the topic {} times, what was sealed {} times\n",
            count(FACTS),
            count(self.keys),
            count(self.unopened),
            count(FACTS),
            count(self.refused),
            count(self.bytes),
            count(self.topics),
            count(self.secrets),
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "published": FACTS,
            "opened": self.opened.len(),
            "keys": self.keys,
            "unopened_without_keys": self.unopened,
            "intruder_published": FACTS,
            "intruder_refused": self.refused,
            "station_bytes": self.bytes,
            "station_saw_topic": self.topics,
            "station_saw_sealed": self.secrets,
            "station_saw_clear": self.lies,
        })
    }
}
