//! A publication on its way out.
//!
//! Decides: its number, which links it goes to, what became of it. Leaves to others: routing (the station). Believes: the wall for its
//! date, mono for patience. Bounded by: `ClientLimits::{tickets, publish_window}`; what does not fit is refused before a number is used.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::counter::Number;
use super::pool::Out;
use super::timers::Timer;
use super::{Client, Publish};
use crate::action::{Action, Outcome, StationRef};
use crate::code::{OutcomeCode, UnopenedReason};
use crate::crypto::{Seal, SealError};
use crate::error::LinkError;
use crate::refusal::{Misuse, Refusal, Refused};
use crate::time::{Instant, Now};
use crate::topic;
use crate::wire::{self, Body, Draft, PayloadError, Published, Route};
use crate::{LinkId, PublisherId, Ticket};

/// How long the stations' answers are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A publication that is not settled.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) object: Bytes,
    pub(super) route: Route,
    publisher: Option<PublisherId>,
    /// An announcement: nobody asks what became of it.
    silent: bool,
    /// Links that were handed it and have not answered.
    asked: Vec<LinkId>,
    /// Links that have had it, so that it goes to none twice.
    had: Vec<LinkId>,
    /// Links it should still be handed to, when one has room.
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
        request.ttl_ms()?;
        wire::check_payload(&request.payload)
            .map_err(|fault| Refusal::BadPayload(PayloadError::Cbor(fault)))?;
        if now.wall.as_millis() == 0 {
            return Err(Refusal::UnsetClock);
        }
        self.check_publisher(request.publisher)?;
        self.check_seal(now, request)?;
        let links = self.choose_links(request.one)?;
        let number = self
            .counters
            .next(now.wall, request.realm, &request.topic, request.one);
        if !self.counters.is_kept(number) {
            return Err(Refusal::EpochNotKept {
                epoch: number.epoch,
            });
        }
        let object = self.sign(now, request, number, &links)?;
        self.counters
            .commit(request.realm, &request.topic, request.one, number);
        if let Some(publisher) = request.publisher {
            self.publisher_published(now, publisher, request, &links);
        }
        Ok(self.send(now, object, request, links, false))
    }

    /// Whether it may go as it is: sealed under a key that is there, or in the clear where no group was joined.
    fn check_seal(&mut self, now: Now, request: &Publish) -> Result<(), Refusal> {
        self.check_group(request.group, &request.realm, &request.topic)?;
        if let Some(group) = request.group {
            return self.check_sealing(now, group);
        }
        match self.groups.covering(&request.realm, &request.topic) {
            Some(group) => Err(Refusal::GroupHeld { group }),
            None => Ok(()),
        }
    }

    /// The signed bytes of a publication, if all of these links take them.
    pub(super) fn sign(
        &mut self,
        now: Now,
        request: &Publish,
        number: Number,
        links: &[LinkId],
    ) -> Result<Vec<u8>, Refusal> {
        let draft = Draft {
            realm: request.realm,
            topic: &request.topic,
            publisher: self.id,
            epoch: Some(number.epoch),
            seq: number.seq,
            published_at: now.wall,
            ttl_ms: request.ttl_ms()?,
            one: request.one,
            body: Body::Payload(&request.payload),
        };
        let room = links
            .iter()
            .filter_map(|link| self.links.get(*link)?.longest_publication())
            .min()
            .unwrap_or(0);
        let signer = &*self.config.signer.0;
        let length = match request.group {
            Some(_) => draft.sealed_object_len(signer.profile()),
            None => draft.object_len(signer.profile()),
        };
        if length > room {
            return Err(Refusal::TooLarge { limit: room as u32 });
        }
        let mut object = Vec::with_capacity(length);
        let Some(group) = request.group else {
            let signed = draft.sign(signer, &mut object);
            return signed.map(|()| object).map_err(|_| Refusal::Signer);
        };
        let reason = UnopenedReason::NoGroup;
        let joined = self.groups.get_mut(group);
        let joined = joined.ok_or(Refusal::Group { group, reason })?;
        let key = joined.keyring.sealing(now, &self.id);
        let (key_id, subkey) = key.map_err(|_| Refusal::GroupPending { group })?;
        let seal = Seal {
            key_id,
            subkey,
            entropy: self.entropy.draw(),
        };
        let sealed = draft.sign_sealed(signer, &seal, &mut object);
        sealed.map_err(|fault| match fault {
            SealError::Signer => Refusal::Signer,
            SealError::TooLong => Refusal::TooLarge { limit: room as u32 },
        })?;
        Ok(object)
    }

    /// Hands signed bytes to these links.
    pub(super) fn send(
        &mut self,
        now: Now,
        object: Vec<u8>,
        request: &Publish,
        links: Vec<LinkId>,
        silent: bool,
    ) -> Ticket {
        let deadline = now.mono.saturating_add(PATIENCE);
        let ticket = self.tickets.insert(Outgoing {
            object: object.into(),
            route: if request.one { Route::One } else { Route::All },
            publisher: request.publisher,
            silent,
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
        ticket
    }

    /// Links that are up, those with the fewest unanswered publications first, then as they are configured.
    pub(super) fn links_by_load(&self) -> Vec<(usize, StationRef, LinkId)> {
        let live = self.links.iter().filter(|(_, side)| side.is_live());
        let mut links: Vec<_> = live
            .map(|(link, side)| (side.unanswered.len(), side.station, link))
            .collect();
        links.sort_unstable();
        links
    }

    /// The links a publication goes to: those with the most room in their window, as many as are wanted and up.
    fn choose_links(&self, one: bool) -> Result<Vec<LinkId>, Refusal> {
        let window = self.config.limits.publish_window;
        let mut open = self.links_by_load();
        if open.is_empty() {
            return Err(Refusal::NoStation);
        }
        let wanted = if one {
            1
        } else {
            self.config.replication_factor.min(open.len())
        };
        open.retain(|(unanswered, ..)| *unanswered < window);
        if open.len() < wanted || self.tickets.len() >= self.config.limits.tickets {
            return Err(Refusal::WouldBlock);
        }
        open.truncate(wanted);
        Ok(open.into_iter().map(|(.., link)| link).collect())
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
        if let Some(outgoing) = self.tickets.get_mut(ticket)
            && !outgoing.silent
        {
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
        self.place_displaced();
        Ok(())
    }

    /// A link ended before its station answered these: another one gets the same bytes while time lasts.
    pub(super) fn link_lost(&mut self, link: LinkId, unanswered: BTreeMap<u64, Ticket>) {
        let tickets: Vec<Ticket> = unanswered.into_values().collect();
        for ticket in &tickets {
            let Some(outgoing) = self.tickets.get_mut(*ticket) else {
                continue;
            };
            outgoing.asked.retain(|asked| *asked != link);
            // One for a single subscriber may have arrived: it is never tried again in silence.
            if outgoing.route == Route::All {
                outgoing.wanting += 1;
                self.displaced.push_back(*ticket);
            }
        }
        self.place_displaced();
        for ticket in tickets {
            self.settle_if_answered(ticket);
        }
    }

    /// Some link has room: what lost one goes there, the oldest first.
    pub(super) fn place_displaced(&mut self) {
        if self.displaced.is_empty() {
            return;
        }
        let mut displaced = core::mem::take(&mut self.displaced);
        displaced.retain(|ticket| !self.place(*ticket));
        self.displaced = displaced;
    }

    /// Hands a publication that lost a link to another one that it has not had. False when there is none.
    fn place(&mut self, ticket: Ticket) -> bool {
        let window = self.config.limits.publish_window;
        let Some(outgoing) = self.tickets.get(ticket) else {
            return true;
        };
        let length = outgoing.object.len();
        let open = self.links.iter().filter(|(link, side)| {
            side.is_live()
                && side.unanswered.len() < window
                && side
                    .longest_publication()
                    .is_some_and(|most| length <= most)
                && !outgoing.had.contains(link)
        });
        let Some((link, _)) = open.min_by_key(|(_, side)| (side.unanswered.len(), side.station))
        else {
            return false;
        };
        if let Some(outgoing) = self.tickets.get_mut(ticket) {
            outgoing.wanting -= 1;
        }
        self.hand(ticket, link);
        true
    }

    fn settle_if_answered(&mut self, ticket: Ticket) {
        let Some(outgoing) = self.tickets.get(ticket) else {
            return;
        };
        let taken = matches!(
            outgoing.best,
            Outcome::Routed { .. } | Outcome::NoSubscriber
        );
        // One that lost a link and was taken by no station waits for another link while time lasts.
        if outgoing.asked.is_empty() && (taken || outgoing.wanting == 0) {
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
        for link in &outgoing.asked {
            self.take_back(ticket, *link);
        }
        if !outgoing.silent {
            self.actions.push_back(Action::Settle { ticket, outcome });
        }
        if let Some(publisher) = outgoing.publisher {
            self.publisher_settled(publisher, outcome);
        }
    }

    /// What was not written is not sent any more, and its place in the window is free.
    fn take_back(&mut self, ticket: Ticket, link: LinkId) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let unwritten = side.queue.iter().position(
            |out| matches!(out, Out::Publish { ticket: queued, .. } if *queued == ticket),
        );
        if let Some(place) = unwritten
            && let Some(Out::Publish { id, .. }) = side.queue.remove(place)
        {
            side.unanswered.remove(&id);
        }
    }

    pub(super) fn ticket_timeout(&mut self, ticket: Ticket) {
        if let Some(outgoing) = self.tickets.get(ticket) {
            let outcome = outgoing.best;
            self.settle(ticket, outcome);
            self.place_displaced();
        }
    }

    pub(super) fn settle_all(&mut self) {
        let tickets: Vec<Ticket> = self.tickets.iter().map(|(ticket, _)| ticket).collect();
        for ticket in tickets {
            self.ticket_timeout(ticket);
        }
        self.displaced.clear();
    }

    /// The unsettled publications of a publisher.
    pub(super) fn tickets_of(&self, publisher: PublisherId) -> Vec<Ticket> {
        let own = self
            .tickets
            .iter()
            .filter(|(_, outgoing)| outgoing.publisher == Some(publisher));
        own.map(|(ticket, _)| ticket).collect()
    }

    /// Gives a publication up. It may have been routed; its number stays used.
    ///
    /// # Errors
    /// When it was settled before.
    pub fn cancel(&mut self, now: Now, ticket: Ticket) -> Result<(), Misuse> {
        self.at(now);
        let outgoing = self.tickets.get(ticket).ok_or(Misuse::DeadHandle)?;
        if outgoing.silent {
            return Err(Misuse::DeadHandle);
        }
        self.give_up(ticket);
        Ok(())
    }

    pub(super) fn give_up(&mut self, ticket: Ticket) {
        self.settle(ticket, Outcome::Cancelled);
        self.place_displaced();
    }
}
