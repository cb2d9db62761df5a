//! The numbers this node gives to its publications.
//!
//! Decides: epoch and seq of the next publication on a topic. Leaves to others: whether it is published; a number is used only when it
//! was. Believes: the wall, and never less than the greatest epoch before. Bounded by: a number of topics; the one used longest ago is
//! forgotten and begins a new epoch when it is needed again.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::RealmId;
use crate::time::WallMs;

/// Realm, topic, and whether it numbers publications for one subscriber only.
type Key = (RealmId, String, bool);

#[derive(Clone, Copy, Debug)]
struct Numbering {
    epoch: u64,
    last: u64,
    /// Its place in the order of use.
    used: u64,
}

/// Numbers by realm and topic.
#[derive(Debug)]
pub(super) struct Counters {
    numberings: BTreeMap<Key, Numbering>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    last_epoch: u64,
    /// No later run uses an epoch up to this one.
    kept: u64,
    capacity: usize,
}

/// A number looked up and not yet used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) epoch: u64,
    pub(super) seq: u64,
}

impl Counters {
    /// With `kept`, only epochs up to that one, until [`Counters::keep`] is told of more.
    pub(super) fn new(last_epoch: u64, kept: Option<u64>, capacity: usize) -> Self {
        Self {
            numberings: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            last_epoch,
            kept: kept.unwrap_or(u64::MAX),
            capacity,
        }
    }

    pub(super) fn last_epoch(&self) -> u64 {
        self.last_epoch
    }

    /// No later run will use an epoch up to this one.
    pub(super) fn keep(&mut self, upto: u64) {
        self.kept = self.kept.max(upto);
    }

    /// Whether that number may be used.
    pub(super) fn is_kept(&self, number: Number) -> bool {
        number.epoch <= self.kept
    }

    /// The number for what cannot wait until an epoch is kept: the clock counts only as far as epochs are.
    pub(super) fn next_kept(&self, wall: WallMs, realm: RealmId, topic: &str) -> Option<Number> {
        let number = self.next(wall, realm, topic, false);
        let epoch = number.epoch.min(self.kept);
        let usable = number.seq > 1 || epoch > self.last_epoch;
        usable.then_some(Number { epoch, ..number })
    }

    /// The number the next publication on this topic would get.
    pub(super) fn next(&self, wall: WallMs, realm: RealmId, topic: &str, one: bool) -> Number {
        match self.numberings.get(&(realm, topic.to_owned(), one)) {
            Some(numbering) => Number {
                epoch: numbering.epoch,
                seq: numbering.last + 1,
            },
            None => {
                let clock = wall.as_millis().saturating_mul(1000);
                Number {
                    epoch: clock.max(self.last_epoch + 1),
                    seq: 1,
                }
            }
        }
    }

    /// That number was used.
    pub(super) fn commit(&mut self, realm: RealmId, topic: &str, one: bool, number: Number) {
        self.last_epoch = self.last_epoch.max(number.epoch);
        self.uses += 1;
        let key = (realm, topic.to_owned(), one);
        let used = Numbering {
            epoch: number.epoch,
            last: number.seq,
            used: self.uses,
        };
        if let Some(before) = self.numberings.insert(key.clone(), used) {
            self.by_use.remove(&before.used);
        } else if self.numberings.len() > self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.numberings.remove(&oldest);
        }
        self.by_use.insert(self.uses, key);
    }

    pub(super) fn len(&self) -> usize {
        self.numberings.len()
    }

    pub(super) fn memory(&self) -> usize {
        let names: usize = self
            .numberings
            .keys()
            .map(|(_, topic, _)| topic.capacity())
            .sum();
        2 * names
            + self.numberings.len() * (size_of::<(Key, Numbering)>() + size_of::<(u64, Key)>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REALM: RealmId = RealmId::new([1; 32]);

    fn publish(counters: &mut Counters, wall: u64, topic: &str) -> Number {
        let number = counters.next(WallMs::new(wall), REALM, topic, false);
        counters.commit(REALM, topic, false, number);
        number
    }

    #[test]
    fn seq_counts_from_one_per_topic_and_none_is_burnt() {
        let mut counters = Counters::new(0, None, 10);
        assert_eq!(publish(&mut counters, 5, "a").seq, 1);
        assert_eq!(counters.next(WallMs::new(6), REALM, "a", false).seq, 2);
        assert_eq!(counters.next(WallMs::new(6), REALM, "a", false).seq, 2);
        assert_eq!(
            publish(&mut counters, 7, "a"),
            Number {
                epoch: 5000,
                seq: 2
            }
        );
        assert_eq!(
            publish(&mut counters, 7, "b"),
            Number {
                epoch: 7000,
                seq: 1
            }
        );
    }

    #[test]
    fn publications_for_one_are_numbered_in_a_stream_of_their_own() {
        let mut counters = Counters::new(0, None, 10);
        let all = publish(&mut counters, 5, "a");
        let one = counters.next(WallMs::new(5), REALM, "a", true);
        assert_eq!(one.seq, 1);
        assert!(one.epoch > all.epoch);
    }

    #[test]
    fn an_epoch_is_above_every_epoch_before_even_when_the_clock_went_back() {
        let mut counters = Counters::new(9_000_000, None, 10);
        assert_eq!(publish(&mut counters, 5, "a").epoch, 9_000_001);
        assert_eq!(publish(&mut counters, 5, "b").epoch, 9_000_002);
        assert_eq!(counters.last_epoch(), 9_000_002);
    }

    #[test]
    fn no_epoch_is_used_that_is_not_kept_and_one_that_is_goes_on() {
        let mut counters = Counters::new(0, Some(0), 10);
        let first = counters.next(WallMs::new(5), REALM, "a", false);
        assert!(!counters.is_kept(first));
        counters.keep(first.epoch);
        assert!(counters.is_kept(first));
        publish(&mut counters, 5, "a");
        assert!(counters.is_kept(counters.next(WallMs::new(9), REALM, "a", false)));
        assert!(!counters.is_kept(counters.next(WallMs::new(9), REALM, "b", false)));
        counters.keep(1);
        assert!(counters.is_kept(first), "what is kept stays kept");
    }

    #[test]
    fn what_cannot_wait_takes_an_epoch_that_is_kept_or_none() {
        let mut counters = Counters::new(0, Some(0), 10);
        counters.keep(5001);
        publish(&mut counters, 5, "a");
        let number = counters.next_kept(WallMs::new(9), REALM, "b").unwrap();
        assert_eq!(
            number,
            Number {
                epoch: 5001,
                seq: 1
            }
        );
        counters.commit(REALM, "b", false, number);
        assert_eq!(counters.next_kept(WallMs::new(9), REALM, "c"), None);
        let more = counters.next_kept(WallMs::new(9), REALM, "b").unwrap();
        assert_eq!(
            more,
            Number {
                epoch: 5001,
                seq: 2
            }
        );
    }

    #[test]
    fn a_counter_that_had_to_be_forgotten_starts_a_new_epoch() {
        let mut counters = Counters::new(0, None, 2);
        publish(&mut counters, 1, "a");
        publish(&mut counters, 2, "b");
        publish(&mut counters, 3, "a");
        publish(&mut counters, 4, "c");
        assert_eq!(counters.len(), 2);
        assert_eq!(
            publish(&mut counters, 5, "a"),
            Number {
                epoch: 1000,
                seq: 3
            }
        );
        assert_eq!(
            publish(&mut counters, 6, "b"),
            Number {
                epoch: 6000,
                seq: 1
            }
        );
    }
}
