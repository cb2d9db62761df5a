//! What each act of a plan does.
//!
//! Decides: which calls and which faults an act is made of. Leaves to others: when (the plan). Believes: the true time. Bounded by: the plan.

use alloc::vec::Vec;

use super::keys::Keys;
use super::net::Kind;
use super::plan::{Burst, Fault, Op};
use super::tap::payload_of;
use super::trace::Name;
use super::truth::Made;
use super::world::{End, Job, World};
use crate::code::CloseReason;
use crate::{Duration, Publish};

/// A station that sleeps for so long is held: its nodes give their links up.
const HELD: Duration = Duration::from_secs(60);

impl World {
    pub(super) fn act(&mut self, op: Op) {
        let now = self.net.truth();
        self.trace.line(now, Name::World, format_args!("{op:?}"));
        match op {
            Op::Burst(burst) => self.burst(burst),
            Op::Cancel { node } => self.cancel(node),
            Op::Commit { slot } => self.commit(slot),
            Op::CrashNode {
                node,
                lasts,
                persist,
            } => {
                self.count(if persist {
                    Fault::CrashNode
                } else {
                    Fault::CrashForgetful
                });
                self.goes_away(node, lasts);
                self.crash_node(node, persist);
                self.in_time(lasts, Job::StartNode(node));
            }
            Op::CrashStation { station, lasts } => self.crash_station(station, lasts),
            Op::Cut {
                node,
                station,
                after,
            } => {
                let half = after != [Duration::ZERO; 2];
                if !self
                    .net
                    .between(self.nodes[node].client, station)
                    .is_empty()
                {
                    self.count(if half { Fault::CutHalf } else { Fault::Cut });
                }
                self.net.cut_after(self.nodes[node].client, station, after);
            }
            Op::DrainStation { station, lasts } => self.drain(station, lasts),
            Op::Hangup { node, station } => self.hang_up(node, station),
            Op::Part {
                node,
                station,
                lasts,
            } => {
                self.change(node, station, lasts, Fault::Partition, |way| {
                    way.parted = true
                });
                if self.is_cut_off(node) {
                    self.goes_away(node, lasts);
                }
            }
            Op::Purge { station, node } => self.purge(station, node),
            Op::Refuse {
                node,
                station,
                lasts,
            } => {
                self.change(node, station, lasts, Fault::DialRefused, |way| {
                    way.refuses = true
                });
                self.net.cut(self.nodes[node].client, station);
            }
            Op::Resubscribe { slot } => self.resubscribe(slot),
            Op::SleepNode {
                node,
                lasts,
                mono_stands,
            } => {
                let host = self.net.client_host(self.nodes[node].client);
                self.count(if mono_stands {
                    Fault::SleepNodeStands
                } else {
                    Fault::SleepNodeRuns
                });
                self.net.sleep(host, mono_stands);
                self.in_time(lasts, Job::Wake(host));
                self.goes_away(node, lasts);
            }
            Op::SleepStation {
                station,
                lasts,
                mono_stands,
            } => {
                let host = self.net.station_host(station);
                self.count(Fault::SleepStation);
                if lasts >= HELD {
                    self.count(Fault::HeldStation);
                }
                self.net.sleep(host, mono_stands);
                self.in_time(lasts, Job::Wake(host));
            }
            Op::Slow {
                node,
                station,
                lasts,
                rate,
                budget,
            } => {
                self.change(node, station, lasts, Fault::SlowLink, |way| {
                    (way.rate, way.budget) = (rate, budget);
                });
            }
            Op::Stall { slot, lasts } => self.stall(slot, lasts),
            Op::StepNode { node, by } => {
                let host = self.net.client_host(self.nodes[node].client);
                self.count(if by < 0 {
                    Fault::StepNodeBack
                } else {
                    Fault::StepNodeOn
                });
                self.net.step_host(host, by);
            }
            Op::StepStation { station, by } => {
                let host = self.net.station_host(station);
                self.count(Fault::StepStation);
                self.net.step_host(host, by);
            }
            Op::Stretch {
                node,
                station,
                lasts,
                delay,
            } => {
                self.change(node, station, lasts, Fault::Stretch, |way| {
                    way.delay = delay
                });
            }
            Op::Subscribe { slot, wanted } => {
                if now.as_micros() > 3_000_000 {
                    self.count(Fault::LateJoin);
                }
                self.subscribe(slot, wanted);
            }
            Op::Twin { node, lasts } => self.twin(node, lasts),
            Op::Unsubscribe { slot } => {
                if let Some(sub) = self.slots[slot]
                    && self.subs[sub].ended.is_none()
                {
                    self.count(Fault::Unsubscribe);
                    self.unsubscribe(sub);
                }
            }
        }
    }

