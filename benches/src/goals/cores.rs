//! What a second core gives: facts a second through a tokio node, signatures checked in its loop or by a thread beside it.
#![allow(
    clippy::disallowed_types,
    reason = "a rate over several threads is taken by the wall"
)]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Instant as Wall, SystemTime};

use tidings::crypto::SecretKey;
use tidings::pump::{LinkIo, Machine};
use tidings::{Binding, Instant, Intake, Item, LinkEvent, Now, Sources, Subscribe, WallMs};
use tidings_tokio::Node;

use crate::line::Line;
use crate::reader::{FILTER, events, plain_station};
use crate::world::{Facts, Key, Keys, key, realm};

/// Facts of one run.
const COUNT: usize = 10_000;
/// Runs of each kind, in turn; the fastest counts.
const RUNS: usize = 3;
/// An epoch this much later than now is followed from its first number.
pub(super) const AHEAD_US: u64 = 600_000_000;

/// The host's wall, and a monotonic clock that begins: what the end of a driver's link is told.
pub(super) fn now() -> Now {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let wall = wall.expect("after 1970").as_millis() as u64;
    Now::new(Instant::ORIGIN, WallMs::new(wall))
}

/// Facts a second, in thousands.
fn rate(threads: usize) -> f64 {
    let now = now();
    let mut facts = Facts::new(Keys::Real).since(now.wall.as_millis() * 1000 + AHEAD_US);
    let frames = events(&mut 0, &facts.many(now, COUNT));

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let key = key(1);
    let id = key.node_id();
    let serving = thread::spawn(move || serve(&listener, key, now, &frames));
    let rate = receive(&format!("tcp://{id}@{address}"), threads);
    let served = serving.join().expect("a station that ends");
    served.expect("its link lasts");
    rate
}

/// A station's end of one link: the handshake and the subscription, then every frame as fast as it is taken.
fn serve(listener: &TcpListener, key: Key, now: Now, frames: &[u8]) -> io::Result<()> {
    let mut stream = accept(listener, key, now)?;
    stream.write_all(frames)?;
    // Until the node says goodbye.
    io::copy(&mut stream, &mut io::sink())?;
    Ok(())
}

/// A station's end of the next connection: until a node has subscribed, and was told so.
pub(super) fn accept(listener: &TcpListener, key: Key, now: Now) -> io::Result<TcpStream> {
    let (mut stream, _) = listener.accept()?;
    let mut station = plain_station(key);
    let up = LinkEvent::Up {
        dialled: None,
        binding: Binding::Local,
    };
    let link = station.handle_link(now, up).expect("room");
    let mut io = LinkIo::new(link);
    while station.status().subscriptions == 0 {
        write(&mut io, &mut station, now, &mut stream)?;
        let mut read = [0; 4096];
        let count = stream.read(&mut read)?;
        io.input().extend_from_slice(&read[..count]);
        let intake = io.handle_read(&mut station, now);
        assert!(matches!(intake, Ok(Intake::Open)));
    }
    write(&mut io, &mut station, now, &mut stream)?;
    Ok(stream)
}

/// All a machine has to say on a link.
pub(super) fn write(
    io: &mut LinkIo,
    machine: &mut impl Machine,
    now: Now,
    to: &mut TcpStream,
) -> io::Result<()> {
    while io.fill(machine) {
        let mut slices: [&[u8]; 8] = [&[]; 8];
        let count = io.chunks(&mut slices);
        let bytes = slices[..count].concat();
        to.write_all(&bytes)?;
        io.wrote(machine, now, bytes.len());
    }
    Ok(())
}

/// The node's end, its loop on this thread.
fn receive(station: &str, threads: usize) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let node = Node::builder(SecretKey::from_seed([2; 32]))
            .station(station)
            .expect("a loopback address")
            .verify_threads(threads)
            .start()
            .expect("it starts");
        let request = Subscribe::new(realm(), FILTER, Sources::Open).queue_capacity(2 * COUNT);
        let mut facts = node.subscribe(request).expect("room");
        // Not from the first fact: by the time a reader sees it, the loop may have verified many more.
        let began = Wall::now();
        for n in 0..COUNT {
            let item = facts.next().await.expect("it goes on");
            assert!(matches!(item, Item::Fact(_)), "{item:?} before {n}");
        }
        let took = began.elapsed();
        node.close().await;
        COUNT as f64 / took.as_secs_f64() / 1000.0
    })
}

/// Both kinds, in turn.
pub(crate) fn lines() -> Vec<Line> {
    let mut best = [0.0; 2];
    for _ in 0..RUNS {
        for (threads, best) in best.iter_mut().enumerate() {
            *best = f64::max(*best, rate(threads));
        }
    }
    let [one, two] = best;
    vec![Line::shown(
        2,
        "tokio node over TCP, verified in its loop and by one thread beside it",
        format!("{one:.1} and {two:.1} k/s = {:.2} x", two / one),
    )]
}
