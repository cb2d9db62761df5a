//! Facts that wait: their copies, their places, and what ends the wait.

use tidings::code::{DropReason, ObjectFault};
use tidings::inbound::sources::SourceAnswer;
use tidings::wire::{self, Body, Draft};
use tidings::{
    Answer, ClientConfig, Instant, Item, Misuse, Now, OnFull, Source, Sources, Subscribe,
    Verification, WallMs,
};

use crate::common::{
    EPOCH, Fact, Node, TOPIC, asked as signatures, at, id_of, items, realm, signer,
};
use crate::rig::{Rig, admitted, asked, members, org, refused, until};

#[test]
fn a_fact_that_waits_has_its_entry_and_a_copy_is_a_duplicate() {
    let mut rig = Rig::with(2, |_| {});
    rig.node.seq(at(0), 0, 1);
    rig.node.seq(at(1), 1, 1);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 1);
    let ask = rig.one();
    rig.told(2, ask, admitted());
    rig.node.seq(at(3), 1, 1);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 2);
    assert_eq!(rig.words(), ["1"]);
}

#[test]
fn where_all_dropped_it_for_a_budget_a_later_copy_gets_another_chance() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(1, ask, SourceAnswer::Unknown);
    rig.node.seq(at(2), 0, 1);
    let ask = rig.one();
    rig.told(3, ask, admitted());
    assert_eq!(rig.words(), ["1"]);
    // A copy of what the window had no place for, too.
    let mut rig = Rig::with(1, |limits| limits.sources.lookups_per_window = 1);
    rig.fact(0, 1);
    rig.publisher(8);
    rig.node.seq(at(0), 0, 1);
    rig.node.seq(at(1001), 0, 1);
    let asked = rig.asked();
    rig.told(1002, asked[1].ask, admitted());
    assert_eq!(rig.words(), ["1"]);
}

#[test]
fn where_one_took_it_the_drop_is_final_for_the_others_and_told() {
    let mut rig = Rig::new();
    let open = rig.subscribe(Subscribe::new(realm(), TOPIC, Sources::Open));
    rig.fact(0, 1);
    let ask = rig.one();
    assert_eq!(rig.words_of(open), ["1"], "it does not wait for the other");
    rig.told(1, ask, SourceAnswer::Unknown);
    rig.node.seq(at(2), 0, 1);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 1);
    assert_eq!(rig.later(2000), ["dropped undecided_source 1"]);
    // The same where the one who took it had waited as well.
    let mut rig = Rig::new();
    let acme = rig.subscribe(org("acme"));
    rig.fact(0, 1);
    let asked = rig.asked();
    rig.told(1, asked[0].ask, SourceAnswer::Unknown);
    rig.node.seq(at(1), 0, 1);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 1, "it still waits");
    rig.told(2, asked[1].ask, admitted());
    rig.node.seq(at(3), 0, 1);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 2);
    assert_eq!(rig.words_of(acme), ["1"]);
    assert_eq!(rig.later(2000), ["dropped undecided_source 1"]);
}

#[test]
fn a_fact_that_was_refused_to_all_who_waited_stays_known() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(1, ask, refused());
    rig.node.seq(at(2), 0, 1);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 1);
    assert_eq!(rig.node.faults(ObjectFault::SourceRefused), 1);
}

#[test]
fn the_place_of_what_is_refused_or_dropped_is_closed_at_once() {
    for answer in [refused(), SourceAnswer::Unknown] {
        let mut rig = Rig::new();
        rig.fact(0, 1);
        let ask = rig.one();
        rig.told(0, ask, until(6050));
        // 3 waits behind 2, and begins a refresh; 2 comes when the verdict is over.
        rig.fact(6010, 3);
        let refresh = rig.one();
        rig.fact(6051, 2);
        assert_eq!((rig.words(), rig.asked()), (vec!["1".into()], vec![]));
        rig.told(6060, refresh, answer);
        // It is not waited for any longer, nor told as skipped.
        assert_eq!(rig.words(), ["3"], "{answer:?}");
    }
}

#[test]
fn what_a_lane_was_missing_before_may_be_given_up_while_a_fact_waits() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(
        0,
        ask,
        SourceAnswer::Admit {
            until: at(6100).wall,
        },
    );
    rig.fact(6090, 3);
    let refresh = rig.one();
    rig.fact(6100, 2);
    assert_eq!(rig.later(6400), ["1", "skipped 2..2", "3"]);
    rig.told(6400, refresh, admitted());
    assert_eq!(rig.words(), ["*2"]);
}

