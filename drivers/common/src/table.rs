//! A table that answers a node's questions at once, out of what it was made with.
//!
//! Decides: which entry answers. Leaves to others: what keys are (`shared_keys.rs`), and where the entries come from. Believes: the host's date,
//! for which key period it is. Bounded by: what was put in.

use std::collections::BTreeSet;

use tidings::code::{SourceRefusal, UnopenedReason};
use tidings::inbound::sources::SourceAnswer;
use tidings::keyring::Which;
use tidings::{KeyPeriods, KeyQuestion, NodeId, RealmId, Source, WallMs};

use crate::{Answers, Clock, Reply, SharedKeys};

/// What a node may know without asking anybody: the secrets of its groups, which are wiped when dropped, members of realms and nodes of organisations.
#[derive(Clone, Debug, Default)]
pub struct Table {
    groups: Vec<SharedKeys>,
    /// Realms of which it knows the members, and whom organisations delegate.
    realms: BTreeSet<RealmId>,
    members: BTreeSet<(RealmId, NodeId)>,
    orgs: BTreeSet<(RealmId, String, NodeId)>,
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

    /// It knows everybody of this realm: whoever is not added is refused, not unknown.
    #[must_use]
    pub fn realm(mut self, realm: RealmId) -> Self {
        self.realms.insert(realm);
        self
    }

    /// Adds a member of a realm.
    #[must_use]
    pub fn member(mut self, realm: RealmId, member: NodeId) -> Self {
        self.members.insert((realm, member));
        self.realm(realm)
    }

    /// Adds a node that the organisation of this name delegates.
    #[must_use]
    pub fn org(mut self, realm: RealmId, name: impl Into<String>, node: NodeId) -> Self {
        self.orgs.insert((realm, name.into(), node));
        self.realm(realm)
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

    /// The answer to a question about a publisher. What it admits it admits for ever; the core asks again all the same.
    pub fn admits(&self, realm: RealmId, source: Source, publisher: NodeId) -> SourceAnswer {
        let (known, refusal) = match source {
            _ if !self.realms.contains(&realm) => return SourceAnswer::Unknown,
            Source::Members => {
                let known = self.members.contains(&(realm, publisher));
                (known, SourceRefusal::NotFound)
            }
            Source::Org(name) => {
                let known = self.orgs.contains(&(realm, name, publisher));
                (known, SourceRefusal::NotDelegated)
            }
            _ => return SourceAnswer::Unknown,
        };
        match known {
            true => SourceAnswer::Admit {
                until: WallMs::new(u64::MAX),
            },
            false => SourceAnswer::Refuse(refusal),
        }
    }
}

impl Answers for Table {
    fn keys(&mut self, question: KeyQuestion, reply: Reply<Result<KeyPeriods, UnopenedReason>>) {
        reply.answer(self.key_periods(&question, Clock::start().now().wall));
    }

    fn source(
        &mut self,
        realm: RealmId,
        source: Source,
        publisher: NodeId,
        reply: Reply<SourceAnswer>,
    ) {
        reply.answer(self.admits(realm, source, publisher));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_that_is_known_refuses_whoever_is_not_listed_and_another_says_nothing() {
        let (realm, other) = (RealmId::of_name("demo"), RealmId::of_name("other"));
        let [member, node, stranger] = [1, 2, 3].map(|n| NodeId::new([n; 32]));
        let table = Table::new().member(realm, member).org(realm, "acme", node);
        let until = WallMs::new(u64::MAX);
        let asked = |source: Source, who| table.admits(realm, source, who);
        let acme = || Source::Org("acme".to_owned());
        assert_eq!(
            asked(Source::Members, member),
            SourceAnswer::Admit { until }
        );
        assert_eq!(asked(acme(), node), SourceAnswer::Admit { until });
        let refused = SourceAnswer::Refuse(SourceRefusal::NotFound);
        assert_eq!(asked(Source::Members, node), refused);
        let refused = SourceAnswer::Refuse(SourceRefusal::NotDelegated);
        for (source, who) in [(acme(), member), (acme(), stranger)] {
            assert_eq!(asked(source, who), refused);
        }
        let elsewhere = table.admits(other, Source::Members, member);
        assert_eq!(elsewhere, SourceAnswer::Unknown);
    }
}
