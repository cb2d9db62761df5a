//! The cases, each named after what it shows.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what
//! comes out of a driver. Bounded by: the kit's patience.

mod addresses;
mod delivery;
mod isolation;
mod silence;
mod stations;

pub use addresses::*;
pub use delivery::*;
pub use isolation::*;
pub use silence::*;
pub use stations::*;
