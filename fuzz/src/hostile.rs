//! A whole machine with a few links, whose other ends shake hands as they must and then say whatever the input makes them say. The last
//! of them is honest besides: at every wait it answers what it was asked.
//!
//! Everything the machine writes, asks, decides and hands out becomes one trace, so that two runs can be compared byte by byte; what went
//! in and what came out are entered in the books of `accounts.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tidings::code::CloseReason;
use tidings::pump::Machine;
use tidings::sim::START;
use tidings::wire::{Frame, MAX_MAX_FRAME, Phase, Split, next_frame};
use tidings::{
    Action, Answer, Binding, Client, Instant, Intake, Item, LinkEvent, LinkId, MemoryReport, Now,
    PublicationHash, Question, Station, StationRef, SubscriptionId, Turn, WallMs,
};

use crate::accounts::{Books, Reader};
use crate::asks::{Asks, Bounds};
use crate::cuts;
use crate::peer::{ONES, Wire, honest, stream_of};
use crate::said::Said;

/// Links a machine may have at once; the last one's peer is honest.
pub const LINKS: usize = 3;

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

    pub fn station(&mut self) -> Option<&mut Station> {
        match self {
            Self::Client(_) => None,
            Self::Station(station) => Some(station),
        }
    }
}

/// What differs between two runs that must not differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit<'a> {
    /// Where arriving bytes are cut; nowhere without.
    pub cuts: &'a [u8],
    /// Hands out only before time passes and before links change.
    pub lazy: bool,
}

/// What the first byte of an input says of both its plays.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Bounds that fill.
    pub tight: bool,
    /// Publishers are looked up and groups are joined: the application's kinds mean more.
    pub guarded: bool,
    /// Whatever the script leaves open is answered at each wait.
    pub answered: bool,
}

#[derive(Debug)]
pub struct Play<'a> {
    pub under: Under,
    pub books: Books,
    /// Whether there is anycast: which of several readers gets one depends on the place it has.
    pub anycast: bool,
    pub scene: Scene,
    pub asks: Asks,
    habit: Habit<'a>,
    mono_us: u64,
    wall_ms: i64,
    links: [Option<Wire>; LINKS],
    wanted: BTreeSet<StationRef>,
    readers: Vec<SubscriptionId>,
    trace: String,
    /// By connection (0: the readers) and id.
    streams: BTreeMap<(u32, u64), String>,
    /// Connections so far, and which of them the machine ended.
    connections: u32,
    failed: BTreeSet<u32>,
    /// Streams whose reader left.
    left: BTreeSet<(u32, u64)>,
    /// A link is ending, which its driver reports at once, however lazy.
    ending: bool,
    print: bool,
}

/// Plays an input twice. Tight machines, whose bounds fill: the trace is the same wherever the bytes are cut. Roomy ones: each stream is
/// the same for an eager driver and a lazy one. The first byte says which, how many cuts follow it, and whether it is a guarded script, which
/// only two of its upper halves do.
pub fn compare(data: &[u8], play: impl for<'a> Fn(Habit<'a>, &[u8], Scene) -> Play<'a>) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let (cuts, steps) = rest.split_at(usize::from(first % 8).min(rest.len()));
    let eager = Habit::default();
    let scene = Scene {
        tight: first & 8 == 0,
        guarded: matches!(first >> 4, 1 | 4),
        answered: first >> 4 == 4,
    };
    if scene.tight {
        let whole = play(eager, steps, scene);
        let cut = play(Habit { cuts, ..eager }, steps, scene);
        assert_eq!(whole.trace(), cut.trace(), "the cut of the bytes shows");
    } else {
        let whole = play(eager, steps, scene);
        let lazy = play(Habit { cuts, lazy: true }, steps, scene);
        whole.assert_same_streams(&lazy);
    }
}

