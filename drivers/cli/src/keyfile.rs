//! The file a node's secret key lives in.
//!
//! Decides: its form (one line: `tidings-key-v1 ed25519 ` and 64 hex digits of the seed), its mode (0600), and that it is never
//! overwritten; and that its epochs are kept beside it. Leaves to others: what the key signs. Believes: no clock. Bounded by: 256 bytes read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tidings::NodeId;
use tidings::crypto::SecretKey;
use tidings_tokio::EpochFile;
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

/// Makes a key and writes it, and beside it that it was never used.
pub(crate) fn generate(file: &Path) -> Result<SecretKey, Failure> {
    let seed = random_seed()?;
    let line = Zeroizing::new(format!("{HEAD}{}\n", hex(&*seed).as_str()));
    write_new(file, "key", &line)?;
    let epochs = epoch_file(file);
    EpochFile::create(&epochs).map_err(|error| {
        Failure::usage(format!(
            "cannot write {} beside the key: {error}. remove both and try again",
            epochs.display()
        ))
    })?;
    Ok(SecretKey::from_seed(*seed))
}

/// Writes a secret to a file of `kind` that must not be there yet, for its owner alone.
pub(crate) fn write_new(file: &Path, kind: &str, text: &str) -> Result<(), Failure> {
    let shown = file.display();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::usage(format!(
            "cannot write {kind} file {shown}: it exists, and a key is never overwritten. choose another name"
        )),
        _ => Failure::usage(format!("cannot write {kind} file {shown}: {error}. choose another place")),
    })?;
    out.write_all(text.as_bytes())
        .and_then(|()| out.sync_all())
        .map_err(|error| {
            Failure::usage(format!(
                "cannot write {kind} file {shown}: {error}. remove it and try again"
            ))
        })
}

/// Where the epochs a key has published under are kept: beside it.
pub(crate) fn epoch_file(key: &Path) -> PathBuf {
    let mut name = key.as_os_str().to_owned();
    name.push(".epoch");
    name.into()
}

fn load(file: &Path) -> Result<SecretKey, Failure> {
    let text = read_secret(file, "key", "keygen", MAX_BYTES)?;
    let refuse =
        |why: &str| Failure::usage(format!("cannot use key file {}: {why}", file.display()));
    let digits = text
        .trim_end()
        .strip_prefix(HEAD)
        .ok_or_else(|| refuse("it is not a tidings key. name the file keygen wrote"))?;
    let seed = unhex(digits).ok_or_else(|| {
        refuse("its key is not 64 hex digits. the file was cut or changed: restore it")
    })?;
    Ok(SecretKey::from_seed(*seed))
}

/// The text of a file of `kind`, which `maker` wrote, and which nobody but its owner may read.
pub(crate) fn read_secret(
    file: &Path,
    kind: &str,
    maker: &str,
    most: u64,
) -> Result<Zeroizing<String>, Failure> {
    let shown = file.display();
    let refuse = |why: String| Failure::usage(format!("cannot use {kind} file {shown}: {why}"));
    // Asked before it is opened: a pipe without a writer would be waited for.
    if std::fs::metadata(file).is_ok_and(|meta| !meta.is_file()) {
        return Err(refuse(format!(
            "it is not a file. name the file {maker} wrote"
        )));
    }
    let opened = File::open(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => refuse(format!(
            "no such file. make one with tidings {maker} {shown}"
        )),
        _ => refuse(format!("{error}. see its owner and mode")),
    })?;
    let meta = opened
        .metadata()
        .map_err(|error| refuse(format!("{error}. see its owner and mode")))?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            return Err(refuse(format!(
                "others may read or write it (mode {mode:04o}). chmod 600 {shown}"
            )));
        }
    }
    if meta.len() > most {
        return Err(refuse(format!(
            "{} bytes is no {kind}. name the file {maker} wrote",
            meta.len()
        )));
    }
    // As long as it will be: one that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(most as usize + 1));
    opened.take(most).read_to_string(&mut text).map_err(|_| {
        refuse(format!(
            "it is not a tidings {kind}. name the file {maker} wrote"
        ))
    })?;
    Ok(text)
}

/// A seed for a key.
pub(crate) fn random_seed() -> Result<Zeroizing<[u8; 32]>, Failure> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| {
        Failure::usage(format!(
            "cannot make a key: the system gives no randomness ({error}). try again"
        ))
    })?;
    Ok(seed)
}

pub(crate) fn hex(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(bytes.len() * 2));
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    text
}

pub(crate) fn unhex(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
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
