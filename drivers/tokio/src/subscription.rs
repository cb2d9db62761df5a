//! A subscription: a stream of items read straight from the core.
//!
//! Decides: nothing. Leaves to others: bound, order and notices, which are the core's. Believes: no
//! clock. Bounded by: one waker; nothing is taken out of the core before its reader asks.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tidings::{Delivery, Item, Misuse, Notice, SubscriptionId, SubscriptionStatus};

use crate::engine::Life;
use crate::{Node, WaitError};

/// How many items are read before links that wait for this reader are tried again.
const WAKE_EVERY: u32 = 32;

/// A stream of facts and notices. Dropping it unsubscribes.
pub struct Subscription {
    node: Node,
    id: SubscriptionId,
    ended: bool,
    /// Items read since the waiting links were last woken.
    taken: u32,
}

impl Subscription {
    pub(crate) fn new(node: Node, id: SubscriptionId) -> Self {
        Self {
            node,
            id,
            ended: false,
            taken: 0,
        }
    }

    /// Its handle, as the node's status names it.
    pub fn id(&self) -> SubscriptionId {
        self.id
    }

    /// The next item; `None` after the stream's `Ended` notice. Cancel safe: an item is taken last.
    pub async fn next(&mut self) -> Option<Item> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    /// How it stands: carriers, counts, what is queued. `None` once it has ended.
    pub fn status(&self) -> Option<SubscriptionStatus> {
        self.node.engine().lock().host.client.subscription(self.id)
    }

    /// What to keep so that the next run goes on behind `delivery`, the last fact this stream gave: bytes for
    /// `Subscribe::resume_from`. Keep them once the fact is done with, for everything given until now counts as
    /// done. Costs a look at every lane of the subscription; once a second is plenty.
    ///
    /// # Errors
    /// `Misuse::NotCommitting` unless it was made with `committing` or `resume_from`;
    /// `Misuse::NotCommittable` for another fact than the last, or when the next item has to be taken first;
    /// `Misuse::DeadHandle` when it has ended.
    pub fn commit(&self, delivery: &Delivery) -> Result<Vec<u8>, Misuse> {
        let id = self.id;
        let engine = self.node.engine();
        engine.read(|state| state.host.client.commit(id, delivery))
    }

    /// Waits until at least `stations` stations accepted it, and answers how many have. Cancel
    /// safe.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] after `within`; [`WaitError::Ended`] when it or the node has ended.
    pub async fn carried(&mut self, stations: usize, within: Duration) -> Result<usize, WaitError> {
        let (engine, id) = (self.node.engine(), self.id);
        let found = engine.wait(within, |state| match state.host.client.subscription(id) {
            Some(status) if state.life == Life::Running => {
                (status.carriers >= stations).then_some(Ok(status.carriers))
            }
            _ => Some(Err(WaitError::Ended)),
        });
        match found.await {
            Some(result) => result,
            None => {
                let reached = self.status().map_or(0, |status| status.carriers);
                Err(WaitError::TimedOut {
                    reached,
                    wanted: stations,
                })
            }
        }
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // A stream that always has more lets other tasks run; asked before an item is taken, so
        // that none is lost.
        ready!(pin!(tokio::task::consume_budget()).poll(cx));
        let id = self.id;
        let taken = self.taken;
        let waiting = cx.waker();
        let mut replaced = None;
        let item = self.node.engine().read(|state| {
            let item = state.host.client.poll_item(id);
            if item.is_none() || taken + 1 >= WAKE_EVERY {
                state.wake_paused();
            }
            if item.is_none() {
                replaced = state.host.readers.insert(id, waiting.clone());
            }
            item
        });
        // A waker is not the driver's code: it goes without the lock.
        drop(replaced);
        self.taken = if item.is_none() || taken + 1 >= WAKE_EVERY {
            0
        } else {
            taken + 1
        };
        let Some(item) = item else {
            return Poll::Pending;
        };
        if let Item::Notice(notice) = &item {
            self.ended = matches!(**notice, Notice::Ended { .. });
        }
        Poll::Ready(Some(item))
    }
}

impl Stream for Subscription {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        self.poll_item(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let id = self.id;
        self.node.engine().with(|state, now| {
            // One that has ended by itself needs no unsubscribing.
            state.host.client.unsubscribe(now, id).ok();
            while state.host.client.poll_item(id).is_some() {}
            state.wake_paused();
            state.host.readers.remove(&id)
        });
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
