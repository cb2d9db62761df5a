//! Standard output that may be slow without stopping anything else.
//!
//! Decides: when gathered bytes are handed to the pipe. Leaves to others: what they are. Believes: the runtime's clock, for giving a
//! stuck pipe up. Bounded by: two buffers of about [`FULL`] bytes on their way and one being gathered.

use std::io::{self, Write};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::exit::Failure;

/// Bytes gathered before they are handed on although more is coming.
const FULL: usize = 64 << 10;

/// Standard output takes nothing any more; [`Output::finish`] says why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed;

/// Why less was written than was handed over.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Standard output took less.
    Output(io::Error),
    /// What was to follow the bytes failed.
    Then(Failure),
}

/// Done once everything before it was taken.
pub(crate) type Then = Box<dyn FnOnce() -> Result<(), Failure> + Send>;

enum Step {
    Write(Vec<u8>),
    Then(Then),
}

impl Step {
    fn run(self, out: &mut impl Write) -> Result<(), Fault> {
        match self {
            Self::Write(bytes) => out
                .write_all(&bytes)
                .and_then(|()| out.flush())
                .map_err(Fault::Output),
            Self::Then(then) => then().map_err(Fault::Then),
        }
    }
}

/// A buffer here and a thread that writes.
#[derive(Debug)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    sender: mpsc::Sender<Step>,
    ended: oneshot::Receiver<Result<(), Fault>>,
    /// Standard output, where it is something that can be watched: a file cannot.
    #[cfg(unix)]
    pipe: Option<tokio::net::unix::pipe::Sender>,
}

impl Output {
    pub(crate) fn start() -> Self {
        let (sender, mut receiver) = mpsc::channel::<Step>(2);
        let (tell, ended) = oneshot::channel();
        // Not a task of the runtime: a write to a stuck pipe may never come back.
        std::thread::spawn(move || {
            let mut out = io::stdout().lock();
            let mut written = Ok(());
            while let (Some(step), true) = (receiver.blocking_recv(), written.is_ok()) {
                written = step.run(&mut out);
                if written.is_err() {
                    break;
                }
            }
            // Dropped at the end of the run when nobody waits for it.
            drop(tell.send(written));
        });
        Self {
            buffer: Vec::with_capacity(FULL),
            sender,
            ended,
            #[cfg(unix)]
            pipe: watched().ok(),
        }
    }

    /// What is gathered; append to it.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Whether enough is gathered.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() >= FULL
    }

    /// Hands on what is gathered; waits while two buffers are on their way. Cancel safe.
    pub(crate) async fn flush(&mut self) -> Result<(), Closed> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let place = self.sender.reserve().await.map_err(|_| Closed)?;
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(FULL));
        place.send(Step::Write(bytes));
        Ok(())
    }

    /// Does this once all that is gathered was taken; it is not done when standard output takes less. Cancelled, it may not be done.
    pub(crate) async fn then(&mut self, then: Then) -> Result<(), Closed> {
        self.flush().await?;
        self.sender.send(Step::Then(then)).await.map_err(|_| Closed)
    }

    /// Waits until standard output takes nothing any more: a write failed, or the pipe's reader has left.
    pub(crate) async fn closed(&self) {
        tokio::select! {
            () = self.sender.closed() => {}
            () = self.reader_left() => {}
        }
    }

    #[cfg(unix)]
    async fn reader_left(&self) {
        let left = match &self.pipe {
            Some(pipe) => pipe.ready(tokio::io::Interest::ERROR).await.is_ok(),
            None => false,
        };
        if !left {
            std::future::pending::<()>().await;
        }
    }

    #[cfg(not(unix))]
    async fn reader_left(&self) {
        std::future::pending().await
    }

    /// Writes the rest, does what follows it, and waits until both are done, at most `patience` when there is one.
    ///
    /// # Errors
    /// Why less was done.
    pub(crate) async fn finish(
        mut self,
        then: Option<Then>,
        patience: Option<Duration>,
    ) -> Result<(), Fault> {
        let all = async {
            // An output that has closed tells why below.
            self.flush().await.unwrap_or_default();
            if let Some(then) = then {
                self.then(then).await.unwrap_or_default();
            }
            drop(self.sender);
            self.ended.await.unwrap_or(Ok(()))
        };
        match patience {
            None => all.await,
            Some(patience) => tokio::time::timeout(patience, all).await.unwrap_or(Ok(())),
        }
    }
}

/// A second handle of standard output, for being told that its reader left; nothing is written to it, so that the mode the first one is in
/// does not matter.
#[cfg(unix)]
fn watched() -> io::Result<tokio::net::unix::pipe::Sender> {
    use std::os::fd::AsFd;
    let second = io::stdout().as_fd().try_clone_to_owned()?;
    tokio::net::unix::pipe::Sender::from_file_unchecked(second.into())
}
