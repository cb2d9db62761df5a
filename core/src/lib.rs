//! tidings: a sans-IO publish/subscribe core.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "alloc")]
mod action;
#[cfg(feature = "alloc")]
mod arena;
#[cfg(feature = "alloc")]
mod client;
pub mod code;
#[cfg(feature = "alloc")]
mod counters;
pub mod crypto;
#[cfg(feature = "alloc")]
mod delivery;
mod error;
mod id;
pub mod inbound;
#[cfg(feature = "alloc")]
mod limits;
pub mod link;
#[cfg(feature = "alloc")]
mod notice;
#[cfg(feature = "alloc")]
mod publishers;
#[cfg(feature = "alloc")]
pub mod pump;
#[cfg(feature = "alloc")]
mod refusal;
pub mod ring;
mod rng;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "alloc")]
mod station;
mod storage;
pub mod table;
#[cfg(feature = "alloc")]
mod tags;
mod time;
pub mod topic;
pub mod wire;

#[cfg(feature = "alloc")]
pub use action::{
    Action, Answer, Intake, LinkEvent, Outcome, Question, Ready, StationRef, Transmit, Turn,
    VerifyJob,
};
#[cfg(feature = "alloc")]
pub use client::{
    Client, ClientConfig, ClientStatus, LinkState, LinkStatus, Publish, Sources, Subscribe,
    SubscriptionStatus, ValidClientConfig, Verification,
};
#[cfg(feature = "alloc")]
pub use counters::FaultCounts;
#[cfg(feature = "alloc")]
pub use delivery::Delivery;
pub use error::LinkError;
pub use id::{
    AskId, BadHex, KeyId, LinkId, NodeId, PublicationHash, RealmId, RunId, SubscriptionId, Ticket,
};
pub use inbound::lane::Mode;
pub use inbound::stream::OnFull;
#[cfg(feature = "alloc")]
pub use limits::{ClientLimits, MemoryLine, MemoryReport, StationLimits};
pub use link::Binding;
#[cfg(feature = "alloc")]
pub use notice::{Item, Notice, Numbering};
#[cfg(feature = "alloc")]
pub use refusal::{ConfigError, Misuse, Refusal, Refused};
pub use rng::{Entropy, Rng, Seed};
#[cfg(feature = "alloc")]
pub use station::{Station, StationConfig, StationLink, StationStatus, ValidStationConfig};
pub use time::{Duration, Instant, Now, WallMs, soonest};
