//! Publishing: at once, or waiting for room and for the outcome.
//!
//! Decides: how long a publication waits for room. Leaves to others: everything about it. Believes:
//! tokio's timer. Bounded by: `ClientLimits::tickets` outcomes waited for; publications that wait
//! for room are their callers'.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tidings::{GroupId, Misuse, Outcome, Publish, Refusal, Refused, Ticket};
use tidings_common::keys_pending;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::engine::Life;
use crate::node::NodeHost;
use crate::{EpochFile, Node};

/// How long [`Node::publish`] waits for room before it gives the publication back.
pub const PUBLISH_PATIENCE: Duration = tidings_common::patience::PUBLISH;

impl Node {
    /// Publishes and waits for the outcome. While the publish windows are full, or the keys of its
    /// group were asked for and are not there, it waits its turn, [`PUBLISH_PATIENCE`] at most; it does
    /// not wait for a station ([`Node::connected`] does).
    ///
    /// Not cancel safe: dropped while it waits for room, nothing was published; dropped later, the
    /// publication goes its way and its outcome is lost. Use [`Node::try_publish`] to tell the two
    /// apart.
    ///
    /// # Errors
    /// Refused with the reason and the publication; nothing was published and no number was used.
    pub async fn publish(&self, request: Publish) -> Result<Outcome, Refused<Publish>> {
        let mut refused = match self.try_publish(request) {
            Ok(pending) => return Ok(pending.await),
            Err(refused) => refused,
        };
        let deadline = Instant::now() + PUBLISH_PATIENCE;
        let mut turn = None;
        loop {
            let waited = match refused.reason {
                Refusal::WouldBlock if turn.is_none() => {
                    let taken = timeout_at(deadline, self.turn().lock()).await;
                    taken.map(|taken| turn = Some(taken))
                }
                Refusal::WouldBlock => timeout_at(deadline, self.ready_to_publish()).await,
                Refusal::GroupPending { group } => {
                    // Its keys are not what others wait for.
                    turn = None;
                    timeout_at(deadline, self.keys_answered(group)).await
                }
                _ => return Err(refused),
            };
            if waited.is_err() {
                return Err(refused);
            }
            match self.try_publish(refused.request) {
                Ok(pending) => {
                    drop(turn);
                    return Ok(pending.await);
                }
                Err(again) => refused = again,
            }
        }
    }

    /// Publishes without waiting, unless it is the first on a topic in this run and the node has an
    /// epoch file: that is written first. What becomes of it is the [`Pending`]'s to tell.
    ///
    /// # Errors
    /// Refused with the reason and the publication; nothing was published and no number was used.
    /// After `WouldBlock` and `GroupPending`, [`Node::ready_to_publish`] says when to try again;
    /// `EpochNotKept` says that the epoch file cannot be written.
    pub fn try_publish(&self, request: Publish) -> Result<Pending, Refused<Publish>> {
        let (settle, outcome) = oneshot::channel();
        let mut settle = Some(settle);
        let publish = |request, kept: Option<u64>| {
            self.engine().with(|state, now| {
                let host = &mut state.host;
                if let Some(upto) = kept {
                    host.client.epochs_kept(upto);
                }
                match host.client.publish(now, request) {
                    Ok(ticket) => {
                        host.tickets
                            .extend(settle.take().map(|settle| (ticket, settle)));
                        Ok(ticket)
                    }
                    Err(refused) => {
                        host.blocked |= refused.reason == Refusal::WouldBlock;
                        if let Refusal::GroupPending { group } = refused.reason {
                            host.pending.insert(group);
                        }
                        Err(refused)
                    }
                }
            })
        };
        let ticket = EpochFile::publish(self.epochs(), request, publish)?;
        Ok(Pending {
            node: self.clone(),
            ticket,
            outcome,
        })
    }

    /// Waits until a publication that was refused with `WouldBlock` or `GroupPending` may be tried
    /// again; returns at once when none was. Cancel safe.
    pub async fn ready_to_publish(&self) {
        self.until(|host| {
            let NodeHost {
                client, pending, ..
            } = host;
            pending.retain(|group| keys_pending(client, *group));
            !host.blocked && host.pending.is_empty()
        })
        .await;
    }

    /// Waits until a group's keys are there, or are not given out.
    async fn keys_answered(&self, group: GroupId) {
        self.until(|host| !keys_pending(&host.client, group)).await;
    }

    async fn until(&self, mut holds: impl FnMut(&mut NodeHost) -> bool) {
        // Every publication is settled within seconds, and so is every question, so there is an end
        // to this; the hour is none.
        let hour = Duration::from_secs(3600);
        let engine = self.engine();
        engine
            .wait(hour, |state| {
                (holds(&mut state.host) || state.life != Life::Running).then_some(())
            })
            .await;
    }
}

/// A publication on its way: a future of its outcome. Dropping it cancels nothing.
#[must_use = "the outcome is lost with it"]
pub struct Pending {
    node: Node,
    ticket: Ticket,
    outcome: oneshot::Receiver<Outcome>,
}

impl Pending {
    /// Asks for the publication to be given up. It may have been routed already; the outcome is
    /// still to come, `Cancelled` unless it was settled before.
    ///
    /// # Errors
    /// When it was settled before.
    pub fn cancel(&self) -> Result<(), Misuse> {
        self.node
            .engine()
            .with(|state, now| state.host.client.cancel(now, self.ticket))
    }

    /// Its ticket, as the node's status names it.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }
}

impl Future for Pending {
    type Output = Outcome;

    /// Cancel safe. `Unknown` when the node was closed first.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        Pin::new(&mut self.outcome)
            .poll(cx)
            .map(|settled| settled.unwrap_or(Outcome::Unknown))
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}
