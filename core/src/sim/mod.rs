//! The simulation (feature `sim`): its own keys, a network on a clock moved by hand, and whole systems drawn from a seed.
//!
//! Decides: a fake profile whose signatures are cheap, so that a simulated day is spent in the machines and not in curve arithmetic.
//! Leaves to others: real keys. Believes: no clock. Bounded by: fixed sizes.
//!
//! A machine built with [`FAKE_PROFILE`] accepts no other profile, and no machine built with another accepts this one.
//!
//! [`Net`] joins machines for a test that knows what it wants. [`run`] draws hosts, ways, subscriptions, publications and faults from a
//! seed, lets them happen, lets everything come to rest, and then holds what every stream said against what really happened, counted from the
//! payloads outside the machines. A run depends on its seed and [`Options`] alone; [`shrink()`] finds the fewest acts with which it still fails.

mod acts;
mod afar;
mod cable;
mod check;
mod clock;
mod draw;
mod hash;
mod hold;
mod keep;
mod keys;
mod listen;
mod lookups;
mod more;
mod net;
mod plan;
mod populate;
mod report;
mod sabotage;
mod said;
mod secrets;
mod shrink;
mod tap;
mod trace;
mod truth;
mod world;

use alloc::vec::Vec;

use sha2::{Digest, Sha256};

pub use self::net::{Net, START, entropy};
pub use self::plan::Fault;
pub use self::report::{Broken, Outcomes, Tally};
pub use self::sabotage::Sabotage;
pub use self::shrink::{Shrunk, shrink};
use crate::crypto::{Profile, SignError, Signer};

/// How a run is driven and looked at.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Keep the lines of the trace.
    pub trace: bool,
    /// A bug to be planted.
    pub sabotage: Option<Sabotage>,
    /// How machines are drained.
    pub habit: Habit,
    /// Ed25519 in place of the fake profile.
    pub real_keys: bool,
    /// Acts that are left out, by their place; sorted.
    pub without: Vec<usize>,
}

impl Options {
    fn masks(&self, act: usize) -> bool {
        self.without.binary_search(&act).is_ok()
    }
}

/// When streams are read, and in which pieces bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Habit {
    /// As soon as there is something.
    #[default]
    Prompt,
    /// Bytes in pieces of at most `cut`, streams at every so manyth moment whether or not they said they have something.
    Small {
        /// Bytes per read.
        cut: usize,
        /// Moments between two looks at the streams.
        every: u32,
    },
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Outcomes {
    let plan = plan::Plan::draw(seed);
    let mut world = world::World::new(plan, options.clone());
    let acts = world.plan.acts.len();
    world.run();
    let broken = world.judge();
    Outcomes {
        seed,
        trace: world.whole_hash(),
        streams: world.stream_hashes(),
        tally: world.tally,
        broken,
        lines: world.trace.lines,
        acts,
    }
}

/// What was drawn from a seed, in one number: whether it still stands for the run it stood for.
pub fn drawn(seed: u64) -> u64 {
    let mut hash = hash::Hash::default();
    let plan = plan::Plan::draw(seed);
    let more = more::More::draw(&plan);
    hash.bytes(alloc::format!("{plan:?}").as_bytes());
    if more.is_any() {
        hash.bytes(alloc::format!("{more:?}").as_bytes());
    }
    let secrets = secrets::Secrets::draw(&plan);
    if secrets.on {
        hash.bytes(alloc::format!("{secrets:?}").as_bytes());
    }
    let lookups = lookups::Lookups::draw(&plan);
    if lookups.on {
        hash.bytes(alloc::format!("{lookups:?}").as_bytes());
    }
    let afar = afar::Afar::draw(&plan, secrets.on, lookups.on, &more.commits);
    if afar.is_any() {
        hash.bytes(alloc::format!("{afar:?}").as_bytes());
    }
    hash.value() as u64
}

/// A keyed hash in place of signatures. Anyone can forge it: for simulations alone.
pub const FAKE_PROFILE: Profile = Profile::FAKE;

/// A signer of the fake profile; equal seeds make equal keys.
pub fn fake_signer(seed: u64) -> impl Signer + Clone + core::fmt::Debug + 'static {
    let key = Sha256::new()
        .chain_update(b"tidings fake key")
        .chain_update(seed.to_be_bytes())
        .finalize()
        .into();
    FakeSigner { key }
}

#[derive(Clone, Debug)]
struct FakeSigner {
    key: [u8; 32],
}

impl Signer for FakeSigner {
    fn profile(&self) -> Profile {
        FAKE_PROFILE
    }

    fn public_key(&self) -> [u8; 32] {
        self.key
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        Ok(fake_signature(&self.key, parts))
    }
}

pub(crate) fn fake_signature(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 64] {
    let mut hash = Sha256::new_with_prefix(key);
    for part in parts {
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut signature = [0; 64];
    let (first, second) = signature.split_at_mut(32);
    first.copy_from_slice(&digest);
    second.copy_from_slice(key);
    signature
}
