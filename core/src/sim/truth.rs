//! What really happened, as whoever sees every frame knows it.
//!
//! Decides: what each station admitted and when, which subscriptions it held, what reached whom, when nobody carried a subscription. Leaves to
//! others: whether the streams say so (the checks). Believes: the true time. Bounded by: the run.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::cable::{CLIENT, STATION};
use super::hold::Hold;
use super::net::Seen;
use super::said::{Moment, Pace, Said};
use super::tap::{Fact, Note};
use crate::code::{CloseReason, PublishRefusal, SubscribeRefusal};
use crate::wire::ResumeOutcome;
use crate::{Instant, LinkError, Now, Outcome, Ticket, WallMs};

/// A publication somebody made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) key: u8,
    /// Which run of which client.
    pub(super) life: usize,
    pub(super) topic: u8,
    pub(super) one: bool,
    pub(super) at: Instant,
    pub(super) ticket: Ticket,
    /// Its numbers, once it was written to a link.
    pub(super) fact: Option<Fact>,
    pub(super) settled: Vec<(Instant, Outcome)>,
    pub(super) cancelled: bool,
}

/// One run of a client: from its start to its end.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) node: usize,
    pub(super) host: usize,
    pub(super) ended: Option<Instant>,
    /// When each publication first reached it in a subscription that was accepted.
    pub(super) arrivals: BTreeMap<u32, Instant>,
    /// What may have reached it earlier, for a stream that ended by itself and swallowed what it had.
    pub(super) unsure: BTreeSet<u32>,
    /// By how much it took something at most for later than it was said, in microseconds: what it could not know.
    pub(super) transit: u64,
    /// The greatest epoch that was written down before it.
    pub(super) floor: u64,
}

/// One run of a station.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) station: usize,
    /// What it admitted, in its order.
    pub(super) admitted: Vec<(u32, Instant)>,
    pub(super) known: Vec<bool>,
    pub(super) draining: bool,
}

/// A subscription as stations know it, as long as a client wants it.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) life: usize,
    pub(super) filter: u8,
    pub(super) ended: Option<Instant>,
    /// Who carries it, as its client knows.
    pub(super) carriers: Vec<usize>,
    pub(super) outages: Vec<Outage>,
    /// Stations said no, or no more.
    pub(super) refusals: Vec<(u64, SubscribeRefusal)>,
    /// Stations said that they gave something up.
    pub(super) skips: Vec<(u64, u64)>,
    purged: bool,
    /// That of an earlier run whose committed positions it goes on from.
    pub(super) after: Option<usize>,
}

/// Nobody carried a subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) began: Instant,
    pub(super) ended: Option<Instant>,
    /// The order of its beginning and its end among all that happened.
    pub(super) order: (u64, Option<u64>),
    pub(super) reason: CloseReason,
}

/// What a station answers a publication, as far as whoever looks on can say before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Taken,
    OutOfDate,
    /// It was taken once, and its station need not remember that any more.
    Over,
    Draining,
}

/// What whoever looks on knows of one connection.
#[derive(Clone, Debug, Default)]
struct Line {
    life: usize,
    run: usize,
    pace: Pace,
    /// When its client took the last frame of the handshake.
    rose: Instant,
    ended: [bool; 2],
    asked: BTreeMap<u64, usize>,
    published: BTreeMap<u64, (u32, Expected)>,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub(super) struct Truth {
    pub(super) made: Vec<Made>,
    pub(super) lives: Vec<Life>,
    pub(super) runs: Vec<Run>,
    pub(super) wires: Vec<Wire>,
    pub(super) holds: Vec<Hold>,
    lines: Vec<Line>,
    /// The current run of each host: of a client's lives, or of a station's runs.
    pub(super) current: Vec<usize>,
    /// Counts all that happened.
    pub(super) order: u64,
    /// Rules that were broken on the wire itself.
    pub(super) broken: Vec<alloc::string::String>,
    pub(super) copies: u64,
    pub(super) reordered: u64,
    /// Which hold its client left when: what came then and behind that found nobody.
    pub(super) ends: Vec<(usize, Instant)>,
}

impl Truth {
    /// The subscription a client wants of its stations, which it has wanted before or wants from now on.
    pub(super) fn want(&mut self, life: usize, filter: u8) -> usize {
        let wanted =
            |wire: &Wire| wire.life == life && wire.filter == filter && wire.ended.is_none();
        if let Some(wire) = self.wires.iter().rposition(wanted) {
            return wire;
        }
        self.wires.push(Wire {
            life,
            filter,
            ended: None,
            carriers: Vec::new(),
            outages: Vec::new(),
            refusals: Vec::new(),
            skips: Vec::new(),
            purged: false,
            after: None,
        });
        self.wires.len() - 1
    }

