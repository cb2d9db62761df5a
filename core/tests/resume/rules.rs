//! The edges, one by one.

use tidings::pump::Machine;
use tidings::sim::START;
use tidings::wire::{self, Frame, Phase, Position, ResumeOutcome};
use tidings::{Now, RunId, Station, StationConfig, StationLimits};

use super::common::{self, Fact, Far, TOPIC, at, realm, signer, station};
use super::world::{Got, World, after, events, got};

#[test]
fn br_44_a_lag_of_exactly_the_ring_replays_in_full_and_one_more_expires() {
    for ring in [1, 2, 3, 5, 8u64] {
        let mut world = World::new(ring as usize);
        let mut far = world.reader(2);
        let (_, position, outcome, _) = world.subscribe(&mut far, TOPIC, None);
        assert_eq!((position.offset, outcome), (0, ResumeOutcome::None));
        let last = ring + 7;
        world.publish(last);
        world.read(&mut far);
        let oldest = last - ring + 1;
        for offset in 0..last + 3 {
            let asked = after(position, offset);
            let (id, live, outcome, read) = world.subscribe(&mut far, TOPIC, asked);
            assert_eq!(
                live,
                Position {
                    offset: last,
                    ..position
                }
            );
            if (oldest - 1..=last).contains(&offset) {
                let count = last - offset;
                assert_eq!(outcome, ResumeOutcome::Resumed { count }, "after {offset}");
                assert_eq!(read, events(offset + 1..=last), "after {offset}");
            } else {
                assert_eq!(outcome, ResumeOutcome::Expired { oldest }, "after {offset}");
                assert_eq!(read, [], "after {offset}");
            }
            world.unsubscribe(&mut far, id);
        }
        // The position that came with the refusal is one that is never refused.
        let (_, live, outcome, _) =
            world.subscribe(&mut far, TOPIC, after(position, u64::MAX >> 11));
        assert_eq!(outcome, ResumeOutcome::Expired { oldest });
        let (_, _, outcome, _) = world.subscribe(&mut far, TOPIC, Some(live));
        assert_eq!(outcome, ResumeOutcome::Resumed { count: 0 });
    }
}

#[test]
fn a_position_of_another_run_is_expired_whatever_its_offset() {
    let mut world = World::new(8);
    let mut far = world.reader(2);
    let (_, position, ..) = world.subscribe(&mut far, TOPIC, None);
    world.publish(3);
    world.read(&mut far);
    for offset in 0..5 {
        let other = Position {
            run: RunId::new([9; 8]),
            offset,
        };
        let (_, live, outcome, read) = world.subscribe(&mut far, TOPIC, Some(other));
        assert_eq!(outcome, ResumeOutcome::Expired { oldest: 1 });
        assert_eq!((live.run, live.offset, read), (position.run, 3, vec![]));
    }
    assert_eq!(
        (world.counter("resumed"), world.counter("resumes_expired")),
        (0, 5)
    );
}

#[test]
fn each_station_and_each_realm_has_a_run_of_its_own_and_a_realm_that_ended_another() {
    let mut runs = Vec::new();
    for key in [11, 12u8] {
        let config = StationConfig::new(signer(key.into())).allow_local(true);
        let config = config.probe_every(tidings::link::PROBE_EVERY_MAX);
        let entropy = tidings::sim::entropy(key);
        let config = config.build().expect("valid");
        let mut world = World::new(8);
        world.station = Station::new(config, common::seed(), entropy, at(0));
        let mut far = world.reader(2);
        let (id, first, ..) = world.subscribe(&mut far, TOPIC, None);
        world.unsubscribe(&mut far, id);
        world.wait(119_999);
        let (id, again, outcome, _) = world.subscribe(&mut far, TOPIC, Some(first));
        assert_eq!(
            (again, outcome),
            (first, ResumeOutcome::Resumed { count: 0 })
        );
        world.unsubscribe(&mut far, id);
        world.wait(120_000);
        let (_, later, outcome, _) = world.subscribe(&mut far, TOPIC, Some(first));
        assert_eq!(outcome, ResumeOutcome::Expired { oldest: 1 });
        runs.extend([first.run, later.run]);
    }
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), 4);
}

