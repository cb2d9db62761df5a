//! Interests that outlive their last holder.
//!
//! Decides: how long an interest keeps its realm, its run and its rings without one, and what goes with it. Leaves to others: what holds an
//! interest (registry). Believes: mono. Bounded by: as many lingering interests as topics; at the bound the oldest of the realm goes early,
//! counted.

use alloc::vec::Vec;
use core::time::Duration;

use super::Station;
use super::timers::Timer;
use crate::RealmId;
use crate::time::Now;

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
        interest.idle_since = Some(now.mono);
        self.idle_interests += 1;
        if !core::mem::replace(&mut interest.lingers, true) {
            let at = now.mono.saturating_add(LINGER);
            realm.lingering.push_back((at, filter.into()));
        }
        // Guests that come and go leave no more behind than topics there may be.
        let patience = match self.idle_interests > self.config.limits.topics {
            true => Duration::ZERO,
            false => LINGER,
        };
        self.forget_idle(now, *id, patience);
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
                    self.counts.lingers_cut += u64::from(patience.is_zero());
                    // A position from before this end is below the floor of any later interest.
                    realm.offset += 1;
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
                && let Some(at) = gone.release_at()
            {
                self.timers.remove(&(at, Timer::Release(topic)));
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
}
