//! A node: a client of the core with a thread of its own, or in a loop of the application's.
//!
//! Decides: how long a call waits. Leaves to others: everything about publications and streams. Believes: the host's clock, for that.
//! Bounded by: one outcome kept per [`Pending`]; nothing is taken out of the core before its reader asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Registry, Token};
use tidings::{
    Client, ClientStatus, Delivery, Group, GroupId, Item, LinkState, Misuse, NodeId, Notice, Now,
    Outcome, Publish, Refusal, Refused, Subscribe, SubscriptionId, SubscriptionStatus, Ticket,
};
use tidings_common::{
    EpochFile, IoCounters, NodeSettings, StartError, WaitError, keys_pending, patience,
};

use crate::driven::Driven;
use crate::thread::{SOCKETS, Shared};

/// How many items are read before links that wait for this reader are tried again.
const RETRY_EVERY: u32 = 32;

impl Driven<Client> {
    /// A node in the loop of `registry`, with its sockets under tokens from `first` on. It dials its stations as the loop goes. Where
    /// epochs are kept in a file, that comes with it, for [`EpochFile::publish`].
    ///
    /// # Errors
    /// [`StartError`]; nothing is left registered then.
    pub fn node(
        settings: NodeSettings,
        registry: &Registry,
        first: Token,
    ) -> Result<(Self, Option<EpochFile>), StartError> {
        let parts = settings.build()?;
        let (client, clock) = (parts.client, parts.clock);
        let (targets, tls) = (parts.targets, parts.tls);
        let driven = Self::new(client, clock, registry, first, targets, tls)?;
        Ok((driven, parts.epochs))
    }
}

/// What all handles of a node share. Its drop is the node's end.
#[derive(Debug)]
struct Inner {
    shared: Arc<Shared<Client>>,
    id: NodeId,
    epochs: Option<EpochFile>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.call(Driven::close);
    }
}

/// A running node. Cloning gives another handle of the same node; every call blocks for a bounded time, from any thread.
///
/// Subscriptions and pending publications are handles as well. When the last one is dropped the node says goodbye and closes by itself;
/// [`Node::close`] waits for it.
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

impl Node {
    /// Starts a node on a thread of its own. It dials its stations at once and goes on doing so until it is closed.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub fn start(settings: NodeSettings) -> Result<Self, StartError> {
        let answers = settings.answerer();
        let (shared, epochs) = Shared::start("tidings-node", answers, |registry| {
            Driven::node(settings, registry, SOCKETS)
        })?;
        let id = shared.lock().driven.machine().id();
        Ok(Self(Arc::new(Inner { shared, id, epochs })))
    }

    fn shared(&self) -> &Shared<Client> {
        &self.0.shared
    }

    /// Its identity.
    pub fn id(&self) -> NodeId {
        self.0.id
    }

    /// What it does now and has done so far.
    pub fn status(&self) -> ClientStatus {
        self.shared().lock().driven.machine().status()
    }

    /// What its sockets did so far.
    pub fn io(&self) -> IoCounters {
        self.shared().lock().driven.io()
    }

    /// Calls the client under the node's lock, for what has no method here: publishers, groups, `cancel`, `memory`, `last_epoch`.
    pub fn with<R>(&self, call: impl FnOnce(&mut Client, Now) -> R) -> R {
        self.shared().call(|driven| driven.with(call))
    }

    /// Subscribes. The stream is there at once; stations carry it as they answer ([`Subscription::carried`]).
    ///
    /// # Errors
    /// Refused with the reason and the request; nothing was changed.
    pub fn subscribe(&self, request: Subscribe) -> Result<Subscription, Refused<Subscribe>> {
        let id = self.with(|client, now| client.subscribe(now, request))?;
        Ok(Subscription {
            node: self.clone(),
            id,
            ended: false,
            taken: 0,
        })
    }

    /// Waits until at least `stations` links are up, and answers how many are.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] after `within`; [`WaitError::Ended`] when the node was closed.
    pub fn connected(&self, stations: usize, within: Duration) -> Result<usize, WaitError> {
        self.reach(stations, within, |client| {
            let links = client.status().links;
            let up = links.iter().filter(|link| link.state == LinkState::Up);
            Some(up.count())
        })
    }

    fn reach(
        &self,
        wanted: usize,
        within: Duration,
        count: impl Fn(&Client) -> Option<usize>,
    ) -> Result<usize, WaitError> {
        let mut reached = 0;
        let found = self.shared().wait(&self.shared().changed, within, |state| {
            let Some(now) = count(state.driven.machine()).filter(|_| !state.ended) else {
                return Some(Err(WaitError::Ended));
            };
            reached = now;
            (now >= wanted).then_some(Ok(now))
        });
        found.unwrap_or(Err(WaitError::TimedOut { reached, wanted }))
    }

    /// Publishes and waits for the outcome. While the publish windows are full, or the keys of its group were asked for and are not
    /// there, it waits, for 30 s at most; it does not wait for a station ([`Node::connected`] does).
    ///
    /// # Errors
    /// Refused with the reason and the publication; nothing was published and no number was used.
    pub fn publish(&self, request: Publish) -> Result<Outcome, Refused<Publish>> {
        let start = Instant::now();
        let mut refused = match self.try_publish(request) {
            Ok(pending) => return Ok(pending.wait()),
            Err(refused) => refused,
        };
        while let Refusal::WouldBlock | Refusal::GroupPending { .. } = refused.reason {
            let left = patience::PUBLISH.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            // Any turn may have made room.
            let mut turns = 0;
            self.shared().wait(&self.shared().changed, left, |state| {
                turns += 1;
                // The answer may have come before this began to wait.
                let answered = match refused.reason {
                    Refusal::GroupPending { group } => !keys_pending(state.driven.machine(), group),
                    _ => false,
                };
                (answered || turns > 1).then_some(())
            });
            match self.try_publish(refused.request) {
                Ok(pending) => return Ok(pending.wait()),
                Err(again) => refused = again,
            }
        }
        Err(refused)
    }

    /// Publishes without waiting, unless it is the first on a topic in this run and the node has an epoch file: that is written first.
    ///
    /// # Errors
    /// Refused with the reason and the publication; nothing was published and no number was used.
    pub fn try_publish(&self, request: Publish) -> Result<Pending, Refused<Publish>> {
        let publish = |request, kept: Option<u64>| {
            let mut state = self.shared().lock();
            let ticket = state.driven.with(|client, now| {
                if let Some(upto) = kept {
                    client.epochs_kept(upto);
                }
                client.publish(now, request)
            })?;
            state.tickets.insert(ticket, None);
            self.shared().wake(&mut state);
            Ok(ticket)
        };
        let ticket = EpochFile::publish(self.0.epochs.as_ref(), request, publish)?;
        Ok(Pending {
            node: self.clone(),
            ticket,
        })
    }

    /// Joins a group, for `Publish::group` and `Subscribe::group`. Its keys are asked for at once, and as they change; nothing is published
    /// in the clear under its prefix from now on.
    ///
    /// # Errors
    /// Refused with the reason and the request.
    pub fn join_group(&self, group: Group) -> Result<GroupId, Refused<Group>> {
        self.with(|client, now| client.join_group(now, group))
    }

    /// Leaves a group: its keys are wiped.
    ///
    /// # Errors
    /// When it was left before.
    pub fn leave_group(&self, group: GroupId) -> Result<(), Misuse> {
        self.with(|client, now| client.leave_group(now, group))
    }

    /// Says goodbye on every link, ends every stream, and waits until the sockets are closed, 2 s at most.
    pub fn close(&self) {
        self.shared().close();
    }
}

