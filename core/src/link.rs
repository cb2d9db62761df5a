//! One link: the handshake, liveness and the whole-frame rule.
//!
//! Decides: whether the other side is who it says (WIRE.md section 8) and whether it still answers. Leaves to others: what frames mean
//! once the link is up, sockets. Believes: the monotonic clock for its deadlines; the wall is only told. Bounded by: 30 s, 4096 bytes per
//! handshake frame, one probe at a time, about a kilobyte of state; nothing here allocates.
//!
//! - *Getters*: [`is_up`](Link::is_up), [`peer`](Link::peer), [`frame_cap`](Link::frame_cap), [`phase`](Link::phase),
//!   [`error`](Link::error), [`answered`](Link::answered), [`probes`](Link::probes), [`poll_timeout`](Link::poll_timeout).
//! - *Inputs*: [`handle_frame`](Link::handle_frame) until the link is up, [`handle_pong`](Link::handle_pong) after it,
//!   [`handle_partial`](Link::handle_partial), [`handle_paused`](Link::handle_paused), [`handle_queued`](Link::handle_queued),
//!   [`handle_written`](Link::handle_written), [`handle_suspect`](Link::handle_suspect), [`handle_timeout`](Link::handle_timeout).
//! - *Commands*: [`admit`](Link::admit) and [`refuse`](Link::refuse) on the answering side, [`fail`](Link::fail).
//! - *Outputs*: [`poll_transmit`](Link::poll_transmit).
//!
//! Any error is the link's end; it repeats it. What [`poll_transmit`](Link::poll_transmit) still holds then (a refusal) is worth sending.
//!
//! Every input may leave a probe in [`poll_transmit`](Link::poll_transmit). An owner counts the frames it writes itself with
//! [`handle_queued`](Link::handle_queued), in their order with those of the link.

mod exporter;
mod live;
mod peer;
mod probe;
mod proof;
mod watch;
mod writes;

pub use exporter::{EXPORTER_LABEL, exporter_context};
pub use peer::{Binding, LinkSettings, Peer, Step};
use probe::Probe;
pub use probe::{Answered, PROBE_EVERY, PROBE_EVERY_MAX, PROBE_EVERY_MIN, Probes};
use proof::{BodyHash, Side, Transcript, hash_body, hash_frame};
use watch::FrameWatch;
use writes::Writes;

use crate::code::HandshakeRefusal;
use crate::crypto::{PublicKey, Signer};
use crate::wire::cbor::Sink;
use crate::wire::{
    Challenge, Connect, Frame, HANDSHAKE_CAP, Hello, MAX_MAX_FRAME, MIN_MAX_FRAME, NUMBER_LIMIT,
    Opener, PREFIX, Phase, Role, VERSION,
};
use crate::{Duration, Instant, LinkError, NodeId, Now, WallMs, soonest};

/// How long a handshake may take on each side.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// One link, from its first moment.
#[derive(Debug)]
pub struct Link {
    settings: LinkSettings,
    id: NodeId,
    binding: [u8; 32],
    /// Whose key the transport proved.
    proved: Option<NodeId>,
    nonce: [u8; 32],
    state: State,
    deadline: Option<Instant>,
    watch: FrameWatch,
    writes: Writes,
    probe: Probe,
    /// The time it was last told.
    clock: Instant,
    /// At most two frames of a handshake go out of one side.
    outgoing: [Option<Outgoing>; 2],
}

#[derive(Debug)]
enum State {
    AwaitOpener,
    AwaitConnect {
        opener: BodyHash,
        challenge: BodyHash,
    },
    AwaitDecision {
        peer: Peer,
        transcript: Transcript,
        connect: BodyHash,
    },
    AwaitChallenge {
        expected: Option<NodeId>,
        opener: BodyHash,
    },
    AwaitHello {
        peer: Peer,
        transcript: Transcript,
        connect: BodyHash,
    },
    Up(Peer),
    Failed(LinkError),
}

