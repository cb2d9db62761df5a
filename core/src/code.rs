//! Every closed set of the wire and of the streams, in one place (WIRE.md section 10).
//!
//! Decides: number, text, meaning and advice of each code. Leaves to others: when each is said. Believes: no clock. Bounded by: the
//! tables themselves. A test holds them against `vectors/codes.json`, which is made from WIRE.md.

/// One line of a table: what `tidings explain` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Which set it belongs to, as the Rust type is called.
    pub set: &'static str,
    /// Its number, never reused.
    pub number: u16,
    /// Its text, as on the wire and in `--json`.
    pub text: &'static str,
    /// What it means.
    pub means: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

macro_rules! closed_set {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $number:literal, $text:literal, $means:literal, $advice:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = $means] #[doc = ""] #[doc = concat!("Do: ", $advice, ".")] $variant,)+
        }

        impl $name {
            /// Every code of the set, in the order of its table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its number.
            pub const fn number(self) -> u16 {
                match self { $(Self::$variant => $number,)+ }
            }

            /// Its text, as on the wire and in `--json`.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The code with this text.
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }

            /// Number, text, meaning and advice.
            pub const fn explain(self) -> Explained {
                match self { $(Self::$variant => Explained {
                    set: stringify!($name), number: $number, text: $text, means: $means, advice: $advice,
                },)+ }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

closed_set! {
    /// Why a link ended (WIRE.md 10.1).
    // A whole word, as what lies in its place in other actions: they are read just after they were written.
    #[repr(u32)]
    CloseReason {
        Normal = 1, "normal", "the other side closed the link on purpose", "nothing";
        Draining = 2, "draining", "the station is going away soon", "prefer another station; dial again later";
        ProtocolError = 3, "protocol_error", "this side sent something the other side could not accept; `detail` names it", "report it: one of the two implementations is wrong";
        LivenessLost = 4, "liveness_lost", "two probes in a row were not answered", "dial again";
        HandshakeTimeout = 5, "handshake_timeout", "the handshake took longer than 30 s", "check that the address is a tidings station; dial again";
        Replaced = 6, "replaced", "another link between the same two took this one's place", "nothing";
        SlowReader = 7, "slow_reader", "this side read too slowly for too long", "read faster, or subscribe to less";
        Budget = 8, "budget", "this side spent a budget of the other side again and again", "send less";
        Io = 9, "io", "the transport ended without a goodbye; local only", "dial again";
        Refused = 10, "refused", "the handshake was refused; local only, the refusal stands beside it", "see the refusal";
    }
}

closed_set! {
    /// Why a handshake is refused (WIRE.md 10.2).
    HandshakeRefusal {
        UnsupportedVersion = 1, "unsupported_version", "no common version of the wire", "update the older side";
        NotAccepted = 2, "not_accepted", "a check of the handshake failed; the station's log has the fine reason", "check key, profile and transport";
        Full = 3, "full", "the station holds as many links as it may", "try another station, or later";
        Draining = 4, "draining", "the station is going away", "try another station";
    }
}

closed_set! {
    /// Why a station refuses a subscription (WIRE.md 10.3).
    SubscribeRefusal {
        TooManyRealms = 1, "too_many_realms", "the station holds as many realms as it may (`limit`)", "use a station that serves this realm, or pin the realm there";
        TooManySubscriptions = 2, "too_many_subscriptions", "this link or topic holds as many subscriptions as it may (`limit`)", "share subscriptions, or use filters";
        TooManyFilters = 3, "too_many_filters", "this link holds as many filters as it may (`limit`)", "merge filters";
        BadFilter = 4, "bad_filter", "the filter breaks section 7", "correct the filter";
        Purged = 5, "purged", "the station's operator removed this node's subscriptions", "ask the operator";
        NotAllowed = 6, "not_allowed", "this station's policy does not let this node subscribe here", "ask the operator";
        Draining = 7, "draining", "the station is going away", "another station carries it";
    }
}

closed_set! {
    /// Why a station refuses a publication (WIRE.md 10.4).
    PublishRefusal {
        Malformed = 1, "malformed", "the object or its `tbs` breaks section 5 or 6", "report it: the publisher's implementation is wrong";
        BadKeyForm = 2, "bad_key_form", "the key is not canonical or of small order", "make a new key";
        AlgMismatch = 3, "alg_mismatch", "`alg` names another algorithm than the profile's", "use one profile on both sides";
        KeyIdMismatch = 4, "key_id_mismatch", "`publisher` is not the id of the key", "report it: the publisher's implementation is wrong";
        SignatureInvalid = 5, "signature_invalid", "the signature does not verify", "check the key and the path of the bytes";
        NotYetValid = 6, "not_yet_valid", "`published_at` is more than 5 minutes ahead of the station's clock", "set the clock";
        Expired = 7, "expired", "the publication had expired when it arrived", "set the clock; publish with a longer ttl";
        NotThePublisher = 8, "not_the_publisher", "a node may publish only what its own key signed", "publish over the publisher's own link";
        RouteMismatch = 9, "route_mismatch", "`route` and `one` disagree", "report it: the publisher's implementation is wrong";
        WindowFull = 10, "window_full", "more publications are unanswered on this link than allowed (`limit`)", "wait for answers";
        DedupFull = 11, "dedup_full", "the station cannot remember more publications", "publish slower, or with a shorter ttl";
        TooLarge = 12, "too_large", "the publication is longer than this station takes (`limit`)", "publish a smaller payload";
        Draining = 13, "draining", "the station is going away", "another station takes it";
    }
}

closed_set! {
    /// What became of a publication (WIRE.md 10.5).
    OutcomeCode {
        Routed = 1, "routed", "a station admitted it and somebody there subscribes to it", "nothing";
        NoSubscriber = 2, "no_subscriber", "every asked station verified it and nobody there subscribes to it", "nothing, or find out why nobody listens";
        Refused = 3, "refused", "a station refused it, and none took it", "see the reason";
        Unknown = 4, "unknown", "no answer in time; local only. It may have been routed", "publish again only what may arrive twice";
        Cancelled = 5, "cancelled", "this side cancelled it; local only. It may have been routed", "nothing";
    }
}

closed_set! {
    /// What a resume brought (WIRE.md 10.6).
    ResumeCode {
        None = 1, "none", "nothing was asked to resume", "nothing";
        Resumed = 2, "resumed", "`count` publications since the position follow, none is missing", "nothing";
        Expired = 3, "expired", "the position is of another run, from the future, before the recording, or before `oldest`", "treat the window as missed";
    }
}

closed_set! {
    /// Why a station gave publications up (WIRE.md 10.7).
    SkipReason {
        Overrun = 1, "overrun", "the reader was so far behind that the ring overwrote them", "read faster, or subscribe to less";
        Expired = 2, "expired", "they expired before the reader took them", "read faster, or publish with a longer ttl";
        TooLarge = 3, "too_large", "they were longer than the link's `max_frame`", "raise `max_frame` on the reading side";
        Budget = 4, "budget", "the station's memory for rings was spent", "raise the budget, or read faster";
        PeerInterrupted = 5, "peer_interrupted", "another station's link was down (`peer`) and may have brought some", "resync from the source of truth";
    }
}

closed_set! {
    /// The notices of a stream (WIRE.md 10.8).
    NoticeCode {
        Interrupted = 1, "interrupted", "no station carries the subscription since `from`", "expect `resumed` or `gap`";
        Resumed = 2, "resumed", "a station carries it again and replayed all of it (`recovered`)", "nothing";
        Gap = 3, "gap", "publications between `from` and `to` may be missing; table 10.9", "resync from the source of truth";
        Skipped = 4, "skipped", "`first` to `last` of that publisher's numbering did not arrive in time", "nothing, or resync; one that still comes is marked late";
        Restarted = 5, "restarted", "that publisher began a new numbering (`greater`), or an older one was heard", "nothing";
        Resynced = 6, "resynced", "what is known of that publisher's numbering was given up, while it was idle or for other numberings of its", "treat its earlier numbers as unknown";
        TwoCounters = 7, "two_counters", "two processes publish with one key", "give each its own key";
        Conflict = 8, "conflict", "two different publications carry one number; the second is not delivered", "check the publisher: its key is used twice or its epoch was lost";
        Lagged = 9, "lagged", "this reader was too slow; `missed` facts and `notices` notices were given up here", "read faster, raise `queue_capacity`, or use `pause`";
        Dropped = 10, "dropped", "facts were dropped by a bound or a budget; table 10.10", "raise the bound, or find who floods";
        Unopened = 11, "unopened", "a sealed fact could not be opened; table 10.13", "check the group's keys";
        SubscriptionRefused = 12, "subscription_refused", "a station refused the subscription; table 10.3", "see the reason";
        Warning = 13, "warning", "the table `table` is `fill` full", "raise its bound before facts are dropped";
        Ended = 14, "ended", "the last item of this stream; table 10.11", "nothing";
    }
}

closed_set! {
    /// Why there may be a gap (WIRE.md 10.9).
    GapReason {
        Lost = 1, "lost", "no station of some mesh carried the subscription in the window, and none could replay it", "resync";
        Expired = 2, "expired", "the station's ring no longer holds what is missing", "resync";
        StationSkipped = 3, "station_skipped", "a live station gave publications up (table 10.7)", "resync";
        PeerInterrupted = 4, "peer_interrupted", "a station behind the station was cut off", "resync";
    }
}

closed_set! {
    /// Why a fact was dropped (WIRE.md 10.10).
    DropReason {
        BytesFull = 1, "bytes_full", "the memory for waiting facts was spent", "raise `held_bytes`, read faster";
        ConflictFull = 2, "conflict_full", "local only: more conflicts than are remembered", "find the publisher with two counters";
        DedupFull = 3, "dedup_full", "no room to remember another publication", "raise `dedup_entries`";
        LanesFull = 4, "lanes_full", "no lane was free for another publisher and topic", "raise `lanes`";
        LookupsFull = 5, "lookups_full", "the window of source lookups was spent", "raise `lookups_per_window`";
        OutOfDate = 6, "out_of_date", "it verified, but arrived before or after its life", "set the clocks";
        Unanswered = 7, "unanswered", "a question about it (a signature, a record) was not answered in time", "see what should answer";
        UndecidedSource = 8, "undecided_source", "it could not be found out whether its publisher is admitted", "see the record stations";
        VerifyFull = 9, "verify_full", "too many signatures were waiting to be checked", "raise `pending_verifications`";
        HoldFull = 10, "hold_full", "too many facts were waiting for one lookup of a source", "raise `held_per_key`, or see who answers so late";
        HoldExpired = 11, "hold_expired", "its life ended while it waited for a lookup of a source", "see who answers so late; publish with a longer ttl";
        VerdictsFull = 12, "verdicts_full", "no place was left for another publisher's verdict", "raise `max_publishers`";
    }
}

closed_set! {
    /// Why a stream ended (WIRE.md 10.11).
    EndReason {
        Unsubscribed = 1, "unsubscribed", "this side ended the subscription", "nothing";
        Closed = 2, "closed", "the node was closed", "nothing";
        LaggedOut = 3, "lagged_out", "the reader was too slow and asked for `disconnect`", "subscribe again and resync";
    }
}

closed_set! {
    /// Why an object was passed over (WIRE.md 10.12).
    ObjectFault {
        Malformed = 1, "malformed", "the object or its `tbs` breaks section 5 or 6", "report it: the publisher's implementation is wrong";
        BadKeyForm = 2, "bad_key_form", "the key is not canonical or of small order", "make a new key";
        AlgMismatch = 3, "alg_mismatch", "`alg` names another algorithm than the profile's", "use one profile on both sides";
        KeyIdMismatch = 4, "key_id_mismatch", "`publisher` is not the id of the key", "report it: the publisher's implementation is wrong";
        SignatureInvalid = 5, "signature_invalid", "the signature does not verify", "check the key and the path of the bytes";
        NotYetValid = 6, "not_yet_valid", "`published_at` is more than 5 minutes ahead of the receiver's clock", "set the clock";
        Expired = 7, "expired", "the publication had expired when it arrived", "set the clock; publish with a longer ttl";
        Unmatched = 101, "unmatched", "it matches no subscription of this node", "nothing; many of them are the station's fault";
        Duplicate = 102, "duplicate", "this publication was here before", "nothing";
        SourceRefused = 103, "source_refused", "the subscription's sources do not admit its publisher", "nothing";
        Superseded = 104, "superseded", "a newer one was delivered (`latest_only`)", "nothing";
        ClearRefused = 105, "clear_refused", "it is in the clear under a prefix whose group requires seals", "publish it under the group";
    }
}

closed_set! {
    /// Why a sealed fact was not opened (WIRE.md 10.13).
    UnopenedReason {
        NoGroup = 1, "no_group", "this node has joined no group that could open it", "join the group, or subscribe elsewhere";
        UnknownPeriod = 2, "unknown_period", "its key is of a period this node does not hold and could not get", "see whether the distributor still knows it";
        PeriodExpired = 3, "period_expired", "its key's period is over", "publish and receive closer together";
        NotAuthorized = 4, "not_authorized", "the distributor does not give this node the key", "ask the organisation for a grant";
        NotAMember = 5, "not_a_member", "this node is no member of the realm", "ask the realm's operator";
        MembershipUnknown = 6, "membership_unknown", "it could not be found out whether this node is a member", "see the record stations";
        NoDistributor = 7, "no_distributor", "nobody who may give the key out could be reached", "see the organisation's distributor";
        TagInvalid = 8, "tag_invalid", "the ciphertext does not open under its key", "report it: the publisher or somebody on the way is wrong";
    }
}

closed_set! {
    /// What a group asks of facts under its prefix (WIRE.md 10.16). Later ones are stricter.
    SealPolicy {
        Off = 1, "off", "keys are given out, nobody has to seal", "nothing";
        Preferred = 2, "preferred", "members seal; facts in the clear are taken", "nothing";
        Required = 3, "required", "members refuse facts in the clear under the prefix", "publish under the group";
    }
}

closed_set! {
    /// What a node reports of itself (WIRE.md 10.14).
    DiagnosticCode {
        ConnectFailed = 1, "connect_failed", "a station could not be reached; local only", "check its address and the network";
        LinkDown = 2, "link_down", "a link that was up has ended; local only", "see its reason";
        HandshakeFailed = 3, "handshake_failed", "a link ended before its handshake was over; local only", "see its reason";
        LivenessLost = 4, "liveness_lost", "a link was given up because its station did not answer; local only", "see whether the station runs";
        ProtocolError = 5, "protocol_error", "a link ended for a fault of one of the two sides; local only", "report it: one of the two implementations is wrong";
        RegistrationRefused = 6, "registration_refused", "a station refused a subscription or withdrew it; local only", "see its reason";
        DeliveryInterrupted = 7, "delivery_interrupted", "no station carries a subscription; local only", "wait for `delivery_resumed` or `delivery_gap`";
        DeliveryResumed = 8, "delivery_resumed", "a station carries it again and replays what was missed; local only", "nothing";
        DeliveryGap = 9, "delivery_gap", "publications of a window may be missing; local only", "resync";
        FactsDropped = 10, "facts_dropped", "a bound or a budget dropped facts; local only", "see its reason";
        EventUnopened = 11, "event_unopened", "a sealed fact could not be opened; local only", "see its reason";
        ClockJumped = 12, "clock_jumped", "the clocks disagree: this side slept, or the wall was set; local only", "nothing, or see what sets the clock";
        ClearRefused = 13, "clear_refused", "a fact in the clear under a prefix whose group requires seals was refused; local only", "find its publisher, which does not seal";
        KeysFailed = 14, "keys_failed", "the keys of a group were not given out, or not as they must be; local only", "see its reason";
    }
}

closed_set! {
    /// Why a source does not admit a publisher (WIRE.md 10.15).
    SourceRefusal {
        NotFound = 1, "not_found", "no record of this publisher exists", "ask the realm's operator, or the organisation";
        Withdrawn = 2, "withdrawn", "its record was withdrawn", "ask who withdrew it";
        NotAllowed = 3, "not_allowed", "this node's own policy does not admit it", "change the policy";
        NotDelegated = 4, "not_delegated", "the organisation delegates nothing to it", "ask the organisation";
        NotListed = 5, "not_listed", "the subscription names its publishers, and not this one", "name it";
        WrongType = 6, "wrong_type", "the record is of another type", "report it: who wrote the record is wrong";
        UntrustedSigner = 7, "untrusted_signer", "the record is signed by a key this node does not trust with it", "see which key the realm pins";
        WrongRealm = 8, "wrong_realm", "the record is of another realm", "report it: who wrote the record is wrong";
        WrongMember = 9, "wrong_member", "the record is about another node", "report it: who wrote the record is wrong";
        Expired = 10, "expired", "the record is over", "have it renewed";
        WindowReversed = 11, "window_reversed", "the record ends before it begins", "report it: who wrote the record is wrong";
        WindowTooLong = 12, "window_too_long", "the record lasts longer than its kind may", "have a shorter one written";
        NotYetValid = 13, "not_yet_valid", "the record begins later", "wait, or set the clock";
        Malformed = 14, "malformed", "the record cannot be read", "report it: who wrote the record is wrong";
        SignatureInvalid = 15, "signature_invalid", "the record's signature does not verify", "report it: who wrote the record, or somebody on the way, is wrong";
    }
}

/// Every code of every set: what `tidings explain CODE` searches.
pub fn all() -> impl Iterator<Item = Explained> {
    core::iter::empty()
        .chain(CloseReason::ALL.iter().map(|code| code.explain()))
        .chain(HandshakeRefusal::ALL.iter().map(|code| code.explain()))
        .chain(SubscribeRefusal::ALL.iter().map(|code| code.explain()))
        .chain(PublishRefusal::ALL.iter().map(|code| code.explain()))
        .chain(OutcomeCode::ALL.iter().map(|code| code.explain()))
        .chain(ResumeCode::ALL.iter().map(|code| code.explain()))
        .chain(SkipReason::ALL.iter().map(|code| code.explain()))
        .chain(NoticeCode::ALL.iter().map(|code| code.explain()))
        .chain(GapReason::ALL.iter().map(|code| code.explain()))
        .chain(DropReason::ALL.iter().map(|code| code.explain()))
        .chain(EndReason::ALL.iter().map(|code| code.explain()))
        .chain(ObjectFault::ALL.iter().map(|code| code.explain()))
        .chain(UnopenedReason::ALL.iter().map(|code| code.explain()))
        .chain(SealPolicy::ALL.iter().map(|code| code.explain()))
        .chain(DiagnosticCode::ALL.iter().map(|code| code.explain()))
        .chain(SourceRefusal::ALL.iter().map(|code| code.explain()))
}
