//! A test per rule of what readers are told.

use tidings::ClientConfig;
use tidings::code::{CloseReason, SubscribeRefusal};
use tidings::wire::{Frame, ResumeOutcome};

use super::common::{at, open, signer};
use super::{NONE, World};

#[test]
fn g_01_a_carrier_is_a_link_whose_station_accepted() {
    let mut world = World::new(3);
    let stream = world.subscribe();
    world.accept(0);
    world.refuse(1, SubscribeRefusal::TooManyRealms);
    assert_eq!(
        world.client.subscription(stream).map(|of| of.carriers),
        Some(1)
    );
    assert_eq!(world.words(stream), ["refused too_many_realms"]);
    // Neither who refused nor who has not answered carries.
    world.down(1, CloseReason::Io);
    world.down(2, CloseReason::Io);
    assert_eq!(world.words(stream), NONE);
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 0 io"]);
}

#[test]
fn g_02_carried_interrupted_carried() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    let since = |world: &World| world.client.subscription(stream).unwrap().interrupted_since;
    assert_eq!(since(&world), None);
    for round in 1..4u64 {
        world.down(0, CloseReason::Io);
        assert!(since(&world).is_some());
        world.up(0);
        assert!(since(&world).is_some(), "a link alone carries nothing");
        world.resumed(0, 0);
        assert_eq!(since(&world), None);
        let words = world.words(stream);
        assert_eq!(words.len(), 2, "round {round}: {words:?}");
        assert_eq!(words[1], "resumed 0");
    }
}

#[test]
fn a_position_does_not_go_back_and_an_anycast_has_none() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.event(0, 1);
    world.event(0, 2);
    for offset in [0, 1] {
        world.event_by(0, offset, 1, 8 + offset);
    }
    assert_eq!(world.words(stream), ["1", "2", "1", "1"]);
    world.down(0, CloseReason::Io);
    world.up(0);
    assert_eq!(world.resumes_from(0).map(|from| from.offset), Some(2));
}

#[test]
fn g_03_the_end_of_the_last_carrier_is_told_to_every_stream() {
    let mut world = World::new(2);
    let first = world.subscribed();
    let second = world.subscribe();
    world.time(5000);
    world.down(1, CloseReason::Io);
    assert_eq!(world.words(first), NONE);
    world.down(0, CloseReason::Draining);
    assert_eq!(world.words(first), ["interrupted 0 draining"]);
    assert_eq!(world.words(second), ["interrupted 0 draining"]);
}

#[test]
fn g_04_from_is_the_furthest_that_any_carrier_of_the_mesh_was_read() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    world.time(10_000);
    world.progress(0, 0);
    world.time(10_500);
    world.progress(1, 4000);
    world.time(11_000);
    world.down(0, CloseReason::Io);
    world.time(12_000);
    world.down(1, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 10000 io"]);
}

#[test]
fn g_04_from_is_the_acceptance_before_any_progress() {
    let mut world = World::new(1);
    world.time(700);
    let stream = world.subscribe();
    world.time(900);
    world.accept(0);
    world.time(5000);
    world.event(0, 1);
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["1", "interrupted 900 io"]);
}

#[test]
fn g_05_the_reason_is_why_the_last_link_ended() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    world.down(1, CloseReason::SlowReader);
    world.down(0, CloseReason::LivenessLost);
    assert_eq!(world.words(stream), ["interrupted 0 liveness_lost"]);
}

#[test]
fn g_06_the_first_acceptance_after_it_is_told_once() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    world.time(100);
    world.down(0, CloseReason::Io);
    world.down(1, CloseReason::Io);
    world.up(0);
    world.time(5000);
    world.expired(0);
    world.up(1);
    world.expired(1);
    let words = world.words(stream);
    assert_eq!(words, ["interrupted 0 io", "gap 0..5000 expired"]);
}

