//! What a run hands to the next one: where its stations were read up to, and what its lanes have delivered.
//!
//! Decides: which positions belong to a delivery. Leaves to others: their bytes (wire), keeping them (the application). Believes: the wall
//! in what is committed. Bounded by: 16 marks a stream, 16 stations and 126,000 items of CBOR for the lanes of a commit.
//!
//! A position may be committed only when everything up to it has left the stream. What arrived may still be held in a lane or wait in the
//! stream, so positions are noted, as a *mark* with the stream's end, at moments when no lane holds anything: such a mark may be committed
//! once its end was handed out. Older positions cost a longer replay, of which the edges let nothing through twice.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::subscriptions::Wire;
use super::{Client, WireId};
use crate::delivery::Delivery;
use crate::inbound::continuity::{Carrier, read_by};
use crate::inbound::guess::Guess;
use crate::inbound::lane::Reach;
use crate::notice::{Item, Notice, Numbering};
use crate::refusal::Misuse;
use crate::time::Now;
use crate::wire::{LanePosition, Position, Positions, StationPosition};
use crate::{LinkId, NodeId, SubscriptionId};

/// Items between two marks of a stream that is never drained.
const MARK_EVERY: u64 = 256;
/// Marks kept.
const MARKS: usize = 16;
/// Stations whose positions are taken from an earlier run.
pub(super) const STATIONS: usize = 16;
/// Items of CBOR for the lanes of one commit; what reads it takes a few more.
const ITEMS: usize = 126_000;

/// Where a station's stream was read up to, and since when by both clocks.
#[derive(Clone, Copy, Debug)]
struct Read {
    station: NodeId,
    mesh: [u8; 32],
    position: Position,
    level: Now,
}

/// Positions up to which everything is before the place `end` of the stream.
#[derive(Debug)]
struct Mark {
    end: u64,
    stations: Vec<Read>,
}

/// What a committing subscription keeps.
#[derive(Debug)]
pub(super) struct Commits {
    marks: VecDeque<Mark>,
    /// Edges of an earlier run whose lanes were not heard yet.
    edges: BTreeMap<NodeId, Vec<LanePosition>>,
}

impl Commits {
    pub(super) fn new(now: Now, earlier: Positions) -> Self {
        let mut edges: BTreeMap<NodeId, Vec<LanePosition>> = BTreeMap::new();
        for lane in earlier.lanes() {
            edges.entry(lane.publisher).or_default().push(lane.clone());
        }
        let stations = earlier.stations().iter().take(STATIONS).map(|of| Read {
            station: of.station,
            mesh: of.mesh,
            position: of.position,
            level: read_by(now, of.from),
        });
        let stations = stations.collect();
        Self {
            marks: VecDeque::from([Mark { end: 0, stations }]),
            edges,
        }
    }

    /// What is known of a lane that is made now: its two greatest epochs.
    pub(super) fn take(&mut self, publisher: &NodeId, topic: &str) -> Vec<LanePosition> {
        let Some(of_it) = self.edges.get_mut(publisher) else {
            return Vec::new();
        };
        let taken = of_it.extract_if(.., |lane| *lane.topic == *topic);
        let mut taken: Vec<LanePosition> = taken.collect();
        if of_it.is_empty() {
            self.edges.remove(publisher);
        }
        taken.split_off(taken.len().saturating_sub(2))
    }

    /// A station began to carry: nothing it had before is asked of the marks made until now.
    fn begin(&mut self, station: &Read) {
        for mark in &mut self.marks {
            let known = mark
                .stations
                .iter()
                .any(|one| one.station == station.station);
            if !known {
                mark.stations.push(*station);
            }
        }
    }

