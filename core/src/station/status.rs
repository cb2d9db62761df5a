//! What a station tells of itself.
//!
//! Decides: nothing. Leaves to others: showing it. Believes: no clock. Bounded by: one line per link and per table.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Station, TopicId};
use crate::counters::FaultCounts;
use crate::limits::MemoryReport;
use crate::link::Probes;
use crate::time::{Duration, Now, WallMs};
use crate::wire::Role;
use crate::{LinkId, NodeId, RealmId};

/// Counters since the station started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) admitted: u64,
    pub(super) clock_jumps: u64,
    pub(super) dead_letters: u64,
    pub(super) dedup_full: u64,
    pub(super) events: u64,
    pub(super) flushes: u64,
    pub(super) key_mismatches: u64,
    pub(super) lingers_cut: u64,
    pub(super) links_failed: u64,
    pub(super) links_refused: u64,
    pub(super) publications_refused: u64,
    pub(super) readers_cut_off: u64,
    pub(super) reads_later: u64,
    pub(super) replayed: u64,
    pub(super) resumed: u64,
    pub(super) resumes_expired: u64,
    pub(super) ring_warnings: u64,
    pub(super) skipped: u64,
    pub(super) skips: u64,
    pub(super) stray_pongs: u64,
    pub(super) subscriptions_refused: u64,
    pub(super) topics_refused: u64,
    pub(super) unknown_frames: u64,
}

/// Warnings kept.
const WARNINGS: usize = 16;

/// A ring that was so full for a reader, level with it before, that the reader is near to losing publications. Told when it is two fifths of
/// the ring behind, once a minute at most for each topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingWarning {
    /// When.
    pub at: Now,
    /// The topic's realm.
    pub realm: RealmId,
    /// The topic.
    pub topic: String,
    /// How many publications the slowest such reader had not read.
    pub behind: u64,
    /// How many the ring holds at most.
    pub capacity: u64,
}

/// One link of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StationLink {
    /// Its handle.
    pub link: LinkId,
    /// Who is at the other end; `None` before the handshake is done.
    pub peer: Option<NodeId>,
    /// What it is.
    pub role: Option<Role>,
    /// Since when it is up, or shaking hands.
    pub since: WallMs,
    /// When a frame was last taken off it; `None` before the first.
    pub heard: Option<WallMs>,
    /// How long the answer to the last answered probe took.
    pub round_trip: Option<Duration>,
    /// Counts of its probes.
    pub probes: Probes,
    /// Its subscriptions.
    pub subscriptions: usize,
    /// Publications it has not been answered.
    pub unanswered: usize,
}

/// A station at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StationStatus {
    /// Its identity.
    pub id: NodeId,
    /// Its links, in the order of their handles.
    pub links: Vec<StationLink>,
    /// Realms it holds.
    pub realms: usize,
    /// Filters somebody holds or held until lately.
    pub interests: usize,
    /// Topics with a ring.
    pub topics: usize,
    /// Subscriptions of all links.
    pub subscriptions: usize,
    /// Rings whose readers are slow: the last 16 warnings.
    pub warnings: Vec<RingWarning>,
    /// Publications passed over, by reason.
    pub faults: FaultCounts,
    /// Every other counter, by name.
    pub counters: Vec<(&'static str, u64)>,
}

impl Station {
    /// A reader is far behind in a ring.
    pub(super) fn warn(&mut self, now: Now, id: TopicId, behind: u64) {
        let Some(topic) = self.topics.get(id) else {
            return;
        };
        self.counts.ring_warnings += 1;
        if self.warnings.len() == WARNINGS {
            self.warnings.pop_front();
        }
        self.warnings.push_back(RingWarning {
            at: now,
            realm: topic.realm,
            topic: topic.name.clone(),
            behind,
            capacity: topic.ring.capacity() as u64,
        });
    }

