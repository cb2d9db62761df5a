//! A node on one link in memory, handed what a station sends.
//!
//! Decides: how a link comes up, and that everything is taken after each read. Leaves to others: what is sent. Believes: clocks moved by
//! hand. Bounded by: one link, one subscription.

use bytes::BytesMut;
use tidings::pump::{LinkIo, Machine};
use tidings::wire::{Via, event_head};
use tidings::{
    Action, Answer, Binding, Client, ClientConfig, ClientLimits, Entropy, Intake, Item, LinkEvent,
    Now, Question, Seed, Sources, Station, StationConfig, StationRef, Subscribe, SubscriptionId,
    Turn, Verification,
};

use crate::world::{Facts, Key, Keys, after, after_millis, realm};

/// Publications in one read of a link.
pub const PER_READ: usize = 32;
/// The wire subscription of the first subscription on a link.
const WIRE_ID: u64 = 1;
/// What is subscribed to.
pub const FILTER: &str = "bench/acme/**";

/// Event frames for the first subscription of a link, from an offset on.
pub fn events<T: AsRef<[u8]>>(offset: &mut u64, objects: &[T]) -> Vec<u8> {
    let mut read = Vec::new();
    for object in objects {
        *offset += 1;
        let object = object.as_ref();
        event_head(&mut read, WIRE_ID, Via::Direct, *offset, object.len());
        read.extend_from_slice(object);
    }
    read
}

/// How a reader is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Whose signatures it takes.
    pub keys: Keys,
    /// Where they are checked. Asked ones are answered at once, with yes; who publishes is never answered.
    pub verification: Verification,
    /// Its bounds.
    pub limits: ClientLimits,
    /// Whom it hears.
    pub sources: Sources,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            keys: Keys::Real,
            verification: Verification::Here,
            limits: ClientLimits::default(),
            sources: Sources::Open,
        }
    }
}

/// What a reader was handed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Facts.
    pub facts: usize,
    /// Notices.
    pub notices: usize,
}

/// A client with one subscription on one link that is up.
#[derive(Debug)]
pub struct Reader {
    /// The machine.
    pub client: Client,
    io: LinkIo,
    subscription: SubscriptionId,
    offset: u64,
    /// What it has taken since it began or settled.
    pub taken: Taken,
}

impl Reader {
    /// Its link is up and its subscription accepted.
    pub fn new(setup: Setup) -> Self {
        let now = after(0);
        let (mut station, ends) = station(setup.keys.key(1));
        let config = ClientConfig::new(setup.keys.key(2))
            .allow_local(true)
            .station(Some(station.id()))
            .verification(setup.verification)
            .limits(setup.limits);
        let config = config.build().expect("a valid configuration");
        let mut client = Client::new(config, Seed::new([2; 32]), Entropy::from_os([2; 32]), now);
        let dialled = Some(StationRef(0));
        assert!(matches!(client.poll_action(), Some(Action::Dial { .. })));
        let binding = Binding::Local;
        let up = LinkEvent::Up { dialled, binding };
        let here = client.handle_link(now, up).expect("it asked for it");
        let mut ends = (LinkIo::new(here), ends);
        let request = Subscribe::new(realm(), FILTER, setup.sources);
        let subscription = client.subscribe(now, request).expect("room");
        for _ in 0..8 {
            carry(now, (&mut ends.0, &mut client), (&mut ends.1, &mut station));
            carry(now, (&mut ends.1, &mut station), (&mut ends.0, &mut client));
        }
        let status = client.subscription(subscription).expect("it lives");
        assert_eq!(status.carriers, 1, "the station has accepted");
        let mut reader = Self {
            client,
            io: ends.0,
            subscription,
            offset: 0,
            taken: Taken::default(),
        };
        reader.drain(now);
        reader.taken = Taken::default();
        reader
    }

    /// Event frames as one read each brings them.
    pub fn reads<T: AsRef<[u8]>>(&mut self, objects: &[T]) -> Vec<BytesMut> {
        let reads = objects.chunks(PER_READ);
        let reads = reads.map(|objects| events(&mut self.offset, objects));
        reads.map(|read| BytesMut::from(&read[..])).collect()
    }

    /// One read, and everything there is to do and to take after it.
    pub fn read(&mut self, now: Now, read: &mut BytesMut) {
        let intake = self.client.handle_input(now, self.io.link(), read);
        assert!(matches!(intake, Ok(Intake::Open)), "a link that stays up");
        self.drain(now);
    }

    fn drain(&mut self, now: Now) {
        while let Some(action) = self.client.poll_action() {
            let Action::Ask { ask, question, .. } = action else {
                continue;
            };
            if matches!(question, Question::Verify(_)) {
                let told = self.client.answer(now, ask, Answer::Verified(true));
                assert!(told.is_ok(), "an open question");
            }
        }
        while let Some(item) = self.client.poll_item(self.subscription) {
            match item {
                Item::Fact(_) => self.taken.facts += 1,
                _ => self.taken.notices += 1,
            }
        }
    }

    /// Nothing comes until so many seconds after the start; what is due is done when it is.
    pub fn idle(&mut self, until: u64) {
        let end = after(until);
        while let Some(at) = self.client.poll_timeout().filter(|at| *at <= end.mono) {
            let now = after_millis(at.as_micros().div_ceil(1000));
            while self.client.handle_timeout(now) == Turn::More {}
            self.drain(now);
        }
    }

    /// Fills its tables to where they stay: as many end as come, one read a second. Answers the next second.
    pub fn settle(&mut self, facts: &mut Facts) -> u64 {
        self.settle_every(1, facts)
    }

    /// The same with so many seconds between two reads.
    pub fn settle_every(&mut self, pace: u64, facts: &mut Facts) -> u64 {
        const SECONDS: u64 = 340;
        let reads = SECONDS / pace;
        for read in 0..reads {
            let now = after(read * pace);
            let objects = facts.many(now, PER_READ);
            for mut read in self.reads(&objects) {
                self.read(now, &mut read);
            }
        }
        let all = Taken {
            facts: reads as usize * PER_READ,
            notices: 0,
        };
        assert_eq!(self.taken, all);
        self.taken = Taken::default();
        reads * pace
    }
}

/// A station.
pub fn plain_station(key: Key) -> Station {
    let config = StationConfig::new(key).allow_local(true);
    let config = config.build().expect("a valid configuration");
    let (seed, entropy) = (Seed::new([1; 32]), Entropy::from_os([1; 32]));
    Station::new(config, seed, entropy, after(0))
}

fn station(key: Key) -> (Station, LinkIo) {
    let now = after(0);
    let mut station = plain_station(key);
    let up = LinkEvent::Up {
        dialled: None,
        binding: Binding::Local,
    };
    let link = station.handle_link(now, up).expect("room");
    (station, LinkIo::new(link))
}

/// Moves what one end has to write to the other end.
pub fn carry(now: Now, from: (&mut LinkIo, &mut dyn Machine), to: (&mut LinkIo, &mut dyn Machine)) {
    while from.0.fill(from.1) {
        let mut slices: [&[u8]; 8] = [&[]; 8];
        let count = from.0.chunks(&mut slices);
        let bytes = slices[..count].concat();
        from.0.wrote(from.1, now, bytes.len());
        to.0.input().extend_from_slice(&bytes);
        let intake = to.0.handle_read(to.1, now);
        assert!(matches!(intake, Ok(Intake::Open)));
    }
}
