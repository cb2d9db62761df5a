//! The keys of the scripts' groups, and how long whoever was given one may use it.

use std::ops::Range;

use tidings::code::SealPolicy;
use tidings::crypto::{PeriodKey, Subkey, Subkey1};
use tidings::keyring::{ACCEPT_MS, KeyPeriod, Which};
use tidings::sim::START;
use tidings::{KeyPeriods, NodeId, WallMs};

/// The groups there are.
pub const PREFIXES: [&str; 3] = ["a/b", "a/c", "a/b/x"];

/// How long a period is sealed under.
pub const ROTATION_MS: u64 = 60_000;
/// By how much clocks may differ.
const SKEW_MS: u64 = 300_000;
/// The number of the period at the start.
const FIRST: u64 = 10_000;
/// One that nobody gives out.
pub const UNKNOWN: u64 = 3 * FIRST;

/// The period that is sealed under at this time.
pub fn current(wall: WallMs) -> u64 {
    FIRST.saturating_add_signed(wall.since(START).div_euclid(ROTATION_MS as i64))
}

/// When it is sealed under, in Unix ms.
pub fn sealed_under(period: u64) -> Range<u64> {
    let from = START.as_millis() + period * ROTATION_MS - FIRST * ROTATION_MS;
    from..from + ROTATION_MS
}

/// Until when it opens, in Unix ms.
pub fn opens_until(period: u64) -> u64 {
    sealed_under(period).end + ACCEPT_MS + SKEW_MS
}

/// Whether whoever gives keys out may know it.
pub fn is_known(period: u64) -> bool {
    (FIRST / 2..FIRST + FIRST).contains(&period)
}

/// Two groups may name their keys alike.
pub fn id_of(period: u64) -> [u8; 8] {
    period.to_be_bytes()
}

fn secret(group: usize, period: u64, wrong: bool) -> [u8; 32] {
    let mut secret = [0x5a ^ u8::from(wrong); 32];
    secret[0] = group as u8;
    secret[1..9].copy_from_slice(&id_of(period));
    secret
}

fn key(group: usize, period: u64) -> PeriodKey {
    PeriodKey::new(id_of(period), secret(group, period, false))
}

/// Of the other key that an answer may give.
pub fn wrong_subkey(group: usize, period: u64, publisher: &NodeId) -> Subkey {
    let key = PeriodKey::new(id_of(period), secret(group, period, true));
    Subkey::derive(&key, publisher)
}

pub fn subkey(group: usize, period: u64, publisher: &NodeId) -> Subkey {
    Subkey::derive(&key(group, period), publisher)
}

pub fn subkey1(group: usize, period: u64, publisher: &NodeId) -> Subkey1 {
    Subkey1::derive(&key(group, period), publisher)
}

/// What is wrong with an answer, if anything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Nothing that can be seen: another key than the one that is sealed under.
    Secret,
    TooMany,
    Apart,
    TooShort,
    Acceptance,
}

/// An answer that hands out this period and so many that follow it.
pub fn answer(
    group: usize,
    policy: SealPolicy,
    period: u64,
    following: u64,
    fault: Fault,
) -> KeyPeriods {
    let more = if fault == Fault::TooMany { 2 } else { 0 };
    let step = if fault == Fault::Apart { 2 } else { 1 };
    let numbers = (0..=following + more).map(|n| period + n * step);
    let periods = numbers.map(|n| {
        let Range { start, end } = sealed_under(n);
        let until = if fault == Fault::TooShort {
            start + 59_999
        } else {
            end
        };
        let secret = secret(group, n, fault == Fault::Secret);
        let mut made = KeyPeriod::new(id_of(n), secret, WallMs::new(start), WallMs::new(until));
        if fault == Fault::Acceptance {
            made.accept_until = made.accept_until.saturating_sub(1);
        }
        made
    });
    KeyPeriods {
        policy,
        periods: periods.collect(),
    }
}

/// Whether such an answer may be used: it is about what was asked, and about now.
pub fn is_usable(which: Which, period: u64, following: u64, fault: Fault, wall: WallMs) -> bool {
    let wall = wall.as_millis();
    let Range { start, end } = sealed_under(period);
    let suits = match which {
        Which::Current => following < 2 && start <= wall + SKEW_MS && wall < end + SKEW_MS,
        Which::One(id) => {
            id == id_of(period)
                && following == 0
                && start <= wall + SKEW_MS + ROTATION_MS / 3
                && wall <= opens_until(period)
        }
        _ => false,
    };
    // One alone is apart from none.
    let shaped =
        matches!(fault, Fault::None | Fault::Secret) || (fault == Fault::Apart && following == 0);
    suits && shaped
}

/// When a key was given, by both clocks: what it allows ends by the one that says first.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub mono_ms: u64,
    pub wall_ms: u64,
}

impl Given {
    /// Whether what it allows until then, by the wall, is over.
    pub fn is_over(self, now: Self, until: u64) -> bool {
        now.wall_ms > until || now.mono_ms > self.ends(until)
    }

    fn ends(self, until: u64) -> u64 {
        self.mono_ms + until.saturating_sub(self.wall_ms)
    }

    /// It is given again. What is held stays as it was, what is over begins anew: either way no later than this.
    pub fn again(&mut self, now: Self, until: u64) {
        if self.is_over(now, until) || self.ends(until) < now.ends(until) {
            *self = now;
        }
    }
}
