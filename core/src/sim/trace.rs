//! A run as people read it: time, who, what.
//!
//! Decides: the words. Leaves to others: what happens. Believes: the true time. Bounded by: the run, and nothing is kept unless it was asked for.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::net::Seen;
use super::tap::Note;
use super::world::{Told, World};
use crate::notice::Notice;
use crate::{Instant, Outcome};

/// Who.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    World,
    Station(usize),
    Node(usize),
    Sub(usize),
    /// A client's end and a station's end of a connection.
    Way(usize, usize),
}

impl Name {
    /// The host of that number, where stations come first.
    pub(super) fn host(host: usize, stations: usize) -> Self {
        match host.checked_sub(stations) {
            None => Self::Station(host),
            Some(node) => Self::Node(node),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.write_str("-"),
            Self::Station(n) => write!(f, "s{n}"),
            Self::Node(n) => write!(f, "n{n}"),
            Self::Sub(n) => write!(f, "q{n}"),
            Self::Way(from, to) => write!(f, "n{from}-s{to}"),
        }
    }
}

/// The lines of a run.
#[derive(Debug, Default)]
pub(super) struct Trace {
    wanted: bool,
    pub(super) lines: Vec<String>,
}

impl Trace {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            lines: Vec::new(),
        }
    }

    pub(super) fn line(&mut self, at: Instant, who: Name, what: fmt::Arguments<'_>) {
        if self.wanted {
            let (seconds, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
            let who = alloc::format!("{who}");
            self.lines
                .push(alloc::format!("{seconds:>5}.{micros:06}  {who:<7} {what}"));
        }
    }
}

/// A notice in a few words.
pub(super) fn words(notice: &Notice) -> String {
    match notice {
        Notice::Skipped { of, first, last } => {
            alloc::format!(
                "skipped {first}..{last} of epoch {} on {}",
                of.epoch,
                of.topic
            )
        }
        Notice::Unopened {
            of, seq, reason, ..
        } => {
            alloc::format!(
                "unopened {seq} of epoch {} on {}: {reason}",
                of.epoch,
                of.topic
            )
        }
        Notice::Gap {
            from,
            to,
            reason,
            count,
        } => {
            let (from, to) = (since_start(*from), since_start(*to));
            alloc::format!("gap {reason} from {from} to {to}, count {count:?}")
        }
        Notice::Interrupted { from, reason } => {
            alloc::format!("interrupted from {} ({reason})", since_start(*from))
        }
        Notice::Lagged {
            missed, notices, ..
        } => {
            alloc::format!("lagged, missed {missed}, notices {notices}")
        }
        Notice::Dropped { reason, count, .. } => alloc::format!("dropped {reason} {count}"),
        Notice::Restarted { of, greater } => {
            alloc::format!("restarted epoch {} (greater: {greater})", of.epoch)
        }
        Notice::Conflict {
            of,
            first,
            last,
            count,
        } => {
            alloc::format!("conflict {first}..{last} of epoch {}, {count}", of.epoch)
        }
        other => alloc::format!("{}", other.code()),
    }
}

/// A wall time in seconds since the run began, by a wall that was never stepped.
pub(super) fn since_start(wall: crate::WallMs) -> String {
    let millis = wall.since(super::net::START);
    alloc::format!("{}.{:03}", millis / 1000, millis.abs() % 1000)
}

impl World {
    pub(super) fn trace_seen(&mut self, now: Instant, seen: &Seen) {
        self.hash_seen(now, seen);
        if !self.options.trace {
            return;
        }
        let name = |world: &Self, cable: usize| {
            let [client, station] = world.net.cables[cable].hosts;
            Name::Way(client - world.stations.len(), station)
        };
        let arrow = |side| if side == 0 { "<" } else { ">" };
        match *seen {
            Seen::Took {
                note: Note::Handshake | Note::Ping(_) | Note::Pong(_),
                ..
            }
            | Seen::Away { .. }
            | Seen::ReadsAgain { .. }
            | Seen::Wrote { .. } => {}
            Seen::Took {
                cable, side, note, ..
            } => {
                let who = name(self, cable);
                self.trace.line(
                    now,
                    who,
                    format_args!("{} {}", arrow(side), note_words(&note)),
                );
            }
            Seen::Up { cable } => {
                let who = name(self, cable);
                self.trace
                    .line(now, who, format_args!("connected ({cable})"));
            }
            Seen::Ended {
                cable,
                side,
                reason,
            } => {
                let who = name(self, cable);
                let end = ["node's", "station's"][side];
                self.trace
                    .line(now, who, format_args!("{end} end is down: {reason}"));
            }
            Seen::Settled { host, outcome, .. } => {
                let who = Name::host(host, self.stations.len());
                self.trace
                    .line(now, who, format_args!("settled {outcome:?}"));
            }
            Seen::Fault { cable, side, error } => {
                let who = name(self, cable);
                self.trace
                    .line(now, who, format_args!("{} fault: {error}", arrow(side)));
            }
            Seen::Readable { .. } => {}
        }
    }

