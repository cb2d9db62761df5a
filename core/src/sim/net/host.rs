//! A machine, its clocks, and what a driver keeps for it.
//!
//! Decides: when it sleeps, and what of that it can see. Leaves to others: driving it (the network). Believes: its own clocks. Bounded by: one entry per connection and per
//! question.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Net, Seen, What};
use crate::pump::Machine;
use crate::side::PROMPT;
use crate::sim::cable::STATION;
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
    /// When something that takes the time was last put in, commands aside.
    pub(in crate::sim) touched: Instant,
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
            touched: Instant::ORIGIN,
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

impl Net {
    /// A host does nothing until it wakes.
    pub(in crate::sim) fn sleep(&mut self, host: usize, mono_stands: bool) {
        self.hosts[host].clock.sleep(self.now, mono_stands);
    }

    /// A host goes on: what arrived meanwhile is there, and what was due is due.
    pub(in crate::sim) fn wake(&mut self, index: usize) {
        let Some((since, stood)) = self.hosts[index].clock.asleep() else {
            return;
        };
        self.hosts[index].clock.wake(self.now);
        self.see_away(index, since, stood);
        let host = &mut self.hosts[index];
        host.dirty = true;
        let cables = host.cables.clone();
        for cable in cables {
            let side = usize::from(self.cables[cable].hosts[STATION] == index);
            self.due
                .push(Reverse((self.now, What::Arrive, cable, side)));
            if self.cables[cable].told_later[side] {
                self.due.push(Reverse((self.now, What::Down, cable, side)));
            }
            if core::mem::take(&mut self.cables[cable].pipes[1 - side].blocked) {
                self.write_again(cable, side);
            }
        }
    }

    /// Whether a connection of a host has ended that it still believes in.
    pub(in crate::sim) fn is_deceived(&self, host: usize) -> bool {
        let of_it = self.hosts[host]
            .cables
            .iter()
            .map(|cable| &self.cables[*cable]);
        of_it
            .into_iter()
            .any(|cable| cable.lost || cable.gone != [false; 2])
    }

    /// A host wakes. Its machine sees that its mono stood still, or that something is long due; then it may have been away since its last
    /// input.
    fn see_away(&mut self, host: usize, since: Instant, stood: bool) {
        let (now, slept) = (self.now, self.now.saturating_since(since));
        let found = &self.hosts[host];
        if self.watch.is_none() || !matches!(found.kind, Some(Kind::Client(_))) {
            return;
        }
        let rounding = Duration::from_millis(1);
        let late = |due: Instant| now.saturating_since(due) > PROMPT;
        let (sees, most) = match stood {
            true => (slept > PROMPT + rounding, slept + PROMPT + rounding),
            false if slept > PROMPT && found.due().is_some_and(late) => {
                (true, now.saturating_since(found.touched))
            }
            false => (false, Duration::ZERO),
        };
        let sure = if sees {
            slept - rounding
        } else {
            Duration::ZERO
        };
        self.seen.push(Seen::Away { host, most, sure });
    }

    /// The wall of a host is stepped. Set forward, it looks to its machine as if mono had stood still.
    pub(in crate::sim) fn step_host(&mut self, host: usize, millis: i64) {
        self.hosts[host].clock.step_wall(self.now, millis);
        let client = matches!(self.hosts[host].kind, Some(Kind::Client(_)));
        if client && self.watch.is_some() {
            let forward = Duration::from_millis(millis.max(0).unsigned_abs());
            let (most, sure) = (forward + PROMPT, Duration::ZERO);
            self.seen.push(Seen::Away { host, most, sure });
        }
    }
}
