//! A thread of its own for a node that is suspended.
//!
//! Decides: nothing. Leaves to others: when it sleeps and for how long. Believes: the thread's sleep. Bounded by: one nap at a time.
//!
//! While it sleeps nothing that runs on it moves: no socket is read, no timer fires, no clock is looked at. That is what a stopped process
//! is, seen from its stations.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;

/// A runtime of one thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Napper {
    handle: Handle,
    naps: mpsc::Sender<Duration>,
}

impl Napper {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (naps, mut due) = mpsc::channel(1);
        std::thread::Builder::new().spawn(move || {
            runtime.block_on(async {
                while let Some(nap) = due.recv().await {
                    std::thread::sleep(nap);
                }
            });
        })?;
        Ok(Self { handle, naps })
    }

    /// Where to start what shall sleep.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What makes it sleep.
    pub(super) fn naps(&self) -> mpsc::Sender<Duration> {
        self.naps.clone()
    }
}
