//! Two ends of a link and an attacker who holds every wire between them.
//!
//! An [`End`] owns its link as both machines do: frames off a buffer under the link's own cap, a dialler that proved itself is admitted.
//! The [`Scene`] carries bodies by hand and writes down what passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidings::crypto::{Profile, SecretKey, SignError, Signer};
use tidings::link::{Binding, Link, LinkSettings, Step};
use tidings::wire::{Frame, HANDSHAKE_CAP, Hello, Phase, Role, Split, next_frame};
use tidings::{LinkError, NodeId, Now};

use super::common::at;

/// A channel between two parties; another number is another channel.
pub(crate) fn channel(number: u8) -> Binding {
    Binding::Exporter([number; 32])
}

/// A key whose signatures are counted.
#[derive(Clone)]
pub(crate) struct Counted {
    seed: u8,
    signed: Arc<AtomicUsize>,
}

impl Counted {
    pub(crate) fn new(seed: u8) -> Self {
        Self {
            seed,
            signed: Arc::default(),
        }
    }

    fn key(&self) -> SecretKey {
        SecretKey::from_seed([self.seed; 32])
    }

    pub(crate) fn id(&self) -> NodeId {
        self.key().node_id()
    }

    pub(crate) fn signed(&self) -> usize {
        self.signed.load(Ordering::Relaxed)
    }
}

impl Signer for Counted {
    fn profile(&self) -> Profile {
        Profile::ED25519
    }

    fn public_key(&self) -> [u8; 32] {
        self.key().public_key()
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<[u8; 64], SignError> {
        self.signed.fetch_add(1, Ordering::Relaxed);
        self.key().sign(parts)
    }
}

/// Who takes part, and the seed of its key.
const NAMES: [(&str, u8); 4] = [("node", 1), ("station", 2), ("attacker", 3), ("other", 4)];

pub(crate) fn key_of(name: &str) -> Counted {
    let found = NAMES.iter().find(|(known, _)| *known == name);
    Counted::new(found.expect("it has a name").1)
}

fn owner(key: &[u8; 32]) -> &'static str {
    let found = NAMES
        .iter()
        .find(|(name, _)| key_of(name).public_key() == *key);
    found.map_or("nobody", |(name, _)| *name)
}

/// A body in a few words.
fn words(body: &[u8]) -> String {
    let phases = [
        Phase::Opener,
        Phase::Challenge,
        Phase::Connect,
        Phase::Hello,
    ];
    let frame = phases
        .iter()
        .find_map(|phase| Frame::decode(body, *phase).ok());
    match frame {
        Some(Frame::Opener(opener)) => format!("opener {}..{}", opener.first, opener.last),
        Some(Frame::Challenge(challenge)) => {
            format!(
                "challenge of {}{}",
                owner(challenge.key),
                bits(challenge.capabilities)
            )
        }
        Some(Frame::Connect(connect)) => {
            let role = match connect.role {
                Role::Station => " as a station",
                _ => "",
            };
            format!(
                "connect of {}{role}{}",
                owner(connect.key),
                bits(connect.capabilities)
            )
        }
        Some(Frame::Hello(Hello::Accepted(_))) => "hello with a proof".into(),
        Some(Frame::Hello(Hello::Refused(refusal))) => format!("hello {refusal}"),
        _ => format!("{} bytes that are no frame of a handshake", body.len()),
    }
}

fn bits(capabilities: u64) -> String {
    match capabilities {
        0 => String::new(),
        some => format!(", capabilities {some}"),
    }
}

/// What one side did.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    verified: usize,
    sent: usize,
    received: usize,
}

/// One end of a link.
pub(crate) struct End {
    pub(crate) name: &'static str,
    pub(crate) link: Link,
    key: Counted,
    /// Bytes that are no whole frame yet.
    buffer: Vec<u8>,
    answers: bool,
    cost: Cost,
}

impl End {
    fn new(name: &'static str, key: Counted, link: Link) -> Self {
        Self {
            name,
            answers: link.phase() == Phase::Opener,
            link,
            key,
            buffer: Vec::new(),
            cost: Cost::default(),
        }
    }

