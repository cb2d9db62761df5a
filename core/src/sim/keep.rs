//! What outlives a run of a node: positions an application committed, epochs a driver wrote down; and the handles it publishes by.
//!
//! Decides: when something is kept. Leaves to others: whether the next run holds to it (the checks). Believes: the true time. Bounded by: one
//! commit per slot, one handle per burst and node.

use alloc::vec::Vec;

use super::net::Kind;
use super::plan::Fault;
use super::world::{Earlier, Told, World};
use crate::notice::Notice;
use crate::refusal::{Refusal, Refused};
use crate::{Now, Publish, PublisherId, Subscribe, Ticket};

/// More epochs than the one that was asked for are written down, as far as it is ahead: so many microseconds.
const AHEAD: u64 = 50_000;

impl World {
    /// Whether that subscription commits.
    pub(super) fn commits(&self, sub: usize) -> bool {
        let mut slots = self.more.commits.iter();
        slots.any(|slot| self.slots[*slot] == Some(sub))
    }

    /// An application writes down up to where it has read.
    pub(super) fn commit(&mut self, slot: usize) {
        let Some(sub) = self.slots[slot].filter(|sub| self.subs[*sub].ended.is_none()) else {
            return;
        };
        self.read_now(sub);
        let place = self.subs[sub].told.len();
        let mut kept = self.commit_now(sub);
        if kept.is_none() && self.net.saboteur.commits_untold() {
            self.read_now(sub);
            let mut late = self.subs[sub].told[place..].iter();
            if late.all(|(_, told)| matches!(told, Told::Notice(Notice::Dropped { .. }))) {
                kept = self.commit_now(sub);
            }
        }
        let Some(bytes) = kept else {
            return;
        };
        self.count(Fault::Commit);
        let at = self.net.truth();
        let here = Earlier { sub, place, at };
        let before = self.kept[slot].take();
        self.kept[slot] = Some(self.net.saboteur.committed(before, (here, bytes)));
    }

    /// What is to be kept of a stream now.
    fn commit_now(&mut self, sub: usize) -> Option<Vec<u8>> {
        let (life, id) = (self.subs[sub].life, self.subs[sub].id);
        let host = self.truth.lives[life].host;
        if self.net.hosts[host].clock.is_asleep() || self.truth.current[host] != life {
            return None;
        }
        let (Some(Kind::Client(client)), Some(last)) =
            (&mut self.net.hosts[host].kind, &self.subs[sub].last)
        else {
            return None;
        };
        client.commit(id, last).ok()
    }

    /// A request that goes on from what its slot committed in an earlier run.
    pub(super) fn goes_on(
        &mut self,
        slot: usize,
        request: Subscribe,
    ) -> (Subscribe, Option<Earlier>) {
        if !self.more.commits.contains(&slot) {
            return (request, None);
        }
        let request = request.committing();
        let crashed = |earlier: &Earlier| {
            matches!(
                self.subs[earlier.sub].ended,
                Some((_, super::world::End::Crash))
            )
        };
        let Some((earlier, bytes)) = self.kept[slot].take_if(|(earlier, _)| crashed(earlier))
        else {
            self.kept[slot] = None;
            return (request, None);
        };
        self.kept[slot] = Some((earlier, bytes.clone()));
        match request.clone().resume_from(&bytes) {
            Ok(request) => {
                self.count(Fault::Import);
                (request, Some(earlier))
            }
            Err(fault) => {
                self.wrong(
                    "commits",
                    alloc::format!("what was committed cannot be read: {fault:?}"),
                );
                (request, None)
            }
        }
    }

    /// Publishes as a driver does: the epoch that is to be used is written down first.
    pub(super) fn publish_kept(
        &mut self,
        node: usize,
        now: Now,
        request: Publish,
    ) -> Result<Ticket, Refused<Publish>> {
        let client = self.nodes[node].client;
        let refused = match self.net.at(client).publish(now, request) {
            Err(refused) => refused,
            taken => return taken,
        };
        let Refusal::EpochNotKept { epoch } = refused.reason else {
            return Err(refused);
        };
        self.count(Fault::EpochKept);
        let upto = epoch + AHEAD;
        let state = &mut self.nodes[node];
        state.last_epoch = state.last_epoch.max(upto);
        let client = self.net.at(client);
        client.epochs_kept(upto);
        client.publish(now, refused.request)
    }

    /// Who publishes that burst at that node.
    pub(super) fn publisher_of(
        &mut self,
        burst: usize,
        node: usize,
        one: bool,
    ) -> Option<PublisherId> {
        if !self.more.publishers || one {
            return None;
        }
        let (client, life) = (self.nodes[node].client, self.nodes[node].life);
        if let Some((of, by, _)) = self.publishers.get(&(burst, node))
            && *of == life
        {
            return Some(*by);
        }
        let by = self.net.at(client).open_publisher(true).ok()?;
        self.count(Fault::Announced);
        let made = alloc::vec::Vec::new();
        self.publishers.insert((burst, node), (life, by, made));
        Some(by)
    }

    /// A burst is over: every third publisher gives up what is not settled.
    pub(super) fn end_publisher(&mut self, burst: usize, node: usize) {
        let Some((life, by, made)) = self.publishers.remove(&(burst, node)) else {
            return;
        };
        let state = &self.nodes[node];
        let host = self.net.client_host(state.client);
        if !state.up || state.life != life || self.net.hosts[host].clock.is_asleep() {
            return;
        }
        let (client, now) = (state.client, self.net.now_of(host));
        let client = self.net.at(client);
        let done = match burst % 3 {
            0 => client.cancel_publisher(now, by),
            _ => client.end_publisher(now, by),
        };
        if done.is_err() {
            return self.wrong("tickets", "a publisher was over before its end".into());
        }
        if burst.is_multiple_of(3) {
            self.count(Fault::CancelPublisher);
            for number in made {
                self.truth.made[number].cancelled = true;
            }
        }
    }
}
