//! Whether one subscription at the stations was carried without a break, and what its readers are told when it was not.
//!
//! Decides: when it is interrupted, when that is over, and which window may have holes. Leaves to others: links, facts, where a notice
//! goes; it is blind to what is carried. Believes: mono for what came before what and for its one deadline, wall for the windows people
//! read. Bounded by: its slots, one for each link that carries and each station whose position is kept.
//!
//! A *carrier* is a link whose station accepted the subscription and has not withdrawn it. Stations of one *mesh* bring the same
//! publications, so one of them is enough; what another mesh brings is its own. `level` is how far a station's stream is known to have been
//! read: what it admitted before that moment was written to this side. It is when a `progress` was said, not when it came: the owner knows how long
//! its link takes. A hole is what lies between the level of a carrier that ended and
//! now, unless a mate of its mesh has carried since before that.
//!
//! Where the rules leave a choice: a carrier that a mate covers ends without a word, and its own return, even `expired`, is no news; a
//! carrier whose promised replay was told and breaks off opens the interruption again, even while a mate carries that was accepted later;
//! a mesh that has not come back is waited for with `resumed` for two minutes after its end, and at least for half a minute, then the rest
//! of the window is a gap; a hole that no interruption speaks of, as another mesh carries, is one two minutes after the last end in it, up
//! to where a mate brings everything again; a mesh that comes back after that and cannot replay has the rest as a second one; after the
//! wall was set a window begins at the earlier of what the two clocks say; what an earlier run had read is an interruption that began before:
//! nobody is told `Interrupted`, which that run's readers were or were not, its end is told alone, and until then it is in the status. No facts
//! are held back for it.

mod carrier;

use crate::NodeId;
use crate::code::{CloseReason, GapReason};
use crate::time::{Duration, Instant, Now, WallMs};
use crate::wire::Position;
pub use carrier::{Accepted, Carrier, Resume};

/// Who may have forgotten this side after its end: a station keeps an interest for so long.
const LINGER: Duration = Duration::from_secs(2 * 60);
/// How long a mesh may stay away longer than one that replayed.
const GRACE: Duration = Duration::from_secs(30);

/// One place of the storage of a [`Continuity`].
pub type Slot<L> = Option<Carrier<L>>;

/// What the readers are told. It precedes every fact that is handed in later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "readers are told nothing else of it"]
#[non_exhaustive]
pub enum Told {
    /// What was admitted between `from` and `to` may be missing.
    Gap {
        /// Its beginning.
        from: WallMs,
        /// Its end.
        to: WallMs,
        /// Why.
        reason: GapReason,
        /// How many, where that is known.
        count: Option<u64>,
    },
    /// Nobody carries the subscription.
    Interrupted {
        /// Since when.
        from: WallMs,
        /// Why the last carrier ended.
        reason: CloseReason,
    },
    /// It is carried again, and what was missed follows.
    Resumed {
        /// How many publications its stations replay.
        recovered: u64,
    },
}

/// An interruption that is not over.
#[derive(Clone, Copy, Debug)]
struct Open {
    since: Now,
    recovered: u64,
    /// Until when the meshes that did not come back are waited for.
    deadline: Option<Instant>,
}

/// Publications a live station gave up, as a `skipped` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// How long ago the window began, in ms.
    pub from: u64,
    /// How long ago it ended, in ms.
    pub to: u64,
    /// How many; 0 when that is not known.
    pub count: u64,
    /// The station that was cut off, where one was.
    pub peer: Option<NodeId>,
}

/// The continuity of one (realm, filter). `L` names a link.
///
/// Inputs: [`handle_accepted`](Self::handle_accepted), [`handle_ended`](Self::handle_ended), [`handle_event`](Self::handle_event),
/// [`handle_progress`](Self::handle_progress), [`handle_skipped`](Self::handle_skipped), [`handle_timeout`](Self::handle_timeout). Each
/// brings at most one notice.
#[derive(Debug)]
pub struct Continuity<L, S> {
    slots: S,
    open: Option<Open>,
    /// The greatest level of carriers that ended while others carried, since the last interruption was over.
    known: Option<Now>,
    /// When an earlier run's positions were taken over: mono may not reach back to what that had read.
    imported: Option<Now>,
    link: core::marker::PhantomData<fn() -> L>,
}

