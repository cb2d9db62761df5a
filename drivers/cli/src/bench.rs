//! `tidings bench`: facts at full speed through real sockets, counted at the other end.
//!
//! Decides: what is measured, and that a run in which anything went missing fails. Leaves to others: publishing (`publish.rs`), nodes and
//! stations. Believes: the wall clock of both ends, for latencies; on one machine it is one clock. Bounded by: `--count`, five bytes of
//! memory each; [`QUIET`] without a fact.

use std::time::Duration;

use serde_json::{Value, json};
use tidings::{Item, OnFull, Publish, Sources, Subscribe};
use tidings_tokio::{Node, StationServer, Subscription, Table};
use tokio::time::{Instant, interval, timeout};

use crate::args::{BenchCommand, LoadArgs, NodeArgs};
use crate::config::NodePart;
use crate::exit::{Exit, Failure, print, say};
use crate::human::count;
use crate::publish::{Ledger, Outbox, Unsent};
use crate::{keyfile, node};

const TOPIC: &str = "bench/facts";
/// So long without a fact, after the first, and the rest is missing.
const QUIET: Duration = Duration::from_secs(10);
/// The most facts one run counts.
const MOST: u64 = 100_000_000;

/// Its number, of how many, when it was published in wall microseconds, and padding.
type Load = (u64, u64, u64, String);

/// Runs `tidings bench`.
pub(crate) async fn run(command: BenchCommand) -> Result<Exit, Failure> {
    match command {
        BenchCommand::Pair { tls, load } => pair(&load, tls).await,
        BenchCommand::Pub { load, node: args } => {
            let node = node::start(&args, true, Table::new())?;
            node::connected(&node, &args).await?;
            let cpu = cpu();
            let (spent, ledger) = publish(&node, &args, &load).await?;
            node.close().await;
            let mut rows = vec![rate("published", load.count, spent)];
            rows.extend(cpu_since(cpu, load.count));
            say(ledger.line());
            show(&rows, load.json)?;
            Ok(ledger.exit())
        }
        BenchCommand::Sub { json, node: args } => {
            let node = node::start(&args, false, Table::new())?;
            let mut facts = subscribe(&node, &args, Sources::Open)?;
            node::connected(&node, &args).await?;
            say("waiting for tidings bench pub");
            let cpu = cpu();
            let mut told = Told::default();
            told.read(&mut facts, None).await?;
            node.close().await;
            let mut rows = told.rows();
            rows.extend(cpu_since(cpu, told.received));
            show(&rows, json)?;
            Ok(told.exit())
        }
    }
}

async fn pair(load: &LoadArgs, tls: bool) -> Result<Exit, Failure> {
    let stations = [station(tls).await?, station(tls).await?];
    let args = NodeArgs {
        stations: stations.iter().map(StationServer::address).collect(),
        config: None,
        file: NodePart::default(),
        key: None,
        realm: None,
        wait: Duration::from_secs(5),
        probe: None,
    };
    let (publisher, reader) = (
        node::start(&args, false, Table::new())?,
        node::start(&args, false, Table::new())?,
    );
    let sources = Sources::Nodes(vec![publisher.id()]);
    let mut facts = subscribe(&reader, &args, sources)?;
    node::connected(&publisher, &args).await?;
    let carried = facts.carried(2, args.wait).await;
    carried.map_err(|error| Failure::usage(format!("cannot subscribe: {error}. try again")))?;
    let cpu = cpu();
    let mut told = Told::default();
    let (published, read) = tokio::join!(
        publish(&publisher, &args, load),
        told.read(&mut facts, Some(load.count))
    );
    let (spent, ledger) = published?;
    read?;
    let mut rows = vec![rate("published", load.count, spent)];
    rows.extend(told.rows());
    rows.extend(cpu_since(cpu, load.count));
    say(ledger.line());
    show(&rows, load.json)?;
    Ok(ledger.exit().max(told.exit()))
}

async fn station(tls: bool) -> Result<StationServer, Failure> {
    let scheme = if tls { "tls" } else { "tcp" };
    let builder = StationServer::builder(keyfile::throwaway()?)
        .listen(&format!("{scheme}://127.0.0.1:0"))
        .map_err(|error| Failure::usage(format!("cannot listen: {error}. try again")))?;
    let started = builder.start().await;
    started.map_err(|error| node::start_failure(&error))
}

fn subscribe(node: &Node, args: &NodeArgs, sources: Sources) -> Result<Subscription, Failure> {
    let request = Subscribe::new(node::realm(args.realm.as_deref(), TOPIC)?, TOPIC, sources)
        .on_full(OnFull::Pause);
    node.subscribe(request).map_err(|refused| {
        Failure::usage(format!("cannot subscribe to {TOPIC}: {refused}. try again"))
    })
}

