//! Keys that are not the attacker's, or no keys at all.

use curve25519_dalek::constants::{ED25519_BASEPOINT_COMPRESSED, EIGHT_TORSION};
use tidings::crypto::Signer;
use tidings::wire::{Challenge, Connect, Frame, Hello, Opener, Role};
use tidings::{LinkError, WallMs};

use super::relay::body;
use super::scene::{End, Scene, channel, key_of};

fn opener() -> Vec<u8> {
    body(Frame::Opener(Opener { first: 1, last: 1 }))
}

fn connect(key: &[u8; 32], proof: &[u8; 64]) -> Vec<u8> {
    body(Frame::Connect(Connect {
        key,
        role: Role::Node,
        nonce: &[7; 32],
        proof,
        profile: "ed25519",
        max_frame: 65_536,
        capabilities: 0,
    }))
}

fn challenge(key: &[u8; 32]) -> Vec<u8> {
    body(Frame::Challenge(Challenge {
        key,
        mesh: &[7; 32],
        nonce: &[7; 32],
        profile: "ed25519",
        wall: WallMs::new(1_790_000_000_000),
        max_frame: 65_536,
        capabilities: 0,
    }))
}

/// Whoever knows the node's public key says it is the node, and signs with a key of its own.
#[test]
fn a_stolen_public_key_lets_nobody_in() {
    let (mut scene, mut station) = (Scene::new(), End::station(channel(1)));
    let stolen = key_of("node").public_key();
    scene.say(&mut station, &opener());
    scene.hear(&mut station);
    let proof = scene.attacker.sign(&[b"any bytes"]).expect("signed");
    scene.say(&mut station, &connect(&stolen, &proof));
    scene.hear(&mut station);
    scene.shows(
        &[&station],
        "
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > station: connect of node
        station ends it: proof_invalid
        station > attacker: hello not_accepted
        cost of station: signed 0, verified 1, 266 out, 283 in
        cost of attacker: signed 1, 283 out, 266 in
        ",
    );
}

/// Whoever knows the station's public key answers in its place. The node has signed before it can know.
#[test]
fn a_stolen_public_key_makes_nobody_a_station() {
    let (mut scene, mut node) = (Scene::new(), End::node(channel(1)));
    let stolen = key_of("station").public_key();
    scene.hear(&mut node);
    scene.say(&mut node, &challenge(&stolen));
    scene.hear(&mut node);
    let proof = scene.attacker.sign(&[b"any bytes"]).expect("signed");
    scene.say(&mut node, &body(Frame::Hello(Hello::Accepted(&proof))));
    scene.shows(
        &[&node],
        "
        node > attacker: opener 1..1
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > node: hello with a proof
        node ends it: proof_invalid
        cost of node: signed 1, verified 1, 283 out, 317 in
        cost of attacker: signed 1, 317 out, 283 in
        ",
    );
}

/// Under the neutral element as a key, (base point, 1) would be a signature of every message: no secret is needed.
#[test]
fn a_key_under_which_one_signature_fits_everything_is_none() {
    let (mut scene, mut station) = (Scene::new(), End::station(channel(1)));
    let mut key = [0; 32];
    key[0] = 1;
    let mut proof = [0; 64];
    proof[..32].copy_from_slice(ED25519_BASEPOINT_COMPRESSED.as_bytes());
    proof[32] = 1;
    scene.say(&mut station, &opener());
    scene.hear(&mut station);
    scene.say(&mut station, &connect(&key, &proof));
    scene.hear(&mut station);
    scene.shows(
        &[&station],
        "
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > station: connect of nobody
        station ends it: bad_key_form
        station > attacker: hello not_accepted
        cost of station: signed 0, verified 0, 266 out, 283 in
        cost of attacker: signed 0, 283 out, 266 in
        ",
    );
}

/// All eight points of small order, and encodings that are not canonical, at either end and before anything is signed or verified.
#[test]
fn keys_of_small_order_and_odd_encodings_are_refused_before_any_signature() {
    let mut keys: Vec<[u8; 32]> = EIGHT_TORSION
        .iter()
        .map(|point| point.compress().to_bytes())
        .collect();
    // The neutral element with a sign, and with p added; y = p; y above p; no point at all.
    let p = |low: u8| {
        let mut y = [0xff; 32];
        (y[0], y[31]) = (low, 0x7f);
        y
    };
    let mut signed = [0; 32];
    (signed[0], signed[31]) = (1, 0x80);
    keys.extend([signed, p(0xee), p(0xed), p(0xff), [2; 32]]);
    for key in keys {
        let mut station = End::station(channel(1));
        let told = station.read(super::common::at(0), &framed(&opener()));
        assert_eq!(told, Ok(()));
        let told = station.read(super::common::at(0), &framed(&connect(&key, &[7; 64])));
        assert_eq!(told, Err(LinkError::BadKeyForm), "{key:?}");
        let mut node = End::dialler("node", channel(1), None, 0);
        let told = node.read(super::common::at(0), &framed(&challenge(&key)));
        assert_eq!(told, Err(LinkError::BadKeyForm), "{key:?}");
        Scene::new().spends_nothing(&[&station, &node]);
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes(), body].concat()
}

/// A station that was told its own address, or is connected to itself by somebody. The dialling end sees it first and signs nothing.
#[test]
fn a_station_does_not_dial_itself() {
    let mut scene = Scene::new();
    let mut dials = End::dialler("station", channel(1), None, 0);
    dials.name = "station as it dials";
    let mut station = End::station(channel(1));
    scene.carry(&mut dials, &mut station, |_| {});
    scene.shows(
        &[&dials, &station],
        "
        station as it dials > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > station as it dials: challenge of station
        station as it dials ends it: own_link
        cost of station as it dials: signed 0, verified 0, 45 out, 214 in
        cost of station: signed 0, verified 0, 214 out, 45 in
        cost of attacker: signed 0, 259 out, 259 in
        ",
    );
}

/// A dialler that does not look is seen by the station, before it verifies anything.
#[test]
fn a_station_lets_its_own_key_in_from_nowhere() {
    let (mut scene, mut station) = (Scene::new(), End::station(channel(1)));
    let own = key_of("station").public_key();
    scene.say(&mut station, &opener());
    scene.hear(&mut station);
    scene.say(&mut station, &connect(&own, &[7; 64]));
    scene.hear(&mut station);
    scene.shows(
        &[&station],
        "
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > station: connect of station
        station ends it: own_link
        station > attacker: hello not_accepted
        cost of station: signed 0, verified 0, 266 out, 283 in
        cost of attacker: signed 0, 283 out, 266 in
        ",
    );
}

/// Whatever fills the 64 bytes: a proof costs the station one verification and the attacker 358 bytes.
#[test]
fn a_made_up_proof_costs_one_verification() {
    let (mut scene, mut station) = (Scene::new(), End::station(channel(1)));
    let own = scene.attacker.public_key();
    scene.say(&mut station, &opener());
    scene.hear(&mut station);
    scene.say(&mut station, &connect(&own, &[7; 64]));
    scene.hear(&mut station);
    // It has ended: nothing more is looked at.
    scene.say(&mut station, &connect(&own, &[7; 64]));
    scene.hear(&mut station);
    scene.shows(
        &[&station],
        "
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > station: connect of attacker
        station ends it: proof_invalid
        station > attacker: hello not_accepted
        attacker > station: connect of attacker
        station ends it: proof_invalid
        cost of station: signed 0, verified 1, 266 out, 521 in
        cost of attacker: signed 0, 521 out, 266 in
        ",
    );
}
