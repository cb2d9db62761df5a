//! What the speed table measures: the bodies of every goal, and the rounds they are measured in.
//!
//! Decides: what each goal is measured by (`goals`). Leaves to others: the table (`main.rs`), the report and the instruction counts
//! (`benches/`), peers that need other dependencies (`peers/`). Believes: the thread's CPU clock. Bounded by: the rounds.

pub mod budget;
pub mod counts;
pub mod goals;
pub mod harness;
pub mod line;
mod maps;
pub mod peers;
mod random;
pub mod reader;
mod rights;
pub mod valgrind;
pub mod world;
