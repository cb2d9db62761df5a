//! A node: a client of the core with sockets.
//!
//! Decides: how a station is dialled. Leaves to others: when (the core's backoff). Believes:
//! tokio's timer, for a connection attempt. Bounded by: one attempt per configured station at a
//! time; one waker per subscription; one sender per ticket; the questions of `verify.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;

use tidings::crypto::{SecretKey, Signer};
use tidings::{
    Action, Client, ClientConfig, ClientLimits, ClientStatus, GroupId, LinkState, MemoryReport,
    NodeId, Now, Outcome, Question, Ready, Refused, StationRef, Subscribe, SubscriptionId, Ticket,
    Verification,
};
use tidings_common::{
    Answerer, Answers, NodeSettings, Run, StationAddress, dial_failure, patience,
};
use tidings_tls::{Tls, TlsFault};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::engine::{After, Engine, Host, Life, Tuning};
use crate::verify::{self, Pool};
use crate::wire::{self, Connected};
use crate::{AddressError, EpochFile, IoCounters, StartError, Subscription, WaitError};

/// What a node adds to its client.
#[derive(Debug)]
pub(crate) struct NodeHost {
    pub(crate) client: Client,
    /// Who reads each stream, while it waits.
    pub(crate) readers: BTreeMap<SubscriptionId, Waker>,
    /// Who waits for each outcome.
    pub(crate) tickets: BTreeMap<Ticket, oneshot::Sender<Outcome>>,
    /// A publication was refused for want of room, and nothing has happened since that may have
    /// made some.
    pub(crate) blocked: bool,
    /// Groups under which a publication was refused because their keys were not there yet.
    pub(crate) pending: BTreeSet<GroupId>,
    /// Who answers what the core does not know.
    answers: Answerer,
    /// Who checks signatures, where the core does not.
    pool: Option<Pool>,
    targets: Vec<StationAddress>,
    /// Where one of them is reached with it.
    tls: Option<Tls>,
    dials: BTreeMap<StationRef, AbortHandle>,
    closed: bool,
    /// Threads that are ending, until somebody waits for them.
    threads: Vec<JoinHandle<()>>,
}

impl NodeHost {
    fn connected(&self) -> usize {
        let links = self.client.status().links;
        links
            .iter()
            .filter(|link| link.state == LinkState::Up)
            .count()
    }

    /// Who checks signatures, where the core does not.
    pub(crate) fn pool(&self) -> Option<&Pool> {
        self.pool.as_ref()
    }

    /// A signature of so many bytes was checked. True when links may be read again.
    pub(crate) fn verified(&mut self, bytes: usize) -> bool {
        self.pool.as_mut().is_some_and(|pool| pool.answered(bytes))
    }
}

impl Host for NodeHost {
    type Machine = Client;

    fn machine(&mut self) -> &mut Client {
        &mut self.client
    }

    fn act(&mut self, engine: &Arc<Engine<Self>>, action: Action, after: &mut After) {
        match action {
            Action::Ready(Ready::Subscription(subscription)) => {
                after.wakers.extend(self.readers.remove(&subscription));
            }
            Action::Settle { ticket, outcome } => {
                self.blocked = false;
                let waiting = self.tickets.remove(&ticket);
                after
                    .settled
                    .extend(waiting.map(|waiting| (waiting, outcome)));
            }
            Action::Dial { station } if !self.closed => {
                let attempt = engine.runtime.spawn(dial(Arc::clone(engine), station));
                self.dials.insert(station, attempt.abort_handle());
            }
            Action::Ask {
                ask,
                question: Question::Verify(job),
                ..
            } => {
                if let Some(pool) = &mut self.pool {
                    pool.push(ask, job);
                }
            }
            Action::Ask { ask, question, .. } => {
                let engine = Arc::downgrade(engine);
                self.answers.ask(question, move |answer| {
                    if let Some(engine) = engine.upgrade() {
                        engine.with(|state, now| state.host.client.answered(now, ask, answer));
                    }
                });
            }
            _ => {}
        }
    }

    fn acted(&mut self, engine: &Arc<Engine<Self>>) {
        if let Some(pool) = &mut self.pool {
            pool.hand_over(engine);
        }
    }

