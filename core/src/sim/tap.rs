//! What passes on a cable, in a few words per frame.
//!
//! Decides: what of a frame matters to whoever watches. Leaves to others: what follows from it. Believes: nothing; it reads the wire's own
//! decoder. Bounded by: one record per frame under way.

use super::plan::Topics;
use super::secrets::plain_of;
use crate::code::{CloseReason, OutcomeCode, PublishRefusal, SkipReason, SubscribeRefusal};
use crate::crypto::Profile;
use crate::wire::{Body, Frame, Phase, Publication, ResumeOutcome};
use crate::{Instant, WallMs};

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Event {
        id: u64,
        fact: Fact,
        offset: u64,
    },
    Goodbye(CloseReason),
    Handshake,
    Other,
    Ping([u8; 16]),
    Pong([u8; 16]),
    Progress {
        id: u64,
        offset: u64,
        behind_ms: u64,
    },
    Publish {
        id: u64,
        fact: Fact,
    },
    Published {
        id: u64,
        outcome: OutcomeCode,
        subscribers: u64,
        reason: Option<PublishRefusal>,
    },
    Refused {
        id: u64,
        reason: SubscribeRefusal,
    },
    Skipped {
        id: u64,
        from: u64,
        to: u64,
        count: u64,
        reason: SkipReason,
    },
    Subscribe {
        id: u64,
        filter: u8,
        resume: bool,
    },
    Subscribed {
        id: u64,
        resume: ResumeOutcome,
        offset: u64,
    },
    Unsubscribe {
        id: u64,
    },
}

/// A publication as it is seen on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// Which publication of the run, as its payload says.
    pub(super) number: u32,
    pub(super) epoch: u64,
    pub(super) seq: u64,
    pub(super) published_at: WallMs,
    pub(super) expires_at: WallMs,
}

/// A frame under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The count of bytes of its pipe at its end.
    pub(super) end: u64,
    pub(super) written: Instant,
    pub(super) note: Note,
}

/// The number a payload carries: a byte string that begins with it.
pub(super) fn number_of(payload: &[u8]) -> Option<u32> {
    let skip = match payload.first()? {
        0x40..=0x57 => 1,
        0x58 => 2,
        _ => 3,
    };
    let bytes = payload.get(skip..skip + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// A payload of `size` bytes, 4 at least, that carries a number.
pub(super) fn payload_of(number: u32, size: usize) -> alloc::vec::Vec<u8> {
    let size = size.clamp(4, 60_000);
    let mut payload = alloc::vec::Vec::with_capacity(size + 3);
    match size {
        0..=23 => payload.push(0x40 | size as u8),
        24..=255 => payload.extend_from_slice(&[0x58, size as u8]),
        _ => {
            payload.push(0x59);
            payload.extend_from_slice(&(size as u16).to_be_bytes());
        }
    }
    payload.extend_from_slice(&number.to_be_bytes());
    payload.resize(payload.len() + size - 4, 0xa5);
    payload
}

/// Reads a frame's body.
pub(super) fn note_of(body: &[u8], profile: Profile, topics: &Topics) -> Note {
    let Ok(frame) = Frame::decode(body, Phase::Established) else {
        return Note::Handshake;
    };
    match frame {
        Frame::Event(event) => match fact_of(event.publication, profile) {
            Some(fact) => Note::Event {
                id: event.id,
                fact,
                offset: event.offset,
            },
            None => Note::Other,
        },
        Frame::Goodbye(goodbye) => Note::Goodbye(goodbye.reason),
        Frame::Ping(nonce) => Note::Ping(*nonce),
        Frame::Pong(nonce) => Note::Pong(*nonce),
        Frame::Progress(p) => Note::Progress {
            id: p.id,
            offset: p.offset,
            behind_ms: p.behind_ms,
        },
        Frame::Publish(publish) => match fact_of(publish.publication, profile) {
            Some(fact) => Note::Publish {
                id: publish.id,
                fact,
            },
            None => Note::Other,
        },
        Frame::Published(p) => Note::Published {
            id: p.id,
            outcome: p.outcome,
            subscribers: p.subscribers,
            reason: p.reason,
        },
        Frame::Refused(r) => Note::Refused {
            id: r.id,
            reason: r.reason,
        },
        Frame::Skipped(s) => Note::Skipped {
            id: s.id,
            from: s.from,
            to: s.to,
            count: s.count,
            reason: s.reason,
        },
        Frame::Subscribe(s) => Note::Subscribe {
            id: s.id,
            filter: topics.filter_number(s.filter),
            resume: s.resume.is_some(),
        },
        Frame::Subscribed(s) => Note::Subscribed {
            id: s.id,
            resume: s.resume,
            offset: s.position.offset,
        },
        Frame::Unsubscribe(id) => Note::Unsubscribe { id },
        _ => Note::Other,
    }
}

fn fact_of(object: &[u8], profile: Profile) -> Option<Fact> {
    let publication = Publication::parse(object, profile).ok()?;
    // What a publisher announces of itself has a topic of its own.
    if !publication.topic.starts_with("sim/") {
        return None;
    }
    let number = match publication.body {
        Body::Payload(payload) => number_of(payload)?,
        _ => number_of(&plain_of(&publication)?)?,
    };
    Some(Fact {
        number,
        epoch: publication.epoch?,
        seq: publication.seq,
        published_at: publication.published_at,
        expires_at: publication.expires_at(),
    })
}
