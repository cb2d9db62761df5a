//! What sockets do to a driver: block one way, run out.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what comes out of a driver. Bounded by: the
//! kit's patience.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tidings::{Item, Publish};

use crate::Driver;
use crate::kit::{Kit, PATIENCE, QUIET, host, id, key, numbered, open, realm, until};

/// Forwards one connection to `to`; what comes back from there only while `back` says so.
fn valve(to: SocketAddr, back: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it has an address");
    thread::spawn(move || -> std::io::Result<()> {
        let (mut near, _) = listener.accept()?;
        let mut far = TcpStream::connect(to)?;
        let (mut near_out, mut far_in) = (near.try_clone()?, far.try_clone()?);
        thread::spawn(move || {
            let mut buffer = vec![0; 4096];
            loop {
                if !back.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                }
                match far_in.read(&mut buffer) {
                    Ok(count @ 1..) if near_out.write_all(&buffer[..count]).is_ok() => {}
                    _ => return,
                }
            }
        });
        std::io::copy(&mut near, &mut far)?;
        Ok(())
    });
    at
}

/// A station that cannot write to a node goes on reading from it.
pub fn a_blocked_write_does_not_stop_reading<D: Driver>(driver: &D) {
    const FACTS: u64 = 150;
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let reader = kit.node(2, &[&station]);
    let mut facts = kit.subscribe(&reader, open("sockets/blocked"), 1);
    let at = host(&driver.station_address(&station));
    let back = Arc::new(AtomicBool::new(true));
    let at = valve(at.parse().expect("numbers"), Arc::clone(&back));
    let scheme = if D::SECURE { "tls" } else { "tcp" };
    let through = driver.start_node(key(3), &[format!("{scheme}://{}@{at}", id(1))]);
    let through = through.expect("a node starts");
    assert!(driver.connected(&through, 1, PATIENCE), "it connects");
    // It hears itself, so the station has far more to write to it than the sockets between hold.
    let mut own = kit.subscribe(&through, open("sockets/blocked"), 1);
    back.store(false, Ordering::SeqCst);
    let large: String = "x".repeat(100_000);
    for n in 0..FACTS {
        let request = Publish::new(realm(), "sockets/blocked", &(n, &large));
        let sent = driver.send(&through, request.expect("a payload"));
        sent.expect("there is room");
    }
    let heard = |item: Item| match item {
        Item::Fact(fact) => fact.decode::<(u64, String)>().expect("what was sent").0,
        other => panic!("a fact, not {other:?}"),
    };
    for n in 0..FACTS {
        assert_eq!(heard(kit.item(&mut facts)), n);
    }
    let mut next = 0;
    while let Some(item) = driver.next(&mut own, QUIET) {
        assert_eq!(heard(item), next);
        next += 1;
    }
    assert!(next < FACTS / 2, "the way back was shut: {next}");
    back.store(true, Ordering::SeqCst);
    for n in next..FACTS {
        assert_eq!(heard(kit.item(&mut own)), n);
    }
}

/// A station that has no file descriptor left keeps the links it has, and takes new ones when there is room again. The case runs in a
/// process of its own, which has few.
pub fn a_station_out_of_file_descriptors_goes_on_accepting_later<D: Driver>(driver: &D) {
    const INSIDE: &str = "TIDINGS_SUITE_FEW_DESCRIPTORS";
    const CASE: &str = "a_station_out_of_file_descriptors_goes_on_accepting_later";
    if cfg!(not(unix)) {
        return;
    }
    if std::env::var_os(INSIDE).is_none() {
        let inside = format!("ulimit -n 48; exec \"$0\" --exact {CASE}");
        let mut command = Command::new("sh");
        command.arg("-c").arg(inside).env(INSIDE, "1");
        command.arg(std::env::current_exe().expect("a program"));
        let output = command.output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout);
        // A name that fits nothing would run nothing, and succeed.
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let reader = kit.node(2, &[&station]);
    let mut facts = kit.subscribe(&reader, open("sockets/exhausted"), 1);
    let at = host(&driver.station_address(&station));
    let mut taken = Vec::new();
    while let Ok(stream) = TcpStream::connect(&at) {
        taken.push(stream);
    }
    let refused = || driver.seen(&station).io.refused_connections > 0;
    until("it ran out", refused);
    kit.routed(&reader, numbered("sockets/exhausted", 0));
    kit.numbers(&mut facts, 0, 1);
    drop(taken);
    let late = kit.node(3, &[&station]);
    kit.routed(&late, numbered("sockets/exhausted", 1));
    kit.numbers(&mut facts, 1, 2);
}
