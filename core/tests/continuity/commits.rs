//! What a run commits and the next one goes on from.

use tidings::code::CloseReason;
use tidings::wire::Positions;
use tidings::{
    ClientConfig, ClientLimits, Delivery, Item, Misuse, Mode, Now, OnFull, SubscriptionId, Turn,
    WallMs,
};

use super::common::{at, open, signer};
use super::{MESH, NONE, World};

/// The next fact of a stream; notices before it are passed over.
fn take(world: &mut World, stream: SubscriptionId) -> Delivery {
    loop {
        match world.client.poll_item(stream).expect("an item") {
            Item::Fact(fact) => return fact,
            _ => continue,
        }
    }
}

fn committing(world: &mut World) -> SubscriptionId {
    let now = world.now();
    let stream = world.client.subscribe(now, open().committing());
    world.accept(0);
    stream.expect("a subscription")
}

/// Another run of the same node, its station as it was.
fn again(world: &World, bytes: &[u8]) -> (World, SubscriptionId) {
    let mut next = World::new(1);
    next.time(10);
    next.stations[0].run = world.stations[0].run;
    next.stations[0].offset = world.stations[0].offset;
    let request = open().resume_from(bytes).expect("committed bytes");
    let now = next.now();
    let stream = next.client.subscribe(now, request).expect("a stream");
    (next, stream)
}

#[test]
fn the_next_run_goes_on_behind_what_was_committed() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    for seq in 1..=3 {
        world.event(0, seq);
    }
    for _ in 0..3 {
        let fact = take(&mut world, stream);
        let bytes = world.client.commit(stream, &fact).expect("the last one");
        let kept = Positions::decode(&bytes).expect("its own bytes");
        assert_eq!(kept.lanes()[0].seq, fact.seq());
    }
    let last = {
        world.event(0, 4);
        take(&mut world, stream)
    };
    let bytes = world.client.commit(stream, &last).expect("the last one");
    let (mut next, stream) = again(&world, &bytes);
    assert_eq!(next.resumes_from(0).map(|from| from.offset), Some(4));
    next.resumed(0, 2);
    next.event_at(0, 5, 5);
    next.event_at(0, 6, 6);
    assert_eq!(next.words(stream), ["resumed 2", "5", "6"]);
}

#[test]
fn what_an_earlier_run_delivered_is_committed_on_by_one_that_did_not_hear_of_it() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.event(0, 1);
    let first = take(&mut world, stream);
    let bytes = world.client.commit(stream, &first).expect("the last one");
    let (mut next, stream) = again(&world, &bytes);
    next.resumed(0, 1);
    next.event_by(0, 2, 1, 8);
    let other = take(&mut next, stream);
    let bytes = next.client.commit(stream, &other).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    let mut publishers: Vec<_> = kept.lanes().iter().map(|lane| lane.publisher).collect();
    let mut wanted = vec![first.publisher(), other.publisher()];
    publishers.sort();
    wanted.sort();
    assert_eq!(publishers, wanted);
}

#[test]
fn what_is_newest_only_is_delivered_once_across_runs_too() {
    let latest = || open().mode(Mode::LatestOnly);
    let mut world = World::new(1);
    let now = world.now();
    let stream = world.client.subscribe(now, latest().committing());
    let stream = stream.expect("a subscription");
    world.accept(0);
    world.event(0, 3);
    let fact = take(&mut world, stream);
    let bytes = world.client.commit(stream, &fact).expect("the last one");
    let (mut next, now) = (World::new(1), world.now());
    next.stations[0].run = world.stations[0].run;
    let request = latest().resume_from(&bytes).expect("committed bytes");
    let stream = next.client.subscribe(now, request).expect("a stream");
    next.resumed(0, 2);
    for seq in [2, 3, 4] {
        next.event_at(0, 1 + seq, seq);
    }
    assert_eq!(next.words(stream), ["resumed 2", "4"]);
}

