//! Facts that are opened, in their order and at their place, or told.

use tidings::code::{ObjectFault, SealPolicy, UnopenedReason};
use tidings::keyring::Which;
use tidings::{ClientConfig, ClientLimits, Item, Misuse, Now};

use super::common::{Fact, ORDERS, TOPIC, at, counter, id_of, items, open, signer};
use super::rig::{Member, OPENS, PAST, R, join, key_id, keys, refusal, sealed, told};

#[test]
fn a_sealed_fact_is_opened_and_says_under_which_key_it_came() {
    let mut member = Member::new(SealPolicy::Preferred);
    let value = 77;
    let fact = Fact {
        value,
        ..Fact::numbered(1)
    };
    let object = sealed(&*member.node.publisher, fact, 0);
    member.node.object(at(1), 0, &object);
    let items = items(&mut member.node.client, member.node.stream);
    let [Item::Fact(fact)] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(fact.decode::<u64>(), Ok(value));
    assert_eq!((fact.sealed(), fact.seal_key_id()), (true, Some(key_id(0))));
    assert_eq!(fact.bytes(), object, "as received");
    assert_eq!(fact.publisher(), id_of(&*member.node.publisher));
}

#[test]
fn a_fact_in_the_clear_is_delivered_as_such_unless_seals_are_required() {
    for policy in [SealPolicy::Off, SealPolicy::Preferred] {
        let mut member = Member::new(policy);
        member.node.seq(at(1), 0, 1);
        let items = items(&mut member.node.client, member.node.stream);
        let [Item::Fact(fact)] = &items[..] else {
            panic!("{items:?}")
        };
        assert_eq!((fact.sealed(), fact.seal_key_id()), (false, None));
    }
}

#[test]
fn a_subscription_without_a_group_is_told_no_group_once() {
    let mut member = Member::joining(|_| open());
    let told = member.answer(at(0), Which::Current, keys(SealPolicy::Off, &[0]));
    assert_eq!(told, Ok(()));
    for _copy in 0..2 {
        member.seq(at(1), 1, 0);
    }
    assert_eq!(member.words(), ["unopened 1 no_group"]);
    let status = member.node.client.status();
    assert_eq!(counter(&status.counters, "unopened"), 1);
}

#[test]
fn weak_point_4_a_late_key_costs_waiting_and_never_order_and_no_other_lane_waits() {
    let mut member = Member::new(SealPolicy::Preferred);
    let other = signer(8);
    member.seq(at(1), 1, 0);
    member.seq(at(2), 2, PAST);
    member.seq(at(3), 3, 0);
    let theirs = sealed(&other, Fact::numbered(1), 0);
    member.node.object(at(4), 0, &theirs);
    assert_eq!(member.words(), ["1", "1"], "its own, and the other's");
    assert_eq!(member.asks(), [Which::One(key_id(PAST))]);
    member.node.time(at(5_000));
    assert_eq!(
        member.words(),
        [""; 0],
        "no timeout of the order lets it pass"
    );
    let one = Which::One(key_id(PAST));
    assert_eq!(
        member.answer(at(5_001), one, keys(SealPolicy::Preferred, &[PAST])),
        Ok(())
    );
    assert_eq!(member.words(), ["2", "3"]);
}

#[test]
fn one_question_for_all_that_wait_and_its_failure_answers_each_of_them_at_its_place() {
    let mut member = Member::new(SealPolicy::Preferred);
    for (seq, n) in [(1, 9), (2, 0), (3, 9), (4, 0)] {
        member.seq(at(seq), seq, n);
    }
    assert_eq!(member.asks(), [Which::One(key_id(9))]);
    let failed = refusal(UnopenedReason::NotAMember);
    assert_eq!(member.answer(at(9), Which::One(key_id(9)), failed), Ok(()));
    let wanted = [
        "unopened 1 not_a_member",
        "2",
        "unopened 3 not_a_member",
        "4",
    ];
    assert_eq!(member.words(), wanted);
    assert_eq!(member.asks(), []);
}

#[test]
fn a_question_that_nobody_answers_is_over_at_its_deadline() {
    let mut member = Member::new(SealPolicy::Preferred);
    member.seq(at(1), 1, 9);
    let ask = member.open_ask(Which::One(key_id(9)));
    member.node.time(at(15_000));
    assert_eq!(member.words(), [""; 0]);
    member.node.time(at(15_001));
    assert_eq!(member.words(), ["unopened 1 no_distributor"]);
    let late = member
        .node
        .client
        .answer(at(15_001), ask, keys(SealPolicy::Off, &[9]));
    assert_eq!(late, Err(Misuse::DeadHandle));
}

