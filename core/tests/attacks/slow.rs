//! Clients that never finish, that send a byte now and then, and that send too much, at a station that has others to serve.

use bytes::BytesMut;
use tidings::code::CloseReason;
use tidings::crypto::SecretKey;
use tidings::link::HANDSHAKE_TIMEOUT;
use tidings::wire::{Frame, Hello, Opener, Phase, Split, next_frame};
use tidings::{Intake, LinkError, LinkEvent, LinkId, Now, Station, StationConfig};

use super::common::{self, Far, at, closed, move_to};
use super::relay::body;
use super::scene::{Counted, End, Scene, channel, key_of};

/// When a handshake must be over.
const OVER: u64 = HANDSHAKE_TIMEOUT.as_millis() as u64;

const TIMEOUT: CloseReason = CloseReason::HandshakeTimeout;

/// A station whose signatures are counted, and what one attacker sends to it and is told.
struct Siege {
    station: Station,
    key: Counted,
}

impl Siege {
    fn new() -> Self {
        let key = key_of("station");
        let station = common::station(StationConfig::new(key.clone()));
        Self { station, key }
    }

    fn link(&mut self, ms: u64) -> LinkId {
        let up = LinkEvent::Up {
            dialled: None,
            binding: channel(1),
        };
        self.station.handle_link(at(ms), up).expect("room")
    }

    /// The driver has closed its socket.
    fn end(&mut self, now: Now, link: LinkId) {
        let down = LinkEvent::Down {
            link,
            reason: CloseReason::Io,
        };
        self.station.handle_link(now, down).expect("a link of it");
    }

    fn send(&mut self, ms: u64, link: LinkId, bytes: &[u8]) -> Result<Intake, LinkError> {
        let mut input = BytesMut::from(bytes);
        self.station.handle_input(at(ms), link, &mut input)
    }

    /// What it says on a link, as frame types and bytes.
    fn told(&mut self, link: LinkId) -> (Vec<&'static str>, usize) {
        let (mut out, mut said) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.station.poll_transmit(link, &mut out) {
            self.station.handle_written(at(0), link, transmit.len());
        }
        let all = out.len();
        while let Ok(Split::Frame { body, taken }) = next_frame(&out, 4096) {
            let challenge = Frame::decode(body, Phase::Challenge);
            said.push(match challenge {
                Ok(Frame::Challenge(_)) => "challenge",
                Ok(Frame::Hello(Hello::Refused(refusal))) => refusal.text(),
                other => panic!("{other:?}"),
            });
            out.drain(..taken);
        }
        (said, all)
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes(), body].concat()
}

fn opener() -> Vec<u8> {
    framed(&body(Frame::Opener(Opener { first: 1, last: 1 })))
}

/// ```text
/// attacker > station: nothing · opener · opener and the first half of a connect
/// station > attacker: nothing · challenge · challenge
/// station ends it: handshake_timeout after 30 s, without another word
/// ```
///
/// A hundred of each, twice. None is signed for, none delays an honest node, and nothing is left of them.
#[test]
fn clients_that_never_finish_are_gone_after_thirty_seconds() {
    let mut siege = Siege::new();
    let half = [opener(), framed(&[0; 300])[..104].to_vec()].concat();
    let never: [(&[u8], &[&str]); 3] = [
        (&[], &[]),
        (&opener(), &["challenge"]),
        (&half, &["challenge"]),
    ];
    let mut memory = Vec::new();
    for began in [0, 100_000] {
        let mut links = Vec::new();
        for (sent, says) in never.repeat(100) {
            let link = siege.link(began);
            assert_eq!(siege.send(began, link, sent), Ok(Intake::Open));
            let (said, bytes) = siege.told(link);
            assert_eq!(said, says);
            // More than it was sent, but to an address that answers: TCP has seen to that.
            assert!(bytes <= 260, "{bytes} bytes");
            links.push(link);
        }
        let (key, signed) = (SecretKey::from_seed([1; 32]), siege.key.signed());
        let mut honest = Far::dial(&mut siege.station, at(began + 1000), key);
        assert_eq!(siege.key.signed(), signed + 1, "for the honest node alone");
        move_to(&mut siege.station, at(began + OVER - 1));
        assert_eq!(siege.station.status().links.len(), 301);
        assert!(closed(&mut siege.station).is_empty());
        let over = at(began + OVER);
        move_to(&mut siege.station, over);
        let gone = links.iter().map(|link| (*link, TIMEOUT));
        assert!(closed(&mut siege.station).into_iter().eq(gone));
        for link in links {
            assert_eq!(
                siege.told(link),
                (vec![], 0),
                "who says nothing hears nothing"
            );
            siege.end(over, link);
        }
        let subscribed = honest.subscribe(&mut siege.station, over, 1, "any/thing");
        assert_eq!(subscribed, Ok(Intake::Open));
        assert_eq!(siege.key.signed(), signed + 1);
        siege.end(over, honest.id);
        memory.push(siege.station.memory());
    }
    assert_eq!(memory[0], memory[1]);
}

