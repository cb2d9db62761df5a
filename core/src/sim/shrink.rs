//! Makes a run that fails as short as it can be and still fail in the same way.
//!
//! Decides: which acts are left out next. Leaves to others: running. Believes: nothing. Bounded by: a number of runs.

use alloc::vec::Vec;

use super::{Options, Outcomes, run};

/// The shortest run that was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shrunk {
    /// The acts that are left out.
    pub without: Vec<usize>,
    /// What came of it, with its trace.
    pub outcome: Outcomes,
    /// How many runs it took.
    pub runs: usize,
}

/// Leaves out acts of a failing run as long as the same rule stays broken, first many at once, then single ones. `None` when it does not
/// fail. At most `most` runs.
pub fn shrink(seed: u64, options: &Options, most: usize) -> Option<Shrunk> {
    let mut options = options.clone();
    options.trace = false;
    let first = run(seed, &options);
    let rule = first.broken.first()?.rule;
    let acts = first.acts;
    let mut runs = 1;
    let mut chunk = acts.div_ceil(2).max(1);
    loop {
        let mut smaller = false;
        let left: Vec<usize> = (0..acts).filter(|act| !options.masks(*act)).collect();
        for group in left.chunks(chunk) {
            if runs >= most {
                break;
            }
            let mut trial = options.clone();
            trial.without.extend_from_slice(group);
            trial.without.sort_unstable();
            runs += 1;
            if run(seed, &trial)
                .broken
                .iter()
                .any(|broken| broken.rule == rule)
            {
                options = trial;
                smaller = true;
            }
        }
        if chunk == 1 && (!smaller || runs >= most) {
            break;
        }
        chunk = (chunk / 2).max(1);
    }
    options.trace = true;
    Some(Shrunk {
        outcome: run(seed, &options),
        without: options.without,
        runs: runs + 1,
    })
}
