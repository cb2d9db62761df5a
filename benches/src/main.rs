//! The goals of tidings' speed, measured and judged: `cargo run -p tidings-benches --profile dist [-- GOAL...]`.
//!
//! One line per goal: what was measured, what was to be reached, and whether it was. `benches/README.md` explains each.

use tidings_benches::goals::{COUNTED, TIMED};
use tidings_benches::harness::measure;
use tidings_benches::line::print;

fn main() {
    let wanted: Vec<u8> = std::env::args()
        .skip(1)
        .filter_map(|goal| goal.parse().ok())
        .collect();
    let chosen = |goals: &[u8]| wanted.is_empty() || goals.iter().any(|goal| wanted.contains(goal));
    let timed = TIMED.iter().filter(|timed| chosen(timed.goals));
    let mut groups: Vec<_> = timed.map(|timed| (timed.group)()).collect();
    let mut lines = measure(&mut groups);
    let counted = COUNTED.iter().filter(|counted| chosen(counted.goals));
    lines.extend(counted.flat_map(|counted| (counted.lines)()));
    print(&mut lines);
}
