//! What a [`crate::Station`] is made with.
//!
//! Decides: which settings go together. Leaves to others: everything at run time. Believes: no
//! clock. Bounded by: [`StationLimits`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::client::SignerBox;
use crate::crypto::Signer;
use crate::limits::{MOST, MOST_BYTES, MUST_MOST, MUST_MOST_BYTES, StationLimits};
use crate::link::{PROBE_EVERY, PROBE_EVERY_MAX, PROBE_EVERY_MIN};
use crate::refusal::ConfigError;
use crate::wire::{DEFAULT_MAX_FRAME, MAX_HEAD, MAX_MAX_FRAME, MIN_MAX_FRAME};
use crate::{NodeId, RealmId};

/// Settings of a station. Every setter's default is the safe one.
#[derive(Debug)]
pub struct StationConfig {
    pub(crate) signer: SignerBox,
    pub(crate) allow_local: bool,
    pub(crate) max_frame: u32,
    pub(crate) probe_every: Duration,
    pub(crate) pinned: Vec<RealmId>,
    pub(crate) gateways: Vec<NodeId>,
    pub(crate) limits: StationLimits,
}

impl StationConfig {
    /// A station whose identity is `signer`'s key.
    pub fn new(signer: impl Signer + 'static) -> Self {
        Self {
            signer: SignerBox(Box::new(signer)),
            allow_local: false,
            max_frame: DEFAULT_MAX_FRAME,
            probe_every: PROBE_EVERY,
            pinned: Vec::new(),
            gateways: Vec::new(),
            limits: StationLimits::default(),
        }
    }

    /// Whether links over a transport without channel binding are taken (loopback). Default: no.
    #[must_use]
    pub fn allow_local(mut self, allow: bool) -> Self {
        self.allow_local = allow;
        self
    }

    /// The longest frame this side reads after the handshake, in bytes. Default 1 MiB, 512 to
    /// 16,777,215.
    #[must_use]
    pub fn max_frame(mut self, bytes: u32) -> Self {
        self.max_frame = bytes;
        self
    }

    /// A realm with a place of its own, whoever else subscribes.
    #[must_use]
    pub fn pin(mut self, realm: RealmId) -> Self {
        self.pinned.push(realm);
        self
    }

    /// A node that may publish what others signed.
    #[must_use]
    pub fn gateway(mut self, node: NodeId) -> Self {
        self.gateways.push(node);
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
    pub fn limits(mut self, limits: StationLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// The first setting that contradicts another or itself.
    pub fn build(self) -> Result<ValidStationConfig, ConfigError> {
        let refuse = |setting, must| Err(ConfigError { setting, must });
        let limits = &self.limits;
        if !(MIN_MAX_FRAME..=MAX_MAX_FRAME).contains(&self.max_frame) {
            return refuse("max_frame", "512 to 16777215 bytes");
        }
        if !(PROBE_EVERY_MIN..=PROBE_EVERY_MAX).contains(&self.probe_every) {
            return refuse("probe_every", "1 s to 1 h");
        }
        let at_least_one = [
            ("limits.links", limits.links),
            ("limits.subscribed_realms", limits.subscribed_realms),
            ("limits.topics", limits.topics),
            ("limits.subscribers_per_topic", limits.subscribers_per_topic),
            (
                "limits.subscriptions_per_link",
                limits.subscriptions_per_link,
            ),
            ("limits.ring_items", limits.ring_items),
            ("limits.dedup_entries", limits.dedup_entries),
            ("limits.publish_window", limits.publish_window),
            ("limits.publishers", limits.publishers),
            ("limits.answers", limits.answers),
        ];
        if let Some((setting, _)) = at_least_one.iter().find(|(_, value)| *value == 0) {
            return refuse(setting, "at least 1");
        }
        let may_be_none = [
            ("limits.filters_per_link", limits.filters_per_link),
            ("limits.ones_per_link", limits.ones_per_link),
        ];
        let mut counts = at_least_one.iter().chain(&may_be_none);
        if let Some((setting, _)) = counts.find(|(_, value)| *value > MOST) {
            return refuse(setting, MUST_MOST);
        }
        let bytes = [
            ("limits.ring_bytes", limits.ring_bytes),
            ("limits.read_bytes", limits.read_bytes),
        ];
        if let Some((setting, _)) = bytes.iter().find(|(_, value)| *value > MOST_BYTES) {
            return refuse(setting, MUST_MOST_BYTES);
        }
        if limits.publication_bytes.saturating_add(MAX_HEAD) > self.max_frame as usize {
            return refuse("limits.publication_bytes", "at most `max_frame` less 128");
        }
        if limits.ring_bytes < limits.publication_bytes {
            return refuse("limits.ring_bytes", "at least `limits.publication_bytes`");
        }
        if limits.read_bytes < self.max_frame as usize {
            return refuse("limits.read_bytes", "at least `max_frame`");
        }
        Ok(ValidStationConfig(self))
    }
}

/// Settings that go together.
#[derive(Debug)]
pub struct ValidStationConfig(pub(crate) StationConfig);

impl ValidStationConfig {
    /// The bounds.
    pub const fn limits(&self) -> &StationLimits {
        &self.0.limits
    }
}
