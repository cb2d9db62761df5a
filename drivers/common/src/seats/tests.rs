use super::*;
use crate::wire::tests::{Pipe, ends, sessions};
use crate::{NodeSettings, StationSettings};
use tidings::crypto::SecretKey;
use tidings::{Client, LinkState, Station};

type Node = Seats<Client, Pipe>;
type Relay = Seats<Station, Pipe>;

fn key(part: u8) -> SecretKey {
    SecretKey::from_seed([part; 32])
}

fn node() -> Node {
    let station = key(1).node_id();
    let settings = NodeSettings::new(key(2)).station(&format!("tls://{station}@127.0.0.1:1"));
    let parts = settings.unwrap().build().unwrap();
    Seats::new(parts.client, parts.clock, 10)
}

fn relay() -> Relay {
    let settings = StationSettings::new(key(1)).listen("tls://127.0.0.1:0");
    let parts = settings.unwrap().build().unwrap();
    Seats::new(parts.station, parts.clock, 1000)
}

/// What the node wants to be connected to first.
fn dial(node: &mut Node) -> Dial {
    match node.step() {
        Did::Dial(dial) => dial,
        other => panic!("a dial, not {other:?}"),
    }
}

/// Both ends of one connection in memory, where nothing tells of events.
fn connect(node: &mut Node, relay: &mut Relay) -> [usize; 2] {
    let dial = dial(node);
    let ((near, far), (dialling, answering)) = (ends(), sessions());
    let numbers = [node.number(), relay.number()];
    let near = Wire::new(near, Some(dialling), None);
    node.admit(numbers[0], near, Some((dial.station, 1)));
    relay.admit(numbers[1], Wire::new(far, Some(answering), None), None);
    numbers
}

/// Lets both go on until it holds.
fn run(
    node: &mut Node,
    relay: &mut Relay,
    numbers: [usize; 2],
    holds: impl Fn(&Node, &Relay) -> bool,
) {
    for _ in 0..1000 {
        if holds(node, relay) {
            return;
        }
        node.push(numbers[0]);
        relay.push(numbers[1]);
        for _ in 0..4 {
            node.step();
            relay.step();
        }
    }
    panic!("it holds in time");
}

fn is_up(node: &Node) -> bool {
    let links = node.machine().status().links;
    links.iter().any(|link| link.state == LinkState::Up)
}

#[test]
fn a_connection_becomes_a_link_and_ends_on_both_sides() {
    let (mut node, mut relay) = (node(), relay());
    let numbers = connect(&mut node, &mut relay);
    assert!(node.owns(numbers[0]) && !node.owns(9));
    run(&mut node, &mut relay, numbers, |node, _| is_up(node));
    assert_eq!(relay.machine().status().links.len(), 1);
    assert!(node.io.bytes_written > 0 && relay.io.bytes_read > 0);
    assert!(node.socket(numbers[0]).is_some());
    node.close();
    run(&mut node, &mut relay, numbers, |node, relay| {
        node.is_closed() && relay.machine().status().links.is_empty()
    });
    assert!(node.socket(numbers[0]).is_none());
    // A closed one dials no more, and a killed one has nothing left.
    assert!(!matches!(node.step(), Did::Dial(_)));
    relay.kill();
    assert!(relay.is_closed());
}

#[test]
fn an_attempt_that_came_to_nothing_asks_for_the_next_address_and_says_why() {
    let (mut node, mut relay) = (node(), relay());
    let first = dial(&mut node);
    assert_eq!((first.next, first.failure), (0, ""));
    let (near, mut far) = ends();
    far.shut().unwrap();
    let number = node.number();
    let wire = Wire::new(near, Some(sessions().0), None);
    node.admit(number, wire, Some((first.station, 1)));
    let again = (0..4).find_map(|_| match node.step() {
        Did::Dial(dial) => Some(dial),
        _ => None,
    });
    let again = again.expect("the next address");
    assert_eq!((again.next, again.failure), (1, "closed"));
    node.dial_failed(again);
    assert_eq!(
        node.machine().status().links[0].dial_failure,
        Some("closed")
    );
    // One that was accepted is nobody's to dial again, and is counted.
    let (near, mut far) = ends();
    far.shut().unwrap();
    let number = relay.number();
    relay.admit(number, Wire::new(near, Some(sessions().1), None), None);
    for _ in 0..4 {
        assert!(!matches!(relay.step(), Did::Dial(_)));
    }
    assert_eq!(relay.io.refused_connections, 1);
    assert_eq!(relay.tls_faults.total(), 1);
    assert!(relay.socket(number).is_none());
}

#[test]
fn the_turn_of_what_is_no_connection_is_the_loops() {
    let mut relay = relay();
    let number = relay.number();
    let turn =
        |relay: &mut Relay| (0..4).any(|_| matches!(relay.step(), Did::Turn(at) if at == number));
    assert!(turn(&mut relay));
    assert!(!turn(&mut relay));
    let soon = relay.now().mono;
    relay.arm(number, soon);
    assert!(turn(&mut relay));
    relay.arm(number, soon);
    relay.forget(number);
    assert!(!turn(&mut relay));
}

#[test]
fn a_name_is_looked_up_beside_the_loop_and_nobody_connects_after_the_end() {
    let mut node = node();
    let first = dial(&mut node);
    let named = StationAddress::parse("tcp://localhost:7400").unwrap();
    node.look_up(first, &named);
    let found = |node: &mut Node| {
        (0..2000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            match node.step() {
                Did::Found(dial, sockets) => Some((dial, sockets)),
                _ => None,
            }
        })
    };
    let (again, sockets) = found(&mut node).expect("this host has its name");
    assert_eq!((again.station, again.next), (first.station, 0));
    assert!(sockets.iter().all(|socket| socket.ip().is_loopback()));
    // Nobody is called so, which is told like any other dial that came to nothing.
    let nowhere = StationAddress::parse("tcp://nowhere.invalid:7400").unwrap();
    node.look_up(again, &nowhere);
    let told = |node: &Node| node.machine().status().links[0].dial_failure;
    for _ in 0..20_000 {
        if told(&node) == Some("unknown_host") {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        assert!(!matches!(node.step(), Did::Found(..)));
    }
    assert_eq!(told(&node), Some("unknown_host"));
    node.look_up(again, &named);
    node.close();
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..100 {
        assert!(!matches!(node.step(), Did::Found(..)));
    }
    assert!(node.is_closed());
}
