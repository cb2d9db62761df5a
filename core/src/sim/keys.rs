//! Who signs, in either profile: names come out the same.
//!
//! Decides: which key belongs to whom. Leaves to others: signing. Believes: no clock. Bounded by: one key per host.

use alloc::vec::Vec;

use super::{FAKE_PROFILE, fake_signer};
use crate::crypto::{Profile, SecretKey, Signer};
use crate::{ClientConfig, NodeId, RealmId, Sources, StationConfig};

#[derive(Debug)]
pub(super) struct Keys {
    real: bool,
    nodes: Vec<NodeId>,
    stations: Vec<NodeId>,
}

fn real(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn id_of(signer: &dyn Signer) -> NodeId {
    NodeId::of_key(signer.profile().name(), &signer.public_key())
}

fn id(is_real: bool, number: u8) -> NodeId {
    match is_real {
        true => id_of(&real(number)),
        false => id_of(&fake_signer(number.into())),
    }
}

/// The first station's key; nodes have those below.
const STATIONS: u8 = 100;

impl Keys {
    pub(super) fn new(real: bool, nodes: usize, stations: usize) -> Self {
        Self {
            real,
            nodes: (0..nodes as u8).map(|n| id(real, n)).collect(),
            stations: (0..stations as u8)
                .map(|n| id(real, STATIONS + n))
                .collect(),
        }
    }

    pub(super) fn realm() -> RealmId {
        RealmId::of_name("sim")
    }

    pub(super) fn profile(&self) -> Profile {
        if self.real {
            Profile::ED25519
        } else {
            FAKE_PROFILE
        }
    }

    pub(super) fn client_config(&self, key: usize) -> ClientConfig {
        match self.real {
            true => ClientConfig::new(real(key as u8)),
            false => ClientConfig::new(fake_signer(key as u64)),
        }
    }

    pub(super) fn station_config(&self, station: usize) -> StationConfig {
        let key = STATIONS + station as u8;
        match self.real {
            true => StationConfig::new(real(key)),
            false => StationConfig::new(fake_signer(key.into())),
        }
    }

    pub(super) fn station_id(&self, station: usize) -> NodeId {
        self.stations[station]
    }

    pub(super) fn node_id(&self, key: usize) -> NodeId {
        self.nodes[key]
    }

    pub(super) fn key_of(&self, id: &NodeId) -> Option<u8> {
        let known = self.nodes.iter().position(|node| node == id);
        known.map(|key| key as u8)
    }

    /// One bit per key; everybody without.
    pub(super) fn sources(&self, of: Option<u8>) -> Sources {
        let Some(bits) = of else { return Sources::Open };
        let chosen = self.nodes.iter().enumerate();
        let chosen = chosen.filter(|(key, _)| bits & (1 << key) != 0);
        Sources::Nodes(chosen.map(|(_, id)| *id).collect())
    }
}