#[test]
fn g_07_a_link_is_not_enough_and_who_refuses_is_asked_again() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.down(0, CloseReason::Io);
    world.up(0);
    world.refuse(0, SubscribeRefusal::TooManyRealms);
    let words = world.words(stream);
    assert_eq!(words, ["interrupted 0 io", "refused too_many_realms"]);
    let status = world.client.subscription(stream).unwrap();
    assert_eq!(status.refused, Some(SubscribeRefusal::TooManyRealms));
    // Asked again by a timer, the link staying as it is; the same answer is no news.
    let began = world.now;
    for _ in 0..3 {
        while !world
            .read(0)
            .iter()
            .any(|word| word.starts_with("subscribe "))
        {
            let due = world.client.poll_timeout().expect("it is asked again");
            world.time(due.as_micros().div_ceil(1000));
            assert!(world.now < began + 90_000, "at most 30 s later");
        }
        world.refuse(0, SubscribeRefusal::TooManyRealms);
        assert_eq!(world.words(stream), NONE);
    }
    world.asked_again();
    world.expired(0);
    let words = world.words(stream);
    assert_eq!(words, [format!("gap 0..{} expired", world.now)]);
    assert_eq!(world.client.subscription(stream).unwrap().refused, None);
}

impl World {
    /// Waits until the first station is asked for a subscription.
    fn asked_again(&mut self) {
        self.stations[0].told.clear();
        for _ in 0..400 {
            self.time(self.now + 100);
            if self
                .read(0)
                .iter()
                .any(|word| word.starts_with("subscribe "))
            {
                return;
            }
        }
        panic!("it is not asked again");
    }
}

#[test]
fn g_08_nothing_at_the_first_acceptance_nor_while_another_carries_nor_after_the_end() {
    let mut world = World::new(2);
    let stream = world.subscribe();
    world.time(40_000 / 2);
    world.accept(0);
    world.time(25_000);
    world.accept(1);
    world.down(0, CloseReason::Io);
    world.up(0);
    world.expired(0);
    assert_eq!(world.words(stream), NONE);
    world.client.unsubscribe(world.now(), stream).unwrap();
    world.down(0, CloseReason::Io);
    world.down(1, CloseReason::Io);
    assert_eq!(world.words(stream), ["ended unsubscribed"]);
}

#[test]
fn g_09_a_link_that_dies_before_its_station_answered_carried_nothing() {
    let mut world = World::new(2);
    let stream = world.subscribe();
    world.accept(0);
    world.down(1, CloseReason::Io);
    assert_eq!(world.words(stream), NONE);
    world.down(0, CloseReason::LivenessLost);
    assert_eq!(world.words(stream), ["interrupted 0 liveness_lost"]);
    // Nor does it change an interruption.
    world.up(1);
    world.down(1, CloseReason::Draining);
    world.up(1);
    world.time(9000);
    world.accept(1);
    assert_eq!(world.words(stream), ["gap 0..9000 lost"]);
}

#[test]
fn g_10_who_joins_meanwhile_is_told_of_the_window_that_began_before() {
    let mut world = World::new(1);
    let first = world.subscribed();
    world.time(1000);
    let second = world.subscribe();
    assert_eq!(world.words(second), NONE);
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(second), ["interrupted 0 io"]);
    world.up(0);
    let third = world.subscribe();
    assert_eq!(world.words(third), NONE);
    world.time(7000);
    world.expired(0);
    for stream in [second, third] {
        assert_eq!(world.words(stream), ["gap 0..7000 expired"]);
    }
    assert_eq!(
        world.words(first),
        ["interrupted 0 io", "gap 0..7000 expired"]
    );
}

#[test]
fn g_11_the_last_one_that_leaves_forgets_the_interruption() {
    let mut world = World::new(1);
    let first = world.subscribed();
    let second = world.subscribe();
    world.down(0, CloseReason::Io);
    world.client.unsubscribe(world.now(), first).unwrap();
    assert_eq!(
        world.words(first),
        ["interrupted 0 io", "ended unsubscribed"]
    );
    world.client.unsubscribe(world.now(), second).unwrap();
    let third = world.subscribe();
    world.up(0);
    assert_eq!(
        world.resumes_from(0),
        None,
        "a new subscription is the first"
    );
    world.accept(0);
    assert_eq!(world.words(third), NONE);
}

