//! A station by hand: who publishes, who reads, and what each was told.

use tidings::wire::{self, Frame, Phase, Position, ResumeOutcome};
use tidings::{Station, StationConfig, StationLimits};

use super::common::{Fact, Far, TOPIC, at, counter, move_to, realm, signer, station};

/// A frame of a subscription's stream, or the answer that began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Event(u64),
    Progress { offset: u64, behind_ms: u64 },
    Skipped { count: u64, from: u64, to: u64 },
    Subscribed(Position, ResumeOutcome),
    Other,
}

pub(crate) fn got(bodies: &[Vec<u8>]) -> Vec<Got> {
    let got = |body: &Vec<u8>| match Frame::decode(body, Phase::Established).expect("a frame") {
        Frame::Event(event) => Got::Event(event.offset),
        Frame::Progress(progress) => Got::Progress {
            offset: progress.offset,
            behind_ms: progress.behind_ms,
        },
        Frame::Skipped(skipped) => Got::Skipped {
            count: skipped.count,
            from: skipped.from,
            to: skipped.to,
        },
        Frame::Subscribed(subscribed) => Got::Subscribed(subscribed.position, subscribed.resume),
        _ => Got::Other,
    };
    bodies.iter().map(got).collect()
}

pub(crate) fn events(offsets: impl IntoIterator<Item = u64>) -> Vec<Got> {
    offsets.into_iter().map(Got::Event).collect()
}

/// A station with rings of a few publications, a link that publishes, and as many that read as are wanted.
pub(crate) struct World {
    pub(crate) station: Station,
    pub(crate) writer: Far,
    pub(crate) published: u64,
    pub(crate) last_id: u64,
    pub(crate) now_ms: u64,
}

impl World {
    pub(crate) fn new(ring_items: usize) -> Self {
        let mut limits = StationLimits::default();
        limits.ring_items = ring_items;
        Self::with(limits)
    }

    pub(crate) fn with(limits: StationLimits) -> Self {
        let mut station = station(StationConfig::new(signer(1)).limits(limits));
        let writer = Far::dial(&mut station, at(0), signer(7));
        Self {
            station,
            writer,
            published: 0,
            last_id: 0,
            now_ms: 0,
        }
    }

    pub(crate) fn reader(&mut self, key: u64) -> Far {
        Far::dial(&mut self.station, at(self.now_ms), signer(key))
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now_ms += ms;
        move_to(&mut self.station, at(self.now_ms));
        // What is written has the time of the last input.
        let turn = self.station.handle_timeout(at(self.now_ms));
        assert_eq!(turn, tidings::Turn::Done);
    }

    /// Publishes at once, whoever waits for the answer. How long the object is.
    pub(crate) fn publish_on(&mut self, topic: &str, ttl_ms: Option<u32>) -> usize {
        self.publish_fact(&Fact {
            topic,
            ttl_ms,
            published_at: at(self.now_ms).wall,
            ..Fact::numbered(self.published + 1)
        })
    }

    /// The same for a fact with the next number.
    pub(crate) fn publish_fact(&mut self, fact: &Fact<'_>) -> usize {
        self.published += 1;
        let object = fact.sign(&signer(7));
        let now = at(self.now_ms);
        let taken = self
            .writer
            .publish(&mut self.station, now, self.published, &object);
        assert!(taken.is_ok());
        self.writer.read(&mut self.station, now);
        object.len()
    }

    pub(crate) fn publish(&mut self, times: u64) {
        for _ in 0..times {
            self.publish_on(TOPIC, None);
        }
    }

    /// Subscribes and reads nothing.
    pub(crate) fn ask(&mut self, far: &mut Far, filter: &str, resume: Option<Position>) -> u64 {
        self.last_id += 1;
        let (now, id) = (at(self.now_ms), self.last_id);
        let subscribe = wire::Subscribe {
            id,
            realm: realm(),
            filter,
            resume,
        };
        let taken = far.frame(&mut self.station, now, &Frame::Subscribe(subscribe));
        assert!(taken.is_ok());
        id
    }

    /// Subscribes and answers what the station said first, and the id.
    pub(crate) fn subscribe(
        &mut self,
        far: &mut Far,
        filter: &str,
        resume: Option<Position>,
    ) -> (u64, Position, ResumeOutcome, Vec<Got>) {
        let id = self.ask(far, filter, resume);
        let mut read = self.read(far);
        let Got::Subscribed(position, outcome) = read.remove(0) else {
            panic!("{read:?}")
        };
        (id, position, outcome, read)
    }

    pub(crate) fn unsubscribe(&mut self, far: &mut Far, id: u64) {
        let taken = far.frame(&mut self.station, at(self.now_ms), &Frame::Unsubscribe(id));
        assert!(taken.is_ok());
    }

    pub(crate) fn read(&mut self, far: &mut Far) -> Vec<Got> {
        got(&far.read(&mut self.station, at(self.now_ms)))
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        counter(&self.station.status().counters, name)
    }

    /// One frame a link writes, and no more.
    pub(crate) fn frame(&mut self, far: &Far) -> Option<Got> {
        let mut out = Vec::new();
        let transmit = self.station.poll_transmit(far.id, &mut out)?;
        out.extend_from_slice(transmit.body());
        self.station
            .handle_written(at(self.now_ms), far.id, transmit.len());
        Some(got(&[out[4..].to_vec()])[0])
    }
}

pub(crate) fn after(position: Position, offset: u64) -> Option<Position> {
    Some(Position { offset, ..position })
}