#[test]
fn a_replay_of_several_topics_comes_oldest_first_and_goes_over_into_live_reading() {
    let mut world = World::new(8);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, "weather/**", None);
    world.unsubscribe(&mut far, id);
    let topics = [
        "weather/c",
        "weather/a",
        "weather/b",
        "weather/a",
        "weather/c",
    ];
    for topic in topics {
        world.publish_on(topic, None);
    }
    world.ask(&mut far, "weather/**", after(position, 1));
    let count = 4;
    let live = Position {
        offset: 5,
        ..position
    };
    let told = Got::Subscribed(live, ResumeOutcome::Resumed { count });
    assert_eq!(world.frame(&far), Some(told));
    assert_eq!(world.frame(&far), Some(Got::Event(2)));
    assert_eq!(world.frame(&far), Some(Got::Event(3)));
    // While it replays, more comes: on a topic that is read, and on one that did not exist.
    world.publish_on("weather/b", None);
    world.publish_on("weather/d", None);
    world.publish_on("weather/a", None);
    assert_eq!(world.read(&mut far), events(4..=8));
    world.publish_on("weather/d", None);
    assert_eq!(world.read(&mut far), events(9..=9));
}

#[test]
fn a_replay_has_the_publications_themselves() {
    let mut world = World::new(8);
    let mut far = world.reader(2);
    let (_, position, ..) = world.subscribe(&mut far, TOPIC, None);
    world.publish(5);
    let live = far.read(&mut world.station, at(0));
    let mut other = world.reader(3);
    let taken = other.frame(
        &mut world.station,
        at(0),
        &Frame::Subscribe(wire::Subscribe {
            id: 1,
            realm: realm(),
            filter: TOPIC,
            resume: Some(position),
        }),
    );
    assert!(taken.is_ok());
    assert_eq!(other.read(&mut world.station, at(0))[1..], live[..]);
}

#[test]
fn an_interest_records_for_two_minutes_after_its_last_holder_and_lets_a_topic_start_its_ring() {
    let mut world = World::new(8);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, "weather/*", None);
    world.unsubscribe(&mut far, id);
    world.wait(60_000);
    world.publish_on("weather/a", None);
    assert_eq!(world.station.status().topics, 1);
    world.wait(59_999);
    world.publish_on("weather/b", None);
    let (id, _, outcome, read) = world.subscribe(&mut far, "weather/*", Some(position));
    assert_eq!(outcome, ResumeOutcome::Resumed { count: 2 });
    assert_eq!(read, events(1..=2));
    // The two minutes begin anew, and nothing is left after them.
    world.unsubscribe(&mut far, id);
    world.wait(119_999);
    assert_eq!(world.station.status().topics, 2);
    world.wait(1);
    let status = world.station.status();
    assert_eq!((status.topics, status.interests, status.realms), (0, 0, 0));
    world.publish_on("weather/a", None);
    assert_eq!(world.station.status().topics, 0);
}

#[test]
fn a_position_from_before_the_end_of_a_recording_is_expired_though_nothing_was_admitted_since() {
    let mut world = World::new(8);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, TOPIC, None);
    // Another interest keeps the realm and its run.
    world.subscribe(&mut far, "weather/other", None);
    world.unsubscribe(&mut far, id);
    world.wait(120_000);
    world.read(&mut far);
    world.publish(1);
    assert_eq!(world.counter("admitted"), 1);
    assert_eq!(world.station.status().topics, 0, "nobody wants it");
    let (_, live, outcome, read) = world.subscribe(&mut far, TOPIC, Some(position));
    assert_eq!(live.run, position.run);
    let oldest = live.offset + 1;
    assert_eq!((outcome, read), (ResumeOutcome::Expired { oldest }, vec![]));
    let (_, _, outcome, _) = world.subscribe(&mut far, TOPIC, Some(live));
    assert_eq!(outcome, ResumeOutcome::Resumed { count: 0 });
}

