//! The file the keys of sealed groups are made of: a secret that all members share.
//!
//! Decides: its form (TOML, a `[[group]]` for each secret), its mode (0600), that it is never overwritten, and which group a topic is sealed for.
//! Leaves to others: the keys (`SharedKeys`), and who gets the file. Believes: no clock. Bounded by: 64 KiB read.
//!
//! Nobody is asked for keys: publishers and readers with the same file work out the same ones. Whoever has it reads everything that was and will be
//! sealed with it, so that putting somebody out is making another file. With both secrets in it, the new one first, readers can open what either seals.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidings::RealmId;
use tidings::code::SealPolicy;
use tidings_tokio::{SharedKeys, Table};

use crate::args::GroupCommand;
use crate::config::reading::{self, Place, Section};
use crate::exit::{Exit, Failure, print};
use crate::{human, keyfile, node};

const MAX_BYTES: u64 = 64 << 10;
const ROTATION: Duration = Duration::from_secs(900);

/// Runs `tidings group`.
pub(crate) fn run(command: &GroupCommand) -> Result<Exit, Failure> {
    let GroupCommand::Keygen {
        prefix,
        file,
        realm,
        rotation,
        policy,
    } = command;
    let name = realm
        .as_deref()
        .unwrap_or_else(|| first_segment(prefix))
        .to_owned();
    let rotation = rotation.unwrap_or(ROTATION);
    let secret = keyfile::random_seed()?;
    let id = node::realm(Some(&name), prefix)?;
    let policy = SealPolicy::from(*policy);
    SharedKeys::new(id, prefix.as_str(), policy, millis(rotation), &secret)
        .map_err(|fault| Failure::usage(format!("cannot make keys for {prefix:?}: {fault}")))?;
    let (prefix, name) = (toml_text(prefix), toml_text(&name));
    let (policy, secret) = (policy.text(), keyfile::hex(&*secret));
    let text = zeroize::Zeroizing::new(format!(
        "# A secret of tidings: whoever has it reads all that is published in this group, and can publish as if in it. Every member has the same file.\n\
        [[group]]\nrealm = {name}\nprefix = {prefix}\npolicy = \"{policy}\"\nrotation = \"{}\"\nsecret = \"{}\"\n",
        written(rotation),
        secret.as_str(),
    ));
    keyfile::write_new(file, "keys", &text)?;
    print(&format!(
        "keys of {prefix}, changing every {}: give {} to every member, and to nobody else\n",
        written(rotation),
        file.display()
    ))
}

/// The secrets a file holds.
pub(crate) fn load(file: &Path) -> Result<Vec<SharedKeys>, Failure> {
    let text = keyfile::read_secret(file, "keys", "group keygen PREFIX", MAX_BYTES)?;
    let groups = reading::parse(file, &text, |top, place| {
        let groups = top.sections("group", place);
        let groups: Vec<_> = groups
            .into_iter()
            .filter_map(|section| read(section, place))
            .collect();
        if groups.is_empty() && place.faults.is_empty() {
            place.wrong("group", "it is missing");
        }
        groups
    });
    groups.map_err(|faults| {
        Failure::usage(format!(
            "cannot use keys: {}. name the file group keygen wrote, as it was",
            reading::first(&faults)
        ))
    })
}

fn read(mut section: Section<'_>, place: &mut Place<'_>) -> Option<SharedKeys> {
    let prefix = section.must("prefix", place, |text| Ok(text.to_owned()));
    let realm = section.text("realm", place);
    let policy = section.must("policy", place, |text| {
        let mut known = SealPolicy::ALL.iter();
        let found = known.find(|policy| policy.text() == text);
        found
            .copied()
            .ok_or_else(|| "required, preferred or off".to_owned())
    });
    let rotation = section.must("rotation", place, human::parse_span);
    // What it says instead is not shown: it may be nearly the secret.
    let secret = section.must("secret", place, |text| {
        keyfile::unhex(text).ok_or_else(|| "64 hex digits are expected".to_owned())
    });
    let name = section.key("prefix");
    let named = section.key("realm");
    section.end(place);
    let (prefix, policy, rotation, secret) = (prefix?, policy?, rotation?, secret?);
    let realm = realm.as_deref().unwrap_or_else(|| first_segment(&prefix));
    let Some(realm) = node::realm_of_name(realm) else {
        place.wrong(&named, "a realm's name has 1 to 255 bytes");
        return None;
    };
    SharedKeys::new(realm, prefix, policy, millis(rotation), &secret)
        .map_err(|fault| place.wrong(&name, fault.to_string()))
        .ok()
}

