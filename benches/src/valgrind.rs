//! Runs this program under valgrind and reads its instruction counts.
//!
//! Decides: how a count is taken. Leaves to others: what is counted (`counts`). Believes: no clock. Bounded by: the bodies there are, two at
//! a time.
//!
//! Counts repeat exactly. Valgrind's processor has no SHA extensions and no AVX-512: they are those of the portable code.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::counts::{BODIES, Body};

/// What is said when there is no valgrind.
pub const MISSING: &str = "no instruction counts (I) of goals 1, 2, 3, 5, 6, 7 and 19: valgrind is not installed; benches/instructions does that";

/// Whether it is there.
pub fn is_installed() -> bool {
    let asked = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// The count of every body for one event, in the order of [`BODIES`].
///
/// # Errors
/// When valgrind cannot be run, or does not say what it counted.
pub fn counts() -> io::Result<[f64; BODIES.len()]> {
    let program = std::env::current_exe()?;
    let mut counts = [0.0; BODIES.len()];
    for (bodies, counts) in BODIES.chunks(2).zip(counts.chunks_mut(2)) {
        let found: Vec<io::Result<f64>> = thread::scope(|scope| {
            let running = bodies.iter().map(|body| {
                let program = &program;
                scope.spawn(move || count(program, body))
            });
            let running: Vec<_> = running.collect();
            let results = running.into_iter().map(|one| one.join());
            results
                .map(|result| result.unwrap_or_else(|_| Err(io::Error::other("a count ended"))))
                .collect()
        });
        for (count, found) in counts.iter_mut().zip(found) {
            *count = found?;
        }
    }
    Ok(counts)
}

fn count(program: &Path, body: &Body) -> io::Result<f64> {
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*counts::counted*"])
        .arg(program)
        .args(["--count", body.name])
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&run.stderr);
    let collected = said.lines().find_map(|line| {
        line.split_once("Collected : ")?
            .1
            .trim()
            .parse::<f64>()
            .ok()
    });
    match collected.filter(|count| run.status.success() && *count > 0.0) {
        Some(count) => Ok(count / body.events as f64),
        None => Err(io::Error::other(format!("{}: {said}", body.name))),
    }
}
