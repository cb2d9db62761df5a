//! What the answers of a script allow: whose facts may be delivered, what may be opened, and what a reader may miss for it.

use std::collections::{BTreeMap, BTreeSet};

use tidings::code::{SealPolicy, UnopenedReason};
use tidings::keyring::Which;
use tidings::{Delivery, NodeId, Now, PublicationHash};

use crate::accounts::{Reader, Sent};
use crate::keys::{self, Fault, Given, PREFIXES};

/// How long a lookup may take, in µs.
pub const LOOKUP_US: u64 = 5_000_000;

/// From when to when, in µs of mono.
type Span = [u64; 2];

/// What was answered about one publisher of one source.
#[derive(Debug, Default)]
struct Verdicts {
    admitted: Vec<Span>,
    refused: Vec<Span>,
}

/// A group as its node should know it.
#[derive(Debug, Default)]
struct Group {
    joined: bool,
    was_left: bool,
    policy: Option<SealPolicy>,
    /// When facts in the clear were refused under it.
    required: Vec<Span>,
    given: BTreeMap<u64, Given>,
    /// Periods of which it was given another key than is sealed under.
    wrong: BTreeSet<u64>,
    /// Why keys were not given out: whoever is asked may say anything.
    denied: BTreeSet<UnopenedReason>,
}

#[derive(Debug, Default)]
pub struct Trust {
    /// By source, where members have no name.
    verdicts: BTreeMap<(String, NodeId), Verdicts>,
    groups: [Group; PREFIXES.len()],
    /// When each publication was handed to the machine, in µs, and whether it was read at once each time.
    arrived: BTreeMap<PublicationHash, (Vec<u64>, bool)>,
    /// What came in the clear for the first time where it had to be sealed.
    banned: BTreeSet<PublicationHash>,
}

fn clocks(now: Now) -> Given {
    Given {
        mono_ms: now.mono.as_micros() / 1000,
        wall_ms: now.wall.as_millis(),
    }
}

/// Cuts what went on until now.
fn end(spans: &mut [Span], now: u64) {
    for span in spans {
        span[1] = span[1].min(now);
    }
}

impl Trust {
    pub fn arrives(&mut self, sent: &Sent, now: Now, at_once: bool) {
        let first = !self.arrived.contains_key(&sent.hash);
        let known = self.arrived.entry(sent.hash).or_insert((vec![], true));
        known.0.push(now.mono.as_micros());
        known.1 &= at_once;
        let covering = self.covering(sent.topic);
        let refused = covering.is_some_and(|group| self.requires(group));
        if first && refused && sent.seal.is_none() {
            self.banned.insert(sent.hash);
        }
    }

    /// The group whose prefix says most of a topic.
    pub fn covering(&self, topic: &str) -> Option<usize> {
        let joined = (0..PREFIXES.len()).filter(|group| self.groups[*group].joined);
        let covering = joined.filter(|group| is_under(topic, *group));
        covering.max_by_key(|group| PREFIXES[*group].len())
    }

    fn requires(&self, group: usize) -> bool {
        self.policy(group) == Some(SealPolicy::Required)
    }

    pub fn policy(&self, group: usize) -> Option<SealPolicy> {
        self.groups[group].policy
    }

    pub fn joins(&mut self, group: usize) {
        self.groups[group].joined = true;
    }

    pub fn leaves(&mut self, group: usize, now: Now) {
        let group = &mut self.groups[group];
        end(&mut group.required, now.mono.as_micros());
        group.given.clear();
        group.wrong.clear();
        (group.joined, group.was_left, group.policy) = (false, true, None);
        self.banned.clear();
    }

    /// The node took an answer that admits a publisher for so long.
    pub fn admits(&mut self, of: &(String, NodeId), now: Now, millis: u64) {
        let (verdicts, now) = self.verdicts(of, now);
        verdicts.admitted.push([now, now + millis * 1000]);
    }

    pub fn refuses(&mut self, of: &(String, NodeId), now: Now, millis: u64) {
        let (verdicts, now) = self.verdicts(of, now);
        verdicts.refused.push([now, now + millis * 1000]);
    }

    /// Another verdict takes the place of those before.
    fn verdicts(&mut self, of: &(String, NodeId), now: Now) -> (&mut Verdicts, u64) {
        let (verdicts, now) = (
            self.verdicts.entry(of.clone()).or_default(),
            now.mono.as_micros(),
        );
        end(&mut verdicts.admitted, now);
        end(&mut verdicts.refused, now);
        (verdicts, now)
    }

    /// The node took an answer about keys.
    pub fn gives(
        &mut self,
        group: usize,
        which: Which,
        policy: SealPolicy,
        (period, following, fault): (u64, u64, Fault),
        now: Now,
    ) {
        if !keys::is_usable(which, period, following, fault, now.wall) {
            return;
        }
        let group = &mut self.groups[group];
        group.policy = group.policy.max(Some(policy));
        if group.policy == Some(SealPolicy::Required) {
            group.required.push([now.mono.as_micros(), u64::MAX]);
        }
        let now = clocks(now);
        for n in period..=period + following {
            if fault == Fault::Secret {
                group.wrong.insert(n);
            } else {
                let until = keys::opens_until(n);
                group.given.entry(n).or_insert(now).again(now, until);
            }
        }
    }

