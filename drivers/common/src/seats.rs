//! A machine and its connections, for drivers that have a loop and not a task per link.
//!
//! Decides: whose turn it is, and what it is for; when a name that is looked up is asked for. Leaves to others: waiting, connecting and accepting, which are the loop's; one
//! connection's reads and writes (`opening.rs`, `link.rs`). Believes: its [`Clock`]. Bounded by: as many links as the machine takes, and as
//! many openings as are admitted; one action, one call for the time or one read and one write of a connection per step.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use tidings::code::CloseReason;
use tidings::{Action, Instant, LinkEvent, LinkId, Now, Ready, StationRef, soonest};
use tidings_tls::{TlsFault, TlsFaults};

use crate::turns::Turns;
use crate::{Clock, IoCounters, Link, Opening, Run, Socket, StationAddress, Wire, patience};

/// A connection.
#[derive(Debug)]
enum Seat<S> {
    Link(Wire<S>, Link),
    /// With the station it goes to, and which of its addresses is to be tried after this one.
    Opening(Opening<S>, Option<(StationRef, usize)>),
}

/// Where a station is by now, or in a word why nobody knows.
type Found = Result<Vec<SocketAddr>, &'static str>;

/// A station that is to be connected to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Dial {
    /// Which.
    pub station: StationRef,
    /// From which of its addresses on.
    pub next: usize,
    /// Why the one before came to nothing; empty where there was none.
    pub failure: &'static str,
}

/// What a step came to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Did {
    /// Connect, then [`Seats::admit`]; or say that it came to nothing, with [`Seats::dial_failed`].
    Dial(Dial),
    /// Its name was looked up: connect to these, and keep them for its next addresses.
    Found(Dial, Vec<SocketAddr>),
    /// Something for the application.
    Hand(Action),
    /// There is nothing to do before the next event.
    Nothing,
    /// There may be more.
    Something,
    /// It is the turn of what is no connection: a listener, if it is still there.
    Turn(usize),
}

/// The machine, and its connections by number.
#[derive(Debug)]
pub struct Seats<M, S> {
    machine: M,
    clock: Clock,
    first: usize,
    next: usize,
    seats: BTreeMap<usize, Seat<S>>,
    links: BTreeMap<LinkId, usize>,
    /// Names that are being looked up, for which dial, and where the answer comes.
    names: BTreeMap<usize, (Dial, Receiver<Found>)>,
    turns: Turns,
    /// What the sockets did so far.
    pub io: IoCounters,
    /// Connections that came to no secure channel, or lost it, by reason.
    pub tls_faults: TlsFaults,
    /// When the machine was last told the time for its own sake.
    looked: Instant,
    /// The machine was called since it was last asked for actions.
    called: bool,
    closing: bool,
}

impl<M: Run, S: Socket> Seats<M, S> {
    /// With numbers from `first` on.
    pub fn new(machine: M, clock: Clock, first: usize) -> Self {
        Self {
            machine,
            clock,
            first,
            next: first,
            seats: BTreeMap::new(),
            links: BTreeMap::new(),
            names: BTreeMap::new(),
            turns: Turns::default(),
            io: IoCounters::default(),
            tls_faults: TlsFaults::default(),
            looked: Instant::ORIGIN,
            called: true,
            closing: false,
        }
    }

    /// The machine, for its getters.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// What time it is.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Calls the machine.
    pub fn with<R>(&mut self, call: impl FnOnce(&mut M, Now) -> R) -> R {
        self.called = true;
        let result = call(&mut self.machine, self.clock.now());
        self.turns.retry();
        result
    }

    /// Takes something the machine holds ready, which changes nothing else as far as `quiet` says.
    pub fn take<R>(&mut self, take: impl FnOnce(&mut M) -> R, quiet: impl FnOnce(&R) -> bool) -> R {
        let taken = take(&mut self.machine);
        self.called |= !quiet(&taken);
        taken
    }

    /// Somebody has read: links that wait for that are tried again.
    pub fn retry(&mut self) {
        self.turns.retry();
    }

    /// How long the loop may wait for events: zero when there is something to do, `None` as long as it likes.
    pub fn timeout(&self) -> Option<Duration> {
        if self.is_due() {
            return Some(Duration::ZERO);
        }
        self.deadline().map(|at| self.clock.until(at))
    }

    /// When there is something to do though nothing happens.
    pub fn deadline(&self) -> Option<Instant> {
        soonest(self.due(), self.turns.deadline())
    }

