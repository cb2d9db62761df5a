//! What the other end of a hostile link says, and what time does meanwhile: bytes into steps.

use tidings::code::{CloseReason, OutcomeCode, SkipReason, SubscribeRefusal};
use tidings::sim::START;
use tidings::wire::{
    Event, Frame, Goodbye, Position, Progress, Publish, Published, Refused, ResumeOutcome, Route,
    Skipped, Subscribe, Subscribed, Via,
};
use tidings::{NodeId, RunId};

use crate::hostile::{LINKS, Play};
use crate::keys;
use crate::peer::key_of;
use crate::said::{How, Said, Seal, realm};

pub const TOPICS: [&str; 4] = ["a/b", "a/c", "_system/x", "d"];
/// Those of guarded scripts: two under one group, the second under a group of its own as well.
pub const GUARDED: [&str; 4] = ["a/b", "a/c", "a/b/x", "d"];
const FILTERS: [&str; 6] = ["a/b", "a/*", "**", "a/b/**", "d", "bad//filter"];

/// Publishers of guarded scripts sign with times so far apart.
const SIGNED_EVERY_MS: i64 = 600_000;
/// Waits in ms.
const WAITS: [u64; 8] = [1, 20, 250, 1_000, 10_000, 31_000, 130_000, 1_000_000];

/// One step takes a kind, three bytes, and as many bytes more as it says.
pub fn steps(mut data: &[u8], mut step: impl FnMut(u8, [u8; 3], &[u8])) {
    for _ in 0..200 {
        let [kind, a, b, c, rest @ ..] = data else {
            return;
        };
        let raw = if kind % 16 < 2 {
            usize::from(*a).min(rest.len())
        } else {
            0
        };
        step(*kind, [*a, *b, *c], &rest[..raw]);
        data = &rest[raw..];
    }
}

/// The link a step is about.
fn link(kind: u8) -> usize {
    usize::from(kind >> 4) % LINKS
}

/// What either kind of peer may say. `false`: not one of these.
pub fn common(play: &mut Play<'_>, kind: u8, [a, b, c]: [u8; 3], raw: &[u8]) -> bool {
    let at = link(kind);
    match kind % 16 {
        0 => {
            let mut framed = (raw.len() as u32).to_be_bytes().to_vec();
            framed.extend_from_slice(raw);
            play.feed(at, &framed);
        }
        1 => {
            play.feed(at, raw);
        }
        2 => {
            let steps = [0, 0, 0, 0, -600_000, 600_000, -5_000, 11_000];
            play.wait(WAITS[usize::from(a % 8)], steps[usize::from(b % 8)]);
        }
        3 if a < 16 => play.cut(at),
        3 if a < 24 => play.close(at),
        3 => play.connect(at),
        4 => play.frame(at, &Frame::Ping(&[c; 16])),
        5 if b < 8 => play.frame(
            at,
            &Frame::Goodbye(Goodbye {
                detail: "",
                reason: CloseReason::Draining,
            }),
        ),
        5 => play.frame(at, &Frame::Pong(&[c; 16])),
        6 => play.frame(
            at,
            &Frame::Subscribe(Subscribe {
                id: u64::from(a),
                realm: realm(),
                filter: FILTERS[usize::from(b % 6)],
                resume: (c & 1 == 1).then_some(position(c)),
            }),
        ),
        7 => play.frame(at, &Frame::Unsubscribe(1 + u64::from(a % 8))),
        8 => publish(play, at, [a, b, c]),
        _ => return false,
    }
    true
}

