//! Handshakes, as one side sees them: the core's link is given the other side's frames.
//!
//! Decides: the decisions a link leaves to its owner (full, draining, not a peer). Leaves to others: the checks, the core's.
//! Believes: the entry's wall time. Bounded by: four frames.

use serde_json::{Map, Value, json};
use tidings::code::HandshakeRefusal;
use tidings::crypto::{Profile, PublicKey, SignError, Signer};
use tidings::link::{Binding, Link, LinkSettings, Step};
use tidings::wire::{Challenge, Connect, Frame, Phase, Role};
use tidings::{Instant, LinkError, NodeId, Now, WallMs};

use super::{Broken, Judged, array_of, bytes_of, hex, refuse_with, text};

/// Signs with the proof the vector's own side sent: what is verified is the other side.
struct Sent {
    key: [u8; 32],
    proof: [u8; 64],
}

impl Signer for Sent {
    fn profile(&self) -> Profile {
        Profile::ED25519
    }

    fn public_key(&self) -> [u8; 32] {
        self.key
    }

    fn sign(&self, _: &[&[u8]]) -> Result<[u8; 64], SignError> {
        Ok(self.proof)
    }
}

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    let local = &entry["local"];
    let exporter = array_of(local, "binding")?;
    let binding = match local.get("proved") {
        None => Binding::Exporter(exporter),
        Some(_) => Binding::Proved {
            exporter,
            peer: NodeId::new(array_of(local, "proved")?),
        },
    };
    match text(entry, "checks")? {
        "dialler" => dialler(entry, binding),
        _ => answerer(entry, binding),
    }
}

fn refused(error: LinkError, at: &str) -> Map<String, Value> {
    match error {
        LinkError::RefusedByStation(refusal) => {
            refuse_with(error.text(), &[("at", at), ("refusal", refusal.text())])
        }
        error => refuse_with(error.text(), &[("at", at)]),
    }
}

fn told(error: LinkError, at: &str) -> Map<String, Value> {
    refuse_with(
        error.text(),
        &[("at", at), ("told", error.refusal().text())],
    )
}

/// Whether the other side's proof signs exactly what the vector says.
fn signs(key: &[u8; 32], signed: &Value, proof: &[u8; 64]) -> Result<bool, Broken> {
    let signed = super::unhex(signed.as_str().ok_or("does not say what is signed")?)?;
    Ok(PublicKey::decode(Profile::ED25519, key)
        .is_ok_and(|key| key.verify_parts(&[&signed], proof)))
}

fn connect_of(bytes: &[u8]) -> Result<Connect<'_>, Broken> {
    match Frame::decode(bytes, Phase::Connect) {
        Ok(Frame::Connect(connect)) => Ok(connect),
        _ => Err("has a connect of its own side that is none".to_owned()),
    }
}

fn challenge_of(bytes: &[u8]) -> Result<Challenge<'_>, Broken> {
    match Frame::decode(bytes, Phase::Challenge) {
        Ok(Frame::Challenge(challenge)) => Ok(challenge),
        _ => Err("has a challenge of its own side that is none".to_owned()),
    }
}

/// What the link has to send, without its length.
fn sent(link: &mut Link) -> Vec<u8> {
    let mut out = Vec::new();
    link.poll_transmit(&mut out);
    out.split_off(out.len().min(4))
}

fn dialler(entry: &Value, binding: Binding) -> Result<Judged, Broken> {
    let (connect, now) = (bytes_of(entry, "connect")?, Now::default());
    let own = connect_of(&connect)?;
    let named = match &entry["local"]["named"] {
        Value::Null => None,
        named => Some(
            named
                .as_str()
                .and_then(|id| id.parse::<NodeId>().ok())
                .ok_or("names what is no id")?,
        ),
    };
    let settings = LinkSettings {
        capabilities: own.capabilities,
        max_frame: own.max_frame,
        ..LinkSettings::new(Profile::ED25519, *own.key, own.role)
    };
    let signer = Sent {
        key: *own.key,
        proof: *own.proof,
    };
    let mut link = Link::dial(now.mono, settings, named, binding, *own.nonce)
        .map_err(|error| error.to_string())?;
    let opener = bytes_of(entry, "opener")?;
    if sent(&mut link) != opener {
        return another_opener(entry);
    }
    if let Err(error) = link.handle_frame(now, &bytes_of(entry, "challenge")?, &signer) {
        return Ok(Err(refused(error, "challenge")));
    }
    if sent(&mut link) != connect {
        return Err("sends another connect".to_owned());
    }
    let hello = bytes_of(entry, "hello")?;
    let peer = match link.handle_frame(now, &hello, &signer) {
        Ok(Step::Established(peer)) => peer,
        Ok(_) => return Err("is not up after its hello".to_owned()),
        Err(error) => return Ok(Err(refused(error, "hello"))),
    };
    let Ok(Frame::Hello(tidings::wire::Hello::Accepted(proof))) =
        Frame::decode(&hello, Phase::Hello)
    else {
        return Err("is up after a hello that is none".to_owned());
    };
    let signed = &entry["expect"]["hello_signed"];
    if !signs(peer.key.as_bytes(), signed, proof)? {
        return Err("the hello proof signs other bytes".to_owned());
    }
    Ok(Ok(json!({
        "peer": peer.id.to_string(),
        "mesh": peer.mesh.map(|mesh| hex(&mesh)),
        "wall_ms": peer.wall.map(WallMs::as_millis),
        "max_frame": peer.max_frame,
        "capabilities": peer.capabilities,
        "hello_signed": signed,
    })))
}

