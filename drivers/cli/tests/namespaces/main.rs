//! Six parties in network namespaces, everything over TLS, and one trouble of real networks after the other while publishers publish.
//!
//! A station, a publisher and a subscriber of either driver, each with an address of its own. Each trouble is seen to bite, and the
//! next one begins when everybody is carried by both stations again and up to date. At the end each subscriber's ledger balances.
//!
//! It needs Linux, root and iproute2. Where it cannot run it says why in one line; with `TIDINGS_NAMESPACES=required` that is a failure
//! for root, and with `TIDINGS_NAMESPACES=later` it leaves itself to somebody else.

#[path = "../../src/audit.rs"]
#[allow(dead_code, reason = "a part of the command, of which a part is used")]
mod audit;
mod balance;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../src/holes.rs"]
#[allow(unused_imports, reason = "its tests are run where it belongs")]
mod holes;
mod mio;
mod net;
mod party;

/// What the ledger needs of the command's words.
mod human {
    pub(crate) fn count(number: u64) -> String {
        number.to_string()
    }
}

use std::process::ExitCode;
use std::time::{Duration, Instant};

use net::{Net, address};
use party::{Driver, Reader, Station, Writer};

const NAME: &str = "every_trouble_of_a_network_is_on_the_ledger";
/// How long anything that must happen may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);
/// Longer than two probes without an answer.
const OUTAGE: Duration = Duration::from_secs(5);
/// Who is where, by the last part of the address.
const PARTIES: [&str; 6] = ["s1", "s2", "n1", "n2", "n3", "n4"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((role, [topic, stations @ ..])) if role == "mio-pub" => mio::publish(topic, stations),
        Some((role, [filter, stations @ ..])) if role == "mio-sub" => {
            mio::subscribe(filter, stations);
        }
        Some((role, [listen])) if role == "mio-station" => mio::station(listen),
        _ => return as_a_test(&args),
    }
    ExitCode::SUCCESS
}

