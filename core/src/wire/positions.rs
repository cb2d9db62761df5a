//! Committed positions: what a node exports and a later run imports (WIRE.md section 11).
//!
//! Decides: their one encoding. Leaves to others: what is committed when. Believes: no clock. Bounded by: the bytes handed in, and their
//! 131,072 items; 16 ranges a lane.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::cbor::{self, CborFault, Reader, Value, Writer};
use super::fields;
use super::frames::{Position, VERSION, write_position};
use crate::NodeId;
use crate::inbound::order::UNTOLD;
use crate::time::WallMs;
use crate::topic::check_topic;

/// How far one publisher's numbering of one topic was delivered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LanePosition {
    /// Whose numbering.
    pub publisher: NodeId,
    /// Of which topic.
    pub topic: Box<str>,
    /// Which numbering.
    pub epoch: u64,
    /// All up to this one was delivered or told of, but what is in `untold`; 0 when none was.
    pub seq: u64,
    /// Ranges `(first, last)` of numbers from 1 to `seq` that were neither delivered nor told of, since the node heard the numbering only from
    /// its middle. They rise and do not touch; 16 at most.
    pub untold: Vec<(u64, u64)>,
}

impl LanePosition {
    /// Items of CBOR it takes when `untold` is empty; each range takes two more.
    pub(crate) const ITEMS: usize = 11;

    fn order(&self) -> (&NodeId, &str, u64) {
        (&self.publisher, &self.topic, self.epoch)
    }

    fn before(&self, other: &Self) -> bool {
        self.order() < other.order()
    }
}

/// Where one station's stream was read up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationPosition {
    /// Which station.
    pub station: NodeId,
    /// Its mesh.
    pub mesh: [u8; 32],
    /// Up to where.
    pub position: Position,
    /// All it admitted before this was read: where a gap begins that it cannot close.
    pub from: WallMs,
}

impl StationPosition {
    fn before(&self, other: &Self) -> bool {
        self.station < other.station
    }
}

/// Why bytes are no committed positions: they are not those that were exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PositionsFault {
    /// A value of the wrong kind, shape or range; or lanes or stations that are not sorted, or stand twice.
    BadField,
    /// Another version than 1.
    BadVersion,
    /// They break the CBOR rule.
    Cbor(CborFault),
    /// A key is missing.
    MissingField,
    /// They are no map.
    NotAMap,
    /// A key that is none of the three.
    UnknownField,
}

impl PositionsFault {
    /// Its text, as in WIRE.md.
    pub const fn text(self) -> &'static str {
        match self {
            Self::BadField => "bad_field",
            Self::BadVersion => "bad_version",
            Self::Cbor(fault) => fault.text(),
            Self::MissingField => "missing_field",
            Self::NotAMap => "not_a_map",
            Self::UnknownField => "unknown_field",
        }
    }
}

impl fmt::Display for PositionsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for PositionsFault {}

/// Lanes and stations, sorted and without doubles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    lanes: Vec<LanePosition>,
    stations: Vec<StationPosition>,
}

impl Positions {
    /// Sorts both; of lanes that occur twice the one further on stays, of stations the later one.
    pub fn new(mut lanes: Vec<LanePosition>, mut stations: Vec<StationPosition>) -> Self {
        lanes.sort_unstable_by(|a, b| a.order().cmp(&b.order()).then(b.seq.cmp(&a.seq)));
        lanes.dedup_by(|later, earlier| later.order() == earlier.order());
        stations.reverse();
        stations.sort_by_key(|station| station.station);
        stations.dedup_by_key(|station| station.station);
        Self { lanes, stations }
    }

    /// The lanes by publisher, topic and epoch.
    pub fn lanes(&self) -> &[LanePosition] {
        &self.lanes
    }

    /// The stations by id.
    pub fn stations(&self) -> &[StationPosition] {
        &self.stations
    }

    /// They are used when the wall shows that. Where one says that it was read later, the wall was set back since, by who knows how much: then
    /// nothing is known of when any was read.
    pub(crate) fn read_at(&mut self, wall: WallMs) {
        if self.stations.iter().any(|of| of.from > wall) {
            for of in &mut self.stations {
                of.from = WallMs::new(0);
            }
        }
    }

