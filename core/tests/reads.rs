//! Long frames under way share a budget: what links announce is counted before a driver has to buffer it.

mod common;

use common::{EPOCH, Far, TOPIC, at, closed, counter, kind, move_to, realm, signer};
use tidings::code::CloseReason;
use tidings::crypto::Signer;
use tidings::pump::LinkIo;
use tidings::sim::START;
use tidings::wire::{self, Body, DEFAULT_MAX_FRAME, Draft, Frame, Phase, Route};
use tidings::{Intake, LinkEvent, NodeId, Now, Station, StationConfig, StationLimits};

/// Of each frame, this much is not counted.
const FREE: usize = 64 * 1024;
const BODY: usize = 1_000_000;

/// A station with room for `frames` frames of the greatest length.
fn station(frames: usize) -> Station {
    let mut limits = StationLimits::default();
    limits.read_bytes = frames * DEFAULT_MAX_FRAME as usize;
    common::station(StationConfig::new(signer(100)).limits(limits))
}

/// A `publish` frame of about a megabyte.
fn long_publish(key: u64, id: u64) -> Vec<u8> {
    let signer = signer(key);
    let payload = wire::to_payload(&"x".repeat(BODY)).expect("text");
    let mut object = Vec::new();
    Draft {
        realm: realm(),
        topic: TOPIC,
        publisher: NodeId::of_key(signer.profile().name(), &signer.public_key()),
        epoch: Some(EPOCH),
        seq: 1,
        published_at: START,
        ttl_ms: None,
        one: false,
        body: Body::Payload(&payload),
    }
    .sign(&signer, &mut object)
    .expect("a key in memory signs");
    let mut frame = Vec::new();
    let publish = wire::Publish {
        id,
        route: Route::All,
        publication: &object,
    };
    Frame::Publish(publish).encode_framed(&mut frame);
    frame
}

fn spent(station: &Station) -> usize {
    station.memory().line("read_bytes").expect("a line").used
}

fn later(station: &Station) -> u64 {
    counter(&station.status().counters, "reads_later")
}

/// A link that announces a frame and sends its first bytes.
fn begin(station: &mut Station, now: Now, key: u64, frame: &[u8]) -> (Far, Intake) {
    let mut far = Far::dial(station, now, signer(key));
    let taken = far.append(station, now, &frame[..1000]);
    (far, taken.expect("an honest link"))
}

/// The deadline a link that waits is told. What is due is worked off.
fn look(station: &mut Station, now: Now) -> Now {
    let due = station.poll_timeout().expect("`Later` has a deadline");
    assert!(due > now.mono, "no hot loop");
    let then = at(due.as_micros().div_ceil(1000));
    move_to(station, then);
    then
}

#[test]
fn what_is_announced_is_bounded_whatever_many_links_announce() {
    let mut station = station(4);
    let most = 4 * DEFAULT_MAX_FRAME as usize;
    let mut frame = DEFAULT_MAX_FRAME.to_be_bytes().to_vec();
    frame.resize(1000, 0);
    let begun: Vec<_> = (0..200)
        .map(|key| begin(&mut station, at(0), 1000 + key, &frame))
        .collect();
    let open = begun.iter().filter(|(_, taken)| *taken == Intake::Open);
    assert_eq!(open.count(), most / (DEFAULT_MAX_FRAME as usize - FREE));
    assert!(begun.iter().all(|(_, taken)| *taken != Intake::Paused));
    assert!(spent(&station) <= most);
    assert_eq!(later(&station), 196);
    // Those that may go on and do not are ended, and others have their turn, until nobody is left.
    let mut now = at(0);
    let mut begun = begun;
    let mut ended = 0;
    while !begun.is_empty() {
        now = look(&mut station, now);
        assert!(spent(&station) <= most);
        ended += closed(&mut station).len();
        begun.retain_mut(|(far, _)| far.append(&mut station, now, &[]).is_ok());
    }
    closed(&mut station);
    assert_eq!((spent(&station), ended), (0, 200));
}