#[test]
fn a_position_from_before_the_recording_of_this_interest_is_expired_though_a_ring_is_older() {
    let mut world = World::new(8);
    let mut far = world.reader(2);
    let (_, position, ..) = world.subscribe(&mut far, "weather/a", None);
    world.publish_on("weather/a", None);
    world.publish_on("weather/a", None);
    let (_, begun, ..) = world.subscribe(&mut far, "weather/*", None);
    world.publish_on("weather/a", None);
    world.read(&mut far);
    for (offset, outcome) in [
        (1, ResumeOutcome::Expired { oldest: 3 }),
        (2, ResumeOutcome::Resumed { count: 1 }),
        (3, ResumeOutcome::Resumed { count: 0 }),
        (4, ResumeOutcome::Expired { oldest: 3 }),
    ] {
        let told = world.subscribe(&mut far, "weather/*", after(begun, offset));
        assert_eq!(told.2, outcome, "after {offset}");
    }
    let told = world.subscribe(&mut far, "weather/a", Some(position));
    assert_eq!(told.2, ResumeOutcome::Resumed { count: 3 });
}

#[test]
fn what_has_expired_counts_as_given_up_at_the_old_end_and_in_the_middle() {
    let mut world = World::new(8);
    let mut far = world.reader(2);
    let (_, position, ..) = world.subscribe(&mut far, TOPIC, None);
    for ttl in [3_600_000, 1000, 3_600_000, 3_600_000] {
        world.publish_on(TOPIC, Some(ttl));
    }
    world.read(&mut far);
    let skew = 300_000;
    for (ms, covered) in [(1000 + skew, 0), (1, 2)] {
        world.wait(ms);
        world.read(&mut far);
        for offset in 0..=4 {
            let told = world.subscribe(&mut far, TOPIC, after(position, offset));
            let outcome = match offset >= covered {
                true => ResumeOutcome::Resumed { count: 4 - offset },
                false => ResumeOutcome::Expired {
                    oldest: covered + 1,
                },
            };
            assert_eq!(told.2, outcome, "after {offset}");
            let count = if offset >= covered { 4 - offset } else { 0 };
            assert_eq!(told.3.len() as u64, count);
        }
    }
    world.wait(3_600_000 + skew);
    world.read(&mut far);
    let told = world.subscribe(&mut far, TOPIC, after(position, 3));
    assert_eq!(told.2, ResumeOutcome::Expired { oldest: 5 });
    let told = world.subscribe(&mut far, TOPIC, after(position, 4));
    assert_eq!(told.2, ResumeOutcome::Resumed { count: 0 });
    assert_eq!(world.counter("rings_gave_up_expired"), 4);
}

#[test]
fn what_the_byte_budget_took_raises_the_floor_of_interests_above_it_and_of_no_other() {
    let length = Fact::numbered(1).sign(&signer(7)).len() + 16;
    let mut limits = StationLimits::default();
    limits.publication_bytes = length;
    limits.ring_bytes = 6 * length;
    let mut world = World::with(limits);
    let mut far = world.reader(2);
    let (_, wide, ..) = world.subscribe(&mut far, "weather/**", None);
    let (_, small, ..) = world.subscribe(&mut far, "weather/small", None);
    world.publish_on("weather/small", None);
    for _ in 0..20 {
        world.publish_on("weather/large", None);
    }
    world.read(&mut far);
    let gone = world.counter("rings_gave_up_budget");
    assert!(gone > 10, "{gone}");
    let told = world.subscribe(&mut far, "weather/small", Some(small));
    assert_eq!(told.2, ResumeOutcome::Resumed { count: 1 });
    for (offset, outcome) in [
        (gone, ResumeOutcome::Expired { oldest: gone + 2 }),
        (gone + 1, ResumeOutcome::Resumed { count: 20 - gone }),
    ] {
        let told = world.subscribe(&mut far, "weather/**", after(wide, offset));
        assert_eq!(told.2, outcome);
    }
}

