//! What happens to a publication between the link and the reader.
//!
//! Decides: nothing itself; each machine here is one step of the way and usable alone. Leaves to others: their order (the client).
//! Believes: what each machine says. Bounded by: the storage each machine owns.

pub mod continuity;
pub mod dedup;
pub mod episode;
pub mod guess;
mod held;
pub mod lane;
pub mod latest;
pub mod order;
pub mod ranges;
pub mod sources;
pub mod stream;
