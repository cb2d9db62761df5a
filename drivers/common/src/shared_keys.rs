//! The keys of a sealed group that all its members work out of one shared secret, with nobody to ask.
//!
//! Decides: which key period it is at a time, its id and its key. Leaves to others: the file the secret lies in, and who holds it. Believes: the
//! wall it is handed; members whose clocks differ by less than five minutes agree. Bounded by: some dozens of periods tried for one id.
//!
//! A period's key is worked out when it is asked for, and kept by whoever asked, until it is over; the secret is kept as long as its node may ask.
//! Whoever has the secret has every key of the group, those of the past and those to come: it is as good as a list of members that cannot be
//! changed. To put somebody out, make a new secret and give it to the others: what is sealed from then on is closed to whoever holds the old one
//! alone. A group may have several secrets while that goes on ([`Table::group`](crate::Table::group)); 70 minutes after the last publisher took the new one
//! nothing is opened with the old one any more.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha384;
use tidings::code::{SealPolicy, UnopenedReason};
use tidings::keyring::{ACCEPT_MS, KeyPeriod, MAX_ROTATION_MS, MIN_ROTATION_MS, Which};
use tidings::topic;
use tidings::wire::SKEW_MS;
use tidings::{KeyPeriods, RealmId, WallMs};
use zeroize::{Zeroize, Zeroizing};

/// The salt of its derivation.
const LABEL: &[u8] = b"TIDINGS-SHARED-KEYS-V1";

/// A group's secret, and what goes with it: of all of it the periods are made, so that it must be equal at every member. Wiped when dropped, and never
/// shown.
#[derive(Clone)]
pub struct SharedKeys {
    realm: RealmId,
    prefix: String,
    policy: SealPolicy,
    rotation_ms: u64,
    secret: Zeroizing<[u8; 32]>,
}

/// Why a shared secret cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedKeysFault {
    /// Its prefix is no topic of two segments at least, or is one of the system's.
    Prefix,
    /// Its periods are shorter than a minute or longer than a day.
    Rotation,
}

impl fmt::Display for SharedKeysFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefix => "a group's prefix is a topic of two segments at least, such as demo/acme, and none of the system's",
            Self::Rotation => "a group's keys change after 1m to 24h",
        })
    }
}

impl core::error::Error for SharedKeysFault {}

impl SharedKeys {
    /// 32 random bytes, the same at every member; the caller wipes its own copy. `rotation_ms`: how long each key is sealed under.
    ///
    /// # Errors
    /// [`SharedKeysFault`].
    pub fn new(
        realm: RealmId,
        prefix: impl Into<String>,
        policy: SealPolicy,
        rotation_ms: u64,
        secret: &[u8; 32],
    ) -> Result<Self, SharedKeysFault> {
        let prefix = prefix.into();
        if topic::check_topic(&prefix).is_err()
            || topic::is_system(&prefix)
            || !prefix.contains('/')
        {
            return Err(SharedKeysFault::Prefix);
        }
        if !(MIN_ROTATION_MS..=MAX_ROTATION_MS).contains(&rotation_ms) {
            return Err(SharedKeysFault::Rotation);
        }
        let mut kept = Zeroizing::new([0; 32]);
        kept.copy_from_slice(secret);
        Ok(Self {
            realm,
            prefix,
            policy,
            rotation_ms,
            secret: kept,
        })
    }

    /// Its realm.
    pub fn realm(&self) -> RealmId {
        self.realm
    }

