//! Why a node or a station did not start, and why a wait ended early.
//!
//! Decides: nothing. Leaves to others: refused calls (`tidings::Refused`) and the streams' notices.
//! Believes: no clock. Bounded by: small values.

use core::fmt;
use std::io;
use std::net::SocketAddr;

use tidings::ConfigError;
use tidings_tls::ConfigFault;

use crate::EpochFileError;

/// Why a node or a station did not start. Nothing was left running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The address could not be listened on: choose another.
    Bind {
        /// Which address.
        address: SocketAddr,
        /// What the operating system said.
        kind: io::ErrorKind,
    },
    /// A setting contradicts another or itself: correct it.
    Config(ConfigError),
    /// The file of epochs that was named cannot be used: it says what to do.
    EpochFile(EpochFileError),
    /// The operating system gave no thread, or nothing to wait for sockets with.
    Io {
        /// What it said.
        kind: io::ErrorKind,
    },
    /// The operating system gave no randomness: nothing is safe without it.
    NoRandomness,
    /// There is no tokio runtime here: call from inside one.
    NoRuntime,
    /// No station was named, so there is nobody to connect to: add one.
    NoStation,
    /// No address was named to listen on: add one.
    NotListening,
    /// Another process, or another station of this one, listens there: stop it, or choose another
    /// port.
    PortInUse {
        /// Which address.
        address: SocketAddr,
    },
    /// The key cannot be used for TLS: it says why.
    Tls(ConfigFault),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address, kind } => {
                write!(f, "cannot listen on {address}: {kind}; choose another address")
            }
            Self::Config(error) => write!(f, "bad setting: {error}"),
            Self::EpochFile(error) => error.fmt(f),
            Self::Io { kind } => {
                write!(f, "the operating system gave no thread or no way to wait for sockets: {kind}")
            }
            Self::NoRandomness => f.write_str(
                "the operating system gave no randomness: keys and nonces need it, so nothing was started",
            ),
            Self::NoRuntime => {
                f.write_str("no tokio runtime here: call this from inside one (#[tokio::main])")
            }
            Self::NoStation => {
                f.write_str("no station: a node needs one to connect to; add `.station(\"tcp://…\")`")
            }
            Self::NotListening => {
                f.write_str("no address to listen on: add `.listen(\"127.0.0.1:7400\")`")
            }
            Self::PortInUse { address } => write!(
                f,
                "{address} is in use: another process listens there; stop it, or choose another port (0 takes any)"
            ),
            Self::Tls(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for StartError {}

impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<EpochFileError> for StartError {
    fn from(error: EpochFileError) -> Self {
        Self::EpochFile(error)
    }
}

impl From<ConfigFault> for StartError {
    fn from(fault: ConfigFault) -> Self {
        Self::Tls(fault)
    }
}

/// Why a wait ended before what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The node was closed, or the subscription ended: it cannot come any more.
    Ended,
    /// The time is over: wait longer, or look at the status for what is missing.
    TimedOut {
        /// How many there were at the end.
        reached: usize,
        /// How many were asked for.
        wanted: usize,
    },
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("ended: the node was closed or the subscription is over"),
            Self::TimedOut { reached, wanted } => {
                write!(
                    f,
                    "timed out: {reached} of {wanted} stations; is each of them running?"
                )
            }
        }
    }
}

impl core::error::Error for WaitError {}
