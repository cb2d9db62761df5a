//! Who wants what: realms, interests, subscriptions.
//!
//! Decides: whether a subscription is taken, and how long its realm and rings outlive it. Leaves to others: what is read. Believes: the
//! monotonic clock, for lingering. Bounded by: `StationLimits::{subscribed_realms, topics, subscribers_per_topic,
//! subscriptions_per_link, filters_per_link}`; each is a refusal with its reason and limit.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::reader::{PROGRESS_EVERY, Reader};
use super::timers::Timer;
use super::topics::{self, Topic};
use super::{ReaderId, Station, TopicId};
use crate::code::SubscribeRefusal;
use crate::filters::Filters;
use crate::time::{Instant, Now};
use crate::topic;
use crate::wire::{self, Frame, Position, ResumeOutcome};
use crate::{LinkId, NodeId, RealmId, RunId};

/// An interest outlives its last holder so long: a link that comes back finds its realm, its run and its ring.
const LINGER: Duration = Duration::from_secs(120);

/// One filter somebody subscribes to, or did until lately.
#[derive(Debug, Default)]
pub(super) struct Interest {
    holders: Vec<ReaderId>,
    /// When the last holder left.
    idle_since: Option<Instant>,
    /// It is among the lingering.
    lingers: bool,
}

#[derive(Debug)]
pub(super) struct Realm {
    pub(super) run: RunId,
    /// How many publications it admitted.
    pub(super) offset: u64,
    pub(super) topics: BTreeMap<String, TopicId>,
    /// Exact topics are filters without wildcards.
    interests: Filters<Interest>,
    /// Filters whose last holder left, by when it did.
    lingering: VecDeque<(Instant, String)>,
    /// The deadline in the timer index.
    linger_at: Option<Instant>,
    pinned: bool,
    /// Whose turn it is for an anycast.
    pub(super) turn: usize,
}

