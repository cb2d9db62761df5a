use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::LinkError;
use crate::code::ResumeCode;
use crate::wire::cbor::{self, Writer};
use crate::wire::{
    EVENT_REST, EventStart, NUMBER_LIMIT, Split, event_head, event_rest, next_frame, publish_head,
};

/// A frame with everything it borrows.
#[derive(Clone, Debug)]
struct Parts {
    numbers: [u64; 4],
    bytes: [u8; 64],
    text: String,
    filters: Vec<String>,
    pick: usize,
    flag: bool,
}

fn parts() -> impl Strategy<Value = Parts> {
    (
        prop::array::uniform4(prop_oneof![0..30u64, 0..NUMBER_LIMIT]),
        prop::collection::vec(any::<u8>(), 64),
        ".{0,40}",
        prop::collection::vec("[a-c]{1,3}(/\\*)?", 0..5),
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(numbers, bytes, text, filters, pick, flag)| Parts {
            numbers,
            bytes: bytes.try_into().unwrap(),
            text,
            filters,
            pick: pick.index(1000),
            flag,
        })
}

fn pick<T: Copy>(parts: &Parts, all: &[T]) -> T {
    all[parts.pick % all.len()]
}

/// Every frame that may be written, made of `parts`; `lend` holds what an `interest` lends.
fn frames<'a>(parts: &'a Parts, lend: &'a [InterestEntry<'a>]) -> Vec<(Phase, Frame<'a>)> {
    let [a, b, c, _] = parts.numbers;
    let id = a.max(1);
    let key = parts.bytes.first_chunk().unwrap();
    let nonce = parts.bytes.last_chunk().unwrap();
    let short = parts.bytes.first_chunk().unwrap();
    let position = Position {
        run: RunId::new(*parts.bytes.first_chunk().unwrap()),
        offset: b,
    };
    let limit = parts.flag.then_some(c);
    let resume = match parts.pick % 3 {
        0 => ResumeOutcome::None,
        1 => ResumeOutcome::Resumed { count: c },
        _ => ResumeOutcome::Expired { oldest: c },
    };
    let outcome = pick(
        parts,
        &[
            OutcomeCode::Routed,
            OutcomeCode::NoSubscriber,
            OutcomeCode::Refused,
        ],
    );
    let reason = (outcome == OutcomeCode::Refused).then(|| pick(parts, PublishRefusal::ALL));
    let skip = pick(parts, SkipReason::ALL);
    let travels = |reason: &&CloseReason| !matches!(reason, CloseReason::Io | CloseReason::Refused);
    let close: Vec<_> = CloseReason::ALL.iter().filter(travels).copied().collect();
    let version = (a % 255) as u8 + 1;
    let max_frame = 512 + (b % 0xff_fe00) as u32;
    let object = b"\xa1\x61k\x01";
    vec![
        (
            Phase::Opener,
            Frame::Opener(Opener {
                first: 1,
                last: version,
            }),
        ),
        (
            Phase::Challenge,
            Frame::Challenge(Challenge {
                key,
                mesh: nonce,
                nonce: key,
                profile: &parts.text,
                wall: WallMs::new(a),
                max_frame,
                capabilities: b,
            }),
        ),
        (
            Phase::Connect,
            Frame::Connect(Connect {
                key,
                role: if parts.flag {
                    Role::Node
                } else {
                    Role::Station
                },
                nonce,
                proof: &parts.bytes,
                profile: &parts.text,
                max_frame,
                capabilities: b,
            }),
        ),
        (Phase::Hello, Frame::Hello(Hello::Accepted(&parts.bytes))),
        (
            Phase::Hello,
            Frame::Hello(Hello::Refused(pick(parts, HandshakeRefusal::ALL))),
        ),
        (
            Phase::Challenge,
            Frame::Hello(Hello::Refused(pick(parts, HandshakeRefusal::ALL))),
        ),
        (
            Phase::Established,
            Frame::Subscribe(Subscribe {
                id,
                realm: RealmId::new(*key),
                filter: &parts.text,
                resume: parts.flag.then_some(position),
            }),
        ),
        (
            Phase::Established,
            Frame::Subscribed(Subscribed {
                id,
                resume,
                position,
            }),
        ),
        (
            Phase::Established,
            Frame::Refused(Refused {
                id,
                limit,
                reason: pick(parts, SubscribeRefusal::ALL),
            }),
        ),
        (Phase::Established, Frame::Unsubscribe(id)),
        (
            Phase::Established,
            Frame::Publish(Publish {
                id,
                route: Route::One,
                publication: object,
            }),
        ),
        (
            Phase::Established,
            Frame::Published(Published {
                id,
                limit: limit.filter(|_| reason.is_some()),
                reason,
                outcome,
                subscribers: if outcome == OutcomeCode::Routed { b } else { 0 },
            }),
        ),
        (
            Phase::Established,
            Frame::Event(Event {
                id,
                via: Via::Mesh,
                offset: b,
                publication: object,
            }),
        ),
        (
            Phase::Established,
            Frame::Progress(Progress {
                id,
                offset: b,
                behind_ms: c,
            }),
        ),
        (
            Phase::Established,
            Frame::Skipped(Skipped {
                id,
                to: b.min(c),
                from: b.max(c),
                peer: (skip == SkipReason::PeerInterrupted).then(|| NodeId::new(*key)),
                count: a,
                reason: skip,
            }),
        ),
        (Phase::Established, Frame::Ping(short)),
        (Phase::Established, Frame::Pong(short)),
        (
            Phase::Established,
            Frame::Goodbye(Goodbye {
                detail: &parts.text,
                reason: pick(parts, &close),
            }),
        ),
        (
            Phase::Established,
            Frame::Interest(Interest {
                add: InterestEntries::lend(lend),
                remove: InterestEntries::lend(&lend[lend.len() / 2..]),
                to_version: a,
                from_version: b,
            }),
        ),
        (Phase::Established, Frame::InterestWanted),
    ]
}

