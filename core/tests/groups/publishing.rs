//! Publications under a group: sealed, or refused with its reason; never in the clear.

use tidings::code::{SealPolicy, UnopenedReason};
use tidings::crypto::{PeriodKey, Subkey};
use tidings::keyring::Which;
use tidings::wire::{self, Body, Frame, Phase, Publication};
use tidings::{
    Action, Group, Publish, Question, RealmId, Refusal, Sources, Subscribe, SubscriptionId, Token,
};

use super::common::{TOPIC, at, open, realm};
use super::rig::{Member, PREFIX, R, join, key_id, keys, refusal};

fn publish(member: &mut Member, ms: u64, request: Publish) -> Result<(), Refusal> {
    let told = member.node.client.publish(at(ms), request);
    told.map(|_| ()).map_err(|refused| refused.reason)
}

fn request(topic: &str) -> Publish {
    Publish::new(realm(), topic, "the secret plan").expect("a text")
}

/// What it wrote as publications.
fn written(member: &mut Member, ms: u64) -> Vec<Vec<u8>> {
    let bodies = member.node.links[0].read(&mut member.node.client, at(ms));
    let publications =
        bodies
            .iter()
            .filter_map(|body| match Frame::decode(body, Phase::Established) {
                Ok(Frame::Publish(publish)) => Some(publish.publication.to_vec()),
                _ => None,
            });
    publications.collect()
}

fn subscribe(member: &mut Member, request: Subscribe) -> Result<SubscriptionId, Refusal> {
    let told = member.node.client.subscribe(at(1), request);
    told.map_err(|refused| refused.reason)
}

#[test]
fn what_is_published_under_a_group_is_sealed_under_its_current_period() {
    let mut member = Member::new(SealPolicy::Required);
    let group = member.group;
    assert_eq!(publish(&mut member, 5, request(TOPIC).group(group)), Ok(()));
    let written = written(&mut member, 5);
    let [object] = &written[..] else {
        panic!("{written:?}")
    };
    let plain = wire::to_payload("the secret plan").expect("a text");
    assert!(!object.windows(10).any(|part| *part == plain[1..11]));
    let profile = member.node.publisher.profile();
    let read = Publication::parse(object, profile).expect("well formed");
    let Body::Sealed(body) = read.body else {
        panic!("{read:?}")
    };
    assert_eq!((*body.key_id, body.scheme), (key_id(0), 2));
    let subkey = Subkey::derive(&PeriodKey::new(key_id(0), [1; 32]), &read.publisher);
    let mut text = vec![0; body.ct.len()];
    assert_eq!(read.unseal(&subkey, &mut text), Ok(&plain[..]));
}

#[test]
fn two_publications_never_share_a_nonce() {
    let mut member = Member::new(SealPolicy::Required);
    let group = member.group;
    let profile = member.node.publisher.profile();
    let mut nonces = Vec::new();
    for ms in 1..50 {
        assert_eq!(
            publish(&mut member, ms, request(TOPIC).group(group)),
            Ok(())
        );
        for object in written(&mut member, ms) {
            let read = Publication::parse(&object, profile).expect("well formed");
            let (sealed, _) = read.sealed().expect("sealed");
            nonces.push(*sealed.nonce);
        }
    }
    let all = nonces.len();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!((all, nonces.len()), (49, 49));
}

