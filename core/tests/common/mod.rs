//! The other end of a link, by hand: a handshake as it should be, and after it any bytes at all.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared by several tests, each of which uses a part"
)]

use bytes::BytesMut;
use tidings::code::ObjectFault;
use tidings::crypto::Signer;
use tidings::link::{Link, LinkSettings, PROBE_EVERY_MAX, Step};
use tidings::pump::Machine;
use tidings::sim::{START, entropy, fake_signer};
use tidings::wire::{
    self, Body, Draft, Event, Frame, Phase, Publication, Role, Split, Via, next_frame,
};
use tidings::{
    Action, AskId, Binding, Client, ClientConfig, Duration, Instant, Intake, Item, LinkError,
    LinkEvent, LinkId, NodeId, Notice, Now, Question, RealmId, RunId, Seed, Sources, Station,
    StationConfig, StationRef, Subscribe, SubscriptionId, VerifyJob, WallMs,
};

pub const TOPIC: &str = "weather/acme/app/days/measured_v1";
/// When the publishers of these tests began to count: before any subscription.
pub const EPOCH: u64 = START.as_millis() * 1000 - 1_000_000;

/// Three things of one tick, in every order.
pub const ORDERS: [[u8; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

pub fn realm() -> RealmId {
    RealmId::of_name("weather")
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Both clocks, so long after the start.
pub fn at(millis: u64) -> Now {
    Now::new(Instant::from_millis(millis), START.saturating_add(millis))
}

pub fn seed() -> Seed {
    Seed::new([3; 32])
}

/// A client whose links are left in peace: peers made by hand answer probes only when they read.
pub fn client(config: ClientConfig) -> Client {
    probing_client(config.probe_every(PROBE_EVERY_MAX))
}

/// A client that probes as it is configured to.
pub fn probing_client(config: ClientConfig) -> Client {
    let config = config.allow_local(true).build().expect("valid");
    Client::new(config, seed(), entropy(3), at(0))
}

/// The same of a station.
pub fn station(config: StationConfig) -> Station {
    probing_station(config.probe_every(PROBE_EVERY_MAX))
}

pub fn probing_station(config: StationConfig) -> Station {
    let config = config.allow_local(true).build().expect("valid");
    Station::new(config, seed(), entropy(4), at(0))
}

/// One signed publication, every part of it chosen.
#[derive(Clone, Copy)]
pub struct Fact<'a> {
    pub topic: &'a str,
    pub epoch: Option<u64>,
    pub seq: u64,
    pub published_at: WallMs,
    pub ttl_ms: Option<u32>,
    pub one: bool,
    pub value: u64,
}

impl Default for Fact<'_> {
    fn default() -> Self {
        Self {
            topic: TOPIC,
            epoch: Some(EPOCH),
            seq: 1,
            published_at: START,
            ttl_ms: None,
            one: false,
            value: 0,
        }
    }
}

impl Fact<'_> {
    pub fn numbered(seq: u64) -> Self {
        Self {
            seq,
            value: seq,
            ..Self::default()
        }
    }

    pub fn sign(&self, signer: &dyn Signer) -> Vec<u8> {
        let mut object = Vec::new();
        let payload = wire::to_payload(&self.value).expect("a number");
        Draft {
            realm: realm(),
            topic: self.topic,
            publisher: NodeId::of_key(signer.profile().name(), &signer.public_key()),
            epoch: self.epoch,
            seq: self.seq,
            published_at: self.published_at,
            ttl_ms: self.ttl_ms,
            one: self.one,
            body: Body::Payload(&payload),
        }
        .sign(signer, &mut object)
        .expect("a key in memory signs");
        object
    }
}

/// The far end of one link of a machine.
pub struct Far {
    pub id: LinkId,
    link: Link,
    signer: Box<dyn Signer>,
    /// Bytes the machine wrote that were not looked at.
    unread: Vec<u8>,
    /// Bytes it was sent and has not taken.
    partial: BytesMut,
    /// Whether it answers probes, and shows none, when it reads.
    pub answers: bool,
}

impl Far {
    /// Dials a station; the handshake has not begun.
    pub fn new(station: &mut Station, now: Now, signer: impl Signer + 'static) -> Self {
        Self::new_with(station, now, signer, wire::DEFAULT_MAX_FRAME)
    }

