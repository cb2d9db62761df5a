//! What guests of a station leave behind, and what it tells of itself when it gave something up.

mod common;

use common::{Fact, Far, TOPIC, at, counter, move_to, numbers, realm, secs, signer, station};
use tidings::wire::{self, Frame, Phase};
use tidings::{Publish, Refusal, StationConfig, StationLimits};

#[test]
fn guests_that_come_and_go_leave_a_bounded_number_of_filters() {
    let mut limits = StationLimits::default();
    limits.topics = 100;
    let mut station = station(StationConfig::new(signer(1)).limits(limits));
    let mut far = Far::dial(&mut station, at(0), signer(2));
    let mut most = 0;
    for n in 0..5000u64 {
        let (now, id) = (at(n), n + 1);
        let filter = format!("weather/{n}/*");
        let taken = far.subscribe(&mut station, now, id, &filter);
        assert!(taken.is_ok());
        let taken = far.frame(&mut station, now, &Frame::Unsubscribe(id));
        assert!(taken.is_ok());
        far.read(&mut station, now);
        most = most.max(station.status().interests);
    }
    assert!(most <= 101, "{most}");
    let timers = station.memory().line("timers").expect("a line").used;
    assert!(timers < 10, "{timers}");
    move_to(&mut station, at(5000 + 121_000));
    assert_eq!(station.status().interests, 0);
    assert_eq!(station.status().realms, 0);
}

#[test]
fn an_interest_outlives_its_last_holder_by_two_minutes_each() {
    let mut station = station(StationConfig::new(signer(1)));
    let mut far = Far::dial(&mut station, at(0), signer(2));
    for (id, filter) in [(1, "weather/a"), (2, "weather/b")] {
        let taken = far.subscribe(&mut station, at(0), id, filter);
        assert!(taken.is_ok());
    }
    for (id, now) in [(1, at(1000)), (2, at(61_000))] {
        let taken = far.frame(&mut station, now, &Frame::Unsubscribe(id));
        assert!(taken.is_ok());
    }
    for (now, interests) in [(120_999, 2), (121_000, 1), (180_999, 1), (181_000, 0)] {
        move_to(&mut station, at(now));
        assert_eq!(station.status().interests, interests, "at {now}");
    }
}

#[test]
fn progress_tells_no_later_time_than_that_of_the_last_one_read() {
    let mut limits = StationLimits::default();
    limits.ring_items = 2;
    let mut station = station(StationConfig::new(signer(1)).limits(limits));
    let mut reader = Far::dial(&mut station, at(0), signer(2));
    let mut writer = Far::dial(&mut station, at(0), signer(7));
    let taken = reader.subscribe(&mut station, at(0), 1, TOPIC);
    assert!(taken.is_ok());
    let mut publish = |station: &mut tidings::Station, seq: u64| {
        let object = Fact::numbered(seq).sign(&signer(7));
        let taken = writer.publish(station, at(seq * 1000), seq, &object);
        assert!(taken.is_ok());
    };
    publish(&mut station, 1);
    assert_eq!(
        reader.types(&mut station, at(1000)),
        ["subscribed 1", "event 1"]
    );
    for seq in 2..=5 {
        publish(&mut station, seq);
    }
    // Two and three are gone, and a progress is due.
    move_to(&mut station, at(10_000));
    let frames = reader.read(&mut station, at(10_000));
    let decoded: Vec<Frame<'_>> = frames
        .iter()
        .map(|body| Frame::decode(body, Phase::Established).expect("a frame"))
        .collect();
    let Frame::Progress(wire::Progress {
        offset, behind_ms, ..
    }) = decoded[0]
    else {
        panic!("{decoded:?}")
    };
    assert_eq!((offset, behind_ms), (1, 9000));
    assert!(matches!(decoded[1], Frame::Skipped(skipped) if skipped.count == 2));
}

