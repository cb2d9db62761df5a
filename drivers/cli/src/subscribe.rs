//! `tidings sub`: facts to standard output, everything else to standard error, and a ledger at the end.
//!
//! Decides: when the run is over and when positions are kept: after the facts before them were taken. Leaves to others: order, and what is missing; they are the core's. Believes: no
//! clock but the notices' times, and the runtime's for keeping. Bounded by: two buffers on their way to a slow pipe; then the stream fills, and then
//! `on_full: pause` stops the links, so that nothing is lost.

use std::future::Future;
use std::io::IsTerminal;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tidings::{Delivery, Item, Mode, Notice, OnFull, Sources, Subscribe, topic};
use tidings_tokio::{Node, Subscription};

use crate::args::{self, SubArgs};
use crate::audit::Audit;
use crate::exit::{Exit, Failure, output_failed, say};
use crate::output::{Closed, Fault, Output, Then};
use crate::resume::Kept;
use crate::show::Show;
use crate::signals::Told;
use crate::sourcefile::{self, Speakers};
use crate::{groupfile, keyfile, node};

/// Runs `tidings sub`.
pub(crate) async fn run(args: SubArgs) -> Result<Exit, Failure> {
    topic::check_filter(&args.filter).map_err(|fault| {
        Failure::usage(format!(
            "cannot subscribe to {:?}: {fault}. a filter is 1 to 16 segments joined by /; * is one whole segment, ** the last ones",
            args.filter
        ))
    })?;
    if topic::is_system(&args.filter) {
        return Err(Failure::usage(format!(
            "cannot subscribe to {:?}: topics that begin with _ belong to the system. choose another",
            args.filter
        )));
    }
    let realm = node::realm(args.node.realm.as_deref(), &args.filter)?;
    let sources = args::sources(&args.from)?;
    let kept = match &args.resume {
        Some(file) => Some(Kept::open(file, realm, &args.filter)?),
        None => None,
    };
    let (seal, configured) = (&args.seal, &args.node.file);
    let (named, wanted) = (seal.keys.as_deref(), seal.group.as_deref());
    let sealing = groupfile::choose(named, configured.keys.as_ref(), wanted, realm, &args.filter)?;
    let looked_up = matches!(sources, Sources::Members | Sources::Org(_));
    let table = known(&args, &sources)?.fill(sealing.table());
    let node = node::start(&args.node, false, table)?;
    let group = node::join(&node, realm, sealing.prefix.as_deref())?;
    let mode = Mode::from(args.mode);
    let heard = format!("hears {} from {sources}", args.filter);
    let request = Subscribe::new(realm, args.filter.as_str(), sources)
        .mode(mode)
        .on_full(OnFull::Pause);
    let request = match &kept {
        Some(kept) => going_on(request, kept)?,
        None => request,
    };
    let request = match group {
        Some(group) => request.group(group),
        None => request,
    };
    // Subscribed before the first link is up: no fact can come between.
    let mut subscription = node.subscribe(request).map_err(|refused| {
        Failure::usage(format!(
            "cannot subscribe to {:?}: {refused}. correct the filter or the sources",
            args.filter
        ))
    })?;
    let mut told = Told::listen();
    tokio::select! {
        connected = node::connected(&node, &args.node) => connected?,
        () = told.wait() => {
            say(Audit::default().close(mode, None, 0).0);
            return Ok(Exit::NoStation);
        }
    }
    keyfile::introduce(node.id(), args.node.key.as_deref());
    say(heard);

    let mut reader = Reader {
        show: Show::new(&args, std::io::stdout().is_terminal()),
        count: args.count,
        stations: args.node.stations.len(),
        audit: Audit::default(),
        carriers: 0,
        refused: false,
        kept,
        kept_at: Instant::now(),
        last: None,
        refusal_told: !looked_up,
        seals: group.map(|_| node.clone()),
        clear_told: false,
        looked_at: Instant::now(),
    };
    let mut out = Output::start();
    let interrupted = tokio::select! {
        // A closed pipe is told by `finish` below.
        _ = reader.read(&mut subscription, &mut out) => false,
        () = told.wait() => true,
    };
    let then = reader.positions(&subscription, true);
    // A pipe nobody reads must not hold up a run that was interrupted.
    let written = out
        .finish(then, interrupted.then_some(Duration::from_secs(1)))
        .await;
    reader.look();
    let counters = node.status().counters;
    let clear = counters.iter().find(|(name, _)| *name == "clear_refused");
    let clear = clear.map_or(0, |(_, count)| *count);
    let status = subscription.status();
    let (ledger, bad) = reader.audit.close(mode, status.as_ref(), clear);
    node.close().await;
    match written {
        Err(Fault::Output(error)) => return output_failed(&error),
        Err(Fault::Then(failure)) => {
            say(ledger);
            return Err(failure);
        }
        Ok(()) => say(ledger),
    }
    Ok(match (bad, reader.refused && reader.audit.delivered == 0) {
        (true, _) => Exit::Lost,
        (false, true) => Exit::Refused,
        (false, false) => Exit::Done,
    })
}

