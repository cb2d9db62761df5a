//! Secure links: who is let in, and what a listener on the way sees.

mod common;

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{PATIENCE, fact, key, open, realm, subscribe, up};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tidings::Publish;
use tidings_suite::help::Anything;
use tidings_tokio::{Node, StationServer, TlsFault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn station() -> StationServer {
    let builder = StationServer::builder(key(1)).listen("tls://127.0.0.1:0");
    builder.unwrap().start().await.unwrap()
}

fn node(part: u8, address: &str) -> tidings_tokio::NodeBuilder {
    Node::builder(key(part)).station(address).unwrap()
}

/// Waits until the station has counted a fault.
async fn counted(station: &StationServer, fault: TlsFault) {
    for _ in 0..1000 {
        if station.tls_faults().of(fault) > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{fault:?} in time, not {:?}", station.tls_faults());
}

/// A client without a key of its own; it reads until the station closes.
async fn keyless(at: std::net::SocketAddr, alpn: &'static [u8]) {
    let attempt = move || {
        let provider: CryptoProvider = aws_lc_rs::default_provider();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anything))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        let name = ServerName::from(at.ip());
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = std::net::TcpStream::connect(at).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = rustls::Stream::new(&mut connection, &mut socket);
        stream.write_all(b"let me in").ok();
        let refused = stream.read(&mut [0; 16]);
        assert!(!matches!(refused, Ok(1..)), "{refused:?}");
    };
    tokio::task::spawn_blocking(attempt).await.unwrap();
}

/// A client without a key, which asks for that protocol, gets no link and is counted as that fault.
async fn is_turned_away(alpn: &'static [u8], fault: TlsFault) {
    let station = station().await;
    keyless(station.local_addr(), alpn).await;
    counted(&station, fault).await;
    assert!(station.status().links.is_empty());
    station.close().await;
}

#[tokio::test]
async fn a_peer_without_a_raw_key_is_turned_away() {
    is_turned_away(b"tidings/1", TlsFault::NoRawKey).await;
}

#[tokio::test]
async fn another_protocol_is_turned_away() {
    is_turned_away(b"h2", TlsFault::WrongAlpn).await;
}

/// Forwards one connection and keeps all that passes.
async fn recorder(to: std::net::SocketAddr) -> (std::net::SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let tape = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tape);
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(to).await.unwrap();
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        for (mut from, mut to) in [(near_in, far_out), (far_in, near_out)] {
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut buffer = vec![0; 16 * 1024];
                while let Ok(count @ 1..) = from.read(&mut buffer).await {
                    kept.lock().unwrap().extend_from_slice(&buffer[..count]);
                    to.write_all(&buffer[..count]).await.unwrap();
                }
            });
        }
    });
    (at, tape)
}

#[tokio::test]
async fn a_recorded_link_shows_neither_payload_nor_topic_nor_who_it_was() {
    const TOPIC: &str = "quite/secret/topic";
    const PAYLOAD: &str = "nobody is to read this";
    let said = |tape: &[u8], secret: &[u8]| tape.windows(secret.len()).any(|part| part == secret);
    for scheme in ["tls", "tcp"] {
        let builder = StationServer::builder(key(1)).listen(&format!("{scheme}://127.0.0.1:0"));
        let station = builder.unwrap().start().await.unwrap();
        let (at, tape) = recorder(station.local_addr()).await;
        let through = format!("{scheme}://{}@{at}", station.id());
        let node = up(node(2, &through)).await;
        let mut facts = subscribe(&node, open(TOPIC)).await;
        let publish = Publish::new(realm(), TOPIC, PAYLOAD).unwrap();
        node.publish(publish).await.unwrap();
        assert_eq!(fact(&mut facts).await.decode::<String>().unwrap(), PAYLOAD);
        let tape = tape.lock().unwrap().clone();
        let (id, realm) = (node.id(), realm());
        let key = tidings::crypto::Signer::public_key(&key(2));
        let secrets: [&[u8]; 5] = [
            TOPIC.as_bytes(),
            PAYLOAD.as_bytes(),
            id.as_bytes(),
            &key,
            realm.as_bytes(),
        ];
        for secret in secrets {
            // Without TLS they are all there, so the search finds what it looks for.
            assert_eq!(said(&tape, secret), scheme == "tcp", "{secret:?}");
        }
    }
}
