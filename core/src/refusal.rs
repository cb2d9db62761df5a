//! What a caller is told: a refused call, a misused handle, a bad setting.
//!
//! Decides: nothing. Leaves to others: peers' faults, which are actions and counters and never reach a caller as an error. Believes:
//! no clock. Bounded by: small `Copy` reasons; a refused call gives its argument back and has changed nothing.

use core::fmt;

use crate::GroupId;
use crate::code::UnopenedReason;
use crate::topic::TopicFault;
use crate::wire::PayloadError;

/// A call that was refused: why, and the argument back.
#[derive(Debug)]
pub struct Refused<T> {
    /// What to do about it.
    pub reason: Refusal,
    /// The argument, as it was.
    pub request: T,
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T: fmt::Debug> core::error::Error for Refused<T> {}

/// Why a call was refused. Nothing was changed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The filter breaks WIRE.md section 7: correct it.
    BadFilter(TopicFault),
    /// The prefix is no topic of at least two segments, or does not cover what is published or subscribed to, or is of another realm: correct it.
    BadGroup,
    /// The name of an organisation is one segment of a topic (WIRE.md section 7): correct it.
    BadOrg,
    /// The payload is not what the wire can carry: change it.
    BadPayload(PayloadError),
    /// The topic breaks WIRE.md section 7: correct it.
    BadTopic(TopicFault),
    /// The machine was closed: make a new one.
    Closed,
    /// It would be the first under an epoch that is not kept yet (`ClientConfig::keep_epochs`): keep a greater one, say so with
    /// `Client::epochs_kept`, and try again.
    EpochNotKept {
        /// The epoch it would be published under.
        epoch: u64,
    },
    /// The group's keys are not there, and nothing is sent or taken in the clear instead: see the reason. They are asked for again by themselves.
    Group {
        /// Which group.
        group: GroupId,
        /// Why its keys were not given out.
        reason: UnopenedReason,
    },
    /// It would be in the clear, under the prefix of a group this node has joined: publish under that group, or leave it.
    GroupHeld {
        /// Which group.
        group: GroupId,
    },
    /// The group's keys were asked for: try again after `Action::Keys`.
    GroupPending {
        /// Which group.
        group: GroupId,
    },
    /// The list of publishers is empty, so nothing could ever be delivered: name some, or choose `Open`.
    NoSources,
    /// No link to a station is up: wait for one.
    NoStation,
    /// That publisher was ended or cancelled: open another.
    PublisherEnded,
    /// The signer failed (a secure element that is gone): retry when it works.
    Signer,
    /// Topics that begin with `_` belong to the system: choose another.
    SystemTopic,
    /// The publication is longer than the largest frame a link takes (bytes allowed): publish less at once.
    TooLarge {
        /// The longest publication the links take now, in bytes.
        limit: u32,
    },
    /// As many groups were joined as `ClientLimits` allows: leave one, or raise the limit.
    TooManyGroups,
    /// As many publishers are open as `ClientLimits` allows: end one, or raise the limit.
    TooManyPublishers,
    /// As many subscriptions as `Limits` allows: end one, or raise the limit.
    TooManySubscriptions,
    /// Over one hour: choose a shorter life.
    TtlTooLong,
    /// The wall clock was never set, so nothing can be dated: set it.
    UnsetClock,
    /// Fewer links than wanted have room in their publish window: try again after the next `Settle`.
    WouldBlock,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFilter(fault) => write!(f, "bad filter: {fault}"),
            Self::BadGroup => f.write_str("bad group: its prefix does not cover this"),
            Self::BadPayload(fault) => write!(f, "bad payload: {fault}"),
            Self::BadTopic(fault) => write!(f, "bad topic: {fault}"),
            Self::Closed => f.write_str("closed: make a new one"),
            Self::EpochNotKept { epoch } => {
                write!(f, "epoch {epoch} is not kept: write it down first")
            }
            Self::Group { group, reason } => {
                write!(f, "no key of group {group}: {reason}")
            }
            Self::GroupHeld { group } => {
                write!(
                    f,
                    "in the clear under the prefix of group {group}: publish under it"
                )
            }
            Self::GroupPending { group } => {
                write!(
                    f,
                    "the keys of group {group} were asked for: try again when they are there"
                )
            }
            Self::BadOrg => {
                f.write_str("the name of an organisation must be one segment of a topic")
            }
            Self::NoSources => f.write_str("no sources: name publishers, or choose open"),
            Self::NoStation => f.write_str("no station: no link is up; wait for one"),
            Self::PublisherEnded => f.write_str("the publisher was ended: open another"),
            Self::Signer => f.write_str("the signer failed: try again when it works"),
            Self::SystemTopic => {
                f.write_str("a topic that begins with _ belongs to the system: choose another")
            }
            Self::TooLarge { limit } => {
                write!(f, "too large: at most {limit} bytes; publish less at once")
            }
            Self::TooManyGroups => f.write_str("too many groups: leave one, or raise the limit"),
            Self::TooManyPublishers => {
                f.write_str("too many open publishers: end one, or raise the limit")
            }
            Self::TooManySubscriptions => {
                f.write_str("too many subscriptions: end one, or raise the limit")
            }
            Self::TtlTooLong => f.write_str("ttl too long: at most one hour"),
            Self::UnsetClock => f.write_str("the wall clock was never set: set it"),
            Self::WouldBlock => {
                f.write_str("the publish windows are full: try again after the next answer")
            }
        }
    }
}

impl core::error::Error for Refusal {}

/// A bug in the caller. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// That handle is of something that has ended, or of another machine.
    DeadHandle,
    /// A fact that is not the last one its stream handed out, a stream that has to say first that it lagged, what is late and what was dropped,
    /// or one that is full with more waiting behind it.
    NotCommittable,
    /// A subscription that was made without `committing` or `resume_from`.
    NotCommitting,
    /// A link over a local transport, which the configuration does not allow (`allow_local`).
    LocalNotAllowed,
    /// That link event is not for this machine, or names a station that was not dialled.
    NotDialled,
    /// As many links as `Limits` allows: close this connection.
    TooManyLinks,
    /// An answer to another kind of question than this one. It still waits for its answer.
    WrongAnswer,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeadHandle => "that handle has ended",
            Self::NotCommittable => {
                "not the last fact that was handed out, or the stream has to say first what is missing"
            }
            Self::NotCommitting => "that subscription was made without committing",
            Self::LocalNotAllowed => "local links are not allowed by the configuration",
            Self::NotDialled => "that station was not dialled",
            Self::TooManyLinks => "too many links",
            Self::WrongAnswer => "an answer to another kind of question",
        })
    }
}

impl core::error::Error for Misuse {}

/// A setting that contradicts another or itself, found at construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting.
    pub setting: &'static str,
    /// What it must be, naming the other setting when there is one.
    pub must: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: must be {}", self.setting, self.must)
    }
}

impl core::error::Error for ConfigError {}
