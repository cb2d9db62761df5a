//! Publishers that are looked up, in one run of ten: who is admitted, and whoever answers for it.
//!
//! Decides: which seeds have it, what is answered, when, and what not. Leaves to others: verdicts and waiting facts (the clients), whether what
//! was told had a cause (the checkers). Believes: the true time. Bounded by: the questions of the run.
//!
//! It is drawn from a stream of its own: the plans of all other seeds, and the acts of these, stay what they are. One publisher may be a stranger,
//! whose bursts then are a flood of facts nobody admits; one may be revoked while it publishes. A quarter of these runs commits positions as well.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::START;
use super::check::{ANSWER_TIMEOUT, Numbering};
use super::clock::Clock;
use super::draw::rng;
use super::keys::Keys;
use super::plan::{Fault, Plan, Wanted};
use super::trace::{Name, since_start};
use super::world::{End, World};
use crate::code::SourceRefusal;
use crate::inbound::episode::LONGEST;
use crate::inbound::sources::{SourceAnswer, SourceLimits};
use crate::{AskId, Duration, Instant, NodeId, Rng, Source, Sources, WallMs};

/// An answer on its way, and about whom.
type Answering = (Instant, AskId, SourceAnswer, About);

/// A host, a source, a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub(super) host: usize,
    pub(super) source: Source,
    pub(super) publisher: NodeId,
}

/// How lookups are answered.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    pub(super) on: bool,
    pub(super) limits: SourceLimits,
    /// How long an answer takes at most, in milliseconds.
    slow: u64,
    /// Of so many questions one is never answered; 0 for none. And so on.
    loses: u64,
    doubts: u64,
    contradicts: u64,
    /// How long records are good for at most, in milliseconds.
    records: u64,
    /// Whose key nobody admits.
    stranger: Option<u8>,
    /// Whose key is admitted until then.
    revoked: Option<(u8, Instant)>,
    /// The last fault is over: everything is answered well and soon.
    pub(super) calm: bool,
    names: Vec<NodeId>,
    answers: VecDeque<Answering>,
    /// What was answered in time, when, and until when it admits.
    said: Vec<(Instant, About, Option<WallMs>)>,
    /// So many of them are in the trace.
    traced: usize,
    draws: Option<Rng>,
    asked: u64,
    done: [u64; 5],
}

impl Lookups {
    pub(super) fn draw(plan: &Plan) -> Self {
        let mut all = Self::default();
        if !matches!(plan.seed % 40, 10 | 16 | 20 | 23) {
            return all;
        }
        let mut draw = rng(plan.seed, "lookups");
        all.on = true;
        let mut one_of = |choices: [u64; 4]| choices[draw.below(4) as usize];
        let limits = &mut all.limits;
        limits.max_publishers = one_of([64, 64, 64, 1]) as usize;
        limits.held_per_key = one_of([64, 64, 2, 1]) as u32;
        limits.lookups_per_window = one_of([64, 64, 2, 1]) as u32;
        limits.cache_ttl_ms = one_of([1000, 3000, 10_000, 300_000]);
        limits.refresh_margin_ms = limits.cache_ttl_ms / one_of([3, 10, 10, 1_000_000]);
        limits.refusal_ttl_ms = one_of([0, 500, 2000, 10_000]);
        limits.lookup_timeout_ms = one_of([200, 1000, 1000, 5000]);
        all.slow = one_of([0, 20, 300, 1500]);
        all.loses = one_of([0, 0, 2, 5]);
        all.doubts = one_of([0, 0, 2, 5]);
        all.contradicts = one_of([0, 0, 3, 7]);
        all.records = one_of([500, 5000, 60_000, 1 << 40]);
        let nodes = plan.nodes.len() as u64;
        let stranger = draw.below(2 * nodes);
        all.stranger = (stranger < nodes).then_some(stranger as u8);
        let revoked = draw.below(2 * nodes);
        let at = Instant::from_millis(draw.between(1000, 20_000));
        all.revoked = (revoked < nodes).then_some((revoked as u8, at));
        all.draws = Some(draw);
        all
    }

    /// Whose key is whose.
    pub(super) fn name(&mut self, keys: &Keys, nodes: usize) {
        self.names = (0..nodes).map(|key| keys.node_id(key)).collect();
    }

    /// A wall is as far ahead as is tolerated: records last for longer by that.
    pub(super) fn allow_for_skew(&mut self) {
        self.records += crate::wire::SKEW_MS;
    }

    /// What a planned subscription looks its publishers up by, if it does.
    pub(super) fn source(&self, slot: usize, wanted: &Wanted) -> Option<Source> {
        if !self.on || wanted.sources.is_some() {
            return None;
        }
        Some(match slot % 3 {
            2 => Source::Org("acme".into()),
            _ => Source::Members,
        })
    }

