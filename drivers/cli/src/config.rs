//! One file for a station and a node: `--config FILE`.
//!
//! Decides: its keys, which are the names of the core's settings, and that a file with anything wrong in it starts nothing. Leaves to
//! others: what the settings do (the core's documentation), and the command line, which is asked first. Believes: no clock. Bounded by:
//! 1 MiB of file.
//!
//! Paths in it are relative to the folder it lies in.

mod example;
pub(crate) mod reading;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidings::crypto::SecretKey;
use tidings::{
    ClientConfig, ClientLimits, ConfigError, NodeId, RealmId, StationConfig, StationLimits,
};
use tidings_tokio::{DoorLimits, NodeBuilder, StationAddress, StationServer, StationServerBuilder};

use crate::args::ConfigCommand;
use crate::exit::{Exit, Failure, print, say};
use crate::{groupfile, keyfile, node, sourcefile};
use reading::{Fault, Place, Section};

const MAX_BYTES: u64 = 1 << 20;
const REALM_NAME: &str = "a realm's name has 1 to 255 bytes";

/// A bound by its name, and where it is kept.
type Bound<L> = (&'static str, fn(&mut L) -> &mut usize);

const STATION_BOUNDS: &[Bound<StationLimits>] = &[
    ("answers", |limits| &mut limits.answers),
    ("dedup_entries", |limits| &mut limits.dedup_entries),
    ("filters_per_link", |limits| &mut limits.filters_per_link),
    ("links", |limits| &mut limits.links),
    ("ones_per_link", |limits| &mut limits.ones_per_link),
    ("publication_bytes", |limits| &mut limits.publication_bytes),
    ("publish_window", |limits| &mut limits.publish_window),
    ("publishers", |limits| &mut limits.publishers),
    ("read_bytes", |limits| &mut limits.read_bytes),
    ("ring_bytes", |limits| &mut limits.ring_bytes),
    ("ring_items", |limits| &mut limits.ring_items),
    ("subscribed_realms", |limits| &mut limits.subscribed_realms),
    ("subscribers_per_topic", |limits| {
        &mut limits.subscribers_per_topic
    }),
    ("subscriptions_per_link", |limits| {
        &mut limits.subscriptions_per_link
    }),
    ("topics", |limits| &mut limits.topics),
];

const DOOR_BOUNDS: &[Bound<DoorLimits>] = &[
    ("handshakes", |doors| &mut doors.handshakes),
    ("handshakes_per_address", |doors| {
        &mut doors.handshakes_per_address
    }),
    ("links_per_address", |doors| &mut doors.links_per_address),
];

const NODE_BOUNDS: &[Bound<ClientLimits>] = &[
    ("answers", |limits| &mut limits.answers),
    ("counters", |limits| &mut limits.counters),
    ("dedup_entries", |limits| &mut limits.dedup_entries),
    ("group_periods", |limits| &mut limits.group_periods),
    ("group_publishers", |limits| &mut limits.group_publishers),
    ("group_pulls", |limits| &mut limits.group_pulls),
    ("groups", |limits| &mut limits.groups),
    ("held_bytes", |limits| &mut limits.held_bytes),
    ("lanes", |limits| &mut limits.lanes),
    ("links", |limits| &mut limits.links),
    ("open_publishers", |limits| &mut limits.open_publishers),
    ("order_max_buffer", |limits| &mut limits.order_max_buffer),
    ("pending_verifications", |limits| {
        &mut limits.pending_verifications
    }),
    ("publish_window", |limits| &mut limits.publish_window),
    ("publishers", |limits| &mut limits.publishers),
    ("queue_capacity", |limits| &mut limits.queue_capacity),
    ("resting_lanes", |limits| &mut limits.resting_lanes),
    ("subscriptions", |limits| &mut limits.subscriptions),
    ("tickets", |limits| &mut limits.tickets),
];

/// A setting of lookups by its name, and where it is kept.
type SourceBound = (&'static str, fn(&mut ClientLimits, u64));

const SOURCE_BOUNDS: &[SourceBound] = &[
    ("cache_ttl_ms", |limits, ms| {
        limits.sources.cache_ttl_ms = ms
    }),
    ("held_per_key", |limits, count| {
        limits.sources.held_per_key = count.try_into().unwrap_or(u32::MAX)
    }),
    ("lookup_timeout_ms", |limits, ms| {
        limits.sources.lookup_timeout_ms = ms
    }),
    ("lookups_per_window", |limits, count| {
        limits.sources.lookups_per_window = count.try_into().unwrap_or(u32::MAX)
    }),
    ("max_publishers", |limits, count| {
        limits.sources.max_publishers = count.try_into().unwrap_or(usize::MAX)
    }),
    ("refresh_margin_ms", |limits, ms| {
        limits.sources.refresh_margin_ms = ms
    }),
    ("refusal_ttl_ms", |limits, ms| {
        limits.sources.refusal_ttl_ms = ms
    }),
    ("window_ms", |limits, ms| limits.sources.window_ms = ms),
];

/// What a file says, whole and valid.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) station: StationPart,
    pub(crate) node: NodePart,
}

/// `[station]`.
#[derive(Debug, Default)]
pub(crate) struct StationPart {
    pub(crate) listen: Option<String>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) probe_every: Option<Duration>,
    max_frame: Option<u32>,
    pins: Vec<RealmId>,
    gateways: Vec<NodeId>,
    pub(crate) limits: StationLimits,
    doors: DoorLimits,
}

