//! A node: a pool of links to stations, its subscriptions and its publications.
//!
//! Decides: what is delivered, in which order, and what its readers are told of what may be missing; where a publication goes and what
//! became of it. Leaves to others: sockets, clocks and entropy (the driver); answers it asks for (`Action::Ask`). Believes: mono for
//! timers, wall for the life of publications and for times people read. Bounded by: [`crate::ClientLimits`]; [`Client::memory`] shows
//! every table.

mod admit;
mod asked;
mod carriers;
mod commit;
mod config;
mod counter;
mod groups;
mod holds;
mod lanes;
mod opening;
mod pool;
mod publish;
mod publisher;
mod questions;
mod receive;
mod redial;
mod request;
mod sources;
mod status;
mod strangers;
mod streams;
mod subscriptions;
mod timers;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

pub(crate) use self::config::SignerBox;
pub use self::config::{ClientConfig, ValidClientConfig, Verification};
use self::counter::Counters;
pub use self::groups::GroupStatus;
use self::groups::Groups;
use self::lanes::{LaneKey, Lanes, NumberingKey, Topic, Work};
pub use self::opening::RefusedInClear;
use self::pool::{Dialled, NodeSide};
use self::publish::Outgoing;
use self::publisher::OpenPublisher;
use self::questions::Questions;
use self::receive::Last;
pub use self::request::{Group, Publish, Sources, Subscribe, Token};
use self::sources::Verdicts;
pub use self::status::{ClientStatus, LinkState, LinkStatus, SourceStatus, SubscriptionStatus};
use self::streams::Subscription;
use self::subscriptions::Wire;
use self::timers::Timer;
use crate::action::{Action, Ready};
use crate::arena::{Arena, inner_handle};
use crate::code::DiagnosticCode;
use crate::counters::FaultCounts;
use crate::crypto::Profile;
use crate::diagnostic::Diagnostics;
use crate::inbound::dedup::{self, HeapDedup};
use crate::inbound::lane::Resting;
use crate::publishers::Publishers;
use crate::rng::{Entropy, Rng, Seed};
use crate::side::{Unread, prompt, slept};
use crate::table::HeapTable;
use crate::tags::Tags;
use crate::time::{Instant, Now, WallMs};
use crate::{LinkId, NodeId, PublisherId, RealmId, SubscriptionId, Ticket};

inner_handle!(/** One publisher on one topic in one subscription. */ LaneId);
inner_handle!(/** A topic somebody was heard on. */ TopicId);
inner_handle!(/** One (realm, filter) asked of stations. */ WireId);

/// A node. See the module's text.
///
/// Getters: `id`, `last_epoch`, `status`, `subscription`, `group`, `memory`, `poll_timeout`. Inputs: `handle_link`, `handle_dial_failed`,
/// `handle_input`, `handle_written`, `handle_timeout`. Commands, which may refuse and then have changed nothing: `subscribe`, `unsubscribe`,
/// `publish`, `cancel`, `open_publisher`, `end_publisher`, `cancel_publisher`, `join_group`, `leave_group`, `epochs_kept`, `answer`, `close_link`, `close`. Outputs: `poll_action`, `poll_item`, `poll_transmit`; they take no time and decide
/// nothing.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    id: NodeId,
    entropy: Entropy,
    /// For stations that refused a subscription.
    asking: Rng,
    now: Now,
    closed: bool,
    stations: Vec<Dialled>,
    links: Arena<LinkId, NodeSide>,
    wires: Arena<WireId, Wire>,
    wire_index: BTreeMap<(RealmId, String), WireId>,
    subscriptions: Arena<SubscriptionId, Subscription>,
    /// How many there were so far.
    subscriptions_made: u64,
    /// How many of them pause their links.
    pausing: usize,
    /// Topics somebody was heard on, by realm and name.
    topics: Arena<TopicId, Topic>,
    topic_index: BTreeMap<RealmId, BTreeMap<String, TopicId>>,
    /// The last publication that was read was taken.
    wanted: bool,
    lanes: Lanes,
    lanes_hand: usize,
    /// For the next lane that is unfolded.
    spare: Option<Box<Work>>,
    /// What is left of lanes nobody spoke on for ten minutes.
    resting: HeapTable<LaneKey, Resting>,
    resting_hand: usize,
    dedup: HeapDedup,
    tags: Tags<NumberingKey, ()>,
    publishers: Publishers<Last>,
    /// Facts whose signature is being checked elsewhere.
    unverified: Questions,
    /// Whom the publication at hand is for; kept for its memory.
    readers: Vec<SubscriptionId>,
    /// The latest `published_at` of all that were remembered.
    published: WallMs,
    tickets: Arena<Ticket, Outgoing>,
    /// Publications that lost a link and wait for another, once for each, the oldest first.
    displaced: VecDeque<Ticket>,
    open_publishers: Arena<PublisherId, OpenPublisher>,
    groups: Groups,
    verdicts: Verdicts,
    counters: Counters,
    timers: BTreeSet<(Instant, Timer)>,
    actions: VecDeque<Action>,
    /// Bytes of publications in lanes, streams and questions.
    held_bytes: usize,
    /// Those of each publisher in lanes, where it has any.
    waiting_bytes: BTreeMap<NodeId, usize>,
    faults: FaultCounts,
    counts: status::Counts,
    dedup_warned: bool,
    sweeping: bool,
    /// Whether a station replays to any subscription.
    replays: bool,
    diagnostics: Diagnostics,
    report_at: Option<Instant>,
}

