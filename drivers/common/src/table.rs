//! A table that answers a node's questions at once, out of what it was made with.
//!
//! Decides: which entry answers. Leaves to others: what keys are (`shared_keys.rs`), and where the entries come from. Believes: the host's date,
//! for which key period it is. Bounded by: what was put in.

use tidings::code::UnopenedReason;
use tidings::keyring::Which;
use tidings::{KeyPeriods, KeyQuestion, WallMs};

use crate::{Answers, Clock, Reply, SharedKeys};

/// What a node may know without asking anybody: the secrets of its groups. Wiped when dropped.
#[derive(Clone, Debug, Default)]
pub struct Table {
    groups: Vec<SharedKeys>,
}

impl Table {
    /// An empty one, which answers that nothing could be found out.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group's secret. Of several for one realm and prefix the first is sealed under, and all of them open.
    #[must_use]
    pub fn group(mut self, keys: SharedKeys) -> Self {
        self.groups.push(keys);
        self
    }

    /// The groups' secrets.
    pub fn groups(&self) -> &[SharedKeys] {
        &self.groups
    }

    /// The answer to a question about keys, at this time.
    ///
    /// # Errors
    /// `NoDistributor` where it holds nothing of that group; `UnknownPeriod`.
    pub fn key_periods(
        &self,
        question: &KeyQuestion,
        wall: WallMs,
    ) -> Result<KeyPeriods, UnopenedReason> {
        let is_it =
            |keys: &&SharedKeys| keys.realm() == question.realm && keys.prefix() == question.prefix;
        let mut found = self.groups.iter().filter(is_it);
        let first = found.next().ok_or(UnopenedReason::NoDistributor)?;
        let given = first.periods(question.which, wall);
        match question.which {
            Which::Current => given,
            one => found.fold(given, |given, older| {
                given.or_else(|_| older.periods(one, wall))
            }),
        }
    }
}

impl Answers for Table {
    fn keys(&mut self, question: KeyQuestion, reply: Reply<Result<KeyPeriods, UnopenedReason>>) {
        reply.answer(self.key_periods(&question, Clock::start().now().wall));
    }
}
