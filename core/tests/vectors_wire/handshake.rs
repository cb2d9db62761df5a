//! Whole handshakes through [`Link`], seen from either side.

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha384};
use tidings::code::HandshakeRefusal;
use tidings::crypto::{Profile, PublicKey, SecretKey, Signer};
use tidings::link::{Binding, Link, LinkSettings, Step};
use tidings::wire::{Frame, Hello, PREFIX, Phase, Role};
use tidings::{Instant, LinkError, NodeId, Now, WallMs};

use crate::{Verdict, array_of, bytes_of, run, signer_of, text, to_hex};

#[test]
fn handshake() {
    run("handshake", |entry| match text(entry, "checks") {
        "dialler" => dialler(entry),
        _ => answerer(entry),
    });
}

fn now(wall: u64) -> Now {
    Now::new(Instant::ORIGIN, WallMs::new(wall))
}

/// The next frame's body.
fn sent(link: &mut Link) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    link.poll_transmit(&mut out).then(|| out.split_off(PREFIX))
}

fn own(entry: &Json) -> (SecretKey, LinkSettings, Binding) {
    let local = &entry["local"];
    let id = NodeId::new(array_of(local, "id"));
    let signer = signer_of(&id).expect("one of the four");
    let settings = LinkSettings::new(Profile::ED25519, signer.public_key(), Role::Node);
    let exporter = array_of(local, "binding");
    let binding = match local.get("proved") {
        None => Binding::Exporter(exporter),
        Some(_) => Binding::Proved {
            exporter,
            peer: NodeId::new(array_of(local, "proved")),
        },
    };
    (signer, settings, binding)
}

fn dialler(entry: &Json) -> Verdict {
    let (signer, mut settings, binding) = own(entry);
    let named = &entry["local"]["named"];
    let expected = named
        .as_str()
        .map(|_| NodeId::new(array_of(&entry["local"], "named")));
    let connect = bytes_of(entry, "connect");
    let mut nonce = [0x5a; 32];
    if let Ok(Frame::Connect(connect)) = Frame::decode(&connect, Phase::Connect) {
        nonce = *connect.nonce;
        settings.role = connect.role;
        settings.capabilities = connect.capabilities;
        settings.max_frame = connect.max_frame;
    }
    let mut link = Link::dial(Instant::ORIGIN, settings, expected, binding, nonce).unwrap();
    let opener = sent(&mut link).expect("an opener");
    let refusal = |error: LinkError, at: &str| {
        let mut told = json!({ "refuse": error.text(), "at": at });
        if let LinkError::RefusedByStation(refusal) = error {
            told["refusal"] = json!(refusal.text());
        }
        Err(told)
    };
    let challenge = bytes_of(entry, "challenge");
    if let Err(error) = link.handle_frame(now(0), &challenge, &signer) {
        return refusal(error, "challenge");
    }
    let ours = sent(&mut link).expect("a connect");
    if to_hex(&opener) != text(entry, "opener") {
        return by_hand(entry);
    }
    if entry.get("expect").is_some() {
        assert_eq!(to_hex(&ours), to_hex(&connect), "{}", entry["name"]);
    }
    match link.handle_frame(now(0), &bytes_of(entry, "hello"), &signer) {
        Ok(Step::Established(peer)) => Ok(json!({
            "peer": peer.id.to_string(),
            "mesh": peer.mesh.map(|mesh| to_hex(&mesh)),
            "wall_ms": peer.wall.map(|wall| wall.as_millis()),
            "max_frame": peer.max_frame,
            "capabilities": peer.capabilities,
            "hello_signed": signed_by(entry, "hello_signed", &peer.key, &hello_proof(entry)),
        })),
        Ok(step) => panic!("{step:?}"),
        Err(error) => refusal(error, "hello"),
    }
}

fn hello_proof(entry: &Json) -> [u8; 64] {
    match Frame::decode(&bytes_of(entry, "hello"), Phase::Hello) {
        Ok(Frame::Hello(Hello::Accepted(proof))) => *proof,
        other => panic!("{}: {other:?}", entry["name"]),
    }
}

/// The bytes an entry says were signed, when the proof does sign them; the link has verified the same proof over its own.
fn signed_by(entry: &Json, what: &str, key: &PublicKey, proof: &[u8; 64]) -> String {
    let signed = bytes_of(&entry["expect"], what);
    assert!(key.verify_parts(&[&signed], proof), "{}", entry["name"]);
    to_hex(&signed)
}

