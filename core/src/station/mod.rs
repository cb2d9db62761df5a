//! A relay: one value is one identity.
//!
//! Decides: who is subscribed to what, what is admitted, what each link is sent next. Leaves to others: sockets and clocks (the driver),
//! what subscribers make of it. Believes: mono for every timer and age, wall for the life of publications. Bounded by:
//! [`crate::StationLimits`]; [`Station::memory`] shows every table.
//!
//! A publication is verified once, remembered, put into its topic's ring and from there read by every subscription at its own pace:
//! a link has no queue of events. A reader that is overwritten is told `skipped`, with the exact count. A subscription that comes back with a
//! position reads on from there, as if it had only been slow, or is told that it cannot.

mod config;
mod input;
mod linger;
mod output;
mod pace;
mod publish;
mod reader;
mod reads;
mod registry;
mod resume;
mod room;
mod round;
mod status;
mod stretch;
mod timers;
mod topics;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

pub use self::config::{StationConfig, ValidStationConfig};
use bytes::Bytes;

use self::publish::Run;
use self::reader::Readers;
use self::reads::{LongFrame, Reads};
use self::registry::Realm;
use self::round::Round;
pub use self::status::{RingWarning, StationLink, StationStatus};
use self::stretch::Stretches;
use self::timers::Timer;
use self::topics::Topics;
use crate::action::{Action, LinkEvent, Ready};
use crate::arena::{Arena, inner_handle};
use crate::code::CloseReason;
use crate::counters::FaultCounts;
use crate::crypto::Profile;
use crate::inbound::dedup::{self, HeapDedup};
use crate::link::{Binding, Link, LinkSettings};
use crate::publishers::Publishers;
use crate::refusal::Misuse;
use crate::rng::{Entropy, Seed};
use crate::side::{Side, slept};
use crate::tags::Tags;
use crate::time::{Duration, Instant, Now};
use crate::wire::Role;
use crate::{LinkId, NodeId, RealmId};

/// How long a station that is going away goes on writing.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

inner_handle!(/** A subscription of a link. */ ReaderId);
inner_handle!(/** A topic with a ring. */ TopicId);

/// A link as the station sees it.
#[derive(Debug)]
struct StationSide {
    base: Side,
    /// Its subscriptions by the `id` of their `subscribe`.
    readers: BTreeMap<u64, ReaderId>,
    filters: usize,
    /// The highest id its peer has used.
    last_id: u64,
    /// The longest object its peer reads in an event.
    longest: usize,
    /// Publications not answered yet.
    unanswered: usize,
    /// Publications for this link alone, with the subscription each is for.
    ones: VecDeque<(u64, Bytes)>,
    /// Its subscriptions with something to read, in turn.
    round: Round,
    /// The frame of more than 64 KiB it has begun.
    long: LongFrame,
    /// How long the link had not been read when that frame first stood still for it, and the deadline in the index.
    stalled_from: Option<Duration>,
    stalls_at: Option<Instant>,
    /// Topics its readers read from since the last write was reported.
    moved: Vec<TopicId>,
}

/// An action of a station, in little room: there is one for every link of a fan-out.
#[derive(Clone, Copy, Debug)]
struct Task {
    link: LinkId,
    /// It is to be closed; otherwise it has something to send.
    close: Option<CloseReason>,
}

impl Task {
    fn send(link: LinkId) -> Self {
        Self { link, close: None }
    }
}