    /// A question came at the true time `now`: when its answer is back at its host, if it will be.
    pub(super) fn ask(&mut self, now: Instant, ask: AskId, about: About) -> Option<Instant> {
        self.asked += 1;
        let hits = |of: u64| !self.calm && of > 0 && self.asked.is_multiple_of(of);
        let (loses, doubts, contradicts) =
            (hits(self.loses), hits(self.doubts), hits(self.contradicts));
        let [lost, doubted, contradicted, strange, revoked] = &mut self.done;
        if loses {
            *lost += 1;
            return None;
        }
        let draws = self.draws.as_mut()?;
        let slow = if self.calm { 0 } else { self.slow };
        let at = now.saturating_add(Duration::from_millis(draws.between(0, slow)));
        let life = draws.between(1, self.records);
        let is = |key: Option<u8>| {
            let name = key.and_then(|key| self.names.get(usize::from(key)));
            name == Some(&about.publisher)
        };
        let over = self.revoked.filter(|(_, since)| now >= *since);
        let admitted = SourceAnswer::Admit {
            until: START.saturating_add(now.as_micros() / 1000 + life),
        };
        let answer = if doubts {
            *doubted += 1;
            SourceAnswer::Unknown
        } else if is(self.stranger) {
            *strange += 1;
            SourceAnswer::Refuse(SourceRefusal::NotFound)
        } else if is(over.map(|(key, _)| key)) {
            *revoked += 1;
            SourceAnswer::Refuse(SourceRefusal::Withdrawn)
        } else if contradicts {
            *contradicted += 1;
            SourceAnswer::Refuse(SourceRefusal::NotFound)
        } else {
            admitted
        };
        let place = self.answers.partition_point(|(due, ..)| *due <= at);
        self.answers.insert(place, (at, ask, answer, about));
        Some(at)
    }

    /// The next answer that is there for a host by the true time `now`.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        host: usize,
    ) -> Option<(AskId, SourceAnswer, About)> {
        let mut answers = self.answers.iter();
        let place = answers.position(|(at, .., about)| *at <= now && about.host == host)?;
        let (_, ask, answer, about) = self.answers.remove(place)?;
        Some((ask, answer, about))
    }

    /// It was in time, by a host whose wall says `wall`.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        wall: WallMs,
        answer: SourceAnswer,
        about: About,
    ) {
        let until = match answer {
            SourceAnswer::Admit { until } => Some(until).filter(|until| *until > wall),
            SourceAnswer::Refuse(_) => None,
            SourceAnswer::Unknown => return,
        };
        self.said.push((now, about, until));
    }

    /// Nothing is on its way to a host that is no more.
    pub(super) fn forget(&mut self, host: usize) {
        self.answers.retain(|(.., about)| about.host != host);
    }

    fn said_of<'a>(
        &'a self,
        about: &'a About,
    ) -> impl Iterator<Item = (Instant, Option<WallMs>)> + 'a {
        let its = self.said.iter().filter(move |(_, of, _)| of == about);
        its.map(|(at, _, until)| (*at, *until))
    }

    /// Whether a fact that came then, when its host's wall said `wall`, may have been delivered by `now`: it was admitted while it waited, or by a
    /// verdict that was not over and that no refusal had replaced.
    pub(super) fn admits(&self, about: &About, came: Instant, wall: WallMs, now: Instant) -> bool {
        let lasts = Duration::from_millis(self.limits.cache_ttl_ms);
        let refused = |from: Instant| {
            let mut said = self.said_of(about);
            // What is refused in that moment may be the answer to what the fact began.
            said.any(|(at, until)| until.is_none() && at > from && at < came)
        };
        let mut said = self.said_of(about).filter(|(at, _)| *at <= now);
        said.any(|(at, until)| {
            until.is_some_and(|until| {
                at >= came || at.saturating_add(lasts) > came && until > wall && !refused(at)
            })
        })
    }

    /// Whether a refusal was there for a fact when it came, or came while it waited, by that time. A host that sleeps is answered when it wakes.
    fn refuses(&self, about: &About, came: Instant, by: Instant, clock: &Clock) -> bool {
        // For an answer about its signature, and for one about its publisher.
        let patience = ANSWER_TIMEOUT + Duration::from_millis(self.limits.lookup_timeout_ms);
        let upto = came.saturating_add(patience + clock.slept_since(came));
        let lasts = Duration::from_millis(self.limits.refusal_ttl_ms);
        let mut said = self.said_of(about).filter(|(_, until)| until.is_none());
        said.any(|(at, _)| {
            at <= upto.min(by) && at.saturating_add(lasts + clock.slept_since(at)) >= came
        })
    }
}

