use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// A fact, or a notice that counts `missed` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thing {
    id: u64,
    missed: u64,
    notices: u64,
    bytes: usize,
}

impl Thing {
    fn fact(id: u64) -> Self {
        Self {
            id,
            missed: 1,
            notices: 0,
            bytes: 1,
        }
    }

    fn skipped(id: u64, missed: u64) -> Self {
        Self {
            missed,
            notices: 1,
            ..Self::fact(id)
        }
    }
}

impl StreamItem for Thing {
    type First = u64;

    fn missed(&self) -> u64 {
        self.missed
    }

    fn notices(&self) -> u64 {
        self.notices
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    /// Windows that go both ways, as walls do.
    fn window(&self) -> (WallMs, WallMs) {
        let from = 1000 + (self.id * 7919) % 100;
        (WallMs::new(from), WallMs::new(from + self.missed))
    }

    fn first(&self) -> Option<u64> {
        (self.notices == 0).then_some(self.id)
    }
}

fn stream(items: usize, on_full: OnFull) -> Stream<Thing, Vec<Slot<Thing>>> {
    let slots = (0..items).map(|_| None).collect();
    Stream::new(slots, 0, usize::MAX, on_full)
}

fn drain<S: AsRef<[Slot<Thing>]> + AsMut<[Slot<Thing>]>>(
    stream: &mut Stream<Thing, S>,
) -> Vec<Next<Thing, u64>> {
    core::iter::from_fn(|| stream.poll()).collect()
}

fn missed(next: &Next<Thing, u64>) -> Option<u64> {
    match next {
        Next::Lagged(lagged) => Some(lagged.missed),
        _ => None,
    }
}

fn facts(ids: core::ops::RangeInclusive<u64>) -> Vec<Next<Thing, u64>> {
    ids.map(|id| Next::Item(Thing::fact(id))).collect()
}

#[test]
fn br_14_the_hole_is_in_band_at_its_place() {
    let mut lag = stream(4, OnFull::Lag);
    let mut disconnect = stream(4, OnFull::Disconnect);
    for id in 1..=10 {
        assert_eq!(lag.push(Thing::fact(id)), Ok(()));
        assert_eq!(disconnect.push(Thing::fact(id)), Ok(()));
    }
    let read = drain(&mut lag);
    assert_eq!(missed(&read[0]), Some(6));
    assert_eq!(read[1..], facts(7..=10));

    let read = drain(&mut disconnect);
    assert_eq!(read[..4], facts(1..=4));
    assert!(matches!(
        read[4],
        Next::Lagged(Lagged {
            missed: 6,
            first: Some(5),
            ..
        })
    ));
    assert_eq!(read[5..], [Next::Ended(EndReason::LaggedOut)]);
    assert_eq!(disconnect.push(Thing::fact(11)), Err(Thing::fact(11)));
    assert!(disconnect.is_over());
}

#[test]
fn br_15_the_end_takes_no_slot() {
    for n in [1, 2, 3, 5, 8] {
        for more in [0, 1] {
            let mut stream = stream(n as usize, OnFull::Lag);
            for id in 1..=n + more {
                assert_eq!(stream.push(Thing::fact(id)), Ok(()));
            }
            stream.end(EndReason::Unsubscribed);
            let read = drain(&mut stream);
            let lags: Vec<_> = read.iter().filter_map(missed).collect();
            assert_eq!(lags, [1][..more as usize]);
            assert_eq!(
                read[more as usize..][..n as usize],
                facts(1 + more..=n + more)
            );
            assert_eq!(read.last(), Some(&Next::Ended(EndReason::Unsubscribed)));
            assert_eq!(read.len() as u64, n + more + 1);
        }
    }
}

#[test]
fn br_17_one_lagged_per_episode_with_the_first_that_was_lost() {
    let mut stream: HeapStream<Thing> = Stream::with_bounds(
        StreamBounds {
            items: 4,
            reserve: 0,
            bytes: usize::MAX,
        },
        OnFull::Lag,
    );
    for id in 1..=100_000 {
        assert_eq!(stream.push(Thing::fact(id)), Ok(()));
        assert!(stream.memory() <= 4 * size_of::<Slot<Thing>>());
    }
    let read = drain(&mut stream);
    assert!(matches!(
        read[0],
        Next::Lagged(Lagged {
            missed: 99_996,
            notices: 0,
            first: Some(1),
            ..
        })
    ));
    assert_eq!(read[1..], facts(99_997..=100_000));
}

#[test]
fn a_reader_that_is_always_too_slow_sees_a_lagged_per_quarter_of_the_queue() {
    let mut stream = stream(1024, OnFull::Lag);
    let (mut lags, mut items, mut lost) = (0, 0, 0);
    for id in 0..100_000 {
        assert_eq!(stream.push(Thing::fact(id)), Ok(()));
        if id % 2 == 0 {
            let next = stream.poll().unwrap();
            match missed(&next) {
                Some(missed) => (lags, lost) = (lags + 1, lost + missed),
                None => items += 1,
            }
        }
    }
    assert!(lags <= items / 100, "{lags} for {items}");
    assert_eq!(lost + items + stream.len() as u64, 100_000);
}

#[test]
fn what_notices_counted_is_counted_when_they_are_lost() {
    let mut stream = stream(1, OnFull::Lag);
    let again = Thing {
        id: 3,
        missed: 40,
        notices: 3,
        bytes: 1,
    };
    for thing in [Thing::skipped(1, 5), again, Thing::fact(4), Thing::fact(5)] {
        assert_eq!(stream.push(thing), Ok(()));
    }
    let Some(Next::Lagged(lagged)) = stream.poll() else {
        panic!("nothing lagged");
    };
    assert_eq!((lagged.missed, lagged.notices), (46, 4));
    assert_eq!(
        lagged.first,
        Some(4),
        "the first fact, not the first notice"
    );
}

#[test]
fn pause_loses_nothing_before_its_reserve_is_spent() {
    let bounds = StreamBounds {
        items: 3,
        reserve: 2,
        bytes: 100,
    };
    let mut stream: HeapStream<Thing> = Stream::with_bounds(bounds, OnFull::Pause);
    for id in 1..=5 {
        assert_eq!(stream.is_full(), id > 3);
        assert_eq!(stream.push(Thing::fact(id)), Ok(()));
    }
    assert_eq!(stream.poll(), Some(Next::Item(Thing::fact(1))));
    assert_eq!(stream.push(Thing::fact(6)), Ok(()));
    assert_eq!(stream.push(Thing::fact(7)), Ok(()), "beyond the reserve");
    let read = drain(&mut stream);
    assert_eq!(missed(&read[0]), Some(1));
    assert_eq!(read[1..], facts(3..=7));
    assert!(!stream.is_full(), "reading cures it");

    let heavy = Thing {
        bytes: 60,
        ..Thing::fact(1)
    };
    assert_eq!(stream.push(heavy), Ok(()));
    assert!(!stream.is_full());
    assert_eq!(stream.push(heavy), Ok(()));
    assert!(stream.is_full(), "by bytes as by items");
}

#[test]
fn a_lone_item_is_kept_however_heavy() {
    let mut stream = Stream::new([const { None }; 4], 0, 10, OnFull::Lag);
    let heavy = |id| Thing {
        bytes: 50,
        ..Thing::fact(id)
    };
    assert_eq!(stream.push(heavy(1)), Ok(()));
    assert_eq!(stream.bytes(), 50);
    assert_eq!(stream.push(heavy(2)), Ok(()));
    assert_eq!(stream.bytes(), 50);
    let read = drain(&mut stream);
    assert_eq!(
        (missed(&read[0]), &read[1..]),
        (Some(1), &[Next::Item(heavy(2))][..])
    );
}

#[test]
fn a_shared_budget_takes_the_oldest_and_counts_it() {
    let mut lag = stream(4, OnFull::Lag);
    let mut disconnect = stream(4, OnFull::Disconnect);
    assert!(!lag.collapse_oldest() && !disconnect.collapse_oldest());
    for id in 1..=3 {
        assert_eq!(lag.push(Thing::fact(id)), Ok(()));
        assert_eq!(disconnect.push(Thing::fact(id)), Ok(()));
    }
    assert!(lag.collapse_oldest() && disconnect.collapse_oldest());
    assert_eq!((lag.bytes(), disconnect.bytes()), (2, 0));
    assert_eq!(lag.peek(), None, "the notice comes first");
    let read = drain(&mut lag);
    assert_eq!((missed(&read[0]), &read[1..]), (Some(1), &facts(2..=3)[..]));
    let read = drain(&mut disconnect);
    assert_eq!(missed(&read[0]), Some(3));
    assert_eq!(read[1..], [Next::Ended(EndReason::LaggedOut)]);
}

#[test]
fn ready_is_raised_once_and_again_after_a_drain() {
    let mut stream = stream(4, OnFull::Lag);
    assert!(!stream.take_ready());
    assert_eq!(stream.push(Thing::fact(1)), Ok(()));
    assert!(stream.take_ready());
    assert_eq!(stream.push(Thing::fact(2)), Ok(()));
    assert!(!stream.take_ready());
    assert!(stream.poll().is_some());
    assert_eq!(stream.push(Thing::fact(3)), Ok(()));
    assert!(!stream.take_ready(), "not drained yet");
    drain(&mut stream);
    assert!(!stream.take_ready());
    stream.end(EndReason::Closed);
    stream.end(EndReason::Unsubscribed);
    assert!(stream.take_ready(), "the end is something to read");
    assert_eq!(drain(&mut stream), [Next::Ended(EndReason::Closed)]);
    assert_eq!((stream.take_ready(), stream.is_over()), (false, true));
    assert_eq!(stream.push(Thing::fact(4)), Err(Thing::fact(4)));
}

#[derive(Clone, Debug)]
enum Step {
    Collapse,
    Poll(usize),
    Push {
        missed: u64,
        notice: bool,
        bytes: usize,
    },
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1..4u64, prop::bool::weighted(0.3), 0..12usize)
            .prop_map(|(missed, notice, bytes)| Step::Push { missed, notice, bytes }),
        3 => (0..6usize).prop_map(Step::Poll),
        1 => Just(Step::Collapse),
    ];
    proptest::collection::vec(step, 0..120)
}

