//! What an idle link costs a station: memory of a process that serves so many links made by another process.
//!
//! `cargo run --release -p tidings-tokio --example idle_links -- 10000`. Linux only; the limit of open files must be above the number.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tidings::crypto::{Profile, SecretKey, Signer};
use tidings::link::{Binding, Link, LinkSettings, Step};
use tidings::wire::{Frame, Phase, Role, Split, next_frame};
use tidings::{Now, WallMs};
use tidings_tokio::StationServer;

/// Long enough for a probe of each end.
const IDLE: Duration = Duration::from_secs(35);

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [links] => serve(links),
        [address, links] => clients(address, links.parse()?),
        _ => Err("how many links?".into()),
    }
}

/// Resident memory of this process, in KiB.
fn resident() -> Result<u64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse()?)
}

#[tokio::main]
async fn serve(links: &str) -> Result<(), Error> {
    let station = StationServer::builder(SecretKey::from_seed([1; 32]));
    let station = station.listen("tcp://127.0.0.1:0")?.start().await?;
    let before = resident()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([&station.local_addr().to_string(), links])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let links: u64 = links.parse()?;
    let mut lines = BufReader::new(output).lines();
    for what in ["all are up", "after their probes"] {
        let line = tokio::task::block_in_place(|| lines.next()).ok_or("the clients ended")??;
        let (up, after) = (station.status().links.len() as u64, resident()?);
        let each = (after.saturating_sub(before)) as f64 / links as f64;
        let core = station.memory();
        let kept = core.line("links").map_or(0, |line| line.bytes as u64) / links;
        println!(
            "{what} ({line}): {up} links, {before} KiB before, {after} KiB now, {each:.1} KiB each; the core's share {kept} bytes each"
        );
    }
    drop(child.stdin.take());
    child.wait()?;
    station.close().await;
    Ok(())
}

fn now() -> Now {
    Now::new(tidings::Instant::ORIGIN, WallMs::new(1_790_000_000_000))
}

fn connect(address: &str, number: u64) -> Result<TcpStream, Error> {
    let mut seed = [2; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    let key = SecretKey::from_seed(seed);
    let settings = LinkSettings {
        allow_local: true,
        ..LinkSettings::new(Profile::ED25519, key.public_key(), Role::Node)
    };
    let mut link = Link::dial(now().mono, settings, None, Binding::Local, seed)?;
    let mut stream = TcpStream::connect(address)?;
    let mut input = Vec::new();
    while !link.is_up() {
        let mut out = Vec::new();
        while link.poll_transmit(&mut out) {}
        stream.write_all(&out)?;
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes)?;
        input.extend_from_slice(&bytes[..count]);
        while let Ok(Split::Frame { body, taken }) = next_frame(&input, 4096) {
            let step = link.handle_frame(now(), body, &key)?;
            assert!(matches!(step, Step::Continue | Step::Established(_)));
            input.drain(..taken);
        }
    }
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn clients(address: &str, links: u64) -> Result<(), Error> {
    let begun = Instant::now();
    let mut streams = Vec::new();
    let mut pongs = 0;
    for number in 0..links {
        streams.push(connect(address, number)?);
        if number % 500 == 0 {
            pongs += answer(&mut streams)?;
        }
    }
    println!("{} s to connect", begun.elapsed().as_secs());
    let idle = Instant::now();
    while idle.elapsed() < IDLE {
        pongs += answer(&mut streams)?;
        std::thread::sleep(Duration::from_secs(1));
    }
    println!("{pongs} probes answered");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Answers every probe that is here.
fn answer(streams: &mut [TcpStream]) -> Result<u64, Error> {
    let mut answered = 0;
    for stream in streams {
        let mut bytes = [0; 1024];
        let Ok(count) = stream.read(&mut bytes) else {
            continue;
        };
        let mut rest = &bytes[..count];
        while let Ok(Split::Frame { body, taken }) = next_frame(rest, 4096) {
            if let Ok(Frame::Ping(nonce)) = Frame::decode(body, Phase::Established) {
                let mut out = Vec::new();
                Frame::Pong(nonce).encode_framed(&mut out);
                stream.write_all(&out)?;
                answered += 1;
            }
            rest = &rest[taken..];
        }
    }
    Ok(answered)
}
