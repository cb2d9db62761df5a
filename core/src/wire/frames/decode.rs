//! Bodies into frames, in the order of WIRE.md section 3.
//!
//! Decides: the first reason a body is refused for. Leaves to others: objects inside. Believes: no clock. Bounded by: three passes over
//! the top map, the first of them over everything.

use super::{
    Challenge, Connect, Event, Frame, Goodbye, Hello, Interest, InterestEntries, Opener, Phase,
    Progress, Publish, Published, Refused, Skipped, Subscribe, Subscribed, VERSION, Via,
};
use crate::NodeId;
use crate::RealmId;
use crate::code::{OutcomeCode, SkipReason};
use crate::error::LinkError;
use crate::wire::cbor::{self, Entries, Reader, Strict, Value};
use crate::wire::fields::{self as read, fields};
use crate::wire::object::Object;
use crate::wire::publication::NUMBER_LIMIT;

impl<'a> Frame<'a> {
    /// Reads a body as the frame it is. A type this version does not know is [`Frame::Unknown`] once the handshake is over.
    ///
    /// # Errors
    /// The first rule the body breaks, in WIRE.md's order. Faults inside a `publication` are not judged here.
    pub fn decode(body: &'a [u8], phase: Phase) -> Result<Self, LinkError> {
        if phase == Phase::Established
            && let Some((event, _)) = plain_event(body)
        {
            return Ok(Self::Event(event));
        }
        Self::judged(body, phase)
    }

    /// Rule by rule, for the first that is broken.
    pub(super) fn judged(body: &'a [u8], phase: Phase) -> Result<Self, LinkError> {
        cbor::check(body, false)?;
        let Some(entries) = Reader::new(body).entries() else {
            return Err(LinkError::NotAMap);
        };
        let (mut frame_type, mut version) = (None, None);
        let mut reader = Reader::new(body);
        for _ in 0..reader.map().unwrap_or(0) {
            match reader.key() {
                Some(b"frame_type") => frame_type = reader.value().and_then(Value::text),
                Some(b"version") => version = reader.value(),
                Some(_) => {
                    reader.skip();
                }
                None => return Err(LinkError::BadField),
            }
        }
        let frame_type = frame_type.ok_or(LinkError::NoFrameType)?;
        if version.ok_or(LinkError::MissingField)? != Value::Unsigned(u64::from(VERSION)) {
            return Err(LinkError::BadVersion);
        }
        match phase {
            Phase::Established => established(frame_type, entries),
            Phase::Opener if frame_type == "opener" => opener(entries),
            Phase::Challenge if frame_type == "challenge" => challenge(entries),
            Phase::Connect if frame_type == "connect" => connect(entries),
            Phase::Hello if frame_type == "hello" => hello(entries),
            Phase::Challenge if frame_type == "hello" => match hello(entries)? {
                refusal @ Self::Hello(Hello::Refused(_)) => Ok(refusal),
                _ => Err(LinkError::UnexpectedFrame),
            },
            _ => Err(LinkError::UnexpectedFrame),
        }
    }
}

/// An event that keeps every rule, read at one go, and its publication taken apart, whose key and signature have the usual sizes; what is not one
/// is judged rule by rule. Three byte strings under three names are all there can be in a publication, so its outer map needs no other look.
#[inline(always)]
pub(crate) fn plain_event(body: &[u8]) -> Option<(Event<'_>, Object<'_>)> {
    let mut r = Strict::new(body);
    let id = r.after(b"\xa6\x62id")?.number(NUMBER_LIMIT)?;
    let via = if r.passes(b"\x63via\x66direct\x66offset") {
        Via::Direct
    } else {
        r.passes(b"\x63via\x64mesh\x66offset")
            .then_some(Via::Mesh)?
    };
    let offset = r.number(NUMBER_LIMIT)?;
    const FRONT: &[u8] = b"\x67version\x01\x6aframe_type\x65event\x6bpublication";
    const BOTH: [u8; FRONT.len() + Object::FRONT.len()] = joined(FRONT, Object::FRONT);
    // Known to be there at once, what follows need not be looked for.
    if r.rest().len() < FRONT.len() + Object::SHORTEST {
        return None;
    }
    let object = r.rest().get(FRONT.len()..)?;
    // In two parts: one that is longer would be compared by a call.
    let (long, short) = BOTH.split_at(32);
    let key_on = r.after(long)?.after(short)?.rest();
    let object = Object::behind_front(object, key_on)?;
    if id == 0 {
        return None;
    }
    let event = Event {
        id,
        via,
        offset,
        publication: object.bytes,
    };
    Some((event, object))
}