/// What a run is to seal or to open with: all secrets of its file, and which group.
#[derive(Debug, Default)]
pub(crate) struct Sealing {
    pub(crate) keys: Vec<SharedKeys>,
    /// The prefix of its group; none where all is in the clear.
    pub(crate) prefix: Option<String>,
}

impl Sealing {
    /// Who answers for its keys.
    pub(crate) fn table(&self) -> Table {
        let keys = self.keys.iter().cloned();
        keys.fold(Table::new(), Table::group)
    }
}

/// The group of a topic or filter: the one named, or the one with the longest prefix. A file that was named on the command line must have one; what a
/// configuration names need not.
pub(crate) fn choose(
    named: Option<&Path>,
    configured: Option<&PathBuf>,
    wanted: Option<&str>,
    realm: RealmId,
    name: &str,
) -> Result<Sealing, Failure> {
    let file = named.or_else(|| configured.map(PathBuf::as_path));
    let Some(file) = file else {
        return match wanted {
            Some(prefix) => Err(Failure::usage(format!(
                "cannot use group {prefix:?}: its keys are missing. give --keys FILE; tidings group keygen makes one"
            ))),
            None => Ok(Sealing::default()),
        };
    };
    let keys = load(file)?;
    let here = keys.iter().filter(|keys| keys.realm() == realm);
    let fitting = here.filter(|keys| wanted.is_none_or(|prefix| keys.prefix() == prefix));
    let covering = fitting.filter(|keys| keys.covers(name));
    let prefix = covering
        .max_by_key(|keys| keys.prefix().len())
        .map(|keys| keys.prefix().to_owned());
    if prefix.is_none() && (named.is_some() || wanted.is_some()) {
        let here = keys.iter().filter(|keys| keys.realm() == realm);
        let here: Vec<&str> = here.map(SharedKeys::prefix).collect();
        let which = match (&here[..], wanted) {
            ([], _) => "no group of this realm. name theirs with --realm".to_owned(),
            (all, Some(prefix)) if !all.contains(&prefix) => {
                format!(
                    "no group {prefix:?} but {}. leave --group away",
                    all.join(", ")
                )
            }
            (all, _) => format!(
                "keys for what is at or below {}. choose a topic or filter there, or another file",
                all.join(", ")
            ),
        };
        return Err(Failure::usage(format!(
            "cannot seal or open {name:?}: {} holds {which}",
            file.display()
        )));
    }
    Ok(Sealing { keys, prefix })
}

fn first_segment(prefix: &str) -> &str {
    prefix.split('/').next().unwrap_or_default()
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A span as it is read again.
fn written(span: Duration) -> String {
    match millis(span) {
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// A text as TOML writes it.
fn toml_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        let read = reading::parse(Path::new("g.keys"), text, |top, place| {
            for section in top.sections("group", place) {
                read(section, place);
            }
        });
        let faults = read.expect_err("something is wrong");
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_wrong_in_a_keys_file_is_told_with_its_line_and_never_with_its_secret() {
        let secret = "ab".repeat(31);
        let text = format!(
            "[[group]]\nprefix = \"demo/acme\"\npolicy = \"requird\"\nsecret = \"{secret}\"\n\n[[group]]\nrotation = \"soon\"\n"
        );
        let told = wrong(&text);
        let starts = [
            "g.keys:1: group[0].rotation: it is missing",
            "g.keys:3: group[0].policy: required, preferred or off",
            "g.keys:4: group[0].secret: 64 hex digits are expected",
            "g.keys:6: group[1].prefix: it is missing",
            "g.keys:6: group[1].policy: it is missing",
            "g.keys:6: group[1].secret: it is missing",
            "g.keys:7: group[1].rotation: write it as 500ms, 30s, 10m or 1h",
        ];
        assert_eq!(told, starts);
    }

    #[test]
    fn a_prefix_of_one_segment_and_keys_that_change_too_seldom_are_refused() {
        let group = |prefix: &str, rotation: &str| {
            let secret = "ab".repeat(32);
            wrong(&format!(
                "[[group]]\nprefix = \"{prefix}\"\npolicy = \"off\"\nrotation = \"{rotation}\"\nsecret = \"{secret}\"\n"
            ))
        };
        assert!(group("demo", "15m")[0].starts_with("g.keys:2: group[0].prefix: "));
        assert!(group("demo/acme", "25h")[0].contains("1m to 24h"));
    }

    #[test]
    fn a_text_is_written_as_it_is_read() {
        for text in ["demo/acme", "a\"b\\c", "tab\there", "ü/ö"] {
            let line = format!("x = {}", toml_text(text));
            let read = reading::parse(Path::new("t"), &line, |top, place| top.text("x", place));
            assert_eq!(read, Ok(Some(text.to_owned())));
        }
    }
}