    /// When the machine is to be told the time. A host that slept finds out soon after it woke, though its clock stood still.
    fn due(&self) -> Option<Instant> {
        let look = self.looked.saturating_add(patience::LOOK);
        self.machine.poll_timeout().map(|at| at.min(look))
    }

    /// Whether there is something to do before any event.
    pub fn is_due(&self) -> bool {
        self.called || self.turns.is_due()
    }

    /// Whether numbers of this kind are given out here.
    pub fn owns(&self, number: usize) -> bool {
        number >= self.first
    }

    /// The next number, for a connection or a listener, and its first turn. There is one for each connection there will ever be.
    pub fn number(&mut self) -> usize {
        let number = self.next;
        self.next = number.wrapping_add(1).max(self.first);
        self.turns.push(number);
        number
    }

    /// The socket of a number, where that is a connection's.
    pub fn socket(&mut self, number: usize) -> Option<&mut S> {
        match self.seats.get_mut(&number)? {
            Seat::Link(wire, _) => Some(wire.socket()),
            Seat::Opening(opening, _) => Some(opening.wire().socket()),
        }
    }

    /// A number has something to do.
    pub fn push(&mut self, number: usize) {
        self.turns.push(number);
    }

    /// A number has something to do then, whatever happens before.
    pub fn arm(&mut self, number: usize, at: Instant) {
        self.turns.arm(number, Some(at));
    }

    /// A number is no longer used.
    pub fn forget(&mut self, number: usize) {
        self.turns.forget(number);
    }

    /// Gives a connection its seat, where it becomes a link: one that was accepted, or one that goes to a station.
    pub fn admit(&mut self, number: usize, wire: Wire<S>, dialled: Option<(StationRef, usize)>) {
        let opening = Opening::new(wire, self.clock.now());
        self.seats.insert(number, Seat::Opening(opening, dialled));
    }

    /// Looks up where a station is before it is connected to; [`Did::Found`] follows, unless nobody knows.
    pub fn look_up(&mut self, dial: Dial, target: &StationAddress) {
        let (tell, told) = channel();
        // Whoever asked may be gone by then.
        target.look_up(move |found| tell.send(found).unwrap_or_default());
        let number = self.number();
        self.names.insert(number, (dial, told));
    }

    /// A name may have been looked up.
    fn looked_up(&mut self, number: usize, (mut dial, told): (Dial, Receiver<Found>)) -> Did {
        let found = match told.try_recv() {
            Err(TryRecvError::Empty) => {
                // It has no socket, so nothing wakes the loop for it.
                let at = self.now().mono.saturating_add(patience::LOOK_UP);
                self.turns.arm(number, Some(at));
                self.names.insert(number, (dial, told));
                return Did::Something;
            }
            found => found.unwrap_or_else(|_| Err(TlsFault::Io.text())),
        };
        match found {
            Ok(sockets) => Did::Found(dial, sockets),
            Err(failure) => {
                dial.failure = failure;
                self.dial_failed(dial);
                Did::Something
            }
        }
    }

    /// A dial came to nothing.
    pub fn dial_failed(&mut self, dial: Dial) {
        self.called = true;
        let now = self.clock.now();
        self.machine.dial_failed(now, dial.station, dial.failure);
    }

