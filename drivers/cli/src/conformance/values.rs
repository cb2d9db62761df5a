//! Small values: ids, topics and names, codes, committed positions.
//!
//! Decides: nothing. Leaves to others: the rules, the core's. Believes: no clock. Bounded by: the entry.

use serde_json::{Value, json};
use tidings::code::{self, Explained};
use tidings::crypto::{Profile, PublicKey};
use tidings::topic::{self, Name, NameFault, Tier};
use tidings::wire::Positions;
use tidings::{KeyId, NodeId, RealmId, link};

use super::{Broken, Judged, bytes_of, hex, refuse, refuse_with, text};

pub(super) fn ids(entry: &Value) -> Result<Judged, Broken> {
    let id = match text(entry, "kind")? {
        "realm" => {
            let name = String::from_utf8(bytes_of(entry, "name_hex")?)
                .map_err(|_| "has a name that is not UTF-8")?;
            match crate::node::realm_of_name(&name) {
                Some(realm) => realm.to_string(),
                None => return Ok(Err(refuse("bad_length"))),
            }
        }
        "text" => match text(entry, "text")?.parse::<NodeId>() {
            Ok(id) => id.to_string(),
            Err(_) => return Ok(Err(refuse("bad_text_form"))),
        },
        "exporter" => {
            let id = |key: &str| {
                text(entry, key)?
                    .parse::<NodeId>()
                    .map_err(|_| format!("has a bad {key}"))
            };
            let context = link::exporter_context(&id("dialler")?, &id("answerer")?);
            return Ok(Ok(
                json!({ "label": link::EXPORTER_LABEL, "context": hex(&context), "bytes": 32 }),
            ));
        }
        kind => {
            let carried = bytes_of(entry, "key")?.try_into().ok();
            let key =
                carried.and_then(|key: [u8; 32]| PublicKey::decode(Profile::ED25519, &key).ok());
            match (key, kind) {
                (None, _) => return Ok(Err(refuse("bad_key_form"))),
                (Some(key), "node") => key.node_id().to_string(),
                (Some(key), "key") => {
                    KeyId::of_key(Profile::ED25519.name(), key.as_bytes()).to_string()
                }
                (Some(_), other) => return Err(format!("has the unknown kind {other}")),
            }
        }
    };
    Ok(Ok(id.into()))
}

pub(super) fn topics(entry: &Value) -> Result<Judged, Broken> {
    let utf8 = || String::from_utf8(bytes_of(entry, "hex")?).map_err(|_| "is not UTF-8".to_owned());
    Ok(match text(entry, "kind")? {
        "topic" => {
            let topic = utf8()?;
            match topic::check_topic(&topic) {
                Ok(()) => Ok(json!({ "segments": topic.split('/').count() })),
                Err(fault) => Err(refuse(fault.text())),
            }
        }
        "filter" => {
            let filter = utf8()?;
            match topic::check_filter(&filter) {
                Ok(()) => Ok(
                    json!({ "segments": filter.split('/').count(), "exact": !topic::has_wildcard(&filter) }),
                ),
                Err(fault) => Err(refuse(fault.text())),
            }
        }
        "match" => Ok(topic::matches(text(entry, "filter")?, text(entry, "topic")?).into()),
        "parse" => match Name::parse(text(entry, "text")?) {
            Ok(name) => Ok(parts(&name)),
            Err(fault) => Err(name_fault(fault)),
        },
        "build" => match build(&entry["parts"])? {
            Ok(text) => Ok(text.into()),
            Err(fault) => Err(name_fault(fault)),
        },
        other => return Err(format!("has the unknown kind {other}")),
    })
}

fn name_fault(fault: NameFault) -> serde_json::Map<String, Value> {
    match fault.segment() {
        Some(segment) => refuse_with(fault.text(), &[("segment", segment.text())]),
        None => refuse(fault.text()),
    }
}

fn parts(name: &Name<'_>) -> Value {
    let mut out = json!({
        "realm": name.realm(),
        "domain": name.domain(),
        "name": name.name(),
        "version": name.version(),
    });
    out["tier"] = match name.tier() {
        Tier::Realm => "realm",
        Tier::Org => "org",
        _ => "app",
    }
    .into();
    if let Some(org) = name.org() {
        out["org"] = org.into();
    }
    if let Some(app) = name.app() {
        out["app"] = app.into();
    }
    out
}

