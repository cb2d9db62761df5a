//! Builds the peers that need dependencies of their own, runs them, and takes their lines.
//!
//! Decides: where they are built. Leaves to others: what they measure (`benches/peers`). Believes: no clock. Bounded by: one build and one
//! run.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::line::Line;

/// Where this crate's sources are.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Lines of the peers; their progress is shown as it comes.
///
/// # Errors
/// When they cannot be built or run.
pub fn lines() -> io::Result<Vec<Line>> {
    let target = target()?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    eprintln!("building benches/peers (the first time takes minutes)");
    let built = Command::new(cargo)
        .args(["build", "--locked", "--profile", "dist", "--target-dir"])
        .arg(&target)
        // From here, so that the repository's settings hold for it as well.
        .current_dir(Path::new(HERE).join("peers"))
        .status()?;
    if !built.success() {
        return Err(io::Error::other("benches/peers does not build"));
    }
    let run = Command::new(target.join("dist/tidings-bench-peers"))
        .stderr(Stdio::inherit())
        .output()?;
    if !run.status.success() {
        return Err(io::Error::other("benches/peers failed"));
    }
    let said = String::from_utf8_lossy(&run.stdout);
    Ok(said.lines().filter_map(Line::parse).collect())
}

/// Beside what this program itself was built in.
fn target() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let target = program.parent().and_then(Path::parent);
    let target = target.ok_or_else(|| io::Error::other("no target directory"))?;
    Ok(target.join("peers"))
}