#[allow(
    clippy::disallowed_types,
    reason = "latencies are finer than the core's milliseconds, and between processes"
)]
fn wall_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// Publishes all of it and waits for every answer.
async fn publish(
    node: &Node,
    args: &NodeArgs,
    load: &LoadArgs,
) -> Result<(Duration, Ledger), Failure> {
    let realm = node::realm(args.realm.as_deref(), TOPIC)?;
    let began = Instant::now();
    let ledger = Ledger::new();
    let mut outbox = Outbox::new(node, args, &ledger);
    let padding = "x".repeat(load.size as usize);
    for number in 0..load.count {
        let value = (number, load.count, wall_micros(), padding.as_str());
        let request = Publish::new(realm, TOPIC, &value)
            .map_err(|fault| Failure::usage(format!("cannot publish: {fault}. choose a --size")))?;
        match outbox.send(request).await {
            Ok(()) => {}
            Err(Unsent::NoStation(failure)) => return Err(failure),
            Err(Unsent::Refused(reason)) => {
                let line = format!("cannot publish: {reason}. try a smaller --size");
                return Err(Failure::usage(line));
            }
        }
        if number.is_multiple_of(64) {
            tokio::task::yield_now().await;
        }
    }
    outbox.settle_all().await;
    drop(outbox);
    Ok((began.elapsed(), ledger))
}

fn not_ours() -> Failure {
    Failure::usage(format!(
        "cannot count what came on {TOPIC}: it is not from bench pub. publish nothing else there"
    ))
}

/// What a subscriber counted.
#[derive(Default)]
struct Told {
    /// Which numbers came.
    came: Vec<bool>,
    latencies: Vec<u32>,
    received: u64,
    twice: u64,
    notices: u64,
    spent: Duration,
}

impl Told {
    /// Reads until all came, or none for [`QUIET`].
    async fn read(&mut self, facts: &mut Subscription, of: Option<u64>) -> Result<(), Failure> {
        if let Some(of) = of {
            self.came.resize(of as usize, false);
        }
        let mut began: Option<Instant> = None;
        let mut tick = interval(Duration::from_secs(1));
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                biased;
                _ = tick.tick() => {
                    if began.is_some() {
                        say(format_args!("received {}", count(self.received)));
                    }
                    if (began.is_some() || of.is_some()) && heard.elapsed() >= QUIET {
                        break;
                    }
                }
                item = facts.next() => match item {
                    Some(Item::Fact(fact)) => {
                        heard = Instant::now();
                        let began = *began.get_or_insert(heard);
                        let load: Result<Load, _> = fact.decode();
                        let (number, of, sent, _) = load.map_err(|_| not_ours())?;
                        self.take(number, of, sent);
                        self.spent = began.elapsed();
                        if self.received == self.came.len() as u64 {
                            break;
                        }
                    }
                    Some(Item::Notice(notice)) => {
                        self.notices += 1;
                        say(format_args!("notice: {}", notice.code()));
                    }
                    Some(_) => {}
                    None => break,
                },
            }
        }
        // What comes once more would come about now.
        while let Ok(Some(item)) = timeout(Duration::from_millis(200), facts.next()).await {
            self.twice += u64::from(matches!(item, Item::Fact(_)));
        }
        Ok(())
    }

    fn take(&mut self, number: u64, of: u64, sent: u64) {
        if self.came.is_empty() {
            self.came.resize(of.min(MOST) as usize, false);
        }
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        match self.came.get_mut(place) {
            Some(came) if !*came => {
                *came = true;
                self.received += 1;
                let late = wall_micros().saturating_sub(sent);
                self.latencies.push(u32::try_from(late).unwrap_or(u32::MAX));
            }
            // Heard before, or of another run.
            _ => self.twice += 1,
        }
    }

    fn missing(&self) -> u64 {
        self.came.len() as u64 - self.received
    }

    fn rows(&mut self) -> Vec<Row> {
        self.latencies.sort_unstable();
        let at = |percent: usize| {
            let place = self.latencies.len().saturating_sub(1) * percent / 100;
            f64::from(self.latencies.get(place).copied().unwrap_or(0)) / 1000.0
        };
        vec![
            rate("received", self.received, self.spent),
            ("latency_p50", at(50), "ms"),
            ("latency_p99", at(99), "ms"),
            ("missing", self.missing() as f64, ""),
            ("twice", self.twice as f64, ""),
            ("notices", self.notices as f64, ""),
        ]
    }

    fn exit(&self) -> Exit {
        if self.received == 0 || self.missing() + self.twice > 0 {
            Exit::Lost
        } else {
            Exit::Done
        }
    }
}

/// One figure of the result: its name, how much, of what.
type Row = (&'static str, f64, &'static str);

fn rate(name: &'static str, facts: u64, spent: Duration) -> Row {
    let seconds = spent.as_secs_f64().max(1e-6);
    (name, facts as f64 / seconds, "facts/s")
}

/// Processor time of this process for each fact, where the system tells it.
fn cpu_since(before: Option<Duration>, facts: u64) -> Option<Row> {
    let spent = cpu()?.checked_sub(before?)?;
    let micros = spent.as_secs_f64() * 1e6 / facts.max(1) as f64;
    Some(("cpu", micros, "us/fact"))
}

/// User and system time so far, in steps of 10 ms.
fn cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before it may hold spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis(10 * (user + system)))
}

fn show(rows: &[Row], as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        let figure = |(name, figure, unit): &Row| match *unit {
            "" => ((*name).to_owned(), json!(*figure as u64)),
            _ => ((*name).to_owned(), json!(figure)),
        };
        let object: serde_json::Map<String, Value> = rows.iter().map(figure).collect();
        return print(&format!("{}\n", Value::from(object)));
    }
    let mut table = String::new();
    for (name, figure, unit) in rows {
        let shown = if *figure >= 100.0 || unit.is_empty() {
            count(*figure as u64)
        } else {
            format!("{figure:.2}")
        };
        table += format!("{name:<12} {shown:>12} {unit}").trim_end();
        table.push('\n');
    }
    print(&table)
}
