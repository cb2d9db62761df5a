//! Goal 13: a node of ours and one of iroh-gossip's protocol, both without I/O and without signatures, each handed the same payloads.
//!
//! Ours runs on the simulation's keys, whose signatures cost one SHA-256. Theirs decodes postcard, and encodes what it sends in answer;
//! its timers fire. Both live by a clock moved by hand, a second for every 32 events, and are past the time after which memory ends.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use iroh_gossip::proto::{
    Command, Event, InEvent, Message, OutEvent, Scope, State, Timer, TopicId,
};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tidings::code::ObjectFault;
use tidings_benches::harness::{Group, each};
use tidings_benches::line::Line;
use tidings_benches::reader::{PER_READ, Reader, Setup, Taken};
use tidings_benches::world::{Facts, Keys, after, payload, resigned};
use tokio::time::Instant;

const COUNT: usize = 2048;
/// Seconds after which nothing more is kept than before: the longest memory of theirs is 90 s.
const SETTLED: usize = 120;

type Id = [u8; 32];

/// One of their nodes.
struct Node {
    state: State<Id, StdRng>,
    now: Instant,
    timers: BTreeMap<(Instant, u64), Timer<Id>>,
    armed: u64,
    /// Encoded, with whom it is for.
    sent: VecDeque<(Id, Vec<u8>)>,
    received: usize,
    bytes: usize,
}

impl Node {
    fn new(id: u8, now: Instant) -> Self {
        let rng = StdRng::seed_from_u64(u64::from(id));
        Self {
            state: State::new([id; 32], Default::default(), Default::default(), rng),
            now,
            timers: BTreeMap::new(),
            armed: 0,
            sent: VecDeque::new(),
            received: 0,
            bytes: 0,
        }
    }

    fn handle(&mut self, event: InEvent<Id>) {
        for out in self.state.handle(event, self.now, None) {
            match out {
                OutEvent::SendMessage(to, message) => {
                    let encoded = postcard::to_stdvec(&message).expect("their own message");
                    self.sent.push_back((to, encoded));
                }
                OutEvent::ScheduleTimer(after, timer) => {
                    self.armed += 1;
                    self.timers.insert((self.now + after, self.armed), timer);
                }
                OutEvent::EmitEvent(_, Event::Received(event)) => {
                    self.received += 1;
                    self.bytes += event.content.len();
                }
                _ => {}
            }
        }
    }

    fn message(&mut self, from: Id, encoded: &[u8]) {
        let message: Message<Id> = postcard::from_bytes(encoded).expect("their own message");
        self.handle(InEvent::RecvMessage(from, message));
    }

    /// A second goes by.
    fn tick(&mut self) {
        let end = self.now + Duration::from_secs(1);
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > end {
                break;
            }
            self.now = entry.key().0;
            let timer = entry.remove();
            self.handle(InEvent::TimerExpired(timer));
        }
        self.now = end;
    }
}

/// One node of theirs that publishes, and one that hears it.
struct Theirs {
    from: Node,
    to: Node,
    topic: TopicId,
    made: u64,
}

impl Theirs {
    fn new() -> Self {
        let now = Instant::now();
        let topic = TopicId::from([7; 32]);
        let (mut from, mut to) = (Node::new(1, now), Node::new(2, now));
        from.handle(InEvent::Command(topic, Command::Join(vec![])));
        to.handle(InEvent::Command(topic, Command::Join(vec![[1; 32]])));
        let mut pair = Self {
            from,
            to,
            topic,
            made: 0,
        };
        while !(pair.from.sent.is_empty() && pair.to.sent.is_empty()) {
            if let Some((_, encoded)) = pair.to.sent.pop_front() {
                pair.from.message([2; 32], &encoded);
            }
            if let Some((_, encoded)) = pair.from.sent.pop_front() {
                pair.to.message([1; 32], &encoded);
            }
        }
        assert!(pair.to.state.has_active_peers(&topic));
        for _ in 0..SETTLED {
            let messages = pair.messages(PER_READ);
            pair.hear(&messages);
        }
        pair
    }