/// `[node]`.
#[derive(Debug)]
pub(crate) struct NodePart {
    pub(crate) stations: Vec<String>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) realm: Option<String>,
    /// The file with the keys of its groups.
    pub(crate) keys: Option<PathBuf>,
    /// The file that says who are members.
    pub(crate) sources: Option<PathBuf>,
    pub(crate) probe_every: Option<Duration>,
    replication_factor: Option<usize>,
    order_timeout: Option<Duration>,
    max_frame: Option<u32>,
    limits: ClientLimits,
}

impl Default for NodePart {
    fn default() -> Self {
        Self {
            stations: Vec::new(),
            key: None,
            realm: None,
            keys: None,
            sources: None,
            probe_every: None,
            replication_factor: None,
            order_timeout: None,
            max_frame: None,
            limits: node::patient_limits(),
        }
    }
}

impl Config {
    /// What `file` says, or nothing.
    pub(crate) fn load_or_default(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else {
            return Ok(Self::default());
        };
        Self::load(file).map_err(|faults| {
            let first = reading::first(&faults);
            Failure::usage(format!(
                "{first}. see tidings config check {}",
                file.display()
            ))
        })
    }

    /// What `file` says, or everything that is wrong in it.
    fn load(file: &Path) -> Result<Self, Vec<Fault>> {
        let whole = |what: String| {
            vec![Fault {
                file: file.to_owned(),
                line: 0,
                key: String::new(),
                what,
            }]
        };
        let mut text = String::new();
        let opened = File::open(file).map_err(|error| whole(format!("cannot be read: {error}")))?;
        opened
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|error| whole(format!("cannot be read: {error}")))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(whole("longer than 1 MiB".to_owned()));
        }
        Self::parse(file, &text)
    }

    fn parse(file: &Path, text: &str) -> Result<Self, Vec<Fault>> {
        let folder = file.parent().unwrap_or_else(|| Path::new(""));
        reading::parse(file, text, |top, place| {
            let mut config = Self::default();
            if let Some(section) = top.section("station", place) {
                config.station = StationPart::read(section, folder, place);
            }
            if let Some(section) = top.section("node", place) {
                config.node = NodePart::read(section, folder, place);
            }
            config
        })
    }
}

