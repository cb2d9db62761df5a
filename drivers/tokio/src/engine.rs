//! One machine behind one mutex, with its links and its timer.
//!
//! Decides: who is woken after a call. Leaves to others: what a node or a station adds ([`Host`]),
//! the sockets (`link.rs`). Believes: its [`Clock`]. Bounded by: one task per link, as many links
//! as the machine takes; one task for the timer; no queue at all.
//!
//! Every call locks, calls the machine, hands its actions out, reads the deadline again and
//! unlocks. The lock is never held across an await, and wakers of applications are called after it
//! is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tidings::code::CloseReason;
use tidings::pump::Machine;
use tidings::{Action, Instant, LinkEvent, LinkId, Misuse, Now, Outcome, Ready, StationRef, Turn};
use tidings_common::{Clock, IoCounters, patience};
use tidings_tls::TlsFaults;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant as TokioInstant;

use crate::link;
use crate::wire::Connected;

/// A deadline that was missed by so much was missed because the process was stopped.
const STALLED: Duration = Duration::from_secs(1);

/// What is done once the lock is gone: it runs code that is not the driver's.
#[derive(Debug, Default)]
pub(crate) struct After {
    /// Readers and waiters to be woken.
    pub(crate) wakers: Vec<Waker>,
    /// Outcomes to be handed over.
    pub(crate) settled: Vec<(oneshot::Sender<Outcome>, Outcome)>,
}

impl After {
    fn run(self) {
        self.wakers.into_iter().for_each(Waker::wake);
        for (waiting, outcome) in self.settled {
            // Whoever waited may have gone: the outcome is then nobody's.
            waiting.send(outcome).ok();
        }
    }
}

/// What a node or a station adds to the machine they are made of.
pub(crate) trait Host: Send + Sized + 'static {
    /// The machine.
    type Machine: Machine + Send + 'static;

    /// The machine.
    fn machine(&mut self) -> &mut Self::Machine;

    /// Does what is not a link's business.
    fn act(&mut self, engine: &Arc<Engine<Self>>, action: Action, after: &mut After);

    /// The last action of a call was handed out.
    fn acted(&mut self, _engine: &Arc<Engine<Self>>) {}

    /// Does some of what its threads have before them, on the time of a link's task that it keeps from
    /// reading. False when there is nothing to do.
    fn help(_engine: &Arc<Engine<Self>>) -> bool {
        false
    }

    /// A link came, went or was read: there may be room where there was none.
    fn moved(&mut self);

    /// It has so much before it that no link is to be read; [`State::wake_paused`] follows.
    fn is_busy(&self) -> bool {
        false
    }

    /// Something of its own threads is still to be answered.
    fn owes(&self) -> bool {
        false
    }

    /// Says goodbye on every link and ends what there is to end.
    fn close(&mut self, now: Now, after: &mut After);
}

/// How sockets are used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tuning {
    /// Bytes of the operating system's buffer per direction; its own choice when `None`.
    pub(crate) socket_buffers: Option<u32>,
    /// An artificial wait before each write.
    pub(crate) delay_writes: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    Closing,
    /// Sockets are dropped without a goodbye.
    Killed,
}

/// What the engine keeps of one link.
#[derive(Debug)]
struct Entry {
    wake: Arc<Notify>,
    closing: Option<CloseReason>,
}

/// All that the mutex guards.
#[derive(Debug)]
pub(crate) struct State<H> {
    pub(crate) host: H,
    pub(crate) life: Life,
    pub(crate) io: IoCounters,
    links: BTreeMap<LinkId, Entry>,
    paused: BTreeSet<LinkId>,
    /// Whether a listener's socket is still open.
    pub(crate) listening: bool,
    /// Connections that came to no secure channel, by reason.
    pub(crate) tls_faults: TlsFaults,
    /// What the timer's sleep was set for.
    armed: Option<Instant>,
}

impl<H: Host> State<H> {
    /// Why a link is to be closed, once it is.
    pub(crate) fn closing(&self, link: LinkId) -> Option<CloseReason> {
        self.links.get(&link)?.closing
    }

    /// Remembers whether a link waits for a reader.
    pub(crate) fn set_paused(&mut self, link: LinkId, paused: bool) {
        if paused {
            self.paused.insert(link);
        } else if !self.paused.is_empty() {
            self.paused.remove(&link);
        }
    }

    /// Lets the links that wait for a reader try again.
    pub(crate) fn wake_paused(&self) {
        for entry in self.paused.iter().filter_map(|link| self.links.get(link)) {
            entry.wake.notify_one();
        }
    }

