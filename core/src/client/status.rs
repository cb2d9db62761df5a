//! What a node tells of itself.
//!
//! Decides: nothing. Leaves to others: showing it. Believes: no clock. Bounded by: one line per link, station and table.

use alloc::vec::Vec;

use super::Client;
use super::opening::RefusedInClear;
use super::timers::Timer;
use crate::action::{Action, StationRef};
use crate::code::{CloseReason, DiagnosticCode, DropReason, SourceRefusal, SubscribeRefusal};
use crate::counters::FaultCounts;
use crate::error::LinkError;
use crate::limits::MemoryReport;
use crate::link::Probes;
use crate::time::{Duration, Instant, Now, WallMs};
use crate::{LinkId, NodeId, SubscriptionId, Ticket};

/// Counters since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) announcements_dropped: u64,
    pub(super) clear_refused: u64,
    pub(super) clock_jumps: u64,
    pub(super) dials_failed: u64,
    pub(super) dropped: u64,
    pub(super) links_failed: u64,
    pub(super) stray_pongs: u64,
    pub(super) unasked_frames: u64,
    pub(super) unopened: u64,
    pub(super) unknown_frames: u64,
}

/// Where the link to a station is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkState {
    /// The driver was asked to dial.
    Dialling,
    /// A transport is up; the handshake is under way.
    Handshaking,
    /// It is up.
    Up,
    /// It will be dialled again then.
    Waiting {
        /// When.
        until: Instant,
    },
}

/// The link to one configured station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStatus {
    /// Which station.
    pub station: StationRef,
    /// Its link, while there is one.
    pub link: Option<LinkId>,
    /// Where it is.
    pub state: LinkState,
    /// Who is at the other end.
    pub peer: Option<NodeId>,
    /// Since when its state is what it is.
    pub since: WallMs,
    /// When a frame was last taken off the link; `None` before the first.
    pub heard: Option<WallMs>,
    /// How long the answer to the last answered probe took.
    pub round_trip: Option<Duration>,
    /// Counts of the link's probes.
    pub probes: Probes,
    /// Publications it has not answered.
    pub unanswered: usize,
    /// Links to this station that came up so far.
    pub links: u64,
    /// Why the last link to it ended.
    pub last_end: Option<CloseReason>,
    /// The fine reason, when this side found one.
    pub last_error: Option<LinkError>,
    /// Why the last attempt to reach it failed, as the driver said it; `None` once one did not.
    pub dial_failure: Option<&'static str>,
}

/// A node at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientStatus {
    /// Its identity.
    pub id: NodeId,
    /// One line per configured station.
    pub links: Vec<LinkStatus>,
    /// Local subscriptions.
    pub subscriptions: usize,
    /// Publications not settled.
    pub unsettled: usize,
    /// Lanes in use.
    pub lanes: usize,
    /// Fill of the memory of publications, in percent.
    pub dedup_fill: u8,
    /// Publications passed over, by reason.
    pub faults: FaultCounts,
    /// Publishers that are looked up.
    pub sources: SourceStatus,
    /// Facts that were refused because they were in the clear: the last 64 runs of them.
    pub refused_in_clear: Vec<RefusedInClear>,
    /// Every other counter, by name.
    pub counters: Vec<(&'static str, u64)>,
}

/// What became of facts whose publishers are looked up, and of the lookups.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceStatus {
    /// Facts that a source did not admit, by reason, once for each subscription. Who is known to be refused is not remembered fact by fact, and its
    /// signature is not looked at: each copy that comes then counts again, and so does what others send in its name.
    pub refused: Vec<(SourceRefusal, u64)>,
    /// Facts that were dropped without a verdict, by reason, once for each subscription. Where no lookup was left or nothing more may wait, their
    /// signature was not looked at.
    pub dropped: Vec<(DropReason, u64)>,
    /// Facts that wait for a lookup now.
    pub held: usize,
    /// Publishers that are admitted now, once for each realm and source.
    pub verdicts: usize,
    /// Lookups under way.
    pub lookups: usize,
}