    fn change(
        &mut self,
        node: usize,
        station: usize,
        lasts: Duration,
        fault: Fault,
        how: impl Fn(&mut super::cable::Way),
    ) {
        self.count(fault);
        let client = self.nodes[node].client;
        let mut way = self.net.way(client, station);
        how(&mut way);
        self.net.set_way(client, station, way);
        self.in_time(lasts, Job::Heal { node, station });
    }

    fn burst(&mut self, burst: Burst) {
        let number = self.bursts.len();
        self.bursts.push(burst);
        for node in self.with_key_of(burst.node) {
            self.publish_next(number, node, burst.count);
        }
    }

    /// Every process that has this node's key.
    fn with_key_of(&self, node: usize) -> Vec<usize> {
        let plan = self.nodes[node].plan;
        let all = 0..self.nodes.len();
        all.filter(|other| self.nodes[*other].plan == plan)
            .collect()
    }

    pub(super) fn publish_next(&mut self, burst: usize, node: usize, left: u16) {
        let wanted = self.bursts[burst];
        self.publish(burst, node, &wanted);
        let mut left = left.saturating_sub(1);
        if wanted.every.is_zero() {
            while left > 0 {
                self.publish(burst, node, &wanted);
                left -= 1;
            }
        } else if left > 0 {
            return self.in_time(wanted.every, Job::Publish { burst, node, left });
        }
        self.end_publisher(burst, node);
    }

    fn publish(&mut self, burst: usize, node: usize, wanted: &Burst) {
        let state = &self.nodes[node];
        let (client, life, key) = (state.client, state.life, self.plan.nodes[state.plan].key);
        let host = self.net.client_host(client);
        if !state.up || self.net.hosts[host].clock.is_asleep() {
            return;
        }
        let number = self.truth.made.len() as u32;
        let topic = self.plan.topics.name(wanted.topic);
        let payload = payload_of(number, wanted.size);
        let mut request = Publish::raw(Keys::realm(), topic, payload);
        if let Some(ttl) = wanted.ttl {
            request = request.ttl(ttl);
        }
        if wanted.one {
            request = request.one();
        }
        if let Some(group) = self.nodes[node].group {
            request = request.group(group);
        }
        let now = self.net.now_of(host);
        let by = self.publisher_of(burst, node, wanted.one);
        if let Some(by) = by {
            request = request.by(by);
        }
        match self.publish_kept(node, now, request) {
            Ok(ticket) => {
                let last_epoch = self.net.at(client).last_epoch();
                let state = &mut self.nodes[node];
                state.last_ticket = Some(ticket);
                state.last_epoch = state.last_epoch.max(last_epoch);
                if let Some((.., made)) = self.publishers.get_mut(&(burst, node))
                    && by.is_some()
                {
                    made.push(number as usize);
                }
                let at = self.net.truth();
                self.truth.made.push(Made {
                    key,
                    life,
                    topic: wanted.topic,
                    one: wanted.one,
                    at,
                    ticket,
                    fact: None,
                    settled: Vec::new(),
                    cancelled: false,
                });
                self.trace.line(
                    at,
                    Name::Node(node),
                    format_args!(
                        "publishes #{number} on {}",
                        self.plan.topics.name(wanted.topic)
                    ),
                );
                self.tally.published += 1;
            }
            Err(_) => self.tally.refused += 1,
        }
    }

