mod live;

use std::vec::Vec;

use super::*;
use crate::code::CloseReason;
use crate::crypto::{Profile, SecretKey, SignError};
use crate::wire::{Split, next_frame};

const BINDING: Binding = Binding::Exporter([7; 32]);
const NOW: Now = Now::new(Instant::ORIGIN, WallMs::new(1_790_000_000_000));

fn key(byte: u8) -> SecretKey {
    SecretKey::from_seed([byte; 32])
}

fn settings(key: &SecretKey, role: Role) -> LinkSettings {
    let mut settings = LinkSettings::new(Profile::ED25519, key.public_key(), role);
    settings.max_frame = 65_536;
    settings.probe_every = PROBE_EVERY_MAX;
    settings
}

fn dialler() -> Link {
    let settings = settings(&key(1), Role::Node);
    Link::dial(NOW.mono, settings, None, BINDING, [0x5a; 32]).unwrap()
}

fn answerer() -> Link {
    let settings = settings(&key(2), Role::Station);
    Link::accept(NOW.mono, settings, BINDING, [0xa5; 32]).unwrap()
}

/// The body of the next frame out.
fn sent(link: &mut Link) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if !link.poll_transmit(&mut out) {
        return None;
    }
    link.handle_written(NOW, out.len());
    match next_frame(&out, HANDSHAKE_CAP) {
        Ok(Split::Frame { body, taken }) if taken == out.len() => Some(body.to_vec()),
        other => panic!("{other:?}"),
    }
}

