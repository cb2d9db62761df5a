//! Goal 11: one publication to many links inside a station, beside handing clones of its bytes around.

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
use crate::line::Line;
use crate::reader::{carry, plain_station};
use crate::world::{Facts, Keys, TOPIC, after, after_millis, realm};

/// Publications of one sample.
pub const COUNT: usize = 1024;
/// Links that subscribe, in the cases measured.
const LINKS: [usize; 4] = [0, 1, 8, 64];
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
    fn new(links: usize) -> Self {
        let mut station = plain_station(Keys::Fake.key(1));
        let publisher = join(&mut station, 2, false);
        for n in 0..links {
            join(&mut station, 1000 + n as u64, true);
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

    /// Publish frames, each a read of its own.
    fn reads(&mut self, count: usize) -> Vec<BytesMut> {
        let objects = self.facts.many(after(0), count);
        let reads = objects.iter().map(|object| {
            self.id += 1;
            let mut read = Vec::new();
            publish_head(&mut read, self.id, Route::All, object.len());
            read.extend_from_slice(object);
            BytesMut::from(&read[..])
        });
        reads.collect()
    }

    /// One publication in, and out to everybody.
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

/// Brings a link up, and its subscription if it has one.
fn join(station: &mut Station, n: u64, subscribes: bool) -> LinkId {
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
    if subscribes {
        let request = Subscribe::new(realm(), TOPIC, Sources::Open);
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
    queues: Vec<VecDeque<Bytes>>,
    rounds: u64,
}

impl FanOut {
    pub(crate) fn new() -> Self {
        Self {
            halls: LINKS.map(Hall::new).into(),
            queues: vec![VecDeque::with_capacity(4); MOST],
            rounds: 0,
        }
    }

    /// Clones of one body through a queue for each.
    fn clones(&mut self, body: &Bytes) -> f64 {
        each(COUNT * MOST, || {
            for _ in 0..COUNT {
                for queue in &mut self.queues {
                    queue.push_back(black_box(body).clone());
                }
                for queue in &mut self.queues {
                    black_box(queue.pop_front());
                }
            }
        })
    }
}

/// Nanoseconds for one body to 64 receivers by tokio's channel.
pub fn tokio_broadcast(body: &Bytes) -> f64 {
    let (sender, first) = broadcast::channel(16);
    let mut receivers = vec![first];
    receivers.resize_with(MOST, || sender.subscribe());
    each(COUNT, || {
        for _ in 0..COUNT {
            let heard = sender.send(black_box(body).clone());
            assert!(heard.is_ok_and(|heard| heard == MOST));
            for receiver in &mut receivers {
                let received: Bytes = receiver.try_recv().expect("it was sent");
                black_box(received);
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
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        self.rounds += 1;
        let halls = self.halls.iter_mut();
        let mut samples: Vec<f64> = halls
            .map(|hall| {
                let mut reads = hall.reads(COUNT);
                each(COUNT, || {
                    for read in &mut reads {
                        hall.publish(read);
                    }
                })
            })
            .collect();
        let body = Bytes::from(vec![7; 256]);
        samples.extend([self.clones(&body), tokio_broadcast(&body)]);
        samples
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let &[none, one, eight, all, clone, tokio] = least else {
            unreachable!("one figure for each sample");
        };
        let object = self.halls[0].facts.next(after(0)).len() as u64;
        for (hall, links) in self.halls.iter().zip(LINKS) {
            // Nothing but events goes to subscribers, each of them whole. Earlier numbers are a few bytes shorter.
            let events = self.rounds * (COUNT * links) as u64;
            let each = object - 8..=object + MAX_HEAD as u64;
            assert!((events * each.start()..=events * each.end()).contains(&hall.delivered));
            let status = hall.station.status();
            assert_eq!(status.faults.iter().map(|(_, count)| count).sum::<u64>(), 0);
            let counted = status.counters.iter().find(|(name, _)| *name == "events");
            assert_eq!(counted.map(|(_, count)| *count), Some(events));
        }
        let each_more = (all - one) / (MOST - 1) as f64;
        let mut lines = vec![
            Line::time(11, "station, each further link of 64", each_more, 50.0),
            Line::ratio(
                11,
                "... beside Bytes clone, push and pop",
                [each_more, clone],
                1.5,
            ),
            Line::ratio(
                11,
                "station, 64 links more than none, beside tokio broadcast to 64",
                [all - none, tokio],
                0.95,
            ),
            Line::shown(
                11,
                "station, a publication to 0, 1, 8 and 64 links",
                format!("{none:.0}, {one:.0}, {eight:.0}, {all:.0} ns"),
            ),
        ];
        lines.push(self.allocations());
        lines
    }
}

impl FanOut {
    fn allocations(&mut self) -> Line {
        let halls = self.halls.iter_mut();
        let counts: Vec<u64> = halls
            .map(|hall| {
                let mut reads = hall.reads(COUNT);
                let counted = measure(|| {
                    for read in &mut reads {
                        hall.publish(read);
                    }
                });
                counted.count_total
            })
            .collect();
        let more = counts[3].saturating_sub(counts[1]);
        let links = (COUNT * (MOST - 1)) as u64;
        Line::allocations(
            11,
            "station, allocations for each further link",
            [more, links],
            0,
        )
    }
}
