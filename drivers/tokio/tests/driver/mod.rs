//! The suite's view of this driver.

use std::time::Duration;

use tidings::crypto::SecretKey;
use tidings::{Group, GroupId, Item, Outcome, Publish, Refusal, Subscribe};
use tidings_suite::{Driver, Seen};
use tidings_tokio::{
    Answers, Node, StationServer, StationServerBuilder, StationSettings, Subscription,
};
use tokio::runtime::Runtime;

/// The driver, with secure links or plain ones.
pub(crate) struct On<const SECURE: bool> {
    runtime: Runtime,
}

impl<const SECURE: bool> Driver for On<SECURE> {
    const SECURE: bool = SECURE;
    type Station = StationServer;
    type Node = Node;
    type Subscription = Subscription;
    type Error = Box<dyn std::error::Error>;

    fn new() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Self {
            runtime: builder.worker_threads(2).enable_all().build().unwrap(),
        }
    }

    fn start_station(&self, settings: StationSettings) -> Result<StationServer, Self::Error> {
        let builder = StationServerBuilder::from(settings);
        Ok(self.runtime.block_on(builder.start())?)
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
        self.runtime.block_on(station.kill());
    }

    fn close_station(&self, station: StationServer) {
        self.runtime.block_on(station.close());
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
        let _inside = self.runtime.enter();
        let mut builder = Node::builder(key).probe_every(every);
        for station in stations {
            builder = builder.station(station)?;
        }
        Ok(builder.start()?)
    }

    fn start_answered_node(
        &self,
        key: SecretKey,
        stations: &[String],
        answers: impl Answers + 'static,
    ) -> Result<Node, Self::Error> {
        let _inside = self.runtime.enter();
        let mut builder = Node::builder(key).answers(answers);
        for station in stations {
            builder = builder.station(station)?;
        }
        Ok(builder.start()?)
    }

    fn join_group(&self, node: &Node, group: Group) -> Result<GroupId, Refusal> {
        node.join_group(group).map_err(|refused| refused.reason)
    }

    fn connected(&self, node: &Node, stations: usize, within: Duration) -> bool {
        self.runtime
            .block_on(node.connected(stations, within))
            .is_ok()
    }

    fn failure(&self, node: &Node) -> Option<&'static str> {
        node.status().links[0].dial_failure
    }

    fn close_node(&self, node: Node) {
        self.runtime.block_on(node.close());
    }

    fn subscribe(&self, node: &Node, request: Subscribe) -> Result<Subscription, Refusal> {
        node.subscribe(request).map_err(|refused| refused.reason)
    }

    fn carried(&self, subscription: &mut Subscription, stations: usize, within: Duration) -> bool {
        self.runtime
            .block_on(subscription.carried(stations, within))
            .is_ok()
    }

    fn next(&self, subscription: &mut Subscription, within: Duration) -> Option<Item> {
        let next = async { tokio::time::timeout(within, subscription.next()).await };
        self.runtime.block_on(next).ok().flatten()
    }

    fn send(&self, node: &Node, request: Publish) -> Result<(), Refusal> {
        let _inside = self.runtime.enter();
        let pending = node.try_publish(request);
        pending.map(drop).map_err(|refused| refused.reason)
    }

    fn publish(&self, node: &Node, request: Publish) -> Result<Outcome, Refusal> {
        self.runtime
            .block_on(node.publish(request))
            .map_err(|refused| refused.reason)
    }
}
