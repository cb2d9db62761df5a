//! The command line.
//!
//! Decides: names, defaults and help of every command, and that a wrong command line is one line. Leaves to others: what the values
//! mean beyond their form. Believes: no clock. Bounded by: 16 stations.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use tidings::code::SealPolicy;
use tidings::{NodeId, Sources, topic};

use crate::config::{Config, NodePart};
use crate::exit::{Exit, Failure, print};
use crate::human;

/// Where a station listens and is looked for when nothing else is said.
pub(crate) const DEFAULT_LISTEN: &str = "tcp://127.0.0.1:7400";

/// Publish and subscribe with a notice for everything that may be missing.
#[derive(Debug, Parser)]
#[command(
    name = "tidings",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 a fact was lost or the ledger does not balance, 2 usage, 3 no station, 4 refused.\n\
    Facts go to standard output, everything else to standard error."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a station, or all of it in this process: facts at full speed, and whether all arrived
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Check a configuration file, or print one with every key in it
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Run the vectors of a folder against this implementation
    Conformance(ConformanceArgs),
    /// Watch it work: three stations, a publisher and three subscribers over real sockets, and outages
    Demo(DemoArgs),
    /// Say what a notice, refusal or reason means and what to do; without a code, list them all
    Explain {
        /// Its text or number
        code: Option<String>,
    },
    /// Make the keys of a sealed group
    #[command(subcommand)]
    Group(GroupCommand),
    /// Write a new secret key to a file that must not exist yet
    Keygen {
        /// The file to write, readable by its owner alone
        file: PathBuf,
    },
    /// Publish lines, JSON values or a whole file
    Pub(PubArgs),
    /// Run a station until Ctrl-C
    Station(StationArgs),
    /// Print what is published, in order, and what may be missing
    Sub(SubArgs),
}

impl Command {
    /// What it needs as a node, if it is one.
    fn node(&mut self) -> Option<&mut NodeArgs> {
        match self {
            Self::Bench(BenchCommand::Pub { node, .. } | BenchCommand::Sub { node, .. }) => {
                Some(node)
            }
            Self::Pub(args) => Some(&mut args.node),
            Self::Sub(args) => Some(&mut args.node),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Start two stations, a publisher and a subscriber here, and measure them together
    Pair {
        /// Over TLS instead of plain loopback TCP
        #[arg(long)]
        tls: bool,
        #[command(flatten)]
        load: LoadArgs,
    },
    /// Publish at full speed, for a `bench sub` elsewhere
    Pub {
        #[command(flatten)]
        load: LoadArgs,
        #[command(flatten)]
        node: NodeArgs,
    },
    /// Receive what one `bench pub` publishes
    Sub {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        node: NodeArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong in a file, with key and line; nothing is started
    Check {
        /// The file
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a file with every key, what it means and its default
    Example,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// Write the secret its members share to a file that must not exist yet; whoever has the file reads all that is sealed with it
    Keygen {
        /// Which topics are sealed: this one and all below it, such as demo/acme
        prefix: String,
        /// The file to write, readable by its owner alone
        file: PathBuf,
        /// The realm; without it the first segment of the prefix
        #[arg(long, value_name = "NAME")]
        realm: Option<String>,
        /// How often the keys change, 1m to 24h [default: 15m]
        #[arg(long, value_name = "TIME", value_parser = human::parse_span)]
        rotation: Option<Duration>,
        /// What members ask of facts under the prefix
        #[arg(long, value_enum, default_value_t = Policy::Required)]
        policy: Policy,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// Facts in the clear are refused
    Required,
    /// Facts in the clear are taken
    Preferred,
    /// Nobody has to seal
    Off,
}

impl From<Policy> for SealPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Required => Self::Required,
            Policy::Preferred => Self::Preferred,
            Policy::Off => Self::Off,
        }
    }
}

/// With which keys a run seals and opens.
#[derive(Debug, Args)]
pub(crate) struct SealArgs {
    /// The keys of its sealed groups, as tidings group keygen makes them; nothing is published in the clear where they cover it
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Which of them; without it the one whose prefix is the longest that covers the topic or filter
    #[arg(long, value_name = "PREFIX")]
    pub(crate) group: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// How many facts
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) count: u64,
    /// Bytes of text in each
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) size: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What every node needs.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// A file whose [node] holds settings; what the command line says counts before it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What that file says
    #[arg(skip)]
    pub(crate) file: NodePart,
    /// A station: tls://NODEID@HOST:PORT as it prints it, or on this host tcp://HOST:PORT; repeatable [default: tcp://127.0.0.1:7400]
    #[arg(long = "station", value_name = "ADDRESS")]
    pub(crate) stations: Vec<String>,
    /// The key to be known by; without it a new one for this run
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// The realm; without it the first segment of the topic or filter
    #[arg(long, value_name = "NAME")]
    pub(crate) realm: Option<String>,
    /// How long to wait for a first station
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = human::parse_span)]
    pub(crate) wait: Duration,
    /// How often a station is asked whether it is there; two missed answers end its link. 1s to 1h [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_probe)]
    pub(crate) probe: Option<Duration>,
}

