//! A node in a sealed group, its publishers, and whoever gives the keys out, by hand.

use tidings::code::{SealPolicy, UnopenedReason};
use tidings::crypto::{PeriodKey, Seal, Signer, Subkey};
use tidings::keyring::{KeyPeriod, Which};
use tidings::sim::START;
use tidings::wire::{self, Body, Draft};
use tidings::{
    Action, Answer, AskId, Client, ClientConfig, Group, GroupId, Item, KeyPeriods, KeyQuestion,
    Misuse, Notice, Now, Question, Subscribe, Token, WallMs,
};

use super::common::{Fact, Node, at, id_of, open, realm, signer};

pub(crate) const PREFIX: &str = "weather/acme/app";
/// A rotation, in ms.
pub(crate) const R: u64 = 900_000;
/// How long after a period's beginning it opens.
pub(crate) const OPENS: u64 = R + 3_900_000 + 300_000;

pub(crate) fn key_id(n: u64) -> [u8; 8] {
    (n + 1).to_be_bytes()
}

fn secret(n: u64) -> [u8; 32] {
    [n as u8 + 1; 32]
}

/// The period before the one the group's first members hold.
pub(crate) const PAST: u64 = 100;

/// The n-th period since the start, or one of those before it.
pub(crate) fn period(n: u64) -> KeyPeriod {
    let from = match n {
        PAST.. => START.as_millis() - (n + 1 - PAST) * R,
        _ => START.as_millis() + n * R,
    };
    KeyPeriod::new(
        key_id(n),
        secret(n),
        WallMs::new(from),
        WallMs::new(from + R),
    )
}

/// What is given out.
pub(crate) fn keys(policy: SealPolicy, periods: &[u64]) -> Answer {
    let periods = periods.iter().map(|n| period(*n)).collect();
    Answer::KeyPeriods(Ok(KeyPeriods { policy, periods }))
}

pub(crate) fn refusal(reason: UnopenedReason) -> Answer {
    Answer::KeyPeriods(Err(reason))
}

/// A publication of a fact, sealed in the n-th period.
pub(crate) fn sealed(by: &dyn Signer, fact: Fact<'_>, n: u64) -> Vec<u8> {
    let payload = wire::to_payload(&fact.value).expect("a number");
    let draft = Draft {
        realm: realm(),
        topic: fact.topic,
        publisher: id_of(by),
        epoch: fact.epoch,
        seq: fact.seq,
        published_at: fact.published_at,
        ttl_ms: fact.ttl_ms,
        one: fact.one,
        body: Body::Payload(&payload),
    };
    let key = PeriodKey::new(key_id(n), secret(n));
    let seal = Seal {
        key_id: key_id(n),
        subkey: &Subkey::derive(&key, &draft.publisher),
        entropy: [fact.seq as u8; 32],
    };
    let mut object = Vec::new();
    draft.sign_sealed(by, &seal, &mut object).expect("it seals");
    object
}

/// A node that has joined the group, and the questions it asked.
pub(crate) struct Member {
    pub(crate) node: Node,
    pub(crate) group: GroupId,
    pub(crate) asked: Vec<(AskId, KeyQuestion)>,
}

pub(crate) fn join(client: &mut Client, now: Now) -> GroupId {
    let group = Group::new(realm(), PREFIX).token(Token::new(b"let me in".to_vec()));
    client.join_group(now, group).expect("a good prefix")
}

impl Member {
    /// It waits for its first keys.
    pub(crate) fn joining(request: impl Fn(GroupId) -> Subscribe) -> Self {
        Self::with(ClientConfig::new(signer(1)), request)
    }

    pub(crate) fn with(config: ClientConfig, request: impl Fn(GroupId) -> Subscribe) -> Self {
        let mut client = super::common::client(config.station(None));
        let group = join(&mut client, at(0));
        Self {
            node: Node::of(client, 1, request(group)),
            group,
            asked: Vec::new(),
        }
    }

    /// It holds period 0, under this policy.
    pub(crate) fn new(policy: SealPolicy) -> Self {
        let mut member = Self::joining(|group| open().group(group));
        let told = member.answer(at(0), Which::Current, keys(policy, &[0]));
        assert_eq!(told, Ok(()));
        member
    }

    /// The questions it asks now, beside those that are open.
    pub(crate) fn asks(&mut self) -> Vec<Which> {
        let before = self.asked.len();
        while let Some(action) = self.node.client.poll_action() {
            if let Action::Ask {
                ask,
                question: Question::KeyPeriods(question),
                ..
            } = action
            {
                self.asked.push((ask, *question));
            }
        }
        let new = self.asked[before..].iter();
        new.map(|(_, question)| question.which).collect()
    }

    pub(crate) fn open_ask(&mut self, which: Which) -> AskId {
        self.asks();
        let found = self
            .asked
            .iter()
            .position(|(_, asked)| asked.which == which);
        self.asked.remove(found.expect("it was asked")).0
    }

    /// Answers the oldest question about that.
    pub(crate) fn answer(&mut self, now: Now, which: Which, answer: Answer) -> Result<(), Misuse> {
        let ask = self.open_ask(which);
        self.node.client.answer(now, ask, answer)
    }

    /// A sealed fact arrives.
    pub(crate) fn seq(&mut self, now: Now, seq: u64, n: u64) {
        self.fact(now, Fact::numbered(seq), n);
    }

    pub(crate) fn fact(&mut self, now: Now, fact: Fact<'_>, n: u64) {
        let object = sealed(&*self.node.publisher, fact, n);
        self.node.object(now, 0, &object);
    }

    /// What its reader is told, with the reason of what was not opened.
    pub(crate) fn words(&mut self) -> Vec<String> {
        let items = super::common::items(&mut self.node.client, self.node.stream);
        told(&items)
    }
}

pub(crate) fn told(items: &[Item]) -> Vec<String> {
    let word = |item: &Item| match item {
        Item::Notice(notice) => match &**notice {
            Notice::Unopened { seq, reason, .. } => Some(format!("unopened {seq} {reason}")),
            _ => None,
        },
        _ => None,
    };
    let plain = super::common::words(items).into_iter();
    let pairs = items.iter().map(word).zip(plain);
    pairs.map(|(word, plain)| word.unwrap_or(plain)).collect()
}