#[test]
fn a_subscription_that_ends_leaves_nothing_waiting() {
    let mut rig = Rig::new();
    let other = rig.subscribe(members());
    let acme = rig.subscribe(org("acme"));
    rig.fact(0, 1);
    let asked = rig.asked();
    let before = rig
        .node
        .client
        .memory()
        .line("held_bytes")
        .map(|line| line.used);
    assert!(before > Some(0));
    let gone = rig.node.client.unsubscribe(at(1), rig.node.stream);
    assert_eq!((gone, rig.counts().0), (Ok(()), 1));
    assert_eq!(rig.node.client.unsubscribe(at(1), acme), Ok(()));
    rig.told(2, asked[1].ask, admitted());
    rig.told(2, asked[0].ask, admitted());
    assert_eq!(rig.words_of(other), ["1"]);
    assert_eq!(rig.words(), ["ended"]);
    // Alone: the fact goes, its lookup ends in peace, and a copy gets another chance.
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    assert_eq!(rig.node.client.unsubscribe(at(1), rig.node.stream), Ok(()));
    assert_eq!(rig.counts(), (0, 0, 1));
    let memory = rig.node.client.memory();
    assert_eq!(memory.line("held_bytes").map(|line| line.used), Some(0));
    assert_eq!(memory.line("dedup").map(|line| line.used), Some(0));
    rig.told(2, ask, admitted());
    assert_eq!(rig.words(), ["ended"]);
}

#[test]
fn closing_leaves_nothing_waiting() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.node.client.close(at(1));
    assert_eq!(rig.counts(), (0, 0, 1));
    assert_eq!(rig.words(), ["ended"]);
    rig.told(2, ask, admitted());
    assert_eq!(
        rig.node.client.handle_timeout(at(60_000)),
        tidings::Turn::Done
    );
    let memory = rig.node.client.memory();
    assert_eq!(memory.line("held_bytes").map(|line| line.used), Some(0));
}

#[test]
fn a_suspend_ends_what_it_outlasts_by_whichever_clock_ran() {
    // Mono stood still: the fact's life is over, whatever the verdict.
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    let woke = Now::new(Instant::from_millis(10), at(3_600_000).wall);
    assert_eq!(rig.answer(woke, ask, admitted()), Ok(()));
    assert_eq!(rig.dropped(DropReason::HoldExpired), 1);
    // Mono ran on: the lookup was given up.
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.node.time(at(3_600_000));
    assert_eq!(
        rig.answer(at(3_600_000), ask, admitted()),
        Err(Misuse::DeadHandle)
    );
    assert_eq!(rig.dropped(DropReason::Unanswered), 1);
    // The wall was set back: nothing ends early, and nothing lives longer than mono allows.
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    let back = Now::new(at(10).mono, WallMs::new(at(0).wall.as_millis() - 100_000));
    assert_eq!(rig.answer(back, ask, admitted()), Ok(()));
    assert_eq!(rig.words(), ["1"]);
}

#[test]
fn an_answer_is_taken_once_and_only_to_its_question() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    let wrong = rig.node.client.answer(at(0), ask, Answer::Verified(true));
    assert_eq!(wrong, Err(Misuse::WrongAnswer));
    rig.told(1, ask, admitted());
    assert_eq!(rig.answer(at(1), ask, admitted()), Err(Misuse::DeadHandle));
    assert_eq!(rig.words(), ["1"]);
}

#[test]
fn signatures_checked_elsewhere_come_first() {
    let config = ClientConfig::new(signer(1)).verification(Verification::Asked);
    let mut node = Node::with(config, 1, members());
    node.seq(at(0), 0, 1);
    let (ask, job) = signatures(&mut node.client).pop().expect("a signature");
    assert!(asked(&mut node.client).is_empty(), "nobody verified yet");
    let answer = Answer::Source(admitted());
    assert_eq!(
        node.client.answer(at(0), ask, answer),
        Err(Misuse::WrongAnswer)
    );
    let verified = Answer::Verified(job.run());
    assert_eq!(node.client.answer(at(1), ask, verified), Ok(()));
    let source = asked(&mut node.client).pop().expect("a lookup").ask;
    assert_eq!(
        node.client
            .answer(at(2), source, Answer::Source(admitted())),
        Ok(())
    );
    assert_eq!(node.words(), ["1"]);
}

#[test]
fn an_anycast_waits_for_the_one_reader_it_is_for() {
    let mut rig = Rig::new();
    let one = |seq| Fact {
        one: true,
        ..Fact::numbered(seq)
    };
    rig.node.fact(at(0), 0, one(1));
    let ask = rig.one();
    rig.told(1, ask, refused());
    let open = rig.subscribe(Subscribe::new(realm(), TOPIC, Sources::Open));
    rig.node.fact(at(2), 0, one(2));
    assert_eq!(rig.words_of(open), ["2"], "not the one that refuses it");
    assert!(rig.words().is_empty());
}

