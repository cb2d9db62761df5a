//! A network in one thread: clients and stations joined by byte pipes, on a clock that is moved by hand.
//!
//! Decides: when bytes arrive (each link has its own delay) and when a link breaks. Leaves to others: what the machines make of it; it
//! talks to them through their public contract and [`LinkIo`] only. Believes: its own two clocks. Bounded by: what is
//! put into it. The same calls give the same trace, whose hash is [`Net::trace`].

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use crate::pump::{LinkIo, Machine};
use crate::{
    Action, Answer, Binding, Client, ClientConfig, Duration, Entropy, Instant, Intake, Item,
    LinkEvent, LinkId, Now, Outcome, Question, Ready, Seed, Station, StationConfig, StationRef,
    SubscriptionId, Ticket, Turn, WallMs, code::CloseReason, soonest,
};

/// Where wall time begins in a [`Net`]: some day in 2026.
pub const START: WallMs = WallMs::new(1_790_000_000_000);

/// Calls of `handle_timeout` at one moment before that is called a hot loop.
const HOT: usize = 10_000;

/// Bytes under way in one direction.
#[derive(Debug, Default)]
struct Pipe {
    chunks: VecDeque<(Instant, Vec<u8>)>,
    /// Arrived and not read: its reader is paused.
    waiting: Vec<u8>,
    paused: bool,
}

impl Pipe {
    fn bytes(&self) -> usize {
        self.waiting.len()
            + self
                .chunks
                .iter()
                .map(|(_, chunk)| chunk.len())
                .sum::<usize>()
    }
}

/// One connection between a client and a station.
#[derive(Debug)]
struct Cable {
    client: usize,
    station: usize,
    ends: [LinkIo; 2],
    pipes: [Pipe; 2],
    delay: Duration,
    cut: bool,
}

/// The index of the client's end, and of what arrives there.
const CLIENT: usize = 0;
const STATION: usize = 1;

/// A client with what it has said.
#[derive(Debug)]
struct Node {
    client: Client,
    /// The station behind each of its `StationRef`s.
    stations: Vec<usize>,
    settled: Vec<(Ticket, Outcome)>,
    ready: Vec<SubscriptionId>,
}

/// Clients and stations on one clock.
#[derive(Debug)]
pub struct Net {
    now: Now,
    seed: u8,
    stations: Vec<Option<Station>>,
    nodes: Vec<Node>,
    cables: Vec<Cable>,
    delays: Vec<(usize, usize, Duration)>,
    cut_at: usize,
    socket_bytes: usize,
    trace: Sha256,
    failed_input: u64,
}

/// Entropy for tests: repeatable, and of a constructor that real machines do not have.
pub fn entropy(seed: u8) -> Entropy {
    Entropy::from_hardware([seed; 32])
}

impl Net {
    /// An empty network.
    pub fn new(seed: u8) -> Self {
        Self {
            now: Now::new(Instant::ORIGIN, START),
            seed,
            stations: Vec::new(),
            nodes: Vec::new(),
            cables: Vec::new(),
            delays: Vec::new(),
            cut_at: usize::MAX,
            socket_bytes: usize::MAX,
            trace: Sha256::new(),
            failed_input: 0,
        }
    }

    /// Cuts what arrives into reads of at most so many bytes.
    pub fn cut_reads(&mut self, bytes: usize) {
        self.cut_at = bytes.max(1);
    }

