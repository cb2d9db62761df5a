//! Links as their machines keep them: liveness, sleep, redial, drain.

mod common;

use common::{Far, Node, at, closed, counter, open, probing_client, probing_station, secs, signer};
use tidings::code::CloseReason;
use tidings::link::PROBE_EVERY;
use tidings::pump::Machine;
use tidings::sim::Net;
use tidings::wire::{Frame, Hello, Phase};
use tidings::{
    Action, Client, ClientConfig, Duration, Instant, Item, LinkError, LinkEvent, LinkState, Notice,
    Now, Publish, StationConfig, StationRef, Subscribe, WallMs,
};

const EVERY: u64 = PROBE_EVERY.as_millis() as u64;

/// A node of so many stations made by hand, which leave its probes unanswered.
fn node(stations: u16, request: Subscribe) -> Node {
    let config = (0..stations).fold(ClientConfig::new(signer(1)), |config, _| {
        config.station(None)
    });
    let mut node = Node::of(probing_client(config), stations, request);
    for far in &mut node.links {
        far.answers = false;
    }
    node
}

/// The nonce of the one probe among what was written, if there is one.
fn probe(far: &mut Far, machine: &mut dyn Machine, now: Now) -> Option<[u8; 16]> {
    let bodies = far.read(machine, now);
    let mut nonces =
        bodies
            .iter()
            .filter_map(|body| match Frame::decode(body, Phase::Established) {
                Ok(Frame::Ping(nonce)) => Some(*nonce),
                _ => None,
            });
    let nonce = nonces.next();
    assert_eq!(nonces.next(), None, "one probe at a time");
    nonce
}

fn answer(far: &mut Far, machine: &mut dyn Machine, now: Now, nonce: &[u8; 16]) {
    assert!(far.frame(machine, now, &Frame::Pong(nonce)).is_ok());
}

fn dials(client: &mut Client) -> usize {
    std::iter::from_fn(|| client.poll_action())
        .filter(|action| matches!(action, Action::Dial { .. }))
        .count()
}

/// How long until a station is dialled again; it is dialled then.
fn redial_wait(client: &mut Client, now: &mut Now, station: usize) -> Duration {
    let LinkState::Waiting { until } = client.status().links[station].state else {
        panic!("it waits: {:?}", client.status().links[station]);
    };
    let wait = until.saturating_since(now.mono);
    let wall = now.wall.saturating_add(wait.as_millis() as u64);
    *now = Now::new(until, wall);
    common::move_to(client, *now);
    wait
}

/// A link on which the other side still writes but no longer reads stayed up for ever, because everything heard counted as life.
#[test]
fn a_station_that_only_writes_is_left_after_two_probes() {
    let mut node = node(1, open());
    let progress = tidings::wire::Progress {
        id: 1,
        offset: 0,
        behind_ms: 0,
    };
    let mut ended = None;
    for second in (10..200).step_by(10) {
        let now = at(second * 1000);
        node.time(now);
        let far = &mut node.links[0];
        let told = far.types(&mut node.client, now);
        if far
            .frame(&mut node.client, now, &Frame::Progress(progress))
            .is_err()
        {
            ended = Some((second, told));
            break;
        }
    }
    // 30 s until the first probe, 30 s for each answer.
    let goodbye = "goodbye liveness_lost liveness_lost";
    assert_eq!(ended, Some((90, vec![goodbye.into()])));
    let link = (node.links[0].id, CloseReason::LivenessLost);
    assert_eq!(closed(&mut node.client), [link]);
    assert_eq!(node.words(), ["interrupted"]);
    let status = node.client.status().links[0];
    assert_eq!(status.last_end, Some(CloseReason::LivenessLost));
    assert_eq!(status.last_error, Some(LinkError::LivenessLost));
}

