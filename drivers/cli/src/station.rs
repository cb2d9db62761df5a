//! `tidings station`: one station until Ctrl-C.
//!
//! Decides: what is printed. Leaves to others: everything a station does. Believes: no clock. Bounded by: the station's own limits.

use tidings_tokio::StationServer;

use crate::args::{DEFAULT_LISTEN, StationArgs};
use crate::exit::{Exit, Failure, print, say};
use crate::human::count;
use crate::node::start_failure;
use crate::{human, keyfile};

/// Runs `tidings station`.
pub(crate) async fn run(args: StationArgs) -> Result<Exit, Failure> {
    let key = keyfile::load_or_make(args.key.as_deref())?;
    let builder = StationServer::builder(key)
        .listen(&args.listen)
        .map_err(|error| {
            Failure::usage(format!(
                "cannot listen: {error}. the usual is {DEFAULT_LISTEN}"
            ))
        })?;
    let station = builder
        .start()
        .await
        .map_err(|error| start_failure(&error))?;
    let address = format!("tcp://{}@{}", station.id(), station.local_addr());
    let program = human::program();
    keyfile::introduce(station.id(), args.key.as_deref());
    // Whoever started it may stop reading; the station serves on.
    print(&format!(
        "station {}\nlistening on tcp://{}\nCtrl-C ends it. in other terminals:\n\n  \
         {program} sub 'demo/**' --from open --station {address}\n\n  \
         date | {program} pub demo/hello --station {address}\n\n",
        station.id(),
        station.local_addr(),
    ))?;
    ended().await;
    say("closing");
    let totals = totals(&station);
    station.drain().await;
    say(totals);
    Ok(Exit::Done)
}

/// Waits for Ctrl-C, or for being told to end.
async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut told) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = told.recv() => return,
                _ = tokio::signal::ctrl_c() => return,
            }
        }
    }
    // Without signals it runs until it is killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn totals(station: &StationServer) -> String {
    let status = station.status();
    let counted = |name: &str| {
        status
            .counters
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(0, |(_, number)| *number)
    };
    let faults: u64 = status.faults.iter().map(|(_, number)| number).sum();
    format!(
        "admitted {}, events {}, skipped {}, passed over {}; links {}, subscriptions {}, topics {}",
        count(counted("admitted")),
        count(counted("events")),
        count(counted("skipped")),
        count(faults),
        count(status.links.len() as u64),
        count(status.subscriptions as u64),
        count(status.topics as u64),
    )
}
