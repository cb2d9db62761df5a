//! The station against a list of everything it admitted.
//!
//! The model keeps every publication with its offset, and for each interest where its recording began. What is gone, by the ring's items, the
//! budget or a publication's life, is marked. A position is covered when nothing after it that the filter wants is marked.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidings::wire::{Position, ResumeOutcome};
use tidings::{RunId, StationLimits};

use super::common::{Fact, Far, signer};
use super::world::{Got, World};

const TOPICS: [&str; 3] = ["weather/a", "weather/bb", "weather/bb/c"];
const FILTERS: [(&str, [bool; 3]); 4] = [
    ("weather/a", [true, false, false]),
    ("weather/bb/c", [false, false, true]),
    ("weather/*", [true, true, false]),
    ("weather/**", [true, true, true]),
];
const SLOTS: usize = 3;
const LINGER_MS: u64 = 120_000;
const SKEW_MS: u64 = 300_000;

#[derive(Clone, Copy, Debug)]
enum From {
    Nothing,
    /// Where this filter was last in this slot, so much later or earlier.
    Last(i8),
    OtherRun,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish {
        topic: usize,
        long: bool,
    },
    Read {
        slot: usize,
        frames: usize,
    },
    Subscribe {
        slot: usize,
        filter: usize,
        from: From,
    },
    Unsubscribe {
        slot: usize,
    },
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let from = prop_oneof![
        2 => Just(From::Nothing),
        5 => Just(From::Last(0)),
        4 => (-4..4i8).prop_map(From::Last),
        1 => Just(From::OtherRun),
    ];
    let wait = prop::sample::select(vec![
        1, 999, 10_000, 60_000, 119_999, 120_000, 120_001, 200_000, 301_000,
    ]);
    prop_oneof![
        8 => (0..TOPICS.len(), prop::bool::weighted(0.7))
            .prop_map(|(topic, long)| Step::Publish { topic, long }),
        4 => (0..SLOTS, prop::sample::select(vec![1, 2, 3, 100]))
            .prop_map(|(slot, frames)| Step::Read { slot, frames }),
        4 => (0..SLOTS, 0..FILTERS.len(), from)
            .prop_map(|(slot, filter, from)| Step::Subscribe { slot, filter, from }),
        2 => (0..SLOTS).prop_map(|slot| Step::Unsubscribe { slot }),
        3 => wait.prop_map(|ms| Step::Wait { ms }),
    ]
}

struct Admitted {
    offset: u64,
    topic: usize,
    bytes: usize,
    at_ms: u64,
    /// On the clock of the world; the wall began with it.
    lives_to_ms: u64,
    gone: bool,
}

struct Interest {
    filter: usize,
    floor: u64,
    holders: usize,
    ends_ms: Option<u64>,
}

struct Reader {
    id: u64,
    filter: usize,
    /// What waits for it.
    pending: Vec<u64>,
    /// The next frame is a progress.
    moved_past_a_loss: bool,
}

struct Model {
    world: World,
    ring_items: usize,
    ring_bytes: usize,
    budget: bool,
    run: Option<RunId>,
    runs: Vec<RunId>,
    offset: u64,
    admitted: Vec<Admitted>,
    interests: Vec<Interest>,
    links: Vec<Far>,
    readers: Vec<Option<Reader>>,
    /// Of each slot and filter.
    last: Vec<[Option<Position>; FILTERS.len()]>,
    resumed: u64,
    expired: u64,
}

/// Which of two largest rings gives up first is not fixed by any rule.
struct Tie;

impl Model {
    fn new(ring_items: usize, budget: bool) -> Self {
        let length = Fact::numbered(1).sign(&signer(7)).len() + 32;
        let mut limits = StationLimits::default();
        limits.ring_items = ring_items;
        if budget {
            limits.publication_bytes = length;
            limits.ring_bytes = 5 * length;
        }
        let ring_bytes = limits.ring_bytes;
        let mut world = World::with(limits);
        let links = (0..SLOTS as u64)
            .map(|key| world.reader(20 + key))
            .collect();
        Self {
            world,
            ring_items,
            ring_bytes,
            budget,
            run: None,
            runs: Vec::new(),
            offset: 0,
            admitted: Vec::new(),
            interests: Vec::new(),
            links,
            readers: (0..SLOTS).map(|_| None).collect(),
            last: vec![[None; FILTERS.len()]; SLOTS],
            resumed: 0,
            expired: 0,
        }
    }

    fn wants(&self, topic: usize) -> bool {
        let mut interests = self.interests.iter();
        interests.any(|interest| FILTERS[interest.filter].1[topic])
    }

    fn here(&self, topic: usize) -> Vec<usize> {
        let all = self.admitted.iter().enumerate();
        let here = all.filter(|(_, one)| one.topic == topic && !one.gone);
        here.map(|(at, _)| at).collect()
    }

    fn lost(&self, one: &Admitted) -> bool {
        one.gone || one.lives_to_ms < self.world.now_ms
    }

