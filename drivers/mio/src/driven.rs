//! A machine with its sockets, for one event loop: the driver's own thread, or a loop of the application's.
//!
//! Decides: when sockets are accepted and connected. Leaves to others: waiting, which is the loop's; whose turn it is
//! (`tidings_common::Seats`). Believes: the clock of its seats. Bounded by: as many links as the machine takes, and as many accepted ones as
//! the station's doors take; 64 steps per turn, a step being one read and one write of a link, one call for the time, or 16 connections
//! accepted.

use std::io::{self, ErrorKind};
use std::time::Duration;

use mio::event::{Event, Source};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use tidings::{Action, Now, StationRef};
use tidings_common::{
    Clock, Dial, Did, DoorStatus, Doors, Guest, IoCounters, Run, Seats, StartError, StationAddress,
    TurnedAway, Wire, dial_failure, patience,
};
use tidings_tls::{Session, Tls, TlsFault, TlsFaults};

use crate::socket::Edged;

/// Steps of one turn.
pub(crate) const STEPS: usize = 64;
/// Connections accepted in one step.
const ACCEPTS: usize = 16;

/// A `Client` or a `Station` with its sockets, without a thread: whoever owns the `mio::Poll` calls it.
///
/// A turn of that loop: wait for [`Self::timeout`] at most, hand every event to [`Self::handle_event`], then take what there is from
/// [`Self::turn`] until it answers `None`. The machine's own verbs are behind [`Self::with`].
#[derive(Debug)]
pub struct Driven<M> {
    pub(crate) seats: Seats<M, Edged>,
    registry: Registry,
    targets: Vec<StationAddress>,
    tls: Option<Tls>,
    /// Until it is closed, with its token and who may come in there.
    listener: Option<(usize, TcpListener)>,
    doors: Option<Doors>,
    /// Steps left in this turn.
    left: usize,
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
        Ok(Self {
            seats: Seats::new(machine, clock, first),
            registry: registry.map_err(|error| StartError::Io { kind: error.kind() })?,
            targets,
            tls,
            listener: None,
            doors: None,
            left: STEPS,
        })
    }

    /// The machine, for its getters.
    pub fn machine(&self) -> &M {
        self.seats.machine()
    }

    /// Calls the machine: `subscribe`, `publish`, `poll_item`, `commit` and whatever else it offers to an application. Its links, its
    /// actions and its time are this driver's.
    pub fn with<R>(&mut self, call: impl FnOnce(&mut M, Now) -> R) -> R {
        self.seats.with(call)
    }

    /// What the sockets did so far.
    pub fn io(&self) -> IoCounters {
        self.seats.io
    }

    /// Connections that came to no secure channel so far, or lost it, by reason.
    pub fn tls_faults(&self) -> TlsFaults {
        self.seats.tls_faults
    }

    /// Who is inside, where it listens, and how many were turned away.
    pub fn doors(&self) -> DoorStatus {
        self.doors.as_ref().map(Doors::status).unwrap_or_default()
    }

    /// Connections that were turned away at the doors: something for a log, at most once per bound and 10 s, however often it is asked.
    pub fn turned_away(&self) -> Option<TurnedAway> {
        self.doors.as_ref()?.report(self.seats.now().mono)
    }

    /// How long the loop may wait for events: zero when there is something to do, `None` as long as it likes.
    pub fn timeout(&self) -> Option<Duration> {
        self.seats.timeout()
    }

    /// Takes an event. False when its token is below those this was given.
    pub fn handle_event(&mut self, event: &Event) -> bool {
        let Token(token) = event.token();
        if let Some(socket) = self.seats.socket(token) {
            socket.handle_event(event);
        }
        let ours = self.seats.owns(token);
        if ours {
            self.seats.push(token);
        }
        ours
    }

    /// Does what is due, and hands out what is the application's: streams that have something to read, outcomes, reports, and questions
    /// (`Action::Ask`), which it answers with `Client::answer`. After `None` the loop waits again, which may be for no time at all.
    pub fn turn(&mut self) -> Option<Action> {
        while self.left > 0 {
            self.left -= 1;
            match self.step() {
                Did::Hand(action) => return Some(action),
                Did::Nothing => break,
                _ => {}
            }
        }
        self.left = STEPS;
        None
    }

    /// Says goodbye on every link, listens and dials no more. The loop goes on until [`Self::is_closed`], a second at most.
    pub fn close(&mut self) {
        self.stop_listening();
        self.seats.close();
    }

    /// Drops every socket as it is.
    pub(crate) fn kill(&mut self) {
        self.stop_listening();
        self.seats.kill();
    }

    fn stop_listening(&mut self) {
        if let Some((token, _)) = self.listener.take() {
            self.seats.forget(token);
        }
    }

    /// Whether it was closed and has no socket any more.
    pub fn is_closed(&self) -> bool {
        self.seats.is_closed()
    }

    pub(crate) fn listen(&mut self, mut listener: TcpListener, doors: Doors) -> io::Result<()> {
        let token = self.register(&mut listener, Interest::READABLE)?;
        self.listener = Some((token, listener));
        self.doors = Some(doors);
        Ok(())
    }

    /// Gives a socket its token and its first turn.
    fn register(&mut self, source: &mut impl Source, interest: Interest) -> io::Result<usize> {
        let token = self.seats.number();
        let registered = self.registry.register(source, Token(token), interest);
        registered.map(|()| token)
    }

    /// One action, one call for the time, or one seat's turn.
    pub(crate) fn step(&mut self) -> Did {
        match self.seats.step() {
            Did::Dial(dial) => self.dial(dial),
            Did::Found(dial, sockets) => {
                if let Some(target) = self.targets.get_mut(usize::from(dial.station.0)) {
                    target.sockets = sockets;
                }
                self.connect(dial);
            }
            Did::Turn(token) => self.accept(token),
            other => return other,
        }
        Did::Something
    }

    /// Connects to a station, once it is known where that is.
    fn dial(&mut self, dial: Dial) {
        match self.targets.get(usize::from(dial.station.0)) {
            Some(target) if dial.next == 0 && target.is_named() => self.seats.look_up(dial, target),
            _ => self.connect(dial),
        }
    }

    /// Connects to the next address of a station, or says that it came to nothing.
    fn connect(&mut self, mut dial: Dial) {
        while let Some(target) = self.targets.get(usize::from(dial.station.0))
            && let Some(address) = target.sockets.get(dial.next)
        {
            dial.next += 1;
            let (session, address) = (target.session(self.tls.as_ref()), *address);
            let tried = session.map_err(TlsFault::text).and_then(|session| {
                let to = Err((dial.station, dial.next));
                let connecting = TcpStream::connect(address);
                let admitted = connecting.and_then(|stream| self.admit(stream, session, to));
                admitted.map_err(|error| dial_failure(&error))
            });
            match tried {
                Ok(()) => return,
                Err(failure) => dial.failure = failure,
            }
        }
        self.seats.dial_failed(dial);
    }

    /// Accepts what waits, some at a time, where that is the listener's token.
    fn accept(&mut self, token: usize) {
        for _ in 0..ACCEPTS {
            let (Some((_, listener)), Some(doors)) = (
                self.listener.as_ref().filter(|(own, _)| *own == token),
                &self.doors,
            ) else {
                return;
            };
            let admitted = match listener.accept() {
                Ok((stream, from)) => {
                    let now = self.seats.now().mono;
                    let guest = doors.enter(from.ip(), self.tls.is_some(), now);
                    if guest.is_err() && self.tls.is_none() {
                        Doors::turn_away(&stream);
                    }
                    // Otherwise dropped before anything is signed for it.
                    guest.is_ok_and(|guest| {
                        let session = self.tls.as_ref().map(Tls::answer).transpose();
                        session.is_ok_and(|session| self.admit(stream, session, Ok(guest)).is_ok())
                    })
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // A connection that went away by itself is nobody's trouble; anything else needs a moment to pass.
                Err(error) if error.kind() != ErrorKind::ConnectionAborted => {
                    self.seats.io.refused_connections += 1;
                    let at = self.seats.now().mono.saturating_add(patience::ACCEPT_PAUSE);
                    return self.seats.arm(token, at);
                }
                Err(_) => false,
            };
            self.seats.io.refused_connections += u64::from(!admitted);
        }
        self.seats.push(token);
    }

    /// Gives a connection, of a guest or to a station, a seat, where it becomes a link.
    fn admit(
        &mut self,
        mut stream: TcpStream,
        session: Option<Session>,
        between: Result<Guest, (StationRef, usize)>,
    ) -> io::Result<()> {
        let token = self.register(&mut stream, Interest::READABLE | Interest::WRITABLE)?;
        let dialled = between.as_ref().err().copied();
        let socket = Edged::new(stream, dialled.is_none());
        let wire = Wire::new(socket, session, between.ok());
        self.seats.admit(token, wire, dialled);
        Ok(())
    }
}
