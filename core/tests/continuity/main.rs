//! Interruptions, replays and gaps as a subscription's readers are told of them: a rule at a time by hand, and whole nodes and stations.

mod cases;
mod commits;
#[path = "../common/mod.rs"]
mod common;
mod network;
mod replays;
mod rules;
mod windows;

use common::{Fact, Far, at, items, move_to, open, signer};
use tidings::code::{CloseReason, SubscribeRefusal};
use tidings::wire::{self, Frame, Phase, Position, ResumeOutcome};
use tidings::{
    Action, Client, ClientConfig, Intake, Item, LinkEvent, Notice, Now, RunId, StationRef,
    SubscriptionId,
};

/// The station n, its mesh unless it is a lone one, and what it knows of one node.
struct There {
    mesh: [u8; 32],
    far: Option<Far>,
    run: u8,
    offset: u64,
    /// The id of the node's last `subscribe`, and what it was to resume from.
    asked: Option<(u64, Option<Position>)>,
    /// What it was told and a test has not looked at.
    told: Vec<String>,
}

/// A node among stations that say what a test wants.
struct World {
    client: Client,
    stations: Vec<There>,
    dials: Vec<StationRef>,
    closed: Vec<CloseReason>,
    now: u64,
}

const MESH: [u8; 32] = [77; 32];

impl World {
    /// So many stations of one mesh. Their links are up.
    fn new(stations: usize) -> Self {
        Self::of_meshes(&vec![MESH; stations])
    }

    fn of_meshes(meshes: &[[u8; 32]]) -> Self {
        Self::with(ClientConfig::new(signer(1)), meshes)
    }

    fn with(config: ClientConfig, meshes: &[[u8; 32]]) -> Self {
        let config = meshes.iter().fold(config, |config, _| config.station(None));
        let there = |mesh: &[u8; 32]| There {
            mesh: *mesh,
            far: None,
            run: 1,
            offset: 0,
            asked: None,
            told: Vec::new(),
        };
        let mut world = Self {
            client: common::probing_client(config),
            stations: meshes.iter().map(there).collect(),
            dials: Vec::new(),
            closed: Vec::new(),
            now: 0,
        };
        world.act();
        for n in 0..meshes.len() {
            world.connect(n);
        }
        world
    }

