//! `tidings pub`: every line of a file becomes a publication, and every publication gets its answer.
//!
//! Decides: what is published when, and what the run's exit code is. Leaves to others: numbering, signing, windows and answers; they
//! are the core's. Believes: the runtime's clock, for `--rate` and progress. Bounded by: [`MAX_PENDING`] unanswered publications and
//! the reader's chunks, however long the input is.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidings::{GroupId, Outcome, Publish, RealmId, Refusal, topic};
use tidings_tokio::{Node, Pending};
use tokio::time::Instant;

use crate::args::{NodeArgs, PubArgs};
use crate::exit::{Exit, Failure, say};
use crate::human::{self, count};
use crate::lines::{self, Chunks, ReadError};
use crate::{groupfile, keyfile, node, payload};

/// Publications whose answers are waited for at once, those the core has settled but this side has not looked at included.
const MAX_PENDING: usize = 4096;

/// The longest file `--raw` reads: more than any station takes as one publication, so that the core says what it allows.
const RAW_MAX: u64 = lines::MAX_LINE as u64;

/// To the start of the row, which is emptied.
const ERASE: &str = "\r\x1b[K";

/// Runs `tidings pub`.
pub(crate) async fn run(args: PubArgs) -> Result<Exit, Failure> {
    topic::check_topic(&args.topic).map_err(|fault| {
        Failure::usage(format!(
            "cannot publish to {:?}: {fault}. a topic is 1 to 16 segments joined by /, without *",
            args.topic
        ))
    })?;
    if topic::is_system(&args.topic) {
        return Err(Failure::usage(format!(
            "cannot publish to {:?}: topics that begin with _ belong to the system. choose another",
            args.topic
        )));
    }
    if args.ttl.is_some_and(|ttl| ttl > Duration::from_secs(3600)) {
        return Err(Failure::usage(
            "cannot publish: --ttl is over one hour. choose a shorter life",
        ));
    }
    let realm = node::realm(args.node.realm.as_deref(), &args.topic)?;
    let seal = &args.seal;
    let configured = args.node.file.keys.as_ref();
    let (named, wanted) = (seal.keys.as_deref(), seal.group.as_deref());
    let sealing = groupfile::choose(named, configured, wanted, realm, &args.topic)?;
    let input = lines::open(&args.file)?;
    let node = node::start(&args.node, true, sealing.table())?;
    let prefix = sealing.prefix.as_deref();
    let group = node::join(&node, realm, prefix)?;
    tokio::select! {
        connected = node::connected(&node, &args.node) => connected?,
        _ = tokio::signal::ctrl_c() => {
            say(Ledger::new().line());
            return Ok(Exit::NoStation);
        }
    }
    keyfile::introduce(node.id(), args.node.key.as_deref());
    if let Some(prefix) = prefix {
        say(format_args!("sealed for group {prefix}"));
    }

    let ledger = Ledger::new();
    let mut sender = Sender {
        args: &args,
        realm,
        group,
        ledger: &ledger,
        outbox: Outbox::new(&node, &args.node, &ledger),
    };
    let ended = tokio::select! {
        ended = sender.publish_all(input) => ended,
        () = ledger.show_progress() => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    sender.outbox.settle_ready();
    node.close().await;
    let erase = if human::stderr_is_terminal() {
        ERASE
    } else {
        ""
    };
    say(format_args!("{erase}{}", ledger.line()));
    if ledger.no_subscriber.get() > 0 {
        say(
            "nobody subscribed to some of them when they arrived. start tidings sub first if somebody should",
        );
    }
    ended.map(|()| ledger.exit())
}

/// What became of this run's publications.
#[derive(Debug)]
pub(crate) struct Ledger {
    began: Instant,
    pub(crate) published: Cell<u64>,
    routed: Cell<u64>,
    no_subscriber: Cell<u64>,
    refused: Cell<u64>,
    unknown: Cell<u64>,
    last_refusal: Cell<Option<&'static str>>,
}

fn add_one(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            published: Cell::new(0),
            routed: Cell::new(0),
            no_subscriber: Cell::new(0),
            refused: Cell::new(0),
            unknown: Cell::new(0),
            last_refusal: Cell::new(None),
        }
    }

    fn settle(&self, outcome: Outcome) {
        match outcome {
            Outcome::Routed { .. } => add_one(&self.routed),
            Outcome::NoSubscriber => add_one(&self.no_subscriber),
            Outcome::Refused(reason) => {
                add_one(&self.refused);
                self.last_refusal.set(Some(reason.text()));
            }
            _ => add_one(&self.unknown),
        }
    }

    fn answered(&self) -> u64 {
        self.routed.get() + self.no_subscriber.get() + self.refused.get() + self.unknown.get()
    }

    fn unanswered(&self) -> u64 {
        self.published.get() - self.answered()
    }

    pub(crate) fn line(&self) -> String {
        let spent = self.began.elapsed();
        let mut line = format!(
            "published {}: routed {}, no subscriber {}, refused {}, unknown {}",
            count(self.published.get()),
            count(self.routed.get()),
            count(self.no_subscriber.get()),
            count(self.refused.get()),
            count(self.unknown.get()),
        );
        if self.unanswered() > 0 {
            line += &format!(", unanswered {}", count(self.unanswered()));
        }
        if let Some(reason) = self.last_refusal.get() {
            line += &format!(" (last refusal: {reason})");
        }
        line + &format!("; {}{}", human::span(spent), self.rate())
    }

    /// Publications a second, once there is enough time to divide by.
    fn rate(&self) -> String {
        let spent = self.began.elapsed().as_secs_f64();
        if spent < 0.1 {
            return String::new();
        }
        format!(
            ", {}/s",
            count((self.published.get() as f64 / spent) as u64)
        )
    }

    pub(crate) fn exit(&self) -> Exit {
        if self.refused.get() > 0 {
            Exit::Refused
        } else if self.unknown.get() + self.unanswered() > 0 {
            Exit::Lost
        } else {
            Exit::Done
        }
    }

    /// Says how far it is, for ever: in place each second on a terminal, a line each five seconds elsewhere.
    async fn show_progress(&self) {
        let terminal = human::stderr_is_terminal();
        let mut tick = tokio::time::interval(Duration::from_secs(if terminal { 1 } else { 5 }));
        tick.tick().await;
        loop {
            tick.tick().await;
            if terminal {
                // Short enough for one row, which the next one and the ledger take again.
                let (published, answered) = (count(self.published.get()), count(self.answered()));
                say(format_args!(
                    "{ERASE}published {published}, answered {answered}{}\x1b[1A",
                    self.rate()
                ));
            } else {
                say(self.line());
            }
        }
    }
}

