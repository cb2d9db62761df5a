//! Threads that check signatures, so that the core's call does not have to.
//!
//! Decides: how many threads run, and when links are to be read again. Leaves to others: what an
//! answer means (the core). Believes: the engine's clock, for questions that were given up. Bounded
//! by: the threads asked for; half of `ClientLimits::pending_verifications` and an eighth of
//! `ClientLimits::held_bytes` open at once, beyond which no link is read until half of them are
//! answered.
//!
//! The core drops facts when too many questions are open. A node that reads on while its threads
//! are busy would lose what it could have waited for, so it does not read on.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tidings::{Answer, AskId, ClientLimits, VerifyJob};

use crate::engine::Engine;
use crate::node::NodeHost;

/// As one sees them in lists of threads; Linux keeps 15 bytes.
const NAME: &str = "tidings-verify";
/// Threads by default, where there are as many cores beside the first.
const MOST_BY_DEFAULT: usize = 4;
/// Events that one read of a link may bring. Below twice as many open questions, nothing is asked.
const PER_READ: usize = crate::link::MOST_READ / 256;

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
    engine: Arc<Engine<NodeHost>>,
    ask: AskId,
    job: VerifyJob,
}

impl Job {
    fn answer(self) {
        // Also past its deadline: after the process was stopped the core waits for it (`engine`).
        let answer = Answer::Verified(self.job.run());
        self.engine.with(|state, now| {
            state.host.client.answer(now, self.ask, answer).ok();
            if state.host.verified(self.job.object().len()) {
                state.wake_paused();
            }
        });
    }
}

/// What the threads take from.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
}

impl Shared {
    fn with<R>(&self, act: impl FnOnce(&mut Queue) -> R) -> R {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next job, waited for; `None` once closed.
    fn next(&self) -> Option<Job> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.closed;
        let waited = self.ready.wait_while(queue, idle);
        waited
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .pop_front()
    }
}

/// The threads of one node, and how much they have before them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    most: usize,
    backlog: Backlog,
}

impl Pool {
    /// Up to so many threads, each started when it is first needed.
    pub(crate) fn new(threads: usize, limits: &ClientLimits) -> Self {
        Self {
            shared: Arc::default(),
            threads: Vec::new(),
            most: threads,
            backlog: Backlog::new(limits),
        }
    }

    /// Takes a question on.
    pub(crate) fn push(&mut self, engine: &Arc<Engine<NodeHost>>, ask: AskId, job: VerifyJob) {
        self.backlog.add(job.object().len());
        if self.threads.len() < self.most.min(self.backlog.open) {
            self.start_thread();
        }
        let engine = Arc::clone(engine);
        let job = Job { engine, ask, job };
        if self.threads.is_empty() {
            // The system has no thread to give: the runtime's have to do.
            let runtime = job.engine.runtime.clone();
            runtime.spawn(async move { job.answer() });
            return;
        }
        self.shared.with(|queue| {
            if !queue.closed {
                queue.jobs.push_back(job);
            }
        });
        self.shared.ready.notify_one();
    }

    fn start_thread(&mut self) {
        let shared = Arc::clone(&self.shared);
        let work = move || {
            while let Some(job) = shared.next() {
                job.answer();
            }
        };
        let started = thread::Builder::new().name(NAME.to_owned()).spawn(work);
        self.threads.extend(started);
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
        let left = self.shared.with(|queue| {
            queue.closed = true;
            std::mem::take(&mut queue.jobs)
        });
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
        let in_bytes = backlog.most_bytes + crate::link::MOST_READ + most_frame;
        assert!(in_bytes < limits.held_bytes / 4);
        let mut small = ClientLimits::default();
        small.pending_verifications = 100;
        assert!(!suits(&small));
    }
}
