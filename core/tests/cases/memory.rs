//! What is remembered and for how long; what is exactly full.

use tidings::code::ObjectFault;
use tidings::sim::START;
use tidings::{
    ClientConfig, ClientLimits, Intake, Sources, StationConfig, StationLimits, Subscribe,
};

use super::common::{EPOCH, Fact, Far, at, realm, signer, station};
use super::{Node, open, publish, subscribe};

/// What is read when `more` than a capacity came: what was lost, then the rest.
fn read(capacity: usize, more: usize, lost: &str, word: &str) -> Vec<String> {
    let lost = (more > 0).then(|| lost.to_string());
    let rest = (1 + more..=capacity + more).map(|n| format!("{word}{n}"));
    lost.into_iter().chain(rest).collect()
}

/// A stream reported a lag when it was exactly full, because its end took a place; another rounded its capacity up.
#[test]
fn br_15_a_stream_of_exactly_n_loses_nothing_and_one_more_is_counted() {
    for capacity in [1, 2, 3, 5, 8] {
        for more in [0, 1] {
            let mut node = Node::new(1, open().queue_capacity(capacity));
            for seq in 1..=(capacity + more) as u64 {
                node.seq(at(seq), 0, seq);
            }
            let ended = node.client.unsubscribe(at(50), node.stream);
            assert_eq!(ended, Ok(()));
            let mut wanted = read(capacity, more, "lagged 1 0", "");
            wanted.push("ended".into());
            assert_eq!(node.words(), wanted, "{capacity} and {more}");
        }
    }
}

/// The same at a station's ring: a reader exactly a ring behind is read in full, one more is told.
#[test]
fn br_15_a_ring_of_exactly_n_is_read_in_full_and_one_more_is_skipped() {
    for capacity in [1, 2, 3, 5, 8] {
        for more in [0, 1] {
            let mut limits = StationLimits::default();
            limits.ring_items = capacity;
            let mut station = station(StationConfig::new(signer(1)).limits(limits));
            let mut reader = Far::dial(&mut station, at(0), signer(2));
            let mut writer = Far::dial(&mut station, at(0), signer(7));
            subscribe(&mut reader, &mut station, at(0), 1);
            assert_eq!(reader.types(&mut station, at(0)), ["subscribed 1"]);
            for seq in 1..=(capacity + more) as u64 {
                publish(&mut writer, &mut station, at(seq), seq, Fact::numbered(seq));
            }
            let told = reader.types(&mut station, at(100));
            let wanted = read(capacity, more, "skipped 1", "event ");
            assert_eq!(told, wanted, "{capacity} and {more}");
        }
    }
}

/// Publications were remembered for a shorter time than copies were accepted, and the whole network replayed for hours.
#[test]
fn br_37_copies_for_six_hours_are_delivered_once() {
    let mut node = Node::new(2, open());
    let object = Fact::numbered(1).sign(&*node.publisher);
    node.object(at(0), 0, &object);
    assert_eq!(node.words(), ["1"]);
    let copies = [
        (60_000, ObjectFault::Duplicate),
        (599_000, ObjectFault::Duplicate),
        (899_000, ObjectFault::Duplicate),
        (900_000, ObjectFault::Duplicate),
        (900_001, ObjectFault::Expired),
        (901_000, ObjectFault::Expired),
        (21_600_000, ObjectFault::Expired),
    ];
    for (n, (time, fault)) in copies.into_iter().enumerate() {
        let before = node.faults(fault);
        node.time(at(time));
        assert!(node.words().is_empty(), "at {time}");
        node.object(at(time), n % 2, &object);
        assert_eq!(node.faults(fault), before + 1, "at {time}");
    }
    node.time(at(22_000_000));
    // After six hours nothing is known of it any more: it is told as what it is, a publication that is out of date.
    assert_eq!(node.words(), ["dropped out_of_date 1"]);
    let memory = node.client.memory();
    assert_eq!(memory.line("dedup").expect("a line").used, 0);
}

/// The id was remembered before the signature was checked, so a forged copy kept the real one out.
#[test]
fn br_39_a_forged_copy_keeps_nothing_out_and_takes_no_place() {
    let mut node = Node::new(2, open());
    let forged = |seq: u64| {
        let mut object = Fact::numbered(seq).sign(&signer(7));
        // The first half of a fake signature is its hash.
        let at = object.len() - 40;
        object[at] ^= 1;
        object
    };
    let real = Fact::numbered(1).sign(&*node.publisher);
    node.object(at(0), 0, &forged(1));
    assert_eq!(node.faults(ObjectFault::SignatureInvalid), 1);
    assert!(node.words().is_empty());
    node.object(at(1), 1, &real);
    assert_eq!(node.words(), ["1"]);
    for seq in 2..=10_001 {
        node.object(at(2), 0, &forged(seq));
    }
    assert_eq!(node.faults(ObjectFault::SignatureInvalid), 10_001);
    let memory = node.client.memory();
    for table in ["dedup", "lanes", "topics", "numberings"] {
        assert_eq!(memory.line(table).expect("a line").used, 1, "{table}");
    }
    node.object(at(3), 0, &real);
    assert_eq!(node.faults(ObjectFault::Duplicate), 1);
    assert!(node.words().is_empty());
}

