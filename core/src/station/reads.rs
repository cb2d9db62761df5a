//! Long frames on their way in, which drivers buffer until they are whole.
//!
//! Decides: which links may be read beyond the first 64 KiB of a frame, first come first served. Leaves to others: the buffers (drivers).
//! Believes: mono, for when links that wait are looked at again. Bounded by: `StationLimits::read_bytes`; one place per link that waits.

use alloc::collections::BTreeMap;
use core::time::Duration;

use super::Station;
use super::timers::Timer;
use crate::LinkId;
use crate::action::Intake;
use crate::error::LinkError;
use crate::time::Now;

/// So much of a frame is not counted.
const FREE: usize = 64 * 1024;
/// How long a link may not be read, in all, while a long frame of it is under way.
const STALL: Duration = Duration::from_secs(30);
/// When links that wait are looked at again, and so much later for each so many of them, so that looking stays cheap.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS: usize = 1024;

/// The long frame a link has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LongFrame {
    #[default]
    None,
    /// So many bytes of the budget are its.
    Counted(usize),
    /// Its place among those that wait.
    Waits(u64),
}

/// What all links have announced.
#[derive(Debug)]
pub(super) struct Reads {
    limit: usize,
    spent: usize,
    /// Links with the bytes they ask for, in turn.
    waiting: BTreeMap<u64, (LinkId, usize)>,
    last: u64,
    /// A look at those that wait is in the timer index.
    armed: bool,
}

impl Reads {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            spent: 0,
            waiting: BTreeMap::new(),
            last: 0,
            armed: false,
        }
    }

    pub(super) fn spent(&self) -> usize {
        self.spent
    }

    /// Bytes its own table takes.
    pub(super) fn memory(&self) -> usize {
        self.waiting.len() * 64
    }

    fn fits(&self, bytes: usize) -> bool {
        self.spent.saturating_add(bytes) <= self.limit
    }

    /// Counts a frame, or gives its link a place behind those that wait.
    fn ask(&mut self, link: LinkId, bytes: usize) -> LongFrame {
        if self.waiting.is_empty() && self.fits(bytes) {
            self.spent += bytes;
            return LongFrame::Counted(bytes);
        }
        self.last += 1;
        self.waiting.insert(self.last, (link, bytes));
        LongFrame::Waits(self.last)
    }

    fn give_back(&mut self, frame: LongFrame) {
        match frame {
            LongFrame::None => {}
            LongFrame::Counted(bytes) => self.spent -= bytes,
            LongFrame::Waits(place) => {
                self.waiting.remove(&place);
            }
        }
    }

    /// The link whose turn has come, and what was counted for it.
    fn next(&mut self) -> Option<(LinkId, usize)> {
        let (_, (_, bytes)) = self.waiting.first_key_value()?;
        if !self.fits(*bytes) {
            return None;
        }
        let (_, (link, bytes)) = self.waiting.pop_first()?;
        self.spent += bytes;
        Some((link, bytes))
    }
}

impl Station {
    /// A frame of `whole` bytes, its length included, has begun on a link: whether it may be read to its end.
    pub(super) fn begin_frame(&mut self, now: Now, link: LinkId, whole: usize) -> Intake {
        let Some(side) = self.links.get_mut(link) else {
            return Intake::Open;
        };
        if whole <= FREE {
            return Intake::Open;
        }
        if side.long == LongFrame::None {
            side.long = self.reads.ask(link, whole - FREE);
            self.counts.reads_later += u64::from(side.long != LongFrame::Counted(whole - FREE));
        }
        if let LongFrame::Counted(_) = side.long {
            return Intake::Open;
        }
        // The frame's own time stands still until its turn.
        side.base.pause(now, true);
        self.arm_reads(now);
        Intake::Later
    }

    /// A link is not read because its peer does not read. The bytes of its long frame are buffered all the same, so it has so long and no
    /// longer.
    pub(super) fn stall(&mut self, now: Now, link: LinkId) -> Result<(), LinkError> {
        let Some(side) = self.links.get_mut(link) else {
            return Ok(());
        };
        if !matches!(side.long, LongFrame::Counted(_)) {
            return Ok(());
        }
        let unread = side.base.unread(now.mono);
        let stalled = unread.saturating_sub(*side.stalled_from.get_or_insert(unread));
        let left = STALL.saturating_sub(stalled);
        if left.is_zero() {
            return Err(LinkError::FrameTimeout);
        }
        if side.stalls_at.is_none() {
            let at = now.mono.saturating_add(left);
            side.stalls_at = Some(at);
            self.timers.insert((at, Timer::Stalled(link)));
        }
        Ok(())
    }

    pub(super) fn stall_timeout(&mut self, now: Now, link: LinkId) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        side.stalls_at = None;
        if side.base.is_read() {
            return;
        }
        if let Err(error) = self.stall(now, link) {
            self.fail_link(now, link, error);
            self.raise(link);
        }
    }

    /// A link's long frame is whole, or will never be: those whose turn has come are counted before they call again.
    pub(super) fn end_frame(&mut self, link: LinkId) {
        let Some(side) = self.links.get_mut(link) else {
            return;
        };
        let frame = core::mem::take(&mut side.long);
        if frame == LongFrame::None {
            return;
        }
        side.stalled_from = None;
        let stalls_at = side.stalls_at.take();
        self.disarm(stalls_at, Timer::Stalled(link));
        self.reads.give_back(frame);
        while let Some((link, bytes)) = self.reads.next() {
            match self.links.get_mut(link) {
                Some(side) => side.long = LongFrame::Counted(bytes),
                None => self.reads.give_back(LongFrame::Counted(bytes)),
            }
        }
    }

    pub(super) fn reads_timeout(&mut self, now: Now) {
        self.reads.armed = false;
        self.arm_reads(now);
    }

    /// Keeps a deadline while links wait.
    fn arm_reads(&mut self, now: Now) {
        let waiting = self.reads.waiting.len();
        if self.reads.armed || waiting == 0 {
            return;
        }
        self.reads.armed = true;
        let wait = LOOK_EVERY.saturating_mul((1 + waiting / LOOKS) as u32);
        self.timers
            .insert((now.mono.saturating_add(wait), Timer::Reads));
    }
}