    fn mark(&mut self, mark: Mark) {
        if self.marks.back().is_some_and(|last| last.end == mark.end) {
            self.marks.pop_back();
        }
        if self.marks.len() >= MARKS {
            // Every second one; the first may be all that can be committed.
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.marks.push_back(mark);
    }

    /// The last mark of which everything was handed out; those before it are not needed any more.
    fn usable(&mut self, handed: u64) -> &[Read] {
        while self.marks.get(1).is_some_and(|next| next.end <= handed) {
            self.marks.pop_front();
        }
        self.marks.front().map_or(&[], |mark| &mark.stations)
    }

    pub(super) fn memory(&self) -> usize {
        let marks = self.marks.iter().map(|mark| mark.stations.capacity());
        let edges = self.edges.values().flatten();
        marks.sum::<usize>() * size_of::<Read>()
            + edges
                .map(|lane| size_of_val(lane) + lane.topic.len())
                .sum::<usize>()
            + self.marks.capacity() * size_of::<Mark>()
            + size_of::<Self>()
    }
}

impl Client {
    /// What to keep so that the next run goes on behind `delivery`, the last fact its stream has handed out: bytes for
    /// [`crate::Subscribe::resume_from`] (WIRE.md section 11). Everything handed out until now counts as done. Costs a look at every lane
    /// and every item of the subscription.
    ///
    /// In `as_arrives` a fact that came before a missing one may be handed out again by the next run.
    ///
    /// # Errors
    /// `DeadHandle`; `NotCommitting`; `NotCommittable`, which taking the next items cures: all that is late, was dropped, is in conflict or says
    /// what is not known any more has to be taken first, and is in the stream now, though its episode may go on.
    pub fn commit(
        &mut self,
        subscription: SubscriptionId,
        delivery: &Delivery,
    ) -> Result<Vec<u8>, Misuse> {
        self.mark_when_drained(subscription);
        let found = self.subscriptions.get(subscription);
        let found = found.ok_or(Misuse::DeadHandle)?;
        if found.commits.is_none() {
            return Err(Misuse::NotCommitting);
        }
        // Edges pass over what was dropped or in conflict, so that the next run would not hear of it: that is told first.
        self.tell_open_episodes(subscription);
        let mut lanes = self.lanes.iter();
        // What a full stream keeps waiting in its lane has no known edge.
        let waits = lanes.any(|(_, slot)| slot.is_of(subscription) && slot.is_ready());
        let found = self.subscriptions.get_mut(subscription);
        let found = found.ok_or(Misuse::DeadHandle)?;
        let commits = found.commits.as_mut().ok_or(Misuse::NotCommitting)?;
        if waits
            || found.handed != Some(delivery.place)
            || found.stream.is_lagged()
            || found.stream.held().any(lies_below_an_edge)
        {
            return Err(Misuse::NotCommittable);
        }
        let stations = commits.usable(found.stream.places().start);
        let wire = self.wires.get(found.wire).ok_or(Misuse::DeadHandle)?;
        let stations: Vec<StationPosition> = stations
            .iter()
            .map(|of| StationPosition {
                station: of.station,
                mesh: of.mesh,
                position: of.position,
                from: wire.continuity.shown(of.level, self.now),
            })
            .collect();
        let mut edges = Edges::default();
        for lane in commits.edges.values().flatten() {
            let LanePosition {
                publisher, topic, ..
            } = lane;
            edges.add(*publisher, topic, lane.epoch, lane.seq, &lane.untold);
        }
        let topics = &self.topics;
        let lanes = self.lanes.iter();
        for (_, slot) in lanes.filter(|(_, slot)| slot.is_of(subscription)) {
            if let Some((_, topic)) = topics.at(slot.topic()) {
                edges.add_all(slot.publisher, &topic.name, slot.reaches());
            }
        }
        self.resting.sweep(&mut 0, usize::MAX, |key, rest| {
            if let Some(topic) = topics.get(key.topic)
                && key.subscription == subscription
            {
                edges.add_all(key.publisher, &topic.name, rest.reaches());
            }
            true
        });
        if let Some(found) = self.subscriptions.get(subscription) {
            found.stream.held().for_each(|item| edges.wait_for(item));
        }
        Ok(Positions::new(edges.into_lanes(), stations).encode())
    }

    /// Notes the positions of a committing subscription whose stream has been read to its end.
    pub(super) fn mark_when_drained(&mut self, id: SubscriptionId) {
        let found = self.subscriptions.get(id);
        if found.is_some_and(|found| found.commits.is_some() && found.stream.is_empty()) {
            self.mark(id);
        }
    }

    /// The same now and then for one that is never drained, after a lane of it was.
    pub(super) fn mark_now_and_then(&mut self, id: SubscriptionId) {
        let Some(found) = self.subscriptions.get(id) else {
            return;
        };
        let Some(commits) = &found.commits else {
            return;
        };
        let last = commits.marks.back().map_or(0, |mark| mark.end);
        if found.stream.places().end.saturating_sub(last) >= MARK_EVERY {
            self.mark(id);
        }
    }

    /// Notes the positions, unless something that arrived before them is not in the stream yet, or something is not told of it.
    fn mark(&mut self, id: SubscriptionId) {
        let Some(found) = self.subscriptions.get_mut(id) else {
            return;
        };
        let told = found.held_bytes == 0
            && found.waiting.is_empty()
            && found.episode_at.is_none()
            && !found.stream.is_lagged()
            && self.unverified.len() == 0;
        let (Some(commits), Some(wire)) = (&mut found.commits, self.wires.get(found.wire)) else {
            return;
        };
        if told {
            commits.mark(Mark {
                end: found.stream.places().end,
                stations: positions(wire).collect(),
            });
        }
    }