    fn of(&self, offset: u64) -> &Admitted {
        let mut all = self.admitted.iter();
        all.find(|one| one.offset == offset).expect("admitted")
    }

    fn publish(&mut self, topic: usize, long: bool) -> Result<(), Tie> {
        let ttl_ms = if long || self.budget {
            3_600_000
        } else {
            60_000
        };
        let bytes = self.world.publish_on(TOPICS[topic], Some(ttl_ms as u32));
        if !self.wants(topic) {
            return Ok(());
        }
        let now = self.world.now_ms;
        while let Some(first) = self.here(topic).first().copied()
            && self.admitted[first].lives_to_ms < now
        {
            self.admitted[first].gone = true;
        }
        self.offset += 1;
        self.admitted.push(Admitted {
            offset: self.offset,
            topic,
            bytes,
            at_ms: now,
            lives_to_ms: now + ttl_ms + SKEW_MS,
            gone: false,
        });
        let here = self.here(topic);
        if here.len() > self.ring_items {
            self.admitted[here[0]].gone = true;
        }
        while self.budget {
            let sizes: Vec<usize> = (0..TOPICS.len())
                .map(|topic| {
                    self.here(topic)
                        .iter()
                        .map(|at| self.admitted[*at].bytes)
                        .sum()
                })
                .collect();
            if sizes.iter().sum::<usize>() <= self.ring_bytes {
                break;
            }
            let most = sizes.iter().max().expect("three");
            let largest: Vec<usize> = (0..TOPICS.len()).filter(|at| sizes[*at] == *most).collect();
            let [largest] = largest[..] else {
                return Err(Tie);
            };
            let oldest = self.here(largest)[0];
            self.admitted[oldest].gone = true;
        }
        for reader in self.readers.iter_mut().flatten() {
            if FILTERS[reader.filter].1[topic] {
                reader.pending.push(self.offset);
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, slot: usize, filter: usize, from: From) {
        if self.readers[slot].is_some() {
            return;
        }
        let last = self.last[slot][filter];
        let resume = match (from, last) {
            (From::Nothing, _) | (_, None) => None,
            (From::Last(by), Some(last)) => Some(Position {
                offset: last.offset.saturating_add_signed(by.into()),
                ..last
            }),
            (From::OtherRun, Some(last)) => Some(Position {
                run: RunId::new([0xAA; 8]),
                ..last
            }),
        };
        let mut interest = self.interests.iter_mut().find(|one| one.filter == filter);
        if interest.is_none() {
            self.interests.push(Interest {
                filter,
                floor: self.offset,
                holders: 0,
                ends_ms: None,
            });
            interest = self.interests.last_mut();
        }
        let interest = interest.expect("it is there");
        interest.holders += 1;
        interest.ends_ms = None;
        let mut floor = interest.floor;
        for one in &self.admitted {
            if FILTERS[filter].1[one.topic] && self.lost(one) {
                floor = floor.max(one.offset);
            }
        }
        let covered = resume.filter(|asked| {
            Some(asked.run) == self.run && (floor..=self.offset).contains(&asked.offset)
        });
        let pending: Vec<u64> = match covered {
            None => Vec::new(),
            Some(asked) => self
                .admitted
                .iter()
                .filter(|one| FILTERS[filter].1[one.topic] && one.offset > asked.offset)
                .map(|one| one.offset)
                .collect(),
        };
        let outcome = match (resume, covered) {
            (None, _) => ResumeOutcome::None,
            (_, Some(_)) => ResumeOutcome::Resumed {
                count: pending.len() as u64,
            },
            (_, None) => ResumeOutcome::Expired { oldest: floor + 1 },
        };
        self.resumed += u64::from(covered.is_some());
        self.expired += u64::from(resume.is_some() && covered.is_none());
        let far = &mut self.links[slot];
        let id = self.world.ask(far, FILTERS[filter].0, resume);
        let told = self.world.frame(far).expect("an answer");
        let Got::Subscribed(position, said) = told else {
            panic!("{told:?}")
        };
        assert_eq!(said, outcome, "{resume:?}");
        assert_eq!(position.offset, self.offset);
        match self.run {
            Some(run) => assert_eq!(position.run, run),
            None => {
                assert!(
                    !self.runs.contains(&position.run),
                    "runs are never used again"
                );
                self.runs.push(position.run);
                self.run = Some(position.run);
            }
        }
        // What was covered is this reader's place; else it begins where live reading does.
        self.last[slot][filter] = Some(covered.unwrap_or(position));
        self.readers[slot] = Some(Reader {
            id,
            filter,
            pending,
            moved_past_a_loss: false,
        });
    }

    fn unsubscribe(&mut self, slot: usize) {
        let Some(reader) = self.readers[slot].take() else {
            return;
        };
        self.world.unsubscribe(&mut self.links[slot], reader.id);
        let now = self.world.now_ms;
        let mut interests = self.interests.iter_mut();
        let interest = interests.find(|one| one.filter == reader.filter);
        let interest = interest.expect("it was held");
        interest.holders -= 1;
        if interest.holders == 0 {
            interest.ends_ms = Some(now + LINGER_MS);
        }
    }

    /// Reads some frames, each of which must be what the list says comes next.
    fn read(&mut self, slot: usize, frames: usize) {
        for _ in 0..frames {
            let told = self.world.frame(&self.links[slot]);
            let Some(mut reader) = self.readers[slot].take() else {
                assert_eq!(told, None);
                return;
            };
            let last = self.last[slot][reader.filter]
                .as_mut()
                .expect("it was accepted");
            let moved = core::mem::take(&mut reader.moved_past_a_loss);
            match told {
                None => {
                    assert!(reader.pending.is_empty() && !moved, "{:?}", reader.pending);
                    self.readers[slot] = Some(reader);
                    return;
                }
                Some(Got::Progress { offset, behind_ms }) => {
                    let first = reader.pending.first();
                    assert_eq!(offset, first.map_or(self.offset, |first| first - 1));
                    assert!(offset >= last.offset, "a position never moves back");
                    last.offset = offset;
                    assert!(first.is_some() || behind_ms == 0);
                }
                Some(Got::Event(offset)) => {
                    assert!(!moved);
                    let first = reader.pending.remove(0);
                    assert_eq!(offset, first);
                    last.offset = last.offset.max(offset);
                    assert!(!self.lost(self.of(offset)));
                }
                Some(Got::Skipped { count, from, to }) => {
                    assert!(!moved);
                    let first = *reader.pending.first().expect("something was lost");
                    let topic = self.of(first).topic;
                    let of_topic = reader.pending.iter().map(|offset| self.of(*offset));
                    let lost: Vec<&Admitted> = of_topic
                        .filter(|one| one.topic == topic)
                        .take_while(|one| self.lost(one))
                        .collect();
                    assert_eq!(count, lost.len() as u64);
                    let ages = lost.iter().map(|one| self.world.now_ms - one.at_ms);
                    assert!(ages.into_iter().all(|age| (to..=from).contains(&age)));
                    let lost: BTreeSet<u64> = lost.iter().map(|one| one.offset).collect();
                    reader.pending.retain(|offset| !lost.contains(offset));
                    reader.moved_past_a_loss = reader.pending.is_empty();
                }
                Some(other) => panic!("{other:?}"),
            }
            self.readers[slot] = Some(reader);
        }
    }

    fn wait(&mut self, ms: u64) {
        // Before a link that does not read is probed.
        if self.world.now_ms + ms > 1_790_000 {
            return;
        }
        self.world.wait(ms);
        let now = self.world.now_ms;
        let before = self.interests.len();
        self.interests
            .retain(|one| one.ends_ms.is_none_or(|ends| ends > now));
        self.offset += (before - self.interests.len()) as u64;
        for topic in 0..TOPICS.len() {
            if !self.wants(topic) {
                for at in self.here(topic) {
                    self.admitted[at].gone = true;
                }
            }
        }
        if self.interests.is_empty() && before > 0 {
            self.run = None;
            self.offset = 0;
            self.admitted.clear();
        }
    }

    fn step(&mut self, step: Step) -> Result<(), Tie> {
        match step {
            Step::Publish { topic, long } => self.publish(topic, long)?,
            Step::Read { slot, frames } => self.read(slot, frames),
            Step::Subscribe { slot, filter, from } => self.subscribe(slot, filter, from),
            Step::Unsubscribe { slot } => self.unsubscribe(slot),
            Step::Wait { ms } => self.wait(if self.budget { ms.min(130_000) } else { ms }),
        }
        Ok(())
    }

    fn finish(mut self) {
        for slot in 0..SLOTS {
            self.read(slot, 1000);
            if let Some(reader) = &self.readers[slot] {
                assert!(reader.pending.is_empty(), "all of it was read or told");
            }
            self.unsubscribe(slot);
        }
        assert_eq!(self.world.counter("resumed"), self.resumed);
        assert_eq!(self.world.counter("resumes_expired"), self.expired);
        assert_eq!(self.world.station.status().interests, self.interests.len());
        if self.world.now_ms + LINGER_MS > 1_790_000 {
            return;
        }
        self.wait(LINGER_MS);
        let status = self.world.station.status();
        assert_eq!((status.topics, status.interests, status.realms), (0, 0, 0));
        let memory = self.world.station.memory();
        assert_eq!(memory.line("ring_bytes").expect("a line").used, 0);
    }
}

fn run(ring_items: usize, budget: bool, script: Vec<Step>) {
    let mut model = Model::new(ring_items, budget);
    for step in script {
        if model.step(step).is_err() {
            return;
        }
    }
    model.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_script_is_answered_as_a_list_of_all_publications_answers_it(
        ring_items in 1..7usize,
        script in prop::collection::vec(step(), 1..80),
    ) {
        run(ring_items, false, script);
    }

    #[test]
    fn every_script_under_a_small_budget_as_well(
        ring_items in 2..9usize,
        script in prop::collection::vec(step(), 1..60),
    ) {
        run(ring_items, true, script);
    }
}
