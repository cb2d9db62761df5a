//! What goes wrong in the demonstration: a link is cut, a node sleeps, a station dies and is started again.
//!
//! Decides: when, as shares of the time publishing takes. Leaves to others: what the nodes make of it. Believes: the runtime's clock.
//! Bounded by: three troubles.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidings::crypto::SecretKey;
use tidings_tokio::StationServer;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::scene::broken;
use crate::exit::Failure;
use crate::{human, keyfile};

/// Long enough for two probes to be missed and for a while after.
const NAP: Duration = Duration::from_millis(4500);
const DOWN: Duration = Duration::from_millis(700);
/// How often the stations ask their nodes whether they are there.
const PROBE: Duration = Duration::from_secs(1);

/// A station that can die and come back at its place, under its key, with nothing of what it knew.
pub(super) struct Mortal {
    seed: Zeroizing<[u8; 32]>,
    pub(super) server: StationServer,
}

impl Mortal {
    pub(super) async fn start() -> Result<Self, Failure> {
        let seed = keyfile::random_seed()?;
        let server = station(SecretKey::from_seed(*seed), "127.0.0.1:0", Duration::ZERO).await?;
        Ok(Self { seed, server })
    }

    async fn start_again(&mut self, at: SocketAddr) -> Result<(), Failure> {
        let key = SecretKey::from_seed(*self.seed);
        self.server = station(key, &at.to_string(), Duration::ZERO).await?;
        Ok(())
    }
}

/// A station of the demonstration.
pub(super) async fn station(
    key: SecretKey,
    listen: &str,
    slowed_by: Duration,
) -> Result<StationServer, Failure> {
    let builder = StationServer::builder(key)
        .listen(&format!("tcp://{listen}"))
        .map_err(|error| broken(&error))?;
    let builder = builder.probe_every(PROBE).delay_writes(slowed_by);
    builder.start().await.map_err(|error| broken(&error))
}

/// What there is to break.
pub(super) struct Trouble {
    pub(super) cut: Arc<Notify>,
    pub(super) naps: mpsc::Sender<Duration>,
    pub(super) mortal: Mortal,
    /// What happens, for people.
    pub(super) told: mpsc::Sender<String>,
}

impl Trouble {
    /// Makes all of it within about the time publishing takes, and gives the station back.
    pub(super) async fn make(mut self, pace: Duration) -> Result<Mortal, Failure> {
        let began = Instant::now();
        let at = |share: f64| tokio::time::sleep_until(began + pace.mul_f64(share));
        at(0.12).await;
        self.cut.notify_waiters();
        self.tell("latest_only is cut from station A");
        at(0.2).await;
        let woken = Instant::now() + NAP;
        self.naps.try_send(NAP).ok();
        self.tell(&format!("ordered sleeps for {}", human::span(NAP)));
        at(0.72).await;
        let address = self.mortal.server.local_addr();
        self.mortal.server.kill().await;
        self.tell("station C is killed");
        tokio::time::sleep(DOWN).await;
        self.mortal.start_again(address).await?;
        self.tell("station C is back, with nothing kept");
        tokio::time::sleep_until(woken).await;
        Ok(self.mortal)
    }

    fn tell(&self, what: &str) {
        // Nobody has to look.
        self.told.try_send(what.to_owned()).ok();
    }
}
