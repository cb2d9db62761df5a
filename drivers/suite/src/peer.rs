//! One end of a link made by hand, for what no driver would do.
//!
//! Decides: nothing. Leaves to others: what it says and when. Believes: a clock that stands still. Bounded by: the kit's patience for
//! each read.

use std::net::TcpStream;

use tidings::crypto::{Profile, SecretKey, Signer};
use tidings::link::{Binding, Link, LinkSettings, Step};
use tidings::wire::{Frame, Phase, Position, ResumeOutcome, Role, Subscribed};
use tidings::{LinkError, Now, RunId, WallMs};

use crate::Driver;
use crate::kit::{self, PATIENCE};
use crate::wire::Wire;

/// One end of a link, on a socket of its own. It does what it is told and nothing more.
pub(crate) struct Peer {
    pub(crate) wire: Wire,
    link: Link,
    key: SecretKey,
}

impl Peer {
    pub(crate) fn new<D: Driver>(stream: TcpStream, role: Role, key: u8) -> Self {
        Self::of_two_keys::<D>(stream, role, key, key)
    }

    /// One that shows a key of its own to the channel, where there is one.
    pub(crate) fn of_two_keys<D: Driver>(
        stream: TcpStream,
        role: Role,
        channel: u8,
        key: u8,
    ) -> Self {
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        let (wire, binding) = match D::SECURE {
            true => Wire::secure(stream, role, channel),
            false => (Wire::plain(stream), Binding::Local),
        };
        let key = kit::key(key);
        let settings = LinkSettings {
            allow_local: true,
            ..LinkSettings::new(Profile::ED25519, key.public_key(), role)
        };
        let start = Self::now().mono;
        let link = match role {
            Role::Station => Link::accept(start, settings, binding, [7; 32]),
            _ => Link::dial(start, settings, None, binding, [8; 32]),
        };
        Self {
            wire,
            link: link.expect("local links are allowed"),
            key,
        }
    }

    pub(crate) fn now() -> Now {
        Now::new(tidings::Instant::ORIGIN, WallMs::new(1_790_000_000_000))
    }

    /// The next body, or `None` when the other side closed.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        self.wire.frame(1 << 20)
    }

    pub(crate) fn say(&mut self) {
        let mut out = Vec::new();
        while self.link.poll_transmit(&mut out) {}
        self.wire.write(&out);
    }

    pub(crate) fn shake_hands(&mut self) {
        self.try_hands().expect("an honest handshake");
    }

    /// What the handshake comes to; `HandshakeTimeout` where the other side ends it without a word.
    pub(crate) fn try_hands(&mut self) -> Result<(), LinkError> {
        self.say();
        while !self.link.is_up() {
            let Some(body) = self.read() else {
                return Err(LinkError::HandshakeTimeout);
            };
            let step = self.link.handle_frame(Self::now(), &body, &self.key);
            if let Step::Verified(_) = step? {
                self.link.admit(&self.key)?;
            }
            self.say();
        }
        Ok(())
    }

    /// Accepts the one subscription that comes.
    pub(crate) fn accept_subscription(&mut self) {
        loop {
            let body = self.read().expect("a subscription");
            let Ok(Frame::Subscribe(subscribe)) = Frame::decode(&body, Phase::Established) else {
                continue;
            };
            let position = Position {
                run: RunId::new([1; 8]),
                offset: 0,
            };
            let subscribed = Frame::Subscribed(Subscribed {
                id: subscribe.id,
                resume: ResumeOutcome::None,
                position,
            });
            let mut out = Vec::new();
            subscribed.encode_framed(&mut out);
            return self.wire.write(&out);
        }
    }
}
