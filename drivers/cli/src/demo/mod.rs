//! `tidings demo`: two stations, a publisher and three subscribers over real sockets, and a ledger made from what was received.
//!
//! Decides: the scene and its pace. Leaves to others: the network (the tokio driver), the judgement (`ledger`), the looks (`screen`).
//! Believes: the runtime's clock, for the pace. Bounded by: one data set, `--seconds`, and 3 s for the last copies.

mod data;
mod ledger;
mod screen;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tidings::code::ObjectFault;
use tidings::{Item, Mode, NodeId, Outcome, Publish, RealmId, Refusal, Sources, Subscribe};
use tidings_tokio::{Node, Pending, StationServer, Subscription};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::args::DemoArgs;
use crate::exit::{Exit, Failure, output_failed, print, say};
use crate::{human, keyfile};
use data::Day;
use ledger::{Account, Received, Row};
use screen::{Progress, Screen};

const REALM: &str = "demo";
const TOPIC: &str = "demo/noaa/weather/seattle/day_v1";
const SLOWED_BY: Duration = Duration::from_millis(40);
const MODES: [Mode; 3] = [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives];
/// How often the publisher has its turn and the screen is redrawn.
const TICK: Duration = Duration::from_millis(40);

/// Runs `tidings demo`.
pub(crate) async fn run(args: DemoArgs) -> Result<Exit, Failure> {
    let days = Arc::new(data::days());
    let scene = Scene::set(&days).await?;
    let screen = Screen::new(args.json);
    let began = Instant::now();
    let mut told = Told {
        screen,
        failed: None,
    };
    let opened = told.screen.open(
        days.len(),
        &scene.addresses(),
        SLOWED_BY.as_millis(),
        &scene.attach(),
    );
    told.keep(opened);

    let pace = Duration::from_secs(args.seconds);
    let mut publisher = Publisher {
        node: &scene.publisher,
        days: &days,
        published: 0,
        pending: Vec::new(),
    };
    let played = tokio::select! {
        played = play(&mut publisher, &scene, &mut told, pace) => played,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    played?;
    let published = publisher.published;
    let outcomes = publisher.settle().await;
    scene.settle(published).await;
    told.show(&scene.progress(published));

    let (mut accounts, totals) = scene.strike().await;
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
    let balances = findings.is_empty() && rows.iter().all(Row::balances);
    if args.json {
        let ledger = json!({
            "published": published,
            "routed": outcomes.routed,
            "second_copies_dropped": totals.duplicates,
            "seconds": began.elapsed().as_secs_f64(),
            "sabotage": spoilt,
            "subscribers": rows.iter().map(Row::json).collect::<Vec<_>>(),
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
        let closed = told.screen.close(&rows, &answers, &findings, &next);
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
        None => format!(
            "try next: {program} demo --sabotage drop\n          {program} station\n          {program} explain skipped\n"
        ),
    }
}

/// The screen, and the first failure to write to it: the run goes on without a reader, and says so at its end.
struct Told {
    screen: Screen,
    failed: Option<std::io::Error>,
}

impl Told {
    fn keep(&mut self, written: std::io::Result<()>) {
        if let (Err(error), None) = (written, &self.failed) {
            self.failed = Some(error);
        }
    }

    fn show(&mut self, progress: &Progress) {
        let written = self.screen.show(progress);
        self.keep(written);
    }
}

/// Publishes at the pace and shows it, until all is published or nobody looks any more.
async fn play(
    publisher: &mut Publisher<'_>,
    scene: &Scene,
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
        told.show(&scene.progress(publisher.published));
    }
    Ok(())
}

/// Everybody who takes part.
struct Scene {
    stations: [StationServer; 2],
    publisher: Node,
    subscribers: Vec<Subscriber>,
    days: Arc<Vec<Day>>,
}

/// What was counted beside the ledger.
struct Totals {
    duplicates: u64,
}

impl Scene {
    /// Starts everybody and waits until both stations carry every subscription.
    async fn set(days: &Arc<Vec<Day>>) -> Result<Self, Failure> {
        let stations = [station(Duration::ZERO).await?, station(SLOWED_BY).await?];
        let publisher = node(&stations)?;
        let mut subscribers = Vec::new();
        for mode in MODES {
            subscribers
                .push(Subscriber::start(&stations, publisher.id(), mode, Arc::clone(days)).await?);
        }
        let within = Duration::from_secs(5);
        publisher
            .connected(stations.len(), within)
            .await
            .map_err(|error| broken(&error))?;
        Ok(Self {
            stations,
            publisher,
            subscribers,
            days: Arc::clone(days),
        })
    }

    fn addresses(&self) -> [String; 2] {
        self.stations
            .each_ref()
            .map(|station| format!("tcp://{}", station.local_addr()))
    }

    /// The line with which somebody else can listen in.
    fn attach(&self) -> String {
        let [address, _] = self.addresses();
        let line = format!("sub 'demo/**' --from open --station {address}");
        let program = human::program();
        if program.len() + 1 + line.len() <= 80 {
            format!("{program} {line}")
        } else {
            format!("tidings {line}")
        }
    }

    fn progress(&self, published: usize) -> Progress {
        let newest = published
            .checked_sub(1)
            .and_then(|n| self.days.get(n))
            .map_or_else(String::new, |day| {
                format!("{}, {}, {:.1} °C", day.date, day.weather, day.temp_max)
            });
        Progress {
            total: self.days.len(),
            published,
            delivered: self
                .subscribers
                .iter()
                .map(|one| (ledger::name(one.mode), one.account().facts.len()))
                .collect(),
            notices: self
                .subscribers
                .iter()
                .map(|one| one.account().notices.len())
                .sum(),
            duplicates: self.subscribers.iter().map(Subscriber::duplicates).sum(),
            newest,
        }
    }

    /// Waits until everybody has the last day and nothing more comes, 3 s at most.
    async fn settle(&self, published: usize) {
        let deadline = Instant::now() + Duration::from_secs(3);
        let state = || -> (bool, usize, u64) {
            let have_last = |one: &Subscriber| {
                one.account()
                    .facts
                    .iter()
                    .rev()
                    .take(64)
                    .any(|fact| fact.day.is_some_and(|day| day + 1 == published))
            };
            let items = self
                .subscribers
                .iter()
                .map(|one| one.account().facts.len())
                .sum();
            (
                self.subscribers.iter().all(have_last),
                items,
                self.subscribers.iter().map(Subscriber::duplicates).sum(),
            )
        };
        let mut before = state();
        while Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let now = state();
            if (now.0 || published == 0) && now == before {
                return;
            }
            before = now;
        }
    }

    /// Ends everybody and hands over what each subscriber got.
    async fn strike(self) -> (Vec<Account>, Totals) {
        let mut accounts = Vec::new();
        let mut totals = Totals { duplicates: 0 };
        for subscriber in self.subscribers {
            totals.duplicates += subscriber.duplicates();
            accounts.push(subscriber.end().await);
        }
        self.publisher.close().await;
        for station in self.stations {
            station.close().await;
        }
        (accounts, totals)
    }
}

async fn station(slowed_by: Duration) -> Result<StationServer, Failure> {
    let builder = StationServer::builder(keyfile::throwaway()?)
        .listen("127.0.0.1:0")
        .map_err(|error| broken(&error))?;
    builder
        .delay_writes(slowed_by)
        .start()
        .await
        .map_err(|error| broken(&error))
}

fn node(stations: &[StationServer]) -> Result<Node, Failure> {
    let mut builder = Node::builder(keyfile::throwaway()?);
    for station in stations {
        let address = format!("tcp://{}@{}", station.id(), station.local_addr());
        builder = builder.station(&address).map_err(|error| broken(&error))?;
    }
    builder.start().map_err(|error| broken(&error))
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        Exit::NoStation,
        format!("cannot set the demo up: {error}. are loopback sockets allowed here?"),
    )
}