impl NodeArgs {
    /// Takes what its file says where the command line says nothing.
    fn settle(&mut self) -> Result<(), Failure> {
        self.file = Config::load_or_default(self.config.as_deref())?.node;
        if self.stations.is_empty() {
            self.stations.clone_from(&self.file.stations);
        }
        if self.stations.is_empty() {
            self.stations.push(DEFAULT_LISTEN.to_owned());
        }
        self.key = self.key.take().or_else(|| self.file.key.clone());
        self.realm = self.realm.take().or_else(|| self.file.realm.clone());
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct StationArgs {
    /// A file whose [station] holds settings; what the command line says counts before it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen: tls://HOST:PORT, or on this host alone tcp://HOST:PORT; port 0 takes a free one [default: tcp://127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The key to be known by; without it a new one for this run
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// How often each node is asked whether it is there; two missed answers end its link. 1s to 1h [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_probe)]
    pub(crate) probe: Option<Duration>,
    /// Publications kept of each topic, for readers that are behind or come back [default: 10,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) ring: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct PubArgs {
    /// The topic, such as demo/hello
    pub(crate) topic: String,
    /// The file to publish; - is standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Each line is a JSON value; blank lines are passed over
    #[arg(long, conflicts_with_all = ["lines", "raw"])]
    pub(crate) json: bool,
    /// Each line is a text (the default)
    #[arg(long, conflicts_with = "raw")]
    pub(crate) lines: bool,
    /// The whole file is one byte string
    #[arg(long)]
    pub(crate) raw: bool,
    /// At most so many a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// How long a publication may travel, one hour at most
    #[arg(long, value_name = "TIME", value_parser = human::parse_span)]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) seal: SealArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SubArgs {
    /// A topic, or a filter: * for one segment, a last ** for the rest; quote it
    pub(crate) filter: String,
    /// Whose facts are wanted: open, members, org:NAME, or node:ID, which is repeatable
    #[arg(long, value_name = "SOURCE", required = true, value_parser = parse_source)]
    pub(crate) from: Vec<Source>,
    /// How one publisher's facts are ordered
    #[arg(long, value_enum, default_value_t = Order::Ordered)]
    pub(crate) mode: Order,
    /// End after so many facts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Go on where the last run with this file ended, and keep there how far this one is
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// One JSON object per item, notices included
    #[arg(long, conflicts_with = "raw")]
    pub(crate) json: bool,
    /// Text and byte strings exactly as published, nothing between them
    #[arg(long)]
    pub(crate) raw: bool,
    /// Who are members, and whom organisations delegate: a file of [[realm]], for members and org:NAME
    #[arg(long, value_name = "FILE")]
    pub(crate) sources: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) seal: SealArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Order {
    /// In order; a missing one is waited for, then reported
    Ordered,
    /// Only what is newer than the last
    LatestOnly,
    /// At once; what is missing is still reported
    AsArrives,
}

impl From<Order> for tidings::Mode {
    fn from(order: Order) -> Self {
        match order {
            Order::Ordered => Self::Ordered,
            Order::LatestOnly => Self::LatestOnly,
            Order::AsArrives => Self::AsArrives,
        }
    }
}

/// One `--from`.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Members,
    Node(NodeId),
    Open,
    Org(String),
}

fn parse_probe(text: &str) -> Result<Duration, String> {
    let every = human::parse_span(text)?;
    (Duration::from_secs(1)..=Duration::from_secs(3600))
        .contains(&every)
        .then_some(every)
        .ok_or_else(|| "from 1s to 1h".to_owned())
}

fn parse_source(text: &str) -> Result<Source, String> {
    let of = text.split_once(':');
    match (text, of) {
        ("members", _) => Ok(Source::Members),
        ("open", _) => Ok(Source::Open),
        (_, Some(("node", id))) => id
            .parse()
            .map(Source::Node)
            .map_err(|_| "a node id is 64 hex digits".to_owned()),
        (_, Some(("org", name))) if topic::is_topic_segment(name) => {
            Ok(Source::Org(name.to_owned()))
        }
        (_, Some(("org", _))) => {
            Err("an organisation's name is one segment, such as org:acme".to_owned())
        }
        _ => Err("write open, members, org: and a name, or node: and 64 hex digits".to_owned()),
    }
}

/// All `--from` of one command line together.
pub(crate) fn sources(from: &[Source]) -> Result<Sources, Failure> {
    let nodes: Option<Vec<NodeId>> = from
        .iter()
        .map(|source| match source {
            Source::Node(id) => Some(*id),
            _ => None,
        })
        .collect();
    match (nodes, from) {
        (Some(nodes), _) => Ok(Sources::Nodes(nodes)),
        (None, [Source::Members]) => Ok(Sources::Members),
        (None, [Source::Open]) => Ok(Sources::Open),
        (None, [Source::Org(name)]) => Ok(Sources::Org(name.clone())),
        (None, _) if from.iter().any(|source| matches!(source, Source::Open)) => {
            Err(Failure::usage(
                "cannot subscribe: --from open admits everyone, so the others say nothing. give one of the two",
            ))
        }
        (None, _) => Err(Failure::usage(
            "cannot subscribe: members and an organisation are sources of their own. give one --from, or run one tidings sub for each",
        )),
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Spoil what one subscriber received before it is counted, to see that the ledger notices
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) sabotage: Option<Sabotage>,
    /// Print the ledger alone, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// How long publishing takes, in seconds
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// Take one received fact away
    Drop,
    /// Count one received fact twice
    Dup,
    /// Exchange two received facts
    Swap,
}

#[derive(Debug, Args)]
pub(crate) struct ConformanceArgs {
    /// The folder that holds the vectors
    #[arg(default_value = "vectors")]
    pub(crate) dir: PathBuf,
    /// Print the table as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the command line asks for, and the files it names; help and version are printed here and end the run.
pub(crate) fn parse() -> Result<Cli, Result<Exit, Failure>> {
    let mut cli = Cli::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&error.to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            crate::exit::say(error.to_string().trim_end());
            Ok(Exit::Usage)
        }
        _ => Err(Failure::usage(one_line(&error.to_string()))),
    })?;
    if let Some(node) = cli.command.node() {
        node.settle().map_err(Err)?;
    }
    Ok(cli)
}

/// Clap's message without its usage block, as `what: why. next step`.
fn one_line(message: &str) -> String {
    let told = message
        .lines()
        .take_while(|line| !line.starts_with("Usage: "));
    let why: Vec<&str> = told
        .filter(|line| !line.starts_with("For more information"))
        .map(|line| line.trim().trim_start_matches("error: "))
        .filter(|line| !line.is_empty())
        .collect();
    format!(
        "cannot read the command line: {}. see {} --help",
        why.join(" "),
        asked()
    )
}

/// The command that was asked for, as far as there is one.
fn asked() -> String {
    let all = Cli::command();
    let (mut command, mut path) = (&all, "tidings".to_owned());
    for word in std::env::args_os().skip(1) {
        let Some(next) = command.find_subcommand(&word) else {
            break;
        };
        path = format!("{path} {}", next.get_name());
        command = next;
    }
    path
}
