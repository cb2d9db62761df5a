//! What people read: every refusal and error says what is wrong and what to do, and no secret is in any of it.

use core::error::Error;
use core::fmt::{Debug, Display};

use tidings::code::{
    CloseReason, DropReason, EndReason, GapReason, PublishRefusal, SubscribeRefusal, UnopenedReason,
};
use tidings::crypto::{KeyError, OpenError, Profile, SealError, SecretKey, SignError, Signer};
use tidings::inbound::dedup;
use tidings::table;
use tidings::topic::{NameFault, Segment, TopicFault};
use tidings::wire::cbor::{CborFault, SliceSink, TooSmall, Writer};
use tidings::wire::{FrameFault, PayloadError, PositionsFault, Role, from_payload, to_payload};
use tidings::{
    Binding, ClientConfig, ClientLimits, ConfigError, Duration, Entropy, Instant, LinkError,
    LinkEvent, Misuse, NodeId, Notice, Now, Numbering, Outcome, RealmId, Refusal, Refused, Seed,
    Station, StationConfig, StationLimits, StationRef, WallMs,
};

/// Says something, in a few words, in lower case, without a full stop.
fn reads<T: Display + Error>(error: T) -> String {
    let text = error.to_string();
    assert!(text.len() > 2 && !text.ends_with('.'), "{text:?}");
    assert!(
        text.chars()
            .next()
            .is_some_and(|first| !first.is_uppercase()),
        "{text:?}"
    );
    text
}

#[test]
fn a_refused_call_says_what_to_do() {
    let all = [
        (
            Refusal::BadFilter(TopicFault::Wildcard),
            "bad filter: wildcard",
        ),
        (
            Refusal::BadOrg,
            "the name of an organisation must be one segment of a topic",
        ),
        (
            Refusal::BadPayload(PayloadError::Float),
            "bad payload: a float that is not finite",
        ),
        (
            Refusal::BadTopic(TopicFault::EmptySegment),
            "bad topic: empty_segment",
        ),
        (Refusal::Closed, "closed: make a new one"),
        (
            Refusal::EpochNotKept { epoch: 7 },
            "epoch 7 is not kept: write it down first",
        ),
        (
            Refusal::NoSources,
            "no sources: name publishers, or choose open",
        ),
        (
            Refusal::NoStation,
            "no station: no link is up; wait for one",
        ),
        (
            Refusal::PublisherEnded,
            "the publisher was ended: open another",
        ),
        (
            Refusal::Signer,
            "the signer failed: try again when it works",
        ),
        (
            Refusal::SystemTopic,
            "a topic that begins with _ belongs to the system: choose another",
        ),
        (
            Refusal::TooLarge { limit: 512 },
            "too large: at most 512 bytes; publish less at once",
        ),
        (
            Refusal::TooManyPublishers,
            "too many open publishers: end one, or raise the limit",
        ),
        (
            Refusal::TooManySubscriptions,
            "too many subscriptions: end one, or raise the limit",
        ),
        (Refusal::TtlTooLong, "ttl too long: at most one hour"),
        (Refusal::UnsetClock, "the wall clock was never set: set it"),
        (
            Refusal::WouldBlock,
            "the publish windows are full: try again after the next answer",
        ),
    ];
    for (reason, text) in all {
        assert_eq!(reads(reason), text);
        let refused = Refused { reason, request: 7 };
        assert_eq!(reads(&refused as &dyn Error), text);
        assert_eq!(refused.request, 7);
    }
    for (misuse, text) in [
        (Misuse::DeadHandle, "that handle has ended"),
        (
            Misuse::LocalNotAllowed,
            "local links are not allowed by the configuration",
        ),
        (
            Misuse::NotCommittable,
            "not the last fact that was handed out, or the stream has to say first what is missing",
        ),
        (
            Misuse::NotCommitting,
            "that subscription was made without committing",
        ),
        (Misuse::NotDialled, "that station was not dialled"),
        (Misuse::TooManyLinks, "too many links"),
    ] {
        assert_eq!(reads(misuse), text);
    }
}

