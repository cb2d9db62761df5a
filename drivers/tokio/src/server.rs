//! A station: a relay of the core with a listening socket.
//!
//! Decides: what becomes of connections that cannot be accepted. Leaves to others: every rule of a
//! station. Believes: tokio's timer, for a pause after a failed accept. Bounded by:
//! `StationLimits::links` connections, and the `DoorLimits`; one more is dropped at once.

use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidings::crypto::{SecretKey, Signer};
use tidings::{
    Action, MemoryReport, NodeId, Now, Publish, RealmId, Refused, Station, StationConfig,
    StationLimits, StationStatus,
};
use tidings_common::{DoorLimits, DoorStatus, Doors, Guest, StationSettings, TurnedAway, patience};
use tidings_tls::{Tls, TlsFaults};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::engine::{After, Engine, Host, Tuning};
use crate::wire;
use crate::{AddressError, IoCounters, StartError};

/// Connections the operating system keeps until they are accepted.
const BACKLOG: u32 = 1024;

#[derive(Debug)]
struct StationHost {
    station: Station,
}

impl Host for StationHost {
    type Machine = Station;

    fn machine(&mut self) -> &mut Station {
        &mut self.station
    }

    fn act(&mut self, _: &Arc<Engine<Self>>, _: Action, _: &mut After) {
        // A station asks for nothing beside its links.
    }

    fn moved(&mut self) {}

    fn close(&mut self, now: Now, _: &mut After) {
        self.station.close(now);
    }
}

/// What a station is made with. Made by [`StationServer::builder`].
#[derive(Debug)]
#[must_use = "nothing runs before `start`"]
pub struct StationServerBuilder {
    settings: StationSettings,
    tuning: Tuning,
}

impl From<StationSettings> for StationServerBuilder {
    fn from(settings: StationSettings) -> Self {
        Self {
            settings,
            tuning: Tuning::default(),
        }
    }
}

impl StationServerBuilder {
    /// Where to listen: `tls://0.0.0.0:7400`, which is what `0.0.0.0:7400` means, or on this host alone
    /// `tcp://127.0.0.1:7400`. Port 0 takes any that is free. Called again, the last one counts.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong and what to write instead. Plain TCP is for loopback
    /// alone.
    pub fn listen(mut self, at: &str) -> Result<Self, AddressError> {
        self.settings = self.settings.listen(at)?;
        Ok(self)
    }

    /// Changes the core's settings.
    pub fn configure(mut self, change: impl FnOnce(StationConfig) -> StationConfig) -> Self {
        self.settings = self.settings.configure(change);
        self
    }

    /// The bounds. Default: `StationLimits::default()`.
    pub fn limits(self, limits: StationLimits) -> Self {
        self.configure(|config| config.limits(limits))
    }

    /// How many connections it has, of one address and in all. Default: `DoorLimits::default()`.
    pub fn doors(mut self, limits: DoorLimits) -> Self {
        self.settings = self.settings.doors(limits);
        self
    }

    /// The longest frame this station reads, in bytes. Default 1 MiB, 512 to 16,777,215.
    pub fn max_frame(self, bytes: u32) -> Self {
        self.configure(|config| config.max_frame(bytes))
    }

    /// How often the other side of each link is asked whether it is there, and how long its answer is
    /// waited for. Default 30 s, 1 s to 1 h.
    pub fn probe_every(self, every: Duration) -> Self {
        self.configure(|config| config.probe_every(every))
    }

    /// A realm with a place of its own, whoever else subscribes.
    pub fn pin(self, realm: RealmId) -> Self {
        self.configure(|config| config.pin(realm))
    }

    /// A node that may publish what others signed.
    pub fn gateway(self, node: NodeId) -> Self {
        self.configure(|config| config.gateway(node))
    }

    /// Bytes of the operating system's socket buffer per direction. Default: its own choice.
    pub fn socket_buffers(mut self, bytes: u32) -> Self {
        self.tuning.socket_buffers = Some(bytes);
        self
    }

    /// Waits this long before each write on every connection, so that copies of one publication
    /// race on their ways. An aid for tests and demonstrations, never for use.
    pub fn delay_writes(mut self, delay: Duration) -> Self {
        self.tuning.delay_writes = (!delay.is_zero()).then_some(delay);
        self
    }

    /// Listens, and accepts connections until the station is closed. Cancel safe: nothing runs
    /// before it returns.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    #[allow(
        clippy::unused_async,
        reason = "listening is asynchronous on other transports"
    )]
    pub async fn start(self) -> Result<StationServer, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let parts = self.settings.build()?;
        let address = parts.listen.socket;
        let listener = bind(address, self.tuning).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => StartError::PortInUse { address },
            kind => StartError::Bind { address, kind },
        })?;
        let address = listener.local_addr().unwrap_or(address);
        let (station, doors) = (parts.station, parts.doors);
        let id = station.id();
        let engine = Engine::start(StationHost { station }, parts.clock, runtime, self.tuning);
        engine.lock().listening = true;
        let seat = Listening {
            engine: Arc::clone(&engine),
        };
        engine
            .runtime
            .spawn(accept(seat, listener, parts.tls, doors.clone()));
        Ok(StationServer {
            engine,
            id,
            address,
            secure: parts.listen.secure,
            doors,
        })
    }
}

fn bind(address: SocketAddr, tuning: Tuning) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A station that was restarted finds its port again while old connections linger.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = tuning.socket_buffers {
        // Accepted sockets inherit them.
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The listener's place in the engine; its drop says that the socket is closed.
struct Listening {
    engine: Arc<Engine<StationHost>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.engine.with(|state, _| state.listening = false);
        self.engine.wake_timer();
    }
}

