//! The clocks of one simulated host, which need not be those of another.
//!
//! Decides: what a host reads off its two clocks at a true time. Leaves to others: when it sleeps and when its wall is stepped. Believes:
//! the true time. Bounded by: one line per step or sleep, of which a run draws a few.

use alloc::vec::Vec;

use crate::{Duration, Instant, Now, WallMs};

/// Where wall time begins in a simulation: some day in 2026.
pub const START: WallMs = WallMs::new(1_790_000_000_000);

/// The clocks of one host.
#[derive(Debug)]
pub(super) struct Clock {
    /// How much less than the true time its monotonic clock shows: it stood still so long.
    stood: Duration,
    /// Since when its wall shows the true time and so many milliseconds more; sorted by time, never empty.
    walls: Vec<(Instant, i64)>,
    /// Since when it sleeps, and whether its monotonic clock stands still meanwhile.
    asleep: Option<(Instant, bool)>,
    /// When it slept before, from and to.
    slept: Vec<(Instant, Instant)>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            stood: Duration::ZERO,
            walls: alloc::vec![(Instant::ORIGIN, 0)],
            asleep: None,
            slept: Vec::new(),
        }
    }
}

impl Clock {
    /// What the host reads.
    pub(super) fn now(&self, truth: Instant) -> Now {
        let stood = self.stood.as_micros() as u64;
        let mono = Instant::from_micros(truth.as_micros().saturating_sub(stood));
        Now::new(mono, self.wall(truth))
    }

    /// What its wall shows, or showed.
    pub(super) fn wall(&self, truth: Instant) -> WallMs {
        let mut before = self.walls.iter().rev();
        let found = before.find(|(since, _)| *since <= truth);
        shown(truth, found.map_or(0, |(_, ahead)| *ahead))
    }

    /// When its monotonic clock shows `mono`.
    pub(super) fn truth(&self, mono: Instant) -> Instant {
        mono.saturating_add(self.stood)
    }

    pub(super) fn step_wall(&mut self, truth: Instant, millis: i64) {
        let (since, ahead) = self.walls[self.walls.len() - 1];
        let ahead = ahead.saturating_add(millis);
        if since == truth {
            self.walls.pop();
        }
        self.walls.push((truth, ahead));
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.is_some()
    }

    /// Since when it sleeps, and whether its monotonic clock stands still meanwhile.
    pub(super) fn asleep(&self) -> Option<(Instant, bool)> {
        self.asleep
    }

    pub(super) fn sleep(&mut self, truth: Instant, mono_stands: bool) {
        self.asleep.get_or_insert((truth, mono_stands));
    }

    pub(super) fn wake(&mut self, truth: Instant) {
        if let Some((since, mono_stands)) = self.asleep.take() {
            self.slept.push((since, truth));
            if mono_stands {
                self.stood += truth.saturating_since(since);
            }
        }
    }

    /// For how long it has slept since then, all in all.
    pub(super) fn slept_since(&self, then: Instant) -> Duration {
        let slept = self.slept.iter();
        let slept = slept.map(|(from, to)| to.saturating_since(then.max(*from)));
        slept.fold(Duration::ZERO, |all, one| all + one)
    }

    /// Whether its wall was stepped.
    pub(super) fn was_stepped(&self) -> bool {
        self.walls.len() > 1
    }

    /// By how much its wall was set forward, all in all.
    pub(super) fn stepped_on(&self) -> Duration {
        let steps = self
            .walls
            .windows(2)
            .map(|two| two[1].1.saturating_sub(two[0].1));
        Duration::from_millis(steps.map(|step| step.max(0).unsigned_abs()).sum())
    }

    /// The earliest and the latest true time that a wall time can mean which was told at `truth`, in milliseconds since the start: the
    /// wall may have been stepped between what it speaks of and when it was told.
    pub(super) fn meant(&self, wall: WallMs, truth: Instant) -> (i64, i64) {
        let told = self.walls.iter().filter(|(since, _)| *since <= truth);
        let at = told.map(|(_, ahead)| wall.since(START).saturating_sub(*ahead));
        at.fold((i64::MAX, i64::MIN), |(low, high), at| {
            (low.min(at), high.max(at))
        })
    }
}

fn shown(truth: Instant, ahead: i64) -> WallMs {
    let elapsed = truth.as_micros() / 1000;
    WallMs::new(
        START
            .as_millis()
            .saturating_add(elapsed)
            .saturating_add_signed(ahead),
    )
}
