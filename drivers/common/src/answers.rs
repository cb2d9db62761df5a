//! Who answers what a node cannot know itself.
//!
//! Decides: that whatever is handed to whoever answers is answered, at the latest when its [`Reply`] is dropped, and that nobody waits for that. Leaves to
//! others: the answers ([`Answers`]), and in which call they reach the core (the drivers). Believes: no clock; what is answered too late is
//! nobody's. Bounded by: one thread per node while there are questions, and 1,024 of them.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tidings::code::UnopenedReason;
use tidings::inbound::sources::SourceAnswer;
use tidings::{Answer, KeyPeriods, KeyQuestion, NodeId, Question, RealmId, Source, SourceQuestion};

/// As one sees it in lists of threads; Linux keeps 15 bytes.
const NAME: &str = "tidings-answers";
/// Questions that wait at once for whoever answers; for one more, the first is given up.
const MOST_WAITING: usize = 1024;

/// Answers a node's questions, on a thread of its own: a call may take its time, and other questions wait meanwhile. Who is to answer several at once
/// moves their [`Reply`]s elsewhere, to threads or tasks, and answers from there.
///
/// A method that is not written answers that nothing could be found out.
///
/// ```
/// use tidings::code::UnopenedReason;
/// use tidings::{KeyPeriods, KeyQuestion};
/// use tidings_common::{Answers, Reply, Table};
///
/// /// Asks a table that is slow, such as one behind a network, and asks it several questions at once.
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

/// Who answers, as a driver shares it: on a thread that lives while there are questions, one question at a time, of those that wait the one asked last.
/// Whoever takes long holds up the questions asked before it, and nothing else of its node: where more is asked than can be answered, what was asked
/// first is over soon, and answering it first would be too late for every one.
#[derive(Clone)]
pub struct Answerer(Arc<Queue>);

/// Questions, and who answers them.
struct Queue {
    answers: Mutex<Box<dyn Answers>>,
    asked: Mutex<Asked>,
}

/// Asks one question.
type Job = Box<dyn FnOnce(&mut dyn Answers) + Send>;

#[derive(Default)]
struct Asked {
    waiting: VecDeque<Job>,
    /// A thread is at it.
    busy: bool,
}

impl Answerer {
    /// Makes it.
    pub fn new(answers: impl Answers + 'static) -> Self {
        Self(Arc::new(Queue {
            answers: Mutex::new(Box::new(answers)),
            asked: Mutex::default(),
        }))
    }

    /// Asks, and returns at once. `back` is called once, from anywhere, and for a signature before this returns: no lock that it takes may be held
    /// then. It is not called for the first of more than 1,024 that wait at once: its time is over, or will be soon.
    pub fn ask(&self, question: Question, back: impl FnOnce(Answer) + Send + 'static) {
        let job: Job = match question {
            Question::KeyPeriods(question) => Box::new(|answers| {
                let reply = Reply::new(|answer: Option<_>| {
                    let none = Err(UnopenedReason::NoDistributor);
                    back(Answer::KeyPeriods(answer.unwrap_or(none)));
                });
                answers.keys(*question, reply);
            }),
            Question::Source(question) => Box::new(|answers| {
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
            }),
            // Where a driver has no threads for it.
            Question::Verify(job) => return back(Answer::Verified(job.run())),
            // A kind of a later core: it is given up at its deadline.
            _ => return,
        };
        self.push(job);
    }

    fn push(&self, job: Job) {
        let mut asked = lock(&self.0.asked);
        if asked.waiting.len() >= MOST_WAITING {
            asked.waiting.pop_front();
        }
        asked.waiting.push_back(job);
        if !asked.busy {
            let queue = Arc::downgrade(&self.0);
            let thread = std::thread::Builder::new().name(NAME.to_owned());
            // The system may have none to give: the next question asks for one again.
            asked.busy = thread.spawn(move || work(&queue)).is_ok();
        }
    }
}

/// Asks what waits, until nothing does or nobody is left who wants to know.
fn work(queue: &Weak<Queue>) {
    while let Some(queue) = queue.upgrade() {
        let job = {
            let mut asked = lock(&queue.asked);
            let job = asked.waiting.pop_back();
            asked.busy = job.is_some();
            job
        };
        let Some(job) = job else { return };
        let mut answers = lock(&queue.answers);
        // Its reply was dropped on the way, which is an answer.
        catch_unwind(AssertUnwindSafe(|| job(&mut **answers))).ok();
    }
}

/// Whoever answers panicked: that was its own affair.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Waits for a word before each answer, and panics where that is no.
    struct Told(mpsc::Receiver<bool>);

    impl Answers for Told {
        fn source(&mut self, _: RealmId, _: Source, _: NodeId, reply: Reply<SourceAnswer>) {
            assert!(self.0.recv().unwrap(), "told to");
            reply.answer(SourceAnswer::Unknown);
        }
    }

    /// The numbers of questions, and whether they were answered.
    type Said = mpsc::Receiver<(usize, bool)>;

    /// Asks so many questions, the first of which is under way before the others are asked.
    fn ask(many: usize) -> (Answerer, mpsc::Sender<bool>, Said) {
        let (tell, told) = mpsc::channel();
        let answerer = Answerer::new(Told(told));
        let (say, said) = mpsc::channel();
        for n in 0..many {
            let say = say.clone();
            answerer.push(Box::new(move |answers| {
                let reply = Reply::new(move |answer| say.send((n, answer.is_some())).unwrap());
                let (realm, publisher) = (RealmId::of_name("demo"), NodeId::new([1; 32]));
                answers.source(realm, Source::Members, publisher, reply);
            }));
            while n == 0 && !lock(&answerer.0.asked).waiting.is_empty() {
                std::thread::yield_now();
            }
        }
        (answerer, tell, said)
    }

    #[test]
    fn nobody_who_asks_waits_and_of_what_waits_the_last_is_answered_first() {
        let (_answerer, tell, said) = ask(3);
        // Whoever answers is at the first question still.
        assert!(said.try_recv().is_err());
        (0..3).for_each(|_| tell.send(true).unwrap());
        assert_eq!(
            said.iter().collect::<Vec<_>>(),
            [(0, true), (2, true), (1, true)]
        );
    }

    #[test]
    fn whoever_panics_has_found_nothing_out_and_is_asked_again() {
        let (_answerer, tell, said) = ask(3);
        for word in [true, false, true] {
            tell.send(word).unwrap();
        }
        assert_eq!(
            said.iter().collect::<Vec<_>>(),
            [(0, true), (2, false), (1, true)]
        );
    }

    #[test]
    fn of_too_many_questions_those_asked_first_are_given_up() {
        let many = MOST_WAITING + 10;
        let (_answerer, tell, said) = ask(many);
        (0..many).for_each(|_| tell.send(true).unwrap());
        let said: Vec<(usize, bool)> = said.iter().collect();
        // The first was under way already.
        assert_eq!(said.len(), MOST_WAITING + 1);
        assert_eq!(said[..2], [(0, true), (many - 1, true)]);
        assert!(said.iter().all(|(n, _)| *n == 0 || *n >= 10));
    }

    #[test]
    fn when_its_node_is_gone_whoever_answers_is_asked_no_more() {
        let (answerer, tell, said) = ask(3);
        drop(answerer);
        // It ends with the question it was at, if with any.
        (0..3).for_each(|_| tell.send(true).unwrap_or_default());
        assert!(said.iter().count() <= 1);
    }
}