    fn cancel(&mut self, node: usize) {
        let state = &self.nodes[node];
        let (client, life, Some(ticket), true) =
            (state.client, state.life, state.last_ticket, state.up)
        else {
            return;
        };
        let host = self.net.client_host(client);
        if self.net.hosts[host].clock.is_asleep() {
            return;
        }
        let now = self.net.now_of(host);
        if self.net.at(client).cancel(now, ticket).is_ok() {
            self.count(Fault::Cancel);
            let mut made = self.truth.made.iter_mut().rev();
            if let Some(made) = made.find(|made| made.life == life && made.ticket == ticket) {
                made.cancelled = true;
            }
        }
    }

    pub(super) fn crash_node(&mut self, node: usize, persist: bool) {
        let now = self.net.truth();
        if !self.nodes[node].up {
            return;
        }
        // What was there to be read was read, whenever its reader looks.
        for sub in 0..self.subs.len() {
            if self.subs[sub].life == self.nodes[node].life {
                self.read_now(sub);
            }
        }
        let state = &mut self.nodes[node];
        state.up = false;
        state.last_ticket = None;
        if !persist {
            state.last_epoch = 0;
        }
        let (client, life) = (state.client, state.life);
        self.trace
            .line(now, Name::Node(node), format_args!("is killed"));
        self.truth.lives[life].ended = Some(now);
        let host = self.net.client_host(client);
        let asleep = self.net.hosts[host].clock.is_asleep();
        self.net.kill_client(client);
        self.observe();
        for sub in self.subs.iter_mut().filter(|sub| sub.life == life) {
            // Who is killed while asleep has read nothing since.
            sub.was_stalled |= asleep;
            sub.ended.get_or_insert((now, End::Crash));
        }
    }

    fn crash_station(&mut self, station: usize, lasts: Duration) {
        if !self.stations[station].up {
            return;
        }
        self.count(Fault::CrashStation);
        self.stations[station].up = false;
        self.trace.line(
            self.net.truth(),
            Name::Station(station),
            format_args!("is killed"),
        );
        self.net.kill(station);
        self.in_time(lasts, Job::StartStation(station));
    }

    pub(super) fn restart_station(&mut self, station: usize) {
        if self.stations[station].up {
            return;
        }
        let config = self.station_config(station);
        let run = self.stations[station].runs;
        self.net.start_station(station, config, run);
        self.began_station(station);
    }

    /// A station goes away in good order, and a new one comes in its place.
    fn drain(&mut self, station: usize, lasts: Duration) {
        let host = self.net.station_host(station);
        if !self.stations[station].up || self.net.hosts[host].clock.is_asleep() {
            return;
        }
        self.count(Fault::Drain);
        let run = self.stations[station].run;
        self.truth.runs[run].draining = true;
        let now = self.net.now_of(host);
        self.net.at_station(station).close(now);
        let end = self.net.truth();
        self.net.step(end);
        self.observe();
        self.stations[station].up = false;
        self.net.kill(station);
        self.in_time(lasts, Job::StartStation(station));
    }

    fn hang_up(&mut self, node: usize, station: usize) {
        let (client, up) = (self.nodes[node].client, self.nodes[node].up);
        let host = self.net.client_host(client);
        if !up || self.net.hosts[host].clock.is_asleep() {
            return;
        }
        for cable in self.net.between(client, station) {
            let Some(link) = self.net.link_of(cable, host) else {
                continue;
            };
            let now = self.net.now_of(host);
            if self
                .net
                .at(client)
                .close_link(now, link, CloseReason::Normal)
                .is_ok()
            {
                self.count(Fault::Hangup);
            }
        }
    }

    fn purge(&mut self, station: usize, node: usize) {
        let host = self.net.station_host(station);
        if !self.stations[station].up || self.net.hosts[host].clock.is_asleep() {
            return;
        }
        let id = self
            .keys
            .node_id(usize::from(self.plan.nodes[self.nodes[node].plan].key));
        let now = self.net.now_of(host);
        if self.net.at_station(station).purge(now, id) > 0 {
            self.count(Fault::Purge);
            let run = self.stations[station].run;
            let lives: Vec<usize> = self.with_key_of(node);
            let lives: Vec<usize> = lives.iter().map(|node| self.nodes[*node].life).collect();
            self.truth.purged(self.net.truth(), run, &lives);
        }
    }

