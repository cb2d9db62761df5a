//! The liveness of one link, as its owner drives it.
//!
//! Decides: nothing beside its parts (`probe`, `writes`). Leaves to others: what a link's end means. Believes: the monotonic clock; the
//! wall is kept to be told. Bounded by: one probe at a time.

use super::probe::{Answered, Probes};
use super::{Link, State};
use crate::{Duration, Instant, Now, soonest};

/// Intervals without a byte taken, while some wait, that end a link.
const STUCK_INTERVALS: u32 = 3;
/// What a probe's nonce begins with: of this link's own nonce.
const NONCE_HEAD: usize = 8;

impl Link {
    /// Says that so many bytes of the owner's frames go out behind everything counted before. What
    /// [`poll_transmit`](Self::poll_transmit) appends is counted there.
    pub fn handle_queued(&mut self, bytes: usize) {
        self.writes.queue(bytes);
    }

    /// Says that the transport took so many bytes more. Say it before handing in what was read after it.
    pub fn handle_written(&mut self, now: Now, bytes: usize) {
        self.writes.take(now.mono, bytes);
        self.probe.written(now.mono, self.writes.written());
    }

    /// Takes a `pong`. False: it answers no outstanding probe, and changes nothing but a count.
    pub fn handle_pong(&mut self, now: Now, nonce: &[u8; 16]) -> bool {
        let (head, number) = nonce.split_at(NONCE_HEAD);
        let own = self.nonce.get(..NONCE_HEAD) == Some(head);
        let number = <[u8; 8]>::try_from(number).ok().filter(|_| own);
        self.probe
            .handle_answer(now, number.map(u64::from_be_bytes))
    }

    /// Probes at once, with 5 s to answer: the clocks showed that this side slept, and the other may be gone.
    pub fn handle_suspect(&mut self, now: Instant) {
        if self.is_up() {
            self.probe.suspect(now);
            self.writes.wait(now);
        }
    }

    /// The nonce of probe `number`: it tells links and probes apart and is no secret.
    pub(super) fn probe_nonce(&self, number: u64) -> [u8; 16] {
        let mut nonce = [0; 16];
        let (head, rest) = nonce.split_at_mut(NONCE_HEAD);
        head.copy_from_slice(self.nonce.get(..NONCE_HEAD).unwrap_or_default());
        rest.copy_from_slice(&number.to_be_bytes());
        nonce
    }

    /// How long nothing may be taken while something waits.
    fn stuck_patience(&self) -> Duration {
        self.probe.every().saturating_mul(STUCK_INTERVALS)
    }

    pub(super) fn stuck_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Up(_) => self.writes.deadline(self.stuck_patience()),
            _ => None,
        }
    }

    pub(super) fn liveness_deadline(&self) -> Option<Instant> {
        soonest(self.probe.deadline(), self.stuck_deadline())
    }

    /// Bytes queued so far, from the link's first.
    pub const fn queued(&self) -> u64 {
        self.writes.queued()
    }

    /// Those of them the transport took.
    pub const fn written(&self) -> u64 {
        self.writes.written()
    }

    /// Whether a probe waits to be written; its clock has not started then.
    pub const fn probe_waits(&self) -> bool {
        self.probe.waits()
    }

    /// The last probe that was answered.
    pub const fn answered(&self) -> Option<Answered> {
        self.probe.answered()
    }

    /// Counts of its probes.
    pub const fn probes(&self) -> Probes {
        self.probe.counts()
    }
}
