//! The programs at the parties: stations, those who publish and those who subscribe, of either driver.
//!
//! The tokio ones are the command itself. The mio ones are this test once more (`mio.rs`), and say the same in the same words.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::{Running, run};
use crate::net::Net;

/// How often each publisher has something to say.
const EVERY: Duration = Duration::from_millis(10);
/// Links are probed so often; two probes without an answer end one.
pub(crate) const PROBE: &str = "1s";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    Mio,
    Tokio,
}

fn here() -> String {
    let own = std::env::current_exe().expect("this program has a path");
    own.to_str().expect("in plain letters").to_owned()
}

fn command() -> &'static str {
    env!("CARGO_BIN_EXE_tidings")
}

/// A station with a key of its own, which it keeps when it is started again.
pub(crate) struct Station {
    name: &'static str,
    driver: Driver,
    at: String,
    key: PathBuf,
    process: Running,
    /// As nodes name it.
    pub(crate) address: String,
}

impl Station {
    pub(crate) fn start(
        net: &Net,
        name: &'static str,
        driver: Driver,
        at: &str,
        folder: &Path,
    ) -> Self {
        let key = folder.join(name);
        assert!(run(&["keygen", key.to_str().unwrap()]).status.success());
        let (process, address) = Self::run(net, name, driver, at, &key);
        Self {
            name,
            driver,
            at: at.to_owned(),
            key,
            process,
            address,
        }
    }

    fn run(net: &Net, name: &str, driver: Driver, at: &str, key: &Path) -> (Running, String) {
        let listen = format!("tls://{at}:7400");
        let mut station = match driver {
            Driver::Tokio => {
                let mut station = net.within(name, command());
                station.args(["station", "--probe", PROBE, "--listen", &listen]);
                station.arg("--key").arg(key);
                station
            }
            Driver::Mio => {
                let mut station = net.within(name, &here());
                station.args(["mio-station", &listen]);
                station
            }
        };
        station
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Running::start(&mut station);
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let (_, rest) = line.unwrap().split_once("--station ").map(own)?;
            rest.starts_with("tls://").then_some(rest)
        });
        (process, address.expect("it says where it is"))
    }

    /// Ends it as a crash does, and starts it again.
    pub(crate) fn crash(&mut self, net: &Net, down: Duration) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
        std::thread::sleep(down);
        let (process, address) = Self::run(net, self.name, self.driver, &self.at, &self.key);
        assert_eq!(address, self.address);
        self.process = process;
    }
}

fn own((left, right): (&str, &str)) -> (String, String) {
    (left.to_owned(), right.to_owned())
}

/// Somebody who publishes a number every few milliseconds, counted from 0.
pub(crate) struct Writer {
    pub(crate) topic: &'static str,
    process: Running,
    said: PathBuf,
    fed: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    feeder: Option<JoinHandle<()>>,
}

/// What became of a publisher's numbers, as it says itself.
pub(crate) struct Written {
    pub(crate) topic: &'static str,
    pub(crate) published: u64,
    /// Those no station answered for.
    pub(crate) unknown: u64,
}

impl Writer {
    pub(crate) fn start(
        net: &Net,
        name: &str,
        driver: Driver,
        topic: &'static str,
        stations: &[String],
        folder: &Path,
    ) -> Self {
        let said = folder.join(format!("{name}.said"));
        let mut publisher = match driver {
            Driver::Tokio => {
                let mut publisher = net.within(name, command());
                publisher.args(["pub", topic, "--probe", PROBE, "--wait", "1m"]);
                for station in stations {
                    publisher.args(["--station", station]);
                }
                publisher
            }
            Driver::Mio => {
                let mut publisher = net.within(name, &here());
                publisher.args(["mio-pub", topic]).args(stations);
                publisher
            }
        };
        publisher
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(File::create(&said).unwrap());
        let mut process = Running::start(&mut publisher);
        let stdin = process.0.stdin.take().unwrap();
        let (fed, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let feeder = feed(stdin, Arc::clone(&fed), Arc::clone(&stop));
        Self {
            topic,
            process,
            said,
            fed,
            stop,
            feeder: Some(feeder),
        }
    }

    /// How many numbers it was given.
    pub(crate) fn fed(&self) -> u64 {
        self.fed.load(Ordering::Relaxed)
    }

    /// Nothing more to say: waits until every number has its answer.
    pub(crate) fn end(mut self) -> Written {
        self.stop.store(true, Ordering::Relaxed);
        self.feeder.take().unwrap().join().unwrap();
        self.process.wait(Duration::from_secs(60));
        let said = std::fs::read_to_string(&self.said).unwrap();
        let ledger = said
            .lines()
            .rfind(|line| line.starts_with("published"))
            .unwrap_or_else(|| panic!("no ledger of {}: {said}", self.topic));
        println!("{}: {ledger}", self.topic);
        assert!(ledger.contains(", refused 0"), "{ledger}");
        let published = number_after(ledger, "published ");
        assert_eq!(published, self.fed(), "it took every number");
        Written {
            topic: self.topic,
            published,
            unknown: number_after(ledger, "unknown "),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn feed(mut stdin: ChildStdin, fed: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let number = fed.load(Ordering::Relaxed);
            if writeln!(stdin, "{number}").is_err() {
                return;
            }
            fed.store(number + 1, Ordering::Relaxed);
            std::thread::sleep(EVERY);
        }
    })
}

/// The number behind a word, which may have commas in it.
fn number_after(text: &str, word: &str) -> u64 {
    let (_, rest) = text
        .split_once(word)
        .unwrap_or_else(|| panic!("no {word}in {text}"));
    let digits = rest
        .split(|c: char| !c.is_ascii_digit() && c != ',')
        .next()
        .unwrap_or_default();
    digits.replace(',', "").parse().unwrap()
}

/// Somebody who subscribes to all of it and writes down what comes, as `sub --json` does.
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    driver: Driver,
    process: Running,
    out: PathBuf,
    said: PathBuf,
}