#[test]
fn errors_of_bytes_and_names_say_which_rule_was_broken() {
    assert_eq!(reads(CborFault::LongHead), CborFault::LongHead.text());
    assert_eq!(
        reads(PositionsFault::NotAMap),
        PositionsFault::NotAMap.text()
    );
    assert_eq!(reads(NameFault::Tier(Segment::Org)), "tier: org");
    assert_eq!(reads(NameFault::Segment(Segment::App)), "segment: app");
    assert_eq!(reads(NameFault::Structure), "structure");
    assert_eq!(Segment::Domain.to_string(), "domain");
    assert_eq!(
        reads(KeyError::NotCanonical),
        "not the canonical encoding of a point"
    );
    assert_eq!(reads(KeyError::SmallOrder), "a point of small order");
    assert_eq!(reads(SignError), "the signer could not sign");
    assert_eq!(reads(dedup::Full::Table), "the dedup table is full");
    assert_eq!(
        reads(dedup::Full::Share),
        "the publisher holds its quarter of the dedup table"
    );
    assert_eq!(reads(table::Full(())), "the table is full");
    assert_eq!(reads(LinkError::WrongStation), "wrong_station");
    assert_eq!(reads(LinkError::LocalNotAllowed), "local_not_allowed");
    assert_eq!(reads(LinkError::SignerFailed), "signer_failed");
    assert_eq!(
        reads(FrameFault { length: 70_000 }),
        "a frame of 70000 bytes is longer than allowed"
    );
    assert_eq!(Role::Node.to_string(), "node");
    assert_eq!(
        reads(LinkError::RefusedByStation(
            tidings::code::HandshakeRefusal::Full
        )),
        "refused by the station: full"
    );
    assert_eq!(
        reads(LinkError::Refused(
            tidings::code::HandshakeRefusal::Draining
        )),
        "refused by this side: draining"
    );
    assert_eq!(
        reads(SealError::from(SignError)),
        "the signer could not sign"
    );
    assert_eq!(
        reads(SealError::TooLong),
        "the topic or the payload is too long to be sealed"
    );
    assert_eq!(reads(OpenError::NotSealed), "the body is not sealed");
    assert_eq!(
        reads(OpenError::OtherScheme),
        "the body is sealed under another scheme"
    );
    assert_eq!(reads(OpenError::TagInvalid), "the ciphertext does not open");
    assert_eq!(
        reads(OpenError::TooSmall { needed: 17 }),
        "the buffer is too small, 17 bytes are needed"
    );
    let short: TooSmall = {
        let mut room = [0; 2];
        let mut sink = SliceSink::new(&mut room);
        Writer::new(&mut sink).text("longer than two bytes");
        sink.finish().expect_err("no room")
    };
    assert!(reads(short).contains("22"), "{short}");
    let bad: Result<RealmId, _> = "xyz".parse();
    assert_eq!(
        reads(bad.expect_err("not hex")),
        "not lower-case hex digits of the expected length"
    );
}

#[test]
fn payload_errors_name_the_field() {
    for (error, text) in [
        (
            PayloadError::Cbor(CborFault::Truncated),
            "the bytes break the CBOR rule: truncated",
        ),
        (PayloadError::DuplicateField("a"), "field `a` occurs twice"),
        (PayloadError::MissingField("a"), "field `a` is missing"),
        (PayloadError::Custom, "refused by the type"),
        (
            PayloadError::DuplicateKey,
            "two keys of a map are written alike",
        ),
        (
            PayloadError::IntegerRange,
            "an integer outside the range of i64",
        ),
        (
            PayloadError::InvalidLength,
            "more or fewer items than the type holds",
        ),
        (
            PayloadError::InvalidType,
            "another kind of value than the type wants",
        ),
        (PayloadError::InvalidValue, "not a value of the type"),
        (
            PayloadError::KeyKind,
            "a map key that is neither text nor integer",
        ),
        (PayloadError::TooDeep, "over 63 levels deep"),
        (PayloadError::TooManyItems, "over 131008 items"),
        (PayloadError::UnknownField, "a field the type does not know"),
        (
            PayloadError::UnknownVariant,
            "a variant the type does not know",
        ),
    ] {
        assert_eq!(reads(error), text);
    }
}

#[test]
fn a_payload_of_another_kind_is_refused_and_no_number_becomes_infinite() {
    let far = to_payload(&1e300).expect("a number");
    assert_eq!(from_payload::<f64>(&far), Ok(1e300));
    assert_eq!(from_payload::<f32>(&far), Err(PayloadError::InvalidValue));
    let list = to_payload(&[1u64]).expect("a list");
    let choice = from_payload::<Result<u64, u64>>(&list);
    assert_eq!(choice, Err(PayloadError::InvalidType));
}

/// Shows `name` and not one of the secret's digits in a row.
fn hides(value: &dyn Debug, name: &str) {
    let text = format!("{value:?}");
    assert!(text.contains(name), "{text}");
    assert!(!text.contains("abab") && !text.contains("171"), "{text}");
}