/// ```text
/// attacker > station: an opener and a connect, one byte each second
/// station > attacker: challenge, once the opener is whole
/// station ends it: handshake_timeout, 30 s after the link began
/// ```
#[test]
fn a_byte_now_and_then_wins_no_time_in_a_handshake() {
    let mut siege = Siege::new();
    let link = siege.link(0);
    let bytes = [opener(), framed(&[0xa0; 300])].concat();
    let mut buffer = BytesMut::new();
    let mut ended = None;
    for (second, byte) in (1..).zip(bytes) {
        let now = at(second * 1000);
        move_to(&mut siege.station, now);
        buffer.extend_from_slice(&[byte]);
        if let Err(error) = siege.station.handle_input(now, link, &mut buffer) {
            ended = Some((second, error));
            break;
        }
    }
    assert_eq!(ended, Some((30, LinkError::HandshakeTimeout)));
    assert_eq!(siege.key.signed(), 0);
    assert!(buffer.is_empty(), "what it sent is not kept");
}

/// ```text
/// node > station: a handshake as it should be, then a frame of a hundred bytes, one byte each second
/// station ends it: frame_timeout, 30 s after the first byte of that frame
/// ```
#[test]
fn a_byte_now_and_then_wins_no_time_after_it() {
    let mut siege = Siege::new();
    let mut far = Far::dial(&mut siege.station, at(0), SecretKey::from_seed([1; 32]));
    let frame = framed(&[0xa0; 100]);
    let mut ended = None;
    for (second, byte) in (100..).zip(frame) {
        let now = at(second * 1000);
        move_to(&mut siege.station, now);
        if let Err(error) = far.append(&mut siege.station, now, &[byte]) {
            ended = Some((second, error));
            break;
        }
    }
    assert_eq!(ended, Some((130, LinkError::FrameTimeout)));
}

/// A node is held no longer by a station that answers a byte at a time.
#[test]
fn a_station_that_answers_a_byte_now_and_then_wins_no_time_either() {
    let mut node = End::node(channel(1));
    let [_, challenge, ..] =
        Scene::record(&mut End::node(channel(1)), &mut End::station(channel(1)));
    let mut ended = None;
    for (second, byte) in (1..).zip(framed(&challenge)) {
        let now = at(second * 1000);
        if let Err(error) = node.link.handle_timeout(now.mono) {
            ended = Some((second, error));
            break;
        }
        node.read(now, &[byte]).expect("not whole");
    }
    assert_eq!(ended, Some((30, LinkError::HandshakeTimeout)));
    Scene::new().spends_nothing(&[&node]);
}

/// ```text
/// attacker > station: the length of a frame of 4097 bytes, in place of an opener · behind one
/// station > attacker: hello not_accepted · challenge, hello not_accepted
/// station ends it: frame_too_large, from four bytes
/// ```
#[test]
fn a_frame_too_long_for_a_handshake_is_refused_from_its_length() {
    for (before, says) in [
        (Vec::new(), vec!["not_accepted"]),
        (opener(), vec!["challenge", "not_accepted"]),
    ] {
        for length in [4097_u32, 65_536, 1 << 20, u32::MAX] {
            let mut siege = Siege::new();
            let link = siege.link(0);
            let sent = [&before[..], &length.to_be_bytes()].concat();
            let told = siege.send(0, link, &sent);
            assert_eq!(told, Err(LinkError::FrameTooLarge), "{length}");
            assert_eq!(siege.told(link).0, says);
            assert_eq!(
                closed(&mut siege.station),
                [(link, CloseReason::ProtocolError)]
            );
            assert_eq!(siege.key.signed(), 0);
        }
        // The longest it may be is waited for, and no longer than anything else.
        let mut siege = Siege::new();
        let link = siege.link(0);
        let sent = [&before[..], &4096_u32.to_be_bytes(), &[0; 4095]].concat();
        assert_eq!(siege.send(0, link, &sent), Ok(Intake::Open));
        move_to(&mut siege.station, at(OVER));
        assert_eq!(closed(&mut siege.station), [(link, TIMEOUT)]);
    }
}

/// The same of a station's frames, at a node.
#[test]
fn a_station_may_not_say_too_much_either() {
    for length in [4097_u32, u32::MAX] {
        let (mut scene, mut node) = (Scene::new(), End::node(channel(1)));
        assert_eq!(framed(&scene.hear_one(&mut node)), opener());
        let told = node.read(at(0), &length.to_be_bytes());
        assert_eq!(told, Err(LinkError::FrameTooLarge));
        assert!(scene.hear(&mut node).is_empty());
        scene.spends_nothing(&[&node]);
    }
}
