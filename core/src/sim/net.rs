//! A network in one thread: clients and stations joined by byte pipes, on a clock that is moved by hand.
//!
//! Decides: when bytes arrive, when a link breaks, when a host sleeps. Leaves to others: what the machines make of it; it talks to them
//! through their public contract and [`LinkIo`](crate::pump::LinkIo) only. Believes: the true time, of which each host's clocks are its own. Bounded by: what
//! is put into it. The same calls give the same trace, whose hash is [`Net::trace`].

mod host;
mod io;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::cable::{CLIENT, Cable, STATION, Way};
use super::clock::Clock;
pub use super::clock::START;
use super::hash::Hash;
use super::lookups::Lookups;
use super::plan::Topics;
use super::sabotage::Saboteur;
use super::said::Moment;
use super::secrets::Secrets;
use super::tap::Note;
use crate::code::CloseReason;
use crate::crypto::Profile;
use crate::pump::Machine;
use crate::{
    Action, Client, ClientConfig, Duration, Entropy, Instant, Item, LinkError, Now, Outcome, Ready,
    Seed, Station, StationConfig, SubscriptionId, Ticket, Turn, soonest,
};
pub(super) use host::{Host, Kind};

/// Calls of `handle_timeout` at one moment before that is called a hot loop.
const HOT: usize = 10_000;

/// What happens at a moment, in the order in which it does when more than one thing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Connect,
    Arrive,
    Down,
    Answer,
}

/// Something that happens: when, what, to which cable (or host), at which side.
type Due = (Instant, What, usize, usize);

/// What whoever watches is told, in its order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seen {
    /// A machine took a frame.
    Took {
        cable: usize,
        side: usize,
        written: Instant,
        note: Note,
    },
    /// A machine wrote a frame, which may have waited for its way since then.
    Wrote {
        cable: usize,
        side: usize,
        since: Instant,
        note: Note,
    },
    /// A machine reads again what it had not read since then.
    ReadsAgain {
        cable: usize,
        side: usize,
        since: Moment,
    },
    /// A machine may not have been there for so long, and surely was not for so long, as its clocks show.
    Away {
        host: usize,
        most: Duration,
        sure: Duration,
    },
    /// A connection is up at both ends.
    Up { cable: usize },
    /// A connection ended at one end: the machine was told, or ended it.
    Ended {
        cable: usize,
        side: usize,
        reason: CloseReason,
    },
    /// A publication was settled.
    Settled {
        host: usize,
        ticket: Ticket,
        outcome: Outcome,
    },
    /// A stream has something to read.
    Readable {
        host: usize,
        subscription: SubscriptionId,
    },
    /// A machine ended a link for a fault of its peer.
    Fault {
        cable: usize,
        side: usize,
        error: LinkError,
    },
}

/// Clients and stations on one clock.
#[derive(Debug)]
pub struct Net {
    now: Instant,
    seed: [u8; 8],
    pub(super) hosts: Vec<Host>,
    clients: Vec<usize>,
    stations: Vec<usize>,
    pub(super) cables: Vec<Cable>,
    ways: BTreeMap<(usize, usize), Way>,
    usual: Way,
    due: BinaryHeap<Reverse<Due>>,
    cut_at: usize,
    trace: Hash,
    failed_input: u64,
    /// A machine whose deadlines make no progress.
    pub(super) stuck: Option<(usize, &'static str)>,
    pub(super) saboteur: Saboteur,
    pub(super) secrets: Secrets,
    pub(super) lookups: Lookups,
    /// Whoever watches: what its topics are called, in which profile publications are read.
    watch: Option<(Topics, Profile)>,
    pub(super) seen: Vec<Seen>,
    spare: Vec<Vec<u8>>,
}

/// Entropy for tests: repeatable, and of a constructor that real machines do not have.
pub fn entropy(seed: u8) -> Entropy {
    Entropy::from_hardware([seed; 32])
}

impl Net {
    /// An empty network.
    pub fn new(seed: u8) -> Self {
        Self::seeded([seed; 8])
    }

