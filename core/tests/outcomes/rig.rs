//! A client between stations that are played by hand: every answer, every end of a link and every moment is chosen.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared by several tests, each of which uses a part"
)]

use std::collections::BTreeMap;

use bytes::BytesMut;
use tidings::code::{CloseReason, OutcomeCode, PublishRefusal};
use tidings::link::{Link, LinkSettings, PROBE_EVERY_MAX, Step};
use tidings::wire::{Body, Frame, Phase, Publication, Published, Role, Split, next_frame};
use tidings::{
    Action, Binding, Client, ClientConfig, Instant, LinkEvent, LinkId, Now, Outcome, Publish,
    PublisherId, RealmId, Refusal, Seed, StationRef, Ticket, WallMs,
};

use super::parts::{PROFILE, entropy, key};

/// The wall when everything begins.
pub const START: u64 = 1_790_000_000_000;
pub const TOPIC: &str = "weather/acme/app/days/measured_v1";

pub fn at(millis: u64) -> Now {
    Now::new(Instant::from_millis(millis), WallMs::new(START + millis))
}

pub fn realm() -> RealmId {
    RealmId::of_name("weather")
}

pub fn request(number: u64) -> Publish {
    Publish::new(realm(), TOPIC, &number).expect("a number is a payload")
}

/// A station, as far as the client can tell.
struct Far {
    id: LinkId,
    unread: Vec<u8>,
    /// Its socket takes nothing.
    stalled: bool,
}

/// What a station read in one `publish` frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub station: usize,
    /// The id it is answered under.
    pub id: u64,
    pub object: Vec<u8>,
    pub topic: String,
    pub epoch: u64,
    pub seq: u64,
    pub payload: Vec<u8>,
}

pub struct Rig {
    pub client: Client,
    fars: Vec<Option<Far>>,
    pub now: Now,
    /// Everything that was settled, in order.
    pub settled: Vec<(Ticket, Outcome)>,
    /// Everything that was written, in order.
    pub written: Vec<Written>,
    pub progress: BTreeMap<Ticket, u8>,
}

impl Rig {
    /// With so many stations to dial, none of them up.
    pub fn new(stations: usize) -> Self {
        Self::with(ClientConfig::new(key(1)), stations)
    }

    pub fn with(config: ClientConfig, stations: usize) -> Self {
        Self::starting(config, stations, at(0))
    }

    pub fn starting(config: ClientConfig, stations: usize, now: Now) -> Self {
        let config = (0..stations).fold(config, |config, _| config.station(None));
        // Probes are left out of it.
        let config = config.allow_local(true).probe_every(PROBE_EVERY_MAX);
        let config = config.build().expect("valid");
        Self {
            client: Client::new(config, Seed::new([3; 32]), entropy(), now),
            fars: (0..stations).map(|_| None).collect(),
            now,
            settled: Vec::new(),
            written: Vec::new(),
            progress: BTreeMap::new(),
        }
    }

    /// With that many stations, all of them up.
    pub fn up_with(config: ClientConfig, stations: usize) -> Self {
        let mut rig = Self::with(config, stations);
        (0..stations).for_each(|station| rig.up(station));
        rig
    }

    /// Works off every deadline until then.
    pub fn time(&mut self, millis: u64) {
        let to = at(millis);
        while let Some(due) = self.client.poll_timeout().filter(|due| *due <= to.mono) {
            let left = to.mono.saturating_since(due).as_millis() as u64;
            let now = Now::new(due, to.wall.saturating_sub(left));
            let _turn = self.client.handle_timeout(now);
        }
        self.now = to;
        self.look();
    }

    /// Station's link comes up. Each comes up once, so that no dial is waited for.
    pub fn up(&mut self, station: usize) {
        let now = self.now;
        let up = LinkEvent::Up {
            dialled: Some(StationRef(station as u16)),
            binding: Binding::Local,
        };
        let id = self.client.handle_link(now, up).expect("it was dialled");
        let signer = key(100 + station as u8);
        let settings = LinkSettings {
            allow_local: true,
            ..LinkSettings::new(
                tidings::crypto::Signer::profile(&signer),
                tidings::crypto::Signer::public_key(&signer),
                Role::Station,
            )
        };
        let mut link =
            Link::accept(now.mono, settings, Binding::Local, [8; 32]).expect("local is allowed");
        let mut far = Far {
            id,
            unread: Vec::new(),
            stalled: false,
        };
        while !link.is_up() {
            for body in bodies(&mut self.client, now, &mut far) {
                let step = link.handle_frame(now, &body, &signer).expect("honest");
                if let Step::Verified(_) = step {
                    link.admit(&signer).expect("it was verified");
                }
            }
            let mut out = Vec::new();
            while link.poll_transmit(&mut out) {}
            let taken = self
                .client
                .handle_input(now, id, &mut BytesMut::from(&out[..]));
            assert!(taken.is_ok(), "{taken:?}");
        }
        self.fars[station] = Some(far);
        self.look();
    }