    /// The node took an answer that gives no key.
    pub fn denies(&mut self, group: usize, reason: UnopenedReason) {
        self.groups[group].denied.insert(reason);
    }

    /// A fact was handed to its reader; `at_once`: as soon as that was decided.
    pub fn handed(&self, reader: &Reader, sent: &Sent, fact: &Delivery, now: Now, at_once: bool) {
        assert!(!self.banned.contains(&sent.hash), "it is in the clear");
        assert_eq!(fact.payload(), [sent.payload], "not what was said");
        if let Some(source) = &reader.source {
            let of = (source.clone(), sent.publisher);
            assert!(
                self.may_speak(&of, &sent.hash),
                "its publisher was not admitted"
            );
        }
        assert_eq!(
            fact.seal_key_id(),
            sent.seal.map(|seal| keys::id_of(seal.period))
        );
        if let Some(seal) = sent.seal {
            assert!(seal.opens(), "it does not open");
            assert_eq!(Some(seal.group), reader.group, "another group's");
            let given = self.groups[seal.group].given.get(&seal.period);
            let given = given.expect("its key was given");
            let over = given.is_over(clocks(now), keys::opens_until(seal.period));
            assert!(!at_once || !over, "its key is over");
        }
    }

    /// Whether a verdict admitted the publisher of this when it came, or while it may have waited.
    fn may_speak(&self, of: &(String, NodeId), hash: &PublicationHash) -> bool {
        let Some((times, at_once)) = self.arrived.get(hash) else {
            return true;
        };
        let Some(verdicts) = self.verdicts.get(of) else {
            return false;
        };
        let longest = if *at_once { LOOKUP_US } else { u64::MAX / 2 };
        let meets = |a: &Span, b: &Span| a[0] <= b[1] && b[0] <= a[1];
        let mut admitted = verdicts.admitted.iter();
        admitted.any(|span| times.iter().any(|at| meets(span, &[*at, at + longest])))
    }

    /// A fact was told as not opened, for this reason.
    pub fn unopened(
        &self,
        reader: &Reader,
        sent: &[&Sent],
        reason: UnopenedReason,
        held: Option<(Now, u64)>,
    ) {
        let mut seals = sent.iter().filter_map(|sent| sent.seal);
        match (reason, reader.group) {
            (reason, Some(group)) if self.groups[group].denied.contains(&reason) => {}
            (UnopenedReason::NoGroup, group) => {
                let left = group.is_none_or(|group| self.groups[group].was_left);
                assert!(left, "its group was joined");
            }
            (_, None) => panic!("{reason} where no group is"),
            (UnopenedReason::TagInvalid, Some(group)) => {
                let wrong = &self.groups[group].wrong;
                assert!(
                    seals.any(|seal| {
                        !seal.opens() || seal.group != group || wrong.contains(&seal.period)
                    }),
                    "it opens under its key"
                );
            }
            (_, Some(group)) => {
                let Some((now, latest)) = held else { return };
                let group = &self.groups[group];
                for seal in seals.filter(|seal| !group.wrong.contains(&seal.period)) {
                    let until = keys::opens_until(seal.period);
                    let over = |given: &Given| given.is_over(clocks(now), until) || latest > until;
                    let given = group.given.get(&seal.period);
                    assert!(given.is_none_or(over), "{reason}, and its key is held");
                }
            }
        }
    }

    /// Why a reader may miss what was first taken at that time: its source refused the publisher, or it had to be sealed.
    pub fn misses(&self, reader: &Reader, sent: &Sent, at: u64) -> [bool; 2] {
        let refused = reader.source.as_ref().is_some_and(|source| {
            let verdicts = self.verdicts.get(&(source.clone(), sent.publisher));
            verdicts.is_some_and(|verdicts| verdicts.refused.iter().any(|span| span[1] >= at))
        });
        let under = (0..PREFIXES.len()).filter(|group| is_under(sent.topic, *group));
        let mut spans = under.flat_map(|group| &self.groups[group].required);
        let clear = sent.seal.is_none() && spans.any(|span| span[1] >= at);
        [refused, clear]
    }

    /// A publication was sealed for a group at that time, by the wall.
    pub fn sealed(&self, group: usize, period: u64, at: u64) {
        let Group {
            given,
            wrong,
            was_left,
            ..
        } = &self.groups[group];
        let given = given.contains_key(&period) || wrong.contains(&period);
        assert!(given || *was_left, "it is sealed under a key nobody gave");
        assert!(keys::sealed_under(period).contains(&at), "not its time");
    }
}

fn is_under(topic: &str, group: usize) -> bool {
    let rest = topic.strip_prefix(PREFIXES[group]);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
