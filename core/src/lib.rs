//! tidings: a sans-IO publish/subscribe core.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "alloc")]
mod arena;
pub mod code;
pub mod crypto;
mod error;
mod id;
pub mod inbound;
pub mod link;
pub mod ring;
mod rng;
#[cfg(feature = "sim")]
pub mod sim;
mod storage;
pub mod table;
mod time;
pub mod topic;
pub mod wire;

pub use error::LinkError;
pub use id::{
    AskId, BadHex, KeyId, LinkId, NodeId, PublicationHash, RealmId, RunId, SubscriptionId, Ticket,
};
pub use rng::{Entropy, Rng, Seed};
pub use time::{Duration, Instant, Now, WallMs, soonest};
