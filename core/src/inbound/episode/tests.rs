use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Now {
    Now::new(Instant::from_millis(ms), WallMs::new(1_000_000 + ms))
}

fn episodes<const N: usize>() -> Episodes<u8, [Slot<u8>; N]> {
    Episodes::new([None; N])
}

#[test]
fn one_second_of_quiet_ends_an_episode_exactly() {
    let mut episodes = episodes::<2>();
    for ms in [0, 999, 1998] {
        assert_eq!(episodes.record(at(ms), 1, 7, 2), None);
    }
    assert_eq!(episodes.poll_timeout(), Some(Instant::from_millis(2998)));
    assert_eq!(episodes.handle_timeout(Instant::from_millis(2997)), None);
    let dropped = Dropped {
        reason: 1,
        count: 6,
        publishers: 1,
        from: WallMs::new(1_000_000),
        to: WallMs::new(1_001_998),
    };
    assert_eq!(
        episodes.handle_timeout(Instant::from_millis(2998)),
        Some(dropped)
    );
    assert_eq!(episodes.handle_timeout(Instant::from_millis(2998)), None);
    assert_eq!(episodes.poll_timeout(), None);
}

#[test]
fn an_episode_without_quiet_is_reported_after_ten_seconds() {
    let mut episodes = episodes::<1>();
    let mut ended = Vec::new();
    for ms in (0..25_000).step_by(500) {
        ended.extend(episodes.record(at(ms), 1, ms, 1));
    }
    let counts: Vec<_> = ended.iter().map(|dropped| dropped.count).collect();
    assert_eq!(counts, [20, 20]);
    assert_eq!(
        ended[0].publishers, PUBLISHERS as u32,
        "and no more are told apart"
    );
    assert_eq!(episodes.finish().map(|dropped| dropped.count), Some(10));
    assert_eq!(episodes.finish(), None);
}

#[test]
fn a_reason_too_many_ends_the_one_that_would_end_first() {
    let mut episodes = episodes::<2>();
    assert_eq!(episodes.record(at(0), 1, 0, 5), None);
    assert_eq!(episodes.record(at(1), 2, 0, 1), None);
    let ended = episodes.record(at(2), 3, 0, 1);
    assert_eq!(
        ended.map(|dropped| (dropped.reason, dropped.count)),
        Some((1, 5))
    );
    let mut none = Episodes::new([]);
    assert_eq!(
        none.record(at(0), 1, 0, 3).map(|dropped| dropped.count),
        Some(3)
    );
    assert_eq!(none.poll_timeout(), None);
}

#[derive(Clone, Debug)]
struct Event {
    mono: u64,
    wall: u64,
    reason: u8,
    publisher: u64,
    count: u64,
}

fn script() -> impl Strategy<Value = Vec<Event>> {
    let event = (
        prop_oneof![0..300u64, 900..1100u64, 0..3000u64],
        0..10_000u64,
        0..3u8,
        0..12u64,
        0..4u64,
    );
    proptest::collection::vec(event, 0..80).prop_map(|events| {
        let mut mono = 0;
        let turn = |(after, wall, reason, publisher, count)| {
            mono += after;
            Event {
                mono,
                wall,
                reason,
                publisher,
                count,
            }
        };
        events.into_iter().map(turn).collect()
    })
}

/// What a reason's events come to, cut by hand wherever one comes too late for the episode before it.
fn by_hand(events: &[Event], reason: u8) -> Vec<(u64, Dropped<u8>)> {
    let of_reason: Vec<&Event> = events
        .iter()
        .filter(|event| event.reason == reason)
        .collect();
    let mut ended = Vec::new();
    let mut rest = of_reason.as_slice();
    while let Some(first) = rest.first() {
        let deadline =
            |held: &[&Event]| (held[held.len() - 1].mono + 1000).min(first.mono + 10_000);
        let mut n = 1;
        while n < rest.len() && rest[n].mono < deadline(&rest[..n]) {
            n += 1;
        }
        let (held, after) = rest.split_at(n);
        let mut publishers: Vec<u64> = held.iter().map(|event| event.publisher).collect();
        publishers.sort_unstable();
        publishers.dedup();
        let walls = || held.iter().map(|event| WallMs::new(event.wall));
        let dropped = Dropped {
            reason,
            count: held.iter().map(|event| event.count).sum(),
            publishers: publishers.len().min(PUBLISHERS) as u32,
            from: walls().min().unwrap(),
            to: walls().max().unwrap(),
        };
        ended.push((deadline(held), dropped));
        rest = after;
    }
    ended
}

proptest! {
    #[test]
    fn every_script_ends_in_the_episodes_cut_by_hand(events in script(), timers in any::<bool>()) {
        let mut episodes = episodes::<3>();
        let mut ended: [Vec<(u64, Dropped<u8>)>; 3] = Default::default();
        for event in &events {
            while let Some(due) = episodes.poll_timeout().filter(|due| timers && due.as_micros() <= event.mono * 1000) {
                let dropped = episodes.handle_timeout(due).unwrap();
                ended[usize::from(dropped.reason)].push((due.as_micros() / 1000, dropped));
                prop_assert!(episodes.poll_timeout().is_none_or(|next| next >= due));
            }
            let now = Now::new(Instant::from_millis(event.mono), WallMs::new(event.wall));
            if let Some(dropped) = episodes.record(now, event.reason, event.publisher, event.count) {
                prop_assert!(!timers, "with timers nothing is overdue");
                ended[usize::from(dropped.reason)].push((event.mono, dropped));
            }
        }
        while let Some(due) = episodes.poll_timeout() {
            while let Some(dropped) = episodes.handle_timeout(due) {
                ended[usize::from(dropped.reason)].push((due.as_micros() / 1000, dropped));
            }
            prop_assert!(episodes.poll_timeout().is_none_or(|next| next > due));
        }
        for reason in 0..3 {
            let expected = by_hand(&events, reason);
            let got = &ended[usize::from(reason)];
            let contents = |all: &[(u64, Dropped<u8>)]| all.iter().map(|(_, dropped)| *dropped).collect::<Vec<_>>();
            prop_assert_eq!(contents(got), contents(&expected));
            if timers {
                prop_assert_eq!(got, &expected);
            }
        }
    }
}
