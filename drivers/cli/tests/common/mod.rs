//! Running the real binary.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod byhand;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The command, ready for arguments.
pub(crate) fn tidings(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs to the end.
pub(crate) fn run(args: &[&str]) -> Output {
    tidings(args).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A folder of this test's own, empty.
pub(crate) fn folder(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A child that ends with its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Sends it a signal, such as `-STOP`.
    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.unwrap().success(), "{signal}");
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, within: Duration) -> i32 {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(Instant::now() < deadline, "still running after {within:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A station on a free port.
pub(crate) struct Station {
    pub(crate) process: Running,
    pub(crate) address: String,
}

impl Station {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_at("tcp://127.0.0.1:0", args)
    }

    pub(crate) fn start_at(listen: &str, args: &[&str]) -> Self {
        Self::start_with(&[&["--listen", listen], args].concat())
    }

    /// With these arguments alone.
    pub(crate) fn start_with(args: &[&str]) -> Self {
        let mut command = tidings(&["station"]);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Running::start(&mut command);
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            line.unwrap()
                .split_once("sub ")
                .and_then(|(_, line)| Some(line.split_once("--station ")?.1.to_owned()))
        });
        Self {
            process,
            address: address.unwrap(),
        }
    }
}

/// A subscriber whose standard output goes to `out` and whose standard error is gathered here.
pub(crate) struct Subscriber {
    pub(crate) process: Running,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Subscriber {
    /// Starts it and waits until `carriers` stations carry it.
    pub(crate) fn start(args: &[&str], out: Stdio, carriers: usize) -> Self {
        let mut command = tidings(args);
        command.stdout(out).stderr(Stdio::piped());
        let mut process = Running::start(&mut command);
        let mut stderr = BufReader::new(process.0.stderr.take().unwrap());
        let wanted = format!("carried by {carriers} of");
        let (mut line, mut said) = (String::new(), String::new());
        while !line.starts_with(&wanted) {
            line.clear();
            assert!(
                stderr.read_line(&mut line).unwrap() > 0,
                "it ended before {wanted}"
            );
            said.push_str(&line);
        }
        // Whom it hears is said before anything else of the stream.
        let hears = said.lines().any(|line| {
            line.strip_prefix("hears ")
                .is_some_and(|line| line.contains(" from "))
        });
        assert!(hears, "{said}");
        Self { process, stderr }
    }

    /// Its exit code and the rest of what it said.
    pub(crate) fn end(mut self, within: Duration) -> (i32, String) {
        let code = self.process.wait(within);
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (code, said)
    }
}

/// Publishes lines to `demo/lines`, with its exit code and what it said.
pub(crate) fn publish(station: &Station, more: &[&str], lines: &str) -> (i32, String) {
    publish_with(&[&["--station", &station.address], more].concat(), lines)
}

/// The same, with these arguments alone.
pub(crate) fn publish_with(args: &[&str], lines: &str) -> (i32, String) {
    let mut command = tidings(&[&["pub", "demo/lines"], args].concat());
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Running::start(&mut command);
    let mut stdin = process.0.stdin.take().unwrap();
    let input = lines.to_owned();
    let writer = std::thread::spawn(move || {
        // One that ended early reads no more.
        std::io::Write::write_all(&mut stdin, input.as_bytes()).ok();
    });
    let mut said = String::new();
    let mut stderr = process.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    writer.join().unwrap();
    (process.wait(Duration::from_secs(60)), said)
}

/// The numbers `from` to `to`, a line each.
pub(crate) fn numbers(from: u64, to: u64) -> String {
    (from..to).fold(String::new(), |text, n| text + &format!("{n}\n"))
}
