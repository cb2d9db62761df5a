//! Order, gaps, restarts, numbers.

use tidings::code::ObjectFault;
use tidings::sim::Net;
use tidings::{ClientConfig, Instant, Item, Mode, Notice, Outcome, Publish, StationConfig};

use super::common::{EPOCH, Fact, TOPIC, at, id_of, ms, realm, secs, signer};
use super::{Node, open};

/// One publisher came out scrambled, because the first copy to arrive on any link decided the order.
#[test]
fn br_25_copies_race_on_two_links_and_the_faster_one_does_not_order() {
    let modes: [(Mode, &[&str], &[&str]); 3] = [
        (Mode::Ordered, &["1"], &["2", "3"]),
        (Mode::LatestOnly, &["1", "3"], &[]),
        (Mode::AsArrives, &["1", "3"], &["2"]),
    ];
    for (mode, before, after) in modes {
        let mut node = Node::new(2, open().mode(mode));
        node.seq(at(0), 0, 1);
        node.seq(at(1), 1, 3);
        node.seq(at(2), 0, 3);
        assert_eq!(node.words(), before, "{mode:?}");
        node.seq(at(3), 0, 2);
        assert_eq!(node.words(), after, "{mode:?}");
        assert_eq!(node.faults(ObjectFault::Duplicate), 1, "{mode:?}");
        node.time(at(2000));
        assert!(node.words().is_empty(), "{mode:?}: one delivery of 3");
    }
}

/// A fact that was given up counted as delivered, so that the fact itself was thrown away when it came.
#[test]
fn br_26_a_fact_that_was_skipped_is_delivered_late_and_once() {
    let mut node = Node::new(2, open());
    node.seq(at(0), 0, 1);
    node.seq(at(1), 0, 3);
    assert_eq!(node.words(), ["1"]);
    let due = node.client.poll_timeout();
    assert_eq!(
        due,
        Some(Instant::from_millis(251)),
        "from the first fact behind the gap"
    );
    node.time(at(250));
    assert!(node.words().is_empty());
    node.time(at(251));
    assert_eq!(node.words(), ["skipped 2..2", "3"]);
    node.seq(at(300), 0, 2);
    assert_eq!(node.words(), ["*2"]);
    node.seq(at(301), 1, 2);
    assert!(node.words().is_empty());
    assert_eq!(node.faults(ObjectFault::Duplicate), 1);
}