/// One node with one subscription, and what came.
struct Subscriber {
    mode: Mode,
    node: Node,
    account: Arc<Mutex<Account>>,
    stop: Arc<Notify>,
    reader: JoinHandle<Subscription>,
}

impl Subscriber {
    async fn start(
        stations: &[StationServer],
        publisher: NodeId,
        mode: Mode,
        days: Arc<Vec<Day>>,
    ) -> Result<Self, Failure> {
        let node = node(stations)?;
        let request = Subscribe::new(
            RealmId::of_name(REALM),
            "demo/**",
            Sources::Nodes(vec![publisher]),
        )
        .mode(mode);
        let mut subscription = node
            .subscribe(request)
            .map_err(|refused| broken(&refused.reason))?;
        subscription
            .carried(stations.len(), Duration::from_secs(5))
            .await
            .map_err(|error| broken(&error))?;
        let account = Arc::new(Mutex::new(Account::new(mode)));
        let stop = Arc::new(Notify::new());
        let (book, stopped) = (Arc::clone(&account), Arc::clone(&stop));
        let reader = tokio::spawn(async move {
            loop {
                let item = tokio::select! {
                    biased;
                    item = subscription.next() => item,
                    () = stopped.notified() => None,
                };
                let Some(item) = item else {
                    return subscription;
                };
                let mut account = lock(&book);
                match item {
                    Item::Fact(fact) => account.facts.push(Received {
                        day: fact
                            .decode()
                            .ok()
                            .and_then(|payload| data::which(&days, &payload)),
                        late: fact.late(),
                        published_at: fact.published_at(),
                    }),
                    Item::Notice(notice) => account.notices.push(*notice),
                    _ => {}
                }
            }
        });
        Ok(Self {
            mode,
            node,
            account,
            stop,
            reader,
        })
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        lock(&self.account)
    }

    /// Second copies its node threw away.
    fn duplicates(&self) -> u64 {
        self.node.status().faults.of(ObjectFault::Duplicate)
    }

    /// Ends it and hands over what it got.
    async fn end(self) -> Account {
        self.stop.notify_one();
        // A reader that failed leaves what it had received before.
        let status = self
            .reader
            .await
            .ok()
            .and_then(|subscription| subscription.status());
        self.node.close().await;
        let mut account = lock(&self.account);
        account.superseded = status.map_or(0, |status| status.superseded);
        std::mem::replace(&mut account, Account::new(self.mode))
    }
}

fn lock(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
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
