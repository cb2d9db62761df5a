//! Seed and entropy from the operating system.
//!
//! Decides: nothing. Leaves to others: spreading and drawing (`tidings::Seed`, `tidings::Entropy`).
//! Believes: no clock. Bounded by: 64 bytes drawn per machine.

use tidings::{Entropy, Seed};

use crate::StartError;

/// What one machine needs.
///
/// # Errors
/// [`StartError::NoRandomness`].
pub fn draw() -> Result<(Seed, Entropy), StartError> {
    let mut seed = [0; 32];
    let mut entropy = [0; 32];
    let filled = getrandom::fill(&mut seed).and_then(|()| getrandom::fill(&mut entropy));
    filled.map_err(|_| StartError::NoRandomness)?;
    Ok((Seed::new(seed), Entropy::from_os(entropy)))
}
