//! One link's task: a socket on one side, the engine on the other.
//!
//! Decides: when to wait, and for what. Leaves to others: when a link reads, writes and is over (`tidings_common::Link`). Believes: the
//! engine's clock, and tokio's timer for an artificial delay. Bounded by: one read and one write between two looks at the machine.

use std::future::pending;
use std::sync::Arc;

use bytes::BytesMut;
use tidings::Now;
use tidings_common::{IoCounters, Link, Wire};
use tokio::io::Interest;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::{Host, Life, Seat};
use crate::wire::Stream;

struct Task<H: Host> {
    /// Closed before the seat is given up: whoever waits for that finds the socket gone.
    wire: Wire<Stream>,
    seat: Seat<H>,
    link: Link,
    /// When an artificially delayed write may go.
    write_at: Option<Instant>,
    /// What the socket did since the last look.
    counters: IoCounters,
}

/// Runs a link until its end. `early` is what came before it was one.
pub(crate) async fn run<H: Host>(
    seat: Seat<H>,
    wire: Wire<Stream>,
    early: BytesMut,
    wake: Arc<Notify>,
) {
    let link = Link::new(seat.link, early);
    let mut task = Task {
        wire,
        seat,
        link,
        write_at: None,
        counters: IoCounters::default(),
    };
    loop {
        let (life, now) = task.look();
        if life == Life::Killed || task.link.is_over(&mut task.wire, now) {
            break;
        }
        let moved = task.link.read(&mut task.wire, &mut task.counters) | task.write(now);
        if moved {
            tokio::task::consume_budget().await;
        } else if task.link.is_held() && H::help(&task.seat.engine) {
            // Whoever reads the answers has its turn.
            tokio::task::yield_now().await;
        } else if !task.wait(&wake).await {
            break;
        }
    }
    task.seat.reason = task.link.reason();
    if let Some(fault) = task.link.fault() {
        task.seat.engine.lock().tls_faults.count(fault);
    }
}

impl<H: Host> Task<H> {
    /// One locked turn: reports the last write, hands in the last read, gathers the next write.
    fn look(&mut self) -> (Life, Now) {
        let engine = Arc::clone(&self.seat.engine);
        let id = self.seat.link;
        let looked = engine.with_own(id, |state, now| {
            state.io.add(std::mem::take(&mut self.counters));
            if let Some(reason) = state.closing(id) {
                self.link.close(now, reason);
            }
            let busy = state.host.is_busy();
            if self.link.look(state.host.machine(), now, busy) {
                state.host.moved();
            }
            state.set_paused(id, self.link.is_paused());
            (state.life, now)
        });
        self.seat.reason = self.link.reason();
        if self.write_at.is_none() && self.link.writes(&self.wire) {
            let delay = engine.tuning.delay_writes;
            self.write_at = delay.map(|delay| Instant::now() + delay);
        }
        looked
    }

    /// Writes once, where there is something and it is not delayed. True when something went.
    fn write(&mut self, now: Now) -> bool {
        if self.write_at.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        let went = self.link.write(&mut self.wire, now, &mut self.counters);
        if went {
            self.write_at = None;
        }
        went
    }

    /// Waits for the socket, the engine or a deadline. False when there is no waiting any more.
    async fn wait(&mut self, wake: &Notify) -> bool {
        let writes = self.link.writes(&self.wire);
        let delayed = self.write_at.filter(|at| writes && Instant::now() < *at);
        let interest = match (self.link.waits(), writes && delayed.is_none()) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        let clock = &self.seat.engine.clock;
        let deadline = self.link.deadline();
        let deadline = deadline.map(|at| Instant::now() + clock.until(at));
        let until = [delayed, deadline].into_iter().flatten().min();
        let socket = self.wire.socket();
        let ready = async {
            match interest {
                Some(interest) => socket.ready(interest).await,
                None => pending().await,
            }
        };
        let deadline = async {
            match until {
                Some(at) => tokio::time::sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = wake.notified() => {
                // Whoever woke this link may have more to send: one write then takes all of it.
                if !writes {
                    tokio::task::yield_now().await;
                }
                true
            }
            ready = ready => ready.is_ok(),
            () = deadline => true,
        }
    }
}