    /// Lets a link take no more while so many bytes are under way in one direction, as a socket does.
    pub fn socket_bytes(&mut self, bytes: usize) {
        self.socket_bytes = bytes;
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Steps the wall by so many milliseconds.
    pub fn step_wall(&mut self, by: i64) {
        let wall = self.now.wall.as_millis().saturating_add_signed(by);
        self.now.wall = WallMs::new(wall);
    }

    fn seeds(&self, kind: u8, index: usize) -> (Seed, Entropy) {
        let mut bytes = [self.seed; 32];
        bytes[0] = kind;
        bytes[1..9].copy_from_slice(&(index as u64).to_be_bytes());
        (Seed::new(bytes), Entropy::from_hardware(bytes))
    }

    /// Adds a station; answers its index.
    ///
    /// # Panics
    /// When the configuration is refused.
    pub fn station(&mut self, config: StationConfig) -> usize {
        let (seed, entropy) = self.seeds(1, self.stations.len());
        let config = config
            .allow_local(true)
            .build()
            .expect("a valid configuration");
        self.stations
            .push(Some(Station::new(config, seed, entropy, self.now)));
        self.stations.len() - 1
    }

    /// Adds a client of these stations; answers its index.
    ///
    /// # Panics
    /// When the configuration is refused.
    pub fn client(&mut self, config: ClientConfig, stations: &[usize]) -> usize {
        let (seed, entropy) = self.seeds(2, self.nodes.len());
        let config = stations
            .iter()
            .fold(config.allow_local(true), |config, station| {
                config.station(self.stations[*station].as_ref().map(Station::id))
            });
        let config = config.build().expect("a valid configuration");
        self.nodes.push(Node {
            client: Client::new(config, seed, entropy, self.now),
            stations: stations.to_vec(),
            settled: Vec::new(),
            ready: Vec::new(),
        });
        self.nodes.len() - 1
    }

    /// Bytes between these two take so long from now on.
    pub fn delay(&mut self, client: usize, station: usize, delay: Duration) {
        self.delays.push((client, station, delay));
        for cable in &mut self.cables {
            if (cable.client, cable.station) == (client, station) {
                cable.delay = delay;
            }
        }
    }

    /// The client, to be called directly.
    pub fn at(&mut self, client: usize) -> &mut Client {
        &mut self.nodes[client].client
    }

    /// The station, to be called directly.
    ///
    /// # Panics
    /// When it was killed.
    pub fn at_station(&mut self, station: usize) -> &mut Station {
        self.stations[station]
            .as_mut()
            .expect("a station that lives")
    }

    /// A station dies without a word.
    pub fn kill(&mut self, station: usize) {
        self.stations[station] = None;
        for cable in &mut self.cables {
            cable.cut |= cable.station == station;
        }
    }

    /// Breaks the link between these two.
    pub fn cut(&mut self, client: usize, station: usize) {
        for cable in &mut self.cables {
            cable.cut |= (cable.client, cable.station) == (client, station);
        }
    }

    /// What became of a client's publications since the last call.
    pub fn settled(&mut self, client: usize) -> Vec<(Ticket, Outcome)> {
        core::mem::take(&mut self.nodes[client].settled)
    }

    /// Everything that can be read of a stream now.
    pub fn items(&mut self, client: usize, subscription: SubscriptionId) -> Vec<Item> {
        core::iter::from_fn(|| self.nodes[client].client.poll_item(subscription)).collect()
    }

    /// Links that a machine ended for a fault of its peer.
    pub fn faults(&self) -> u64 {
        self.failed_input
    }

    /// The hash of everything that was written and decided so far.
    pub fn trace(&self) -> [u8; 32] {
        self.trace.clone().finalize().into()
    }

    /// Lets so much time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now.mono.saturating_add(time);
        loop {
            self.settle();
            let next = self.next_event();
            match next {
                Some(at) if at <= end => self.move_to(at.max(self.now.mono)),
                _ => break,
            }
        }
        self.move_to(end);
        self.settle();
    }

    fn move_to(&mut self, at: Instant) {
        let ahead = at.saturating_since(self.now.mono);
        let whole = (self.now.mono.as_micros() + ahead.as_micros() as u64) / 1000;
        let before = self.now.mono.as_micros() / 1000;
        self.now = Now::new(at, self.now.wall.saturating_add(whole - before));
    }

    fn next_event(&self) -> Option<Instant> {
        let nodes = self.nodes.iter().map(|node| node.client.poll_timeout());
        let stations = self.stations.iter().flatten().map(Station::poll_timeout);
        let bytes = self.cables.iter().flat_map(|cable| &cable.pipes);
        let bytes = bytes.map(|pipe| pipe.chunks.front().map(|(at, _)| *at));
        nodes.chain(stations).chain(bytes).fold(None, soonest)
    }