    /// Takes what the node wants of its driver.
    fn act(&mut self) {
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::Dial { station } => self.dials.push(station),
                Action::Close { reason, .. } => self.closed.push(reason),
                _ => {}
            }
        }
    }

    fn now(&self) -> Now {
        at(self.now)
    }

    /// Lets time pass; every probe on the way is answered.
    fn time(&mut self, to: u64) {
        while self.now < to {
            self.now = to.min(self.now + 500);
            move_to(&mut self.client, at(self.now));
            let turn = self.client.handle_timeout(at(self.now));
            assert_eq!(turn, tidings::Turn::Done);
            for n in 0..self.stations.len() {
                self.listen(n);
            }
        }
    }

    fn subscribe(&mut self) -> SubscriptionId {
        let now = self.now();
        self.client.subscribe(now, open()).expect("a subscription")
    }

    /// A subscription that every station has accepted.
    fn subscribed(&mut self) -> SubscriptionId {
        let made = self.subscribe();
        for n in 0..self.stations.len() {
            self.accept(n);
        }
        made
    }

    fn connect(&mut self, n: usize) {
        let (now, station) = (self.now(), StationRef(n as u16));
        self.dials.retain(|dialled| *dialled != station);
        let key = signer(100 + n as u64);
        let mesh = self.stations[n].mesh;
        self.stations[n].far = Some(Far::answer_in(&mut self.client, now, key, station, mesh));
    }

    /// The node dials a station it has lost, and comes through.
    fn up(&mut self, n: usize) {
        for _ in 0..1000 {
            self.act();
            if self.dials.contains(&StationRef(n as u16)) {
                return self.connect(n);
            }
            self.time(self.now + 100);
        }
        panic!("it does not dial");
    }

    fn down(&mut self, n: usize, reason: CloseReason) {
        let far = self.stations[n].far.take().expect("its link is up");
        let down = LinkEvent::Down {
            link: far.id,
            reason,
        };
        self.client.handle_link(self.now(), down).expect("a link");
    }

    /// Takes what the node wrote to a station: probes are answered, the last `subscribe` is kept.
    fn listen(&mut self, n: usize) {
        let now = self.now();
        let there = &mut self.stations[n];
        let Some(far) = &mut there.far else {
            return;
        };
        for body in far.read(&mut self.client, now) {
            let frame = Frame::decode(&body, Phase::Established).expect("a frame");
            match frame {
                Frame::Ping(nonce) => {
                    let taken = far.frame(&mut self.client, now, &Frame::Pong(nonce));
                    assert_eq!(taken, Ok(Intake::Open));
                    continue;
                }
                Frame::Subscribe(subscribe) => {
                    there.asked = Some((subscribe.id, subscribe.resume));
                }
                _ => {}
            }
            there.told.push(common::kind(&frame));
        }
    }

    /// What the node wrote to a station since the last look.
    fn read(&mut self, n: usize) -> Vec<String> {
        self.listen(n);
        core::mem::take(&mut self.stations[n].told)
    }

    /// What the node asks a station to resume from.
    fn resumes_from(&mut self, n: usize) -> Option<Position> {
        self.listen(n);
        self.stations[n].asked.expect("it was asked").1
    }

    fn send(&mut self, n: usize, frame: &Frame<'_>) {
        let now = self.now();
        let far = self.stations[n].far.as_mut().expect("its link is up");
        let taken = far.frame(&mut self.client, now, frame);
        assert_eq!(taken, Ok(Intake::Open));
    }

    fn id(&mut self, n: usize) -> u64 {
        self.listen(n);
        self.stations[n].asked.expect("it was asked").0
    }

    fn position(&self, n: usize) -> Position {
        let there = &self.stations[n];
        Position {
            run: RunId::new([there.run; 8]),
            offset: there.offset,
        }
    }

    fn answer(&mut self, n: usize, resume: ResumeOutcome) {
        let (id, position) = (self.id(n), self.position(n));
        let subscribed = wire::Subscribed {
            id,
            resume,
            position,
        };
        self.send(n, &Frame::Subscribed(subscribed));
    }

    fn accept(&mut self, n: usize) {
        self.answer(n, ResumeOutcome::None);
    }

    /// The station has another run, or has forgotten.
    fn expired(&mut self, n: usize) {
        self.stations[n].run += 1;
        self.answer(n, ResumeOutcome::Expired { oldest: 1 });
    }

    /// It replays so many; its stream goes on behind them.
    fn resumed(&mut self, n: usize, count: u64) {
        let from = self.resumes_from(n).expect("a position");
        self.stations[n].offset = from.offset + count;
        self.answer(n, ResumeOutcome::Resumed { count });
    }

    fn refuse(&mut self, n: usize, reason: SubscribeRefusal) {
        let id = self.id(n);
        let refused = wire::Refused {
            id,
            limit: None,
            reason,
        };
        self.send(n, &Frame::Refused(refused));
    }

    fn event_at(&mut self, n: usize, offset: u64, seq: u64) {
        self.event_by(n, offset, seq, 7);
    }

    /// One of the publisher with this key.
    fn event_by(&mut self, n: usize, offset: u64, seq: u64, key: u64) {
        // Made at the last full hour, so that copies are copies.
        self.event_made(n, offset, seq, key, at(self.now - self.now % 3_600_000));
    }

    fn event_made(&mut self, n: usize, offset: u64, seq: u64, key: u64, made: Now) {
        let (id, now) = (self.id(n), self.now());
        let fact = Fact {
            published_at: made.wall,
            ..Fact::numbered(seq)
        };
        let object = fact.sign(&signer(key));
        let far = self.stations[n].far.as_mut().expect("its link is up");
        let taken = far.event(&mut self.client, now, id, offset, &object);
        assert_eq!(taken, Ok(Intake::Open));
    }

    /// Another one under the number of one that there is.
    fn other_event(&mut self, n: usize, offset: u64, seq: u64) {
        self.event_made(n, offset, seq, 7, at(1));
    }

    /// One publication more at a station, with this number.
    fn event(&mut self, n: usize, seq: u64) {
        self.stations[n].offset += 1;
        self.event_at(n, self.stations[n].offset, seq);
    }

    fn progress(&mut self, n: usize, behind_ms: u64) {
        let (id, offset) = (self.id(n), self.stations[n].offset);
        let progress = wire::Progress {
            id,
            offset,
            behind_ms,
        };
        self.send(n, &Frame::Progress(progress));
    }

    fn words(&mut self, stream: SubscriptionId) -> Vec<String> {
        let read = items(&mut self.client, stream);
        read.iter().map(word).collect()
    }

    /// Links the node has ended.
    fn ended(&mut self) -> Vec<CloseReason> {
        self.act();
        core::mem::take(&mut self.closed)
    }
}

/// An item in a few words, its times in ms since the start.
fn word(item: &Item) -> String {
    let since = |wall: tidings::WallMs| wall.since(at(0).wall);
    let Item::Notice(notice) = item else {
        return common::words(core::slice::from_ref(item)).remove(0);
    };
    match &**notice {
        Notice::Gap {
            from,
            to,
            reason,
            count,
        } => {
            let count = count.map_or_else(String::new, |count| format!(" {count}"));
            format!("gap {}..{} {reason}{count}", since(*from), since(*to))
        }
        Notice::Interrupted { from, reason } => format!("interrupted {} {reason}", since(*from)),
        Notice::Resumed { recovered } => format!("resumed {recovered}"),
        Notice::SubscriptionRefused { reason, .. } => format!("refused {reason}"),
        Notice::Ended { reason } => format!("ended {reason}"),
        _ => common::words(core::slice::from_ref(item)).remove(0),
    }
}

const NONE: [&str; 0] = [];
