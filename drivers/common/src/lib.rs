//! What every driver on an operating system needs, and needs only once.
//!
//! Decides: which addresses may be used, how clocks are read, how long a driver is patient. Leaves to others: sockets, threads and
//! tasks, which are the drivers'; what is free of the operating system is `tidings::pump`. Believes: the operating system's clocks
//! (`clock.rs`). Bounded by: nothing here grows.
//!
//! Applications find what is for them in the driver they use, which exports it again.

mod address;
mod clock;
mod counters;
mod epoch;
mod error;
pub mod patience;
mod random;

pub use address::{AddressError, ListenAddress, StationAddress};
pub use clock::Clock;
pub use counters::IoCounters;
pub use epoch::{EpochFile, EpochFileError};
pub use error::{StartError, WaitError};
pub use random::draw;
