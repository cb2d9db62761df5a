//! Every bound, in one place.
//!
//! Decides: how much of anything a machine may keep. Leaves to others: what happens at a bound (each machine says so, and counts it).
//! Believes: no clock. Bounded by: [`ClientLimits::worst_case_bytes`], [`StationLimits::worst_case_bytes`], which tests hold against
//! what the machines report.

use crate::inbound::dedup::SHARES;
use crate::inbound::sources::SourceLimits;

/// The bounds of a [`crate::Client`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Links at once. Default 16. Each costs its read and write buffers in the driver and a publish window here.
    pub links: usize,
    /// Local subscriptions. Default 1024.
    pub subscriptions: usize,
    /// Lanes (one publisher on one topic in one subscription), all subscriptions together. Default 4096.
    pub lanes: usize,
    /// Lanes that fell silent, of which only what they must not deliver twice is kept. Default 16,384, at most 200 bytes each.
    pub resting_lanes: usize,
    /// Publications remembered so that each is delivered once. Default 1,048,576; grown as needed; at most 80 bytes each.
    pub dedup_entries: usize,
    /// Bytes of publications kept in order, holds and streams together. Default 64 MiB; one publisher takes at most a quarter. Notices are no
    /// part of it: each takes a place of its stream.
    pub held_bytes: usize,
    /// Items in one stream before `on_full` decides. Default 1024.
    pub queue_capacity: usize,
    /// Facts one lane holds behind a gap before the gap is given up early. Default 1024.
    pub order_max_buffer: usize,
    /// Unanswered publications per link. Default 256.
    pub publish_window: usize,
    /// Publications on their way out. Default 1024; a publication beyond them would block.
    pub tickets: usize,
    /// Publishers that are open ([`crate::Client::open_publisher`]). Default 256. As many announcements have room beside `tickets`.
    pub open_publishers: usize,
    /// Topics with a numbering of their own. Default 65,536; beyond it the numbering used longest ago begins anew when it is needed.
    pub counters: usize,
    /// Signatures being checked elsewhere. Default 1024; at most 16 of them are of one publication, each under another signature.
    pub pending_verifications: usize,
    /// Public keys kept decoded. Default 4096, at most 400 bytes each.
    pub publishers: usize,
    /// Answers a link's peer has asked for and not read. Default 64; beyond them its link is paused.
    pub answers: usize,
    /// Publishers that are looked up, and the facts that wait for that.
    pub sources: SourceLimits,
    /// Sealed groups joined. Default 64, some 110 KB each; another is refused.
    pub groups: usize,
    /// Key periods held of one group. Default 96: the shortest rotation has 72 that open at once. The one that is over first makes room.
    pub group_periods: usize,
    /// Key periods of one group that were asked for by their ids, under way or remembered. Default 256; beyond them a fact is
    /// `Unopened { unknown_period }`.
    pub group_pulls: usize,
    /// Publishers of one group, in a period each, whose keys are kept derived. Default 1024, at most 65,535; beyond them one that was
    /// not used lately is derived again.
    pub group_publishers: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            links: 16,
            subscriptions: 1024,
            lanes: 4096,
            resting_lanes: 16_384,
            dedup_entries: 1 << 20,
            held_bytes: 64 << 20,
            queue_capacity: 1024,
            order_max_buffer: 1024,
            publish_window: 256,
            tickets: 1024,
            open_publishers: 256,
            counters: 65_536,
            pending_verifications: 1024,
            publishers: 4096,
            answers: 64,
            sources: SourceLimits::default(),
            groups: 64,
            group_periods: 96,
            group_pulls: 256,
            group_publishers: 1024,
        }
    }
}

/// The most of anything that is counted: places are known by 32 bits, and tables have room for twice as many.
pub(crate) const MOST: usize = 1 << 30;
/// The most bytes of anything: half of what a process can address.
pub(crate) const MOST_BYTES: usize = match size_of::<usize>() {
    8 => (1_u64 << 46) as usize,
    _ => MOST,
};
/// What a bound beyond [`MOST`] is told.
pub(crate) const MUST_MOST: &str = "at most 1073741824";
/// What a bound beyond [`MOST_BYTES`] is told.
pub(crate) const MUST_MOST_BYTES: &str =
    "no more than half of what a process can address: 64 TiB, or 1 GiB where that has 32 bits";

/// The sum of `count * bytes`, which saturates.
fn sum(lines: &[(usize, usize)]) -> usize {
    lines.iter().fold(0, |sum, (count, bytes)| {
        sum.saturating_add(count.saturating_mul(*bytes))
    })
}

