//! A node in an event loop that was there before: the application owns the `Poll`, waits for sockets of its own beside the node's, and
//! calls the node when one of its tokens is ready or its time has come.
//!
//! `cargo run -p tidings-mio --example own_poll`; each line typed is published, and what is heard is printed.

use std::io::{BufRead, ErrorKind, Read};
use std::os::unix::net::UnixStream as Pair;
use std::time::Duration;

use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};
use tidings::crypto::SecretKey;
use tidings::{Action, Client, Item, Publish, Ready, RealmId, Sources, Subscribe};
use tidings_mio::{Driven, NodeSettings, StationServer, StationSettings};

type Error = Box<dyn std::error::Error>;

/// The application's own socket: lines somebody typed.
const LINES: Token = Token(0);
/// The node's sockets are registered from here on.
const NODE: Token = Token(1);
const TOPIC: &str = "example/lines";

fn main() -> Result<(), Error> {
    let listening = StationSettings::new(SecretKey::from_seed([1; 32])).listen("127.0.0.1:0")?;
    let station = StationServer::start(listening)?;
    let realm = RealmId::of_name("example");

    let mut poll = Poll::new()?;
    let mut lines = typed()?;
    let registry = poll.registry();
    registry.register(&mut lines, LINES, Interest::READABLE)?;
    let dialling = NodeSettings::new(SecretKey::from_seed([2; 32])).station(&station.address())?;
    let (mut node, _no_epochs) = Driven::node(dialling, registry, NODE)?;
    let request = Subscribe::new(realm, TOPIC, Sources::Open);
    node.with(|client, now| client.subscribe(now, request))?;

    let mut events = Events::with_capacity(64);
    while !node.is_closed() {
        // The node's deadline is one of the loop's; others would be folded in here.
        if let Err(error) = poll.poll(&mut events, node.timeout())
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error.into());
        }
        for event in &events {
            if !node.handle_event(event) && read(&mut lines, &mut node, realm)? {
                node.close();
            }
        }
        while let Some(action) = node.turn() {
            act(&mut node, action)?;
        }
    }
    station.close();
    Ok(())
}

/// Does what the node hands out for the application.
fn act(node: &mut Driven<Client>, action: Action) -> Result<(), Error> {
    match action {
        Action::Ready(Ready::Subscription(stream)) => {
            while let Some(item) = node.with(|client, _| client.poll_item(stream)) {
                match item {
                    Item::Fact(fact) => println!("heard {:?}", fact.decode::<String>()?),
                    notice => println!("{notice:?}"),
                }
            }
        }
        Action::Settle { ticket, outcome } => println!("{ticket}: {outcome:?}"),
        _ => {}
    }
    Ok(())
}

/// Publishes what was typed. True when there will be nothing more.
fn read(lines: &mut UnixStream, node: &mut Driven<Client>, realm: RealmId) -> Result<bool, Error> {
    let mut bytes = [0; 4096];
    loop {
        let count = match lines.read(&mut bytes) {
            Ok(0) => return Ok(true),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for line in String::from_utf8_lossy(&bytes[..count]).lines() {
            let request = Publish::new(realm, TOPIC, line)?;
            match node.with(|client, now| client.publish(now, request)) {
                Ok(ticket) => println!("{ticket}: on its way"),
                Err(refused) => println!("not published: {refused}"),
            }
        }
    }
}

/// A socket on which lines arrive as they are typed.
fn typed() -> Result<UnixStream, Error> {
    let (near, mut far) = Pair::pair()?;
    near.set_nonblocking(true)?;
    std::thread::spawn(move || {
        // The node needs a moment to connect.
        std::thread::sleep(Duration::from_millis(500));
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if std::io::Write::write_all(&mut far, line.as_bytes()).is_err() {
                return;
            }
        }
    });
    Ok(UnixStream::from_std(near))
}