/// Publishes and waits.
struct Sender<'a> {
    args: &'a PubArgs,
    realm: RealmId,
    group: Option<GroupId>,
    ledger: &'a Ledger,
    outbox: Outbox<'a>,
}

impl Sender<'_> {
    async fn publish_all(&mut self, input: Box<dyn std::io::Read + Send>) -> Result<(), Failure> {
        let done = if self.args.raw {
            self.publish_whole(input).await
        } else {
            self.publish_lines(lines::chunks(input)).await
        };
        // What was published before a bad line is waited for too.
        self.outbox.settle_all().await;
        done
    }

    async fn publish_whole(&mut self, input: Box<dyn std::io::Read + Send>) -> Result<(), Failure> {
        let shown = self.args.file.display();
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(input, RAW_MAX), &mut bytes)
                .map(|_| bytes)
        });
        let bytes = match read.await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => {
                return Err(Failure::usage(format!(
                    "cannot read {shown}: {error}. name another file"
                )));
            }
            Err(error) => {
                return Err(Failure::usage(format!(
                    "cannot read {shown}: {error}. try again"
                )));
            }
        };
        let request = self.request(payload::bytes(&bytes));
        self.send(request, 0).await
    }

    async fn publish_lines(&mut self, mut chunks: Chunks) -> Result<(), Failure> {
        let mut number = 0u64;
        let began = Instant::now();
        while let Some(chunk) = chunks.recv().await {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(ReadError::Io(error)) => {
                    return Err(Failure::usage(format!(
                        "cannot read {}: {error}. what came before was published",
                        self.args.file.display()
                    )));
                }
                Err(ReadError::LineTooLong) => {
                    return Err(Failure::usage(format!(
                        "cannot publish line {}: it is longer than {} bytes. what came before was published; use --raw, or split it",
                        number + 1,
                        count(RAW_MAX)
                    )));
                }
            };
            for line in lines::split(&chunk) {
                number += 1;
                let bad = |why: String| {
                    Failure::usage(format!(
                        "cannot publish line {number}: {why}. what came before was published"
                    ))
                };
                let text = std::str::from_utf8(line).map_err(|_| {
                    bad("it is not UTF-8; publish the file as bytes with --raw".to_owned())
                })?;
                let request = if !self.args.json {
                    self.request(payload::text(text))
                } else if text.trim().is_empty() {
                    continue;
                } else {
                    let value = payload::from_json(text).map_err(bad)?;
                    Publish::new(self.realm, self.args.topic.as_str(), &value)
                        .map_err(|fault| bad(format!("the wire cannot carry it ({fault})")))?
                };
                if let Some(rate) = self.args.rate {
                    let due = Duration::from_secs_f64(
                        self.ledger.published.get() as f64 / f64::from(rate),
                    );
                    tokio::time::sleep_until(began + due).await;
                }
                self.send(request, number).await?;
                if number.is_multiple_of(64) {
                    // Progress and Ctrl-C have their turn also when nothing ever blocks.
                    tokio::task::yield_now().await;
                }
            }
        }
        Ok(())
    }

    fn request(&self, cbor: Vec<u8>) -> Publish {
        Publish::raw(self.realm, self.args.topic.as_str(), cbor)
    }

    /// Publishes line `number`, or the whole file for 0.
    async fn send(&mut self, mut request: Publish, number: u64) -> Result<(), Failure> {
        if let Some(ttl) = self.args.ttl {
            request = request.ttl(ttl);
        }
        if let Some(group) = self.group {
            request = request.group(group);
        }
        let other = match self.outbox.send(request).await {
            Ok(()) => return Ok(()),
            Err(Unsent::NoStation(failure)) => return Err(failure),
            Err(Unsent::Refused(reason)) => reason,
        };
        let what = if number == 0 {
            "the file".to_owned()
        } else {
            format!("line {number}")
        };
        let why = match other {
            Refusal::EpochNotKept { .. } => match &self.args.node.key {
                Some(key) => format!(
                    "{} cannot be written. see its owner, its mode and its folder",
                    keyfile::epoch_file(key).display()
                ),
                None => other.to_string(),
            },
            Refusal::TooLarge { limit } => {
                format!(
                    "it is too large, {} bytes are allowed. publish less at once",
                    count(limit.into())
                )
            }
            other => format!("{other}. what came before was published"),
        };
        Err(Failure::usage(format!("cannot publish {what}: {why}")))
    }
}

