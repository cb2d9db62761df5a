//! Publishers that are looked up, and who is asked about them.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what comes out. Bounded by: the kit's patience.

use std::sync::mpsc;

use tidings::code::DropReason;
use tidings::inbound::sources::SourceAnswer;
use tidings::{NodeId, Notice, RealmId, Source, Sources, Subscribe};
use tidings_common::{Answers, Nobody, Reply, Table};

use crate::Driver;
use crate::kit::{Kit, id, numbered, realm};

fn from(topic: &str, sources: Sources) -> Subscribe {
    Subscribe::new(realm(), topic, sources)
}

/// Members are heard, and nodes of the organisation; whoever is neither is not, and its facts change nothing.
pub fn who_is_looked_up_is_heard_if_its_source_admits_it<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let table = Table::new()
        .member(realm(), id(3))
        .org(realm(), "acme", id(4));
    let reader = kit.answered_node(2, &[&station], table);
    let mut of_members = kit.subscribe(&reader, from("who/*", Sources::Members), 1);
    let acme = Sources::Org("acme".to_owned());
    let mut of_acme = kit.subscribe(&reader, from("who/*", acme), 1);
    let [member, delegate, intruder] = [3, 4, 5].map(|part| kit.node(part, &[&station]));
    kit.routed(&intruder, numbered("who/one", 9));
    for n in 0..3 {
        kit.routed(&member, numbered("who/two", n));
        kit.routed(&intruder, numbered("who/two", n));
        kit.routed(&delegate, numbered("who/three", n));
    }
    kit.numbers(&mut of_members, 0, 3);
    kit.numbers(&mut of_acme, 0, 3);
    kit.quiet(&mut of_members);
    kit.quiet(&mut of_acme);
}

/// Knows it, and does not come back before it is told to.
struct Stuck(Table, mpsc::Receiver<()>);

impl Answers for Stuck {
    fn source(
        &mut self,
        realm: RealmId,
        source: Source,
        publisher: NodeId,
        reply: Reply<SourceAnswer>,
    ) {
        self.1.recv().expect("it is told to");
        self.0.source(realm, source, publisher, reply);
    }
}

/// Whoever answers may take its time in the call itself: what needs no answer is delivered meanwhile, and the rest once it came.
pub fn whoever_is_slow_to_answer_holds_up_nobody_else<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let (tell, told) = mpsc::channel();
    let table = Table::new().member(realm(), id(3)).member(realm(), id(4));
    let reader = kit.answered_node(2, &[&station], Stuck(table, told));
    let mut of_members = kit.subscribe(&reader, from("who/*", Sources::Members), 1);
    let mut of_all = kit.subscribe(&reader, from("who/*", Sources::Open), 1);
    let [one, other] = [3, 4].map(|part| kit.node(part, &[&station]));
    for n in 0..3 {
        kit.routed(&one, numbered("who/one", n));
        kit.fact(&mut of_all);
        kit.routed(&other, numbered("who/two", n));
        kit.fact(&mut of_all);
    }
    for _ in [one, other] {
        tell.send(()).expect("it asks");
    }
    for _ in 0..6 {
        kit.fact(&mut of_members);
    }
}

/// Where nobody answers, nobody is heard, and that is said.
pub fn who_cannot_be_looked_up_is_not_heard<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let reader = kit.answered_node(2, &[&station], Nobody);
    let mut facts = kit.subscribe(&reader, from("who/one", Sources::Members), 1);
    let writer = kit.node(3, &[&station]);
    kit.routed(&writer, numbered("who/one", 0));
    match kit.notice(&mut facts) {
        Notice::Dropped { reason, .. } => assert_eq!(reason, DropReason::UndecidedSource),
        other => panic!("a dropped fact, not {other:?}"),
    }
}