#[test]
fn a_long_frame_that_waited_arrives_whole_and_in_its_turn() {
    let mut station = station(1);
    let frames: Vec<Vec<u8>> = (0..4).map(|key| long_publish(1 + key, 1)).collect();
    let mut links: Vec<(Far, usize)> = Vec::new();
    let mut now = at(0);
    for (key, frame) in frames.iter().enumerate() {
        let (far, taken) = begin(&mut station, now, 1 + key as u64, frame);
        assert_eq!(taken == Intake::Open, key == 0);
        links.push((far, 1000));
    }
    let mut order = Vec::new();
    // The last come first, and still wait for those before them.
    for _ in 0..20 {
        for (n, (far, sent)) in links.iter_mut().enumerate().rev() {
            if far.append(&mut station, now, &[]) == Ok(Intake::Open) && *sent == 1000 {
                let rest = &frames[n][*sent..];
                assert_eq!(far.append(&mut station, now, rest), Ok(Intake::Open));
                *sent = frames[n].len();
                order.push(n);
            }
        }
        if order.len() < 4 {
            now = look(&mut station, now);
        }
    }
    assert_eq!(order, [0, 1, 2, 3]);
    for (far, _) in &mut links {
        let bodies = far.read(&mut station, now);
        let frame = Frame::decode(&bodies[0], Phase::Established).expect("an answer");
        assert_eq!(kind(&frame), "published 1 no_subscriber");
    }
    assert_eq!((spent(&station), later(&station)), (0, 3));
    assert!(closed(&mut station).is_empty());
}

#[test]
fn the_thirty_seconds_of_a_frame_stand_still_while_it_waits() {
    let mut station = station(1);
    let frame = long_publish(1, 1);
    let other = long_publish(2, 1);
    let (mut first, _) = begin(&mut station, at(0), 1, &frame);
    let (mut second, taken) = begin(&mut station, at(0), 2, &other);
    assert_eq!(taken, Intake::Later);
    // The first trickles for 29 s.
    let mut now = at(0);
    while now.mono < at(29_000).mono {
        now = look(&mut station, now);
        let taken = second.append(&mut station, now, &[]);
        assert_eq!(taken, Ok(Intake::Later));
    }
    assert_eq!(
        first.append(&mut station, now, &frame[1000..]),
        Ok(Intake::Open)
    );
    // The second has 30 s of its own.
    assert_eq!(second.append(&mut station, now, &[]), Ok(Intake::Open));
    move_to(&mut station, at(58_000));
    let taken = second.append(&mut station, at(58_000), &other[1000..]);
    assert_eq!(taken, Ok(Intake::Open));
    assert!(closed(&mut station).is_empty());
}

#[test]
fn short_frames_are_read_whatever_others_announce() {
    let mut station = station(1);
    let frame = long_publish(1, 1);
    let links: Vec<_> = (0..3)
        .map(|key| begin(&mut station, at(0), 1 + key, &frame))
        .collect();
    assert_eq!(links[2].1, Intake::Later);
    let mut short = Far::dial(&mut station, at(0), signer(9));
    for id in 1..50 {
        let taken = short.subscribe(&mut station, at(0), id, &format!("t{id}/x"));
        assert_eq!(taken, Ok(Intake::Open));
    }
    // Half of one of 64 KiB is not counted either.
    let mut whole = (FREE as u32 - 4).to_be_bytes().to_vec();
    whole.resize(FREE / 2, 0);
    assert_eq!(short.append(&mut station, at(0), &whole), Ok(Intake::Open));
}