/// A dialler that speaks more versions than this one: its opener cannot be sent from here, but the answer's proof can be held
/// against the bytes it should sign.
fn another_opener(entry: &Value) -> Result<Judged, Broken> {
    let (challenge, hello) = (bytes_of(entry, "challenge")?, bytes_of(entry, "hello")?);
    let challenge = challenge_of(&challenge)?;
    let Ok(Frame::Hello(tidings::wire::Hello::Accepted(proof))) =
        Frame::decode(&hello, Phase::Hello)
    else {
        return Err("has an opener this side never sends, and is refused".to_owned());
    };
    let signed = &entry["expect"]["hello_signed"];
    if !signs(challenge.key, signed, proof)? {
        return Err("the hello proof signs other bytes".to_owned());
    }
    Ok(Ok(json!({
        "peer": NodeId::of_key(Profile::ED25519.name(), challenge.key).to_string(),
        "mesh": hex(challenge.mesh),
        "wall_ms": challenge.wall.as_millis(),
        "max_frame": challenge.max_frame,
        "capabilities": challenge.capabilities,
        "hello_signed": signed,
    })))
}

fn answerer(entry: &Value, binding: Binding) -> Result<Judged, Broken> {
    let local = &entry["local"];
    let challenge = bytes_of(entry, "challenge")?;
    let own = challenge_of(&challenge)?;
    let settings = LinkSettings {
        capabilities: own.capabilities,
        max_frame: own.max_frame,
        mesh: Some(*own.mesh),
        ..LinkSettings::new(Profile::ED25519, *own.key, Role::Station)
    };
    let signer = Sent {
        key: *own.key,
        proof: [0; 64],
    };
    let now = Now::new(Instant::ORIGIN, own.wall);
    let mut link =
        Link::accept(now.mono, settings, binding, *own.nonce).map_err(|error| error.to_string())?;
    if let Err(error) = link.handle_frame(now, &bytes_of(entry, "opener")?, &signer) {
        return Ok(Err(told(error, "opener")));
    }
    if sent(&mut link) != challenge {
        return Err("sends another challenge".to_owned());
    }
    let connect = bytes_of(entry, "connect")?;
    let peer = match link.handle_frame(now, &connect, &signer) {
        Ok(Step::Verified(peer)) => peer,
        Ok(_) => return Err("is not verified after its connect".to_owned()),
        Err(error) => return Ok(Err(told(error, "connect"))),
    };
    let is = |key: &str| local[key].as_bool() == Some(true);
    let peers = local["peers"].as_array().ok_or("has no peers")?;
    let known = peers
        .iter()
        .any(|id| id.as_str() == Some(peer.id.to_string().as_str()));
    if is("full") {
        return Ok(Err(told(link.refuse(HandshakeRefusal::Full), "connect")));
    }
    if is("draining") {
        return Ok(Err(told(
            link.refuse(HandshakeRefusal::Draining),
            "connect",
        )));
    }
    if peer.role == Role::Station && !known {
        let error = link.refuse(HandshakeRefusal::NotAccepted);
        return Ok(Err(refuse_with(
            "not_a_peer",
            &[("at", "connect"), ("told", error.refusal().text())],
        )));
    }
    let signed = &entry["expect"]["connect_signed"];
    if !signs(peer.key.as_bytes(), signed, connect_of(&connect)?.proof)? {
        return Err("the connect proof signs other bytes".to_owned());
    }
    Ok(Ok(json!({
        "peer": peer.id.to_string(),
        "role": peer.role.text(),
        "max_frame": peer.max_frame,
        "capabilities": peer.capabilities,
        "connect_signed": signed,
    })))
}
