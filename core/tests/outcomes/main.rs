//! What becomes of a publication: which links it goes to, when it is settled and as what, and that no call that is refused leaves a trace.

mod parts;
mod publishers;
mod rig;

use parts::key;
use rig::{Rig, TOPIC, Written, at, realm, refused, request, routed};
use tidings::{ClientConfig, ClientLimits, Outcome, Publish, Refusal};

fn config() -> ClientConfig {
    ClientConfig::new(key(1))
}

fn limited(change: impl FnOnce(&mut ClientLimits)) -> ClientConfig {
    let mut limits = ClientLimits::default();
    change(&mut limits);
    config().limits(limits)
}

/// Station and number of what was written.
fn places(written: &[Written]) -> Vec<(usize, u64)> {
    written.iter().map(|one| (one.station, one.seq)).collect()
}

#[test]
fn a_ticket_is_settled_once_when_every_asked_station_has_answered() {
    let mut rig = Rig::up_with(config(), 2);
    let ticket = rig.publish(request(1)).expect("room");
    let written = rig.take_written();
    assert_eq!(places(&written), [(0, 1), (1, 1)]);
    assert_eq!(rig.progress[&ticket], 2, "both transports took it");
    rig.answer(1, written[1].id, routed(3));
    assert_eq!(rig.settled, [], "one has not answered");
    rig.answer(0, written[0].id, Outcome::NoSubscriber);
    assert_eq!(rig.settled, [(ticket, routed(3))]);
    // Answers that come again, time, an end of a link, a cancel and a close: none of them settles it again.
    rig.answer(0, written[0].id, refused());
    assert!(!rig.cancel(ticket), "it is over");
    rig.time(6000);
    rig.down(1);
    rig.client.close(rig.now);
    rig.look();
    assert_eq!(rig.settled.len(), 1);
}

#[test]
fn the_answer_that_says_most_is_the_outcome_whoever_gives_it_first() {
    let answers = [refused(), Outcome::NoSubscriber, routed(1), routed(2)];
    for (least, worse) in answers.iter().enumerate() {
        for better in &answers[least..] {
            for (first, second) in [(worse, better), (better, worse)] {
                let mut rig = Rig::up_with(config(), 2);
                let ticket = rig.publish(request(1)).expect("room");
                let written = rig.take_written();
                rig.answer(0, written[0].id, *first);
                rig.answer(1, written[1].id, *second);
                assert_eq!(rig.settled, [(ticket, *better)], "{first:?}, {second:?}");
            }
        }
    }
}

#[test]
fn what_is_known_after_five_seconds_is_the_outcome_and_nothing_known_is_unknown() {
    for (known, outcome) in [
        (None, Outcome::Unknown),
        (Some(refused()), refused()),
        (Some(Outcome::NoSubscriber), Outcome::NoSubscriber),
        (Some(routed(1)), routed(1)),
    ] {
        let mut rig = Rig::up_with(config(), 2);
        rig.time(100);
        let ticket = rig.publish(request(1)).expect("room");
        let written = rig.take_written();
        if let Some(known) = known {
            rig.answer(0, written[0].id, known);
        }
        rig.time(5099);
        assert_eq!(rig.settled, [], "time lasts");
        rig.time(5100);
        assert_eq!(rig.settled, [(ticket, outcome)]);
        // It still fills the window until it is answered; the answer is nobody's.
        rig.answer(1, written[1].id, routed(9));
        assert_eq!(rig.settled.len(), 1);
    }
}

#[test]
fn a_link_that_ends_first_is_replaced_by_another_with_the_same_bytes() {
    let mut rig = Rig::with(config(), 4);
    rig.up(0);
    rig.up(1);
    let ticket = rig.publish(request(1)).expect("room");
    rig.time(1000);
    rig.up(2);
    assert_eq!(places(&rig.written), [(0, 1), (1, 1)], "two are enough");
    rig.down(0);
    assert_eq!(places(&rig.written), [(0, 1), (1, 1), (2, 1)]);
    // No other is there until one comes up, with a second of its time left.
    rig.down(1);
    rig.time(4000);
    rig.up(3);
    assert_eq!(places(&rig.written)[3..], [(3, 1)]);
    let first = &rig.written[0].object;
    assert!(rig.written.iter().all(|one| one.object == *first));
    let (two, three) = (rig.written[2].id, rig.written[3].id);
    rig.answer(2, two, Outcome::NoSubscriber);
    rig.answer(3, three, routed(1));
    assert_eq!(rig.settled, [(ticket, routed(1))]);
    // One number for all of them.
    rig.publish(request(2)).expect("room");
    assert_eq!(rig.written.last().map(|one| one.seq), Some(2));
}

