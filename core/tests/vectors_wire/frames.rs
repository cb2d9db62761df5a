//! Bodies and streams of frames: verdicts, every field, and the way back to the same bytes.

use serde_json::{Value as Json, json};
use tidings::LinkError;
use tidings::wire::object::Object;
use tidings::wire::{
    Frame, HANDSHAKE_CAP, Hello, InterestEntries, InterestEntry, Phase, Position, ResumeOutcome,
    Split, next_frame,
};

use crate::{Verdict, bytes_of, refuse, run, text, to_hex};

#[test]
fn frames() {
    run("frames", |entry| match text(entry, "kind") {
        "stream" => stream(entry),
        _ => body(entry),
    });
}

fn stream(entry: &Json) -> Verdict {
    let bytes = bytes_of(entry, "hex");
    let cap = match entry["handshake_ended"].as_bool().unwrap() {
        true => entry["max_frame"].as_u64().unwrap() as u32,
        false => HANDSHAKE_CAP,
    };
    let (mut rest, mut frames) = (bytes.as_slice(), Vec::new());
    loop {
        match next_frame(rest, cap) {
            Ok(Split::Frame { body, taken }) => {
                frames.push(json!(to_hex(body)));
                rest = &rest[taken..];
            }
            Ok(Split::More(more)) => {
                assert!(more > 0);
                return Ok(json!({ "frames": frames, "left": rest.len() }));
            }
            Err(fault) => return refuse(LinkError::from(fault).text()),
        }
    }
}

fn body(entry: &Json) -> Verdict {
    let body = bytes_of(entry, "hex");
    let phase = match text(entry, "phase") {
        "open" => Phase::Established,
        "opener" => Phase::Opener,
        "challenge" | "challenge|hello" => Phase::Challenge,
        "connect" => Phase::Connect,
        "hello" => Phase::Hello,
        other => panic!("{other}"),
    };
    let frame = match Frame::decode(&body, phase) {
        // A dialler takes a refusal in place of the challenge; this entry asks about the challenge alone.
        Ok(Frame::Hello(_)) if text(entry, "phase") == "challenge" => {
            return refuse("unexpected_frame");
        }
        Ok(frame) => frame,
        Err(error) => return refuse(error.text()),
    };
    if let Frame::Unknown(frame_type) = frame {
        return Ok(json!({ "frame_type": frame_type, "known": false }));
    }
    let mut written = Vec::new();
    frame.encode(&mut written);
    assert_eq!(to_hex(&written), to_hex(&body), "{}", entry["name"]);
    assert_eq!(frame.encoded_len(), body.len());
    Ok(json!({ "frame_type": frame.frame_type(), "known": true, "fields": fields(&frame) }))
}

pub(crate) fn position(position: Position) -> Json {
    json!({ "run": position.run.to_string(), "offset": position.offset })
}

fn publication(bytes: &[u8]) -> Json {
    match Object::parse(bytes) {
        Ok(object) => json!({
            "key": to_hex(object.key),
            "tbs": to_hex(object.tbs),
            "signature": to_hex(object.signature),
        }),
        Err(_) => json!("malformed"),
    }
}

fn interests(entries: InterestEntries<'_>) -> Json {
    entries
        .map(|entry| match entry {
            InterestEntry::Topic(hash) => json!(to_hex(&hash)),
            InterestEntry::Filter { realm, filter } => {
                json!({ "realm": realm.to_string(), "filter": filter })
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

fn with(mut fields: Json, key: &str, value: Option<impl Into<Json>>) -> Json {
    if let Some(value) = value {
        fields[key] = value.into();
    }
    fields
}

fn fields(frame: &Frame<'_>) -> Json {
    match frame {
        Frame::Opener(frame) => json!({ "first": frame.first, "last": frame.last }),
        Frame::Challenge(frame) => json!({
            "key": to_hex(frame.key), "mesh": to_hex(frame.mesh), "nonce": to_hex(frame.nonce),
            "profile": frame.profile, "wall_ms": frame.wall.as_millis(),
            "max_frame": frame.max_frame, "capabilities": frame.capabilities,
        }),
        Frame::Connect(frame) => json!({
            "key": to_hex(frame.key), "role": frame.role.text(), "nonce": to_hex(frame.nonce),
            "proof": to_hex(frame.proof), "profile": frame.profile,
            "max_frame": frame.max_frame, "capabilities": frame.capabilities,
        }),
        Frame::Hello(Hello::Accepted(proof)) => json!({ "proof": to_hex(*proof) }),
        Frame::Hello(Hello::Refused(refusal)) => json!({ "refusal": refusal.text() }),
        Frame::Subscribe(frame) => with(
            json!({
                "id": frame.id, "realm": frame.realm.to_string(), "filter": frame.filter,
                "options": {},
            }),
            "resume",
            frame.resume.map(position),
        ),
        Frame::Subscribed(frame) => json!({
            "id": frame.id,
            "position": position(frame.position),
            "resume": match frame.resume {
                ResumeOutcome::Resumed { count } => json!({ "outcome": "resumed", "count": count }),
                ResumeOutcome::Expired { oldest } => {
                    json!({ "outcome": "expired", "oldest": oldest })
                }
                _ => json!({ "outcome": "none" }),
            },
        }),
        Frame::Refused(frame) => with(
            json!({ "id": frame.id, "reason": frame.reason.text() }),
            "limit",
            frame.limit,
        ),
        Frame::Unsubscribe(id) => json!({ "id": id }),
        Frame::Publish(frame) => json!({
            "id": frame.id, "route": frame.route.text(),
            "publication": publication(frame.publication),
        }),
        Frame::Published(frame) => with(
            with(
                json!({
                    "id": frame.id, "outcome": frame.outcome.text(),
                    "subscribers": frame.subscribers,
                }),
                "limit",
                frame.limit,
            ),
            "reason",
            frame.reason.map(|reason| reason.text()),
        ),
        Frame::Event(frame) => json!({
            "id": frame.id, "via": frame.via.text(), "offset": frame.offset,
            "publication": publication(frame.publication),
        }),
        Frame::Progress(frame) => json!({
            "id": frame.id, "offset": frame.offset, "behind_ms": frame.behind_ms,
        }),
        Frame::Skipped(frame) => with(
            json!({
                "id": frame.id, "to": frame.to, "from": frame.from, "count": frame.count,
                "reason": frame.reason.text(),
            }),
            "peer",
            frame.peer.map(|peer| peer.to_string()),
        ),
        Frame::Ping(nonce) | Frame::Pong(nonce) => json!({ "nonce": to_hex(*nonce) }),
        Frame::Goodbye(frame) => json!({ "detail": frame.detail, "reason": frame.reason.text() }),
        Frame::Interest(frame) => json!({
            "add": interests(frame.add), "remove": interests(frame.remove),
            "to_version": frame.to_version, "from_version": frame.from_version,
        }),
        Frame::InterestWanted => json!({}),
        other => panic!("{other:?}"),
    }
}
