//! The goals of tidings' speed, measured and judged: `cargo run -p tidings-benches --profile dist`.
//!
//! One line per goal: what was measured, what was to be reached, and whether it was. `benches/README.md` explains each.

use std::process::ExitCode;

use tidings_benches::counts::{self, BODIES};
use tidings_benches::goals::{COUNTED, TIMED};
use tidings_benches::harness::{ROUNDS, measure};
use tidings_benches::line::{self, Line};
use tidings_benches::{budget, peers, valgrind};

const USAGE: &str = "\
usage: tidings-benches [--no-peers] [--no-instructions] [--quick] [--gate] [GOAL...]

  GOAL               only these goals, by number
  --no-peers         leave out what needs benches/peers (goals 7 in part, and 13), which takes minutes to build
  --no-instructions  leave out the instruction counts, which take a minute and need valgrind
  --quick            3 rounds in place of 25: times say nothing then, counts are the same
  --gate             fail when a count, of allocations, bytes or instructions, is beyond its goal or its line in budget.txt
  --count NAME       run one body whose instructions are counted, and nothing else";

/// Goals that have instruction counts, and goals of the peers.
const INSTRUCTIONS: &[u8] = &[1, 2, 3, 5, 6, 7, 19];
const PEERS: &[u8] = &[7, 11, 13];

#[derive(Default)]
struct Options {
    goals: Vec<u8>,
    no_peers: bool,
    no_instructions: bool,
    quick: bool,
    gate: bool,
    count: Option<String>,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--no-peers" => options.no_peers = true,
                "--no-instructions" => options.no_instructions = true,
                "--quick" => options.quick = true,
                "--gate" => options.gate = true,
                "--count" => options.count = Some(words.next()?),
                goal => options.goals.push(goal.parse().ok()?),
            }
        }
        Some(options)
    }

    fn rounds(&self) -> usize {
        if self.quick { 3 } else { ROUNDS }
    }

    fn wants(&self, goals: &[u8]) -> bool {
        self.goals.is_empty() || goals.iter().any(|goal| self.goals.contains(goal))
    }
}

fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Some(name) = &options.count {
        let Some(body) = BODIES.iter().find(|body| body.name == name) else {
            eprintln!("no such body; there are {BODIES:?}");
            return ExitCode::from(2);
        };
        body.run();
        return ExitCode::SUCCESS;
    }
    let mut missing = Vec::new();
    let mut lines = table(&options, &mut missing);
    line::print(&mut lines);
    for missing in &missing {
        println!("{missing}");
    }
    let wrong = budget::exceeded(&lines);
    if !options.gate || wrong.is_empty() {
        return ExitCode::SUCCESS;
    }
    for wrong in wrong {
        println!("not allowed: {wrong}");
    }
    ExitCode::FAILURE
}

/// All lines that are wanted, and what could not be had.
fn table(options: &Options, missing: &mut Vec<String>) -> Vec<Line> {
    let timed = TIMED.iter().filter(|timed| options.wants(timed.goals));
    let mut groups: Vec<_> = timed.map(|timed| (timed.group)()).collect();
    let mut lines = measure(&mut groups, options.rounds());
    drop(groups);
    let counted = COUNTED
        .iter()
        .filter(|counted| options.wants(counted.goals));
    lines.extend(counted.flat_map(|counted| (counted.lines)()));
    if options.wants(INSTRUCTIONS) {
        match instructions(options) {
            Ok(counted) => lines.extend(counted),
            Err(why) => missing.push(why),
        }
    }
    if options.wants(PEERS) {
        match options.no_peers {
            true => missing.push(
                "left out, as asked for: goal 13, and goals 7 and 11 in part (benches/peers)"
                    .to_owned(),
            ),
            false => match peers::lines() {
                Ok(found) => lines.extend(found),
                Err(error) => missing.push(format!("no peers: {error}")),
            },
        }
    }
    lines.retain(|line| options.wants(&[line.goal]));
    lines
}

fn instructions(options: &Options) -> Result<Vec<Line>, String> {
    if options.no_instructions {
        return Err(
            "left out, as asked for: instruction counts (I) of goals 1, 2, 3, 5, 6, 7 and 19"
                .to_owned(),
        );
    }
    if !valgrind::is_installed() {
        return Err(valgrind::MISSING.to_owned());
    }
    eprintln!("counting instructions");
    let counted = valgrind::counts().map_err(|error| format!("no instruction counts: {error}"))?;
    Ok(counts::lines(counted))
}
