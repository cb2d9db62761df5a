use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn a_topic_has_one_to_sixteen_segments_without_stars() {
    for good in [
        "a",
        "a/b",
        "_call/x",
        "ä/ü",
        "a b/c",
        &"a/".repeat(15).replace("a/", "b/")[..29],
    ] {
        assert_eq!(check_topic(good), Ok(()), "{good}");
    }
    let sixteen = ["a"; 16].join("/");
    let seventeen = ["a"; 17].join("/");
    assert_eq!(check_topic(&sixteen), Ok(()));
    assert_eq!(check_topic(&seventeen), Err(TopicFault::TooManySegments));
    assert_eq!(check_topic(""), Err(TopicFault::Empty));
    assert_eq!(check_topic(&"a".repeat(512)), Ok(()));
    assert_eq!(check_topic(&"a".repeat(513)), Err(TopicFault::TooLong));
    for bad in ["/", "/a", "a/", "a//b"] {
        assert_eq!(check_topic(bad), Err(TopicFault::EmptySegment), "{bad}");
        assert_eq!(check_filter(bad), Err(TopicFault::EmptySegment), "{bad}");
    }
    for bad in ["*", "a/*", "a/**", "a*"] {
        assert_eq!(check_topic(bad), Err(TopicFault::Wildcard), "{bad}");
    }
}

#[test]
fn a_filter_has_whole_stars_and_two_of_them_last_only() {
    for good in ["*", "**", "a/*/b", "a/**", "*/**", "a"] {
        assert_eq!(check_filter(good), Ok(()), "{good}");
    }
    for bad in ["a*", "**/a", "a/**/b", "***", "a/*b", "**/**"] {
        assert_eq!(check_filter(bad), Err(TopicFault::Wildcard), "{bad}");
    }
}

#[test]
fn a_leading_wildcard_matches_no_system_topic() {
    assert!(matches("**", "a/b"));
    assert!(!matches("**", "_call/b"));
    assert!(!matches("*/b", "_call/b"));
    assert!(matches("_call/*", "_call/b"));
    assert!(matches("_call/**", "_call/b/c"));
    assert!(!matches("a/**", "a"));
    assert!(!matches("a/*", "a/b/c"));
    assert!(!matches("a/b/*", "a/b"));
}

/// Whether it matches, by trying every way.
fn naive(filter: &[&str], topic: &[&str]) -> bool {
    match (filter, topic) {
        ([], []) => true,
        (["**"], [_, ..]) => true,
        ([want, filter @ ..], [have, topic @ ..]) => {
            (*want == "*" || want == have) && *want != "**" && naive(filter, topic)
        }
        _ => false,
    }
}

fn segment() -> impl Strategy<Value = String> {
    "[a-z0-9][a-z0-9._-]{0,8}"
}

proptest! {
    #[test]
    fn a_topic_is_what_no_rule_refuses(topic in "[/*a\u{e4}\u{ff0f}]{0,24}|([a-z]{0,40}/){0,17}[a-z]{0,9}") {
        let refused = check_shape(&topic).is_err() || topic.contains('*');
        prop_assert_eq!(is_topic(topic.as_bytes()), !refused);
        prop_assert_eq!(check_topic(&topic).is_err(), refused);
    }

    #[test]
    fn matching_agrees_with_the_naive_one(
        filter in prop::collection::vec("[ab]|\\*", 1..5), tail in any::<bool>(),
        topic in prop::collection::vec("[ab]|_a", 1..6),
    ) {
        let mut filter: Vec<&str> = filter.iter().map(String::as_str).collect();
        let topic: Vec<&str> = topic.iter().map(String::as_str).collect();
        if tail {
            filter.push("**");
        }
        let want = naive(&filter, &topic)
            && !(topic[0].starts_with('_') && filter[0].starts_with('*'));
        prop_assert_eq!(matches(&filter.join("/"), &topic.join("/")), want);
    }

    #[test]
    fn parsing_is_the_exact_inverse_of_building(
        realm in segment(), org in segment(), app in segment(), domain in segment(),
        name in "[a-z0-9][a-z0-9._-]{0,8}(_v[0-9]{0,2})?", version in 1u32..,
    ) {
        let built = [
            Name::realm_fact(&realm, &domain, &name, version).unwrap(),
            Name::org_hope(&realm, &org, &domain, &name, version).unwrap(),
            Name::app_fact(&realm, &org, &app, &domain, &name, version).unwrap(),
        ];
        for name in built {
            let text = name.to_string();
            prop_assert_eq!(text.len(), name.len());
            prop_assert_eq!(check_topic(&text), Ok(()));
            prop_assert_eq!(Name::parse(&text), Ok(name));
        }
    }

    #[test]
    fn what_parses_is_written_back_as_it_was(
        text in "[a-z_]{0,3}/(_realm|_org|[a-zA-Z]{1,2})/(_realm|_org|[a-z]{0,2})/[a-z*]{1,2}/[a-z]{0,2}_?v?[0-9]{0,11}",
    ) {
        if let Ok(name) = Name::parse(&text) {
            prop_assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in ".{0,600}", other in ".{0,40}") {
        prop_assert!(check_topic(&text).is_err() || check_filter(&text).is_ok());
        prop_assert!(Name::parse(&text).is_err() || check_topic(&text).is_ok());
        // What has no wildcard matches itself and nothing else, topic or not.
        prop_assert!(has_wildcard(&text) || matches(&text, &other) == (text == other));
        prop_assert!(has_wildcard(&text) || matches(&text, &text));
    }
}

#[test]
fn a_name_fault_names_its_segment() {
    let parse = |text| Name::parse(text).unwrap_err();
    assert_eq!(parse("a/b/c/d"), NameFault::Structure);
    assert_eq!(parse("a/b/c/d/e"), NameFault::Version);
    assert_eq!(parse("a/b/c/d/e_v0"), NameFault::Version);
    assert_eq!(parse("a/b/c/d/e_v01"), NameFault::Version);
    assert_eq!(parse("a/b/c/d/e_v4294967296"), NameFault::Version);
    assert_eq!(parse("a/_realm/c/d/e_v1"), NameFault::Tier(Segment::App));
    assert_eq!(parse("a/b/_realm/d/e_v1"), NameFault::Tier(Segment::Org));
    assert_eq!(parse("a/_org/c/d/e_v1"), NameFault::Tier(Segment::Org));
    assert_eq!(parse("A/b/c/d/e_v1"), NameFault::Segment(Segment::Realm));
    assert_eq!(parse("a/b/c/D/e_v1"), NameFault::Segment(Segment::Domain));
    assert_eq!(parse("a/b/c/d/_v1"), NameFault::Segment(Segment::Name));
    let built = Name::app_fact("a", "b", "_org", "d", "e", 1);
    assert_eq!(built, Err(NameFault::Segment(Segment::App)));
    assert_eq!(
        Name::org_fact("a", "b", "d", "e\n", 1),
        Err(NameFault::Segment(Segment::Name))
    );
    let long = "x".repeat(500);
    assert_eq!(
        Name::realm_fact("a", "d", &long, 1),
        Err(NameFault::TooLong)
    );
}
