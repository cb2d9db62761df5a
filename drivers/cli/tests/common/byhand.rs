//! A publisher by hand, and the keys of a group worked out beside the command: for what the command itself does not do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidings::code::SealPolicy;
use tidings::crypto::{Profile, Seal, SecretKey, Signer, Subkey};
use tidings::keyring::{KeyPeriod, Which, write_answer};
use tidings::link::{Binding, Link, LinkSettings, Step};
use tidings::wire::{self, Body, Draft, Frame, Phase, Role, Route};
use tidings::{NodeId, Now, RealmId, WallMs};
use tidings_tokio::SharedKeys;

use super::{Station, folder, run, stderr};

const LONG: Duration = Duration::from_secs(60);
const PREFIX: &str = "demo/acme";

#[expect(clippy::disallowed_types, reason = "a key is over by the host's date")]
pub(crate) fn wall() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_millis() as u64
}

fn demo() -> RealmId {
    RealmId::of_name("demo")
}

/// A file of keys, and what its holders make of it.
pub(crate) struct Keys {
    pub(crate) file: String,
    /// The secret as it is written there.
    pub(crate) digits: Vec<u8>,
    pub(crate) secret: [u8; 32],
    rotation_ms: u64,
}

impl Keys {
    pub(crate) fn make(name: &str, rotation_ms: u64) -> Self {
        let file = folder("memory").join(name).to_str().unwrap().to_owned();
        let rotation = format!("{rotation_ms}ms");
        let made = run(&["group", "keygen", PREFIX, &file, "--rotation", &rotation]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
        let text = std::fs::read_to_string(&file).unwrap();
        let digits = text.split("secret = \"").nth(1).unwrap()[..64].to_owned();
        let mut secret = [0; 32];
        for (n, byte) in secret.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap();
        }
        Self {
            file,
            digits: digits.into_bytes(),
            secret,
            rotation_ms,
        }
    }

    /// The period of that time, and its key.
    pub(crate) fn at(&self, wall: u64) -> (KeyPeriod, [u8; 32]) {
        let policy = SealPolicy::Required;
        let shared = SharedKeys::new(demo(), PREFIX, policy, self.rotation_ms, &self.secret);
        let given = shared.unwrap().periods(Which::Current, WallMs::new(wall));
        let mut periods = given.unwrap().periods;
        periods.truncate(1);
        let mut answer = Vec::new();
        write_answer(policy, PREFIX, &periods, &mut answer);
        let head = b"\x63key\x58\x20";
        let at = answer.windows(head.len()).position(|some| some == head);
        let from = at.unwrap() + head.len();
        let mut key = [0; 32];
        key.copy_from_slice(&answer[from..from + 32]);
        (periods.remove(0), key)
    }
}

/// A publisher by hand, which may seal under a period that no honest one seals under any more.
pub(crate) struct Publisher {
    stream: TcpStream,
    link: Link,
    key: SecretKey,
    epoch: u64,
    seq: u64,
}

impl Publisher {
    pub(crate) fn connect(station: &Station) -> Self {
        let address = station.address.strip_prefix("tcp://").unwrap();
        let address = address.rsplit_once('@').map_or(address, |(_, at)| at);
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let key = SecretKey::from_seed([5; 32]);
        let settings = LinkSettings {
            allow_local: true,
            ..LinkSettings::new(Profile::ED25519, key.public_key(), Role::Node)
        };
        let link = Link::dial(now().mono, settings, None, Binding::Local, [8; 32]).unwrap();
        let mut publisher = Self {
            stream,
            link,
            key,
            epoch: wall() * 1000,
            seq: 0,
        };
        publisher.say();
        while !publisher.link.is_up() {
            let body = publisher.read();
            let step = publisher.link.handle_frame(now(), &body, &publisher.key);
            if let Step::Verified(_) = step.unwrap() {
                publisher.link.admit(&publisher.key).unwrap();
            }
            publisher.say();
        }
        publisher
    }

    pub(crate) fn id(&self) -> NodeId {
        self.link.id()
    }

    fn say(&mut self) {
        let mut out = Vec::new();
        while self.link.poll_transmit(&mut out) {}
        self.stream.write_all(&out).unwrap();
    }

    /// The body of the next frame.
    fn read(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).unwrap();
        body
    }

    /// Publishes a text on `demo/acme/a` now, sealed under this period or in the clear.
    pub(crate) fn publish(&mut self, period: Option<&KeyPeriod>, text: &str) {
        self.seq += 1;
        let mut payload = Vec::new();
        wire::cbor::Writer::new(&mut payload).text(text);
        let draft = Draft {
            realm: demo(),
            topic: "demo/acme/a",
            publisher: self.id(),
            epoch: Some(self.epoch),
            seq: self.seq,
            published_at: WallMs::new(wall()),
            ttl_ms: None,
            one: false,
            body: Body::Payload(&payload),
        };
        let mut publication = Vec::new();
        match period {
            None => draft.sign(&self.key, &mut publication).unwrap(),
            Some(period) => {
                let seal = Seal {
                    key_id: *period.key().id(),
                    subkey: &Subkey::derive(period.key(), &self.id()),
                    entropy: [self.seq as u8; 32],
                };
                draft
                    .sign_sealed(&self.key, &seal, &mut publication)
                    .unwrap();
            }
        }
        let mut out = Vec::new();
        let frame = Frame::Publish(wire::Publish {
            id: self.seq,
            route: Route::All,
            publication: &publication,
        });
        frame.encode_framed(&mut out);
        self.stream.write_all(&out).unwrap();
        let body = self.read();
        let answer = Frame::decode(&body, Phase::Established);
        assert!(matches!(answer, Ok(Frame::Published(_))), "{answer:?}");
    }
}

fn now() -> Now {
    Now::new(tidings::Instant::ORIGIN, WallMs::new(wall()))
}