#[test]
fn a_replacement_is_sought_only_while_time_lasts() {
    let mut rig = Rig::with(config(), 2);
    rig.up(0);
    let ticket = rig.publish(request(1)).expect("room");
    rig.down(0);
    rig.time(5000);
    assert_eq!(rig.settled, [(ticket, Outcome::Unknown)]);
    rig.up(1);
    assert_eq!(places(&rig.take_written()), [(0, 1)]);
}

#[test]
fn what_a_station_took_does_not_wait_for_a_replacement_and_what_none_took_does() {
    for (answer, waits) in [
        (routed(1), false),
        (Outcome::NoSubscriber, false),
        (refused(), true),
    ] {
        let mut rig = Rig::up_with(config(), 2);
        let ticket = rig.publish(request(1)).expect("room");
        let written = rig.take_written();
        rig.down(1);
        rig.answer(0, written[0].id, answer);
        assert_eq!(rig.settled.is_empty(), waits, "{answer:?}");
        rig.time(5000);
        assert_eq!(rig.settled, [(ticket, answer)]);
    }
}

#[test]
fn what_lost_its_link_goes_on_as_soon_as_an_answer_makes_room() {
    let small = limited(|limits| limits.publish_window = 1);
    let mut rig = Rig::up_with(small.replication_factor(1), 2);
    let first = rig.publish(request(1)).expect("room at one");
    let second = rig.publish(request(2)).expect("room at the other");
    let written = rig.take_written();
    assert_eq!(places(&written), [(0, 1), (1, 2)]);
    rig.down(0);
    assert_eq!(rig.written, [], "the other is full");
    rig.answer(1, written[1].id, routed(1));
    assert_eq!(places(&rig.written), [(1, 1)], "the same number");
    assert_eq!(rig.written[0].object, written[0].object, "the same bytes");
    let id = rig.written[0].id;
    rig.answer(1, id, routed(2));
    assert_eq!(rig.settled, [(second, routed(1)), (first, routed(2))]);
}

#[test]
fn no_station_is_said_only_with_no_link_up_and_would_block_only_when_too_few_have_room() {
    let small = limited(|limits| limits.publish_window = 2);
    let mut rig = Rig::with(small, 3);
    assert_eq!(rig.publish(request(0)), Err(Refusal::NoStation));
    // One link up: one with room is enough, and none is too few.
    rig.up(0);
    rig.publish(request(1)).expect("one of one");
    rig.publish(request(2)).expect("one of one");
    assert_eq!(rig.publish(request(0)), Err(Refusal::WouldBlock));
    // Two links up, one of them with room: two are wanted.
    rig.up(1);
    assert_eq!(rig.publish(request(0)), Err(Refusal::WouldBlock));
    // Three up, two of them with room.
    rig.up(2);
    rig.publish(request(3)).expect("two of three");
    assert_eq!(places(&rig.take_written())[2..], [(1, 3), (2, 3)]);
    // Full links that end are no longer counted as up.
    rig.down(0);
    rig.down(1);
    let moved = rig.take_written();
    assert_eq!(places(&moved), [(1, 1), (2, 2)], "the other two had room");
    assert_eq!(rig.publish(request(0)), Err(Refusal::WouldBlock));
    rig.answer(2, moved[1].id, routed(1));
    let moved = rig.take_written();
    assert_eq!(places(&moved), [(2, 1)], "its second link ended too");
    assert_eq!(rig.publish(request(0)), Err(Refusal::WouldBlock));
    rig.answer(2, moved[0].id, routed(1));
    rig.publish(request(4)).expect("one of one");
    rig.down(2);
    assert_eq!(rig.publish(request(0)), Err(Refusal::NoStation));
}

#[test]
fn a_refused_call_burns_no_number_and_a_station_that_refuses_burns_one() {
    let tiny = limited(|limits| limits.publish_window = 1);
    let mut rig = Rig::up_with(tiny.replication_factor(1), 1);
    rig.publish(request(1)).expect("room");
    let epoch = rig.written[0].epoch;
    let id = rig.written[0].id;
    assert_eq!(rig.publish(request(0)), Err(Refusal::WouldBlock));
    rig.answer(0, id, refused());
    let long = Publish::new(realm(), TOPIC, &"x".repeat(1 << 20)).expect("a payload");
    assert!(matches!(rig.publish(long), Err(Refusal::TooLarge { .. })));
    let bad = Publish::raw(realm(), TOPIC, vec![0xff]);
    assert!(matches!(rig.publish(bad), Err(Refusal::BadPayload(_))));
    let sleepy = request(0).ttl(tidings::Duration::from_secs(3601));
    assert_eq!(rig.publish(sleepy), Err(Refusal::TtlTooLong));
    rig.publish(request(2)).expect("room");
    let last = rig.written.last().expect("written");
    assert_eq!(
        (last.epoch, last.seq),
        (epoch, 2),
        "the first one's is used"
    );
}