/// A publication on its way. Dropping it cancels nothing.
#[derive(Debug)]
#[must_use = "the outcome is lost with it"]
pub struct Pending {
    node: Node,
    ticket: Ticket,
}

impl Pending {
    /// Its ticket, as the node's status names it.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Waits for the outcome, which comes within seconds; `Unknown` when the node was closed first.
    pub fn wait(self) -> Outcome {
        self.wait_for(Duration::MAX).unwrap_or(Outcome::Unknown)
    }

    /// Waits so long at most; `None` when it is not known by then.
    pub fn wait_for(&self, within: Duration) -> Option<Outcome> {
        let shared = self.node.shared();
        shared.wait(&shared.changed, within, |state| {
            let known = state.tickets.get(&self.ticket).copied().flatten();
            known.or_else(|| state.ended.then_some(Outcome::Unknown))
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.node.shared().lock().tickets.remove(&self.ticket);
    }
}

/// A stream of facts and notices. Dropping it unsubscribes.
#[derive(Debug)]
pub struct Subscription {
    node: Node,
    id: SubscriptionId,
    ended: bool,
    /// Items read since the waiting links were last tried again.
    taken: u32,
}

impl Subscription {
    /// Its handle, as the node's status names it.
    pub fn id(&self) -> SubscriptionId {
        self.id
    }

    /// The next item, waited for so long at most. `None` when none came, and after the stream's `Ended` notice.
    pub fn next(&mut self, within: Duration) -> Option<Item> {
        let (id, taken) = (self.id, &mut self.taken);
        let shared = self.node.shared();
        let item = shared.wait(&shared.items, within, |state| {
            let seats = &mut state.driven.seats;
            // What ends may leave the machine something to say; a fact does not.
            let quiet = |item: &Option<Item>| !matches!(item, Some(Item::Notice(_)));
            let item = seats.take(|client| client.poll_item(id), quiet);
            *taken += 1;
            if item.is_none() || *taken >= RETRY_EVERY {
                *taken = 0;
                seats.retry();
            }
            match item {
                None if state.ended => Some(None),
                None => None,
                Some(item) => Some(Some(item)),
            }
        });
        let item = item.flatten()?;
        if let Item::Notice(notice) = &item {
            self.ended |= matches!(**notice, Notice::Ended { .. });
        }
        Some(item)
    }

    /// Whether the stream's `Ended` notice was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// How it stands: carriers, counts, what is queued. `None` once it has ended.
    pub fn status(&self) -> Option<SubscriptionStatus> {
        let state = self.node.shared().lock();
        state.driven.machine().subscription(self.id)
    }

    /// What to keep so that the next run goes on behind `delivery`, the last fact this stream gave: bytes for `Subscribe::resume_from`.
    ///
    /// # Errors
    /// Those of `Client::commit`.
    pub fn commit(&self, delivery: &Delivery) -> Result<Vec<u8>, Misuse> {
        let mut state = self.node.shared().lock();
        state
            .driven
            .seats
            .take(|client| client.commit(self.id, delivery), |_| true)
    }

    /// Waits until at least `stations` stations accepted it, and answers how many have.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] after `within`; [`WaitError::Ended`] when it or the node has ended.
    pub fn carried(&self, stations: usize, within: Duration) -> Result<usize, WaitError> {
        self.node.reach(stations, within, |client| {
            client.subscription(self.id).map(|status| status.carriers)
        })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let id = self.id;
        self.node.with(|client, now| {
            // One that has ended by itself needs no unsubscribing.
            client.unsubscribe(now, id).ok();
            while client.poll_item(id).is_some() {}
        });
    }
}