    fn new_with(
        station: &mut Station,
        now: Now,
        signer: impl Signer + 'static,
        max_frame: u32,
    ) -> Self {
        let up = LinkEvent::Up {
            dialled: None,
            binding: Binding::Local,
        };
        let id = station.handle_link(now, up).expect("room for a link");
        let settings = LinkSettings {
            allow_local: true,
            max_frame,
            ..LinkSettings::new(signer.profile(), signer.public_key(), Role::Node)
        };
        let link = Link::dial(now.mono, settings, None, Binding::Local, [9; 32]);
        Self::over(id, link.expect("local links are allowed"), signer)
    }

    fn over(id: LinkId, link: Link, signer: impl Signer + 'static) -> Self {
        Self {
            id,
            link,
            signer: Box::new(signer),
            unread: Vec::new(),
            partial: BytesMut::new(),
            answers: true,
        }
    }

    /// Answers a client's dial; the handshake has not begun.
    pub fn answering(
        client: &mut Client,
        now: Now,
        signer: impl Signer + 'static,
        station: StationRef,
    ) -> Self {
        Self::answering_with(client, now, signer, station, wire::DEFAULT_MAX_FRAME)
    }

    /// The same as a station that reads frames of at most `max_frame` bytes.
    pub fn answering_with(
        client: &mut Client,
        now: Now,
        signer: impl Signer + 'static,
        station: StationRef,
        max_frame: u32,
    ) -> Self {
        let up = LinkEvent::Up {
            dialled: Some(station),
            binding: Binding::Local,
        };
        let id = client.handle_link(now, up).expect("it was dialled");
        let settings = LinkSettings {
            allow_local: true,
            max_frame,
            ..LinkSettings::new(signer.profile(), signer.public_key(), Role::Station)
        };
        let link = Link::accept(now.mono, settings, Binding::Local, [8; 32]);
        Self::over(id, link.expect("local links are allowed"), signer)
    }

    /// Answers a client's dial as a station of a mesh; the handshake is over.
    pub fn answer_in(
        client: &mut Client,
        now: Now,
        signer: impl Signer + 'static,
        station: StationRef,
        mesh: [u8; 32],
    ) -> Self {
        let mut far = Self::answering(client, now, signer, station);
        let settings = LinkSettings {
            allow_local: true,
            mesh: Some(mesh),
            ..LinkSettings::new(far.signer.profile(), far.signer.public_key(), Role::Station)
        };
        let link = Link::accept(now.mono, settings, Binding::Local, [8; 32]);
        far.link = link.expect("local links are allowed");
        far.shake_hands(client, now);
        far
    }

    /// A link to a station whose handshake is over.
    pub fn dial(station: &mut Station, now: Now, signer: impl Signer + 'static) -> Self {
        let mut far = Self::new(station, now, signer);
        far.shake_hands(station, now);
        far
    }

    /// The same, which reads frames of at most `max_frame` bytes.
    pub fn reading(
        station: &mut Station,
        now: Now,
        signer: impl Signer + 'static,
        max_frame: u32,
    ) -> Self {
        let mut far = Self::new_with(station, now, signer, max_frame);
        far.shake_hands(station, now);
        far
    }

    /// A link from a client whose handshake is over.
    pub fn answer(
        client: &mut Client,
        now: Now,
        signer: impl Signer + 'static,
        station: StationRef,
    ) -> Self {
        let mut far = Self::answering(client, now, signer, station);
        far.shake_hands(client, now);
        far
    }

    pub fn shake_hands(&mut self, machine: &mut dyn Machine, now: Now) {
        for _ in 0..4 {
            let mut out = Vec::new();
            while self.link.poll_transmit(&mut out) {}
            if !out.is_empty() {
                let taken = self.raw(machine, now, &out);
                assert_eq!(taken, Ok(Intake::Open));
            }
            for body in self.read(machine, now) {
                if self.link.is_up() {
                    // The first frame after the handshake: it is looked at again.
                    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
                    frame.extend_from_slice(&body);
                    self.unread.extend_from_slice(&frame);
                    continue;
                }
                let step = self.link.handle_frame(now, &body, &*self.signer);
                if let Step::Verified(_) = step.expect("an honest handshake") {
                    self.link.admit(&*self.signer).expect("it was verified");
                }
            }
        }
        assert!(self.link.is_up(), "the handshake is over");
    }