#[test]
fn the_key_is_asked_for_on_arrival_though_a_number_before_it_is_missing() {
    let mut member = Member::new(SealPolicy::Preferred);
    member.seq(at(1), 1, 0);
    member.seq(at(2), 3, PAST);
    assert_eq!(member.asks(), [Which::One(key_id(PAST))]);
    assert_eq!(
        member.answer(
            at(3),
            Which::One(key_id(PAST)),
            keys(SealPolicy::Off, &[PAST])
        ),
        Ok(())
    );
    assert_eq!(member.words(), ["1"]);
    member.seq(at(4), 2, 0);
    assert_eq!(member.words(), ["2", "3"]);
}

#[test]
fn what_comes_before_the_first_keys_waits_for_them() {
    let mut member = Member::joining(|group| open().group(group));
    member.seq(at(1), 1, 0);
    member.seq(at(2), 2, 0);
    assert_eq!(member.words(), [""; 0]);
    assert_eq!(member.asks(), [Which::Current]);
    assert_eq!(
        member.answer(at(3), Which::Current, keys(SealPolicy::Off, &[0])),
        Ok(())
    );
    assert_eq!(member.words(), ["1", "2"]);
    let mut member = Member::joining(|group| open().group(group));
    member.seq(at(1), 1, 0);
    let refused = refusal(UnopenedReason::NotAuthorized);
    assert_eq!(member.answer(at(3), Which::Current, refused), Ok(()));
    assert_eq!(member.words(), ["unopened 1 not_authorized"]);
}

#[test]
fn a_fact_that_finds_the_waiting_lane_full_is_skipped_at_its_place() {
    let mut limits = ClientLimits::default();
    limits.order_max_buffer = 2;
    let config = ClientConfig::new(signer(1)).limits(limits);
    let mut member = Member::with(config, |group| open().group(group));
    let first = member.answer(at(0), Which::Current, keys(SealPolicy::Off, &[0]));
    assert_eq!(first, Ok(()));
    for seq in 1..=9 {
        let n = if seq == 1 { PAST } else { 0 };
        member.seq(at(seq), seq, n);
    }
    assert_eq!(member.words(), [""; 0]);
    assert_eq!(
        member.answer(
            at(20),
            Which::One(key_id(PAST)),
            keys(SealPolicy::Off, &[PAST])
        ),
        Ok(())
    );
    let words = member.words();
    let skipped = words.iter().position(|word| word.starts_with("skipped"));
    let skipped = skipped.unwrap_or_else(|| panic!("{words:?}"));
    let before: Vec<String> = (1..=skipped).map(|seq| seq.to_string()).collect();
    assert_eq!(words[..skipped], before, "{words:?}");
    assert_eq!(words[skipped], format!("skipped {}..9", skipped + 1));
}

/// The key of a period was dropped at the moment of rotation, so that what was published before and came after was lost.
#[test]
fn br_56_a_fact_of_the_period_before_opens_until_its_acceptance_is_over_and_no_key_is_left_then() {
    let mut member = Member::new(SealPolicy::Preferred);
    // Silent in between, it begins a numbering of its own again.
    let published = |ms: u64, epoch: u64, seq| Fact {
        published_at: at(ms).wall,
        epoch: Some(at(epoch).wall.as_millis() * 1000),
        ..Fact::numbered(seq)
    };
    member.node.time(at(R + 1000));
    member.fact(at(R + 1000), published(R - 1000, 0, 1), 0);
    assert_eq!(member.words(), ["1"]);
    member.node.time(at(OPENS));
    let group = member.group;
    let held = |member: &Member| member.node.client.group(group).expect("joined").periods;
    assert_eq!(held(&member), 1);
    member.fact(at(OPENS), published(OPENS - 1000, OPENS, 1), 0);
    member.node.time(at(OPENS + 1));
    assert_eq!(held(&member), 0);
    member.fact(at(OPENS + 1), published(OPENS - 1000, OPENS, 2), 0);
    let words = member.words();
    assert_eq!(words, ["1", "unopened 2 period_expired"]);
}

