//! Whole systems, drawn from seeds, broken on purpose, and held to the ledger.
//!
//! ```text
//! cargo run --release --features sim --example sim -- --seed 7 --trace     one seed, as a table
//! cargo run --release --features sim --example sim -- --count 2000         a band, over all cores
//! ```
//!
//! `--seeds A..B` runs that band, `--count N` the first N, `--step N` of a band every so manyth alone, those of one kind. `--seed N` runs one,
//! `--trace` shows it. A seed that fails is printed with the rules it broke and shrunk to the fewest acts with which it still fails. `--check-habits` runs each seed a second time, read lazily and in small
//! pieces, and a third time as it was, and wants the same streams; `--real-keys` runs it with Ed25519 as well and wants the same trace.
//! `--lazily` shows the trace as it is read so. `--json` prints one object per line. `--threads N`, `--no-shrink`, `--allow-absent` (a kind of fault or notice may be missing).

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidings::sim::{Broken, Habit, Options, Outcomes, Tally, drawn, run, shrink};

#[derive(Clone, Debug)]
struct Wanted {
    seeds: std::ops::Range<u64>,
    step: u64,
    single: bool,
    trace: bool,
    json: bool,
    habits: bool,
    lazily: bool,
    real_keys: bool,
    shrink: bool,
    allow_absent: bool,
    threads: usize,
}

fn parse() -> Result<Wanted, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut wanted = Wanted {
        seeds: 0..2000,
        step: 1,
        single: false,
        trace: false,
        json: false,
        habits: false,
        lazily: false,
        real_keys: false,
        shrink: true,
        allow_absent: false,
        threads,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("not a number: {text}"))
        };
        match word.as_str() {
            "--seed" => {
                let seed = number(&value()?)?;
                wanted.seeds = seed..seed + 1;
                wanted.single = true;
                wanted.allow_absent = true;
            }
            "--seeds" => {
                let text = value()?;
                let (from, to) = text.split_once("..").ok_or("--seeds wants A..B")?;
                wanted.seeds = number(from)?..number(to)?;
            }
            "--step" => wanted.step = number(&value()?)?.max(1),
            "--count" => wanted.seeds = 0..number(&value()?)?,
            "--threads" => wanted.threads = number(&value()?)?.max(1) as usize,
            "--trace" => wanted.trace = true,
            "--json" => wanted.json = true,
            "--check-habits" => wanted.habits = true,
            "--lazily" => wanted.lazily = true,
            "--real-keys" => wanted.real_keys = true,
            "--no-shrink" => wanted.shrink = false,
            "--allow-absent" => wanted.allow_absent = true,
            other => return Err(format!("unknown: {other}")),
        }
    }
    Ok(wanted)
}

