//! What a thing was given can be read of it, and nothing else.

mod common;

use common::{Fact, Node, asked, at, items, open, seed, signer};
use tidings::code::ObjectFault;
use tidings::crypto::{PeriodKey, PublicKey, Signer, SubkeyCache, SubkeySlot};
use tidings::inbound::continuity::{Accepted, Continuity, Resume};
use tidings::ring::Ring;
use tidings::sim::FAKE_PROFILE;
use tidings::wire::cbor::{Reader, Writer};
use tidings::wire::{Position, Publication, Via};
use tidings::{Answer, ClientConfig, Item, NodeId, RunId, Verification};

#[test]
fn a_delivery_is_identified_by_what_was_signed_and_shows_no_payload() {
    let mut node = Node::new(1, open());
    let object = Fact::numbered(1).sign(&*node.publisher);
    node.object(at(0), 0, &object);
    let got = items(&mut node.client, node.stream);
    let [Item::Fact(fact)] = &got[..] else {
        panic!("{got:?}")
    };
    let sent = Publication::parse(&object, FAKE_PROFILE).expect("well formed");
    assert_eq!((fact.hash(), fact.via()), (sent.hash(), Via::Direct));
    let text = format!("{fact:?}");
    assert!(
        text.contains("seq: 1") && !text.contains("payload"),
        "{text}"
    );
}

#[test]
fn who_checks_a_signature_elsewhere_has_the_object_as_it_came() {
    let config = ClientConfig::new(signer(1)).verification(Verification::Asked);
    let mut node = Node::with(config, 1, open());
    let object = Fact::numbered(1).sign(&*node.publisher);
    node.object(at(0), 0, &object);
    let (ask, job) = asked(&mut node.client).pop().expect("a question");
    assert_eq!(job.object(), object);
    // What it was for has ended: the answer delivers nothing, and is no fault.
    node.client
        .unsubscribe(at(0), node.stream)
        .expect("it lives");
    let answer = Answer::Verified(job.run());
    assert_eq!(node.client.answer(at(1), ask, answer), Ok(()));
    assert_eq!(node.words(), ["ended"]);
    assert_eq!(node.faults(ObjectFault::SignatureInvalid), 0);
}

#[test]
fn a_carrier_is_what_was_accepted() {
    let accepted = Accepted {
        link: 3u8,
        station: NodeId::new([4; 32]),
        mesh: [5; 32],
        since: at(6),
        resume: Resume::None,
        position: Position {
            run: RunId::new([7; 8]),
            offset: 8,
        },
    };
    let (station, mesh, position) = (accepted.station, accepted.mesh, accepted.position);
    let mut machine = Continuity::new([None; 2]);
    assert!(machine.handle_accepted(at(6), accepted).is_none());
    let carrier = machine.carrier(3).expect("it was accepted");
    assert_eq!((carrier.station(), carrier.mesh()), (station, mesh));
    assert_eq!((carrier.position(), carrier.level()), (position, at(6)));
    assert!(carrier.is_live());
}

#[test]
fn bounds_are_those_given_and_secrets_are_not_shown() {
    let ring: Ring<u8, _> = Ring::new([const { None }; 3], 100);
    assert_eq!((ring.capacity(), ring.max_bytes()), (3, 100));
    let slots: Vec<SubkeySlot> = (0..5).map(|_| SubkeySlot::default()).collect();
    let mut subkeys = SubkeyCache::new(slots, &mut seed().fork("subkeys"));
    let period = PeriodKey::new([0xab; 8], [0xcd; 32]);
    subkeys.subkey(&period, &NodeId::new([1; 32]));
    assert_eq!((subkeys.capacity(), subkeys.len()), (5, 1));
    let text = format!("{subkeys:?}");
    assert!(
        text.contains("capacity: 5") && !text.contains("cd"),
        "{text}"
    );
    let bytes = signer(1).public_key();
    let key = PublicKey::decode(FAKE_PROFILE, &bytes).expect("a key");
    assert_eq!(key.node_id(), common::id_of(&signer(1)));
}

#[test]
fn what_is_written_is_read_back_and_another_kind_is_left_where_it_is() {
    let mut written = Vec::new();
    let mut writer = Writer::new(&mut written);
    writer.unsigned(500);
    writer.bytes(b"abc");
    let mut reader = Reader::new(&written);
    assert_eq!(reader.bytes(), None);
    assert_eq!(reader.unsigned(), Some(500));
    assert_eq!(reader.unsigned(), None);
    assert_eq!(reader.bytes(), Some(&b"abc"[..]));
    assert_eq!(reader.bytes(), None);
}
