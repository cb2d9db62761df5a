//! Models the targets compare the core with: written from WIRE.md as plainly as possible, sharing no code with it.

pub mod accounts;
pub mod asks;
pub mod cbor;
pub mod cuts;
pub mod hostile;
pub mod keys;
pub mod ledger;
pub mod peer;
pub mod positions;
pub mod publication;
pub mod said;
pub mod script;
pub mod topic;
pub mod trust;
pub mod words;
