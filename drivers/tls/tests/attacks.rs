//! Attacks on the secure channel, each with its transcript: who said what to whom, how it ended and what it cost either side.
//!
//! A transcript stands in its test as it must be; a test that fails prints the one there was. `signed` and `verified` count signatures
//! of Ed25519, `out` and `in` bytes of the socket. The handshake inside the channel has attacks of its own, in `core/tests/attacks`.
//!
//! What TLS 1.3 gives: the station shows its key first, so a well-formed `client_hello` costs it a key exchange and one signature whoever
//! sent it, and the same bytes cost that again on the next connection. The attacker pays for them once. So it is not the order of the
//! frames that bounds this but the drivers: caps on connections per address and in total, refused before anything is signed, and ten
//! seconds for a handshake. Nothing else is signed for anybody before their own signature has held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::BytesMut;
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection, version};
use tidings::Binding;
use tidings::crypto::{Profile, SecretKey, SignError, Signer};
use tidings_suite::help::Anything;
use tidings_tls::{ALPN, NodeKey, Session, Tls, TlsFault};

/// Whose key is which.
const NODE: u8 = 1;
const STATION: u8 = 2;
const ATTACKER: u8 = 3;

/// A key whose signatures are counted.
#[derive(Clone)]
struct Counted {
    seed: u8,
    signed: Arc<AtomicUsize>,
}

impl Counted {
    fn new(seed: u8) -> Self {
        let signed = Arc::default();
        Self { seed, signed }
    }

    fn key(&self) -> SecretKey {
        SecretKey::from_seed([self.seed; 32])
    }

    fn signed(&self) -> usize {
        self.signed.load(Ordering::Relaxed)
    }
}

impl Signer for Counted {
    fn profile(&self) -> Profile {
        Profile::ED25519
    }

    fn public_key(&self) -> [u8; 32] {
        self.key().public_key()
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        self.signed.fetch_add(1, Ordering::Relaxed);
        self.key().sign(parts)
    }
}

/// The attacker's own side of a channel: any public key, signed for with its own.
fn certified(shown: [u8; 32], own: &Counted) -> Arc<CertifiedKey> {
    const SPKI_HEAD: [u8; 12] = [48, 42, 48, 5, 6, 3, 43, 101, 112, 3, 33, 0];
    let carried = CertificateDer::from([&SPKI_HEAD[..], &shown].concat());
    let signer = Arc::new(NodeKey::new(own.clone()));
    Arc::new(CertifiedKey::new(vec![carried], signer))
}

fn attacker_dials(shown: [u8; 32], own: &Counted) -> Connection {
    let resolver = AlwaysResolvesClientRawPublicKeys::new(certified(shown, own));
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything))
        .with_client_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = false;
    let name = ServerName::try_from("station.example").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name);
    connection.unwrap().into()
}

fn attacker_answers(shown: [u8; 32], own: &Counted) -> Connection {
    let resolver = AlwaysResolvesServerRawPublicKeys::new(certified(shown, own));
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_client_cert_verifier(Arc::new(Anything))
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    ServerConnection::new(Arc::new(config)).unwrap().into()
}

/// One honest side.
struct End {
    name: &'static str,
    key: Counted,
    session: Session,
    fault: Option<TlsFault>,
    sent: usize,
    received: usize,
}

impl End {
    fn new(name: &'static str, seed: u8, open: impl FnOnce(&Tls) -> Session) -> Self {
        let key = Counted::new(seed);
        let tls = Tls::new(&NodeKey::new(key.clone())).unwrap();
        Self {
            name,
            key,
            session: open(&tls),
            fault: None,
            sent: 0,
            received: 0,
        }
    }

    fn node() -> Self {
        let station = Counted::new(STATION).key().node_id();
        Self::new("node", NODE, |tls| tls.dial(station).unwrap())
    }

    fn station() -> Self {
        Self::new("station", STATION, |tls| tls.answer().unwrap())
    }

