//! What a group requires, what an answer may be, and what all of it may cost.

use tidings::code::{DiagnosticCode, ObjectFault, SealPolicy, UnopenedReason};
use tidings::inbound::sources::SourceAnswer;
use tidings::keyring::{KeyPeriod, Which};
use tidings::sim::START;
use tidings::{
    Action, Answer, ClientConfig, ClientLimits, Group, KeyPeriods, Misuse, Question, Sources,
    Subscribe, WallMs,
};

use super::common::{Fact, at, counter, items, open, realm, signer};
use super::rig::{Member, R, key_id, keys, sealed, told};

#[test]
fn where_seals_are_required_a_clear_fact_is_refused_on_every_subscription_and_its_place_closed() {
    let mut member = Member::new(SealPolicy::Required);
    let plain = Subscribe::new(realm(), "weather/**", Sources::Open);
    let plain = member
        .node
        .client
        .subscribe(at(0), plain)
        .expect("accepted");
    member.seq(at(1), 1, 0);
    member.node.seq(at(2), 0, 2);
    member.node.seq(at(2), 0, 2);
    member.seq(at(3), 3, 0);
    assert_eq!(member.words(), ["1", "3"], "neither missing nor waited for");
    let others = told(&items(&mut member.node.client, plain));
    assert_eq!(others, ["unopened 1 no_group", "unopened 3 no_group"]);
    let status = member.node.client.status();
    assert_eq!(counter(&status.counters, "clear_refused"), 2);
    let [run] = &status.refused_in_clear[..] else {
        panic!("one run: {:?}", status.refused_in_clear);
    };
    assert_eq!((run.first, run.last), (2, 2));
    assert_eq!(member.node.faults(ObjectFault::ClearRefused), 1);
    assert_eq!(member.node.faults(ObjectFault::Duplicate), 1);
    assert_eq!(member.node.client.reported(DiagnosticCode::ClearRefused), 1);
}

#[test]
fn runs_of_refused_facts_are_told_by_their_numbers_and_the_oldest_of_too_many_is_forgotten() {
    let mut member = Member::new(SealPolicy::Required);
    for seq in [1, 2, 3, 5] {
        member.node.seq(at(1), 0, seq);
    }
    let runs = |member: &Member| -> Vec<(u64, u64)> {
        let runs = member.node.client.status().refused_in_clear;
        runs.iter().map(|run| (run.first, run.last)).collect()
    };
    assert_eq!(runs(&member), [(1, 3), (5, 5)]);
    for seq in (0..64).map(|n| 7 + 2 * n).chain([134]) {
        member.node.seq(at(2), 0, seq);
    }
    let told = runs(&member);
    assert_eq!(told.len(), 64);
    assert_eq!((told[0], told[63]), ((7, 7), (133, 134)));
}

#[test]
fn a_clear_fact_is_one_refusal_whoever_was_looked_up_for_it_and_its_number_is_told_once() {
    let mut member = Member::new(SealPolicy::Required);
    for sources in [Sources::Members, Sources::Org("acme".into())] {
        let looked_up = Subscribe::new(realm(), "weather/**", sources);
        let made = member.node.client.subscribe(at(0), looked_up);
        made.expect("accepted");
    }
    member.node.seq(at(1), 0, 1);
    member.node.seq(at(1), 0, 2);
    let another = Fact {
        published_at: at(2).wall,
        ..Fact::numbered(1)
    };
    member.node.fact(at(2), 0, another);
    let status = member.node.client.status();
    assert_eq!(member.node.faults(ObjectFault::ClearRefused), 3);
    assert_eq!(counter(&status.counters, "clear_refused"), 9);
    let runs = status.refused_in_clear.iter();
    let runs: Vec<(u64, u64)> = runs.map(|run| (run.first, run.last)).collect();
    assert_eq!(runs, [(1, 2)]);
    assert_eq!(status.sources.held, 0);
}

#[test]
fn a_clear_fact_that_waited_for_its_publisher_is_refused_as_that_and_as_nothing_else() {
    let mut member = Member::joining(|_| Subscribe::new(realm(), "weather/**", Sources::Members));
    member.asks();
    member.node.seq(at(1), 0, 1);
    let mut lookup = None;
    while let Some(action) = member.node.client.poll_action() {
        if let Action::Ask { ask, question, .. } = action {
            assert!(matches!(question, Question::Source(_)), "{question:?}");
            lookup = Some(ask);
        }
    }
    let required = keys(SealPolicy::Required, &[0]);
    assert_eq!(member.answer(at(2), Which::Current, required), Ok(()));
    let until = at(60_000).wall;
    let admitted = Answer::Source(SourceAnswer::Admit { until });
    let lookup = lookup.expect("its publisher is looked up");
    assert_eq!(member.node.client.answer(at(3), lookup, admitted), Ok(()));
    assert_eq!(member.node.faults(ObjectFault::ClearRefused), 1);
    assert_eq!(member.node.faults(ObjectFault::SourceRefused), 0);
    assert_eq!(member.words(), [""; 0]);
}