    fn gone(&self) -> bool {
        self.links.is_empty() && !self.listening
    }

    /// Hands the machine's actions out. The link that is itself in this call fills its write
    /// afterwards and needs no waking.
    fn dispatch(&mut self, engine: &Arc<Engine<H>>, own: Option<LinkId>, after: &mut After) {
        while let Some(action) = self.host.machine().poll_action() {
            match action {
                Action::Ready(Ready::Link(link)) => {
                    if own != Some(link)
                        && let Some(entry) = self.links.get(&link)
                    {
                        entry.wake.notify_one();
                    }
                }
                Action::Close { link, reason } => {
                    if let Some(entry) = self.links.get_mut(&link) {
                        entry.closing.get_or_insert(reason);
                        entry.wake.notify_one();
                    }
                }
                other => self.host.act(engine, other, after),
            }
        }
        self.host.acted(engine);
    }
}

/// One machine, shared by its handles and tasks.
#[derive(Debug)]
pub(crate) struct Engine<H> {
    state: Mutex<State<H>>,
    pub(crate) clock: Clock,
    pub(crate) runtime: Handle,
    pub(crate) tuning: Tuning,
    /// Raised after every call that may have changed what somebody waits for.
    pub(crate) changed: Notify,
    /// Raised once for the listener when it is to stop.
    pub(crate) stop: Notify,
    timer: Notify,
}

impl<H: Host> Engine<H> {
    /// Starts the timer's task.
    pub(crate) fn start(host: H, clock: Clock, runtime: Handle, tuning: Tuning) -> Arc<Self> {
        let engine = Arc::new(Self {
            state: Mutex::new(State {
                host,
                life: Life::Running,
                io: IoCounters::default(),
                links: BTreeMap::new(),
                paused: BTreeSet::new(),
                listening: false,
                tls_faults: TlsFaults::default(),
                armed: None,
            }),
            clock,
            runtime,
            tuning,
            changed: Notify::new(),
            stop: Notify::new(),
            timer: Notify::new(),
        });
        engine.runtime.spawn(keep_time(Arc::clone(&engine)));
        engine
    }

    /// The state alone: for getters. A panic of another call left it as whole as the machine leaves
    /// itself.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call of the machine, with all that has to follow it.
    pub(crate) fn with<R>(self: &Arc<Self>, call: impl FnOnce(&mut State<H>, Now) -> R) -> R {
        let result = self.call(None, |state, now, _| call(state, now));
        self.changed.notify_waiters();
        result
    }

    /// The same for a link's own task, which looks after its own writes.
    pub(crate) fn with_own<R>(
        self: &Arc<Self>,
        own: LinkId,
        call: impl FnOnce(&mut State<H>, Now) -> R,
    ) -> R {
        let result = self.call(Some(own), |state, now, _| call(state, now));
        self.changed.notify_waiters();
        result
    }

    /// The same for a reader that only takes what is there.
    pub(crate) fn read<R>(self: &Arc<Self>, call: impl FnOnce(&mut State<H>) -> R) -> R {
        self.call(None, |state, _, _| call(state))
    }

    /// Lets the timer's task look again, at the end above all.
    pub(crate) fn wake_timer(&self) {
        self.timer.notify_one();
    }

    fn call<R>(
        self: &Arc<Self>,
        own: Option<LinkId>,
        call: impl FnOnce(&mut State<H>, Now, &mut After) -> R,
    ) -> R {
        let mut after = After::default();
        let mut state = self.lock();
        let now = self.clock.now();
        let result = call(&mut state, now, &mut after);
        state.dispatch(self, own, &mut after);
        let deadline = state.host.machine().poll_timeout();
        let earlier = deadline.is_some_and(|at| state.armed.is_none_or(|armed| at < armed));
        if earlier {
            state.armed = deadline;
        }
        drop(state);
        if earlier {
            self.timer.notify_one();
        }
        after.run();
        result
    }

    /// Makes a connected socket a link, with a task of its own.
    pub(crate) fn attach(
        self: &Arc<Self>,
        connected: Connected,
        dialled: Option<StationRef>,
    ) -> Result<(), Misuse> {
        let Connected {
            wire,
            binding,
            early,
        } = connected;
        let wake = Arc::new(Notify::new());
        let link = self.with(|state, now| {
            if state.life != Life::Running {
                return Err(Misuse::DeadHandle);
            }
            let up = LinkEvent::Up { dialled, binding };
            let link = state.host.machine().handle_link(now, up)?;
            let entry = Entry {
                wake: Arc::clone(&wake),
                closing: None,
            };
            state.links.insert(link, entry);
            Ok(link)
        })?;
        let seat = Seat {
            engine: Arc::clone(self),
            link,
            reason: CloseReason::Io,
        };
        self.runtime.spawn(link::run(seat, wire, early, wake));
        Ok(())
    }