    /// Everything that happens at this moment.
    fn settle(&mut self) {
        let now = self.now;
        for node in &mut self.nodes {
            work_off(&mut node.client, now);
        }
        for station in self.stations.iter_mut().flatten() {
            work_off(station, now);
        }
        while self.turn() {}
    }

    /// One round over everything; true when something moved.
    fn turn(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.nodes.len() {
            moved |= self.client_actions(index);
        }
        for index in 0..self.stations.len() {
            moved |= self.station_actions(index);
        }
        for index in 0..self.cables.len() {
            moved |= self.pump(index);
        }
        self.cables.retain(|cable| !cable.cut);
        moved
    }

    fn client_actions(&mut self, index: usize) -> bool {
        let mut moved = false;
        while let Some(action) = self.nodes[index].client.poll_action() {
            moved = true;
            match action {
                Action::Ask {
                    ask,
                    question: Question::Verify(job),
                    ..
                } => {
                    let answer = Answer::Verified(job.run());
                    let answered = self.nodes[index].client.answer(self.now, ask, answer);
                    debug_assert!(answered.is_ok(), "a question is open until it is answered");
                }
                Action::Close { link, .. } => self.close(CLIENT, index, link),
                Action::Dial { station } => self.dial(index, station),
                Action::Ready(Ready::Subscription(subscription)) => {
                    self.nodes[index].ready.push(subscription);
                }
                Action::Settle { ticket, outcome } => {
                    self.trace.update([b's', outcome.code().number() as u8]);
                    self.nodes[index].settled.push((ticket, outcome));
                }
                Action::Progress { .. } | Action::Ready(_) => {}
            }
        }
        moved
    }

    fn station_actions(&mut self, index: usize) -> bool {
        let mut moved = false;
        while let Some(action) = self.stations[index].as_mut().and_then(Station::poll_action) {
            moved = true;
            if let Action::Close { link, .. } = action {
                self.close(STATION, index, link);
            }
        }
        moved
    }

    /// What a driver does on `Close`: write what is left, then end the transport.
    fn close(&mut self, side: usize, owner: usize, link: LinkId) {
        let found = self.cables.iter().position(|cable| {
            let at = [cable.client, cable.station][side];
            at == owner && cable.ends[side].link() == link
        });
        if let Some(index) = found {
            self.write(index, side);
            let cable = &mut self.cables[index];
            for (_, chunk) in core::mem::take(&mut cable.pipes[1 - side].chunks) {
                cable.pipes[1 - side].waiting.extend_from_slice(&chunk);
            }
            self.read(index, 1 - side);
            self.cables[index].cut = true;
        }
    }

    fn dial(&mut self, client: usize, station: StationRef) {
        let now = self.now;
        let index = self.nodes[client].stations[usize::from(station.0)];
        let node = &mut self.nodes[client];
        let there = self.stations[index].as_mut();
        let accepted = there.and_then(|there| {
            let event = LinkEvent::Up {
                dialled: None,
                binding: Binding::Local,
            };
            there.handle_link(now, event).ok()
        });
        let Some(accepted) = accepted else {
            let told = node.client.handle_dial_failed(now, station);
            debug_assert!(told.is_ok(), "the client asked for this dial");
            return;
        };
        let event = LinkEvent::Up {
            dialled: Some(station),
            binding: Binding::Local,
        };
        let dialled = node
            .client
            .handle_link(now, event)
            .expect("the client asked for this dial");
        let delay = self
            .delays
            .iter()
            .rfind(|(c, s, _)| (*c, *s) == (client, index));
        self.cables.push(Cable {
            client,
            station: index,
            ends: [LinkIo::new(dialled), LinkIo::new(accepted)],
            pipes: [Pipe::default(), Pipe::default()],
            delay: delay.map_or(Duration::ZERO, |(_, _, delay)| *delay),
            cut: false,
        });
    }

