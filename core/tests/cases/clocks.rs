//! Skew and deadlines.

use tidings::code::{CloseReason, ObjectFault};
use tidings::pump::Machine;
use tidings::{ClientConfig, Instant, Now, Publish, StationConfig, StationRef, Turn, WallMs};

use super::common::{Fact, Far, TOPIC, at, client, closed, move_to, realm, signer, station};
use super::{Node, open, publish, subscribe};

const SKEW: u64 = 300_000;
const LIFE: u64 = 600_000 + SKEW;
const TOP: u64 = (1 << 53) - 1;

/// When a publication was made, seen from `wall`, and what is wrong with it.
fn skews(wall: WallMs) -> [(u64, Option<ObjectFault>); 8] {
    let wall = wall.as_millis();
    [
        (wall + SKEW - 1, None),
        (wall + SKEW, None),
        (wall + SKEW + 1, Some(ObjectFault::NotYetValid)),
        (wall - LIFE + 1, None),
        (wall - LIFE, None),
        (wall - LIFE - 1, Some(ObjectFault::Expired)),
        (0, Some(ObjectFault::Expired)),
        (TOP, Some(ObjectFault::NotYetValid)),
    ]
}

/// Freshness was checked on one side only, and in unsigned arithmetic.
#[test]
fn br_54_skew_is_two_sided_on_a_client_and_what_falls_out_is_told() {
    let now = at(2_000_000);
    for (n, (published_at, fault)) in skews(now.wall).into_iter().enumerate() {
        let mut node = Node::new(1, open());
        node.time(now);
        let fact = Fact {
            published_at: WallMs::new(published_at),
            ..Fact::numbered(1)
        };
        node.fact(now, 0, fact);
        node.time(at(2_020_000));
        match fault {
            None => assert_eq!(node.words(), ["1"], "case {n}"),
            Some(fault) => {
                assert_eq!(node.faults(fault), 1, "case {n}");
                assert_eq!(node.words(), ["dropped out_of_date 1"], "case {n}");
            }
        }
    }
}

/// Whether a copy was still alive depended on whether it was known.
#[test]
fn br_54_a_copy_is_judged_by_the_wall_it_comes_at() {
    let made = at(2_000_000);
    let mut node = Node::new(1, open());
    node.time(made);
    let fact = Fact {
        published_at: made.wall,
        ..Fact::numbered(1)
    };
    let copies = [
        (0, ObjectFault::Duplicate),
        (LIFE as i64, ObjectFault::Duplicate),
        (LIFE as i64 + 1, ObjectFault::Expired),
        (-(SKEW as i64), ObjectFault::Duplicate),
        (-(SKEW as i64) - 1, ObjectFault::NotYetValid),
    ];
    let object = fact.sign(&*node.publisher);
    let mut resigned = object.clone();
    resigned.last_mut().map(|byte| *byte ^= 1).expect("bytes");
    node.object(made, 0, &object);
    for (step, fault) in copies {
        let wall = made.wall.as_millis().saturating_add_signed(step);
        let now = Now::new(made.mono, WallMs::new(wall));
        for copy in [&object, &resigned] {
            let before = node.faults(fault);
            node.object(now, 0, copy);
            assert_eq!(node.faults(fault), before + 1, "{step} {fault:?}");
        }
    }
    assert_eq!(node.words(), ["1"]);
}

/// A time beyond the wire's numbers wrapped around.
#[test]
fn br_54_a_time_beyond_the_wire_is_malformed() {
    for beyond in [TOP + 1, u64::MAX >> 1] {
        let mut node = Node::new(1, open());
        let fact = Fact {
            published_at: WallMs::new(beyond),
            ..Fact::numbered(1)
        };
        node.fact(at(1), 0, fact);
        assert_eq!(node.faults(ObjectFault::Malformed), 1);
        assert!(node.words().is_empty());
    }
}

/// The same rule at a station, which answers its publisher.
#[test]
fn br_54_skew_is_two_sided_on_a_station_and_the_publisher_is_told() {
    let mut station = station(StationConfig::new(signer(1)));
    let now = at(2_000_000);
    move_to(&mut station, now);
    let mut writer = Far::dial(&mut station, now, signer(7));
    for (n, (published_at, fault)) in skews(now.wall).into_iter().enumerate() {
        let id = n as u64 + 1;
        let fact = Fact {
            published_at: WallMs::new(published_at),
            ..Fact::numbered(id)
        };
        publish(&mut writer, &mut station, now, id, fact);
        let told = fault.map_or("no_subscriber", ObjectFault::text);
        let wanted = format!("published {id} {told}");
        assert_eq!(writer.types(&mut station, now), [wanted]);
    }
    let faults = station.status().faults;
    assert_eq!(faults.of(ObjectFault::NotYetValid), 2);
    assert_eq!(faults.of(ObjectFault::Expired), 2);
}

