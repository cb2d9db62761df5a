//! What is left of a lane that nobody speaks on.
//!
//! Decides: when a lane may shrink, and whether what is left still answers for anything. Leaves to others: keeping the records. Believes:
//! mono for the idle time; both clocks for the end, whichever says last. Bounded by: 64 bytes, two edges, one missing range, and for each edge
//! one range from 1 that nobody was told of; a lane that knows more does not rest before all it answers for has expired.

use super::{Followed, Lane, Latest, Left, Mode, Slot, Untold};
use crate::inbound::ranges::Ranges;
use crate::time::{Duration, Instant, Now, WallMs};

/// A lane that was silent for this long with nothing held may rest.
pub const REST_AFTER: Duration = Duration::from_secs(10 * 60);

/// What stands in the low bits of [`Resting::until`]: an earlier run delivered what is below the greatest edge, and the lower.
const VOUCHED: [u64; 2] = [1, 2];
const FLAGS: u32 = 2;

/// How far an epoch has come.
#[derive(Clone, Copy, Debug)]
#[cfg(feature = "alloc")]
pub(crate) struct Reach {
    pub(crate) epoch: u64,
    /// All up to here was decided.
    pub(crate) edge: u64,
    /// But nobody was told of this.
    pub(crate) untold: Untold,
}

/// A lane's edges, its highest missing range, and up to where nobody was told of what was before it was joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// The greatest epoch; 0 where nothing was numbered.
    epoch: u64,
    edge: u64,
    lower: u64,
    lower_edge: u64,
    until_mono: Instant,
    /// Wall ms when the last publication expires, above the flags.
    until: u64,
    /// How far below what follows the edge the highest missing range begins, or knowledge where there is none.
    first: u32,
    /// How far below that it ends; 0 where there is none.
    last: u32,
    /// How far below what follows each edge that ends which nobody was told of; 0 where there is none.
    untold: [u32; 2],
}

impl Resting {
    /// The last publication it answers for has expired, by both clocks: a lane made from it knows nothing.
    pub fn is_expired(&self, now: Now) -> bool {
        now.wall > self.until() && now.mono >= self.until_mono
    }

    /// When the last publication it answers for expires by the wall.
    pub fn until(&self) -> WallMs {
        WallMs::new(self.until >> FLAGS)
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

    /// As `Lane::is_told`.
    #[cfg(feature = "alloc")]
    pub(crate) fn is_told(&self, epoch: u64, seq: u64) -> bool {
        let at = usize::from(self.epoch != epoch);
        self.covers(epoch, seq) && !self.untold(at).contains(seq)
    }

    /// As `Lane::reaches`.
    #[cfg(feature = "alloc")]
    pub(crate) fn reaches(&self) -> [Option<Reach>; 2] {
        let edges = self.edges();
        [0, 1].map(|at| {
            let (epoch, edge) = edges[at]?;
            let untold = self.untold(at);
            Some(Reach {
                epoch,
                edge,
                untold,
            })
        })
    }

    /// What was neither delivered nor told of, of the greatest epoch or of the lower.
    fn untold(&self, at: usize) -> Untold {
        let mut untold = Untold::new(0);
        let edge = [self.edge, self.lower_edge][at];
        if self.untold[at] > 0 {
            untold.insert(1, from_above(edge, self.untold[at]));
        }
        untold
    }

    fn left(&self, at: usize) -> Left {
        let edge = [self.edge, self.lower_edge][at];
        Left {
            edge,
            untold: self.untold(at),
            vouched: (self.until & VOUCHED[at] != 0).then_some(edge),
            anew: false,
        }
    }
}

/// How far a number is below what follows the edge.
fn below(edge: u64, seq: u64) -> u64 {
    edge.saturating_add(1).saturating_sub(seq)
}

/// The number so far below what follows the edge.
fn from_above(edge: u64, far: u32) -> u64 {
    edge.saturating_add(1).saturating_sub(far.into())
}

impl<T, S: AsRef<[Option<Slot<T>>]> + AsMut<[Option<Slot<T>>]>> Lane<T, S> {
    /// When this lane may rest, if nothing more comes; `None` while something is held or waits for `poll`.
    pub fn rest_at(&self) -> Option<Instant> {
        let idle = self.front.is_none() && self.due.is_none();
        let silent = self.heard.saturating_add(REST_AFTER);
        idle.then(|| silent.max(self.awake_until))
    }

