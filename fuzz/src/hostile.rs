//! A whole machine with one link, whose other end shakes hands as it must and then says whatever the input makes it say.
//!
//! Everything the machine writes, asks, decides and hands out becomes one trace, so that two runs can be compared byte by byte.

use std::collections::BTreeSet;
use std::fmt::Write;

use tidings::code::CloseReason;
use tidings::crypto::Signer;
use tidings::link::{Link, LinkSettings, Step};
use tidings::pump::{LinkIo, Machine};
use tidings::sim::{FAKE_PROFILE, START, fake_signer};
use tidings::wire::{Body, Draft, Role, Split, next_frame};
use tidings::{
    Action, Answer, Binding, Client, Instant, Item, LinkEvent, LinkId, MemoryReport, NodeId, Now,
    PublicationHash, Question, RealmId, Station, StationRef, SubscriptionId, Turn,
};

use crate::cuts;

/// The machine under test.
#[derive(Debug)]
pub enum Under {
    Client(Box<Client>),
    Station(Box<Station>),
}

impl Under {
    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Client(client) => client.as_mut(),
            Self::Station(station) => station.as_mut(),
        }
    }

    fn memory(&self) -> MemoryReport {
        match self {
            Self::Client(client) => client.memory(),
            Self::Station(station) => station.memory(),
        }
    }

    pub fn client(&mut self) -> Option<&mut Client> {
        match self {
            Self::Client(client) => Some(client),
            Self::Station(_) => None,
        }
    }
}

/// One local subscription and what it was handed.
#[derive(Debug)]
struct Reader {
    id: SubscriptionId,
    /// Whose facts it wants, if not everybody's.
    from: Option<NodeId>,
    seen: BTreeSet<PublicationHash>,
}

#[derive(Debug)]
pub struct Play<'a> {
    pub under: Under,
    /// Where arriving bytes are cut; nowhere without.
    cuts: &'a [u8],
    mono_us: u64,
    wall_ms: i64,
    link: Option<(LinkIo, Box<Link>)>,
    wanted: Option<StationRef>,
    readers: Vec<Reader>,
    genuine: BTreeSet<PublicationHash>,
    trace: String,
    print: bool,
}

/// What a publication says, and whether its publisher said it.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// The seed of the publisher's key; 1 is the peer's own.
    pub key: u64,
    pub topic: &'static str,
    /// 0 for none.
    pub epoch: u64,
    pub seq: u64,
    pub one: bool,
    /// Another payload under the same number.
    pub other: bool,
    pub forged: bool,
}

pub fn realm() -> RealmId {
    RealmId::of_name("fuzz")
}

impl<'a> Play<'a> {
    pub fn new(under: Under, cuts: &'a [u8]) -> Self {
        Self {
            under,
            cuts,
            mono_us: 0,
            wall_ms: START.as_millis() as i64,
            link: None,
            wanted: None,
            readers: Vec::new(),
            genuine: BTreeSet::new(),
            trace: String::new(),
            print: std::env::var_os("TIDINGS_TRACE").is_some(),
        }
    }

    pub fn now(&self) -> Now {
        let wall = tidings::WallMs::new(self.wall_ms.max(0) as u64);
        Now::new(Instant::from_micros(self.mono_us), wall)
    }

    /// Everything that came out.
    pub fn trace(self) -> String {
        self.trace
    }

    pub fn say(&mut self, what: std::fmt::Arguments<'_>) {
        let at = self.trace.len();
        writeln!(self.trace, "@{} {what}", self.mono_us / 1000).expect("text grows");
        if self.print {
            print!("{}", &self.trace[at..]);
        }
    }

    pub fn reads(&mut self, id: SubscriptionId, from: Option<NodeId>) {
        let seen = BTreeSet::new();
        self.readers.push(Reader { id, from, seen });
    }

    pub fn reader(&self, index: usize) -> Option<SubscriptionId> {
        Some(self.readers.get(index)?.id)
    }

    pub fn is_up(&self) -> bool {
        self.link.is_some()
    }

    /// Brings a link up, as far as the machine wants one.
    pub fn connect(&mut self) {
        if self.link.is_some() {
            return;
        }
        let dialled = match self.under {
            Under::Station(_) => None,
            Under::Client(_) => match self.wanted.take() {
                Some(station) => Some(station),
                None => return,
            },
        };
        let now = self.now();
        let event = LinkEvent::Up {
            dialled,
            binding: Binding::Local,
        };
        let Ok(id) = self.under.machine().handle_link(now, event) else {
            return;
        };
        let role = if dialled.is_some() {
            Role::Station
        } else {
            Role::Node
        };
        let settings = LinkSettings {
            allow_local: true,
            ..LinkSettings::new(FAKE_PROFILE, fake_signer(1).public_key(), role)
        };
        let peer = match dialled {
            Some(_) => Link::accept(now.mono, settings, Binding::Local, [7; 32]),
            None => Link::dial(now.mono, settings, None, Binding::Local, [7; 32]),
        };
        self.link = Some((
            LinkIo::new(id),
            Box::new(peer.expect("settings of this file")),
        ));
        for _ in 0..6 {
            let mut bytes = Vec::new();
            if let Some((_, peer)) = &mut self.link {
                while peer.poll_transmit(&mut bytes) {}
            }
            self.feed(&bytes);
            self.drain();
        }
    }

    /// Bytes from the other end arrive.
    pub fn feed(&mut self, bytes: &[u8]) {
        let now = self.now();
        let cuts = self.cuts;
        let mut fault = None;
        if let Some((io, _)) = &mut self.link {
            for piece in cuts::pieces(bytes, cuts) {
                io.input().extend_from_slice(piece);
                if let Err(error) = io.handle_read(self.under.machine(), now) {
                    fault = Some(error);
                    break;
                }
            }
        }
        if let Some(error) = fault {
            self.say(format_args!("ends for {error:?}"));
        }
    }