#[test]
fn a_station_leaves_a_node_that_does_not_answer_and_keeps_one_that_does() {
    let mut station = probing_station(StationConfig::new(signer(1)));
    let mut mute = Far::dial(&mut station, at(0), signer(2));
    let mut good = Far::dial(&mut station, at(0), signer(3));
    mute.answers = false;
    for second in (30..=90).step_by(30) {
        let now = at(second * 1000);
        common::move_to(&mut station, now);
        mute.read(&mut station, now);
        good.read(&mut station, now);
    }
    assert_eq!(closed(&mut station), [(mute.id, CloseReason::LivenessLost)]);
    let kept = station.status().links;
    assert_eq!(kept.iter().filter(|link| link.peer.is_some()).count(), 1);
    let kept = kept.iter().find(|link| link.link == good.id).expect("kept");
    assert_eq!((kept.probes.sent, kept.probes.missed), (3, 0));
    assert_eq!(kept.round_trip, Some(Duration::ZERO));
    assert_eq!(kept.heard, Some(at(90_000).wall));
}

#[test]
fn stray_answers_are_counted_and_change_nothing() {
    let mut node = node(1, open());
    let far = &mut node.links[0];
    answer(far, &mut node.client, at(10), &[7; 16]);
    assert_eq!(counter(&node.client.status().counters, "stray_pongs"), 1);
    let mut station = probing_station(StationConfig::new(signer(1)));
    let mut far = Far::dial(&mut station, at(0), signer(2));
    answer(&mut far, &mut station, at(10), &[7; 16]);
    assert_eq!(counter(&station.status().counters, "stray_pongs"), 1);
}

/// Three hours with the lid closed, in which the monotonic clock stood still or ran on.
fn sleeps() -> [Now; 2] {
    let asleep = 3 * 3600 * 1000;
    let wall = at(asleep + 1001).wall;
    [
        Now::new(Instant::from_millis(1001), wall),
        Now::new(Instant::from_millis(asleep + 1001), wall),
    ]
}

/// A node slept with its links up; its timers' clock had stood still, and it believed in them for another minute.
#[test]
fn br_52_a_node_that_slept_asks_at_once_and_leaves_who_does_not_answer() {
    for awake in sleeps() {
        let mut node = node(2, open());
        node.seq(at(1000), 0, 1);
        assert_eq!(node.words(), ["1"]);
        let _turn = node.client.handle_timeout(awake);
        let later = |ms: u64| {
            let mono = awake.mono.saturating_add(Duration::from_millis(ms));
            Now::new(mono, awake.wall.saturating_add(ms))
        };
        // One is there, the other is not.
        let Node { client, links, .. } = &mut node;
        let nonce = probe(&mut links[1], client, awake).expect("asked at once");
        assert!(probe(&mut links[0], client, awake).is_some());
        answer(&mut links[1], client, later(40), &nonce);
        let trip = client.status().links[1].round_trip;
        assert_eq!(trip, Some(Duration::from_millis(40)));
        common::move_to(client, later(4999));
        assert_eq!(closed(client), []);
        common::move_to(client, later(5000));
        assert_eq!(closed(client), [(links[0].id, CloseReason::LivenessLost)]);
        assert_eq!(node.words(), [""; 0], "the other one carried throughout");
        assert_eq!(counter(&node.client.status().counters, "clock_jumps"), 1);
    }
}

#[test]
fn br_52_what_was_interrupted_in_the_sleep_began_before_it() {
    for awake in sleeps() {
        let mut node = node(1, open());
        node.seq(at(1000), 0, 1);
        assert_eq!(node.words(), ["1"]);
        let _turn = node.client.handle_timeout(awake);
        let far = &mut node.links[0];
        assert!(probe(far, &mut node.client, awake).is_some());
        let mono = awake.mono.saturating_add(secs(5));
        common::move_to(
            &mut node.client,
            Now::new(mono, awake.wall.saturating_add(5000)),
        );
        let items = common::items(&mut node.client, node.stream);
        let [Item::Notice(notice)] = &items[..] else {
            panic!("{items:?}");
        };
        let Notice::Interrupted { from, reason, .. } = **notice else {
            panic!("{notice:?}");
        };
        assert_eq!(reason, CloseReason::LivenessLost);
        assert!(from <= at(1000).wall, "the last time it was heard");
    }
}