/// Bytes of tables that are there before anything is in them, and that growing in steps may leave unused.
const FLOOR: usize = 64 * 1024;
/// Counters a dedup keeps for its publishers' shares.
const DEDUP_COUNTERS: usize = SHARES * 4;
/// The longest topic, in bytes.
const TOPIC: usize = 512;
/// Runs of facts refused in the clear that a status has; for another the oldest is forgotten.
pub(crate) const CLEAR_RUNS: usize = 64;

impl ClientLimits {
    /// Facts that may wait for lookups: each is longer than its key and its signature.
    pub(crate) fn held_facts(&self) -> usize {
        let lookups = self.sources.max_publishers;
        let most = lookups.saturating_mul(self.sources.held_per_key as usize);
        most.min(self.held_bytes / 4 / 128)
    }

    /// What [`crate::Client::memory`] reports at most with these limits, in bytes; `usize::MAX` when that is more. A subscription that asks for
    /// a longer queue than `queue_capacity` adds 1152 bytes for each item more.
    pub fn worst_case_bytes(&self) -> usize {
        // Of each, what growing by doubling may take.
        let link = sum(&[
            (1, 4096),
            (self.publish_window, 256),
            (self.subscriptions, 256),
            (self.answers, 128),
        ]);
        // A stream has room for as many notices as items, 256 at least.
        let items = self
            .queue_capacity
            .saturating_add(self.queue_capacity.max(256));
        // Each may be a notice.
        let weight = 256 + TOPIC;
        let subscription = sum(&[
            (1, 4096),
            (items, 384 + weight),
            (self.lanes, 16),
            // A carrier, a position and an answer that is waited for.
            (self.links, 1024),
        ]);
        // Two epochs, each with its places.
        let places = self.order_max_buffer.saturating_add(2).saturating_mul(2);
        let lane = sum(&[(1, 4096 + TOPIC), (places, 768)]);
        let topics = self.lanes.saturating_add(self.resting_lanes);
        // A question that is open is known to its keyring and to the node.
        let group = sum(&[
            (1, 1024 + 4 * TOPIC),
            (self.group_periods, 128),
            (self.group_pulls.saturating_add(1), 192),
            (self.group_publishers, 96),
        ]);
        sum(&[
            (1, 12 * FLOOR + DEDUP_COUNTERS),
            (self.links, link),
            (self.subscriptions, subscription),
            (self.lanes, lane),
            (topics, 2 * TOPIC + 512),
            (self.resting_lanes, 512),
            (self.dedup_entries, 160),
            (1, self.held_bytes),
            (self.lanes.saturating_mul(2).min(1 << 16), 768),
            (self.publishers, 1024),
            (self.pending_verifications, 256),
            (self.tickets, 1024),
            (self.open_publishers, 1024 + 512 + 2 * TOPIC),
            (self.counters, 2 * TOPIC + 512),
            (self.sources.slots(), 512),
            (self.held_facts(), 512),
            // The windows of each realm's lookups.
            (self.subscriptions, 512),
            (self.subscriptions.saturating_mul(self.links), 32),
            (self.groups, group),
            // What was refused in the clear.
            (CLEAR_RUNS, 128 + TOPIC),
            // Each lane may wait for a key.
            (self.lanes, 64),
        ])
    }
}

/// The bounds of a [`crate::Station`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StationLimits {
    /// Links at once. Default 16,384.
    pub links: usize,
    /// Realms with subscriptions. Default 1000; pinned ones have room of their own. One node opens a quarter of them at most.
    pub subscribed_realms: usize,
    /// Topics with a ring, all realms together. Default 10,000. As many filters at most outlive their last holder.
    pub topics: usize,
    /// Subscriptions per topic or filter. Default 10,000.
    pub subscribers_per_topic: usize,
    /// Subscriptions per link. Default 1024.
    pub subscriptions_per_link: usize,
    /// Filters with wildcards per link. Default 64.
    pub filters_per_link: usize,
    /// Publications per ring. Default 10,000.
    pub ring_items: usize,
    /// Bytes of all rings together. Default 256 MiB; the largest ring gives up its oldest first.
    pub ring_bytes: usize,
    /// Publications remembered. Default 4,194,304; grown in steps; at most 80 bytes each.
    pub dedup_entries: usize,
    /// Publications a link may have unanswered. Default 1024.
    pub publish_window: usize,
    /// Public keys kept decoded. Default 65,536, at most 400 bytes each.
    pub publishers: usize,
    /// Answers a link's peer has asked for and not read. Default 4096; beyond them its link is paused.
    pub answers: usize,
    /// Anycast publications waiting for one link. Default 64; a full one is passed over. Those of all links take an eighth of `ring_bytes` at
    /// most, beside it.
    pub ones_per_link: usize,
    /// Bytes of frames under way beyond the first 64 KiB of each, all links together, counted when a frame's length is known. Default 64 MiB. A
    /// link whose next frame does not fit waits its turn ([`crate::Intake::Later`]); its shorter frames are never counted. Drivers keep
    /// these bytes: a buffer that grows by doubling takes twice as much.
    pub read_bytes: usize,
    /// The longest publication object taken, in bytes. Default 1,048,000.
    pub publication_bytes: usize,
}

