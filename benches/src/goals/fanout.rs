//! Goal 11: publications to many links inside a station, beside handing clones of their bytes around.
//!
//! In two shapes: one at a time, each followed by everything that is handed out; and under load, 32 in one read, after which every link is polled
//! until nothing follows. The other sides have the same shapes: 32 pushed to each queue, then popped from each.

use std::collections::VecDeque;
use std::hint::black_box;

use allocation_counter::measure;
use bytes::{Bytes, BytesMut};

use tidings::pump::{LinkIo, Machine};
use tidings::wire::{MAX_HEAD, Route, publish_head};
use tidings::{
    Action, Binding, Client, ClientConfig, Entropy, Intake, LinkEvent, LinkId, Ready, Seed,
    Sources, Station, StationRef, Subscribe,
};
use tokio::sync::broadcast;

use crate::harness::{Group, each};
use crate::line::{Line, nanos};
use crate::reader::{PER_READ, carry, plain_station};
use crate::world::{Facts, Keys, TOPIC, after, after_millis, realm};

/// Publications of one sample.
pub const COUNT: usize = 1024;
/// Publications that come together: one at a time, and under load.
pub const TOGETHER: [usize; 2] = [1, PER_READ];
/// Links that subscribe, in the cases measured.
const LINKS: [usize; 4] = [0, 1, 8, 64];
/// So many different ids, half of them of two bytes.
const MOTLEY: usize = 48;
/// The most of them.
pub const MOST: usize = 64;

/// A station with one publisher and so many subscribers, all of them level.
#[derive(Debug)]
struct Hall {
    station: Station,
    publisher: LinkId,
    facts: Facts,
    id: u64,
    out: Vec<u8>,
    /// Bytes handed out for subscribers.
    delivered: u64,
}

impl Hall {
    /// Each link subscribes to some other topics first, of which nothing comes, so that the ids of what is measured differ.
    fn new(links: usize, others: impl Fn(usize) -> usize) -> Self {
        let mut station = plain_station(Keys::Fake.key(1));
        let publisher = join(&mut station, 2, &[]);
        for n in 0..links {
            let others = (0..others(n)).map(|other| format!("{TOPIC}/{other}"));
            let topics: Vec<String> = others.chain([TOPIC.to_owned()]).collect();
            join(&mut station, 1000 + n as u64, &topics);
        }
        Self {
            station,
            publisher,
            facts: Facts::from(vec![Keys::Fake.key(2)]),
            id: 0,
            out: Vec::with_capacity(1 << 16),
            delivered: 0,
        }
    }

    /// Publish frames, so many to a read.
    fn reads(&mut self, together: usize) -> Vec<BytesMut> {
        let objects = self.facts.many(after(0), COUNT);
        let reads = objects.chunks(together).map(|objects| {
            let mut read = Vec::new();
            for object in objects {
                self.id += 1;
                publish_head(&mut read, self.id, Route::All, object.len());
                read.extend_from_slice(object);
            }
            BytesMut::from(&read[..])
        });
        reads.collect()
    }

    /// Nanoseconds for each of so many publications that come together.
    fn sample(&mut self, together: usize) -> f64 {
        let mut reads = self.reads(together);
        each(COUNT, || {
            for read in &mut reads {
                self.publish(read);
            }
        })
    }

    /// What a read brings in, and out to everybody.
    fn publish(&mut self, read: &mut BytesMut) {
        let now = after_millis(self.id / 1000);
        let intake = self.station.handle_input(now, self.publisher, read);
        assert!(matches!(intake, Ok(Intake::Open)));
        while let Some(action) = self.station.poll_action() {
            let Action::Ready(Ready::Link(link)) = action else {
                continue;
            };
            self.out.clear();
            let mut bytes = 0;
            while let Some(transmit) = self.station.poll_transmit(link, &mut self.out) {
                bytes += transmit.len();
                if !transmit.more {
                    break;
                }
            }
            if link != self.publisher {
                self.delivered += bytes as u64;
            }
            self.station.handle_written(now, link, bytes);
        }
    }
}