    /// A station carries a wire subscription: it may be committed from there.
    pub(super) fn begin_commits(&mut self, id: WireId, link: LinkId) {
        let Some(wire) = self.wires.get(id) else {
            return;
        };
        let Some(station) = wire.continuity.carrier(link).map(Carrier::station) else {
            return;
        };
        let mut positions = positions(wire);
        let Some(position) = positions.find(|one| one.station == station) else {
            return;
        };
        for holder in &wire.holders {
            let found = self.subscriptions.get_mut(*holder);
            if let Some(commits) = found.and_then(|found| found.commits.as_mut()) {
                commits.begin(&position);
            }
        }
    }

    /// Bytes that wait for a subscription, in its lanes or for a lookup.
    pub(super) fn account_stream(&mut self, id: SubscriptionId, before: usize, after: usize) {
        if let Some(found) = self.subscriptions.get_mut(id) {
            found.held_bytes = found
                .held_bytes
                .saturating_sub(before)
                .saturating_add(after);
        }
    }
}

fn positions(wire: &Wire) -> impl Iterator<Item = Read> + '_ {
    wire.continuity.carriers().map(|of| Read {
        station: of.station(),
        mesh: of.mesh(),
        position: of.position(),
        level: of.level(),
    })
}

/// Whether an item speaks of what its lane had passed before: an edge cannot wait for it.
fn lies_below_an_edge(item: &Item) -> bool {
    match item {
        Item::Fact(fact) => fact.late(),
        Item::Notice(notice) => {
            matches!(
                **notice,
                Notice::Dropped { .. } | Notice::Conflict { .. } | Notice::Resynced { .. }
            )
        }
    }
}

/// An edge and what below it nobody was told of.
type Edge = (u64, Vec<(u64, u64)>);

/// Edges, less what was not handed out yet.
#[derive(Debug, Default)]
struct Edges {
    edges: BTreeMap<(NodeId, String, u64), Edge>,
    /// Of CBOR.
    items: usize,
}

impl Edges {
    fn add_all(&mut self, publisher: NodeId, topic: &str, reaches: [Option<Reach>; 2]) {
        for Reach {
            epoch,
            edge,
            untold,
        } in reaches.into_iter().flatten()
        {
            self.add(publisher, topic, epoch, edge, untold.as_slice());
        }
    }

    fn add(
        &mut self,
        publisher: NodeId,
        topic: &str,
        epoch: u64,
        edge: u64,
        untold: &[(u64, u64)],
    ) {
        let items = self.items + LanePosition::ITEMS + 2 * untold.len();
        if epoch != 0 && !Guess::made_up(epoch) && items <= ITEMS {
            let key = (publisher, topic.to_owned(), epoch);
            self.edges.insert(key, (edge, untold.to_vec()));
            self.items = items;
        }
    }

    /// An item the reader has not taken: its place, and what follows, is not delivered.
    fn wait_for(&mut self, item: &Item) {
        let (publisher, topic, epoch, seq) = match item {
            Item::Fact(fact) if !fact.anycast() => {
                let Some(epoch) = fact.epoch() else { return };
                (fact.publisher(), fact.topic(), epoch, fact.seq())
            }
            Item::Fact(_) => return,
            Item::Notice(notice) => match &**notice {
                Notice::Skipped { of, first, .. } => of.at(*first),
                Notice::Unopened { of, seq, .. } => of.at(*seq),
                _ => return,
            },
        };
        if let Some((edge, _)) = self.edges.get_mut(&(publisher, topic.to_owned(), epoch)) {
            *edge = (*edge).min(seq.saturating_sub(1));
        }
    }

    fn into_lanes(self) -> Vec<LanePosition> {
        let all = self.edges.into_iter();
        all.map(|((publisher, topic, epoch), (seq, mut untold))| {
            // What was skipped before an order was joined anew may have lowered the edge.
            untold.retain_mut(|(first, last)| {
                *last = (*last).min(seq);
                first <= last
            });
            LanePosition {
                publisher,
                topic: topic.into(),
                epoch,
                seq,
                untold,
            }
        })
        .collect()
    }
}

impl Numbering {
    fn at(&self, seq: u64) -> (NodeId, &str, u64, u64) {
        (self.publisher, &self.topic, self.epoch, seq)
    }
}