/// One handshake, each body passed through `meddle` with the number of its frame.
fn talk(
    dialler: &mut Link,
    answerer: &mut Link,
    mut meddle: impl FnMut(usize, &mut Vec<u8>),
) -> Result<(Peer, Peer), LinkError> {
    let mut carry = |number: usize, link: &mut Link| {
        let mut body = sent(link).expect("a frame");
        meddle(number, &mut body);
        body
    };
    let opener = carry(0, dialler);
    answerer.handle_frame(NOW, &opener, &key(2))?;
    let challenge = carry(1, answerer);
    dialler.handle_frame(NOW, &challenge, &key(1))?;
    let connect = carry(2, dialler);
    let Step::Verified(seen) = answerer.handle_frame(NOW, &connect, &key(2))? else {
        panic!("a connect either verifies or fails");
    };
    answerer.admit(&key(2))?;
    let hello = carry(3, answerer);
    match dialler.handle_frame(NOW, &hello, &key(1))? {
        Step::Established(station) => Ok((seen, station)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_sides_learn_who_the_other_is() {
    let (mut d, mut a) = (dialler(), answerer());
    assert_eq!((d.frame_cap(), a.frame_cap()), (4096, 4096));
    let (node, station) = talk(&mut d, &mut a, |_, _| {}).unwrap();
    assert_eq!(node.id, key(1).node_id());
    assert_eq!((node.role, node.mesh, node.wall), (Role::Node, None, None));
    assert_eq!(station.id, key(2).node_id());
    assert_eq!(station.mesh, Some(*key(2).node_id().as_bytes()));
    assert_eq!(station.wall, Some(NOW.wall));
    assert_eq!(station.max_frame, 65_536);
    assert_eq!(d.peer(), Some(&station));
    assert_eq!(a.peer(), Some(&node));
    assert!(d.is_up() && a.is_up());
    assert_eq!((d.frame_cap(), a.frame_cap()), (65_536, 65_536));
    let probe = Some(NOW.mono.saturating_add(PROBE_EVERY_MAX));
    assert_eq!((d.poll_timeout(), a.poll_timeout()), (probe, probe));
    assert_eq!(sent(&mut d), None);
    assert_eq!(sent(&mut a), None);
}

#[test]
fn each_tampered_byte_of_every_frame_ends_the_handshake() {
    let mut lengths = [0; 4];
    talk(&mut dialler(), &mut answerer(), |number, body| {
        lengths[number] = body.len()
    })
    .unwrap();
    for (tampered, length) in lengths.into_iter().enumerate() {
        for at in 0..length {
            // One of a byte's bits each, so that every byte is changed and the run stays short.
            let mask = 1 << (at % 8);
            let result = talk(&mut dialler(), &mut answerer(), |number, body| {
                if number == tampered {
                    body[at] ^= mask;
                }
            });
            assert!(result.is_err(), "byte {at} of frame {tampered}");
        }
    }
}

#[test]
fn each_frame_cut_or_lengthened_ends_the_handshake() {
    for tampered in 0..4 {
        let changes: [fn(&mut Vec<u8>); 3] = [
            |body| body.truncate(body.len() - 1),
            |body| body.push(0),
            Vec::clear,
        ];
        for change in changes {
            let result = talk(&mut dialler(), &mut answerer(), |number, body| {
                if number == tampered {
                    change(body);
                }
            });
            assert!(matches!(result, Err(LinkError::Cbor(_))), "{result:?}");
        }
    }
}

#[test]
fn who_proved_one_key_in_the_transport_and_another_here_is_refused_on_either_side() {
    let proved = |part| Binding::Proved {
        exporter: [7; 32],
        peer: key(part).node_id(),
    };
    let dialling = |part| {
        let settings = settings(&key(1), Role::Node);
        Link::dial(NOW.mono, settings, None, proved(part), [0x5a; 32]).unwrap()
    };
    let answering = |part| {
        let settings = settings(&key(2), Role::Station);
        Link::accept(NOW.mono, settings, proved(part), [0xa5; 32]).unwrap()
    };
    let talked = |d: u8, a: u8| talk(&mut dialling(d), &mut answering(a), |_, _| {});
    assert!(talked(2, 1).is_ok());
    assert_eq!(talked(3, 1).err(), Some(LinkError::KeyMismatch));
    // The dialler is told no more than that it is not accepted, and nothing was verified for it.
    let (mut d, mut a) = (dialling(2), answering(3));
    let refused = talk(&mut d, &mut a, |_, _| {}).unwrap_err();
    assert_eq!(refused, LinkError::KeyMismatch);
    assert_eq!(refused.code(), CloseReason::Refused);
    let hello = sent(&mut a).unwrap();
    let told = LinkError::RefusedByStation(HandshakeRefusal::NotAccepted);
    assert_eq!(d.handle_frame(NOW, &hello, &key(1)), Err(told));
}

#[test]
fn another_station_than_the_one_dialled_is_refused() {
    let settings = settings(&key(1), Role::Node);
    let expected = Some(key(3).node_id());
    let mut d = Link::dial(NOW.mono, settings, expected, BINDING, [1; 32]).unwrap();
    let result = talk(&mut d, &mut answerer(), |_, _| {});
    assert_eq!(result, Err(LinkError::WrongStation));
    assert_eq!(d.error(), Some(LinkError::WrongStation));
    assert_eq!(
        sent(&mut d),
        None,
        "a dialler that refuses says nothing more"
    );
}

#[test]
fn a_link_to_oneself_is_refused() {
    let settings = settings(&key(2), Role::Station);
    let mut d = Link::dial(NOW.mono, settings, None, BINDING, [1; 32]).unwrap();
    assert_eq!(
        talk(&mut d, &mut answerer(), |_, _| {}),
        Err(LinkError::OwnLink)
    );
}

#[test]
fn two_bindings_make_no_link() {
    let settings = settings(&key(1), Role::Node);
    let other = Binding::Exporter([8; 32]);
    let mut d = Link::dial(NOW.mono, settings, None, other, [1; 32]).unwrap();
    let mut a = answerer();
    assert_eq!(
        talk(&mut d, &mut a, |_, _| {}),
        Err(LinkError::ProofInvalid)
    );
    let told = sent(&mut a).expect("a refusal");
    assert_eq!(
        d.handle_frame(NOW, &told, &key(1)),
        Err(LinkError::RefusedByStation(HandshakeRefusal::NotAccepted))
    );
}

#[test]
fn a_local_link_needs_both_configurations() {
    let mut settings = settings(&key(1), Role::Node);
    let link = Link::dial(NOW.mono, settings, None, Binding::Local, [1; 32]);
    assert_eq!(link.unwrap_err(), LinkError::LocalNotAllowed);
    settings.allow_local = true;
    let mut d = Link::dial(NOW.mono, settings, None, Binding::Local, [1; 32]).unwrap();
    settings.key = key(2).public_key();
    let mut a = Link::accept(NOW.mono, settings, Binding::Local, [2; 32]).unwrap();
    talk(&mut d, &mut a, |_, _| {}).unwrap();
}

#[test]
fn an_old_hello_does_not_fit_a_new_handshake() {
    let (mut d, mut a) = (dialler(), answerer());
    let mut old = Vec::new();
    talk(&mut d, &mut a, |number, body| {
        if number == 3 {
            old.clone_from(body);
        }
    })
    .unwrap();
    let settings = settings(&key(1), Role::Node);
    let mut d = Link::dial(NOW.mono, settings, None, BINDING, [0x5b; 32]).unwrap();
    let result = talk(&mut d, &mut answerer(), |number, body| {
        if number == 3 {
            body.clone_from(&old);
        }
    });
    assert_eq!(result, Err(LinkError::ProofInvalid));
}

#[test]
fn an_old_connect_does_not_fit_a_new_nonce() {
    let mut old = Vec::new();
    talk(&mut dialler(), &mut answerer(), |number, body| {
        if number == 2 {
            old.clone_from(body);
        }
    })
    .unwrap();
    let mut a = Link::accept(NOW.mono, settings(&key(2), Role::Station), BINDING, [1; 32]).unwrap();
    let result = talk(&mut dialler(), &mut a, |number, body| {
        if number == 2 {
            body.clone_from(&old);
        }
    });
    assert_eq!(result, Err(LinkError::ProofInvalid));
}

#[test]
fn a_handshake_ends_after_thirty_seconds_on_either_side() {
    for mut link in [dialler(), answerer()] {
        let deadline = link.poll_timeout().unwrap();
        assert_eq!(deadline, Instant::from_millis(30_000));
        let before = Instant::from_micros(deadline.as_micros() - 1);
        assert_eq!(link.handle_timeout(before), Ok(()));
        assert_eq!(
            link.handle_timeout(deadline),
            Err(LinkError::HandshakeTimeout)
        );
        assert_eq!(
            link.handle_timeout(before),
            Err(LinkError::HandshakeTimeout)
        );
        assert_eq!(link.poll_timeout(), None);
        assert_eq!(
            LinkError::HandshakeTimeout.code(),
            CloseReason::HandshakeTimeout
        );
    }
    // A frame that comes with the deadline comes too late.
    let (mut d, mut a) = (dialler(), answerer());
    let opener = sent(&mut d).unwrap();
    let late = Now::new(Instant::from_millis(30_000), NOW.wall);
    let result = a.handle_frame(late, &opener, &key(2));
    assert_eq!(result, Err(LinkError::HandshakeTimeout));
    assert_eq!(sent(&mut a), None);
}

#[test]
fn a_frame_not_whole_in_thirty_seconds_ends_the_link_pause_aside() {
    let (mut d, mut a) = (dialler(), answerer());
    talk(&mut d, &mut a, |_, _| {}).unwrap();
    let at = Instant::from_millis;
    d.handle_partial(at(1_000), true);
    d.handle_partial(at(9_000), true);
    assert_eq!(d.poll_timeout(), Some(at(31_000)), "more bytes do not help");
    d.handle_partial(at(30_000), false);
    d.handle_partial(at(30_000), true);
    assert_eq!(
        d.poll_timeout(),
        Some(at(60_000)),
        "the next frame has its own time"
    );
    d.handle_paused(at(40_000), true);
    assert_eq!(d.poll_timeout(), None);
    assert_eq!(d.handle_timeout(at(500_000)), Ok(()));
    d.handle_paused(at(500_000), false);
    assert_eq!(d.poll_timeout(), Some(at(520_000)));
    assert_eq!(d.handle_timeout(at(519_999)), Ok(()));
    assert_eq!(d.handle_timeout(at(520_000)), Err(LinkError::FrameTimeout));
    assert_eq!((d.poll_timeout(), d.is_up()), (None, false));
}

#[test]
fn a_frame_above_the_handshake_cap_is_refused() {
    let mut a = answerer();
    let result = a.handle_frame(NOW, &[0; 4097], &key(2));
    assert_eq!(result, Err(LinkError::FrameTooLarge));
    assert!(sent(&mut a).is_some(), "the dialler is told");
}

#[test]
fn a_frame_out_of_place_is_unexpected() {
    let (mut d, mut a) = (dialler(), answerer());
    let opener = sent(&mut d).unwrap();
    a.handle_frame(NOW, &opener, &key(2)).unwrap();
    assert_eq!(
        a.handle_frame(NOW, &opener, &key(2)),
        Err(LinkError::UnexpectedFrame)
    );
    let (mut d, mut a) = (dialler(), answerer());
    talk(&mut d, &mut a, |_, _| {}).unwrap();
    assert_eq!(
        d.handle_frame(NOW, &opener, &key(1)),
        Err(LinkError::UnexpectedFrame)
    );
}

#[test]
fn no_common_version_is_told_as_such() {
    let mut a = answerer();
    let mut body = Vec::new();
    Frame::Opener(Opener { first: 2, last: 3 }).encode(&mut body);
    assert_eq!(
        a.handle_frame(NOW, &body, &key(2)),
        Err(LinkError::UnsupportedVersion)
    );
    let told = sent(&mut a).unwrap();
    assert!(matches!(
        Frame::decode(&told, Phase::Challenge),
        Ok(Frame::Hello(Hello::Refused(
            HandshakeRefusal::UnsupportedVersion
        )))
    ));
    let mut body = Vec::new();
    Frame::Opener(Opener { first: 1, last: 9 }).encode(&mut body);
    assert_eq!(
        answerer().handle_frame(NOW, &body, &key(2)),
        Ok(Step::Continue)
    );
}

#[test]
fn a_link_that_has_ended_ends_for_no_other_reason() {
    let mut a = answerer();
    let first = LinkError::Refused(HandshakeRefusal::NotAccepted);
    assert_eq!(a.fail(first), first);
    assert_eq!(a.fail(LinkError::OwnLink), first);
    assert_eq!(a.error(), Some(first));
    assert!(sent(&mut a).is_some(), "one refusal");
    assert!(sent(&mut a).is_none());
}

#[test]
fn a_refusal_reaches_the_dialler_and_the_error_is_repeated() {
    for refusal in HandshakeRefusal::ALL {
        let (mut d, mut a) = (dialler(), answerer());
        let opener = sent(&mut d).unwrap();
        a.handle_frame(NOW, &opener, &key(2)).unwrap();
        let challenge = sent(&mut a).unwrap();
        d.handle_frame(NOW, &challenge, &key(1)).unwrap();
        let connect = sent(&mut d).unwrap();
        let step = a.handle_frame(NOW, &connect, &key(2)).unwrap();
        assert!(matches!(step, Step::Verified(_)));
        assert_eq!(a.refuse(*refusal), LinkError::Refused(*refusal));
        assert_eq!(a.admit(&key(2)), Err(LinkError::Refused(*refusal)));
        let told = sent(&mut a).unwrap();
        let want = Err(LinkError::RefusedByStation(*refusal));
        assert_eq!(d.handle_frame(NOW, &told, &key(1)), want);
        assert_eq!(d.handle_frame(NOW, &challenge, &key(1)), want, "repeated");
        assert_eq!(
            LinkError::RefusedByStation(*refusal).code(),
            CloseReason::Refused
        );
    }
}

#[test]
fn nobody_is_admitted_who_did_not_prove_himself() {
    let mut a = answerer();
    assert_eq!(a.admit(&key(2)), Err(LinkError::UnexpectedFrame));
    assert_eq!(a.error(), None, "a command that is refused changes nothing");
    assert!(!a.is_up());
}

struct Broken(SecretKey);

impl Signer for Broken {
    fn profile(&self) -> Profile {
        self.0.profile()
    }
    fn public_key(&self) -> [u8; 32] {
        self.0.public_key()
    }
    fn sign(&self, _: &[&[u8]]) -> Result<[u8; 64], SignError> {
        Err(SignError)
    }
}

#[test]
fn a_signer_that_fails_ends_the_link_and_the_other_side_is_told() {
    let (mut d, mut a) = (dialler(), answerer());
    let opener = sent(&mut d).unwrap();
    a.handle_frame(NOW, &opener, &key(2)).unwrap();
    let challenge = sent(&mut a).unwrap();
    let broken = d.handle_frame(NOW, &challenge, &Broken(key(1)));
    assert_eq!(broken, Err(LinkError::SignerFailed));
    let mut d = dialler();
    sent(&mut d).unwrap();
    d.handle_frame(NOW, &challenge, &key(1)).unwrap();
    let connect = sent(&mut d).unwrap();
    a.handle_frame(NOW, &connect, &key(2)).unwrap();
    assert_eq!(a.admit(&Broken(key(2))), Err(LinkError::SignerFailed));
    let told = sent(&mut a).unwrap();
    let want = Err(LinkError::RefusedByStation(HandshakeRefusal::NotAccepted));
    assert_eq!(d.handle_frame(NOW, &told, &key(1)), want);
}

#[test]
fn draining_late_changes_no_byte() {
    // A dialler whose opener was never polled still answers a challenge, and sends both in order.
    let (mut d, mut a) = (dialler(), answerer());
    let opener = sent(&mut dialler()).unwrap();
    a.handle_frame(NOW, &opener, &key(2)).unwrap();
    d.handle_frame(NOW, &sent(&mut a).unwrap(), &key(1))
        .unwrap();
    assert_eq!(sent(&mut d).unwrap(), opener);
    let connect = sent(&mut d).unwrap();
    assert!(matches!(
        a.handle_frame(NOW, &connect, &key(2)),
        Ok(Step::Verified(_))
    ));
}

#[test]
fn any_bytes_are_judged_without_a_panic() {
    let mut rng = crate::Seed::new([3; 32]).fork("link");
    let good = sent(&mut dialler()).unwrap();
    for _ in 0..2000 {
        let mut body = good.clone();
        for _ in 0..rng.below(4) {
            let at = rng.below(body.len() as u64) as usize;
            body[at] = rng.next_u64() as u8;
        }
        body.truncate(rng.below(body.len() as u64 + 1) as usize);
        for mut link in [dialler(), answerer()] {
            if let Err(error) = link.handle_frame(NOW, &body, &key(2)) {
                assert_eq!(link.error(), Some(error));
                assert_eq!(link.handle_frame(NOW, &good, &key(2)), Err(error));
            }
        }
    }
}
