//! Threads that check signatures, so that the core's call does not have to.
//!
//! Decides: how many threads run, how much of what waits each takes at once, and when links are to
//! be read again. Leaves to others: what an answer means (the core). Believes: the engine's clock,
//! for questions that were given up. Bounded by: the threads asked for; half of
//! `ClientLimits::pending_verifications` and an eighth of `ClientLimits::held_bytes` open at once,
//! beyond which no link is read until half of them are answered.
//!
//! The core drops facts when too many questions are open. A node that reads on while its threads
//! are busy would lose what it could have waited for, so it does not read on: the task of a link
//! that may not be read takes its share of what waits instead.
//!
//! What one call of the core asked is handed over at once, and answered by as few calls as there
//! are shares: handing a signature over and waking whoever waits for it costs as much as checking
//! it does.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use tidings::{Answer, AskId, ClientLimits, VerifyJob};

use crate::engine::Engine;
use crate::node::NodeHost;

/// As one sees them in lists of threads; Linux keeps 15 bytes.
const NAME: &str = "tidings-verify";
/// Threads by default, where there are as many cores beside the first.
const MOST_BY_DEFAULT: usize = 4;
/// Signatures answered in one call at most: a millisecond's work.
const SHARE: usize = 32;
/// Events that one read of a link may bring. Below twice as many open questions, nothing is asked.
const PER_READ: usize = tidings_common::MOST_READ / 256;

/// How many threads suit this machine: none with one core.
pub(crate) fn default_threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (cores - 1).min(MOST_BY_DEFAULT)
}

/// Whether these bounds leave room for questions.
pub(crate) fn suits(limits: &ClientLimits) -> bool {
    limits.pending_verifications >= 2 * PER_READ && limits.held_bytes >= 1 << 20
}

/// One question.
struct Job {
    ask: AskId,
    job: VerifyJob,
}

/// Checks a share of what waits, and answers it in one call.
fn answer(engine: &Arc<Engine<NodeHost>>, share: &[Job]) {
    // Also past their deadline: after the process was stopped the core waits for them (`engine`).
    let answers = VerifyJob::run_all(share.iter().map(|job| &job.job));
    engine.with(|state, now| {
        let mut eased = false;
        for (job, verified) in share.iter().zip(answers) {
            let answer = Answer::Verified(verified);
            state.host.client.answer(now, job.ask, answer).ok();
            eased |= state.host.verified(job.job.object().len());
        }
        if eased {
            state.wake_paused();
        }
    });
}

/// Works one share off on the time of a task, a millisecond's work. False when none waits, or
/// somebody lends a hand already.
pub(crate) fn help(engine: &Arc<Engine<NodeHost>>) -> bool {
    let found = {
        let state = engine.lock();
        state.host.pool().map(|pool| Arc::clone(&pool.shared))
    };
    let Some(shared) = found else {
        return false;
    };
    if std::mem::replace(&mut shared.lock().helped, true) {
        return false;
    }
    let some = shared.work(engine);
    shared.lock().helped = false;
    some
}

/// What the threads take from.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Threads that wait for jobs.
    idle: usize,
    /// Somebody beside them lends a hand.
    helped: bool,
    closed: bool,
}

impl Queue {
    /// What one of `hands` takes on: so much that each has something, and at most [`SHARE`].
    fn share(&mut self, hands: usize) -> Vec<Job> {
        let share = share(self.jobs.len(), hands);
        self.jobs.drain(..share).collect()
    }
}

fn share(waiting: usize, hands: usize) -> usize {
    waiting.div_ceil(hands.max(1)).min(SHARE)
}

/// What all hands share.
struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    /// The threads, and the task of a link that lends a hand.
    hands: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next share, waited for; `None` once closed.
    fn next(&self) -> Option<Vec<Job>> {
        let mut queue = self.lock();
        while queue.jobs.is_empty() && !queue.closed {
            queue.idle += 1;
            let waited = self.ready.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
        Some(queue.share(self.hands)).filter(|share| !share.is_empty())
    }

    /// Works one share off. False when none waits.
    fn work(&self, engine: &Arc<Engine<NodeHost>>) -> bool {
        let share = self.lock().share(self.hands);
        let some = !share.is_empty();
        if some {
            answer(engine, &share);
        }
        some
    }
}

/// The threads of one node, and how much they have before them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    most: usize,
    backlog: Backlog,
    /// Questions of the call at hand.
    asked: Vec<Job>,
}

