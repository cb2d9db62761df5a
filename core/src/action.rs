//! What a machine asks of its driver, apart from data.
//!
//! Decides: nothing. Leaves to others: doing it. Believes: deadlines are monotonic. Bounded by: at most one outstanding `Ready` per
//! link and per stream, one `Settle` per ticket, one `Dial` per station, one `Report` per name and 10 s, `Limits::pending_verifications` questions
//! about signatures, `Limits::sources.max_publishers` about publishers, and `Limits::group_pulls` and one about the keys of each group.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::client::Token;
use crate::code::{
    CloseReason, ObjectFault, OutcomeCode, PublishRefusal, SealPolicy, UnopenedReason,
};
use crate::crypto::{Profile, PublicKey};
use crate::diagnostic::Diagnostic;
use crate::inbound::sources::SourceAnswer;
use crate::keyring::{AnswerReader, KeyPeriod, KeysFault, MOST_PERIODS, Which};
use crate::time::Instant;
use crate::wire::{Object, object::PUBLICATION_LABEL};
use crate::{AskId, GroupId, LinkId, NodeId, RealmId, SubscriptionId, Ticket};

/// Which of a configuration's stations: its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationRef(pub u16);

/// Something for the driver to do. Handed out by `poll_action` in the order it was decided.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Find out what the core cannot know and call `answer` with it before the deadline.
    Ask {
        /// Which question.
        ask: AskId,
        /// What is asked.
        question: Question,
        /// When it is given up.
        deadline: Instant,
    },
    /// Write what `poll_transmit` still has for this link (a moment at most), close the transport, then report `LinkEvent::Down`.
    Close {
        /// Which link.
        link: LinkId,
        /// Why.
        reason: CloseReason,
    },
    /// Connect to that station, then report `LinkEvent::Up` or call `handle_dial_failed`.
    Dial {
        /// Which of the configured stations.
        station: StationRef,
    },
    /// How joining a group went, and each time that changes: its keys are there, under this policy at least, or why they are not. What failed is
    /// asked again by itself.
    Keys {
        /// Which group.
        group: GroupId,
        /// Whether its keys are there.
        ready: Result<SealPolicy, UnopenedReason>,
    },
    /// A publication's bytes were taken by this many transports so far.
    Progress {
        /// Which publication.
        ticket: Ticket,
        /// How many links took it.
        links: u8,
    },
    /// There is something to send or to read. Raised once, and again only after it was drained.
    Ready(Ready),
    /// Something worth a line in a log, by name. The first of a name at once, then a count per 10 s.
    Report(Diagnostic),
    /// What became of a publication. Said once.
    Settle {
        /// Which publication.
        ticket: Ticket,
        /// What became of it.
        outcome: Outcome,
    },
}

/// What has something to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Ready {
    /// Call `poll_transmit` for it until it answers `None`, or that nothing follows.
    Link(LinkId),
    /// Call `poll_item` for it, as far as its reader has room.
    Subscription(SubscriptionId),
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Cancelled by this side. It may have been routed.
    Cancelled,
    /// Every asked station verified it and nobody there subscribes to it.
    NoSubscriber,
    /// A station refused it and none took it.
    Refused(PublishRefusal),
    /// A station admitted it, with this many interests there.
    Routed {
        /// Interests it reached at the station that reached most.
        subscribers: u64,
    },
    /// No answer in time. It may have been routed.
    Unknown,
}

impl Outcome {
    /// Its code in table 10.5.
    pub const fn code(self) -> OutcomeCode {
        match self {
            Self::Cancelled => OutcomeCode::Cancelled,
            Self::NoSubscriber => OutcomeCode::NoSubscriber,
            Self::Refused(_) => OutcomeCode::Refused,
            Self::Routed { .. } => OutcomeCode::Routed,
            Self::Unknown => OutcomeCode::Unknown,
        }
    }
}