/// Why something was not published.
#[derive(Debug)]
pub(crate) enum Unsent {
    NoStation(Failure),
    Refused(Refusal),
}

/// Publications under way.
pub(crate) struct Outbox<'a> {
    node: &'a Node,
    args: &'a NodeArgs,
    ledger: &'a Ledger,
    pending: VecDeque<Pending>,
}

impl<'a> Outbox<'a> {
    pub(crate) fn new(node: &'a Node, args: &'a NodeArgs, ledger: &'a Ledger) -> Self {
        Self {
            node,
            args,
            ledger,
            pending: VecDeque::new(),
        }
    }

    /// Publishes, waiting for room as long as it takes and for a station as long as `--wait`.
    pub(crate) async fn send(&mut self, mut request: Publish) -> Result<(), Unsent> {
        loop {
            self.settle_ready();
            if self.pending.len() >= MAX_PENDING
                && let Some(front) = self.pending.pop_front()
            {
                self.ledger.settle(front.await);
            }
            let refused = match self.node.try_publish(request) {
                Ok(pending) => {
                    add_one(&self.ledger.published);
                    self.pending.push_back(pending);
                    return Ok(());
                }
                Err(refused) => refused,
            };
            match refused.reason {
                Refusal::WouldBlock | Refusal::GroupPending { .. } => {
                    self.node.ready_to_publish().await
                }
                Refusal::NoStation => node::connected(self.node, self.args)
                    .await
                    .map_err(Unsent::NoStation)?,
                other => return Err(Unsent::Refused(other)),
            }
            request = refused.request;
        }
    }

    /// Books every answer.
    pub(crate) async fn settle_all(&mut self) {
        while let Some(pending) = self.pending.pop_front() {
            self.ledger.settle(pending.await);
        }
    }

    /// Books the answers that are there, without waiting.
    fn settle_ready(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Some(front) = self.pending.front_mut() {
            let Poll::Ready(outcome) = Pin::new(front).poll(&mut context) else {
                return;
            };
            self.ledger.settle(outcome);
            self.pending.pop_front();
        }
    }
}