/// A dialler that speaks more versions than this one: its link cannot be replayed here, but what it accepts can be told.
fn by_hand(entry: &Json) -> Verdict {
    let challenge = bytes_of(entry, "challenge");
    let Ok(Frame::Challenge(fields)) = Frame::decode(&challenge, Phase::Challenge) else {
        panic!(
            "{}: only an accepted handshake is read by hand",
            entry["name"]
        );
    };
    let opener = bytes_of(entry, "opener");
    assert!(matches!(
        Frame::decode(&opener, Phase::Opener),
        Ok(Frame::Opener(_))
    ));
    let key = PublicKey::decode(Profile::ED25519, fields.key).expect("a key");
    let signed = signed_by(entry, "hello_signed", &key, &hello_proof(entry));
    for frame in ["opener", "challenge", "connect"] {
        let hash = to_hex(&Sha384::digest(bytes_of(entry, frame)));
        assert!(signed.contains(&hash), "{frame}");
    }
    Ok(json!({
        "peer": key.node_id().to_string(),
        "mesh": to_hex(fields.mesh),
        "wall_ms": fields.wall.as_millis(),
        "max_frame": fields.max_frame,
        "capabilities": fields.capabilities,
        "hello_signed": signed,
    }))
}

fn answerer(entry: &Json) -> Verdict {
    let (signer, mut settings, binding) = own(entry);
    let challenge = bytes_of(entry, "challenge");
    let Ok(Frame::Challenge(fields)) = Frame::decode(&challenge, Phase::Challenge) else {
        panic!("{}: this side's own frame", entry["name"]);
    };
    settings.mesh = Some(*fields.mesh);
    settings.max_frame = fields.max_frame;
    settings.capabilities = fields.capabilities;
    let wall = fields.wall.as_millis();
    let mut link = Link::accept(Instant::ORIGIN, settings, binding, *fields.nonce).unwrap();
    let refusal = |link: &mut Link, error: LinkError, at: &str| {
        let told = std::iter::from_fn(|| sent(link)).last().expect("a hello");
        let Ok(Frame::Hello(Hello::Refused(told))) = Frame::decode(&told, Phase::Hello) else {
            panic!("{}: no refusal", entry["name"]);
        };
        Err(json!({ "refuse": error.text(), "at": at, "told": told.text() }))
    };
    if let Err(error) = link.handle_frame(now(wall), &bytes_of(entry, "opener"), &signer) {
        return refusal(&mut link, error, "opener");
    }
    assert_eq!(
        to_hex(&sent(&mut link).unwrap()),
        to_hex(&challenge),
        "{}",
        entry["name"]
    );
    let peer = match link.handle_frame(now(wall), &bytes_of(entry, "connect"), &signer) {
        Ok(Step::Verified(peer)) => peer,
        Ok(step) => panic!("{step:?}"),
        Err(error) => return refusal(&mut link, error, "connect"),
    };
    // What an owner decides.
    let local = &entry["local"];
    let peers = local["peers"].as_array().expect("a list");
    let turned_away = if local["full"] == true {
        Some(("full", HandshakeRefusal::Full))
    } else if local["draining"] == true {
        Some(("draining", HandshakeRefusal::Draining))
    } else if peer.role == Role::Station && !peers.contains(&json!(peer.id.to_string())) {
        Some(("not_a_peer", HandshakeRefusal::NotAccepted))
    } else {
        None
    };
    if let Some((reason, code)) = turned_away {
        let error = link.refuse(code);
        let mut verdict = refusal(&mut link, error, "connect");
        if let Err(told) = &mut verdict {
            told["refuse"] = json!(reason);
        }
        return verdict;
    }
    let connect = bytes_of(entry, "connect");
    let Ok(Frame::Connect(connect)) = Frame::decode(&connect, Phase::Connect) else {
        panic!("{}: accepted before", entry["name"]);
    };
    let proof = *connect.proof;
    link.admit(&signer).expect("admitted");
    assert!(link.is_up());
    Ok(json!({
        "peer": peer.id.to_string(),
        "role": peer.role.text(),
        "max_frame": peer.max_frame,
        "capabilities": peer.capabilities,
        "connect_signed": signed_by(entry, "connect_signed", &peer.key, &proof),
    }))
}