impl StationPart {
    fn read(mut section: Section<'_>, folder: &Path, place: &mut Place<'_>) -> Self {
        let part = Self {
            listen: section.text("listen", place),
            key: key(&mut section, folder, place),
            probe_every: section.span("probe_every", place),
            max_frame: frame(&mut section, place),
            pins: section.list("pin", place, |name| {
                node::realm_of_name(name).ok_or_else(|| REALM_NAME.to_owned())
            }),
            gateways: section.list("gateways", place, node_id),
            limits: bounds(
                section.section("limits", place),
                place,
                StationLimits::default(),
                STATION_BOUNDS,
            ),
            doors: doors(&mut section, place),
        };
        if let Some(listen) = &part.listen {
            let refused = StationServer::builder(nobody()).listen(listen).err();
            tell(place, &section.key("listen"), refused);
        }
        section.end(place);
        tell_setting(
            place,
            "station",
            part.core(StationConfig::new(nobody())).build().err(),
        );
        part
    }

    /// Its settings in the core's words.
    fn core(&self, mut config: StationConfig) -> StationConfig {
        if let Some(every) = self.probe_every {
            config = config.probe_every(every);
        }
        if let Some(bytes) = self.max_frame {
            config = config.max_frame(bytes);
        }
        config = self
            .pins
            .iter()
            .fold(config, |config, realm| config.pin(*realm));
        config = self
            .gateways
            .iter()
            .fold(config, |config, node| config.gateway(*node));
        config.limits(self.limits.clone())
    }

    /// Its settings, in a station that is to be started.
    pub(crate) fn apply(&self, builder: StationServerBuilder) -> StationServerBuilder {
        builder
            .doors(self.doors)
            .configure(|config| self.core(config))
    }
}

impl NodePart {
    fn read(mut section: Section<'_>, folder: &Path, place: &mut Place<'_>) -> Self {
        let mut named = Vec::new();
        let part = Self {
            stations: section.list("stations", place, |text| {
                let address = StationAddress::parse(text).map_err(|error| error.to_string())?;
                let refused = address
                    .is_none_of(&named)
                    .map_err(|error| error.to_string());
                named.push(address);
                refused.map(|()| text.to_owned())
            }),
            key: key(&mut section, folder, place),
            realm: realm(&mut section, place),
            keys: beside(&mut section, "keys", folder, place, groupfile::load),
            sources: beside(&mut section, "sources", folder, place, sourcefile::load),
            probe_every: section.span("probe_every", place),
            replication_factor: section.number("replication_factor", place),
            order_timeout: section.span("order_timeout", place),
            max_frame: frame(&mut section, place),
            limits: node_limits(section.section("limits", place), place),
        };
        let stations = part.stations.iter();
        let dialling = stations.fold(ClientConfig::new(nobody()), |config, _| {
            config.station(None)
        });
        section.end(place);
        tell_setting(place, "node", part.core(dialling).build().err());
        part
    }

    fn core(&self, mut config: ClientConfig) -> ClientConfig {
        if let Some(every) = self.probe_every {
            config = config.probe_every(every);
        }
        if let Some(links) = self.replication_factor {
            config = config.replication_factor(links);
        }
        if let Some(bytes) = self.max_frame {
            config = config.max_frame(bytes);
        }
        let timeout = self.order_timeout.unwrap_or(node::ORDER_TIMEOUT);
        config.order_timeout(timeout).limits(self.limits.clone())
    }

    /// Its settings, in a node that is to be started.
    pub(crate) fn apply(&self, builder: NodeBuilder) -> NodeBuilder {
        builder
            .limits(self.limits.clone())
            .configure(|config| self.core(config))
    }
}

/// `realm`, by its name.
fn realm(section: &mut Section<'_>, place: &mut Place<'_>) -> Option<String> {
    let name = section.text("realm", place)?;
    if node::realm_of_name(&name).is_none() {
        place.wrong(&section.key("realm"), REALM_NAME);
    }
    Some(name)
}

/// `key`, a file that holds one.
fn key(section: &mut Section<'_>, folder: &Path, place: &mut Place<'_>) -> Option<PathBuf> {
    beside(section, "key", folder, place, |file| {
        keyfile::load_or_make(Some(file))
    })
}