    /// As the answerer: takes the opener and sends the challenge, so that the dialler waits for the hello.
    pub fn challenge(&mut self, machine: &mut dyn Machine, now: Now) {
        let opener = self.read(machine, now).remove(0);
        let step = self.link.handle_frame(now, &opener, &*self.signer);
        assert_eq!(step, Ok(Step::Continue));
        let mut out = Vec::new();
        while self.link.poll_transmit(&mut out) {}
        assert_eq!(self.raw(machine, now, &out), Ok(Intake::Open));
    }

    /// Sends bytes that may be part of a frame: what the machine leaves is kept for the next.
    pub fn append(
        &mut self,
        machine: &mut dyn Machine,
        now: Now,
        bytes: &[u8],
    ) -> Result<Intake, LinkError> {
        self.partial.extend_from_slice(bytes);
        machine.handle_input(now, self.id, &mut self.partial)
    }

    /// Sends any bytes.
    pub fn raw(
        &mut self,
        machine: &mut dyn Machine,
        now: Now,
        bytes: &[u8],
    ) -> Result<Intake, LinkError> {
        let mut input = BytesMut::from(bytes);
        machine.handle_input(now, self.id, &mut input)
    }

    /// Sends any body as a frame.
    pub fn body(
        &mut self,
        machine: &mut dyn Machine,
        now: Now,
        body: &[u8],
    ) -> Result<Intake, LinkError> {
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        self.raw(machine, now, &frame)
    }

    /// Sends a frame.
    pub fn frame(
        &mut self,
        machine: &mut dyn Machine,
        now: Now,
        frame: &Frame<'_>,
    ) -> Result<Intake, LinkError> {
        let mut bytes = Vec::new();
        frame.encode_framed(&mut bytes);
        self.raw(machine, now, &bytes)
    }

    /// Hands a publication to a client, under the id of its subscribe.
    pub fn event(
        &mut self,
        machine: &mut dyn Machine,
        now: Now,
        id: u64,
        offset: u64,
        publication: &[u8],
    ) -> Result<Intake, LinkError> {
        let event = Event {
            id,
            via: Via::Direct,
            offset,
            publication,
        };
        self.frame(machine, now, &Frame::Event(event))
    }

    /// Subscribes at a station.
    pub fn subscribe(
        &mut self,
        machine: &mut dyn Machine,
        now: Now,
        id: u64,
        filter: &str,
    ) -> Result<Intake, LinkError> {
        let subscribe = wire::Subscribe {
            id,
            realm: realm(),
            filter,
            resume: None,
        };
        self.frame(machine, now, &Frame::Subscribe(subscribe))
    }

    /// Hands a publication to a station.
    pub fn publish(
        &mut self,
        machine: &mut dyn Machine,
        now: Now,
        id: u64,
        publication: &[u8],
    ) -> Result<Intake, LinkError> {
        let publish = wire::Publish {
            id,
            route: wire::Route::All,
            publication,
        };
        self.frame(machine, now, &Frame::Publish(publish))
    }

    /// Hands a station an anycast of this number, signed by seed 7.
    pub fn publish_one(&mut self, machine: &mut dyn Machine, now: Now, seq: u64) {
        let one = Fact {
            one: true,
            ..Fact::numbered(seq)
        };
        let publish = wire::Publish {
            id: seq,
            route: wire::Route::One,
            publication: &one.sign(&signer(7)),
        };
        let taken = self.frame(machine, now, &Frame::Publish(publish));
        assert!(taken.is_ok(), "{taken:?}");
    }

    /// Accepts a subscription of a client.
    pub fn accept(&mut self, machine: &mut dyn Machine, now: Now, id: u64) {
        let subscribed = wire::Subscribed {
            id,
            resume: wire::ResumeOutcome::None,
            position: wire::Position {
                run: RunId::new([1; 8]),
                offset: 0,
            },
        };
        let taken = self.frame(machine, now, &Frame::Subscribed(subscribed));
        assert_eq!(taken, Ok(Intake::Open));
    }

    /// The bodies the machine wrote to this link since the last look.
    pub fn read(&mut self, machine: &mut dyn Machine, now: Now) -> Vec<Vec<u8>> {
        loop {
            let mut out = Vec::new();
            let Some(transmit) = machine.poll_transmit(self.id, &mut out) else {
                break;
            };
            self.unread.extend_from_slice(&out);
            self.unread.extend_from_slice(transmit.body());
            machine.handle_written(now, self.id, transmit.len());
        }
        let mut bodies = Vec::new();
        while let Split::Frame { body, taken } =
            next_frame(&self.unread, u32::MAX).expect("no length is too long")
        {
            bodies.push(body.to_vec());
            self.unread.drain(..taken);
        }
        if self.answers {
            bodies.retain(|body| match Frame::decode(body, Phase::Established) {
                Ok(Frame::Ping(nonce)) => {
                    let nonce = *nonce;
                    let taken = self.frame(machine, now, &Frame::Pong(&nonce));
                    assert!(taken.is_ok(), "{taken:?}");
                    false
                }
                _ => true,
            });
        }
        bodies
    }