/// What a station says.
pub fn station(play: &mut Play<'_>, kind: u8, [a, b, c]: [u8; 3]) {
    let (at, id) = (link(kind), 1 + u64::from(a % 6));
    match kind % 16 {
        9 | 10 => {
            let mut said = said(play, 10 + u64::from(b / 64), b, c);
            let mut id = id;
            if play.scene.guarded && kind % 16 == 10 {
                said.seal = Some(seal(play, a / 5, said.other));
                id = 1 + u64::from(a % 5);
            }
            let publication = play.publication(&said);
            let via = if b & 16 == 0 { Via::Direct } else { Via::Mesh };
            let event = Event {
                id,
                via,
                offset: u64::from(c),
                publication: &publication,
            };
            play.frame(at, &Frame::Event(event));
        }
        11 => play.frame(
            at,
            &Frame::Subscribed(Subscribed {
                id,
                resume: ResumeOutcome::None,
                position: position(c),
            }),
        ),
        12 => play.frame(
            at,
            &Frame::Refused(Refused {
                id,
                limit: (b & 1 == 1).then_some(5),
                reason: SubscribeRefusal::ALL[usize::from(c) % SubscribeRefusal::ALL.len()],
            }),
        ),
        13 => play.frame(
            at,
            &Frame::Progress(Progress {
                id,
                offset: u64::from(b),
                behind_ms: u64::from(c) * 100,
            }),
        ),
        14 => {
            let reason = SkipReason::ALL[usize::from(c) % SkipReason::ALL.len()];
            let peer = matches!(reason, SkipReason::PeerInterrupted).then(|| NodeId::new([9; 32]));
            let (to, count) = (u64::from(b), u64::from(a));
            play.frame(
                at,
                &Frame::Skipped(Skipped {
                    id,
                    to,
                    from: to + 5,
                    peer,
                    count,
                    reason,
                }),
            );
        }
        _ => {
            let outcome = [OutcomeCode::Routed, OutcomeCode::NoSubscriber][usize::from(c % 2)];
            let subscribers = u64::from(outcome == OutcomeCode::Routed);
            play.frame(
                at,
                &Frame::Published(Published {
                    id,
                    limit: None,
                    reason: None,
                    outcome,
                    subscribers,
                }),
            );
        }
    }
}

fn publish(play: &mut Play<'_>, at: usize, [a, b, c]: [u8; 3]) {
    let said = said(play, if b & 64 == 0 { key_of(at) } else { 10 }, b, c);
    let publication = play.publication(&said);
    let route = if said.one == (b & 16 == 0) {
        Route::One
    } else {
        Route::All
    };
    play.frame(
        at,
        &Frame::Publish(Publish {
            id: u64::from(a),
            route,
            publication: &publication,
        }),
    );
}

fn said(play: &Play<'_>, key: u64, b: u8, c: u8) -> Said {
    let (topics, at) = if play.scene.guarded {
        // The same for a while, so that there are copies.
        let since = play.now().wall.since(START);
        let step = since.rem_euclid(SIGNED_EVERY_MS).unsigned_abs();
        (GUARDED, play.now().wall.saturating_sub(step))
    } else {
        (TOPICS, START)
    };
    Said {
        key,
        topic: topics[usize::from(b % 4)],
        epoch: u64::from(c >> 6),
        seq: 1 + u64::from(c % 24),
        one: b & 32 != 0,
        other: b & 4 != 0,
        forged: b & 8 != 0,
        at,
        seal: None,
    }
}

/// Which group's key, of when, and what is wrong with it.
fn seal(play: &Play<'_>, which: u8, other: bool) -> Seal {
    let current = keys::current(play.now().wall);
    let how = match (which >= 24, other) {
        (false, _) => How::Scheme2,
        (true, false) => How::Scheme1,
        (true, true) => How::Tampered,
    };
    let (period, how) = match which / 3 % 8 {
        0 => (current, how),
        1 => (current - 1, how),
        2 => (current + 1, how),
        3 => (current - 69, how),
        4 => (current - 71, how),
        5 => (current + 3, how),
        6 => (current, How::Garbage),
        _ => (keys::UNKNOWN + u64::from(other), how),
    };
    Seal {
        group: usize::from(which % 3),
        period,
        how,
    }
}

fn position(c: u8) -> Position {
    Position {
        run: RunId::new([c & 3; 8]),
        offset: u64::from(c >> 2),
    }
}
