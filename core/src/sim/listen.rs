//! What is seen and what is read: the truth learns of the one, the streams are kept of the other.
//!
//! Decides: when streams are read. Leaves to others: what follows from it. Believes: the true time. Bounded by: the run.

use alloc::vec::Vec;

use super::Habit;
use super::cable::CLIENT;
use super::hash::Hash;
use super::keys::Keys;
use super::net::{Kind, Seen};
use super::plan::Wanted;
use super::said::Moment;
use super::secrets::Secrets;
use super::tap::number_of;
use super::trace::Name;
use super::world::{End, Sub, Told, World};
use crate::code::EndReason;
use crate::notice::{Item, Notice};
use crate::{Instant, Subscribe};

impl World {
    /// Looks at everything that was seen since the last look, and reads what may be read.
    pub(super) fn observe(&mut self) {
        let seen = core::mem::take(&mut self.net.seen);
        let now = self.net.truth();
        self.trace_answers();
        for seen in &seen {
            self.trace_seen(now, seen);
            match *seen {
                Seen::Up { cable } => {
                    let hosts = self.net.cables[cable].hosts;
                    let here = self.net.now_of(hosts[CLIENT]);
                    self.truth.up(Moment::new(now, here), cable, hosts);
                }
                Seen::Settled {
                    host,
                    ticket,
                    outcome,
                } => {
                    let life = self.truth.current[host];
                    let mut made = self.truth.made.iter_mut().rev();
                    let found = made.find(|made| made.life == life && made.ticket == ticket);
                    match found {
                        Some(made) => made.settled.push((now, outcome)),
                        None => {
                            self.wrong("tickets", alloc::format!("{ticket:?} was never handed out"))
                        }
                    }
                    self.tally.outcome(outcome);
                }
                Seen::Readable { host, subscription } => {
                    if let Some(sub) = self.by_stream.get(&(host, subscription)).copied() {
                        self.subs[sub].unread = true;
                        self.read(sub);
                    }
                }
                Seen::Took { cable, side, .. }
                | Seen::ReadsAgain { cable, side, .. }
                | Seen::Wrote { cable, side, .. }
                | Seen::Ended { cable, side, .. }
                | Seen::Fault { cable, side, .. } => {
                    let host = self.net.cables[cable].hosts[side];
                    self.truth.see(now, self.net.now_of(host), *seen);
                }
                Seen::Away { host, .. } => self.truth.see(now, self.net.now_of(host), *seen),
            }
        }
        let mut seen = seen;
        seen.clear();
        if self.net.seen.is_empty() {
            self.net.seen = seen;
        }
        if self.options.habit != Habit::Prompt {
            self.read_lazily();
        }
    }

    /// Reads every stream now and then, told or not.
    pub(super) fn read_lazily(&mut self) {
        self.steps += 1;
        let Habit::Small { every, .. } = self.options.habit else {
            return;
        };
        if !self.steps.is_multiple_of(every) {
            return;
        }
        for sub in 0..self.subs.len() {
            self.read_now(sub);
        }
    }

    pub(super) fn read(&mut self, sub: usize) {
        let plan = &self.plan.nodes[self.nodes[self.node_of(sub)].plan];
        // Where a stream may fill, it matters when it is read.
        let fills = self.subs[sub].wanted.capacity < 64 || plan.held_bytes < 1 << 20;
        if self.options.habit == Habit::Prompt || fills || self.commits(sub) {
            self.read_now(sub);
        }
    }

    /// Reads a stream to its end, if its reader does not sleep.
    pub(super) fn read_now(&mut self, index: usize) {
        let now = self.net.truth();
        let sub = &self.subs[index];
        if now < sub.stalled_until || matches!(sub.ended, Some((_, End::Crash))) {
            return;
        }
        let host = self.truth.lives[sub.life].host;
        if self.net.hosts[host].clock.is_asleep() || self.truth.current[host] != sub.life {
            return;
        }
        let id = sub.id;
        let commits = self.commits(index);
        loop {
            self.net.saboteur.polled();
            let Some(Kind::Client(client)) = &mut self.net.hosts[host].kind else {
                return;
            };
            let superseded = client.subscription(id).map(|status| status.superseded);
            let Some(item) = client.poll_item(id) else {
                break;
            };
            self.net.hosts[host].touch();
            if let Item::Fact(fact) = &item
                && commits
            {
                self.subs[index].last = Some(fact.clone());
            }
            if let Some(superseded) = superseded {
                self.subs[index].superseded = superseded;
            }
            for item in self.net.saboteur.item(index, item).into_iter().flatten() {
                self.told(now, index, item);
            }
        }
        self.subs[index].unread = false;
    }

