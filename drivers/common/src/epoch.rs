//! The file that remembers under which epochs a key has published.
//!
//! Decides: its form (one line, the number in decimal) and how it is replaced: written whole beside itself, synced, renamed. Leaves to
//! others: which epoch is needed, and that none is used before it stands here; both are the core's. Believes: no clock. Bounded by: one
//! number; at most one writing in ten seconds of new topics.

use core::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tidings::{Publish, Refusal, Refused};

/// So much more than needed is written down, in microseconds: new topics of the next ten seconds need no writing of their own.
const AHEAD: u64 = 10_000_000;
/// No epoch reaches this.
const LIMIT: u64 = 1 << 53;
/// More than any number takes.
const MAX_BYTES: u64 = 32;

/// Why the file of epochs cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EpochFileError {
    /// It holds no epoch: it was cut or changed.
    Corrupt,
    /// There is one already.
    Exists,
    /// What the operating system said.
    Io(io::ErrorKind),
    /// There is none.
    Missing,
}

impl fmt::Display for EpochFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next =
            "restore it, or write 0 into it if the clock was never set back since the key was used";
        match self {
            Self::Corrupt => write!(f, "the epoch file holds no epoch: {next}"),
            Self::Exists => f.write_str("the epoch file exists: it is never overwritten with less"),
            Self::Io(kind) => write!(
                f,
                "the epoch file cannot be read or written: {kind}; see its owner, its mode and its folder"
            ),
            Self::Missing => write!(f, "the epoch file is missing: {next}"),
        }
    }
}

impl core::error::Error for EpochFileError {}

/// The file that remembers the epochs of one key. A restart goes on above them though the wall clock was set back.
#[derive(Debug)]
pub struct EpochFile {
    path: PathBuf,
    /// What it says.
    kept: Mutex<u64>,
}

impl EpochFile {
    /// Writes the file of a key that was never used; it must not be there yet.
    ///
    /// # Errors
    /// [`EpochFileError::Exists`], [`EpochFileError::Io`].
    pub fn create(path: &Path) -> Result<(), EpochFileError> {
        let mut options = OpenOptions::new();
        let mut file =
            options
                .write(true)
                .create_new(true)
                .open(path)
                .map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => EpochFileError::Exists,
                    kind => EpochFileError::Io(kind),
                })?;
        file.write_all(b"0\n")
            .and_then(|()| file.sync_all())
            .map_err(|error| EpochFileError::Io(error.kind()))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Each of [`EpochFileError`] but `Exists`.
    pub fn open(path: PathBuf) -> Result<Self, EpochFileError> {
        let kept = Mutex::new(read(&path)?);
        Ok(Self { path, kept })
    }

    /// The greatest epoch it says.
    pub fn kept(&self) -> u64 {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes; where that is refused because its epoch is not written down, writes it down and publishes again. `publish` is told up
    /// to which epoch there is a record now, to pass on to `Client::epochs_kept` first.
    ///
    /// # Errors
    /// Those of `publish`; `EpochNotKept` where there is no file or it cannot be written.
    pub fn publish<T>(
        epochs: Option<&Self>,
        request: Publish,
        mut publish: impl FnMut(Publish, Option<u64>) -> Result<T, Refused<Publish>>,
    ) -> Result<T, Refused<Publish>> {
        let refused = match publish(request, None) {
            Ok(published) => return Ok(published),
            Err(refused) => refused,
        };
        let Refusal::EpochNotKept { epoch } = refused.reason else {
            return Err(refused);
        };
        match epochs.map(|epochs| epochs.keep(epoch)) {
            Some(Ok(upto)) => publish(refused.request, Some(upto)),
            Some(Err(_)) | None => Err(refused),
        }
    }

    /// Writes down that this epoch and some more may be used, and answers up to which. It waits for the disk.
    ///
    /// # Errors
    /// Each of [`EpochFileError`] but `Exists`; what it said before still stands then.
    pub fn keep(&self, epoch: u64) -> Result<u64, EpochFileError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if *kept < epoch {
            // Another process with this key may have written more: the greater one stays.
            let upto = epoch.saturating_add(AHEAD).min(LIMIT - 1);
            let upto = upto.max(read(&self.path)?);
            replace(&self.path, upto).map_err(|error| EpochFileError::Io(error.kind()))?;
            *kept = upto;
        }
        Ok(*kept)
    }
}

fn read(path: &Path) -> Result<u64, EpochFileError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => EpochFileError::Missing,
        io::ErrorKind::InvalidData => EpochFileError::Corrupt,
        kind => EpochFileError::Io(kind),
    };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    // A cut number is a smaller one, so the end of its line must be there.
    let number = text.strip_suffix('\n').and_then(|text| text.parse().ok());
    number
        .filter(|epoch| *epoch < LIMIT)
        .ok_or(EpochFileError::Corrupt)
}

/// Whoever dies here leaves the old one or the new one.
fn replace(path: &Path, epoch: u64) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let whole = PathBuf::from(name);
    let mut file = File::create(&whole)?;
    file.write_all(format!("{epoch}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&whole, path)?;
    #[cfg(unix)]
    {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("tidings-epoch-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_is_kept_is_read_again_and_never_less() {
        let folder = folder("kept");
        let path = folder.join("key.epoch");
        EpochFile::create(&path).unwrap();
        assert_eq!(EpochFile::create(&path), Err(EpochFileError::Exists));
        let (one, other) = (
            EpochFile::open(path.clone()).unwrap(),
            EpochFile::open(path.clone()).unwrap(),
        );
        assert_eq!(one.kept(), 0);
        let upto = one.keep(5).unwrap();
        assert!(upto >= 5);
        assert_eq!(one.keep(upto), Ok(upto), "nothing is written for it");
        let more = one.keep(upto + 1).unwrap();
        assert!(more > upto);
        assert_eq!(other.keep(7), Ok(more), "of two the greater one stays");
        assert_eq!(EpochFile::open(path).unwrap().kept(), more);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_is_missing_or_spoilt_is_said_with_the_next_step() {
        let folder = folder("spoilt");
        let path = folder.join("key.epoch");
        let open = |path: &Path| EpochFile::open(path.to_owned()).map(|file| file.kept());
        assert_eq!(open(&path), Err(EpochFileError::Missing));
        for text in [
            "",
            "\n",
            "12",
            "-1\n",
            "9007199254740992\n",
            "1\n2\n",
            "x\n",
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(open(&path), Err(EpochFileError::Corrupt), "{text:?}");
        }
        std::fs::write(&path, [0xff, b'\n']).unwrap();
        assert_eq!(open(&path), Err(EpochFileError::Corrupt));
        assert!(matches!(open(&folder), Err(EpochFileError::Io(_))));
        std::fs::write(&path, "9007199254740991\n").unwrap();
        assert_eq!(open(&path), Ok((1 << 53) - 1));
        for error in [EpochFileError::Missing, EpochFileError::Corrupt] {
            assert!(error.to_string().contains("restore it"), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_takes_nothing_is_an_error_and_keeps_nothing() {
        let folder = folder("gone");
        let path = folder.join("key.epoch");
        EpochFile::create(&path).unwrap();
        let file = EpochFile::open(path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(file.keep(5).is_err());
        assert_eq!(file.kept(), 0);
    }
}
