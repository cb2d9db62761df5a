//! The suite's view of this driver.

use std::time::Duration;

use tidings::crypto::SecretKey;
use tidings::{Group, GroupId, Item, Outcome, Publish, Refusal, Subscribe};
use tidings_mio::{Answers, Node, NodeSettings, StationServer, StationSettings, Subscription};
use tidings_suite::{Driver, Seen};

/// Over TLS, or over loopback TCP.
pub(crate) struct Mio<const SECURE: bool>;

impl<const SECURE: bool> Driver for Mio<SECURE> {
    const SECURE: bool = SECURE;

    type Station = StationServer;
    type Node = Node;
    type Subscription = Subscription;
    type Error = Box<dyn std::error::Error>;

    fn new() -> Self {
        Self
    }

    fn start_station(&self, settings: StationSettings) -> Result<StationServer, Self::Error> {
        Ok(StationServer::start(settings)?)
    }

    fn seen(&self, station: &StationServer) -> Seen {
        Seen {
            status: station.status(),
            io: station.io(),
            doors: station.doors(),
            tls_faults: station.tls_faults(),
        }
    }

    fn station_address(&self, station: &StationServer) -> String {
        station.address()
    }

    fn kill_station(&self, station: StationServer) {
        station.kill();
    }

    fn close_station(&self, station: StationServer) {
        station.close();
    }

    fn start_node(&self, key: SecretKey, stations: &[String]) -> Result<Node, Self::Error> {
        self.start_probing_node(key, stations, Duration::from_secs(30))
    }

    fn start_probing_node(
        &self,
        key: SecretKey,
        stations: &[String],
        every: Duration,
    ) -> Result<Node, Self::Error> {
        let mut settings = NodeSettings::new(key).configure(|config| config.probe_every(every));
        for station in stations {
            settings = settings.station(station)?;
        }
        Ok(Node::start(settings)?)
    }

    fn start_answered_node(
        &self,
        key: SecretKey,
        stations: &[String],
        answers: impl Answers + 'static,
    ) -> Result<Node, Self::Error> {
        let mut settings = NodeSettings::new(key).answers(answers);
        for station in stations {
            settings = settings.station(station)?;
        }
        Ok(Node::start(settings)?)
    }

    fn join_group(&self, node: &Node, group: Group) -> Result<GroupId, Refusal> {
        node.join_group(group).map_err(|refused| refused.reason)
    }

    fn connected(&self, node: &Node, stations: usize, within: Duration) -> bool {
        node.connected(stations, within).is_ok()
    }

    fn failure(&self, node: &Node) -> Option<&'static str> {
        node.status().links[0].dial_failure
    }

    fn close_node(&self, node: Node) {
        node.close();
    }

    fn subscribe(&self, node: &Node, request: Subscribe) -> Result<Subscription, Refusal> {
        node.subscribe(request).map_err(|refused| refused.reason)
    }

    fn carried(&self, subscription: &mut Subscription, stations: usize, within: Duration) -> bool {
        subscription.carried(stations, within).is_ok()
    }

    fn next(&self, subscription: &mut Subscription, within: Duration) -> Option<Item> {
        subscription.next(within)
    }

    fn send(&self, node: &Node, request: Publish) -> Result<(), Refusal> {
        let pending = node.try_publish(request);
        pending.map(drop).map_err(|refused| refused.reason)
    }

    fn publish(&self, node: &Node, request: Publish) -> Result<Outcome, Refusal> {
        node.publish(request).map_err(|refused| refused.reason)
    }
}