#[derive(Clone, Copy, Debug)]
enum Outgoing {
    Opener,
    Challenge { wall: WallMs },
    Connect { proof: [u8; 64] },
    Hello { proof: [u8; 64] },
    Refusal(HandshakeRefusal),
}

const OPENER: Frame<'static> = Frame::Opener(Opener {
    first: VERSION,
    last: VERSION,
});

impl Link {
    /// A link this side dialled. `expected` is the station it means to reach, if it knows; `nonce` is 32 fresh random bytes.
    ///
    /// # Errors
    /// [`LinkError::LocalNotAllowed`].
    pub fn dial(
        now: Instant,
        settings: LinkSettings,
        expected: Option<NodeId>,
        binding: Binding,
        nonce: [u8; 32],
    ) -> Result<Self, LinkError> {
        let state = State::AwaitChallenge {
            expected,
            opener: hash_frame(&OPENER),
        };
        let mut link = Self::new(now, settings, binding, nonce, state)?;
        link.send(Outgoing::Opener);
        Ok(link)
    }

    /// A link that was dialled from outside; this side is a station. `nonce` is 32 fresh random bytes.
    ///
    /// # Errors
    /// [`LinkError::LocalNotAllowed`].
    pub fn accept(
        now: Instant,
        settings: LinkSettings,
        binding: Binding,
        nonce: [u8; 32],
    ) -> Result<Self, LinkError> {
        Self::new(now, settings, binding, nonce, State::AwaitOpener)
    }

    fn new(
        now: Instant,
        mut settings: LinkSettings,
        binding: Binding,
        nonce: [u8; 32],
        state: State,
    ) -> Result<Self, LinkError> {
        let (binding, proved) = match binding {
            Binding::Exporter(value) => (value, None),
            Binding::Proved { exporter, peer } => (exporter, Some(peer)),
            Binding::Local if settings.allow_local => ([0; 32], None),
            Binding::Local => return Err(LinkError::LocalNotAllowed),
        };
        settings.max_frame = settings.max_frame.clamp(MIN_MAX_FRAME, MAX_MAX_FRAME);
        settings.capabilities %= NUMBER_LIMIT;
        Ok(Self {
            id: NodeId::of_key(settings.profile.name(), &settings.key),
            binding,
            proved,
            nonce,
            state,
            deadline: Some(now.saturating_add(HANDSHAKE_TIMEOUT)),
            watch: FrameWatch::default(),
            writes: Writes::default(),
            probe: Probe::new(settings.probe_every),
            clock: now,
            outgoing: [None; 2],
            settings,
        })
    }

    /// Takes one frame of the handshake. Once [`is_up`](Self::is_up), frames are the owner's: see [`Frame::decode`].
    ///
    /// # Errors
    /// What ends the link; every later call repeats it.
    pub fn handle_frame(
        &mut self,
        now: Now,
        body: &[u8],
        signer: &dyn Signer,
    ) -> Result<Step, LinkError> {
        self.handle_timeout(now.mono)?;
        if body.len() > self.frame_cap() as usize {
            return Err(self.fail(LinkError::FrameTooLarge));
        }
        self.step(now, body, signer)
            .map_err(|error| self.fail(error))
    }

    fn step(&mut self, now: Now, body: &[u8], signer: &dyn Signer) -> Result<Step, LinkError> {
        match (&self.state, Frame::decode(body, self.phase())?) {
            (State::AwaitOpener, Frame::Opener(opener)) => self.on_opener(now.wall, body, opener),
            (State::AwaitConnect { opener, challenge }, Frame::Connect(connect)) => {
                let (opener, challenge) = (*opener, *challenge);
                self.on_connect(opener, challenge, body, &connect)
            }
            (State::AwaitChallenge { expected, opener }, Frame::Challenge(challenge)) => {
                let (expected, opener) = (*expected, *opener);
                self.on_challenge(expected, opener, body, &challenge, signer)
            }
            (State::AwaitHello { .. }, Frame::Hello(Hello::Accepted(proof))) => {
                self.on_hello(proof)
            }
            (_, Frame::Hello(Hello::Refused(refusal))) => Err(LinkError::RefusedByStation(refusal)),
            _ => Err(LinkError::UnexpectedFrame),
        }
    }