/// Whom the files of this run know, where that is asked for.
fn known(args: &SubArgs, sources: &Sources) -> Result<Speakers, Failure> {
    let realm = node::realm_name(args.node.realm.as_deref(), &args.filter);
    let file = args.sources.as_ref().or(args.node.file.sources.as_ref());
    match (sources, file) {
        (Sources::Members | Sources::Org(_), Some(file)) => {
            let speakers = sourcefile::load(file)?;
            speakers.check(file, realm, sources)?;
            Ok(speakers)
        }
        (Sources::Members | Sources::Org(_), None) => Err(Failure::usage(format!(
            "cannot subscribe: nothing says who are members. give --sources FILE with [[realm]], name = {realm:?} and members = [\"NODEID\"], or node.sources in the configuration"
        ))),
        _ => Ok(Speakers::default()),
    }
}

/// How often it is asked for what was refused in the clear.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often positions are kept.
const KEEP_EVERY: Duration = Duration::from_secs(1);

struct Reader {
    show: Show,
    count: Option<u64>,
    stations: usize,
    audit: Audit,
    carriers: usize,
    refused: bool,
    /// Where positions are kept, if anywhere.
    kept: Option<Kept>,
    kept_at: Instant,
    /// The last fact, where positions are kept.
    last: Option<Delivery>,
    /// A fact was refused because of its publisher, which is said once, where publishers are looked up.
    refusal_told: bool,
    /// Something in the clear was refused, which is said once.
    clear_told: bool,
    /// The node, where it may refuse what is in the clear.
    seals: Option<Node>,
    looked_at: Instant,
}

/// The request of a run that goes on where the last one ended.
fn going_on(request: Subscribe, kept: &Kept) -> Result<Subscribe, Failure> {
    match kept.positions() {
        Some(positions) => request.resume_from(positions).map_err(|_| kept.malformed()),
        None => Ok(request.committing()),
    }
}

impl Reader {
    /// Reads until the stream ends, `--count` facts came or nobody takes the output.
    async fn read(
        &mut self,
        subscription: &mut Subscription,
        out: &mut Output,
    ) -> Result<(), Closed> {
        loop {
            if self.looked_at.elapsed() >= LOOK_EVERY {
                self.looked_at = Instant::now();
                self.look();
            }
            if self.kept_at.elapsed() >= KEEP_EVERY {
                self.kept_at = Instant::now();
                if let Some(then) = self.positions(subscription, false) {
                    out.then(then).await?;
                }
            }
            let item = match ready(subscription.next()) {
                Some(item) => item,
                None => {
                    out.flush().await?;
                    self.say_status(subscription);
                    tokio::select! {
                        item = subscription.next() => item,
                        () = out.closed() => return Err(Closed),
                        () = tokio::time::sleep(Duration::from_millis(100)) => continue,
                    }
                }
            };
            match item {
                None => return Ok(()),
                Some(Item::Fact(fact)) => {
                    self.audit.fact(&fact);
                    self.show.fact(out.buffer(), &fact);
                    if self.kept.is_some() {
                        self.last = Some(fact);
                    }
                }
                Some(Item::Notice(notice)) => {
                    self.say_status(subscription);
                    self.refused |= matches!(*notice, Notice::SubscriptionRefused { .. });
                    self.audit.notice(&notice);
                    self.show.notice(out.buffer(), &notice);
                }
                Some(_) => {}
            }
            if out.is_full() {
                out.flush().await?;
            }
            if self
                .count
                .is_some_and(|count| self.audit.delivered >= count)
            {
                return Ok(());
            }
        }
    }

    /// Tells the ledger which numbers were refused because they were in the clear.
    fn look(&mut self) {
        let refused = self
            .seals
            .as_ref()
            .map(|node| node.status().refused_in_clear);
        for run in refused.iter().flatten() {
            if !std::mem::replace(&mut self.clear_told, true) {
                say(format_args!(
                    "refused: {} of {} of {} is in the clear. its publisher lacks --keys FILE; further ones are counted",
                    run.first, run.topic, run.publisher
                ));
            }
            if let Some(epoch) = run.epoch {
                let numbers = (run.first, run.last);
                self.audit
                    .refused(run.publisher, epoch, &run.topic, numbers);
            }
        }
    }

    /// What keeps the positions behind the last fact; nothing when nothing came, or when they are kept already and not wanted `again`.
    fn positions(&mut self, subscription: &Subscription, again: bool) -> Option<Then> {
        // What cannot be committed now can be once the next item was taken.
        let positions = subscription.commit(self.last.as_ref()?).ok()?;
        let keep = self.kept.as_mut()?.keep(positions, again)?;
        Some(Box::new(keep))
    }

    fn say_status(&mut self, subscription: &Subscription) {
        let status = subscription.status();
        let carriers = status.as_ref().map_or(0, |status| status.carriers);
        if !self.refusal_told && status.is_some_and(|status| status.source_refused > 0) {
            self.refusal_told = true;
            say(
                "refused: a fact whose publisher is none of them. list its node id to hear it; further ones are counted",
            );
        }
        if carriers != self.carriers {
            self.carriers = carriers;
            say(format_args!(
                "carried by {carriers} of {} stations",
                self.stations
            ));
        }
    }
}

/// What the future gives without waiting.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
