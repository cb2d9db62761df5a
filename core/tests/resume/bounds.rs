//! What a station does when it has as many topics as it may, or as many filters that linger.

use tidings::StationLimits;
use tidings::wire::ResumeOutcome;

use super::world::{World, after, events};

fn world(topics: usize) -> World {
    let mut limits = StationLimits::default();
    limits.topics = topics;
    World::with(limits)
}

#[test]
fn topics_whose_publications_have_all_expired_make_room_and_raise_the_floor_of_what_matched_them() {
    let mut world = world(4);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, "days/*", None);
    world.subscribe(&mut far, "other/x", None);
    for day in 0..5 {
        for hour in 0..4 {
            world.publish_on(&format!("days/{day}-{hour}"), Some(0));
        }
        let read = world.read(&mut far);
        assert!(
            read.ends_with(&events(day * 4 + 1..=day * 4 + 4)),
            "{read:?}"
        );
        assert!(world.station.status().topics <= 4);
        world.wait(340_000);
        world.read(&mut far);
    }
    // The last of them go for one that is still to come.
    world.publish_on("other/x", Some(3_600_000));
    assert_eq!(world.station.status().topics, 1);
    assert_eq!(world.counter("topics_refused"), 0);
    world.read(&mut far);
    world.unsubscribe(&mut far, id);
    // What has gone with its topic is known all the same.
    for (offset, outcome) in [
        (15, ResumeOutcome::Expired { oldest: 21 }),
        (19, ResumeOutcome::Expired { oldest: 21 }),
        (20, ResumeOutcome::Resumed { count: 0 }),
    ] {
        let told = world.subscribe(&mut far, "days/*", after(position, offset));
        assert_eq!(told.2, outcome, "after {offset}");
        world.unsubscribe(&mut far, told.0);
    }
    // A closed topic that never was this filter's raises nothing.
    let told = world.subscribe(&mut far, "other/x", after(position, 0));
    assert_eq!(told.2, ResumeOutcome::Resumed { count: 1 });
}

#[test]
fn what_nobody_holds_any_more_makes_room_for_a_topic_somebody_holds_and_is_counted() {
    let mut world = world(3);
    let mut guest = world.reader(3);
    let mut left = Vec::new();
    for n in 0..3 {
        let topic = format!("guest/{n}");
        let (id, ..) = world.subscribe(&mut guest, &topic, None);
        world.publish_on(&topic, None);
        left.push(id);
    }
    for id in left {
        world.unsubscribe(&mut guest, id);
    }
    let mut far = world.reader(2);
    world.subscribe(&mut far, "weather/a", None);
    world.publish_on("weather/a", None);
    assert_eq!(world.read(&mut far).last(), events([4 + 1]).last());
    assert_eq!(world.counter("lingers_cut"), 1);
    assert_eq!(world.station.status().topics, 3);
}

#[test]
fn topics_that_are_held_are_never_given_up_for_another() {
    let mut world = world(2);
    let mut far = world.reader(2);
    world.subscribe(&mut far, "weather/*", None);
    for topic in ["weather/a", "weather/b", "weather/c"] {
        world.publish_on(topic, None);
    }
    assert_eq!(world.read(&mut far), events(1..=2));
    assert_eq!(world.counter("topics_refused"), 1);
}

#[test]
fn a_guest_with_many_filters_cuts_its_own_realms_lingers_short_and_is_counted() {
    let mut world = world(10);
    let mut guest = world.reader(3);
    for n in 0..50 {
        let (id, ..) = world.subscribe(&mut guest, &format!("guest/{n}"), None);
        world.unsubscribe(&mut guest, id);
        assert!(world.station.status().interests <= 11);
    }
    assert_eq!(world.counter("lingers_cut"), 40);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, "weather/a", None);
    world.unsubscribe(&mut far, id);
    let told = world.subscribe(&mut far, "weather/a", Some(position));
    // Lingering cut short takes its offsets; this one's is still recorded.
    assert!(
        matches!(told.2, ResumeOutcome::Resumed { count: 0 }),
        "{told:?}"
    );
}