    /// One that is wanted no more, where it was when its station was asked, and only now that is written: its way took nothing since `since`.
    fn wanted_late(&self, cable: usize, since: Instant, filter: u8) -> Option<usize> {
        let line = &self.lines[cable];
        let since = since.max(line.rose);
        let mut wires = self.wires.iter().enumerate();
        let late = wires.find(|(index, wire)| {
            let mut holds = line.asked.values().map(|hold| self.holds[*hold].wire);
            let meant = (wire.life, wire.filter) == (line.life, filter);
            meant && wire.ended.is_some_and(|ended| ended > since) && !holds.any(|of| of == *index)
        });
        late.map(|(index, _)| index)
    }

    /// What a hold is of where it was asked for again and its end is written late: one that was replaced since.
    fn replaced(&self, cable: usize, since: Instant, hold: usize) -> Option<usize> {
        let since = since.max(self.lines[cable].rose);
        let hold = &self.holds[hold];
        let now = &self.wires[hold.wire];
        let before = self.wires.iter().rposition(|wire| {
            let same = (wire.life, wire.filter) == (now.life, now.filter);
            same && wire.ended.is_some_and(|ended| ended > since)
        });
        before.filter(|_| now.ended.is_none() && hold.accepted.is_none())
    }

    /// Nobody at that client wants it any more.
    pub(super) fn unwant(&mut self, now: Instant, wire: usize) {
        self.wires[wire].ended.get_or_insert(now);
        for hold in core::mem::take(&mut self.wires[wire].carriers) {
            self.holds[hold].left.get_or_insert(now);
        }
    }

    /// The same, since a stream ended of what came at this moment: what came behind its end found nobody.
    pub(super) fn ended_itself(&mut self, now: Instant, wire: usize) {
        if self.wires[wire].ended.is_none() {
            let carriers = self.wires[wire].carriers.iter();
            self.ends.extend(carriers.map(|hold| (*hold, now)));
        }
        self.unwant(now, wire);
    }

    /// A connection is up between two hosts.
    pub(super) fn up(&mut self, now: Moment, cable: usize, hosts: [usize; 2]) {
        if self.lines.len() <= cable {
            self.lines.resize(cable + 1, Line::default());
        }
        self.lines[cable] = Line {
            life: self.current[hosts[CLIENT]],
            run: self.current[hosts[STATION]],
            pace: Pace::up(now),
            ..Line::default()
        };
    }

    /// A station ended the subscriptions of these clients.
    pub(super) fn purged(&mut self, now: Instant, run: usize, lives: &[usize]) {
        for hold in self.holds.iter_mut().filter(|hold| hold.run == run) {
            let wire = &mut self.wires[hold.wire];
            if hold.from.is_some() && hold.to.is_none() && lives.contains(&wire.life) {
                hold.to = Some((now, self.runs[run].admitted.len()));
                wire.purged = true;
            }
        }
    }

    /// How often a station refused a subscription for a bound.
    pub(super) fn quota_met(&self) -> u64 {
        let all = self.wires.iter().flat_map(|wire| &wire.refusals);
        all.filter(|(_, reason)| *reason == SubscribeRefusal::TooManySubscriptions)
            .count() as u64
    }

    /// Subscriptions some of which were ended by a station.
    pub(super) fn purged_wires(&self) -> Vec<usize> {
        let all = self.wires.iter().enumerate();
        let purged = all.filter(|(_, wire)| wire.purged && wire.ended.is_none());
        purged.map(|(index, _)| index).collect()
    }

