//! The rules S-1 to S-15, one test each.

use tidings::code::{DropReason, ObjectFault, SourceRefusal};
use tidings::inbound::sources::{SourceAnswer, SourceLimits};
use tidings::{ClientConfig, ClientLimits, Now, Refusal, Source, Sources, Subscribe};

use crate::common::{Fact, TOPIC, at, client, id_of, realm, signer};
use crate::rig::{Rig, admitted, members, org, refused, until};

#[test]
fn s_01_sources_are_required_and_name_somebody() {
    // `Subscribe::new` takes them, so that none can be forgotten.
    let mut client = client(ClientConfig::new(signer(1)));
    let mut refusal = |sources| {
        let request = Subscribe::new(realm(), TOPIC, sources);
        client
            .subscribe(at(0), request)
            .err()
            .map(|refused| refused.reason)
    };
    assert_eq!(refusal(Sources::Nodes(vec![])), Some(Refusal::NoSources));
    for name in ["", "a/b", "*", "**"] {
        assert_eq!(
            refusal(Sources::Org(name.into())),
            Some(Refusal::BadOrg),
            "{name}"
        );
    }
    assert_eq!(refusal(Sources::Org("acme".into())), None);
    assert_eq!(refusal(Sources::Members), None);
}

#[test]
fn s_02_nodes_and_open_look_nobody_up_members_and_organisations_do() {
    let mut rig = Rig::new();
    let publisher = rig.publisher(7);
    let nodes = Sources::Nodes(vec![publisher]);
    let listed = rig.subscribe(Subscribe::new(realm(), TOPIC, nodes));
    let nobody = Sources::Nodes(vec![id_of(&signer(8))]);
    let unlisted = rig.subscribe(Subscribe::new(realm(), TOPIC, nobody));
    let open = rig.subscribe(Subscribe::new(realm(), TOPIC, Sources::Open));
    let acme = rig.subscribe(org("acme"));
    rig.fact(0, 1);
    assert_eq!(rig.words_of(listed), ["1"]);
    assert_eq!(rig.words_of(open), ["1"]);
    let asked = rig.asked();
    let sources: Vec<Source> = asked.iter().map(|one| one.source.clone()).collect();
    assert_eq!(sources, [Source::Members, Source::Org("acme".into())]);
    assert!(
        asked
            .iter()
            .all(|one| (one.publisher, one.realm) == (publisher, realm()))
    );
    rig.told(1, asked[1].ask, admitted());
    assert_eq!(
        (rig.words_of(acme), rig.words()),
        (vec!["1".into()], vec![])
    );
    rig.told(1, asked[0].ask, refused());
    assert!(rig.words().is_empty() && rig.words_of(unlisted).is_empty());
    assert_eq!(rig.refusals(SourceRefusal::NotListed), 1);
    assert_eq!(rig.refusals(SourceRefusal::NotFound), 1);
}

#[test]
fn s_03_the_verified_publisher_is_judged_before_order_and_delivery() {
    let mut rig = Rig::new();
    let mut forged = Fact::numbered(1).sign(&*rig.node.publisher);
    *forged.last_mut().expect("a byte") ^= 1;
    rig.node.object(at(0), 0, &forged);
    assert_eq!(rig.asked(), [], "nobody is asked for who is not verified");
    assert_eq!(rig.node.faults(ObjectFault::SignatureInvalid), 1);
    // Nothing of a refused publisher is in any lane.
    rig.fact(0, 5);
    let ask = rig.one();
    rig.told(1, ask, refused());
    assert_eq!(rig.later(1000), [""; 0]);
    assert_eq!(rig.node.client.status().lanes, 0);
    assert_eq!(rig.node.faults(ObjectFault::SourceRefused), 1);
}

