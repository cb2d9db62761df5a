//! Whether the other side still answers.
//!
//! Decides: when it is probed, which answer counts, when it is given up. Leaves to others: writing and reading. Believes: the monotonic
//! clock; the wall is told back. Bounded by: one probe at a time, two unanswered.
//!
//! One clock per link. It starts when a probe's bytes were written, stands still while this side does not read, and when it is over the
//! next probe goes out: with the answer here that is the period, without it a probe is missed. Nothing but the answer to the outstanding
//! probe counts, whatever else is heard: a side that can still write may no longer read. What an answer proves counts from when its probe
//! was due: who is told of a write is told late, and knows no more of it.

use super::watch::Countdown;
use crate::{Duration, Instant, Now};

/// How long a probe's answer is waited for, and until the next probe.
pub const PROBE_EVERY: Duration = Duration::from_secs(30);
/// The shortest such time that may be configured.
pub const PROBE_EVERY_MIN: Duration = Duration::from_secs(1);
/// The longest.
pub const PROBE_EVERY_MAX: Duration = Duration::from_secs(3600);
/// Probes in a row without an answer that end a link.
const MISSES: u8 = 2;
/// How long an answer is waited for after the clocks showed that this side slept.
const AWAKE_PATIENCE: Duration = Duration::from_secs(5);

/// The last probe that was answered. What is read of the link after `heard` was said after `asked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When it was due, so that its bytes were written no earlier. The wall is as far back as mono says, which may have stood still since.
    pub asked: Now,
    /// When its answer was read.
    pub heard: Now,
}

impl Answered {
    /// How long the answer took, and the probe to be written.
    pub const fn round_trip(&self) -> Duration {
        self.heard.mono.saturating_since(self.asked.mono)
    }
}

/// Counts of one link's probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// Handed out.
    pub sent: u64,
    /// Not answered in time.
    pub missed: u64,
    /// Answers to no outstanding probe.
    pub stray: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The link is not up.
    Off,
    /// To be written, since then.
    Due { urgent: bool, since: Instant },
    /// Written once the transport took so many bytes of the link. `answered`: its answer was here before that was told.
    Queued {
        urgent: bool,
        since: Instant,
        end: u64,
        answered: bool,
    },
    /// Its clock runs. `asked`: it is not answered, and was due then.
    Running {
        urgent: bool,
        asked: Option<Instant>,
        clock: Countdown,
    },
}

/// The probes of one link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    every: Duration,
    state: State,
    paused: bool,
    missed: u8,
    answered: Option<Answered>,
    counts: Probes,
}

impl Probe {
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every: every.clamp(PROBE_EVERY_MIN, PROBE_EVERY_MAX),
            state: State::Off,
            paused: false,
            missed: 0,
            answered: None,
            counts: Probes::default(),
        }
    }

    /// The link is up: the first probe goes out one interval later.
    pub(super) fn start(&mut self, now: Instant) {
        self.rest(now);
    }

    pub(super) fn stop(&mut self) {
        self.state = State::Off;
    }

    /// Nothing is outstanding for one interval.
    fn rest(&mut self, now: Instant) {
        self.state = State::Running {
            urgent: false,
            asked: None,
            clock: Countdown::new(now, self.every, self.paused),
        };
    }

    /// Probes at once. A probe that waits to be written is it; one whose answer is waited for may never have one.
    pub(super) fn suspect(&mut self, now: Instant) {
        match &mut self.state {
            State::Off => {}
            State::Due { urgent, .. } | State::Queued { urgent, .. } => *urgent = true,
            State::Running { .. } => {
                self.state = State::Due {
                    urgent: true,
                    since: now,
                }
            }
        }
    }

    pub(super) fn pause(&mut self, now: Instant, paused: bool) {
        self.paused = paused;
        if let State::Running { clock, .. } = &mut self.state {
            clock.stop(now, paused);
        }
    }

    /// Its clock is over. False when the other side is given up.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let State::Running { urgent, asked, .. } = self.state else {
            return true;
        };
        if asked.is_some() {
            self.missed += 1;
            self.counts.missed += 1;
            if urgent || self.missed >= MISSES {
                return false;
            }
        }
        self.state = State::Due {
            urgent: false,
            since: now,
        };
        true
    }

    /// The number of the probe to be written now, if there is one.
    pub(super) fn due(&self) -> Option<u64> {
        matches!(self.state, State::Due { .. }).then_some(self.counts.sent + 1)
    }

    /// It was handed out; it is written when so many bytes of the link are.
    pub(super) fn sent(&mut self, end: u64) {
        if let State::Due { urgent, since } = self.state {
            self.counts.sent += 1;
            self.state = State::Queued {
                urgent,
                since,
                end,
                answered: false,
            };
        }
    }

    /// The transport took so many bytes of the link. True when the clock has started.
    pub(super) fn written(&mut self, now: Instant, bytes: u64) -> bool {
        let State::Queued {
            urgent,
            since,
            end,
            answered,
        } = self.state
        else {
            return false;
        };
        if bytes < end {
            return false;
        }
        let patience = if urgent { AWAKE_PATIENCE } else { self.every };
        self.state = State::Running {
            urgent,
            asked: (!answered).then_some(since),
            clock: Countdown::new(now, patience, self.paused),
        };
        if answered && urgent {
            self.rest(now);
        }
        true
    }

    /// An answer to probe `number` came. False when that is not the outstanding one.
    pub(super) fn handle_answer(&mut self, now: Now, number: Option<u64>) -> bool {
        let asked = match &mut self.state {
            _ if number != Some(self.counts.sent) => None,
            State::Off | State::Due { .. } => None,
            State::Queued {
                since, answered, ..
            } => (!core::mem::replace(answered, true)).then_some(*since),
            State::Running { asked, .. } => asked.take(),
        };
        let Some(asked) = asked else {
            self.counts.stray += 1;
            return false;
        };
        self.missed = 0;
        self.answered = Some(Answered {
            asked: now.before(now.mono.saturating_since(asked)),
            heard: now,
        });
        if let State::Running { urgent: true, .. } = self.state {
            self.rest(now.mono);
        }
        true
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Running { clock, .. } => clock.deadline(),
            _ => None,
        }
    }

    /// Whether a probe waits to be written.
    pub(super) const fn waits(&self) -> bool {
        matches!(self.state, State::Due { .. } | State::Queued { .. })
    }

    pub(super) const fn every(&self) -> Duration {
        self.every
    }

    pub(super) const fn answered(&self) -> Option<Answered> {
        self.answered
    }

    pub(super) const fn counts(&self) -> Probes {
        self.counts
    }
}
