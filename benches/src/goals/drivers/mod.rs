//! What the drivers cost: a frame through a tokio and a mio driver, beside a bare loop of the same library over the same sockets.
//!
//! Decides: what carries a frame and what counts as its cost: the CPU time of the whole process, both ends and the kernel's share, on one
//! core. Leaves to others: the bare loops (`raw.rs`). Believes: the process's CPU clock. Bounded by: a fixed number of frames and rounds.
//!
//! Both ends have the same core, so that how often a reader is woken, of which a wake-up costs as much as ten frames, is not for chance to
//! decide: on two cores the bare loop alone took from 303 to 754 ns a frame.
//!
//! So that the machines do not hide the drivers, a node is sent copies, which its machine knows by their signature (goal 4), and a
//! station replays its ring, which is encoded and verified before the clock starts. The other end is the bare loop of std each time.

mod raw;
mod tls;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidings::crypto::SecretKey;
use tidings::pump::LinkIo;
use tidings::{
    Action, Binding, Client, ClientConfig, Entropy, Item, LinkEvent, NodeId, Now, Publish, Seed,
    Sources, StationRef, Subscribe, SubscriptionId, code,
};

use super::cores::{AHEAD_US, accept, now, write};
use crate::harness::{ROUNDS, on_one_core};
use crate::line::Line;
use crate::reader::{FILTER, events};
use crate::world::{Facts, Keys, TOPIC, key, payload, realm};
use raw::{Finder, Frames, Library, PER_WRITE};

/// Copies a node is sent in one sample.
const COPIES: usize = 20_000;
/// Facts in the ring a station replays in one sample: all a ring holds.
const RING: usize = 10_000;
/// Samples of each series, in turn; the least counts. Each is as long as a busy machine lets a thread run, so some are broken off.
const SAMPLES: usize = 2 * ROUNDS;
/// How much a driver may cost more than the bare loop, and the frames it must put into a write.
const WANTED: f64 = 1.3;
const PATIENCE: Duration = Duration::from_secs(20);

/// The CPU time of this process.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

fn each(spent: Duration, frames: usize) -> f64 {
    spent.as_nanos() as f64 / frames as f64
}

/// Two ends of a connection.
fn connection() -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let dialled = TcpStream::connect(address).expect("it listens");
    let (accepted, _) = listener.accept().expect("somebody dialled");
    for stream in [&dialled, &accepted] {
        stream.set_nodelay(true).expect("TCP");
    }
    [dialled, accepted]
}

/// A frame through the bare loops of these two libraries.
fn bare(frames: &Frames, writes: Library, reads: Library) -> f64 {
    let [from, to] = connection();
    let before = cpu();
    thread::scope(|scope| {
        scope.spawn(|| raw::write(writes, from, frames).expect("it is read"));
        let (mut finder, mut found) = (Finder::default(), 0);
        let count = |read: &[u8]| {
            finder.find(read, |_, _| found += 1);
            found == frames.count
        };
        raw::read(reads, to, count).expect("it is written");
        assert_eq!(found, frames.count);
    });
    each(cpu() - before, frames.count)
}

/// A fact, copies of it, and another fact.
fn copies() -> [Frames; 3] {
    let now = now();
    let mut facts = Facts::new(Keys::Real).since(now.wall.as_millis() * 1000 + AHEAD_US);
    let (first, last) = (facts.next(now), facts.next(now));
    let mut offset = 0;
    let first_frame = Frames::new(events(&mut offset, &[&first]));
    let copies = Frames::new(events(&mut offset, &vec![&first; COPIES]));
    [
        first_frame,
        copies,
        Frames::new(events(&mut offset, &[&last])),
    ]
}

/// A copy through a node, whose `run` waits for the two facts around them at the station of that address and answers in how many reads;
/// and how many there were in each.
fn receives(frames: &[Frames; 3], run: impl FnOnce(&str) -> u64) -> [f64; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let id = key(1).node_id();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let stream = accept(&listener, key(1), now()).expect("a node");
            stream.set_nodelay(true).expect("TCP");
            let end = stream.try_clone().expect("one more descriptor");
            tell.send(cpu()).expect("it waits");
            for part in frames {
                let stream = stream.try_clone().expect("one more descriptor");
                raw::write(Library::Std, stream, part).expect("it is read");
            }
            // Until the node says goodbye.
            raw::read(Library::Std, end, |_| false).ok();
        });
        let reads = run(&format!("tcp://{id}@{address}"));
        let spent = cpu() - told.recv().expect("it began");
        [each(spent, COPIES), COPIES as f64 / reads as f64]
    })
}

fn request() -> Subscribe {
    Subscribe::new(realm(), FILTER, Sources::Open)
}

fn fact(item: Option<Item>) {
    assert!(matches!(item, Some(Item::Fact(_))), "{item:?}");
}