#[test]
fn br_52_a_station_that_slept_asks_every_node_at_once() {
    for awake in sleeps() {
        let mut station = probing_station(StationConfig::new(signer(1)));
        let mut good = Far::dial(&mut station, at(1000), signer(2));
        let mut mute = Far::dial(&mut station, at(1000), signer(3));
        mute.answers = false;
        let _turn = station.handle_timeout(awake);
        good.read(&mut station, awake);
        assert!(probe(&mut mute, &mut station, awake).is_some());
        let mono = awake.mono.saturating_add(secs(5));
        let later = Now::new(mono, awake.wall.saturating_add(5000));
        common::move_to(&mut station, later);
        assert_eq!(closed(&mut station), [(mute.id, CloseReason::LivenessLost)]);
    }
}

#[test]
fn a_step_of_the_wall_alone_costs_one_probe() {
    for wall in [0, 20_001, 3_600_000, u64::MAX] {
        let mut node = node(1, open());
        node.links[0].answers = true;
        let stepped = Now::new(Instant::from_millis(10_000), WallMs::new(wall));
        let _turn = node.client.handle_timeout(stepped);
        node.links[0].read(&mut node.client, stepped);
        let later = Now::new(Instant::from_millis(16_000), stepped.wall);
        let _turn = node.client.handle_timeout(later);
        assert_eq!(closed(&mut node.client), [], "{wall}");
        let status = node.client.status();
        assert_eq!(status.links[0].probes.sent, 1, "{wall}");
        assert_eq!(counter(&status.counters, "clock_jumps"), 1, "{wall}");
    }
    // Ten seconds apart are believed.
    let mut node = node(1, open());
    let now = Now::new(Instant::from_millis(1000), at(11_000).wall);
    let _turn = node.client.handle_timeout(now);
    let now = Now::new(Instant::from_millis(12_000), at(12_000).wall);
    let _turn = node.client.handle_timeout(now);
    assert_eq!(counter(&node.client.status().counters, "clock_jumps"), 0);
}

#[test]
fn an_idle_link_costs_one_probe_per_end_and_interval() {
    let mut net = Net::new(5);
    let station = net.station(StationConfig::new(signer(1)));
    let client = net.client(ClientConfig::new(signer(2)), &[station]);
    net.run_for(secs(600));
    let here = net.at(client).status().links[0].probes;
    let there = net.at_station(station).status().links[0].probes;
    assert_eq!((here.sent, here.missed, here.stray), (20, 0, 0));
    assert_eq!(here, there);
    let status = net.at(client).status().links[0];
    assert_eq!((status.state, status.links), (LinkState::Up, 1));
}

#[test]
fn a_station_that_is_full_or_going_away_waits_while_another_is_there() {
    let told = [
        Frame::Goodbye(tidings::wire::Goodbye {
            reason: CloseReason::Draining,
            detail: "",
        }),
        Frame::Goodbye(tidings::wire::Goodbye {
            reason: CloseReason::Normal,
            detail: "",
        }),
    ];
    for (stations, frame) in [(2, 0), (1, 0), (2, 1)] {
        let mut shortest = Duration::MAX;
        for part in 0..40 {
            let mut node = Node::with(ClientConfig::new(signer(part)), stations, open());
            let far = &mut node.links[0];
            assert!(far.frame(&mut node.client, at(500), &told[frame]).is_ok());
            let down = LinkEvent::Down {
                link: far.id,
                reason: CloseReason::Draining,
            };
            node.client.handle_link(at(500), down).expect("it lives");
            let wait = redial_wait(&mut node.client, &mut at(500), 0);
            assert!(wait <= secs(30));
            shortest = shortest.min(wait);
        }
        let away = stations == 2 && frame == 0;
        let least = Duration::from_millis(if away { 5000 } else { 250 });
        assert!(shortest >= least, "{stations} {frame}: {shortest:?}");
        assert!(
            away || shortest < secs(5),
            "{stations} {frame}: {shortest:?}"
        );
    }
}

