//! A driver of one's own: a station and two nodes over real loopback sockets, with nothing but the standard library.
//!
//! `cargo run -p tidings --example own_loop`
//!
//! One thread, non-blocking sockets, one loop. A real driver waits for readiness instead of looking around; everything else is the same.

use std::error::Error;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant as Clock};

use tidings::crypto::SecretKey;
use tidings::pump::{LinkIo, Machine};
use tidings::{
    Action, Binding, Client, ClientConfig, Entropy, Instant, Intake, Item, LinkEvent, Now, Outcome,
    Publish, RealmId, Seed, Sources, Station, StationConfig, Subscribe, Turn, WallMs, code,
};

/// A machine with its sockets.
struct Driven<M> {
    machine: M,
    links: Vec<(LinkIo, TcpStream)>,
    settled: Vec<Outcome>,
}

impl<M: Machine> Driven<M> {
    fn new(machine: M) -> Self {
        Self {
            machine,
            links: Vec::new(),
            settled: Vec::new(),
        }
    }

    fn attach(
        &mut self,
        now: Now,
        socket: TcpStream,
        event: LinkEvent,
    ) -> Result<(), Box<dyn Error>> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let link = self.machine.handle_link(now, event)?;
        self.links.push((LinkIo::new(link), socket));
        Ok(())
    }

    /// One turn of everything; answers the stations to dial.
    fn turn(&mut self, now: Now) -> Vec<tidings::StationRef> {
        while self.machine.handle_timeout(now) == Turn::More {}
        let mut ended = Vec::new();
        for (io, socket) in &mut self.links {
            if !exchange(&mut self.machine, now, io, socket) {
                ended.push(io.link());
            }
        }
        let mut dials = Vec::new();
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Close { link, .. } => ended.push(link),
                Action::Dial { station } => dials.push(station),
                Action::Settle { outcome, .. } => self.settled.push(outcome),
                // This loop looks at every link and stream at each turn.
                _ => {}
            }
        }
        for link in ended {
            self.links.retain(|(io, _)| io.link() != link);
            let reason = code::CloseReason::Io;
            if let Err(misuse) = self
                .machine
                .handle_link(now, LinkEvent::Down { link, reason })
            {
                eprintln!("{misuse}");
            }
        }
        dials
    }
}

/// Reads and writes what is possible now. False when the transport has ended.
fn exchange(machine: &mut impl Machine, now: Now, io: &mut LinkIo, socket: &mut TcpStream) -> bool {
    let mut chunk = [0; 4096];
    loop {
        match io.handle_read(machine, now) {
            Ok(Intake::Open) => {}
            // Paused or later: what was read stays in the buffer; the socket is not read until it was taken.
            Ok(_) => break,
            Err(error) => eprintln!("a link ended: {error}"),
        }
        match socket.read(&mut chunk) {
            Ok(0) => return false,
            Ok(count) => io.input().extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => return false,
        }
    }
    while io.fill(machine) {
        let mut slices: [&[u8]; 16] = [&[]; 16];
        let count = io.chunks(&mut slices);
        let slices: Vec<IoSlice<'_>> = slices[..count].iter().map(|s| IoSlice::new(s)).collect();
        match socket.write_vectored(&slices) {
            Ok(count) => io.wrote(machine, now, count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => return false,
        }
    }
    true
}

fn random() -> Result<[u8; 32], std::io::Error> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let origin = Clock::now();
    let read_clocks = || -> Result<Now, Box<dyn Error>> {
        #[expect(
            clippy::disallowed_types,
            reason = "a driver reads its clocks in one place"
        )]
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let mono = Instant::from_micros(origin.elapsed().as_micros() as u64);
        Ok(Now::new(mono, WallMs::new(wall.as_millis() as u64)))
    };
    let mut now = read_clocks()?;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let config = StationConfig::new(SecretKey::from_seed(random()?))
        .allow_local(true)
        .build()?;
    let seed = || -> Result<Seed, std::io::Error> { Ok(Seed::new(random()?)) };
    let entropy = || -> Result<Entropy, std::io::Error> { Ok(Entropy::from_os(random()?)) };
    let mut station = Driven::new(Station::new(config, seed()?, entropy()?, now));
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let config = ClientConfig::new(SecretKey::from_seed(random()?))
            .allow_local(true)
            .station(Some(station.machine.id()))
            .build()?;
        nodes.push(Driven::new(Client::new(config, seed()?, entropy()?, now)));
    }

    let realm = RealmId::of_name("io.example");
    let topic = "io.example/acme/shop/orders/placed_v1";
    let stream = nodes[0]
        .machine
        .subscribe(now, Subscribe::new(realm, topic, Sources::Open))?;
    let (mut published, mut received) = (0u32, 0u32);
    while received < 3 || nodes[1].settled.len() < 3 {
        now = read_clocks()?;
        while let Ok((socket, _)) = listener.accept() {
            station.attach(
                now,
                socket,
                LinkEvent::Up {
                    dialled: None,
                    binding: Binding::Local,
                },
            )?;
        }
        station.turn(now);
        for node in &mut nodes {
            for dialled in node.turn(now) {
                let socket = TcpStream::connect(listener.local_addr()?)?;
                let up = LinkEvent::Up {
                    dialled: Some(dialled),
                    binding: Binding::Local,
                };
                node.attach(now, socket, up)?;
            }
        }
        let carried = nodes[0]
            .machine
            .subscription(stream)
            .is_some_and(|s| s.carriers > 0);
        if carried && published < 3 {
            let request = Publish::new(realm, topic, &format!("order {published}"))?;
            match nodes[1].machine.publish(now, request) {
                Ok(_ticket) => published += 1,
                Err(refused) => eprintln!("not yet: {refused}"),
            }
        }
        while let Some(item) = nodes[0].machine.poll_item(stream) {
            match item {
                Item::Fact(delivery) => {
                    println!("{} (number {})", delivery.decode::<&str>()?, delivery.seq());
                    received += 1;
                }
                Item::Notice(notice) => println!("{notice:?}"),
                _ => {}
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!(
        "published {published}, received {received}, answered {}",
        nodes[1].settled.len()
    );
    Ok(())
}