#[test]
fn one_for_a_single_subscriber_goes_to_one_link_and_never_to_a_second() {
    let mut rig = Rig::up_with(config(), 3);
    let lost = rig.publish(request(1).one()).expect("room");
    assert_eq!(places(&rig.written), [(0, 1)]);
    rig.down(0);
    assert_eq!(rig.settled, [(lost, Outcome::Unknown)], "at once");
    assert_eq!(rig.written.len(), 1, "not tried again in silence");
    let second = rig.publish(request(2).one()).expect("room");
    let (station, id) = (rig.written[1].station, rig.written[1].id);
    rig.answer(station, id, routed(1));
    assert_eq!(rig.settled[1], (second, routed(1)));
}

#[test]
fn what_was_given_up_before_it_was_written_is_never_sent_and_takes_no_room() {
    let small = limited(|limits| limits.publish_window = 1);
    let mut rig = Rig::up_with(small.replication_factor(1), 1);
    rig.stall(0, true);
    let ticket = rig.publish(request(1)).expect("room");
    assert_eq!(rig.publish(request(2)), Err(Refusal::WouldBlock));
    assert!(rig.cancel(ticket));
    let late = rig.publish(request(2)).expect("its place is free");
    rig.time(5000);
    assert_eq!(
        rig.settled,
        [(ticket, Outcome::Cancelled), (late, Outcome::Unknown)]
    );
    let third = rig.publish(request(3)).expect("room again");
    rig.stall(0, false);
    assert_eq!(places(&rig.written), [(0, 3)], "numbers stay used");
    assert_eq!(rig.progress.keys().copied().collect::<Vec<_>>(), [third]);
}

#[test]
fn closing_settles_what_is_under_way_once() {
    let mut rig = Rig::up_with(config(), 2);
    let answered = rig.publish(request(1)).expect("room");
    let unknown = rig.publish(request(2)).expect("room");
    let written = rig.take_written();
    rig.answer(0, written[0].id, routed(1));
    rig.client.close(rig.now);
    rig.look();
    let mut settled = rig.settled.clone();
    settled.sort_by_key(|(ticket, _)| *ticket);
    assert_eq!(
        settled,
        [(answered, routed(1)), (unknown, Outcome::Unknown)]
    );
    assert_eq!(rig.publish(request(3)), Err(Refusal::Closed));
}

#[test]
fn nothing_is_published_under_an_epoch_that_was_not_written_down() {
    let mut rig = Rig::up_with(config().keep_epochs(true).last_epoch(7), 1);
    let Err(Refusal::EpochNotKept { epoch }) = rig.publish(request(1)) else {
        panic!("nothing is kept");
    };
    assert_eq!(epoch, rig::START * 1000);
    assert_eq!(rig.client.last_epoch(), 7, "it was not used");
    rig.client.epochs_kept(epoch - 1);
    assert!(rig.publish(request(1)).is_err());
    rig.client.epochs_kept(epoch);
    rig.publish(request(1)).expect("it is kept");
    rig.time(10);
    rig.publish(request(2)).expect("the same epoch");
    let numbers: Vec<_> = rig.written.iter().map(|one| (one.epoch, one.seq)).collect();
    assert_eq!(numbers, [(epoch, 1), (epoch, 2)]);
    let other = Publish::new(realm(), "weather/acme/app/days/other_v1", &1).expect("a number");
    let Err(Refusal::EpochNotKept { epoch: next }) = rig.publish(other) else {
        panic!("another topic, another epoch");
    };
    assert!(next > epoch);
}

#[test]
fn a_run_goes_on_above_the_last_epoch_of_the_one_before_though_the_wall_went_back() {
    let mut rig = Rig::up_with(config(), 1);
    rig.publish(request(1)).expect("room");
    let before = rig.client.last_epoch();
    assert_eq!(before, rig.written[0].epoch);
    let mut earlier = at(0);
    earlier.wall = earlier.wall.saturating_sub(86_400_000);
    let mut again = Rig::starting(config().last_epoch(before), 1, earlier);
    again.now = earlier;
    again.up(0);
    again.publish(request(2)).expect("room");
    let first = &again.written[0];
    assert_eq!((first.epoch, first.seq), (before + 1, 1));
}