#[test]
fn g_12_a_node_that_is_closed_says_only_that() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 0 io"]);
    world.client.close(world.now());
    assert_eq!(world.words(stream), ["ended closed"]);
    let mut carried = World::new(1);
    let stream = carried.subscribed();
    carried.client.close(carried.now());
    assert_eq!(carried.words(stream), ["ended closed"]);
}

#[test]
fn g_13_a_station_that_withdraws_has_ended_its_part() {
    let mut world = World::new(2);
    let stream = world.subscribed();
    world.refuse(1, SubscribeRefusal::Purged);
    assert_eq!(world.words(stream), ["refused purged"]);
    world.time(300);
    world.refuse(0, SubscribeRefusal::Draining);
    let words = world.words(stream);
    assert_eq!(words, ["interrupted 0 refused", "refused draining"]);
    assert_eq!(world.client.subscription(stream).unwrap().carriers, 0);
    // It is asked again with its position.
    world.asked_again();
    assert!(world.resumes_from(0).is_some());
    world.resumed(0, 2);
    assert_eq!(world.words(stream), ["resumed 2"]);
}

#[test]
fn g_14_notices_precede_what_comes_later_and_what_is_held_may_follow() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.event(0, 1);
    world.event(0, 3);
    world.down(0, CloseReason::Io);
    world.up(0);
    world.expired(0);
    world.event(0, 4);
    let words = world.words(stream);
    let place = |word: &str| words.iter().position(|found| found.starts_with(word));
    assert_eq!(words[0], "1");
    assert!(
        place("interrupted") < place("gap") && place("gap") < place("4"),
        "{words:?}"
    );
    assert!(place("skipped 2..2") < place("3"), "{words:?}");
}

#[test]
fn g_15_a_reader_that_ignores_notices_is_served_on() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    for seq in 1..20 {
        world.event(0, seq);
        world.down(0, CloseReason::Io);
        world.up(0);
        world.resumed(0, 0);
    }
    let words = world.words(stream);
    let facts = words.iter().filter(|word| word.parse::<u64>().is_ok());
    assert_eq!(facts.count(), 19);
    assert_eq!(words.len(), 19 * 3);
}

#[test]
fn g_16_a_wall_that_steps_makes_no_window_too_short() {
    for step in [-3_600_000i64, 3_600_000] {
        let mut world = World::new(1);
        let stream = world.subscribed();
        world.time(10_000);
        world.progress(0, 0);
        world.time(12_000);
        let shifted = |now: u64| {
            let mut shifted = at(now);
            shifted.wall =
                tidings::WallMs::new(shifted.wall.as_millis().saturating_add_signed(step));
            shifted
        };
        let far = world.stations[0].far.take().unwrap();
        let down = tidings::LinkEvent::Down {
            link: far.id,
            reason: CloseReason::Io,
        };
        world.client.handle_link(shifted(12_000), down).unwrap();
        let words = world.words(stream);
        let wanted = [format!("interrupted {} io", 10_000 + step.min(0))];
        assert_eq!(words, wanted, "the earlier of what the clocks say");
    }
}

#[test]
fn g_17_the_end_of_a_link_ends_no_stream() {
    let mut world = World::with(ClientConfig::new(signer(1)), &[super::MESH]);
    let stream = world.subscribed();
    for _ in 0..3 {
        world.down(0, CloseReason::Io);
        world.up(0);
        world.answer(0, ResumeOutcome::Expired { oldest: 1 });
    }
    let words = world.words(stream);
    assert!(
        !words.iter().any(|word| word.starts_with("ended")),
        "{words:?}"
    );
    assert!(world.client.subscription(stream).is_some());
    // Its own goodbye as little.
    let goodbye = tidings::wire::Goodbye {
        reason: CloseReason::Draining,
        detail: "",
    };
    world.send(0, &Frame::Goodbye(goodbye));
    assert_eq!(world.ended(), [CloseReason::Draining]);
    assert_eq!(world.words(stream).len(), 1);
    assert!(world.client.subscribe(world.now(), open()).is_ok());
}