    /// A publication, signed by its publisher or by nobody.
    pub fn publication(&mut self, said: &Said) -> Vec<u8> {
        let signer = fake_signer(said.key);
        let draft = Draft {
            realm: realm(),
            topic: said.topic,
            publisher: NodeId::of_key(FAKE_PROFILE.name(), &signer.public_key()),
            epoch: (said.epoch > 0).then(|| START.as_millis() * 1000 + said.epoch * 1_000_000),
            seq: said.seq,
            published_at: START.saturating_add(u64::from(said.forged)),
            ttl_ms: (said.seq % 3 == 0).then_some(1000),
            one: said.one,
            body: Body::Payload(&[u8::from(said.other)]),
        };
        let mut object = Vec::new();
        draft
            .sign(&signer, &mut object)
            .expect("the fake signer signs");
        if said.forged {
            object.last_mut().into_iter().for_each(|byte| *byte ^= 1);
        } else {
            let mut tbs = Vec::new();
            draft.encode_tbs(FAKE_PROFILE, &mut tbs);
            self.genuine.insert(PublicationHash::of_tbs(&tbs));
        }
        object
    }

    /// Time passes; the wall may step besides.
    pub fn wait(&mut self, ms: u64, wall_step: i64) {
        self.mono_us += ms * 1000;
        self.wall_ms += ms as i64 + wall_step;
        let now = self.now();
        let mut turns = 0;
        while self.under.machine().handle_timeout(now) == Turn::More {
            turns += 1;
            assert!(turns < 100_000, "work that does not end");
        }
        self.drain();
        let due = self.under.machine().poll_timeout();
        assert!(
            due.is_none_or(|due| due > now.mono),
            "still due after its time"
        );
    }

    /// The transport ends.
    pub fn cut(&mut self) {
        if let Some((io, _)) = self.link.take() {
            self.down(io.link());
            self.drain();
        }
    }

    fn down(&mut self, link: LinkId) {
        let now = self.now();
        let event = LinkEvent::Down {
            link,
            reason: CloseReason::Io,
        };
        if let Err(misuse) = self.under.machine().handle_link(now, event) {
            self.say(format_args!("down: {misuse:?}"));
        }
    }

    /// Takes out everything there is.
    pub fn drain(&mut self) {
        loop {
            let mut moved = self.transmit();
            while let Some(action) = self.under.machine().poll_action() {
                moved = true;
                self.act(action);
            }
            moved |= self.read_on();
            if !moved {
                break;
            }
        }
        self.items();
        for line in self.under.memory().lines {
            assert!(line.used <= line.capacity, "{line:?}");
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Ask {
                ask,
                question: Question::Verify(job),
                ..
            } => {
                let (now, answer) = (self.now(), Answer::Verified(job.run()));
                if let Some(client) = self.under.client() {
                    client.answer(now, ask, answer).expect("it was asked");
                }
            }
            Action::Close { link, reason } => {
                self.say(format_args!("close {reason:?}"));
                self.transmit();
                if self.link.take_if(|(io, _)| io.link() == link).is_some() {
                    self.down(link);
                }
            }
            Action::Dial { station } => self.wanted = Some(station),
            Action::Ready(_) => {}
            other => self.say(format_args!("{other:?}")),
        }
    }

    /// What an earlier pause left unread.
    fn read_on(&mut self) -> bool {
        let now = self.now();
        let Some((io, _)) = &mut self.link else {
            return false;
        };
        let before = io.input().len();
        if before == 0 {
            return false;
        }
        let result = io.handle_read(self.under.machine(), now);
        let moved = io.input().len() < before;
        if let Err(error) = result {
            self.say(format_args!("ends for {error:?}"));
            return false;
        }
        moved
    }

    /// Moves what the machine has to write to the other end.
    fn transmit(&mut self) -> bool {
        let now = self.now();
        let mut bytes = Vec::new();
        let Some((io, peer)) = &mut self.link else {
            return false;
        };
        while io.fill(self.under.machine()) {
            let mut slices: [&[u8]; 8] = [&[]; 8];
            let count = io.chunks(&mut slices);
            let taken = slices[..count].concat();
            io.wrote(self.under.machine(), now, taken.len());
            bytes.extend_from_slice(&taken);
        }
        let mut rest = &bytes[..];
        while !peer.is_up() {
            let Ok(Split::Frame { body, taken }) = next_frame(rest, peer.frame_cap()) else {
                break;
            };
            let signer = fake_signer(1);
            match peer.handle_frame(now, body, &signer) {
                Ok(Step::Verified(_)) => peer.admit(&signer).expect("it waits for this"),
                Ok(_) => {}
                Err(_) => break,
            }
            rest = &rest[taken..];
        }
        let moved = !bytes.is_empty();
        if moved {
            self.say(format_args!("writes {bytes:02x?}"));
        }
        moved
    }

    fn items(&mut self) {
        for index in 0..self.readers.len() {
            let id = self.readers[index].id;
            while let Some(item) = self.under.client().and_then(|client| client.poll_item(id)) {
                self.item(index, &item);
            }
        }
    }

    fn item(&mut self, index: usize, item: &Item) {
        self.say(format_args!("{index}: {item:?}"));
        if let Item::Fact(fact) = item {
            let reader = &mut self.readers[index];
            assert!(self.genuine.contains(&fact.hash()), "nobody signed it");
            assert!(reader.seen.insert(fact.hash()), "delivered twice");
            assert!(
                reader.from.is_none_or(|from| from == fact.publisher()),
                "not wanted"
            );
        }
    }
}