    /// Something was seen at that true time, when the host it concerns read those clocks.
    pub(super) fn see(&mut self, now: Instant, here: Now, seen: Seen) {
        self.order += 1;
        let moment = Moment::new(now, here);
        match seen {
            Seen::Wrote {
                cable,
                side: CLIENT,
                since,
                note: Note::Ping(nonce),
            } => self.lines[cable].pace.asks(moment, since, nonce),
            Seen::Wrote {
                cable,
                side,
                since,
                note,
            } => self.wrote((since, now), cable, side, note),
            Seen::Took { cable, side, .. } if self.lines[cable].ended[side] => {}
            Seen::Took {
                cable,
                side,
                written,
                note,
            } => match side {
                CLIENT => self.client_took(moment, cable, written, note),
                _ => self.station_took(now, here.wall, cable, note),
            },
            Seen::Ended {
                cable,
                side,
                reason,
            } => self.ended(now, cable, side, reason),
            Seen::ReadsAgain {
                cable,
                side: CLIENT,
                since,
            } => self.lines[cable].pace.pauses(since, moment),
            Seen::Away { host, most, sure } => {
                let life = self.current[host];
                let lines = self.lines.iter_mut().filter(|line| line.life == life);
                lines.for_each(|line| line.pace.misses(now, most, sure));
            }
            Seen::ReadsAgain { .. } => {}
            Seen::Up { .. } | Seen::Settled { .. } | Seen::Readable { .. } => {}
            // One of the two was held, and is no fault of what the other wrote.
            Seen::Fault {
                error: LinkError::HandshakeTimeout,
                ..
            } => {}
            Seen::Fault { cable, side, error } => {
                let told = alloc::format!(
                    "side {side} of connection {cable} found a fault in what an honest peer wrote: {error}"
                );
                self.broken.push(told);
            }
        }
    }

    fn wrote(&mut self, (since, now): (Instant, Instant), cable: usize, side: usize, note: Note) {
        if side == STATION {
            if let Note::Progress {
                id,
                offset,
                behind_ms: 0,
            } = note
                && let Some(hold) = self.lines[cable].asked.get(&id).copied()
            {
                let admitted = self.runs[self.holds[hold].run].admitted.len();
                self.holds[hold].marks.push((offset, admitted));
            }
            return;
        }
        match note {
            Note::Publish { fact, .. } => {
                if let Some(made) = self.made.get_mut(fact.number as usize) {
                    made.fact = Some(fact);
                }
            }
            Note::Subscribe { id, filter, .. } => {
                let Line { life, run, .. } = self.lines[cable];
                let late = self.wanted_late(cable, since, filter);
                let wire = late.unwrap_or_else(|| self.want(life, filter));
                self.lines[cable].asked.insert(id, self.holds.len());
                self.holds.push(Hold {
                    wire,
                    run,
                    from: None,
                    to: None,
                    accepted: None,
                    left: None,
                    known: Said::at(now),
                    until: 0,
                    arrived: Vec::new(),
                    skipped: 0,
                    resumed: false,
                    marks: Vec::new(),
                    read: 0,
                });
            }
            Note::Unsubscribe { id } => {
                let Some(hold) = self.lines[cable].asked.get(&id).copied() else {
                    return;
                };
                match self.replaced(cable, since, hold) {
                    Some(before) => self.holds[hold].wire = before,
                    // A stream that ended by itself is left without a word from outside.
                    None => self.ended_itself(now, self.holds[hold].wire),
                }
            }
            _ => {}
        }
    }

    fn station_took(&mut self, now: Instant, wall: WallMs, cable: usize, note: Note) {
        match note {
            Note::Publish { id, fact } => {
                let expected = self.publish(now, wall, self.lines[cable].run, fact);
                self.lines[cable]
                    .published
                    .insert(id, (fact.number, expected));
            }
            Note::Subscribe { id, .. } => {
                if let Some(hold) = self.lines[cable].asked.get(&id).copied() {
                    let run = self.holds[hold].run;
                    self.holds[hold].from = Some((now, self.runs[run].admitted.len()));
                }
            }
            Note::Unsubscribe { id } => {
                if let Some(hold) = self.lines[cable].asked.get(&id).copied() {
                    self.dropped(now, hold);
                }
            }
            Note::Goodbye(_) => self.ended(now, cable, STATION, CloseReason::Normal),
            _ => {}
        }
    }