/// The same the whole way: a slow station brings what was given up, each fact comes once, each given-up number late.
#[test]
fn br_26_a_slow_station_brings_late_facts_the_whole_way() {
    let mut net = Net::new(26);
    let stations = [
        net.station(StationConfig::new(signer(100))),
        net.station(StationConfig::new(signer(101))),
    ];
    let reader = net.client(ClientConfig::new(signer(2)), &stations);
    let publisher = ClientConfig::new(signer(7)).replication_factor(1);
    let publisher = net.client(publisher, &stations);
    net.run_for(secs(1));
    let now = net.now();
    let stream = net.at(reader).subscribe(now, open()).expect("accepted");
    net.run_for(secs(1));
    net.delay(reader, 0, ms(900));
    // One at a time goes to the station with the most room: three at once use both.
    for number in 1..=60u64 {
        let now = net.now();
        let request = Publish::new(realm(), TOPIC, &number).expect("a number");
        net.at(publisher).publish(now, request).expect("room");
        if number % 3 == 0 {
            net.run_for(ms(20));
        }
    }
    net.run_for(secs(5));
    let items = net.items(reader, stream);
    let (mut seen, mut late, mut skipped) = (Vec::<u64>::new(), 0, 0);
    for item in &items {
        match item {
            Item::Fact(fact) => {
                seen.push(fact.seq());
                // What lies below the first one delivered was never waited for.
                late += u64::from(fact.late() && fact.seq() > seen[0]);
            }
            Item::Notice(notice) => match **notice {
                Notice::Skipped { first, last, .. } => skipped += last - first + 1,
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    assert!(skipped > 0, "the slow station was too slow for some");
    assert_eq!(late, skipped, "each that was given up came late");
    seen.sort_unstable();
    assert_eq!(seen, (1..=60).collect::<Vec<_>>(), "each once");
    let settled = net.settled(publisher);
    let routed = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Routed { .. });
    assert!(settled.iter().all(routed));
}

/// Two implementations numbered differently: nothing was lost, and every fact waited behind a gap that was none.
#[test]
fn br_27_numbers_that_count_wait_for_nothing_and_sparse_ones_are_never_missed() {
    let mut node = Node::new(1, open());
    for (time, seq) in [(0, 1), (5, 2), (20, 3)] {
        node.seq(at(time), 0, seq);
        assert_eq!(node.words(), [seq.to_string()], "at once");
    }
    let mut node = Node::new(1, open().sparse(vec![id_of(&signer(7))]));
    for (time, seq) in [(0, 1000), (5, 6000), (20, 21_000)] {
        let fact = Fact {
            epoch: None,
            ..Fact::numbered(seq)
        };
        node.fact(at(time), 0, fact);
    }
    node.time(at(2000));
    assert_eq!(node.words(), ["1000", "6000", "21000"]);
}

/// A publisher restarted at 1 and its readers heard nothing for hours, until it had passed its old number.
#[test]
fn br_28_a_restart_is_heard_at_once_in_every_mode() {
    for mode in [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives] {
        let mut node = Node::new(1, open().mode(mode));
        node.seq(at(0), 0, 5_000_000);
        node.time(at(300));
        assert_eq!(node.words(), ["5000000"], "{mode:?}");
        for seq in [1, 2] {
            let fact = Fact {
                epoch: Some(EPOCH + 1),
                ..Fact::numbered(seq)
            };
            node.fact(at(400 + seq), 0, fact);
        }
        assert_eq!(node.words(), ["restarted", "1", "2"], "{mode:?}");
    }
}

/// What the old numbering still held was lost with it: here it leaves in its order, late, behind its own gap.
#[test]
fn br_28_the_held_tail_of_the_old_numbering_runs_out() {
    let mut node = Node::new(1, open());
    node.seq(at(0), 0, 1);
    node.seq(at(10), 0, 3);
    let fact = Fact {
        epoch: Some(EPOCH + 1),
        ..Fact::numbered(1)
    };
    node.fact(at(20), 0, fact);
    node.time(at(1000));
    assert_eq!(node.words(), ["1", "restarted", "1", "skipped 2..2", "*3"]);
}

/// The gap between two numbers a peer chose was built as a list, until memory ran out; another subtraction went below zero.
#[test]
fn br_34_hostile_numbers_are_ranges_and_cost_nothing() {
    const TOP: u64 = (1 << 53) - 1;
    for mode in [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives] {
        for epoch in [None, Some(1), Some(EPOCH), Some(TOP)] {
            let mut node = Node::new(1, open().mode(mode));
            let baseline = node.client.memory().bytes();
            for (n, seq) in [TOP, TOP - 1, 1, 1 << 52, 2, TOP - 2]
                .into_iter()
                .enumerate()
            {
                let fact = Fact {
                    epoch,
                    ..Fact::numbered(seq)
                };
                node.fact(at(n as u64 * 300), 0, fact);
            }
            node.time(at(10_000));
            let told = node.words();
            assert!(told.len() <= 16, "{mode:?} {epoch:?}: {told:?}");
            let facts = told
                .iter()
                .filter(|word| word.trim_start_matches('*').parse::<u64>().is_ok());
            let superseded = node
                .client
                .subscription(node.stream)
                .map_or(0, |s| s.superseded);
            assert_eq!(
                facts.count() as u64 + superseded,
                6,
                "{mode:?} {epoch:?}: {told:?}"
            );
            let grown = node.client.memory().bytes() - baseline;
            assert!(grown < 64 * 1024, "{grown} bytes for six facts");
        }
    }
}

/// Numbers that no counter can have written are malformed, and nothing else happens.
#[test]
fn br_34_numbers_beyond_the_wire_are_malformed() {
    let mut node = Node::new(1, open());
    let beyond = 1 << 53;
    let numbers = [
        (Some(EPOCH), 0),
        (Some(EPOCH), beyond),
        (Some(EPOCH), u64::MAX >> 1),
        (Some(beyond), 1),
    ];
    for (epoch, seq) in numbers {
        let fact = Fact {
            epoch,
            ..Fact::numbered(seq)
        };
        node.fact(at(1), 0, fact);
    }
    assert_eq!(node.faults(ObjectFault::Malformed), 4);
    node.seq(at(2), 0, 1);
    assert_eq!(node.words(), ["1"]);
}