    /// Says goodbye on every link, and dials no more. It goes on until [`Self::is_closed`], a second at most.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closing, true) {
            return;
        }
        self.names.clear();
        self.with(M::close);
        let now = self.clock.now();
        let numbers: Vec<usize> = self.seats.keys().copied().collect();
        for number in numbers {
            // One that is still shaking hands has nobody to say goodbye to, but ends as well.
            if !self.close_seat(number, now, CloseReason::Normal) {
                drop(self.remove(number));
            }
        }
    }

    /// Drops every socket as it is.
    pub fn kill(&mut self) {
        (self.closing, self.called) = (true, true);
        self.names.clear();
        while let Some(number) = self.seats.keys().next().copied() {
            drop(self.remove(number));
        }
    }

    /// Whether it was closed and has no socket any more.
    pub fn is_closed(&self) -> bool {
        self.closing && self.seats.is_empty()
    }

    /// One action, one call for the time, or one seat's turn.
    pub fn step(&mut self) -> Did {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Ready(Ready::Link(link)) => {
                    if let Some(number) = self.links.get(&link) {
                        self.turns.push(*number);
                    }
                }
                Action::Close { link, reason } => {
                    if let Some(number) = self.links.get(&link) {
                        self.close_seat(*number, self.clock.now(), reason);
                    }
                }
                Action::Dial { .. } if self.closing => {}
                Action::Dial { station } => {
                    return Did::Dial(Dial {
                        station,
                        next: 0,
                        failure: "",
                    });
                }
                other => return Did::Hand(other),
            }
        }
        self.called = false;
        let now = self.clock.now();
        if self.due().is_some_and(|at| at <= now.mono) {
            self.looked = now.mono;
            // With more to do it is due again at once.
            let _more = self.machine.handle_timeout(now);
            self.called = true;
            return Did::Something;
        }
        let Some(number) = self.turns.pop(now.mono) else {
            return Did::Nothing;
        };
        if let Some(name) = self.names.remove(&number) {
            return self.looked_up(number, name);
        }
        match self.seats.get_mut(&number) {
            Some(Seat::Link(..)) => self.turn(number, now),
            Some(Seat::Opening(..)) => return self.open(number, now),
            None => return Did::Turn(number),
        }
        Did::Something
    }

    /// A link's turn: one look, one read, one write.
    fn turn(&mut self, number: usize, now: Now) {
        let Some(Seat::Link(wire, link)) = self.seats.get_mut(&number) else {
            return;
        };
        self.called = true;
        link.look(&mut self.machine, now, false);
        if link.is_over(wire, now) {
            return self.end(number, now);
        }
        let moved = link.read(wire, &mut self.io) | link.write(wire, now, &mut self.io);
        self.turns.arm(number, link.deadline());
        if moved {
            self.turns.push(number);
        } else if link.is_paused() {
            self.turns.pause(number);
        }
    }

    /// A connection that is not a link yet had an event, or its time is over.
    fn open(&mut self, number: usize, now: Now) -> Did {
        let Some(Seat::Opening(opening, _)) = self.seats.get_mut(&number) else {
            return Did::Something;
        };
        let opened = opening.step(now);
        if opened == Ok(None) {
            self.turns.arm(number, Some(opening.deadline()));
            return Did::Something;
        }
        let Some(Seat::Opening(opening, dialled)) = self.remove(number) else {
            return Did::Something;
        };
        if let Some(fault) = opening.fault() {
            self.tls_faults.count(fault);
        }
        let (wire, early) = opening.into_parts();
        self.called = true;
        let failure = match opened {
            Ok(None) => "",
            Ok(Some(binding)) => {
                let dialled = dialled.map(|(station, _)| station);
                let up = LinkEvent::Up { dialled, binding };
                if let Ok(link) = self.machine.handle_link(now, up) {
                    let seat = Seat::Link(wire, Link::new(link, early));
                    self.seats.insert(number, seat);
                    self.links.insert(link, number);
                    self.turns.push(number);
                    return Did::Something;
                }
                ""
            }
            Err(failure) => failure,
        };
        drop(wire);
        let Some((station, next)) = dialled else {
            self.io.refused_connections += 1;
            return Did::Something;
        };
        Did::Dial(Dial {
            station,
            next,
            failure,
        })
    }

    /// Lets a link end. False where there is none.
    fn close_seat(&mut self, number: usize, now: Now, reason: CloseReason) -> bool {
        let Some(Seat::Link(_, link)) = self.seats.get_mut(&number) else {
            return false;
        };
        link.close(now, reason);
        self.turns.push(number);
        true
    }

    /// A link is over: its socket first, so that whoever waits for that finds it gone.
    fn end(&mut self, number: usize, now: Now) {
        if let Some(Seat::Link(wire, link)) = self.remove(number) {
            drop(wire);
            if let Some(fault) = link.fault() {
                self.tls_faults.count(fault);
            }
            let (link, reason) = (link.id(), link.reason());
            let down = LinkEvent::Down { link, reason };
            // It was named by the machine and is reported once.
            self.machine.handle_link(now, down).ok();
        }
    }

    /// Takes a seat away. Closing its socket takes that out of the loop.
    fn remove(&mut self, number: usize) -> Option<Seat<S>> {
        self.turns.forget(number);
        let seat = self.seats.remove(&number)?;
        if let Seat::Link(_, link) = &seat {
            self.links.remove(&link.id());
        }
        Some(seat)
    }
}

#[cfg(test)]
mod tests;
