//! Links that take too long.

use tidings::code::CloseReason;
use tidings::{ClientConfig, Intake, LinkError, StationConfig};

use super::common::{Far, at, closed, move_to, signer};
use super::{Honest, HonestClient, HonestStation, goodbye};

/// Both machines, each with a stranger.
fn both(check: impl Fn(&mut dyn Honest, Far)) {
    let mut station = HonestStation::new(StationConfig::new(signer(1)));
    let far = station.stranger(at(0));
    check(&mut station, far);
    let mut client = HonestClient::new(ClientConfig::new(signer(1)));
    let far = client.stranger(at(0));
    check(&mut client, far);
}

#[test]
fn a_handshake_of_thirty_seconds_ends_the_link() {
    both(|honest, far| {
        drop(closed(honest.machine()));
        move_to(honest.machine(), at(29_999));
        assert!(closed(honest.machine()).is_empty());
        move_to(honest.machine(), at(30_000));
        let ended = closed(honest.machine());
        assert_eq!(ended, [(far.id, CloseReason::HandshakeTimeout)]);
        assert_eq!(honest.links_failed(), 1);
        honest.still_delivers(at(30_000));
    });
}

#[test]
fn a_handshake_that_goes_on_byte_by_byte_gains_no_time() {
    both(|honest, mut far| {
        drop(closed(honest.machine()));
        for second in 0..30 {
            move_to(honest.machine(), at(second * 1000));
            // The first bytes of a frame that will not end.
            let bytes: &[u8] = if second == 0 { &[0, 0, 15, 0] } else { b"x" };
            assert_eq!(
                far.append(honest.machine(), at(second * 1000), bytes),
                Ok(Intake::Open)
            );
        }
        move_to(honest.machine(), at(30_000));
        let ended = closed(honest.machine());
        assert_eq!(ended, [(far.id, CloseReason::HandshakeTimeout)]);
    });
}

#[test]
fn a_frame_not_whole_in_thirty_seconds_ends_the_link_however_it_trickles() {
    both(|honest, mut far| {
        far.shake_hands(honest.machine(), at(0));
        honest.welcome(&mut far);
        drop(far.read(honest.machine(), at(0)));
        drop(closed(honest.machine()));
        // The length comes in three seconds, and then 27 of the 200 bytes it promises.
        let trickle = [0, 0, 0, 200].into_iter().chain(core::iter::repeat(b'x'));
        for (second, byte) in (1..=30).zip(trickle) {
            let now = at(second * 1000);
            move_to(honest.machine(), now);
            let taken = far.append(honest.machine(), now, &[byte]);
            assert_eq!(taken, Ok(Intake::Open));
        }
        move_to(honest.machine(), at(30_999));
        assert_eq!(closed(honest.machine()), []);
        move_to(honest.machine(), at(31_000));
        let ended = closed(honest.machine());
        assert_eq!(ended, [(far.id, CloseReason::ProtocolError)]);
        let mut wrote = far.types(honest.machine(), at(31_000));
        wrote.retain(|word| word != "progress");
        assert_eq!(wrote, [goodbye(LinkError::FrameTimeout)]);
        honest.still_delivers(at(31_000));
    });
}
