//! Sealed groups at a node: what is opened, what is told instead, and that nothing is sent in the clear.

#[path = "../common/mod.rs"]
mod common;
mod opening;
mod publishing;
mod rig;
mod rules;
