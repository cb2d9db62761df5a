//! The tokio driver of tidings: nodes and stations over TLS 1.3, or over TCP on one host.
//!
//! Decides: when sockets, clocks and randomness are used. Leaves to others: every rule of tidings,
//! which is the core's. Believes: the operating system's clocks (`tidings_common::Clock`). Bounded by: the
//! core's limits; the driver adds no queue of its own but that of questions (`tidings_common::Answerer`).
//!
//! A [`Node`] or a [`StationServer`] is one machine of the core behind one mutex that is held for
//! one call at a time, a task per link and one for the timer; a node has a few threads beside, which
//! check signatures ([`NodeBuilder::verify_threads`]), and one while [`Answers`] are asked.
//! Subscriptions read straight from the core, so that its bound, its `Lagged` and their place in the
//! stream hold.
//!
//! ```
#![doc = include_str!("../examples/hello.rs")]
//! ```

mod engine;
mod groups;
mod link;
mod node;
mod publish;
mod publisher;
mod server;
mod subscription;
mod verify;
mod wire;

pub use node::{Node, NodeBuilder};
pub use publish::{PUBLISH_PATIENCE, Pending};
pub use publisher::Publisher;
pub use server::{StationServer, StationServerBuilder};
pub use subscription::Subscription;
pub use tidings_common::{
    AddressError, Answers, Crowd, DoorLimits, DoorStatus, EpochFile, EpochFileError, IoCounters,
    Nobody, Reply, SharedKeys, SharedKeysFault, StartError, StationAddress, StationSettings, Table,
    TurnedAway, WaitError,
};
pub use tidings_tls::{TlsFault, TlsFaults};