    /// What it does now and has done so far.
    pub fn status(&self) -> StationStatus {
        let counts = &self.counts;
        let rings = self.topics.gave_up();
        StationStatus {
            id: self.id,
            links: self
                .links
                .iter()
                .map(|(link, side)| StationLink {
                    link,
                    peer: side.base.peer().map(|peer| peer.id),
                    role: side.base.peer().map(|peer| peer.role),
                    since: side.base.since().wall,
                    heard: side.base.heard().map(|at| at.wall),
                    round_trip: side.base.answered().map(|answered| answered.round_trip()),
                    probes: side.base.probes(),
                    subscriptions: side.readers.len(),
                    unanswered: side.unanswered,
                })
                .collect(),
            realms: self.realms.len(),
            interests: self
                .realms
                .values()
                .map(|realm| realm.interests().len())
                .sum(),
            topics: self.topics.len(),
            subscriptions: self.readers.len(),
            warnings: self.warnings.iter().cloned().collect(),
            faults: self.faults.clone(),
            counters: alloc::vec![
                ("admitted", counts.admitted),
                ("clock_jumps", counts.clock_jumps),
                ("dead_letters", counts.dead_letters),
                ("dedup_full", counts.dedup_full),
                ("events", counts.events),
                ("flushes", counts.flushes),
                ("key_mismatches", counts.key_mismatches),
                ("lingers_cut", counts.lingers_cut),
                ("links_failed", counts.links_failed),
                ("links_refused", counts.links_refused),
                ("publications_refused", counts.publications_refused),
                ("readers_cut_off", counts.readers_cut_off),
                ("reads_later", counts.reads_later),
                ("replayed", counts.replayed),
                ("resumed", counts.resumed),
                ("resumes_expired", counts.resumes_expired),
                ("ring_warnings", counts.ring_warnings),
                ("rings_gave_up_budget", rings.budget),
                ("rings_gave_up_expired", rings.expired),
                ("rings_gave_up_overrun", rings.overrun),
                ("skipped", counts.skipped),
                ("skips", counts.skips),
                ("stray_pongs", counts.stray_pongs),
                ("subscriptions_refused", counts.subscriptions_refused),
                ("topics_refused", counts.topics_refused),
                ("unknown_frames", counts.unknown_frames),
            ],
        }
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
            links + self.links.memory() + self.stretches.memory(),
        );
        let readers: usize = self.readers.iter().map(|(_, reader)| reader.memory()).sum();
        let most = limits.links * limits.subscriptions_per_link;
        report.add(
            "subscriptions",
            self.readers.len(),
            most,
            readers + self.readers.memory(),
        );
        let rings: usize = self.topics.iter().map(|(_, topic)| topic.memory()).sum();
        report.add(
            "topics",
            self.topics.len(),
            limits.topics,
            rings + self.topics.memory(),
        );
        report.add(
            "ring_bytes",
            self.topics.bytes(),
            limits.ring_bytes,
            self.topics.bytes(),
        );
        report.add(
            "ones_bytes",
            self.ones_bytes,
            limits.ones_bytes(),
            self.ones_bytes,
        );
        let reads = &self.reads;
        report.add(
            "read_bytes",
            reads.spent(),
            limits.read_bytes,
            reads.spent() + reads.memory(),
        );
        report.add(
            "dedup",
            self.dedup.len(),
            self.dedup.capacity(),
            self.dedup.memory(),
        );
        let tags = &self.runs;
        report.add("numberings", tags.len(), tags.capacity(), tags.memory());
        let publishers = &self.publishers;
        report.add(
            "publishers",
            publishers.len(),
            publishers.capacity(),
            publishers.memory(),
        );
        let realms = self.realms.len();
        report.add(
            "realms",
            realms,
            limits.subscribed_realms,
            realms * size_of::<super::Realm>(),
        );
        let interests = self.realms.values().map(super::Realm::interests);
        let (used, bytes) = interests.fold((0, 0), |(used, bytes), filters| {
            (used + filters.len(), bytes + filters.memory())
        });
        report.add("interests", used, most + limits.topics, bytes);
        report.add(
            "timers",
            self.timers.len(),
            usize::MAX,
            self.timers.len() * 48,
        );
        report
    }
}

impl super::StationSide {
    fn memory(&self) -> usize {
        self.base.memory()
            + self.round.memory()
            + self.moved.capacity() * 8
            + self.readers.len() * 48
    }
}