    fn publish(&mut self, now: Instant, wall: WallMs, run: usize, fact: Fact) -> Expected {
        let number = fact.number as usize;
        let run = &mut self.runs[run];
        if run.draining {
            return Expected::Draining;
        }
        if run.known.len() <= number {
            run.known.resize(number + 1, false);
        }
        let live = crate::wire::freshness(fact.published_at, fact.expires_at, wall).is_ok();
        match (run.known[number], live) {
            (true, true) => return Expected::Taken,
            (true, false) => return Expected::Over,
            (false, false) => return Expected::OutOfDate,
            (false, true) => {}
        }
        run.known[number] = true;
        run.admitted.push((fact.number, now));
        Expected::Taken
    }

    fn client_took(&mut self, moment: Moment, cable: usize, written: Instant, note: Note) {
        let now = moment.truth;
        let line = &mut self.lines[cable];
        let life = line.life;
        line.pace.hears(moment);
        let said = line.pace.said(moment, written);
        if let Note::Progress { .. } | Note::Skipped { .. } | Note::Subscribed { .. } = note {
            let late = said.high.saturating_since(written).as_micros() as u64;
            let latest = &mut self.lives[life].transit;
            *latest = late.max(*latest);
        }
        let hold = |id| line.asked.get(&id).copied();
        match note {
            Note::Handshake => {
                line.rose = now;
                line.pace.shakes_hands(moment);
            }
            Note::Pong(nonce) => line.pace.hears_answer(moment, nonce),
            Note::Published { id, reason, .. } => self.answered(cable, id, reason),
            Note::Goodbye(reason) => self.ended(now, cable, CLIENT, reason),
            Note::Subscribed { id, resume, offset } => {
                if let Some(hold) = hold(id) {
                    if matches!(resume, ResumeOutcome::Resumed { .. }) {
                        self.resumed(hold, offset);
                    }
                    self.accepted(now, said, hold);
                }
            }
            Note::Refused { id, reason } => {
                if let Some(hold) = hold(id) {
                    self.refused(now, hold, reason);
                }
            }
            Note::Event { id, fact, .. } => {
                if let Some(hold) = hold(id) {
                    self.event(now, life, hold, fact);
                }
            }
            Note::Progress {
                id,
                behind_ms,
                offset,
            } => {
                if let Some(hold) = hold(id).map(|hold| &mut self.holds[hold])
                    && hold.is_carrier()
                {
                    let marks = hold.marks.iter().filter(|(of, _)| *of <= offset);
                    let read = marks.map(|(_, read)| *read).max();
                    hold.read = hold.read.max(read.unwrap_or(0));
                    hold.reads(said.before(behind_ms), offset >= hold.until);
                }
            }
            Note::Skipped { id, count, .. } => {
                // A stream that has ended of what came at this moment is seen to have ended before the rest of it is.
                if let Some(hold) = hold(id).map(|hold| &mut self.holds[hold])
                    && hold.accepted.is_some()
                    && hold.left.is_none_or(|left| left == now)
                {
                    hold.skipped += count;
                    self.wires[hold.wire].skips.push((self.order, count));
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, cable: usize, id: u64, reason: Option<PublishRefusal>) {
        let Some((number, expected)) = self.lines[cable].published.get(&id).copied() else {
            return;
        };
        let right = match reason {
            None => matches!(expected, Expected::Taken | Expected::Over),
            Some(PublishRefusal::Expired | PublishRefusal::NotYetValid) => {
                matches!(expected, Expected::OutOfDate | Expected::Over)
            }
            Some(PublishRefusal::Draining) => expected == Expected::Draining,
            Some(_) => false,
        };
        if !right {
            let told =
                alloc::format!("publication {number} was answered {reason:?}, not {expected:?}");
            self.broken.push(told);
        }
    }

    /// A station goes on from where its client had read before: what it admitted meanwhile belongs to this hold.
    fn resumed(&mut self, index: usize, until: u64) {
        let (wire, run) = (self.holds[index].wire, self.holds[index].run);
        let admitted = &self.runs[run].admitted;
        let earlier = self.holds[..index].iter();
        let earlier = earlier.filter(|hold| (hold.wire, hold.run) == (wire, run));
        let (mut start, mut known) = (None, None);
        for hold in earlier.filter(|hold| hold.accepted.is_some()) {
            known = Some(hold.known);
            let arrived = hold.arrived.iter().filter_map(|(number, _)| {
                let place = admitted.iter().position(|(of, _)| of == number);
                place.map(|place| place + 1)
            });
            let from = hold.from.map_or(0, |(_, from)| from);
            let read = arrived.max().unwrap_or(0).max(hold.read).max(from);
            start = start.max(Some(read));
        }
        // What was committed may be from any moment of the run that did.
        let committed = self.earlier_holds(wire).filter(|hold| hold.run == run);
        let committed = committed.filter_map(|hold| hold.from.map(|(_, from)| from));
        let start = start.or_else(|| committed.min());
        let hold = &mut self.holds[index];
        (hold.resumed, hold.until) = (true, until);
        hold.known = known.unwrap_or(hold.known);
        if let (Some(start), Some((_, from))) = (start, &mut hold.from) {
            *from = (*from).min(start);
        }
    }

    fn accepted(&mut self, now: Instant, said: Said, index: usize) {
        let hold = &mut self.holds[index];
        let wire = &mut self.wires[hold.wire];
        if wire.ended.is_some() || hold.accepted.is_some() || hold.left.is_some() {
            return;
        }
        hold.accepted = Some(now);
        let resumed = hold.resumed;
        hold.reads(said, !resumed);
        wire.carriers.push(index);
        if let Some(outage) = wire.outages.last_mut()
            && outage.ended.is_none()
        {
            outage.ended = Some(now);
            outage.order.1 = Some(self.order);
        }
    }

    fn refused(&mut self, now: Instant, index: usize, reason: SubscribeRefusal) {
        self.dropped(now, index);
        let hold = &mut self.holds[index];
        if hold.accepted.is_none() {
            hold.from = None;
        }
        let wire = &mut self.wires[hold.wire];
        if wire.ended.is_none() && hold.left.is_none() {
            wire.refusals.push((self.order, reason));
        }
        self.left(now, index, CloseReason::Refused);
    }

    /// A station does not hold it any more.
    fn dropped(&mut self, now: Instant, index: usize) {
        let hold = &mut self.holds[index];
        let admitted = self.runs[hold.run].admitted.len();
        hold.to.get_or_insert((now, admitted));
    }

    /// A client does not count on a station any more.
    fn left(&mut self, now: Instant, index: usize, reason: CloseReason) {
        let hold = &mut self.holds[index];
        if hold.left.is_some() {
            return;
        }
        hold.left = Some(now);
        let wire = &mut self.wires[hold.wire];
        let before = wire.carriers.len();
        wire.carriers.retain(|other| *other != index);
        if wire.carriers.len() == before {
            return;
        }
        if wire.carriers.is_empty() {
            wire.outages.push(Outage {
                began: now,
                ended: None,
                order: (self.order, None),
                reason,
            });
        }
    }

    fn event(&mut self, now: Instant, life: usize, index: usize, fact: Fact) {
        let hold = &mut self.holds[index];
        if !hold.is_carrier() {
            return;
        }
        hold.arrived.push((fact.number, now));
        let arrivals = &mut self.lives[life].arrivals;
        if arrivals.contains_key(&fact.number) {
            self.copies += 1;
            return;
        }
        if let Some((last, _)) = arrivals.last_key_value()
            && *last > fact.number
        {
            self.reordered += 1;
        }
        arrivals.insert(fact.number, now);
    }

    fn ended(&mut self, now: Instant, cable: usize, side: usize, reason: CloseReason) {
        if self.lines.get(cable).is_none_or(|line| line.ended[side]) {
            return;
        }
        self.lines[cable].ended[side] = true;
        let holds: Vec<usize> = self.lines[cable].asked.values().copied().collect();
        for hold in holds {
            match side {
                CLIENT => self.left(now, hold, reason),
                _ => self.dropped(now, hold),
            }
        }
    }
}