impl Default for StationLimits {
    fn default() -> Self {
        Self {
            links: 16_384,
            subscribed_realms: 1000,
            topics: 10_000,
            subscribers_per_topic: 10_000,
            subscriptions_per_link: 1024,
            filters_per_link: 64,
            ring_items: 10_000,
            ring_bytes: 256 << 20,
            dedup_entries: 1 << 22,
            publish_window: 1024,
            publishers: 65_536,
            answers: 4096,
            ones_per_link: 64,
            read_bytes: 64 << 20,
            publication_bytes: 1_048_000,
        }
    }
}

impl StationLimits {
    /// Realms that the subscriptions of one node may open.
    pub(crate) fn realms_per_node(&self) -> usize {
        self.subscribed_realms.div_ceil(4)
    }

    /// Bytes of all anycast publications that wait.
    pub(crate) fn ones_bytes(&self) -> usize {
        self.ring_bytes / 8
    }

    /// What [`crate::Station::memory`] reports at most with these limits and so many pinned realms, in bytes; `usize::MAX` when that is more.
    pub fn worst_case_bytes(&self, pinned: usize) -> usize {
        let link = sum(&[
            (1, 4096),
            (self.answers.saturating_add(1), 1024),
            (self.ones_per_link, 128),
            (self.subscriptions_per_link, 256),
            (self.topics, 16),
        ]);
        // A subscription has a place in every topic it matches; filters alone match more than one.
        let subscriptions = self.links.saturating_mul(self.subscriptions_per_link);
        let wide = self
            .links
            .saturating_mul(self.filters_per_link)
            .saturating_mul(self.topics);
        // A topic has a ring, a place for each reader, and answers that wait.
        let waiting = self.links.saturating_mul(self.publish_window);
        let topic = sum(&[(1, 1024 + 2 * TOPIC), (self.ring_items, 160)]);
        let realms = self.subscribed_realms.saturating_add(pinned);
        sum(&[
            (1, 12 * FLOOR + DEDUP_COUNTERS),
            (self.links, link),
            (subscriptions, 1024 + TOPIC),
            (wide, 256),
            (self.topics, topic),
            (waiting, 128),
            (1, self.ring_bytes.saturating_add(self.ones_bytes())),
            (1, self.read_bytes),
            (self.links, 64),
            // Frames that several links are handed.
            (4, 20 * 1024),
            // Filters that outlive their last holder.
            (self.topics, 2 * TOPIC + 512),
            (self.dedup_entries, 160),
            (1 << 16, 256),
            (self.publishers, 1024),
            (realms, 512),
            // Each of its segments may be a node of its own.
            (
                subscriptions.saturating_add(self.topics),
                16 * 512 + 3 * TOPIC,
            ),
            // Deadlines: of links, subscriptions, topics and realms.
            (self.links, 96),
            (subscriptions, 96),
            (self.topics, 96),
            (realms, 96),
        ])
    }
}

/// One line of a memory report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLine {
    /// Which table or buffer.
    pub name: &'static str,
    /// Entries in use.
    pub used: usize,
    /// Entries allowed.
    pub capacity: usize,
    /// Bytes allocated now.
    pub bytes: usize,
}

/// What a machine keeps, table by table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// The tables, in a fixed order.
    pub lines: alloc::vec::Vec<MemoryLine>,
}

impl MemoryReport {
    /// Bytes of all lines together.
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.bytes).sum()
    }

    /// The line of that name.
    pub fn line(&self, name: &str) -> Option<&MemoryLine> {
        self.lines.iter().find(|line| line.name == name)
    }

    pub(crate) fn add(&mut self, name: &'static str, used: usize, capacity: usize, bytes: usize) {
        self.lines.push(MemoryLine {
            name,
            used,
            capacity,
            bytes,
        });
    }
}