#[test]
fn a_live_reader_that_was_overwritten_is_told_once_and_its_position_is_behind_the_loss() {
    let mut world = World::new(4);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, TOPIC, None);
    for _ in 0..10 {
        world.publish(1);
        world.wait(100);
    }
    let read = world.read(&mut far);
    let mut expected = vec![
        // The first of them was admitted when it subscribed, the sixth 500 ms later.
        Got::Skipped {
            count: 6,
            from: 1000,
            to: 500,
        },
    ];
    expected.extend(events(7..=10));
    assert_eq!(read, expected);
    // A resume from behind the loss does not tell it again.
    world.unsubscribe(&mut far, id);
    let (id, _, outcome, _) = world.subscribe(&mut far, TOPIC, after(position, 6));
    assert_eq!(outcome, ResumeOutcome::Resumed { count: 4 });
    assert_eq!((world.counter("skips"), world.counter("skipped")), (1, 6));
    // Nor is one told whose reader was level.
    world.wait(901_000);
    world.read(&mut far);
    world.unsubscribe(&mut far, id);
    let told = world.subscribe(&mut far, TOPIC, after(position, 10));
    assert_eq!(told.2, ResumeOutcome::Resumed { count: 0 });
}

#[test]
fn ages_hold_a_suspend_in_which_mono_stood_still_and_a_wall_that_was_stepped() {
    let suspended = (Now::new(at(100).mono, at(60_100).wall), (60_100, 100));
    let stepped = (
        Now::new(at(9000).mono, START.saturating_sub(500)),
        (9000, 0),
    );
    for (now, (from, to)) in [suspended, stepped] {
        let mut world = World::new(4);
        let mut far = world.reader(2);
        world.subscribe(&mut far, TOPIC, None);
        world.publish(10);
        // The last four are read, and the six before them were given up.
        let _done = world.station.handle_timeout(now);
        let read = got(&far.read(&mut world.station, now));
        let count = 6;
        assert_eq!(read[0], Got::Skipped { count, from, to });
    }
}

#[test]
fn ages_count_from_when_a_link_takes_bytes_again_once_the_station_was_told() {
    let mut world = World::new(4);
    let mut far = world.reader(2);
    world.subscribe(&mut far, TOPIC, None);
    world.publish(10);
    world.now_ms = 700;
    let before = world.counter("flushes");
    world.station.handle_written(at(700), far.id, 0);
    let skipped = Got::Skipped {
        count: 6,
        from: 700,
        to: 700,
    };
    assert_eq!(
        world.counter("flushes"),
        before,
        "nothing was written by then"
    );
    assert_eq!(world.frame(&far), Some(skipped));
}

#[test]
fn a_loss_behind_which_nothing_waits_moves_the_position_as_well() {
    let mut world = World::new(4);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, TOPIC, None);
    world.publish_on(TOPIC, Some(0));
    world.wait(300_001);
    let read = world.read(&mut far);
    let level = Got::Progress {
        offset: 1,
        behind_ms: 0,
    };
    assert!(
        matches!(read[..], [Got::Progress { offset: 0, .. }, Got::Skipped { count: 1, .. }, progress] if progress == level),
        "{read:?}"
    );
    world.unsubscribe(&mut far, id);
    let told = world.subscribe(&mut far, TOPIC, after(position, 1));
    assert_eq!(told.2, ResumeOutcome::Resumed { count: 0 });
}

