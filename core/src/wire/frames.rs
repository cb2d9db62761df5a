//! The frames (WIRE.md sections 8 and 9).
//!
//! Decides: fields, their order on the wire, and the order in which a body is judged. Leaves to others: when a frame may come beyond its
//! phase, and what it means. Believes: no clock. Bounded by: the body; every view borrows from it.

mod decode;
mod encode;
mod interest;

use core::fmt;

use crate::code::{
    CloseReason, HandshakeRefusal, OutcomeCode, PublishRefusal, SkipReason, SubscribeRefusal,
};
use crate::{NodeId, RealmId, RunId, WallMs};

#[cfg(feature = "alloc")]
pub(crate) use decode::plain_event;
#[cfg(feature = "alloc")]
pub(super) use encode::{
    event_entries, event_id, event_rest, position as write_position, publish_entries,
};
pub use interest::{InterestEntries, InterestEntry};

/// The version of the wire.
pub const VERSION: u8 = 1;

/// The longest `goodbye.detail` in bytes.
pub const MAX_DETAIL: usize = 256;

macro_rules! wire_text {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Its text on the wire.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The one with this text.
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

wire_text! {
    /// What the dialling side of a link is.
    Role {
        /// A node.
        Node = "node",
        /// Another station.
        Station = "station",
    }
}

wire_text! {
    /// Whom a publication is for.
    Route {
        /// Every subscriber.
        All = "all",
        /// One of them.
        One = "one",
    }
}

wire_text! {
    /// How an event came to the station that wrote it.
    Via {
        /// From a client of its own.
        Direct = "direct",
        /// From another station.
        Mesh = "mesh",
    }
}

/// A place in what one station admitted in one realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The station's run of the realm.
    pub run: RunId,
    /// What it admitted there, counted; below 2^53.
    pub offset: u64,
}

/// What a resume brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeOutcome {
    /// The position cannot be read on from; what is held begins at `oldest`.
    Expired {
        /// The oldest offset that could be read on from.
        oldest: u64,
    },
    /// Nothing was asked to resume.
    None,
    /// `count` publications since the position follow.
    Resumed {
        /// How many.
        count: u64,
    },
}

/// The dialler's first frame: the versions it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opener {
    /// The lowest, 1 at least.
    pub first: u8,
    /// The highest, `first` at least.
    pub last: u8,
}

/// The answerer's introduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// Its key.
    pub key: &'a [u8; 32],
    /// The mesh it belongs to, its own node id when it is alone.
    pub mesh: &'a [u8; 32],
    /// Its nonce.
    pub nonce: &'a [u8; 32],
    /// Its profile's name.
    pub profile: &'a str,
    /// Its clock.
    pub wall: WallMs,
    /// The longest frame it reads, in bytes.
    pub max_frame: u32,
    /// Its capability bits; below 2^53.
    pub capabilities: u64,
}

/// The dialler's introduction and proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Its key.
    pub key: &'a [u8; 32],
    /// What it is.
    pub role: Role,
    /// Its nonce.
    pub nonce: &'a [u8; 32],
    /// Its signature over the handshake.
    pub proof: &'a [u8; 64],
    /// Its profile's name.
    pub profile: &'a str,
    /// The longest frame it reads, in bytes.
    pub max_frame: u32,
    /// Its capability bits; below 2^53.
    pub capabilities: u64,
}

/// The answerer's last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hello<'a> {
    /// The link is up: its signature over the handshake.
    Accepted(&'a [u8; 64]),
    /// It is not.
    Refused(HandshakeRefusal),
}

/// A subscription is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// From 1, rising; shared with [`Publish`].
    pub id: u64,
    /// In which realm.
    pub realm: RealmId,
    /// A filter; any text as far as the frame goes.
    pub filter: &'a str,
    /// Where to read on.
    pub resume: Option<Position>,
}

