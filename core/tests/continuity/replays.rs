//! Replays: what waits for them, several meshes, and losses on the way.

use tidings::code::{CloseReason, SkipReason};
use tidings::wire::{self, Frame};

use super::{MESH, NONE, World};
use tidings::{NodeId, SubscriptionId};

const OTHER: [u8; 32] = [88; 32];

#[test]
fn a_missing_number_is_waited_for_while_a_replay_brings_something() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.event(0, 1);
    world.time(1000);
    world.down(0, CloseReason::Io);
    world.up(0);
    world.resumed(0, 5);
    let began = world.now;
    // 3 comes before 2 by eight seconds, and once there is nothing for nearly ten.
    world.event_at(0, 2, 3);
    world.time(began + 8000);
    world.event_at(0, 3, 4);
    world.time(began + 17_900);
    assert_eq!(world.words(stream), ["1", "interrupted 0 io", "resumed 5"]);
    world.event_at(0, 4, 2);
    assert_eq!(world.words(stream), ["2", "3", "4"]);
    // Its end starts the clock of what is still missing.
    world.event_at(0, 5, 7);
    world.event_at(0, 6, 8);
    assert!(!world.client.subscription(stream).unwrap().replaying);
    let ended = world.now;
    world.time(ended + 249);
    assert_eq!(world.words(stream), NONE);
    world.time(ended + 250);
    assert_eq!(world.words(stream), ["skipped 5..6", "7", "8"]);
}

#[test]
fn a_replay_that_brings_nothing_for_ten_seconds_is_not_waited_for() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.event(0, 1);
    world.down(0, CloseReason::Io);
    world.up(0);
    world.resumed(0, 5);
    let began = world.now;
    world.event_at(0, 2, 3);
    world.time(began + 10_249);
    assert_eq!(world.words(stream).last().unwrap(), "resumed 5");
    world.time(began + 10_250);
    assert_eq!(world.words(stream), ["skipped 2..2", "3"]);
}

#[test]
fn a_replayed_fact_of_an_unknown_publisher_waits_for_the_replay_as_well() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.down(0, CloseReason::Io);
    world.up(0);
    world.resumed(0, 2);
    world.event_at(0, 1, 6);
    world.time(world.now + 2000);
    assert_eq!(world.words(stream), ["interrupted 0 io", "resumed 2"]);
    world.event_at(0, 2, 5);
    world.time(world.now + 250);
    assert_eq!(world.words(stream), ["5", "6"]);
}

#[test]
fn a_duplicate_in_a_replay_moves_the_position_and_is_not_delivered() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    for seq in 1..=3 {
        world.event(0, seq);
    }
    world.down(1, CloseReason::Io);
    world.up(1);
    assert_eq!(world.resumes_from(1).map(|from| from.offset), Some(0));
    world.resumed(1, 3);
    for seq in 1..=3 {
        world.event_at(1, seq, seq);
    }
    assert_eq!(world.words(stream), ["1", "2", "3"]);
    world.down(1, CloseReason::Io);
    world.up(1);
    assert_eq!(world.resumes_from(1).map(|from| from.offset), Some(3));
}

#[test]
fn copies_that_come_live_move_the_position_of_their_reader() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    for seq in 1..=3 {
        world.event(0, seq);
    }
    for seq in 1..=3 {
        world.event_at(1, seq + 6, seq);
    }
    assert_eq!(world.words(stream), ["1", "2", "3"]);
    world.down(1, CloseReason::Io);
    world.up(1);
    assert_eq!(world.resumes_from(1).map(|from| from.offset), Some(9));
}

#[test]
fn a_position_is_kept_for_each_station_and_each_filter() {
    let mut world = World::new(2);
    let _first = world.subscribed();
    world.event(0, 1);
    let wide = tidings::Subscribe::new(super::common::realm(), "**", tidings::Sources::Open);
    let _second = world.client.subscribe(world.now(), wide).unwrap();
    world.accept(0);
    world.event(0, 2);
    world.down(0, CloseReason::Io);
    world.up(0);
    let far = world.stations[0].far.as_mut().unwrap();
    let mut asked = Vec::new();
    for body in far.read(&mut world.client, super::at(world.now)) {
        if let Ok(Frame::Subscribe(subscribe)) = Frame::decode(&body, wire::Phase::Established) {
            asked.push((
                subscribe.filter.to_owned(),
                subscribe.resume.map(|of| of.offset),
            ));
        }
    }
    asked.sort();
    let topic = super::common::TOPIC.to_owned();
    assert_eq!(asked, [("**".to_owned(), Some(2)), (topic, Some(1))]);
}