/// One constant behind the other.
const fn joined<const N: usize>(one: &[u8], other: &[u8]) -> [u8; N] {
    let mut both = [0; N];
    let (first, second) = both.split_at_mut(one.len());
    first.copy_from_slice(one);
    second.copy_from_slice(other);
    both
}

fn established<'a>(frame_type: &'a str, entries: Entries<'a>) -> Result<Frame<'a>, LinkError> {
    match frame_type {
        "event" => event(entries),
        "goodbye" => goodbye(entries),
        "interest" => interest(entries),
        "interest_wanted" => {
            fields!(entries;);
            Ok(Frame::InterestWanted)
        }
        "ping" => nonce(entries).map(Frame::Ping),
        "pong" => nonce(entries).map(Frame::Pong),
        "progress" => progress(entries),
        "publish" => publish(entries),
        "published" => published(entries),
        "refused" => refused(entries),
        "skipped" => skipped(entries),
        "subscribe" => subscribe(entries),
        "subscribed" => subscribed(entries),
        "unsubscribe" => {
            fields!(entries; id: b"id" => read::id);
            Ok(Frame::Unsubscribe(need(id)?))
        }
        "opener" | "challenge" | "connect" | "hello" => Err(LinkError::UnexpectedFrame),
        unknown => Ok(Frame::Unknown(unknown)),
    }
}

fn need<T>(field: Option<T>) -> Result<T, LinkError> {
    field.ok_or(LinkError::MissingField)
}

fn tied(holds: bool) -> Result<(), LinkError> {
    if holds {
        Ok(())
    } else {
        Err(LinkError::BadField)
    }
}

fn opener(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        last: b"last" => read::version_number,
        first: b"first" => read::version_number,
    );
    let (last, first) = (need(last)?, need(first)?);
    tied(first <= last)?;
    Ok(Frame::Opener(Opener { first, last }))
}

fn challenge(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        key: b"key" => read::bytes,
        mesh: b"mesh" => read::bytes,
        nonce: b"nonce" => read::bytes,
        profile: b"profile" => read::text,
        wall: b"wall_ms" => read::wall,
        max_frame: b"max_frame" => read::max_frame,
        capabilities: b"capabilities" => read::uint,
    );
    Ok(Frame::Challenge(Challenge {
        key: need(key)?,
        mesh: need(mesh)?,
        nonce: need(nonce)?,
        profile: need(profile)?,
        wall: need(wall)?,
        max_frame: need(max_frame)?,
        capabilities: need(capabilities)?,
    }))
}

fn connect(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        key: b"key" => read::bytes,
        role: b"role" => read::role,
        nonce: b"nonce" => read::bytes,
        proof: b"proof" => read::bytes,
        profile: b"profile" => read::text,
        max_frame: b"max_frame" => read::max_frame,
        capabilities: b"capabilities" => read::uint,
    );
    Ok(Frame::Connect(Connect {
        key: need(key)?,
        role: need(role)?,
        nonce: need(nonce)?,
        proof: need(proof)?,
        profile: need(profile)?,
        max_frame: need(max_frame)?,
        capabilities: need(capabilities)?,
    }))
}

fn hello(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        proof: b"proof" => read::bytes,
        refusal: b"refusal" => read::handshake_refusal,
    );
    match (proof, refusal) {
        (Some(proof), None) => Ok(Frame::Hello(Hello::Accepted(proof))),
        (None, Some(refusal)) => Ok(Frame::Hello(Hello::Refused(refusal))),
        _ => Err(LinkError::BadField),
    }
}

