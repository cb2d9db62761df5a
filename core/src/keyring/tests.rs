//! The rules of a member's keyring, one by one; `property.rs` holds it against a naive model.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::Seed;
use crate::wire::SKEW_MS;

mod property;

const R: u64 = DEFAULT_ROTATION_MS;
const START: u64 = 1_790_000_000_000;

type Small = Keyring<Vec<PeriodSlot>, Vec<PullSlot>, Vec<SubkeySlot>>;

fn keyring(periods: usize, pulls: usize) -> Small {
    let periods = (0..periods).map(|_| PeriodSlot::EMPTY).collect();
    let subkeys = (0..8).map(|_| SubkeySlot::EMPTY).collect();
    let pulls = vec![PullSlot::EMPTY; pulls];
    Keyring::new(periods, pulls, subkeys, Seed::new([5; 32]).fork("keyring"))
}

/// Both clocks, so many milliseconds after the start.
fn at(ms: u64) -> Now {
    Now::new(Instant::from_millis(ms), WallMs::new(START + ms))
}

fn id(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn who(n: u8) -> NodeId {
    NodeId::new([n; 32])
}

/// The n-th period of a group that began at the start.
fn period(n: u64) -> KeyPeriod {
    let from = START + n * R;
    let until = WallMs::new(from + R);
    KeyPeriod::new(id(n), [n as u8 + 1; 32], WallMs::new(from), until)
}

fn asks(keyring: &mut Small) -> Vec<Which> {
    core::iter::from_fn(|| keyring.poll_ask())
        .map(|ask| ask.which)
        .collect()
}

/// A group that was joined at the start, with its period 0 held.
fn joined() -> Small {
    let mut keyring = keyring(16, 32);
    keyring.join(at(0));
    assert_eq!(asks(&mut keyring), [Which::Current]);
    give(&mut keyring, at(0), &[period(0)]);
    keyring
}

fn give(keyring: &mut Small, now: Now, periods: &[KeyPeriod]) {
    keyring
        .handle_keys(now, Which::Current, SealPolicy::Preferred, periods)
        .expect("well formed");
}

fn opens(keyring: &mut Small, now: Now, n: u64) -> Result<(), Option<UnopenedReason>> {
    match keyring.lookup(now, &id(n), &who(1)) {
        Lookup::Held { .. } => Ok(()),
        Lookup::Waiting => Err(None),
        Lookup::Unopened(reason) => Err(Some(reason)),
    }
}

fn seals(keyring: &mut Small, now: Now) -> Result<[u8; 8], NoKey> {
    keyring.sealing(now, &who(9)).map(|(id, _)| id)
}

#[test]
fn joining_asks_for_what_is_current_once_and_joining_again_for_nothing() {
    let mut keyring = joined();
    keyring.join(at(1));
    assert_eq!(asks(&mut keyring), []);
    assert_eq!(keyring.stats().pulls, 1);
    assert_eq!(seals(&mut keyring, at(1)), Ok(id(0)));
}

#[test]
fn a_period_is_sealed_under_from_its_beginning_until_its_end_and_the_newest_of_several() {
    let mut keyring = joined();
    assert_eq!(seals(&mut keyring, at(R - 1)), Ok(id(0)));
    let mut keyring = self::keyring(4, 4);
    keyring.join(at(0));
    asks(&mut keyring);
    give(&mut keyring, at(0), &[period(0), period(1)]);
    assert_eq!(
        seals(&mut keyring, at(R - 1)),
        Ok(id(0)),
        "an unstarted one is not used"
    );
    assert_eq!(seals(&mut keyring, at(R)), Ok(id(1)));
    assert_eq!(seals(&mut keyring, at(2 * R - 1)), Ok(id(1)));
    assert_eq!(seals(&mut keyring, at(2 * R)), Err(NoKey::Pending));
}

#[test]
fn a_period_opens_through_its_acceptance_and_five_minutes_more() {
    let mut keyring = joined();
    let last = R + ACCEPT_MS + SKEW_MS;
    assert_eq!(opens(&mut keyring, at(last), 0), Ok(()));
    assert_eq!(keyring.len(), 1);
    let over = Err(Some(UnopenedReason::PeriodExpired));
    assert_eq!(opens(&mut keyring, at(last + 1), 0), over);
    assert_eq!((keyring.len(), keyring.stats().erased), (0, 1));
}

#[test]
fn a_key_ends_by_whichever_clock_says_first() {
    let last = R + ACCEPT_MS + SKEW_MS;
    let over = Err(Some(UnopenedReason::PeriodExpired));
    let (slept, set_back) = (
        Now::new(Instant::from_millis(1), WallMs::new(START + last + 1)),
        Now::new(Instant::from_millis(last + 1), WallMs::new(START)),
    );
    for now in [slept, set_back] {
        let mut keyring = joined();
        assert_eq!(opens(&mut keyring, now, 0), over);
        assert!(keyring.is_empty());
        // Neither does a wall that goes back bring it again.
        assert_eq!(opens(&mut keyring, at(last + 2), 0), over);
    }
    let mut keyring = joined();
    let stood_still = Now::new(Instant::from_millis(R), WallMs::new(START));
    assert_eq!(seals(&mut keyring, stood_still), Err(NoKey::Pending));
}

#[test]
fn the_next_period_is_asked_for_in_the_last_third_at_an_instant_of_its_own() {
    let window = R - R / 3;
    for (draw, wanted) in [(0, window), (1 << 63, window + R / 6), (u64::MAX, R - 1)] {
        let at = repull_at(&period(0), draw);
        assert_eq!(at.as_millis(), START + wanted);
    }
    let mut keyring = joined();
    let due = keyring.poll_timeout().unwrap().as_micros() / 1000;
    assert!((window..R).contains(&due), "{due}");
    keyring.handle_timeout(at(due - 1));
    assert_eq!(asks(&mut keyring), []);
    keyring.handle_timeout(at(due));
    assert_eq!(asks(&mut keyring), [Which::Current]);
    give(&mut keyring, at(due + 5), &[period(0), period(1)]);
    assert_eq!(seals(&mut keyring, at(R)), Ok(id(1)));
    assert_eq!(keyring.stats().pulls, 2, "event or no event");
}

#[test]
fn weak_point_2_where_the_other_clock_trails_questions_keep_a_distance() {
    let mut keyring = joined();
    let mut now = R - 1000;
    keyring.handle_timeout(at(now));
    let before = keyring.stats().pulls;
    // Its answers hold the period that is over here, until it has made the next.
    for _ in 0..1000 {
        if !asks(&mut keyring).is_empty() {
            give(&mut keyring, at(now), &[period(0)]);
        }
        now += 200;
        keyring.handle_timeout(at(now));
        let _sealed = seals(&mut keyring, at(now));
    }
    let pulls = keyring.stats().pulls - before;
    assert!(pulls <= 1 + 200_000 / (R / 30), "{pulls}");
}

#[test]
fn br_60_a_question_that_fails_is_asked_again_later_and_later_and_nothing_is_sealed() {
    let mut keyring = keyring(4, 4);
    keyring.join(at(0));
    let mut now = 0;
    let mut waits = Vec::new();
    for _ in 0..12 {
        assert_eq!(asks(&mut keyring), [Which::Current]);
        let refused = keyring.handle_refusal(at(now), Which::Current, UnopenedReason::NotAMember);
        assert_eq!(refused, Ok(()));
        let failed = Err(NoKey::Failed(UnopenedReason::NotAMember));
        assert_eq!(
            seals(&mut keyring, at(now)),
            failed,
            "nor does publishing ask sooner"
        );
        assert_eq!(asks(&mut keyring), []);
        let due = keyring.poll_timeout().unwrap().as_micros() / 1000;
        waits.push((due - now) / 1000);
        now = due;
        keyring.handle_timeout(at(now));
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    give(&mut keyring, at(now), &[period(now / R)]);
    assert!(seals(&mut keyring, at(now)).is_ok());
    assert_eq!(keyring.failed(), None);
}

#[test]
fn a_question_without_an_answer_has_failed_after_its_deadline() {
    let mut keyring = keyring(4, 4);
    keyring.join(at(0));
    let ask = keyring.poll_ask().unwrap();
    assert_eq!(ask.deadline, Instant::from_millis(15_000));
    keyring.handle_timeout(at(14_999));
    assert_eq!(seals(&mut keyring, at(14_999)), Err(NoKey::Pending));
    let late = keyring.handle_keys(at(15_000), ask.which, SealPolicy::Off, &[period(0)]);
    assert_eq!(late, Err(KeysFault::NotAsked));
    let failed = NoKey::Failed(UnopenedReason::NoDistributor);
    assert_eq!(seals(&mut keyring, at(15_000)), Err(failed));
}

#[test]
fn one_question_for_each_id_that_is_missed() {
    let mut keyring = joined();
    for publisher in 1..4 {
        keyring.want(at(1), &id(7), &who(publisher));
    }
    assert_eq!(asks(&mut keyring), [Which::One(id(7))]);
    assert_eq!(opens(&mut keyring, at(1), 7), Err(None));
    let missed = KeyPeriod::new(id(7), [7; 32], WallMs::new(START - R), WallMs::new(START));
    let given = keyring.handle_keys(at(2), Which::One(id(7)), SealPolicy::Off, &[missed]);
    assert_eq!(given, Ok(()));
    assert_eq!(opens(&mut keyring, at(2), 7), Ok(()));
}

#[test]
fn a_held_period_opens_and_seals_while_a_question_is_under_way() {
    let mut keyring = joined();
    keyring.want(at(R - 2), &id(7), &who(1));
    keyring.handle_timeout(at(R - 1));
    assert_eq!(asks(&mut keyring), [Which::Current, Which::One(id(7))]);
    assert_eq!(opens(&mut keyring, at(R - 1), 0), Ok(()));
    assert_eq!(seals(&mut keyring, at(R - 1)), Ok(id(0)));
}

#[test]
fn what_is_unknown_is_remembered_for_every_publisher_for_65_minutes() {
    let mut keyring = joined();
    let unknown = UnopenedReason::UnknownPeriod;
    keyring.want(at(1), &id(7), &who(1));
    asks(&mut keyring);
    keyring
        .handle_refusal(at(2), Which::One(id(7)), unknown)
        .unwrap();
    let last = 2 + 65 * 60_000 - 1;
    for (now, publisher) in [(3, 1), (4, 2), (last, 3)] {
        keyring.want(at(now), &id(7), &who(publisher));
        let asked = asks(&mut keyring);
        assert!(!asked.contains(&Which::One(id(7))), "{now}");
        assert_eq!(opens(&mut keyring, at(now), 7), Err(Some(unknown)));
    }
    keyring.want(at(last + 1), &id(7), &who(2));
    assert!(asks(&mut keyring).contains(&Which::One(id(7))));
}

#[test]
fn other_failures_are_not_remembered_but_count() {
    let mut keyring = joined();
    for _ in 0..3 {
        keyring.want(at(1), &id(7), &who(1));
        assert_eq!(asks(&mut keyring), [Which::One(id(7))]);
        let reason = UnopenedReason::MembershipUnknown;
        keyring
            .handle_refusal(at(1), Which::One(id(7)), reason)
            .unwrap();
        assert_eq!(opens(&mut keyring, at(1), 7), Err(Some(reason)));
    }
    keyring.want(at(1), &id(7), &who(1));
    assert_eq!(asks(&mut keyring), [], "it had its three");
    assert_eq!(keyring.failed(), None, "nor does it delay what is current");
}

#[test]
fn a_publisher_has_three_unknown_ids_asked_for_in_a_rotation() {
    let mut keyring = joined();
    for n in 10..20 {
        keyring.want(at(n), &id(n), &who(1));
    }
    assert_eq!(asks(&mut keyring).len(), 3);
    assert_eq!(keyring.stats().over_budget, 7);
    let fourth = Err(Some(UnopenedReason::UnknownPeriod));
    assert_eq!(opens(&mut keyring, at(20), 13), fourth);
    keyring.want(at(20), &id(20), &who(2));
    assert_eq!(
        asks(&mut keyring),
        [Which::One(id(20))],
        "another has its own"
    );
    keyring.handle_timeout(at(10 + R));
    asks(&mut keyring);
    keyring.want(at(10 + R), &id(30), &who(1));
    assert_eq!(
        asks(&mut keyring),
        [Which::One(id(30))],
        "a later rotation allows it"
    );
}

#[test]
fn weak_point_1_what_is_remembered_of_unknown_ids_is_bounded() {
    let mut keyring = joined();
    let memory = keyring.memory();
    let mut asked = 0;
    for n in 0..10_000u64 {
        let publisher = NodeId::new(core::array::from_fn(|at| (n >> (8 * (at % 8))) as u8));
        keyring.want(at(1), &id(1000 + n), &publisher);
        asked += asks(&mut keyring).len();
    }
    assert_eq!((asked, keyring.memory()), (32, memory));
    // Once they were answered and their rotation is over there is room again.
    keyring.handle_timeout(at(PULL_PATIENCE.as_millis() as u64 + 2));
    keyring.want(at(R + 2), &id(5), &who(1));
    assert!(asks(&mut keyring).contains(&Which::One(id(5))));
}

#[test]
fn weak_point_3_another_token_is_tried_at_once() {
    let mut keyring = keyring(4, 4);
    keyring.join(at(0));
    asks(&mut keyring);
    let refused = UnopenedReason::NotAuthorized;
    keyring
        .handle_refusal(at(0), Which::Current, refused)
        .unwrap();
    keyring.renew(at(1));
    assert_eq!(asks(&mut keyring), [Which::Current]);
    give(&mut keyring, at(2), &[period(0)]);
    keyring.renew(at(3));
    assert_eq!(asks(&mut keyring), [], "what works is not asked again");
}

#[test]
fn weak_point_5_an_answer_by_id_holds_exactly_that_one() {
    let mut keyring = joined();
    keyring.want(at(1), &id(1), &who(1));
    asks(&mut keyring);
    let both = [period(1), period(2)];
    let given = keyring.handle_keys(at(1), Which::One(id(1)), SealPolicy::Off, &both);
    assert_eq!(given, Err(KeysFault::Count));
    let failed = Err(Some(UnopenedReason::NoDistributor));
    assert_eq!((opens(&mut keyring, at(1), 1), keyring.len()), (failed, 1));
    keyring.want(at(2), &id(1), &who(1));
    let other = keyring.handle_keys(at(2), Which::One(id(1)), SealPolicy::Off, &[period(0)]);
    assert_eq!(other, Err(KeysFault::NotAsked));
}

#[test]
fn an_answer_that_breaks_a_rule_is_refused_whole() {
    let base = |from: u64, until: u64| {
        KeyPeriod::new(
            id(from),
            [1; 32],
            WallMs::new(START + from),
            WallMs::new(START + until),
        )
    };
    let odd = KeyPeriod {
        accept_until: WallMs::new(START + R + ACCEPT_MS + 60_000),
        ..period(0)
    };
    let twice = KeyPeriod::new(
        id(0),
        [1; 32],
        WallMs::new(START + R),
        WallMs::new(START + 2 * R),
    );
    let cases: [(&[KeyPeriod], KeysFault); 9] = [
        (&[], KeysFault::Count),
        (&[period(0), period(1), period(2)], KeysFault::Count),
        (&[odd], KeysFault::Acceptance),
        (&[base(0, 59_999)], KeysFault::Rotation),
        (&[base(0, 24 * 3_600_000 + 1)], KeysFault::Rotation),
        (&[period(0), period(2)], KeysFault::NotContiguous),
        (&[period(0), twice], KeysFault::NotContiguous),
        (&[base(300_001, 400_000)], KeysFault::NotNow),
        (&[period(0), base(R, R)], KeysFault::Rotation),
    ];
    for (n, (periods, fault)) in cases.iter().enumerate() {
        let mut keyring = keyring(4, 4);
        keyring.join(at(0));
        let given = keyring.handle_keys(at(0), Which::Current, SealPolicy::Off, periods);
        assert_eq!(given, Err(*fault), "{n}");
        let failed = NoKey::Failed(UnopenedReason::NoDistributor);
        assert_eq!(seals(&mut keyring, at(0)), Err(failed), "{n}");
        assert_eq!((keyring.len(), keyring.policy()), (0, None), "{n}");
    }
    for (now, good) in [(R + SKEW_MS - 1, true), (R + SKEW_MS, false)] {
        let mut keyring = keyring(4, 4);
        keyring.join(at(now));
        let given = keyring.handle_keys(at(now), Which::Current, SealPolicy::Off, &[period(0)]);
        assert_eq!(given.is_ok(), good, "{now}");
    }
}

#[test]
fn what_is_held_stays_as_it_is_when_an_answer_contradicts_it() {
    let mut keyring = joined();
    let before = *subkey_bytes(&mut keyring, at(1), 0);
    keyring.handle_timeout(at(R - 1));
    let other = KeyPeriod::new(id(0), [99; 32], WallMs::new(START), WallMs::new(START + R));
    give(&mut keyring, at(R - 1), &[other]);
    assert_eq!(*subkey_bytes(&mut keyring, at(R - 1), 0), before);
    assert_eq!(keyring.stats().contradictions, 1);
}

fn subkey_bytes(keyring: &mut Small, now: Now, n: u64) -> &[u8; 32] {
    match keyring.lookup(now, &id(n), &who(1)) {
        Lookup::Held { subkey, .. } => subkey.bytes(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_policy_is_never_loosened() {
    let mut keyring = joined();
    let mut now = 0;
    for (given, wanted) in [
        (SealPolicy::Off, SealPolicy::Preferred),
        (SealPolicy::Required, SealPolicy::Required),
        (SealPolicy::Preferred, SealPolicy::Required),
        (SealPolicy::Off, SealPolicy::Required),
    ] {
        now += R;
        keyring.handle_timeout(at(now));
        let n = now / R;
        keyring
            .handle_keys(at(now), Which::Current, given, &[period(n)])
            .unwrap();
        assert_eq!(keyring.policy(), Some(wanted));
    }
}

#[test]
fn while_the_first_answer_is_waited_for_an_id_waits_for_it_and_is_asked_for_after_it() {
    let mut keyring = keyring(4, 4);
    keyring.join(at(0));
    keyring.want(at(0), &id(0), &who(1));
    assert_eq!(asks(&mut keyring), [Which::Current]);
    assert_eq!(opens(&mut keyring, at(0), 0), Err(None));
    assert_eq!(opens(&mut keyring, at(0), 7), Err(None));
    give(&mut keyring, at(1), &[period(0)]);
    assert_eq!(opens(&mut keyring, at(1), 0), Ok(()));
    assert_eq!(opens(&mut keyring, at(1), 7), Err(None));
    assert_eq!(asks(&mut keyring), [Which::One(id(7))]);
    // A first answer that fails is the answer for all that wait.
    let mut keyring = self::keyring(4, 4);
    keyring.join(at(0));
    let refused = UnopenedReason::NotAMember;
    keyring
        .handle_refusal(at(1), Which::Current, refused)
        .unwrap();
    assert_eq!(opens(&mut keyring, at(1), 0), Err(Some(refused)));
}

#[test]
fn leaving_wipes_all_and_what_is_under_way_is_not_waited_for() {
    let mut keyring = joined();
    keyring.want(at(1), &id(7), &who(1));
    keyring.leave();
    assert!(keyring.is_empty() && keyring.poll_timeout().is_none());
    assert_eq!(asks(&mut keyring), []);
    let no_group = UnopenedReason::NoGroup;
    assert_eq!(opens(&mut keyring, at(2), 0), Err(Some(no_group)));
    assert_eq!(seals(&mut keyring, at(2)), Err(NoKey::Failed(no_group)));
    let late = keyring.handle_keys(at(2), Which::One(id(7)), SealPolicy::Off, &[period(0)]);
    assert_eq!(late, Err(KeysFault::NotAsked));
}

#[test]
fn where_all_slots_are_taken_the_period_that_is_over_first_makes_room() {
    let mut keyring = keyring(2, 8);
    keyring.join(at(0));
    give(&mut keyring, at(0), &[period(0), period(1)]);
    keyring.handle_timeout(at(2 * R));
    give(&mut keyring, at(2 * R), &[period(2)]);
    assert_eq!((keyring.len(), keyring.stats().evicted), (2, 1));
    let mut now = at(2 * R);
    assert_eq!(opens(&mut keyring, now, 1), Ok(()));
    assert_eq!(opens(&mut keyring, now, 2), Ok(()));
    // One that was over before all of them is not taken for them.
    keyring.want(now, &id(0), &who(1));
    keyring
        .handle_keys(now, Which::One(id(0)), SealPolicy::Off, &[period(0)])
        .unwrap();
    assert_eq!(opens(&mut keyring, now, 2), Ok(()));
    // What is over is no period that has to make room.
    now = at(6 * R + ACCEPT_MS);
    keyring.handle_timeout(now);
    assert_eq!(keyring.len(), 0);
}

#[test]
fn a_period_that_makes_room_takes_its_subkeys_with_it() {
    let mut keyring = keyring(2, 8);
    keyring.join(at(0));
    give(&mut keyring, at(0), &[period(0), period(1)]);
    assert_eq!(opens(&mut keyring, at(1), 0), Ok(()));
    keyring.handle_timeout(at(2 * R));
    give(&mut keyring, at(2 * R), &[period(2)]);
    assert_eq!(opens(&mut keyring, at(2 * R), 0), Err(None));
}

#[test]
fn what_is_found_is_of_its_publisher_and_its_period_the_first_time_and_again() {
    let mut keyring = keyring(4, 8);
    keyring.join(at(0));
    give(&mut keyring, at(0), &[period(0), period(1)]);
    for _ in 0..3 {
        for (n, by) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
            let wanted = Subkey::derive(&period(n).key, &who(by));
            let Lookup::Held {
                subkey,
                period: found,
            } = keyring.lookup(at(1), &id(n), &who(by))
            else {
                panic!("it is held");
            };
            assert_eq!(subkey.bytes(), wanted.bytes());
            assert!(found.is_same(&period(n).key));
        }
    }
    assert_eq!(keyring.subkeys.derivations(), 4);
}

#[test]
fn no_secret_is_left_in_a_slot_that_is_over_nor_in_a_subkey() {
    let mut keyring = joined();
    let _held = opens(&mut keyring, at(1), 0);
    assert_eq!(keyring.subkeys.len(), 1);
    keyring.handle_timeout(at(R + ACCEPT_MS + SKEW_MS + 1));
    assert_eq!(keyring.subkeys.len(), 0);
    assert!(keyring.periods.is_wiped());
    let mut keyring = joined();
    let _held = opens(&mut keyring, at(1), 0);
    keyring.leave();
    assert!(keyring.periods.is_wiped() && keyring.subkeys.is_empty());
}

#[test]
fn a_wall_that_ran_ahead_and_came_back_costs_one_question() {
    let mut keyring = joined();
    let ahead = Now::new(Instant::from_millis(1), WallMs::new(START + 100 * R));
    keyring.handle_timeout(ahead);
    assert!(keyring.is_empty());
    let _none = seals(&mut keyring, at(2));
    let now = at(shortest_wait(R).as_millis() as u64 + 1);
    let _none = seals(&mut keyring, now);
    assert_eq!(asks(&mut keyring), [Which::Current]);
    give(&mut keyring, now, &[period(0)]);
    assert_eq!(seals(&mut keyring, now), Ok(id(0)));
}

/// What three inputs of one moment lead to, in any order: a fact, the answer it waits for, the timer that gives it up.
#[test]
fn fact_key_and_timer_of_one_moment_come_to_the_same_in_every_order() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for due in [true, false] {
        let now = at(if due { 15_001 } else { 15_000 });
        let outcomes = orders.map(|order| {
            let mut keyring = joined();
            keyring.want(at(1), &id(1), &who(1));
            asks(&mut keyring);
            let ahead = KeyPeriod::new(id(1), [1; 32], WallMs::new(START - R), WallMs::new(START));
            for step in order {
                match step {
                    0 => keyring.want(now, &id(1), &who(2)),
                    1 => {
                        let one = Which::One(id(1));
                        let period = core::slice::from_ref(&ahead);
                        let _late = keyring.handle_keys(now, one, SealPolicy::Off, period);
                    }
                    _ => keyring.handle_timeout(now),
                }
            }
            let asked = asks(&mut keyring).len();
            (opens(&mut keyring, now, 1), asked)
        });
        let settled = |outcome: &(Result<(), Option<UnopenedReason>>, usize)| match (due, outcome) {
            // In time it opens, and nothing more was asked.
            (false, outcome) => *outcome == (Ok(()), 0),
            // Too late it was asked for again, once: on behalf of the fact, and if that came before the answer that answers it.
            (true, (Ok(()) | Err(None), 1)) => true,
            (true, (Ok(()), 0)) => true,
            _ => false,
        };
        assert!(outcomes.iter().all(settled), "{outcomes:?}");
    }
}
