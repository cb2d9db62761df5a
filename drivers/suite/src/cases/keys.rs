//! Whose key it is.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what comes over the socket. Bounded by: the
//! kit's patience.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tidings::LinkError;
use tidings::code::HandshakeRefusal;
use tidings::wire::Role;

use crate::Driver;
use crate::kit::{Kit, host, id, key, until};
use crate::peer::Peer;

/// A side that proves one key to the channel and another in the handshake is taken by neither a station nor a node, though it holds both.
pub fn a_second_key_in_the_handshake_is_refused<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let at = host(&driver.station_address(&station));
    let stream = TcpStream::connect(at).expect("the station accepts");
    let mut node = Peer::of_two_keys::<D>(stream, Role::Node, 2, 3);
    let shaken = node.try_hands();
    if !D::SECURE {
        // There is no channel that could know better.
        return shaken.expect("an honest handshake");
    }
    let refused = LinkError::RefusedByStation(HandshakeRefusal::NotAccepted);
    assert_eq!(shaken, Err(refused));
    until("the connection ends", || node.read().is_none());
    until("the link ends", || {
        driver.seen(&station).status.links.is_empty()
    });
    assert_eq!(driver.seen(&station).counted("key_mismatches"), 1);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it has an address");
    let dialling = driver.start_node(key(2), &[format!("tls://{}@{at}", id(1))]);
    let dialling = dialling.expect("a node starts");
    let (stream, _) = listener.accept().expect("the node dials");
    let mut station = Peer::of_two_keys::<D>(stream, Role::Station, 1, 4);
    // The node goes without a word: a dialler has none to say.
    assert_eq!(station.try_hands(), Err(LinkError::HandshakeTimeout));
    assert!(!driver.connected(&dialling, 1, Duration::from_millis(100)));
}