    fn help(engine: &Arc<Engine<Self>>) -> bool {
        verify::help(engine)
    }

    fn moved(&mut self) {
        self.blocked = false;
    }

    fn is_busy(&self) -> bool {
        self.pool.as_ref().is_some_and(Pool::is_busy)
    }

    fn owes(&self) -> bool {
        self.pool.as_ref().is_some_and(Pool::is_open)
    }

    fn close(&mut self, now: Now, after: &mut After) {
        self.closed = true;
        self.client.close(now);
        std::mem::take(&mut self.dials)
            .into_values()
            .for_each(|attempt| attempt.abort());
        if let Some(pool) = &mut self.pool {
            self.threads = pool.close();
        }
        after
            .wakers
            .extend(std::mem::take(&mut self.readers).into_values());
    }
}

/// Connects to one station and reports how it went.
async fn dial(engine: Arc<Engine<NodeHost>>, station: StationRef) {
    let (target, tls) = {
        let host = &engine.lock().host;
        (
            host.targets.get(usize::from(station.0)).cloned(),
            host.tls.clone(),
        )
    };
    let mut failure = "";
    if let Some(target) = target {
        let sockets = sockets(&target).await.unwrap_or_else(|reason| {
            failure = reason;
            Vec::new()
        });
        for socket in sockets {
            match reach(&engine, socket, &target, tls.as_ref()).await {
                Ok(connected) => {
                    engine.lock().host.dials.remove(&station);
                    if engine.attach(connected, Some(station)).is_ok() {
                        return;
                    }
                    break;
                }
                Err(reason) => failure = reason,
            }
        }
    }
    engine.with(|state, now| {
        state.host.dials.remove(&station);
        let client = &mut state.host.client;
        client.handle_dial_failed(now, station, failure).ok();
    });
}

/// Where a station is by now, or in a word why nobody knows.
async fn sockets(target: &StationAddress) -> Result<Vec<SocketAddr>, &'static str> {
    if !target.is_named() {
        return Ok(target.sockets.clone());
    }
    let (tell, told) = oneshot::channel();
    // Whoever asked may be gone by then.
    target.look_up(|found| tell.send(found).unwrap_or_default());
    told.await.unwrap_or_else(|_| Err(TlsFault::Io.text()))
}

/// One attempt at one address, or in a word why it failed.
async fn reach(
    engine: &Engine<NodeHost>,
    socket: SocketAddr,
    target: &StationAddress,
    tls: Option<&Tls>,
) -> Result<Connected, &'static str> {
    let connecting = tokio::time::timeout(patience::CONNECT, connect(socket, engine.tuning));
    let stream = match connecting.await {
        Ok(connected) => connected.map_err(|error| dial_failure(&error))?,
        Err(_) => return Err("connect_timeout"),
    };
    let session = target.session(tls).map_err(TlsFault::text)?;
    let opened = wire::open(stream, session, None, &engine.clock);
    opened.await.map_err(|(failure, _)| failure)
}