    /// Answers the probes the machine wrote and leaves the rest for the next look.
    pub fn heed(&mut self, machine: &mut dyn Machine, now: Now) {
        for body in self.read(machine, now) {
            self.unread
                .extend_from_slice(&(body.len() as u32).to_be_bytes());
            self.unread.extend_from_slice(&body);
        }
    }

    /// What the machine wrote, by its frame types.
    pub fn types(&mut self, machine: &mut dyn Machine, now: Now) -> Vec<String> {
        let name = |body: Vec<u8>| {
            let frame = Frame::decode(&body, Phase::Established);
            match frame.or_else(|_| Frame::decode(&body, Phase::Hello)) {
                Ok(frame) => kind(&frame),
                Err(error) => panic!("the machine wrote {error}"),
            }
        };
        self.read(machine, now).into_iter().map(name).collect()
    }
}

/// A frame in a few words.
pub fn kind(frame: &Frame<'_>) -> String {
    match frame {
        Frame::Event(event) => format!("event {}", event.offset),
        Frame::Goodbye(goodbye) => format!("goodbye {} {}", goodbye.reason, goodbye.detail),
        Frame::Hello(wire::Hello::Refused(refusal)) => format!("hello {refusal}"),
        Frame::Ping(_) => "ping".into(),
        Frame::Pong(_) => "pong".into(),
        Frame::Progress(_) => "progress".into(),
        Frame::Publish(publish) => format!("publish {}", publish.id),
        Frame::Published(published) => match published.reason {
            Some(reason) => format!("published {} {reason}", published.id),
            None => format!("published {} {}", published.id, published.outcome),
        },
        Frame::Refused(refused) => format!("refused {} {}", refused.id, refused.reason),
        Frame::Skipped(skipped) => format!("skipped {}", skipped.count),
        Frame::Subscribe(subscribe) => format!("subscribe {}", subscribe.id),
        Frame::Subscribed(subscribed) => format!("subscribed {}", subscribed.id),
        Frame::Unsubscribe(id) => format!("unsubscribe {id}"),
        other => format!("{other:?}"),
    }
}

/// Whose publications are among what was read, and their numbers.
pub fn numbers(bodies: &[Vec<u8>]) -> Vec<(NodeId, u64)> {
    let number = |body: &Vec<u8>| match Frame::decode(body, Phase::Established) {
        Ok(Frame::Event(event)) => {
            let parsed = Publication::parse(event.publication, signer(1).profile());
            let parsed = parsed.expect("a publication");
            Some((parsed.publisher, parsed.seq))
        }
        _ => None,
    };
    bodies.iter().filter_map(number).collect()
}

/// Links the machine has ended since the last look, with the coarse reason.
pub fn closed(machine: &mut dyn Machine) -> Vec<(LinkId, tidings::code::CloseReason)> {
    let mut closed = Vec::new();
    while let Some(action) = machine.poll_action() {
        if let Action::Close { link, reason } = action {
            closed.push((link, reason));
        }
    }
    closed
}

/// The questions about signatures that are open.
pub fn asked(client: &mut Client) -> Vec<(AskId, VerifyJob)> {
    let mut asked = Vec::new();
    while let Some(action) = client.poll_action() {
        if let Action::Ask {
            ask,
            question: Question::Verify(job),
            ..
        } = action
        {
            asked.push((ask, job));
        }
    }
    asked
}

