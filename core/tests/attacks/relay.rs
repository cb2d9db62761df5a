//! Somebody in the middle, with a channel of his own to either side, or with a public key that is not his.

use tidings::wire::{Challenge, Connect, Frame, Hello, Phase};

use super::scene::{End, Scene, channel, key_of};

/// Encodes a frame.
pub(crate) fn body(frame: Frame<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    frame.encode(&mut body);
    body
}

/// Changes a challenge on its way.
pub(crate) fn challenge<'a>(was: &'a [u8], change: impl FnOnce(&mut Challenge<'a>)) -> Vec<u8> {
    let Ok(Frame::Challenge(mut challenge)) = Frame::decode(was, Phase::Challenge) else {
        panic!("a challenge");
    };
    change(&mut challenge);
    body(Frame::Challenge(challenge))
}

/// Changes a connect on its way.
pub(crate) fn connect<'a>(was: &'a [u8], change: impl FnOnce(&mut Connect<'a>)) -> Vec<u8> {
    let Ok(Frame::Connect(mut connect)) = Frame::decode(was, Phase::Connect) else {
        panic!("a connect");
    };
    change(&mut connect);
    body(Frame::Connect(connect))
}

/// The proof of a connect or a hello.
pub(crate) fn proof(of: &[u8]) -> [u8; 64] {
    match (
        Frame::decode(of, Phase::Connect),
        Frame::decode(of, Phase::Hello),
    ) {
        (Ok(Frame::Connect(connect)), _) => *connect.proof,
        (_, Ok(Frame::Hello(Hello::Accepted(proof)))) => *proof,
        other => panic!("a frame with a proof, not {other:?}"),
    }
}

/// What the attacks are measured against: the same ends on one channel, and an attacker who only carries.
#[test]
fn two_ends_of_one_channel_come_together() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
    scene.carry(&mut node, &mut station, |_| {});
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > station: connect of node
        station has a link with node
        station > attacker: hello with a proof
        attacker > node: hello with a proof
        node has a link with station
        cost of node: signed 1, verified 1, 283 out, 317 in
        cost of station: signed 1, verified 1, 317 out, 283 in
        cost of attacker: signed 0, 600 out, 600 in
        ",
    );
}

/// Two sessions of TLS meet in the attacker, who passes on what is inside, byte for byte. The bindings differ.
#[test]
fn a_handshake_relayed_between_two_channels_is_refused() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(2)));
    scene.carry(&mut node, &mut station, |_| {});
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > station: connect of node
        station ends it: proof_invalid
        station > attacker: hello not_accepted
        attacker > node: hello not_accepted
        node ends it: refused_by_station
        cost of node: signed 1, verified 0, 283 out, 266 in
        cost of station: signed 0, verified 1, 266 out, 283 in
        cost of attacker: signed 0, 549 out, 549 in
        ",
    );
}

/// The attacker answers for the station that was dialled, with its own key: the node signs nothing for it.
#[test]
fn another_station_than_the_one_named_gets_no_signature() {
    let mut scene = Scene::new();
    let mut node = End::node(channel(1));
    let mut attacker = End::answerer("attacker", channel(1), 0xa5, 0);
    scene.carry(&mut node, &mut attacker, |_| {});
    scene.shows(
        &[&node, &attacker],
        "
        node > attacker: opener 1..1
        attacker > node: challenge of attacker
        node ends it: wrong_station
        cost of node: signed 0, verified 0, 45 out, 214 in
        cost of attacker: signed 0, 214 out, 45 in
        ",
    );
}

/// A node that dials the attacker on purpose is shown the station's challenge, so that it signs for the station.
#[test]
fn a_node_that_named_the_attacker_does_not_sign_for_the_station() {
    let mut scene = Scene::new();
    let named = Some(key_of("attacker").id());
    let mut node = End::dialler("node", channel(1), named, 0);
    let mut station = End::station(channel(2));
    scene.carry(&mut node, &mut station, |_| {});
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > node: challenge of station
        node ends it: wrong_station
        cost of node: signed 0, verified 0, 45 out, 214 in
        cost of station: signed 0, verified 0, 214 out, 45 in
        cost of attacker: signed 0, 259 out, 259 in
        ",
    );
}

/// The same with the station's nonce in a challenge of the attacker's own: what the node signs names the attacker.
#[test]
fn a_nonce_lent_from_the_station_makes_no_proof_for_the_station() {
    let mut scene = Scene::new();
    let named = Some(key_of("attacker").id());
    // Even on one channel, as two processes of one machine have it.
    let mut node = End::dialler("node", channel(1), named, 0);
    let mut station = End::station(channel(1));
    let key = tidings::crypto::Signer::public_key(&scene.attacker);
    scene.carry(&mut node, &mut station, |body| {
        if Frame::decode(body, Phase::Challenge).is_ok_and(|f| matches!(f, Frame::Challenge(_))) {
            *body = challenge(body, |challenge| challenge.key = &key);
        }
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > node: challenge of attacker
        node > attacker: connect of node
        attacker > station: connect of node
        station ends it: proof_invalid
        station > attacker: hello not_accepted
        attacker > node: hello not_accepted
        node ends it: refused_by_station
        cost of node: signed 1, verified 0, 283 out, 266 in
        cost of station: signed 0, verified 1, 266 out, 283 in
        cost of attacker: signed 0, 549 out, 549 in
        ",
    );
}

/// The attacker takes the node's connect, puts in its own key and signs it. It gets a link, as itself; the node gets none.
#[test]
fn a_hello_for_another_dialler_is_none_for_this_one() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
    // A dialler of the attacker's own, which is shown the same challenge.
    let mut own = End::dialler("attacker", channel(1), None, 0);
    let opener = scene.hear_one(&mut node);
    scene.say(&mut station, &opener);
    let challenge = scene.hear_one(&mut station);
    scene.say(&mut node, &challenge);
    scene.hear_one(&mut node);
    scene.hear_one(&mut own);
    scene.say(&mut own, &challenge);
    let connect = scene.hear_one(&mut own);
    scene.say(&mut station, &connect);
    let hello = scene.hear_one(&mut station);
    scene.say(&mut node, &hello);
    scene.shows(
        &[&node, &station, &own],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > station: connect of attacker
        station has a link with attacker
        station > attacker: hello with a proof
        attacker > node: hello with a proof
        node ends it: proof_invalid
        cost of node: signed 1, verified 1, 283 out, 317 in
        cost of station: signed 1, verified 1, 317 out, 283 in
        cost of attacker: signed 1, 600 out, 600 in
        ",
    );
}
