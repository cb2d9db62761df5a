//! The suite is worth something: a driver with a bug fails it.

mod driver;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tidings::crypto::SecretKey;
use tidings::{Group, GroupId, Item, Outcome, Publish, Refusal, Subscribe};
use tidings_suite::{Driver, Seen};
use tidings_tokio::{Answers, Node, StationServer, StationSettings, Subscription};

type Tokio = driver::On<false>;

/// What a planted bug does to the items of a stream.
const DUPLICATES: u8 = 0;
const LOSES: u8 = 1;
const SWAPS: u8 = 2;
const SWALLOWS_NOTICES: u8 = 3;
const SAYS_ROUTED: u8 = 4;
const TAKES_ANY_ADDRESS: u8 = 5;

/// The driver, with one bug.
struct Broken<const BUG: u8>(Tokio);

/// A subscription, what it has still to give, and how much it gave.
struct Bent {
    inner: Subscription,
    kept: Vec<Item>,
    given: u64,
}

fn copy(item: &Item) -> Option<Item> {
    match item {
        Item::Fact(fact) => Some(Item::Fact(fact.clone())),
        _ => None,
    }
}

impl<const BUG: u8> Driver for Broken<BUG> {
    const SECURE: bool = Tokio::SECURE;
    type Station = StationServer;
    type Node = Node;
    type Subscription = Bent;
    type Error = <Tokio as Driver>::Error;

    fn new() -> Self {
        Self(Tokio::new())
    }

    fn start_station(&self, settings: StationSettings) -> Result<StationServer, Self::Error> {
        self.0.start_station(settings)
    }

    fn seen(&self, station: &StationServer) -> Seen {
        self.0.seen(station)
    }

    fn station_address(&self, station: &StationServer) -> String {
        self.0.station_address(station)
    }

    fn kill_station(&self, station: StationServer) {
        self.0.kill_station(station);
    }

    fn close_station(&self, station: StationServer) {
        self.0.close_station(station);
    }

    fn start_node(&self, key: SecretKey, stations: &[String]) -> Result<Node, Self::Error> {
        let elsewhere = ["tcp://127.0.0.1:9".to_owned()];
        let stations = if BUG == TAKES_ANY_ADDRESS {
            &elsewhere
        } else {
            stations
        };
        self.0.start_node(key, stations)
    }

    fn start_probing_node(
        &self,
        key: SecretKey,
        stations: &[String],
        every: Duration,
    ) -> Result<Self::Node, Self::Error> {
        self.0.start_probing_node(key, stations, every)
    }

    fn start_answered_node(
        &self,
        key: SecretKey,
        stations: &[String],
        answers: impl Answers + 'static,
    ) -> Result<Node, Self::Error> {
        self.0.start_answered_node(key, stations, answers)
    }

    fn join_group(&self, node: &Node, group: Group) -> Result<GroupId, Refusal> {
        self.0.join_group(node, group)
    }

    fn connected(&self, node: &Node, stations: usize, within: Duration) -> bool {
        self.0.connected(node, stations, within)
    }

    fn failure(&self, node: &Node) -> Option<&'static str> {
        self.0.failure(node)
    }

    fn close_node(&self, node: Node) {
        self.0.close_node(node);
    }

    fn subscribe(&self, node: &Node, request: Subscribe) -> Result<Bent, Refusal> {
        let inner = self.0.subscribe(node, request)?;
        Ok(Bent {
            inner,
            kept: Vec::new(),
            given: 0,
        })
    }

    fn carried(&self, subscription: &mut Bent, stations: usize, within: Duration) -> bool {
        self.0.carried(&mut subscription.inner, stations, within)
    }

    fn next(&self, subscription: &mut Bent, within: Duration) -> Option<Item> {
        if let Some(kept) = subscription.kept.pop() {
            return Some(kept);
        }
        let item = self.0.next(&mut subscription.inner, within)?;
        subscription.given += 1;
        let now = subscription.given == 7;
        match BUG {
            DUPLICATES if now => subscription.kept.extend(copy(&item)),
            LOSES if now => return self.0.next(&mut subscription.inner, within),
            SWAPS if now => {
                let second = self.0.next(&mut subscription.inner, within);
                subscription.kept.push(item);
                return second;
            }
            SWALLOWS_NOTICES if matches!(item, Item::Notice(_)) => {
                return self
                    .0
                    .next(&mut subscription.inner, Duration::from_millis(300));
            }
            _ => {}
        }
        Some(item)
    }

    fn send(&self, node: &Node, request: Publish) -> Result<(), Refusal> {
        self.0.send(node, request)
    }

    fn publish(&self, node: &Node, request: Publish) -> Result<Outcome, Refusal> {
        let outcome = self.0.publish(node, request)?;
        Ok(if BUG == SAYS_ROUTED {
            Outcome::Routed { subscribers: 1 }
        } else {
            outcome
        })
    }
}

/// Whether the case of that name fails under the bug.
fn bites<const BUG: u8>(name: &str) -> bool {
    let all = tidings_suite::cases::<Broken<BUG>>();
    let (_, case) = all
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a case of that name");
    catch_unwind(AssertUnwindSafe(|| case(&Broken::new()))).is_err()
}

#[test]
fn each_planted_bug_is_caught() {
    let ordered = "facts_come_in_order_and_once_over_two_stations";
    assert!(bites::<DUPLICATES>(ordered));
    assert!(bites::<LOSES>(ordered));
    assert!(bites::<SWAPS>(ordered));
    assert!(bites::<DUPLICATES>("as_arrives_delivers_each_once"));
    assert!(bites::<SWAPS>("latest_only_never_goes_back"));
    assert!(bites::<SWALLOWS_NOTICES>(
        "the_last_station_gone_interrupts_and_its_return_ends_the_interruption"
    ));
    assert!(bites::<SAYS_ROUTED>(
        "outcomes_tell_routed_from_no_subscriber"
    ));
    assert!(bites::<TAKES_ANY_ADDRESS>("a_bad_address_is_refused"));
}

#[test]
fn no_planted_bug_is_seen_where_there_is_none() {
    const NONE: u8 = u8::MAX;
    assert!(!bites::<NONE>(
        "facts_come_in_order_and_once_over_two_stations"
    ));
    assert!(!bites::<NONE>("a_bad_address_is_refused"));
}
