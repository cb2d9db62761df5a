//! What is remembered and for how long; what is exactly full.

use tidings::code::ObjectFault;
use tidings::{StationConfig, StationLimits};

use super::common::{Fact, Far, at, signer, station};
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