    fn resubscribe(&mut self, slot: usize) {
        let Some(sub) = self.slots[slot] else { return };
        if self.subs[sub].ended.is_some() {
            return;
        }
        self.count(Fault::Resubscribe);
        let wanted = self.subs[sub].wanted;
        self.unsubscribe(sub);
        self.subscribe(slot, wanted);
    }

    fn stall(&mut self, slot: usize, lasts: Duration) {
        let Some(sub) = self.slots[slot] else { return };
        self.count(Fault::Stall);
        self.subs[sub].stalled_until = self.net.truth().saturating_add(lasts);
        self.subs[sub].was_stalled = true;
        self.in_time(lasts, Job::Read(sub));
    }

    /// A second process with the same key starts; both begin a numbering at the same moment where they can.
    fn twin(&mut self, node: usize, lasts: Duration) {
        if self.nodes.len() > self.plan.nodes.len() {
            return;
        }
        self.count(Fault::Twin);
        self.crash_node(node, false);
        self.start_node(node);
        let twin = self.add_node(self.nodes[node].plan);
        self.in_time(lasts, Job::EndTwin(twin));
        let burst = Burst {
            node,
            topic: 0,
            count: (lasts.as_millis() / 500).clamp(3, 160) as u16,
            every: Duration::from_millis(500),
            size: 8,
            one: false,
            ttl: None,
        };
        let number = self.bursts.len();
        self.bursts.push(burst);
        for node in [node, twin] {
            self.in_time(
                Duration::from_secs(1),
                Job::Publish {
                    burst: number,
                    node,
                    left: burst.count,
                },
            );
        }
    }

    /// Faults end: every host runs and is awake, every way is open, every reader reads.
    pub(super) fn begin_calm(&mut self) {
        let now = self.net.truth();
        self.trace
            .line(now, Name::World, format_args!("the calm begins"));
        self.net.secrets.calm = true;
        self.net.lookups.calm = true;
        for node in 0..self.nodes.len() {
            let plan = self.nodes[node].plan;
            for station in self.plan.nodes[plan].stations.clone() {
                self.heal(node, station);
            }
        }
        for station in 0..self.stations.len() {
            self.net.wake(self.net.station_host(station));
            self.restart_station(station);
        }
        for node in 0..self.nodes.len() {
            self.net.wake(self.net.client_host(self.nodes[node].client));
            if node < self.plan.nodes.len() {
                self.start_node(node);
            } else {
                self.crash_node(node, true);
            }
        }
        for sub in 0..self.subs.len() {
            self.subs[sub].stalled_until = now;
            self.read_now(sub);
        }
        self.calm = true;
        // A subscription that was withdrawn is asked for again when its link comes back.
        for wire in self.truth.purged_wires() {
            let node = self.truth.lives[self.truth.wires[wire].life].node;
            for station in 0..self.stations.len() {
                self.net.cut(self.nodes[node].client, station);
            }
        }
    }

    /// Everybody publishes once more on every topic, and all of it has to come through.
    pub(super) fn last_words(&mut self) {
        for node in 0..self.plan.nodes.len() {
            for topic in 0..self.plan.topics.count() {
                let burst = Burst {
                    node,
                    topic,
                    count: 2,
                    every: Duration::ZERO,
                    size: 8,
                    one: false,
                    ttl: None,
                };
                self.burst(burst);
            }
        }
    }

    /// Looks at what the machines keep.
    pub(super) fn inspect(&mut self, at_rest: bool) {
        for index in 0..self.net.hosts.len() {
            let report = match &self.net.hosts[index].kind {
                Some(Kind::Client(client)) => client.memory(),
                Some(Kind::Station(station)) => station.memory(),
                None => continue,
            };
            let report = self.net.saboteur.report(report);
            self.check_memory(index, &report, at_rest);
        }
    }
}