#[test]
fn what_waits_in_the_stream_is_not_committed() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    for seq in 1..=5 {
        world.event(0, seq);
    }
    let first = take(&mut world, stream);
    let bytes = world.client.commit(stream, &first).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    assert_eq!(kept.lanes()[0].seq, 1);
    assert_eq!(
        kept.stations()[0].position.offset,
        0,
        "the last moment at which nothing waited"
    );
    // The replay brings all five; the one that was done is not given again.
    let (mut next, stream) = again(&world, &bytes);
    next.resumed(0, 5);
    for seq in 1..=5 {
        next.event_at(0, seq, seq);
    }
    assert_eq!(next.words(stream), ["resumed 5", "2", "3", "4", "5"]);
}

#[test]
fn what_a_lane_holds_is_not_committed() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.event(0, 1);
    let first = take(&mut world, stream);
    world.event(0, 3);
    let bytes = world.client.commit(stream, &first).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    assert_eq!(kept.stations()[0].position.offset, 1);
    assert_eq!(kept.lanes()[0].seq, 1);
}

#[test]
fn a_run_that_cannot_be_resumed_is_a_gap_from_what_was_committed() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.time(5);
    world.event(0, 1);
    world.progress(0, 0);
    let fact = take(&mut world, stream);
    let bytes = world.client.commit(stream, &fact).expect("the last one");
    let (mut next, stream) = again(&world, &bytes);
    next.expired(0);
    assert_eq!(next.words(stream), ["gap 5..10 expired"]);
    next.down(0, CloseReason::Io);
    assert_eq!(next.words(stream).len(), 1);
}

/// Where a gap would begin that the committed positions cannot close.
fn committed_from(bytes: &[u8]) -> i64 {
    let kept = Positions::decode(bytes).expect("its own bytes");
    kept.stations()[0].from.since(at(0).wall)
}

#[test]
fn what_is_committed_after_the_wall_was_set_back_begins_by_that_wall() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.time(5000);
    world.event(0, 1);
    world.progress(0, 0);
    let fact = take(&mut world, stream);
    let bytes = world.client.commit(stream, &fact).expect("the last one");
    assert_eq!(committed_from(&bytes), 5000);
    // With two more in the stream no later place can be committed.
    (2..=3).for_each(|seq| world.event(0, seq));
    let fact = take(&mut world, stream);
    // It is 6,000, and the wall shows 2,000.
    for (wall, from) in [(2000, 1000), (9000, 5000)] {
        let stepped = Now::new(at(6000).mono, at(wall).wall);
        assert_eq!(world.client.handle_timeout(stepped), Turn::Done);
        let bytes = world.client.commit(stream, &fact).expect("the last one");
        assert_eq!(committed_from(&bytes), from, "set forward, it stays");
    }
}

#[test]
fn a_run_whose_wall_is_behind_what_was_committed_knows_of_no_beginning() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.time(5000);
    world.event(0, 1);
    world.progress(0, 0);
    let fact = take(&mut world, stream);
    let bytes = world.client.commit(stream, &fact).expect("the last one");
    let (mut next, stream) = again(&world, &bytes);
    next.expired(0);
    let never = WallMs::new(0).since(at(0).wall);
    assert_eq!(next.words(stream), [format!("gap {never}..10 expired")]);
}

#[test]
fn what_an_earlier_run_had_read_is_an_interruption_that_only_its_end_tells_of() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.time(5);
    world.event(0, 1);
    world.progress(0, 0);
    let fact = take(&mut world, stream);
    let bytes = world.client.commit(stream, &fact).expect("the last one");
    let (mut next, stream) = again(&world, &bytes);
    let since = |next: &World| next.client.subscription(stream).expect("it is there");
    // Nobody carries it, its link ends, and still nobody is told: it can be read.
    assert_eq!(since(&next).interrupted_since, Some(at(5).wall));
    next.down(0, CloseReason::Io);
    next.up(0);
    assert_eq!(next.words(stream), NONE);
    assert_eq!(since(&next).interrupted_since, Some(at(5).wall));
    next.resumed(0, 1);
    assert_eq!(next.words(stream), ["resumed 1"]);
    // What the replay does not bring before its link ends is told from there.
    assert_eq!(since(&next).interrupted_since, None);
    next.down(0, CloseReason::Io);
    assert_eq!(next.words(stream), ["interrupted 5 io"]);
}