#[test]
fn br_60_without_a_key_it_fails_closed_says_why_and_burns_no_number() {
    let mut member = Member::joining(|group| open().group(group));
    let group = member.group;
    let under = || request(TOPIC).group(group);
    let pending = Err(Refusal::GroupPending { group });
    assert_eq!(publish(&mut member, 1, under()), pending);
    let reason = UnopenedReason::MembershipUnknown;
    let mut now = 2;
    for wait in [1_000, 2_000, 4_000, 8_000, 16_000] {
        let failed = member.answer(at(now), Which::Current, refusal(reason));
        assert_eq!(failed, Ok(()));
        let closed = Err(Refusal::Group { group, reason });
        assert_eq!(publish(&mut member, now, under()), closed);
        assert_eq!(member.asks(), [], "publishing asks no sooner");
        assert_eq!(written(&mut member, now), [[0u8; 0]; 0]);
        now += wait;
        member.node.time(at(now));
    }
    let given = member.answer(at(now), Which::Current, keys(SealPolicy::Off, &[0]));
    assert_eq!(given, Ok(()));
    assert_eq!(publish(&mut member, now, under()), Ok(()));
    let written = written(&mut member, now);
    let profile = member.node.publisher.profile();
    let read = Publication::parse(&written[0], profile).expect("well formed");
    assert_eq!(read.seq, 1);
}

#[test]
fn when_its_period_is_over_nothing_is_published_before_the_next_is_there() {
    let mut member = Member::new(SealPolicy::Required);
    let group = member.group;
    member.node.time(at(R));
    let under = request(TOPIC).group(group);
    let told = publish(&mut member, R, under);
    assert!(
        matches!(
            told,
            Err(Refusal::GroupPending { .. } | Refusal::Group { .. })
        ),
        "{told:?}"
    );
    assert_eq!(written(&mut member, R), [[0u8; 0]; 0]);
}

#[test]
fn nothing_goes_in_the_clear_under_the_prefix_of_a_group_that_was_joined() {
    for policy in [SealPolicy::Off, SealPolicy::Required] {
        let mut member = Member::new(policy);
        let group = member.group;
        let held = Err(Refusal::GroupHeld { group });
        assert_eq!(publish(&mut member, 1, request(TOPIC)), held);
        assert_eq!(publish(&mut member, 1, request(PREFIX)), held);
        // On a boundary of segments, and in that realm only.
        assert_eq!(
            publish(&mut member, 1, request("weather/acme/apples/x")),
            Ok(())
        );
        let elsewhere = Publish::new(RealmId::of_name("other"), TOPIC, &1u64).expect("a number");
        assert_eq!(publish(&mut member, 1, elsewhere), Ok(()));
        assert_eq!(member.node.client.leave_group(at(2), group), Ok(()));
        assert_eq!(publish(&mut member, 2, request(TOPIC)), Ok(()));
        let reason = UnopenedReason::NoGroup;
        let left = publish(&mut member, 2, request(TOPIC).group(group));
        assert_eq!(left, Err(Refusal::Group { group, reason }));
    }
    // Before its first keys are there as well.
    let mut member = Member::joining(|group| open().group(group));
    let group = member.group;
    assert_eq!(
        publish(&mut member, 1, request(TOPIC)),
        Err(Refusal::GroupHeld { group })
    );
}

#[test]
fn a_group_that_does_not_cover_what_is_asked_is_refused_and_nothing_is_sent() {
    let mut member = Member::new(SealPolicy::Off);
    let group = member.group;
    for topic in [
        "weather/acme/apples/x",
        "weather/acme",
        "weather/other/app/x",
    ] {
        let told = publish(&mut member, 1, request(topic).group(group));
        assert_eq!(told, Err(Refusal::BadGroup), "{topic}");
    }
    let wide = Subscribe::new(realm(), "weather/acme/**", Sources::Open).group(group);
    assert_eq!(subscribe(&mut member, wide), Err(Refusal::BadGroup));
    let other = Subscribe::new(RealmId::of_name("other"), TOPIC, Sources::Open).group(group);
    assert_eq!(subscribe(&mut member, other), Err(Refusal::BadGroup));
    let under = Subscribe::new(realm(), "weather/acme/app/**", Sources::Open).group(group);
    assert!(subscribe(&mut member, under).is_ok());
    assert_eq!(written(&mut member, 1), [[0u8; 0]; 0]);
    for prefix in [
        "weather",
        "",
        "weather//app",
        "weather/",
        "/acme",
        "weather/*",
        "_sys/acme",
    ] {
        let told = member
            .node
            .client
            .join_group(at(1), Group::new(realm(), prefix));
        assert_eq!(
            told.map_err(|refused| refused.reason),
            Err(Refusal::BadGroup),
            "{prefix}"
        );
    }
    assert_eq!(member.asks(), []);
    let realm_wide = Group::new(realm(), "weather/_realm");
    assert!(member.node.client.join_group(at(1), realm_wide).is_ok());
}

