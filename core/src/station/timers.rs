//! The station's deadlines, in one ordered index.
//!
//! Decides: nothing of its own; calls what is due. Leaves to others: what is done then. Believes: the monotonic clock; the wall only to
//! give up what has expired. Bounded by: one entry per link, subscription, waiting topic, lingering realm; 256 of them per call.

use core::time::Duration;

use super::reader::PROGRESS_EVERY;
use super::{ReaderId, Station, Task, TopicId};
use crate::action::Turn;
use crate::time::{Instant, Now};
use crate::{LinkId, RealmId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Going away has taken long enough.
    Drain,
    /// A handshake or a frame that is not whole.
    Link(LinkId),
    /// A realm with interests nobody holds any more.
    Linger(RealmId),
    /// A subscription is due a `progress`.
    Progress(ReaderId),
    /// Links whose long frames wait for their turn.
    Reads,
    /// A topic whose publishers wait.
    Release(TopicId),
    /// A link with a long frame under way has not been read for too long.
    Stalled(LinkId),
    /// Rings and memory may hold what has expired.
    Sweep,
}

/// Deadlines worked off in one call.
const PER_CALL: usize = 256;
/// How often expired publications are looked for while there are any.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Remembered publications looked at per sweep.
const SWEEP_ENTRIES: usize = 1 << 16;

impl Station {
    /// Time has passed. `More`: call again.
    pub fn handle_timeout(&mut self, now: Now) -> Turn {
        let now = self.at(now);
        for _ in 0..PER_CALL {
            let Some((at, timer)) = self.timers.first().copied() else {
                return Turn::Done;
            };
            if at > now.mono {
                return Turn::Done;
            }
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Drain => self.close(now),
                Timer::Link(link) => self.link_timeout(now, link),
                Timer::Linger(realm) => self.linger_timeout(now, realm),
                Timer::Progress(reader) => self.progress_timeout(now, reader),
                Timer::Reads => self.reads_timeout(now),
                Timer::Release(topic) => self.release(now, topic),
                Timer::Stalled(link) => self.stall_timeout(now, link),
                Timer::Sweep => self.sweep(now),
            }
        }
        match self.timers.first() {
            Some((at, _)) if *at <= now.mono => Turn::More,
            _ => Turn::Done,
        }
    }

    fn link_timeout(&mut self, now: Now, link: LinkId) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        match side.base.handle_timeout(now) {
            Ok(()) => self.arm_link(link),
            Err(error) => self.fail_link(now, link, error),
        }
        self.raise(link);
    }

    /// The clocks say that this side slept: every link is asked at once whether its other side is still there.
    pub(super) fn suspect_all(&mut self, now: Now) {
        self.counts.clock_jumps += 1;
        for (link, side) in self.links.iter_mut() {
            side.base.suspect(now);
            side.base.rearm(&mut self.timers, Timer::Link(link));
            if side.base.take_ready(false) {
                self.actions.push_back(Task::send(link));
            }
        }
    }

    fn progress_timeout(&mut self, now: Now, id: ReaderId) {
        let Some(reader) = self.readers.get_mut(id) else {
            return;
        };
        reader.progress_due = true;
        reader.progress_at = now.mono.saturating_add(PROGRESS_EVERY);
        self.timers
            .insert((reader.progress_at, Timer::Progress(id)));
        self.queue(id);
    }

    fn sweep(&mut self, now: Now) {
        self.sweeping = false;
        self.topics.expire(now.wall);
        self.stretches.expire(now.wall);
        self.dedup.sweep(now, SWEEP_ENTRIES);
        self.runs.sweep(now);
        self.publishers.sweep();
        self.arm_sweep(now);
    }

    /// Keeps the sweep armed while there is something that can expire.
    pub(super) fn arm_sweep(&mut self, now: Now) {
        let nothing = self.topics.bytes() == 0
            && self.dedup.is_empty()
            && self.runs.is_empty()
            && self.publishers.is_empty();
        if self.sweeping || nothing {
            return;
        }
        self.sweeping = true;
        self.timers
            .insert((now.mono.saturating_add(SWEEP_EVERY), Timer::Sweep));
    }

    /// Puts a link's own deadline into the index.
    #[inline(never)]
    pub(super) fn arm_link(&mut self, link: LinkId) {
        if let Some(side) = self.links.get_mut(link) {
            side.base.rearm(&mut self.timers, Timer::Link(link));
        }
    }

    pub(super) fn disarm(&mut self, armed: Option<Instant>, timer: Timer) {
        if let Some(at) = armed {
            self.timers.remove(&(at, timer));
        }
    }
}
