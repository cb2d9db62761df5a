//! Who wants what: realms, interests, subscriptions.
//!
//! Decides: whether a subscription is taken, and which topics have a ring. Leaves to others: where it begins to read (resume), how long its
//! interest outlives it (linger), what is read. Believes: no clock. Bounded by: `StationLimits::{subscribed_realms, topics, subscribers_per_topic,
//! subscriptions_per_link, filters_per_link}`; each is a refusal with its reason and limit.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::timers::Timer;
use super::topics::{self, Topic};
use super::{ReaderId, Station, TopicId};
use crate::code::SubscribeRefusal;
use crate::filters::Filters;
use crate::time::{Instant, Now};
use crate::topic;
use crate::wire::{self, Frame};
use crate::{LinkId, NodeId, RealmId, RunId};

/// One filter somebody subscribes to, or did until lately.
#[derive(Debug, Default)]
pub(super) struct Interest {
    pub(super) holders: Vec<ReaderId>,
    /// The realm's offset when its recording began.
    pub(super) floor: u64,
    /// Nobody holds it: it ends then.
    pub(super) lingers_until: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Realm {
    pub(super) run: RunId,
    /// How many publications it admitted, and recordings it ended.
    pub(super) offset: u64,
    pub(super) topics: BTreeMap<String, TopicId>,
    /// Exact topics are filters without wildcards.
    pub(super) interests: Filters<Interest>,
    /// Filters nobody holds, by when they end.
    pub(super) lingering: BTreeSet<(Instant, String)>,
    /// The deadline in the timer index.
    pub(super) linger_at: Option<Instant>,
    pub(super) pinned: bool,
    /// The node whose subscription opened it: a part of its share.
    opened_by: Option<NodeId>,
    /// Whose turn it is for an anycast.
    pub(super) turn: usize,
}

impl Realm {
    /// Whether anybody wants `topic`, or did until lately.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.interests.matches(name)
    }

    /// Whether anybody wants `topic` now.
    fn is_held(&self, name: &str) -> bool {
        let mut matching = self.interests.matching(name).into_iter();
        matching.any(|interest| !interest.holders.is_empty())
    }

    /// Every subscription that matches `name`.
    pub(super) fn holders_of(&self, name: &str) -> Vec<ReaderId> {
        let matching = self.interests.matching(name).into_iter();
        matching
            .flat_map(|interest| interest.holders.iter().copied())
            .collect()
    }

    /// The topics with a ring that `filter` matches.
    pub(super) fn topics_of<'a>(
        &'a self,
        filter: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a TopicId)> {
        let one = match topic::has_wildcard(filter) {
            true => None,
            false => self.topics.get_key_value(filter),
        };
        let all = topic::has_wildcard(filter)
            .then(|| self.topics.iter())
            .into_iter()
            .flatten();
        one.into_iter()
            .chain(all.filter(move |(name, _)| topic::matches(filter, name)))
    }

    pub(super) fn interests(&self) -> &Filters<Interest> {
        &self.interests
    }
}

impl Station {
    /// Starts a realm: pinned, or opened by a node's subscription.
    pub(super) fn open_realm(&mut self, id: RealmId, opened_by: Option<NodeId>) {
        let mut run = [0; 8];
        run.copy_from_slice(&self.entropy.draw()[..8]);
        self.realms.insert(
            id,
            Realm {
                run: RunId::new(run),
                offset: 0,
                topics: BTreeMap::new(),
                interests: Filters::default(),
                lingering: BTreeSet::new(),
                linger_at: None,
                pinned: opened_by.is_none(),
                opened_by,
                turn: 0,
            },
        );
    }

    /// Answers a `subscribe`.
    pub(super) fn subscribe(&mut self, now: Now, link: LinkId, wanted: &wire::Subscribe<'_>) {
        let answer = match self.judge(link, wanted) {
            Err((reason, limit)) => {
                self.counts.subscriptions_refused += 1;
                Frame::Refused(wire::Refused {
                    id: wanted.id,
                    reason,
                    limit,
                })
            }
            Ok(()) => self.take(now, link, wanted),
        };
        self.answer(link, &answer);
    }

    fn judge(
        &self,
        link: LinkId,
        wanted: &wire::Subscribe<'_>,
    ) -> Result<(), (SubscribeRefusal, Option<u64>)> {
        let limits = &self.config.limits;
        let refuse = |reason, limit: usize| Err((reason, Some(limit as u64)));
        if self.draining {
            return Err((SubscribeRefusal::Draining, None));
        }
        if topic::check_filter(wanted.filter).is_err() {
            return Err((SubscribeRefusal::BadFilter, None));
        }
        let Some(side) = self.links.get(link) else {
            return Err((SubscribeRefusal::Draining, None));
        };
        if side.readers.len() >= limits.subscriptions_per_link {
            return refuse(
                SubscribeRefusal::TooManySubscriptions,
                limits.subscriptions_per_link,
            );
        }
        if topic::has_wildcard(wanted.filter) && side.filters >= limits.filters_per_link {
            return refuse(SubscribeRefusal::TooManyFilters, limits.filters_per_link);
        }
        let known = self.realms.get(&wanted.realm);
        let held = known.and_then(|realm| realm.interests.get(wanted.filter));
        match known {
            None => {
                let open = self.realms.values().filter(|realm| !realm.pinned);
                if open.count() >= limits.subscribed_realms {
                    return refuse(SubscribeRefusal::TooManyRealms, limits.subscribed_realms);
                }
                let node = side.base.peer().map(|peer| peer.id);
                let own = self
                    .realms
                    .values()
                    .filter(|realm| !realm.pinned && realm.opened_by == node);
                if own.count() >= limits.realms_per_node() {
                    return refuse(SubscribeRefusal::TooManyRealms, limits.realms_per_node());
                }
            }
            Some(_) => {
                if held.map_or(0, |i| i.holders.len()) >= limits.subscribers_per_topic {
                    return refuse(
                        SubscribeRefusal::TooManySubscriptions,
                        limits.subscribers_per_topic,
                    );
                }
            }
        }
        Ok(())
    }

