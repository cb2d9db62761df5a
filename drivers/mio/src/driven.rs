//! A machine with its sockets, for one event loop: the driver's own thread, or a loop of the application's.
//!
//! Decides: whose turn it is. Leaves to others: waiting, which is the loop's; one link's reads and writes (`tidings_common::Link`).
//! Believes: its [`Clock`]. Bounded by: as many links as the machine takes, and as many accepted ones as the station's doors take; 64
//! steps per turn, a step being one read and one write of a link, one call for the time, or 16 connections accepted.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::time::Duration;

use mio::event::{Event, Source};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use tidings::code::CloseReason;
use tidings::{Action, Instant, LinkEvent, LinkId, Now, Ready, StationRef, soonest};
use tidings_common::{
    Clock, DoorStatus, Doors, Guest, IoCounters, Link, Opening, Run, StartError, StationAddress,
    TurnedAway, Turns, Wire, dial_failure, patience,
};
use tidings_tls::{Session, Tls, TlsFault, TlsFaults};

use crate::socket::Edged;

/// Steps of one turn.
pub(crate) const STEPS: usize = 64;
/// Connections accepted in one step.
const ACCEPTS: usize = 16;

/// What has a token.
#[derive(Debug)]
enum Seat {
    Link(Wire<Edged>, Link),
    Listener(TcpListener),
    /// With the station it goes to, and which of its addresses is to be tried after this one.
    Opening(Opening<Edged>, Option<(StationRef, usize)>),
}

/// What a step came to.
#[derive(Debug)]
pub(crate) enum Did {
    /// Something for the application.
    Hand(Action),
    /// There is nothing to do before the next event.
    Nothing,
    Something,
}

/// A `Client` or a `Station` with its sockets, without a thread: whoever owns the `mio::Poll` calls it.
///
/// A turn of that loop: wait for [`Self::timeout`] at most, hand every event to [`Self::handle_event`], then take what there is from
/// [`Self::turn`] until it answers `None`. The machine's own verbs are behind [`Self::with`].
#[derive(Debug)]
pub struct Driven<M> {
    pub(crate) machine: M,
    clock: Clock,
    registry: Registry,
    first: usize,
    next: usize,
    targets: Vec<StationAddress>,
    tls: Option<Tls>,
    tls_faults: TlsFaults,
    /// Where it listens.
    doors: Option<Doors>,
    seats: BTreeMap<usize, Seat>,
    links: BTreeMap<LinkId, usize>,
    pub(crate) turns: Turns,
    io: IoCounters,
    /// When the machine was last told the time for its own sake.
    looked: Instant,
    /// Steps left in this turn.
    left: usize,
    /// The machine was called since it was last asked for actions.
    pub(crate) called: bool,
    closing: bool,
}

impl<M: Run> Driven<M> {
    pub(crate) fn new(
        machine: M,
        clock: Clock,
        registry: &Registry,
        Token(first): Token,
        targets: Vec<StationAddress>,
        tls: Option<Tls>,
    ) -> Result<Self, StartError> {
        let registry = registry.try_clone();
        let io = |error: io::Error| StartError::Io { kind: error.kind() };
        Ok(Self {
            machine,
            clock,
            registry: registry.map_err(io)?,
            first,
            next: first,
            targets,
            tls,
            tls_faults: TlsFaults::default(),
            doors: None,
            seats: BTreeMap::new(),
            links: BTreeMap::new(),
            turns: Turns::default(),
            io: IoCounters::default(),
            looked: Instant::ORIGIN,
            left: STEPS,
            called: true,
            closing: false,
        })
    }

    /// The machine, for its getters.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Calls the machine: `subscribe`, `publish`, `poll_item`, `commit` and whatever else it offers to an application. Its links, its
    /// actions and its time are this driver's.
    pub fn with<R>(&mut self, call: impl FnOnce(&mut M, Now) -> R) -> R {
        self.called = true;
        let result = call(&mut self.machine, self.clock.now());
        self.turns.retry();
        result
    }

    /// What the sockets did so far.
    pub fn io(&self) -> IoCounters {
        self.io
    }

    /// Connections that came to no secure channel so far, by reason.
    pub fn tls_faults(&self) -> TlsFaults {
        self.tls_faults
    }

    /// Who is inside, where it listens, and how many were turned away.
    pub fn doors(&self) -> DoorStatus {
        self.doors.as_ref().map(Doors::status).unwrap_or_default()
    }

    /// Connections that were turned away at the doors: something for a log, at most once per bound and 10 s, however often it is asked.
    pub fn turned_away(&self) -> Option<TurnedAway> {
        self.doors.as_ref()?.report(self.clock.now().mono)
    }