    fn on_opener(&mut self, wall: WallMs, body: &[u8], opener: Opener) -> Result<Step, LinkError> {
        if !(opener.first..=opener.last).contains(&VERSION) {
            return Err(LinkError::UnsupportedVersion);
        }
        let wall = wall.min(WallMs::new(NUMBER_LIMIT - 1));
        self.state = State::AwaitConnect {
            opener: hash_body(body),
            challenge: self.challenge(wall, |frame| hash_frame(&frame)),
        };
        self.send(Outgoing::Challenge { wall });
        Ok(Step::Continue)
    }

    fn on_challenge(
        &mut self,
        expected: Option<NodeId>,
        opener: BodyHash,
        body: &[u8],
        frame: &Challenge<'_>,
        signer: &dyn Signer,
    ) -> Result<Step, LinkError> {
        let key = self.decode_key(frame.profile, frame.key)?;
        if expected.is_some_and(|expected| expected != key.node_id()) {
            return Err(LinkError::WrongStation);
        }
        let peer = Peer {
            id: key.node_id(),
            key,
            role: Role::Station,
            capabilities: frame.capabilities,
            max_frame: frame.max_frame,
            mesh: Some(*frame.mesh),
            wall: Some(frame.wall),
        };
        self.refuse_own_or_other(&peer)?;
        let transcript = Transcript {
            binding: self.binding,
            opener,
            challenge: hash_body(body),
            role: self.settings.role,
            dialler: self.side(),
            answerer: side_of(&peer, frame.nonce),
        };
        let proof = transcript
            .sign_connect(signer)
            .map_err(|_| LinkError::SignerFailed)?;
        self.state = State::AwaitHello {
            peer,
            transcript,
            connect: hash_frame(&self.connect(&proof)),
        };
        self.send(Outgoing::Connect { proof });
        Ok(Step::Continue)
    }

    fn on_connect(
        &mut self,
        opener: BodyHash,
        challenge: BodyHash,
        body: &[u8],
        frame: &Connect<'_>,
    ) -> Result<Step, LinkError> {
        let key = self.decode_key(frame.profile, frame.key)?;
        let peer = Peer {
            id: key.node_id(),
            key,
            role: frame.role,
            capabilities: frame.capabilities,
            max_frame: frame.max_frame,
            mesh: None,
            wall: None,
        };
        self.refuse_own_or_other(&peer)?;
        let transcript = Transcript {
            binding: self.binding,
            opener,
            challenge,
            role: frame.role,
            dialler: side_of(&peer, frame.nonce),
            answerer: self.side(),
        };
        if !transcript.verify_connect(&peer.key, frame.proof) {
            return Err(LinkError::ProofInvalid);
        }
        self.state = State::AwaitDecision {
            peer: peer.clone(),
            transcript,
            connect: hash_body(body),
        };
        Ok(Step::Verified(peer))
    }

    fn on_hello(&mut self, proof: &[u8; 64]) -> Result<Step, LinkError> {
        let State::AwaitHello {
            peer,
            transcript,
            connect,
        } = &self.state
        else {
            return Err(LinkError::UnexpectedFrame);
        };
        if !transcript.verify_hello(connect, &peer.key, proof) {
            return Err(LinkError::ProofInvalid);
        }
        let peer = peer.clone();
        self.rise(peer.clone());
        Ok(Step::Established(peer))
    }

    fn rise(&mut self, peer: Peer) {
        self.state = State::Up(peer);
        self.deadline = None;
        self.probe.start(self.clock);
    }

    fn decode_key(&self, profile: &str, key: &[u8; 32]) -> Result<PublicKey, LinkError> {
        if profile != self.settings.profile.name() {
            return Err(LinkError::ProfileMismatch);
        }
        PublicKey::decode(self.settings.profile, key).map_err(|_| LinkError::BadKeyForm)
    }