impl<'a> Play<'a> {
    pub fn new(under: Under, habit: Habit<'a>, scene: Scene, asked: Bounds) -> Self {
        let mut books = Books::default();
        books.at_once = !habit.lazy;
        books.roomy = !scene.tight;
        Self {
            under,
            books,
            anycast: scene.tight,
            scene,
            asks: Asks::new(asked),
            habit,
            mono_us: 0,
            wall_ms: START.as_millis() as i64,
            links: [const { None }; LINKS],
            wanted: BTreeSet::new(),
            readers: Vec::new(),
            trace: String::new(),
            streams: BTreeMap::new(),
            connections: 0,
            failed: BTreeSet::new(),
            left: BTreeSet::new(),
            ending: false,
            print: std::env::var_os("TIDINGS_TRACE").is_some(),
        }
    }

    pub fn now(&self) -> Now {
        Now::new(
            Instant::from_micros(self.mono_us),
            WallMs::new(self.wall_ms.max(0) as u64),
        )
    }

    /// Everything that came out, in the order it was handed out.
    pub fn trace(self) -> String {
        self.trace
    }

    /// Whether a lazy run gave every stream what this eager one gave it: a client each reader, a station each id of a link. Where the machine ended
    /// the link, or its reader left, what was not handed out by then may be missing.
    pub fn assert_same_streams(&self, lazy: &Self) {
        let none = String::new();
        let names: BTreeSet<_> = self.streams.keys().chain(lazy.streams.keys()).collect();
        for name in names {
            let eager = self.streams.get(name).unwrap_or(&none);
            let late = lazy.streams.get(name).unwrap_or(&none);
            let ended =
                lazy.failed.contains(&name.0) || lazy.left.contains(&(name.0, name.1 & !ONES));
            let cut_short = ended && eager.starts_with(late.as_str());
            assert!(
                eager == late || cut_short,
                "the drain habit shows in {name:?}\neager: {eager}\nlazy: {late}"
            );
        }
    }

    pub fn say(&mut self, what: std::fmt::Arguments<'_>) {
        let at = self.trace.len();
        writeln!(self.trace, "@{} {what}", self.mono_us / 1000).expect("text grows");
        if self.print {
            print!("{}", &self.trace[at..]);
        }
    }

    pub fn reads(&mut self, id: SubscriptionId, reader: Reader) {
        self.readers.push(id);
        self.books.readers.push(reader);
    }

    /// The application gives a subscription up.
    pub fn unsubscribe(&mut self, index: usize) {
        let now = self.now();
        let id = self.readers.get(index).copied();
        if let (Some(id), Some(client)) = (id, self.under.client()) {
            let _known = client.unsubscribe(now, id);
            self.left.insert((0, index as u64));
            self.books.leaves(index);
        }
    }

