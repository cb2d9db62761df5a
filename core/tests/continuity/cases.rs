//! Failures that people met elsewhere. The first line of each says what they saw.

use tidings::code::{CloseReason, SubscribeRefusal};
use tidings::wire::{Frame, Phase, Progress};
use tidings::{Instant, LinkEvent, Now};

use super::common::at;
use super::{NONE, World};

/// A reconnect went so smoothly that nobody learned of the hole.
#[test]
fn br_02_a_silent_reconnect_is_told_whatever_its_length() {
    for outage in [6, 21_600_000] {
        let mut world = World::new(1);
        let stream = world.subscribed();
        world.time(10);
        world.event(0, 1);
        world.time(20);
        world.down(0, CloseReason::Io);
        world.time(20 + outage);
        world.up(0);
        world.expired(0);
        let to = world.now;
        world.event(0, 3);
        world.time(to + 1000);
        let words = world.words(stream);
        let gap = format!("gap 0..{to} expired");
        // After six hours nobody knows any more which numbers that publisher had.
        let after: &[&str] = match outage {
            6 => &["skipped 2..2", "3"],
            _ => &["resynced", "3"],
        };
        assert_eq!(words[..3], ["1", "interrupted 0 io", gap.as_str()]);
        assert_eq!(words[3..], *after);
    }
}

/// The same, and the station replays what was missed.
#[test]
fn br_02_a_replay_leaves_no_gap() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.event(0, 1);
    world.down(0, CloseReason::Io);
    world.up(0);
    world.resumed(0, 1);
    world.event_at(0, 2, 2);
    world.event(0, 3);
    let words = world.words(stream);
    assert_eq!(words, ["1", "interrupted 0 io", "resumed 1", "2", "3"]);
}

/// Only the listener that had registered a hook was told.
#[test]
fn br_03_every_listener_is_told_of_what_concerns_it() {
    let mut world = World::new(1);
    let s1 = world.subscribed();
    let s2 = world.subscribe();
    world.time(100);
    world.down(0, CloseReason::Io);
    let s3 = world.subscribe();
    world.up(0);
    world.time(2000);
    world.expired(0);
    world.time(3000);
    let s4 = world.subscribe();
    for stream in [s1, s2] {
        let words = world.words(stream);
        assert_eq!(words, ["interrupted 0 io", "gap 0..2000 expired"]);
    }
    assert_eq!(world.words(s3), ["gap 0..2000 expired"]);
    assert_eq!(world.words(s4), NONE);
}

/// A redundant link masked an outage, or failed to.
#[test]
fn br_04_carrying_is_a_property_of_all_links() {
    // (a) Another carries.
    let mut world = World::new(2);
    let stream = world.subscribed();
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), NONE);
    world.up(0);
    world.expired(0);
    assert_eq!(world.words(stream), NONE);
    // (b) Both end: one interruption, one gap.
    world.time(10_000);
    world.progress(0, 0);
    world.time(10_100);
    world.progress(1, 0);
    world.down(0, CloseReason::Io);
    world.down(1, CloseReason::LivenessLost);
    world.up(0);
    world.time(20_000);
    world.expired(0);
    world.up(1);
    world.expired(1);
    let words = world.words(stream);
    let wanted = [
        "interrupted 10100 liveness_lost",
        "gap 10100..20000 expired",
    ];
    assert_eq!(words, wanted);
    // (c) One that never carried.
    let mut world = World::new(2);
    let stream = world.subscribe();
    world.accept(0);
    world.down(1, CloseReason::Io);
    assert_eq!(world.words(stream), NONE);
}

/// The second subscribe was swallowed because the first unsubscribe was under way.
#[test]
fn br_06_unsubscribe_and_subscribe_at_once_ends_subscribed() {
    let mut world = World::new(1);
    let first = world.subscribed();
    assert_eq!(world.read(0), ["subscribe 1"]);
    world.time(10);
    world.client.unsubscribe(world.now(), first).unwrap();
    let second = world.subscribe();
    assert_eq!(world.read(0), ["unsubscribe 1", "subscribe 2"]);
    world.accept(0);
    world.event(0, 1);
    assert_eq!(world.words(second), ["1"]);
    assert_eq!(world.words(first), ["ended unsubscribed"]);
}

