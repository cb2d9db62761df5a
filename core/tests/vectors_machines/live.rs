//! `liveness`: the probes of one end of a link. `backoff`: when a station is dialled again.

use serde_json::{Value as Json, json};
use tidings::code::{CloseReason, HandshakeRefusal};
use tidings::link::{Link, LinkSettings, Step};
use tidings::sim::{entropy, fake_signer};
use tidings::wire::{Frame, Goodbye, Hello, Phase, Role, Split, next_frame};
use tidings::{
    Action, Binding, Client, ClientConfig, Instant, LinkEvent, LinkState, Now, Seed, StationRef,
};

use super::common::{self, Far, at};
use super::{compare, ms, steps, text, time, uint};
use tidings::crypto::Signer;

/// What `link` has to say, length and body; it is written at once.
fn said(link: &mut Link) -> Vec<u8> {
    let mut out = Vec::new();
    while link.poll_transmit(&mut out) {}
    link.handle_written(at(0), out.len());
    out
}

/// The dialling end of a link that comes up at 0.
fn up(every: u64) -> Link {
    let (here, there) = (fake_signer(1), fake_signer(2));
    let settings = |signer: &dyn Signer, role| LinkSettings {
        allow_local: true,
        probe_every: ms(every),
        ..LinkSettings::new(signer.profile(), signer.public_key(), role)
    };
    let (near, far) = (settings(&here, Role::Node), settings(&there, Role::Station));
    let mut near = Link::dial(Instant::ORIGIN, near, None, Binding::Local, [1; 32]).expect("local");
    let mut far = Link::accept(Instant::ORIGIN, far, Binding::Local, [2; 32]).expect("local");
    while !near.is_up() {
        let bytes = said(&mut near);
        if let Ok(Split::Frame { body, .. }) = next_frame(&bytes, 4096)
            && let Ok(Step::Verified(_)) = far.handle_frame(at(0), body, &there)
        {
            far.admit(&there).expect("it was verified");
        }
        let bytes = said(&mut far);
        if let Ok(Split::Frame { body, .. }) = next_frame(&bytes, 4096) {
            near.handle_frame(at(0), body, &here).expect("honest");
        }
    }
    near
}

