//! What each side of a link brings, and what it learns of the other.
//!
//! Decides: nothing. Leaves to others: the handshake. Believes: no clock. Bounded by: fixed sizes.

use crate::crypto::{Profile, PublicKey};
use crate::wire::Role;
use crate::{Duration, NodeId, WallMs};

/// What ties a link to the channel under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Binding {
    /// The transport's exporter value, where the transport proved no key.
    Exporter([u8; 32]),
    /// A channel inside one machine or one process; both configurations must allow it.
    Local,
    /// The exporter value of a transport in which the other side proved a node's key: the handshake has to be that node's.
    Proved {
        /// The transport's exporter value.
        exporter: [u8; 32],
        /// Whose key was proved.
        peer: NodeId,
    },
}

/// What one side brings to its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// The one profile this side speaks.
    pub profile: Profile,
    /// This side's public key, the signer's.
    pub key: [u8; 32],
    /// What this side is when it dials.
    pub role: Role,
    /// Its capability bits, below 2^53; none exist in this version.
    pub capabilities: u64,
    /// The longest frame it reads, in bytes; brought into 512 ..= 0xFFFFFF.
    pub max_frame: u32,
    /// The mesh a station belongs to; `None` for a lone one, which is its own.
    pub mesh: Option<[u8; 32]>,
    /// Whether [`Binding::Local`] is allowed.
    pub allow_local: bool,
    /// How often the other side is probed, and how long its answer is waited for; brought into 1 s ..= 1 h.
    pub probe_every: Duration,
}

impl LinkSettings {
    /// Settings with everything but profile, key and role at its default: no capabilities, 1 MiB frames, no mesh, no local
    /// links, a probe every 30 s.
    pub const fn new(profile: Profile, key: [u8; 32], role: Role) -> Self {
        Self {
            profile,
            key,
            role,
            capabilities: 0,
            max_frame: crate::wire::DEFAULT_MAX_FRAME,
            mesh: None,
            allow_local: false,
            probe_every: super::PROBE_EVERY,
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its id.
    pub id: NodeId,
    /// Its key, decoded.
    pub key: PublicKey,
    /// What it is: a dialler says so, an answerer is a station.
    pub role: Role,
    /// Its capability bits.
    pub capabilities: u64,
    /// The longest frame it reads, in bytes.
    pub max_frame: u32,
    /// The mesh it belongs to, when it answered.
    pub mesh: Option<[u8; 32]>,
    /// Its clock when it answered. Only a clock that was never set may follow it.
    pub wall: Option<WallMs>,
}

/// What a handshake frame brought.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The handshake goes on.
    Continue,
    /// The link is up (dialling side).
    Established(Peer),
    /// The dialler has proved who it is (answering side): now [`Link::admit`](super::Link::admit) or
    /// [`Link::refuse`](super::Link::refuse).
    Verified(Peer),
}