/// A subscription at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionStatus {
    /// Stations that accepted it and have not withdrawn it.
    pub carriers: usize,
    /// Items its reader has not taken.
    pub queued: usize,
    /// Facts put into its stream.
    pub delivered: u64,
    /// Those of them that were late.
    pub late: u64,
    /// Facts older than the newest (`latest_only`).
    pub superseded: u64,
    /// Facts whose publisher its sources refuse, and their copies: see [`SourceStatus::refused`].
    pub source_refused: u64,
    /// Facts that wait behind a missing one.
    pub held: usize,
    /// Why a station refused it last, if one did and none accepted it since. It is asked again.
    pub refused: Option<SubscribeRefusal>,
    /// Since when no station carries it, if one did.
    pub interrupted_since: Option<WallMs>,
    /// Whether a station replays what was missed.
    pub replaying: bool,
}

impl Client {
    /// Something happened that is worth a line in a log.
    pub(super) fn report(
        &mut self,
        code: DiagnosticCode,
        station: Option<StationRef>,
        reason: &'static str,
    ) {
        let now = self.now.mono;
        let due = self.diagnostics.record(now, code, station, reason);
        self.actions.extend(due.map(Action::Report));
        self.arm_reports();
    }

    pub(super) fn report_timeout(&mut self, now: Now) {
        self.report_at = None;
        while let Some(due) = self.diagnostics.handle_timeout(now.mono) {
            self.actions.push_back(Action::Report(due));
        }
        self.arm_reports();
    }

    fn arm_reports(&mut self) {
        let at = self.diagnostics.poll_timeout();
        let armed = core::mem::replace(&mut self.report_at, at);
        if armed != at {
            self.disarm(armed, Timer::Report);
            self.timers.extend(at.map(|at| (at, Timer::Report)));
        }
    }

    /// How often it has happened since the node started.
    pub fn reported(&self, code: DiagnosticCode) -> u64 {
        self.diagnostics.total(code)
    }

    /// What it does now and has done so far.
    pub fn status(&self) -> ClientStatus {
        let counts = &self.counts;
        let links = self.stations.iter().enumerate().map(|(n, dialled)| {
            let side = dialled.link.and_then(|link| self.links.get(link));
            LinkStatus {
                station: StationRef(n as u16),
                link: dialled.link,
                state: match (side, dialled.retry_at) {
                    (Some(side), _) if side.is_live() => LinkState::Up,
                    (Some(_), _) => LinkState::Handshaking,
                    (None, Some(until)) => LinkState::Waiting { until },
                    (None, None) => LinkState::Dialling,
                },
                peer: side.and_then(|side| side.base.peer()).map(|peer| peer.id),
                since: side.map_or(dialled.since, |side| side.base.since()).wall,
                heard: side.and_then(|side| side.base.heard()).map(|at| at.wall),
                round_trip: side
                    .and_then(|side| side.base.answered())
                    .map(|answered| answered.round_trip()),
                probes: side.map_or_else(Probes::default, |side| side.base.probes()),
                unanswered: side.map_or(0, |side| side.unanswered.len()),
                links: dialled.links,
                last_end: dialled.last_end,
                last_error: dialled.last_error,
                dial_failure: dialled.dial_failure,
            }
        });
        ClientStatus {
            id: self.id,
            links: links.collect(),
            subscriptions: self.subscriptions.len(),
            unsettled: self.tickets.len(),
            lanes: self.lanes.len(),
            dedup_fill: self.dedup.fill(),
            faults: self.faults.clone(),
            sources: SourceStatus {
                refused: self.verdicts.refused().collect(),
                dropped: self.verdicts.dropped().collect(),
                held: self.verdicts.holds.len(),
                verdicts: self.verdicts.machine.admitted(self.now),
                lookups: self.verdicts.machine.lookups(),
            },
            refused_in_clear: self.groups.clear.iter().cloned().collect(),
            counters: alloc::vec![
                ("announcements_dropped", counts.announcements_dropped),
                ("clear_refused", counts.clear_refused),
                ("clock_jumps", counts.clock_jumps),
                ("dials_failed", counts.dials_failed),
                ("dropped", counts.dropped),
                ("links_failed", counts.links_failed),
                ("stray_pongs", counts.stray_pongs),
                ("unasked_frames", counts.unasked_frames),
                ("unknown_frames", counts.unknown_frames),
                ("unopened", counts.unopened),
            ],
        }
    }

