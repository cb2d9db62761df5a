//! A sealed group, in one run of ten: who is in it, and whoever gives its keys out.
//!
//! Decides: which seeds have it, what is answered, when, and what not. Leaves to others: asking and opening (the clients), whether what was told
//! had a cause (the checkers). Believes: the true time, which a node's wall may be far from. Bounded by: the questions of the run.
//!
//! It is drawn from a stream of its own: the plans of all other seeds, and the acts of these, stay what they are. A period's secret follows from
//! its id, so that whoever watches the wires opens what passes there.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::START;
use super::draw::rng;
use super::plan::{Fault, Plan};
use super::world::World;
use crate::code::{SealPolicy, UnopenedReason};
use crate::crypto::{PeriodKey, Subkey};
use crate::keyring::{KeyPeriod, Which};
use crate::wire::Publication;
use crate::{Answer, AskId, Duration, Group, Instant, KeyPeriods, Rng, WallMs};

/// How long a period is sealed under: as short as it may be, so that runs see it end.
pub(super) const ROTATION_MS: u64 = 60_000;

/// How long where a wall is as far off as is tolerated: a third of it, in which the next is there already, is as long as that.
const SLOW_ROTATION_MS: u64 = 900_000;

/// What covers all topics of a run, but not the filter that matches all of them.
const PREFIX: &str = "sim/acme";

/// How a group is answered.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    pub(super) on: bool,
    /// How long a period is sealed under, in milliseconds.
    pub(super) rotation: u64,
    /// How far the first period had gone when the run began, in milliseconds.
    gone: u64,
    /// How long an answer takes at most, in milliseconds.
    slow: u64,
    /// Of so many questions one is never answered; 0 for none. And so on.
    loses: u64,
    refuses: u64,
    contradicts: u64,
    /// Whose key is let in never, and its hosts.
    pub(super) outsider: Option<u8>,
    pub(super) outsiders: Vec<usize>,
    /// The last fault is over: everything is answered well and soon.
    pub(super) calm: bool,
    /// Answers on their way, by host.
    answers: Vec<VecDeque<(Instant, AskId, Answer)>>,
    draws: Option<Rng>,
    asked: u64,
    /// What was done.
    pub(super) done: Done,
}

/// What was done to questions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) lost: u64,
    pub(super) refused: u64,
    pub(super) contradicted: u64,
    pub(super) rotated: u64,
    pub(super) by_id: u64,
    pub(super) past: u64,
}

impl World {
    /// What the run did to questions.
    pub(super) fn tally_secrets(&mut self) {
        let done = self.net.secrets.done;
        for (fault, times) in [
            (Fault::KeysById, done.by_id),
            (Fault::KeysContradicted, done.contradicted),
            (Fault::KeysLost, done.lost),
            (Fault::KeysPast, done.past),
            (Fault::KeysRefused, done.refused),
            (Fault::KeysRotated, done.rotated),
        ] {
            self.tally.fault(fault, times);
        }
    }
}

fn id_of(n: u64) -> [u8; 8] {
    (n + 1).to_be_bytes()
}

fn secret_of(id: [u8; 8]) -> [u8; 32] {
    let mut secret = [0x5e; 32];
    secret[..8].copy_from_slice(&id);
    secret
}

/// What a publication holds that is sealed.
pub(super) fn plain_of(publication: &Publication<'_>) -> Option<Vec<u8>> {
    let (sealed, _) = publication.sealed()?;
    let key = PeriodKey::new(*sealed.key_id, secret_of(*sealed.key_id));
    let subkey = Subkey::derive(&key, &publication.publisher);
    let mut text = alloc::vec![0; sealed.ct.len()];
    publication
        .unseal(&subkey, &mut text)
        .ok()
        .map(<[u8]>::to_vec)
}

impl Secrets {
    pub(super) fn draw(plan: &Plan) -> Self {
        let mut secrets = Self::default();
        // Some of those that commit, and others.
        let commits = matches!(plan.seed % 200, 47 | 107 | 167 | 187);
        if !commits && !matches!(plan.seed % 40, 8 | 25 | 34) {
            return secrets;
        }
        let mut draw = rng(plan.seed, "secrets");
        secrets.on = true;
        // The first period ends early in the run.
        secrets.rotation = ROTATION_MS;
        secrets.gone = ROTATION_MS - draw.between(1000, 12_000);
        secrets.slow = [0, 20, 500, 4000][draw.below(4) as usize];
        let some = |draw: &mut Rng, low, high| match draw.below(3) {
            0 => draw.between(low, high),
            _ => 0,
        };
        secrets.loses = some(&mut draw, 2, 6);
        secrets.refuses = some(&mut draw, 2, 6);
        secrets.contradicts = some(&mut draw, 2, 6);
        let outsider = draw.below(4 * plan.nodes.len() as u64);
        secrets.outsider = (outsider < plan.nodes.len() as u64).then_some(outsider as u8);
        secrets.draws = Some(draw);
        secrets
    }