#[test]
fn resumed_needs_every_mesh_that_carried() {
    let mut world = World::of_meshes(&[MESH, OTHER]);
    let stream = world.subscribed();
    world.down(0, CloseReason::Io);
    world.down(1, CloseReason::Io);
    world.up(0);
    world.resumed(0, 4);
    assert_eq!(world.words(stream), ["interrupted 0 io"]);
    world.up(1);
    world.resumed(1, 3);
    assert_eq!(world.words(stream), ["resumed 7"]);
}

/// A subscription that two meshes carried; both were lost after a second, and the first is up again.
fn first_of_two_meshes() -> (World, SubscriptionId) {
    let mut world = World::of_meshes(&[MESH, OTHER]);
    let stream = world.subscribed();
    world.time(1000);
    world.down(0, CloseReason::Io);
    world.down(1, CloseReason::Io);
    world.up(0);
    (world, stream)
}

#[test]
fn a_mesh_that_does_not_come_back_is_a_gap_after_two_minutes() {
    let (mut world, stream) = first_of_two_meshes();
    world.resumed(0, 0);
    world.time(120_999);
    assert_eq!(world.words(stream), ["interrupted 0 io"]);
    world.time(121_000);
    assert_eq!(world.words(stream), ["gap 0..121000 lost"]);
}

#[test]
fn a_promised_replay_that_broke_off_while_another_mesh_carries_is_a_gap_after_two_minutes() {
    let (mut world, stream) = first_of_two_meshes();
    world.resumed(0, 4);
    world.up(1);
    world.resumed(1, 3);
    assert_eq!(world.words(stream), ["interrupted 0 io", "resumed 7"]);
    let broke = world.now + 1000;
    world.time(broke);
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 0 io"]);
    world.time(broke + 119_999);
    assert_eq!(world.words(stream), NONE);
    world.time(broke + 120_000);
    let words = world.words(stream);
    assert_eq!(words, [format!("gap 0..{} lost", broke + 120_000)]);
}

#[test]
fn a_mesh_that_cannot_replay_is_told_though_another_carried() {
    let mut world = World::of_meshes(&[MESH, OTHER]);
    let stream = world.subscribed();
    world.time(500);
    world.down(1, CloseReason::Io);
    assert_eq!(world.words(stream), NONE);
    world.up(1);
    world.time(4000);
    world.expired(1);
    assert_eq!(world.words(stream), ["gap 0..4000 expired"]);
    // A station of a mesh that never carried has nothing to answer for.
    world.down(1, CloseReason::Io);
    world.up(1);
    world.resumed(1, 0);
    assert_eq!(world.words(stream), NONE);
}

fn skipped(world: &mut World, n: usize, from: u64, to: u64, peer: Option<NodeId>) {
    skipped_of(world, n, (from, to), 3, peer);
}

fn skipped_of(
    world: &mut World,
    n: usize,
    (from, to): (u64, u64),
    count: u64,
    peer: Option<NodeId>,
) {
    let id = world.id(n);
    let reason = match peer {
        Some(_) => SkipReason::PeerInterrupted,
        None => SkipReason::Overrun,
    };
    let skipped = wire::Skipped {
        id,
        to,
        from,
        peer,
        count,
        reason,
    };
    world.send(n, &Frame::Skipped(skipped));
}

#[test]
fn a_live_station_that_gave_up_is_told_unless_a_mate_carried_throughout() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    world.time(9000);
    skipped(&mut world, 0, 9000, 8000, None);
    assert_eq!(world.words(stream), NONE);
    skipped(&mut world, 1, 8500, 7000, None);
    let words = world.words(stream);
    assert_eq!(
        words,
        ["gap 500..2000 station_skipped 3"],
        "the other has skipped the same"
    );
    skipped(&mut world, 1, 1000, 900, None);
    assert_eq!(world.words(stream), NONE);
}

#[test]
fn a_peer_that_was_cut_off_is_told_unless_it_carried_itself() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    let peer = super::common::id_of(&super::signer(101));
    world.time(9000);
    skipped(&mut world, 0, 3000, 2000, Some(peer));
    assert_eq!(world.words(stream), NONE);
    let stranger = super::common::id_of(&super::signer(150));
    skipped(&mut world, 0, 1500, 500, Some(stranger));
    let words = world.words(stream);
    assert_eq!(words, ["gap 7500..8500 peer_interrupted 3"]);
}

#[test]
fn a_loss_whose_number_nobody_knows_is_told_without_one() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.time(9000);
    skipped_of(&mut world, 0, (2000, 1000), 0, None);
    assert_eq!(world.words(stream), ["gap 7000..8000 station_skipped"]);
}
