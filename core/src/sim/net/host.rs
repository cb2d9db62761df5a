//! A machine, its clocks, and what a driver keeps for it.
//!
//! Decides: nothing. Leaves to others: driving it (the network). Believes: its own clocks. Bounded by: one entry per connection and per
//! question.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::pump::Machine;
use crate::sim::clock::Clock;
use crate::{AskId, Client, Duration, Instant, Outcome, Station, Ticket, VerifyJob};

/// A machine at its host.
#[derive(Debug)]
pub(in crate::sim) enum Kind {
    Client(Box<Client>),
    Station(Box<Station>),
}

/// A machine, its clocks, and what it has asked for.
#[derive(Debug)]
pub(in crate::sim) struct Host {
    pub(in crate::sim) kind: Option<Kind>,
    pub(in crate::sim) clock: Clock,
    /// Its connections.
    pub(in crate::sim) cables: Vec<usize>,
    /// The station behind each `StationRef` of a client.
    pub(in crate::sim) stations: Vec<usize>,
    pub(in crate::sim) settled: Vec<(Ticket, Outcome)>,
    pub(in crate::sim) asks: VecDeque<(Instant, AskId, VerifyJob)>,
    /// How long answers to its questions take.
    pub(in crate::sim) answers_after: Duration,
    /// Of so many questions one is never answered; 0 for none.
    pub(in crate::sim) answers_lose: u64,
    pub(in crate::sim) asked: u64,
    /// Something may have been decided that was not handed out.
    pub(in crate::sim) dirty: bool,
    /// Calls of `handle_timeout` that were due, and everything else that was put in.
    pub(in crate::sim) wakeups: u64,
    pub(in crate::sim) inputs: u64,
}

impl Host {
    /// A host on which nothing runs yet.
    pub(in crate::sim) fn new(stations: Vec<usize>) -> Self {
        Self {
            kind: None,
            clock: Clock::default(),
            cables: Vec::new(),
            stations,
            settled: Vec::new(),
            asks: VecDeque::new(),
            answers_after: Duration::ZERO,
            answers_lose: 0,
            asked: 0,
            dirty: true,
            wakeups: 0,
            inputs: 0,
        }
    }

    pub(in crate::sim) fn machine(&mut self) -> Option<&mut dyn Machine> {
        match self.kind.as_mut()? {
            Kind::Client(client) => Some(&mut **client),
            Kind::Station(station) => Some(&mut **station),
        }
    }

    pub(in crate::sim) fn due(&self) -> Option<Instant> {
        let mono = match self.kind.as_ref()? {
            Kind::Client(client) => client.poll_timeout(),
            Kind::Station(station) => station.poll_timeout(),
        };
        Some(self.clock.truth(mono?))
    }

    /// Something was taken out of its machine, which may cure a pause.
    pub(in crate::sim) fn touch(&mut self) {
        self.dirty = true;
    }
}