/// The number of the probe in `bytes`, and what its nonce begins with.
fn probe(bytes: &[u8]) -> Option<[u8; 16]> {
    match Frame::decode(bytes.get(4..)?, Phase::Established) {
        Ok(Frame::Ping(nonce)) => Some(*nonce),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn liveness(entry: &Json) -> Result<Json, String> {
    let mut link = up(uint(&entry["config"], "probe_every_ms"));
    let mut nonces: Vec<[u8; 16]> = Vec::new();
    for (number, step) in steps(entry).iter().enumerate() {
        let now = time(step, "at_ms");
        let mut out = Vec::new();
        let over = link.error().is_some();
        if over {
            // Nothing more comes of it.
        } else if let Some(bytes) = step["queue"].as_u64() {
            link.handle_queued(bytes as usize);
        } else if let Some(reads) = step["reads"].as_bool() {
            link.handle_paused(now.mono, !reads);
        } else if step.get("write").is_some() {
            let left = link.queued() - link.written();
            let bytes = step["write"].as_u64().unwrap_or(left);
            link.handle_written(now, bytes as usize);
        } else if step.get("pong").is_some() {
            // One that was never asked has a nonce nobody has seen.
            let asked = step["pong"].as_u64().and_then(|asked| asked.checked_sub(1));
            let asked = asked.and_then(|asked| nonces.get(asked as usize));
            let good = link.handle_pong(now, asked.unwrap_or(&[0xee; 16]));
            out.push(if good { "answered" } else { "stray" });
        } else if step.get("slept").is_some() {
            link.handle_suspect(now.mono);
        } else if let Err(error) = link.handle_timeout(now.mono) {
            out.push(error.text());
        }
        let mut bytes = Vec::new();
        if link.poll_transmit(&mut bytes) {
            nonces.extend(probe(&bytes));
            out.push("probe");
        }
        compare(number, step, "out", &json!(out))?;
        let due = link.poll_timeout().map(|due| due.as_micros() / 1000);
        compare(number, step, "deadline_ms", &json!(due))?;
    }
    let counts = link.probes();
    Ok(json!({ "probes": counts.sent, "missed": counts.missed, "stray": counts.stray }))
}

/// A node whose other station is up, and the one of the trace, which was asked for.
struct Dialler {
    client: Client,
    now: Now,
    station: StationRef,
}

impl Dialler {
    fn new(entry: &Json) -> Self {
        let config = &entry["config"];
        let station = StationRef(uint(config, "station") as u16);
        let digits = text(config, "seed");
        let byte = |n: usize| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).expect("hex");
        let seed = Seed::new(core::array::from_fn(byte));
        let settings = ClientConfig::new(fake_signer(1))
            .station(None)
            .station(None);
        let settings = settings.allow_local(true).probe_every(ms(3_600_000));
        let mut client = Client::new(settings.build().expect("valid"), seed, entropy(1), at(0));
        let other = StationRef(1 - station.0);
        let _up = Far::answer(&mut client, at(0), fake_signer(3), other);
        Self {
            client,
            now: at(0),
            station,
        }
    }

    /// One link that lived so long, or none, and how it ended.
    fn live(&mut self, lived: u64, away: bool) {
        let refused = Frame::Hello(Hello::Refused(HandshakeRefusal::Full));
        let goodbye = Frame::Goodbye(Goodbye {
            reason: CloseReason::Draining,
            detail: "",
        });
        let mut reason = CloseReason::Io;
        if lived == 0 && !away {
            let told = self
                .client
                .handle_dial_failed(self.now, self.station, "refused");
            return told.expect("it was asked for");
        }
        let mut far = Far::answering(&mut self.client, self.now, fake_signer(2), self.station);
        if lived == 0 {
            far.challenge(&mut self.client, self.now);
            let told = far.frame(&mut self.client, self.now, &refused);
            assert!(told.is_err());
            reason = CloseReason::Refused;
        } else {
            far.shake_hands(&mut self.client, self.now);
            self.pass(lived);
            if away {
                let told = far.frame(&mut self.client, self.now, &goodbye);
                assert!(told.is_ok());
                reason = CloseReason::Draining;
            }
        }
        let down = LinkEvent::Down {
            link: far.id,
            reason,
        };
        self.client.handle_link(self.now, down).expect("it lives");
    }

    fn pass(&mut self, millis: u64) {
        let mono = self.now.mono.saturating_add(ms(millis));
        self.now = Now::new(mono, self.now.wall.saturating_add(millis));
        common::move_to(&mut self.client, self.now);
    }

    /// How long it waits now; it has waited when this returns.
    fn wait(&mut self) -> u64 {
        let line = self.client.status().links[usize::from(self.station.0)];
        let LinkState::Waiting { until } = line.state else {
            panic!("{line:?}");
        };
        let wait = until.saturating_since(self.now.mono).as_millis() as u64;
        while self.client.poll_action().is_some() {}
        self.pass(wait);
        let asked = std::iter::from_fn(|| self.client.poll_action());
        let dials = asked.filter(|action| matches!(action, Action::Dial { .. }));
        assert_eq!(dials.count(), 1, "exactly then");
        wait
    }
}

pub(crate) fn backoff(entry: &Json) -> Result<Json, String> {
    let mut dialler = Dialler::new(entry);
    let (mut waits, mut longest) = (0, 0);
    for (number, step) in steps(entry).iter().enumerate() {
        dialler.live(uint(step, "lived_ms"), step["away"] == true);
        let wait = dialler.wait();
        compare(number, step, "out", &json!(wait))?;
        waits += 1;
        longest = longest.max(wait);
    }
    Ok(json!({ "waits": waits, "longest": longest }))
}