#[test]
fn s_04_a_verdict_is_shared_by_the_subscriptions_with_that_realm_and_source() {
    let mut rig = Rig::new();
    let more = rig.subscribe(members());
    let (acme, other) = (rig.subscribe(org("acme")), rig.subscribe(org("other")));
    rig.fact(0, 1);
    let asked = rig.asked();
    assert_eq!(asked.len(), 3, "members once, and each organisation");
    rig.told(1, asked[0].ask, admitted());
    assert_eq!(
        (rig.words(), rig.words_of(more)),
        (vec!["1".into()], vec!["1".into()])
    );
    rig.told(1, asked[1].ask, admitted());
    rig.told(1, asked[2].ask, refused());
    assert_eq!(rig.words_of(acme), ["1"]);
    assert!(rig.words_of(other).is_empty());
    // A subscription made later finds the verdict there.
    let late = rig.subscribe(members());
    rig.fact(2, 2);
    assert_eq!(rig.asked(), []);
    rig.node.time(at(300));
    assert_eq!(rig.words_of(late), ["2"]);
    // Another realm has its own.
    let elsewhere = Subscribe::new(
        tidings::RealmId::of_name("elsewhere"),
        TOPIC,
        Sources::Members,
    );
    rig.subscribe(elsewhere);
    assert_eq!(rig.counts().1, 2);
}

#[test]
fn s_05_one_lookup_is_in_flight_and_facts_wait_behind_it_in_the_order_they_came() {
    let mut rig = Rig::new();
    for seq in [1, 2, 4, 3] {
        rig.fact(seq, seq);
    }
    let ask = rig.one();
    assert_eq!(rig.counts(), (4, 0, 1));
    assert!(rig.words().is_empty());
    rig.told(400, ask, admitted());
    // None was overtaken, though the order timeout is shorter than the wait.
    assert_eq!(rig.words(), ["1", "2", "3", "4"]);
    assert_eq!(rig.counts(), (0, 1, 0));
    // The same in the order of arrival.
    let mut rig = Rig::new();
    let request = members().mode(tidings::Mode::AsArrives);
    let stream = rig.subscribe(request);
    for seq in [2, 1, 3] {
        rig.fact(seq, seq);
    }
    let ask = rig.one();
    rig.told(20, ask, admitted());
    assert_eq!(rig.words_of(stream), ["2", "1", "3"]);
}

#[test]
fn s_06_a_verdict_ends_with_its_time_or_with_its_record_whichever_is_first() {
    // The record.
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(0, ask, until(7000));
    rig.fact(6999, 2);
    let refresh = rig.one();
    assert_eq!(rig.words(), ["1", "2"]);
    rig.fact(7000, 3);
    assert_eq!(rig.words(), [""; 0], "it waits");
    rig.told(7001, refresh, refused());
    assert_eq!(rig.later(9000), [""; 0]);
    // The time, by either clock.
    let ends = [
        at(300_000),
        Now::new(at(300_000).mono, at(0).wall),
        Now::new(at(5).mono, at(300_000).wall),
    ];
    for end in ends {
        let mut rig = Rig::new();
        rig.admit(0, 1);
        assert_eq!(rig.words(), ["1"]);
        rig.fact_at(end, 2);
        assert_eq!(rig.words(), [""; 0], "{end:?}");
        assert_eq!(rig.asked().len(), 1);
    }
}

#[test]
fn s_07_a_verdict_near_its_end_is_refreshed_behind_the_fact() {
    let mut rig = Rig::new();
    rig.admit(0, 1);
    rig.fact(269_999, 2);
    assert_eq!(rig.asked(), []);
    rig.fact(270_000, 3);
    assert_eq!(rig.words(), ["1", "2", "3"], "nothing waits");
    let ask = rig.one();
    rig.fact(270_001, 4);
    assert_eq!(rig.asked(), []);
    // One that fails leaves the verdict.
    rig.told(270_002, ask, SourceAnswer::Unknown);
    rig.fact(270_003, 5);
    assert_eq!(rig.words(), ["4", "5"]);
    assert_eq!(rig.asked(), [], "nor is it tried again at once");
    rig.fact(276_000, 6);
    let ask = rig.one();
    // One that refuses replaces it at once.
    rig.told(276_001, ask, refused());
    rig.fact(276_002, 7);
    assert_eq!(rig.words(), ["6"]);
    assert_eq!(rig.refusals(SourceRefusal::NotFound), 1);
    // About one lookup for each life of a verdict.
    let mut rig = Rig::new();
    let mut lookups = 0;
    for (seq, second) in (0..3000).step_by(10).enumerate() {
        rig.fact(second * 1000, seq as u64 + 1);
        for one in rig.asked() {
            lookups += 1;
            rig.told(second * 1000 + 100, one.ask, admitted());
        }
    }
    assert_eq!(rig.words().len(), 300);
    assert_eq!(lookups, 1 + 2990 / 280);
    // Without traffic nothing is looked up.
    assert_eq!(rig.later(4_000_000), [""; 0]);
    assert_eq!(rig.asked(), []);
}