async fn connect(target: SocketAddr, tuning: Tuning) -> std::io::Result<TcpStream> {
    let socket = if target.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    if let Some(bytes) = tuning.socket_buffers {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.connect(target).await
}

/// What a node is made with. Made by [`Node::builder`].
#[derive(Debug)]
#[must_use = "nothing runs before `start`"]
pub struct NodeBuilder {
    settings: NodeSettings,
    limits: ClientLimits,
    verify_threads: Option<usize>,
    tuning: Tuning,
}

impl NodeBuilder {
    fn new(signer: impl Signer + 'static) -> Self {
        Self {
            settings: NodeSettings::new(signer),
            limits: ClientLimits::default(),
            verify_threads: None,
            tuning: Tuning::default(),
        }
    }

    /// A station to connect to: `tls://NODE_ID@HOST:PORT`, which is that station and no other; on
    /// this host also `tcp://HOST:PORT` or `tcp://NODE_ID@HOST:PORT`, which is not encrypted. May be
    /// called again for more stations, up to `ClientLimits::links`. A host's name is looked up at
    /// each dial, and its addresses are tried in turn; for `tcp://` it is also looked up now, which
    /// blocks.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong and what to write instead. Plain TCP is for loopback
    /// alone. A station is named once: two links to it would pass for two stations.
    pub fn station(mut self, address: &str) -> Result<Self, AddressError> {
        self.settings = self.settings.station(address)?;
        Ok(self)
    }

    /// Changes the core's settings, all but its stations, its bounds and its epochs.
    pub fn configure(mut self, change: impl FnOnce(ClientConfig) -> ClientConfig) -> Self {
        self.settings = self.settings.configure(change);
        self
    }

    /// To how many stations each publication is handed. Default 2, 1 to 16.
    pub fn replication_factor(self, links: usize) -> Self {
        self.configure(|config| config.replication_factor(links))
    }

    /// The bounds. Default: `ClientLimits::default()`.
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a missing number is waited for. Default 250 ms, 1 ms to 1 min.
    pub fn order_timeout(self, timeout: Duration) -> Self {
        self.configure(|config| config.order_timeout(timeout))
    }

    /// The file beside the key that remembers under which epochs it has published, made with
    /// [`EpochFile::create`] when the key is. Nothing is published under an epoch before it is
    /// written there, by the call that publishes first on a topic, so that the next run goes on
    /// above it however this one ends and however the clock is set. Default: none.
    pub fn epoch_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings = self.settings.epoch_file(path);
        self
    }

    /// The greatest epoch this key has published under, as [`Node::last_epoch`] gave it in an
    /// earlier run, where the application keeps it in its own way. Default 0.
    pub fn last_epoch(self, epoch: u64) -> Self {
        self.configure(|config| config.last_epoch(epoch))
    }

    /// Who answers what the node asks: the keys of its groups, and whether publishers that have to
    /// be looked up may speak. It is asked on a thread of its own, so that it may take its time.
    /// Default: [`Nobody`](crate::Nobody), so that nothing sealed is opened.
    pub fn answers(mut self, answers: impl Answers + 'static) -> Self {
        self.settings = self.settings.answers(answers);
        self
    }

    /// How often the other side of each link is asked whether it is there, and how long its answer is
    /// waited for. Default 30 s, 1 s to 1 h.
    pub fn probe_every(self, every: Duration) -> Self {
        self.configure(|config| config.probe_every(every))
    }

    /// The longest frame this node reads, in bytes. Default 1 MiB, 512 to 16,777,215.
    pub fn max_frame(self, bytes: u32) -> Self {
        self.configure(|config| config.max_frame(bytes))
    }

    /// Threads that check arriving signatures, started when they are first needed, so that the
    /// rest of the work goes on beside them; while they have so much before them that no link is
    /// read, one link's task helps. With 0 each is checked in the call that brought it.
    /// Default: one less than there are cores, at most 4; 0 where
    /// `ClientLimits::pending_verifications` is below 512 or `held_bytes` below 1 MiB, which leave
    /// no room for it.
    pub fn verify_threads(mut self, threads: usize) -> Self {
        self.verify_threads = Some(threads);
        self
    }

    /// Bytes of the operating system's socket buffer per direction. Default: its own choice.
    pub fn socket_buffers(mut self, bytes: u32) -> Self {
        self.tuning.socket_buffers = Some(bytes);
        self
    }

    /// Starts the node on the runtime this is called from. It dials its stations at once and goes
    /// on doing so until it is closed.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub fn start(self) -> Result<Node, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let threads = self.verify_threads.unwrap_or_else(verify::default_threads);
        let asked = threads > 0 && verify::suits(&self.limits);
        let pool = asked.then(|| Pool::new(threads, &self.limits));
        let verification = match asked {
            true => Verification::Asked,
            false => Verification::Here,
        };
        let settings = self
            .settings
            .configure(|config| config.verification(verification).limits(self.limits));
        let answers = settings.answerer();
        let parts = settings.build()?;
        let id = parts.client.id();
        let host = NodeHost {
            client: parts.client,
            readers: BTreeMap::new(),
            tickets: BTreeMap::new(),
            blocked: false,
            pending: BTreeSet::new(),
            answers,
            pool,
            targets: parts.targets,
            tls: parts.tls,
            dials: BTreeMap::new(),
            closed: false,
            threads: Vec::new(),
        };
        let engine = Engine::start(host, parts.clock, runtime, self.tuning);
        // The first `Dial`s wait to be handed out.
        engine.with(|_, _| ());
        Ok(Node {
            shared: Arc::new(Shared {
                engine,
                id,
                epochs: parts.epochs,
                turn: tokio::sync::Mutex::new(()),
            }),
        })
    }
}

