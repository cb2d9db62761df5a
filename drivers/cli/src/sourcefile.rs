//! The file that says who are members of a realm, and whom its organisations delegate.
//!
//! Decides: its form (TOML, a `[[realm]]` with `members` and `[[realm.org]]`). Leaves to others: what it is asked for (`--from members`, `--from org:NAME`). Believes: no
//! clock: it is read once, when a run begins. Bounded by: 1 MiB read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tidings::{NodeId, RealmId, Sources, topic};
use tidings_tokio::Table;

use crate::config::reading::{self, Place, Section};
use crate::exit::Failure;
use crate::node;

const MAX_BYTES: u64 = 1 << 20;

/// Who may speak, by realm.
#[derive(Debug, Default)]
pub(crate) struct Speakers(Vec<Realm>);

#[derive(Debug)]
struct Realm {
    id: RealmId,
    members: Vec<NodeId>,
    orgs: Vec<(String, Vec<NodeId>)>,
}

impl Speakers {
    /// Puts them into a table.
    pub(crate) fn fill(&self, table: Table) -> Table {
        self.0.iter().fold(table, |table, realm| {
            let members = realm.members.iter();
            let table = members.fold(table.realm(realm.id), |table, node| {
                table.member(realm.id, *node)
            });
            let orgs = realm.orgs.iter();
            orgs.flat_map(|(name, nodes)| nodes.iter().map(move |node| (name, *node)))
                .fold(table, |table, (name, node)| {
                    table.org(realm.id, name.as_str(), node)
                })
        })
    }

    /// Whether they know what is asked of them in a realm of this name: nothing can be found out of a realm that is not there, and an organisation
    /// that is not there has nobody.
    pub(crate) fn check(&self, file: &Path, name: &str, sources: &Sources) -> Result<(), Failure> {
        let id = node::realm_of_name(name);
        let found: Vec<&Realm> = self.0.iter().filter(|realm| Some(realm.id) == id).collect();
        let shown = file.display();
        if found.is_empty() {
            return Err(Failure::usage(format!(
                "cannot subscribe: {shown} says nothing of realm {name:?}. add [[realm]] with name = {name:?} and its members"
            )));
        }
        let Sources::Org(org) = sources else {
            return Ok(());
        };
        let mut orgs = found.iter().flat_map(|realm| &realm.orgs);
        match orgs.any(|(name, _)| name == org) {
            true => Ok(()),
            false => Err(Failure::usage(format!(
                "cannot subscribe: {shown} names no organisation {org:?} in realm {name:?}. add [[realm.org]] with name = {org:?} and its nodes"
            ))),
        }
    }
}

/// What a file says.
pub(crate) fn load(file: &Path) -> Result<Speakers, Failure> {
    let unread = |why: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "cannot use sources file {}: {why}. name a file of [[realm]] with its members",
            file.display()
        ))
    };
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| unread(&error))?;
    opened
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| unread(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unread(&"it is longer than 1 MiB"));
    }
    let speakers = reading::parse(file, &text, |top, place| {
        let realms = top.sections("realm", place);
        let realms = realms.into_iter();
        Speakers(realms.filter_map(|realm| read(realm, place)).collect())
    });
    speakers.map_err(|faults| {
        Failure::usage(format!(
            "cannot use sources: {}. name a file of [[realm]] with its members",
            reading::first(&faults)
        ))
    })
}

fn read(mut section: Section<'_>, place: &mut Place<'_>) -> Option<Realm> {
    let id = section.must("name", place, |name| {
        node::realm_of_name(name).ok_or_else(|| "a realm's name has 1 to 255 bytes".to_owned())
    });
    let members = section.list("members", place, node_id);
    let orgs = section.sections("org", place);
    section.end(place);
    let orgs = orgs.into_iter().filter_map(|mut org| {
        let name = org.must("name", place, |name| match topic::is_topic_segment(name) {
            true => Ok(name.to_owned()),
            false => Err("an organisation's name is one segment, such as acme".to_owned()),
        });
        let nodes = org.list("nodes", place, node_id);
        org.end(place);
        Some((name?, nodes))
    });
    let orgs = orgs.collect();
    Some(Realm {
        id: id?,
        members,
        orgs,
    })
}

fn node_id(text: &str) -> Result<NodeId, String> {
    text.parse()
        .map_err(|_| "a node id is 64 hex digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings::Source;
    use tidings::inbound::sources::SourceAnswer;

    #[test]
    fn members_and_organisations_are_read_by_realm() {
        let [one, two] = [1, 2].map(|n| NodeId::new([n; 32]));
        let text = format!(
            "[[realm]]\nname = \"demo\"\nmembers = [\"{one}\"]\n\n[[realm.org]]\nname = \"acme\"\nnodes = [\"{two}\"]\n"
        );
        let read = reading::parse(Path::new("s.toml"), &text, |top, place| {
            let realms = top.sections("realm", place);
            Speakers(
                realms
                    .into_iter()
                    .filter_map(|realm| read(realm, place))
                    .collect(),
            )
        });
        let table = read.expect("valid").fill(Table::new());
        let realm = RealmId::of_name("demo");
        let admits = |source, node| {
            matches!(
                table.admits(realm, source, node),
                SourceAnswer::Admit { .. }
            )
        };
        let acme = || Source::Org("acme".to_owned());
        assert!(admits(Source::Members, one) && admits(acme(), two));
        assert!(!admits(Source::Members, two) && !admits(acme(), one));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let text =
            "[[realm]]\nmembers = [\n  \"12\",\n]\n[[realm.org]]\nname = \"acme\"\nnods = []\n";
        let read = reading::parse(Path::new("s.toml"), text, |top, place| {
            for realm in top.sections("realm", place) {
                read(realm, place);
            }
        });
        let told: Vec<String> = read
            .expect_err("wrong")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                "s.toml:1: realm[0].name: it is missing",
                "s.toml:3: realm[0].members[0]: a node id is 64 hex digits",
                "s.toml:7: realm[0].org[0].nods: no such key. did you mean nodes?",
            ]
        );
    }
}
