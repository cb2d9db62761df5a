//! Who answers what a node cannot know itself.
//!
//! Decides: that every question gets an answer, at the latest when its [`Reply`] is dropped. Leaves to others: the answers ([`Answers`]), and in
//! which call they reach the core (the drivers). Believes: no clock; what is answered too late is nobody's. Bounded by: the core's bounds of
//! questions.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tidings::code::UnopenedReason;
use tidings::inbound::sources::SourceAnswer;
use tidings::{Answer, KeyPeriods, KeyQuestion, NodeId, Question, RealmId, Source, SourceQuestion};

/// Answers a node's questions. Each call returns at once: what takes long moves its [`Reply`] to a thread or a task, and answers from there.
///
/// A method that is not written answers that nothing could be found out.
///
/// ```
/// use tidings::code::UnopenedReason;
/// use tidings::{KeyPeriods, KeyQuestion};
/// use tidings_common::{Answers, Reply, Table};
///
/// /// Asks a table that is slow, such as one behind a network.
/// struct Slow(Table);
///
/// impl Answers for Slow {
///     fn keys(&mut self, question: KeyQuestion, reply: Reply<Result<KeyPeriods, UnopenedReason>>) {
///         let mut table = self.0.clone();
///         std::thread::spawn(move || table.keys(question, reply));
///     }
/// }
/// ```
pub trait Answers: Send {
    /// What are the keys of this group? To be answered within `keyring::PULL_PATIENCE`.
    fn keys(&mut self, question: KeyQuestion, reply: Reply<Result<KeyPeriods, UnopenedReason>>) {
        let _nobody_knows = (question, reply);
    }

    /// Does this source admit this publisher? To be answered within `SourceLimits::lookup_timeout_ms`.
    fn source(
        &mut self,
        realm: RealmId,
        source: Source,
        publisher: NodeId,
        reply: Reply<SourceAnswer>,
    ) {
        let _nobody_knows = (realm, source, publisher, reply);
    }
}

/// Answers nothing: no key is had, nobody who must be looked up is admitted. What a node does unless it is given something else.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct Nobody;

impl Answers for Nobody {}

/// The way back of one answer, from any thread, now or later. Dropped, it says that nothing could be found out.
#[must_use = "dropped, it says that nothing could be found out"]
pub struct Reply<T>(Option<Box<dyn FnOnce(Option<T>) + Send>>);

impl<T> Reply<T> {
    /// For who asks: is called once, with `None` where the reply was dropped.
    pub fn new(back: impl FnOnce(Option<T>) + Send + 'static) -> Self {
        Self(Some(Box::new(back)))
    }

    /// Answers.
    pub fn answer(mut self, answer: T) {
        if let Some(back) = self.0.take() {
            back(Some(answer));
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(back) = self.0.take() {
            back(None);
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// Who answers, as a driver shares it between its threads: one question at a time.
#[derive(Clone)]
pub struct Answerer(Arc<Mutex<dyn Answers>>);

impl Answerer {
    /// Makes it.
    pub fn new(answers: impl Answers + 'static) -> Self {
        Self(Arc::new(Mutex::new(answers)))
    }

    /// Asks. `back` is called once, from anywhere, and perhaps before this returns: no lock that it takes may be held.
    pub fn ask(&self, question: Question, back: impl FnOnce(Answer) + Send + 'static) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match question {
            Question::KeyPeriods(question) => {
                let reply = Reply::new(|answer: Option<_>| {
                    let none = Err(UnopenedReason::NoDistributor);
                    back(Answer::KeyPeriods(answer.unwrap_or(none)));
                });
                answers.keys(*question, reply);
            }
            Question::Source(question) => {
                let SourceQuestion {
                    realm,
                    source,
                    publisher,
                    ..
                } = *question;
                let reply = Reply::new(|answer: Option<_>| {
                    back(Answer::Source(answer.unwrap_or(SourceAnswer::Unknown)));
                });
                answers.source(realm, source, publisher, reply);
            }
            // Where a driver has no threads for it.
            Question::Verify(job) => back(Answer::Verified(job.run())),
            // A kind of a later core: it is given up at its deadline.
            _ => {}
        }
    }
}

impl Default for Answerer {
    fn default() -> Self {
        Self::new(Nobody)
    }
}

impl fmt::Debug for Answerer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answerer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_reply_answers_once_from_any_thread_and_says_so_when_it_is_dropped() {
        let (told, said) = mpsc::channel();
        let reply = |told: &mpsc::Sender<Option<u8>>| {
            let told = told.clone();
            Reply::new(move |answer| told.send(answer).unwrap())
        };
        reply(&told).answer(7);
        drop(reply(&told));
        let later = reply(&told);
        std::thread::spawn(move || later.answer(8)).join().unwrap();
        drop(told);
        assert_eq!(said.iter().collect::<Vec<_>>(), [Some(7), None, Some(8)]);
    }
}
