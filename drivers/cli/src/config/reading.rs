//! A TOML table read key by key, so that whatever is wrong is told with its key and its line.
//!
//! Decides: the form of numbers, sizes, spans and lists, and that no key goes unread. Leaves to others: what the values mean. Believes:
//! no clock. Bounded by: the file, which is at most 1 MiB.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use strsim::osa_distance;
use toml::de::{DeTable, DeValue};

use crate::human;

/// Something wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) file: PathBuf,
    /// From 1; 0 is the whole file.
    pub(crate) line: usize,
    /// Dotted; empty where it is about no key.
    pub(crate) key: String,
    pub(crate) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// All that is wrong in a file as one line: the first of it, and how much more there is.
pub(crate) fn first(faults: &[Fault]) -> String {
    let first = faults.first().map_or_else(String::new, Fault::to_string);
    match faults.len() {
        0 | 1 => first,
        all => format!("{first}, and {} more", all - 1),
    }
}

/// Reads a file's text with `read`, or tells everything that is wrong in it.
pub(crate) fn parse<T>(
    file: &Path,
    text: &str,
    read: impl FnOnce(&mut Section<'_>, &mut Place<'_>) -> T,
) -> Result<T, Vec<Fault>> {
    let mut place = Place::new(file, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let line = error.span().map_or(0, |span| place.line(span.start));
        place.wrong_at(line, "", error.message());
    }
    if !place.faults.is_empty() {
        return Err(place.faults);
    }
    let mut top = Section::new(String::new(), table.into_inner(), &mut place);
    let found = read(&mut top, &mut place);
    top.end(&mut place);
    match place.faults.is_empty() {
        true => Ok(found),
        false => {
            place.faults.sort_by_key(|fault| fault.line);
            Err(place.faults)
        }
    }
}

/// What was found in `file`, as one object.
pub(crate) fn json(file: &Path, faults: &[Fault]) -> String {
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| json!({ "line": fault.line, "key": fault.key, "what": fault.what }))
        .collect();
    let found =
        json!({ "file": file.display().to_string(), "valid": faults.is_empty(), "faults": faults });
    format!("{found}\n")
}

/// What is wrong in one file, and where each key of it stands.
#[derive(Debug)]
pub(crate) struct Place<'t> {
    file: &'t Path,
    text: &'t str,
    lines: BTreeMap<String, usize>,
    pub(crate) faults: Vec<Fault>,
}