    /// New messages, encoded.
    fn messages(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut messages = Vec::with_capacity(count);
        for n in 0..count {
            self.made += 1;
            let mut content = payload(n as u8).to_vec();
            content[8..16].copy_from_slice(&self.made.to_le_bytes());
            let broadcast = Command::Broadcast(Bytes::from(content), Scope::Swarm);
            self.from.handle(InEvent::Command(self.topic, broadcast));
            let (_, encoded) = self.from.sent.pop_front().expect("it has a neighbour");
            messages.push(encoded);
            if (n + 1) % PER_READ == 0 {
                self.from.tick();
                self.from.sent.clear();
            }
        }
        messages
    }

    fn hear(&mut self, messages: &[Vec<u8>]) {
        for read in messages.chunks(PER_READ) {
            for message in read {
                self.to.message([1; 32], message);
            }
            self.to.sent.clear();
            self.to.tick();
        }
    }

    /// Copies; no time goes by, so that they stay known.
    fn hear_again(&mut self, messages: &[Vec<u8>]) {
        for read in messages.chunks(PER_READ) {
            for message in read {
                self.to.message([1; 32], message);
            }
            self.to.sent.clear();
        }
    }
}

pub struct Gossip {
    facts: Facts,
    ours: Reader,
    theirs: Theirs,
    second: u64,
    rounds: usize,
}

impl Gossip {
    pub fn new() -> Self {
        let mut facts = Facts::new(Keys::Fake);
        let mut ours = Reader::new(Setup {
            keys: Keys::Fake,
            ..Setup::default()
        });
        let second = ours.settle(&mut facts);
        Self {
            facts,
            ours,
            theirs: Theirs::new(),
            second,
            rounds: 0,
        }
    }

    fn ours(&mut self, objects: &[Vec<u8>], seconds: u64) -> f64 {
        let mut reads = self.ours.reads(objects);
        each(objects.len(), || {
            for (at, read) in reads.iter_mut().enumerate() {
                self.ours
                    .read(after(self.second + at as u64 * seconds), read);
            }
        })
    }
}

impl Group for Gossip {
    fn series(&self) -> &'static [&'static str] {
        &[
            "new",
            "iroh-gossip new",
            "by hash",
            "iroh-gossip copy",
            "by signature",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        self.rounds += 1;
        let objects = self.facts.many(after(self.second), COUNT);
        let altered: Vec<_> = objects.iter().map(|object| resigned(object)).collect();
        let messages = self.theirs.messages(COUNT);
        let new = self.ours(&objects, 1);
        self.second += (COUNT / PER_READ) as u64;
        let theirs = each(COUNT, || self.theirs.hear(&messages));
        let by_hash = self.ours(&altered, 0);
        let copy = each(COUNT, || self.theirs.hear_again(&messages));
        let by_signature = self.ours(&objects, 0);
        vec![new, theirs, by_hash, copy, by_signature]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let facts = self.rounds * COUNT;
        assert_eq!(self.ours.taken, Taken { facts, notices: 0 });
        let duplicates = self.ours.client.status().faults.of(ObjectFault::Duplicate);
        assert_eq!(duplicates, 2 * facts as u64);
        let all = facts + SETTLED * PER_READ;
        assert_eq!(
            (self.theirs.to.received, self.theirs.to.bytes),
            (all, all * 256)
        );
        let &[new, theirs, by_hash, copy, by_signature] = least else {
            unreachable!("one figure for each sample");
        };
        let beside = |what, ours, theirs, wanted| Line::ratio(13, what, [ours, theirs], wanted);
        vec![
            beside(
                "new event, signatures off, beside iroh-gossip",
                new,
                theirs,
                0.6,
            ),
            beside(
                "duplicate by hash, beside iroh-gossip's",
                by_hash,
                copy,
                0.95,
            ),
            beside(
                "duplicate by signature, beside iroh-gossip's",
                by_signature,
                copy,
                0.1,
            ),
        ]
    }
}