#[test]
fn a_replay_tells_where_it_is_every_ten_seconds_and_shares_its_link_turn_by_turn() {
    let mut world = World::new(100);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, "weather/a", None);
    world.subscribe(&mut far, "weather/b", None);
    world.unsubscribe(&mut far, id);
    for _ in 0..50 {
        world.publish_on("weather/a", None);
    }
    world.ask(&mut far, "weather/a", Some(position));
    let told = world.frame(&far).expect("an answer");
    assert!(matches!(
        told,
        Got::Subscribed(_, ResumeOutcome::Resumed { count: 50 })
    ));
    for offset in 1..=10 {
        assert_eq!(world.frame(&far), Some(Got::Event(offset)));
    }
    // The other subscription of the link has its turn at once.
    world.publish_on("weather/b", None);
    let two = [world.frame(&far), world.frame(&far)];
    assert!(two.contains(&Some(Got::Event(51))), "{two:?}");
    assert!(two.contains(&Some(Got::Event(11))), "{two:?}");
    for period in 1..=2 {
        world.wait(10_000);
        let mut read: Vec<Got> = (0..4).map_while(|_| world.frame(&far)).collect();
        let reached = 11 + (period - 1) * 2;
        let behind_ms = period * 10_000;
        let here = Got::Progress {
            offset: reached,
            behind_ms,
        };
        assert!(read.contains(&here), "{read:?}");
        let level = Got::Progress {
            offset: 51,
            behind_ms: 0,
        };
        assert!(read.contains(&level), "{read:?}");
        read.retain(|got| matches!(got, Got::Event(_)));
        assert_eq!(read, events(reached + 1..=reached + 2));
    }
}

#[test]
fn a_reader_that_replays_holds_no_publisher_until_it_has_been_level() {
    let mut world = World::new(10);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, TOPIC, None);
    world.publish(10);
    world.read(&mut far);
    world.unsubscribe(&mut far, id);
    let mut replaying = world.reader(3);
    let subscribe = wire::Subscribe {
        id: 1,
        realm: realm(),
        filter: TOPIC,
        resume: Some(position),
    };
    let taken = replaying.frame(&mut world.station, at(0), &Frame::Subscribe(subscribe));
    assert!(taken.is_ok());
    let mut writer = world.reader(8);
    let mut answered = |world: &mut World, seq: u64| {
        let object = Fact::numbered(seq).sign(&signer(8));
        let now = at(world.now_ms);
        assert!(
            writer
                .publish(&mut world.station, now, seq, &object)
                .is_ok()
        );
        writer.types(&mut world.station, now).len()
    };
    for seq in 1..=20 {
        assert_eq!(answered(&mut world, seq), 1, "{seq}");
    }
    world.read(&mut replaying);
    for seq in 21..=25 {
        assert_eq!(answered(&mut world, seq), 1, "{seq}");
    }
    assert_eq!(answered(&mut world, 26), 0, "now it counts");
}

#[test]
fn a_ring_two_fifths_full_for_a_reader_is_told_once_a_minute() {
    let mut world = World::new(10);
    let mut far = world.reader(2);
    world.subscribe(&mut far, TOPIC, None);
    let told = |world: &World| -> Vec<(u64, u64)> {
        let warnings = world.station.status().warnings;
        warnings
            .iter()
            .map(|told| (told.behind, told.capacity))
            .collect()
    };
    world.publish(3);
    assert_eq!(told(&world), []);
    world.publish(1);
    assert_eq!(told(&world), [(4, 10)]);
    world.publish(1);
    world.read(&mut far);
    world.wait(59_999);
    world.read(&mut far);
    world.publish(5);
    assert_eq!(told(&world), [(4, 10)]);
    world.wait(1);
    world.publish(1);
    assert_eq!(told(&world), [(4, 10), (6, 10)]);
    assert_eq!(world.counter("ring_warnings"), 2);
    assert_eq!(world.station.status().warnings[0].topic, TOPIC);
}

