//! Two sides in memory, some of them with something wrong.

use std::sync::Arc;

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{
    Acceptor, AlwaysResolvesServerRawPublicKeys, ClientHello, ResolvesServerCert,
};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, version};
use tidings::crypto::{Profile, SecretKey, Signer};
use tidings::link::{Link, LinkSettings, Step};
use tidings::wire::{Role, Split, next_frame};
use tidings::{LinkError, Now, WallMs};

use super::*;
use crate::verifier::Verifier;
use crate::{NodeKey, Tls};

fn secret(part: u8) -> SecretKey {
    SecretKey::from_seed([part; 32])
}

fn tls(part: u8) -> Tls {
    Tls::new(&NodeKey::new(secret(part))).unwrap()
}

/// A pair that is meant to come about.
fn pair() -> (Session, Session) {
    let (node, station) = (tls(1), tls(2));
    (node.dial(station.id()).unwrap(), station.answer().unwrap())
}

fn sent(session: &mut Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    while session.wants_write() {
        session.write_to(&mut bytes).unwrap();
    }
    bytes
}

/// Carries bytes both ways until nothing moves: what each side ended with, and what the link got.
fn carry(left: &mut Session, right: &mut Session) -> [(Option<TlsFault>, Vec<u8>); 2] {
    let mut ends = [(None, Vec::new()), (None, Vec::new())];
    let (near, far) = ends.split_at_mut(1);
    let hand_over = |bytes: &[u8], to: &mut Session, end: &mut (Option<TlsFault>, Vec<u8>)| {
        let mut plain = BytesMut::new();
        if end.0.is_none() {
            end.0 = to.receive(bytes, &mut plain).err();
            end.1.extend_from_slice(&plain);
        }
    };
    loop {
        let there = sent(left);
        hand_over(&there, right, &mut far[0]);
        let back = sent(right);
        hand_over(&back, left, &mut near[0]);
        if there.is_empty() && back.is_empty() {
            return ends;
        }
    }
}

/// What each side of a channel that does not come about says.
fn faults(left: &mut Session, right: &mut Session) -> [Option<TlsFault>; 2] {
    carry(left, right).map(|(fault, _)| fault)
}

/// How a side that is not ours differs from one of ours.
#[derive(Clone, Copy)]
struct Odd {
    shown: [u8; 32],
    signs: u8,
    alpn: Option<&'static [u8]>,
}

impl Odd {
    fn of(part: u8) -> Self {
        Self {
            shown: secret(part).public_key(),
            signs: part,
            alpn: Some(ALPN),
        }
    }

    fn certified(self) -> Arc<CertifiedKey> {
        let shown = CertificateDer::from(key::encode(&self.shown));
        let signer = Arc::new(NodeKey::new(secret(self.signs)));
        Arc::new(CertifiedKey::new(vec![shown], signer))
    }

    fn protocols(self) -> Vec<Vec<u8>> {
        self.alpn.map(<[u8]>::to_vec).into_iter().collect()
    }

    fn dials(self) -> Session {
        let resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(self.certified()));
        let mut config = client().with_client_cert_resolver(resolver);
        config.alpn_protocols = self.protocols();
        dialler(config)
    }

    fn answers(self) -> Session {
        let resolver = AlwaysResolvesServerRawPublicKeys::new(self.certified());
        answerer(Arc::new(resolver), self.protocols())
    }
}

fn client() -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { pin: None }))
}

fn dialler(config: ClientConfig) -> Session {
    let name = ServerName::try_from("station.example").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    Session::new(connection.into(), secret(9).node_id())
}

fn answerer(resolver: Arc<dyn ResolvesServerCert>, protocols: Vec<Vec<u8>>) -> Session {
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_client_cert_verifier(Arc::new(Verifier { pin: None }))
        .with_cert_resolver(resolver);
    config.alpn_protocols = protocols;
    let connection = ServerConnection::new(Arc::new(config)).unwrap();
    Session::new(connection.into(), secret(9).node_id())
}

/// What a channel with that exporter and this key at its other end is bound to.
fn proved(channel: Binding, key: u8) -> Binding {
    let Binding::Proved { exporter, .. } = channel else {
        panic!("{channel:?}");
    };
    let peer = secret(key).node_id();
    Binding::Proved { exporter, peer }
}

#[test]
fn both_sides_learn_the_others_key_and_export_the_same() {
    let (mut node, mut station) = pair();
    assert_eq!(faults(&mut node, &mut station), [None, None]);
    let (near, far) = (node.channel().unwrap(), station.channel().unwrap());
    assert_eq!(near, proved(near, 2));
    assert_eq!(far, proved(near, 1));
    // Of another session between the same two it is another.
    let (mut node, mut station) = pair();
    carry(&mut node, &mut station);
    assert_ne!(node.channel().unwrap(), near);
}

#[test]
fn the_key_exchange_withstands_a_quantum_computer() {
    let (mut node, mut station) = pair();
    carry(&mut node, &mut station);
    for side in [&node, &station] {
        let group = side.connection.negotiated_key_exchange_group().unwrap();
        assert_eq!(group.name(), rustls::NamedGroup::X25519MLKEM768);
    }
}

