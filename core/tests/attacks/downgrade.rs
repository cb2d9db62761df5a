//! Versions, capabilities and bounds changed on their way. None of these frames is signed when it is sent; both proofs sign them.

use sha2::{Digest, Sha384};
use tidings::crypto::Signer;
use tidings::wire::{Connect, Frame, Opener, Phase, Role};

use super::relay::{body, challenge, connect};
use super::scene::{Counted, End, Scene, channel, key_of};

fn is_opener(body: &[u8]) -> bool {
    matches!(Frame::decode(body, Phase::Opener), Ok(Frame::Opener(_)))
}

fn is_challenge(body: &[u8]) -> bool {
    matches!(
        Frame::decode(body, Phase::Challenge),
        Ok(Frame::Challenge(_))
    )
}

fn is_connect(body: &[u8]) -> bool {
    matches!(Frame::decode(body, Phase::Connect), Ok(Frame::Connect(_)))
}

/// A node of a later version, by hand: it speaks 1 to 9 and signs as version 1 says.
struct Later {
    key: Counted,
    opener: Vec<u8>,
}

impl Later {
    fn new() -> Self {
        Self {
            key: key_of("node"),
            opener: body(Frame::Opener(Opener { first: 1, last: 9 })),
        }
    }

    /// WIRE.md section 8, `connect proof`.
    fn connect(&self, challenge: &[u8]) -> Vec<u8> {
        let Ok(Frame::Challenge(shown)) = Frame::decode(challenge, Phase::Challenge) else {
            panic!("a challenge");
        };
        let (nonce, max_frame) = ([0x5a; 32], 65_536_u32);
        let (dialler, answerer) = (self.key.id(), key_of("station").id());
        let signed = [
            &b"TIDINGS-CONNECT-PROOF-V1\0"[..],
            &[1; 32],
            &Sha384::digest(&self.opener),
            &Sha384::digest(challenge),
            dialler.as_bytes(),
            answerer.as_bytes(),
            &[0],
            &0_u64.to_be_bytes(),
            &max_frame.to_be_bytes(),
            &nonce,
            shown.nonce,
        ];
        body(Frame::Connect(Connect {
            key: &self.key.public_key(),
            role: Role::Node,
            nonce: &nonce,
            proof: &self.key.sign(&signed).expect("a key in memory"),
            profile: "ed25519",
            max_frame,
            capabilities: 0,
        }))
    }

    /// Its handshake with the station, its opener changed on the way.
    fn talks(&self, scene: &mut Scene, station: &mut End, opener: &[u8]) {
        scene.say(station, opener);
        let challenge = scene.hear_one(station);
        scene.say(station, &self.connect(&challenge));
        scene.hear(station);
    }
}

/// What the next is measured against.
#[test]
fn a_node_of_a_later_version_is_let_in() {
    let (mut scene, mut station) = (Scene::new(), End::station(channel(1)));
    let later = Later::new();
    later.talks(&mut scene, &mut station, &later.opener);
    scene.shows(
        &[&station],
        "
        attacker > station: opener 1..9
        station > attacker: challenge of station
        attacker > station: connect of node
        station has a link with node
        station > attacker: hello with a proof
        cost of station: signed 1, verified 1, 317 out, 283 in
        cost of attacker: signed 0, 283 out, 317 in
        ",
    );
}

/// A node that speaks 1 to 9 is made to look as if it spoke 1 alone.
#[test]
fn a_range_of_versions_narrowed_on_its_way_is_noticed() {
    let (mut scene, mut station) = (Scene::new(), End::station(channel(1)));
    let narrowed = body(Frame::Opener(Opener { first: 1, last: 1 }));
    Later::new().talks(&mut scene, &mut station, &narrowed);
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

/// The other way round, to a range the station still takes.
#[test]
fn a_range_of_versions_widened_on_its_way_is_noticed() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
    scene.carry(&mut node, &mut station, |sent| {
        if is_opener(sent) {
            *sent = body(Frame::Opener(Opener { first: 1, last: 9 }));
        }
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..9
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

/// A range without version 1 ends it before anything was said that is worth something.
#[test]
fn a_range_of_versions_moved_on_its_way_makes_no_link() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
    scene.carry(&mut node, &mut station, |sent| {
        if is_opener(sent) {
            *sent = body(Frame::Opener(Opener { first: 2, last: 9 }));
        }
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 2..9
        station ends it: unsupported_version
        station > attacker: hello unsupported_version
        attacker > node: hello unsupported_version
        node ends it: refused_by_station
        cost of node: signed 0, verified 0, 45 out, 59 in
        cost of station: signed 0, verified 0, 59 out, 45 in
        cost of attacker: signed 0, 104 out, 104 in
        ",
    );
}

#[test]
fn capabilities_taken_from_a_connect_are_noticed() {
    let mut scene = Scene::new();
    let named = Some(key_of("station").id());
    let mut node = End::dialler("node", channel(1), named, 5);
    let mut station = End::answerer("station", channel(1), 0xa5, 5);
    scene.carry(&mut node, &mut station, |sent| {
        if is_connect(sent) {
            *sent = connect(sent, |connect| connect.capabilities = 0);
        }
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station, capabilities 5
        attacker > node: challenge of station, capabilities 5
        node > attacker: connect of node, capabilities 5
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

#[test]
fn capabilities_taken_from_a_challenge_are_noticed() {
    let mut scene = Scene::new();
    let named = Some(key_of("station").id());
    let mut node = End::dialler("node", channel(1), named, 5);
    let mut station = End::answerer("station", channel(1), 0xa5, 5);
    scene.carry(&mut node, &mut station, |sent| {
        if is_challenge(sent) {
            *sent = challenge(sent, |challenge| challenge.capabilities = 1);
        }
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station, capabilities 5
        attacker > node: challenge of station, capabilities 1
        node > attacker: connect of node, capabilities 5
        attacker > station: connect of node, capabilities 5
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

/// A node that asks to be treated as a station, or the reverse.
#[test]
fn a_role_changed_on_its_way_is_noticed() {
    let mut scene = Scene::new();
    let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
    scene.carry(&mut node, &mut station, |sent| {
        if is_connect(sent) {
            *sent = connect(sent, |connect| connect.role = Role::Station);
        }
    });
    scene.shows(
        &[&node, &station],
        "
        node > attacker: opener 1..1
        attacker > station: opener 1..1
        station > attacker: challenge of station
        attacker > node: challenge of station
        node > attacker: connect of node
        attacker > station: connect of node as a station
        station ends it: proof_invalid
        station > attacker: hello not_accepted
        attacker > node: hello not_accepted
        node ends it: refused_by_station
        cost of node: signed 1, verified 0, 283 out, 266 in
        cost of station: signed 0, verified 1, 266 out, 286 in
        cost of attacker: signed 0, 552 out, 549 in
        ",
    );
}

/// A node would be told that the station reads short frames only, and a station that it belongs to another mesh.
#[test]
fn bounds_and_mesh_changed_on_their_way_are_noticed() {
    for change in [
        |challenge: &mut tidings::wire::Challenge<'_>| challenge.max_frame = 65_537,
        |challenge: &mut tidings::wire::Challenge<'_>| challenge.mesh = &[9; 32],
        |challenge: &mut tidings::wire::Challenge<'_>| {
            challenge.wall = tidings::WallMs::new(1_789_999_999_999);
        },
    ] {
        let mut scene = Scene::new();
        let (mut node, mut station) = (End::node(channel(1)), End::station(channel(1)));
        scene.carry(&mut node, &mut station, |sent| {
            if is_challenge(sent) {
                *sent = challenge(sent, change);
            }
        });
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
}
