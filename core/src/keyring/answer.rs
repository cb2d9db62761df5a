//! Key periods as they are handed to a keyring, and what an answer must hold.
//!
//! Decides: which answers are refused whole (WIRE.md section 6.2). Leaves to others: merging, and who may give keys out. Believes: the wall, as a
//! distributor's clock differs from it by five minutes at most. Bounded by: two periods in an answer.

use core::fmt;

use crate::crypto::PeriodKey;
use crate::time::WallMs;
use crate::wire::SKEW_MS;

/// Within this long after it stopped being sealed under, a period still opens; five minutes for clocks that differ are added.
pub const ACCEPT_MS: u64 = 3_900_000;
/// The shortest time between two key periods.
pub const MIN_ROTATION_MS: u64 = 60_000;
/// The longest.
pub const MAX_ROTATION_MS: u64 = 24 * 3_600_000;
/// Periods in an answer about what is current: that one, and the next where it is made already.
pub const MOST_PERIODS: usize = 2;

/// Which key period is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Which {
    /// What is sealed under now, and the next one if it is there already.
    Current,
    /// The one of this id.
    One([u8; 8]),
}

/// One key period. Its secret is wiped when it is dropped, and never shown.
#[derive(Debug)]
pub struct KeyPeriod {
    pub(super) key: PeriodKey,
    /// When it began: from then on it is sealed under.
    pub issued_at: WallMs,
    /// When it stops being sealed under; the next one begins.
    pub publish_until: WallMs,
    /// Until when it opens, clocks that differ aside: [`ACCEPT_MS`] after `publish_until`.
    pub accept_until: WallMs,
}

impl KeyPeriod {
    /// A period with the acceptance that every one has. The caller wipes its own copy of the secret.
    pub fn new(id: [u8; 8], secret: [u8; 32], issued_at: WallMs, publish_until: WallMs) -> Self {
        Self {
            key: PeriodKey::new(id, secret),
            issued_at,
            publish_until,
            accept_until: publish_until.saturating_add(ACCEPT_MS),
        }
    }

    /// Its key.
    pub const fn key(&self) -> &PeriodKey {
        &self.key
    }

    /// How long it is sealed under, in ms; 0 when it is upside down.
    pub fn rotation_ms(&self) -> u64 {
        u64::try_from(self.publish_until.since(self.issued_at)).unwrap_or(0)
    }

    fn check_alone(&self) -> Result<(), KeysFault> {
        let rotation = self.rotation_ms();
        if !(MIN_ROTATION_MS..=MAX_ROTATION_MS).contains(&rotation) {
            return Err(KeysFault::Rotation);
        }
        match self.accept_until == self.publish_until.saturating_add(ACCEPT_MS) {
            true => Ok(()),
            false => Err(KeysFault::Acceptance),
        }
    }
}

/// Why an answer was refused whole. Whoever gives the keys out is wrong, or its clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeysFault {
    /// A period is not accepted for 65 minutes after it stops being sealed under.
    Acceptance,
    /// It holds no period, or more than two, or more than the one that was asked for by its id.
    Count,
    /// It is no such map, or of another prefix or an unknown policy.
    Malformed,
    /// The second does not begin where the first stops, or has its id.
    NotContiguous,
    /// It holds another period than the one that was asked for, or nothing was asked.
    NotAsked,
    /// The first does not cover the present, or one that was asked for by its id is over, or begins too late.
    NotNow,
    /// A period is shorter than a minute or longer than a day.
    Rotation,
}

impl KeysFault {
    /// Its text, as in WIRE.md.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Acceptance => "acceptance",
            Self::Count => "count",
            Self::Malformed => "malformed",
            Self::NotContiguous => "not_contiguous",
            Self::NotAsked => "not_asked",
            Self::NotNow => "not_now",
            Self::Rotation => "rotation",
        }
    }
}

impl fmt::Display for KeysFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acceptance => "a period is not accepted for 65 minutes after its end",
            Self::Count => "not one or two periods, or not the one asked for alone",
            Self::Malformed => "it is no answer about this group",
            Self::NotContiguous => "the second period does not follow the first",
            Self::NotAsked => "not what was asked for",
            Self::NotNow => "the period does not cover the present",
            Self::Rotation => "a period is shorter than a minute or longer than a day",
        })
    }
}

impl core::error::Error for KeysFault {}

/// Whether an answer may be used, in the order of WIRE.md section 6.2.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_keys(which: Which, periods: &[KeyPeriod], wall: WallMs) -> Result<(), KeysFault> {
    let most = match which {
        Which::Current => MOST_PERIODS,
        Which::One(_) => 1,
    };
    let [first, next @ ..] = periods else {
        return Err(KeysFault::Count);
    };
    if periods.len() > most {
        return Err(KeysFault::Count);
    }
    periods.iter().try_for_each(KeyPeriod::check_alone)?;
    let follows =
        |next: &KeyPeriod| next.issued_at == first.publish_until && next.key.id() != first.key.id();
    if !next.iter().all(follows) {
        return Err(KeysFault::NotContiguous);
    }
    let latest = wall.saturating_add(SKEW_MS);
    let covers = match which {
        Which::Current => {
            first.issued_at <= latest && wall < first.publish_until.saturating_add(SKEW_MS)
        }
        Which::One(id) => {
            if *first.key.id() != id {
                return Err(KeysFault::NotAsked);
            }
            // One that is given out ahead begins in a third of a rotation at the latest.
            let ahead = first.rotation_ms() / 3;
            first.issued_at <= latest.saturating_add(ahead)
                && wall <= first.accept_until.saturating_add(SKEW_MS)
        }
    };
    match covers {
        true => Ok(()),
        false => Err(KeysFault::NotNow),
    }
}