    pub(super) fn seeded(seed: [u8; 8]) -> Self {
        Self {
            now: Instant::ORIGIN,
            seed,
            hosts: Vec::new(),
            clients: Vec::new(),
            stations: Vec::new(),
            cables: Vec::new(),
            ways: BTreeMap::new(),
            usual: Way::default(),
            due: BinaryHeap::new(),
            cut_at: usize::MAX,
            trace: Hash::default(),
            failed_input: 0,
            stuck: None,
            saboteur: Saboteur::default(),
            secrets: Secrets::default(),
            lookups: Lookups::default(),
            watch: None,
            seen: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Keeps what passes for whoever watches.
    pub(super) fn watch(&mut self, topics: Topics, profile: Profile) {
        self.watch = Some((topics, profile));
    }

    /// Cuts what arrives into reads of at most so many bytes.
    pub fn cut_reads(&mut self, bytes: usize) {
        self.cut_at = bytes.max(1);
    }

    /// Lets a link take no more while so many bytes are under way in one direction, as a socket does.
    pub fn socket_bytes(&mut self, bytes: usize) {
        self.usual.budget = bytes;
        for way in self.ways.values_mut() {
            way.budget = bytes;
        }
    }

    /// Both clocks, of a host that never slept.
    pub fn now(&self) -> Now {
        match self.hosts.first() {
            Some(host) => host.clock.now(self.now),
            None => Clock::default().now(self.now),
        }
    }

    pub(super) fn truth(&self) -> Instant {
        self.now
    }

    pub(super) fn now_of(&self, host: usize) -> Now {
        self.hosts[host].clock.now(self.now)
    }

    /// Steps the wall of every host by so many milliseconds.
    pub fn step_wall(&mut self, by: i64) {
        for host in &mut self.hosts {
            host.clock.step_wall(self.now, by);
        }
    }

    fn seeds(&self, kind: u8, index: usize, run: u8) -> (Seed, Entropy) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.seed);
        (bytes[8], bytes[9]) = (kind, run);
        bytes[10..18].copy_from_slice(&(index as u64).to_be_bytes());
        (Seed::new(bytes), Entropy::from_hardware(bytes))
    }

    /// Adds a station; answers its index.
    ///
    /// # Panics
    /// When the configuration is refused.
    pub fn station(&mut self, config: StationConfig) -> usize {
        let index = self.stations.len();
        let host = self.hosts.len();
        self.hosts.push(Host::new(Vec::new()));
        self.stations.push(host);
        self.start_station(index, config, 0);
        index
    }

    /// Starts a station that is not running.
    pub(super) fn start_station(&mut self, index: usize, config: StationConfig, run: u8) {
        let (seed, entropy) = self.seeds(1, index, run);
        let host = self.stations[index];
        let config = config
            .allow_local(true)
            .build()
            .expect("a valid configuration");
        let now = self.now_of(host);
        let station = Station::new(config, seed, entropy, now);
        self.hosts[host].kind = Some(Kind::Station(Box::new(station)));
        self.hosts[host].dirty = true;
    }

    /// Adds a client of these stations; answers its index.
    ///
    /// # Panics
    /// When the configuration is refused, or a station is not running.
    pub fn client(&mut self, config: ClientConfig, stations: &[usize]) -> usize {
        let config = stations.iter().fold(config, |config, station| {
            config.station(Some(self.at_station(*station).id()))
        });
        let index = self.client_of(stations.to_vec());
        self.start_client(index, config, 0);
        index
    }

    /// Adds a host for a client of these stations.
    pub(super) fn client_of(&mut self, stations: Vec<usize>) -> usize {
        self.clients.push(self.hosts.len());
        self.hosts.push(Host::new(stations));
        self.clients.len() - 1
    }

    /// Starts a client that is not running; its stations stand in its configuration.
    pub(super) fn start_client(&mut self, index: usize, config: ClientConfig, run: u8) {
        let (seed, entropy) = self.seeds(2, index, run);
        let host = self.clients[index];
        let config = config
            .allow_local(true)
            .build()
            .expect("a valid configuration");
        let now = self.now_of(host);
        let client = Client::new(config, seed, entropy, now);
        self.hosts[host].kind = Some(Kind::Client(Box::new(client)));
        self.hosts[host].dirty = true;
    }

    pub(super) fn client_host(&self, client: usize) -> usize {
        self.clients[client]
    }

    pub(super) fn station_host(&self, station: usize) -> usize {
        self.stations[station]
    }

    /// Bytes between these two take so long from now on.
    pub fn delay(&mut self, client: usize, station: usize, delay: Duration) {
        self.way_mut(client, station).delay = delay;
    }

    fn way_mut(&mut self, client: usize, station: usize) -> &mut Way {
        let key = (self.clients[client], self.stations[station]);
        let usual = self.usual;
        self.ways.entry(key).or_insert(usual)
    }

    pub(super) fn way(&self, client: usize, station: usize) -> Way {
        let key = (self.clients[client], self.stations[station]);
        self.ways.get(&key).copied().unwrap_or(self.usual)
    }