impl<L: Copy + Eq, S: AsRef<[Slot<L>]> + AsMut<[Slot<L>]>> Continuity<L, S> {
    /// Nobody has carried it yet. With fewer slots than links and stations the position read longest ago is forgotten first.
    pub fn new(slots: S) -> Self {
        Self {
            slots,
            open: None,
            known: None,
            imported: None,
            link: core::marker::PhantomData,
        }
    }

    /// A station accepted it on a link.
    pub fn handle_accepted(&mut self, now: Now, accepted: Accepted<L>) -> Option<Told> {
        if self.carrier(accepted.link).is_some() {
            return None;
        }
        let index = self.place(&accepted)?;
        let before = self.slots.as_ref()[index].filter(|of| of.station == accepted.station);
        let resumed = before.filter(|before| accepted.continues(before));
        let owed = self.hole_of(&accepted.mesh);
        let open = self.open.map(|open| open.since);
        let mesh = accepted.mesh;
        if let Some(before) = resumed {
            let waited = self
                .carriers()
                .any(|of| of.mesh == mesh && of.is_waited_for());
            self.slots.as_mut()[index] = Some(before.resume(&accepted));
            self.settle_mesh(&mesh);
            if let Some(open) = self.open.as_mut().filter(|_| waited) {
                open.recovered = open.recovered.saturating_add(accepted.resume.count());
            }
            return self.resume(now);
        }
        self.slots.as_mut()[index] = Some(Carrier::begin(now, &accepted));
        // A mesh that was asked and cannot replay has a window of its own, whoever else carried; a plain acceptance has none.
        let asked = before.is_some() && accepted.resume != Resume::None;
        let since = match asked {
            true => earliest(open, owed)?,
            false => earliest(Some(open?), owed)?,
        };
        let reason = match asked {
            true => GapReason::Expired,
            false => GapReason::Lost,
        };
        self.settle_mesh(&mesh);
        if open.is_some() {
            self.close();
        }
        Some(Told::Gap {
            from: self.shown(since, now),
            to: now.wall,
            reason,
            count: None,
        })
    }

    /// A link, or the subscription on it, has ended. One that did not carry is no news.
    pub fn handle_ended(&mut self, now: Now, link: L, reason: CloseReason) -> Option<Told> {
        let index = self.index_of(link)?;
        let mut ended = self.slots.as_ref()[index]?;
        let relied = ended.end(now);
        let mates = self.live().filter(|mate| mate.link != Some(link));
        let mates = mates.filter(|mate| mate.mesh == ended.mesh);
        let (alone, covered) = mates.fold((true, false), |(_, covered), mate| {
            (false, covered || mate.covers <= ended.hole)
        });
        ended.owes = !covered;
        if alone {
            let dead = self.carriers().filter(|of| of.link.is_none());
            let mates = dead.filter(|of| of.counts && of.mesh == ended.mesh);
            ended.level = mates.fold(ended.level, |level, mate| later(level, mate.level));
        }
        self.slots.as_mut()[index] = Some(ended);
        let known = self
            .known
            .map_or(ended.level, |known| later(known, ended.level));
        self.known = Some(known);
        let carried = self.live().next().is_some();
        if let Some(open) = &mut self.open {
            if !carried {
                open.deadline = None;
            }
            return None;
        }
        let since = match carried {
            false => known,
            true if relied && !covered => ended.level,
            true => return None,
        };
        self.open = Some(Open {
            since,
            recovered: 0,
            deadline: carried.then(|| now.mono.saturating_add(LINGER)),
        });
        let from = self.shown(since, now);
        Some(Told::Interrupted { from, reason })
    }

    /// An event came under its subscription, whatever became of it. `None`: the link does not carry.
    pub fn handle_event(&mut self, link: L, offset: u64) -> Option<Moved> {
        let carrier = self.carrier_mut(link)?;
        carrier.position.offset = carrier.position.offset.max(offset);
        let replay = carrier.replay.as_mut();
        // An anycast has no offset and is no part of a replay.
        let Some(replay) = replay.filter(|_| offset > 0) else {
            return Some(Moved::Live);
        };
        let of_it = offset <= replay.until;
        replay.left = replay.left.saturating_sub(u64::from(of_it));
        match carrier.end_replay(offset) {
            true if of_it => Some(Moved::ReplayEnds),
            true => Some(Moved::LiveAfterReplay),
            false => Some(Moved::Replayed),
        }
    }

