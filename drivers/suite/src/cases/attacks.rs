//! Attacks on a handshake that go over sockets. With their transcripts they stand in `core/tests/attacks` and `drivers/tls/tests`.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what comes over the socket. Bounded by: the
//! kit's patience.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tidings::code::HandshakeRefusal;
use tidings::crypto::Signer;
use tidings::wire::{Frame, HANDSHAKE_CAP, Hello, Phase, Role};

use crate::Driver;
use crate::kit::{Kit, PATIENCE, host, id, key, until};
use crate::peer::Peer;
use crate::wire::Wire;

/// The one who sits in the middle, with a key of its own.
const MIDDLE: u8 = 5;

fn say(wire: &mut Wire, body: &[u8]) {
    let length = (body.len() as u32).to_be_bytes();
    wire.write(&[&length, body].concat());
}

fn open<D: Driver>(stream: TcpStream, role: Role) -> Wire {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    match D::SECURE {
        true => Wire::secure(stream, role, MIDDLE).0,
        false => Wire::plain(stream),
    }
}

/// A node that dials the one in the middle, and that one's connection to the station behind it.
fn middle<D: Driver>(driver: &D, station: &D::Station) -> (D::Node, Wire, Wire) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it has an address");
    let address = match D::SECURE {
        true => format!("tls://{}@{at}", id(MIDDLE)),
        false => format!("tcp://{at}"),
    };
    let node = driver.start_node(key(2), &[address]).expect("it starts");
    let (near, _) = listener.accept().expect("the node dials");
    let far = host(&driver.station_address(station));
    let far = TcpStream::connect(far).expect("the station accepts");
    let near = open::<D>(near, Role::Station);
    (node, near, open::<D>(far, Role::Node))
}

/// ```text
/// node > middle > station: opener
/// station > middle > node: challenge of the station
/// the node ends it: it named another
/// ```
///
/// Without a channel nobody was named: whoever is in the middle is a wire.
pub fn a_handshake_passed_on_by_another_station_is_refused<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (node, mut near, mut far) = middle(driver, &station);
    say(&mut far, &near.frame(HANDSHAKE_CAP).expect("an opener"));
    say(&mut near, &far.frame(HANDSHAKE_CAP).expect("a challenge"));
    let connect = near.frame(HANDSHAKE_CAP);
    assert_eq!(connect.is_none(), D::SECURE);
    if let Some(connect) = connect {
        say(&mut far, &connect);
        say(&mut near, &far.frame(HANDSHAKE_CAP).expect("a hello"));
        assert!(driver.connected(&node, 1, PATIENCE));
    }
}

/// ```text
/// node > middle > station: opener
/// station > middle: challenge of the station
/// middle > node: the same with the middle's key
/// node > middle > station: connect of the node
/// station > middle: hello not_accepted
/// ```
///
/// With a channel the station knows that it is not the node's; without one the proof names another station.
pub fn a_proof_for_another_station_is_refused<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (_node, mut near, mut far) = middle(driver, &station);
    say(&mut far, &near.frame(HANDSHAKE_CAP).expect("an opener"));
    let challenge = far.frame(HANDSHAKE_CAP).expect("a challenge");
    let Ok(Frame::Challenge(mut shown)) = Frame::decode(&challenge, Phase::Challenge) else {
        panic!("a challenge");
    };
    let own = key(MIDDLE).public_key();
    shown.key = &own;
    let mut changed = Vec::new();
    Frame::Challenge(shown).encode(&mut changed);
    say(&mut near, &changed);
    say(&mut far, &near.frame(HANDSHAKE_CAP).expect("a connect"));
    refused(&far.frame(HANDSHAKE_CAP).expect("a hello"));
    assert_eq!(far.frame(HANDSHAKE_CAP), None);
    until("it is counted", || {
        driver.seen(&station).counted("links_failed") == 1
    });
    let mismatches = driver.seen(&station).counted("key_mismatches");
    assert_eq!(mismatches, u64::from(D::SECURE));
}

fn refused(body: &[u8]) {
    let hello = Frame::decode(body, Phase::Hello);
    let not_accepted = HandshakeRefusal::NotAccepted;
    assert!(
        matches!(hello, Ok(Frame::Hello(Hello::Refused(code))) if code == not_accepted),
        "{hello:?}"
    );
}

/// A station that was told its own address, or two processes with one key.
pub fn a_node_with_the_key_of_its_station_gets_no_link<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let own = [driver.station_address(&station)];
    let node = driver.start_node(key(1), &own).expect("it starts");
    assert!(!driver.connected(&node, 1, Duration::from_secs(1)));
    kit.node(2, &[&station]);
}

/// ```text
/// attacker > station: the length of a frame of 4097 bytes
/// station > attacker: hello not_accepted
/// ```
pub fn a_frame_too_long_for_a_handshake_is_refused_from_its_length<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let at = host(&driver.station_address(&station));
    let stream = TcpStream::connect(at).expect("the station accepts");
    let mut attacker = Peer::new::<D>(stream, Role::Node, 3);
    attacker.wire.write(&(HANDSHAKE_CAP + 1).to_be_bytes());
    refused(&attacker.read().expect("a hello"));
    assert_eq!(attacker.read(), None);
    assert_eq!(driver.seen(&station).counted("links_failed"), 1);
}
