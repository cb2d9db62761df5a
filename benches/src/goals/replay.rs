//! Goal 11: what a station's ring hands to a reader that comes back, beside the same facts delivered as they come.
//!
//! Both are measured at both ends, from the station's ring to the subscriber's hands: the station writes, the client reads, verifies, orders and
//! hands out. The station's own admission of the facts is outside the clock in both. Keys are the simulation's, so that verification does not
//! hide the rest.

use std::time::Duration;

use tidings::code::CloseReason;
use tidings::pump::LinkIo;
use tidings::{
    Action, Binding, Client, ClientConfig, Entropy, Intake, Item, LinkEvent, Notice, Now, Publish,
    Seed, Sources, Station, StationRef, Subscribe, SubscriptionId, Turn,
};

use crate::harness::{Group, cpu};
use crate::line::Line;
use crate::reader::{FILTER, PER_READ, plain_station};
use crate::world::{Keys, TOPIC, after, payload, realm};

/// All a topic's ring holds.
const RING: usize = 10_000;
/// Seconds from one sample to the next: what came in one has expired in the next.
const APART: u64 = 1_000;
/// Seconds a reader is away that finds all it missed.
const AWAY: u64 = 10;
/// How much more a replay may cost.
const WANTED: f64 = 1.1;

/// A station and a reader that leaves and comes back.
#[derive(Debug)]
pub(crate) struct Replay {
    station: Station,
    client: Client,
    subscription: SubscriptionId,
    ends: Option<[LinkIo; 2]>,
    now: Now,
    /// Time spent at the station and at the reader.
    spent: [Duration; 2],
    facts: usize,
    recovered: u64,
    others: usize,
}

impl Replay {
    pub(crate) fn new() -> Self {
        let now = after(0);
        let station = plain_station(Keys::Fake.key(1));
        let config = ClientConfig::new(Keys::Fake.key(2))
            .allow_local(true)
            .station(Some(station.id()));
        let config = config.build().expect("a valid configuration");
        let mut client = Client::new(config, Seed::new([2; 32]), Entropy::from_os([2; 32]), now);
        let request = Subscribe::new(realm(), FILTER, Sources::Open);
        let subscription = client.subscribe(now, request).expect("room");
        let mut replay = Self {
            station,
            client,
            subscription,
            ends: None,
            now,
            spent: [Duration::ZERO; 2],
            facts: 0,
            recovered: 0,
            others: 0,
        };
        replay.come();
        replay
    }

    fn leave(&mut self) {
        let Some([here, there]) = self.ends.take() else {
            return;
        };
        let reason = CloseReason::Io;
        let down = |link| LinkEvent::Down { link, reason };
        let gone = self.client.handle_link(self.now, down(here.link()));
        gone.expect("its link");
        let gone = self.station.handle_link(self.now, down(there.link()));
        gone.expect("its link");
    }

    /// So much later, what is due is done; the reader is away.
    fn pass(&mut self, seconds: u64) {
        let end = after(self.now.mono.as_micros() / 1_000_000 + seconds);
        self.now = end;
        while self.station.handle_timeout(end) == Turn::More {}
        while self.client.handle_timeout(end) == Turn::More {}
    }

    /// Both ends of a link, and what they have to say to each other.
    fn come(&mut self) {
        let dials = std::iter::from_fn(|| self.client.poll_action())
            .filter(|action| matches!(action, Action::Dial { .. }));
        assert_eq!(dials.count(), 1, "its time has come");
        let up = |dialled| LinkEvent::Up {
            dialled,
            binding: Binding::Local,
        };
        let here = self.client.handle_link(self.now, up(Some(StationRef(0))));
        let there = self.station.handle_link(self.now, up(None));
        let here = here.expect("it asked for it");
        self.ends = Some([LinkIo::new(here), LinkIo::new(there.expect("room"))]);
        self.carry();
    }