    /// The other side's signature was looked at.
    fn verified(&self) -> usize {
        let held = self.session.channel().is_some();
        usize::from(held || self.fault == Some(TlsFault::ProofInvalid))
    }
}

/// The records of a flight in a few words. What is sealed shows its length alone.
fn words(mut flight: &[u8]) -> String {
    let mut said: Vec<String> = Vec::new();
    while let [kind, _, _, high, low, rest @ ..] = flight {
        let length = usize::from(*high) << 8 | usize::from(*low);
        let body = rest.get(..length).unwrap_or(rest);
        let (name, worth) = match (kind, body.first()) {
            (20, _) => ("", false),
            (21, _) => ("alert", true),
            (22, Some(1)) => ("client_hello", true),
            (22, Some(2)) => ("server_hello", true),
            (23, _) => ("sealed", true),
            _ => return format!("{} bytes that are no record", flight.len()),
        };
        if worth && said.last().is_none_or(|last| last != name) {
            said.push(name.into());
        }
        flight = &rest[body.len()..];
    }
    said.join(", ")
}

/// What passes, and what it costs the attacker.
struct Scene {
    lines: Vec<String>,
    attacker: Counted,
    sent: usize,
    received: usize,
}

impl Scene {
    fn new() -> Self {
        Self {
            lines: Vec::new(),
            attacker: Counted::new(ATTACKER),
            sent: 0,
            received: 0,
        }
    }

    /// The attacker reads what an end wants to say.
    fn hear(&mut self, end: &mut End) -> Vec<u8> {
        let mut flight = Vec::new();
        while end.session.wants_write() {
            end.session.write_to(&mut flight).unwrap();
        }
        if !flight.is_empty() {
            self.lines
                .push(format!("{} > attacker: {}", end.name, words(&flight)));
        }
        end.sent += flight.len();
        self.received += flight.len();
        flight
    }

    /// The attacker hands bytes to an end.
    fn say(&mut self, end: &mut End, flight: &[u8]) {
        self.lines
            .push(format!("attacker > {}: {}", end.name, words(flight)));
        self.sent += flight.len();
        end.received += flight.len();
        if end.fault.is_some() {
            return;
        }
        let was_up = end.session.channel().is_some();
        let mut plain = BytesMut::new();
        end.fault = end.session.receive(flight, &mut plain).err();
        assert!(plain.is_empty(), "nothing comes through to the link");
        match end.fault {
            Some(fault) => self
                .lines
                .push(format!("{} ends it: {}", end.name, fault.text())),
            None if !was_up && end.session.channel().is_some() => {
                self.lines.push(format!("{} has a channel", end.name));
            }
            None => {}
        }
    }

    /// The attacker's own side and an end talk until nothing moves.
    fn talk(&mut self, own: &mut Connection, end: &mut End) {
        loop {
            let mut flight = Vec::new();
            while own.wants_write() {
                own.write_tls(&mut flight).unwrap();
            }
            let silent = flight.is_empty();
            if !silent {
                self.say(end, &flight);
            }
            let heard = self.hear(end);
            if silent && heard.is_empty() {
                return;
            }
            let mut bytes = &heard[..];
            while !bytes.is_empty() && matches!(own.read_tls(&mut bytes), Ok(1..)) {
                // Whatever it makes of that is its own affair.
                drop(own.process_new_packets());
            }
        }
    }

    /// The attacker carries everything between two ends, the first flight changed on its way.
    fn carry(&mut self, left: &mut End, right: &mut End, change: impl FnOnce(&mut Vec<u8>)) {
        let mut change = Some(change);
        loop {
            let mut there = self.hear(left);
            if let Some(change) = change.take() {
                change(&mut there);
            }
            if !there.is_empty() {
                self.say(right, &there);
            }
            let back = self.hear(right);
            if !back.is_empty() {
                self.say(left, &back);
            }
            if there.is_empty() && back.is_empty() {
                return;
            }
        }
    }