    pub(super) fn trace_told(&mut self, now: Instant, sub: usize, told: &Told) {
        if !self.options.trace {
            return;
        }
        match told {
            Told::Fact { number, late } => {
                let seq = self
                    .truth
                    .made
                    .get(*number as usize)
                    .and_then(|made| made.fact);
                let seq = seq.map_or(0, |fact| fact.seq);
                let late = if *late { " late" } else { "" };
                self.trace.line(
                    now,
                    Name::Sub(sub),
                    format_args!("#{number} (seq {seq}){late}"),
                );
            }
            Told::Notice(notice) => {
                self.trace
                    .line(now, Name::Sub(sub), format_args!("{}", words(notice)));
            }
        }
    }

    fn hash_seen(&mut self, now: Instant, seen: &Seen) {
        let hash = &mut self.hash;
        match *seen {
            Seen::Took {
                cable, side, note, ..
            } => {
                hash.word(now.as_micros());
                hash.word((cable * 2 + side) as u64);
                hash_note(hash, &note);
            }
            Seen::Settled { host, outcome, .. } => {
                hash.word(now.as_micros());
                hash.word(host as u64);
                hash.word(u64::from(outcome.code().number()));
                if let Outcome::Routed { subscribers } = outcome {
                    hash.word(subscribers);
                }
            }
            Seen::Ended {
                cable,
                side,
                reason,
            } => {
                hash.word(now.as_micros());
                hash.word((cable * 2 + side) as u64);
                hash.word(u64::from(reason.number()));
            }
            Seen::Away { .. }
            | Seen::ReadsAgain { .. }
            | Seen::Up { .. }
            | Seen::Wrote { .. }
            | Seen::Readable { .. }
            | Seen::Fault { .. } => {}
        }
    }
}

fn hash_note(hash: &mut super::hash::Hash, note: &Note) {
    let words: [u64; 5] = match *note {
        Note::Event { id, fact, offset } => [1, id, fact.number.into(), fact.seq, offset],
        Note::Goodbye(reason) => [2, reason.number().into(), 0, 0, 0],
        Note::Handshake => [3, 0, 0, 0, 0],
        Note::Other => [4, 0, 0, 0, 0],
        Note::Ping(_) => [5, 0, 0, 0, 0],
        Note::Pong(_) => [6, 0, 0, 0, 0],
        Note::Progress {
            id,
            offset,
            behind_ms,
        } => [7, id, offset, behind_ms, 0],
        Note::Publish { id, fact } => [8, id, fact.number.into(), fact.seq, fact.epoch],
        Note::Published {
            id,
            outcome,
            subscribers,
            reason,
        } => {
            let reason = reason.map_or(0, |reason| reason.number());
            [9, id, outcome.number().into(), subscribers, reason.into()]
        }
        Note::Refused { id, reason } => [10, id, reason.number().into(), 0, 0],
        Note::Skipped {
            id,
            from,
            to,
            count,
            ..
        } => [11, id, from, to, count],
        Note::Subscribe { id, filter, resume } => [12, id, filter.into(), resume.into(), 0],
        Note::Subscribed { id, offset, .. } => [13, id, offset, 0, 0],
        Note::Unsubscribe { id } => [14, id, 0, 0, 0],
    };
    words.iter().for_each(|word| hash.word(*word));
}

fn note_words(note: &Note) -> String {
    match note {
        Note::Event { id, fact, offset } => {
            alloc::format!(
                "event {id}: #{} (seq {}) at {offset}",
                fact.number,
                fact.seq
            )
        }
        Note::Publish { id, fact } => {
            alloc::format!("publish {id}: #{} (seq {})", fact.number, fact.seq)
        }
        Note::Published {
            id,
            outcome,
            subscribers,
            reason,
        } => match reason {
            Some(reason) => alloc::format!("published {id}: {outcome} {reason}"),
            None => alloc::format!("published {id}: {outcome} to {subscribers}"),
        },
        Note::Progress {
            id,
            offset,
            behind_ms,
        } => {
            alloc::format!("progress {id}: {offset}, behind {behind_ms} ms")
        }
        Note::Refused { id, reason } => alloc::format!("refused {id}: {reason}"),
        Note::Skipped {
            id,
            from,
            to,
            count,
            reason,
        } => {
            alloc::format!("skipped {id}: {count} {reason}, ages {from} to {to} ms")
        }
        Note::Subscribe { id, filter, resume } => {
            alloc::format!(
                "subscribe {id} filter {filter}{}",
                if *resume { ", resume" } else { "" }
            )
        }
        Note::Subscribed { id, resume, offset } => {
            alloc::format!("subscribed {id} at {offset}, {resume:?}")
        }
        Note::Unsubscribe { id } => alloc::format!("unsubscribe {id}"),
        Note::Goodbye(reason) => alloc::format!("goodbye {reason}"),
        other => alloc::format!("{other:?}"),
    }
}
