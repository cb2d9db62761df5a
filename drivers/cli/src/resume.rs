//! The file that `sub --resume` goes on from and keeps: positions, across runs.
//!
//! Decides: its form (one JSON object with realm, filter and the positions in hex), and that it is renamed into place, so that a run that
//! dies leaves a whole one. Leaves to others: what positions mean (the core), when they are kept (`subscribe`, after the facts were
//! written). Believes: no clock. Bounded by: [`MAX_BYTES`] read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidings::RealmId;

use crate::exit::Failure;

const FORM: &str = "tidings-positions-v1";
/// The longest commit in hex, and its frame.
const MAX_BYTES: u64 = 32 << 20;

/// One run's file.
#[derive(Debug)]
pub(crate) struct Kept {
    file: PathBuf,
    realm: RealmId,
    filter: String,
    /// The positions it holds.
    held: Vec<u8>,
}

impl Kept {
    /// The file, and what it holds; a missing one is new and holds nothing.
    pub(crate) fn open(file: &Path, realm: RealmId, filter: &str) -> Result<Self, Failure> {
        let kept = Self {
            file: file.to_owned(),
            realm,
            filter: filter.to_owned(),
            held: read(file, realm, filter)?,
        };
        // Whether it can be kept is told now, not after the first facts.
        let tried = File::create(kept.beside()).and_then(|_| std::fs::remove_file(kept.beside()));
        tried.map_err(|error| kept.refused(&error))?;
        Ok(kept)
    }

    /// The positions it holds; nothing when it is new.
    pub(crate) fn positions(&self) -> Option<&[u8]> {
        (!self.held.is_empty()).then_some(&self.held)
    }

    /// These positions are no positions.
    pub(crate) fn malformed(&self) -> Failure {
        malformed(&self.file)
    }

    /// What writes these positions; nothing when they were handed to it before, unless it may not have been run.
    pub(crate) fn keep(
        &mut self,
        positions: Vec<u8>,
        again: bool,
    ) -> Option<impl FnOnce() -> Result<(), Failure> + Send + use<>> {
        if positions == self.held && !again {
            return None;
        }
        self.held = positions;
        let whole = json!({
            "form": FORM,
            "realm": self.realm.to_string(),
            "filter": self.filter,
            "positions": hex(&self.held),
        });
        let (file, beside) = (self.file.clone(), self.beside());
        Some(move || {
            let write = || {
                let mut out = File::create(&beside)?;
                out.write_all(format!("{whole}\n").as_bytes())?;
                out.sync_all()?;
                std::fs::rename(&beside, &file)
            };
            write().map_err(|error| unkept(&file, &error))
        })
    }

    fn beside(&self) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(".new");
        name.into()
    }

    fn refused(&self, error: &io::Error) -> Failure {
        unkept(&self.file, error)
    }
}

fn unkept(file: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!(
        "cannot keep positions in {}: {error}. make its folder writable, or name another file",
        file.display()
    ))
}

fn malformed(file: &Path) -> Failure {
    Failure::usage(format!(
        "cannot go on from {}: it holds no positions. remove it to begin anew, or name another file",
        file.display()
    ))
}

fn read(file: &Path, realm: RealmId, filter: &str) -> Result<Vec<u8>, Failure> {
    let shown = file.display();
    let mut text = String::new();
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(Failure::usage(format!(
                "cannot go on from {shown}: {error}. see its owner and mode"
            )));
        }
    };
    opened
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => malformed(file),
            _ => Failure::usage(format!(
                "cannot go on from {shown}: {error}. name another file"
            )),
        })?;
    let whole = crate::json::read(&text).map_err(|_| malformed(file))?;
    let part = |name: &str| whole.get(name).and_then(Value::as_str);
    let (Some(FORM), Some(of), Some(kept_for), Some(positions)) = (
        part("form"),
        part("realm"),
        part("filter"),
        part("positions"),
    ) else {
        return Err(malformed(file));
    };
    if of != realm.to_string() || kept_for != filter {
        return Err(Failure::usage(format!(
            "cannot go on from {shown}: it was kept for {kept_for:?} of realm {of}. name another file, or remove it to begin anew"
        )));
    }
    unhex(positions)
        .filter(|positions| !positions.is_empty())
        .ok_or_else(|| malformed(file))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn realm() -> RealmId {
        RealmId::of_name("demo")
    }

    fn file(name: &str) -> PathBuf {
        let name = format!("tidings-{name}-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::remove_file(&file).ok();
        file
    }

    fn refusal(file: &Path, filter: &str) -> String {
        Kept::open(file, realm(), filter).unwrap_err().to_string()
    }

    #[test]
    fn what_is_kept_is_read_again_and_written_once() {
        let file = file("kept");
        let mut kept = Kept::open(&file, realm(), "demo/**").unwrap();
        assert_eq!(kept.positions(), None);
        kept.keep(vec![1, 0xfe, 3], false).unwrap()().unwrap();
        assert!(kept.keep(vec![1, 0xfe, 3], false).is_none());
        let again = Kept::open(&file, realm(), "demo/**").unwrap();
        assert_eq!(again.positions(), Some(&[1, 0xfe, 3][..]));
        assert!(!again.beside().exists());
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_file_of_another_filter_or_realm_is_refused() {
        let file = file("other");
        let mut kept = Kept::open(&file, realm(), "demo/a").unwrap();
        kept.keep(vec![1], false).unwrap()().unwrap();
        let said = refusal(&file, "demo/**");
        assert!(said.contains("kept for \"demo/a\""), "{said}");
        assert!(said.ends_with("remove it to begin anew"), "{said}");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_malformed_file_names_the_next_step() {
        let file = file("malformed");
        let whole = format!(
            "{{\"form\":\"{FORM}\",\"realm\":\"{}\",\"filter\":\"demo/**\",\"positions\":",
            realm()
        );
        for text in [
            "",
            "{}",
            "[1]",
            &whole,
            &format!("{whole}\"\"}}"),
            &format!("{whole}\"abc\"}}"),
            &format!("{whole}\"zz\"}}"),
            &whole.replace("v1", "v2"),
        ] {
            std::fs::write(&file, text).unwrap();
            let said = refusal(&file, "demo/**");
            assert!(said.contains("remove it to begin anew"), "{text:?}: {said}");
        }
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(refusal(&file, "demo/**").contains("remove it to begin anew"));
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_folder_that_takes_nothing_is_told_at_the_start() {
        let said = refusal(Path::new("/no/such/folder/positions"), "demo/**");
        assert!(said.contains("make its folder writable"), "{said}");
    }
}