    /// Brings a link up, as far as the machine wants one.
    pub fn connect(&mut self, at: usize) {
        self.drain();
        if self.links[at].is_some() {
            return;
        }
        let dialled = match self.under {
            Under::Station(_) => None,
            Under::Client(_) => match self.wanted.take(&StationRef(at as u16)) {
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
        self.connections += 1;
        let wire = Wire::new(id, self.connections, at, dialled.is_some(), now);
        self.links[at] = Some(wire);
        for _ in 0..6 {
            let mut bytes = Vec::new();
            if let Some(wire) = &mut self.links[at] {
                while wire.peer.poll_transmit(&mut bytes) {}
            }
            self.feed(at, &bytes);
            self.drain();
        }
    }

    /// Bytes from the other end arrive. Whether the machine took them all, on a link that carried nothing but frames so far.
    pub fn feed(&mut self, at: usize, bytes: &[u8]) -> bool {
        let now = self.now();
        let cuts = self.habit.cuts;
        let Some(wire) = &mut self.links[at] else {
            return false;
        };
        let mut fault = None;
        for piece in cuts::pieces(bytes, cuts) {
            wire.io.input().extend_from_slice(piece);
            match wire.io.handle_read(self.under.machine(), now) {
                Ok(intake) => wire.intake = intake,
                Err(error) => {
                    fault = Some(error);
                    self.failed.insert(wire.connection);
                    break;
                }
            }
        }
        wire.clean &= fault.is_none() && wire.io.input().is_empty();
        let taken = wire.clean;
        if let Some(error) = fault {
            self.ending = true;
            self.say(format_args!("{at} ends for {error:?}"));
        }
        taken
    }

    /// A frame from the other end arrives.
    pub fn frame(&mut self, at: usize, frame: &Frame<'_>) {
        let mut framed = Vec::new();
        frame.encode_framed(&mut framed);
        let now = self.now();
        if let (Frame::Unsubscribe(id), Some(wire)) = (frame, &self.links[at]) {
            self.left.insert((wire.connection, *id));
        }
        let taken = self.feed(at, &framed);
        self.books.hands(frame, now, taken);
        if taken {
            self.books.took(at, frame, now);
        }
        if matches!(frame, Frame::Goodbye(_)) {
            // What comes after it is not read.
            self.ending = true;
            self.links[at]
                .iter_mut()
                .for_each(|wire| wire.clean = false);
        }
        self.settle();
    }

    /// A publication, signed by its publisher or by nobody.
    pub fn publication(&mut self, said: &Said) -> Vec<u8> {
        let one = said.one && self.anycast;
        let (object, sent) = Said { one, ..*said }.sign();
        if let Some(sent) = sent {
            self.books.signed(&object, sent);
        }
        object
    }

    /// The wall steps, and time passes: the machine is woken exactly when it asked to be, and not too often.
    pub fn wait(&mut self, ms: u64, wall_step: i64) {
        self.drain();
        self.answer_honestly();
        self.wall_ms += wall_step;
        let until = self.mono_us + ms * 1000;
        let mut wakes = 0;
        loop {
            let due = self.under.machine().poll_timeout();
            let next = due.map_or(until, |due| due.as_micros().clamp(self.mono_us, until));
            self.wall_ms += (next / 1000) as i64 - (self.mono_us / 1000) as i64;
            self.mono_us = next;
            let now = self.now();
            self.books.latest = self.books.latest.max(now.wall);
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
            self.answer_honestly();
            if next == until {
                return;
            }
            wakes += 1;
            assert!(wakes < 2_000 + ms / 100, "woken without end");
        }
    }

    /// The transport ends.
    pub fn cut(&mut self, at: usize) {
        self.drain();
        if let Some(wire) = self.links[at].take() {
            self.down(at, wire.io.link());
            self.drain();
        }
    }

    fn down(&mut self, at: usize, link: LinkId) {
        let now = self.now();
        self.books.ended(at);
        let event = LinkEvent::Down {
            link,
            reason: CloseReason::Io,
        };
        if let Err(misuse) = self.under.machine().handle_link(now, event) {
            self.say(format_args!("{at} down: {misuse:?}"));
        }
    }

    /// The application ends a link.
    pub fn close(&mut self, at: usize) {
        let now = self.now();
        if let Some(wire) = &mut self.links[at] {
            let link = wire.io.link();
            wire.clean = false;
            let _known = self
                .under
                .machine()
                .close_link(now, link, CloseReason::Normal);
            self.settle();
        }
    }

    /// After a step: an eager driver hands out at once.
    pub fn settle(&mut self) {
        if !self.habit.lazy || core::mem::take(&mut self.ending) {
            self.drain();
        }
    }

    /// Takes out everything there is.
    pub fn drain(&mut self) {
        loop {
            let mut moved = false;
            for at in 0..LINKS {
                moved |= self.transmit(at);
            }
            while let Some(action) = self.under.machine().poll_action() {
                moved = true;
                self.act(action);
            }
            moved |= self.items();
            for at in 0..LINKS {
                moved |= self.read_on(at);
            }
            if !moved {
                break;
            }
        }
        for wire in self.links.iter().flatten() {
            assert!(
                wire.intake != Intake::Paused,
                "paused, and nothing is left to drain"
            );
        }
        let later = |wire: &Wire| wire.intake == Intake::Later;
        if self.links.iter().flatten().any(later) {
            let due = self.under.machine().poll_timeout();
            assert!(due.is_some(), "later, and no deadline tells when");
        }
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
                let found = (0..LINKS).find(|at| {
                    self.links[*at]
                        .as_ref()
                        .is_some_and(|wire| wire.io.link() == link)
                });
                if let Some(at) = found {
                    self.say(format_args!("{at} close {reason:?}"));
                    self.transmit(at);
                    if let Some(wire) = self.links[at].take() {
                        self.failed.insert(wire.connection);
                    }
                    self.down(at, link);
                }
            }
            Action::Dial { station } => {
                self.wanted.insert(station);
            }
            Action::Ready(_) => {}
            other => {
                self.say(format_args!("{other:?}"));
                match &other {
                    Action::Ask {
                        ask,
                        question,
                        deadline,
                    } => self.asks(*ask, question, deadline.as_micros()),
                    Action::Keys { group, ready } => self.keys(*group, *ready),
                    _ => {}
                }
            }
        }
    }

