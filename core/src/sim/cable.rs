//! One connection between a client and a station, and the bytes under way on it.
//!
//! Decides: when bytes arrive, never before those sent earlier on the same connection. Leaves to others: reading and writing them.
//! Believes: the true time. Bounded by: the way's budget of bytes under way, as a socket's.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::said::Moment;
use super::tap::Record;
use crate::pump::LinkIo;
use crate::{Duration, Instant, Rng, StationRef};

/// The index of the client's end, and of what arrives there.
pub(super) const CLIENT: usize = 0;
/// The index of the station's end, and of what arrives there.
pub(super) const STATION: usize = 1;

/// What the way between two hosts is like, for every connection between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// How long bytes take at least.
    pub(super) delay: Duration,
    /// How much longer they may take.
    pub(super) jitter: Duration,
    /// How many bytes leave per millisecond; 0 for any number.
    pub(super) rate: u32,
    /// A sender stops while so many bytes are under way.
    pub(super) budget: usize,
    /// Nothing passes; what is sent waits.
    pub(super) parted: bool,
    /// Nobody connects.
    pub(super) refuses: bool,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: 0,
            budget: usize::MAX,
            parted: false,
            refuses: false,
        }
    }
}

/// Bytes under way in one direction.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    chunks: VecDeque<(Instant, Vec<u8>)>,
    /// Arrived and not read.
    pub(super) waiting: Vec<u8>,
    /// Its reader is paused.
    pub(super) paused: bool,
    /// Since when.
    pub(super) paused_at: Option<Moment>,
    /// Its writer stopped for the budget.
    pub(super) blocked: bool,
    /// Since when it has not taken all of what its writer has.
    pub(super) behind: Option<Instant>,
    /// When the last byte arrives, and until when the line is busy.
    last: Instant,
    busy: Instant,
    /// Sent while nothing passes.
    held: Vec<Vec<u8>>,
    /// What was written, by the count of bytes at its end.
    pub(super) records: VecDeque<Record>,
    pub(super) written: u64,
    pub(super) taken: u64,
    bytes: usize,
}

impl Pipe {
    /// Bytes that were sent and not read.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sends bytes. Answers when they arrive, unless they wait.
    pub(super) fn send(
        &mut self,
        now: Instant,
        way: &Way,
        rng: &mut Rng,
        bytes: Vec<u8>,
    ) -> Option<Instant> {
        self.bytes += bytes.len();
        if way.parted {
            self.held.push(bytes);
            return None;
        }
        Some(self.launch(now, way, rng, bytes))
    }

    fn launch(&mut self, now: Instant, way: &Way, rng: &mut Rng, bytes: Vec<u8>) -> Instant {
        let micros = match way.rate {
            0 => 0,
            rate => bytes.len() as u64 * 1000 / u64::from(rate),
        };
        self.busy = self
            .busy
            .max(now)
            .saturating_add(Duration::from_micros(micros));
        let jitter = Duration::from_micros(rng.below(way.jitter.as_micros() as u64 + 1));
        let at = self.busy.saturating_add(way.delay).saturating_add(jitter);
        self.last = self.last.max(at);
        let at = self.last;
        self.chunks.push_back((at, bytes));
        at
    }

    /// The way has changed: what waited leaves, and what is under way is not slower than on the new way. Answers when it arrives.
    pub(super) fn change(&mut self, now: Instant, way: &Way, rng: &mut Rng) -> Vec<Instant> {
        let soon = now.saturating_add(way.delay);
        let mut times = Vec::new();
        for (at, _) in &mut self.chunks {
            if way.rate == 0 && *at > soon {
                *at = soon;
                times.push(soon);
            }
        }
        if way.rate == 0 {
            (self.busy, self.last) = (self.busy.min(now), self.last.min(soon.max(now)));
        }
        let held = core::mem::take(&mut self.held);
        times.extend(
            held.into_iter()
                .map(|bytes| self.launch(now, way, rng, bytes)),
        );
        times
    }

    /// Takes over what has arrived. Answers whether something did.
    pub(super) fn arrive(&mut self, now: Instant) -> bool {
        let mut any = false;
        while self.chunks.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, chunk)) = self.chunks.pop_front()
        {
            self.waiting.extend_from_slice(&chunk);
            any = true;
        }
        any
    }

    /// Takes so many bytes to be read.
    pub(super) fn take(&mut self, most: usize, into: &mut bytes::BytesMut) {
        let take = self.waiting.len().min(most);
        into.extend_from_slice(&self.waiting[..take]);
        if take == self.waiting.len() {
            self.waiting.clear();
        } else {
            self.waiting.drain(..take);
        }
        self.bytes -= take;
    }

    /// When the last byte under way arrives; at once when there is none.
    pub(super) fn last_arrival(&self, now: Instant) -> Instant {
        self.last.max(now)
    }

    /// What is under way is lost.
    pub(super) fn lose(&mut self) {
        *self = Self::default();
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Cable {
    /// The hosts at its ends.
    pub(super) hosts: [usize; 2],
    pub(super) ends: [Option<LinkIo>; 2],
    pub(super) pipes: [Pipe; 2],
    /// It was cut: nothing arrives any more, though an end may not know yet.
    pub(super) lost: bool,
    /// That end is gone: its machine was told, or is no more.
    pub(super) gone: [bool; 2],
    /// That end's machine is told of its end when it wakes.
    pub(super) told_later: [bool; 2],
    pub(super) rng: Rng,
    /// How its client calls its station.
    pub(super) station: StationRef,
}
