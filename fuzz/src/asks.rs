//! What a machine asks, and who answers: rightly, wrongly, late, twice, or not at all.

use tidings::code::{SealPolicy, SourceRefusal, UnopenedReason};
use tidings::inbound::sources::SourceAnswer;
use tidings::keyring::Which;
use tidings::{Answer, AskId, Group, GroupId, Misuse, NodeId, Now, Question, Source, Token};

use crate::hostile::Play;
use crate::keys::{self, Fault, PREFIXES};
use crate::said::{node, realm};

/// Questions that a script may answer, counted from the last.
const REACH: usize = 12;
/// The organisation whose nodes are looked up.
pub const ORG: &str = "acme";

#[derive(Debug)]
enum About {
    Keys {
        group: usize,
        which: Which,
        /// Which time it was joined.
        joined: u32,
    },
    Source((String, NodeId)),
}

#[derive(Debug)]
struct Asked {
    ask: AskId,
    about: About,
    deadline_us: u64,
    answered: bool,
}

/// The bounds of questions, and how long verdicts last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub lookups: usize,
    pub keys: usize,
    pub cache_ttl_ms: u64,
    pub refusal_ttl_ms: u64,
}

#[derive(Debug)]
pub struct Asks {
    all: Vec<Asked>,
    bounds: Bounds,
    groups: [Option<GroupId>; PREFIXES.len()],
    joins: [u32; PREFIXES.len()],
}

impl Asks {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            all: Vec::new(),
            bounds,
            groups: [None; PREFIXES.len()],
            joins: [0; PREFIXES.len()],
        }
    }

    /// A group's handle; of one that was left, too.
    pub fn group(&self, group: usize) -> Option<GroupId> {
        self.groups[group]
    }

    fn is_open(&self, asked: &Asked, now: Now) -> bool {
        let alive = match asked.about {
            About::Keys { group, joined, .. } => self.joins[group] == joined,
            About::Source(_) => true,
        };
        alive && !asked.answered && asked.deadline_us > now.mono.as_micros()
    }

    pub fn asks(&mut self, ask: AskId, question: &Question, deadline_us: u64, now: Now) {
        let about = match question {
            Question::KeyPeriods(question) => {
                let named = PREFIXES
                    .iter()
                    .position(|prefix| *prefix == question.prefix);
                let group = named.expect("one of its groups");
                About::Keys {
                    group,
                    which: question.which,
                    joined: self.joins[group],
                }
            }
            Question::Source(question) => {
                let name = match &question.source {
                    Source::Org(name) => name.clone(),
                    _ => String::new(),
                };
                About::Source((name, question.publisher))
            }
            _ => return,
        };
        assert!(deadline_us > now.mono.as_micros(), "asked too late");
        self.all.push(Asked {
            ask,
            about,
            deadline_us,
            answered: false,
        });
        let of_source = |asked: &&Asked| matches!(asked.about, About::Source(_));
        let open = || self.all.iter().filter(|asked| self.is_open(asked, now));
        let lookups = open().filter(of_source).count();
        assert!(lookups <= self.bounds.lookups, "too many lookups");
        let keys = open().count() - lookups;
        assert!(keys <= self.bounds.keys, "too many questions about keys");
    }
}