impl Pool {
    /// Up to so many threads, each started when it is first needed.
    pub(crate) fn new(threads: usize, limits: &ClientLimits) -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                ready: Condvar::new(),
                hands: threads + 1,
            }),
            threads: Vec::new(),
            most: threads,
            backlog: Backlog::new(limits),
            asked: Vec::new(),
        }
    }

    /// Takes a question on; [`Self::hand_over`] follows before the engine is unlocked.
    pub(crate) fn push(&mut self, ask: AskId, job: VerifyJob) {
        self.backlog.add(job.object().len());
        self.asked.push(Job { ask, job });
    }

    /// Gives the threads what was asked since the last time.
    pub(crate) fn hand_over(&mut self, engine: &Arc<Engine<NodeHost>>) {
        let asked = self.asked.len();
        if asked == 0 {
            return;
        }
        let idle = {
            let mut queue = self.shared.lock();
            if queue.closed {
                return self.asked.clear();
            }
            queue.jobs.extend(self.asked.drain(..));
            queue.idle
        };
        // What these find waiting needs no word to them.
        while self.threads.len() < self.most.min(self.backlog.open) && self.start_thread(engine) {}
        if self.threads.is_empty() {
            // The system has no thread to give: the runtime's have to do.
            let (engine, shared) = (Arc::clone(engine), Arc::clone(&self.shared));
            let runtime = engine.runtime.clone();
            runtime.spawn(async move {
                while shared.work(&engine) {
                    tokio::task::yield_now().await;
                }
            });
        }
        for _ in 0..idle.min(asked) {
            self.shared.ready.notify_one();
        }
    }

    /// False when the system has none to give.
    fn start_thread(&mut self, engine: &Arc<Engine<NodeHost>>) -> bool {
        let shared = Arc::clone(&self.shared);
        // A thread that waits does not keep a node that everybody let go.
        let engine: Weak<Engine<NodeHost>> = Arc::downgrade(engine);
        let work = move || {
            while let Some(share) = shared.next()
                && let Some(engine) = engine.upgrade()
            {
                answer(&engine, &share);
            }
        };
        let started = thread::Builder::new().name(NAME.to_owned()).spawn(work);
        let some = started.is_ok();
        self.threads.extend(started);
        some
    }

    /// A question is not open any more. True when links may be read again.
    pub(crate) fn answered(&mut self, bytes: usize) -> bool {
        self.backlog.remove(bytes)
    }

    /// Whether a question is open.
    pub(crate) fn is_open(&self) -> bool {
        self.backlog.open > 0
    }

    /// So much is open that no link is to be read.
    pub(crate) fn is_busy(&self) -> bool {
        self.backlog.busy
    }

    /// Lets the threads end after what each is at, and answers them, to be waited for.
    pub(crate) fn close(&mut self) -> Vec<JoinHandle<()>> {
        let left = {
            let mut queue = self.shared.lock();
            queue.closed = true;
            std::mem::take(&mut queue.jobs)
        };
        self.shared.ready.notify_all();
        drop(left);
        std::mem::take(&mut self.threads)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.threads.len())
            .field("backlog", &self.backlog)
            .finish_non_exhaustive()
    }
}

/// What is open, and whether that is too much.
#[derive(Debug)]
struct Backlog {
    open: usize,
    bytes: usize,
    most_open: usize,
    most_bytes: usize,
    busy: bool,
}

impl Backlog {
    fn new(limits: &ClientLimits) -> Self {
        Self {
            open: 0,
            bytes: 0,
            most_open: limits.pending_verifications / 2,
            most_bytes: limits.held_bytes / 8,
            busy: false,
        }
    }

    fn add(&mut self, bytes: usize) {
        self.open += 1;
        self.bytes += bytes;
        self.busy |= self.open >= self.most_open || self.bytes >= self.most_bytes;
    }

    /// True when it was too much and half of that is gone.
    fn remove(&mut self, bytes: usize) -> bool {
        self.open = self.open.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        let eased = self.open <= self.most_open / 2 && self.bytes <= self.most_bytes / 2;
        let was_busy = self.busy;
        self.busy &= !eased;
        was_busy && !self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_half_of_the_bound_and_goes_on_at_a_quarter() {
        let limits = ClientLimits::default();
        let mut backlog = Backlog::new(&limits);
        for open in 1..=512 {
            backlog.add(300);
            assert_eq!(backlog.busy, open == 512);
        }
        for left in (256..512).rev() {
            assert_eq!(backlog.remove(300), left == 256, "{left}");
        }
        assert!(!backlog.busy);
    }

    #[test]
    fn a_share_leaves_something_to_every_other_hand_and_is_a_milliseconds_work_at_most() {
        for (waiting, hands, taken) in [
            (0, 2, 0),
            (1, 2, 1),
            (5, 2, 3),
            (5, 5, 1),
            (64, 2, 32),
            (1000, 5, SHARE),
        ] {
            assert_eq!(share(waiting, hands), taken, "{waiting} among {hands}");
        }
    }

    #[test]
    fn reading_stops_for_bytes_as_well() {
        let mut backlog = Backlog::new(&ClientLimits::default());
        for _ in 0..7 {
            backlog.add(1 << 20);
        }
        assert!(!backlog.busy);
        backlog.add(1 << 20);
        assert!(backlog.busy);
        let freed = (0..4).filter(|_| backlog.remove(1 << 20)).count();
        assert_eq!((freed, backlog.busy), (1, false));
    }

    #[test]
    fn what_one_read_brings_fits_beside_what_is_open() {
        let limits = ClientLimits::default();
        assert!(suits(&limits));
        let backlog = Backlog::new(&limits);
        assert!(backlog.most_open + PER_READ < limits.pending_verifications);
        let most_frame = 0xff_ffff / 16; // the default of `max_frame`
        let in_bytes = backlog.most_bytes + tidings_common::MOST_READ + most_frame;
        assert!(in_bytes < limits.held_bytes / 4);
        let mut small = ClientLimits::default();
        small.pending_verifications = 100;
        assert!(!suits(&small));
    }
}