    /// The way between these two is like that from now on. What waited for it to be open leaves.
    pub(super) fn set_way(&mut self, client: usize, station: usize, way: Way) {
        *self.way_mut(client, station) = way;
        if way.parted {
            return;
        }
        for cable in self.between(client, station) {
            for side in [CLIENT, STATION] {
                let Cable { pipes, rng, .. } = &mut self.cables[cable];
                for at in pipes[side].change(self.now, &way, rng) {
                    self.due.push(Reverse((at, What::Arrive, cable, side)));
                }
                self.tell_end_sooner(cable, side);
            }
        }
    }

    fn way_of(&self, cable: &Cable) -> Way {
        let key = (cable.hosts[CLIENT], cable.hosts[STATION]);
        self.ways.get(&key).copied().unwrap_or(self.usual)
    }

    /// The connections between these two.
    pub(super) fn between(&self, client: usize, station: usize) -> Vec<usize> {
        let (client, station) = (self.clients[client], self.stations[station]);
        let all = self.hosts[client].cables.iter().copied();
        all.filter(|cable| self.cables[*cable].hosts[STATION] == station)
            .collect()
    }

    /// The client, to be called directly.
    ///
    /// # Panics
    /// When it is not running.
    pub fn at(&mut self, client: usize) -> &mut Client {
        let host = &mut self.hosts[self.clients[client]];
        host.dirty = true;
        host.inputs += 1;
        match &mut host.kind {
            Some(Kind::Client(client)) => client,
            _ => panic!("a client that runs"),
        }
    }

    /// The station, to be called directly.
    ///
    /// # Panics
    /// When it was killed.
    pub fn at_station(&mut self, station: usize) -> &mut Station {
        let host = &mut self.hosts[self.stations[station]];
        host.dirty = true;
        host.inputs += 1;
        match &mut host.kind {
            Some(Kind::Station(station)) => station,
            _ => panic!("a station that runs"),
        }
    }

    /// A station dies without a word.
    pub fn kill(&mut self, station: usize) {
        self.end_host(self.stations[station]);
    }

    pub(super) fn kill_client(&mut self, client: usize) {
        self.end_host(self.clients[client]);
    }

    fn end_host(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.kind = None;
        host.asks.clear();
        host.clock.wake(self.now);
        self.secrets.forget(index);
        self.lookups.forget(index);
        let host = &mut self.hosts[index];
        for cable in core::mem::take(&mut host.cables) {
            let side = usize::from(self.cables[cable].hosts[STATION] == index);
            self.end(cable, side, CloseReason::Io);
            // What it had sent still arrives, and the end of it after that.
            self.tell_end(cable, 1 - side);
        }
    }

    /// Breaks the link between these two: what is under way is lost.
    pub fn cut(&mut self, client: usize, station: usize) {
        self.cut_after(client, station, [Duration::ZERO; 2]);
    }

    /// The same, which each end notices so much later.
    pub(super) fn cut_after(&mut self, client: usize, station: usize, after: [Duration; 2]) {
        for cable in self.between(client, station) {
            for side in [CLIENT, STATION] {
                self.cables[cable].lost = true;
                self.cables[cable].pipes[side].lose();
                let at = self.now.saturating_add(after[side]);
                self.due.push(Reverse((at, What::Down, cable, side)));
            }
        }
    }

    /// What became of a client's publications since the last call.
    pub fn settled(&mut self, client: usize) -> Vec<(Ticket, Outcome)> {
        core::mem::take(&mut self.hosts[self.clients[client]].settled)
    }

    /// Everything that can be read of a stream now.
    pub fn items(&mut self, client: usize, subscription: SubscriptionId) -> Vec<Item> {
        let client = self.at(client);
        core::iter::from_fn(|| client.poll_item(subscription)).collect()
    }

    /// Links that a machine ended for a fault of its peer.
    pub fn faults(&self) -> u64 {
        self.failed_input
    }

    /// The hash of everything that was written and decided so far.
    pub fn trace(&self) -> u128 {
        self.trace.value()
    }

    /// Lets so much time pass.
    ///
    /// # Panics
    /// When a machine's deadlines make no progress.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now.saturating_add(time);
        while self.step(end) {}
        if let Some((host, how)) = self.stuck {
            panic!("host {host}: {how}");
        }
    }