fn subscribe(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        realm: b"realm" => read::bytes,
        filter: b"filter" => read::text,
        resume: b"resume" => read::position,
        options: b"options" => read::empty_map,
    );
    let frame = Subscribe {
        id: need(id)?,
        realm: RealmId::new(*need(realm)?),
        filter: need(filter)?,
        resume,
    };
    need(options)?;
    Ok(Frame::Subscribe(frame))
}

fn subscribed(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        resume: b"resume" => read::resume,
        position: b"position" => read::position,
    );
    Ok(Frame::Subscribed(Subscribed {
        id: need(id)?,
        resume: need(resume)?,
        position: need(position)?,
    }))
}

fn refused(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        limit: b"limit" => read::uint,
        reason: b"reason" => read::subscribe_refusal,
    );
    Ok(Frame::Refused(Refused {
        id: need(id)?,
        limit,
        reason: need(reason)?,
    }))
}

fn publish(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        route: b"route" => read::route,
        publication: b"publication" => read::object,
    );
    Ok(Frame::Publish(Publish {
        id: need(id)?,
        route: need(route)?,
        publication: need(publication)?,
    }))
}

fn published(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        limit: b"limit" => read::uint,
        reason: b"reason" => read::publish_refusal,
        outcome: b"outcome" => read::outcome,
        subscribers: b"subscribers" => read::uint,
    );
    let frame = Published {
        id: need(id)?,
        limit,
        reason,
        outcome: need(outcome)?,
        subscribers: need(subscribers)?,
    };
    tied(reason.is_some() == (frame.outcome == OutcomeCode::Refused))?;
    tied(limit.is_none() || reason.is_some())?;
    tied(frame.subscribers == 0 || frame.outcome == OutcomeCode::Routed)?;
    Ok(Frame::Published(frame))
}

fn event(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        via: b"via" => read::via,
        offset: b"offset" => read::uint,
        publication: b"publication" => read::object,
    );
    Ok(Frame::Event(Event {
        id: need(id)?,
        via: need(via)?,
        offset: need(offset)?,
        publication: need(publication)?,
    }))
}

fn progress(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        offset: b"offset" => read::uint,
        behind_ms: b"behind_ms" => read::uint,
    );
    Ok(Frame::Progress(Progress {
        id: need(id)?,
        offset: need(offset)?,
        behind_ms: need(behind_ms)?,
    }))
}

fn skipped(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        id: b"id" => read::id,
        to: b"to" => read::uint,
        from: b"from" => read::uint,
        peer: b"peer" => read::bytes,
        count: b"count" => read::uint,
        reason: b"reason" => read::skip_reason,
    );
    let frame = Skipped {
        id: need(id)?,
        to: need(to)?,
        from: need(from)?,
        peer: peer.map(|peer| NodeId::new(*peer)),
        count: need(count)?,
        reason: need(reason)?,
    };
    tied(frame.from >= frame.to)?;
    tied(peer.is_some() == (frame.reason == SkipReason::PeerInterrupted))?;
    Ok(Frame::Skipped(frame))
}

fn nonce(entries: Entries<'_>) -> Result<&[u8; 16], LinkError> {
    fields!(entries; nonce: b"nonce" => read::bytes);
    need(nonce)
}

fn goodbye(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        detail: b"detail" => read::detail,
        reason: b"reason" => read::close_reason,
    );
    Ok(Frame::Goodbye(Goodbye {
        detail: need(detail)?,
        reason: need(reason)?,
    }))
}

fn interest(entries: Entries<'_>) -> Result<Frame<'_>, LinkError> {
    fields!(entries;
        add: b"add" => InterestEntries::read,
        remove: b"remove" => InterestEntries::read,
        to_version: b"to_version" => read::uint,
        from_version: b"from_version" => read::uint,
    );
    Ok(Frame::Interest(Interest {
        add: need(add)?,
        remove: need(remove)?,
        to_version: need(to_version)?,
        from_version: need(from_version)?,
    }))
}
