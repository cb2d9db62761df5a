//! A publication on its way out.
//!
//! Decides: its number, which links it goes to, what became of it. Leaves to others: routing (the station). Believes: the wall for its
//! date, mono for patience. Bounded by: `ClientLimits::{tickets, publish_window}`; what does not fit is refused before a number is used.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::pool::Out;
use super::timers::Timer;
use super::{Client, Publish};
use crate::action::{Action, Outcome};
use crate::code::OutcomeCode;
use crate::error::LinkError;
use crate::refusal::{Misuse, Refusal, Refused};
use crate::time::{Instant, Now};
use crate::topic;
use crate::wire::{self, Body, Draft, PayloadError, Published, Route};
use crate::{LinkId, Ticket};

/// How long the stations' answers are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A publication that is not settled.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) object: Bytes,
    pub(super) route: Route,
    /// Links that were handed it and have not answered.
    asked: Vec<LinkId>,
    /// Links that have had it, so that it goes to none twice.
    had: Vec<LinkId>,
    /// Links it should still be handed to, when one comes up.
    wanting: usize,
    taken: u8,
    best: Outcome,
    deadline: Instant,
}

/// Which of two answers says more.
fn better(a: Outcome, b: Outcome) -> Outcome {
    let rank = |outcome| match outcome {
        Outcome::Routed { subscribers } => (3, subscribers),
        Outcome::NoSubscriber => (2, 0),
        Outcome::Refused(_) => (1, 0),
        Outcome::Cancelled | Outcome::Unknown => (0, 0),
    };
    if rank(b) > rank(a) { b } else { a }
}

impl Client {
    /// Publishes: numbers, signs once and hands the same bytes to `replication_factor` links. `Action::Settle` tells what became of it.
    ///
    /// # Errors
    /// [`Refusal`]; the request comes back, nothing was changed and no number was used.
    pub fn publish(&mut self, now: Now, request: Publish) -> Result<Ticket, Refused<Publish>> {
        let now = self.at(now);
        match self.try_publish(now, &request) {
            Ok(ticket) => Ok(ticket),
            Err(reason) => Err(Refused { reason, request }),
        }
    }