impl Play<'_> {
    /// The machine asks.
    pub fn asks(&mut self, ask: AskId, question: &Question, deadline_us: u64) {
        if let Question::Source(question) = question {
            let known = self.books.is_publisher(&question.publisher);
            assert!(known, "nobody is looked up who did not sign");
        }
        let now = self.now();
        self.asks.asks(ask, question, deadline_us, now);
    }

    /// The machine says how joining went.
    pub fn keys(&self, group: GroupId, ready: Result<SealPolicy, UnopenedReason>) {
        let index = self.asks.groups.iter().position(|id| *id == Some(group));
        if let (Some(index), Ok(policy), true) = (index, ready, self.books.at_once) {
            assert_eq!(
                self.books.trust.policy(index),
                Some(policy),
                "not what was heard"
            );
        }
    }

    /// The application joins a group, or joins it again with another token.
    pub fn join(&mut self, group: usize, token: Option<u8>) {
        self.drain();
        let now = self.now();
        let mut request = Group::new(realm(), PREFIXES[group]);
        if let Some(token) = token {
            request = request.token(Token::new(vec![token; 4]));
        }
        let joined = self
            .under
            .client()
            .map(|client| client.join_group(now, request));
        if let Some(Ok(id)) = joined {
            if self.asks.groups[group] != Some(id) {
                self.asks.joins[group] += 1;
            }
            self.asks.groups[group] = Some(id);
            self.books.trust.joins(group);
        }
    }

    pub fn leave(&mut self, group: usize) {
        self.drain();
        let (now, id) = (self.now(), self.asks.groups[group]);
        if let (Some(id), Some(client)) = (id, self.under.client())
            && client.leave_group(now, id).is_ok()
        {
            self.asks.joins[group] += 1;
            self.books.trust.leaves(group, now);
        }
    }

    /// Somebody answers one of the last questions, whatever became of it.
    pub fn answer(&mut self, back: u8, kind: u8, c: u8) {
        self.drain();
        let back = 1 + usize::from(back) % REACH;
        let Some(index) = self.asks.all.len().checked_sub(back) else {
            return;
        };
        let (now, c) = (self.now(), usize::from(c));
        match &self.asks.all[index].about {
            About::Source(_) => {
                let all = SourceRefusal::ALL;
                let answer = match kind % 8 {
                    0..=3 => SourceAnswer::Admit {
                        until: now.wall.saturating_add(c as u64 * 2500),
                    },
                    4 | 5 => SourceAnswer::Refuse(all[c % all.len()]),
                    6 => SourceAnswer::Unknown,
                    _ => return self.answer_wrong(index, Answer::Verified(c & 1 == 0)),
                };
                self.answer_source(index, answer);
            }
            About::Keys { which, .. } => {
                let all = UnopenedReason::ALL;
                let period = match which {
                    Which::One(id) => u64::from_be_bytes(*id),
                    _ => keys::current(now.wall),
                };
                let period = match kind % 8 {
                    5 => period.wrapping_add_signed([1, -1, 7, -90][c % 4]),
                    _ => period,
                };
                let following = match which {
                    Which::Current => u64::from(kind & 8 == 0),
                    _ => u64::from(kind & 24 == 24),
                };
                let fault = match kind % 8 {
                    3 => Fault::Secret,
                    4 => [
                        Fault::TooMany,
                        Fault::Apart,
                        Fault::TooShort,
                        Fault::Acceptance,
                    ][c / 4 % 4],
                    _ => Fault::None,
                };
                match kind % 8 {
                    6 => self.refuse_keys(index, all[c % all.len()]),
                    7 => self.answer_wrong(index, Answer::Source(SourceAnswer::Unknown)),
                    _ => {
                        let policy = SealPolicy::ALL[c % 3];
                        self.answer_keys(index, policy, (period, following, fault));
                    }
                }
            }
        }
    }

    /// What is left to those who answer by themselves.
    pub fn answer_all(&mut self) {
        let now = self.now();
        loop {
            let open = |asked: &Asked| self.asks.is_open(asked, now);
            let Some(index) = self.asks.all.iter().position(open) else {
                return;
            };
            match &self.asks.all[index].about {
                About::Source((source, publisher)) => {
                    let wanted = [node(10), node(if source.is_empty() { 11 } else { 12 })];
                    let until = now.wall.saturating_add(400_000);
                    let answer = if wanted.contains(publisher) {
                        SourceAnswer::Admit { until }
                    } else if *publisher == node(13) {
                        SourceAnswer::Unknown
                    } else {
                        SourceAnswer::Refuse(SourceRefusal::NotFound)
                    };
                    self.answer_source(index, answer);
                }
                About::Keys { group, which, .. } => {
                    let policy = SealPolicy::ALL[(group + 1) % 3];
                    let (period, following) = match which {
                        Which::One(id) => (u64::from_be_bytes(*id), 0),
                        _ => (keys::current(now.wall), 1),
                    };
                    if keys::is_known(period) {
                        self.answer_keys(index, policy, (period, following, Fault::None));
                    } else {
                        self.refuse_keys(index, UnopenedReason::UnknownPeriod);
                    }
                }
            }
            self.drain();
        }
    }

    fn answer_source(&mut self, index: usize, answer: SourceAnswer) {
        if !self.hand(index, Answer::Source(answer)) {
            return;
        }
        let now = self.now();
        let Bounds {
            cache_ttl_ms,
            refusal_ttl_ms,
            ..
        } = self.asks.bounds;
        let About::Source(of) = &self.asks.all[index].about else {
            return;
        };
        let trust = &mut self.books.trust;
        match answer {
            SourceAnswer::Admit { until } if until > now.wall => {
                let left = until.since(now.wall).unsigned_abs();
                trust.admits(of, now, left.min(cache_ttl_ms));
            }
            // One that is over refuses.
            SourceAnswer::Admit { .. } | SourceAnswer::Refuse(_) => {
                trust.refuses(of, now, refusal_ttl_ms);
            }
            _ => {}
        }
    }

    fn answer_keys(&mut self, index: usize, policy: SealPolicy, given: (u64, u64, Fault)) {
        let About::Keys { group, which, .. } = self.asks.all[index].about else {
            return;
        };
        if !keys::is_known(given.0) {
            return;
        }
        let answer = keys::answer(group, policy, given.0, given.1, given.2);
        let now = self.now();
        if self.hand(index, Answer::KeyPeriods(Ok(answer))) {
            self.books.trust.gives(group, which, policy, given, now);
        }
    }

    fn refuse_keys(&mut self, index: usize, reason: UnopenedReason) {
        if self.hand(index, Answer::KeyPeriods(Err(reason)))
            && let About::Keys { group, .. } = self.asks.all[index].about
        {
            self.books.trust.denies(group, reason);
        }
    }

    /// An answer is taken once and in time. Whether this one is.
    fn hand(&mut self, index: usize, answer: Answer) -> bool {
        let now = self.now();
        let asked = &self.asks.all[index];
        let (ask, open) = (asked.ask, self.asks.is_open(asked, now));
        let taken = self
            .under
            .client()
            .map(|client| client.answer(now, ask, answer));
        let wanted = if open {
            Ok(())
        } else {
            Err(Misuse::DeadHandle)
        };
        assert_eq!(taken, Some(wanted), "of {:?}", self.asks.all[index]);
        self.asks.all[index].answered |= open;
        open
    }

    /// An answer to another kind of question leaves this one as it is.
    fn answer_wrong(&mut self, index: usize, answer: Answer) {
        let (now, ask) = (self.now(), self.asks.all[index].ask);
        let taken = self
            .under
            .client()
            .map(|client| client.answer(now, ask, answer));
        assert_eq!(taken, Some(Err(Misuse::WrongAnswer)));
    }
}