/// A subscription is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// Of the subscribe.
    pub id: u64,
    /// What became of its `resume`.
    pub resume: ResumeOutcome,
    /// Where live reading begins.
    pub position: Position,
}

/// A subscription is refused or withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Of the subscribe.
    pub id: u64,
    /// The bound that was met.
    pub limit: Option<u64>,
    /// Why.
    pub reason: SubscribeRefusal,
}

/// A publication is handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// From 1, rising; shared with [`Subscribe`].
    pub id: u64,
    /// Whom it is for.
    pub route: Route,
    /// The object's bytes: a map, not yet judged.
    pub publication: &'a [u8],
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Of the publish.
    pub id: u64,
    /// The bound that was met; only beside a reason.
    pub limit: Option<u64>,
    /// Exactly when the outcome is `refused`.
    pub reason: Option<PublishRefusal>,
    /// `routed`, `no_subscriber` or `refused`.
    pub outcome: OutcomeCode,
    /// The interests reached; 0 unless `routed`.
    pub subscribers: u64,
}

/// A publication is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Of the subscribe.
    pub id: u64,
    /// How it came.
    pub via: Via,
    /// Its offset in the realm here; 0 for anycast.
    pub offset: u64,
    /// The object's bytes: a map, not yet judged.
    pub publication: &'a [u8],
}

/// Everything up to `offset` was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Of the subscribe.
    pub id: u64,
    /// The realm's offset.
    pub offset: u64,
    /// How long ago it was admitted, in milliseconds; 0 when level.
    pub behind_ms: u64,
}

/// Publications were given up at this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Of the subscribe.
    pub id: u64,
    /// Age of the youngest, in milliseconds.
    pub to: u64,
    /// Age of the oldest, in milliseconds; `to` at least.
    pub from: u64,
    /// Exactly with `peer_interrupted`: which station.
    pub peer: Option<NodeId>,
    /// How many; 0 when unknown.
    pub count: u64,
    /// Why.
    pub reason: SkipReason,
}

/// The sender ends the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goodbye<'a> {
    /// More about it, at most 256 bytes; read by people.
    pub detail: &'a str,
    /// Why; never a local-only code.
    pub reason: CloseReason,
}

/// What a station's clients want, as a difference.
#[derive(Clone, Copy, Debug)]
pub struct Interest<'a> {
    /// What is wanted now.
    pub add: InterestEntries<'a>,
    /// What no longer is.
    pub remove: InterestEntries<'a>,
    /// The version this makes.
    pub to_version: u64,
    /// The version it starts from; 0 replaces everything.
    pub from_version: u64,
}

/// Where a link is, for what may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// A dialler waits for the challenge, or for a refusal in its place.
    Challenge,
    /// An answerer waits for the connect.
    Connect,
    /// The handshake is over.
    Established,
    /// A dialler waits for the hello.
    Hello,
    /// An answerer waits for the opener.
    Opener,
}

/// One frame, borrowed from its body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is documented by its type")]
pub enum Frame<'a> {
    Challenge(Challenge<'a>),
    Connect(Connect<'a>),
    Event(Event<'a>),
    Goodbye(Goodbye<'a>),
    Hello(Hello<'a>),
    Interest(Interest<'a>),
    /// Asks for an `interest` that replaces everything.
    InterestWanted,
    Opener(Opener),
    /// Asks for a `pong` with this nonce.
    Ping(&'a [u8; 16]),
    /// The answer to a ping.
    Pong(&'a [u8; 16]),
    Progress(Progress),
    Publish(Publish<'a>),
    Published(Published),
    Refused(Refused),
    Skipped(Skipped),
    Subscribe(Subscribe<'a>),
    Subscribed(Subscribed),
    /// A type this version does not know, to be read past and counted. Never encoded.
    Unknown(&'a str),
    /// Ends the subscription with this id.
    Unsubscribe(u64),
}

#[cfg(test)]
mod tests;