    pub fn is_up(&self, station: usize) -> bool {
        self.fars[station].is_some()
    }

    /// Its link ends without a word.
    pub fn down(&mut self, station: usize) {
        let far = self.fars[station].take().expect("it is up");
        let down = LinkEvent::Down {
            link: far.id,
            reason: CloseReason::Io,
        };
        self.client.handle_link(self.now, down).expect("it lives");
        self.look();
    }

    /// Its socket takes nothing until it flows again.
    pub fn stall(&mut self, station: usize, stalled: bool) {
        if let Some(far) = &mut self.fars[station] {
            far.stalled = stalled;
        }
        self.look();
    }

    pub fn publish(&mut self, request: Publish) -> Result<Ticket, Refusal> {
        let taken = self.client.publish(self.now, request);
        self.look();
        taken.map_err(|refused| refused.reason)
    }

    /// The publication that this station read under that ticket's bytes is answered.
    pub fn answer(&mut self, station: usize, id: u64, outcome: Outcome) {
        let (code, subscribers, reason) = match outcome {
            Outcome::Routed { subscribers } => (OutcomeCode::Routed, subscribers, None),
            Outcome::Refused(reason) => (OutcomeCode::Refused, 0, Some(reason)),
            _ => (OutcomeCode::NoSubscriber, 0, None),
        };
        let published = Published {
            id,
            outcome: code,
            subscribers,
            reason,
            limit: None,
        };
        let mut bytes = Vec::new();
        Frame::Published(published).encode_framed(&mut bytes);
        let link = self.fars[station].as_ref().expect("it is up").id;
        let taken = self
            .client
            .handle_input(self.now, link, &mut BytesMut::from(&bytes[..]));
        assert!(taken.is_ok(), "{taken:?}");
        self.look();
    }

    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        let cancelled = self.client.cancel(self.now, ticket).is_ok();
        self.look();
        cancelled
    }

    pub fn cancel_publisher(&mut self, publisher: PublisherId) -> bool {
        let cancelled = self.client.cancel_publisher(self.now, publisher).is_ok();
        self.look();
        cancelled
    }

    pub fn end_publisher(&mut self, publisher: PublisherId) -> bool {
        let ended = self.client.end_publisher(self.now, publisher).is_ok();
        self.look();
        ended
    }

    pub fn end_publisher_if(&mut self, publisher: Option<PublisherId>) {
        if let Some(publisher) = publisher {
            assert!(self.end_publisher(publisher));
        }
    }

    /// What each station that takes something read, and what the client said.
    pub fn look(&mut self) {
        for station in 0..self.fars.len() {
            let Some(far) = self.fars[station].as_mut().filter(|far| !far.stalled) else {
                continue;
            };
            for body in bodies(&mut self.client, self.now, far) {
                let frame =
                    Frame::decode(&body, Phase::Established).expect("what is written is good");
                if let Frame::Publish(publish) = frame {
                    self.written
                        .push(written(station, publish.id, publish.publication));
                }
            }
        }
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::Settle { ticket, outcome } => self.settled.push((ticket, outcome)),
                Action::Progress { ticket, links } => {
                    self.progress.insert(ticket, links);
                }
                _ => {}
            }
        }
    }

    /// Written since the last call.
    pub fn take_written(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.written)
    }

    pub fn counted(&self, name: &str) -> u64 {
        let counters = self.client.status().counters;
        let found = counters.iter().find(|(known, _)| *known == name);
        found.expect("it is counted").1
    }
}

fn written(station: usize, id: u64, object: &[u8]) -> Written {
    let publication = Publication::parse(object, PROFILE).expect("a publication");
    let Body::Payload(payload) = publication.body else {
        panic!("nothing is sealed here");
    };
    Written {
        station,
        id,
        object: object.to_vec(),
        topic: publication.topic.to_owned(),
        epoch: publication.epoch.expect("always written"),
        seq: publication.seq,
        payload: payload.to_vec(),
    }
}

/// The bodies of the frames that the client wrote to a link.
fn bodies(client: &mut Client, now: Now, far: &mut Far) -> Vec<Vec<u8>> {
    loop {
        let mut out = Vec::new();
        let Some(transmit) = client.poll_transmit(far.id, &mut out) else {
            break;
        };
        far.unread.extend_from_slice(&out);
        far.unread.extend_from_slice(transmit.body());
        client.handle_written(now, far.id, transmit.len());
    }
    let mut bodies = Vec::new();
    while let Split::Frame { body, taken } =
        next_frame(&far.unread, u32::MAX).expect("no length is too long")
    {
        bodies.push(body.to_vec());
        far.unread.drain(..taken);
    }
    bodies
}

pub fn routed(subscribers: u64) -> Outcome {
    Outcome::Routed { subscribers }
}

pub fn refused() -> Outcome {
    Outcome::Refused(PublishRefusal::DedupFull)
}