#[test]
fn what_waits_takes_a_quarter_of_the_bytes_at_most() {
    let mut rig = Rig::with(1, |limits| {
        limits.held_bytes = 4 << 20;
        limits.sources.held_per_key = 1 << 20;
        limits.sources.lookups_per_window = 1 << 20;
    });
    for publisher in 100..120 {
        rig.publisher(publisher);
        for seq in 1..=300 {
            rig.node.seq(at(0), 0, seq);
        }
    }
    let held = rig
        .node
        .client
        .memory()
        .line("held_bytes")
        .map_or(0, |line| line.used);
    assert!(held <= 1 << 20, "{held}");
    assert!(held > 1 << 19, "{held}");
    let told = rig.later(20_000);
    assert!(
        told.iter()
            .any(|word| word.starts_with("dropped bytes_full")),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|word| word.starts_with("dropped unanswered")),
        "{told:?}"
    );
    let left = rig
        .node
        .client
        .memory()
        .line("held_bytes")
        .map(|line| line.used);
    assert_eq!(left, Some(0));
}

#[test]
fn nothing_is_committed_past_a_fact_that_waits_for_its_lookup() {
    let mut node = Node::with(ClientConfig::new(signer(1)), 1, members().committing());
    let stream = node.stream;
    let commit = |node: &mut Node| {
        let got = items(&mut node.client, stream);
        let [Item::Fact(fact)] = &got[..] else {
            panic!("{got:?}")
        };
        let kept = node.client.commit(stream, fact).expect("all was read");
        let kept = wire::Positions::decode(&kept).expect("its own");
        kept.stations()[0].position.offset
    };
    node.seq(at(0), 0, 1);
    let ask = asked(&mut node.client).pop().expect("a lookup").ask;
    let answer = Answer::Source(admitted());
    assert_eq!(node.client.answer(at(1), ask, answer), Ok(()));
    let before = commit(&mut node);
    node.publisher = Box::new(signer(8));
    node.seq(at(2), 0, 1);
    let ask = asked(&mut node.client).pop().expect("a lookup").ask;
    node.publisher = Box::new(signer(7));
    node.seq(at(3), 0, 2);
    assert_eq!(commit(&mut node), before, "one waits");
    let answer = Answer::Source(admitted());
    assert_eq!(node.client.answer(at(4), ask, answer), Ok(()));
    assert!(commit(&mut node) > before, "all is here");
}

/// A publication with so many bytes of payload.
fn large(by: u64, seq: u64, bytes: usize) -> Vec<u8> {
    let signer = signer(by);
    let payload = wire::to_payload(&"x".repeat(bytes)).expect("a text");
    let draft = Draft {
        realm: realm(),
        topic: TOPIC,
        publisher: id_of(&signer),
        epoch: Some(EPOCH),
        seq,
        published_at: at(0).wall,
        ttl_ms: None,
        one: false,
        body: Body::Payload(&payload),
    };
    let mut object = Vec::new();
    draft.sign(&signer, &mut object).expect("it signs");
    object
}

#[test]
fn what_one_took_stays_known_where_room_for_it_ended_the_stream_of_another() {
    const MOST: usize = 4 << 20;
    let mut rig = Rig::with(1, |limits| limits.held_bytes = MOST);
    let acme = rig.subscribe(org("acme").on_full(OnFull::Disconnect));
    // Both wait for it.
    let waits = large(7, 1, 40_000);
    rig.node.object(at(0), 0, &waits);
    let lookups = rig.asked();
    // Who speaks to acme alone fills its stream, until there is room for no more than half of that.
    rig.node.object(at(0), 0, &large(8, 1, 20_000));
    for lookup in rig.asked() {
        let answer = match lookup.source {
            Source::Members => refused(),
            _ => admitted(),
        };
        rig.told(0, lookup.ask, answer);
    }
    let used = |rig: &Rig| {
        let memory = rig.node.client.memory();
        memory.line("held_bytes").map_or(0, |line| line.used)
    };
    for seq in 2.. {
        if used(&rig) + waits.len() > MOST {
            break;
        }
        rig.node.object(at(0), 0, &large(8, seq, 20_000));
    }
    let members = lookups.iter().find(|one| one.source == Source::Members);
    rig.told(1, members.expect("asked").ask, admitted());
    assert!(
        rig.words_of(acme).contains(&"ended".into()),
        "its bytes made room"
    );
    rig.node.object(at(2), 0, &waits);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 1);
    assert_eq!(rig.later(20_000), ["1"]);
    assert_eq!(used(&rig), 0);
}