#[test]
fn a_dialler_names_nobody_and_a_station_gives_no_tickets() {
    let (mut node, mut station) = pair();
    let hello = sent(&mut node);
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut &hello[..]).unwrap();
    let accepted = acceptor.accept().unwrap().unwrap();
    assert_eq!(accepted.client_hello().server_name(), None);
    let id = secret(2).node_id();
    assert!(!hello.windows(8).any(|part| part == &id.as_bytes()[..8]));
    let mut none = BytesMut::new();
    station.receive(&hello, &mut none).unwrap();
    node.receive(&sent(&mut station), &mut none).unwrap();
    station.receive(&sent(&mut node), &mut none).unwrap();
    assert!(station.channel().is_some());
    assert!(!station.wants_write());
}

#[test]
fn neither_key_is_seen_by_one_who_only_listens() {
    let (mut node, mut station) = pair();
    let mut recorded = sent(&mut node);
    let mut none = BytesMut::new();
    station.receive(&recorded, &mut none).unwrap();
    let flight = sent(&mut station);
    node.receive(&flight, &mut none).unwrap();
    recorded.extend(flight);
    recorded.extend(sent(&mut node));
    for part in [1, 2] {
        let (key, id) = (secret(part).public_key(), secret(part).node_id());
        for secret in [&key, id.as_bytes()] {
            assert!(!recorded.windows(32).any(|bytes| bytes == secret));
        }
    }
}

#[test]
fn another_station_than_the_one_named_is_refused() {
    let mut node = tls(1).dial(secret(3).node_id()).unwrap();
    let mut station = tls(2).answer().unwrap();
    let said = faults(&mut node, &mut station);
    assert_eq!(
        said,
        [Some(TlsFault::WrongStation), Some(TlsFault::Refused)]
    );
    assert!(node.channel().is_none() && station.channel().is_none());
}

#[test]
fn a_public_key_alone_lets_nobody_in() {
    let stolen = |part| Odd {
        signs: 4,
        ..Odd::of(part)
    };
    let mut station = tls(2).answer().unwrap();
    let [_, said] = faults(&mut stolen(1).dials(), &mut station);
    assert_eq!(said, Some(TlsFault::ProofInvalid));
    assert!(station.channel().is_none());
    let mut node = tls(1).dial(secret(2).node_id()).unwrap();
    let [said, _] = faults(&mut node, &mut stolen(2).answers());
    assert_eq!(said, Some(TlsFault::ProofInvalid));
    assert!(node.channel().is_none());
}

#[test]
fn a_key_of_small_order_lets_nobody_in() {
    let mut identity = [0; 32];
    identity[0] = 1;
    let weak = Odd {
        shown: identity,
        ..Odd::of(4)
    };
    let mut station = tls(2).answer().unwrap();
    let [_, said] = faults(&mut weak.dials(), &mut station);
    assert_eq!(said, Some(TlsFault::BadKeyForm));
    let mut node = tls(1).dial(secret(2).node_id()).unwrap();
    let [said, _] = faults(&mut node, &mut weak.answers());
    assert_eq!(said, Some(TlsFault::BadKeyForm));
}

#[test]
fn a_station_with_a_certificate_is_none() {
    #[derive(Debug)]
    struct Certificate(Arc<CertifiedKey>);
    impl ResolvesServerCert for Certificate {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }
    let resolver = Arc::new(Certificate(Odd::of(2).certified()));
    let mut node = tls(1).dial(secret(2).node_id()).unwrap();
    let [said, _] = faults(&mut node, &mut answerer(resolver, vec![ALPN.to_vec()]));
    // This one refuses whoever offers raw keys alone; one that never heard of them goes on, and shows it.
    assert_eq!(said, Some(TlsFault::Refused));
    let unheard = rustls::PeerIncompatible::IncorrectCertificateTypeExtension;
    assert_eq!(TlsFault::of(&unheard.into()), TlsFault::NoRawKey);
    assert!(node.channel().is_none());
}

#[test]
fn a_node_without_a_key_is_none() {
    let mut config = client().with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let mut station = tls(2).answer().unwrap();
    let [_, said] = faults(&mut dialler(config), &mut station);
    assert_eq!(said, Some(TlsFault::NoRawKey));
}

#[test]
fn another_protocol_is_refused_by_either_side() {
    for alpn in [Some(&b"h2"[..]), None] {
        let odd = |part| Odd {
            alpn,
            ..Odd::of(part)
        };
        let mut station = tls(2).answer().unwrap();
        let [_, said] = faults(&mut odd(1).dials(), &mut station);
        assert_eq!(said, Some(TlsFault::WrongAlpn), "{alpn:?}");
        assert!(station.channel().is_none());
        let mut node = tls(1).dial(secret(2).node_id()).unwrap();
        let [said, _] = faults(&mut node, &mut odd(2).answers());
        assert_eq!(said, Some(TlsFault::WrongAlpn), "{alpn:?}");
        assert!(node.channel().is_none());
    }
}

