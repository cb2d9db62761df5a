//! A link that can be cut: a relay between one node and one station.
//!
//! Decides: nothing; bytes pass as they are. Leaves to others: when it is cut (`trouble`), what follows (the node and its station).
//! Believes: no clock. Bounded by: one connection at a time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
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
