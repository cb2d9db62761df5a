//! What is known of one publisher, and when that is over.
//!
//! Decides: when a verdict ends, and what is left of it. Leaves to others: everything else. Believes: both clocks, and of the two the one that says
//! first. Bounded by: one entry.

use crate::code::SourceRefusal;
use crate::time::{Instant, Now, WallMs};

/// When a verdict is over: by whichever clock says so first.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) mono: Instant,
    pub(super) wall: WallMs,
}

impl End {
    /// After so long, and no later than `until` if there is such a time.
    pub(super) fn after(now: Now, millis: u64, until: WallMs) -> Self {
        let left = until.as_millis().saturating_sub(now.wall.as_millis());
        Self {
            mono: now.mono.saturating_add_millis(millis.min(left)),
            wall: now.wall.saturating_add(millis).min(until),
        }
    }

    #[inline]
    pub(super) fn is_over(&self, now: Now) -> bool {
        self.is_within(now, 0)
    }

    /// At most so many milliseconds are left.
    #[inline]
    pub(super) fn is_within(&self, now: Now, millis: u64) -> bool {
        now.mono.saturating_add_millis(millis) >= self.mono
            || now.wall.saturating_add(millis) >= self.wall
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    Admitted(End),
    /// It was admitted, and is remembered as such until then.
    Before(Instant),
    None,
    Refused(End, SourceRefusal),
}

/// A lookup under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) turn: u32,
    pub(super) deadline: Instant,
    /// Facts that wait for it.
    pub(super) held: u32,
}

/// What is known of one publisher. Whoever is or was admitted is in the list of verdicts, whoever is refused in that of refusals, whoever is looked
/// up in that of lookups; nobody is in none of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) verdict: Verdict,
    pub(super) asking: Option<Asking>,
    /// Its verdict is not refreshed before.
    pub(super) rests_until: Instant,
}

impl Entry {
    pub(super) const NEW: Self = Self {
        verdict: Verdict::None,
        asking: None,
        rests_until: Instant::ORIGIN,
    };

    /// A verdict that was seen to be over stays over, and is remembered for so long.
    pub(super) fn fade(&mut self, remembered: u64) {
        if let Verdict::Admitted(end) = self.verdict {
            let until = end.mono.saturating_add_millis(remembered);
            self.verdict = Verdict::Before(until);
        }
    }
}
