//! Who takes more than a share, and who never comes to an end.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: the host's monotonic clock, in seconds. Bounded by: the
//! deadlines of a handshake, and the kit's patience.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tidings::code::HandshakeRefusal;
use tidings::wire::{Frame, Hello, Phase, Role};
use tidings_common::{Crowd, DoorLimits};
use tidings_tls::TlsFault;

use super::channels::fails;
use crate::Driver;
use crate::kit::{Kit, PATIENCE, host, key, until};
use crate::wire::Wire;

/// Of another address than nodes dial from.
const CROWD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// At a time.
const HANDSHAKES: usize = 4;
/// Handshakes included.
const LINKS: usize = 6;

fn shares() -> DoorLimits {
    let mut limits = DoorLimits::default();
    limits.handshakes_per_address = HANDSHAKES;
    limits.links_per_address = LINKS;
    limits.bound_loopback = true;
    limits
}

/// A connection from that address.
fn from(source: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).expect("a socket");
    let source = SocketAddr::new(source, 0);
    socket
        .bind(&source.into())
        .expect("an address of this host");
    socket.connect(&to.into()).expect("the system accepts");
    TcpStream::from(socket)
}

/// Whether it is closed within that time, unread bytes or not. What comes before the end does not matter.
pub(crate) fn ends(mut stream: &TcpStream, within: Duration) -> bool {
    let until = Instant::now() + within;
    let mut bytes = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        stream.set_read_timeout(Some(left)).expect("a timeout");
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return false,
                _ => return true,
            },
        }
    }
}

/// Whether a connection is closed, over plain TCP with a word: the station is full.
fn is_turned_away<D: Driver>(stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    if D::SECURE {
        return ends(&stream, PATIENCE);
    }
    let mut wire = Wire::plain(stream);
    let said = wire.frame(4096).expect("it says why");
    let said = Frame::decode(&said, Phase::Challenge);
    let full = Hello::Refused(HandshakeRefusal::Full);
    assert!(
        matches!(&said, Ok(Frame::Hello(hello)) if *hello == full),
        "{said:?}"
    );
    wire.frame(4096).is_none()
}

/// A host that opens as many connections as it can has its share and no more: the next one is closed before it costs anything, and
/// others do not notice.
pub fn an_address_has_no_more_than_its_share_and_others_get_in<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = driver.start_station(kit.settings(1).doors(shares()));
    let station = station.expect("a station starts on a free port");
    let at = host(&driver.station_address(&station));
    let at: SocketAddr = at.parse().expect("it listens at a number");
    let (share, crowd) = match D::SECURE {
        true => (HANDSHAKES, Crowd::AddressHandshakes),
        false => (LINKS, Crowd::AddressLinks),
    };
    let mut silent: Vec<TcpStream> = (0..share).map(|_| from(CROWD, at)).collect();
    assert!(is_turned_away::<D>(from(CROWD, at)), "one more is closed");
    for stream in &silent {
        assert!(!ends(stream, Duration::from_millis(20)), "others are not");
    }
    let seen = driver.seen(&station);
    assert_eq!(seen.doors.refused(crowd), 1);
    assert_eq!((seen.doors.open, seen.doors.addresses), (share, 1));
    until("it is counted", || {
        driver.seen(&station).io.refused_connections >= 1
    });
    let _node = kit.node(2, &[&station]);
    // Whoever leaves makes room for another of that address, though a handshake that failed takes its place for a second.
    silent.truncate(1);
    until("they are gone", || driver.seen(&station).doors.open == 2);
    if D::SECURE {
        assert_eq!(driver.seen(&station).doors.handshakes, 1);
        std::thread::sleep(Duration::from_secs(1));
    }
    let again = from(CROWD, at);
    assert!(!ends(&again, Duration::from_millis(200)), "there is room");
    until("both are in", || driver.seen(&station).doors.open == 3);
    drop((silent, again));
    until("all are gone", || driver.seen(&station).doors.open == 1);
}

/// Keys cost nothing, so an address does not have more links for having more of them.
pub fn an_address_with_many_keys_has_no_more_links_than_its_share<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = driver.start_station(kit.settings(1).doors(shares()));
    let station = station.expect("a station starts on a free port");
    let at = host(&driver.station_address(&station));
    let at: SocketAddr = at.parse().expect("it listens at a number");
    let mut links = Vec::new();
    for part in 0..LINKS as u8 {
        let stream = from(CROWD, at);
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        links.push(match D::SECURE {
            true => Wire::secure(stream, Role::Node, 100 + part).0,
            false => Wire::plain(stream),
        });
        let is_in = || driver.seen(&station).status.links.len() == links.len();
        until("it is a link", is_in);
    }
    assert!(is_turned_away::<D>(from(CROWD, at)), "one more is closed");
    let seen = driver.seen(&station);
    assert_eq!(seen.doors.refused(Crowd::AddressLinks), 1);
    assert_eq!((seen.doors.open, seen.doors.handshakes), (LINKS, 0));
    kit.node(2, &[&station]);
}

/// Bytes that trickle in do not make a handshake last longer, and when it is over its place is free.
pub fn a_handshake_that_never_ends_is_closed_in_time_and_its_place_is_free<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let mut one = shares();
    (one.handshakes_per_address, one.links_per_address) = (1, 1);
    let station = driver.start_station(kit.settings(1).doors(one));
    let station = station.expect("a station starts on a free port");
    let at = host(&driver.station_address(&station));
    let at: SocketAddr = at.parse().expect("it listens at a number");
    // A handshake of TLS has 10 s and a second to hear why it is over; one of a link has 30 s.
    let (head, (least, most)): (&[u8], _) = match D::SECURE {
        true => (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (9, 24)),
        false => (b"\x00\x00\x02\x00", (29, 44)),
    };
    let mut slow = from(IpAddr::V4(Ipv4Addr::LOCALHOST), at);
    let since = Instant::now();
    for byte in head.iter().chain(std::iter::repeat(&0)) {
        if slow.write_all(&[*byte]).is_err() || ends(&slow, Duration::from_millis(250)) {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(most + 20), "it ends");
    }
    let took = since.elapsed();
    assert!(took >= Duration::from_secs(least), "{took:?}");
    assert!(took <= Duration::from_secs(most), "{took:?}");
    drop(slow);
    let _inside = kit.node(2, &[&station]);
    if D::SECURE {
        // The door is closed to one more of that address, which is told as that.
        let address = driver.station_address(&station);
        let node = driver.start_node(key(3), &[address]).expect("it starts");
        fails(driver, &node, TlsFault::Closed.text());
    }
    let seen = driver.seen(&station);
    let timeouts = match D::SECURE {
        true => seen.tls_faults.of(TlsFault::HandshakeTimeout),
        false => seen.counted("links_failed"),
    };
    assert_eq!(timeouts, 1);
}