impl Realm {
    /// Whether anybody wants `topic`, or did until lately.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.interests.matches(name)
    }

    /// Every subscription that matches `name`.
    pub(super) fn holders_of(&self, name: &str) -> Vec<ReaderId> {
        let matching = self.interests.matching(name).into_iter();
        matching
            .flat_map(|interest| interest.holders.iter().copied())
            .collect()
    }

    /// The topics with a ring that `filter` matches.
    fn topics_of<'a>(&'a self, filter: &'a str) -> impl Iterator<Item = (&'a String, &'a TopicId)> {
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
    pub(super) fn open_realm(&mut self, id: RealmId, pinned: bool) {
        let mut run = [0; 8];
        run.copy_from_slice(&self.entropy.draw()[..8]);
        self.realms.insert(
            id,
            Realm {
                run: RunId::new(run),
                offset: 0,
                topics: BTreeMap::new(),
                interests: Filters::default(),
                lingering: VecDeque::new(),
                linger_at: None,
                pinned,
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
                let open = self.realms.values().filter(|realm| !realm.pinned).count();
                if open >= limits.subscribed_realms {
                    return refuse(SubscribeRefusal::TooManyRealms, limits.subscribed_realms);
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

    fn take(&mut self, now: Now, link: LinkId, wanted: &wire::Subscribe<'_>) -> Frame<'static> {
        if !self.realms.contains_key(&wanted.realm) {
            self.open_realm(wanted.realm, false);
        }
        let wildcard = topic::has_wildcard(wanted.filter);
        let reader = self.readers.insert(Reader::new(
            now.mono,
            link,
            wanted.id,
            wanted.realm,
            wanted.filter.to_owned(),
        ));
        self.timers.insert((
            now.mono.saturating_add(PROGRESS_EVERY),
            Timer::Progress(reader),
        ));
        let mut position = Position {
            run: RunId::new([0; 8]),
            offset: 0,
        };
        if let Some(realm) = self.realms.get_mut(&wanted.realm) {
            position = Position {
                run: realm.run,
                offset: realm.offset,
            };
            let interest = realm.interests.entry(wanted.filter);
            interest.holders.push(reader);
            self.idle_interests -= usize::from(interest.idle_since.take().is_some());
            let mut matching: Vec<TopicId> = realm
                .topics_of(wanted.filter)
                .map(|(_, topic)| *topic)
                .collect();
            // In their order a place is appended, not inserted.
            matching.sort_unstable();
            for topic in matching {
                self.join(now, topic, reader);
            }
        }
        if let Some(side) = self.links.get_mut(link) {
            side.readers.insert(wanted.id, reader);
            side.filters += usize::from(wildcard);
        }
        // Positions are answered truthfully before rings are replayed: what lies before this acceptance is not here.
        let resume = match wanted.resume.is_some() {
            true => ResumeOutcome::Expired {
                oldest: position.offset,
            },
            false => ResumeOutcome::None,
        };
        Frame::Subscribed(wire::Subscribed {
            id: wanted.id,
            position,
            resume,
        })
    }

    fn join(&mut self, now: Now, topic: TopicId, reader: ReaderId) {
        if let Some(found) = self.topics.get_mut(topic)
            && let Some(entry) = self.readers.get_mut(reader)
        {
            let place = found.join(now.mono, reader);
            entry.join(topic, place);
        }
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
        if self.topics.len() >= self.config.limits.topics {
            self.counts.topics_refused += 1;
            return None;
        }
        let id = self.topics.insert(Topic::new(
            realm_id,
            name.to_owned(),
            self.config.limits.ring_items,
            self.config.limits.ring_bytes,
        ));
        realm.topics.insert(name.to_owned(), id);
        let holders = realm.holders_of(name);
        for reader in holders {
            self.join(now, id, reader);
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
        side.round.retain(|other| *other != reader);
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
        if side_has_held(&self.topics) {
            for (_, topic) in self.topics.iter_mut() {
                topic.forget_link(link);
            }
        }
    }

    fn end_reader(&mut self, now: Now, id: ReaderId) {
        let Some(reader) = self.readers.remove(id) else {
            return;
        };
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
        interest.idle_since = Some(now.mono);
        self.idle_interests += 1;
        if !core::mem::replace(&mut interest.lingers, true) {
            let at = now.mono.saturating_add(LINGER);
            realm.lingering.push_back((at, reader.filter));
        }
        // Guests that come and go leave no more behind than topics there may be.
        let patience = match self.idle_interests > self.config.limits.topics {
            true => Duration::ZERO,
            false => LINGER,
        };
        self.forget_idle(now, reader.realm, patience);
    }

    /// A realm may have interests whose linger is over.
    pub(super) fn end_linger(&mut self, now: Now, id: RealmId) {
        if let Some(realm) = self.realms.get_mut(&id) {
            realm.linger_at = None;
        }
        self.forget_idle(now, id, LINGER);
    }

    /// Forgets the interests nobody has held for so long, and what only they kept. With no patience at all one goes, the oldest.
    fn forget_idle(&mut self, now: Now, id: RealmId, patience: Duration) {
        let Some(realm) = self.realms.get_mut(&id) else {
            return;
        };
        let mut names = Vec::new();
        while let Some((at, _)) = realm.lingering.front()
            && (*at <= now.mono || (patience.is_zero() && names.is_empty()))
            && let Some((_, filter)) = realm.lingering.pop_front()
        {
            let Some(interest) = realm.interests.get_mut(&filter) else {
                continue;
            };
            match interest.idle_since {
                // Somebody holds it again.
                None => interest.lingers = false,
                // Held and left once more meanwhile: its time began anew. It may wait for those before it.
                Some(since) if now.mono < since.saturating_add(patience) => {
                    let at = since.saturating_add(LINGER);
                    realm.lingering.push_back((at, filter));
                }
                Some(_) => {
                    realm.interests.remove(&filter);
                    self.idle_interests -= 1;
                    names.extend(realm.topics_of(&filter).map(|(name, _)| name.clone()));
                    if patience.is_zero() {
                        break;
                    }
                }
            }
        }
        names.retain(|name| !realm.wants(name));
        for name in names {
            if let Some(topic) = realm.topics.remove(&name)
                && let Some(gone) = self.topics.remove(topic)
            {
                self.ring_bytes -= gone.bytes();
                if let Some(at) = gone.release_at() {
                    self.timers.remove(&(at, Timer::Release(topic)));
                }
            }
        }
        // One timer for the realm, at the first of them.
        let next = realm.lingering.front().map(|(at, _)| *at);
        let armed = core::mem::replace(&mut realm.linger_at, next);
        let over = realm.interests.is_empty() && !realm.pinned;
        if over {
            self.realms.remove(&id);
        }
        if armed != next || over {
            self.disarm(armed, Timer::Linger(id));
        }
        if armed != next && !over {
            self.timers.extend(next.map(|at| (at, Timer::Linger(id))));
        }
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

fn side_has_held(topics: &topics::Topics) -> bool {
    topics.iter().any(|(_, topic)| topic.holds_answers())
}
