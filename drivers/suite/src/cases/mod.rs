//! The cases, each named after what it shows.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what
//! comes out of a driver. Bounded by: the kit's patience.

mod addresses;
mod attacks;
mod channels;
mod delivery;
mod doors;
mod groups;
mod isolation;
mod keys;
mod silence;
mod sockets;
mod sources;
mod stations;

pub use addresses::*;
pub use attacks::*;
pub use channels::*;
pub use delivery::*;
pub use doors::*;
pub use groups::*;
pub use isolation::*;
pub use keys::*;
pub use silence::*;
pub use sockets::*;
pub use sources::*;
pub use stations::*;