/// A relay. See the module's text.
///
/// Getters: `id`, `status`, `memory`, `poll_timeout`. Inputs: `handle_link`, `handle_input`, `handle_written`, `handle_timeout`.
/// Commands: `publish`, `purge`, `close_link`, `drain`, `close`. Outputs: `poll_action`, `poll_transmit`; they take no time and decide nothing.
#[derive(Debug)]
pub struct Station {
    config: StationConfig,
    id: NodeId,
    entropy: Entropy,
    now: Now,
    links: Arena<LinkId, StationSide>,
    realms: BTreeMap<RealmId, Realm>,
    topics: Topics,
    readers: Readers,
    reads: Reads,
    dedup: HeapDedup,
    /// What each numbering was admitted under without a hole: what lets memory of single publications go early.
    runs: Tags<[u8; 16], Run>,
    publishers: Publishers<()>,
    timers: BTreeSet<(Instant, Timer)>,
    actions: VecDeque<Task>,
    stretches: Stretches,
    /// Of the anycasts that wait at all links.
    ones_bytes: usize,
    /// Interests nobody holds that linger, in all realms.
    idle_interests: usize,
    own: BTreeMap<(RealmId, alloc::string::String), (u64, u64)>,
    own_epoch: u64,
    faults: FaultCounts,
    counts: status::Counts,
    /// The last of them.
    warnings: VecDeque<RingWarning>,
    draining: bool,
    /// A sweep is in the timer index.
    sweeping: bool,
}

impl Station {
    /// A station that starts now. Realms get their run ids from `entropy`, tables their keys from `seed`.
    pub fn new(config: ValidStationConfig, seed: Seed, mut entropy: Entropy, now: Now) -> Self {
        let config = config.0;
        let signer = &config.signer.0;
        let profile = signer.profile();
        let id = NodeId::of_key(profile.name(), &signer.public_key());
        let limits = &config.limits;
        // A seed can be known; tables that strangers fill are keyed by secrets as well.
        entropy.top_up(b"station");
        let mut rng = seed.fork("station");
        let mut station = Self {
            id,
            now,
            links: Arena::default(),
            realms: BTreeMap::new(),
            topics: Topics::default(),
            readers: Arena::default(),
            reads: Reads::new(limits.read_bytes),
            dedup: HeapDedup::with_capacity(limits.dedup_entries, dedup::SHARES, &mut rng),
            runs: Tags::new(1 << 16, &mut rng),
            publishers: Publishers::new(profile, limits.publishers, &mut rng),
            timers: BTreeSet::new(),
            actions: VecDeque::new(),
            stretches: Stretches::default(),
            ones_bytes: 0,
            idle_interests: 0,
            own: BTreeMap::new(),
            own_epoch: 0,
            faults: FaultCounts::default(),
            counts: status::Counts::default(),
            warnings: VecDeque::new(),
            draining: false,
            sweeping: false,
            entropy,
            config,
        };
        for realm in station.config.pinned.clone() {
            station.open_realm(realm, None);
        }
        station
    }

    /// Its identity.
    pub fn id(&self) -> NodeId {
        self.id
    }

    fn profile(&self) -> Profile {
        self.config.signer.0.profile()
    }

    /// Clamps a clock that went back, remembers the time for outputs, which take none, and probes every link when this side slept.
    #[inline]
    fn at(&mut self, now: Now) -> Now {
        if now != self.now {
            self.pass(now);
        }
        self.now
    }

    #[inline(never)]
    fn pass(&mut self, now: Now) {
        let before = self.now;
        self.now = now.after(before);
        if slept(before, self.now, || self.poll_timeout()) {
            self.suspect_all(self.now);
        }
    }

    /// A transport came up or ended.
    ///
    /// # Errors
    /// [`Misuse::TooManyLinks`]: close the connection. [`Misuse::LocalNotAllowed`], [`Misuse::NotDialled`], [`Misuse::DeadHandle`]: a bug
    /// in the driver.
    pub fn handle_link(&mut self, now: Now, event: LinkEvent) -> Result<LinkId, Misuse> {
        let now = self.at(now);
        match event {
            LinkEvent::Up {
                dialled: None,
                binding,
            } => self.accept(now, binding),
            LinkEvent::Up {
                dialled: Some(_), ..
            } => Err(Misuse::NotDialled),
            LinkEvent::Down { link, reason } => {
                self.links.get(link).ok_or(Misuse::DeadHandle)?;
                self.stop_link(now, link, reason, None);
                self.links.remove(link);
                Ok(link)
            }
        }
    }

