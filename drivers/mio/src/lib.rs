//! The mio driver of tidings: nodes and stations on one thread each, without a runtime.
//!
//! Decides: when sockets and clocks are used. Leaves to others: every rule of tidings, which is the core's; what all drivers do alike
//! (`tidings-common`). Believes: the operating system's clocks. Bounded by: the core's limits; the driver adds no queue of its own
//! but that of questions (`tidings_common::Answerer`).
//!
//! A [`Node`] or a [`StationServer`] is a thread that waits for its sockets, and handles that block. The machine is behind one lock,
//! held for one step of the thread or one call of a handle; subscriptions read straight from the core, so that its bound, its `Lagged`
//! and their place in the stream hold, and commands need no queue between threads. Signatures are checked by that one thread;
//! [`Answers`] are asked on another, which lives while there are questions.
//!
//! ```
#![doc = include_str!("../examples/hello.rs")]
//! ```
//!
//! # In a loop of your own
//!
//! [`Driven::node`] and [`Driven::station`] make the same machine with its sockets and no thread, called by whoever owns the `mio::Poll` when one of its tokens is ready or its time has come.
//!
//! ```no_run
#![doc = include_str!("../examples/own_poll.rs")]
//! ```

mod driven;
mod node;
mod server;
mod socket;
mod thread;

pub use driven::Driven;
pub use node::{Node, Pending, Subscription};
pub use server::StationServer;
pub use tidings_common::{
    AddressError, Answers, Crowd, DoorLimits, DoorStatus, EpochFile, EpochFileError, IoCounters,
    Nobody, NodeSettings, Reply, SharedKeys, SharedKeysFault, StartError, StationSettings, Table,
    TurnedAway, WaitError,
};
pub use tidings_tls::{TlsFault, TlsFaults};
