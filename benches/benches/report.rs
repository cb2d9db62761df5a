//! The long report, with a plot of every series: `cargo bench -p tidings-benches --bench report --profile dist [-- NAME]`.
//!
//! The samples are those of the table: all series of a group are measured in turn, round by round, and then handed to criterion one by one,
//! so that its plots show the same noise for what is compared. Their times are the thread's CPU time.
#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tidings_benches::goals::TIMED;

/// Samples of each series.
const SAMPLES: usize = 30;
/// What criterion is told that one of its calls takes at least, while it finds out how many it needs.
const CALL: Duration = Duration::from_micros(200);

fn report(criterion: &mut Criterion) {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| wanted.iter().any(|word| name.contains(word.as_str()));
    let only = TIMED.iter().any(|timed| named(timed.name));
    for timed in TIMED {
        if only && !named(timed.name) {
            continue;
        }
        eprintln!("measuring {}", timed.name);
        let mut group = (timed.group)();
        let rounds: Vec<Vec<f64>> = (0..SAMPLES).map(|_| group.round()).collect();
        let mut plots = criterion.benchmark_group(timed.name);
        plots
            .sampling_mode(SamplingMode::Flat)
            .sample_size(SAMPLES)
            .warm_up_time(Duration::from_millis(1))
            .measurement_time(Duration::from_millis(10));
        for (at, series) in group.series().iter().enumerate() {
            let next = Cell::new(0);
            plots.bench_function(*series, |bencher| {
                bencher.iter_custom(|times| {
                    thread::sleep(CALL);
                    let sample = rounds[next.get() % SAMPLES][at];
                    next.set(next.get() + 1);
                    Duration::from_nanos((sample * times as f64) as u64)
                });
            });
        }
        plots.finish();
        // What was measured was right as well.
        let least = (0..group.series().len()).map(|at| {
            let samples = rounds.iter().map(|round| round[at]);
            samples.fold(f64::INFINITY, f64::min)
        });
        let least: Vec<f64> = least.collect();
        group.lines(&least);
    }
}

criterion_group!(benches, report);
criterion_main!(benches);
