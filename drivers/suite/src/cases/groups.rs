//! Sealed groups, and who is asked for their keys.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what comes out. Bounded by: the kit's patience.

use std::time::Duration;

use tidings::code::{SealPolicy, UnopenedReason};
use tidings::{Group, GroupId, KeyPeriods, KeyQuestion, Notice, Refusal};
use tidings_common::{Answers, Nobody, Reply, SharedKeys, Table};

use crate::Driver;
use crate::kit::{Kit, number, numbered, open, realm};

const PREFIX: &str = "suite/acme";
const TOPIC: &str = "suite/acme/orders";

/// A table that knows the group's secret.
fn secret() -> Table {
    let keys = SharedKeys::new(realm(), PREFIX, SealPolicy::Required, 60_000, &[9; 32]);
    Table::new().group(keys.expect("a good group"))
}

fn join<D: Driver>(driver: &D, node: &D::Node) -> GroupId {
    let joined = driver.join_group(node, Group::new(realm(), PREFIX));
    joined.expect("the group is joined")
}

/// Knows it, and answers after a while from a thread of its own.
struct Slow(Table);

impl Answers for Slow {
    fn keys(&mut self, question: KeyQuestion, reply: Reply<Result<KeyPeriods, UnopenedReason>>) {
        let mut table = self.0.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            table.keys(question, reply);
        });
    }
}

/// Sealed for a group, a fact is opened by its members, and told to others as one they cannot read.
pub fn a_sealed_fact_is_opened_by_members_and_told_to_others<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let member = kit.answered_node(2, &[&station], secret());
    let outsider = kit.node(3, &[&station]);
    let writer = kit.answered_node(4, &[&station], secret());
    let group = join(driver, &member);
    let mut facts = kit.subscribe(&member, open(TOPIC).group(group), 1);
    let mut closed = kit.subscribe(&outsider, open(TOPIC), 1);
    let group = join(driver, &writer);
    for n in 0..3 {
        kit.routed(&writer, numbered(TOPIC, n).group(group));
    }
    for n in 0..3 {
        let fact = kit.fact(&mut facts);
        assert_eq!((number(&fact), fact.sealed()), (n, true), "{fact:?}");
        match kit.notice(&mut closed) {
            Notice::Unopened { reason, .. } => assert_eq!(reason, UnopenedReason::NoGroup),
            other => panic!("an unopened fact, not {other:?}"),
        }
    }
    // Never in the clear by mistake.
    let refused = driver.publish(&writer, numbered(TOPIC, 3));
    assert_eq!(refused, Err(Refusal::GroupHeld { group }));
}

/// Keys may come later and from another thread: a publication waits for them, and so does a fact.
pub fn keys_that_come_late_are_waited_for<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let reader = kit.answered_node(2, &[&station], Slow(secret()));
    let writer = kit.answered_node(3, &[&station], Slow(secret()));
    let group = join(driver, &writer);
    let early = driver.send(&writer, numbered(TOPIC, 0).group(group));
    assert_eq!(early, Err(Refusal::GroupPending { group }));
    let of_reader = join(driver, &reader);
    let mut facts = kit.subscribe(&reader, open(TOPIC).group(of_reader), 1);
    for n in 0..3 {
        kit.routed(&writer, numbered(TOPIC, n).group(group));
    }
    kit.numbers(&mut facts, 0, 3);
}

/// Where nobody answers, nothing is sealed, and nothing is published instead.
pub fn without_keys_nothing_is_published<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let writer = kit.answered_node(2, &[&station], Nobody);
    let group = join(driver, &writer);
    let reason = UnopenedReason::NoDistributor;
    let refused = driver.publish(&writer, numbered(TOPIC, 0).group(group));
    assert_eq!(refused, Err(Refusal::Group { group, reason }));
}