/// What was unsubscribed without a link came back with it.
#[test]
fn br_06_what_was_unsubscribed_offline_stays_so() {
    let mut world = World::new(1);
    let first = world.subscribed();
    assert_eq!(world.read(0), ["subscribe 1"]);
    world.down(0, CloseReason::Io);
    world.client.unsubscribe(world.now(), first).unwrap();
    world.up(0);
    assert_eq!(world.read(0), NONE);
    let second = world.subscribe();
    assert_eq!(world.read(0), ["subscribe 1"]);
    world.client.unsubscribe(world.now(), second).unwrap();
    world.down(0, CloseReason::Io);
    let third = world.subscribe();
    world.up(0);
    assert_eq!(world.read(0), ["subscribe 1"]);
    world.accept(0);
    assert_eq!(world.words(third), NONE);
}

/// What a session recovered was delivered by the next one again.
#[test]
fn br_48_each_once_whatever_sessions_bring() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    for seq in 1..=4 {
        world.event(0, seq);
    }
    world.down(0, CloseReason::Io);
    world.up(0);
    world.resumed(0, 3);
    world.event_at(0, 5, 5);
    world.event_at(0, 6, 6);
    let old = world.stations[0].far.take().expect("a link");
    let down = LinkEvent::Down {
        link: old.id,
        reason: CloseReason::Io,
    };
    world.client.handle_link(world.now(), down).unwrap();
    world.up(0);
    assert_eq!(world.resumes_from(0).map(|from| from.offset), Some(6));
    world.resumed(0, 1);
    // What the old link still brings belongs to nothing.
    let mut late = old;
    let object = super::Fact::numbered(9).sign(&super::signer(7));
    let taken = late.event(&mut world.client, at(world.now), 1, 9, &object);
    assert_eq!(taken, Ok(tidings::Intake::Open));
    world.event_at(0, 6, 6);
    world.event_at(0, 7, 7);
    let words = world.words(stream);
    let wanted = [
        "1",
        "2",
        "3",
        "4",
        "interrupted 0 io",
        "resumed 3",
        "5",
        "6",
        "interrupted 0 io",
        "resumed 1",
        "7",
    ];
    assert_eq!(words, wanted);
    assert_eq!(world.client.subscription(stream).unwrap().delivered, 7);
}

/// A lid was closed: the timer's clock stood still, or ran on.
#[test]
fn br_52_a_sleep_is_noticed_by_either_clock() {
    const SLEEP: u64 = 3 * 3600 * 1000;
    for mono_runs in [false, true] {
        let mut world = World::new(1);
        let stream = world.subscribed();
        world.time(10_000);
        world.progress(0, 0);
        world.time(11_000);
        let mono = if mono_runs { SLEEP } else { 0 };
        let awake = |after: u64| {
            let moment = at(11_000 + after + SLEEP);
            Now::new(Instant::from_millis(11_000 + after + mono), moment.wall)
        };
        while world.client.handle_timeout(awake(1)) == tidings::Turn::More {}
        // It asks at once; what lay in a buffer meanwhile may have been said right after it fell asleep.
        let far = world.stations[0].far.as_mut().expect("a link");
        let mut wrote = Vec::new();
        let transmit = world.client.poll_transmit(far.id, &mut wrote);
        let frame = Frame::decode(&wrote[4..], Phase::Established);
        assert!(matches!(frame, Ok(Frame::Ping(_))), "{frame:?}");
        let bytes = transmit.expect("a probe").len();
        world.client.handle_written(awake(1), far.id, bytes);
        let progress = Progress {
            id: 1,
            offset: 0,
            behind_ms: 0,
        };
        let taken = far.frame(&mut world.client, awake(2), &Frame::Progress(progress));
        assert_eq!(taken, Ok(tidings::Intake::Open));
        // No answer within 5 s.
        while world.client.handle_timeout(awake(5100)) == tidings::Turn::More {}
        assert_eq!(world.ended(), [CloseReason::LivenessLost]);
        let words = world.words(stream);
        assert_eq!(
            words,
            ["interrupted 11000 liveness_lost"],
            "mono runs: {mono_runs}"
        );
    }
}

/// A subscription that was withdrawn looked like a quiet one.
#[test]
fn a_withdrawn_subscription_is_a_state_that_can_be_read() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.refuse(0, SubscribeRefusal::Purged);
    let status = world.client.subscription(stream).unwrap();
    assert_eq!(status.refused, Some(SubscribeRefusal::Purged));
    assert_eq!(status.interrupted_since, Some(at(0).wall));
}