#[test]
fn s_08_a_refusal_is_kept_for_its_time_and_each_fact_it_refuses_counts() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(0, ask, SourceAnswer::Refuse(SourceRefusal::Withdrawn));
    for seq in 2..=11 {
        rig.fact((seq - 1) * 999, seq);
    }
    assert_eq!(rig.asked(), []);
    assert_eq!(rig.refusals(SourceRefusal::Withdrawn), 11);
    let status = rig.node.client.subscription(rig.node.stream);
    assert_eq!(status.map(|status| status.source_refused), Some(11));
    // They did not refresh it.
    rig.fact(10_000, 12);
    let ask = rig.one();
    rig.told(10_001, ask, admitted());
    assert_eq!(rig.later(10_300), ["12"]);
    // Refusals are counted and not told.
    assert_eq!(rig.later(20_000), [""; 0]);
}

#[test]
fn s_09_what_is_dropped_without_a_verdict_is_told_and_nothing_is_remembered() {
    // Could not find out.
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(1, ask, SourceAnswer::Unknown);
    assert_eq!(rig.later(1002), ["dropped undecided_source 1"]);
    // Not in time.
    rig.fact(2000, 2);
    let asked = rig.asked();
    assert_eq!(asked[0].deadline, at(7000).mono);
    assert_eq!(rig.later(8000), ["dropped unanswered 1"]);
    assert!(rig.answer(at(8000), asked[0].ask, admitted()).is_err());
    // Held past its life.
    let short = Fact {
        published_at: at(0).wall,
        ttl_ms: Some(1),
        ..Fact::numbered(3)
    };
    let life = 300_001;
    rig.node.fact(at(life - 1000), 0, short);
    let ask = rig.one();
    assert_eq!(rig.later(life), [""; 0]);
    rig.node.time(at(life + 1));
    assert_eq!(rig.counts(), (0, 0, 1), "the lookup goes on");
    rig.told(life + 2, ask, admitted());
    assert_eq!(rig.later(life + 2000), ["dropped hold_expired 1"]);
    // Too many.
    let mut rig = Rig::new();
    for seq in 1..=66 {
        rig.fact(0, seq);
    }
    let ask = rig.one();
    rig.told(1, ask, admitted());
    let told = rig.later(2000);
    assert_eq!(told.len(), 65);
    assert_eq!(told[64], "dropped hold_full 2");
    // The window is spent: sixteen strangers of one link are looked up.
    let mut rig = Rig::new();
    for stranger in 100..120 {
        rig.publisher(stranger);
        rig.fact(0, 1);
    }
    assert_eq!(rig.asked().len(), 16);
    assert_eq!(rig.later(2000), ["dropped lookups_full 4"]);
    assert_eq!(rig.dropped(DropReason::LookupsFull), 4);
}

#[test]
fn s_10_lookups_are_bounded_for_each_realm_and_a_refresh_that_finds_none_costs_nothing() {
    let mut rig = Rig::with(1, |limits| limits.sources.lookups_per_window = 2);
    rig.admit(0, 1);
    rig.publisher(8);
    rig.admit(1000, 1);
    // One stranger may be looked up, so this one's refresh has a place left, and the other's has none.
    rig.publisher(9);
    rig.fact(275_000, 1);
    assert_eq!(rig.asked().len(), 1);
    rig.publisher(7);
    rig.fact(275_001, 2);
    assert_eq!(rig.asked().len(), 1, "half is kept for who was admitted");
    rig.publisher(8);
    rig.fact(275_002, 2);
    assert_eq!(rig.asked(), []);
    assert_eq!(rig.words(), ["1", "1", "2", "2"]);
    assert_eq!(rig.dropped(DropReason::LookupsFull), 0);
    rig.fact(276_000, 3);
    assert_eq!(rig.asked().len(), 1, "another window");
}