    /// A wall is as far off as is tolerated: periods are longer, and the first ends as early.
    pub(super) fn allow_for_skew(&mut self) {
        self.gone += SLOW_ROTATION_MS - self.rotation;
        self.rotation = SLOW_ROTATION_MS;
    }

    /// Whether some questions are not answered as they should be, or late.
    pub(super) fn fails(&self) -> bool {
        self.loses > 0 || self.refuses > 0 || self.contradicts > 0
    }

    /// Whether what is current may be over by more than is tolerated, by a wall that is so far ahead, when an answer that holds it is back.
    pub(super) fn comes_late(&self, ahead: i64) -> bool {
        ahead.saturating_add_unsigned(self.slow) > crate::wire::SKEW_MS as i64
    }

    /// What a node joins.
    pub(super) fn group() -> Group {
        Group::new(super::keys::Keys::realm(), PREFIX)
    }

    /// Whether a subscription with this filter may name the group.
    pub(super) fn covers(filter: &str) -> bool {
        filter.starts_with("sim/acme/")
    }

    fn period(&self, n: u64) -> KeyPeriod {
        let from = START.as_millis() - self.gone + n * self.rotation;
        let id = id_of(n);
        let until = WallMs::new(from + self.rotation);
        KeyPeriod::new(id, secret_of(id), WallMs::new(from), until)
    }

    /// The last moment, by a node's wall, at which a fact may be opened that is sealed under this.
    pub(super) fn opens_until(&self, id: [u8; 8]) -> WallMs {
        let n = u64::from_be_bytes(id).saturating_sub(1);
        let accept_until = self.period(n).accept_until;
        accept_until.saturating_add(crate::wire::SKEW_MS)
    }

    /// A question came at the true time `now`: when its answer is back at its host, if it will be.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        host: usize,
        (ask, which): (AskId, Which),
    ) -> Option<Instant> {
        self.asked += 1;
        self.done.by_id += u64::from(which != Which::Current);
        let hits = |of: u64| !self.calm && of > 0 && self.asked.is_multiple_of(of);
        let (loses, refuses, contradicts) =
            (hits(self.loses), hits(self.refuses), hits(self.contradicts));
        if loses {
            self.done.lost += 1;
            return None;
        }
        let answer = if self.outsiders.contains(&host) {
            Err(UnopenedReason::NotAMember)
        } else if refuses {
            self.done.refused += 1;
            Err(UnopenedReason::MembershipUnknown)
        } else {
            self.keys(now, which, contradicts)
        };
        let slow = if self.calm { 0 } else { self.slow };
        let wait = self
            .draws
            .as_mut()
            .map_or(0, |draws| draws.between(0, slow));
        let at = now.saturating_add(Duration::from_millis(wait));
        if self.answers.len() <= host {
            self.answers.resize_with(host + 1, VecDeque::new);
        }
        let queue = &mut self.answers[host];
        let place = queue.partition_point(|(due, ..)| *due <= at);
        queue.insert(place, (at, ask, Answer::KeyPeriods(answer)));
        Some(at)
    }

    fn keys(
        &mut self,
        now: Instant,
        which: Which,
        contradicts: bool,
    ) -> Result<KeyPeriods, UnopenedReason> {
        let since = self.gone + now.as_micros() / 1000;
        let (current, into) = (since / self.rotation, since % self.rotation);
        let ahead = into >= self.rotation - self.rotation / 3;
        self.done.rotated += u64::from(current > 0);
        let mut numbers = match which {
            Which::Current if ahead => alloc::vec![current, current + 1],
            Which::Current => alloc::vec![current],
            Which::One(id) => {
                let n = u64::from_be_bytes(id).wrapping_sub(1);
                if n > current + u64::from(ahead) {
                    return Err(UnopenedReason::UnknownPeriod);
                }
                self.done.past += u64::from(n < current);
                alloc::vec![n]
            }
        };
        if contradicts {
            // Another period than was asked for, or than is current.
            self.done.contradicted += 1;
            numbers[0] += 7;
        }
        let policy = SealPolicy::Preferred;
        let periods = numbers.iter().map(|n| self.period(*n)).collect();
        Ok(KeyPeriods { policy, periods })
    }

    /// The next answer that is there for a host by the true time `now`.
    pub(super) fn answer(&mut self, now: Instant, host: usize) -> Option<(AskId, Answer)> {
        let queue = self.answers.get_mut(host)?;
        let (at, ..) = queue.front()?;
        if *at > now {
            return None;
        }
        queue.pop_front().map(|(_, ask, answer)| (ask, answer))
    }

    /// Nothing is on its way to a host that is no more.
    pub(super) fn forget(&mut self, host: usize) {
        if let Some(queue) = self.answers.get_mut(host) {
            queue.clear();
        }
    }
}
