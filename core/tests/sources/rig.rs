//! A node whose sources are looked up, and the answers it is given.

use tidings::code::{DropReason, SourceRefusal};
use tidings::inbound::sources::SourceAnswer;
use tidings::{
    Action, Answer, AskId, Client, ClientConfig, ClientLimits, Instant, Misuse, NodeId, Now,
    Question, RealmId, Source, Sources, Subscribe, SubscriptionId, WallMs,
};

use crate::common::{self, Node, TOPIC, at, id_of, items, realm, signer, words};

/// A question about a publisher.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) ask: AskId,
    pub(crate) realm: RealmId,
    pub(crate) source: Source,
    pub(crate) publisher: NodeId,
    pub(crate) deadline: Instant,
}

/// The questions that came since the last look.
pub(crate) fn asked(client: &mut Client) -> Vec<Asked> {
    let mut asked = Vec::new();
    while let Some(action) = client.poll_action() {
        if let Action::Ask {
            ask,
            question: Question::Source(question),
            deadline,
        } = action
        {
            asked.push(Asked {
                ask,
                realm: question.realm,
                source: question.source,
                publisher: question.publisher,
                deadline,
            });
        }
    }
    asked
}

pub(crate) fn members() -> Subscribe {
    Subscribe::new(realm(), TOPIC, Sources::Members)
}

pub(crate) fn org(name: &str) -> Subscribe {
    Subscribe::new(realm(), TOPIC, Sources::Org(name.into()))
}

pub(crate) fn until(millis: u64) -> SourceAnswer {
    let until = at(millis).wall;
    SourceAnswer::Admit { until }
}

/// For longer than any verdict is kept.
pub(crate) fn admitted() -> SourceAnswer {
    let until = WallMs::new(u64::MAX);
    SourceAnswer::Admit { until }
}

pub(crate) fn refused() -> SourceAnswer {
    SourceAnswer::Refuse(SourceRefusal::NotFound)
}

/// A node with one subscription to members, one link, and limits to be changed.
pub(crate) struct Rig {
    pub(crate) node: Node,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(1, |_| {})
    }

    pub(crate) fn with(links: u16, change: impl FnOnce(&mut ClientLimits)) -> Self {
        let mut limits = ClientLimits::default();
        change(&mut limits);
        let config = ClientConfig::new(signer(1)).limits(limits);
        Self {
            node: Node::with(config, links, members()),
        }
    }

    /// Whose facts come from now on.
    pub(crate) fn publisher(&mut self, seed: u64) -> NodeId {
        let publisher = signer(seed);
        let id = id_of(&publisher);
        self.node.publisher = Box::new(publisher);
        id
    }

    pub(crate) fn fact(&mut self, millis: u64, seq: u64) {
        self.fact_at(at(millis), seq);
    }

    /// A fact published then, with a short life or the usual one.
    pub(crate) fn fact_at(&mut self, now: Now, seq: u64) {
        let fact = common::Fact {
            published_at: now.wall,
            ..common::Fact::numbered(seq)
        };
        self.node.fact(now, 0, fact);
    }

    pub(crate) fn asked(&mut self) -> Vec<Asked> {
        asked(&mut self.node.client)
    }

    /// The only question since the last look.
    pub(crate) fn one(&mut self) -> AskId {
        let asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked[0].ask
    }

    pub(crate) fn answer(
        &mut self,
        now: Now,
        ask: AskId,
        answer: SourceAnswer,
    ) -> Result<(), Misuse> {
        self.node.client.answer(now, ask, Answer::Source(answer))
    }

    pub(crate) fn told(&mut self, millis: u64, ask: AskId, answer: SourceAnswer) {
        let told = self.answer(at(millis), ask, answer);
        assert_eq!(told, Ok(()));
    }

    /// One fact of a publisher that is admitted for as long as verdicts are kept.
    pub(crate) fn admit(&mut self, millis: u64, seq: u64) {
        self.fact(millis, seq);
        let ask = self.one();
        self.told(millis, ask, admitted());
    }

    pub(crate) fn words(&mut self) -> Vec<String> {
        self.node.words()
    }

    pub(crate) fn words_of(&mut self, stream: SubscriptionId) -> Vec<String> {
        words(&items(&mut self.node.client, stream))
    }

    /// Moves on and lets what was dropped be told.
    pub(crate) fn later(&mut self, millis: u64) -> Vec<String> {
        self.node.time(at(millis));
        self.words()
    }

    pub(crate) fn subscribe(&mut self, request: Subscribe) -> SubscriptionId {
        let made = self.node.client.subscribe(at(0), request);
        made.expect("accepted here")
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        let status = self.node.client.status();
        let found = status.sources.dropped.iter();
        found
            .copied()
            .find(|(known, _)| *known == reason)
            .map_or(0, |(_, count)| count)
    }

    pub(crate) fn refusals(&self, reason: SourceRefusal) -> u64 {
        let status = self.node.client.status();
        let found = status.sources.refused.iter();
        found
            .copied()
            .find(|(known, _)| *known == reason)
            .map_or(0, |(_, count)| count)
    }

    /// Facts that wait, verdicts, lookups.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let sources = self.node.client.status().sources;
        (sources.held, sources.verdicts, sources.lookups)
    }
}