    /// Compares all that passed, and what it cost, with the transcript as it must be.
    fn shows(mut self, ends: &[&End], transcript: &str) {
        for end in ends {
            self.lines.push(format!(
                "cost of {}: signed {}, verified {}, {} out, {} in",
                end.name,
                end.key.signed(),
                end.verified(),
                end.sent,
                end.received,
            ));
        }
        self.lines.push(format!(
            "cost of attacker: signed {}, {} out, {} in",
            self.attacker.signed(),
            self.sent,
            self.received,
        ));
        let expected: Vec<&str> = transcript.trim().lines().map(str::trim).collect();
        let was = self.lines.join("\n");
        assert_eq!(self.lines, expected, "the transcript was\n{was}\n");
    }
}

fn replace(flight: &mut [u8], old: &[u8], new: &[u8]) -> usize {
    let mut found = 0;
    for at in 0..flight.len().saturating_sub(old.len()) {
        if flight[at..].starts_with(old) {
            flight[at..at + old.len()].copy_from_slice(new);
            found += 1;
        }
    }
    found
}

/// What the attacks are measured against.
#[test]
fn two_honest_sides_have_a_channel() {
    let (mut scene, mut node, mut station) = (Scene::new(), End::node(), End::station());
    scene.carry(&mut node, &mut station, |_| {});
    scene.shows(
        &[&node, &station],
        "
        node > attacker: client_hello
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > node: server_hello, sealed
        node has a channel
        node > attacker: sealed
        attacker > station: sealed
        station has a channel
        cost of node: signed 1, verified 1, 1637 out, 1471 in
        cost of station: signed 1, verified 1, 1471 out, 1637 in
        cost of attacker: signed 0, 3108 out, 3108 in
        ",
    );
}

/// A `client_hello` and not another word, then the same bytes to another connection.
#[test]
fn a_client_hello_costs_one_signature_each_time() {
    let (mut scene, mut first, mut second) = (Scene::new(), End::station(), End::station());
    let mut own = attacker_dials(scene.attacker.public_key(), &scene.attacker);
    let mut hello = Vec::new();
    own.write_tls(&mut hello).unwrap();
    second.name = "station again";
    scene.say(&mut first, &hello);
    scene.hear(&mut first);
    scene.say(&mut second, &hello);
    scene.hear(&mut second);
    scene.shows(
        &[&first, &second],
        "
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > station again: client_hello
        station again > attacker: server_hello, sealed
        cost of station: signed 1, verified 0, 1471 out, 1432 in
        cost of station again: signed 1, verified 0, 1471 out, 1432 in
        cost of attacker: signed 0, 2864 out, 2942 in
        ",
    );
}

/// Half a `client_hello`, and then nothing: no more is done than to keep it.
#[test]
fn half_a_client_hello_costs_no_signature() {
    let (mut scene, mut node, mut station) = (Scene::new(), End::node(), End::station());
    let mut hello = scene.hear(&mut node);
    hello.truncate(hello.len() / 2);
    scene.say(&mut station, &hello);
    scene.hear(&mut station);
    scene.shows(
        &[&station],
        "
        node > attacker: client_hello
        attacker > station: client_hello
        cost of station: signed 0, verified 0, 0 out, 714 in
        cost of attacker: signed 0, 714 out, 1428 in
        ",
    );
}

/// A record longer than any may be, and a message longer than any may be: refused from their heads.
#[test]
fn what_is_too_long_is_refused_before_anything_is_signed() {
    for (flight, fault) in [
        // A record of 65,535 bytes.
        (&[22, 3, 1, 0xff, 0xff][..], TlsFault::NotTls),
        // A client_hello of 16 MiB in a record of 4 bytes.
        (&[22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff], TlsFault::Protocol),
    ] {
        let (mut scene, mut station) = (Scene::new(), End::station());
        scene.say(&mut station, flight);
        scene.hear(&mut station);
        assert_eq!(station.fault, Some(fault), "{flight:?}");
        assert_eq!((station.key.signed(), station.verified()), (0, 0));
        assert!(station.sent < 32, "an alert");
    }
}

