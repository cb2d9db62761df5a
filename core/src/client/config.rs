//! What a [`crate::Client`] is made with.
//!
//! Decides: which settings go together. Leaves to others: everything at run time. Believes: no clock. Bounded by: [`ClientLimits`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::NodeId;
use crate::action::StationRef;
use crate::crypto::Signer;
use crate::inbound::sources::SourceLimitsFault;
use crate::limits::{ClientLimits, MOST, MOST_BYTES, MUST_MOST, MUST_MOST_BYTES};
use crate::link::{PROBE_EVERY, PROBE_EVERY_MAX, PROBE_EVERY_MIN};
use crate::refusal::ConfigError;
use crate::wire::{DEFAULT_MAX_FRAME, MAX_MAX_FRAME, MIN_MAX_FRAME};

/// Where signatures of arriving publications are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verification {
    /// In `handle_input`, at once.
    #[default]
    Here,
    /// By whoever answers [`crate::Question::Verify`]: other cores, or hardware.
    Asked,
}

/// Settings of a client. Every setter's default is the safe one.
#[derive(Debug)]
pub struct ClientConfig {
    pub(crate) signer: SignerBox,
    pub(crate) stations: Vec<Option<NodeId>>,
    pub(crate) allow_local: bool,
    pub(crate) replication_factor: usize,
    pub(crate) order_timeout: Duration,
    pub(crate) max_frame: u32,
    pub(crate) probe_every: Duration,
    pub(crate) verification: Verification,
    pub(crate) last_epoch: u64,
    pub(crate) keep_epochs: bool,
    pub(crate) limits: ClientLimits,
}

/// A signer, hidden in `Debug`.
pub(crate) struct SignerBox(pub(crate) Box<dyn Signer>);

impl core::fmt::Debug for SignerBox {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Signer")
    }
}

impl ClientConfig {
    /// A client that signs with `signer`, with no station yet.
    pub fn new(signer: impl Signer + 'static) -> Self {
        Self {
            signer: SignerBox(Box::new(signer)),
            stations: Vec::new(),
            allow_local: false,
            replication_factor: 2,
            order_timeout: Duration::from_millis(250),
            max_frame: DEFAULT_MAX_FRAME,
            probe_every: PROBE_EVERY,
            verification: Verification::Here,
            last_epoch: 0,
            keep_epochs: false,
            limits: ClientLimits::default(),
        }
    }

    /// Adds a station to dial. `expected` pins it: another key there is refused. Without it any
    /// station is accepted, which is safe on a local transport only. The n-th call names
    /// `StationRef(n − 1)`; the driver knows its address.
    #[must_use]
    pub fn station(mut self, expected: Option<NodeId>) -> Self {
        self.stations.push(expected);
        self
    }

    /// Whether links over a transport without channel binding are taken (loopback). Default: no.
    #[must_use]
    pub fn allow_local(mut self, allow: bool) -> Self {
        self.allow_local = allow;
        self
    }

    /// To how many links each publication is handed. Default 2, at least 1, at most 16.
    #[must_use]
    pub fn replication_factor(mut self, links: usize) -> Self {
        self.replication_factor = links;
        self
    }

    /// How long a missing number is waited for from the arrival of the first fact behind it.
    /// Default 250 ms, 1 ms to 1 min. A station lets a reader lag by half a ring, so where stations come back under load (a restarted one is level at
    /// once, the others may not be) a longer wait and a larger `ClientLimits::order_max_buffer` trade delay for facts that are late.
    #[must_use]
    pub fn order_timeout(mut self, timeout: Duration) -> Self {
        self.order_timeout = timeout;
        self
    }

    /// The longest frame this side reads after the handshake, in bytes. Default 1 MiB, 512 to
    /// 16,777,215.
    #[must_use]
    pub fn max_frame(mut self, bytes: u32) -> Self {
        self.max_frame = bytes;
        self
    }

    /// Where arriving signatures are checked. Default: here.
    #[must_use]
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// The greatest epoch this key has published under, as `Client::last_epoch` gave it in an
    /// earlier run. Default 0.
    #[must_use]
    pub fn last_epoch(mut self, epoch: u64) -> Self {
        self.last_epoch = epoch;
        self
    }

