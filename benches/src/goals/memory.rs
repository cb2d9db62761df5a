//! Goal 10: memory, counted where it is allocated.

use allocation_counter::measure;
use tidings::ClientLimits;

use super::dedup::{LIFE, Memory};
use super::machines::{Machine, PlainLane, Taken};
use crate::line::Line;
use crate::random::Random;
use crate::reader::{Reader, Setup};
use crate::world::{Facts, after, key};

/// All of the goal.
pub(crate) fn lines() -> Vec<Line> {
    let mut lines = entries();
    lines.extend(idle_publishers());
    lines.push(in_order());
    lines
}

/// Bytes of a memory of publications: full, and while as many come as end.
fn entries() -> Vec<Line> {
    let mut lines = Vec::new();
    for (live, size) in [(100_000, "100,000"), (1 << 20, "1,048,576")] {
        let mut memory = Memory::with_capacity(live, live);
        let known = memory.next(live);
        let filled = measure(|| memory.commit(&known, LIFE)).bytes_current;
        assert_eq!(memory.dedup.len(), live);
        let each = filled as f64 / live as f64;
        let what = format!("dedup, bytes for each entry of {size}, full");
        lines.push(Line::count(10, &what, (each, "B"), 80.0));
    }
    let (live, mut random) = (100_000, Random::new(10));
    let mut memory = Memory::new(live);
    let mut bytes = 0;
    // Lives of every length up to twice the mean.
    let mut churn = |memory: &mut Memory| {
        let known = memory.next(live / 4);
        let info = measure(|| {
            for known in known.chunks(16) {
                memory.commit(
                    known,
                    LIFE.mul_f64((random.next_u64() % 2000) as f64 / 1000.0),
                );
            }
        });
        bytes += info.bytes_current;
        bytes
    };
    let warm = (0..12).map(|_| churn(&mut memory)).max().unwrap_or(0);
    let most = (0..40).map(|_| churn(&mut memory)).max().unwrap_or(0);
    let growth = (most - warm).max(0) as f64 * 100.0 / warm as f64;
    let what = "... growth of 100,000 entries with lives of every length, ten times over";
    lines.push(Line::count(10, what, (growth, "%"), 1.0));
    lines
}

const PUBLISHERS: usize = 10_000;

/// Bytes of a client that heard many publishers once each.
fn idle_publishers() -> Vec<Line> {
    let mut limits = ClientLimits::default();
    (limits.lanes, limits.resting_lanes) = (2 * PUBLISHERS, 2 * PUBLISHERS);
    limits.publishers = 2 * PUBLISHERS;
    let mut reader = Reader::new(Setup {
        limits,
        ..Setup::default()
    });
    let keys = (0..PUBLISHERS as u64).map(|n| key(1000 + n)).collect();
    let objects = Facts::from(keys).many(after(0), PUBLISHERS);
    let mut reads = reader.reads(&objects);
    let heard = measure(|| {
        for read in &mut reads {
            reader.read(after(0), read);
        }
    });
    assert_eq!(reader.taken.facts, PUBLISHERS);
    // Whatever was read into: the buffers are the driver's.
    let mut bytes = heard.bytes_current;
    let of_each = |bytes: i64| (bytes as f64 / PUBLISHERS as f64, "B");
    let mut lines = vec![Line::shown(
        10,
        "client, bytes for each publisher just heard, memory of its fact included",
        format!("{:.0} B", of_each(bytes).0),
    )];
    for (until, what) in [
        (
            9 * 60,
            "client, bytes for each publisher idle for 9 minutes, all in",
        ),
        (12 * 60, "... idle for 12 minutes"),
    ] {
        bytes += measure(|| reader.idle(until)).bytes_current;
        lines.push(Line::count(10, what, of_each(bytes), 400.0));
    }
    lines
}

/// Allocations of a lane whose facts come in order.
fn in_order() -> Line {
    let mut taken = Taken::default();
    let mut lane: PlainLane = Machine::new();
    let allocated = measure(|| {
        for seq in 1..=1000 {
            let now = after(seq).mono;
            Machine::offer(&mut lane, now, seq, seq, &mut taken);
        }
    });
    assert_eq!((taken.facts, taken.skipped), (1000, 0));
    let counted = (allocated.count_total as f64, "allocations");
    Line::count(10, "lane, window of a publisher in order", counted, 0.0)
}
