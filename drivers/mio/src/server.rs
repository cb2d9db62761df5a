//! A station: a relay of the core with a listening socket and a thread of its own, or in a loop of the application's.
//!
//! Decides: how long closing and draining are waited for. Leaves to others: every rule of a station. Believes: the host's clock, for
//! that. Bounded by: `StationLimits::links` connections, and the `DoorLimits`; one more is dropped at once.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use mio::net::TcpListener;
use mio::{Registry, Token};
use tidings::{NodeId, Now, Station, StationStatus};
use tidings_common::{
    Answerer, DoorStatus, IoCounters, StartError, StationSettings, TurnedAway, patience,
};
use tidings_tls::TlsFaults;

use crate::driven::Driven;
use crate::thread::{SOCKETS, Shared};

impl Driven<Station> {
    /// A station in the loop of `registry`, with its sockets under tokens from `first` on, and where it listens.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left registered then.
    pub fn station(
        settings: StationSettings,
        registry: &Registry,
        first: Token,
    ) -> Result<(Self, SocketAddr), StartError> {
        let parts = settings.build()?;
        let address = parts.listen.socket;
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::AddrInUse => StartError::PortInUse { address },
            kind => StartError::Bind { address, kind },
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (station, clock, tls) = (parts.station, parts.clock, parts.tls);
        let mut driven = Self::new(station, clock, registry, first, Vec::new(), tls)?;
        driven.listen(listener, parts.doors).map_err(failed)?;
        Ok((driven, bound))
    }
}

/// A running station. When it is dropped it says goodbye and closes by itself.
#[derive(Debug)]
pub struct StationServer {
    shared: Arc<Shared<Station>>,
    id: NodeId,
    address: SocketAddr,
    secure: bool,
}

impl StationServer {
    /// Listens, and serves on a thread of its own until the station is closed.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub fn start(settings: StationSettings) -> Result<Self, StartError> {
        let secure = settings.is_secure();
        // A station asks nothing.
        let nobody = Answerer::default();
        let (shared, address) = Shared::start("tidings-station", nobody, |registry| {
            Driven::station(settings, registry, SOCKETS)
        })?;
        let id = shared.lock().driven.machine().id();
        Ok(Self {
            shared,
            id,
            address,
            secure,
        })
    }

    /// Its identity.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Its address as [`NodeSettings::station`](crate::NodeSettings::station) takes it, its identity pinned.
    pub fn address(&self) -> String {
        let scheme = if self.secure { "tls" } else { "tcp" };
        format!("{scheme}://{}@{}", self.id, self.address)
    }

    /// What it does now and has done so far.
    pub fn status(&self) -> StationStatus {
        self.shared.lock().driven.machine().status()
    }

    /// What its sockets did so far.
    pub fn io(&self) -> IoCounters {
        self.shared.lock().driven.io()
    }

    /// Connections that came to no secure channel so far, by reason.
    pub fn tls_faults(&self) -> TlsFaults {
        self.shared.lock().driven.tls_faults()
    }

    /// Who is inside, and how many were turned away at the doors.
    pub fn doors(&self) -> DoorStatus {
        self.shared.lock().driven.doors()
    }

    /// Connections that were turned away at the doors: something for a log, at most once per bound and 10 s, however often it is asked.
    pub fn turned_away(&self) -> Option<TurnedAway> {
        self.shared.lock().driven.turned_away()
    }

    /// Calls the station under its lock, for what has no method here: `publish`, `purge`, `memory`.
    pub fn with<R>(&self, call: impl FnOnce(&mut Station, Now) -> R) -> R {
        self.shared.call(|driven| driven.with(call))
    }

    /// Goes away gently: refuses what comes with `draining`, ends each link once its readers have all there is, within 5 s, then closes.
    pub fn drain(&self) {
        self.with(Station::drain);
        self.shared
            .wait(&self.shared.changed, patience::DRAIN, |state| {
                (state.ended || state.driven.machine().is_drained()).then_some(())
            });
        self.close();
    }

    /// Stops listening, says goodbye on every link, and waits until the sockets are closed, 2 s at most.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Drops every socket without a goodbye, as a crash would, and waits until they are closed. For tests and demonstrations.
    pub fn kill(&self) {
        self.shared.kill();
    }
}

impl Drop for StationServer {
    fn drop(&mut self) {
        self.shared.call(Driven::close);
    }
}