    /// One subscription; `None` once its stream was read to its end.
    pub fn subscription(&self, id: SubscriptionId) -> Option<SubscriptionStatus> {
        let found = self.subscriptions.get(id)?;
        let lanes = self.lanes.iter().filter(|(_, slot)| slot.is_of(id));
        let (held, superseded) = lanes
            .fold((0, found.superseded), |(held, superseded), (_, slot)| {
                (held + slot.held(), superseded + slot.superseded())
            });
        let wire = self.wires.get(found.wire);
        Some(SubscriptionStatus {
            carriers: wire.map_or(0, |wire| wire.continuity.live().count()),
            queued: found.queued(),
            delivered: found.delivered,
            late: found.late,
            superseded,
            source_refused: found.source_refused,
            held,
            refused: found.refused,
            interrupted_since: wire.and_then(|wire| wire.continuity.interrupted_since()),
            replaying: self.is_replaying(found.wire),
        })
    }

    /// What it keeps, table by table.
    pub fn memory(&self) -> MemoryReport {
        let limits = &self.config.limits;
        let mut report = MemoryReport::default();
        let links: usize = self.links.iter().map(|(_, side)| side.memory()).sum();
        report.add(
            "links",
            self.links.len(),
            limits.links,
            links + self.links.memory(),
        );
        let streams: usize = self
            .subscriptions
            .iter()
            .map(|(_, found)| found.memory())
            .sum();
        let wires: usize = self.wires.iter().map(|(_, wire)| wire.memory()).sum();
        let bytes = streams + self.subscriptions.memory() + wires + self.wires.memory();
        report.add(
            "subscriptions",
            self.subscriptions.len(),
            limits.subscriptions,
            bytes,
        );
        let lanes: usize = self.lanes.iter().map(|(_, slot)| slot.memory()).sum();
        let spare = self.spare.as_ref().map_or(0, |work| work.memory());
        let bytes = lanes + spare + self.lanes.memory();
        report.add("lanes", self.lanes.len(), limits.lanes, bytes);
        let names: usize = self
            .topics
            .iter()
            .map(|(_, topic)| 2 * topic.name.capacity() + 64)
            .sum();
        let most = limits.lanes + limits.resting_lanes;
        report.add(
            "topics",
            self.topics.len(),
            most,
            names + self.topics.memory(),
        );
        let resting = &self.resting;
        report.add(
            "resting_lanes",
            resting.len(),
            resting.capacity(),
            resting.memory(),
        );
        report.add(
            "held_bytes",
            self.held_bytes,
            limits.held_bytes,
            self.held_bytes,
        );
        report.add(
            "dedup",
            self.dedup.len(),
            self.dedup.capacity(),
            self.dedup.memory(),
        );
        report.add(
            "numberings",
            self.tags.len(),
            self.tags.capacity(),
            self.tags.memory(),
        );
        let publishers = &self.publishers;
        report.add(
            "publishers",
            publishers.len(),
            publishers.capacity(),
            publishers.memory(),
        );
        let machine = &self.verdicts.machine;
        report.add(
            "sources",
            machine.len(),
            machine.capacity(),
            self.verdicts.memory(),
        );
        let holds = &self.verdicts.holds;
        report.add(
            "source_holds",
            holds.len(),
            limits.held_facts(),
            holds.memory(),
        );
        let pending = self.unverified.memory();
        report.add(
            "verifications",
            self.unverified.len(),
            limits.pending_verifications,
            pending,
        );
        report.add(
            "tickets",
            self.tickets.len(),
            limits.tickets + limits.open_publishers,
            self.tickets.memory() + self.displaced.capacity() * size_of::<Ticket>(),
        );
        let names: usize = self
            .open_publishers
            .iter()
            .map(|(_, open)| open.memory())
            .sum();
        report.add(
            "open_publishers",
            self.open_publishers.len(),
            limits.open_publishers,
            names + self.open_publishers.memory(),
        );
        report.add(
            "counters",
            self.counters.len(),
            limits.counters,
            self.counters.memory(),
        );
        report.add(
            "groups",
            self.groups.len(),
            limits.groups,
            self.groups.memory(),
        );
        report
    }
}