/// Built by both builders of the tier, which must agree.
fn build(parts: &Value) -> Result<Result<String, NameFault>, Broken> {
    let (realm, domain, name) = (
        text(parts, "realm")?,
        text(parts, "domain")?,
        text(parts, "name")?,
    );
    let version = parts["version"]
        .as_u64()
        .and_then(|version| u32::try_from(version).ok());
    let version = version.ok_or("has a version no builder takes")?;
    let (fact, hope) = match text(parts, "tier")? {
        "realm" => (
            Name::realm_fact(realm, domain, name, version),
            Name::realm_hope(realm, domain, name, version),
        ),
        "org" => {
            let org = text(parts, "org")?;
            (
                Name::org_fact(realm, org, domain, name, version),
                Name::org_hope(realm, org, domain, name, version),
            )
        }
        _ => {
            let (org, app) = (text(parts, "org")?, text(parts, "app")?);
            (
                Name::app_fact(realm, org, app, domain, name, version),
                Name::app_hope(realm, org, app, domain, name, version),
            )
        }
    };
    let (fact, hope) = (
        fact.map(|name| name.to_string()),
        hope.map(|name| name.to_string()),
    );
    if fact != hope {
        return Err("a fact and a hope of one name differ".to_owned());
    }
    Ok(fact)
}

/// Which set of the core a section of WIRE.md is.
fn set_of(section: &str) -> Result<&'static str, Broken> {
    Ok(match section {
        "10.1" => "CloseReason",
        "10.2" => "HandshakeRefusal",
        "10.3" => "SubscribeRefusal",
        "10.4" => "PublishRefusal",
        "10.5" => "OutcomeCode",
        "10.6" => "ResumeCode",
        "10.7" => "SkipReason",
        "10.8" => "NoticeCode",
        "10.9" => "GapReason",
        "10.10" => "DropReason",
        "10.11" => "EndReason",
        "10.12" => "ObjectFault",
        "10.13" => "UnopenedReason",
        "10.14" => "DiagnosticCode",
        "10.15" => "SourceRefusal",
        "10.16" => "SealPolicy",
        other => return Err(format!("is of the unknown section {other}")),
    })
}

pub(super) fn codes(entry: &Value) -> Result<Judged, Broken> {
    let (set, wanted) = (set_of(text(entry, "section")?)?, text(entry, "text")?);
    let found = code::all().find(|code| code.set == set && code.text == wanted);
    let Some(Explained {
        number,
        means,
        advice,
        ..
    }) = found
    else {
        return Ok(Err(refuse("not_in_the_table")));
    };
    // Headings and fields are the document's alone.
    let expect = &entry["expect"];
    Ok(Ok(json!({
        "set": expect["set"],
        "field": expect["field"],
        "number": number,
        "means": means,
        "do": advice,
        "local": means.contains("local only"),
    })))
}

pub(super) fn positions(entry: &Value) -> Result<Judged, Broken> {
    Ok(match Positions::decode(&bytes_of(entry, "hex")?) {
        Ok(positions) => {
            let lanes = positions.lanes().iter().map(|lane| {
                let untold = lane.untold.iter().flat_map(|(first, last)| [*first, *last]);
                let untold = untold.collect::<Vec<_>>();
                json!({
                    "seq": lane.seq, "epoch": lane.epoch, "topic": lane.topic, "untold": untold,
                    "publisher": lane.publisher.to_string(),
                })
            });
            let stations = positions.stations().iter().map(|one| {
                let position =
                    json!({ "run": one.position.run.to_string(), "offset": one.position.offset });
                let mesh = RealmId::new(one.mesh).to_string();
                json!({ "from": one.from.as_millis(), "mesh": mesh, "station": one.station.to_string(), "position": position })
            });
            Ok(json!({
                "lanes": lanes.collect::<Vec<_>>(),
                "version": 1,
                "stations": stations.collect::<Vec<_>>(),
            }))
        }
        Err(fault) => Err(refuse(fault.text())),
    })
}
