//! The tidings command: a station, a publisher and a subscriber to try and to script, a demonstration that checks itself, and the
//! meaning of every code.
//!
//! Decides: which command runs. Leaves to others: the commands. Believes: no clock. Bounded by: each command's own module.

mod args;
mod audit;
mod bench;
mod config;
mod conformance;
mod demo;
mod exit;
mod explain;
mod groupfile;
mod holes;
mod human;
mod json;
mod keyfile;
mod lines;
mod node;
mod output;
mod payload;
mod publish;
mod resume;
mod show;
mod signals;
mod sourcefile;
mod station;
mod subscribe;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use args::Command;
use exit::{Exit, Failure, say};

fn main() -> ExitCode {
    let outcome = match args::parse() {
        Ok(cli) => run(cli.command),
        Err(ended) => ended,
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            say(&failure);
            failure.exit.into()
        }
    }
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Bench(command) => block_on(bench::run(command)),
        Command::Config(command) => config::run(&command),
        Command::Conformance(args) => conformance::run(&args),
        Command::Demo(args) => block_on(demo::run(args)),
        Command::Explain { code } => explain::run(code.as_deref()),
        Command::Group(command) => groupfile::run(&command),
        Command::Keygen { file } => {
            let key = keyfile::generate(&file)?;
            exit::print(&format!("{}\n", key.node_id()))
        }
        Command::Pub(args) => block_on(publish::run(args)),
        Command::Station(args) => block_on(station::run(args)),
        Command::Sub(args) => block_on(subscribe::run(args)),
    }
}

/// Runs a command on a runtime of its own. A thread that still waits for standard input does not hold the end up.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::usage(format!(
                "cannot start: the runtime gives {error}. free some resources"
            ))
        })?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_timeout(Duration::from_millis(200));
    outcome
}
