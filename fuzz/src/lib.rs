//! Models the targets compare the core with: written from WIRE.md as plainly as possible, sharing no code with it.

pub mod cbor;
pub mod cuts;
pub mod publication;
pub mod topic;