#[test]
fn the_longest_prefix_that_was_joined_decides() {
    let mut member = Member::new(SealPolicy::Required);
    let inner = Group::new(realm(), "weather/acme/app/days");
    member
        .node
        .client
        .join_group(at(0), inner)
        .expect("a good prefix");
    assert_eq!(
        member.answer(at(0), Which::Current, keys(SealPolicy::Off, &[0])),
        Ok(())
    );
    member.node.seq(at(1), 0, 1);
    assert_eq!(member.words(), ["1"]);
}

#[test]
fn an_answer_of_another_kind_late_or_twice_is_a_misuse_and_changes_nothing() {
    let mut member = Member::new(SealPolicy::Preferred);
    member.seq(at(1), 1, 9);
    let ask = member.open_ask(Which::One(key_id(9)));
    let client = &mut member.node.client;
    let wrong = client.answer(at(1), ask, Answer::Verified(true));
    assert_eq!(wrong, Err(Misuse::WrongAnswer));
    assert_eq!(
        client.answer(at(2), ask, keys(SealPolicy::Off, &[9])),
        Ok(())
    );
    let twice = client.answer(at(3), ask, keys(SealPolicy::Off, &[9]));
    assert_eq!(twice, Err(Misuse::DeadHandle));
}

#[test]
fn an_answer_that_breaks_a_rule_answers_what_waits_and_is_reported() {
    let mut member = Member::new(SealPolicy::Preferred);
    member.seq(at(1), 1, 9);
    // Nothing by that id, and a period that was not asked for.
    let other = keys(SealPolicy::Preferred, &[0]);
    assert_eq!(member.answer(at(2), Which::One(key_id(9)), other), Ok(()));
    assert_eq!(member.words(), ["unopened 1 no_distributor"]);
    assert_eq!(member.node.client.reported(DiagnosticCode::KeysFailed), 1);
    let status = member.node.client.group(member.group).expect("joined");
    assert_eq!((status.periods, status.stats.refused_answers), (1, 1));
}

#[test]
fn a_reader_that_missed_a_rotation_asks_for_each_period_it_missed_once() {
    let mut member = Member::new(SealPolicy::Preferred);
    let now = 4 * R + 1000;
    // Its distributor was away: it holds nothing newer than period 0.
    member.node.time(at(now));
    member.asks();
    member.asked.clear();
    let fact = |seq| Fact {
        published_at: at(now).wall,
        ..Fact::numbered(seq)
    };
    for (seq, n) in [(1, 2), (2, 2), (3, 3), (4, 4)] {
        member.fact(at(now), fact(seq), n);
    }
    let mut asked = member.asks();
    asked.sort_unstable();
    assert_eq!(asked, [2, 3, 4].map(|n| Which::One(key_id(n))));
    for n in [4, 3, 2] {
        let given = keys(SealPolicy::Preferred, &[n]);
        assert_eq!(
            member.answer(at(now + 1), Which::One(key_id(n)), given),
            Ok(())
        );
    }
    assert_eq!(member.words(), ["1", "2", "3", "4"]);
}

#[test]
fn weak_point_1_publishers_that_invent_ids_cost_a_bounded_number_of_questions() {
    let mut limits = ClientLimits::default();
    limits.group_pulls = 32;
    let config = ClientConfig::new(signer(1)).limits(limits);
    let mut member = Member::with(config, |group| open().group(group));
    let first = member.answer(at(0), Which::Current, keys(SealPolicy::Preferred, &[0]));
    assert_eq!(first, Ok(()));
    let line = |member: &Member| {
        let report = member.node.client.memory();
        report.line("groups").expect("a line").bytes
    };
    let before = line(&member);
    let mut asked = 0;
    for n in 0..200u64 {
        let by = signer(1000 + n);
        for seq in 1..=5 {
            let object = sealed(&by, Fact::numbered(seq), 20 + (n * 5 + seq) % 200);
            member.node.object(at(1), 0, &object);
        }
        asked += member.asks().len();
    }
    assert_eq!(asked, 32);
    assert!(
        line(&member) <= before + 200 * 64 + 32 * 64,
        "{} after {before}",
        line(&member)
    );
    let limits = ClientLimits::default().worst_case_bytes();
    assert!(member.node.client.memory().bytes() <= limits);
    // A member that seals under what is held is not affected.
    member.seq(at(2), 1, 0);
    assert_eq!(member.words().last().map(String::as_str), Some("1"));
    // All that waited is told once the questions are over.
    member.asked.clear();
    member.node.time(at(15_001));
    let words = member.words();
    assert!(
        words.iter().all(|word| word.starts_with("unopened")),
        "{words:?}"
    );
    assert_eq!(
        member
            .node
            .client
            .group(member.group)
            .expect("joined")
            .waiting,
        0
    );
}

