//! The probes of one end of a link, and the waits before a station is dialled again.
//!
//! Decides: how a trace's words are said to a link and to a client. Leaves to others: the rules, the core's. Believes: the times of each
//! step. Bounded by: the trace.

use serde_json::{Value, json};
use tidings::code::{CloseReason, HandshakeRefusal};
use tidings::link::{Link, LinkSettings, Step};
use tidings::wire::{Frame, Goodbye, Phase, Role, Split, next_frame};
use tidings::{
    Action, Binding, Client, ClientConfig, Duration, Entropy, LinkEvent, LinkId, LinkState, Seed,
    StationRef, Turn,
};

use super::flow::{compare, number, steps};
use super::links::{Side, now_at, own_key, peer_key, settings};
use super::{Broken, Judged, array_of};

/// The nonce of a probe nobody asked with.
const FOREIGN: [u8; 16] = [0xee; 16];

fn told(error: impl ToString) -> Broken {
    error.to_string()
}

/// The next frame a link writes, written at once.
fn frame(link: &mut Link) -> Vec<u8> {
    let mut out = Vec::new();
    link.poll_transmit(&mut out);
    link.handle_written(now_at(0), out.len());
    out.split_off(out.len().min(4))
}

/// The dialling end of a link that comes up at 0.
fn up(every: u64) -> Result<Link, Broken> {
    let (own, peer) = (own_key(), peer_key());
    let dialling = LinkSettings {
        probe_every: Duration::from_millis(every),
        ..settings(&own, Role::Node)
    };
    let start = now_at(0);
    let mut near = Link::dial(start.mono, dialling, None, Binding::Local, [1; 32]).map_err(told)?;
    let answering = settings(&peer, Role::Station);
    let mut far = Link::accept(start.mono, answering, Binding::Local, [2; 32]).map_err(told)?;
    for _ in 0..2 {
        let step = far
            .handle_frame(start, &frame(&mut near), &peer)
            .map_err(told)?;
        if matches!(step, Step::Verified(_)) {
            far.admit(&peer).map_err(told)?;
        }
        near.handle_frame(start, &frame(&mut far), &own)
            .map_err(told)?;
    }
    Ok(near)
}

pub(super) fn liveness(entry: &Value) -> Result<Judged, Broken> {
    let mut link = up(number(&entry["config"], "probe_every_ms")?)?;
    let mut nonces = Vec::new();
    for (place, step) in steps(entry)?.iter().enumerate() {
        let now = now_at(number(step, "at_ms")?);
        let mut out = Vec::new();
        if link.error().is_none() {
            if let Some(bytes) = step["queue"].as_u64() {
                link.handle_queued(bytes as usize);
            } else if let Some(reads) = step["reads"].as_bool() {
                link.handle_paused(now.mono, !reads);
            } else if step.get("write").is_some() {
                let all = link.queued() - link.written();
                link.handle_written(now, step["write"].as_u64().unwrap_or(all) as usize);
            } else if step.get("pong").is_some() {
                let probe = step["pong"].as_u64().and_then(|probe| probe.checked_sub(1));
                let nonce = probe.and_then(|probe| nonces.get(probe as usize));
                let good = link.handle_pong(now, nonce.unwrap_or(&FOREIGN));
                out.push(if good { "answered" } else { "stray" });
            } else if step.get("slept").is_some() {
                link.handle_suspect(now.mono);
            } else if let Err(error) = link.handle_timeout(now.mono) {
                out.push(error.text());
            }
        }
        let mut bytes = Vec::new();
        if link.poll_transmit(&mut bytes) {
            let Ok(Split::Frame { body, .. }) = next_frame(&bytes, 4096) else {
                return Err(format!("step {place} writes no frame"));
            };
            match Frame::decode(body, Phase::Established) {
                Ok(Frame::Ping(nonce)) => nonces.push(*nonce),
                _ => return Err(format!("step {place} writes no probe")),
            }
            out.push("probe");
        }
        compare(place, step, "out", &json!(out))?;
        // Times of the vectors count from the link's first moment.
        let due = link
            .poll_timeout()
            .map(|due| due.saturating_since(now_at(0).mono).as_millis() as u64);
        compare(place, step, "deadline_ms", &json!(due))?;
    }
    let counts = link.probes();
    Ok(Ok(
        json!({ "probes": counts.sent, "missed": counts.missed, "stray": counts.stray }),
    ))
}