    /// A `progress` came: all up to `offset`, which was admitted `behind_ms` ago, was written before it. `said`: the latest moment at or after
    /// which it can be taken to have been said. `None`: the link does not carry.
    pub fn handle_progress(
        &mut self,
        now: Now,
        link: L,
        offset: u64,
        behind_ms: u64,
        said: Option<Now>,
    ) -> Option<Moved> {
        let carrier = self.carrier_mut(link)?;
        carrier.position.offset = carrier.position.offset.max(offset);
        let ended = carrier.end_replay(offset);
        if carrier.replay.is_some() {
            return Some(Moved::Replayed);
        }
        let said = said.map_or(now, |said| sooner(said, now));
        carrier.level = later(carrier.floor, before(said, behind_ms));
        carrier.lagging = behind_ms > 0;
        Some(match ended {
            true => Moved::LiveAfterReplay,
            false => Moved::Live,
        })
    }

    /// A live station gave publications up. Told unless somebody else carried throughout the window: a mate, or for what a peer was cut off from
    /// that very peer.
    pub fn handle_skipped(&mut self, now: Now, link: L, skip: &Skip) -> Option<Told> {
        let (from, to) = (before(now, skip.from), before(now, skip.to));
        let skipping = self.carrier_mut(link)?;
        // It does not vouch for that window when another skips the same.
        skipping.covers = skipping.covers.max(to.mono);
        if let Some(replay) = &mut skipping.replay {
            replay.left = replay.left.saturating_sub(skip.count);
        }
        let mesh = skipping.mesh;
        let covered = self.live().any(|other| {
            other.link != Some(link)
                && other.covers <= from.mono
                && match skip.peer {
                    Some(peer) => other.station == peer,
                    None => other.mesh == mesh,
                }
        });
        let reason = match skip.peer {
            Some(_) => GapReason::PeerInterrupted,
            None => GapReason::StationSkipped,
        };
        (!covered).then_some(Told::Gap {
            from: from.wall,
            to: to.wall.max(from.wall),
            reason,
            count: (skip.count > 0).then_some(skip.count),
        })
    }

    /// A mesh that was waited for has not come back.
    pub fn handle_timeout(&mut self, now: Now) -> Option<Told> {
        self.poll_timeout().filter(|due| *due <= now.mono)?;
        let due = self.overdue();
        let mesh = due.map(|(_, mesh)| mesh);
        let is_lost = |of: &Carrier<L>| match mesh {
            Some(mesh) => of.is_overdue() && of.mesh == mesh,
            None => of.is_waited_for(),
        };
        let since = self.open.map(|open| open.since);
        let mut window = (since, None);
        for of in self.carriers().filter(|of| is_lost(of)) {
            let again = self.covered_again(&of.mesh).unwrap_or(now.mono);
            let to = window.1.map_or(again, |to: Instant| to.max(again));
            window = (earliest(window.0, Some(of.level)), Some(to));
        }
        let (Some(since), to) = window else {
            return None;
        };
        let to = to.unwrap_or(now.mono);
        for index in 0..self.slots.as_ref().len() {
            let slot = self.slots.as_ref()[index];
            if let Some(mut of) = slot.filter(|of| is_lost(of)) {
                of.owes = self.covered_again(&of.mesh).is_none();
                // It may come back: what is told is not told again then.
                (of.told, of.level) = (of.owes, if of.owes { now } else { of.level });
                self.slots.as_mut()[index] = Some(of);
            }
        }
        if mesh.is_none() {
            self.close();
        }
        let from = self.shown(since, now);
        let ago = now.mono.saturating_since(to).as_millis();
        let to = now
            .wall
            .saturating_sub(u64::try_from(ago).unwrap_or(u64::MAX));
        Some(Told::Gap {
            from,
            to: to.max(from),
            reason: GapReason::Lost,
            count: None,
        })
    }