/// Publishers of a group that come and go, and ids that somebody made up, leave its tables where they were.
#[test]
fn br_66_ten_thousand_publishers_and_their_keys_leave_nothing_behind() {
    let mut limits = ClientLimits::default();
    (limits.lanes, limits.group_publishers, limits.group_pulls) = (16_384, 64, 32);
    let config = ClientConfig::new(signer(1)).limits(limits);
    let mut member = Member::with(config, |group| open().group(group));
    let first = member.answer(at(0), Which::Current, keys(SealPolicy::Preferred, &[0]));
    assert_eq!(first, Ok(()));
    let line = |member: &Member, name: &str| {
        let report = member.node.client.memory();
        report.line(name).map_or(0, |line| line.bytes)
    };
    let groups = line(&member, "groups");
    let (mut opened, mut told) = (0, 0);
    for n in 0..10_000u64 {
        let by = signer(1000 + n);
        // Every tenth invents the id of a key.
        let period = if n % 10 == 9 { 20 + n % 200 } else { 0 };
        let fact = Fact {
            published_at: at(n * 20).wall,
            ..Fact::numbered(1)
        };
        member
            .node
            .object(at(n * 20), 0, &sealed(&by, fact, period));
        member.asks();
        member.asked.clear();
        if n % 100 == 0 {
            member.node.time(at(n * 20));
        }
        for word in member.words() {
            match word.as_str() {
                "1" => opened += 1,
                _ => told += 1,
            }
        }
        assert!(line(&member, "groups") <= groups + 8192, "after {n}");
    }
    member.node.time(at(10_000 * 20 + 20_000));
    told += member.words().len();
    assert_eq!((opened, told), (9000, 1000));
    let status = member.node.client.group(member.group).expect("joined");
    assert_eq!((status.waiting, status.periods), (0, 1));
    assert!(line(&member, "groups") <= groups + 4096);
    // Nothing of them is left when all they published is over.
    for hour in 1..=3 {
        member.node.time(at(hour * 3_600_000));
    }
    for name in ["lanes", "dedup", "held_bytes"] {
        let report = member.node.client.memory();
        assert_eq!(report.line(name).map(|line| line.used), Some(0), "{name}");
    }
}

#[test]
fn weak_point_2_a_distributor_whose_clock_trails_is_not_asked_without_end() {
    let mut member = Member::new(SealPolicy::Preferred);
    let mut asked = 0;
    // Five minutes behind, it makes the next period only then.
    let mut ms = R - R / 3;
    while ms < R + 290_000 {
        member.node.time(at(ms));
        if member.asks().contains(&Which::Current) {
            asked += 1;
            let same = keys(SealPolicy::Preferred, &[0]);
            assert_eq!(member.answer(at(ms), Which::Current, same), Ok(()));
        }
        ms += 500;
    }
    assert!((2..=25).contains(&asked), "{asked}");
}

#[test]
fn weak_point_5_an_answer_by_id_cannot_bring_other_periods() {
    let mut member = Member::new(SealPolicy::Preferred);
    member.seq(at(1), 1, 1);
    let period = |n: u64| {
        let from = START.as_millis() + n * R;
        KeyPeriod::new(
            key_id(n),
            [n as u8 + 1; 32],
            WallMs::new(from),
            WallMs::new(from + R),
        )
    };
    let two = Answer::KeyPeriods(Ok(KeyPeriods {
        policy: SealPolicy::Off,
        periods: vec![period(1), period(2)],
    }));
    assert_eq!(member.answer(at(2), Which::One(key_id(1)), two), Ok(()));
    assert_eq!(member.words(), ["unopened 1 no_distributor"]);
    assert_eq!(
        member
            .node
            .client
            .group(member.group)
            .expect("joined")
            .periods,
        1
    );
}

#[test]
fn every_reason_of_the_table_is_told_in_its_own_words() {
    for reason in [
        UnopenedReason::UnknownPeriod,
        UnopenedReason::PeriodExpired,
        UnopenedReason::NotAuthorized,
        UnopenedReason::NotAMember,
        UnopenedReason::MembershipUnknown,
        UnopenedReason::NoDistributor,
    ] {
        let mut member = Member::new(SealPolicy::Preferred);
        member.seq(at(1), 1, 9);
        let refused = super::rig::refusal(reason);
        assert_eq!(member.answer(at(2), Which::One(key_id(9)), refused), Ok(()));
        assert_eq!(member.words(), [format!("unopened 1 {reason}")]);
    }
}

#[test]
fn no_secret_and_no_token_is_shown() {
    let member = Member::new(SealPolicy::Preferred);
    let shown = format!("{:?} {:?}", member.node.client, keys(SealPolicy::Off, &[0]));
    let secret = format!("{:?}", [1u8; 32]);
    assert!(!shown.contains(&secret) && !shown.contains("let me in"));
}