/// The attacker answers in the station's place, with its own key.
#[test]
fn another_key_than_the_one_named_gets_nothing_signed() {
    let (mut scene, mut node) = (Scene::new(), End::node());
    let own = scene.attacker.clone();
    scene.talk(&mut attacker_answers(own.public_key(), &own), &mut node);
    scene.shows(
        &[&node],
        "
        node > attacker: client_hello
        attacker > node: server_hello, sealed
        node ends it: wrong_station
        node > attacker: sealed
        cost of node: signed 0, verified 0, 1458 out, 1471 in
        cost of attacker: signed 1, 1471 out, 1458 in
        ",
    );
}

/// The attacker shows the station's key, which it does not hold.
#[test]
fn the_stations_public_key_makes_nobody_the_station() {
    let (mut scene, mut node) = (Scene::new(), End::node());
    let own = scene.attacker.clone();
    let stolen = Counted::new(STATION).public_key();
    scene.talk(&mut attacker_answers(stolen, &own), &mut node);
    scene.shows(
        &[&node],
        "
        node > attacker: client_hello
        attacker > node: server_hello, sealed
        node ends it: proof_invalid
        node > attacker: sealed
        cost of node: signed 0, verified 1, 1458 out, 1471 in
        cost of attacker: signed 1, 1471 out, 1458 in
        ",
    );
}

/// The attacker shows the node's key, which it does not hold.
#[test]
fn a_nodes_public_key_makes_nobody_the_node() {
    let (mut scene, mut station) = (Scene::new(), End::station());
    let own = scene.attacker.clone();
    let stolen = Counted::new(NODE).public_key();
    scene.talk(&mut attacker_dials(stolen, &own), &mut station);
    scene.shows(
        &[&station],
        "
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > station: sealed
        station ends it: proof_invalid
        station > attacker: sealed
        cost of station: signed 1, verified 1, 1495 out, 1641 in
        cost of attacker: signed 1, 1641 out, 1495 in
        ",
    );
}

/// Under the neutral element, one signature would fit everything. It is no key, so no signature is looked at.
#[test]
fn a_key_of_small_order_is_none() {
    let (mut scene, mut station) = (Scene::new(), End::station());
    let own = scene.attacker.clone();
    let mut neutral = [0; 32];
    neutral[0] = 1;
    scene.talk(&mut attacker_dials(neutral, &own), &mut station);
    scene.shows(
        &[&station],
        "
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > station: sealed
        station ends it: bad_key_form
        station > attacker: sealed
        cost of station: signed 1, verified 0, 1495 out, 1641 in
        cost of attacker: signed 1, 1641 out, 1495 in
        ",
    );
}

/// All that a node said in an earlier handshake, said again.
#[test]
fn a_recorded_node_is_no_node() {
    let (mut scene, mut node, mut station) = (Scene::new(), End::node(), End::station());
    let hello = scene.hear(&mut node);
    scene.say(&mut station, &hello);
    let answer = scene.hear(&mut station);
    scene.say(&mut node, &answer);
    let rest = scene.hear(&mut node);
    let (mut scene, mut station) = (Scene::new(), End::station());
    scene.say(&mut station, &hello);
    scene.hear(&mut station);
    scene.say(&mut station, &rest);
    scene.hear(&mut station);
    scene.shows(
        &[&station],
        "
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > station: sealed
        station ends it: protocol_error
        station > attacker: sealed
        cost of station: signed 1, verified 0, 1495 out, 1637 in
        cost of attacker: signed 0, 1637 out, 1495 in
        ",
    );
}