    /// When a mesh is no longer waited for.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.open {
            Some(open) => open.deadline,
            None => self.overdue().map(|(due, _)| due),
        }
    }

    /// The mesh that is given up next though no interruption waits for it, and when: others carry.
    fn overdue(&self) -> Option<(Instant, [u8; 32])> {
        if self.open.is_some() || self.live().next().is_none() {
            return None;
        }
        let owing = || self.carriers().filter(|of| of.is_overdue());
        let ends = |mesh: [u8; 32]| {
            let of_it = owing().filter(move |of| of.mesh == mesh);
            of_it.map(|of| of.ended).max().unwrap_or_default()
        };
        let due = owing().map(|of| (ends(of.mesh).saturating_add(LINGER), of.mesh));
        due.min()
    }

    /// Since when a mesh brings everything again, if it does.
    fn covered_again(&self, mesh: &[u8; 32]) -> Option<Instant> {
        let mates = self.live().filter(|of| of.mesh == *mesh);
        mates.map(|of| of.covers).min()
    }

    /// The position to ask a station to resume from, if one of its was kept.
    pub fn position_of(&self, station: &NodeId) -> Option<Position> {
        let kept = self.kept(station)?;
        Some(self.slots.as_ref()[kept]?.position)
    }

    /// An earlier run had read a station's stream so far. For one that was not carried yet: the first acceptance is then told as after an
    /// interruption, which [`interrupted_since`](Self::interrupted_since) shows until then. A `level` later than now is of a wall that was set
    /// back since, by who knows how much: hand in 0, and the window has no beginning. False when there is no slot for it.
    pub fn import(
        &mut self,
        now: Now,
        station: NodeId,
        mesh: [u8; 32],
        position: Position,
        level: WallMs,
    ) -> bool {
        let Some(index) = self.slots.as_ref().iter().position(Option::is_none) else {
            return false;
        };
        let level = read_by(now, level);
        self.imported.get_or_insert(now);
        let kept = Carrier::imported(station, mesh, position, level, now.mono);
        self.slots.as_mut()[index] = Some(kept);
        let since = self.open.map_or(level, |open| later(open.since, level));
        self.open = Some(Open {
            since,
            recovered: 0,
            deadline: None,
        });
        true
    }

    /// The carriers and the positions kept.
    pub fn carriers(&self) -> impl Iterator<Item = &Carrier<L>> {
        self.slots.as_ref().iter().flatten()
    }

    /// What to commit: of each station its mesh, where its stream was read up to, and what it admitted before that moment.
    pub fn positions(
        &self,
        now: Now,
    ) -> impl Iterator<Item = (NodeId, [u8; 32], Position, WallMs)> {
        self.carriers()
            .map(move |of| (of.station, of.mesh, of.position, self.shown(of.level, now)))
    }

    /// Up to when a stream was read, as the wall shows it now: never later than it was.
    pub fn shown(&self, level: Now, now: Now) -> WallMs {
        let shown = moved(level, now);
        match self.imported.filter(|_| level.mono == Instant::ORIGIN) {
            Some(at) => {
                let back = at.wall.since(moved(at, now)).unsigned_abs();
                shown.min(level.wall.saturating_sub(back))
            }
            None => shown,
        }
    }

    /// Those of them that carry.
    pub fn live(&self) -> impl Iterator<Item = &Carrier<L>> {
        self.carriers().filter(|of| of.link.is_some())
    }

    /// The carrier on a link.
    pub fn carrier(&self, link: L) -> Option<&Carrier<L>> {
        self.live().find(|of| of.link == Some(link))
    }

    /// Whether a replay that was promised is under way.
    pub fn is_replaying(&self) -> bool {
        self.live().any(|of| of.replay.is_some())
    }

    /// Since when nobody carries it, or what was promised of that time has not come.
    pub fn interrupted_since(&self) -> Option<WallMs> {
        Some(self.open?.since.wall)
    }

    /// Bytes of the slots.
    pub fn memory(&self) -> usize {
        size_of_val(self.slots.as_ref())
    }

    fn carrier_mut(&mut self, link: L) -> Option<&mut Carrier<L>> {
        let all = self.slots.as_mut().iter_mut().flatten();
        all.into_iter().find(|of| of.link == Some(link))
    }

    fn index_of(&self, link: L) -> Option<usize> {
        let of = |slot: &Slot<L>| slot.is_some_and(|of| of.link == Some(link));
        self.slots.as_ref().iter().position(of)
    }

    /// The slot of a station that does not carry, the one read furthest.
    fn kept(&self, station: &NodeId) -> Option<usize> {
        let slots = self.slots.as_ref().iter().enumerate();
        let of = slots.filter_map(|(index, slot)| Some((index, slot.as_ref()?)));
        of.filter(|(_, of)| of.link.is_none() && of.station == *station)
            .max_by_key(|(_, of)| of.level.mono)
            .map(|(index, _)| index)
    }

    /// Where an accepted one goes: its station's slot, a free one, or that of the position read longest ago. `None` when all carry.
    fn place(&self, accepted: &Accepted<L>) -> Option<usize> {
        let slots = self.slots.as_ref();
        self.kept(&accepted.station)
            .or_else(|| slots.iter().position(Option::is_none))
            .or_else(|| {
                let of = slots.iter().enumerate();
                of.filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
                    .filter(|(_, of)| of.link.is_none())
                    .min_by_key(|(_, of)| of.level.mono)
                    .map(|(index, _)| index)
            })
    }

    /// Since when a mesh owes something that was not told.
    fn hole_of(&self, mesh: &[u8; 32]) -> Option<Now> {
        let owing = self.carriers().filter(|of| of.owes && of.mesh == *mesh);
        owing.fold(None, |since, of| earliest(since, Some(of.level)))
    }

    /// A mesh owes nothing any more.
    fn settle_mesh(&mut self, mesh: &[u8; 32]) {
        for of in self.slots.as_mut().iter_mut().flatten() {
            of.owes &= of.mesh != *mesh;
        }
    }

    /// A mesh replays. The interruption is over when no other one is waited for.
    fn resume(&mut self, now: Now) -> Option<Told> {
        let open = self.open?;
        let waited = self.carriers().filter(|of| of.is_waited_for());
        let last = waited.map(|of| of.ended).max();
        let Some(last) = last else {
            self.close();
            for of in self.slots.as_mut().iter_mut().flatten() {
                if let Some(replay) = &mut of.replay {
                    replay.relied = true;
                }
            }
            return Some(Told::Resumed {
                recovered: open.recovered,
            });
        };
        let until = last.saturating_add(LINGER);
        let until = until.max(now.mono.saturating_add(GRACE));
        if let Some(open) = &mut self.open {
            open.deadline.get_or_insert(until);
        }
        None
    }

    /// The interruption is over; who does not carry now is not part of the next one.
    fn close(&mut self) {
        self.open = None;
        self.known = None;
        for of in self.slots.as_mut().iter_mut().flatten() {
            of.counts &= of.link.is_some();
        }
    }
}