    /// Its prefix.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether a topic, or a filter, lies under its prefix.
    pub fn covers(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.prefix.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// What is asked for, at this time.
    ///
    /// # Errors
    /// `UnknownPeriod` for an id that is none of those that open now.
    pub fn periods(&self, which: Which, wall: WallMs) -> Result<KeyPeriods, UnopenedReason> {
        let given = self.work_out(which, wall);
        wipe_stack();
        given
    }

    #[inline(never)]
    fn work_out(&self, which: Which, wall: WallMs) -> Result<KeyPeriods, UnopenedReason> {
        let now = self.number(wall);
        let periods = match which {
            Which::Current => {
                let window = wall.saturating_add(self.rotation_ms / 3);
                (now..=self.number(window))
                    .map(|n| self.period(n))
                    .collect()
            }
            Which::One(id) => {
                let oldest = wall.saturating_sub(ACCEPT_MS + SKEW_MS + self.rotation_ms);
                let newest = wall.saturating_add(SKEW_MS + self.rotation_ms / 3);
                let mut some = self.number(oldest)..=self.number(newest);
                let found = some.find(|n| self.derive(*n).0 == id);
                vec![self.period(found.ok_or(UnopenedReason::UnknownPeriod)?)]
            }
            _ => return Err(UnopenedReason::UnknownPeriod),
        };
        Ok(KeyPeriods {
            policy: self.policy,
            periods,
        })
    }

    /// Which period it is.
    fn number(&self, wall: WallMs) -> u64 {
        wall.as_millis() / self.rotation_ms
    }

    fn period(&self, number: u64) -> KeyPeriod {
        let (id, secret) = self.derive(number);
        let from = number.saturating_mul(self.rotation_ms);
        let until = from.saturating_add(self.rotation_ms);
        KeyPeriod::new(id, *secret, WallMs::new(from), WallMs::new(until))
    }

    /// A period's id and key.
    fn derive(&self, number: u64) -> ([u8; 8], Zeroizing<[u8; 32]>) {
        let mut out = Zeroizing::new([0; 40]);
        self.expand(number, &mut out);
        let (mut id, mut key) = ([0; 8], Zeroizing::new([0; 32]));
        id.copy_from_slice(&out[..8]);
        key.copy_from_slice(&out[8..]);
        (id, key)
    }

    /// HKDF-SHA-384 over all that a group is, and the period's number.
    fn expand(&self, number: u64, out: &mut [u8; 40]) {
        let (mut prk, hkdf) = Hkdf::<Sha384>::extract(Some(LABEL), &*self.secret);
        let prefix_len = self.prefix.len() as u64;
        let info = [
            self.realm.as_bytes(),
            &prefix_len.to_be_bytes()[..],
            self.prefix.as_bytes(),
            &self.rotation_ms.to_be_bytes(),
            &number.to_be_bytes(),
        ];
        hkdf.expand_multi_info(&info, out)
            .expect("40 bytes are less than a block");
        prk.zeroize();
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKeys")
            .field("prefix", &self.prefix)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Overwrites the stack that working keys out used: hash states wipe nothing themselves, and they held the secret; a key that was moved to where
/// it is given out from stays where it was.
#[inline(never)]
fn wipe_stack() {
    [0u64; 1024].zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;
    const START: u64 = 1_796_040_000_000;

    fn keys(prefix: &str, rotation_ms: u64, secret: u8) -> SharedKeys {
        let realm = RealmId::of_name("demo");
        SharedKeys::new(
            realm,
            prefix,
            SealPolicy::Required,
            rotation_ms,
            &[secret; 32],
        )
        .unwrap()
    }

    fn ids(keys: &SharedKeys, which: Which, at: u64) -> Vec<([u8; 8], u64)> {
        let given = keys.periods(which, WallMs::new(at)).unwrap();
        let periods = given.periods.iter();
        periods
            .map(|period| (*period.key().id(), period.issued_at.as_millis()))
            .collect()
    }

    #[test]
    fn holders_of_one_secret_agree_and_all_else_differs() {
        let one = ids(&keys("demo/acme", 15 * MINUTE, 1), Which::Current, START);
        assert_eq!(one.len(), 1);
        assert_eq!(
            one,
            ids(&keys("demo/acme", 15 * MINUTE, 1), Which::Current, START)
        );
        let others = [
            keys("demo/acme", 15 * MINUTE, 2),
            keys("demo/acmf", 15 * MINUTE, 1),
            keys("demo/acme", 30 * MINUTE, 1),
        ];
        for other in others {
            assert_ne!(one, ids(&other, Which::Current, START), "{other:?}");
        }
    }

    #[test]
    fn the_next_period_is_given_out_in_the_last_third_of_the_current_one() {
        let keys = keys("demo/acme", 15 * MINUTE, 1);
        let last = START + 10 * MINUTE - 1;
        assert_eq!(ids(&keys, Which::Current, last).len(), 1);
        let both = ids(&keys, Which::Current, last + 1);
        assert_eq!(both.len(), 2);
        assert_eq!(both[1].1, START + 15 * MINUTE);
        assert_eq!(ids(&keys, Which::Current, START + 15 * MINUTE)[0], both[1]);
    }

    #[test]
    fn a_period_is_found_by_its_id_as_long_as_it_opens_and_no_longer() {
        for minutes in [1, 15, 24 * 60] {
            let rotation = minutes * MINUTE;
            let keys = keys("demo/acme", rotation, 1);
            let from = START - START % rotation;
            let (id, _) = ids(&keys, Which::Current, from)[0];
            let opens = from + rotation + ACCEPT_MS + SKEW_MS;
            for at in [from - SKEW_MS, from, opens] {
                assert_eq!(ids(&keys, Which::One(id), at), [(id, from)], "{minutes}");
            }
            let late = keys.periods(Which::One(id), WallMs::new(opens + 2 * rotation));
            assert_eq!(late.unwrap_err(), UnopenedReason::UnknownPeriod);
        }
    }

    #[test]
    fn what_a_keyring_would_refuse_is_refused_here() {
        let realm = RealmId::of_name("demo");
        let make = |prefix: &str, rotation| {
            SharedKeys::new(realm, prefix, SealPolicy::Required, rotation, &[1; 32]).map(|_| ())
        };
        for prefix in ["", "demo", "demo/", "_call/x", "demo/*"] {
            assert_eq!(
                make(prefix, MINUTE),
                Err(SharedKeysFault::Prefix),
                "{prefix}"
            );
        }
        for rotation in [0, MINUTE - 1, 24 * 60 * MINUTE + 1] {
            assert_eq!(make("demo/acme", rotation), Err(SharedKeysFault::Rotation));
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let shown = format!("{:?}", keys("demo/acme", MINUTE, 0xAB));
        assert!(!shown.contains("171") && !shown.contains("ab"), "{shown}");
    }
}
