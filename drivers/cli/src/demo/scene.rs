//! Who takes part in the demonstration: three stations, a publisher's node, and three subscribers that keep what they get.
//!
//! Decides: who connects to whom, and when everybody has had enough. Leaves to others: what is published, what goes wrong, and the
//! judgement. Believes: the runtime's clock, for waiting. Bounded by: 5 s to start, 5 s for the last copies, the days received.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings::code::ObjectFault;
use tidings::{Item, LinkState, Mode, NodeId, Notice, RealmId, Sources, Subscribe};
use tidings_tokio::{Node, StationServer, Subscription};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::data::{self, Day};
use super::ledger::{self, Account};
use super::nap::Napper;
use super::screen::Progress;
use super::trouble::{self, Mortal, Trouble};
use super::wire::Wire;
use super::{REALM, SLOWED_BY};
use crate::exit::{Exit, Failure};
use crate::{human, keyfile};

/// How long a link, and the last copies, may take.
pub(super) const WITHIN: Duration = Duration::from_secs(5);

/// Everybody who takes part.
pub(super) struct Scene {
    stations: [StationServer; 2],
    /// Where each of the three stations listens.
    addresses: [String; 3],
    pub(super) publisher: Node,
    subscribers: Vec<Subscriber>,
    days: Arc<Vec<Day>>,
    /// What a subscriber's link and thread are made of, until the end.
    _wire: Wire,
    _napper: Napper,
}

/// What was counted beside the ledger.
pub(super) struct Totals {
    pub(super) duplicates: u64,
}

impl Scene {
    /// Starts everybody and waits until its stations carry every subscription. What can be broken is handed out, with what is told of it.
    pub(super) async fn set(
        days: &Arc<Vec<Day>>,
    ) -> Result<(Self, Trouble, mpsc::Receiver<String>), Failure> {
        let any = "127.0.0.1:0";
        let a = trouble::station(keyfile::throwaway()?, any, Duration::ZERO).await?;
        let b = trouble::station(keyfile::throwaway()?, any, SLOWED_BY).await?;
        let c = Mortal::start().await?;
        let wire = Wire::lay(a.local_addr())
            .await
            .map_err(|error| broken(&error))?;
        let napper = Napper::start().map_err(|error| broken(&error))?;
        let all = [a.address(), b.address(), c.server.address()];
        let publisher = node(&all)?;
        let from = publisher.id();
        let cuttable = format!("tcp://{}@{}", a.id(), wire.address());
        let [at_a, at_b, at_c] = all.clone();
        let ordered = Subscriber::start(
            vec![at_a, at_b.clone()],
            from,
            Mode::Ordered,
            Arc::clone(days),
        );
        // All that it is runs on a thread that will sleep.
        let ordered = napper.handle().spawn(ordered).await;
        let ordered = ordered.map_err(|error| broken(&error))??;
        let latest = Subscriber::start(
            vec![cuttable, at_b],
            from,
            Mode::LatestOnly,
            Arc::clone(days),
        );
        let arrives =
            Subscriber::start(vec![at_c], from, Mode::AsArrives, Arc::clone(days)).await?;
        let subscribers = vec![ordered, latest.await?, arrives];
        publisher
            .connected(all.len(), WITHIN)
            .await
            .map_err(|error| broken(&error))?;
        let (told, tells) = mpsc::channel(16);
        let trouble = Trouble {
            cut: wire.cutter(),
            naps: napper.naps(),
            told,
            mortal: c,
        };
        let addresses =
            [&a, &b, &trouble.mortal.server].map(|one| format!("tcp://{}", one.local_addr()));
        let scene = Self {
            stations: [a, b],
            addresses,
            publisher,
            subscribers,
            days: Arc::clone(days),
            _wire: wire,
            _napper: napper,
        };
        Ok((scene, trouble, tells))
    }

    pub(super) fn addresses(&self) -> &[String; 3] {
        &self.addresses
    }

    /// The address of station A, with its identity.
    pub(super) fn station(&self) -> String {
        let [a, _] = &self.stations;
        a.address()
    }

    /// The line with which somebody else can listen in.
    pub(super) fn attach(&self) -> String {
        let [address, ..] = self.addresses();
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

    /// What subscribers were told since the last time, of what interrupted them.
    pub(super) fn news(&mut self) -> Vec<String> {
        let mut news = Vec::new();
        for one in &mut self.subscribers {
            let account = lock(&one.account);
            for notice in account.notices.iter().skip(one.told) {
                news.extend(headline(ledger::name(one.mode), notice));
            }
            one.told = account.notices.len();
        }
        news
    }

    /// Waits until everybody is carried again, has the last day and nothing more comes, 5 s at most.
    pub(super) async fn settle(&self, published: usize) {
        let deadline = Instant::now() + WITHIN;
        let state = || -> (bool, usize, u64) {
            let have_last = |one: &Subscriber| {
                let up = one.node.status().links;
                let up = up.iter().filter(|link| link.state == LinkState::Up);
                up.count() == one.stations
                    && one
                        .account()
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
    pub(super) async fn strike(self, mortal: Option<Mortal>) -> (Vec<Account>, Totals) {
        let mut accounts = Vec::new();
        let mut totals = Totals { duplicates: 0 };
        for subscriber in self.subscribers {
            totals.duplicates += subscriber.duplicates();
            accounts.push(subscriber.end().await);
        }
        self.publisher.close().await;
        let stations = self.stations.into_iter();
        for station in stations.chain(mortal.map(|mortal| mortal.server)) {
            station.close().await;
        }
        (accounts, totals)
    }
}

fn node(addresses: &[String]) -> Result<Node, Failure> {
    let mut builder = Node::builder(keyfile::throwaway()?).replication_factor(addresses.len());
    for address in addresses {
        builder = builder.station(address).map_err(|error| broken(&error))?;
    }
    // Nothing of a node that sleeps is to go on elsewhere.
    let builder = builder.verify_threads(0);
    builder.start().map_err(|error| broken(&error))
}

/// A notice of an interruption as a short line; none for the others, which are counted.
fn headline(name: &str, notice: &Notice) -> Option<String> {
    let what = match notice {
        Notice::Interrupted { reason, .. } => format!("interrupted ({reason})"),
        Notice::Resumed { recovered } => {
            // Each station counts all it had; the ledger counts what came of that.
            format!("resumed, {} replayed", human::count(*recovered))
        }
        Notice::Gap { reason, .. } => format!("gap ({reason})"),
        _ => return None,
    };
    Some(format!("{name}: {what}"))
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
    stations: usize,
    /// Notices shown so far.
    told: usize,
    account: Arc<Mutex<Account>>,
    stop: Arc<Notify>,
    reader: JoinHandle<Subscription>,
}

impl Subscriber {
    async fn start(
        stations: Vec<String>,
        publisher: NodeId,
        mode: Mode,
        days: Arc<Vec<Day>>,
    ) -> Result<Self, Failure> {
        let node = node(&stations)?;
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
            .carried(stations.len(), WITHIN)
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
                    Item::Fact(fact) => {
                        let payload = fact.decode().ok();
                        let day = payload.and_then(|payload| data::which(&days, &payload));
                        account.receive(day, fact.late(), fact.published_at());
                    }
                    Item::Notice(notice) => account.notice(*notice, human::now()),
                    _ => {}
                }
            }
        });
        Ok(Self {
            mode,
            node,
            stations: stations.len(),
            told: 0,
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