    /// Goes to the next moment at which something happens and lets it happen; at `until` when there is none before. False when there is
    /// nothing more by then.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        self.flush_all();
        if !self.seen.is_empty() {
            // Whoever watches looks at it before time goes on.
            return true;
        }
        let timers = self.hosts.iter().filter(|host| !host.clock.is_asleep());
        let mut timers = timers.map(Host::due).fold(None, soonest);
        if self.saboteur.is_busy() {
            timers = soonest(
                timers,
                Some(self.now.saturating_add(Duration::from_millis(1))),
            );
        }
        let event = self.due.peek().map(|Reverse((at, ..))| *at);
        let next = soonest(timers, event).filter(|at| *at <= until);
        self.now = next.unwrap_or(until).max(self.now);
        if next.is_none() {
            return false;
        }
        while let Some(Reverse(due)) = self.due.peek().copied()
            && due.0 <= self.now
        {
            self.due.pop();
            self.happen(due);
        }
        for host in 0..self.hosts.len() {
            self.work_off(host);
        }
        self.stuck.is_none()
    }

    fn happen(&mut self, (_, what, index, side): Due) {
        let host = match what {
            What::Answer => index,
            _ => self.cables[index].hosts[side],
        };
        match what {
            What::Connect => self.connect(index),
            What::Answer => self.answer(index),
            _ if self.cables[index].gone[side] => {}
            _ if self.hosts[host].clock.is_asleep() => {
                self.cables[index].told_later[side] |= what == What::Down;
            }
            What::Arrive => {
                let cable = &mut self.cables[index];
                if cable.pipes[side].arrive(self.now) || !cable.pipes[side].waiting.is_empty() {
                    self.read(index, side);
                }
            }
            What::Down => self.down(index, side, CloseReason::Io),
        }
        self.flush(host);
    }

    /// Calls `handle_timeout` until nothing is due, and sees whether that makes progress.
    fn work_off(&mut self, index: usize) {
        let (truth, busy) = (self.now, self.saboteur.is_busy());
        let host = &mut self.hosts[index];
        let idle = host.due().is_none_or(|at| at > truth);
        if host.clock.is_asleep() || (idle && !busy) {
            return;
        }
        let lies = self.saboteur.deadline_stands();
        let now = host.clock.now(truth);
        host.wakeups += 1;
        host.touched = truth;
        for turn in 0.. {
            let still = lies || host.due().is_some_and(|at| at <= truth);
            if turn > 0 && !still {
                break;
            }
            let Some(machine) = host.machine() else { break };
            let done = machine.handle_timeout(now);
            let still = lies || host.due().is_some_and(|at| at <= truth);
            if done == Turn::Done && still {
                self.stuck = Some((index, "after Done something is due"));
                break;
            }
            if turn > HOT {
                self.stuck = Some((index, "a deadline that does not go away"));
                break;
            }
        }
        self.hosts[index].dirty = true;
        self.flush(index);
    }

    fn flush_all(&mut self) {
        for host in 0..self.hosts.len() {
            if self.hosts[host].dirty {
                self.flush(host);
            }
        }
    }

    /// Does everything a machine has decided, as a driver does after each input.
    fn flush(&mut self, index: usize) {
        if self.hosts[index].clock.is_asleep() {
            return;
        }
        loop {
            self.hosts[index].dirty = false;
            while let Some(action) = self.hosts[index].machine().and_then(Machine::poll_action) {
                self.act(index, action);
            }
            self.read_paused(index);
            if !self.hosts[index].dirty {
                return;
            }
        }
    }

    fn act(&mut self, index: usize, action: Action) {
        match action {
            Action::Ask { ask, question, .. } => self.asked(index, ask, question),
            Action::Close { link, reason } => {
                if let Some((cable, side)) = self.cable_of(index, link) {
                    self.close(cable, side, reason);
                }
            }
            Action::Dial { station } => self.dial(index, station),
            Action::Ready(Ready::Link(link)) => {
                if let Some((cable, side)) = self.cable_of(index, link) {
                    self.write(cable, side);
                }
            }
            Action::Ready(Ready::Subscription(subscription)) => {
                if self.watch.is_some() {
                    let host = index;
                    self.seen.push(Seen::Readable { host, subscription });
                }
            }
            Action::Settle { ticket, outcome } => {
                self.trace.word(u64::from(outcome.code().number()));
                if self.watch.is_none() {
                    self.hosts[index].settled.push((ticket, outcome));
                    return;
                }
                for _ in 0..self.saboteur.settles() {
                    let host = index;
                    self.seen.push(Seen::Settled {
                        host,
                        ticket,
                        outcome,
                    });
                }
            }
            Action::Keys { .. } | Action::Progress { .. } | Action::Report(_) => {}
        }
    }
}
