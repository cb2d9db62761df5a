//! What holds between the frames of one link: ids that rise, answers that were asked for, frames that are whole in time.
//!
//! Decides: which machine plays an entry. What `self` does is done by a client, which has to give out the ids of the vector; what a
//! peer asks is asked of a station. Leaves to others: the rules, the core's. Believes: the times of each step. Bounded by: the steps.

use bytes::BytesMut;
use serde_json::{Value, json};
use tidings::crypto::{Profile, SecretKey, Signer};
use tidings::link::{Link, LinkSettings, Step};
use tidings::pump::Machine;
use tidings::wire::{Body, Frame, Phase, Publication, Role, Split, next_frame};
use tidings::{
    Action, Binding, Client, ClientConfig, Entropy, Instant, LinkEvent, LinkId, Now, Publish,
    RealmId, Seed, Sources, Station, StationConfig, Subscribe, SubscriptionId, WallMs,
};

use super::{Broken, Judged, bytes_of, refuse};

/// The vectors' times are near it, in Unix milliseconds.
const WALL: u64 = 1_790_000_000_000;
/// Longer than any frame of the vectors.
const CAP: u32 = 1 << 20;
/// A frame that comes in pieces: a ping.
const PIECES: &[u8] = b"\x00\x00\x00\x31\xa3\x65nonce\x50\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x67version\x01\x6aframe_type\x64ping";

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    let steps = entry["steps"].as_array().ok_or("has no steps")?;
    let has_self = steps
        .iter()
        .any(|step| step["from"].as_str() == Some("self"));
    let mut asker = has_self.then(Asker::new).transpose()?;
    let mut asked = Side::station()?;
    for (place, step) in steps.iter().enumerate() {
        let ended = if step.get("from").is_none() {
            asked.piece(step)?
        } else {
            let body = bytes_of(step, "hex")?;
            let asks = matches!(
                Frame::decode(&body, Phase::Established),
                Ok(Frame::Subscribe(_) | Frame::Publish(_) | Frame::Unsubscribe(_))
            );
            match &mut asker {
                Some(asker) if step["from"].as_str() == Some("self") => asker.does(&body)?,
                Some(asker) if !asks => asker.side.reads(&body),
                _ => asked.reads(&body),
            }
        };
        if let Some(reason) = ended {
            let mut refusal = refuse(&reason);
            refusal.insert("step".to_owned(), place.into());
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(json!({ "steps": steps.len() })))
}

pub(super) fn settings(key: &SecretKey, role: Role) -> LinkSettings {
    LinkSettings {
        allow_local: true,
        ..LinkSettings::new(Profile::ED25519, key.public_key(), role)
    }
}

pub(super) fn now_at(millis: u64) -> Now {
    Now::new(Instant::from_millis(millis), WallMs::new(WALL + millis))
}

pub(super) fn own_key() -> SecretKey {
    SecretKey::from_seed([81; 32])
}

pub(super) fn peer_key() -> SecretKey {
    SecretKey::from_seed([82; 32])
}

/// One machine with one link.
pub(super) struct Side<M> {
    pub(super) machine: M,
    pub(super) link: LinkId,
    pub(super) now: Now,
    /// Bytes of a frame that comes in pieces.
    pending: BytesMut,
}

impl Side<Station> {
    fn station() -> Result<Self, Broken> {
        let config = StationConfig::new(own_key())
            .allow_local(true)
            .build()
            .map_err(|error| error.to_string())?;
        let entropy = Entropy::from_hardware([7; 32]);
        let mut machine = Station::new(config, Seed::new([7; 32]), entropy, now_at(0));
        let up = LinkEvent::Up {
            dialled: None,
            binding: Binding::Local,
        };
        let link = machine
            .handle_link(now_at(0), up)
            .map_err(|error| error.to_string())?;
        let key = peer_key();
        let other = Link::dial(
            now_at(0).mono,
            settings(&key, Role::Node),
            None,
            Binding::Local,
            [3; 32],
        );
        Self::up(
            machine,
            link,
            other.map_err(|error| error.to_string())?,
            &key,
        )
    }
}

