//! Who takes part in the demonstration: two stations, a publisher's node, and three subscribers that keep what they get.
//!
//! Decides: who connects to whom, and when everybody has had enough. Leaves to others: what is published, and the judgement. Believes:
//! the runtime's clock, for waiting. Bounded by: 5 s to start, 3 s for the last copies, the days received.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings::code::ObjectFault;
use tidings::{Item, Mode, NodeId, RealmId, Sources, Subscribe};
use tidings_tokio::{Node, StationServer, Subscription};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::data::{self, Day};
use super::ledger::{self, Account, Received};
use super::screen::Progress;
use super::{REALM, SLOWED_BY};
use crate::exit::{Exit, Failure};
use crate::{human, keyfile};

const MODES: [Mode; 3] = [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives];

/// Everybody who takes part.
pub(super) struct Scene {
    stations: [StationServer; 2],
    pub(super) publisher: Node,
    subscribers: Vec<Subscriber>,
    days: Arc<Vec<Day>>,
}

/// What was counted beside the ledger.
pub(super) struct Totals {
    pub(super) duplicates: u64,
}

impl Scene {
    /// Starts everybody and waits until both stations carry every subscription.
    pub(super) async fn set(days: &Arc<Vec<Day>>) -> Result<Self, Failure> {
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

    pub(super) fn addresses(&self) -> [String; 2] {
        self.stations
            .each_ref()
            .map(|station| format!("tcp://{}", station.local_addr()))
    }

    /// The line with which somebody else can listen in.
    pub(super) fn attach(&self) -> String {
        let [address, _] = self.addresses();
        let line = format!("sub 'demo/**' --from open --station {address}");
        let program = human::program();
        if program.len() + 1 + line.len() <= 80 {
            format!("{program} {line}")
        } else {
            format!("tidings {line}")
        }
    }

    pub(super) fn progress(&self, published: usize) -> Progress {
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
    pub(super) async fn settle(&self, published: usize) {
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
    pub(super) async fn strike(self) -> (Vec<Account>, Totals) {
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

pub(super) fn broken(error: &dyn std::fmt::Display) -> Failure {
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