/// What the node says comes back to it; what the station says, to the station.
#[test]
fn nobody_talks_to_an_echo() {
    let (mut scene, mut node, mut station) = (Scene::new(), End::node(), End::station());
    let hello = scene.hear(&mut node);
    scene.say(&mut node, &hello);
    scene.hear(&mut node);
    scene.say(&mut station, &hello);
    let answer = scene.hear(&mut station);
    scene.say(&mut station, &answer);
    scene.hear(&mut station);
    scene.shows(
        &[&node, &station],
        "
        node > attacker: client_hello
        attacker > node: client_hello
        node ends it: protocol_error
        node > attacker: alert
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > station: server_hello, sealed
        station ends it: protocol_error
        station > attacker: sealed
        cost of node: signed 0, verified 0, 1435 out, 1428 in
        cost of station: signed 1, verified 0, 1495 out, 2899 in
        cost of attacker: signed 0, 4327 out, 2930 in
        ",
    );
}

/// The post-quantum group is taken out of the `client_hello`, so that a weaker one is agreed on. What the station signs says so.
#[test]
fn a_weaker_key_exchange_forced_on_the_way_is_noticed() {
    let (mut scene, mut node, mut station) = (Scene::new(), End::node(), End::station());
    scene.carry(&mut node, &mut station, |hello| {
        // X25519MLKEM768 in the list of groups and as a key share becomes a group nobody has.
        assert!(replace(hello, &[0x11, 0xec], &[0x1a, 0x1a]) >= 2);
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: client_hello
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > node: server_hello, sealed
        node ends it: protocol_error
        node > attacker: sealed
        attacker > station: sealed
        station ends it: protocol_error
        station > attacker: sealed
        attacker > node: sealed
        cost of node: signed 0, verified 0, 1458 out, 407 in
        cost of station: signed 1, verified 0, 407 out, 1458 in
        cost of attacker: signed 0, 1865 out, 1865 in
        ",
    );
}

/// The protocol's name is changed on the way.
#[test]
fn another_protocol_forced_on_the_way_makes_no_channel() {
    let (mut scene, mut node, mut station) = (Scene::new(), End::node(), End::station());
    scene.carry(&mut node, &mut station, |hello| {
        assert_eq!(replace(hello, ALPN, b"tidings/0"), 1);
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: client_hello
        attacker > station: client_hello
        station ends it: wrong_alpn
        station > attacker: server_hello, sealed
        attacker > node: server_hello, sealed
        node ends it: protocol_error
        node > attacker: sealed
        attacker > station: sealed
        cost of node: signed 0, verified 0, 1458 out, 1245 in
        cost of station: signed 0, verified 0, 1245 out, 1458 in
        cost of attacker: signed 0, 2703 out, 2703 in
        ",
    );
}

/// The channel comes about: it is the handshake inside that knows its own key (`own_link`), before it signs anything.
#[test]
fn a_station_that_dials_itself_is_left_to_the_handshake_inside() {
    let own = Counted::new(STATION).key().node_id();
    let mut dials = End::new("station as it dials", STATION, |tls| tls.dial(own).unwrap());
    let (mut scene, mut station) = (Scene::new(), End::station());
    scene.carry(&mut dials, &mut station, |_| {});
    for end in [&dials, &station] {
        let channel = end.session.channel();
        assert!(matches!(channel, Some(Binding::Proved { peer, .. }) if peer == own));
    }
    scene.shows(
        &[&dials, &station],
        "
        station as it dials > attacker: client_hello
        attacker > station: client_hello
        station > attacker: server_hello, sealed
        attacker > station as it dials: server_hello, sealed
        station as it dials has a channel
        station as it dials > attacker: sealed
        attacker > station: sealed
        station has a channel
        cost of station as it dials: signed 1, verified 1, 1637 out, 1471 in
        cost of station: signed 1, verified 1, 1471 out, 1637 in
        cost of attacker: signed 0, 3108 out, 3108 in
        ",
    );
}
