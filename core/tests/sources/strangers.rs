//! Whoever would not be heard anyway costs no verification.

use tidings::code::{DropReason, ObjectFault, SourceRefusal};
use tidings::{ClientConfig, Sources, Subscribe, Verification};

use crate::common::{Fact, Node, TOPIC, asked as signatures, at, realm, signer};
use crate::rig::{Rig, admitted, members, refused, until};

/// A fact in this publisher's name that nobody signed.
fn forged(by: u64, fact: Fact<'_>) -> Vec<u8> {
    let mut object = fact.sign(&signer(by));
    *object.last_mut().expect("its signature") ^= 1;
    object
}

/// A node whose window has nothing left for strangers.
fn spent() -> Rig {
    let mut rig = Rig::new();
    for stranger in 100..116 {
        rig.publisher(stranger);
        rig.fact(0, 1);
    }
    assert_eq!(rig.asked().len(), 16);
    rig
}

#[test]
fn a_stranger_is_not_verified_while_no_lookup_is_left_for_it() {
    let mut rig = spent();
    for by in 200..300 {
        rig.node.object(at(1), 0, &forged(by, Fact::numbered(1)));
    }
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 0);
    assert_eq!(rig.dropped(DropReason::LookupsFull), 100);
    assert_eq!(rig.asked(), []);
    // Nothing is remembered of it: when it is its turn, the true one is as new.
    rig.publisher(200);
    rig.fact(1000, 1);
    let asked = rig.asked();
    rig.told(1001, asked[0].ask, admitted());
    assert_eq!(rig.later(1001), ["1", "dropped lookups_full 100"]);
    // And a false one does not begin the window that is taken from next.
    rig.node
        .object(at(1002), 0, &forged(201, Fact::numbered(1)));
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 1);
    assert_eq!(rig.asked(), []);
}

#[test]
fn its_signature_is_not_asked_about_either() {
    let config = ClientConfig::new(signer(1)).verification(Verification::Asked);
    let mut node = Node::with(config, 1, members());
    for by in 100..116 {
        node.object(at(0), 0, &Fact::numbered(1).sign(&signer(by)));
        let (ask, job) = signatures(&mut node.client).pop().expect("a signature");
        let verified = tidings::Answer::Verified(job.run());
        assert_eq!(node.client.answer(at(0), ask, verified), Ok(()));
    }
    node.object(at(1), 0, &Fact::numbered(1).sign(&signer(200)));
    assert!(signatures(&mut node.client).is_empty());
    let dropped = node.client.status().sources.dropped;
    assert!(
        dropped.contains(&(DropReason::LookupsFull, 1)),
        "{dropped:?}"
    );
}

#[test]
fn a_publisher_that_is_known_to_be_refused_is_not_verified() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(1, ask, refused());
    let before = rig.refusals(SourceRefusal::NotFound);
    for seq in 2..10 {
        rig.node.object(at(2), 0, &forged(7, Fact::numbered(seq)));
    }
    assert_eq!(rig.refusals(SourceRefusal::NotFound), before + 8);
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 0);
    // Until its refusal is over.
    rig.node
        .object(at(10_001), 0, &forged(7, Fact::numbered(9)));
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 1);
}

#[test]
fn what_is_over_is_reported_unverified_where_its_publisher_would_have_to_be_looked_up() {
    let mut rig = Rig::new();
    let old = |seq| Fact {
        published_at: at(0).wall,
        ttl_ms: Some(1000),
        ..Fact::numbered(seq)
    };
    rig.node.object(at(400_000), 0, &forged(7, old(1)));
    assert_eq!(rig.asked(), []);
    assert_eq!(rig.node.faults(ObjectFault::Expired), 1);
    assert_eq!(rig.later(402_000), ["dropped out_of_date 1"]);
    // Of a member's it is believed only when it is the member's.
    rig.admit(402_000, 5);
    rig.node.object(at(402_001), 0, &forged(7, old(1)));
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 1);
}

#[test]
fn where_somebody_may_get_it_it_is_verified_and_all_are_told() {
    let mut rig = spent();
    let open = rig.subscribe(Subscribe::new(realm(), TOPIC, Sources::Open));
    rig.node.object(at(1), 0, &forged(200, Fact::numbered(1)));
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 1);
    rig.publisher(200);
    rig.fact(1, 1);
    assert_eq!(rig.words_of(open), ["1"]);
    assert_eq!(rig.dropped(DropReason::LookupsFull), 1);
}

#[test]
fn where_a_lane_may_wait_for_its_place_it_is_verified_and_the_place_closed() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(0, ask, until(6050));
    rig.fact(6010, 3);
    let refresh = rig.one();
    rig.told(6051, refresh, refused());
    rig.node.object(at(6052), 0, &forged(7, Fact::numbered(2)));
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 1);
    assert_eq!(rig.words(), ["1"]);
    rig.fact(6053, 2);
    assert_eq!(rig.words(), ["3"], "admitted when it came");
}

/// Facts for one reader are stopped by the same rule, for one reader each.
#[test]
fn an_anycast_is_dropped_for_one_reader() {
    let mut rig = spent();
    let other = rig.subscribe(members());
    let one = |seq| Fact {
        one: true,
        ..Fact::numbered(seq)
    };
    for seq in 1..=4 {
        rig.node.object(at(1), 0, &forged(200, one(seq)));
    }
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 0);
    assert_eq!(rig.dropped(DropReason::LookupsFull), 4);
    rig.node.time(at(2000));
    let told = [rig.words(), rig.words_of(other)].concat();
    assert_eq!(told, ["dropped lookups_full 2"; 2]);
}
