//! A link that can be cut, and one that can be looked at: relays between nodes and a station.
//!
//! Decides: nothing; bytes pass as they are. Leaves to others: when it is cut (`trouble`), what follows (the node and its station).
//! Believes: no clock. Bounded by: one connection at a time where it can be cut; 1 MiB of what is looked at.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Wire {
    address: SocketAddr,
    cut: Arc<Notify>,
    relay: AbortHandle,
}

impl Wire {
    /// Lays a wire to a station.
    pub(super) async fn lay(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let cut = Arc::new(Notify::new());
        let told = Arc::clone(&cut);
        let relay = tokio::spawn(async move {
            loop {
                // A connection that fails at either end is dialled again by its node.
                let Ok((mut near, _)) = listener.accept().await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let Ok(mut far) = TcpStream::connect(to).await else {
                    continue;
                };
                near.set_nodelay(true).ok();
                far.set_nodelay(true).ok();
                tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => {}
                    () = told.notified() => {}
                }
            }
        });
        Ok(Self {
            address,
            cut,
            relay: relay.abort_handle(),
        })
    }

    /// Where its node dials.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What cuts it, as often as it is told.
    pub(super) fn cutter(&self) -> Arc<Notify> {
        Arc::clone(&self.cut)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

/// Bytes that are kept of what is looked at.
const MOST_SEEN: usize = 1 << 20;

/// A wire on which all that nodes send to their station is seen. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Tap {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<u8>>>,
    relay: AbortHandle,
}

impl Tap {
    /// Lays one to a station.
    pub(super) async fn lay(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&seen);
        let relay = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                if let Ok(far) = TcpStream::connect(to).await {
                    near.set_nodelay(true).ok();
                    far.set_nodelay(true).ok();
                    tokio::spawn(look(near, far, Arc::clone(&book)));
                }
            }
        });
        Ok(Self {
            address,
            seen,
            relay: relay.abort_handle(),
        })
    }

    /// Where its nodes dial.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the station was sent so far.
    pub(super) fn seen(&self) -> Vec<u8> {
        let seen = self.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

async fn look(near: TcpStream, far: TcpStream, seen: Arc<Mutex<Vec<u8>>>) {
    let ((mut from, mut back), (mut answers, mut to)) = (near.into_split(), far.into_split());
    let sent = async {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            let read = bytes.get(..read).unwrap_or_default();
            keep(&seen, read);
            if to.write_all(read).await.is_err() {
                break;
            }
        }
        to.shutdown().await.ok();
    };
    let answered = async {
        copy(&mut answers, &mut back).await.ok();
        back.shutdown().await.ok();
    };
    tokio::join!(sent, answered);
}

fn keep(seen: &Mutex<Vec<u8>>, read: &[u8]) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let room = MOST_SEEN.saturating_sub(seen.len()).min(read.len());
    seen.extend_from_slice(&read[..room]);
}