impl Client {
    /// A node that starts now. It asks for its stations to be dialled at once.
    pub fn new(config: ValidClientConfig, seed: Seed, entropy: Entropy, now: Now) -> Self {
        let config = config.0;
        let signer = &config.signer.0;
        let profile = signer.profile();
        let limits = &config.limits;
        let mut tables = seed.fork("tables");
        let mut sources = seed.fork("sources");
        let stations = config
            .stations
            .iter()
            .enumerate()
            .map(|(n, pin)| Dialled::new(*pin, now, seed.fork(&alloc::format!("redial {n}"))))
            .collect();
        let questions = match config.verification {
            Verification::Asked => limits.pending_verifications,
            Verification::Here => 0,
        };
        let mut client = Self {
            id: NodeId::of_key(profile.name(), &signer.public_key()),
            entropy,
            asking: seed.fork("asking"),
            now,
            closed: false,
            stations,
            links: Arena::default(),
            wires: Arena::default(),
            wire_index: BTreeMap::new(),
            subscriptions: Arena::default(),
            subscriptions_made: 0,
            pausing: 0,
            topics: Arena::default(),
            topic_index: BTreeMap::new(),
            wanted: false,
            lanes: Lanes::new(limits.lanes, &mut tables),
            lanes_hand: 0,
            spare: None,
            resting: HeapTable::with_capacity(limits.resting_lanes, &mut tables),
            resting_hand: 0,
            dedup: HeapDedup::with_capacity(limits.dedup_entries, dedup::SHARES, &mut tables),
            tags: Tags::new(limits.lanes.saturating_mul(2), &mut tables),
            publishers: Publishers::new(profile, limits.publishers, &mut tables),
            unverified: Questions::new(questions),
            readers: Vec::new(),
            published: WallMs::new(0),
            tickets: Arena::default(),
            displaced: VecDeque::new(),
            open_publishers: Arena::default(),
            groups: Groups::new(seed),
            verdicts: Verdicts::new(limits.sources, &mut sources),
            counters: Counters::new(
                config.last_epoch,
                config.keep_epochs.then_some(config.last_epoch),
                limits.counters,
            ),
            timers: BTreeSet::new(),
            actions: VecDeque::new(),
            held_bytes: 0,
            waiting_bytes: BTreeMap::new(),
            faults: FaultCounts::default(),
            counts: status::Counts::default(),
            dedup_warned: false,
            sweeping: false,
            replays: false,
            diagnostics: Diagnostics::default(),
            report_at: None,
            config,
        };
        client.dial_all();
        client
    }

    /// Its identity.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The greatest epoch it has published under: hand it to [`ClientConfig::last_epoch`] in the next run.
    pub fn last_epoch(&self) -> u64 {
        self.counters.last_epoch()
    }

    /// No epoch up to this one will be used in a later run, whatever becomes of this one: it was written down. Only a greater one than before
    /// changes anything. Some more than was asked for saves the writing of each.
    pub fn epochs_kept(&mut self, upto: u64) {
        self.counters.keep(upto);
    }

    fn profile(&self) -> Profile {
        self.config.signer.0.profile()
    }

    /// Clamps a clock that went back, remembers the time for outputs, which take none, counts what was not read while this side was away, and
    /// probes every link when it slept.
    fn at(&mut self, now: Now) -> Now {
        let before = self.now;
        if now == before {
            return now;
        }
        self.now = now.after(before);
        if prompt(before, self.now) {
            return self.now;
        }
        if let Some(unread) = Unread::between(before, self.now, || self.poll_timeout()) {
            for (_, side) in self.links.iter_mut() {
                side.base.miss(unread);
            }
        }
        if slept(before, self.now, || self.poll_timeout()) {
            self.report(DiagnosticCode::ClockJumped, None, "");
            self.suspect_all(self.now);
            self.suspect_keys(self.now);
        }
        self.now
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When `handle_timeout` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Says once that a link has something to send.
    fn raise(&mut self, link: LinkId) {
        if let Some(side) = self.links.get_mut(link)
            && side.take_ready()
        {
            self.actions.push_back(Action::Ready(Ready::Link(link)));
        }
    }
}