/// What a runner of tests expects.
fn as_a_test(args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let mut filters = args.iter().filter(|arg| !arg.starts_with('-')).peekable();
    if filters.peek().is_some() && !filters.any(|filter| NAME.contains(filter.as_str())) {
        return ExitCode::SUCCESS;
    }
    balance::bites();
    let wish = std::env::var("TIDINGS_NAMESPACES").unwrap_or_default();
    if wish == "later" {
        println!("namespaces: nothing done, they have a stage of their own");
        return ExitCode::SUCCESS;
    }
    match Net::make(&PARTIES) {
        Ok(net) => every_trouble_of_a_network_is_on_the_ledger(&net),
        Err(why) => {
            println!("namespaces: nothing done, they cannot be made here ({why})");
            if wish == "required" {
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

struct Scene<'a> {
    net: &'a Net,
    stations: [Station; 2],
    readers: [Reader; 2],
    writers: [Writer; 2],
    began: Instant,
}

impl Scene<'_> {
    fn say(&self, what: &str) {
        println!("{:5.1} s  {what}", self.began.elapsed().as_secs_f64());
    }

    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            if Instant::now() > deadline {
                let words = self.readers.each_ref().map(Reader::words);
                panic!("{what}, in time: {words:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Each of these readers is carried by at most so many stations: the trouble bites.
    fn fall(&self, readers: &[usize], carriers: u64) {
        self.until("a link ends", || {
            let carried = |reader: &usize| self.readers[*reader].carried();
            readers
                .iter()
                .all(|reader| carried(reader).is_some_and(|now| now <= carriers))
        });
    }

    /// A node has given all but so many of its connections up: the trouble bites.
    fn cut(&self, node: &str, left: usize) {
        let what = format!("{node} gives its links up");
        self.until(&what, || self.net.connections(node) <= left);
    }

    /// Everybody is carried by both stations and has heard what was published until now.
    fn settle(&self) {
        let fed = self.writers.each_ref().map(Writer::fed);
        self.until("everybody is back", || {
            self.readers.iter().all(|reader| {
                let level = |(writer, fed): (&Writer, &u64)| {
                    reader.has_heard(writer.topic, fed.saturating_sub(1))
                };
                reader.carried() == Some(2) && self.writers.iter().zip(&fed).all(level)
            })
        });
        self.say("everybody is back");
    }
}

fn every_trouble_of_a_network_is_on_the_ledger(net: &Net) {
    let folder = common::folder("namespaces");
    let stations = [
        Station::start(net, "s1", Driver::Tokio, &address(1), &folder),
        Station::start(net, "s2", Driver::Mio, &address(2), &folder),
    ];
    let at = stations.each_ref().map(|station| station.address.clone());
    let readers = [
        Reader::start(net, "n2", Driver::Tokio, &at, &folder),
        Reader::start(net, "n4", Driver::Mio, &at, &folder),
    ];
    let began = Instant::now();
    while readers.iter().any(|reader| reader.carried() != Some(2)) {
        assert!(began.elapsed() < PATIENCE, "everybody is there, in time");
        std::thread::sleep(Duration::from_millis(50));
    }
    let writers = [
        Writer::start(net, "n1", Driver::Tokio, "faults/tokio", &at, &folder),
        Writer::start(net, "n3", Driver::Mio, "faults/mio", &at, &folder),
    ];
    let mut scene = Scene {
        net,
        stations,
        readers,
        writers,
        began,
    };
    scene.settle();
    for node in PARTIES.iter().filter(|party| party.starts_with('n')) {
        assert_eq!(scene.net.connections(node), 2, "{node} has two links");
    }
    cables(&scene);
    loss_and_delay(&scene);
    another_address(&scene);
    half_open(&scene);
    narrow_path(&scene);
    scene.say("s2 is killed and started again a second later");
    scene.stations[1].crash(net, Duration::from_secs(1));
    scene.settle();

    let Scene {
        readers, writers, ..
    } = scene;
    let written = writers.map(Writer::end);
    let deadline = Instant::now() + PATIENCE;
    while !readers.iter().all(|reader| {
        let last = |one: &party::Written| reader.has_heard(one.topic, one.published - 1);
        written.iter().all(last)
    }) {
        assert!(Instant::now() < deadline, "the last numbers come in time");
        std::thread::sleep(Duration::from_millis(50));
    }
    for heard in readers.map(Reader::end) {
        balance::check(&heard, &written);
    }
    println!("test {NAME} ... ok, {:.0} s", began.elapsed().as_secs_f64());
    std::fs::remove_dir_all(folder).ok();
}

/// A station's cable, then both subscribers' at once, then that of a publisher.
fn cables(scene: &Scene<'_>) {
    for (parties, readers, carriers) in [
        (&["s1"][..], &[0, 1][..], 1),
        (&["n2", "n4"], &[0, 1], 0),
        (&["n3"], &[], 0),
    ] {
        scene.say(&format!("the cable of {} is pulled", parties.join(" and ")));
        for party in parties {
            scene.net.cable(party, false);
        }
        std::thread::sleep(OUTAGE);
        scene.fall(readers, carriers);
        for node in parties.iter().filter(|party| party.starts_with('n')) {
            scene.cut(node, 0);
        }
        for party in parties {
            scene.net.cable(party, true);
        }
        scene.settle();
    }
}

fn loss_and_delay(scene: &Scene<'_>) {
    let worse = ["n2", "n4", "s1"];
    for party in worse {
        let how = scene.net.worsen(party);
        scene.say(&format!("the way to {party} is bad: {how}"));
    }
    std::thread::sleep(OUTAGE);
    for party in worse {
        let lost = scene.net.better(party);
        scene.say(&format!("{lost} packets to {party} were lost"));
        assert!(lost > 0, "the trouble bites");
    }
    scene.settle();
}

/// As when a machine comes to another network: no goodbye can be sent from the old address.
fn another_address(scene: &Scene<'_>) {
    for (party, number, reader) in [("n4", 6, 1), ("n2", 4, 0)] {
        let (from, to) = (address(number), address(number + 20));
        scene.say(&format!("{party} has another address, {to} for {from}"));
        let said = scene.readers[reader].words().len();
        scene.net.readdress(party, &from, &to);
        // It may be back before anybody looks.
        scene.until("a link ends", || scene.readers[reader].fell(said, 1));
        scene.settle();
    }
}

/// What a station sends to one party vanishes, while it hears all that party says; nobody closes anything.
fn half_open(scene: &Scene<'_>) {
    let (reader, writer) = (address(24), address(3));
    scene.say("s1 hears n1 and n2 and is not heard by them");
    scene.net.blackhole("s1", &reader, true);
    scene.net.blackhole("s1", &writer, true);
    std::thread::sleep(OUTAGE);
    scene.fall(&[0], 1);
    scene.cut("n2", 1);
    scene.cut("n1", 1);
    scene.net.blackhole("s1", &reader, false);
    scene.net.blackhole("s1", &writer, false);
    scene.settle();
}

/// Short packets pass and long ones vanish, so that links are up and nothing comes through.
fn narrow_path(scene: &Scene<'_>) {
    scene.say("packets above 400 bytes to s1 and n4 vanish");
    scene.net.narrow("s1", 400);
    scene.net.narrow("n4", 400);
    std::thread::sleep(OUTAGE);
    scene.fall(&[1], 1);
    scene.net.narrow("s1", 1500);
    scene.net.narrow("n4", 1500);
    scene.settle();
}
