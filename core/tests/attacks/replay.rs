//! Proofs that were good once, and proofs sent back to where they came from.

use tidings::wire::{Frame, Hello};

use super::relay::{body, connect, proof};
use super::scene::{End, Scene, channel, key_of};

/// Everything the node said in an earlier handshake on the very same channel, said again.
#[test]
fn an_old_connect_proves_nothing_to_a_new_nonce() {
    let [opener, _, connect, _] =
        Scene::record(&mut End::node(channel(1)), &mut End::station(channel(1)));
    let mut scene = Scene::new();
    let mut station = End::answerer("station", channel(1), 0xa6, 0);
    scene.say(&mut station, &opener);
    scene.hear(&mut station);
    scene.say(&mut station, &connect);
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
        cost of attacker: signed 0, 283 out, 266 in
        ",
    );
}

/// Everything the station said in an earlier handshake, to a node with a new nonce.
#[test]
fn an_old_hello_proves_nothing_to_a_new_nonce() {
    let mut other = End::dialler("other", channel(1), None, 0);
    let [_, challenge, _, hello] = Scene::record(&mut other, &mut End::station(channel(1)));
    let mut scene = Scene::new();
    let mut node = End::node(channel(1));
    scene.hear(&mut node);
    scene.say(&mut node, &challenge);
    scene.hear(&mut node);
    scene.say(&mut node, &hello);
    scene.shows(
        &[&node],
        "
        node > attacker: opener 1..1
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > node: hello with a proof
        node ends it: proof_invalid
        cost of node: signed 1, verified 1, 283 out, 317 in
        cost of attacker: signed 0, 317 out, 283 in
        ",
    );
}

/// A connect that was made for the station, at another station.
#[test]
fn a_connect_for_one_station_is_none_at_another() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
    let mut other = End::answerer("other", channel(1), 0xa5, 0);
    let opener = scene.hear_one(&mut node);
    scene.say(&mut station, &opener);
    scene.say(&mut other, &opener);
    let challenge = scene.hear_one(&mut station);
    scene.hear_one(&mut other);
    scene.say(&mut node, &challenge);
    let connect = scene.hear_one(&mut node);
    scene.say(&mut other, &connect);
    scene.hear(&mut other);
    scene.shows(
        &[&other],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        attacker > other: opener 1..1
        station > attacker: challenge of station
        other > attacker: challenge of other
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > other: connect of node
        other ends it: proof_invalid
        other > attacker: hello not_accepted
        cost of other: signed 0, verified 1, 266 out, 283 in
        cost of attacker: signed 0, 542 out, 763 in
        ",
    );
}

/// What the node says comes back to it.
#[test]
fn a_node_does_not_talk_to_its_echo() {
    let mut scene = Scene::new();
    let mut node = End::node(channel(1));
    let opener = scene.hear_one(&mut node);
    scene.say(&mut node, &opener);
    scene.hear(&mut node);
    scene.shows(
        &[&node],
        "
        node > attacker: opener 1..1
        attacker > node: opener 1..1
        node ends it: unexpected_frame
        cost of node: signed 0, verified 0, 45 out, 45 in
        cost of attacker: signed 0, 45 out, 45 in
        ",
    );
}

/// The node's own proof comes back to it as the station's.
#[test]
fn a_connect_proof_sent_back_is_no_hello_proof() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
    let opener = scene.hear_one(&mut node);
    scene.say(&mut station, &opener);
    let challenge = scene.hear_one(&mut station);
    scene.say(&mut node, &challenge);
    let connect = scene.hear_one(&mut node);
    let proof = proof(&connect);
    scene.say(&mut node, &body(Frame::Hello(Hello::Accepted(&proof))));
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > node: hello with a proof
        node ends it: proof_invalid
        cost of node: signed 1, verified 1, 283 out, 317 in
        cost of station: signed 0, verified 0, 214 out, 45 in
        cost of attacker: signed 0, 362 out, 497 in
        ",
    );
}

/// The roles swapped: what a station signed for one that dialled it is shown to another station as if it had dialled there.
#[test]
fn a_hello_proof_is_no_connect_proof_elsewhere() {
    let mut own = End::dialler("attacker", channel(1), None, 0);
    let [opener, _, sent, hello] = Scene::record(&mut own, &mut End::station(channel(1)));
    let proof = proof(&hello);
    let key = tidings::crypto::Signer::public_key(&key_of("station"));
    let mut scene = Scene::new();
    let mut other = End::answerer("other", channel(1), 0xa5, 0);
    scene.say(&mut other, &opener);
    scene.hear(&mut other);
    let swapped = connect(&sent, |connect| {
        connect.key = &key;
        connect.proof = &proof;
    });
    scene.say(&mut other, &swapped);
    scene.hear(&mut other);
    scene.shows(
        &[&other],
        "
        attacker > other: opener 1..1
        other > attacker: challenge of other
        attacker > other: connect of station
        other ends it: proof_invalid
        other > attacker: hello not_accepted
        cost of other: signed 0, verified 1, 266 out, 283 in
        cost of attacker: signed 0, 283 out, 266 in
        ",
    );
}

/// The same sent back to the station itself, on a second link: it does not talk to itself, whatever is proved.
#[test]
fn a_station_does_not_talk_to_its_own_proof() {
    let mut own = End::dialler("attacker", channel(1), None, 0);
    let [opener, _, sent, hello] = Scene::record(&mut own, &mut End::station(channel(1)));
    let proof = proof(&hello);
    let key = tidings::crypto::Signer::public_key(&key_of("station"));
    let mut scene = Scene::new();
    let mut station = End::station(channel(1));
    scene.say(&mut station, &opener);
    scene.hear(&mut station);
    let back = connect(&sent, |connect| {
        connect.key = &key;
        connect.proof = &proof;
    });
    scene.say(&mut station, &back);
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