    /// The node, which dials the station and no other.
    pub(crate) fn node(on: Binding) -> Self {
        Self::dialler("node", on, Some(key_of("station").id()), 0)
    }

    pub(crate) fn dialler(
        name: &'static str,
        on: Binding,
        named: Option<NodeId>,
        capabilities: u64,
    ) -> Self {
        let key = key_of(name);
        let mut settings = LinkSettings::new(key.profile(), key.public_key(), Role::Node);
        settings.capabilities = capabilities;
        let link = Link::dial(at(0).mono, settings, named, on, [0x5a; 32]);
        Self::new(name, key, link.expect("a bound link"))
    }

    pub(crate) fn station(on: Binding) -> Self {
        Self::answerer("station", on, 0xa5, 0)
    }

    /// `nonce` fills the nonce of its challenge.
    pub(crate) fn answerer(name: &'static str, on: Binding, nonce: u8, capabilities: u64) -> Self {
        let key = key_of(name);
        let mut settings = LinkSettings::new(key.profile(), key.public_key(), Role::Station);
        settings.capabilities = capabilities;
        let link = Link::accept(at(0).mono, settings, on, [nonce; 32]);
        Self::new(name, key, link.expect("a bound link"))
    }

    /// Whether it is the attacker's: what it does inside is nobody's business, but its signatures are counted.
    fn is_own(&self) -> bool {
        self.name == "attacker"
    }

    /// Takes bytes off the wire, as the machines do.
    pub(crate) fn read(&mut self, now: Now, bytes: &[u8]) -> Result<(), LinkError> {
        self.buffer.extend_from_slice(bytes);
        self.cost.received += bytes.len();
        if let Some(error) = self.link.error() {
            return Err(error);
        }
        loop {
            let split = next_frame(&self.buffer, self.link.frame_cap())
                .map_err(|fault| self.link.fail(fault.into()))?;
            let Split::Frame { body, taken } = split else {
                self.link.handle_partial(now.mono, !self.buffer.is_empty());
                return Ok(());
            };
            let body = body.to_vec();
            self.buffer.drain(..taken);
            self.link.handle_partial(now.mono, false);
            self.handle(now, &body)?;
        }
    }

    fn handle(&mut self, now: Now, body: &[u8]) -> Result<(), LinkError> {
        let proves = matches!(
            Frame::decode(body, self.link.phase()),
            Ok(Frame::Connect(_) | Frame::Hello(Hello::Accepted(_)))
        );
        let step = self.link.handle_frame(now, body, &self.key);
        // Every check before the proof has another reason.
        let verified = matches!(step, Ok(_) | Err(LinkError::ProofInvalid));
        self.cost.verified += usize::from(proves && verified);
        match step? {
            Step::Verified(_) => self.link.admit(&self.key),
            _ => Ok(()),
        }
    }