    /// How long the loop may wait for events: zero when there is something to do, `None` as long as it likes.
    pub fn timeout(&self) -> Option<Duration> {
        if self.is_due() {
            return Some(Duration::ZERO);
        }
        self.deadline().map(|at| self.clock.until(at))
    }

    /// When there is something to do though nothing happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        soonest(self.due(), self.turns.deadline())
    }

    /// When the machine is to be told the time. A host that slept finds out soon after it woke, though its clock stood still.
    fn due(&self) -> Option<Instant> {
        let look = self.looked.saturating_add(patience::LOOK);
        self.machine.poll_timeout().map(|at| at.min(look))
    }

    /// Whether there is something to do before any event.
    pub(crate) fn is_due(&self) -> bool {
        self.called || self.turns.is_due()
    }

    /// Takes an event. False when its token is below those this was given.
    pub fn handle_event(&mut self, event: &Event) -> bool {
        let Token(token) = event.token();
        match self.seats.get_mut(&token) {
            Some(Seat::Link(wire, _)) => wire.socket().handle_event(event),
            Some(Seat::Opening(opening, _)) => opening.wire().socket().handle_event(event),
            Some(Seat::Listener(_)) | None => {}
        }
        if token >= self.first {
            self.turns.push(token);
        }
        token >= self.first
    }

    /// Does what is due, and hands out what is the application's: streams that have something to read, outcomes, reports. After `None`
    /// the loop waits again, which may be for no time at all.
    pub fn turn(&mut self) -> Option<Action> {
        while self.left > 0 {
            self.left -= 1;
            match self.step() {
                Did::Hand(action) => return Some(action),
                Did::Nothing => break,
                Did::Something => {}
            }
        }
        self.left = STEPS;
        None
    }

    /// Says goodbye on every link, listens and dials no more. The loop goes on until [`Self::is_closed`], a second at most.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closing, true) {
            return;
        }
        self.with(M::close);
        let now = self.clock.now();
        let tokens: Vec<usize> = self.seats.keys().copied().collect();
        for token in tokens {
            // One that is still shaking hands has nobody to say goodbye to, but ends as well.
            if !self.close_seat(token, now, CloseReason::Normal) {
                drop(self.remove(token));
            }
        }
    }

    /// Drops every socket as it is.
    pub(crate) fn kill(&mut self) {
        (self.closing, self.called) = (true, true);
        while let Some(token) = self.seats.keys().next().copied() {
            drop(self.remove(token));
        }
    }

    /// Whether it was closed and has no socket any more.
    pub fn is_closed(&self) -> bool {
        self.closing && self.seats.is_empty()
    }

    pub(crate) fn listen(&mut self, listener: TcpListener, doors: Doors) -> io::Result<()> {
        self.seat(listener, Interest::READABLE, Seat::Listener)?;
        self.doors = Some(doors);
        Ok(())
    }

    /// Gives a socket a token and its first turn.
    fn seat<S: Source>(
        &mut self,
        mut source: S,
        interest: Interest,
        seat: impl FnOnce(S) -> Seat,
    ) -> io::Result<usize> {
        let token = self.next;
        let registry = &self.registry;
        registry.register(&mut source, Token(token), interest)?;
        // There is a number for each connection there will ever be.
        self.next = token.wrapping_add(1).max(self.first);
        self.seats.insert(token, seat(source));
        self.turns.push(token);
        Ok(token)
    }

    /// Takes a seat away. Closing its socket takes that out of the loop.
    fn remove(&mut self, token: usize) -> Option<Seat> {
        self.turns.forget(token);
        let seat = self.seats.remove(&token)?;
        if let Seat::Link(_, link) = &seat {
            self.links.remove(&link.id());
        }
        Some(seat)
    }

    /// One action, one call for the time, or one seat's turn.
    pub(crate) fn step(&mut self) -> Did {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Ready(Ready::Link(link)) => {
                    if let Some(token) = self.links.get(&link) {
                        self.turns.push(*token);
                    }
                }
                Action::Close { link, reason } => {
                    if let Some(token) = self.links.get(&link) {
                        self.close_seat(*token, self.clock.now(), reason);
                    }
                }
                Action::Dial { .. } if self.closing => {}
                Action::Dial { station } => self.dial(station, 0, ""),
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
        let Some(token) = self.turns.pop(now.mono) else {
            return Did::Nothing;
        };
        match self.seats.get_mut(&token) {
            Some(Seat::Link(wire, link)) => {
                self.called = true;
                link.look(&mut self.machine, now, false);
                if link.is_over(wire, now) {
                    self.end(token, now);
                    return Did::Something;
                }
                let moved = link.read(wire, &mut self.io) | link.write(wire, now, &mut self.io);
                self.turns.arm(token, link.deadline());
                if moved {
                    self.turns.push(token);
                } else if link.is_paused() {
                    self.turns.pause(token);
                }
            }
            Some(Seat::Listener(_)) => self.accept(token, now),
            Some(Seat::Opening(..)) => self.open(token, now),
            None => {}
        }
        Did::Something
    }

    /// Lets a link end. False where there is none.
    fn close_seat(&mut self, token: usize, now: Now, reason: CloseReason) -> bool {
        let Some(Seat::Link(_, link)) = self.seats.get_mut(&token) else {
            return false;
        };
        link.close(now, reason);
        self.turns.push(token);
        true
    }

    /// A link is over: its socket first, so that whoever waits for that finds it gone.
    fn end(&mut self, token: usize, now: Now) {
        if let Some(Seat::Link(wire, link)) = self.remove(token) {
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

    /// Connects to the addresses of a station from the `next` on, or says that it came to nothing.
    fn dial(&mut self, station: StationRef, mut next: usize, mut failure: &'static str) {
        while let Some(target) = self.targets.get(usize::from(station.0))
            && let Some(address) = target.sockets.get(next)
        {
            next += 1;
            let (session, address) = (target.session(self.tls.as_ref()), *address);
            let tried = session.map_err(TlsFault::text).and_then(|session| {
                let admitted = TcpStream::connect(address)
                    .and_then(|stream| self.admit(stream, session, Err((station, next))));
                admitted.map_err(|error| dial_failure(&error))
            });
            match tried {
                Ok(()) => return,
                Err(reason) => failure = reason,
            }
        }
        self.called = true;
        let now = self.clock.now();
        self.machine.dial_failed(now, station, failure);
    }

    /// Accepts what waits, some at a time.
    fn accept(&mut self, token: usize, now: Now) {
        for _ in 0..ACCEPTS {
            let (Some(Seat::Listener(listener)), Some(doors)) =
                (self.seats.get(&token), &self.doors)
            else {
                return;
            };
            let admitted = match listener.accept() {
                Ok((stream, from)) => {
                    let guest = doors.enter(from.ip(), self.tls.is_some());
                    // Otherwise dropped before anything is signed for it.
                    guest.is_ok_and(|guest| {
                        let session = self.tls.as_ref().map(Tls::answer).transpose();
                        session.is_ok_and(|session| self.admit(stream, session, Ok(guest)).is_ok())
                    })
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // A connection that went away by itself is nobody's trouble; anything else needs a moment to pass.
                Err(error) if error.kind() != ErrorKind::ConnectionAborted => {
                    self.io.refused_connections += 1;
                    let at = now.mono.saturating_add(patience::ACCEPT_PAUSE);
                    return self.turns.arm(token, Some(at));
                }
                Err(_) => false,
            };
            self.io.refused_connections += u64::from(!admitted);
        }
        self.turns.push(token);
    }

    /// Gives a connection, of a guest or to a station, a seat, where it becomes a link.
    fn admit(
        &mut self,
        stream: TcpStream,
        session: Option<Session>,
        between: Result<Guest, (StationRef, usize)>,
    ) -> io::Result<()> {
        let now = self.clock.now();
        let both = Interest::READABLE | Interest::WRITABLE;
        let dialled = between.as_ref().err().copied();
        self.seat(stream, both, |stream| {
            let socket = Edged::new(stream, dialled.is_none());
            let wire = Wire::new(socket, session, between.ok());
            Seat::Opening(Opening::new(wire, now), dialled)
        })?;
        Ok(())
    }

    /// A connection that is not a link yet had an event, or its time is over.
    fn open(&mut self, token: usize, now: Now) {
        let Some(Seat::Opening(opening, _)) = self.seats.get_mut(&token) else {
            return;
        };
        let opened = opening.step(now);
        if opened == Ok(None) {
            return self.turns.arm(token, Some(opening.deadline()));
        }
        let Some(Seat::Opening(opening, dialled)) = self.remove(token) else {
            return;
        };
        if let Some(fault) = opening.fault() {
            self.tls_faults.count(fault);
        }
        let (wire, early) = opening.into_parts();
        self.called = true;
        let failure = match opened {
            Ok(None) => return,
            Ok(Some(binding)) => {
                let dialled = dialled.map(|(station, _)| station);
                let up = LinkEvent::Up { dialled, binding };
                if let Ok(link) = self.machine.handle_link(now, up) {
                    self.seats
                        .insert(token, Seat::Link(wire, Link::new(link, early)));
                    self.links.insert(link, token);
                    return self.turns.push(token);
                }
                ""
            }
            Err(failure) => failure,
        };
        drop(wire);
        match dialled {
            Some((station, next)) => self.dial(station, next, failure),
            None => self.io.refused_connections += 1,
        }
    }
}