/// A transport from a client to one of its stations, and the other end of it.
fn begin(client: &mut Client, station: StationRef, at_ms: u64) -> Result<(LinkId, Link), Broken> {
    let up = LinkEvent::Up {
        dialled: Some(station),
        binding: Binding::Local,
    };
    let link = client.handle_link(now_at(at_ms), up).map_err(told)?;
    let settings = settings(&peer_key(), Role::Station);
    let other = Link::accept(now_at(at_ms).mono, settings, Binding::Local, [3; 32]);
    Ok((link, other.map_err(told)?))
}

/// A node with two stations, one of which is up all the time.
struct Dialler {
    /// With its latest link.
    side: Side<Client>,
    at_ms: u64,
    station: StationRef,
}

impl Dialler {
    fn new(config: &Value) -> Result<Self, Broken> {
        let station = StationRef(number(config, "station")? as u16);
        let seed = Seed::new(array_of(config, "seed")?);
        let config = ClientConfig::new(own_key())
            .station(None)
            .station(None)
            .allow_local(true)
            .probe_every(Duration::from_secs(3600));
        let config = config.build().map_err(told)?;
        let mut client = Client::new(config, seed, Entropy::from_hardware([8; 32]), now_at(0));
        let other = StationRef(1 - station.0);
        let (link, far) = begin(&mut client, other, 0)?;
        let mut side = Side::new(client, link, now_at(0));
        side.shake_hands(far, &peer_key())?;
        Ok(Self {
            side,
            at_ms: 0,
            station,
        })
    }

    /// A transport to its station; the other end of it.
    fn begin(&mut self) -> Result<Link, Broken> {
        let (link, other) = begin(&mut self.side.machine, self.station, self.at_ms)?;
        self.side.link = link;
        Ok(other)
    }

    /// One link that lived so long, or none, and how it ended.
    fn live(&mut self, lived: u64, away: bool) -> Result<(), Broken> {
        let now = now_at(self.at_ms);
        if lived == 0 && !away {
            let machine = &mut self.side.machine;
            let told_of = machine.handle_dial_failed(now, self.station, "refused");
            return told_of.map_err(told);
        }
        let mut other = self.begin()?;
        if lived == 0 {
            for _ in 0..2 {
                for body in self.side.written() {
                    let step = other.handle_frame(now, &body, &peer_key()).map_err(told)?;
                    if matches!(step, Step::Verified(_)) {
                        other.refuse(HandshakeRefusal::Full);
                    }
                }
                let mut out = Vec::new();
                while other.poll_transmit(&mut out) {}
                self.side.take(&out);
            }
        } else {
            self.side.shake_hands(other, &peer_key())?;
            self.pass(lived);
            if away {
                let goodbye = Frame::Goodbye(Goodbye {
                    reason: CloseReason::Draining,
                    detail: "",
                });
                let mut bytes = Vec::new();
                goodbye.encode_framed(&mut bytes);
                self.side.take(&bytes);
            }
        }
        let down = LinkEvent::Down {
            link: self.side.link,
            reason: CloseReason::Io,
        };
        let now = now_at(self.at_ms);
        let ended = self.side.machine.handle_link(now, down);
        ended.map(drop).map_err(told)
    }

    fn pass(&mut self, millis: u64) {
        self.at_ms += millis;
        self.side.now = now_at(self.at_ms);
        while self.side.machine.handle_timeout(self.side.now) == Turn::More {}
    }

    /// How long it waits, and has waited when this returns.
    fn wait(&mut self) -> Result<u64, Broken> {
        let state = self.side.machine.status().links[usize::from(self.station.0)].state;
        let LinkState::Waiting { until } = state else {
            return Err(format!("does not wait: {state:?}"));
        };
        let wait = until.saturating_since(now_at(self.at_ms).mono).as_millis() as u64;
        while self.side.machine.poll_action().is_some() {}
        self.pass(wait);
        let mut asked = std::iter::from_fn(|| self.side.machine.poll_action());
        if asked.any(|action| matches!(action, Action::Dial { .. })) {
            Ok(wait)
        } else {
            Err("does not dial when it said".to_owned())
        }
    }
}

pub(super) fn backoff(entry: &Value) -> Result<Judged, Broken> {
    let mut dialler = Dialler::new(&entry["config"])?;
    let (mut waits, mut longest) = (0, 0);
    for (place, step) in steps(entry)?.iter().enumerate() {
        dialler.live(number(step, "lived_ms")?, step["away"] == true)?;
        let wait = dialler.wait()?;
        compare(place, step, "out", &wait.into())?;
        waits += 1;
        longest = longest.max(wait);
    }
    Ok(Ok(json!({ "waits": waits, "longest": longest })))
}
