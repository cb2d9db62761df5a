//! What `pub` and `sub` share: the realm, the node and its stations.
//!
//! Decides: which realm a topic or filter is of when none is named. Leaves to others: addresses and links; they are the driver's.
//! Believes: the runtime's clock, for waiting. Bounded by: 16 stations.

use std::time::Duration;

use tidings::code::HandshakeRefusal;
use tidings::{ClientLimits, Group, GroupId, LinkError, RealmId, StationLimits};
use tidings_tokio::{Node, StartError, Table, TlsFault, WaitError};

use crate::args::NodeArgs;
use crate::exit::{Exit, Failure, say};
use crate::{human, keyfile};

/// How long a missing number is waited for: as long as a busy machine may need for half a ring.
pub(crate) const ORDER_TIMEOUT: Duration = Duration::from_secs(2);

/// The realm of that name; none when a realm cannot be called so (WIRE.md section 4).
pub(crate) fn realm_of_name(name: &str) -> Option<RealmId> {
    (1..=255)
        .contains(&name.len())
        .then(|| RealmId::of_name(name))
}

/// The name given, or the first segment of `topic`.
pub(crate) fn realm_name<'a>(named: Option<&'a str>, topic: &'a str) -> &'a str {
    named.unwrap_or_else(|| topic.split('/').next().unwrap_or_default())
}

/// The realm named, or the first segment of `topic`.
pub(crate) fn realm(named: Option<&str>, topic: &str) -> Result<RealmId, Failure> {
    let name = realm_name(named, topic);
    if named.is_none() && name.contains('*') {
        return Err(Failure::usage(format!(
            "cannot tell the realm of {topic:?}: its first segment is a wildcard. name it with --realm"
        )));
    }
    realm_of_name(name).ok_or_else(|| {
        Failure::usage(format!(
            "cannot use a realm name of {} bytes: 1 to 255 are allowed. choose another with --realm",
            name.len()
        ))
    })
}

/// What a node of this command keeps and waits for.
///
/// A station lets a reader fall half a ring behind before it slows publishers down, and one that has just started is level at once: what
/// comes from it is ahead by that much. A run that is to keep the order holds it back until the slower station has caught up.
pub(crate) fn patient_limits() -> ClientLimits {
    let mut limits = ClientLimits::default();
    limits.order_max_buffer = StationLimits::default().ring_items;
    limits.held_bytes = 256 << 20;
    limits
}

/// A node that dials the stations of the command line, and asks `answers` what it does not know. One that publishes with a key that is kept keeps its epochs as well.
pub(crate) fn start(args: &NodeArgs, publishes: bool, answers: Table) -> Result<Node, Failure> {
    let key = keyfile::load_or_make(args.key.as_deref())?;
    let mut builder = args.file.apply(Node::builder(key)).answers(answers);
    if let Some(every) = args.probe {
        builder = builder.probe_every(every);
    }
    for address in &args.stations {
        builder = builder
            .station(address)
            .map_err(|error| Failure::usage(format!("cannot use station {error}")))?;
    }
    let epochs = args.key.as_deref().filter(|_| publishes);
    let epochs = epochs.map(keyfile::epoch_file);
    if let Some(file) = &epochs {
        builder = builder.epoch_file(file);
    }
    builder.start().map_err(|error| match (error, epochs) {
        (StartError::EpochFile(error), Some(file)) => {
            Failure::usage(format!("cannot use {}: {error}", file.display()))
        }
        (error, _) => start_failure(&error),
    })
}

/// Joins the group a run seals or opens with, if it has one.
pub(crate) fn join(
    node: &Node,
    realm: RealmId,
    prefix: Option<&str>,
) -> Result<Option<GroupId>, Failure> {
    let Some(prefix) = prefix else {
        return Ok(None);
    };
    let joined = node.join_group(Group::new(realm, prefix));
    joined.map(Some).map_err(|refused| {
        Failure::usage(format!(
            "cannot join group {prefix:?}: {refused}. choose another"
        ))
    })
}

/// A node or a station that did not start, as one line.
pub(crate) fn start_failure(error: &StartError) -> Failure {
    match error {
        StartError::PortInUse { address } => Failure::usage(format!(
            "cannot listen on {address}: the port is in use. name another one with --listen; 0 takes any"
        )),
        StartError::Bind { address, kind } => Failure::usage(format!(
            "cannot listen on {address}: {kind}. try --listen tcp://127.0.0.1:0"
        )),
        other => Failure::usage(format!("cannot start: {other}")),
    }
}

/// Waits for a first station, and a moment for the others.
pub(crate) async fn connected(node: &Node, args: &NodeArgs) -> Result<(), Failure> {
    let all = args.stations.len();
    match node.connected(1, args.wait).await {
        Ok(_) => {}
        Err(WaitError::TimedOut { .. }) => {
            return Err(Failure::new(
                Exit::NoStation,
                match why_not(node) {
                    Some(why) => format!("cannot reach {}: {why}", addresses(&args.stations)),
                    None => format!(
                        "cannot reach {}: nothing answered within {}. start one with {} station",
                        addresses(&args.stations),
                        human::span(args.wait),
                        human::program()
                    ),
                },
            ));
        }
        Err(other) => {
            return Err(Failure::new(
                Exit::NoStation,
                format!("cannot reach a station: {other}. try again"),
            ));
        }
    }
    if all > 1 {
        let reached = match node.connected(all, Duration::from_secs(1)).await {
            Err(WaitError::TimedOut { reached, .. }) => reached,
            _ => all,
        };
        say(format_args!("connected to {reached} of {all} stations"));
    }
    Ok(())
}

/// Why the first station that answered was not taken, and what to do.
fn why_not(node: &Node) -> Option<String> {
    let links = node.status().links;
    if links
        .iter()
        .any(|link| link.dial_failure == Some("unknown_host"))
    {
        let said = "its name does not resolve here. check it, or write its number";
        return Some(said.to_owned());
    }
    let reason = links.iter().find_map(|link| {
        let fault = link.dial_failure.and_then(TlsFault::from_text)?;
        (fault != TlsFault::Io).then_some(fault)
    });
    let Some(reason) = reason else {
        let error = links.iter().find_map(|link| link.last_error)?;
        return Some(match error {
            LinkError::OwnLink => {
                "the station there has this node's own key. give each a key of its own".to_owned()
            }
            LinkError::RefusedByStation(HandshakeRefusal::Full | HandshakeRefusal::Draining) => {
                format!("{error}. try another station, or later")
            }
            other => format!("{other}. check the address"),
        });
    };
    let next = match reason {
        TlsFault::Closed => "it may be full, or have enough from this address; it says which",
        TlsFault::WrongStation => "compare the node id with the one it prints when it starts",
        TlsFault::NotTls => "write tcp:// if it listens so, on this host",
        TlsFault::Refused => "see what it says when it ends",
        _ => "check the address",
    };
    Some(format!("{reason}. {next}"))
}

fn addresses(stations: &[String]) -> String {
    match stations {
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} or {} more", rest.len()),
        [] => "a station".to_owned(),
    }
}
