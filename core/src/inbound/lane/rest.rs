//! What is left of a lane that nobody speaks on.
//!
//! Decides: when a lane may shrink, and whether what is left still answers for anything. Leaves to others: keeping the records. Believes:
//! mono for the idle time; both clocks for the end, whichever says last. Bounded by: 64 bytes, two edges, one missing range.

use super::{Followed, Lane, Latest, Mode, Slot};
use crate::inbound::ranges::Ranges;
use crate::time::{Duration, Instant, Now, WallMs};

/// A lane that was silent for this long with nothing held may rest.
pub const REST_AFTER: Duration = Duration::from_secs(10 * 60);

/// A lane's edges and its highest missing range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// The greatest epoch; 0 where nothing was numbered.
    epoch: u64,
    edge: u64,
    /// The highest missing range, or where knowledge begins when `missing_last` is below it.
    missing_first: u64,
    missing_last: u64,
    lower: u64,
    lower_edge: u64,
    until_mono: Instant,
    /// Wall ms when the last publication expires, times two, and one more where an earlier run delivered what is below the edge.
    until_vouched: u64,
}

impl Resting {
    /// The last publication it answers for has expired, by both clocks: a lane made from it knows nothing.
    pub fn is_expired(&self, now: Now) -> bool {
        now.wall > self.until() && now.mono >= self.until_mono
    }

    /// When the last publication it answers for expires by the wall.
    pub fn until(&self) -> WallMs {
        WallMs::new(self.until_vouched >> 1)
    }

    /// As `Lane::edges`.
    pub fn edges(&self) -> [Option<(u64, u64)>; 2] {
        [(self.epoch, self.edge), (self.lower, self.lower_edge)]
            .map(|(epoch, edge)| (epoch != 0).then_some((epoch, edge)))
    }

    /// As `Lane::covers`.
    pub fn covers(&self, epoch: u64, seq: u64) -> bool {
        epoch != 0
            && (self.epoch == epoch && seq <= self.edge
                || self.lower == epoch && seq <= self.lower_edge)
    }

    fn vouched(&self) -> bool {
        self.until_vouched & 1 == 1
    }
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Lane<T, S> {
    /// When this lane may rest, if nothing more comes; `None` while something is held or waits for `poll`.
    pub fn rest_at(&self) -> Option<Instant> {
        let idle = self.front.is_none() && self.due.is_none();
        idle.then(|| self.heard.saturating_add(REST_AFTER))
    }

    /// What to keep in this lane's stead; `None` when it may not rest yet.
    pub fn rest(&self, now: Now) -> Option<Resting> {
        self.rest_at().filter(|at| *at <= now.mono)?;
        let mut resting = Resting {
            epoch: 0,
            edge: 0,
            missing_first: 0,
            missing_last: 0,
            lower: 0,
            lower_edge: 0,
            until_mono: now.mono.saturating_add(left(self.until, now.wall)),
            until_vouched: self.until.as_millis().min(u64::MAX >> 1) << 1,
        };
        if self.config.mode == Mode::LatestOnly {
            (resting.epoch, resting.edge) = self.latest.current().unwrap_or_default();
            (resting.lower, resting.lower_edge) = self.latest.left().unwrap_or_default();
            return Some(resting);
        }
        let Some(greatest) = self.greatest() else {
            return Some(resting);
        };
        let edge = |index: usize| Some((self.followed[index]?.epoch, self.orders[index].edge()?));
        (resting.epoch, resting.edge) = edge(greatest).unwrap_or_default();
        (resting.lower, resting.lower_edge) = edge(1 - greatest).unwrap_or_default();
        let order = &self.orders[greatest];
        (resting.missing_first, resting.missing_last) = match order.missing() {
            // No range: where knowledge begins, above an end that no range has.
            [] => (order.floor().max(1), 0),
            // What is known of the numbers below the range is given up.
            [.., highest] => *highest,
        };
        resting.until_vouched |= u64::from(order.is_vouched());
        Some(resting)
    }

    /// An earlier run delivered all of `epoch` up to `seq`. For a lane that was not offered anything yet, at most twice; `false` when
    /// it cannot be used.
    #[must_use]
    pub fn resume(&mut self, epoch: u64, seq: u64) -> bool {
        if self.config.mode == Mode::LatestOnly {
            let newer = self
                .latest
                .current()
                .is_none_or(|current| (epoch, seq) > current);
            if newer {
                self.latest = Latest::after(epoch, seq, self.latest.current(), self.clock);
            }
            return newer;
        }
        let Some(index) = self.followed.iter().position(Option::is_none) else {
            return false;
        };
        let missing = Ranges::new(seq.saturating_add(1));
        if self.index_of(epoch).is_some()
            || !self.orders[index].begin_after(epoch, seq, missing, true)
        {
            return false;
        }
        self.followed[index] = Some(Followed {
            epoch,
            heard: self.clock,
        });
        self.mark_outdated();
        true
    }

    /// Goes on from what is left of an earlier lane. For a lane that was not offered anything yet. Where the record has expired only
    /// `Resynced` is left of it.
    pub fn wake(&mut self, now: Now, resting: Resting) {
        self.advance(now.mono);
        self.heard = self.clock;
        if resting.epoch == 0 {
            return;
        }
        self.guess.commit(resting.epoch.max(resting.lower));
        if resting.is_expired(now) {
            self.resync = true;
            return;
        }
        self.until = self.until.max(resting.until());
        if self.config.mode == Mode::LatestOnly {
            let left = (resting.lower != 0).then_some((resting.lower, resting.lower_edge));
            self.latest = Latest::after(resting.epoch, resting.edge, left, self.clock);
            return;
        }
        let mut missing = Ranges::new(resting.missing_first);
        missing.insert(resting.missing_first, resting.missing_last);
        self.wake_one(0, resting.epoch, resting.edge, missing, resting.vouched());
        if resting.lower != 0 {
            let missing = Ranges::new(resting.lower_edge.saturating_add(1));
            self.wake_one(
                1,
                resting.lower,
                resting.lower_edge,
                missing,
                resting.vouched(),
            );
        }
        self.mark_outdated();
    }

    fn wake_one(
        &mut self,
        index: usize,
        epoch: u64,
        edge: u64,
        missing: super::Missing,
        vouched: bool,
    ) {
        if self.orders[index].begin_after(epoch, edge, missing, vouched) {
            self.followed[index] = Some(Followed {
                epoch,
                heard: self.clock,
            });
        }
    }
}

/// How long after `now` it is `until`.
fn left(until: WallMs, now: WallMs) -> Duration {
    Duration::from_millis(until.as_millis().saturating_sub(now.as_millis()))
}

const _: () = assert!(size_of::<Resting>() == 64);