#[test]
fn secrets_are_not_in_debug() {
    let key = SecretKey::from_seed([0xab; 32]);
    hides(&key, "SecretKey");
    hides(
        &ClientConfig::new(SecretKey::from_seed([0xab; 32])),
        "Signer",
    );
    hides(&tidings::Entropy::from_os([0xab; 32]), "Entropy");
    let public =
        tidings::crypto::PublicKey::decode(key.profile(), &key.public_key()).expect("a key");
    assert_eq!(
        format!("{public:?}"),
        format!("PublicKey({})", key.node_id())
    );
    assert_eq!(
        format!("{:?} {}", Profile::ED25519, Profile::ED25519),
        "Profile(ed25519) ed25519"
    );
}

#[test]
fn ids_read_as_hex_and_handles_as_two_numbers() {
    let id = NodeId::new([0xab; 32]);
    assert_eq!(id.to_string(), "ab".repeat(32));
    assert_eq!(format!("{id:?}"), format!("NodeId({id})"));
    assert_eq!(id.to_string().parse(), Ok(id));
    let now = Now::new(Instant::ORIGIN, WallMs::new(1));
    let config = StationConfig::new(SecretKey::from_seed([1; 32]));
    let mut station = Station::new(
        config.build().expect("defaults"),
        Seed::new([0; 32]),
        Entropy::from_os([1; 32]),
        now,
    );
    let event = LinkEvent::Up {
        dialled: None,
        binding: Binding::Exporter([0; 32]),
    };
    let link = station.handle_link(now, event).expect("room");
    assert_eq!(format!("{link} {link:?}"), "0.0 LinkId(0.0)");
}

#[test]
fn every_notice_has_its_word_and_its_window() {
    let of = Numbering {
        publisher: NodeId::new([1; 32]),
        topic: "a/b/c/d/e_v1".to_owned(),
        epoch: 7,
    };
    let (from, to) = (WallMs::new(5), WallMs::new(9));
    let window = Some((from, to));
    let all = [
        (
            Notice::Conflict {
                of: of.clone(),
                first: 1,
                last: 2,
                count: 2,
            },
            "conflict",
            true,
            None,
        ),
        (
            Notice::Dropped {
                reason: DropReason::OutOfDate,
                count: 1,
                publishers: 1,
                from,
                to,
            },
            "dropped",
            false,
            window,
        ),
        (
            Notice::Ended {
                reason: EndReason::Unsubscribed,
            },
            "ended",
            false,
            None,
        ),
        (
            Notice::Gap {
                from,
                to,
                reason: GapReason::Lost,
                count: None,
            },
            "gap",
            false,
            window,
        ),
        (
            Notice::Interrupted {
                from,
                reason: CloseReason::LivenessLost,
            },
            "interrupted",
            false,
            Some((from, from)),
        ),
        (
            Notice::Lagged {
                missed: 3,
                notices: 1,
                first: None,
                from,
                to,
            },
            "lagged",
            false,
            window,
        ),
        (
            Notice::Restarted {
                of: of.clone(),
                greater: true,
            },
            "restarted",
            true,
            None,
        ),
        (Notice::Resumed { recovered: 3 }, "resumed", false, None),
        (Notice::Resynced { of: of.clone() }, "resynced", true, None),
        (
            Notice::Skipped {
                of: of.clone(),
                first: 1,
                last: 2,
            },
            "skipped",
            true,
            None,
        ),
        (
            Notice::SubscriptionRefused {
                station: StationRef(0),
                reason: SubscribeRefusal::BadFilter,
            },
            "subscription_refused",
            false,
            None,
        ),
        (
            Notice::TwoCounters { of: of.clone() },
            "two_counters",
            true,
            None,
        ),
        (
            Notice::Unopened {
                of: of.clone(),
                seq: 1,
                seal_key_id: [0; 8],
                reason: UnopenedReason::NoGroup,
            },
            "unopened",
            true,
            None,
        ),
        (
            Notice::Warning {
                table: "dedup",
                fill: 80,
            },
            "warning",
            false,
            None,
        ),
    ];
    for (notice, word, numbered, window) in all {
        assert_eq!(notice.code().text(), word);
        assert_eq!(notice.numbering(), numbered.then_some(&of), "{word}");
        let (from, to) = notice.window();
        assert_eq!((from <= to).then_some((from, to)), window, "{word}");
    }
}