/// What an input moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moved {
    /// Nothing of a replay.
    Live,
    /// A live event, by which the replay is known to have ended before.
    LiveAfterReplay,
    /// A promised replay goes on.
    Replayed,
    /// The last of a promised replay.
    ReplayEnds,
}

fn before(now: Now, millis: u64) -> Now {
    now.before(Duration::from_millis(millis))
}

/// When an earlier run had read something, by its wall.
pub(crate) fn read_by(now: Now, wall: WallMs) -> Now {
    before(now, now.wall.since(wall).max(0).unsigned_abs())
}

/// A moment of the past as the wall shows it now: the earlier of what it was then and of what mono says.
fn moved(then: Now, now: Now) -> WallMs {
    let ago = now.mono.saturating_since(then.mono).as_millis();
    let by_mono = now
        .wall
        .saturating_sub(u64::try_from(ago).unwrap_or(u64::MAX));
    then.wall.min(by_mono)
}

fn later(a: Now, b: Now) -> Now {
    if (b.mono, b.wall) > (a.mono, a.wall) {
        b
    } else {
        a
    }
}

fn sooner(a: Now, b: Now) -> Now {
    if (b.mono, b.wall) < (a.mono, a.wall) {
        b
    } else {
        a
    }
}

fn earliest(a: Option<Now>, b: Option<Now>) -> Option<Now> {
    match (a, b) {
        (Some(a), Some(b)) => Some(sooner(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