/// A file that is named relative to `folder`, and what is wrong in it.
fn beside<T>(
    section: &mut Section<'_>,
    key: &'static str,
    folder: &Path,
    place: &mut Place<'_>,
    load: impl FnOnce(&Path) -> Result<T, Failure>,
) -> Option<PathBuf> {
    let name = section.text(key, place)?;
    if name.is_empty() {
        let what = "a file's name is expected. leave the key out to go without a file";
        place.wrong(&section.key(key), what);
        return None;
    }
    let file = folder.join(name);
    tell(place, &section.key(key), load(&file).err());
    Some(file)
}

fn frame(section: &mut Section<'_>, place: &mut Place<'_>) -> Option<u32> {
    let bytes = section.number("max_frame", place)?;
    Some(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// What a table says of these bounds, if it is there.
fn bounds<L>(
    table: Option<Section<'_>>,
    place: &mut Place<'_>,
    mut limits: L,
    known: &[Bound<L>],
) -> L {
    let Some(mut table) = table else {
        return limits;
    };
    for (name, kept) in known {
        if let Some(bound) = table.number(name, place) {
            *kept(&mut limits) = bound;
        }
    }
    table.end(place);
    limits
}

/// `limits` of a node, and in it `sources`.
fn node_limits(mut table: Option<Section<'_>>, place: &mut Place<'_>) -> ClientLimits {
    let mut limits = node::patient_limits();
    let inner = table
        .as_mut()
        .and_then(|table| table.section("sources", place));
    if let Some(mut inner) = inner {
        for (name, keep) in SOURCE_BOUNDS {
            if let Some(bound) = inner.number(name, place) {
                keep(&mut limits, bound as u64);
            }
        }
        inner.end(place);
    }
    bounds(table, place, limits, NODE_BOUNDS)
}

/// `doors`, whose bounds are the driver's.
fn doors(section: &mut Section<'_>, place: &mut Place<'_>) -> DoorLimits {
    let mut limits = DoorLimits::default();
    if let Some(mut table) = section.section("doors", place) {
        if let Some(bound) = table.truth("bound_loopback", place) {
            limits.bound_loopback = bound;
        }
        limits = bounds(Some(table), place, limits, DOOR_BOUNDS);
        tell_setting(place, "station", limits.check().err());
    }
    limits
}

fn node_id(text: &str) -> Result<NodeId, String> {
    text.parse()
        .map_err(|_| "a node id is 64 hex digits".to_owned())
}

/// A key to check settings with, which signs nothing.
fn nobody() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

fn tell(place: &mut Place<'_>, key: &str, refused: Option<impl std::fmt::Display>) {
    if let Some(why) = refused {
        place.wrong(key, why.to_string());
    }
}

/// A setting the core refuses, by the name it has there.
fn tell_setting(place: &mut Place<'_>, section: &str, refused: Option<ConfigError>) {
    if let Some(error) = refused {
        let of_lookups = SOURCE_BOUNDS.iter().any(|(name, _)| *name == error.setting);
        let setting = match error.setting {
            "station" => "stations".to_owned(),
            inner if of_lookups => format!("limits.sources.{inner}"),
            other => other.to_owned(),
        };
        place.wrong(&format!("{section}.{setting}"), error.must);
    }
}

/// Runs `tidings config`.
pub(crate) fn run(command: &ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Example => print(example::TEXT),
        ConfigCommand::Check { file, json } => {
            let faults = Config::load(file).err().unwrap_or_default();
            if *json {
                print(&reading::json(file, &faults))?;
            } else {
                faults.iter().for_each(say);
                if faults.is_empty() {
                    print(&format!("{}: valid\n", file.display()))?;
                }
            }
            Ok(if faults.is_empty() {
                Exit::Done
            } else {
                Exit::Usage
            })
        }
    }
}

#[cfg(test)]
mod tests;