/// The listener's task.
async fn accept(seat: Listening, listener: TcpListener, tls: Option<Tls>, doors: Doors) {
    let engine = Arc::clone(&seat.engine);
    let mut shaking = JoinSet::new();
    let accepting = async {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = shaking.join_next() => continue,
            };
            let refused = match accepted {
                Ok((stream, from)) => {
                    let now = engine.clock.now().mono;
                    match doors.enter(from.ip(), tls.is_some(), now) {
                        Ok(guest) => {
                            let engine = Arc::clone(&engine);
                            shaking.spawn(take_in(engine, stream, guest, tls.clone()));
                            false
                        }
                        // Dropped before anything is signed for it.
                        Err(_) => {
                            if tls.is_none()
                                && let Ok(stream) = stream.into_std()
                            {
                                Doors::turn_away(stream);
                            }
                            true
                        }
                    }
                }
                Err(error) => {
                    // A connection that went away by itself is nobody's trouble; anything else
                    // needs a moment to pass.
                    if error.kind() != ErrorKind::ConnectionAborted {
                        tokio::time::sleep(patience::ACCEPT_PAUSE).await;
                    }
                    true
                }
            };
            if refused {
                engine.lock().io.refused_connections += 1;
            }
        }
    };
    tokio::select! {
        () = engine.stop.notified() => {}
        () = accepting => {}
    }
    drop(listener);
    shaking.shutdown().await;
    drop(seat);
}

/// Makes an accepted connection a link, once its secure channel is there.
async fn take_in(
    engine: Arc<Engine<StationHost>>,
    stream: TcpStream,
    guest: Guest,
    tls: Option<Tls>,
) {
    let opened = match tls.as_ref().map(Tls::answer).transpose() {
        Ok(session) => wire::open(stream, session, Some(guest), &engine.clock).await,
        Err(fault) => Err((fault.text(), Some(fault))),
    };
    let fault = match opened {
        Ok(connected) => match engine.attach(connected, None) {
            Ok(()) => return,
            Err(_) => None,
        },
        Err((_, fault)) => fault,
    };
    let mut state = engine.lock();
    state.io.refused_connections += 1;
    if let Some(fault) = fault {
        state.tls_faults.count(fault);
    }
}

/// A running station. When it is dropped it says goodbye and closes by itself, as far as the
/// runtime still runs.
pub struct StationServer {
    engine: Arc<Engine<StationHost>>,
    id: NodeId,
    address: SocketAddr,
    secure: bool,
    doors: Doors,
}

impl StationServer {
    /// A station whose identity is `key`.
    pub fn builder(key: SecretKey) -> StationServerBuilder {
        StationSettings::new(key).into()
    }

    /// A station whose key is kept elsewhere.
    pub fn builder_with_signer(signer: impl Signer + 'static) -> StationServerBuilder {
        StationSettings::new(signer).into()
    }

    /// Its identity.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Its address as [`crate::NodeBuilder::station`] takes it, its identity pinned.
    pub fn address(&self) -> String {
        let scheme = if self.secure { "tls" } else { "tcp" };
        format!("{scheme}://{}@{}", self.id, self.address)
    }

    /// What it does now and has done so far.
    pub fn status(&self) -> StationStatus {
        self.engine.lock().host.station.status()
    }

    /// What it keeps, table by table.
    pub fn memory(&self) -> MemoryReport {
        self.engine.lock().host.station.memory()
    }

    /// What its sockets did so far.
    pub fn io(&self) -> IoCounters {
        self.engine.lock().io
    }

    /// Connections that came to no secure channel so far, by reason.
    pub fn tls_faults(&self) -> TlsFaults {
        self.engine.lock().tls_faults
    }

    /// Who is inside, and how many were turned away at the doors.
    pub fn doors(&self) -> DoorStatus {
        self.doors.status()
    }

    /// Connections that were turned away at the doors: something for a log, at most once per bound and
    /// 10 s, however often it is asked.
    pub fn turned_away(&self) -> Option<TurnedAway> {
        self.doors.report(self.engine.clock.now().mono)
    }

    /// Publishes a fact of the station itself, under its own identity, and answers how many
    /// subscriptions it reached here.
    ///
    /// # Errors
    /// Refused with the reason and the publication; nothing was published.
    pub fn publish(&self, request: Publish) -> Result<u64, Refused<Publish>> {
        self.engine
            .with(|state, now| state.host.station.publish(now, request))
    }

    /// Ends every subscription of a node and tells it so. Answers how many there were.
    pub fn purge(&self, node: NodeId) -> usize {
        self.engine
            .with(|state, now| state.host.station.purge(now, node))
    }

    /// Goes away gently: refuses what comes with `draining`, ends each link once its readers have all
    /// there is, within 5 s, then closes. Cancelled, it goes on draining; [`Self::close`] or the drop
    /// of the station ends it.
    pub async fn drain(&self) {
        self.engine.with(|state, now| state.host.station.drain(now));
        self.engine
            .wait(patience::DRAIN, |state| {
                state.host.station.is_drained().then_some(())
            })
            .await;
        self.close().await;
    }

    /// Stops listening, says goodbye on every link, and waits until the sockets are closed, 2 s at
    /// most. Calling it again, or cancelling it, is harmless: the station closes all the same.
    pub async fn close(&self) {
        self.engine.begin_close();
        self.engine.ended().await;
    }

    /// Drops every socket without a goodbye, as a crash would, and waits until they are closed. For
    /// tests and demonstrations. Calling it again, or cancelling it, is harmless.
    pub async fn kill(&self) {
        self.engine.begin_kill();
        self.engine.ended().await;
    }
}

impl Drop for StationServer {
    fn drop(&mut self) {
        self.engine.begin_close();
    }
}

impl fmt::Debug for StationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StationServer")
            .field("id", &self.id)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
