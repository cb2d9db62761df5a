//! Who may speak: facts whose publishers are looked up, at the subscriber.

mod attack;
mod cases;
#[path = "../common/mod.rs"]
mod common;
mod holds;
mod rig;
mod rules;
mod strangers;
mod ticks;