/// What the core cannot know or would rather have worked out elsewhere.
#[derive(Debug)]
#[non_exhaustive]
pub enum Question {
    /// What are the keys of this group?
    KeyPeriods(Box<KeyQuestion>),
    /// Does this source admit this publisher, whose signature on a fact was verified? Answered with [`Answer::Source`].
    Source(Box<SourceQuestion>),
    /// Does this signature verify? `VerifyJob::run` answers it on any core, `VerifyJob::run_all` several.
    Verify(VerifyJob),
}

/// Whether a source admits a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceQuestion {
    /// The realm the fact was published in.
    pub realm: RealmId,
    /// Which source.
    pub source: Source,
    /// Who published it.
    pub publisher: NodeId,
}

/// A source whose publishers are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The members of the realm themselves, never their delegates.
    Members,
    /// The nodes that the organisation of this name delegates.
    Org(String),
}

/// Which keys of a group are asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyQuestion {
    /// The group's realm.
    pub realm: RealmId,
    /// The group's prefix; its second segment names the organisation that gives the keys out.
    pub prefix: String,
    /// Which key period.
    pub which: Which,
    /// What this node was given to be let in with.
    pub token: Option<Token>,
}

/// The keys of a group that were given out: those asked for, oldest first, and what the group asks of facts under its prefix. Wiped when
/// dropped; make the list as long as it will be, since one that grows leaves copies behind.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "it is made by whoever answers")]
pub struct KeyPeriods {
    /// What is asked of facts under the prefix.
    pub policy: SealPolicy,
    /// The current period, with the next if it is there; or the one asked for by its id.
    pub periods: Vec<KeyPeriod>,
}

impl KeyPeriods {
    /// From the bytes of an answer about a group with this prefix (WIRE.md section 6.2).
    ///
    /// # Errors
    /// [`KeysFault`]; that it suits the question is judged when it is answered.
    pub fn read(bytes: &[u8], prefix: &str) -> Result<Self, KeysFault> {
        let mut answer = AnswerReader::new(bytes, prefix)?;
        let mut periods = Vec::with_capacity(MOST_PERIODS);
        while let Some(period) = answer.next_period() {
            periods.push(period?);
        }
        Ok(Self {
            policy: answer.policy(),
            periods,
        })
    }
}

/// A signature to be checked elsewhere: another core, or hardware.
#[derive(Clone, Debug)]
pub struct VerifyJob {
    /// The publication's object, whole, shape already checked.
    object: Arc<[u8]>,
    profile: Profile,
}

impl VerifyJob {
    pub(crate) fn new(object: Arc<[u8]>, profile: Profile) -> Self {
        Self { object, profile }
    }

    /// The signed object's bytes (WIRE.md section 5).
    pub fn object(&self) -> &[u8] {
        &self.object
    }

    /// Checks the key's form and the signature, strictly. Costs one key decoding and one verification.
    pub fn run(&self) -> bool {
        self.run_with(&mut Vec::new()).is_ok()
    }

    /// The answers to several, in their order. Costs one verification each and one decoding for each key among them; meant for some
    /// dozens, as keys are looked up one after the other.
    pub fn run_all<'a>(jobs: impl IntoIterator<Item = &'a Self>) -> Vec<bool> {
        let mut keys = Vec::new();
        let jobs = jobs.into_iter();
        jobs.map(|job| job.run_with(&mut keys).is_ok()).collect()
    }

    /// With the keys decoded so far.
    fn run_with(&self, keys: &mut Vec<PublicKey>) -> Result<(), ObjectFault> {
        let object = Object::parse(&self.object)?;
        let is_it = |key: &PublicKey| key.as_bytes() == object.key && key.profile() == self.profile;
        let known = match keys.iter().position(is_it) {
            Some(known) => known,
            None => {
                keys.push(object.decode_key(self.profile)?);
                keys.len() - 1
            }
        };
        object.verify_with(&keys[known], PUBLICATION_LABEL)
    }
}

