//! Frames into bodies: keys in wire order, shortest heads.
//!
//! Decides: the order of keys. Leaves to others: whether the values are allowed, which their types mostly say. Believes: no clock.
//! Bounded by: the sink.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

use super::{
    Challenge, Connect, Frame, Hello, Interest, InterestEntries, Position, Published,
    ResumeOutcome, Route, Skipped, Subscribe, VERSION, Via,
};
use crate::code::ResumeCode;
use crate::wire::cbor::{Counter, Sink, SliceSink, TooSmall, Writer};

impl Frame<'_> {
    /// Its name on the wire.
    pub const fn frame_type(&self) -> &str {
        match self {
            Self::Challenge(_) => "challenge",
            Self::Connect(_) => "connect",
            Self::Event(_) => "event",
            Self::Goodbye(_) => "goodbye",
            Self::Hello(_) => "hello",
            Self::Interest(_) => "interest",
            Self::InterestWanted => "interest_wanted",
            Self::Opener(_) => "opener",
            Self::Ping(_) => "ping",
            Self::Pong(_) => "pong",
            Self::Progress(_) => "progress",
            Self::Publish(_) => "publish",
            Self::Published(_) => "published",
            Self::Refused(_) => "refused",
            Self::Skipped(_) => "skipped",
            Self::Subscribe(_) => "subscribe",
            Self::Subscribed(_) => "subscribed",
            Self::Unknown(name) => name,
            Self::Unsubscribe(_) => "unsubscribe",
        }
    }

    /// Appends the body. [`Frame::Unknown`] becomes a frame of that type without keys of its own.
    pub fn encode<S: Sink + ?Sized>(&self, out: &mut S) {
        let w = &mut Writer::new(out);
        match self {
            Self::Opener(frame) => {
                w.map(4).text("last").unsigned(frame.last.into());
                w.text("first").unsigned(frame.first.into());
                base(w, self.frame_type());
            }
            Self::Challenge(frame) => challenge(w, frame),
            Self::Connect(frame) => connect(w, frame),
            Self::Hello(Hello::Accepted(proof)) => {
                w.map(3).text("proof").bytes(*proof);
                base(w, self.frame_type());
            }
            Self::Hello(Hello::Refused(refusal)) => {
                w.map(3).text("refusal").text(refusal.text());
                base(w, self.frame_type());
            }
            Self::Subscribe(frame) => subscribe(w, frame),
            Self::Subscribed(frame) => {
                w.map(5).text("id").unsigned(frame.id);
                resume(w.text("resume"), frame.resume);
                version(w);
                position(w.text("position"), frame.position);
                frame_type(w, self.frame_type());
            }
            Self::Refused(frame) => {
                w.map(4 + usize::from(frame.limit.is_some()));
                w.text("id").unsigned(frame.id);
                optional(w, "limit", frame.limit);
                w.text("reason").text(frame.reason.text());
                base(w, self.frame_type());
            }
            Self::Unsubscribe(id) => {
                w.map(3).text("id").unsigned(*id);
                base(w, self.frame_type());
            }
            Self::Publish(frame) => {
                publish_entries(out, frame.id, frame.route);
                out.put(frame.publication);
            }
            Self::Published(frame) => published(w, frame),
            Self::Event(frame) => {
                event_entries(out, frame.id, frame.via, frame.offset);
                out.put(frame.publication);
            }
            Self::Progress(frame) => {
                w.map(5).text("id").unsigned(frame.id);
                w.text("offset").unsigned(frame.offset);
                version(w);
                w.text("behind_ms").unsigned(frame.behind_ms);
                frame_type(w, self.frame_type());
            }
            Self::Skipped(frame) => skipped(w, frame),
            Self::Ping(nonce) | Self::Pong(nonce) => {
                w.map(3).text("nonce").bytes(*nonce);
                base(w, self.frame_type());
            }
            Self::Goodbye(frame) => {
                w.map(4).text("detail").text(frame.detail);
                w.text("reason").text(frame.reason.text());
                base(w, self.frame_type());
            }
            Self::Interest(frame) => interest(w, frame),
            Self::InterestWanted | Self::Unknown(_) => {
                w.map(2);
                base(w, self.frame_type());
            }
        }
    }

    /// The length of the body.
    pub fn encoded_len(&self) -> usize {
        let mut counter = Counter::default();
        self.encode(&mut counter);
        counter.0
    }

    /// Appends the frame: length and body.
    #[cfg(feature = "alloc")]
    pub fn encode_framed(&self, out: &mut Vec<u8>) {
        let mark = crate::wire::frame::begin_frame(out);
        self.encode(out);
        crate::wire::frame::end_frame(out, mark);
    }

    /// Hands the frame, length and body, to any sink.
    pub fn encode_framed_to<S: Sink + ?Sized>(&self, out: &mut S) {
        out.put(&(self.encoded_len() as u32).to_be_bytes());
        self.encode(out);
    }

    /// Writes the frame, length and body, to the front of a slice and says how long it is.
    ///
    /// # Errors
    /// When the slice is too short; what it holds then is not to be used.
    pub fn encode_framed_slice(&self, out: &mut [u8]) -> Result<usize, TooSmall> {
        let mut sink = SliceSink::new(out);
        self.encode_framed_to(&mut sink);
        sink.finish()
    }
}

fn version<S: Sink + ?Sized>(w: &mut Writer<'_, S>) {
    w.text("version").unsigned(VERSION.into());
}

fn frame_type<S: Sink + ?Sized>(w: &mut Writer<'_, S>, name: &str) {
    w.text("frame_type").text(name);
}

/// `version` and `frame_type`, where nothing stands between them.
fn base<S: Sink + ?Sized>(w: &mut Writer<'_, S>, name: &str) {
    version(w);
    frame_type(w, name);
}

