//! What a station gives a subscription that comes back with a position.

mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod model;
mod rules;
mod stretches;
mod world;
