//! Standard output that may be slow without stopping anything else.
//!
//! Decides: when gathered bytes are handed to the pipe. Leaves to others: what they are. Believes: the runtime's clock, for giving a
//! stuck pipe up. Bounded by: two buffers of about [`FULL`] bytes on their way and one being gathered.

use std::io::{self, Write};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// Bytes gathered before they are handed on although more is coming.
const FULL: usize = 64 << 10;

/// Standard output takes nothing any more; [`Output::finish`] says why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed;

/// A buffer here and a thread that writes.
#[derive(Debug)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    sender: mpsc::Sender<Vec<u8>>,
    ended: oneshot::Receiver<io::Result<()>>,
    /// Standard output, where it is something that can be watched: a file cannot.
    #[cfg(unix)]
    pipe: Option<tokio::net::unix::pipe::Sender>,
}

impl Output {
    pub(crate) fn start() -> Self {
        let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(2);
        let (tell, ended) = oneshot::channel();
        // Not a task of the runtime: a write to a stuck pipe may never come back.
        std::thread::spawn(move || {
            let mut out = io::stdout().lock();
            let mut written = Ok(());
            while let (Some(bytes), true) = (receiver.blocking_recv(), written.is_ok()) {
                written = out.write_all(&bytes).and_then(|()| out.flush());
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

    /// Hands on what is gathered; waits while two buffers are on their way.
    pub(crate) async fn flush(&mut self) -> Result<(), Closed> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(FULL));
        self.sender.send(bytes).await.map_err(|_| Closed)
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

    /// Writes the rest and waits until it is taken, at most `patience` when there is one.
    ///
    /// # Errors
    /// Why standard output took less.
    pub(crate) async fn finish(mut self, patience: Option<Duration>) -> io::Result<()> {
        let all = async {
            // An output that has closed tells why below.
            self.flush().await.unwrap_or_default();
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