#[test]
fn one_node_opens_a_quarter_of_the_realms_whatever_links_it_has_and_others_have_the_rest() {
    let mut limits = StationLimits::default();
    limits.subscribed_realms = 8;
    let pinned = tidings::RealmId::of_name("pinned");
    let config = StationConfig::new(signer(1)).limits(limits).pin(pinned);
    let mut station = station(config);
    let mut open = |key: u64, name: &str, id: u64| {
        let mut far = Far::dial(&mut station, at(0), signer(key));
        let subscribe = wire::Subscribe {
            id,
            realm: tidings::RealmId::of_name(name),
            filter: TOPIC,
            resume: None,
        };
        let taken = far.frame(&mut station, at(0), &Frame::Subscribe(subscribe));
        assert!(taken.is_ok());
        let body = far.read(&mut station as &mut dyn Machine, at(0)).remove(0);
        match Frame::decode(&body, Phase::Established) {
            Ok(Frame::Refused(refused)) => Some((refused.reason.text(), refused.limit)),
            _ => None,
        }
    };
    let full = |limit| Some(("too_many_realms", Some(limit)));
    assert_eq!(open(2, "a", 1), None);
    assert_eq!(open(2, "b", 1), None);
    assert_eq!(open(2, "c", 1), full(2));
    assert_eq!(open(2, "pinned", 1), None);
    assert_eq!(open(3, "c", 1), None);
    // One that is open is everybody's.
    assert_eq!(open(2, "c", 1), None);
    for (key, name) in [(3, "d"), (4, "e"), (4, "f"), (5, "g"), (5, "h")] {
        assert_eq!(open(key, name, 1), None);
    }
    assert_eq!(open(6, "i", 1), full(8));
}

#[test]
fn br_46_a_quiet_topic_stays_covered_while_others_turn_the_rings_over() {
    let mut world = World::new(4);
    let mut far = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut far, "weather/quiet", None);
    let mut busy = world.reader(3);
    world.subscribe(&mut busy, "weather/busy", None);
    for _ in 0..40 {
        world.publish_on("weather/busy", None);
    }
    // Its position moves while it is idle, and would be covered if it had not.
    world.wait(10_000);
    assert_eq!(
        world.read(&mut far),
        [Got::Progress {
            offset: 40,
            behind_ms: 0
        }]
    );
    world.unsubscribe(&mut far, id);
    for offset in [0, 17, 40] {
        let told = world.subscribe(&mut far, "weather/quiet", after(position, offset));
        assert_eq!(told.2, ResumeOutcome::Resumed { count: 0 });
        world.unsubscribe(&mut far, told.0);
    }
    world.publish_on("weather/quiet", None);
    let told = world.subscribe(&mut far, "weather/quiet", after(position, 40));
    assert_eq!(
        (told.2, told.3),
        (ResumeOutcome::Resumed { count: 1 }, events([41]))
    );
}

#[test]
fn br_48_a_replay_of_a_link_that_ended_says_nothing_and_the_next_has_all_of_it() {
    let mut world = World::new(8);
    let mut first = world.reader(2);
    let (id, position, ..) = world.subscribe(&mut first, TOPIC, None);
    world.unsubscribe(&mut first, id);
    world.publish(7);
    let ask = Frame::Subscribe(wire::Subscribe {
        id: 100,
        realm: realm(),
        filter: TOPIC,
        resume: after(position, 4),
    });
    assert!(first.frame(&mut world.station, at(0), &ask).is_ok());
    assert!(matches!(world.frame(&first), Some(Got::Subscribed(..))));
    assert_eq!(world.frame(&first), Some(Got::Event(5)));
    let down = tidings::LinkEvent::Down {
        link: first.id,
        reason: tidings::code::CloseReason::Io,
    };
    assert!(world.station.handle_link(at(0), down).is_ok());
    assert_eq!(world.frame(&first), None);
    assert_eq!(world.counter("readers_cut_off"), 1);
    let mut second = world.reader(2);
    let told = world.subscribe(&mut second, TOPIC, after(position, 4));
    assert_eq!(told.2, ResumeOutcome::Resumed { count: 3 });
    assert_eq!(told.3, events(5..=7));
}