fn tokio_node(station: &str) -> u64 {
    block_on(async {
        let node = tidings_tokio::Node::builder(SecretKey::from_seed([2; 32]));
        let node = node.station(station).expect("a loopback address");
        let node = node.verify_threads(0).start().expect("it starts");
        let mut facts = node.subscribe(request()).expect("room");
        fact(facts.next().await);
        fact(facts.next().await);
        drop(facts);
        let reads = node.io().reads;
        node.close().await;
        reads
    })
}

fn mio_node(station: &str) -> u64 {
    let settings = tidings_mio::NodeSettings::new(SecretKey::from_seed([2; 32]));
    let settings = settings.station(station).expect("a loopback address");
    let node = tidings_mio::Node::start(settings).expect("it starts");
    let mut facts = node.subscribe(request()).expect("room");
    fact(facts.next(PATIENCE));
    fact(facts.next(PATIENCE));
    let reads = node.io().reads;
    node.close();
    reads
}

fn block_on<R>(work: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

/// A reader whose station goes away and comes back, by hand: a client until it has asked for what it missed, then a bare loop.
struct Returning {
    client: Client,
    subscription: SubscriptionId,
    now: Now,
    at: String,
    link: Option<(LinkIo, TcpStream)>,
}

impl Returning {
    fn new(station: NodeId, at: &str) -> Self {
        let config = ClientConfig::new(key(3))
            .allow_local(true)
            .station(Some(station));
        let config = config.build().expect("a valid configuration");
        let now = now();
        let mut client = Client::new(config, Seed::new([3; 32]), Entropy::from_os([3; 32]), now);
        let subscription = client.subscribe(now, request()).expect("room");
        Self {
            client,
            subscription,
            now,
            at: at.to_owned(),
            link: None,
        }
    }

    /// Its link ends.
    fn leave(&mut self) {
        if let Some((io, stream)) = self.link.take() {
            stream.shutdown(Shutdown::Both).ok();
            let (link, reason) = (io.link(), code::CloseReason::Io);
            let down = LinkEvent::Down { link, reason };
            self.client.handle_link(self.now, down).expect("its link");
        }
    }

    /// Dials when its time has come, and handshakes until `done`.
    fn come(&mut self, done: impl Fn(&Self, usize) -> bool) {
        loop {
            let turn = self.client.handle_timeout(self.now);
            assert_eq!(turn, tidings::Turn::Done);
            let mut actions = std::iter::from_fn(|| self.client.poll_action());
            if actions.any(|action| matches!(action, Action::Dial { .. })) {
                break;
            }
            let due = self.client.poll_timeout().expect("it dials again");
            self.now = Now::new(due, self.now.wall);
        }
        let mut stream = TcpStream::connect(&self.at).expect("it listens");
        stream.set_nodelay(true).expect("TCP");
        let up = LinkEvent::Up {
            dialled: Some(StationRef(0)),
            binding: Binding::Local,
        };
        let link = self
            .client
            .handle_link(self.now, up)
            .expect("it asked for it");
        let (mut io, mut reads) = (LinkIo::new(link), 0);
        loop {
            write(&mut io, &mut self.client, self.now, &mut stream).expect("it lasts");
            if done(self, reads) {
                break;
            }
            let mut read = [0; 4096];
            let count = std::io::Read::read(&mut stream, &mut read).expect("it lasts");
            assert!(count > 0, "the station left");
            reads += 1;
            io.input().extend_from_slice(&read[..count]);
            let intake = io.handle_read(&mut self.client, self.now);
            assert!(matches!(intake, Ok(tidings::Intake::Open)));
        }
        self.link = Some((io, stream));
    }

    fn is_carried(&self) -> bool {
        let status = self.client.subscription(self.subscription);
        status.is_some_and(|status| status.carriers == 1)
    }

    /// The nanoseconds of each frame of what it missed, read bare.
    fn catches_up(&mut self, frame: usize) -> f64 {
        self.leave();
        // The station may answer before this side looks, so the handshake, some 20 ns of each frame, is in it.
        let before = cpu();
        // The answer to its `connect` is the last it reads as a client: with that its subscription went out.
        self.come(|this, _| {
            this.client
                .status()
                .links
                .iter()
                .any(|link| link.state == tidings::LinkState::Up)
        });
        let (_, stream) = self.link.as_ref().expect("it came");
        let stream = stream.try_clone().expect("one more descriptor");
        let (mut finder, mut found) = (Finder::default(), 0);
        let count = |read: &[u8]| {
            // What is short is no event.
            finder.find(read, |length, _| found += usize::from(length >= frame));
            found == RING
        };
        raw::read(Library::Std, stream, count).expect("it is written");
        assert_eq!(found, RING, "all of the ring");
        each(cpu() - before, RING)
    }
}

/// A station of one driver with a full ring, and a reader that comes back for it again and again.
struct Replay<S> {
    station: S,
    reader: Returning,
    io: fn(&S) -> tidings_tokio::IoCounters,
    least: f64,
    per_write: f64,
}

impl<S> Replay<S> {
    fn new(
        station: S,
        (id, at): (NodeId, String),
        publish: impl Fn(&S, Publish),
        io: fn(&S) -> tidings_tokio::IoCounters,
    ) -> Self {
        let mut reader = Returning::new(id, &at);
        reader.come(|this, _| this.is_carried());
        reader.leave();
        for n in 0..RING {
            let payload = payload(n as u8).to_vec();
            publish(&station, Publish::raw(realm(), TOPIC, payload));
        }
        Self {
            station,
            reader,
            io,
            least: f64::INFINITY,
            per_write: f64::INFINITY,
        }
    }

    fn round(&mut self) {
        let before = (self.io)(&self.station).writes;
        self.least = self.least.min(self.reader.catches_up(300));
        let writes = (self.io)(&self.station).writes - before;
        self.per_write = self.per_write.min(RING as f64 / writes as f64);
    }
}

/// All of it.
pub(crate) fn lines() -> Vec<Line> {
    on_one_core(pinned)
}

fn pinned() -> Vec<Line> {
    let frames = copies();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let station = tidings_tokio::StationServer::builder(SecretKey::from_seed([4; 32]));
    let station = station
        .listen("tcp://127.0.0.1:0")
        .expect("a loopback address");
    let station = runtime.block_on(station.start()).expect("it starts");
    let who = (station.id(), station.local_addr().to_string());
    let publish = |station: &tidings_tokio::StationServer, fact| {
        station.publish(fact).expect("room");
    };
    let mut of_tokio = Replay::new(station, who, publish, tidings_tokio::StationServer::io);

    let settings = tidings_mio::StationSettings::new(SecretKey::from_seed([5; 32]));
    let settings = settings
        .listen("tcp://127.0.0.1:0")
        .expect("a loopback address");
    let station = tidings_mio::StationServer::start(settings).expect("it starts");
    let who = (station.id(), station.local_addr().to_string());
    let publish = |station: &tidings_mio::StationServer, fact| {
        station
            .with(|station, now| station.publish(now, fact))
            .expect("room");
    };
    let mut of_mio = Replay::new(station, who, publish, tidings_mio::StationServer::io);

    let mut least = [f64::INFINITY; 7];
    let mut per_read = [f64::INFINITY; 2];
    for _ in 0..SAMPLES {
        let nodes = [receives(&frames, tokio_node), receives(&frames, mio_node)];
        for (least, [_, sample]) in per_read.iter_mut().zip(nodes) {
            *least = least.min(sample);
        }
        let samples = [
            bare(&frames[1], Library::Std, Library::Std),
            bare(&frames[1], Library::Std, Library::Tokio),
            bare(&frames[1], Library::Std, Library::Mio),
            bare(&frames[1], Library::Tokio, Library::Std),
            bare(&frames[1], Library::Mio, Library::Std),
            nodes[0][0],
            nodes[1][0],
        ];
        for (least, sample) in least.iter_mut().zip(samples) {
            *least = least.min(sample);
        }
        of_tokio.round();
        of_mio.round();
    }
    of_mio.station.close();
    runtime.block_on(of_tokio.station.close());

    let [
        std,
        read_tokio,
        read_mio,
        write_tokio,
        write_mio,
        node_tokio,
        node_mio,
    ] = least;
    let tls = tls::cost(frames[1].bytes.len() / COPIES);
    let [node, station] = tls.handshake.map(|spent| spent.as_micros());
    let handshake = format!("{node} and {station} us");
    let ratio = |what: &str, whole, part| Line::ratio(16, what, [whole, part], WANTED);
    let writes = |what: &str, count| Line::least(16, what, (count, "frames"), PER_WRITE as f64);
    let reads = |count| {
        Line::shown(
            16,
            "... frames in each of its reads",
            format!("{count:.0} frames"),
        )
    };
    vec![
        Line::shown(
            16,
            &format!("bare loop, {PER_WRITE} frames to a write, by std"),
            crate::line::nanos(std),
        ),
        ratio(
            "tokio node reads copies, beside a bare tokio loop",
            node_tokio,
            read_tokio,
        ),
        reads(per_read[0]),
        ratio(
            "tokio station replays its ring, beside a bare tokio loop",
            of_tokio.least,
            write_tokio,
        ),
        writes("... frames in each of its writes", of_tokio.per_write),
        ratio(
            "mio node reads copies, beside a bare mio loop",
            node_mio,
            read_mio,
        ),
        reads(per_read[1]),
        ratio(
            "mio station replays its ring, beside a bare mio loop",
            of_mio.least,
            write_mio,
        ),
        writes("... frames in each of its writes", of_mio.per_write),
        Line::shown(
            16,
            "a TLS handshake, at the node and at the station",
            format!("{handshake}, {} bytes", tls.bytes),
        ),
        Line::shown(
            16,
            &format!("a frame sealed and opened, alone and {PER_WRITE} to a write"),
            format!("{:.0} and {:.0} ns", tls.frame[0], tls.frame[1]),
        ),
    ]
}
