//! `tidings demo`: three stations, a publisher and three subscribers over real sockets, outages, a sealed group beside them, and a ledger made from what was
//! received.
//!
//! Decides: the pace. Leaves to others: the network (the tokio driver), what goes wrong (`trouble`), the judgement (`ledger`), the looks
//! (`screen`). Believes: the runtime's clock, for the pace. Bounded by: one data set, `--seconds`, and 10 s for the last outage and copies.

mod data;
mod ledger;
mod nap;
mod scene;
mod screen;
mod trouble;
mod vault;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidings::{Outcome, Publish, RealmId, Refusal};
use tidings_tokio::{Node, Pending};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::args::DemoArgs;
use crate::exit::{Exit, Failure, output_failed, print, say};
use crate::human;
use data::Day;
use ledger::Row;
use scene::{Scene, broken};
use screen::Screen;
use vault::{Report, Vault};

const REALM: &str = "demo";
const TOPIC: &str = "demo/noaa/weather/seattle/day_v1";
const SLOWED_BY: Duration = Duration::from_millis(40);
/// How often the publisher has its turn and the screen is redrawn.
const TICK: Duration = Duration::from_millis(40);

/// Runs `tidings demo`.
pub(crate) async fn run(args: DemoArgs) -> Result<Exit, Failure> {
    let days = Arc::new(data::days());
    let (mut scene, trouble, tells) = Scene::set(&days).await?;
    let screen = Screen::new(args.json);
    let began = Instant::now();
    let mut told = Told {
        screen,
        failed: None,
        began,
        tells,
    };
    let opened = told.screen.open(
        days.len(),
        scene.addresses(),
        SLOWED_BY.as_millis(),
        &scene.attach(),
    );
    told.keep(opened);

    let pace = Duration::from_secs(args.seconds);
    let vault = Vault::open(&scene.station(), pace, trouble.told.clone()).await?;
    let mut vault = tokio::spawn(vault.play(pace));
    let mut trouble = tokio::spawn(trouble.make(pace));
    let node = scene.publisher.clone();
    let mut publisher = Publisher {
        node: &node,
        days: &days,
        published: 0,
        pending: Vec::new(),
    };
    let (played, interrupted) = tokio::select! {
        played = play(&mut publisher, &mut scene, &mut told, pace) => (played, false),
        _ = tokio::signal::ctrl_c() => (Ok(()), true),
    };
    played?;
    let published = publisher.published;
    // Nobody looks any more, or all of it is to be seen.
    let (mortal, sealed) = if interrupted || told.failed.is_some() {
        trouble.abort();
        vault.abort();
        (None, None)
    } else {
        let mortal = told.until(&mut trouble, &mut scene, published).await?;
        let sealed = told.until(&mut vault, &mut scene, published).await?;
        (Some(mortal), Some(sealed))
    };
    let outcomes = publisher.settle().await;
    scene.settle(published).await;
    told.look(&mut scene, published);

    let (mut accounts, totals) = scene.strike(mortal).await;
    let spoilt = args
        .sabotage
        .and_then(|how| Some(accounts.first_mut()?.spoil(how)));
    let dates: Vec<&str> = days.iter().map(|day| day.date).collect();
    let rows: Vec<Row> = accounts
        .iter()
        .map(|account| account.close(published, &dates))
        .collect();
    let mut findings: Vec<String> = rows
        .iter()
        .flat_map(|row| row.findings.iter().cloned())
        .collect();
    if outcomes.routed != published as u64 {
        findings.push(format!(
            "publisher: {} of {published} were routed",
            outcomes.routed
        ));
    }
    findings.extend(sealed.iter().flat_map(Report::findings));
    let balances = findings.is_empty() && rows.iter().all(Row::balances);
    if args.json {
        let ledger = json!({
            "published": published,
            "routed": outcomes.routed,
            "second_copies_dropped": totals.duplicates,
            "seconds": began.elapsed().as_secs_f64(),
            "sabotage": spoilt,
            "subscribers": rows.iter().map(Row::json).collect::<Vec<_>>(),
            "sealed": sealed.as_ref().map(Report::json),
            "findings": findings,
            "silently_lost": rows.iter().map(|row| row.silently_lost).sum::<u64>(),
            "balances": balances,
        });
        print(&format!("{ledger:#}\n"))?;
    } else {
        let answers = format!(
            "{} routed of {} published, {} second copies dropped, {}",
            human::count(outcomes.routed),
            human::count(published as u64),
            human::count(totals.duplicates),
            human::span(began.elapsed()),
        );
        let next = next_steps(spoilt.as_deref());
        let sealed = sealed.as_ref().map_or_else(String::new, Report::lines);
        let closed = told
            .screen
            .close(&rows, &sealed, &answers, &findings, &next);
        told.keep(closed);
    }
    match told.failed {
        Some(error) => output_failed(&error),
        None if balances => Ok(Exit::Done),
        None => {
            if args.json {
                say(format_args!(
                    "the ledger does not balance: {}",
                    findings.join("; ")
                ));
            }
            Ok(Exit::Lost)
        }
    }
}