#[test]
fn a_refusal_with_full_or_draining_prefers_others_too() {
    use tidings::code::HandshakeRefusal::{Draining, Full, NotAccepted};
    for (refusal, least) in [(Full, 5000), (Draining, 5000), (NotAccepted, 250)] {
        let config = ClientConfig::new(signer(1)).station(None).station(None);
        let mut client = common::client(config);
        let _other = Far::answer(&mut client, at(0), signer(101), StationRef(1));
        let mut far = Far::answering(&mut client, at(0), signer(100), StationRef(0));
        far.challenge(&mut client, at(0));
        let refused = far.frame(&mut client, at(0), &Frame::Hello(Hello::Refused(refusal)));
        assert_eq!(refused, Err(LinkError::RefusedByStation(refusal)));
        let down = LinkEvent::Down {
            link: far.id,
            reason: CloseReason::Refused,
        };
        client.handle_link(at(0), down).expect("it lives");
        let wait = redial_wait(&mut client, &mut at(0), 0);
        assert!(wait >= Duration::from_millis(least), "{refusal}: {wait:?}");
    }
}

#[test]
fn a_station_that_takes_links_and_drops_them_is_dialled_ever_more_rarely() {
    let config = ClientConfig::new(signer(1)).station(None);
    let mut client = common::client(config);
    let mut now = at(0);
    let mut longest = Duration::ZERO;
    for round in 0..60 {
        assert_eq!(dials(&mut client), 1, "{round}");
        let far = Far::answer(&mut client, now, signer(100), StationRef(0));
        let down = LinkEvent::Down {
            link: far.id,
            reason: CloseReason::Io,
        };
        client.handle_link(now, down).expect("it lives");
        longest = longest.max(redial_wait(&mut client, &mut now, 0));
    }
    assert!(longest > secs(10), "{longest:?}");
    // One that lived as long as the wait before it is a new beginning.
    assert_eq!(dials(&mut client), 1);
    let far = Far::answer(&mut client, now, signer(100), StationRef(0));
    let now = &mut Now::new(
        now.mono.saturating_add(secs(30)),
        now.wall.saturating_add(30_000),
    );
    let down = LinkEvent::Down {
        link: far.id,
        reason: CloseReason::Io,
    };
    client.handle_link(*now, down).expect("it lives");
    let wait = redial_wait(&mut client, now, 0);
    assert!(wait <= Duration::from_millis(750), "{wait:?}");
    assert_eq!(client.status().links[0].links, 61);
}

#[test]
fn a_draining_station_refuses_what_comes_and_leaves_who_has_everything() {
    let mut station = common::station(StationConfig::new(signer(1)));
    let mut reader = Far::dial(&mut station, at(0), signer(2));
    let mut writer = Far::dial(&mut station, at(0), signer(3));
    let mut idle = Far::dial(&mut station, at(0), signer(4));
    let _open = reader.subscribe(&mut station, at(0), 1, common::TOPIC);
    assert_eq!(reader.types(&mut station, at(0)), ["subscribed 1"]);
    let fact = common::Fact::numbered(1).sign(&signer(3));
    let _open = writer.publish(&mut station, at(10), 1, &fact);
    station.drain(at(20));
    // Who has everything is told at once; the reader has its fact first, the writer its answer.
    assert_eq!(idle.types(&mut station, at(20)), ["goodbye draining "]);
    assert_eq!(closed(&mut station), [(idle.id, CloseReason::Draining)]);
    let again = common::Fact::numbered(2).sign(&signer(3));
    let _open = writer.publish(&mut station, at(30), 2, &again);
    let _open = writer.subscribe(&mut station, at(30), 3, common::TOPIC);
    let told = reader.types(&mut station, at(40));
    assert_eq!(told, ["event 1", "goodbye draining "]);
    let told = writer.types(&mut station, at(40));
    let refused = ["published 2 draining", "refused 3 draining"];
    assert!(
        refused
            .iter()
            .all(|one| told.iter().any(|told| told == one)),
        "{told:?}"
    );
    assert_eq!(told.last().map(String::as_str), Some("goodbye draining "));
    // Whoever dials is told why not.
    let mut late = Far::new(&mut station, at(50), signer(5));
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        late.shake_hands(&mut station, at(50));
    }));
    assert!(told.is_err(), "no handshake comes to its end");
    assert!(!station.is_drained());
    for far in [&reader, &writer, &idle, &late] {
        let down = LinkEvent::Down {
            link: far.id,
            reason: CloseReason::Draining,
        };
        station.handle_link(at(60), down).expect("it lives");
    }
    assert!(station.is_drained());
}

