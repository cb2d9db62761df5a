//! Topics, filters, names, committed positions and closed sets.

use serde_json::{Value as Json, json};
use tidings::code::{self, Explained};
use tidings::topic::{Name, NameFault, Tier, check_filter, check_topic, has_wildcard, matches};
use tidings::wire::Positions;

use crate::{Verdict, bytes_of, refuse, run, text, to_hex};

#[test]
fn topics() {
    run("topics", |entry| match text(entry, "kind") {
        "topic" => {
            let topic = String::from_utf8(bytes_of(entry, "hex")).expect("a text");
            match check_topic(&topic) {
                Ok(()) => Ok(json!({ "segments": topic.split('/').count() })),
                Err(fault) => refuse(fault.text()),
            }
        }
        "filter" => {
            let filter = String::from_utf8(bytes_of(entry, "hex")).expect("a text");
            match check_filter(&filter) {
                Ok(()) => {
                    let exact = !has_wildcard(&filter);
                    Ok(json!({ "segments": filter.split('/').count(), "exact": exact }))
                }
                Err(fault) => refuse(fault.text()),
            }
        }
        "match" => Ok(json!(matches(text(entry, "filter"), text(entry, "topic")))),
        "parse" => {
            let name = Name::parse(text(entry, "text")).map_err(refusal)?;
            assert_eq!(name.to_string(), text(entry, "text"));
            let mut expect = json!({
                "realm": name.realm(),
                "domain": name.domain(),
                "name": name.name(),
                "version": name.version(),
                "tier": match name.tier() {
                    Tier::Realm => "realm",
                    Tier::Org => "org",
                    _ => "app",
                },
            });
            if let Some(org) = name.org() {
                expect["org"] = json!(org);
            }
            if let Some(app) = name.app() {
                expect["app"] = json!(app);
            }
            Ok(expect)
        }
        "build" => build(&entry["parts"]),
        other => panic!("{other}"),
    });
}

fn refusal(fault: NameFault) -> Json {
    match fault.segment() {
        Some(segment) => json!({ "refuse": fault.text(), "segment": segment.text() }),
        None => json!({ "refuse": fault.text() }),
    }
}

fn build(parts: &Json) -> Verdict {
    let part = |key| text(parts, key);
    let version = u32::try_from(parts["version"].as_u64().expect("a version")).expect("32 bits");
    let (realm, domain, name) = (part("realm"), part("domain"), part("name"));
    let (fact, hope) = match part("tier") {
        "realm" => (
            Name::realm_fact(realm, domain, name, version),
            Name::realm_hope(realm, domain, name, version),
        ),
        "org" => (
            Name::org_fact(realm, part("org"), domain, name, version),
            Name::org_hope(realm, part("org"), domain, name, version),
        ),
        _ => (
            Name::app_fact(realm, part("org"), part("app"), domain, name, version),
            Name::app_hope(realm, part("org"), part("app"), domain, name, version),
        ),
    };
    assert_eq!(fact, hope, "both tenses are one text");
    Ok(json!(fact.map_err(refusal)?.to_string()))
}

#[test]
fn positions() {
    run("positions", |entry| {
        let bytes = bytes_of(entry, "hex");
        let positions = match Positions::decode(&bytes) {
            Ok(positions) => positions,
            Err(fault) => return refuse(fault.text()),
        };
        assert_eq!(positions.encode(), bytes);
        let lanes = positions.lanes().iter().map(|lane| {
            let untold = lane.untold.iter().flat_map(|(first, last)| [*first, *last]);
            json!({
                "seq": lane.seq,
                "epoch": lane.epoch,
                "topic": lane.topic,
                "untold": untold.collect::<Vec<_>>(),
                "publisher": to_hex(lane.publisher.as_bytes()),
            })
        });
        let stations = positions.stations().iter().map(|station| {
            json!({
                "from": station.from.as_millis(),
                "mesh": to_hex(&station.mesh),
                "station": to_hex(station.station.as_bytes()),
                "position": crate::frames::position(station.position),
            })
        });
        Ok(json!({
            "lanes": lanes.collect::<Vec<_>>(),
            "version": 1,
            "stations": stations.collect::<Vec<_>>(),
        }))
    });
}

/// Section, title, field, and the rows of the Rust type.
fn tables() -> Vec<(
    &'static str,
    &'static str,
    Option<&'static str>,
    Vec<Explained>,
)> {
    macro_rules! rows {
        ($name:ident) => {
            code::$name::ALL.iter().map(|code| code.explain()).collect()
        };
    }
    vec![
        (
            "10.1",
            "Why a link ends",
            Some("goodbye.reason"),
            rows!(CloseReason),
        ),
        (
            "10.2",
            "Why a handshake is refused",
            Some("hello.refusal"),
            rows!(HandshakeRefusal),
        ),
        (
            "10.3",
            "Why a subscription is refused",
            Some("refused.reason"),
            rows!(SubscribeRefusal),
        ),
        (
            "10.4",
            "Why a publication is refused",
            Some("published.reason"),
            rows!(PublishRefusal),
        ),
        (
            "10.5",
            "What became of a publication",
            Some("published.outcome"),
            rows!(OutcomeCode),
        ),
        (
            "10.6",
            "What a resume brought",
            Some("subscribed.resume.outcome"),
            rows!(ResumeCode),
        ),
        (
            "10.7",
            "Why a station gave publications up",
            Some("skipped.reason"),
            rows!(SkipReason),
        ),
        ("10.8", "Notices in a stream", None, rows!(NoticeCode)),
        ("10.9", "Why there may be a gap", None, rows!(GapReason)),
        ("10.10", "Why a fact was dropped", None, rows!(DropReason)),
        ("10.11", "Why a stream ended", None, rows!(EndReason)),
        (
            "10.12",
            "Why a publication's object is dropped",
            None,
            rows!(ObjectFault),
        ),
        (
            "10.13",
            "Why a sealed fact was not opened",
            None,
            rows!(UnopenedReason),
        ),
        (
            "10.14",
            "What a node reports of itself",
            None,
            rows!(DiagnosticCode),
        ),
        (
            "10.15",
            "Why a source does not admit a publisher",
            None,
            rows!(SourceRefusal),
        ),
        (
            "10.16",
            "What a group asks of facts under its prefix",
            None,
            rows!(SealPolicy),
        ),
    ]
}

#[test]
fn codes() {
    let tables = tables();
    run("codes", |entry| {
        let (_, title, field, rows) = tables
            .iter()
            .find(|table| table.0 == text(entry, "section"))
            .expect("a table");
        let Some(row) = rows.iter().find(|row| row.text == text(entry, "text")) else {
            return refuse("not_in_the_table");
        };
        Ok(json!({
            "set": title,
            "field": field,
            "number": row.number,
            "means": row.means,
            "do": row.advice,
            "local": row.means.contains("local only"),
        }))
    });
    let rows: usize = tables.iter().map(|table| table.3.len()).sum();
    assert_eq!(rows, code::all().count(), "every set is in a table");
}
