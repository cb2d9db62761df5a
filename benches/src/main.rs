//! The goals of tidings' speed, measured and judged: `cargo run -p tidings-benches --profile dist`.
//!
//! One line per goal: what was measured, what was to be reached, and whether it was. `benches/README.md` explains each.

mod goals;
mod harness;
mod world;

use crate::goals::{allocations, codec, publish, receive};
use crate::harness::{Group, measure, print};

fn main() {
    let mut receive = receive::Receive::new();
    let mut codec = codec::Codec::new();
    let mut publish = publish::Publish::new();
    let groups: &mut [&mut dyn Group] = &mut [&mut receive, &mut codec, &mut publish];
    let mut lines = measure(groups);
    lines.extend(allocations::lines());
    print(&lines);
}