    /// What to keep in this lane's stead; `None` when it may not rest yet.
    pub fn rest(&mut self, now: Now) -> Option<Resting> {
        self.rest_at().filter(|at| *at <= now.mono)?;
        let mut resting = Resting {
            epoch: 0,
            edge: 0,
            lower: 0,
            lower_edge: 0,
            until_mono: now.mono.saturating_add(left(self.until, now.wall)),
            until: self.until.as_millis().min(u64::MAX >> FLAGS) << FLAGS,
            first: 0,
            last: 0,
            untold: [0; 2],
        };
        let latest_only = self.config.mode == Mode::LatestOnly;
        if latest_only && self.latest.knows_three() && now.wall <= self.until {
            self.stay_awake(now);
            return None;
        }
        if latest_only {
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
        let mut fits = self.replaced.is_none() && self.lost == 0;
        for (at, index) in [greatest, 1 - greatest].into_iter().enumerate() {
            let order = &self.orders[index];
            let Some(edge) = order.edge().filter(|_| self.followed[index].is_some()) else {
                continue;
            };
            resting.until |= order.vouched().map_or(0, |_| VOUCHED[at]);
            let untold = match order.untold().as_slice() {
                [] => Some(0),
                [(1, last)] => u32::try_from(below(edge, *last)).ok(),
                _ => None,
            };
            fits &= untold.is_some();
            resting.untold[at] = untold.unwrap_or(0);
        }
        if !fits && now.wall <= self.until {
            self.stay_awake(now);
            return None;
        }
        if !fits {
            // What it answers for has expired.
            resting.until = 0;
        }
        let order = &self.orders[greatest];
        // What is known of the numbers below the range is given up.
        let (first, last) = match order.missing() {
            [] => (order.floor().max(1), None),
            [.., (first, last)] => (*first, Some(*last)),
        };
        let range = u32::try_from(last.map_or(0, |last| below(resting.edge, last)));
        resting.first = u32::try_from(below(resting.edge, first)).unwrap_or(u32::MAX);
        resting.last = range.unwrap_or(0);
        Some(resting)
    }

    /// A record does not hold all it knows, so it keeps it until what it answers for has expired.
    fn stay_awake(&mut self, now: Now) {
        let more = left(self.until, now.wall).saturating_add(Duration::from_millis(1));
        self.awake_until = now.mono.saturating_add(more);
    }

    /// An earlier run delivered all of `epoch` up to `seq`, but what is in `untold`, ranges that lie apart and rise. For a lane that was
    /// not offered anything yet, at most twice; `false` when it cannot be used.
    #[must_use]
    pub fn resume(&mut self, epoch: u64, seq: u64, untold: &[(u64, u64)]) -> bool {
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
        let mut left = Left {
            edge: seq,
            untold: Untold::new(0),
            vouched: Some(seq),
            anew: false,
        };
        for (first, last) in untold {
            left.untold.insert(*first, *last);
        }
        // Of what is in no range it is known that it is in none.
        let floor = match untold {
            [] => seq.saturating_add(1),
            _ => 1,
        };
        let missing = Ranges::new(floor);
        if self.index_of(epoch).is_some() || !self.orders[index].begin_after(epoch, &left, missing)
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
        let first = from_above(resting.edge, resting.first);
        let mut missing = Ranges::new(first);
        if resting.last > 0 {
            missing.insert(first, from_above(resting.edge, resting.last));
        }
        self.wake_one(0, resting.epoch, &resting.left(0), missing);
        if resting.lower != 0 {
            let missing = Ranges::new(resting.lower_edge.saturating_add(1));
            self.wake_one(1, resting.lower, &resting.left(1), missing);
        }
        self.mark_outdated();
    }

    fn wake_one(&mut self, index: usize, epoch: u64, left: &Left, missing: super::Missing) {
        if self.orders[index].begin_after(epoch, left, missing) {
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