/// All a reader heard and said.
pub(crate) struct Heard {
    pub(crate) name: &'static str,
    pub(crate) lines: String,
    pub(crate) said: String,
}

impl Reader {
    pub(crate) fn start(
        net: &Net,
        name: &'static str,
        driver: Driver,
        stations: &[String],
        folder: &Path,
    ) -> Self {
        let (out, said) = (
            folder.join(format!("{name}.out")),
            folder.join(format!("{name}.said")),
        );
        let mut subscriber = match driver {
            Driver::Tokio => {
                let mut subscriber = net.within(name, command());
                subscriber.args(["sub", "faults/**", "--from", "open", "--json"]);
                subscriber.args(["--probe", PROBE, "--wait", "1m"]);
                for station in stations {
                    subscriber.args(["--station", station]);
                }
                subscriber
            }
            Driver::Mio => {
                let mut subscriber = net.within(name, &here());
                subscriber.args(["mio-sub", "faults/**"]).args(stations);
                subscriber
            }
        };
        subscriber
            .stdin(Stdio::piped())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&said).unwrap());
        Self {
            name,
            driver,
            process: Running::start(&mut subscriber),
            out,
            said,
        }
    }

    /// Whether so few stations carried it at some time since it had said so much.
    pub(crate) fn fell(&self, since: usize, carriers: u64) -> bool {
        let words = self.words();
        let said = words.get(since..).unwrap_or_default();
        let mut carried = said.lines().filter(|line| line.starts_with("carried by "));
        carried.any(|line| number_after(line, "carried by ") <= carriers)
    }

    /// How many stations carry it now, as it says.
    pub(crate) fn carried(&self) -> Option<u64> {
        let said = std::fs::read_to_string(&self.said).unwrap();
        let line = said.lines().rfind(|line| line.starts_with("carried by "))?;
        Some(number_after(line, "carried by "))
    }

    /// Whether it has heard this number of a topic, or a later one, lately.
    pub(crate) fn has_heard(&self, topic: &str, number: u64) -> bool {
        let mut file = File::open(&self.out).unwrap();
        let length = file.metadata().unwrap().len();
        file.seek(SeekFrom::Start(length.saturating_sub(64 * 1024)))
            .unwrap();
        let mut tail = Vec::new();
        file.read_to_end(&mut tail).unwrap();
        let tail = String::from_utf8_lossy(&tail);
        let topic = format!("\"topic\":\"{topic}\"");
        tail.lines()
            .filter(|line| line.contains(&topic) && line.ends_with('}'))
            .filter_map(|line| line.split_once("\"payload\":\"")?.1.strip_suffix("\"}"))
            .any(|payload| payload.parse().is_ok_and(|heard: u64| heard >= number))
    }

    /// Ends it, as its user would.
    pub(crate) fn end(mut self) -> Heard {
        drop(self.process.0.stdin.take());
        if self.driver == Driver::Tokio {
            self.process.signal("-TERM");
        }
        self.process.wait(Duration::from_secs(30));
        Heard {
            name: self.name,
            lines: std::fs::read_to_string(&self.out).unwrap(),
            said: std::fs::read_to_string(&self.said).unwrap(),
        }
    }

    /// What it said so far, for a test that goes wrong.
    pub(crate) fn words(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }
}