    /// What an earlier pause left unread.
    fn read_on(&mut self, at: usize) -> bool {
        let now = self.now();
        let Some(wire) = &mut self.links[at] else {
            return false;
        };
        let (before, paused) = (wire.io.input().len(), wire.intake);
        if before == 0 && paused == Intake::Open {
            return false;
        }
        match wire.io.handle_read(self.under.machine(), now) {
            Ok(intake) => {
                wire.intake = intake;
                wire.io.input().len() < before || intake != paused
            }
            Err(error) => {
                (wire.intake, wire.clean) = (Intake::Open, false);
                self.failed.insert(wire.connection);
                self.say(format_args!("{at} ends for {error:?}"));
                false
            }
        }
    }

    /// Moves what the machine has to write to the other end.
    fn transmit(&mut self, at: usize) -> bool {
        let now = self.now();
        let Some(wire) = &mut self.links[at] else {
            return false;
        };
        let bytes = wire.take_written(self.under.machine(), now);
        if bytes.is_empty() {
            return false;
        }
        let (connection, is_station) = (wire.connection, self.under.client().is_some());
        let (books, streams) = (&mut self.books, &mut self.streams);
        wire.read_written(now, at, |frame, replies| {
            books.wrote(at, frame);
            if let Some(name) = stream_of(frame) {
                let stream = streams.entry((connection, name)).or_default();
                match frame {
                    Frame::Event(event) => {
                        let hash = PublicationHash::of_tbs(event.publication);
                        writeln!(stream, "event {} {hash}", event.offset)
                    }
                    other => writeln!(stream, "{other:?}"),
                }
                .expect("text grows");
            }
            honest(frame, is_station, replies);
        });
        self.say(format_args!("{at} writes {bytes:02x?}"));
        true
    }

    /// The last link's peer keeps the rules.
    fn answer_honestly(&mut self) {
        if self.scene.answered {
            self.answer_all();
        }
        let at = LINKS - 1;
        while let Some(wire) = &mut self.links[at] {
            let replies = core::mem::take(&mut wire.replies);
            if replies.is_empty() {
                break;
            }
            let now = self.now();
            let mut rest = &replies[..];
            while let Ok(Split::Frame { body, taken }) = next_frame(rest, MAX_MAX_FRAME) {
                let frame = Frame::decode(body, Phase::Established).expect("our own frame");
                if self.feed(at, &rest[..taken]) {
                    self.books.took(at, &frame, now);
                }
                rest = &rest[taken..];
            }
            self.drain();
        }
        for wire in self.links.iter_mut().flatten() {
            wire.replies.clear();
        }
    }

    fn items(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.readers.len() {
            let id = self.readers[index];
            while let Some(item) = self.under.client().and_then(|client| client.poll_item(id)) {
                moved = true;
                self.item(index, &item);
            }
        }
        moved
    }

    fn item(&mut self, index: usize, item: &Item) {
        self.say(format_args!("{index}: {item:?}"));
        let stream = self.streams.entry((0, index as u64)).or_default();
        writeln!(stream, "{item:?}").expect("text grows");
        self.books.item(index, item, self.now());
    }

    /// After calm: nothing went missing in silence.
    pub fn balance(&mut self) {
        let clear = self.under.client().map_or(0, |client| {
            let counters = client.status().counters;
            let found = counters.iter().find(|(name, _)| *name == "clear_refused");
            found.map_or(0, |(_, count)| *count)
        });
        for index in 0..self.readers.len() {
            let id = self.readers[index];
            let client = self.under.client();
            let status = client.and_then(|client| client.subscription(id));
            let status = status.map(|status| [status.superseded, status.source_refused]);
            self.books.balance_reader(index, status, clear);
        }
        self.books.balance_routes();
    }
}