#[test]
fn only_the_last_fact_of_a_committing_stream_can_be_committed() {
    let mut world = World::new(1);
    let plain = world.subscribed();
    let now = world.now();
    let stream = world.client.subscribe(now, open().committing()).unwrap();
    world.event(0, 1);
    world.event(0, 2);
    let fact = take(&mut world, plain);
    assert_eq!(
        world.client.commit(plain, &fact),
        Err(Misuse::NotCommitting)
    );
    let first = take(&mut world, stream);
    let _second = take(&mut world, stream);
    assert_eq!(
        world.client.commit(stream, &first),
        Err(Misuse::NotCommittable)
    );
    assert!(open().resume_from(b"foreign").is_err());
    assert_eq!(world.words(stream), NONE);
}

#[test]
fn what_was_skipped_and_not_read_yet_is_not_committed() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.event(0, 1);
    let first = take(&mut world, stream);
    world.event(0, 3);
    world.time(2_000);
    let bytes = world.client.commit(stream, &first).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    assert_eq!(
        kept.lanes()[0].seq,
        1,
        "2 is skipped behind what was handed out"
    );
    assert_eq!(world.words(stream), ["skipped 2..2", "3"]);
}

#[test]
fn a_lane_that_rests_is_committed_as_it_was_left() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.event(0, 1);
    let first = take(&mut world, stream);
    world.time(700_000);
    assert_eq!(world.client.status().lanes, 0, "it rests");
    let bytes = world.client.commit(stream, &first).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    assert_eq!(kept.lanes()[0].seq, 1);
}

#[test]
fn a_stream_that_is_never_read_to_its_end_is_committed_from_a_place_not_far_behind() {
    let mut world = World::new(1);
    let now = world.now();
    let request = open().committing().queue_capacity(10_000);
    let stream = world.client.subscribe(now, request).expect("a stream");
    world.accept(0);
    let bytes = |world: &World| {
        let memory = world.client.memory();
        memory.line("subscriptions").expect("a line").bytes
    };
    let before = bytes(&world);
    // More marks than are kept.
    for seq in 1..=6_000 {
        world.event(0, seq);
    }
    assert!(bytes(&world) > before);
    for seq in 1..=6_000 {
        let fact = take(&mut world, stream);
        if seq % 500 == 0 {
            let bytes = world.client.commit(stream, &fact).expect("the last one");
            let kept = Positions::decode(&bytes).expect("its own bytes");
            assert_eq!(kept.lanes()[0].seq, seq);
            let from = kept.stations()[0].position.offset;
            assert!(from <= seq && seq - from <= 1_024, "{from} of {seq}");
        }
    }
}

#[test]
fn a_full_stream_with_more_behind_it_is_committed_when_that_is_in_it() {
    let mut world = World::new(1);
    let now = world.now();
    let request = open().on_full(OnFull::Pause).queue_capacity(2).committing();
    let stream = world.client.subscribe(now, request).expect("a stream");
    world.accept(0);
    world.event(0, 1);
    take(&mut world, stream);
    for seq in 3..=6 {
        world.event(0, seq);
    }
    world.time(1000);
    let third = take(&mut world, stream);
    let refused = world.client.commit(stream, &third);
    assert_eq!(refused, Err(Misuse::NotCommittable), "6 is behind 4 and 5");
    let fourth = take(&mut world, stream);
    let bytes = world.client.commit(stream, &fourth);
    let kept = Positions::decode(&bytes.expect("5 and 6 wait in the stream"));
    assert_eq!(kept.expect("its own bytes").lanes()[0].seq, 4);
}

#[test]
fn what_was_dropped_and_not_told_of_yet_is_not_committed() {
    let mut limits = ClientLimits::default();
    limits.lanes = 1;
    let config = ClientConfig::new(signer(1)).limits(limits);
    let mut world = World::with(config, &[MESH]);
    let stream = committing(&mut world);
    world.event(0, 1);
    let first = take(&mut world, stream);
    world.event_by(0, 2, 1, 8);
    let refused = world.client.commit(stream, &first);
    assert_eq!(refused, Err(Misuse::NotCommittable), "one was dropped");
    assert_eq!(world.words(stream), ["dropped lanes_full 1"]);
    assert!(
        world.client.commit(stream, &first).is_ok(),
        "it was told of"
    );
}