    /// The bytes to keep.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 160 * (self.lanes.len() + self.stations.len()));
        let w = &mut Writer::new(&mut out);
        w.map(3).text("lanes").array(self.lanes.len());
        for lane in &self.lanes {
            w.map(5).text("seq").unsigned(lane.seq);
            w.text("epoch").unsigned(lane.epoch);
            w.text("topic").text(&lane.topic);
            w.text("untold").array(2 * lane.untold.len());
            for (first, last) in &lane.untold {
                w.unsigned(*first).unsigned(*last);
            }
            w.text("publisher").bytes(lane.publisher.as_bytes());
        }
        w.text("version").unsigned(VERSION.into());
        w.text("stations").array(self.stations.len());
        for station in &self.stations {
            w.map(4).text("from").unsigned(station.from.as_millis());
            w.text("mesh").bytes(&station.mesh);
            w.text("station").bytes(station.station.as_bytes());
            write_position(w.text("position"), station.position);
        }
        out
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When it is not that.
    pub fn decode(bytes: &[u8]) -> Result<Self, PositionsFault> {
        cbor::check(bytes, false).map_err(PositionsFault::Cbor)?;
        let entries = Reader::new(bytes).entries();
        let entries = entries.ok_or(PositionsFault::NotAMap)?;
        let mut version = None;
        let mut all = entries;
        while let Some(entry) = all.next_entry() {
            let (key, value) = entry.ok_or(PositionsFault::BadField)?;
            if key == b"version" {
                version = Some(value);
            }
        }
        if version.ok_or(PositionsFault::MissingField)? != Value::Unsigned(VERSION.into()) {
            return Err(PositionsFault::BadVersion);
        }
        let (mut lanes, mut stations) = (None, None);
        let mut all = entries;
        while let Some(Some(entry)) = all.next_entry() {
            match entry {
                (b"version", _) => {}
                (b"lanes", value) => lanes = Some(list(value, lane, LanePosition::before)?),
                (b"stations", value) => {
                    stations = Some(list(value, station, StationPosition::before)?);
                }
                _ => return Err(PositionsFault::UnknownField),
            }
        }
        Ok(Self {
            lanes: lanes.ok_or(PositionsFault::MissingField)?,
            stations: stations.ok_or(PositionsFault::MissingField)?,
        })
    }
}

/// An array whose items are well formed and strictly sorted.
fn list<T>(
    value: Value<'_>,
    read: fn(Value<'_>) -> Option<T>,
    before: fn(&T, &T) -> bool,
) -> Result<Vec<T>, PositionsFault> {
    items(value, read)
        .filter(|items| items.is_sorted_by(before))
        .ok_or(PositionsFault::BadField)
}

fn items<T>(value: Value<'_>, read: fn(Value<'_>) -> Option<T>) -> Option<Vec<T>> {
    let Value::Array(bytes) = value else {
        return None;
    };
    let mut reader = Reader::new(bytes);
    (0..reader.array()?)
        .map(|_| read(reader.value()?))
        .collect()
}

/// What was neither delivered nor told of up to `seq`.
fn untold(value: Value<'_>, seq: u64) -> Option<Vec<(u64, u64)>> {
    let numbers = items(value, fields::id)?;
    let (ranges, []) = numbers.as_chunks() else {
        return None;
    };
    let ranges: Vec<(u64, u64)> = ranges.iter().map(|[first, last]| (*first, *last)).collect();
    let apart = ranges.is_sorted_by(|one, next| one.1.saturating_add(1) < next.0);
    let rise = ranges.iter().all(|(first, last)| first <= last);
    let below = ranges.last().is_none_or(|(_, last)| *last <= seq);
    (apart && rise && below && ranges.len() <= UNTOLD).then_some(ranges)
}

fn lane(value: Value<'_>) -> Option<LanePosition> {
    let mut entries = value.entries()?;
    let (mut seq, mut epoch, mut topic, mut ranges, mut publisher) = (None, None, None, None, None);
    while let Some(entry) = entries.next_entry() {
        match entry? {
            (b"seq", value) => seq = Some(fields::uint(value)?),
            (b"epoch", value) => epoch = Some(fields::id(value)?),
            (b"topic", value) => {
                let text = value.text()?;
                check_topic(text).ok()?;
                topic = Some(text.into());
            }
            // It sorts behind `seq`.
            (b"untold", value) => ranges = Some(untold(value, seq?)?),
            (b"publisher", value) => publisher = Some(NodeId::new(*value.array_of()?)),
            _ => return None,
        }
    }
    Some(LanePosition {
        publisher: publisher?,
        topic: topic?,
        epoch: epoch?,
        seq: seq?,
        untold: ranges?,
    })
}

fn station(value: Value<'_>) -> Option<StationPosition> {
    let mut entries = value.entries()?;
    let (mut from, mut mesh, mut station, mut position) = (None, None, None, None);
    while let Some(entry) = entries.next_entry() {
        match entry? {
            (b"from", value) => from = Some(WallMs::new(fields::uint(value)?)),
            (b"mesh", value) => mesh = Some(*value.array_of()?),
            (b"station", value) => station = Some(NodeId::new(*value.array_of()?)),
            (b"position", value) => position = Some(fields::position(value)?),
            _ => return None,
        }
    }
    Some(StationPosition {
        station: station?,
        mesh: mesh?,
        position: position?,
        from: from?,
    })
}

#[cfg(test)]
mod tests;