    /// The ring of a topic somebody wants, started when there is none. `None` when nobody does, or every ring is taken.
    pub(super) fn topic_for(&mut self, now: Now, realm_id: RealmId, name: &str) -> Option<TopicId> {
        let realm = self.realms.get_mut(&realm_id)?;
        if let Some(topic) = realm.topics.get(name) {
            return Some(*topic);
        }
        if !realm.wants(name) {
            return None;
        }
        let held = realm.is_held(name);
        if self.topics.len() >= self.config.limits.topics && !self.make_topic_room(held) {
            self.counts.topics_refused += 1;
            return None;
        }
        let realm = self.realms.get_mut(&realm_id)?;
        let id = self.topics.insert(Topic::new(
            realm_id,
            name.to_owned(),
            self.config.limits.ring_items,
            self.config.limits.ring_bytes,
        ));
        realm.topics.insert(name.to_owned(), id);
        let holders = realm.holders_of(name);
        for reader in holders {
            self.join(now, id, reader, u64::MAX);
        }
        Some(id)
    }

    /// An `unsubscribe`; unknown ids are ignored.
    pub(super) fn unsubscribe(&mut self, now: Now, link: LinkId, id: u64) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let Some(reader) = side.readers.remove(&id) else {
            return;
        };
        side.round.remove(reader);
        let (dead_letters, ones_bytes) = (&mut self.counts.dead_letters, &mut self.ones_bytes);
        side.ones.retain(|(other, object)| {
            let keep = *other != id;
            if !keep {
                *dead_letters += 1;
                *ones_bytes -= object.len();
            }
            keep
        });
        self.end_reader(now, reader);
    }

    /// Ends every subscription of a link, and forgets what is held for it.
    pub(super) fn end_subscriptions(&mut self, now: Now, link: LinkId) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let readers: Vec<ReaderId> = core::mem::take(&mut side.readers).into_values().collect();
        let unanswered = side.unanswered > 0;
        side.round.clear();
        side.filters = 0;
        // Their publishers were told that they were routed, so they are counted.
        for (_, object) in side.ones.drain(..) {
            self.counts.dead_letters += 1;
            self.ones_bytes -= object.len();
        }
        for reader in readers {
            self.end_reader(now, reader);
        }
        if unanswered {
            self.topics.forget_link(link);
        }
    }

    fn end_reader(&mut self, now: Now, id: ReaderId) {
        let Some(reader) = self.readers.remove(id) else {
            return;
        };
        self.counts.readers_cut_off += u64::from(reader.unread().is_some());
        self.timers
            .remove(&(reader.progress_at, Timer::Progress(id)));
        if topic::has_wildcard(&reader.filter)
            && let Some(side) = self.links.get_mut(reader.link)
        {
            side.filters = side.filters.saturating_sub(1);
        }
        topics::leave_all(&mut self.topics, &mut self.readers, &reader);
        let freed: Vec<TopicId> = reader.places().map(|(topic, _)| topic).collect();
        for topic in freed {
            // The slowest reader may have been this one.
            self.release(now, topic);
        }
        let Some(realm) = self.realms.get_mut(&reader.realm) else {
            return;
        };
        let Some(interest) = realm.interests.get_mut(&reader.filter) else {
            return;
        };
        interest.holders.retain(|holder| *holder != id);
        if !interest.holders.is_empty() {
            return;
        }
        self.begin_linger(now, &reader.realm, &reader.filter);
    }

    /// Ends every subscription of every link of `node`, telling each. Answers how many there were.
    pub fn purge(&mut self, now: Now, node: NodeId) -> usize {
        let now = self.at(now);
        let of_node = |(id, side): (LinkId, &super::StationSide)| {
            (side.base.peer().map(|peer| peer.id) == Some(node)).then(|| {
                let ids: Vec<u64> = side.readers.keys().copied().collect();
                (id, ids)
            })
        };
        let links: Vec<(LinkId, Vec<u64>)> = self.links.iter().filter_map(of_node).collect();
        let mut ended = 0;
        for (link, ids) in links {
            self.end_subscriptions(now, link);
            for id in ids {
                ended += 1;
                self.answer(
                    link,
                    &Frame::Refused(wire::Refused {
                        id,
                        reason: SubscribeRefusal::Purged,
                        limit: None,
                    }),
                );
            }
            self.raise(link);
        }
        ended
    }
}
