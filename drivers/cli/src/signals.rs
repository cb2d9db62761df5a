//! Being told to end: Ctrl-C, or SIGTERM.
//!
//! Decides: which signals end a run. Leaves to others: how it ends. Believes: no clock. Bounded by: the first one counts.

/// Listens from the moment it is made, so that none falls between two waits.
#[derive(Debug)]
pub(crate) struct Told {
    #[cfg(unix)]
    signals: Option<[tokio::signal::unix::Signal; 2]>,
}

impl Told {
    /// Without signals a run goes on until it is killed.
    pub(crate) fn listen() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let both = signal(SignalKind::interrupt())
                .and_then(|interrupt| Ok([interrupt, signal(SignalKind::terminate())?]));
            Self { signals: both.ok() }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for one. Cancel safe.
    #[cfg(unix)]
    pub(crate) async fn wait(&mut self) {
        match &mut self.signals {
            Some([interrupt, terminate]) => tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            },
            None => std::future::pending().await,
        }
    }

    /// Waits for one. Cancel safe.
    #[cfg(not(unix))]
    pub(crate) async fn wait(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