    fn try_publish(&mut self, now: Now, request: &Publish) -> Result<Ticket, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        topic::check_topic(&request.topic).map_err(Refusal::BadTopic)?;
        if topic::is_system(&request.topic) {
            return Err(Refusal::SystemTopic);
        }
        let ttl_ms = request.ttl_ms()?;
        wire::check_payload(&request.payload)
            .map_err(|fault| Refusal::BadPayload(PayloadError::Cbor(fault)))?;
        if now.wall.as_millis() == 0 {
            return Err(Refusal::UnsetClock);
        }
        let links = self.choose_links(request.one)?;
        let number = self
            .counters
            .next(now.wall, request.realm, &request.topic, request.one);
        let draft = Draft {
            realm: request.realm,
            topic: &request.topic,
            publisher: self.id,
            epoch: Some(number.epoch),
            seq: number.seq,
            published_at: now.wall,
            ttl_ms,
            one: request.one,
            body: Body::Payload(&request.payload),
        };
        let signer = &*self.config.signer.0;
        let room = links
            .iter()
            .filter_map(|link| self.links.get(*link)?.longest_publication())
            .min()
            .unwrap_or(0);
        let length = draft.object_len(signer.profile());
        if length > room {
            return Err(Refusal::TooLarge { limit: room as u32 });
        }
        let mut object = Vec::with_capacity(length);
        draft
            .sign(signer, &mut object)
            .map_err(|_| Refusal::Signer)?;
        self.counters
            .commit(request.realm, &request.topic, request.one, number);
        let deadline = now.mono.saturating_add(PATIENCE);
        let ticket = self.tickets.insert(Outgoing {
            object: object.into(),
            route: if request.one { Route::One } else { Route::All },
            asked: Vec::with_capacity(links.len()),
            had: Vec::with_capacity(links.len()),
            wanting: 0,
            taken: 0,
            best: Outcome::Unknown,
            deadline,
        });
        self.timers.insert((deadline, Timer::Ticket(ticket)));
        for link in links {
            self.hand(ticket, link);
        }
        Ok(ticket)
    }

    /// The links a publication goes to: those with the most room in their window, as many as are wanted and up.
    fn choose_links(&self, one: bool) -> Result<Vec<LinkId>, Refusal> {
        let window = self.config.limits.publish_window;
        let live = self.links.iter().filter(|(_, side)| side.is_live());
        let mut open: Vec<(usize, LinkId)> = live
            .map(|(link, side)| (side.unanswered.len(), link))
            .collect();
        if open.is_empty() {
            return Err(Refusal::NoStation);
        }
        let wanted = if one {
            1
        } else {
            self.config.replication_factor.min(open.len())
        };
        open.retain(|(unanswered, _)| *unanswered < window);
        if open.len() < wanted || self.tickets.len() >= self.config.limits.tickets {
            return Err(Refusal::WouldBlock);
        }
        open.sort();
        open.truncate(wanted);
        Ok(open.into_iter().map(|(_, link)| link).collect())
    }

    fn hand(&mut self, ticket: Ticket, link: LinkId) {
        let Some(outgoing) = self.tickets.get_mut(ticket) else {
            return;
        };
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let id = side.next_id();
        side.unanswered.insert(id, ticket);
        side.queue.push_back(Out::Publish { ticket, id });
        outgoing.asked.push(link);
        outgoing.had.push(link);
        self.raise(link);
    }

    /// A transport took all its bytes.
    pub(super) fn bytes_taken(&mut self, ticket: Ticket) {
        if let Some(outgoing) = self.tickets.get_mut(ticket) {
            outgoing.taken = outgoing.taken.saturating_add(1);
            let links = outgoing.taken;
            self.actions.push_back(Action::Progress { ticket, links });
        }
    }

    pub(super) fn handle_published(
        &mut self,
        link: LinkId,
        published: &Published,
    ) -> Result<(), LinkError> {
        let Some(side) = self.links.get_mut(link) else {
            return Ok(());
        };
        let Some(ticket) = side.unanswered.remove(&published.id) else {
            if published.id > side.last_id {
                return Err(LinkError::UnknownId);
            }
            // Answered before, or settled before it was written: WIRE.md lets the link live.
            self.counts.unasked_frames += 1;
            return Ok(());
        };
        let outcome = match (published.outcome, published.reason) {
            (OutcomeCode::Routed, _) => Outcome::Routed {
                subscribers: published.subscribers,
            },
            (OutcomeCode::Refused, Some(reason)) => Outcome::Refused(reason),
            _ => Outcome::NoSubscriber,
        };
        if let Some(outgoing) = self.tickets.get_mut(ticket) {
            outgoing.asked.retain(|asked| *asked != link);
            outgoing.best = better(outgoing.best, outcome);
        }
        self.settle_if_answered(ticket);
        Ok(())
    }

    /// A link ended before its station answered: another one gets the same bytes while time lasts.
    pub(super) fn link_lost(&mut self, ticket: Ticket, link: LinkId) {
        let Some(outgoing) = self.tickets.get_mut(ticket) else {
            return;
        };
        outgoing.asked.retain(|asked| *asked != link);
        // One for a single subscriber may have arrived: it is never tried again in silence.
        if outgoing.route == Route::All {
            outgoing.wanting += 1;
            self.place(ticket);
        }
        self.settle_if_answered(ticket);
    }

    /// Hands a publication that lost a link to another one, if there is one it has not had.
    fn place(&mut self, ticket: Ticket) {
        let window = self.config.limits.publish_window;
        while let Some(outgoing) = self.tickets.get_mut(ticket)
            && outgoing.wanting > 0
        {
            let length = outgoing.object.len();
            let fresh = self.links.iter().find(|(link, side)| {
                side.is_live()
                    && side.unanswered.len() < window
                    && side
                        .longest_publication()
                        .is_some_and(|most| length <= most)
                    && !outgoing.had.contains(link)
            });
            let Some((link, _)) = fresh else { return };
            outgoing.wanting -= 1;
            self.hand(ticket, link);
        }
    }

    /// A link came up: what lost one goes to it.
    pub(super) fn place_waiting(&mut self) {
        let wanting = self
            .tickets
            .iter()
            .filter(|(_, outgoing)| outgoing.wanting > 0);
        let tickets: Vec<Ticket> = wanting.map(|(ticket, _)| ticket).collect();
        for ticket in tickets {
            self.place(ticket);
        }
    }

    fn settle_if_answered(&mut self, ticket: Ticket) {
        let Some(outgoing) = self.tickets.get(ticket) else {
            return;
        };
        let answered = outgoing.asked.is_empty();
        // One that lost every link and was answered by none waits for another link while time lasts.
        let hopeless = outgoing.best == Outcome::Unknown && outgoing.wanting > 0;
        if answered && !hopeless {
            let outcome = outgoing.best;
            self.settle(ticket, outcome);
        }
    }

    fn settle(&mut self, ticket: Ticket, outcome: Outcome) {
        let Some(outgoing) = self.tickets.remove(ticket) else {
            return;
        };
        self.timers
            .remove(&(outgoing.deadline, Timer::Ticket(ticket)));
        self.actions.push_back(Action::Settle { ticket, outcome });
    }

    pub(super) fn ticket_timeout(&mut self, ticket: Ticket) {
        if let Some(outgoing) = self.tickets.get(ticket) {
            let outcome = outgoing.best;
            self.settle(ticket, outcome);
        }
    }

    pub(super) fn settle_all(&mut self) {
        let tickets: Vec<Ticket> = self.tickets.iter().map(|(ticket, _)| ticket).collect();
        for ticket in tickets {
            self.ticket_timeout(ticket);
        }
    }

    /// Gives a publication up. It may have been routed; its number stays used.
    ///
    /// # Errors
    /// When it was settled before.
    pub fn cancel(&mut self, now: Now, ticket: Ticket) -> Result<(), Misuse> {
        self.at(now);
        self.tickets.get(ticket).ok_or(Misuse::DeadHandle)?;
        self.settle(ticket, Outcome::Cancelled);
        Ok(())
    }
}