/// Brings a link up, and its subscriptions.
fn join(station: &mut Station, n: u64, topics: &[String]) -> LinkId {
    let now = after(0);
    let config = ClientConfig::new(Keys::Fake.key(n))
        .allow_local(true)
        .station(Some(station.id()));
    let config = config.build().expect("a valid configuration");
    let (seed, entropy) = (Seed::new([n as u8; 32]), Entropy::from_os([n as u8; 32]));
    let mut client = Client::new(config, seed, entropy, now);
    let up = |dialled| LinkEvent::Up {
        dialled,
        binding: Binding::Local,
    };
    assert!(matches!(client.poll_action(), Some(Action::Dial { .. })));
    let here = client
        .handle_link(now, up(Some(StationRef(0))))
        .expect("it asked for it");
    let there = station.handle_link(now, up(None)).expect("room");
    for topic in topics {
        let request = Subscribe::new(realm(), topic.as_str(), Sources::Open);
        client.subscribe(now, request).expect("room");
    }
    let (mut here, mut there) = (LinkIo::new(here), LinkIo::new(there));
    let link = there.link();
    for _ in 0..8 {
        carry(
            now,
            (&mut here, &mut client as &mut dyn Machine),
            (&mut there, station),
        );
        carry(now, (&mut there, station), (&mut here, &mut client));
    }
    while station.poll_action().is_some() {}
    link
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct FanOut {
    halls: Vec<Hall>,
    /// 64 links whose subscriptions have ids of one byte and of two, in turn.
    motley: Hall,
    queues: Vec<VecDeque<Bytes>>,
    rounds: u64,
}

impl FanOut {
    pub(crate) fn new() -> Self {
        Self {
            halls: LINKS.map(|links| Hall::new(links, |_| 0)).into(),
            motley: Hall::new(MOST, |n| n % MOTLEY),
            queues: vec![VecDeque::new(); MOST],
            rounds: 0,
        }
    }

    /// Clones of bodies that come together, through a queue for each link.
    fn clones(&mut self, bodies: &[Bytes]) -> f64 {
        each(COUNT * MOST, || {
            for _ in 0..COUNT / bodies.len() {
                for queue in &mut self.queues {
                    queue.extend(black_box(bodies).iter().cloned());
                }
                for queue in &mut self.queues {
                    while let Some(body) = queue.pop_front() {
                        black_box(body);
                    }
                }
            }
        })
    }
}

/// So many bodies.
pub fn bodies(count: usize) -> Vec<Bytes> {
    let body = |n| Bytes::from(vec![n as u8; 256]);
    (0..count).map(body).collect()
}

/// Nanoseconds for one body to 64 receivers by tokio's channel, where so many come together.
pub fn tokio_broadcast(bodies: &[Bytes]) -> f64 {
    let (sender, first) = broadcast::channel(PER_READ);
    let mut receivers = vec![first];
    receivers.resize_with(MOST, || sender.subscribe());
    each(COUNT, || {
        for _ in 0..COUNT / bodies.len() {
            for body in black_box(bodies) {
                let heard = sender.send(body.clone());
                assert!(heard.is_ok_and(|heard| heard == MOST));
            }
            for receiver in &mut receivers {
                for _ in bodies {
                    let received: Bytes = receiver.try_recv().expect("it was sent");
                    black_box(received);
                }
            }
        }
    })
}

impl Group for FanOut {
    fn series(&self) -> &'static [&'static str] {
        &[
            "0 links",
            "1 link",
            "8 links",
            "64 links",
            "clone, push, pop",
            "tokio broadcast to 64",
            "0 links under load",
            "1 link under load",
            "8 links under load",
            "64 links under load",
            "clone, push, pop under load",
            "tokio broadcast to 64 under load",
            "64 links with different ids under load",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        self.rounds += 1;
        let mut samples = Vec::new();
        for together in TOGETHER {
            for hall in &mut self.halls {
                samples.push(hall.sample(together));
            }
            let bodies = bodies(together);
            samples.extend([self.clones(&bodies), tokio_broadcast(&bodies)]);
        }
        samples.push(self.motley.sample(PER_READ));
        samples
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        self.check();
        let (alone, load) = least.split_at(least.len() / 2);
        let [load @ .., motley] = load else {
            unreachable!("one figure for each sample");
        };
        let mut lines = times(alone, "one at a time", false);
        lines.extend(times(load, "under load", true));
        let more = (motley - load[0]) / MOST as f64;
        lines.push(Line::shown(
            11,
            "... each link of 64 whose subscriptions' ids differ",
            nanos(more),
        ));
        lines.extend(self.allocations());
        lines
    }
}

/// The lines of one shape. Only under load are its ratios judged.
fn times(least: &[f64], shape: &str, judged: bool) -> Vec<Line> {
    let &[none, one, eight, all, clone, tokio] = least else {
        unreachable!("one figure for each sample");
    };
    let each_more = (all - one) / (MOST - 1) as f64;
    let ratio = |what: &str, parts, wanted| match judged {
        true => Line::ratio(11, what, parts, wanted),
        false => Line::shown(11, what, Line::ratio(11, what, parts, wanted).figure),
    };
    vec![
        Line::time(
            11,
            &format!("station, each further link of 64, {shape}"),
            each_more,
            50.0,
        ),
        ratio(
            "... beside Bytes clone, push and pop",
            [each_more, clone],
            1.5,
        ),
        ratio(
            "... 64 links more than none, beside tokio broadcast to 64",
            [all - none, tokio],
            0.95,
        ),
        Line::shown(
            11,
            "... a publication to 0, 1, 8 and 64 links",
            format!("{none:.0}, {one:.0}, {eight:.0}, {all:.0} ns"),
        ),
    ]
}

impl FanOut {
    /// Nothing but events went to subscribers, each of them whole.
    fn check(&mut self) {
        let object = self.halls[0].facts.next(after(0)).len() as u64;
        for (hall, links) in self.halls.iter().zip(LINKS) {
            let events = self.rounds * (TOGETHER.len() * COUNT * links) as u64;
            // Earlier numbers are a few bytes shorter.
            let each = object - 8..=object + MAX_HEAD as u64;
            assert!((events * each.start()..=events * each.end()).contains(&hall.delivered));
            let status = hall.station.status();
            assert_eq!(status.faults.iter().map(|(_, count)| count).sum::<u64>(), 0);
            let counted = status.counters.iter().find(|(name, _)| *name == "events");
            assert_eq!(counted.map(|(_, count)| *count), Some(events));
        }
    }

    fn allocations(&mut self) -> Vec<Line> {
        let mut shape = |together, shape| {
            let halls = self.halls.iter_mut();
            let counts: Vec<u64> = halls
                .map(|hall| {
                    let mut reads = hall.reads(together);
                    let counted = measure(|| {
                        for read in &mut reads {
                            hall.publish(read);
                        }
                    });
                    counted.count_total
                })
                .collect();
            // From the second link on there is something to share.
            let more = counts[3].saturating_sub(counts[2]);
            let links = (COUNT * (LINKS[3] - LINKS[2])) as u64;
            let what = format!("station, allocations for each further link, {shape}");
            Line::allocations(11, &what, [more, links], 0)
        };
        let [alone, load] = TOGETHER;
        vec![shape(alone, "one at a time"), shape(load, "under load")]
    }
}