/// Every output must be the trace of all that was pushed, in order, with runs replaced by what counts them exactly. The bounds hold after
/// every step, and nothing is given up while one more item would have fitted.
fn replay<S: AsRef<[Slot<Thing>]> + AsMut<[Slot<Thing>]>>(
    mut stream: Stream<Thing, S>,
    on_full: OnFull,
    steps: &[Step],
) -> (usize, usize) {
    let bounds = stream.bounds();
    let slack = if on_full == OnFull::Pause { 2 } else { 1 };
    let mut trace: Vec<Thing> = Vec::new();
    let mut out = Vec::new();
    let mut raised = false;
    let mut was_full = false;
    let mut collapsed = false;
    for step in steps {
        match *step {
            Step::Push {
                missed,
                notice,
                bytes,
            } => {
                let id = trace.len() as u64;
                let thing = if notice {
                    Thing::skipped(id, missed)
                } else {
                    Thing::fact(id)
                };
                let thing = Thing { bytes, ..thing };
                was_full |= stream.len() >= bounds.items + bounds.reserve
                    || stream.bytes() + bytes > bounds.bytes * slack;
                match stream.push(thing) {
                    Ok(()) => trace.push(thing),
                    Err(back) => {
                        assert_eq!(back, thing);
                        assert!(stream.is_ended());
                    }
                }
            }
            Step::Poll(times) => {
                for _ in 0..times {
                    let held = stream.peek().copied();
                    let readable = stream.is_readable();
                    let next = stream.poll();
                    assert_eq!(next.is_some(), readable);
                    if let Some(held) = held {
                        assert_eq!(next, Some(Next::Item(held)));
                    }
                    out.extend(next);
                }
                raised &= stream.is_readable();
            }
            Step::Collapse => collapsed |= stream.collapse_oldest(),
        }
        assert_eq!(stream.take_ready(), !raised && stream.is_readable());
        raised |= stream.is_readable();
        assert!(stream.len() <= bounds.items + bounds.reserve);
        assert!(stream.len() <= 1 || stream.bytes() <= bounds.bytes.saturating_mul(slack));
    }
    stream.end(EndReason::Unsubscribed);
    out.extend(drain(&mut stream));
    assert!(stream.is_over() && stream.poll().is_none());

    let mut at = 0;
    let mut lags = 0;
    let mut pending: Vec<Lagged<u64>> = Vec::new();
    for (index, next) in out.iter().enumerate() {
        match next {
            Next::Item(thing) => {
                check_run(&trace[at..thing.id as usize], &pending);
                assert_eq!(thing, &trace[thing.id as usize]);
                at = thing.id as usize + 1;
                pending.clear();
            }
            Next::Ended(reason) => {
                assert_eq!(index, out.len() - 1);
                let cut = on_full == OnFull::Disconnect && lags > 0;
                assert_eq!(*reason == EndReason::LaggedOut, cut);
            }
            Next::Lagged(lagged) => {
                lags += 1;
                pending.push(*lagged);
            }
        }
    }
    check_run(&trace[at..], &pending);
    assert!(
        lags == 0 || was_full || collapsed,
        "no notice without cause"
    );
    (lags, trace.len())
}

