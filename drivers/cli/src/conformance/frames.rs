//! Frames: what comes off a stream, and what each body is.
//!
//! Decides: nothing. Leaves to others: the checks, the core's. Believes: no clock. Bounded by: the entry.
//!
//! What is accepted is also written again, which must give the same bytes.

use serde_json::{Value, json};
use tidings::wire::{
    Frame, HANDSHAKE_CAP, Hello, InterestEntries, InterestEntry, Object, Phase, Position,
    ResumeOutcome, Split, next_frame,
};

use super::{Broken, Judged, bytes_of, hex, refuse, text};

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    let bytes = bytes_of(entry, "hex")?;
    if text(entry, "kind")? == "stream" {
        let announced = entry["max_frame"]
            .as_u64()
            .and_then(|cap| u32::try_from(cap).ok());
        let ended = entry["handshake_ended"]
            .as_bool()
            .ok_or("does not say whether the handshake has ended")?;
        let announced = announced.ok_or("has no max_frame")?;
        return Ok(stream(
            &bytes,
            if ended { announced } else { HANDSHAKE_CAP },
        ));
    }
    let phase = match text(entry, "phase")? {
        "open" => Phase::Established,
        "opener" => Phase::Opener,
        "challenge" | "challenge|hello" => Phase::Challenge,
        "connect" => Phase::Connect,
        "hello" => Phase::Hello,
        other => return Err(format!("has the unknown phase {other}")),
    };
    let frame = match Frame::decode(&bytes, phase) {
        Ok(Frame::Unknown(kind)) => return Ok(Ok(json!({ "frame_type": kind, "known": false }))),
        Ok(frame) => frame,
        Err(error) => return Ok(Err(refuse(error.text()))),
    };
    let mut again = Vec::new();
    frame.encode(&mut again);
    if again != bytes {
        return Err(format!("is written again as {}", hex(&again)));
    }
    Ok(Ok(
        json!({ "frame_type": frame.frame_type(), "known": true, "fields": fields(&frame)? }),
    ))
}

fn stream(bytes: &[u8], cap: u32) -> Judged {
    let (mut rest, mut frames) = (bytes, Vec::new());
    loop {
        match next_frame(rest, cap) {
            Ok(Split::Frame { body, taken }) => {
                frames.push(hex(body));
                rest = &rest[taken..];
            }
            Ok(Split::More(_)) => return Ok(json!({ "frames": frames, "left": rest.len() })),
            Err(_) => return Err(refuse("frame_too_large")),
        }
    }
}

fn fields(frame: &Frame<'_>) -> Result<Value, Broken> {
    let mut out = json!({});
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            out[key] = value;
        }
    };
    match frame {
        Frame::Opener(opener) => {
            put("first", opener.first.into());
            put("last", opener.last.into());
        }
        Frame::Challenge(challenge) => {
            put("key", hex(challenge.key).into());
            put("mesh", hex(challenge.mesh).into());
            put("nonce", hex(challenge.nonce).into());
            put("profile", challenge.profile.into());
            put("wall_ms", challenge.wall.as_millis().into());
            put("max_frame", challenge.max_frame.into());
            put("capabilities", challenge.capabilities.into());
        }
        Frame::Connect(connect) => {
            put("key", hex(connect.key).into());
            put("role", connect.role.text().into());
            put("nonce", hex(connect.nonce).into());
            put("proof", hex(connect.proof).into());
            put("profile", connect.profile.into());
            put("max_frame", connect.max_frame.into());
            put("capabilities", connect.capabilities.into());
        }
        Frame::Hello(Hello::Accepted(proof)) => put("proof", hex(*proof).into()),
        Frame::Hello(Hello::Refused(refusal)) => put("refusal", refusal.text().into()),
        Frame::Subscribe(subscribe) => {
            put("id", subscribe.id.into());
            put("realm", subscribe.realm.to_string().into());
            put("filter", subscribe.filter.into());
            put("resume", subscribe.resume.map_or(Value::Null, position));
            put("options", json!({}));
        }
        Frame::Subscribed(subscribed) => {
            put("id", subscribed.id.into());
            put("resume", resume(subscribed.resume)?);
            put("position", position(subscribed.position));
        }
        Frame::Refused(refused) => {
            put("id", refused.id.into());
            put("limit", refused.limit.into());
            put("reason", refused.reason.text().into());
        }
        Frame::Unsubscribe(id) => put("id", (*id).into()),
        Frame::Publish(publish) => {
            put("id", publish.id.into());
            put("route", publish.route.text().into());
            put("publication", object(publish.publication));
        }
        Frame::Published(published) => {
            put("id", published.id.into());
            put("limit", published.limit.into());
            put(
                "reason",
                published.reason.map(|reason| reason.text()).into(),
            );
            put("outcome", published.outcome.text().into());
            put("subscribers", published.subscribers.into());
        }
        Frame::Event(event) => {
            put("id", event.id.into());
            put("via", event.via.text().into());
            put("offset", event.offset.into());
            put("publication", object(event.publication));
        }
        Frame::Progress(progress) => {
            put("id", progress.id.into());
            put("offset", progress.offset.into());
            put("behind_ms", progress.behind_ms.into());
        }
        Frame::Skipped(skipped) => {
            put("id", skipped.id.into());
            put("to", skipped.to.into());
            put("from", skipped.from.into());
            put("peer", skipped.peer.map(|peer| peer.to_string()).into());
            put("count", skipped.count.into());
            put("reason", skipped.reason.text().into());
        }
        Frame::Ping(nonce) | Frame::Pong(nonce) => put("nonce", hex(*nonce).into()),
        Frame::Goodbye(goodbye) => {
            put("detail", goodbye.detail.into());
            put("reason", goodbye.reason.text().into());
        }
        Frame::Interest(interest) => {
            put("add", entries(interest.add)?);
            put("remove", entries(interest.remove)?);
            put("to_version", interest.to_version.into());
            put("from_version", interest.from_version.into());
        }
        Frame::InterestWanted => {}
        _ => return Err("is a frame this runner does not know".to_owned()),
    }
    Ok(out)
}

fn position(position: Position) -> Value {
    json!({ "run": position.run.to_string(), "offset": position.offset })
}

fn resume(resume: ResumeOutcome) -> Result<Value, Broken> {
    Ok(match resume {
        ResumeOutcome::None => json!({ "outcome": "none" }),
        ResumeOutcome::Resumed { count } => json!({ "outcome": "resumed", "count": count }),
        ResumeOutcome::Expired { oldest } => json!({ "outcome": "expired", "oldest": oldest }),
        _ => return Err("is a resume this runner does not know".to_owned()),
    })
}

fn entries(entries: InterestEntries<'_>) -> Result<Value, Broken> {
    let shown = entries.map(|entry| match entry {
        InterestEntry::Topic(hash) => Ok(Value::from(hex(&hash))),
        InterestEntry::Filter { realm, filter } => {
            Ok(json!({ "realm": realm.to_string(), "filter": filter }))
        }
        _ => Err("is an interest this runner does not know".to_owned()),
    });
    shown.collect()
}

fn object(bytes: &[u8]) -> Value {
    match Object::parse(bytes) {
        Ok(object) => {
            json!({ "key": hex(object.key), "tbs": hex(object.tbs), "signature": hex(object.signature) })
        }
        Err(_) => "malformed".into(),
    }
}