impl<'t> Place<'t> {
    pub(crate) fn new(file: &'t Path, text: &'t str) -> Self {
        Self {
            file,
            text,
            lines: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().iter().take(at);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    /// Something is wrong with a key, at its line if it is there, else at that of the table it is missing in.
    pub(crate) fn wrong(&mut self, key: &str, what: impl Into<String>) {
        let mut named = key;
        let line = loop {
            if let Some(line) = self.lines.get(named) {
                break *line;
            }
            match named.rsplit_once('.') {
                Some((above, _)) => named = above,
                None => break 0,
            }
        };
        self.wrong_at(line, key, what);
    }

    pub(crate) fn wrong_at(&mut self, line: usize, key: &str, what: impl Into<String>) {
        self.faults.push(Fault {
            file: self.file.to_owned(),
            line,
            key: key.to_owned(),
            what: what.into(),
        });
    }
}

/// One table, of which what was asked for is taken out.
#[derive(Debug)]
pub(crate) struct Section<'t> {
    /// Its dotted name; empty is the file.
    name: String,
    values: BTreeMap<String, (Range<usize>, DeValue<'t>)>,
    known: Vec<&'static str>,
}

impl<'t> Section<'t> {
    pub(crate) fn new(name: String, table: DeTable<'t>, place: &mut Place<'_>) -> Self {
        let mut section = Self {
            name,
            values: BTreeMap::new(),
            known: Vec::new(),
        };
        for (key, value) in table {
            let (span, key) = (key.span(), key.into_inner().into_owned());
            let line = place.line(span.start);
            place.lines.insert(section.key(&key), line);
            section.values.insert(key, (span, value.into_inner()));
        }
        section
    }

    /// The dotted name of a key in here.
    pub(crate) fn key(&self, key: &str) -> String {
        match self.name.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.name),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<DeValue<'t>> {
        self.known.push(key);
        self.values.remove(key).map(|(_, value)| value)
    }

    /// What `read` makes of a key's value; what it says instead becomes a fault.
    fn read<T>(
        &mut self,
        key: &'static str,
        place: &mut Place<'_>,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.take(key)?;
        read(&value)
            .map_err(|what| place.wrong(&self.key(key), what))
            .ok()
    }

    /// A table in here. One that is missing is none.
    pub(crate) fn section(&mut self, key: &'static str, place: &mut Place<'_>) -> Option<Self> {
        let name = self.key(key);
        match self.take(key)? {
            DeValue::Table(table) => Some(Self::new(name, table, place)),
            other => {
                place.wrong(&name, expected("a table", &other));
                None
            }
        }
    }

    /// The tables of a list. One that is missing is empty.
    pub(crate) fn sections(&mut self, key: &'static str, place: &mut Place<'_>) -> Vec<Self> {
        let name = self.key(key);
        let values = match self.take(key) {
            None => return Vec::new(),
            Some(DeValue::Array(values)) => values,
            Some(other) => {
                place.wrong(&name, expected("a list of tables", &other));
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for (n, value) in values.into_iter().enumerate() {
            let name = format!("{name}[{n}]");
            let line = place.line(value.span().start);
            place.lines.insert(name.clone(), line);
            match value.into_inner() {
                DeValue::Table(table) => all.push(Self::new(name, table, place)),
                other => place.wrong(&name, expected("a table", &other)),
            }
        }
        all
    }

    /// What `read` makes of a text that must be there.
    pub(crate) fn must<T>(
        &mut self,
        key: &'static str,
        place: &mut Place<'_>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        if !self.values.contains_key(key) {
            self.known.push(key);
            place.wrong(&self.key(key), "it is missing");
            return None;
        }
        self.read(key, place, |value| read(text(value)?))
    }

    pub(crate) fn text(&mut self, key: &'static str, place: &mut Place<'_>) -> Option<String> {
        self.read(key, place, |value| text(value).map(str::to_owned))
    }

    pub(crate) fn span(&mut self, key: &'static str, place: &mut Place<'_>) -> Option<Duration> {
        self.read(key, place, |value| human::parse_span(text(value)?))
    }

    pub(crate) fn truth(&mut self, key: &'static str, place: &mut Place<'_>) -> Option<bool> {
        self.read(key, place, |value| {
            value
                .as_bool()
                .ok_or_else(|| expected("true or false", value))
        })
    }

    /// A whole number, or bytes as `64KiB`, `256MiB`, `1GiB`.
    pub(crate) fn number(&mut self, key: &'static str, place: &mut Place<'_>) -> Option<usize> {
        let sized = key.ends_with("_bytes") || key == "max_frame";
        self.read(key, place, |value| match value {
            DeValue::Integer(digits) => {
                usize::from_str_radix(&digits.as_str().replace('_', ""), digits.radix())
                    .map_err(|_| "a whole number of 0 or more is expected".to_owned())
            }
            DeValue::String(size) if sized => human::parse_size(size),
            other => Err(expected(
                if sized {
                    "a number or a size such as \"64MiB\""
                } else {
                    "a number"
                },
                other,
            )),
        })
    }

    /// A list of texts, each of which `read` understands.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        place: &mut Place<'_>,
        mut read: impl FnMut(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let name = self.key(key);
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let DeValue::Array(values) = value else {
            place.wrong(&name, expected("a list of texts", &value));
            return Vec::new();
        };
        let mut all = Vec::new();
        for (n, value) in values.into_iter().enumerate() {
            let line = place.line(value.span().start);
            match text(value.get_ref()).and_then(&mut read) {
                Ok(one) => all.push(one),
                Err(what) => place.wrong_at(line, &format!("{name}[{n}]"), what),
            }
        }
        all
    }

    /// Nothing more is asked for: what is left was never known.
    pub(crate) fn end(self, place: &mut Place<'_>) {
        let all: Vec<&String> = self.values.keys().collect();
        for key in all {
            let near = self
                .known
                .iter()
                .min_by_key(|known| osa_distance(known, key));
            let what = match near.filter(|known| osa_distance(known, key) <= 2) {
                Some(known) => format!("no such key. did you mean {known}?"),
                None => format!("no such key. there are: {}", self.known.join(", ")),
            };
            place.wrong(&self.key(key), what);
        }
    }
}

fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    value
        .as_str()
        .ok_or_else(|| expected("a text in quotes", value))
}

fn expected(what: &str, found: &DeValue<'_>) -> String {
    format!(
        "{what} is expected, not {} {}",
        article(found),
        found.type_str()
    )
}

fn article(found: &DeValue<'_>) -> &'static str {
    match found.type_str().starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => "an",
        false => "a",
    }
}