    pub(super) fn told(&mut self, now: Instant, index: usize, item: Item) {
        let told = match item {
            Item::Fact(fact) => {
                let Some(number) = number_of(fact.payload()) else {
                    return self.wrong("once", "a payload nobody made".into());
                };
                self.opened_in_time(now, index, number, &fact);
                self.admitted_in_time(now, index, number);
                Told::Fact {
                    number,
                    late: fact.late(),
                }
            }
            Item::Notice(notice) => {
                self.tally.notice(&notice);
                if let Notice::Ended { reason } = *notice
                    && reason == EndReason::LaggedOut
                {
                    self.subs[index].ended.get_or_insert((now, End::Lagged));
                    if let Some(wire) = self.wanted_by_nobody(index) {
                        self.truth.ended_itself(now, wire);
                    }
                }
                Told::Notice(*notice)
            }
        };
        self.hash_told(index, &told);
        self.trace_told(now, index, &told);
        self.subs[index].told.push((now, told));
    }

    /// Nothing is opened past its bound: it is not over by its node's wall when it is read, or, where that may be later than it was opened, when it
    /// came.
    fn opened_in_time(&mut self, now: Instant, index: usize, number: u32, fact: &crate::Delivery) {
        let Some(id) = fact.seal_key_id() else {
            if self.net.secrets.on {
                self.wrong("sealed", alloc::format!("#{number} went out in the clear"));
            }
            return;
        };
        let life = &self.truth.lives[self.subs[index].life];
        let until = self.net.secrets.opens_until(id);
        let until = self.net.saboteur.opens_until(until);
        let clock = &self.net.hosts[life.host].clock;
        let came = life.arrivals.get(&number).copied().unwrap_or(now);
        let reads_late = self.options.habit != Habit::Prompt || self.subs[index].was_stalled;
        if clock.wall(now) > until && !(reads_late && clock.wall(came) <= until) {
            self.wrong(
                "sealed",
                alloc::format!("#{number} was opened past its bound"),
            );
        }
    }

    /// What stations know of a subscription that has ended, where no other of its node is of the same filter.
    fn wanted_by_nobody(&self, index: usize) -> Option<usize> {
        let sub = &self.subs[index];
        let (wire, life) = (sub.wire, sub.life);
        let held = |sub: &Sub| sub.life == life && sub.wire == wire && sub.ended.is_none();
        (!self.subs.iter().any(held)).then_some(wire)
    }

    pub(super) fn subscribe(&mut self, slot: usize, wanted: Wanted) {
        let node = wanted.node;
        let state = &self.nodes[node];
        if !state.up {
            return;
        }
        let (client, life) = (state.client, state.life);
        let host = self.net.client_host(client);
        if self.net.hosts[host].clock.is_asleep() {
            return;
        }
        let sources = self.sources_of(slot, &wanted);
        let looked_up = self.net.lookups.source(slot, &wanted);
        let filter = self.plan.topics.filter(wanted.filter);
        let request = Subscribe::new(Keys::realm(), filter, sources)
            .mode(wanted.mode)
            .on_full(wanted.on_full)
            .queue_capacity(wanted.capacity);
        let request = match self.nodes[node].group {
            Some(group) if Secrets::covers(filter) => request.group(group),
            _ => request,
        };
        let (request, after) = self.goes_on(slot, request);
        let now = self.net.now_of(host);
        let Ok(id) = self.net.at(client).subscribe(now, request) else {
            return;
        };
        let born = self.net.truth();
        let wire = self.truth.want(life, wanted.filter);
        self.truth.wires[wire].after = after.map(|of| self.subs[of.sub].wire);
        let index = self.subs.len();
        self.by_stream.insert((host, id), index);
        self.slots[slot] = Some(index);
        self.trace.line(
            born,
            Name::Sub(index),
            format_args!(
                "{} subscribes to {} ({:?}, {:?}, {})",
                Name::Node(node),
                self.plan.topics.filter(wanted.filter),
                wanted.mode,
                wanted.on_full,
                wanted.capacity
            ),
        );
        self.subs.push(Sub {
            wanted,
            life,
            wire,
            id,
            born,
            order: (self.truth.order, u64::MAX),
            hash: Hash::default(),
            ended: None,
            stalled_until: Instant::ORIGIN,
            was_stalled: false,
            told: Vec::new(),
            superseded: 0,
            looked_up,
            unread: false,
            last: None,
            after,
        });
    }

    pub(super) fn unsubscribe(&mut self, index: usize) {
        let sub = &self.subs[index];
        let node = &self.nodes[self.node_of(index)];
        if sub.ended.is_some() || !node.up {
            return;
        }
        let (client, id) = (node.client, sub.id);
        let host = self.net.client_host(client);
        if self.net.hosts[host].clock.is_asleep() {
            return;
        }
        self.subs[index].stalled_until = Instant::ORIGIN;
        let now = self.net.now_of(host);
        if self.net.at(client).unsubscribe(now, id).is_err() {
            return;
        }
        let now = self.net.truth();
        self.subs[index].ended = Some((now, End::Unsubscribed));
        self.subs[index].order.1 = self.truth.order;
        self.trace
            .line(now, Name::Sub(index), format_args!("unsubscribes"));
        if let Some(wire) = self.wanted_by_nobody(index) {
            self.truth.unwant(now, wire);
        }
    }
}
