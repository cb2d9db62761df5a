//! Goal 9: remembering publications, beside a hash set and a queue.

use std::hint::black_box;
use std::time::Duration;

use tidings::inbound::dedup::{HeapDedup, NewEntry, SHARES, SignatureKey};
use tidings::{Instant, Now, PublicationHash, Seed, WallMs};

use crate::harness::{Group, each};
use crate::line::{Line, nanos};
use crate::maps::Seen;
use crate::random::Random;

/// How long each publication is remembered.
pub(crate) const LIFE: Duration = Duration::from_secs(600);
/// The wall when the clocks started.
const START: WallMs = WallMs::new(1_790_000_000_000);
/// Whose publications they are, in turn.
const PUBLISHERS: u64 = 1024;
/// Publications of one sample.
const COUNT: usize = 65_536;
/// Those looked up again: the last ones.
const HOT: usize = 256;

/// A publication as a memory sees it, and when: clocks are read by a driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    at: Now,
    id: PublicationHash,
    signature: SignatureKey,
}

/// Publications without end, and a memory that has seen them so far.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The machine.
    pub(crate) dedup: HeapDedup,
    random: Random,
    made: u64,
    /// Between two publications.
    pace: Duration,
    mono: Instant,
}

impl Memory {
    /// Remembers about `live` publications at a time, each for [`LIFE`], once it has seen as many.
    pub(crate) fn new(live: usize) -> Self {
        Self::with_capacity(live, live + live / 4)
    }

    /// The same with this bound.
    pub(crate) fn with_capacity(live: usize, capacity: usize) -> Self {
        let rng = &mut Seed::new([9; 32]).fork("dedup");
        Self {
            dedup: HeapDedup::with_capacity(capacity, SHARES, rng),
            random: Random::new(live as u64),
            made: 0,
            pace: LIFE / live as u32,
            mono: Instant::ORIGIN,
        }
    }

    /// The next ones.
    pub(crate) fn next(&mut self, count: usize) -> Vec<Known> {
        let mut next = || {
            let publisher = (self.made % PUBLISHERS).to_le_bytes();
            let mut key = [7; 32];
            key[..8].copy_from_slice(&publisher);
            self.made += 1;
            self.mono = self.mono.saturating_add(self.pace);
            Known {
                at: self.clocks(),
                id: PublicationHash::new(self.random.bytes()),
                signature: self.dedup.signature_key(&key, &self.random.bytes()),
            }
        };
        (0..count).map(|_| next()).collect()
    }

    fn clocks(&self) -> Now {
        let since = self.mono.saturating_since(Instant::ORIGIN);
        let millis = since.as_millis() as u64;
        Now::new(self.mono, START.saturating_add(millis))
    }

    /// Remembers each at its time, for `life`.
    #[inline]
    pub(crate) fn commit(&mut self, known: &[Known], life: Duration) {
        let life = life.as_millis() as u64;
        for (seq, known) in known.iter().enumerate() {
            let entry = NewEntry {
                id: &known.id,
                signature: known.signature,
                until: known.at.wall.saturating_add(life),
                tag: 0,
                seq: seq as u64,
            };
            assert!(self.dedup.commit(known.at, entry).is_ok(), "room");
        }
    }

    /// Lets so much time go by.
    pub(crate) fn sleep(&mut self, time: Duration) {
        self.mono = self.mono.saturating_add(time);
    }

    /// One call of the sweep at the present time.
    pub(crate) fn sweep(&mut self, budget: usize) -> usize {
        let now = self.clocks();
        self.dedup.sweep(now, budget)
    }
}

struct Case {
    live: usize,
    ours: Memory,
    maps: Seen,
    last: Vec<Known>,
}

impl Case {
    /// Seen as many as it remembers, and a tenth more.
    fn new(live: usize) -> Self {
        let mut case = Self {
            live,
            ours: Memory::new(live),
            maps: Seen::new(LIFE),
            last: Vec::new(),
        };
        for _ in 0..(live + live / 10).div_ceil(COUNT) {
            case.insert();
        }
        case
    }