    /// The bodies of what it wants to say.
    fn write(&mut self, now: Now) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        loop {
            let mut out = Vec::new();
            if !self.link.poll_transmit(&mut out) {
                return bodies;
            }
            self.link.handle_written(now, out.len());
            self.cost.sent += out.len();
            match next_frame(&out, HANDSHAKE_CAP) {
                Ok(Split::Frame { body, .. }) => bodies.push(body.to_vec()),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// What passes, and what it costs the attacker.
pub(crate) struct Scene {
    lines: Vec<String>,
    pub(crate) attacker: Counted,
    sent: usize,
    received: usize,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            lines: Vec::new(),
            attacker: key_of("attacker"),
            sent: 0,
            received: 0,
        }
    }

    /// The attacker reads all an end wants to say.
    pub(crate) fn hear(&mut self, end: &mut End) -> Vec<Vec<u8>> {
        let bodies = end.write(at(0));
        if end.is_own() {
            return bodies;
        }
        for body in &bodies {
            self.lines
                .push(format!("{} > attacker: {}", end.name, words(body)));
            self.received += body.len() + 4;
        }
        bodies
    }

    /// The one body an end wants to say.
    pub(crate) fn hear_one(&mut self, end: &mut End) -> Vec<u8> {
        let mut bodies = self.hear(end);
        assert_eq!(bodies.len(), 1, "{}", self.lines.join("\n"));
        bodies.remove(0)
    }

    /// The attacker hands a body to an end.
    pub(crate) fn say(&mut self, end: &mut End, body: &[u8]) {
        let said = words(body);
        let frame = [&(body.len() as u32).to_be_bytes(), body].concat();
        self.say_bytes(end, &frame, &said);
    }

    /// The attacker hands bytes to an end that are not a frame as it should be.
    pub(crate) fn say_bytes(&mut self, end: &mut End, bytes: &[u8], said: &str) {
        if end.is_own() {
            return end.read(at(0), bytes).expect("it plays by the rules");
        }
        self.lines.push(format!("attacker > {}: {said}", end.name));
        self.sent += bytes.len();
        let was_up = end.link.is_up();
        match end.read(at(0), bytes) {
            Err(error) => self
                .lines
                .push(format!("{} ends it: {}", end.name, error.text())),
            Ok(()) => {
                if let Some(peer) = end.link.peer().filter(|_| !was_up) {
                    let peer = owner(peer.key.as_bytes());
                    self.lines
                        .push(format!("{} has a link with {peer}", end.name));
                }
            }
        }
    }

    /// The attacker carries everything between two ends, each body changed on its way.
    pub(crate) fn carry(
        &mut self,
        left: &mut End,
        right: &mut End,
        mut change: impl FnMut(&mut Vec<u8>),
    ) {
        loop {
            let mut moved = false;
            for mut body in self.hear(left) {
                moved = true;
                change(&mut body);
                self.say(right, &body);
            }
            for mut body in self.hear(right) {
                moved = true;
                change(&mut body);
                self.say(left, &body);
            }
            if !moved {
                return;
            }
        }
    }

    /// A handshake as it should be, of which nothing is written down but the four bodies.
    pub(crate) fn record(dialler: &mut End, answerer: &mut End) -> [Vec<u8>; 4] {
        let mut scene = Self::new();
        let mut bodies = Vec::new();
        scene.carry(dialler, answerer, |body| bodies.push(body.clone()));
        assert!(dialler.link.is_up() && answerer.link.is_up());
        bodies.try_into().expect("four frames")
    }

    /// Nothing was signed or verified for an attacker.
    pub(crate) fn spends_nothing(&self, ends: &[&End]) {
        for end in ends {
            let spent = (end.key.signed(), end.cost.verified);
            assert_eq!(spent, (0, 0), "{}", end.name);
        }
    }

    /// Compares all that passed, and what it cost, with the transcript as it must be.
    pub(crate) fn shows(mut self, ends: &[&End], transcript: &str) {
        let (own, ends): (Vec<&End>, Vec<&End>) = ends.iter().partition(|end| end.is_own());
        for end in &ends {
            self.lines.push(format!(
                "cost of {}: signed {}, verified {}, {} out, {} in",
                end.name,
                end.key.signed(),
                end.cost.verified,
                end.cost.sent,
                end.cost.received,
            ));
        }
        self.lines.push(format!(
            "cost of attacker: signed {}, {} out, {} in",
            self.attacker.signed() + own.iter().map(|end| end.key.signed()).sum::<usize>(),
            self.sent,
            self.received,
        ));
        let expected: Vec<&str> = transcript.trim().lines().map(str::trim).collect();
        let was = self.lines.join("\n");
        assert_eq!(self.lines, expected, "the transcript was\n{was}\n");
        // What holds of every attack a station was asked to take part in.
        let answerers = ends.iter().filter(|end| end.answers);
        for end in answerers.filter(|end| end.link.error().is_some()) {
            assert_eq!(end.key.signed(), 0, "it signed for somebody it refused");
            assert!(end.cost.verified <= 1, "one proof is looked at");
            let verified = end.cost.verified == 1;
            assert!(
                !verified || end.cost.sent < end.cost.received,
                "it was made to say more"
            );
        }
    }
}
