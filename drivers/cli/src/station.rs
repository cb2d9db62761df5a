//! `tidings station`: one station until Ctrl-C.
//!
//! Decides: what is printed. Leaves to others: everything a station does. Believes: no clock. Bounded by: the station's own limits.

use std::time::Duration;

use tidings_tokio::{Crowd, StationServer};

use crate::args::{DEFAULT_LISTEN, StationArgs};
use crate::config::Config;
use crate::exit::{Exit, Failure, print, say};
use crate::human::count;
use crate::node::start_failure;
use crate::signals::Told;
use crate::{human, keyfile};

/// How often it is looked whether somebody was turned away.
const LOOKS: Duration = Duration::from_secs(1);

/// Runs `tidings station`.
pub(crate) async fn run(args: StationArgs) -> Result<Exit, Failure> {
    let mut settings = Config::load_or_default(args.config.as_deref())?.station;
    let key_file = args.key.or_else(|| settings.key.take());
    let key = keyfile::load_or_make(key_file.as_deref())?;
    let listen = args.listen.or_else(|| settings.listen.take());
    if let Some(ring) = args.ring {
        settings.limits.ring_items = usize::try_from(ring).unwrap_or(usize::MAX);
    }
    settings.probe_every = args.probe.or(settings.probe_every);
    let builder = StationServer::builder(key)
        .listen(listen.as_deref().unwrap_or(DEFAULT_LISTEN))
        .map_err(|error| {
            Failure::usage(format!(
                "cannot listen: {error}. the usual is {DEFAULT_LISTEN}"
            ))
        })?;
    let station = settings
        .apply(builder)
        .start()
        .await
        .map_err(|error| start_failure(&error))?;
    let address = address(&station);
    let program = human::program();
    keyfile::introduce(station.id(), key_file.as_deref());
    // Whoever started it may stop reading; the station serves on.
    print(&format!(
        "station {}\nlistening on {}\nCtrl-C ends it. in other terminals:\n\n  \
         {program} sub 'demo/**' --from open --station {address}\n\n  \
         date | {program} pub demo/hello --station {address}\n\n",
        station.id(),
        station.address().replace(&format!("{}@", station.id()), ""),
    ))?;
    let mut told = Told::listen();
    let mut looks = tokio::time::interval(LOOKS);
    loop {
        tokio::select! {
            () = told.wait() => break,
            _ = looks.tick() => std::iter::from_fn(|| station.turned_away()).for_each(say),
        }
    }
    say("closing");
    let totals = totals(&station);
    station.drain().await;
    say(totals);
    Ok(Exit::Done)
}

/// The address others name. A station that listens everywhere does not know under which they reach it.
fn address(station: &StationServer) -> String {
    let at = station.local_addr();
    let address = station.address();
    match at.ip().is_unspecified() {
        true => address.replace(&at.to_string(), &format!("HOST:{}", at.port())),
        false => address,
    }
}

/// What came to no secure channel, and why, and what was closed at the doors.
fn turned_away(station: &StationServer) -> String {
    let (faults, doors) = (station.tls_faults(), station.doors());
    let faults = faults.iter().map(|(fault, times)| (fault.text(), times));
    let crowds = Crowd::ALL.iter();
    let crowds = crowds.map(|crowd| (crowd.text(), doors.refused(*crowd)));
    let each: Vec<String> = faults
        .chain(crowds.filter(|(_, times)| *times > 0))
        .map(|(why, times)| format!("{} {why}", count(times)))
        .collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("; turned away {}", each.join(", ")),
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
        "admitted {}, events {}, skipped {}, passed over {}; links {}, subscriptions {}, topics {}{}",
        count(counted("admitted")),
        count(counted("events")),
        count(counted("skipped")),
        count(faults),
        count(status.links.len() as u64),
        count(status.subscriptions as u64),
        count(status.topics as u64),
        turned_away(station),
    )
}