#[test]
fn a_conflict_that_is_not_told_of_yet_is_not_committed() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.event(0, 1);
    let first = take(&mut world, stream);
    world.other_event(0, 2, 1);
    let refused = world.client.commit(stream, &first);
    assert_eq!(refused, Err(Misuse::NotCommittable), "there are two of 1");
    assert_eq!(world.words(stream), ["conflict 1..1 1"]);
    assert!(
        world.client.commit(stream, &first).is_ok(),
        "it was told of"
    );
}

#[test]
fn what_is_late_and_waits_in_the_stream_is_not_committed() {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.event(0, 1);
    world.event(0, 3);
    world.time(1000);
    let first = take(&mut world, stream);
    let third = take(&mut world, stream);
    assert_eq!((first.seq(), third.seq()), (1, 3));
    world.event(0, 2);
    let refused = world.client.commit(stream, &third);
    assert_eq!(
        refused,
        Err(Misuse::NotCommittable),
        "2 waits, and 3 was handed out"
    );
    let second = take(&mut world, stream);
    assert!(second.late());
    let bytes = world.client.commit(stream, &second).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    assert_eq!(kept.lanes()[0].seq, 3);
}

/// A run that heard a stream from 5 on, and 2 late; what it committed.
fn joined_at_5() -> (World, Vec<u8>) {
    let mut world = World::new(1);
    let stream = committing(&mut world);
    world.event(0, 5);
    world.time(1000);
    assert_eq!(take(&mut world, stream).seq(), 5);
    world.event(0, 2);
    let late = take(&mut world, stream);
    assert!(late.late());
    let bytes = world.client.commit(stream, &late).expect("the last one");
    (world, bytes)
}

#[test]
fn what_is_below_a_committed_join_is_late_in_the_next_run_and_what_came_late_is_a_copy() {
    let (world, bytes) = joined_at_5();
    let kept = Positions::decode(&bytes).expect("its own bytes");
    assert_eq!(kept.lanes()[0].seq, 5);
    assert_eq!(kept.lanes()[0].untold, [(1, 1), (3, 4)]);
    let (mut next, stream) = again(&world, &bytes);
    next.resumed(0, 5);
    for (offset, seq) in [(3, 1), (4, 2), (5, 4), (6, 5), (7, 6)] {
        next.event_at(0, offset, seq);
    }
    assert_eq!(next.words(stream), ["resumed 5", "*1", "*4", "6"]);
    // It is committed on by a run that takes what is left of it.
    next.event_at(0, 8, 7);
    let last = take(&mut next, stream);
    let bytes = next.client.commit(stream, &last).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    assert_eq!(
        (kept.lanes()[0].seq, &*kept.lanes()[0].untold),
        (7, &[(3, 3)][..])
    );
}

#[test]
fn what_is_below_a_committed_join_is_committed_on_by_a_run_that_did_not_hear_of_it() {
    let (world, bytes) = joined_at_5();
    let (mut next, stream) = again(&world, &bytes);
    next.resumed(0, 1);
    next.event_by(0, 3, 1, 8);
    let other = take(&mut next, stream);
    let bytes = next.client.commit(stream, &other).expect("the last one");
    let kept = Positions::decode(&bytes).expect("its own bytes");
    let mut lanes = kept.lanes().iter();
    assert!(lanes.any(|lane| lane.untold == [(1, 1), (3, 4)]));
}

#[test]
fn what_is_below_a_committed_join_and_out_of_date_is_told_once_in_the_next_run() {
    let (world, bytes) = joined_at_5();
    let (mut next, stream) = again(&world, &bytes);
    next.resumed(0, 2);
    next.event_at(0, 3, 6);
    assert_eq!(next.words(stream), ["resumed 2", "6"]);
    let now = next.now();
    let made = Now::new(now.mono, now.wall.saturating_sub(20 * 60_000));
    for (offset, seq) in [(4, 2), (5, 3), (6, 3), (7, 5)] {
        next.event_made(0, offset, seq, 7, made);
    }
    next.time(3000);
    assert_eq!(next.words(stream), ["dropped out_of_date 1"]);
}