/// What was not delivered between two items is what the notices there count: each some of it, in order, none of it twice.
fn check_run(run: &[Thing], lags: &[Lagged<u64>]) {
    let mut rest = run;
    for (index, lagged) in lags.iter().enumerate() {
        let counts = |n: &usize| {
            let part = &rest[..*n];
            let windows = || part.iter().map(StreamItem::window);
            *lagged
                == Lagged {
                    missed: part.iter().map(|thing| thing.missed).sum(),
                    notices: part.iter().map(|thing| thing.notices).sum(),
                    first: part.iter().find_map(StreamItem::first),
                    from: windows().map(|(from, _)| from).min().unwrap(),
                    to: windows().map(|(_, to)| to).max().unwrap(),
                }
        };
        let last = index == lags.len() - 1;
        let n = (1..=rest.len()).find(|n| counts(n) && (!last || *n == rest.len()));
        rest = &rest[n.expect("a notice that counts something else than was lost")..];
    }
    assert!(rest.is_empty(), "lost in silence: {rest:?}");
}

proptest! {
    #[test]
    fn each_stream_is_the_full_trace_with_runs_replaced_by_what_counts_them(
        steps in script(), items in 1..9usize, reserve in 0..4usize, bytes in prop_oneof![Just(1_000_000usize), 10..60usize]
    ) {
        for on_full in [OnFull::Disconnect, OnFull::Lag, OnFull::Pause] {
            let bounds = StreamBounds { items, reserve, bytes };
            let heap = HeapStream::with_bounds(bounds, on_full);
            let slots: Vec<_> = (0..bounds.slots(on_full)).map(|_| None).collect();
            let fixed = Stream::new(slots.into_boxed_slice(), reserve, bytes, on_full);
            prop_assert_eq!(replay(heap, on_full, &steps), replay(fixed, on_full, &steps));
        }
    }
}

#[test]
fn the_first_overflow_gives_up_one_item_and_no_more() {
    for items in 1..20 {
        let mut stream = stream(items, OnFull::Lag);
        for id in 0..=items as u64 {
            assert_eq!(stream.push(Thing::fact(id)), Ok(()));
        }
        assert_eq!(stream.len(), items);
        assert_eq!(stream.poll().as_ref().and_then(missed), Some(1));
    }
}

#[test]
fn a_stream_without_slots_counts_everything() {
    let mut stream = stream(0, OnFull::Lag);
    for id in 0..3 {
        assert_eq!(stream.push(Thing::fact(id)), Ok(()));
    }
    assert_eq!(stream.poll().as_ref().and_then(missed), Some(3));
    assert_eq!(stream.poll(), None);
}