/// Lets a machine and the other end of one of its links finish their handshake.
pub(super) fn shake_hands(
    machine: &mut dyn Machine,
    link: LinkId,
    now: Now,
    mut other: Link,
    key: &SecretKey,
) -> Result<(), Broken> {
    // Four frames, one way and the other.
    for _ in 0..4 {
        let mut out = Vec::new();
        while other.poll_transmit(&mut out) {}
        let mut input = BytesMut::from(&out[..]);
        if let Err(error) = machine.handle_input(now, link, &mut input) {
            return Err(format!("its handshake ended with {}", error.text()));
        }
        for body in written(machine, link, now) {
            if other.is_up() {
                break;
            }
            let step = other
                .handle_frame(now, &body, key)
                .map_err(|error| error.to_string())?;
            if matches!(step, Step::Verified(_)) {
                other.admit(key).map_err(|error| error.to_string())?;
            }
        }
    }
    if other.is_up() {
        Ok(())
    } else {
        Err("its handshake came to no end".to_owned())
    }
}

/// The bodies a machine has written to a link since the last time.
pub(super) fn written(machine: &mut dyn Machine, link: LinkId, now: Now) -> Vec<Vec<u8>> {
    while machine.poll_action().is_some() {}
    let mut bytes = Vec::new();
    loop {
        let Some(transmit) = machine.poll_transmit(link, &mut bytes) else {
            break;
        };
        bytes.extend_from_slice(transmit.body());
        machine.handle_written(now, link, transmit.len());
    }
    let (mut rest, mut bodies) = (bytes.as_slice(), Vec::new());
    while let Ok(Split::Frame { body, taken }) = next_frame(rest, CAP) {
        bodies.push(body.to_vec());
        rest = &rest[taken..];
    }
    bodies
}

impl<M: Machine> Side<M> {
    /// With a link that was just made.
    pub(super) fn new(machine: M, link: LinkId, now: Now) -> Self {
        Self {
            machine,
            link,
            now,
            pending: BytesMut::new(),
        }
    }

    fn up(machine: M, link: LinkId, other: Link, key: &SecretKey) -> Result<Self, Broken> {
        let mut side = Self::new(machine, link, now_at(0));
        side.shake_hands(other, key)?;
        Ok(side)
    }

    /// Brings the link up, with `other` at its other end.
    pub(super) fn shake_hands(&mut self, other: Link, key: &SecretKey) -> Result<(), Broken> {
        shake_hands(&mut self.machine, self.link, self.now, other, key)
    }

    /// Hands bytes to the machine; the reason when that ended the link.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<String> {
        self.pending.extend_from_slice(bytes);
        match self
            .machine
            .handle_input(self.now, self.link, &mut self.pending)
        {
            Ok(_) => None,
            Err(error) => Some(error.text().to_owned()),
        }
    }

    fn reads(&mut self, body: &[u8]) -> Option<String> {
        let mut framed = (body.len() as u32).to_be_bytes().to_vec();
        framed.extend_from_slice(body);
        let ended = self.take(&framed);
        self.written();
        ended
    }

    /// The bodies the machine has written since the last time.
    pub(super) fn written(&mut self) -> Vec<Vec<u8>> {
        written(&mut self.machine, self.link, self.now)
    }

    /// A step of time, with a piece of a frame or without.
    fn piece(&mut self, step: &Value) -> Result<Option<String>, Broken> {
        let at = step["at_ms"].as_u64().ok_or("has a step without at_ms")?;
        // The link's own first moment is before every step.
        self.now = now_at(at + 1);
        while matches!(self.machine.handle_timeout(self.now), tidings::Turn::More) {}
        for body in self.written() {
            if let Ok(Frame::Goodbye(goodbye)) = Frame::decode(&body, Phase::Established) {
                return Ok(Some(goodbye.detail.to_owned()));
            }
        }
        Ok(match step["bytes"].as_str() {
            None => None,
            Some("begin") => self.take(&PIECES[..5]),
            Some("more") => {
                let from = self.pending.len();
                self.take(&PIECES[from..=from])
            }
            Some("end") => {
                let from = self.pending.len();
                self.take(&PIECES[from..])
            }
            Some(other) => return Err(format!("has the unknown piece {other}")),
        })
    }
}

