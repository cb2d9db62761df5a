//! Rounds, samples, verdicts.
//!
//! Every series gives one sample per round, a few milliseconds long, and the rounds go over all of them, so that whatever slows the machine
//! slows what is compared alike. Time is the thread's CPU time. A figure is the least of the samples: noise only adds.

use std::io::Write;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Samples of each series.
const ROUNDS: usize = 25;

/// The CPU time of this thread.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// Nanoseconds of CPU time for one of `count` events handled by `work`.
pub(crate) fn each(count: usize, work: impl FnOnce()) -> f64 {
    let before = cpu();
    work();
    (cpu() - before).as_nanos() as f64 / count as f64
}

/// Series that share what they work on.
pub(crate) trait Group {
    /// One sample of each of its series, always in the same order: nanoseconds per event.
    fn round(&mut self) -> Vec<f64>;

    /// Checks what was computed, and judges the least sample of each series.
    fn lines(&mut self, least: &[f64]) -> Vec<Line>;
}

/// How a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    FallsShort,
}

/// One goal.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) goal: &'static str,
    pub(crate) what: &'static str,
    pub(crate) figure: String,
    pub(crate) wanted: String,
    pub(crate) verdict: Verdict,
}

impl Line {
    /// A time beside a limit that is a multiple of another time.
    pub(crate) fn ratio(
        goal: &'static str,
        what: &'static str,
        [time, base]: [f64; 2],
        wanted: f64,
    ) -> Self {
        let ratio = time / base;
        Self {
            goal,
            what,
            figure: format!("{} = {ratio:.3} x {}", nanos(time), nanos(base)),
            wanted: format!("<= {wanted} x"),
            verdict: verdict(ratio <= wanted),
        }
    }

    /// A time beside a limit.
    pub(crate) fn time(goal: &'static str, what: &'static str, time: f64, wanted: f64) -> Self {
        Self {
            goal,
            what,
            figure: nanos(time),
            wanted: format!("<= {}", nanos(wanted)),
            verdict: verdict(time <= wanted),
        }
    }

    /// Allocations for each event.
    pub(crate) fn allocations(
        goal: &'static str,
        what: &'static str,
        [allocations, events]: [u64; 2],
        wanted: u64,
    ) -> Self {
        Self {
            goal,
            what,
            figure: format!("{:.3} each", allocations as f64 / events as f64),
            wanted: format!("<= {wanted}"),
            verdict: verdict(allocations <= wanted * events),
        }
    }
}

fn verdict(reached: bool) -> Verdict {
    if reached {
        Verdict::Pass
    } else {
        Verdict::FallsShort
    }
}

fn nanos(time: f64) -> String {
    if time < 10_000.0 {
        format!("{time:.0} ns")
    } else {
        format!("{:.1} us", time / 1000.0)
    }
}

/// All rounds over all groups; shows how far it is.
pub(crate) fn measure(groups: &mut [&mut dyn Group]) -> Vec<Line> {
    let mut least: Vec<Vec<f64>> = groups.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        eprint!("\rround {} of {ROUNDS} ", round + 1);
        for (group, least) in groups.iter_mut().zip(&mut least) {
            let samples = group.round();
            least.resize(samples.len(), f64::INFINITY);
            for (least, sample) in least.iter_mut().zip(samples) {
                *least = least.min(sample);
            }
        }
    }
    eprintln!();
    let judged = groups.iter_mut().zip(&least);
    judged
        .flat_map(|(group, least)| group.lines(least))
        .collect()
}

/// The table.
pub(crate) fn print(lines: &[Line]) {
    let mut out = std::io::stdout().lock();
    let short = lines
        .iter()
        .filter(|line| line.verdict == Verdict::FallsShort);
    let short = short.count();
    for line in lines {
        let verdict = match line.verdict {
            Verdict::Pass => "pass",
            Verdict::FallsShort => "falls short",
        };
        let Line {
            goal,
            what,
            figure,
            wanted,
            ..
        } = line;
        // A closed pipe is the reader's choice.
        let _closed = writeln!(out, "{goal:<4}{what:<58}{figure:<34}{wanted:<12}{verdict}");
    }
    let _closed = writeln!(out, "{} lines, {short} fall short", lines.len());
}
