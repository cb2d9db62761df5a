//! The thread of a node or a station, and the lock it shares with their handles.
//!
//! Decides: who is woken when. Leaves to others: everything a turn does (`driven.rs`). Believes: the host's clock, for how long a
//! handle waits. Bounded by: one thread; 256 events per wait; one outcome kept per publication somebody waits for.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Host};

use mio::{Events, Poll, Registry, Token, Waker};
use tidings::{Action, AskId, Instant, Outcome, Question, Ready, Ticket};
use tidings_common::{Answerer, Did, Run, StartError, patience};

use crate::driven::{Driven, STEPS};

/// The waker's.
const WAKE: Token = Token(0);
/// The sockets' are from here on.
pub(crate) const SOCKETS: Token = Token(1);
/// Events taken from the system at once.
const EVENTS: usize = 256;

/// What the lock guards.
pub(crate) struct State<M> {
    pub(crate) driven: Driven<M>,
    /// Publications whose outcome somebody waits for.
    pub(crate) tickets: BTreeMap<Ticket, Option<Outcome>>,
    /// The thread waits for events, or is about to, until then.
    asleep: Option<Option<Instant>>,
    /// The thread has ended.
    pub(crate) ended: bool,
}

/// What a thread and its handles share.
pub(crate) struct Shared<M> {
    state: Mutex<State<M>>,
    /// Taken before the state, and let go once it is held: who waits for the state comes before who had it last.
    turnstile: Mutex<()>,
    waker: Waker,
    answers: Answerer,
    /// Raised when a stream has something to read.
    pub(crate) items: Condvar,
    /// Raised after each turn that may have changed what somebody waits for.
    pub(crate) changed: Condvar,
}

impl<M: Run + Send + 'static> Shared<M> {
    /// Starts the thread, with what `make` makes for its registry. What comes beside it is handed back.
    pub(crate) fn start<T>(
        name: &str,
        answers: Answerer,
        make: impl FnOnce(&Registry) -> Result<(Driven<M>, T), StartError>,
    ) -> Result<(Arc<Self>, T), StartError> {
        let io = |error: std::io::Error| StartError::Io { kind: error.kind() };
        let poll = Poll::new().map_err(io)?;
        let waker = Waker::new(poll.registry(), WAKE).map_err(io)?;
        let (driven, beside) = make(poll.registry())?;
        let shared = Arc::new(Self {
            state: Mutex::new(State {
                driven,
                tickets: BTreeMap::new(),
                asleep: None,
                ended: false,
            }),
            turnstile: Mutex::default(),
            waker,
            answers,
            items: Condvar::new(),
            changed: Condvar::new(),
        });
        let run = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || run.run(poll)).map_err(io)?;
        Ok((shared, beside))
    }

    /// The state, for getters. A panic of another call left it as whole as the machine leaves itself.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<M>> {
        let turn = self
            .turnstile
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn);
        state
    }

    /// A call that leaves the thread something to do.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut Driven<M>) -> R) -> R {
        let mut state = self.lock();
        let result = call(&mut state.driven);
        self.wake(&mut state);
        result
    }

    /// Lets the thread look, where there is something for it.
    pub(crate) fn wake(&self, state: &mut State<M>) {
        let Some(until) = state.asleep else {
            return;
        };
        let seats = &state.driven.seats;
        let sooner = seats.deadline();
        if seats.is_due() || sooner.is_some_and(|at| until.is_none_or(|until| at < until)) {
            state.asleep = None;
            // It cannot fail but for a bug; the thread then looks when its own time has come.
            self.waker.wake().ok();
        }
    }

    /// Looks again whenever `signal` is raised until `look` finds something, or the time is over.
    pub(crate) fn wait<R>(
        &self,
        signal: &Condvar,
        within: Duration,
        mut look: impl FnMut(&mut State<M>) -> Option<R>,
    ) -> Option<R> {
        let start = Host::now();
        let mut state = self.lock();
        loop {
            let found = look(&mut state);
            self.wake(&mut state);
            let left = within.saturating_sub(start.elapsed());
            if found.is_some() || left.is_zero() {
                return found;
            }
            let waited = signal.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says goodbye on every link, and waits until the sockets are closed.
    pub(crate) fn close(&self) {
        self.call(Driven::close);
        self.await_end();
    }

    /// Drops every socket, and waits until they are closed.
    pub(crate) fn kill(&self) {
        self.call(Driven::kill);
        self.await_end();
    }

    fn await_end(&self) {
        self.wait(&self.changed, patience::CLOSE, |state| {
            state.ended.then_some(())
        });
    }

    /// Asks whoever knows, and hands the answer to the machine whenever it comes.
    fn ask(self: &Arc<Self>, ask: AskId, question: Question) {
        let shared = Arc::downgrade(self);
        self.answers.ask(question, move |answer| {
            if let Some(shared) = shared.upgrade() {
                shared
                    .call(|driven| driven.with(|machine, now| machine.answered(now, ask, answer)));
            }
        });
    }

    fn run(self: Arc<Self>, mut poll: Poll) {
        let _end = End(&self);
        let mut events = Events::with_capacity(EVENTS);
        while let Some(timeout) = self.turn() {
            match poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => {}
            }
            let mut state = self.lock();
            state.asleep = None;
            for event in &events {
                state.driven.handle_event(event);
            }
        }
    }

    /// Does what is due, and answers how long there may be nothing; `None` when it is over. The lock is let go after every step.
    fn turn(self: &Arc<Self>) -> Option<Option<Duration>> {
        for _ in 0..STEPS {
            let mut state = self.lock();
            match state.driven.step() {
                Did::Hand(Action::Ready(Ready::Subscription(_))) => self.items.notify_all(),
                Did::Hand(Action::Settle { ticket, outcome }) => {
                    if let Some(waiting) = state.tickets.get_mut(&ticket) {
                        *waiting = Some(outcome);
                    }
                }
                Did::Hand(Action::Ask { ask, question, .. }) => {
                    drop(state);
                    self.ask(ask, question);
                }
                Did::Nothing => break,
                _ => {}
            }
        }
        self.changed.notify_all();
        let mut state = self.lock();
        let timeout = state.driven.timeout();
        state.asleep = Some(state.driven.seats.deadline());
        (!state.driven.is_closed()).then_some(timeout)
    }
}

impl<M> fmt::Debug for Shared<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// The thread's end, however it comes: nobody waits for it any more.
struct End<'a, M: Run + Send + 'static>(&'a Shared<M>);

impl<M: Run + Send + 'static> Drop for End<'_, M> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.driven.kill();
        state.ended = true;
        drop(state);
        self.0.items.notify_all();
        self.0.changed.notify_all();
    }
}