    /// Whether nothing is published under an epoch before `Client::epochs_kept` says that it, or a greater one, was written down; such a
    /// publication is refused with `EpochNotKept`. Without it a run that dies in the middle leaves no epoch behind, and the next relies on a
    /// wall clock that never went back. Default: no.
    #[must_use]
    pub fn keep_epochs(mut self, keep: bool) -> Self {
        self.keep_epochs = keep;
        self
    }

    /// How often the other side of each link is asked whether it is there, and how long its answer is waited for; two that are missed end
    /// the link. Default 30 s, 1 s to 1 h.
    #[must_use]
    pub fn probe_every(mut self, every: Duration) -> Self {
        self.probe_every = every;
        self
    }

    /// The bounds.
    #[must_use]
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// The first setting that contradicts another or itself.
    pub fn build(self) -> Result<ValidClientConfig, ConfigError> {
        let refuse = |setting, must| Err(ConfigError { setting, must });
        let limits = &self.limits;
        if self.stations.len() > limits.links {
            return refuse("station", "at most `limits.links` stations");
        }
        if !(1..=16).contains(&self.replication_factor) {
            return refuse("replication_factor", "1 to 16");
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&self.order_timeout) {
            return refuse("order_timeout", "1 ms to 60 s");
        }
        if !(MIN_MAX_FRAME..=MAX_MAX_FRAME).contains(&self.max_frame) {
            return refuse("max_frame", "512 to 16777215 bytes");
        }
        if !(PROBE_EVERY_MIN..=PROBE_EVERY_MAX).contains(&self.probe_every) {
            return refuse("probe_every", "1 s to 1 h");
        }
        let at_least_one = [
            ("limits.links", limits.links),
            ("limits.subscriptions", limits.subscriptions),
            ("limits.lanes", limits.lanes),
            ("limits.queue_capacity", limits.queue_capacity),
            ("limits.order_max_buffer", limits.order_max_buffer),
            ("limits.publish_window", limits.publish_window),
            ("limits.tickets", limits.tickets),
            ("limits.counters", limits.counters),
            ("limits.open_publishers", limits.open_publishers),
            ("limits.pending_verifications", limits.pending_verifications),
            ("limits.publishers", limits.publishers),
            ("limits.answers", limits.answers),
            ("limits.group_periods", limits.group_periods),
            ("limits.group_pulls", limits.group_pulls),
            ("limits.group_publishers", limits.group_publishers),
        ];
        if let Some((setting, _)) = at_least_one.iter().find(|(_, value)| *value == 0) {
            return refuse(setting, "at least 1");
        }
        if let Err(SourceLimitsFault { setting, must }) = limits.sources.check() {
            return refuse(setting, must);
        }
        let may_be_none = [
            ("limits.resting_lanes", limits.resting_lanes),
            ("limits.dedup_entries", limits.dedup_entries),
            ("limits.groups", limits.groups),
        ];
        let mut counts = at_least_one.iter().chain(&may_be_none);
        if let Some((setting, _)) = counts.find(|(_, value)| *value > MOST) {
            return refuse(setting, MUST_MOST);
        }
        if limits.held_bytes > MOST_BYTES {
            return refuse("limits.held_bytes", MUST_MOST_BYTES);
        }
        if limits.dedup_entries < limits.order_max_buffer.saturating_mul(2) {
            return refuse(
                "limits.dedup_entries",
                "at least twice `limits.order_max_buffer`",
            );
        }
        if limits.held_bytes < 4 * self.max_frame as usize {
            return refuse("limits.held_bytes", "at least four times `max_frame`");
        }
        if self.last_epoch >= 1 << 53 {
            return refuse("last_epoch", "below 2^53");
        }
        Ok(ValidClientConfig(self))
    }
}

/// Settings that go together.
#[derive(Debug)]
pub struct ValidClientConfig(pub(crate) ClientConfig);

impl ValidClientConfig {
    /// The stations to dial, with the pins they were given.
    pub fn stations(&self) -> impl Iterator<Item = (StationRef, Option<NodeId>)> {
        self.0
            .stations
            .iter()
            .enumerate()
            .map(|(n, pin)| (StationRef(n as u16), *pin))
    }
}