#[test]
fn a_subscription_under_a_group_that_never_had_keys_is_refused_with_the_reason() {
    let mut member = Member::joining(|_| open());
    let group = member.group;
    assert!(
        subscribe(&mut member, open().group(group)).is_ok(),
        "they may still come"
    );
    let reason = UnopenedReason::NotAMember;
    assert_eq!(
        member.answer(at(1), Which::Current, refusal(reason)),
        Ok(())
    );
    let told = subscribe(&mut member, open().group(group));
    assert_eq!(told, Err(Refusal::Group { group, reason }));
}

#[test]
fn joining_asks_once_with_the_token_and_joining_again_renews_it() {
    let mut member = Member::joining(|group| open().group(group));
    assert_eq!(member.asks(), [Which::Current]);
    let (_, asked) = &member.asked[0];
    assert_eq!((asked.realm, asked.prefix.as_str()), (realm(), PREFIX));
    let token = asked.token.as_ref().map(Token::as_bytes);
    assert_eq!(token, Some(&b"let me in"[..]));
    assert!(!format!("{asked:?}").contains("let me in"));
    let reason = UnopenedReason::NotAuthorized;
    assert_eq!(
        member.answer(at(1), Which::Current, refusal(reason)),
        Ok(())
    );
    let renewed = Group::new(realm(), PREFIX).token(Token::new(b"another".to_vec()));
    let again = member.node.client.join_group(at(2), renewed);
    assert_eq!(again.map_err(|refused| refused.reason), Ok(member.group));
    assert_eq!(member.asks(), [Which::Current], "at once");
    let token = member.asked[0].1.token.as_ref().map(Token::as_bytes);
    assert_eq!(token, Some(&b"another"[..]));
}

#[test]
fn how_joining_went_is_said_once_and_when_it_changes() {
    let mut member = Member::joining(|group| open().group(group));
    let mut said = Vec::new();
    let mut look = |member: &mut Member| {
        while let Some(action) = member.node.client.poll_action() {
            match action {
                Action::Keys { ready, .. } => said.push(ready),
                Action::Ask {
                    ask,
                    question: Question::KeyPeriods(question),
                    ..
                } => member.asked.push((ask, *question)),
                _ => (),
            }
        }
    };
    look(&mut member);
    let reason = UnopenedReason::NotAMember;
    assert_eq!(
        member.answer(at(1), Which::Current, refusal(reason)),
        Ok(())
    );
    look(&mut member);
    member.node.time(at(1001));
    look(&mut member);
    assert_eq!(
        member.answer(at(1001), Which::Current, refusal(reason)),
        Ok(())
    );
    member.node.time(at(4000));
    look(&mut member);
    assert_eq!(
        member.answer(at(4000), Which::Current, keys(SealPolicy::Off, &[0])),
        Ok(())
    );
    look(&mut member);
    assert_eq!(said, [Err(reason), Ok(SealPolicy::Off)]);
}

#[test]
fn as_many_groups_are_joined_as_the_limits_allow() {
    let mut limits = tidings::ClientLimits::default();
    limits.groups = 2;
    let config = tidings::ClientConfig::new(super::common::signer(1)).limits(limits);
    let mut client = super::common::client(config);
    join(&mut client, at(0));
    assert!(client.join_group(at(0), Group::new(realm(), "a/b")).is_ok());
    let third = client.join_group(at(0), Group::new(realm(), "a/c"));
    let reason = third.map_err(|refused| refused.reason);
    assert_eq!(reason, Err(Refusal::TooManyGroups));
    join(&mut client, at(1));
}