impl World {
    /// What the run did to lookups.
    pub(super) fn tally_lookups(&mut self) {
        let done = self.net.lookups.done;
        let faults = [
            Fault::LookupsLost,
            Fault::LookupsUnknown,
            Fault::LookupsContradicted,
            Fault::Stranger,
            Fault::Revoked,
        ];
        for (fault, times) in faults.into_iter().zip(done) {
            self.tally.fault(fault, times);
        }
    }

    /// What was answered in time, in the trace.
    pub(super) fn trace_answers(&mut self) {
        let stations = self.stations.len();
        for (at, about, until) in &self.net.lookups.said[self.net.lookups.traced..] {
            let key = self.keys.key_of(&about.publisher).unwrap_or_default();
            let until = until.map_or_else(|| "never".into(), since_start);
            let source = &about.source;
            self.trace.line(
                *at,
                Name::host(about.host, stations),
                format_args!("is answered about key {key} ({source:?}): until {until}"),
            );
        }
        self.net.lookups.traced = self.net.lookups.said.len();
    }

    /// Whom a subscription asks for, as it stands in its request.
    pub(super) fn sources_of(&self, slot: usize, wanted: &Wanted) -> Sources {
        match self.net.lookups.source(slot, wanted) {
            Some(Source::Org(name)) => Sources::Org(name),
            Some(_) => Sources::Members,
            None => self.keys.sources(wanted.sources),
        }
    }

    /// What verdicts on the publisher of a fact are about, where a subscription looks it up.
    pub(super) fn about(&self, sub: usize, number: u32) -> Option<About> {
        let this = &self.subs[sub];
        let made = self.truth.made.get(number as usize)?;
        Some(About {
            host: self.truth.lives[this.life].host,
            source: this.looked_up.clone()?,
            publisher: self.keys.node_id(usize::from(made.key)),
        })
    }

    /// Whether a source had refused a publication by then that came, which is counted and not told.
    pub(super) fn was_refused_by(&self, sub: usize, number: u32, by: Instant) -> bool {
        let life = &self.truth.lives[self.subs[sub].life];
        let Some(came) = life.arrivals.get(&number).filter(|came| **came <= by) else {
            return false;
        };
        let clock = &self.net.hosts[life.host].clock;
        let about = self.about(sub, number);
        about.is_some_and(|about| self.net.lookups.refuses(&about, *came, by, clock))
    }

    /// The same at any time.
    pub(super) fn is_refused(&self, sub: usize, number: u32) -> bool {
        self.was_refused_by(sub, number, Instant::from_micros(u64::MAX))
    }

    /// The same of any with these numbers.
    pub(super) fn was_refused(&self, sub: usize, of: Numbering, seq: u64, by: Instant) -> bool {
        if self.subs[sub].looked_up.is_none() {
            return false;
        }
        let mut all = self.numbered(of, seq);
        all.any(|number| self.was_refused_by(sub, number, by))
    }

    /// Whether one with these numbers may have been dropped without a verdict in an episode that was not over when its reader was killed.
    pub(super) fn may_be_untold(&self, sub: usize, of: Numbering, seq: u64) -> bool {
        let this = &self.subs[sub];
        let Some((end, End::Crash)) = this.ended.filter(|_| this.looked_up.is_some()) else {
            return false;
        };
        let patience = Duration::from_millis(self.net.lookups.limits.lookup_timeout_ms);
        let arrivals = &self.truth.lives[this.life].arrivals;
        let mut came = self
            .numbered(of, seq)
            .filter_map(|number| arrivals.get(&number));
        came.any(|came| came.saturating_add(patience + LONGEST) > end)
    }

    /// The publications with these numbers.
    pub(super) fn numbered(&self, of: Numbering, seq: u64) -> impl Iterator<Item = u32> + '_ {
        let all = 0..self.truth.made.len() as u32;
        all.filter(move |number| self.place_of(*number) == Some((of, seq)))
    }

    /// A publisher is never delivered past its verdict.
    pub(super) fn admitted_in_time(&mut self, now: Instant, sub: usize, number: u32) {
        // Where a wall was stepped a verdict may be over by it, or not, at another time.
        if !self.net.lookups.on || self.walls_differ() {
            return;
        }
        let Some(about) = self.about(sub, number) else {
            return;
        };
        let life = &self.truth.lives[self.subs[sub].life];
        let came = life.arrivals.get(&number).copied().unwrap_or(now);
        let wall = self.net.hosts[about.host].clock.wall(came);
        if !self.net.lookups.admits(&about, came, wall, now) {
            self.wrong(
                "verdict",
                alloc::format!(
                    "#{number} was delivered to q{sub} past the verdict on its publisher"
                ),
            );
        }
    }
}
