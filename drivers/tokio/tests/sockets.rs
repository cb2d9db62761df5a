//! What sockets do to a driver: block one way, run out, vanish with their runtime.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{PATIENCE, fact, key, node, number, numbered, open, realm, station, subscribe, up};
use tidings::Publish;
use tidings_tokio::Node;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards one connection to `to`; what comes back from there only while `back` says so.
async fn valve(to: std::net::SocketAddr, back: Arc<AtomicBool>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(to).await.unwrap();
        let (mut near_in, mut near_out) = near.into_split();
        let (mut far_in, mut far_out) = far.into_split();
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            loop {
                if !back.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    continue;
                }
                match far_in.read(&mut buffer).await {
                    Ok(bytes) if bytes > 0 => near_out.write_all(&buffer[..bytes]).await.unwrap(),
                    _ => return,
                }
            }
        });
        tokio::io::copy(&mut near_in, &mut far_out).await.ok();
    });
    at
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_write_does_not_stop_reading() {
    const FACTS: u64 = 200;
    let station = station().socket_buffers(4096).start().await.unwrap();
    let reader = up(node(2, &station)).await;
    let mut facts = subscribe(&reader, open("sockets/blocked")).await;
    let back = Arc::new(AtomicBool::new(true));
    let at = valve(station.local_addr(), Arc::clone(&back)).await;
    let through = Node::builder(key(3))
        .station(&format!("tcp://{at}"))
        .unwrap();
    let through = up(through).await;
    // It hears itself, so the station has far more to write to it than the sockets between hold.
    let mut own = subscribe(&through, open("sockets/blocked")).await;
    back.store(false, Ordering::SeqCst);
    let large: String = "x".repeat(20_000);
    let mut pending = Vec::new();
    for n in 0..FACTS {
        let request = Publish::new(realm(), "sockets/blocked", &(n, &large)).unwrap();
        pending.push(through.try_publish(request).unwrap());
    }
    for n in 0..FACTS {
        let heard: (u64, String) = fact(&mut facts).await.decode().unwrap();
        assert_eq!(heard.0, n);
    }
    let unread = own.status().unwrap();
    assert!(
        unread.delivered < FACTS / 2,
        "the way back was shut: {unread:?}"
    );
    back.store(true, Ordering::SeqCst);
    for n in 0..FACTS {
        let heard: (u64, String) = fact(&mut own).await.decode().unwrap();
        assert_eq!(heard.0, n);
    }
    for pending in pending {
        pending.await;
    }
}

#[tokio::test]
async fn copies_that_race_over_a_slowed_station_are_one_fact() {
    let fast = station().start().await.unwrap();
    let slow = tidings_tokio::StationServer::builder(key(9))
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .delay_writes(Duration::from_millis(15));
    let slow = slow.start().await.unwrap();
    let both = |part| node(part, &fast).station(&slow.address()).unwrap();
    let (reader, writer) = (both(2).start().unwrap(), both(3).start().unwrap());
    reader.connected(2, PATIENCE).await.unwrap();
    writer.connected(2, PATIENCE).await.unwrap();
    let mut facts = reader.subscribe(open("sockets/race")).unwrap();
    facts.carried(2, PATIENCE).await.unwrap();
    for n in 0..100 {
        writer.publish(numbered("sockets/race", n)).await.unwrap();
    }
    for n in 0..100 {
        assert_eq!(number(&fact(&mut facts).await), n);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(facts.status().unwrap().queued, 0, "{:?}", facts.status());
    let duplicates = tidings::code::ObjectFault::Duplicate;
    let counted = reader.status().faults.of(duplicates);
    assert_eq!(counted, 100, "{:?}", reader.status());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_checked_by_other_threads_change_nothing_else() {
    let station = station().start().await.unwrap();
    let asked = node(2, &station).verify_threads(2);
    let (reader, writer) = (up(asked).await, up(node(3, &station)).await);
    let mut facts = subscribe(&reader, open("sockets/asked")).await;
    let publishing = tokio::spawn(async move {
        for n in 0..500 {
            writer.publish(numbered("sockets/asked", n)).await.unwrap();
        }
    });
    for n in 0..500 {
        assert_eq!(number(&fact(&mut facts).await), n);
    }
    publishing.await.unwrap();
}

#[test]
fn a_runtime_that_ends_first_takes_nobody_with_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (station, node, facts, pending) = runtime.block_on(async {
        let station = station().start().await.unwrap();
        let node = up(node(2, &station)).await;
        let facts = subscribe(&node, open("sockets/runtime")).await;
        let pending = node.try_publish(numbered("sockets/runtime", 0)).unwrap();
        (station, node, facts, pending)
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    assert!(
        node.status().links.iter().all(|line| line.link.is_none()),
        "{:?}",
        node.status()
    );
    drop((facts, pending, node, station));
}

#[cfg(unix)]
mod exhaustion {
    use super::*;

    /// Runs the test below in a process with few file descriptors.
    #[test]
    fn a_station_out_of_file_descriptors_goes_on_accepting_later() {
        let me = std::env::current_exe().unwrap();
        let status = std::process::Command::new("sh")
            .args([
                "-c",
                "ulimit -n 48; exec \"$0\" --ignored --exact exhaustion::inside",
            ])
            .arg(me)
            .status()
            .unwrap();
        assert!(status.success());
    }

    #[tokio::test]
    #[ignore = "run by the test above, which limits file descriptors first"]
    async fn inside() {
        let station = station().start().await.unwrap();
        let reader = up(node(2, &station)).await;
        let mut facts = subscribe(&reader, open("sockets/exhausted")).await;
        let mut taken = Vec::new();
        while let Ok(stream) = TcpStream::connect(station.local_addr()).await {
            taken.push(stream);
        }
        for _ in 0..100 {
            if station.io().refused_connections > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(
            station.io().refused_connections > 0,
            "it ran out: {:?}",
            station.io()
        );
        // Those it has go on, and new ones come when there is room again.
        reader
            .publish(numbered("sockets/exhausted", 0))
            .await
            .unwrap();
        assert_eq!(number(&fact(&mut facts).await), 0);
        taken.clear();
        let late = up(node(3, &station)).await;
        late.publish(numbered("sockets/exhausted", 1))
            .await
            .unwrap();
        assert_eq!(number(&fact(&mut facts).await), 1);
    }
}