    fn accept(&mut self, now: Now, binding: Binding) -> Result<LinkId, Misuse> {
        if binding == Binding::Local && !self.config.allow_local {
            return Err(Misuse::LocalNotAllowed);
        }
        if self.links.len() >= self.config.limits.links {
            self.counts.links_refused += 1;
            return Err(Misuse::TooManyLinks);
        }
        let signer = &self.config.signer.0;
        let settings = LinkSettings {
            max_frame: self.config.max_frame,
            allow_local: self.config.allow_local,
            probe_every: self.config.probe_every,
            ..LinkSettings::new(signer.profile(), signer.public_key(), Role::Station)
        };
        let nonce = self.entropy.draw();
        let link = Link::accept(now.mono, settings, binding, nonce)
            .map_err(|_| Misuse::LocalNotAllowed)?;
        let id = self.links.insert(StationSide {
            base: Side::new(now, link),
            readers: BTreeMap::new(),
            filters: 0,
            last_id: 0,
            longest: 0,
            unanswered: 0,
            ones: VecDeque::new(),
            round: Round::default(),
            long: LongFrame::None,
            stalled_from: None,
            stalls_at: None,
            moved: Vec::new(),
        });
        self.arm_link(id);
        Ok(id)
    }

    /// Ends a link from this side: a goodbye, then a `Close` action.
    ///
    /// # Errors
    /// When there is no such link.
    pub fn close_link(
        &mut self,
        now: Now,
        link: LinkId,
        reason: CloseReason,
    ) -> Result<(), Misuse> {
        let now = self.at(now);
        let side = self.links.get(link).ok_or(Misuse::DeadHandle)?;
        let detail = side.base.farewell();
        self.end_link(now, link, reason, detail);
        Ok(())
    }

    /// Begins to go away: links, subscriptions and publications that come are refused with `draining`; a link whose readers are level and
    /// whose publications are answered is ended with `goodbye { draining }`, every other one 5 s later. The station is done when it
    /// [`is_drained`](Self::is_drained).
    pub fn drain(&mut self, now: Now) {
        let now = self.at(now);
        if self.draining {
            return;
        }
        self.draining = true;
        self.timers
            .insert((now.mono.saturating_add(DRAIN_PATIENCE), Timer::Drain));
        let links: Vec<LinkId> = self.links.iter().map(|(link, _)| link).collect();
        for link in links {
            self.leave_if_level(now, link);
        }
    }

    /// Whether it drained or closed and has no link left.
    pub fn is_drained(&self) -> bool {
        self.draining && self.links.len() == 0
    }

    /// While draining: says goodbye to a link that has everything.
    #[inline(never)]
    pub(super) fn leave_if_level(&mut self, now: Now, link: LinkId) {
        let Some(side) = self.links.get(link) else {
            return;
        };
        let written = side.base.link.written() == side.base.link.queued();
        let level = side.round.iter().all(|reader| {
            let reader = self.readers.get(reader);
            reader.is_none_or(|reader| !reader.has_something())
        });
        if side.is_live() && written && level && side.ones.is_empty() && side.unanswered == 0 {
            let detail = side.base.farewell();
            self.end_link(now, link, CloseReason::Draining, detail);
        }
    }

    /// Ends every link at once with `goodbye { draining }` and refuses what comes after.
    pub fn close(&mut self, now: Now) {
        let now = self.at(now);
        self.draining = true;
        let links: Vec<(LinkId, Option<&str>)> = self
            .links
            .iter()
            .map(|(link, side)| (link, side.base.farewell()))
            .collect();
        for (link, detail) in links {
            self.end_link(now, link, CloseReason::Draining, detail);
        }
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        let Task { link, close } = self.actions.pop_front()?;
        Some(match close {
            None => Action::Ready(Ready::Link(link)),
            Some(reason) => Action::Close { link, reason },
        })
    }

    /// When `handle_timeout` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Says once that there is something to send.
    fn raise(&mut self, link: LinkId) {
        if let Some(side) = self.links.get_mut(link)
            && side
                .base
                .take_ready(!side.ones.is_empty() || !side.round.is_empty())
        {
            self.actions.push_back(Task::send(link));
        }
    }
}