fn optional<S: Sink + ?Sized>(w: &mut Writer<'_, S>, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        w.text(key).unsigned(value);
    }
}

pub(in crate::wire) fn position<S: Sink + ?Sized>(w: &mut Writer<'_, S>, position: Position) {
    w.map(2).text("run").bytes(position.run.as_bytes());
    w.text("offset").unsigned(position.offset);
}

fn resume<S: Sink + ?Sized>(w: &mut Writer<'_, S>, resume: ResumeOutcome) {
    let code = match resume {
        ResumeOutcome::None => {
            w.map(1);
            ResumeCode::None
        }
        ResumeOutcome::Resumed { count } => {
            w.map(2).text("count").unsigned(count);
            ResumeCode::Resumed
        }
        ResumeOutcome::Expired { oldest } => {
            w.map(2).text("oldest").unsigned(oldest);
            ResumeCode::Expired
        }
    };
    w.text("outcome").text(code.text());
}

fn challenge<S: Sink + ?Sized>(w: &mut Writer<'_, S>, frame: &Challenge<'_>) {
    w.map(9).text("key").bytes(frame.key);
    w.text("mesh").bytes(frame.mesh);
    w.text("nonce").bytes(frame.nonce);
    w.text("profile").text(frame.profile);
    version(w);
    w.text("wall_ms").unsigned(frame.wall.as_millis());
    w.text("max_frame").unsigned(frame.max_frame.into());
    frame_type(w, "challenge");
    w.text("capabilities").unsigned(frame.capabilities);
}

fn connect<S: Sink + ?Sized>(w: &mut Writer<'_, S>, frame: &Connect<'_>) {
    w.map(9).text("key").bytes(frame.key);
    w.text("role").text(frame.role.text());
    w.text("nonce").bytes(frame.nonce);
    w.text("proof").bytes(frame.proof);
    w.text("profile").text(frame.profile);
    version(w);
    w.text("max_frame").unsigned(frame.max_frame.into());
    frame_type(w, "connect");
    w.text("capabilities").unsigned(frame.capabilities);
}

fn subscribe<S: Sink + ?Sized>(w: &mut Writer<'_, S>, frame: &Subscribe<'_>) {
    w.map(6 + usize::from(frame.resume.is_some()));
    w.text("id").unsigned(frame.id);
    w.text("realm").bytes(frame.realm.as_bytes());
    w.text("filter").text(frame.filter);
    if let Some(resume) = frame.resume {
        position(w.text("resume"), resume);
    }
    w.text("options").map(0);
    base(w, "subscribe");
}

fn published<S: Sink + ?Sized>(w: &mut Writer<'_, S>, frame: &Published) {
    let optionals = usize::from(frame.limit.is_some()) + usize::from(frame.reason.is_some());
    w.map(5 + optionals).text("id").unsigned(frame.id);
    optional(w, "limit", frame.limit);
    if let Some(reason) = frame.reason {
        w.text("reason").text(reason.text());
    }
    w.text("outcome").text(frame.outcome.text());
    base(w, "published");
    w.text("subscribers").unsigned(frame.subscribers);
}

fn skipped<S: Sink + ?Sized>(w: &mut Writer<'_, S>, frame: &Skipped) {
    w.map(7 + usize::from(frame.peer.is_some()));
    w.text("id").unsigned(frame.id);
    w.text("to").unsigned(frame.to);
    w.text("from").unsigned(frame.from);
    if let Some(peer) = frame.peer {
        w.text("peer").bytes(peer.as_bytes());
    }
    w.text("count").unsigned(frame.count);
    w.text("reason").text(frame.reason.text());
    base(w, "skipped");
}

fn interest<S: Sink + ?Sized>(w: &mut Writer<'_, S>, frame: &Interest<'_>) {
    w.map(6);
    entries(w.text("add"), frame.add);
    entries(w.text("remove"), frame.remove);
    base(w, "interest");
    w.text("to_version").unsigned(frame.to_version);
    w.text("from_version").unsigned(frame.from_version);
}

fn entries<S: Sink + ?Sized>(w: &mut Writer<'_, S>, entries: InterestEntries<'_>) {
    w.array(entries.count_left());
    for entry in entries {
        entry.encode(w);
    }
}

/// Everything of an `event` before its publication. A station writes one for every link and publication, so all but the numbers is encoded
/// here, once.
pub(in crate::wire) fn event_entries<S: Sink + ?Sized>(
    out: &mut S,
    id: u64,
    via: Via,
    offset: u64,
) {
    event_id(out, id);
    event_rest(out, via, offset);
}

/// What differs from link to link.
#[inline]
pub(in crate::wire) fn event_id<S: Sink + ?Sized>(out: &mut S, id: u64) {
    out.put(b"\xa6\x62id");
    Writer::new(out).unsigned(id);
}

/// What is the same for all links.
pub(in crate::wire) fn event_rest<S: Sink + ?Sized>(out: &mut S, via: Via, offset: u64) {
    match via {
        Via::Direct => out.put(b"\x63via\x66direct\x66offset"),
        Via::Mesh => out.put(b"\x63via\x64mesh\x66offset"),
    }
    Writer::new(out).unsigned(offset);
    out.put(b"\x67version\x01\x6aframe_type\x65event\x6bpublication");
}

// What stands in the text above.
const _: () = assert!(VERSION == 1);

/// Everything of a `publish` before its publication.
pub(in crate::wire) fn publish_entries<S: Sink + ?Sized>(out: &mut S, id: u64, route: Route) {
    let w = &mut Writer::new(out);
    w.map(5).text("id").unsigned(id);
    w.text("route").text(route.text());
    base(w, "publish");
    w.text("publication");
}