/// The id was a hash of the text alone, and users were told to add a nonce.
#[test]
fn br_40_the_same_text_twice_is_two_facts() {
    let mut node = Node::new(2, open());
    for seq in [1, 2] {
        let fact = Fact {
            value: 42,
            ..Fact::numbered(seq)
        };
        for link in [0, 1] {
            node.fact(at(seq), link, fact);
        }
    }
    assert_eq!(node.words(), ["1", "2"]);
    assert_eq!(node.faults(ObjectFault::Duplicate), 2);
}

/// Memory was counted by numbering, so one publisher on many topics took all of it, and everybody else was refused.
#[test]
fn over_half_full_no_publisher_holds_more_than_a_quarter_of_a_stations_memory() {
    let mut limits = StationLimits::default();
    limits.dedup_entries = 16;
    let mut station = station(StationConfig::new(signer(1)).limits(limits));
    let mut told = |publisher: u64, topics: core::ops::Range<u64>| -> Vec<String> {
        let mut far = Far::dial(&mut station, at(0), signer(publisher));
        for n in topics {
            // Without an epoch, so that nothing else remembers it.
            let topic = format!("weather/acme/app/n{n}/measured_v1");
            let fact = Fact {
                topic: &topic,
                epoch: None,
                ..Fact::numbered(5)
            };
            let taken = far.publish(&mut station, at(1), n, &fact.sign(&signer(publisher)));
            assert_eq!(taken, Ok(Intake::Open));
        }
        far.types(&mut station, at(1))
    };
    let full = |told: &[String]| told.iter().filter(|t| t.ends_with("dedup_full")).count();
    // One more than half, and nothing more from here on.
    let first = told(7, 1..41);
    assert_eq!((first.len(), full(&first)), (40, 31));
    // Others get in, each with its quarter.
    for publisher in [8, 9] {
        let others = told(publisher, 1..4);
        assert_eq!((others.len(), full(&others)), (3, 0), "{publisher}");
    }
    let second = told(8, 10..13);
    assert_eq!((second.len(), full(&second)), (3, 2));
    assert_eq!(full(&told(7, 50..60)), 10);
}

/// The same in a client, which reads all topics of a filter.
#[test]
fn over_half_full_no_publisher_holds_more_than_a_quarter_of_a_clients_memory() {
    let mut limits = ClientLimits::default();
    limits.order_max_buffer = 8;
    limits.dedup_entries = 16;
    let config = ClientConfig::new(signer(1)).limits(limits);
    let all = Subscribe::new(realm(), "weather/acme/app/**", Sources::Open);
    let mut node = Node::with(config, 1, all);
    let mut heard = |publisher: u64, topics: core::ops::Range<u64>| -> usize {
        for n in topics {
            let topic = format!("weather/acme/app/n{n}/measured_v1");
            // The first of an epoch that began later than the subscription waits for its predecessors, so that no edge covers it.
            let fact = Fact {
                topic: &topic,
                epoch: Some(START.saturating_add(400_000).as_millis() * 1000 + n),
                published_at: START.saturating_add(400_000),
                ..Fact::numbered(5)
            };
            node.object(at(400_000), 0, &fact.sign(&signer(publisher)));
        }
        let memory = node.client.memory();
        memory.line("dedup").expect("a line").used
    };
    // One more than half, and nothing more from here on.
    assert_eq!(heard(7, 1..41), 9);
    // Others get in, each with its quarter.
    assert_eq!(heard(8, 1..4), 12);
    assert_eq!(heard(9, 1..4), 15);
    assert_eq!(heard(7, 50..60), 15);
    assert_eq!(heard(8, 10..13), 16);
}

/// An anycast has no place in the order of what it is numbered beside, which said all the same that its memory was not needed.
#[test]
fn an_anycast_whose_number_is_long_decided_is_delivered_once_when_memory_is_scarce() {
    for epoch in [None, Some(EPOCH)] {
        let mut limits = ClientLimits::default();
        limits.order_max_buffer = 4;
        limits.dedup_entries = 8;
        let config = ClientConfig::new(signer(1)).limits(limits);
        let mut node = Node::with(config, 2, open());
        let one = Fact {
            one: true,
            epoch,
            ..Fact::numbered(1)
        };
        let object = one.sign(&*node.publisher);
        node.object(at(0), 0, &object);
        assert_eq!(node.words(), ["1"]);
        for seq in 1..=40 {
            let fact = Fact {
                epoch,
                ..Fact::numbered(seq)
            };
            node.fact(at(seq), 0, fact);
        }
        node.words();
        node.object(at(50), 1, &object);
        let nothing: Vec<String> = Vec::new();
        assert_eq!(node.words(), nothing, "{epoch:?}");
    }
}
