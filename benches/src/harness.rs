//! Rounds and samples.
//!
//! Decides: how series are measured against each other. Leaves to others: what they do, and what their figures mean (`line.rs`). Believes:
//! the thread's CPU clock. Bounded by: a number of rounds.
//!
//! Every series gives one sample per round, a few milliseconds long, and the rounds go over all of them, so that whatever slows the machine
//! slows what is compared alike. A figure is the least of the samples: noise only adds.

use std::io::{self, IsTerminal};
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::line::Line;

/// Samples of each series that say something.
pub const ROUNDS: usize = 25;

/// The CPU time of this thread.
pub(crate) fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// Does `work` on one core, the threads it starts included. Between two threads that hand bytes to each other nothing is then left to
/// chance: who waits is woken when the other one waits. Where that cannot be had it says so, and goes on without.
pub(crate) fn on_one_core<R>(work: impl FnOnce() -> R) -> R {
    let all = pin();
    if all.is_none() {
        eprintln!("no core of its own to be had: times between threads swing");
    }
    let result = work();
    #[cfg(target_os = "linux")]
    if let Some(all) = all {
        sched_setaffinity(None, &all).ok();
    }
    result
}

/// Keeps this thread on the last of its cores; answers which it had.
#[cfg(target_os = "linux")]
fn pin() -> Option<CpuSet> {
    let all = sched_getaffinity(None).ok()?;
    let last = (0..CpuSet::MAX_CPU).rfind(|core| all.is_set(*core))?;
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one).ok().map(|()| all)
}

#[cfg(not(target_os = "linux"))]
fn pin() -> Option<()> {
    None
}

/// Nanoseconds of CPU time for one of `count` events handled by `work`.
pub fn each(count: usize, work: impl FnOnce()) -> f64 {
    let before = cpu();
    work();
    (cpu() - before).as_nanos() as f64 / count as f64
}

/// Series that share what they work on.
pub trait Group {
    /// Names of its series, for reports.
    fn series(&self) -> &'static [&'static str];

    /// One sample of each series, in their order: nanoseconds per event.
    fn round(&mut self) -> Vec<f64>;

    /// Checks what was computed, and judges the least sample of each series.
    fn lines(&mut self, least: &[f64]) -> Vec<Line>;
}

/// All rounds over all groups; shows how far it is. Answers their lines.
pub fn measure(groups: &mut [Box<dyn Group>], rounds: usize) -> Vec<Line> {
    let mut least: Vec<Vec<f64>> = groups.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        match io::stderr().is_terminal() {
            true => eprint!("\rround {} of {rounds} ", round + 1),
            false if round % 5 == 0 => eprintln!("round {} of {rounds}", round + 1),
            false => (),
        }
        for (group, least) in groups.iter_mut().zip(&mut least) {
            let samples = group.round();
            least.resize(samples.len(), f64::INFINITY);
            for (least, sample) in least.iter_mut().zip(samples) {
                *least = least.min(sample);
            }
        }
    }
    if io::stderr().is_terminal() {
        eprintln!();
    }
    let judged = groups.iter_mut().zip(&least);
    judged
        .flat_map(|(group, least)| group.lines(least))
        .collect()
}
