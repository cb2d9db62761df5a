//! What an application asks of a client: a subscription, a publication.
//!
//! Decides: nothing; `subscribe` and `publish` judge. Leaves to others: everything. Believes: no
//! clock. Bounded by: the wire's sizes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use zeroize::Zeroizing;

use crate::inbound::lane::Mode;
use crate::inbound::stream::OnFull;
use crate::refusal::Refusal;
use crate::wire::{self, MAX_TTL_MS, PayloadError, Positions, PositionsFault};
use crate::{GroupId, NodeId, PublisherId, RealmId};

/// Who may speak in a subscription. Required; there is no default. Neither core nor drivers write logs: the line that a subscription deserves
/// in one, with whom it hears, is `format!("hears {filter} from {sources}")`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sources {
    /// Members of the realm, looked up ([`crate::Question::Source`]); never a delegate of one.
    Members,
    /// Exactly these publishers. Nothing is looked up, and it never ends.
    Nodes(Vec<NodeId>),
    /// Anyone whose signature verifies: an explicit opt-out.
    Open,
    /// The nodes that the organisation of this name delegates, looked up.
    Org(String),
}

/// What whoever gives keys out admits a node with. Wiped when the last of its copies is dropped, and never shown.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<Vec<u8>>>);

impl Token {
    /// From its bytes, which nothing here reads.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Zeroizing::new(bytes)))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl core::fmt::Debug for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Token")
    }
}

/// A sealed group to be joined (WIRE.md section 6.2).
#[derive(Clone, Debug)]
pub struct Group {
    pub(crate) realm: RealmId,
    pub(crate) prefix: String,
    pub(crate) token: Option<Token>,
}

impl Group {
    /// The group of `realm` whose topics begin with `prefix`: two segments at least, the second of which names the organisation.
    pub fn new(realm: RealmId, prefix: impl Into<String>) -> Self {
        Self {
            realm,
            prefix: prefix.into(),
            token: None,
        }
    }

    /// What goes with its questions. Default: nothing.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }
}

/// A subscription to be made.
#[derive(Clone, Debug)]
pub struct Subscribe {
    pub(crate) realm: RealmId,
    pub(crate) filter: String,
    pub(crate) sources: Sources,
    pub(crate) mode: Mode,
    pub(crate) on_full: OnFull,
    pub(crate) queue_capacity: Option<usize>,
    pub(crate) sparse: Vec<NodeId>,
    /// What an earlier run committed; empty for one that only commits.
    pub(crate) resume: Option<Box<Positions>>,
    pub(crate) group: Option<GroupId>,
}

impl Subscribe {
    /// To every topic of `realm` that `filter` matches (a topic, or with `*` for one segment and a
    /// last `**` for the rest), from `sources`.
    pub fn new(realm: RealmId, filter: impl Into<String>, sources: Sources) -> Self {
        Self {
            realm,
            filter: filter.into(),
            sources,
            mode: Mode::default(),
            on_full: OnFull::default(),
            queue_capacity: None,
            sparse: Vec::new(),
            resume: None,
            group: None,
        }
    }

    /// Sealed facts are opened with the keys of this group, whose prefix covers the filter; in the clear are delivered those its policy lets
    /// pass. Default: none, and a sealed fact is told as `Unopened { no_group }`.
    #[must_use]
    pub fn group(mut self, group: GroupId) -> Self {
        self.group = Some(group);
        self
    }

    /// How facts are ordered. Default: `Ordered`.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// What happens when the reader is slow. Default: `Lag`.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Items the stream holds before that happens. Default: `ClientLimits::queue_capacity`. 0
    /// counts as 1.
    #[must_use]
    pub fn queue_capacity(mut self, items: usize) -> Self {
        self.queue_capacity = Some(items.max(1));
        self
    }

    /// Keeps what [`crate::Client::commit`] hands out. Default: not.
    #[must_use]
    pub fn committing(mut self) -> Self {
        self.resume.get_or_insert_default();
        self
    }

    /// Goes on where an earlier run committed, and commits. What that run was given is not given again, and its stations replay what
    /// it missed: the first acceptance is told as after an interruption. Sixteen stations' positions are used.
    ///
    /// # Errors
    /// When these are no bytes of [`crate::Client::commit`].
    pub fn resume_from(mut self, bytes: &[u8]) -> Result<Self, PositionsFault> {
        self.resume = Some(Box::new(Positions::decode(bytes)?));
        Ok(self)
    }

    /// Publishers without epochs whose numbers rise but are not contiguous: reordered within the
    /// timeout, never `Skipped`.
    #[must_use]
    pub fn sparse(mut self, publishers: Vec<NodeId>) -> Self {
        self.sparse = publishers;
        self
    }
}

/// A publication to be made.
#[derive(Clone, Debug)]
pub struct Publish {
    pub(crate) realm: RealmId,
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    pub(crate) ttl: Option<Duration>,
    pub(crate) one: bool,
    pub(crate) publisher: Option<PublisherId>,
    pub(crate) group: Option<GroupId>,
}

impl Publish {
    /// A value of the caller's type, written as deterministic CBOR.
    ///
    /// # Errors
    /// When the wire cannot carry the value.
    pub fn new<T: serde::Serialize + ?Sized>(
        realm: RealmId,
        topic: impl Into<String>,
        value: &T,
    ) -> Result<Self, PayloadError> {
        Ok(Self::raw(realm, topic, wire::to_payload(value)?))
    }

    /// A payload that is one CBOR value under the rule of WIRE.md section 2 already; `publish`
    /// checks it.
    pub fn raw(realm: RealmId, topic: impl Into<String>, cbor: impl Into<Bytes>) -> Self {
        Self {
            realm,
            topic: topic.into(),
            payload: cbor.into(),
            ttl: None,
            one: false,
            publisher: None,
            group: None,
        }
    }

    /// Sealed for this group, whose prefix covers the topic; never in the clear instead. Default: in the clear, which is refused under the
    /// prefix of a group this node has joined.
    #[must_use]
    pub fn group(mut self, group: GroupId) -> Self {
        self.group = Some(group);
        self
    }

    /// How long it may travel, at most one hour. Default: 10 minutes. Every verifier adds 5 minutes
    /// for clocks that differ.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// To one subscriber only (anycast): it goes to one link and from there to one reader, out of order and without gaps. It is never tried
    /// again by itself: `Outcome::Unknown` says that it may or may not have arrived.
    #[must_use]
    pub fn one(mut self) -> Self {
        self.one = true;
        self
    }

    /// By a publisher that `Client::open_publisher` opened.
    #[must_use]
    pub fn by(mut self, publisher: PublisherId) -> Self {
        self.publisher = Some(publisher);
        self
    }

    /// Its ttl in whole milliseconds.
    pub(crate) fn ttl_ms(&self) -> Result<Option<u32>, Refusal> {
        let Some(ttl) = self.ttl else { return Ok(None) };
        match u32::try_from(ttl.as_millis()) {
            Ok(ms) if ms <= MAX_TTL_MS => Ok(Some(ms)),
            _ => Err(Refusal::TtlTooLong),
        }
    }
}