#[test]
fn what_is_not_tls_is_said_to_be_none() {
    let (mut node, mut station) = pair();
    let mut opener = Vec::new();
    tidings::wire::Frame::Opener(tidings::wire::Opener { first: 1, last: 1 })
        .encode_framed(&mut opener);
    for plain in [&opener[..], b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let mut fresh = tls(2).answer().unwrap();
        let mut none = BytesMut::new();
        assert_eq!(fresh.receive(plain, &mut none), Err(TlsFault::NotTls));
        assert!(none.is_empty());
    }
    // A dialler that is answered in plain hears the same.
    sent(&mut node);
    let mut none = BytesMut::new();
    assert_eq!(node.receive(&opener, &mut none), Err(TlsFault::NotTls));
    drop(sent(&mut station));
}

#[test]
fn what_is_sealed_comes_out_and_is_written_when_the_socket_took_it() {
    /// Takes so many bytes at a time.
    struct Narrow(Vec<u8>, usize);
    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.1);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (mut node, mut station) = pair();
    carry(&mut node, &mut station);
    let body: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
    for width in [1000, 7, 100_000] {
        let mut socket = Narrow(Vec::new(), width);
        let (mut written, mut reports) = (0, 0);
        let mut got = BytesMut::new();
        while written < body.len() {
            let rest = &body[written..];
            let (one, two) = rest.split_at(rest.len() / 3);
            let sealed = node.seal(&[one, two]);
            assert!(sealed > 0 && sealed <= 64 * 1024);
            assert_eq!(node.seal(&[one]), 0, "sealed bytes wait");
            let mut left = sealed;
            while node.wants_write() {
                let taken = node.write_to(&mut socket).unwrap();
                assert!(taken.link <= taken.wire);
                left -= taken.link;
                reports += 1;
            }
            assert_eq!(left, 0);
            written += sealed;
            station
                .receive(&std::mem::take(&mut socket.0), &mut got)
                .unwrap();
        }
        assert_eq!(got, body);
        assert!(reports >= body.len() / width);
    }
    node.close();
    let mut none = BytesMut::new();
    station.receive(&sent(&mut node), &mut none).unwrap();
    assert!(station.has_ended() && none.is_empty());
}

#[test]
fn a_changed_byte_ends_the_channel() {
    let (mut node, mut station) = pair();
    carry(&mut node, &mut station);
    node.seal(&[b"one"]);
    let good = sent(&mut node);
    node.seal(&[b"two"]);
    let mut bad = sent(&mut node);
    *bad.last_mut().unwrap() ^= 1;
    let mut got = BytesMut::new();
    let said = station.receive(&[good, bad].concat(), &mut got);
    assert_eq!(said, Err(TlsFault::Protocol));
    assert_eq!(&got[..], b"one", "what came before it counts");
}

/// The two ends of a link whose frames are carried by hand.
fn links(dialler: Binding, answerer: Binding) -> Result<(), LinkError> {
    let now = Now::new(tidings::Instant::ORIGIN, WallMs::new(1_790_000_000_000));
    let (node, station) = (secret(1), secret(2));
    let settings =
        |key: &SecretKey, role| LinkSettings::new(Profile::ED25519, key.public_key(), role);
    // Nobody is pinned here: the binding alone is what is looked at.
    let mut near = Link::dial(
        now.mono,
        settings(&node, Role::Node),
        None,
        dialler,
        [5; 32],
    )?;
    let mut far = Link::accept(
        now.mono,
        settings(&station, Role::Station),
        answerer,
        [6; 32],
    )?;
    while !near.is_up() {
        let mut out = Vec::new();
        while near.poll_transmit(&mut out) {}
        if let Ok(Split::Frame { body, .. }) = next_frame(&out, 4096)
            && let Step::Verified(_) = far.handle_frame(now, body, &station)?
        {
            far.admit(&station)?;
        }
        let mut out = Vec::new();
        while far.poll_transmit(&mut out) {}
        if let Ok(Split::Frame { body, .. }) = next_frame(&out, 4096) {
            near.handle_frame(now, body, &node)?;
        }
    }
    Ok(())
}

#[test]
fn a_handshake_relayed_between_two_channels_is_refused() {
    // The one in the middle holds a key of its own, which both sides may even expect.
    let middle = tls(3);
    let (mut node, mut near) = (tls(1).dial(middle.id()).unwrap(), middle.answer().unwrap());
    let (mut far, mut station) = (
        middle.dial(secret(2).node_id()).unwrap(),
        tls(2).answer().unwrap(),
    );
    assert_eq!(faults(&mut node, &mut near), [None, None]);
    assert_eq!(faults(&mut far, &mut station), [None, None]);
    let (here, there) = (node.channel().unwrap(), station.channel().unwrap());
    assert_eq!(links(here, there), Err(LinkError::KeyMismatch));
    // Even who overlooked whose key that is would find that the proof is for another channel.
    let relayed = links(proved(here, 2), proved(there, 1));
    assert_eq!(relayed, Err(LinkError::ProofInvalid));
    let one = links(proved(here, 2), proved(here, 1));
    assert_eq!(one, Ok(()), "one channel is");
}
