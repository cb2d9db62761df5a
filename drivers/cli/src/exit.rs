//! How a run ends: an exit code, and at most one line that says why.
//!
//! Decides: the meaning of exit codes, and that a closed pipe is no failure. Leaves to others: when a run ends. Believes: no clock.
//! Bounded by: one line per failure.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a run's exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done, nothing to report.
    Done = 0,
    /// A fact was lost or may be lost, or a ledger does not balance.
    Lost = 1,
    /// The command line, a file or an address is wrong.
    Usage = 2,
    /// No station could be reached.
    NoStation = 3,
    /// A station refused.
    Refused = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do its work: `what: why. next step`, one line.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    line: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self {
            exit,
            line: line.into(),
        }
    }

    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What came from outside may hold line breaks; a failure is one line.
        for (n, part) in self.line.split(['\n', '\r']).enumerate() {
            if n > 0 {
                f.write_str(" ")?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

/// Standard output failed: nothing to say when its reader left, one line for anything else.
pub(crate) fn output_failed(error: &io::Error) -> Result<Exit, Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Ok(Exit::Done)
    } else {
        Err(Failure::usage(format!(
            "cannot write to standard output: {error}. write elsewhere"
        )))
    }
}

/// One line for people. Whether somebody reads standard error changes nothing.
pub(crate) fn say(line: impl fmt::Display) {
    io::stderr()
        .lock()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap_or_default();
}

/// Prints a whole text.
pub(crate) fn print(text: &str) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => output_failed(&error),
    }
}