#[test]
fn s_11_settings_that_make_no_sense_are_refused_at_construction() {
    let fault = |change: fn(&mut SourceLimits)| {
        let mut limits = ClientLimits::default();
        change(&mut limits.sources);
        let built = ClientConfig::new(signer(1)).limits(limits).build();
        built.err().map(|error| error.setting)
    };
    assert_eq!(fault(|_| {}), None);
    assert_eq!(
        fault(|limits| limits.max_publishers = 0),
        Some("max_publishers")
    );
    assert_eq!(fault(|limits| limits.window_ms = 0), Some("window_ms"));
    let margin = fault(|limits| limits.refresh_margin_ms = limits.cache_ttl_ms);
    assert_eq!(margin, Some("refresh_margin_ms"));
    // At the bound nobody who is admitted makes room.
    let mut rig = Rig::with(1, |limits| limits.sources.max_publishers = 2);
    rig.admit(0, 1);
    rig.publisher(8);
    rig.admit(0, 1);
    rig.publisher(9);
    rig.fact(0, 1);
    assert_eq!(rig.asked(), []);
    assert_eq!(rig.later(2000), ["1", "1", "dropped verdicts_full 1"]);
}

#[test]
fn s_12_status_tells_what_was_refused_and_dropped_and_what_waits() {
    let mut rig = Rig::new();
    rig.admit(0, 1);
    rig.publisher(8);
    rig.fact(1, 1);
    rig.fact(1, 2);
    let first = rig.one();
    rig.publisher(9);
    rig.fact(1, 1);
    let second = rig.one();
    assert_eq!(rig.counts(), (3, 1, 2));
    rig.told(2, first, refused());
    rig.told(2, second, SourceAnswer::Unknown);
    assert_eq!(rig.counts(), (0, 1, 0));
    assert_eq!(rig.refusals(SourceRefusal::NotFound), 2);
    assert_eq!(rig.dropped(DropReason::UndecidedSource), 1);
    rig.node.time(at(300_000));
    assert_eq!(rig.counts(), (0, 0, 0), "no verdict is live");
}

#[test]
fn s_13_what_a_subscription_says_of_its_sources_names_the_organisation_and_no_nodes() {
    let node = id_of(&signer(7));
    let said = |sources: Sources| sources.to_string();
    assert_eq!(said(Sources::Members), "members");
    assert_eq!(said(Sources::Org("acme".into())), "org acme");
    assert_eq!(said(Sources::Nodes(vec![node; 3])), "3 listed nodes");
    assert!(said(Sources::Open).starts_with("open"));
}

#[test]
fn s_14_each_reason_to_refuse_is_a_verdict_of_its_own() {
    let mut rig = Rig::with(1, |limits| limits.sources.lookups_per_window = 1000);
    for (reason, seed) in SourceRefusal::ALL.iter().zip(100..) {
        rig.publisher(seed);
        rig.fact(0, 1);
        let ask = rig.one();
        rig.told(0, ask, SourceAnswer::Refuse(*reason));
        rig.fact(1, 2);
        assert_eq!(rig.refusals(*reason), 2);
    }
    assert_eq!(rig.asked(), []);
    // A record that is over when it is read says so.
    rig.publisher(7);
    rig.fact(2, 1);
    let ask = rig.one();
    rig.told(2, ask, until(2));
    assert_eq!(rig.refusals(SourceRefusal::Expired), 3);
}

#[test]
fn s_15_a_tombstone_that_is_withheld_helps_nobody_beyond_the_end_of_the_record() {
    let mut rig = Rig::new();
    rig.fact(0, 1);
    let ask = rig.one();
    rig.told(0, ask, until(60_000));
    let mut delivered = rig.words().len();
    for second in 1..120 {
        rig.fact(second * 1000, second + 1);
        // Nobody says anything of it any more.
        for one in rig.asked() {
            rig.told(second * 1000, one.ask, SourceAnswer::Unknown);
        }
        delivered += rig
            .words()
            .iter()
            .filter(|word| word.parse::<u64>().is_ok())
            .count();
    }
    assert_eq!(delivered, 60);
    assert_eq!(rig.node.client.status().sources.held, 0);
}