    fn pump(&mut self, index: usize) -> bool {
        if self.cables[index].cut {
            let now = self.now;
            let cable = &self.cables[index];
            let (client, station) = (cable.client, cable.station);
            let down = |link| LinkEvent::Down {
                link,
                reason: CloseReason::Io,
            };
            // Either end may have reported it first; a dead station has no end.
            let _client_end = self.nodes[client]
                .client
                .handle_link(now, down(cable.ends[CLIENT].link()));
            if let Some(there) = self.stations[station].as_mut() {
                let _station_end = there.handle_link(now, down(cable.ends[STATION].link()));
            }
            return true;
        }
        let mut moved = false;
        for side in [CLIENT, STATION] {
            moved |= self.write(index, side);
        }
        for side in [CLIENT, STATION] {
            moved |= self.arrive(index, side);
        }
        moved
    }

    /// Takes what one end has to send and puts it under way.
    fn write(&mut self, index: usize, side: usize) -> bool {
        let now = self.now;
        let cable = &mut self.cables[index];
        let (client, station) = (cable.client, cable.station);
        let at = now.mono.saturating_add(cable.delay);
        let mut moved = false;
        loop {
            let io = &mut cable.ends[side];
            let machine: &mut dyn Machine = match side {
                CLIENT => &mut self.nodes[client].client,
                _ => match self.stations[station].as_mut() {
                    Some(station) => station,
                    None => return moved,
                },
            };
            if cable.pipes[1 - side].bytes() >= self.socket_bytes || !io.fill(machine) {
                return moved;
            }
            let mut slices: [&[u8]; 8] = [&[]; 8];
            let count = io.chunks(&mut slices);
            let bytes = slices[..count].concat();
            self.trace.update([b'w', side as u8]);
            self.trace.update(&bytes);
            io.wrote(machine, now, bytes.len());
            cable.pipes[1 - side].chunks.push_back((at, bytes));
            moved = true;
        }
    }

    fn arrive(&mut self, index: usize, side: usize) -> bool {
        let now = self.now.mono;
        let pipe = &mut self.cables[index].pipes[side];
        let mut moved = false;
        while pipe.chunks.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, chunk)) = pipe.chunks.pop_front()
        {
            pipe.waiting.extend_from_slice(&chunk);
            moved = true;
        }
        if moved || pipe.paused {
            moved |= self.read(index, side);
        }
        moved
    }

    /// Hands what arrived to the machine at that end, in reads of the chosen size.
    fn read(&mut self, index: usize, side: usize) -> bool {
        let now = self.now;
        let cable = &mut self.cables[index];
        let (client, station) = (cable.client, cable.station);
        let machine: &mut dyn Machine = match side {
            CLIENT => &mut self.nodes[client].client,
            _ => match self.stations[station].as_mut() {
                Some(station) => station,
                None => return false,
            },
        };
        let io = &mut cable.ends[side];
        let pipe = &mut cable.pipes[side];
        let before = io.input().len() + pipe.waiting.len();
        // A paused link takes what it has first, and is read on only when it did.
        let mut fresh = !pipe.paused;
        loop {
            if fresh {
                let take = pipe.waiting.len().min(self.cut_at);
                io.input().extend_from_slice(&pipe.waiting[..take]);
                pipe.waiting.drain(..take);
            }
            fresh = true;
            match io.handle_read(machine, now) {
                Ok(Intake::Open) => pipe.paused = false,
                Ok(_) => {
                    pipe.paused = true;
                    break;
                }
                Err(_) => {
                    self.failed_input += 1;
                    break;
                }
            }
            if pipe.waiting.is_empty() {
                break;
            }
        }
        io.input().len() + pipe.waiting.len() != before
    }
}

/// Calls `handle_timeout` until nothing is due, and checks that it makes progress.
fn work_off(machine: &mut dyn Machine, now: Now) {
    for _ in 0..HOT {
        let due = machine.poll_timeout().is_some_and(|at| at <= now.mono);
        if !due {
            return;
        }
        let turn = machine.handle_timeout(now);
        let still = machine.poll_timeout().is_some_and(|at| at <= now.mono);
        assert!(turn == Turn::More || !still, "after Done nothing is due");
    }
    panic!("a deadline that does not go away");
}