/// A replay guard took the second copy of a fact for an attack.
#[test]
fn br_58_a_second_copy_is_a_duplicate_and_a_ciphertext_moved_elsewhere_does_not_open() {
    use tidings::wire::{Body, Draft, Publication};
    let mut member = Member::new(SealPolicy::Preferred);
    let object = sealed(&*member.node.publisher, Fact::numbered(1), 0);
    member.node.object(at(1), 0, &object);
    member.node.object(at(2), 0, &object);
    assert_eq!(member.words(), ["1"]);
    assert_eq!(member.node.faults(ObjectFault::Duplicate), 1);
    // The same ciphertext under its publisher's next number.
    let profile = member.node.publisher.profile();
    let read = Publication::parse(&object, profile).expect("it is one");
    let (body, place) = read.sealed().expect("it is sealed");
    let moved = Draft {
        realm: place.realm,
        topic: TOPIC,
        publisher: place.publisher,
        epoch: place.epoch,
        seq: 2,
        published_at: place.published_at,
        ttl_ms: None,
        one: false,
        body: Body::Sealed(body),
    };
    let mut object = Vec::new();
    moved
        .sign(&*member.node.publisher, &mut object)
        .expect("it signs");
    member.node.object(at(3), 0, &object);
    assert_eq!(member.words(), ["unopened 2 tag_invalid"]);
}

#[test]
fn what_is_sealed_under_scheme_1_is_opened_by_a_build_that_knows_it() {
    use tidings::crypto::{PeriodKey, Place, SEAL_SCHEME_1, Subkey1};
    use tidings::wire::{self, Body, Draft, Sealed};
    let mut member = Member::new(SealPolicy::Preferred);
    let publisher = id_of(&*member.node.publisher);
    let fact = Fact::numbered(1);
    let place = Place {
        realm: super::common::realm(),
        topic: TOPIC,
        publisher,
        epoch: fact.epoch,
        seq: 1,
        published_at: fact.published_at,
        key_id: key_id(0),
    };
    let subkey = Subkey1::derive(&PeriodKey::new(key_id(0), [1; 32]), &publisher);
    let mut ct = wire::to_payload(&77u64).expect("a number");
    let tag = subkey.seal(&place, &[5; 12], &mut ct).expect("it seals");
    ct.extend_from_slice(&tag);
    let body = Body::Sealed(Sealed {
        ct: &ct,
        nonce: &[5; 12],
        key_id: &key_id(0),
        scheme: SEAL_SCHEME_1,
    });
    for seq in 1..=2 {
        let draft = Draft {
            realm: place.realm,
            topic: TOPIC,
            publisher,
            epoch: place.epoch,
            seq,
            published_at: place.published_at,
            ttl_ms: None,
            one: false,
            body,
        };
        let mut object = Vec::new();
        draft
            .sign(&*member.node.publisher, &mut object)
            .expect("it signs");
        member.node.object(at(1), 0, &object);
    }
    let items = items(&mut member.node.client, member.node.stream);
    let Some(Item::Fact(fact)) = items.first() else {
        panic!("{items:?}")
    };
    assert_eq!(fact.decode::<u64>(), Ok(77));
    assert_eq!(told(&items), ["1", "unopened 2 tag_invalid"]);
}

#[test]
fn a_node_that_is_closed_holds_no_key() {
    let mut member = Member::new(SealPolicy::Preferred);
    member.node.client.close(at(1));
    assert!(member.node.client.group(member.group).is_none());
    member.node.time(at(2 * R));
    assert_eq!(member.asks(), [], "nor asks for one");
}

#[test]
fn leaving_tells_what_waits_and_what_comes() {
    let mut member = Member::new(SealPolicy::Required);
    member.seq(at(1), 1, 9);
    let ask = member.open_ask(Which::One(key_id(9)));
    let group = member.group;
    assert_eq!(member.node.client.leave_group(at(2), group), Ok(()));
    member.seq(at(3), 2, 0);
    assert_eq!(
        member.words(),
        ["unopened 1 no_group", "unopened 2 no_group"]
    );
    let late = member
        .node
        .client
        .answer(at(3), ask, keys(SealPolicy::Off, &[9]));
    assert_eq!(late, Err(Misuse::DeadHandle));
    assert_eq!(
        member.node.client.leave_group(at(4), group),
        Err(Misuse::DeadHandle)
    );
    member.node.seq(at(5), 0, 3);
    assert_eq!(member.words(), ["3"], "nobody requires anything any more");
}

#[test]
fn two_subscriptions_of_one_group_open_each_for_itself() {
    let mut member = Member::new(SealPolicy::Preferred);
    let request = open().group(member.group);
    let second = member
        .node
        .client
        .subscribe(at(0), request)
        .expect("accepted");
    member.seq(at(1), 1, PAST);
    assert_eq!(member.asks(), [Which::One(key_id(PAST))]);
    assert_eq!(
        member.answer(
            at(2),
            Which::One(key_id(PAST)),
            keys(SealPolicy::Off, &[PAST])
        ),
        Ok(())
    );
    assert_eq!(member.words(), ["1"]);
    assert_eq!(told(&items(&mut member.node.client, second)), ["1"]);
}