fn lend(parts: &Parts) -> Vec<InterestEntry<'_>> {
    let realm = RealmId::new(*parts.bytes.first_chunk().unwrap());
    let entry = |filter: &'_ String| -> InterestEntry<'_> {
        if filter.contains('*') {
            InterestEntry::Filter {
                realm,
                filter: "a/*",
            }
        } else {
            InterestEntry::of_topic(realm, filter)
        }
    };
    parts.filters.iter().map(entry).collect()
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    frame.encode(&mut body);
    body
}

const PHASES: [Phase; 5] = [
    Phase::Opener,
    Phase::Challenge,
    Phase::Connect,
    Phase::Hello,
    Phase::Established,
];

proptest! {
    #[test]
    fn every_frame_comes_back_as_it_was_written(parts in parts()) {
        let lend = lend(&parts);
        for (phase, frame) in frames(&parts, &lend) {
            let body = encoded(&frame);
            prop_assert_eq!(cbor::check(&body, false), Ok(()), "{:?}", frame);
            let read = Frame::decode(&body, phase);
            prop_assert!(read.is_ok(), "{:?}: {:?}", frame, read);
            let read = read.unwrap();
            prop_assert_eq!(read.frame_type(), frame.frame_type());
            prop_assert_eq!(encoded(&read), body.clone());
            prop_assert_eq!(frame.encoded_len(), body.len());

            let mut framed = vec![0xee];
            frame.encode_framed(&mut framed);
            let split = next_frame(&framed[1..], u32::MAX);
            prop_assert_eq!(split, Ok(Split::Frame { body: &body, taken: body.len() + 4 }));
            let mut slice = vec![0; body.len() + 4];
            prop_assert_eq!(frame.encode_framed_slice(&mut slice), Ok(body.len() + 4));
            prop_assert_eq!(&slice, &framed[1..]);
            let short = frame.encode_framed_slice(&mut slice[..body.len()]);
            prop_assert_eq!(short, Err(cbor::TooSmall { needed: body.len() + 4 }));
        }
    }

    #[test]
    fn a_body_changed_anywhere_is_refused_or_written_back_the_same(
        parts in parts(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let lend = lend(&parts);
        for (phase, frame) in frames(&parts, &lend) {
            let mut body = encoded(&frame);
            let at = at.index(body.len());
            body[at] = byte;
            match Frame::decode(&body, phase) {
                Ok(Frame::Unknown(_)) | Err(_) => {}
                Ok(read) => prop_assert_eq!(encoded(&read), body),
            }
        }
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
        for phase in PHASES {
            if let Err(LinkError::Cbor(fault)) = Frame::decode(&body, phase) {
                prop_assert_eq!(cbor::check(&body, false), Err(fault));
            }
        }
    }

    #[test]
    fn a_head_and_its_publication_are_the_whole_frame(
        id in 1..NUMBER_LIMIT, offset in 0..NUMBER_LIMIT, len in 0usize..70_000,
    ) {
        let mut publication = Vec::new();
        Writer::new(&mut publication).map(1).text("k").bytes(&vec![7; len]);
        let event = Frame::Event(Event { id, via: Via::Direct, offset, publication: &publication });
        let publish = Frame::Publish(Publish { id, route: Route::All, publication: &publication });
        let (mut heads, mut whole) = (Vec::new(), Vec::new());
        event_head(&mut heads, id, Via::Direct, offset, publication.len());
        heads.extend(&publication);
        // What is the same for all links is written once.
        let (mut rest, mut parts) = (Vec::new(), Vec::new());
        event_rest(&mut rest, Via::Direct, offset);
        prop_assert!(rest.len() <= EVENT_REST);
        rest.extend(&publication);
        EventStart::new(id).put(&mut parts, rest.len());
        prop_assert!(parts.len() <= EventStart::MOST);
        parts.extend(rest);
        prop_assert_eq!(&parts, &heads);
        publish_head(&mut heads, id, Route::All, publication.len());
        heads.extend(&publication);
        event.encode_framed(&mut whole);
        publish.encode_framed(&mut whole);
        prop_assert_eq!(heads, whole);
    }
}

fn map(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    let w = &mut Writer::new(&mut body);
    w.map(entries.len());
    for (key, value) in entries {
        w.text(key).raw(value);
    }
    body
}

fn refused(entries: &[(&str, &[u8])]) -> LinkError {
    let body = map(entries);
    assert_eq!(cbor::check(&body, false), Ok(()), "{body:02x?}");
    Frame::decode(&body, Phase::Established).unwrap_err()
}

const VERSION_1: (&str, &[u8]) = ("version", b"\x01");
const UNSUBSCRIBE: (&str, &[u8]) = ("frame_type", b"\x6bunsubscribe");

#[test]
fn the_first_reason_is_told_in_the_order_of_the_document() {
    let open = |body: &[u8]| Frame::decode(body, Phase::Established).unwrap_err();
    assert_eq!(open(b""), LinkError::Cbor(cbor::CborFault::Truncated));
    assert_eq!(open(b"\x80"), LinkError::NotAMap);
    assert_eq!(open(b"\xa1\x00\x00"), LinkError::BadField);
    assert_eq!(open(b"\xa0"), LinkError::NoFrameType);
    assert_eq!(refused(&[VERSION_1]), LinkError::NoFrameType);
    assert_eq!(refused(&[("frame_type", b"\x01")]), LinkError::NoFrameType);
    assert_eq!(refused(&[UNSUBSCRIBE]), LinkError::MissingField);
    assert_eq!(
        refused(&[("version", b"\x02"), UNSUBSCRIBE]),
        LinkError::BadVersion
    );
    assert_eq!(
        refused(&[("version", b"\x61x"), UNSUBSCRIBE]),
        LinkError::BadVersion
    );
    assert_eq!(refused(&[VERSION_1, UNSUBSCRIBE]), LinkError::MissingField);
    assert_eq!(
        refused(&[("id", b"\x00"), VERSION_1, UNSUBSCRIBE]),
        LinkError::BadField
    );
    let unknown = refused(&[("x", b"\x00"), ("id", b"\x00"), VERSION_1, UNSUBSCRIBE]);
    assert_eq!(
        unknown,
        LinkError::UnknownField,
        "keys are judged in their order"
    );
    let after = refused(&[("id", b"\x00"), ("xx", b"\x00"), VERSION_1, UNSUBSCRIBE]);
    assert_eq!(after, LinkError::BadField);
    let hello = refused(&[VERSION_1, ("frame_type", b"\x65hello")]);
    assert_eq!(hello, LinkError::UnexpectedFrame);
}

#[test]
fn an_unknown_type_is_read_past_after_the_handshake_alone() {
    let body = map(&[("anything", b"\x00"), ("frame_type", b"\x64next")]);
    assert!(matches!(
        Frame::decode(&body, Phase::Established),
        Err(LinkError::Cbor(cbor::CborFault::KeyOrder) | LinkError::MissingField)
    ));
    let body = map(&[
        VERSION_1,
        ("anything", b"\x81\x00"),
        ("frame_type", b"\x64next"),
    ]);
    assert!(matches!(
        Frame::decode(&body, Phase::Established),
        Ok(Frame::Unknown("next"))
    ));
    for phase in PHASES.into_iter().take(4) {
        assert_eq!(
            Frame::decode(&body, phase).unwrap_err(),
            LinkError::UnexpectedFrame
        );
    }
}

#[test]
fn numbers_from_two_to_the_fifty_third_are_out_of_range() {
    let progress = ("frame_type", b"\x68progress".as_slice());
    let number = |value: u64| {
        let mut out = Vec::new();
        Writer::new(&mut out).unsigned(value);
        out
    };
    let frame = |id: u64, offset: u64| {
        let (id, offset) = (number(id), number(offset));
        let body = map(&[
            ("id", &id),
            ("offset", &offset),
            VERSION_1,
            ("behind_ms", b"\x00"),
            progress,
        ]);
        Frame::decode(&body, Phase::Established).map(|_| ())
    };
    assert_eq!(frame(1, NUMBER_LIMIT - 1), Ok(()));
    assert_eq!(frame(1, NUMBER_LIMIT), Err(LinkError::BadField));
    assert_eq!(frame(NUMBER_LIMIT, 0), Err(LinkError::BadField));
    assert_eq!(frame(0, 0), Err(LinkError::BadField));
}

#[test]
fn what_ties_keys_together_is_judged() {
    let bad = [
        Frame::Published(Published {
            id: 1,
            limit: None,
            reason: None,
            outcome: OutcomeCode::Refused,
            subscribers: 0,
        }),
        Frame::Published(Published {
            id: 1,
            limit: None,
            reason: Some(PublishRefusal::Expired),
            outcome: OutcomeCode::Routed,
            subscribers: 1,
        }),
        Frame::Published(Published {
            id: 1,
            limit: Some(3),
            reason: None,
            outcome: OutcomeCode::Routed,
            subscribers: 1,
        }),
        Frame::Published(Published {
            id: 1,
            limit: None,
            reason: None,
            outcome: OutcomeCode::NoSubscriber,
            subscribers: 1,
        }),
        Frame::Published(Published {
            id: 1,
            limit: None,
            reason: None,
            outcome: OutcomeCode::Unknown,
            subscribers: 0,
        }),
        Frame::Skipped(Skipped {
            id: 1,
            to: 2,
            from: 1,
            peer: None,
            count: 0,
            reason: SkipReason::Overrun,
        }),
        Frame::Skipped(Skipped {
            id: 1,
            to: 1,
            from: 2,
            peer: None,
            count: 0,
            reason: SkipReason::PeerInterrupted,
        }),
        Frame::Goodbye(Goodbye {
            detail: "",
            reason: CloseReason::Io,
        }),
        Frame::Goodbye(Goodbye {
            detail: &"x".repeat(257),
            reason: CloseReason::Normal,
        }),
    ];
    for frame in bad {
        let read = Frame::decode(&encoded(&frame), Phase::Established).map(|_| ());
        assert_eq!(read, Err(LinkError::BadField), "{frame:?}");
    }
    for code in ResumeCode::ALL {
        let mut resume = Vec::new();
        let w = &mut Writer::new(&mut resume);
        w.map(3)
            .text("count")
            .unsigned(1)
            .text("oldest")
            .unsigned(1);
        w.text("outcome").text(code.text());
        let position = b"\xa2\x63run\x48\0\0\0\0\0\0\0\0\x66offset\x00".as_slice();
        let read = refused(&[
            ("id", b"\x01"),
            ("resume", &resume),
            VERSION_1,
            ("position", position),
            ("frame_type", b"\x6asubscribed"),
        ]);
        assert_eq!(read, LinkError::BadField);
    }
}

#[test]
fn a_length_above_the_cap_is_refused_from_its_four_bytes() {
    assert_eq!(next_frame(b"", 512), Ok(Split::More(4)));
    assert_eq!(next_frame(b"\0\0\x02", 512), Ok(Split::More(1)));
    assert_eq!(next_frame(b"\0\0\x02\0", 512), Ok(Split::More(512)));
    assert_eq!(next_frame(b"\0\0\x02\x01", 512).unwrap_err().length, 513);
    assert_eq!(
        next_frame(b"\xff\xff\xff\xff", 0xff_ffff)
            .unwrap_err()
            .length,
        u32::MAX
    );
    let empty = Split::Frame {
        body: b"",
        taken: 4,
    };
    assert_eq!(next_frame(b"\0\0\0\0rest", 512), Ok(empty));
}

/// An event in one go is the event that is read rule by rule, and nothing else is one.
#[test]
fn a_plain_event_keeps_every_rule() {
    let mut object = Vec::new();
    crate::wire::object::write_object(&mut object, &[1; 32], &[2; 30], &[3; 64]);
    let mut read = [0, 0];
    for (via, offset) in [(Via::Direct, 0), (Via::Mesh, 1 << 40)] {
        let mut frame = Vec::new();
        crate::wire::event_head(&mut frame, 300, via, offset, object.len());
        let frame = [&frame[crate::wire::PREFIX..], &object].concat();
        assert!(decode::plain_event(&frame).is_some());
        for at in 0..frame.len() {
            let (before, after) = (&frame[..at], &frame[at + 1..]);
            let mut others = std::vec![before.to_vec(), [before, after].concat()];
            others.push([before, &[frame[at]], &[frame[at]], after].concat());
            for change in [1, 2, 0x20, 0x40, 0x80, 0xff] {
                others.push([before, &[frame[at] ^ change], after].concat());
            }
            for other in &others {
                let plain = decode::plain_event(other).map(|(event, _)| event);
                read[usize::from(plain.is_some())] += 1;
                let judged = match Frame::judged(other, Phase::Established) {
                    Ok(Frame::Event(event)) => Some(event),
                    _ => None,
                };
                // Other maps than objects are events too, on the long way.
                let objects =
                    judged.filter(|event| crate::wire::Object::parse(event.publication).is_ok());
                assert_eq!(plain, objects, "at {at}");
            }
        }
    }
    assert!(read.iter().all(|count| *count > 500), "{read:?}");
}
