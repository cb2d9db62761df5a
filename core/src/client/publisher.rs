//! Publishers: publications of one purpose under one handle.
//!
//! Decides: what is announced of them, and when a publisher is over. Leaves to others: each publication (`publish.rs`). Believes: the wall,
//! as the date of an announcement. Bounded by: `ClientLimits::open_publishers`; as many announcements beside `tickets`, the others are
//! counted and dropped. A publisher that does not announce draws nothing, sends nothing and keeps a handle.
//!
//! The first publication is preceded by `pubsub.publish_started_v1 { publish_id, topic }` in its realm, on the same links; when the
//! publisher is over, `pubsub.publish_completed_v1 { publish_id, outcome, reason? }` follows (WIRE.md section 7.1). What becomes of an
//! announcement is asked by nobody, and it goes beyond the publish window, so that it is never in the way of a publication.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Client, Publish};
use crate::action::Outcome;
use crate::refusal::{Misuse, Refusal};
use crate::time::Now;
use crate::wire::cbor::Writer;
use crate::{LinkId, PublisherId, RealmId};

const STARTED: &str = "pubsub.publish_started_v1";
const COMPLETED: &str = "pubsub.publish_completed_v1";

/// What its announcements name.
#[derive(Debug)]
struct Announced {
    id: [u8; 16],
    realm: RealmId,
    topic: String,
}

#[derive(Debug)]
pub(super) struct OpenPublisher {
    announce: bool,
    /// Since its first publication, where it announces.
    announced: Option<Announced>,
    /// Its publications that are not settled.
    unsettled: usize,
    /// Why the first of its publications that failed did.
    failed: Option<&'static str>,
    /// Takes no more publications.
    ended: bool,
}

impl OpenPublisher {
    pub(super) fn memory(&self) -> usize {
        self.announced
            .as_ref()
            .map_or(0, |announced| announced.topic.capacity())
    }
}

impl Client {
    /// A handle for publications that are cancelled together ([`Publish::by`]); with `announce` they are announced: `publish_started_v1`
    /// before the first, `publish_completed_v1` when the publisher is over.
    ///
    /// # Errors
    /// [`Refusal::Closed`], [`Refusal::TooManyPublishers`].
    pub fn open_publisher(&mut self, announce: bool) -> Result<PublisherId, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        if self.open_publishers.len() >= self.config.limits.open_publishers {
            return Err(Refusal::TooManyPublishers);
        }
        Ok(self.open_publishers.insert(OpenPublisher {
            announce,
            announced: None,
            unsettled: 0,
            failed: None,
            ended: false,
        }))
    }

    /// No more publications of it. It is over, and announced as completed or failed, when its last one is settled; until then it can be
    /// cancelled.
    ///
    /// # Errors
    /// When it is over.
    pub fn end_publisher(&mut self, now: Now, publisher: PublisherId) -> Result<(), Misuse> {
        self.at(now);
        let open = self
            .open_publishers
            .get_mut(publisher)
            .ok_or(Misuse::DeadHandle)?;
        open.ended = true;
        self.finish_publisher(publisher);
        Ok(())
    }

    /// Gives its unsettled publications up and announces it as cancelled. Those may have been routed; their numbers stay used.
    ///
    /// # Errors
    /// When it is over.
    pub fn cancel_publisher(&mut self, now: Now, publisher: PublisherId) -> Result<(), Misuse> {
        self.at(now);
        let open = self
            .open_publishers
            .remove(publisher)
            .ok_or(Misuse::DeadHandle)?;
        for ticket in self.tickets_of(publisher) {
            self.give_up(ticket);
        }
        self.announce_completed(&open, Some(Outcome::Cancelled));
        Ok(())
    }

    /// Whether a publication by that publisher is taken.
    pub(super) fn check_publisher(&self, publisher: Option<PublisherId>) -> Result<(), Refusal> {
        let Some(publisher) = publisher else {
            return Ok(());
        };
        match self.open_publishers.get(publisher) {
            Some(open) if !open.ended => Ok(()),
            _ => Err(Refusal::PublisherEnded),
        }
    }

    /// A publication of it is about to go to these links.
    pub(super) fn publisher_published(
        &mut self,
        now: Now,
        publisher: PublisherId,
        request: &Publish,
        links: &[LinkId],
    ) {
        let Some(open) = self.open_publishers.get_mut(publisher) else {
            return;
        };
        open.unsettled += 1;
        if !open.announce || open.announced.is_some() {
            return;
        }
        let mut id = [0; 16];
        id.copy_from_slice(&self.entropy.draw()[..16]);
        let mut payload = Vec::new();
        Writer::new(&mut payload)
            .map(2)
            .text("topic")
            .text(&request.topic)
            .text("publish_id")
            .bytes(&id);
        open.announced = Some(Announced {
            id,
            realm: request.realm,
            topic: request.topic.to_owned(),
        });
        let started = Publish::raw(request.realm, STARTED, payload);
        self.announce(now, &started, links.to_vec());
    }

    /// One of its publications is settled.
    pub(super) fn publisher_settled(&mut self, publisher: PublisherId, outcome: Outcome) {
        let Some(open) = self.open_publishers.get_mut(publisher) else {
            return;
        };
        open.unsettled -= 1;
        let failed = match outcome {
            Outcome::Routed { .. } | Outcome::NoSubscriber => None,
            Outcome::Refused(reason) => Some(reason.text()),
            Outcome::Cancelled | Outcome::Unknown => Some(outcome.code().text()),
        };
        open.failed = open.failed.or(failed);
        self.finish_publisher(publisher);
    }

    fn finish_publisher(&mut self, publisher: PublisherId) {
        let over = self
            .open_publishers
            .get(publisher)
            .is_some_and(|open| open.ended && open.unsettled == 0);
        if over && let Some(open) = self.open_publishers.remove(publisher) {
            self.announce_completed(&open, None);
        }
    }

    fn announce_completed(&mut self, open: &OpenPublisher, cancelled: Option<Outcome>) {
        let Some(announced) = &open.announced else {
            return;
        };
        let (outcome, reason) = match (cancelled, open.failed) {
            (Some(_), _) => ("cancelled", None),
            (None, Some(reason)) => ("failed", Some(reason)),
            (None, None) => ("completed", None),
        };
        let mut payload = Vec::new();
        let mut w = Writer::new(&mut payload);
        w.map(2 + usize::from(reason.is_some()));
        if let Some(reason) = reason {
            w.text("reason").text(reason);
        }
        w.text("outcome").text(outcome);
        w.text("publish_id").bytes(&announced.id);
        let completed = Publish::raw(announced.realm, COMPLETED, payload);
        let mut links = self.links_by_load();
        links.truncate(self.config.replication_factor);
        let links = links.into_iter().map(|(.., link)| link).collect();
        self.announce(self.now, &completed, links);
    }

    /// Publishes an announcement, or counts that it could not be.
    fn announce(&mut self, now: Now, request: &Publish, links: Vec<LinkId>) {
        if self.try_announce(now, request, links).is_none() {
            self.counts.announcements_dropped += 1;
        }
    }

    fn try_announce(&mut self, now: Now, request: &Publish, links: Vec<LinkId>) -> Option<()> {
        let limits = &self.config.limits;
        if links.is_empty() || self.tickets.len() >= limits.tickets + limits.open_publishers {
            return None;
        }
        let number = self
            .counters
            .next_kept(now.wall, request.realm, &request.topic)?;
        let object = self.sign(now, request, number, &links).ok()?;
        self.counters
            .commit(request.realm, &request.topic, false, number);
        self.send(now, object, request, links, true);
        Some(())
    }
}
