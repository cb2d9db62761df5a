//! Peers that are there and no longer answer: a stopped process, a link of which one half is gone.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: the host's monotonic clock, in seconds. Bounded by: the
//! kit's patience.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tidings::Notice;
use tidings::code::CloseReason;
use tidings::wire::{Frame, Phase, Role};

use crate::Driver;
use crate::kit::{Kit, PATIENCE, host, id, key, open};
use crate::peer::Peer;

/// Short, and long enough for a busy machine to shake hands in between.
const EVERY: Duration = Duration::from_secs(2);

/// A station whose process was stopped keeps its sockets open. Its node finds out by itself, says so
/// and dials again.
pub fn a_station_that_stops_answering_is_left_and_dialled_again<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it has an address");
    let scheme = if D::SECURE { "tls" } else { "tcp" };
    let address = format!("{scheme}://{}@{at}", id(1));
    let node = driver
        .start_probing_node(key(2), &[address], EVERY)
        .expect("a node starts");
    let mut facts = driver
        .subscribe(&node, open("stopped/station"))
        .expect("subscribed");
    let (stream, _) = listener.accept().expect("the node dials");
    let mut peer = Peer::new::<D>(stream, Role::Station, 1);
    peer.shake_hands();
    peer.accept_subscription();
    assert!(driver.carried(&mut facts, 1, PATIENCE), "it is accepted");
    // From here on it is silent, and reads nothing.
    let since = Instant::now();
    let notice = kit.notice(&mut facts);
    let Notice::Interrupted { reason, .. } = notice else {
        panic!("an interruption, not {notice:?}");
    };
    assert_eq!(reason, CloseReason::LivenessLost);
    assert!(since.elapsed() >= 2 * EVERY, "{:?}", since.elapsed());
    // It hears why, once it reads, and is dialled again.
    let mut goodbye = None;
    while let Some(body) = peer.read() {
        if let Ok(Frame::Goodbye(said)) = Frame::decode(&body, Phase::Established) {
            goodbye = Some(said.reason);
        }
    }
    assert_eq!(goodbye, Some(CloseReason::LivenessLost));
    let (stream, _) = listener.accept().expect("the node dials again");
    let mut peer = Peer::new::<D>(stream, Role::Station, 1);
    peer.shake_hands();
    peer.accept_subscription();
    assert!(driver.carried(&mut facts, 1, PATIENCE), "it is accepted");
}

/// A node that still writes and no longer reads its station's probes.
pub fn a_node_of_which_one_half_is_gone_is_left_by_its_station<D: Driver>(driver: &D) {
    let settings = Kit::new(driver).settings(1);
    let settings = settings.configure(|config| config.probe_every(EVERY));
    let station = driver
        .start_station(settings)
        .expect("a station starts on a free port");
    let at = host(&driver.station_address(&station));
    let stream = TcpStream::connect(at).expect("the station accepts");
    let mut peer = Peer::new::<D>(stream, Role::Node, 2);
    peer.shake_hands();
    let since = Instant::now();
    let (mut asked, mut answered, mut goodbye) = (0, 0, None);
    while let Some(body) = peer.read() {
        match Frame::decode(&body, Phase::Established) {
            Ok(Frame::Ping(_)) => {
                asked += 1;
                // Its own probe is answered, which does not help it.
                let mut out = Vec::new();
                Frame::Ping(&[asked; 16]).encode_framed(&mut out);
                peer.wire.write(&out);
            }
            Ok(Frame::Pong(_)) => answered += 1,
            Ok(Frame::Goodbye(said)) => goodbye = Some(said.reason),
            other => panic!("nothing else is said: {other:?}"),
        }
    }
    assert_eq!(goodbye, Some(CloseReason::LivenessLost));
    assert_eq!((asked, answered), (2, 2));
    assert!(since.elapsed() >= 2 * EVERY, "{:?}", since.elapsed());
}