/// Calls until all is done, which must not take for ever, and looks that nothing is due any more.
fn work_off(machine: &mut dyn Machine, now: Now) {
    let done = (0..10_000).any(|_| machine.handle_timeout(now) == Turn::Done);
    assert!(done, "a deadline that does not go away");
    assert!(machine.poll_timeout().is_none_or(|next| next > now.mono));
}

/// The deadline reported, the one stored and the one acted on were three different things.
#[test]
fn br_55_a_client_acts_at_exactly_the_deadline_it_reports() {
    let mut node = Node::new(1, open());
    node.seq(at(0), 0, 1);
    node.seq(at(10), 0, 3);
    let due = node.client.poll_timeout();
    assert_eq!(due, Some(Instant::from_millis(260)));
    for early in [11, 100, 259] {
        work_off(&mut node.client, at(early));
        assert_eq!(node.client.poll_timeout(), due, "early is nothing");
    }
    assert_eq!(node.words(), ["1"]);
    work_off(&mut node.client, at(260));
    assert_eq!(node.words(), ["skipped 2..2", "3"]);
    // A clock that went back: taken as the last.
    assert_eq!(node.client.handle_timeout(at(5)), Turn::Done);
    node.seq(at(3), 0, 5);
    let due = node.client.poll_timeout();
    assert_eq!(
        due,
        Some(Instant::from_millis(510)),
        "from the latest time known"
    );
    work_off(&mut node.client, at(900_000));
    assert_eq!(node.words(), ["skipped 4..4", "5"], "late is all of it");
}

/// A new, earlier deadline was ignored while a later one was armed.
#[test]
fn br_55_an_earlier_deadline_takes_the_place_of_a_later_one() {
    let mut node = Node::new(1, open());
    node.seq(at(0), 0, 1);
    let resting = node.client.poll_timeout().expect("the memory's sweep");
    node.seq(at(10), 0, 3);
    let gap = node.client.poll_timeout().expect("the gap");
    assert!(gap < resting);
    assert_eq!(gap, Instant::from_millis(260));
    node.seq(at(20), 0, 2);
    // One that is no longer needed may be looked at early: nothing happens, and the next is the right one.
    work_off(&mut node.client, at(260));
    assert_eq!(node.client.poll_timeout(), Some(resting), "the gap is gone");
    assert_eq!(node.words(), ["1", "2", "3"]);
}

/// A station's timers: early is nothing, exact is progress, a step back is clamped, late is all of it.
#[test]
fn br_55_a_station_acts_at_exactly_the_deadline_it_reports() {
    let mut station = station(StationConfig::new(signer(1)));
    let silent = Far::new(&mut station, at(0), signer(2));
    let due = station.poll_timeout();
    assert_eq!(
        due,
        Some(Instant::from_millis(30_000)),
        "the handshake's end"
    );
    for early in [0, 1, 29_999] {
        work_off(&mut station, at(early));
        assert_eq!(station.poll_timeout(), due);
    }
    assert!(closed(&mut station).is_empty());
    work_off(&mut station, at(30_000));
    let ended = closed(&mut station);
    assert_eq!(ended, [(silent.id, CloseReason::HandshakeTimeout)]);
    assert_eq!(station.poll_timeout(), None);
    assert_eq!(station.handle_timeout(at(7)), Turn::Done);
    let mut reader = Far::dial(&mut station, at(8), signer(3));
    subscribe(&mut reader, &mut station, at(9), 1);
    let due = station.poll_timeout().expect("a progress");
    assert!(
        due >= Instant::from_millis(30_001),
        "from the latest time known"
    );
    work_off(&mut station, at(4_000_000));
}

/// Deadlines beyond the end of time overflowed.
#[test]
fn br_55_deadlines_near_the_end_of_time_saturate() {
    for left in [1, 1_000_000, 60_000_000] {
        let end = Now::new(Instant::from_micros(u64::MAX - left), WallMs::new(u64::MAX));
        let mut client = client(ClientConfig::new(signer(1)).station(None));
        let mut far = Far::answer(&mut client, end, signer(100), StationRef(0));
        let stream = client.subscribe(end, open()).expect("accepted here");
        assert_eq!(far.types(&mut client, end), ["subscribe 1"]);
        far.accept(&mut client, end, 1);
        let request = Publish::new(realm(), TOPIC, &1).expect("a number");
        drop(client.publish(end, request));
        work_off(&mut client, end);
        assert!(client.subscription(stream).is_some());

        let mut station = station(StationConfig::new(signer(1)));
        let mut far = Far::dial(&mut station, end, signer(2));
        subscribe(&mut far, &mut station, end, 1);
        work_off(&mut station, end);
    }
}