    fn publish(&mut self, count: usize) {
        for n in 0..count {
            let publish = Publish::raw(realm(), TOPIC, payload(n as u8).to_vec());
            self.station.publish(self.now, publish).expect("room");
        }
    }

    /// Moves everything between the two, a write at a time, and takes what comes out; by the clock.
    fn carry(&mut self) {
        let Some([here, there]) = &mut self.ends else {
            return;
        };
        loop {
            let mut moved = false;
            let before = cpu();
            if here.fill(&mut self.client) {
                moved = true;
                let bytes = push(here, there);
                here.wrote(&mut self.client, self.now, bytes);
            }
            let between = cpu();
            if !there.input().is_empty() {
                let intake = there.handle_read(&mut self.station, self.now);
                assert!(matches!(intake, Ok(Intake::Open)));
            }
            while self.station.poll_action().is_some() {}
            if there.fill(&mut self.station) {
                moved = true;
                let bytes = push(there, here);
                there.wrote(&mut self.station, self.now, bytes);
            }
            let then = cpu();
            if !here.input().is_empty() {
                let intake = here.handle_read(&mut self.client, self.now);
                assert!(matches!(intake, Ok(Intake::Open)));
            }
            while self.client.poll_action().is_some() {}
            while let Some(item) = self.client.poll_item(self.subscription) {
                match item {
                    Item::Fact(_) => self.facts += 1,
                    Item::Notice(notice) => match *notice {
                        Notice::Resumed { recovered, .. } => self.recovered += recovered,
                        Notice::Interrupted { .. } => (),
                        _ => self.others += 1,
                    },
                    _ => self.others += 1,
                }
            }
            self.spent[0] += then - between;
            self.spent[1] += (between - before) + (cpu() - then);
            if !moved {
                return;
            }
        }
    }

    /// What was spent on each fact, at the station and in all.
    fn sample(&mut self, deliver: impl FnOnce(&mut Self)) -> [f64; 2] {
        self.leave();
        self.pass(APART);
        self.come();
        // One more, which is held as a first one is, and before which the pause is told.
        self.publish(1);
        self.carry();
        self.pass(1);
        self.carry();
        (self.facts, self.recovered, self.others) = (0, 0, 0);
        deliver(self);
        assert_eq!((self.facts, self.others), (RING, 0), "all, and no notices");
        let [station, reader] = self.spent;
        [station, station + reader].map(|spent| spent.as_nanos() as f64 / RING as f64)
    }

    fn live(&mut self) -> [f64; 2] {
        self.sample(|replay| {
            replay.spent = [Duration::ZERO; 2];
            for _ in 0..RING / PER_READ {
                replay.publish(PER_READ);
                replay.carry();
            }
            replay.publish(RING % PER_READ);
            replay.carry();
        })
    }

    fn replayed(&mut self) -> [f64; 2] {
        self.sample(|replay| {
            replay.leave();
            replay.publish(RING);
            replay.pass(AWAY);
            replay.spent = [Duration::ZERO; 2];
            replay.come();
            assert_eq!(replay.recovered, RING as u64, "all of the ring");
        })
    }
}

/// What one end has gathered, onto the other's input.
fn push(from: &LinkIo, to: &mut LinkIo) -> usize {
    let mut slices: [&[u8]; 64] = [&[]; 64];
    let count = from.chunks(&mut slices);
    let slices = &slices[..count];
    for slice in slices {
        to.input().extend_from_slice(slice);
    }
    slices.iter().map(|slice| slice.len()).sum()
}

impl Group for Replay {
    fn series(&self) -> &'static [&'static str] {
        &[
            "live, at the station",
            "live",
            "replayed, at the station",
            "replayed",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        [self.live(), self.replayed()].concat()
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        vec![
            Line::ratio(
                11,
                "a full ring replayed, station and reader, beside the same facts live",
                [least[3], least[1]],
                WANTED,
            ),
            Line::shown(
                11,
                "... of these at the station, replayed and live",
                format!("{:.0} and {:.0} ns", least[2], least[0]),
            ),
        ]
    }
}