/// A client that does what `self` does.
struct Asker {
    side: Side<Client>,
    subscriptions: Vec<(u64, SubscriptionId)>,
}

impl Asker {
    fn new() -> Result<Self, Broken> {
        let config = ClientConfig::new(own_key())
            .station(None)
            .allow_local(true)
            .build();
        let config = config.map_err(|error| error.to_string())?;
        let entropy = Entropy::from_hardware([8; 32]);
        let mut machine = Client::new(config, Seed::new([8; 32]), entropy, now_at(0));
        let mut dialled = None;
        while let Some(action) = machine.poll_action() {
            if let Action::Dial { station } = action {
                dialled = Some(station);
            }
        }
        let up = LinkEvent::Up {
            dialled,
            binding: Binding::Local,
        };
        let link = machine
            .handle_link(now_at(0), up)
            .map_err(|error| error.to_string())?;
        let key = peer_key();
        let other = Link::accept(
            now_at(0).mono,
            settings(&key, Role::Station),
            Binding::Local,
            [3; 32],
        );
        let side = Side::up(
            machine,
            link,
            other.map_err(|error| error.to_string())?,
            &key,
        )?;
        Ok(Self {
            side,
            subscriptions: Vec::new(),
        })
    }

    /// Does what wrote `body`, and checks that the client gives out an id that may stand in its place.
    fn does(&mut self, body: &[u8]) -> Result<Option<String>, Broken> {
        let now = self.side.now;
        let client = &mut self.side.machine;
        let frame = Frame::decode(body, Phase::Established).map_err(|error| error.to_string())?;
        let mut again = false;
        let wanted = match frame {
            Frame::Subscribe(wanted) => {
                again = !self.subscriptions.is_empty();
                let request = Subscribe::new(wanted.realm, wanted.filter, Sources::Open);
                let subscription = client
                    .subscribe(now, request)
                    .map_err(|refused| refused.to_string())?;
                self.subscriptions.push((wanted.id, subscription));
                Some(wanted.id)
            }
            Frame::Publish(wanted) => {
                let shown = Publication::parse(wanted.publication, Profile::ED25519)
                    .map_err(|fault| fault.to_string())?;
                let Body::Payload(payload) = shown.body else {
                    return Err("publishes what is sealed".to_owned());
                };
                let request = Publish::raw(
                    RealmId::new(*shown.realm.as_bytes()),
                    shown.topic,
                    payload.to_vec(),
                );
                client
                    .publish(now, request)
                    .map_err(|refused| refused.to_string())?;
                Some(wanted.id)
            }
            Frame::Unsubscribe(id) => {
                // A second unsubscribe writes nothing and changes nothing.
                if let Some(at) = self
                    .subscriptions
                    .iter()
                    .position(|(known, _)| *known == id)
                {
                    let (_, subscription) = self.subscriptions.swap_remove(at);
                    client
                        .unsubscribe(now, subscription)
                        .map_err(|error| error.to_string())?;
                }
                None
            }
            _ => return Err("has self write what no client writes".to_owned()),
        };
        let mut given = None;
        for body in self.side.written() {
            match Frame::decode(&body, Phase::Established) {
                Ok(Frame::Subscribe(written)) => given = Some(written.id),
                Ok(Frame::Publish(written)) => given = Some(written.id),
                _ => {}
            }
        }
        match (wanted, given) {
            (None, _) => Ok(None),
            // Ids may leave gaps, and this client leaves none.
            (Some(wanted), Some(given)) if given <= wanted => Ok(None),
            // A filter that is subscribed already is not asked for again.
            (Some(_), None) if again => Ok(None),
            (Some(wanted), given) => Err(format!(
                "gives out the id {given:?} where {wanted} may stand"
            )),
        }
    }
}