    /// Nobody speaks to itself, and who holds a key in the transport holds the same one here.
    fn refuse_own_or_other(&self, peer: &Peer) -> Result<(), LinkError> {
        if peer.id == self.id {
            return Err(LinkError::OwnLink);
        }
        if self.proved.is_some_and(|proved| proved != peer.id) {
            return Err(LinkError::KeyMismatch);
        }
        Ok(())
    }

    /// Lets the verified dialler in; the link is up.
    ///
    /// # Errors
    /// The link's error, [`LinkError::SignerFailed`], or [`LinkError::UnexpectedFrame`] when nobody waits to be admitted, which changes
    /// nothing.
    pub fn admit(&mut self, signer: &dyn Signer) -> Result<(), LinkError> {
        let State::AwaitDecision {
            peer,
            transcript,
            connect,
        } = &self.state
        else {
            return Err(self.error().unwrap_or(LinkError::UnexpectedFrame));
        };
        let Ok(proof) = transcript.sign_hello(connect, signer) else {
            return Err(self.fail(LinkError::SignerFailed));
        };
        self.rise(peer.clone());
        self.send(Outgoing::Hello { proof });
        Ok(())
    }

    /// Turns the dialler away: the refusal is the last thing to send. On a dialling or established link it only ends the link.
    pub fn refuse(&mut self, refusal: HandshakeRefusal) -> LinkError {
        self.fail(LinkError::Refused(refusal))
    }

    /// Ends the link for a reason found here or by the owner, and gives the reason it repeats from now on: the first one. An answerer
    /// still in its handshake tells the dialler the coarse code.
    pub fn fail(&mut self, error: LinkError) -> LinkError {
        let silent = matches!(error, LinkError::HandshakeTimeout | LinkError::FrameTimeout);
        match self.state {
            State::Failed(first) => return first,
            State::AwaitOpener | State::AwaitConnect { .. } | State::AwaitDecision { .. }
                if !silent =>
            {
                self.send(Outgoing::Refusal(error.refusal()));
            }
            State::AwaitChallenge { .. } | State::AwaitHello { .. } => self.outgoing = [None; 2],
            _ => {}
        }
        self.state = State::Failed(error);
        self.deadline = None;
        self.watch = FrameWatch::default();
        self.probe.stop();
        error
    }

    /// Says whether the bytes of a frame that is not yet whole wait in the read buffer: `false` whenever a whole frame was taken off,
    /// then `true` if something is left.
    pub fn handle_partial(&mut self, now: Instant, present: bool) {
        if self.error().is_none() {
            self.watch.handle_partial(now, present);
        }
    }

    /// Says whether this side has stopped reading; meanwhile the clocks of the whole-frame rule and of the probe stand still.
    pub fn handle_paused(&mut self, now: Instant, paused: bool) {
        self.watch.handle_paused(now, paused);
        self.probe.pause(now, paused);
        self.writes.look(now);
    }

