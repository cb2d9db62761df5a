//! Who is there: hosts are made as the plan has them, started and started again.
//!
//! Decides: the bounds of machines where the plan does not. Leaves to others: what happens to them. Believes: the true time. Bounded by: the plan.

use alloc::collections::{BTreeMap, BTreeSet};

use super::cable::Way;
use super::plan::Fault;
use super::secrets::Secrets;
use super::trace::Name;
use super::truth::{Life, Run};
use super::world::{End, Job, NodeState, StationState, World};
use crate::wire::SKEW_MS;
use crate::{ClientConfig, ClientLimits, StationConfig, StationLimits, Verification};

impl World {
    pub(super) fn populate(&mut self) {
        for station in 0..self.plan.stations.len() {
            self.net.station(self.station_config(station));
            self.truth.current.push(0);
            self.stations.push(StationState {
                run: 0,
                runs: 0,
                up: false,
            });
            self.began_station(station);
            if self.plan.stations[station].ring_items < 64 {
                self.count(Fault::SmallRing);
            }
        }
        for node in 0..self.plan.nodes.len() {
            self.add_node(node);
            let plan = &self.plan.nodes[node];
            let small = plan.order_max_buffer < 64
                || plan.held_bytes < 1 << 20
                || plan.lanes < 64
                || plan.resting_lanes < 64;
            let (skew, asks) = (plan.skew, plan.asks);
            if small {
                self.count(Fault::SmallBounds);
            }
            match skew {
                0 => {}
                _ if skew.unsigned_abs() * 2 <= SKEW_MS => self.count(Fault::Skew),
                1.. => self.count(Fault::ToleratedAhead),
                _ => self.count(Fault::ToleratedBehind),
            }
            if asks.is_some_and(|(_, lose)| lose > 0) {
                self.count(Fault::LostAnswers);
            }
        }
        for act in 0..self.plan.acts.len() {
            if !self.options.masks(act) {
                self.later(self.plan.acts[act].at, Job::Act(act));
            }
        }
    }

    /// A client host of a planned node, or a second one of its key.
    pub(super) fn add_node(&mut self, plan: usize) -> usize {
        let node = self.nodes.len();
        let stations = self.plan.nodes[plan].stations.clone();
        for station in &stations {
            // A host knows its stations whether they run or not.
            debug_assert!(*station < self.stations.len(), "a planned station");
        }
        let client = self.net.client_of(stations);
        let host = self.net.client_host(client);
        self.truth.current.resize(host + 1, 0);
        self.nodes.push(NodeState {
            client,
            life: 0,
            runs: 0,
            up: false,
            last_epoch: 0,
            plan,
            last_ticket: None,
            group: None,
        });
        let planned = &self.plan.nodes[plan];
        if planned.skew != 0 {
            let now = self.net.truth();
            self.net.hosts[host].clock.step_wall(now, planned.skew);
        }
        if let Some((after, lose)) = planned.asks {
            let host = &mut self.net.hosts[host];
            (host.answers_after, host.answers_lose) = (after, lose);
        }
        for station in planned.stations.clone() {
            self.heal(node, station);
        }
        self.start_node(node);
        node
    }

    pub(super) fn station_limits(&self, station: usize) -> StationLimits {
        let plan = &self.plan.stations[station];
        StationLimits {
            links: 16,
            ring_items: plan.ring_items,
            subscriptions_per_link: plan.subscriptions_per_link,
            topics: 8,
            subscribers_per_topic: 32,
            subscribed_realms: 2,
            dedup_entries: 1 << 14,
            publishers: 16,
            ring_bytes: 4 << 20,
            read_bytes: 4 << 20,
            ..StationLimits::default()
        }
    }

    pub(super) fn station_config(&self, station: usize) -> StationConfig {
        let limits = self.station_limits(station);
        self.keys.station_config(station).limits(limits)
    }

