//! What every driver on an operating system needs, and needs only once.
//!
//! Decides: which addresses may be used, how clocks are read, how long a driver is patient, who may come in, when a link reads and writes. Leaves to
//! others: sockets, threads and tasks, which are the drivers'; what is free of the operating system is `tidings::pump`. Believes: the
//! operating system's clocks (`clock.rs`). Bounded by: what each module says.
//!
//! Applications find what is for them in the driver they use, which exports it again.

mod address;
mod answers;
mod clock;
mod counters;
mod doors;
mod epoch;
mod error;
mod link;
mod opening;
pub mod patience;
mod random;
mod run;
mod seats;
mod settings;
mod shared_keys;
mod table;
mod turns;
mod wire;

pub use address::{AddressError, ListenAddress, StationAddress};
pub use answers::{Answerer, Answers, Nobody, Reply};
pub use clock::Clock;
pub use counters::IoCounters;
pub use doors::{Crowd, DoorLimits, DoorStatus, Doors, Guest, TurnedAway};
pub use epoch::{EpochFile, EpochFileError};
pub use error::{StartError, WaitError};
pub use link::Link;
pub use opening::Opening;
pub use random::draw;
pub use run::{Run, keys_pending};
pub use seats::{Dial, Did, Seats};
pub use settings::{NodeParts, NodeSettings, StationParts, StationSettings};
pub use shared_keys::{SharedKeys, SharedKeysFault};
pub use table::Table;
pub use wire::{Came, MOST_READ, Socket, Went, Wire, dial_failure, not_now};
