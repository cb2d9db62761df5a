//! What each reader heard, held against all that was published.
//!
//! The reader's own ledger (`audit.rs`) has to say the same: nothing lost in silence.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::party::{Heard, Written};

/// One reader's account of one publisher.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    delivered: u64,
    late: u64,
    /// Missing, and published in the window of a gap.
    in_gaps: u64,
    /// Missing elsewhere, and told by its number.
    skipped: u64,
    silently_lost: u64,
}

/// Numbers of one publisher, and when they were published.
type Facts = BTreeMap<u64, u64>;

/// Holds it against the publishers' own counts and answers what has to be said of it.
pub(crate) fn check(heard: &Heard, written: &[Written]) {
    let items: Vec<Value> = heard
        .lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("whole lines"))
        .collect();
    let notices: Vec<&Value> = items
        .iter()
        .filter(|item| item["notice"].is_string())
        .collect();
    let of = |kind: &'static str| {
        let is = move |notice: &&&Value| notice["notice"] == kind;
        notices.iter().filter(is)
    };
    for bad in ["conflict", "dropped", "lagged", "restarted", "two_counters"] {
        assert_eq!(of(bad).count(), 0, "{}: {notices:?}", heard.name);
    }
    let gaps: Vec<(u64, u64)> = of("gap")
        .map(|gap| {
            let edge = |name: &str| gap[name].as_u64().expect("a time");
            (edge("from"), edge("to"))
        })
        .collect();
    let recovered: u64 = of("resumed")
        .filter_map(|resumed| resumed["recovered"].as_u64())
        .sum();
    println!(
        "{}: {} interruptions, {} resumes with {recovered} recovered, {} gaps",
        heard.name,
        of("interrupted").count(),
        of("resumed").count(),
        gaps.len(),
    );
    for written in written {
        let (facts, late) = facts(heard.name, written, &items);
        let skipped: Vec<(u64, u64)> = of("skipped")
            .filter(|skipped| skipped["topic"] == written.topic)
            .map(|skipped| {
                let edge = |name: &str| skipped[name].as_u64().expect("a number");
                (edge("first"), edge("last"))
            })
            .collect();
        let row = Row {
            late,
            ..row(&facts, written.published, &gaps, &skipped)
        };
        println!(
            "{}: {} of {}: {row:?}, {} unknown to the publisher",
            heard.name, written.topic, written.published, written.unknown
        );
        let told = row.delivered + row.in_gaps + row.skipped;
        assert_eq!(told, written.published, "the ledger balances");
        assert_eq!(row.silently_lost, 0);
        // What a station took while it was held there was heard.
        assert!(
            row.skipped <= written.unknown,
            "missing outside of every window"
        );
    }
    assert!(
        heard.said.contains("silently lost: 0"),
        "its own ledger: {}",
        heard.said
    );
}

/// What came of one publisher: each number once, in order or marked late, each under its own seq.
fn facts(name: &str, written: &Written, items: &[Value]) -> (Facts, u64) {
    let (mut facts, mut late, mut newest) = (Facts::new(), 0, None);
    for item in items.iter().filter(|item| item["topic"] == written.topic) {
        let Some(number) = item["payload"].as_str() else {
            continue;
        };
        let number: u64 = number.parse().expect("a number");
        assert_eq!(item["seq"], number + 1, "{name}: {item}");
        let at = item["published_at"].as_u64().expect("a time");
        assert_eq!(facts.insert(number, at), None, "{name}: {item} twice");
        if item["late"] == true {
            late += 1;
        } else {
            assert!(newest < Some(number), "{name}: {item} behind {newest:?}");
            newest = Some(number);
        }
    }
    (facts, late)
}

fn row(facts: &Facts, published: u64, gaps: &[(u64, u64)], skipped: &[(u64, u64)]) -> Row {
    let mut row = Row::default();
    for number in 0..published {
        if facts.contains_key(&number) {
            row.delivered += 1;
            continue;
        }
        // When it was published is known from its neighbours.
        let before = facts.range(..number).next_back().map(|(_, at)| *at);
        let after = facts.range(number..).next().map(|(_, at)| *at);
        let inside = gaps.iter().any(|(from, to)| {
            before.is_none_or(|before| before <= *to) && after.is_none_or(|after| after >= *from)
        });
        let told = skipped
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&(number + 1)));
        match (inside, told) {
            (true, _) => row.in_gaps += 1,
            (false, true) => row.skipped += 1,
            (false, false) => row.silently_lost += 1,
        }
    }
    row
}

/// The account itself notices what it is for.
pub(crate) fn bites() {
    let facts: Facts = [0, 1, 4, 5].map(|n| (n, 1000 + n * 10)).into();
    let row = |gaps, skipped| {
        let row = row(&facts, 6, gaps, skipped);
        (row.in_gaps, row.skipped, row.silently_lost)
    };
    assert_eq!(row(&[], &[]), (0, 0, 2));
    assert_eq!(row(&[(1015, 1035)], &[]), (2, 0, 0));
    assert_eq!(row(&[(1055, 1090)], &[]), (0, 0, 2));
    assert_eq!(row(&[], &[(3, 3)]), (0, 1, 1));
}
