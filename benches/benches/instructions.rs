//! The instruction counts alone: `cargo bench -p tidings-benches --bench instructions --profile dist`.
//!
//! Runs itself under valgrind, one body at a time, and prints the same lines as the table.

use std::process::ExitCode;

use tidings_benches::counts::{self, BODIES};
use tidings_benches::{line, valgrind};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let Some(at) = words.iter().position(|word| word == "--count") {
        let body = BODIES
            .iter()
            .find(|body| words.get(at + 1).is_some_and(|name| body.name == name));
        body.expect("a body of that name").run();
        return ExitCode::SUCCESS;
    }
    match valgrind::counts() {
        Ok(counted) => {
            line::print(&mut counts::lines(counted));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