#[test]
fn a_link_that_ends_gives_its_bytes_and_its_place_to_the_next() {
    let mut station = station(1);
    let frame = long_publish(1, 1);
    let mut links: Vec<Far> = (0..4)
        .map(|key| begin(&mut station, at(0), 1 + key, &frame).0)
        .collect();
    let reason = CloseReason::Io;
    // The one that waits first goes before the one that is counted.
    for gone in [1, 0] {
        let link = links[gone].id;
        let down = LinkEvent::Down { link, reason };
        assert_eq!(station.handle_link(at(1), down), Ok(link));
    }
    assert_eq!(links[3].append(&mut station, at(2), &[]), Ok(Intake::Later));
    assert_eq!(links[2].append(&mut station, at(2), &[]), Ok(Intake::Open));
    let link = links[2].id;
    station
        .close_link(at(3), link, CloseReason::Normal)
        .expect("a link");
    assert_eq!(links[3].append(&mut station, at(4), &[]), Ok(Intake::Open));
    let link = links[3].id;
    let down = LinkEvent::Down { link, reason };
    assert_eq!(station.handle_link(at(5), down), Ok(link));
    assert_eq!(spent(&station), 0);
    // Nobody waits: no deadline is kept for it.
    move_to(&mut station, at(60_000));
    assert_eq!(station.poll_timeout(), None);
}

#[test]
fn a_read_buffer_that_held_a_long_frame_is_given_back_though_more_came_behind_it() {
    let mut station = station(1);
    let far = Far::dial(&mut station, at(0), signer(1));
    let mut io = LinkIo::new(far.id);
    let mut bytes = long_publish(1, 1);
    let whole = bytes.len();
    bytes.extend_from_slice(&[0, 0, 1, 0, 1, 2, 3]);
    for part in bytes.chunks(10_000) {
        io.reserve();
        io.input().extend_from_slice(part);
        assert_eq!(io.handle_read(&mut station, at(1)), Ok(Intake::Open));
        assert!(io.memory() <= 2 * whole);
    }
    assert_eq!(&io.input()[..], [0, 0, 1, 0, 1, 2, 3]);
    assert!(io.memory() <= FREE, "{}", io.memory());
}

#[test]
fn a_long_frame_whose_link_is_not_read_for_thirty_seconds_in_all_ends_its_link() {
    for reads_again in [false, true] {
        let mut limits = StationLimits::default();
        limits.answers = 2;
        let config = StationConfig::new(signer(100)).limits(limits);
        let mut station = common::station(config);
        let frame = long_publish(1, 10);
        let mut far = Far::dial(&mut station, at(0), signer(1));
        let mut id = 0;
        let stop = |station: &mut Station, far: &mut Far, now: Now, sent: usize| {
            // Answers it does not read: that its subscriptions were ended.
            assert_eq!(station.purge(now, common::id_of(&signer(1))), 2);
            assert_eq!(
                far.append(station, now, &frame[sent..sent + 1]),
                Ok(Intake::Paused)
            );
        };
        let subscribe = |station: &mut Station, far: &mut Far, now: Now, id: &mut u64| {
            for _ in 0..2 {
                *id += 1;
                let taken = far.subscribe(station, now, *id, &format!("t{id}/x"));
                assert_eq!(taken, Ok(Intake::Open));
                far.read(station, now);
            }
        };
        subscribe(&mut station, &mut far, at(0), &mut id);
        assert_eq!(
            far.append(&mut station, at(0), &frame[..1000]),
            Ok(Intake::Open)
        );
        assert!(spent(&station) > 0);
        stop(&mut station, &mut far, at(0), 1000);
        if reads_again {
            // It reads after 20 s, and has ten left.
            move_to(&mut station, at(20_000));
            far.read(&mut station, at(20_000));
            assert_eq!(far.append(&mut station, at(20_000), &[]), Ok(Intake::Open));
            move_to(&mut station, at(31_000));
            assert!(closed(&mut station).is_empty());
            assert!(spent(&station) > 0);
            let rest = &frame[1001..];
            assert_eq!(far.append(&mut station, at(31_000), rest), Ok(Intake::Open));
            let told = far.types(&mut station, at(31_000));
            assert_eq!(told, ["published 10 no_subscriber"]);
        } else {
            move_to(&mut station, at(29_999));
            assert!(closed(&mut station).is_empty());
            move_to(&mut station, at(30_000));
            let ended: Vec<_> = closed(&mut station)
                .into_iter()
                .map(|(link, _)| link)
                .collect();
            assert_eq!(ended, [far.id]);
        }
        assert_eq!(spent(&station), 0);
    }
}