    /// Ends the link when a deadline has come.
    ///
    /// # Errors
    /// What ended the link, now or before.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), LinkError> {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        self.clock = now;
        self.writes.look(now);
        let over = due(self.probe.deadline());
        if let Some(error) = self.error() {
            return Err(error);
        } else if due(self.deadline) {
            return Err(self.fail(LinkError::HandshakeTimeout));
        } else if due(self.watch.deadline()) {
            return Err(self.fail(LinkError::FrameTimeout));
        } else if due(self.stuck_deadline()) {
            return Err(self.fail(LinkError::WriteStalled));
        } else if over {
            if !self.probe.expire(now) {
                return Err(self.fail(LinkError::LivenessLost));
            }
            self.writes.wait(now);
        }
        Ok(())
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let handshake = soonest(self.deadline, self.watch.deadline());
        soonest(handshake, self.liveness_deadline())
    }

    /// Appends the next frame of the handshake or a probe, length and body, and says whether there was one.
    pub fn poll_transmit(&mut self, out: &mut impl Sink) -> bool {
        let mut put = |frame: Frame<'_>| {
            frame.encode_framed_to(out);
            PREFIX + frame.encoded_len()
        };
        let [first, second] = &mut self.outgoing;
        if let Some(outgoing) = first.take() {
            *first = second.take();
            let bytes = self.outgoing_frame(outgoing, put);
            self.writes.queue(bytes);
            return true;
        }
        let Some(number) = self.probe.due() else {
            return false;
        };
        let bytes = put(Frame::Ping(&self.probe_nonce(number)));
        self.writes.queue(bytes);
        self.probe.sent(self.writes.queued());
        true
    }

    fn send(&mut self, outgoing: Outgoing) {
        let [first, second] = &mut self.outgoing;
        let free = if first.is_none() { first } else { second };
        *free = Some(outgoing);
    }

    fn outgoing_frame<R>(&self, outgoing: Outgoing, with: impl FnOnce(Frame<'_>) -> R) -> R {
        match outgoing {
            Outgoing::Opener => with(OPENER),
            Outgoing::Challenge { wall } => self.challenge(wall, with),
            Outgoing::Connect { proof } => with(self.connect(&proof)),
            Outgoing::Hello { proof } => with(Frame::Hello(Hello::Accepted(&proof))),
            Outgoing::Refusal(refusal) => with(Frame::Hello(Hello::Refused(refusal))),
        }
    }

    fn challenge<R>(&self, wall: WallMs, with: impl FnOnce(Frame<'_>) -> R) -> R {
        with(Frame::Challenge(Challenge {
            key: &self.settings.key,
            mesh: self.settings.mesh.as_ref().unwrap_or(self.id.as_bytes()),
            nonce: &self.nonce,
            profile: self.settings.profile.name(),
            wall,
            max_frame: self.settings.max_frame,
            capabilities: self.settings.capabilities,
        }))
    }

    fn connect<'a>(&'a self, proof: &'a [u8; 64]) -> Frame<'a> {
        Frame::Connect(Connect {
            key: &self.settings.key,
            role: self.settings.role,
            nonce: &self.nonce,
            proof,
            profile: self.settings.profile.name(),
            max_frame: self.settings.max_frame,
            capabilities: self.settings.capabilities,
        })
    }

    const fn side(&self) -> Side {
        Side {
            id: self.id,
            capabilities: self.settings.capabilities,
            max_frame: self.settings.max_frame,
            nonce: self.nonce,
        }
    }

    /// The longest body allowed now: 4096 until the link is up, this side's `max_frame` then.
    pub const fn frame_cap(&self) -> u32 {
        match self.state {
            State::Up(_) => self.settings.max_frame,
            _ => HANDSHAKE_CAP,
        }
    }

    /// What may come next, as [`Frame::decode`] wants to know it.
    pub const fn phase(&self) -> Phase {
        match self.state {
            State::AwaitOpener => Phase::Opener,
            State::AwaitConnect { .. } | State::AwaitDecision { .. } => Phase::Connect,
            State::AwaitChallenge { .. } => Phase::Challenge,
            State::AwaitHello { .. } => Phase::Hello,
            State::Up(_) | State::Failed(_) => Phase::Established,
        }
    }

    /// Whether the handshake is over and the link has not ended.
    pub const fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// Who is at the other end, once it is up.
    pub const fn peer(&self) -> Option<&Peer> {
        match &self.state {
            State::Up(peer) => Some(peer),
            _ => None,
        }
    }

    /// What ended the link.
    pub const fn error(&self) -> Option<LinkError> {
        match self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// This side's id.
    pub const fn id(&self) -> NodeId {
        self.id
    }
}

const fn side_of(peer: &Peer, nonce: &[u8; 32]) -> Side {
    Side {
        id: peer.id,
        capabilities: peer.capabilities,
        max_frame: peer.max_frame,
        nonce: *nonce,
    }
}

#[cfg(test)]
mod tests;
