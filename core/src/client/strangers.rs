//! Facts of whoever would not be heard, before their signature is looked at.
//!
//! Decides: where sources are looked up, whether a fact need not be verified: every subscription that wants it knows that its source refuses
//! the claimed publisher, or has no verdict and cannot have one found for it. Leaves to others: verdicts and windows (the machine), lists of
//! nodes (receive). Believes: what the machine does. Bounded by: the readers at hand; what is dropped is counted in their episodes.
//!
//! It is not verified, so nothing is believed of it: no lookup begins, nothing is remembered, and nobody's place is closed. Where a lane of its
//! publisher may wait for its place, it is verified as any other.

use alloc::vec::Vec;

use super::lanes::LaneKey;
use super::receive::From;
use super::sources::{Found, SourceKey, Verdicts};
use super::{Client, TopicId};
use crate::SubscriptionId;
use crate::code::{DropReason, ObjectFault};
use crate::inbound::sources::Judgement;
use crate::time::Now;
use crate::wire::Publication;

/// A publication whose readers do not refuse its publisher by a list.
#[derive(Clone, Copy)]
pub(super) struct Claimed<'a> {
    pub(super) publication: &'a Publication<'a>,
    pub(super) from: From,
    pub(super) topic: Option<TopicId>,
    /// Why it is out of date, if it is.
    pub(super) life: Option<ObjectFault>,
}

impl Client {
    /// Whether it goes no further, and its readers are told so.
    pub(super) fn stop_stranger(
        &mut self,
        now: Now,
        claimed: &Claimed<'_>,
        readers: &mut Vec<SubscriptionId>,
    ) -> Result<bool, ObjectFault> {
        self.end_due_lookups(now);
        let all = readers.iter().all(|reader| {
            let stopped = self.stopped(now, claimed, *reader);
            stopped.is_some()
        });
        if !all {
            return Ok(false);
        }
        let publisher = claimed.publication.publisher;
        if claimed.publication.one {
            let one = self.one_unrefused(now, publisher, claimed.from.wire, readers);
            readers.retain(|reader| Some(*reader) == one);
        }
        let mut refused = 0;
        for reader in readers.iter() {
            match self.stopped(now, claimed, *reader) {
                Some(Found::Refuse(reason)) => {
                    refused += 1;
                    if claimed.life.is_none() {
                        self.count_refusal(*reader, reason);
                    }
                }
                Some(Found::Drop(reason)) => {
                    self.verdicts.count_dropped(reason);
                    self.dropped(now, *reader, reason, &publisher);
                }
                _ => {}
            }
        }
        match claimed.life {
            Some(fault) => Err(fault),
            None if refused == readers.len() => Err(ObjectFault::SourceRefused),
            None => Ok(true),
        }
    }

    /// What one subscription says to it, unless that takes more than is known.
    fn stopped(
        &mut self,
        now: Now,
        claimed: &Claimed<'_>,
        reader: SubscriptionId,
    ) -> Option<Found> {
        let publication = claimed.publication;
        let publisher = publication.publisher;
        let source = self.source_of(reader)?;
        if let Some(topic) = claimed.topic.filter(|_| !publication.one) {
            let key = LaneKey {
                publisher,
                topic,
                subscription: reader,
            };
            if self.lanes.find(&key).is_some() || self.resting.get(&key).is_some() {
                return None;
            }
        }
        let key = SourceKey { publisher, source };
        let Verdicts {
            machine, realms, ..
        } = &mut self.verdicts;
        if claimed.life.is_some() {
            // Nobody is looked up for what is over.
            return match machine.verdict(now, &key) {
                Some(Ok(())) => None,
                Some(Err(reason)) => Some(Found::Refuse(reason)),
                None => Some(Found::Drop(DropReason::OutOfDate)),
            };
        }
        let limits = *machine.limits();
        let realm = realms.get_mut(&publication.realm);
        let link = claimed.from.link;
        let stops = machine.stops(now, &key, |known| {
            realm.is_some_and(|realm| realm.window.has(now.mono, &limits, known, link))
        });
        match stops? {
            Judgement::Drop(dropped) => Some(Found::Drop(dropped.reason())),
            Judgement::Refuse(reason) => Some(Found::Refuse(reason)),
            _ => None,
        }
    }
}