    /// Says goodbye and lets the tasks end by themselves. Does nothing the second time.
    pub(crate) fn begin_close(self: &Arc<Self>) {
        self.end(Life::Closing, |state, now, after| {
            state.host.close(now, after)
        });
    }

    /// Drops every socket as it is.
    pub(crate) fn begin_kill(self: &Arc<Self>) {
        self.end(Life::Killed, |_, _, _| {});
    }

    fn end(self: &Arc<Self>, life: Life, call: impl FnOnce(&mut State<H>, Now, &mut After)) {
        self.call(None, |state, now, after| {
            if state.life != Life::Running {
                return;
            }
            state.life = life;
            call(state, now, after);
            for entry in state.links.values_mut() {
                // A link that is still shaking hands has nobody to say goodbye to, but ends as
                // well.
                entry.closing.get_or_insert(CloseReason::Normal);
                entry.wake.notify_one();
            }
        });
        self.stop.notify_one();
        self.timer.notify_one();
        self.changed.notify_waiters();
    }

    /// Waits until every socket is closed, 2 s at most. Cancel safe.
    pub(crate) async fn ended(&self) {
        self.wait(patience::CLOSE, |state| state.gone().then_some(()))
            .await;
    }

    /// Looks again after every change until `look` finds something, or the time is over. Cancel
    /// safe.
    pub(crate) async fn wait<R>(
        &self,
        within: Duration,
        mut look: impl FnMut(&mut State<H>) -> Option<R>,
    ) -> Option<R> {
        let waiting = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                // Registered before looking, so that no change falls between.
                changed.as_mut().enable();
                if let Some(found) = look(&mut self.lock()) {
                    return found;
                }
                changed.await;
            }
        };
        tokio::time::timeout(within, waiting).await.ok()
    }
}

/// A link's place in the engine. When its task ends, in whatever way, the machine hears of it.
#[derive(Debug)]
pub(crate) struct Seat<H: Host> {
    pub(crate) engine: Arc<Engine<H>>,
    pub(crate) link: LinkId,
    /// What the machine is told.
    pub(crate) reason: CloseReason,
}

impl<H: Host> Drop for Seat<H> {
    fn drop(&mut self) {
        let (link, reason) = (self.link, self.reason);
        self.engine.with(|state, now| {
            state.links.remove(&link);
            state.paused.remove(&link);
            state.host.moved();
            state
                .host
                .machine()
                .handle_link(now, LinkEvent::Down { link, reason })
                .ok();
        });
        // The timer's task ends with the last link.
        self.engine.wake_timer();
    }
}

/// The whole process was stopped, its own threads too: what they were about to answer is waited for before its time is over.
async fn catch_up<H: Host>(engine: &Engine<H>) {
    let answered = async {
        while engine.lock().host.owes() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // What is not answered by then never will be.
    tokio::time::timeout(STALLED, answered).await.ok();
}

/// The timer's task: sleeps until the deadline, and until it moves earlier.
async fn keep_time<H: Host>(engine: Arc<Engine<H>>) {
    loop {
        let deadline = {
            let mut state = engine.lock();
            if state.life != Life::Running && state.gone() {
                return;
            }
            state.armed = state.host.machine().poll_timeout();
            state.armed
        };
        let Some(deadline) = deadline else {
            engine.timer.notified().await;
            continue;
        };
        let wait = engine.clock.until(deadline);
        if wait.is_zero() {
            if engine.clock.now().mono.saturating_since(deadline) > STALLED {
                catch_up(&engine).await;
            }
            while engine.with(|state, now| state.host.machine().handle_timeout(now)) == Turn::More {
                tokio::task::yield_now().await;
            }
            tokio::task::consume_budget().await;
            continue;
        }
        tokio::select! {
            () = engine.timer.notified() => {}
            () = tokio::time::sleep_until(TokioInstant::now() + wait.min(patience::LOOK)) => {
                if wait > patience::LOOK {
                    // Nothing is due; the machine compares the clocks.
                    let _nothing = engine.with(|state, now| state.host.machine().handle_timeout(now));
                }
            }
        }
    }
}