#[test]
fn a_refused_publication_of_the_stations_own_uses_no_number() {
    let mut limits = StationLimits::default();
    limits.dedup_entries = 1;
    let mut station = station(StationConfig::new(signer(1)).limits(limits));
    let mut reader = Far::dial(&mut station, at(0), signer(2));
    let taken = reader.subscribe(&mut station, at(0), 1, TOPIC);
    assert!(taken.is_ok());
    let own = |n: u64| {
        let request = Publish::new(realm(), TOPIC, &n).expect("a number");
        request.ttl(secs(0))
    };
    assert_eq!(station.publish(at(0), own(1)).ok(), Some(1));
    // The one entry there is may be reused for what comes after; another publisher's, which may not, takes its place first.
    let mut writer = Far::dial(&mut station, at(0), signer(7));
    let unnumbered = Fact {
        epoch: None,
        ..Fact::numbered(5)
    };
    let object = unnumbered.sign(&signer(7));
    let taken = writer.publish(&mut station, at(1), 1, &object);
    assert!(taken.is_ok());
    let refused = station.publish(at(2), own(2)).expect_err("no room");
    assert_eq!(refused.reason, Refusal::WouldBlock);
    move_to(&mut station, at(1_000_000));
    assert_eq!(station.publish(at(1_000_000), own(3)).ok(), Some(1));
    let numbers = numbers(&reader.read(&mut station, at(1_000_000)));
    let own = numbers
        .iter()
        .rfind(|(publisher, _)| *publisher == station.id());
    assert_eq!(own, Some(&(station.id(), 2)), "{numbers:?}");
}

#[test]
fn an_anycast_whose_reader_leaves_before_it_was_written_is_a_dead_letter() {
    let mut station = station(StationConfig::new(signer(1)));
    let mut reader = Far::dial(&mut station, at(0), signer(2));
    let mut writer = Far::dial(&mut station, at(0), signer(7));
    for id in [1, 2] {
        let taken = reader.subscribe(&mut station, at(0), id, TOPIC);
        assert!(taken.is_ok());
    }
    reader.read(&mut station, at(0));
    for seq in 1..=4 {
        writer.publish_one(&mut station, at(1), seq);
    }
    let taken = reader.frame(&mut station, at(2), &Frame::Unsubscribe(1));
    assert!(taken.is_ok());
    let dead = |station: &tidings::Station| counter(&station.status().counters, "dead_letters");
    assert_eq!(dead(&station), 2);
    let goodbye = Frame::Goodbye(wire::Goodbye {
        reason: tidings::code::CloseReason::Normal,
        detail: "",
    });
    let taken = reader.frame(&mut station, at(3), &goodbye);
    assert!(taken.is_ok());
    assert_eq!(dead(&station), 4);
    let nothing: Vec<String> = Vec::new();
    assert_eq!(reader.types(&mut station, at(3)), nothing);
}

#[test]
fn anycasts_that_wait_take_a_bounded_number_of_bytes_at_all_links_together() {
    let mut limits = StationLimits::default();
    limits.publication_bytes = 4096;
    limits.ring_bytes = 8 * 1024;
    let mut station = station(StationConfig::new(signer(1)).limits(limits));
    let mut readers: Vec<Far> = (2..6)
        .map(|n| Far::dial(&mut station, at(0), signer(n)))
        .collect();
    for reader in &mut readers {
        let taken = reader.subscribe(&mut station, at(0), 1, TOPIC);
        assert!(taken.is_ok());
    }
    let mut writer = Far::dial(&mut station, at(0), signer(7));
    for seq in 1..=20 {
        writer.publish_one(&mut station, at(1), seq);
        let memory = station.memory();
        let line = memory.line("ones_bytes").expect("a line");
        assert!(line.used <= 1024, "{line:?}");
    }
    for reader in &mut readers {
        reader.read(&mut station, at(2));
    }
    let memory = station.memory();
    assert_eq!(memory.line("ones_bytes").expect("a line").used, 0);
    let told = writer.types(&mut station, at(2));
    let routed = told.iter().filter(|told| told.ends_with(" routed")).count();
    assert!(routed > 0 && routed < 20, "{told:?}");
}