fn main() -> ExitCode {
    let wanted = match parse() {
        Ok(wanted) => wanted,
        Err(error) => {
            eprintln!("sim: {error}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let (tally, failed) = if wanted.single {
        one(&wanted)
    } else {
        band(&wanted, began)
    };
    let absent = if wanted.allow_absent {
        Vec::new()
    } else {
        tally.absent()
    };
    summary(&wanted, &tally, failed, began.elapsed());
    for (set, name) in &absent {
        println!("never occurred: {set} {name}");
    }
    ExitCode::from(u8::from(failed > 0 || !absent.is_empty()))
}

/// Another way to drain the same machines.
fn lazily(seed: u64) -> Habit {
    Habit::Small {
        cut: 7 + seed as usize % 300,
        every: 1 + (seed % 5) as u32,
    }
}

/// Runs a seed as asked, and holds the further runs against the first.
fn judge(seed: u64, wanted: &Wanted) -> Outcomes {
    let options = Options::default();
    let mut outcome = run(seed, &options);
    if wanted.habits {
        let mut other = options.clone();
        other.habit = lazily(seed);
        let again = run(seed, &options);
        let lazily = run(seed, &other);
        if again.trace != outcome.trace {
            outcome
                .broken
                .push(Broken::new("same seed", "a second run has another trace"));
        }
        if lazily.trace != outcome.trace {
            outcome
                .broken
                .push(Broken::new("habits", "read lazily it has another trace"));
        }
    }
    if wanted.real_keys {
        let mut other = options;
        other.real_keys = true;
        if run(seed, &other).trace != outcome.trace {
            outcome
                .broken
                .push(Broken::new("profiles", "with Ed25519 it has another trace"));
        }
    }
    outcome
}

fn one(wanted: &Wanted) -> (Tally, u64) {
    let seed = wanted.seeds.start;
    if !wanted.json {
        println!("seed {seed}, drawn {:#018x}", drawn(seed));
    }
    let outcome = judge(seed, wanted);
    if wanted.trace {
        let mut options = Options::default();
        options.trace = true;
        if wanted.lazily {
            options.habit = lazily(seed);
        }
        show(&run(seed, &options));
    }
    let failed = u64::from(!outcome.broken.is_empty());
    if failed > 0 {
        tell(&outcome, wanted);
    }
    (outcome.tally, failed)
}

fn show(outcome: &Outcomes) {
    for line in &outcome.lines {
        println!("{line}");
    }
}

fn band(wanted: &Wanted, began: Instant) -> (Tally, u64) {
    let next = AtomicU64::new(wanted.seeds.start);
    let failed = AtomicU64::new(0);
    let all = Mutex::new(Tally::default());
    let step = wanted.step;
    let total = (wanted.seeds.end - wanted.seeds.start) / step;
    std::thread::scope(|scope| {
        for _ in 0..wanted.threads {
            scope.spawn(|| {
                let mut mine = Tally::default();
                loop {
                    let seed = next.fetch_add(step, Ordering::Relaxed);
                    if seed >= wanted.seeds.end {
                        break;
                    }
                    let outcome = judge(seed, wanted);
                    mine.add(&outcome.tally);
                    if !outcome.broken.is_empty() {
                        let before = failed.fetch_add(1, Ordering::Relaxed);
                        if before < 10 || wanted.json {
                            let _one_at_a_time = all.lock();
                            tell(&outcome, wanted);
                        }
                    }
                    let done = (seed - wanted.seeds.start) / step + 1;
                    if total >= 10_000 && done.is_multiple_of(total / 100) {
                        let failed = failed.load(Ordering::Relaxed);
                        eprintln!(
                            "{done} of {total} seeds, {failed} failed, {:.0} s",
                            began.elapsed().as_secs_f64()
                        );
                    }
                }
                if let Ok(mut all) = all.lock() {
                    all.add(&mine);
                }
            });
        }
    });
    let tally = all
        .lock()
        .map_or_else(|_| Tally::default(), |all| all.clone());
    (tally, failed.into_inner())
}

/// A seed that failed: what it broke, and the shortest way to it.
fn tell(outcome: &Outcomes, wanted: &Wanted) {
    let seed = outcome.seed;
    if wanted.json {
        for broken in &outcome.broken {
            println!(
                "{{\"seed\":{seed},\"rule\":{:?},\"how\":{:?}}}",
                broken.rule, broken.how
            );
        }
        return;
    }
    println!("seed {seed} failed");
    for broken in &outcome.broken {
        println!("  {}: {}", broken.rule, broken.how);
    }
    if !wanted.shrink {
        return;
    }
    if let Some(short) = shrink(seed, &Options::default(), 400) {
        let left = outcome.acts - short.without.len();
        println!(
            "  shrunk to {left} acts of {} in {} runs; without {:?}",
            outcome.acts, short.runs, short.without
        );
        for broken in &short.outcome.broken {
            println!("  {}: {}", broken.rule, broken.how);
        }
        show(&short.outcome);
    }
}

fn summary(wanted: &Wanted, tally: &Tally, failed: u64, took: Duration) {
    let seconds = took.as_secs_f64();
    if wanted.json {
        println!(
            "{{\"seeds\":{},\"failed\":{failed},\"seconds\":{seconds:.3},\"published\":{},\"owed\":{},\"delivered\":{}}}",
            tally.runs, tally.published, tally.owed, tally.delivered
        );
        for (set, name, count) in tally.lines() {
            println!("{{\"{set}\":{name:?},\"count\":{count}}}");
        }
        return;
    }
    for (set, name, count) in tally.lines() {
        println!("{set:<8} {name:<40} {count:>10}");
    }
    println!(
        "{} seeds in {seconds:.1} s, {failed} failed; {} published, {} refused at once, {} owed, {} delivered; before their subscription: {}",
        tally.runs, tally.published, tally.refused, tally.owed, tally.delivered, tally.excused_copy
    );
}