#[test]
fn nothing_is_committed_past_a_fact_that_waits_for_its_key() {
    let mut member = Member::joining(|group| open().group(group).committing());
    let first = member.answer(at(0), Which::Current, keys(SealPolicy::Off, &[0]));
    assert_eq!(first, Ok(()));
    member.seq(at(1), 1, 0);
    member.seq(at(2), 2, PAST);
    member.seq(at(3), 3, 0);
    let got = items(&mut member.node.client, member.node.stream);
    let [Item::Fact(fact)] = &got[..] else {
        panic!("{got:?}")
    };
    let stream = member.node.stream;
    let refused = member.node.client.commit(stream, fact);
    assert_eq!(refused, Err(Misuse::NotCommittable));
    assert_eq!(
        member.answer(
            at(4),
            Which::One(key_id(PAST)),
            keys(SealPolicy::Off, &[PAST])
        ),
        Ok(())
    );
    let got = items(&mut member.node.client, stream);
    assert_eq!(told(&got), ["2", "3"]);
    let Some(Item::Fact(last)) = got.last() else {
        panic!("{got:?}")
    };
    assert!(member.node.client.commit(stream, last).is_ok());
}

#[test]
fn a_node_that_slept_opens_nothing_past_its_bound() {
    let mut member = Member::new(SealPolicy::Preferred);
    // The wall says that it is over, mono that no time has passed.
    let woken = Now::new(at(1).mono, at(OPENS + 1).wall);
    let fact = Fact {
        published_at: woken.wall,
        ..Fact::numbered(1)
    };
    member.fact(woken, fact, 0);
    assert_eq!(member.words(), ["unopened 1 period_expired"]);
    let group = member.node.client.group(member.group).expect("joined");
    assert_eq!(group.periods, 0);
}

/// Fact, key and timer in one tick: each order delivers it once or tells it once.
#[test]
fn fact_key_and_timer_of_one_tick_settle_the_fact_once_in_every_order() {
    for tick in [15_000, 15_001] {
        for order in ORDERS {
            let mut member = Member::new(SealPolicy::Preferred);
            member.seq(at(1), 1, PAST);
            let ask = member.open_ask(Which::One(key_id(PAST)));
            for step in order {
                match step {
                    0 => member.seq(at(tick), 2, PAST),
                    1 => {
                        let answer = keys(SealPolicy::Preferred, &[PAST]);
                        let told = member.node.client.answer(at(tick), ask, answer);
                        let in_time = tick == 15_000;
                        assert_eq!(told.is_ok(), in_time, "{order:?}");
                    }
                    _ => member.node.time(at(tick)),
                }
            }
            let mut words = member.words();
            // What came after the deadline is asked for again, on its own.
            if member.asks() == [Which::One(key_id(PAST))] {
                let again = keys(SealPolicy::Preferred, &[PAST]);
                assert_eq!(
                    member.answer(at(tick + 1), Which::One(key_id(PAST)), again),
                    Ok(())
                );
                words.extend(member.words());
            }
            let settled = |seq: u64| {
                let ends = |word: &&String| {
                    **word == seq.to_string() || **word == format!("unopened {seq} no_distributor")
                };
                words.iter().filter(ends).count()
            };
            assert_eq!(
                (settled(1), settled(2), words.len()),
                (1, 1, 2),
                "{order:?} {words:?}"
            );
            if tick == 15_000 {
                assert_eq!(words, ["1", "2"], "{order:?}");
            }
        }
    }
}

/// What comes at the deadline moves the keyring on before its timer does.
#[test]
fn what_waits_is_told_at_the_deadline_though_something_else_came_first() {
    let one = Which::One(key_id(9));
    let waiting = || {
        let mut member = Member::new(SealPolicy::Preferred);
        member.seq(at(1), 1, 9);
        assert_eq!(member.asks(), [one]);
        member
    };
    // A fact of another lane: its key is here, or has to be asked for.
    for period in [0, PAST] {
        let mut member = waiting();
        let theirs = sealed(&signer(8), Fact::numbered(1), period);
        member.node.object(at(15_001), 0, &theirs);
        member.node.time(at(15_002));
        let words = member.words();
        let told = "unopened 1 no_distributor".to_owned();
        assert!(words.contains(&told), "{period} {words:?}");
    }
    // Another token: it is asked for again.
    let mut member = waiting();
    join(&mut member.node.client, at(15_001));
    member.node.time(at(15_002));
    assert_eq!(member.asks(), [one]);
}