#[test]
fn every_outcome_has_its_word() {
    for (outcome, word) in [
        (Outcome::Cancelled, "cancelled"),
        (Outcome::NoSubscriber, "no_subscriber"),
        (Outcome::Refused(PublishRefusal::TooLarge), "refused"),
        (Outcome::Routed { subscribers: 1 }, "routed"),
        (Outcome::Unknown, "unknown"),
    ] {
        assert_eq!(outcome.code().text(), word);
    }
}

#[test]
fn contradicting_client_settings_are_refused_by_name() {
    let config = || ClientConfig::new(SecretKey::from_seed([1; 32]));
    let limits = ClientLimits::default;
    let zero = |change: fn(&mut ClientLimits)| {
        let mut changed = limits();
        change(&mut changed);
        config().limits(changed)
    };
    let cases = [
        (
            "probe_every",
            config().probe_every(Duration::from_secs(3601)),
        ),
        (
            "station",
            (0..=limits().links).fold(config(), |config, _| config.station(None)),
        ),
        ("replication_factor", config().replication_factor(0)),
        ("replication_factor", config().replication_factor(17)),
        ("order_timeout", config().order_timeout(Duration::ZERO)),
        (
            "order_timeout",
            config().order_timeout(Duration::from_millis(60_001)),
        ),
        ("max_frame", config().max_frame(511)),
        ("max_frame", config().max_frame(1 << 24)),
        ("last_epoch", config().last_epoch(1 << 53)),
        ("limits.links", zero(|limits| limits.links = 0)),
        (
            "limits.subscriptions",
            zero(|limits| limits.subscriptions = 0),
        ),
        ("limits.lanes", zero(|limits| limits.lanes = 0)),
        (
            "limits.queue_capacity",
            zero(|limits| limits.queue_capacity = 0),
        ),
        (
            "limits.order_max_buffer",
            zero(|limits| limits.order_max_buffer = 0),
        ),
        (
            "limits.publish_window",
            zero(|limits| limits.publish_window = 0),
        ),
        ("limits.tickets", zero(|limits| limits.tickets = 0)),
        (
            "limits.open_publishers",
            zero(|limits| limits.open_publishers = 0),
        ),
        ("limits.counters", zero(|limits| limits.counters = 0)),
        (
            "limits.pending_verifications",
            zero(|limits| limits.pending_verifications = 0),
        ),
        ("limits.publishers", zero(|limits| limits.publishers = 0)),
        ("limits.answers", zero(|limits| limits.answers = 0)),
        (
            "limits.dedup_entries",
            zero(|limits| limits.dedup_entries = 2 * limits.order_max_buffer - 1),
        ),
        (
            "limits.held_bytes",
            zero(|limits| limits.held_bytes = (4 << 20) - 1),
        ),
    ];
    for (setting, config) in cases {
        says(setting, config.build().map(drop));
    }
    let pin = NodeId::new([7; 32]);
    let valid = config()
        .station(Some(pin))
        .station(None)
        .order_timeout(Duration::from_secs(60));
    let valid = valid
        .last_epoch((1 << 53) - 1)
        .replication_factor(16)
        .build()
        .expect("all at their bounds");
    let stations: Vec<_> = valid.stations().collect();
    assert_eq!(
        stations,
        [(StationRef(0), Some(pin)), (StationRef(1), None)]
    );
}

#[test]
fn contradicting_station_settings_are_refused_by_name() {
    let config = || StationConfig::new(SecretKey::from_seed([1; 32]));
    let with = |change: fn(&mut StationLimits)| {
        let mut changed = StationLimits::default();
        change(&mut changed);
        config().limits(changed)
    };
    let cases = [
        ("max_frame", config().max_frame(511)),
        ("probe_every", config().probe_every(Duration::ZERO)),
        ("limits.links", with(|limits| limits.links = 0)),
        ("limits.ring_items", with(|limits| limits.ring_items = 0)),
        (
            "limits.publication_bytes",
            with(|limits| limits.publication_bytes = (1 << 20) - 127),
        ),
        (
            "limits.ring_bytes",
            with(|limits| limits.ring_bytes = limits.publication_bytes - 1),
        ),
        (
            "limits.read_bytes",
            with(|limits| limits.read_bytes = (1 << 20) - 1),
        ),
    ];
    for (setting, config) in cases {
        says(setting, config.build().map(drop));
    }
}

fn says(setting: &str, built: Result<(), ConfigError>) {
    let error = built.expect_err(setting);
    assert_eq!(error.setting, setting);
    assert!(
        reads(error).starts_with(&format!("{setting}: must be ")),
        "{error}"
    );
}