/// The answer to a question.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The keys that were asked for, or why they are not given out.
    KeyPeriods(Result<KeyPeriods, UnopenedReason>),
    /// Whether the source admits the publisher, or that it could not be found out.
    Source(SourceAnswer),
    /// The signature verifies, or not.
    Verified(bool),
}

/// Whether a link may be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a paused link that is read on loses its place"]
#[non_exhaustive]
pub enum Intake {
    /// Read on.
    Open,
    /// A budget is spent: stop reading this link; what is in the buffer stays there. Call again with the same buffer after the deadline
    /// `poll_timeout` reports now.
    Later,
    /// Stop reading this link; what is in the buffer stays there. Draining the stream or the link named by an earlier `Ready` cures it,
    /// then call again with the same buffer.
    Paused,
}

/// Whether a timeout was worked off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "`More` means: call again at once"]
#[non_exhaustive]
pub enum Turn {
    /// All of it.
    Done,
    /// The work budget of one call is spent: call again.
    More,
}

/// A body up to this long is copied next to its head: cheaper than one more owner of it, and than a slice of its own in a write.
pub(crate) const COPIED_BODY: usize = 1024;

/// Something to write to one link.
#[derive(Debug)]
pub struct Transmit {
    /// Bytes appended to `out`; `body` comes after them.
    pub head: usize,
    /// Shared by every link of a fan-out; `None` where there is none, or where it is short and was appended with the head.
    pub body: Option<Bytes>,
    /// More may follow: call again. Else this was all, and a `Ready` tells when there is more.
    pub more: bool,
}

impl Transmit {
    /// The bytes that come after those appended.
    pub fn body(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }

    /// All its bytes.
    pub fn len(&self) -> usize {
        self.head + self.body().len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What happened to a transport.
#[derive(Debug)]
#[non_exhaustive]
pub enum LinkEvent {
    /// The transport ended.
    Down {
        /// Which link.
        link: LinkId,
        /// `Io` when the transport ended by itself; the reason of `Close` when this side closed it.
        reason: CloseReason,
    },
    /// A transport is up; the handshake begins.
    Up {
        /// The station of the `Dial`; `None` for an accepted connection.
        dialled: Option<StationRef>,
        /// The transport's channel binding.
        binding: crate::link::Binding,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealmId;
    use crate::crypto::SecretKey;
    use crate::time::WallMs;
    use crate::wire::{Body, Draft};

    fn object(seed: u8, seq: u64) -> Vec<u8> {
        let key = SecretKey::from_seed([seed; 32]);
        let mut object = Vec::new();
        let draft = Draft {
            realm: RealmId::of_name("io.example"),
            topic: "jobs",
            publisher: key.node_id(),
            epoch: Some(1),
            seq,
            published_at: WallMs::new(1_000),
            ttl_ms: None,
            one: false,
            body: Body::Payload(&[0x01]),
        };
        draft.sign(&key, &mut object).expect("it signs");
        object
    }

    #[test]
    fn several_answers_are_in_order_what_each_is_alone() {
        let good = [object(1, 1), object(2, 1), object(1, 2), object(2, 2)];
        let mut forged = object(1, 3);
        let last = forged.len() - 1;
        forged[last] ^= 1;
        // The key of another publisher, decoded by then, does not fit this signature.
        let mut stolen = object(2, 3);
        let (of_one, of_two) = (7..39, good[0].get(7..39).map(<[u8]>::to_vec));
        stolen[of_one].copy_from_slice(&of_two.expect("it is longer"));
        let jobs: Vec<VerifyJob> = [&good[0], &forged, &good[1], &stolen, &good[2], &good[3]]
            .map(|object| VerifyJob::new(Arc::from(&object[..]), Profile::ED25519))
            .into();
        let answers = VerifyJob::run_all(&jobs);
        assert_eq!(answers, [true, false, true, false, true, true]);
        let alone: Vec<bool> = jobs.iter().map(VerifyJob::run).collect();
        assert_eq!(answers, alone);
        assert!(VerifyJob::run_all(&[]).is_empty());
    }
}
