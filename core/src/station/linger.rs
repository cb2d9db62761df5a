//! Interests that outlive their last holder.
//!
//! Decides: how long an interest keeps its realm, its run and its rings without one, and what goes with it. Leaves to others: what holds an
//! interest (registry). Believes: mono. Bounded by: as many lingering interests as topics; at the bound the oldest of the realm that has
//! most goes early, counted.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::Station;
use super::timers::Timer;
use crate::RealmId;
use crate::time::{Duration, Now};
use crate::topic;

/// An interest outlives its last holder so long: a link that comes back finds its realm, its run and its ring.
const LINGER: Duration = Duration::from_secs(120);

impl Station {
    /// The last holder of an interest has left.
    pub(super) fn begin_linger(&mut self, now: Now, id: &RealmId, filter: &str) {
        let Some(realm) = self.realms.get_mut(id) else {
            return;
        };
        let Some(interest) = realm.interests.get_mut(filter) else {
            return;
        };
        let until = now.mono.saturating_add(LINGER);
        interest.lingers_until = Some(until);
        realm.lingering.insert((until, filter.into()));
        self.idle_interests += 1;
        // Guests that come and go leave no more behind than topics there may be.
        if self.idle_interests > self.config.limits.topics {
            self.cut_linger();
        }
        self.arm_linger(*id);
    }

    /// Somebody holds an interest, again perhaps.
    pub(super) fn end_linger(&mut self, id: &RealmId, filter: &str) {
        if let Some(realm) = self.realms.get_mut(id)
            && let Some(interest) = realm.interests.get_mut(filter)
            && let Some(until) = interest.lingers_until.take()
        {
            realm.lingering.remove(&(until, filter.to_owned()));
            self.idle_interests -= 1;
        }
    }

    /// A realm may have interests whose linger is over.
    pub(super) fn linger_timeout(&mut self, now: Now, id: RealmId) {
        let Some(realm) = self.realms.get_mut(&id) else {
            return;
        };
        realm.linger_at = None;
        let mut over = Vec::new();
        while let Some((until, _)) = realm.lingering.first()
            && *until <= now.mono
            && let Some((_, filter)) = realm.lingering.pop_first()
        {
            over.push(filter);
        }
        self.forget(id, &over);
        self.arm_linger(id);
    }

    /// Ends one linger early: the oldest of the realm that has most. False when there is none.
    pub(super) fn cut_linger(&mut self) -> bool {
        let most = self
            .realms
            .iter()
            .max_by_key(|(_, realm)| realm.lingering.len());
        let Some(id) = most.map(|(id, _)| *id) else {
            return false;
        };
        let realm = self.realms.get_mut(&id);
        let Some((_, filter)) = realm.and_then(|realm| realm.lingering.pop_first()) else {
            return false;
        };
        self.counts.lingers_cut += 1;
        self.forget(id, &[filter]);
        self.arm_linger(id);
        true
    }

    /// Ends the recording of filters nobody holds, and what only they kept.
    fn forget(&mut self, id: RealmId, filters: &[String]) {
        let Some(realm) = self.realms.get_mut(&id) else {
            return;
        };
        let mut names: Vec<String> = Vec::new();
        for filter in filters {
            realm.interests.remove(filter);
            self.idle_interests -= 1;
            // A position from before this end is below the floor of any later interest.
            realm.offset += 1;
        }
        // One pass over the topics, however many filters there are.
        match filters {
            [filter] => names.extend(realm.topics_of(filter).map(|(name, _)| name.clone())),
            _ if filters.iter().any(|filter| topic::has_wildcard(filter)) => {
                names.extend(realm.topics.keys().cloned());
            }
            _ => names.extend(filters.iter().cloned()),
        }
        names.retain(|name| !realm.wants(name));
        for name in names {
            if let Some(topic) = realm.topics.remove(&name)
                && let Some(gone) = self.topics.remove(topic)
                && let Some(at) = gone.release_at()
            {
                self.timers.remove(&(at, Timer::Release(topic)));
            }
        }
        if realm.interests.is_empty() && !realm.pinned {
            let armed = realm.linger_at;
            self.realms.remove(&id);
            self.disarm(armed, Timer::Linger(id));
        }
    }

    /// One timer for the realm, at the first of them, or earlier when that one is held again.
    fn arm_linger(&mut self, id: RealmId) {
        let Some(realm) = self.realms.get_mut(&id) else {
            return;
        };
        let Some(next) = realm.lingering.first().map(|(until, _)| *until) else {
            return;
        };
        if realm.linger_at.is_none_or(|armed| armed > next) {
            let armed = realm.linger_at.replace(next);
            self.disarm(armed, Timer::Linger(id));
            self.timers.insert((next, Timer::Linger(id)));
        }
    }
}