    /// New ones by both ways: one comes, one ends.
    fn insert(&mut self) -> [f64; 2] {
        let known = self.ours.next(COUNT);
        let ours = each(COUNT, || self.ours.commit(&known, LIFE));
        let maps = each(COUNT, || {
            for known in &known {
                self.maps.commit(known.at.mono, &known.id);
            }
        });
        self.last = known[COUNT - HOT..].to_vec();
        [ours, maps]
    }

    /// Copies of the last ones by both ways, in any order.
    fn hit(&mut self) -> [f64; 2] {
        let random = &mut self.ours.random;
        let asked: Vec<PublicationHash> = (0..COUNT)
            .map(|_| self.last[random.next_u64() as usize % HOT].id)
            .collect();
        let mut found = [0; 2];
        let ours = each(COUNT, || {
            for id in &asked {
                found[0] += usize::from(black_box(self.ours.dedup.check(id)).is_some());
            }
        });
        let maps = each(COUNT, || {
            for id in &asked {
                found[1] += usize::from(black_box(self.maps.check(id)));
            }
        });
        assert_eq!(found, [COUNT; 2]);
        [ours, maps]
    }

    fn check(&self) {
        let kept = [self.ours.dedup.len(), self.maps.len()];
        for kept in kept {
            assert!(kept >= self.live && kept <= self.live + self.live / 10);
        }
    }
}

/// See the module's text.
pub(crate) struct Memories {
    cases: [Case; 2],
}

impl Memories {
    /// At their steady state.
    pub(crate) fn new() -> Self {
        Self {
            cases: [100_000, 1_000_000].map(Case::new),
        }
    }
}

impl Default for Memories {
    fn default() -> Self {
        Self::new()
    }
}

impl Group for Memories {
    fn series(&self) -> &'static [&'static str] {
        &[
            "commit 1e5",
            "maps commit 1e5",
            "hit 1e5",
            "maps hit 1e5",
            "commit 1e6",
            "maps commit 1e6",
            "hit 1e6",
            "maps hit 1e6",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        let cases = self.cases.iter_mut();
        cases
            .flat_map(|case| [case.insert(), case.hit()].concat())
            .collect()
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        self.cases.iter().for_each(Case::check);
        let mut lines = Vec::new();
        let sizes = [("100,000", 0.35), ("1,000,000", 0.6)];
        for ((size, wanted), figures) in sizes.into_iter().zip(least.chunks(4)) {
            let &[commit, maps_commit, hit, maps_hit] = figures else {
                unreachable!("four series each");
            };
            let inserted = format!("dedup, insert and expire, beside hash set and queue, {size}");
            lines.push(Line::ratio(9, &inserted, [commit, maps_commit], wanted));
            let found = format!("dedup, a copy of the last 256, beside a hash set, {size}");
            lines.push(Line::ratio(9, &found, [hit, maps_hit], 0.7));
        }
        lines
    }
}

/// Entries one call may let go: what a commit does of itself, and twice the lists that are overdue.
const MOST_PER_COMMIT: f64 = 1028.0;

/// What one call lets go when all that is remembered ended long ago.
pub(crate) fn bounded() -> Vec<Line> {
    let mut memory = Memory::new(100_000);
    let known = memory.next(100_000);
    memory.commit(&known, LIFE);
    memory.sleep(LIFE * 20);
    let before = memory.dedup.len();
    let mut slowest = 0.0;
    let mut most = 0;
    // As many calls as it takes.
    while memory.dedup.len() > 1000 {
        let known = memory.next(1);
        let before = memory.dedup.len();
        let time = each(1, || memory.commit(&known, LIFE));
        slowest = f64::max(slowest, time);
        most = most.max(before + 1 - memory.dedup.len());
    }
    assert_eq!(before, known.len());
    assert!(memory.sweep(1) <= 1, "the caller's budget");
    let what = "dedup, most entries one commit lets go when 100,000 have ended";
    vec![
        Line::count(9, what, (most as f64, "entries"), MOST_PER_COMMIT),
        Line::shown(9, "... the slowest of those commits", nanos(slowest)),
    ]
}