    pub(super) fn client_limits(&self, node: usize) -> ClientLimits {
        let plan = &self.plan.nodes[self.nodes[node].plan];
        ClientLimits {
            links: 4,
            subscriptions: 16,
            lanes: plan.lanes,
            resting_lanes: plan.resting_lanes,
            dedup_entries: plan.dedup_entries,
            held_bytes: plan.held_bytes,
            order_max_buffer: plan.order_max_buffer,
            counters: 16,
            publishers: 16,
            sources: self.net.lookups.limits,
            ..ClientLimits::default()
        }
    }

    pub(super) fn client_config(&self, node: usize) -> ClientConfig {
        let state = &self.nodes[node];
        let plan = &self.plan.nodes[state.plan];
        let mut config = self.keys.client_config(usize::from(plan.key));
        for station in &plan.stations {
            config = config.station(Some(self.keys.station_id(*station)));
        }
        if plan.asks.is_some() {
            config = config.verification(Verification::Asked);
        }
        if plan.held_bytes < 1 << 20 {
            config = config.max_frame(512);
        }
        config
            .limits(self.client_limits(node))
            .order_timeout(plan.order_timeout)
            .replication_factor(plan.replication)
            .last_epoch(self.net.saboteur.last_epoch(state.last_epoch))
            .keep_epochs(self.more.keep_epochs)
    }

    pub(super) fn start_node(&mut self, node: usize) {
        let config = self.client_config(node);
        let now = self.net.truth();
        let state = &mut self.nodes[node];
        if state.up {
            return;
        }
        state.up = true;
        let (client, run) = (state.client, state.runs);
        state.runs += 1;
        let host = self.net.client_host(client);
        let floor = state.last_epoch;
        state.life = self.truth.lives.len();
        self.truth.current[host] = state.life;
        self.truth.lives.push(Life {
            node,
            host,
            ended: None,
            arrivals: BTreeMap::new(),
            unsure: BTreeSet::new(),
            transit: 0,
            floor,
        });
        self.net.start_client(client, config, run);
        self.join_group(node);
        self.trace
            .line(now, Name::Node(node), format_args!("starts"));
        // What it was subscribed to before it was killed, it subscribes to again.
        for slot in 0..self.slots.len() {
            if let Some(sub) = self.slots[slot]
                && self.nodes[self.node_of(sub)].client == client
                && matches!(self.subs[sub].ended, Some((_, End::Crash)))
            {
                let wanted = self.subs[sub].wanted;
                self.subscribe(slot, wanted);
            }
        }
    }

    /// A node that was started joins the group of the run, if it has one.
    fn join_group(&mut self, node: usize) {
        let state = &self.nodes[node];
        let (client, plan) = (state.client, state.plan);
        if !self.net.secrets.on {
            return;
        }
        let host = self.net.client_host(client);
        if self.net.secrets.outsider == Some(self.plan.nodes[plan].key)
            && !self.net.secrets.outsiders.contains(&host)
        {
            self.net.secrets.outsiders.push(host);
        }
        let now = self.net.now_of(host);
        let joined = self.net.at(client).join_group(now, Secrets::group());
        self.nodes[node].group = joined.ok();
    }

    /// A station that has just been started.
    pub(super) fn began_station(&mut self, station: usize) {
        let host = self.net.station_host(station);
        let state = &mut self.stations[station];
        state.up = true;
        state.runs += 1;
        state.run = self.truth.runs.len();
        self.truth.current[host] = state.run;
        self.truth.runs.push(Run {
            station,
            ..Run::default()
        });
        let now = self.net.truth();
        self.trace
            .line(now, Name::Station(station), format_args!("starts"));
    }

    /// The way between these two is as the plan has it; in the calm it does not make anybody wait.
    pub(super) fn heal(&mut self, node: usize, station: usize) {
        let state = &self.nodes[node];
        let plan = self.plan.ways[state.plan][station];
        let way = Way {
            delay: plan.delay,
            jitter: plan.jitter,
            ..Way::default()
        };
        self.net.set_way(state.client, station, way);
    }
}