/// One of a status' counters.
pub fn counter(counters: &[(&'static str, u64)], name: &str) -> u64 {
    let found = counters.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1
}

/// Everything that can be read of a stream.
pub fn items(client: &mut Client, stream: SubscriptionId) -> Vec<Item> {
    core::iter::from_fn(|| client.poll_item(stream)).collect()
}

/// A stream in a few words: `1`, `*2` for a late one, and notices by their code.
pub fn words(items: &[Item]) -> Vec<String> {
    let word = |item: &Item| match item {
        Item::Fact(fact) if fact.late() => format!("*{}", fact.seq()),
        Item::Fact(fact) => fact.seq().to_string(),
        Item::Notice(notice) => match &**notice {
            Notice::Skipped { first, last, .. } => format!("skipped {first}..{last}"),
            Notice::Lagged {
                missed, notices, ..
            } => format!("lagged {missed} {notices}"),
            Notice::Dropped { reason, count, .. } => format!("dropped {reason} {count}"),
            Notice::Conflict {
                first, last, count, ..
            } => format!("conflict {first}..{last} {count}"),
            other => other.code().to_string(),
        },
        other => panic!("{other:?}"),
    };
    items.iter().map(word).collect()
}

/// Moves a machine to a moment, working off every deadline on the way at its time.
pub fn move_to(machine: &mut dyn Machine, to: Now) {
    while let Some(due) = machine.poll_timeout().filter(|due| *due <= to.mono) {
        let left = to.mono.saturating_since(due).as_millis() as u64;
        let now = Now::new(due, to.wall.saturating_sub(left));
        let turn = machine.handle_timeout(now);
        let next = machine.poll_timeout();
        assert!(
            turn == tidings::Turn::More || next.is_none_or(|next| next > due),
            "after `Done` nothing is due"
        );
    }
}

pub fn signer(seed: u64) -> impl Signer + Clone + core::fmt::Debug + 'static {
    fake_signer(seed)
}

pub fn id_of(signer: &dyn Signer) -> NodeId {
    NodeId::of_key(signer.profile().name(), &signer.public_key())
}

/// A node with as many links as wanted, one subscription accepted on all of them, and a publisher's key.
pub struct Node {
    pub client: Client,
    pub links: Vec<Far>,
    pub stream: SubscriptionId,
    pub publisher: Box<dyn Signer>,
    offset: u64,
}

impl Node {
    pub fn new(links: u16, request: Subscribe) -> Self {
        Self::with(ClientConfig::new(signer(1)), links, request)
    }

    pub fn with(config: ClientConfig, links: u16, request: Subscribe) -> Self {
        let dials = |config: ClientConfig, _| config.station(None);
        Self::of(client((0..links).fold(config, dials)), links, request)
    }

    /// With a client that has so many stations to dial.
    pub fn of(mut client: Client, links: u16, request: Subscribe) -> Self {
        let links: Vec<Far> = (0..links)
            .map(|n| {
                let station = signer(100 + u64::from(n));
                Far::answer(&mut client, at(0), station, StationRef(n))
            })
            .collect();
        let stream = client.subscribe(at(0), request).expect("accepted here");
        let mut node = Self {
            client,
            links,
            stream,
            publisher: Box::new(signer(7)),
            offset: 0,
        };
        for far in &mut node.links {
            assert_eq!(far.types(&mut node.client, at(0)), ["subscribe 1"]);
            far.accept(&mut node.client, at(0), 1);
        }
        node
    }

    /// Hands an object over on one link; the link must go on.
    pub fn object(&mut self, now: Now, link: usize, object: &[u8]) {
        self.offset += 1;
        let offset = self.offset;
        let taken = self.links[link].event(&mut self.client, now, 1, offset, object);
        assert_eq!(taken, Ok(Intake::Open));
    }

    pub fn seq(&mut self, now: Now, link: usize, seq: u64) {
        self.fact(now, link, Fact::numbered(seq));
    }

    pub fn fact(&mut self, now: Now, link: usize, fact: Fact<'_>) {
        let object = fact.sign(&*self.publisher);
        self.object(now, link, &object);
    }

    /// Moves the node to a moment; its peers answer probes twice an hour.
    pub fn time(&mut self, to: Now) {
        let half_hour = Duration::from_secs(1800);
        let mut at = self.client.poll_timeout().unwrap_or(to.mono);
        while at < to.mono {
            let left = to.mono.saturating_since(at).as_millis() as u64;
            let now = Now::new(at, to.wall.saturating_sub(left));
            move_to(&mut self.client, now);
            for far in &mut self.links {
                far.heed(&mut self.client, now);
            }
            at = at.saturating_add(half_hour);
        }
        move_to(&mut self.client, to);
    }

    pub fn words(&mut self) -> Vec<String> {
        words(&items(&mut self.client, self.stream))
    }

    pub fn faults(&self, fault: ObjectFault) -> u64 {
        self.client.status().faults.of(fault)
    }
}

pub fn open() -> Subscribe {
    Subscribe::new(realm(), TOPIC, Sources::Open)
}