fn next_steps(spoilt: Option<&str>) -> String {
    let program = human::program();
    match spoilt {
        Some(spoilt) => format!("sabotage: {spoilt}\n"),
        None => format!("try next: {program} demo --sabotage drop; {program} explain gap\n"),
    }
}

/// The screen, and the first failure to write to it: the run goes on without a reader, and says so at its end.
struct Told {
    screen: Screen,
    failed: Option<std::io::Error>,
    began: Instant,
    /// What goes wrong.
    tells: mpsc::Receiver<String>,
}

impl Told {
    fn keep(&mut self, written: std::io::Result<()>) {
        if let (Err(error), None) = (written, &self.failed) {
            self.failed = Some(error);
        }
    }

    /// Shows it until a task is done.
    async fn until<T>(
        &mut self,
        task: &mut JoinHandle<Result<T, Failure>>,
        scene: &mut Scene,
        published: usize,
    ) -> Result<T, Failure> {
        loop {
            tokio::select! {
                done = &mut *task => return done.map_err(|error| broken(&error))?,
                () = tokio::time::sleep(TICK) => self.look(scene, published),
            }
        }
    }

    /// Shows what happened since the last time, and how far everybody is.
    fn look(&mut self, scene: &mut Scene, published: usize) {
        let after = self.began.elapsed();
        let told = std::iter::from_fn(|| self.tells.try_recv().ok());
        let news: Vec<String> = told.chain(scene.news()).collect();
        for what in &news {
            let written = self.screen.tell(after, what);
            self.keep(written);
        }
        let written = self.screen.show(&scene.progress(published));
        self.keep(written);
    }
}

/// Publishes at the pace and shows it, until all is published or nobody looks any more.
async fn play(
    publisher: &mut Publisher<'_>,
    scene: &mut Scene,
    told: &mut Told,
    pace: Duration,
) -> Result<(), Failure> {
    let began = Instant::now();
    let mut tick = tokio::time::interval(TICK);
    while publisher.published < publisher.days.len() && told.failed.is_none() {
        tick.tick().await;
        let share = began.elapsed().as_secs_f64() / pace.as_secs_f64();
        let due = (publisher.days.len() as f64 * share).ceil() as usize;
        publisher
            .publish_until(due.min(publisher.days.len()))
            .await?;
        told.look(scene, publisher.published);
    }
    Ok(())
}

/// What the stations answered.
struct Outcomes {
    routed: u64,
}

/// Publishes the days in order.
struct Publisher<'a> {
    node: &'a Node,
    days: &'a [Day],
    published: usize,
    pending: Vec<Pending>,
}

impl Publisher<'_> {
    /// Publishes so that `due` days are out.
    async fn publish_until(&mut self, due: usize) -> Result<(), Failure> {
        while let Some(day) = self.days[..due].get(self.published) {
            let mut request = Publish::new(RealmId::of_name(REALM), TOPIC, &day.payload())
                .map_err(|error| broken(&error))?;
            loop {
                match self.node.try_publish(request) {
                    Ok(pending) => break self.pending.push(pending),
                    Err(refused) if refused.reason == Refusal::WouldBlock => {
                        self.node.ready_to_publish().await;
                        request = refused.request;
                    }
                    Err(refused) => return Err(broken(&refused.reason)),
                }
            }
            self.published += 1;
        }
        Ok(())
    }

    /// Waits for every answer; each comes within 5 s.
    async fn settle(self) -> Outcomes {
        let mut routed = 0;
        for pending in self.pending {
            routed += u64::from(matches!(pending.await, Outcome::Routed { .. }));
        }
        Outcomes { routed }
    }
}
