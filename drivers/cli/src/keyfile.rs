//! The file a node's secret key lives in.
//!
//! Decides: its form (one line: `tidings-key-v1 ed25519 ` and 64 hex digits of the seed), its mode (0600), and that it is never
//! overwritten; and that the epoch is kept beside it. Leaves to others: what the key signs. Believes: no clock. Bounded by: 256 bytes read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tidings::NodeId;
use tidings::crypto::SecretKey;
use zeroize::Zeroizing;

use crate::exit::{Failure, say};

const HEAD: &str = "tidings-key-v1 ed25519 ";
const MAX_BYTES: u64 = 256;

/// The key of `file`, or one for this run alone.
pub(crate) fn load_or_make(file: Option<&Path>) -> Result<SecretKey, Failure> {
    file.map_or_else(throwaway, load)
}

/// Says who this run is, and whether the key outlives it.
pub(crate) fn introduce(id: NodeId, file: Option<&Path>) {
    match file {
        Some(_) => say(format_args!("key: {id}")),
        None => say(format_args!(
            "key: {id}, for this run alone. keep one with --key"
        )),
    }
}

/// A key that is kept nowhere.
pub(crate) fn throwaway() -> Result<SecretKey, Failure> {
    Ok(SecretKey::from_seed(*random_seed()?))
}

/// Makes a key and writes it.
pub(crate) fn generate(file: &Path) -> Result<SecretKey, Failure> {
    let seed = random_seed()?;
    let shown = file.display();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::usage(format!(
            "cannot write key file {shown}: it exists, and a key is never overwritten. choose another name"
        )),
        _ => Failure::usage(format!("cannot write key file {shown}: {error}. choose another place")),
    })?;
    let line = Zeroizing::new(format!("{HEAD}{}\n", hex(&*seed).as_str()));
    out.write_all(line.as_bytes())
        .and_then(|()| out.sync_all())
        .map_err(|error| {
            Failure::usage(format!(
                "cannot write key file {shown}: {error}. remove it and try again"
            ))
        })?;
    Ok(SecretKey::from_seed(*seed))
}

/// Where the greatest epoch a key has published under is kept: beside it.
fn epoch_file(key: &Path) -> PathBuf {
    let mut name = key.as_os_str().to_owned();
    name.push(".epoch");
    name.into()
}

/// The greatest epoch an earlier run published under with this key; 0 when none did.
pub(crate) fn load_epoch(key: &Path) -> Result<u64, Failure> {
    let file = epoch_file(key);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => {
            return Err(Failure::usage(format!(
                "cannot read {}: {error}. see its owner and mode",
                file.display()
            )));
        }
    };
    text.trim()
        .parse()
        .ok()
        .filter(|epoch| *epoch < 1 << 53)
        .ok_or_else(|| {
            Failure::usage(format!(
                "cannot use {}: it holds no epoch. remove it if the clock never ran ahead",
                file.display()
            ))
        })
}

/// Keeps it for the next run. Another run that ended meanwhile may have used a greater one: that one stays.
pub(crate) fn save_epoch(key: &Path, epoch: u64) -> Result<(), Failure> {
    if load_epoch(key)? >= epoch {
        return Ok(());
    }
    let file = epoch_file(key);
    let mut whole = file.as_os_str().to_owned();
    whole.push(".new");
    let whole = PathBuf::from(whole);
    // Renamed into place, so that a run that dies here leaves the old one.
    std::fs::write(&whole, format!("{epoch}\n"))
        .and_then(|()| std::fs::rename(&whole, &file))
        .map_err(|error| {
            Failure::usage(format!(
                "cannot keep the epoch in {}: {error}. make the folder writable",
                file.display()
            ))
        })
}

fn load(file: &Path) -> Result<SecretKey, Failure> {
    let shown = file.display();
    let refuse = |why: String| Failure::usage(format!("cannot use key file {shown}: {why}"));
    let opened = File::open(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => refuse(format!(
            "no such file. make one with tidings keygen {shown}"
        )),
        _ => refuse(format!("{error}. see its owner and mode")),
    })?;
    let meta = opened
        .metadata()
        .map_err(|error| refuse(format!("{error}. see its owner and mode")))?;
    if !meta.is_file() {
        return Err(refuse(
            "it is not a file. name the file keygen wrote".to_owned(),
        ));
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            return Err(refuse(format!(
                "others may read or write it (mode {mode:04o}). chmod 600 {shown}"
            )));
        }
    }
    if meta.len() > MAX_BYTES {
        return Err(refuse(format!(
            "{} bytes is no key. name the file keygen wrote",
            meta.len()
        )));
    }
    let mut text = Zeroizing::new(String::new());
    let form = "it is not a tidings key. name the file keygen wrote";
    opened
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|_| refuse(form.to_owned()))?;
    let digits = text
        .trim_end()
        .strip_prefix(HEAD)
        .ok_or_else(|| refuse(form.to_owned()))?;
    let seed = unhex(digits).ok_or_else(|| {
        refuse("its key is not 64 hex digits. the file was cut or changed: restore it".to_owned())
    })?;
    Ok(SecretKey::from_seed(*seed))
}

fn random_seed() -> Result<Zeroizing<[u8; 32]>, Failure> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| {
        Failure::usage(format!(
            "cannot make a key: the system gives no randomness ({error}). try again"
        ))
    })?;
    Ok(seed)
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(bytes.len() * 2));
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    text
}

fn unhex(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut seed = Zeroizing::new([0u8; 32]);
    let digits = digits.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    for (byte, pair) in seed.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (value(pair[0])? * 16 + value(pair[1])?) as u8;
    }
    Some(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_runs_with_one_key_the_greater_epoch_is_kept() {
        let folder = std::env::temp_dir().join(format!("tidings-epoch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = folder.join("key");
        for (epoch, kept) in [(5, 5), (9, 9), (7, 9)] {
            save_epoch(&key, epoch).unwrap();
            assert_eq!(load_epoch(&key).unwrap(), kept);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