/// What all handles of a node share. Its drop is the node's end.
struct Shared {
    engine: Arc<Engine<NodeHost>>,
    id: NodeId,
    epochs: Option<EpochFile>,
    /// Publications that wait for room, first come first served.
    turn: tokio::sync::Mutex<()>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.engine.begin_close();
    }
}

/// A running node. Cloning gives another handle of the same node.
///
/// Subscriptions and pending publications are handles as well. When the last one is dropped the
/// node says goodbye and closes by itself, as far as the runtime still runs; [`Node::close`] waits
/// for it.
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
}

impl Node {
    /// A node that signs with `key`.
    pub fn builder(key: SecretKey) -> NodeBuilder {
        NodeBuilder::new(key)
    }

    /// A node whose key is kept elsewhere.
    pub fn builder_with_signer(signer: impl Signer + 'static) -> NodeBuilder {
        NodeBuilder::new(signer)
    }

    /// Its identity.
    pub fn id(&self) -> NodeId {
        self.shared.id
    }

    /// The greatest epoch it has published under: keep it beside the key for the next run.
    pub fn last_epoch(&self) -> u64 {
        self.engine().lock().host.client.last_epoch()
    }

    /// What it does now and has done so far.
    pub fn status(&self) -> ClientStatus {
        self.engine().lock().host.client.status()
    }

    /// What it keeps, table by table.
    pub fn memory(&self) -> MemoryReport {
        self.engine().lock().host.client.memory()
    }

    /// What its sockets did so far.
    pub fn io(&self) -> IoCounters {
        self.engine().lock().io
    }

    /// Subscribes. The stream is there at once; stations carry it as they answer
    /// ([`Subscription::carried`]).
    ///
    /// # Errors
    /// Refused with the reason and the request; nothing was changed.
    pub fn subscribe(&self, request: Subscribe) -> Result<Subscription, Refused<Subscribe>> {
        let id = self
            .engine()
            .with(|state, now| state.host.client.subscribe(now, request))?;
        Ok(Subscription::new(self.clone(), id))
    }

    /// Waits until at least `stations` links are up, and answers how many are. Cancel safe.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] after `within`; [`WaitError::Ended`] when the node was closed.
    pub async fn connected(&self, stations: usize, within: Duration) -> Result<usize, WaitError> {
        let engine = self.engine();
        let found = engine.wait(within, |state| {
            if state.life != Life::Running {
                return Some(Err(WaitError::Ended));
            }
            let up = state.host.connected();
            (up >= stations).then_some(Ok(up))
        });
        match found.await {
            Some(result) => result,
            None => {
                let reached = engine.lock().host.connected();
                Err(WaitError::TimedOut {
                    reached,
                    wanted: stations,
                })
            }
        }
    }

    /// Says goodbye on every link, ends every stream, and waits until the sockets are closed, 2 s
    /// at most. Calling it again, or cancelling it, is harmless: the node closes all the same.
    pub async fn close(&self) {
        self.engine().begin_close();
        self.engine().ended().await;
        let threads = {
            let host = &mut self.engine().lock().host;
            // What is not settled now never will be: its waiters read `Unknown`.
            host.tickets.clear();
            std::mem::take(&mut host.threads)
        };
        // Each is at its last share.
        for thread in threads {
            thread.join().ok();
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine<NodeHost>> {
        &self.shared.engine
    }

    pub(crate) fn epochs(&self) -> Option<&EpochFile> {
        self.shared.epochs.as_ref()
    }

    pub(crate) fn turn(&self) -> &tokio::sync::Mutex<()> {
        &self.shared.turn
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.shared.id)
            .finish_non_exhaustive()
    }
}