#[test]
fn a_draining_station_leaves_who_does_not_read_after_five_seconds() {
    let mut station = common::station(StationConfig::new(signer(1)));
    let mut reader = Far::dial(&mut station, at(0), signer(2));
    let mut writer = Far::dial(&mut station, at(0), signer(3));
    let _open = reader.subscribe(&mut station, at(0), 1, common::TOPIC);
    assert_eq!(reader.types(&mut station, at(0)), ["subscribed 1"]);
    let fact = common::Fact::numbered(1).sign(&signer(3));
    let _open = writer.publish(&mut station, at(10), 1, &fact);
    station.drain(at(20));
    common::move_to(&mut station, at(5019));
    writer.read(&mut station, at(5019));
    let ended = closed(&mut station);
    assert_eq!(ended, [(writer.id, CloseReason::Draining)]);
    common::move_to(&mut station, at(5020));
    assert_eq!(closed(&mut station), [(reader.id, CloseReason::Draining)]);
}

#[test]
fn a_drained_station_interrupts_nobody_who_has_another() {
    let mut net = Net::new(9);
    let stations = [1, 2].map(|part| net.station(StationConfig::new(signer(part))));
    let reader = net.client(ClientConfig::new(signer(3)), &stations);
    let writer = net.client(ClientConfig::new(signer(4)), &stations);
    net.run_for(secs(1));
    let now = net.now();
    let stream = net.at(reader).subscribe(now, open()).expect("accepted");
    net.run_for(secs(1));
    for n in 0..200 {
        let now = net.now();
        if n == 100 {
            net.at_station(stations[0]).drain(now);
        }
        let request = Publish::new(common::realm(), common::TOPIC, &n).expect("a number");
        net.at(writer)
            .publish(now, request)
            .expect("a station is up");
        net.run_for(Duration::from_millis(20));
    }
    net.run_for(secs(3));
    let words = common::words(&net.items(reader, stream));
    let numbers: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    assert_eq!(words, numbers);
    assert!(net.at_station(stations[0]).is_drained());
    let status = net.at(reader).status().links[0];
    assert!(
        status.last_end == Some(CloseReason::Draining)
            || status.last_end == Some(CloseReason::Refused)
    );
}

#[test]
fn no_state_of_a_link_is_without_a_deadline() {
    // The dialling side.
    let mut client = probing_client(ClientConfig::new(signer(1)).station(None));
    let mut far = Far::answering(&mut client, at(0), signer(100), StationRef(0));
    assert!(client.poll_timeout().is_some(), "the opener is out");
    far.challenge(&mut client, at(0));
    assert!(client.poll_timeout().is_some(), "the connect is out");
    let mut client = probing_client(ClientConfig::new(signer(1)).station(None));
    let mut far = Far::answer(&mut client, at(0), signer(100), StationRef(0));
    let mut station = probing_station(StationConfig::new(signer(1)));
    let mut other = Far::dial(&mut station, at(0), signer(2));
    (far.answers, other.answers) = (false, false);
    for second in 0..89 {
        for (machine, far) in [
            (&mut client as &mut dyn Machine, &mut far),
            (&mut station as &mut dyn Machine, &mut other),
        ] {
            let now = at(second * 1000);
            common::move_to(machine, now);
            assert!(
                machine.poll_timeout().is_some(),
                "before the write: {second}"
            );
            far.read(machine, now);
            let due = machine.poll_timeout().expect("after the write");
            assert!(due.saturating_since(now.mono) <= Duration::from_millis(EVERY));
        }
    }
}

#[test]
fn a_link_that_ended_is_neither_probed_nor_timed() {
    let mut node = node(1, open());
    let goodbye = Frame::Goodbye(tidings::wire::Goodbye {
        reason: CloseReason::Normal,
        detail: "",
    });
    let far = &mut node.links[0];
    assert!(far.frame(&mut node.client, at(10), &goodbye).is_ok());
    assert!(far.append(&mut node.client, at(20), &[]).is_ok());
    common::move_to(&mut node.client, at(600_000));
    assert_eq!(far.read(&mut node.client, at(600_000)).len(), 0);
    let slept = Now::new(at(600_001).mono, at(900_000).wall);
    let _turn = node.client.handle_timeout(slept);
    assert_eq!(far.read(&mut node.client, slept).len(), 0);
}
