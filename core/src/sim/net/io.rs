//! Connections: made, written to, read from, ended.
//!
//! Decides: in which pieces bytes travel, when a blocked writer goes on. Leaves to others: when (the network). Believes: the true time for
//! the way, the host's clocks for its machine. Bounded by: the way's budget.

use core::cmp::Reverse;

use super::{Kind, Net, Seen, What};
use crate::code::CloseReason;
use crate::keyring::Which;
use crate::pump::LinkIo;
use crate::sim::cable::{CLIENT, Cable, Pipe, STATION};
use crate::sim::lookups::About;
use crate::sim::said::Moment;
use crate::sim::tap::{Note, Record, note_of};
use crate::wire::{Split, next_frame};
use crate::{
    Answer, AskId, Binding, Duration, Intake, LinkEvent, LinkId, Question, StationRef, VerifyJob,
};

impl Net {
    pub(super) fn cable_of(&self, host: usize, link: LinkId) -> Option<(usize, usize)> {
        self.hosts[host].cables.iter().find_map(|index| {
            let cable = &self.cables[*index];
            let side = usize::from(cable.hosts[STATION] == host);
            let end = cable.ends[side].as_ref()?;
            (end.link() == link && !cable.gone[side]).then_some((*index, side))
        })
    }

    /// The link of that host's end of a connection.
    pub(in crate::sim) fn link_of(&self, cable: usize, host: usize) -> Option<LinkId> {
        let cable = &self.cables[cable];
        let side = usize::from(cable.hosts[STATION] == host);
        cable.ends[side].as_ref().map(LinkIo::link)
    }

    /// A question goes to whoever answers such.
    pub(super) fn asked(&mut self, index: usize, ask: AskId, question: Question) {
        match question {
            Question::KeyPeriods(question) => self.ask_keys(index, ask, question.which),
            Question::Source(question) => {
                let about = About {
                    host: index,
                    source: question.source,
                    publisher: question.publisher,
                };
                self.ask_source(ask, about);
            }
            Question::Verify(job) => self.ask(index, ask, job),
        }
    }

    fn ask(&mut self, index: usize, ask: AskId, job: VerifyJob) {
        let host = &mut self.hosts[index];
        host.asked += 1;
        if host.answers_lose > 0 && host.asked.is_multiple_of(host.answers_lose) {
            return;
        }
        let at = self.now.saturating_add(host.answers_after);
        host.asks.push_back((at, ask, job));
        if at > self.now {
            self.due.push(Reverse((at, What::Answer, index, 0)));
        } else {
            self.answer(index);
        }
    }

    /// A question about the keys of a group goes to whoever gives them out.
    fn ask_keys(&mut self, index: usize, ask: AskId, which: Which) {
        if let Some(at) = self.secrets.ask(self.now, index, (ask, which)) {
            self.due.push(Reverse((at, What::Answer, index, 0)));
        }
    }

    /// A question about a publisher goes to whoever knows.
    fn ask_source(&mut self, ask: AskId, about: About) {
        let host = about.host;
        if let Some(at) = self.lookups.ask(self.now, ask, about) {
            self.due.push(Reverse((at, What::Answer, host, 0)));
        }
    }

    pub(super) fn answer(&mut self, index: usize) {
        let (truth, now) = (self.now, self.now_of(index));
        let host = &mut self.hosts[index];
        if host.clock.is_asleep() {
            // It is answered when the next answer is.
            return;
        }
        while let Some((ask, answer)) = self.secrets.answer(truth, index) {
            if let Some(Kind::Client(client)) = &mut host.kind {
                let _given_up = client.answer(now, ask, answer);
                host.dirty = true;
                host.inputs += 1;
                host.touched = truth;
            }
        }
        while let Some((ask, answer, about)) = self.lookups.answer(truth, index) {
            if let Some(Kind::Client(client)) = &mut host.kind {
                let told = Answer::Source(self.saboteur.verdict(answer));
                if client.answer(now, ask, told).is_ok() {
                    self.lookups.answered(truth, now.wall, answer, about);
                }
                host.dirty = true;
                host.inputs += 1;
                host.touched = truth;
            }
        }
        while host.asks.front().is_some_and(|(at, ..)| *at <= truth)
            && let Some((_, ask, job)) = host.asks.pop_front()
        {
            if let Some(Kind::Client(client)) = &mut host.kind {
                // It may have been given up.
                let _given_up = client.answer(now, ask, Answer::Verified(job.run()));
                host.dirty = true;
                host.inputs += 1;
                host.touched = truth;
            }
        }
    }

    pub(super) fn dial(&mut self, host: usize, station: StationRef) {
        let there = self.stations[self.hosts[host].stations[usize::from(station.0)]];
        let index = self.cables.len();
        let rng = self.seeds(3, index, 0).0.fork("cable");
        let cable = Cable {
            hosts: [host, there],
            ends: [None, None],
            pipes: [Pipe::default(), Pipe::default()],
            lost: false,
            gone: [false; 2],
            told_later: [false; 2],
            rng,
            station,
        };
        let way = self.way_of(&cable);
        self.cables.push(cable);
        if way.delay.is_zero() {
            return self.connect(index);
        }
        let at = self.now.saturating_add(way.delay * 2);
        self.due.push(Reverse((at, What::Connect, index, CLIENT)));
    }

    /// The connection is there, or is not to be had.
    pub(super) fn connect(&mut self, index: usize) {
        let cable = &self.cables[index];
        let (hosts, station, way) = (cable.hosts, cable.station, self.way_of(cable));
        let awake = hosts.map(|host| !self.hosts[host].clock.is_asleep());
        let up = |dialled| LinkEvent::Up {
            dialled,
            binding: Binding::Local,
        };
        if self.hosts[hosts[CLIENT]].kind.is_none() {
            return;
        }
        if !awake[CLIENT] {
            let at = self.now.saturating_add(Duration::from_secs(1));
            self.due.push(Reverse((at, What::Connect, index, CLIENT)));
            return;
        }
        let (here, there) = (self.now_of(hosts[CLIENT]), self.now_of(hosts[STATION]));
        let open = awake[STATION] && !way.parted && !way.refuses;
        let accepted = match (&mut self.hosts[hosts[STATION]].kind, open) {
            (Some(Kind::Station(station)), true) => station.handle_link(there, up(None)).ok(),
            _ => None,
        };
        let dialler = &mut self.hosts[hosts[CLIENT]];
        dialler.dirty = true;
        dialler.inputs += 1;
        dialler.touched = self.now;
        let Some(Kind::Client(client)) = &mut dialler.kind else {
            return;
        };
        let Some(accepted) = accepted else {
            // A client that was started anew did not ask for it.
            let _forgotten = client.handle_dial_failed(here, station, "refused");
            return;
        };
        let Ok(dialled) = client.handle_link(here, up(Some(station))) else {
            let Some(machine) = self.hosts[hosts[STATION]].machine() else {
                return;
            };
            let reason = CloseReason::Io;
            let _gone = machine.handle_link(
                there,
                LinkEvent::Down {
                    link: accepted,
                    reason,
                },
            );
            return;
        };
        self.cables[index].ends = [Some(LinkIo::new(dialled)), Some(LinkIo::new(accepted))];
        for host in hosts {
            self.hosts[host].cables.push(index);
            self.hosts[host].dirty = true;
        }
        if self.watch.is_some() {
            self.seen.push(Seen::Up { cable: index });
        }
        self.flush(hosts[STATION]);
    }

    /// What a driver does on `Close`: write what is left, then end the transport.
    pub(super) fn close(&mut self, cable: usize, side: usize, reason: CloseReason) {
        self.write_all(cable, side, usize::MAX);
        self.down(cable, side, reason);
        self.tell_end(cable, 1 - side);
    }

    /// That end hears of the end of the connection behind what was sent to it.
    pub(super) fn tell_end(&mut self, cable: usize, side: usize) {
        let found = &self.cables[cable];
        let at = found.pipes[side].last_arrival(self.now);
        let delay = self.way_of(found).delay;
        let at = at.max(self.now.saturating_add(delay));
        self.due.push(Reverse((at, What::Down, cable, side)));
    }

    /// The last byte may come sooner now, and so may the end behind it.
    pub(super) fn tell_end_sooner(&mut self, cable: usize, side: usize) {
        let found = &self.cables[cable];
        if found.gone[1 - side] && !found.lost {
            self.tell_end(cable, side);
        }
    }

    /// A machine is told that its link is down.
    pub(super) fn down(&mut self, cable: usize, side: usize, reason: CloseReason) {
        if self.cables[cable].gone[side] {
            return;
        }
        let host = self.cables[cable].hosts[side];
        self.hosts[host].cables.retain(|other| *other != cable);
        let link = self.cables[cable].ends[side].as_ref().map(LinkIo::link);
        self.end(cable, side, reason);
        let now = self.now_of(host);
        self.hosts[host].dirty = true;
        self.hosts[host].inputs += 1;
        self.hosts[host].touched = self.now;
        if let (Some(link), Some(machine)) = (link, self.hosts[host].machine()) {
            let told = machine.handle_link(now, LinkEvent::Down { link, reason });
            debug_assert!(told.is_ok(), "the link was up");
        }
    }

    pub(super) fn end(&mut self, cable: usize, side: usize, reason: CloseReason) {
        let found = &mut self.cables[cable];
        found.gone[side] = true;
        found.ends[side] = None;
        found.pipes[side].lose();
        if self.watch.is_some() {
            self.seen.push(Seen::Ended {
                cable,
                side,
                reason,
            });
        }
    }

    /// Takes what one end has to send and puts it under way, as far as the way takes it.
    pub(super) fn write(&mut self, index: usize, side: usize) {
        let budget = self.way_of(&self.cables[index]).budget;
        self.write_all(index, side, budget);
    }

    /// Goes on after a wait: the machine is told the time first, as what it writes of ages counts from it.
    pub(super) fn write_again(&mut self, index: usize, side: usize) {
        let cable = &mut self.cables[index];
        let host = &mut self.hosts[cable.hosts[side]];
        let now = host.clock.now(self.now);
        if let (Some(io), Some(machine)) = (cable.ends[side].as_mut(), host.machine()) {
            io.wrote(machine, now, 0);
        }
        self.write(index, side);
    }

    fn write_all(&mut self, index: usize, side: usize, budget: usize) {
        let way = self.way_of(&self.cables[index]);
        let Cable {
            hosts,
            ends,
            pipes,
            gone,
            lost,
            rng,
            ..
        } = &mut self.cables[index];
        let (host, vanishes) = (&mut self.hosts[hosts[side]], *lost || gone[1 - side]);
        let now = host.clock.now(self.now);
        let pipe = &mut pipes[1 - side];
        let Some(io) = ends[side].as_mut() else {
            return;
        };
        loop {
            if pipe.bytes() >= budget {
                pipe.blocked = true;
                pipe.behind.get_or_insert(self.now);
                return;
            }
            let Some(machine) = host.machine() else {
                return;
            };
            if !io.fill(machine) {
                pipe.behind = None;
                return;
            }
            let mut bytes = self.spare.pop().unwrap_or_default();
            let mut slices: [&[u8]; 8] = [&[]; 8];
            let count = io.chunks(&mut slices);
            slices[..count]
                .iter()
                .for_each(|slice| bytes.extend_from_slice(slice));
            self.trace.word(side as u64);
            self.trace.bytes(&bytes);
            io.wrote(machine, now, bytes.len());
            host.dirty = true;
            host.touched = self.now;
            if let Some((topics, profile)) = &self.watch {
                let since = pipe.behind.unwrap_or(self.now);
                let mut at = 0;
                while let Ok(Split::Frame { body, taken }) = next_frame(&bytes[at..], u32::MAX) {
                    let note = note_of(body, *profile, topics);
                    let cable = index;
                    if vanishes {
                        // Its machine waits for an answer all the same.
                        if let Note::Ping(_) = note {
                            self.seen.push(Seen::Wrote {
                                cable,
                                side,
                                since,
                                note,
                            });
                        }
                        at += taken;
                        continue;
                    }
                    if matches!(note, Note::Event { .. }) && self.saboteur.drops_event() {
                        bytes.drain(at..at + taken);
                        continue;
                    }
                    at += taken;
                    pipe.written += taken as u64;
                    let (end, written) = (pipe.written, self.now);
                    pipe.records.push_back(Record { end, written, note });
                    self.seen.push(Seen::Wrote {
                        cable,
                        side,
                        since,
                        note,
                    });
                }
            }
            if vanishes {
                bytes.clear();
                self.spare.push(bytes);
                continue;
            }
            let now = self
                .now
                .saturating_add(Duration::from_micros(self.saboteur.unseeded()));
            if let Some(at) = pipe.send(now, &way, rng, bytes) {
                self.due.push(Reverse((at, What::Arrive, index, 1 - side)));
            }
        }
    }

    /// Hands what arrived to the machine at that end, in reads of the chosen size. Answers whether it took something.
    pub(super) fn read(&mut self, index: usize, side: usize) -> bool {
        let Cable {
            hosts, ends, pipes, ..
        } = &mut self.cables[index];
        let host = &mut self.hosts[hosts[side]];
        let now = host.clock.now(self.now);
        let (pipe, Some(io)) = (&mut pipes[side], ends[side].as_mut()) else {
            return false;
        };
        let Some(machine) = host.machine() else {
            return false;
        };
        let before = io.input().len() + pipe.waiting.len();
        // A paused link takes what it has first, and is read on only when it did.
        let mut fresh = !pipe.paused;
        let mut failed = None;
        loop {
            if fresh {
                pipe.take(self.cut_at, io.input());
            }
            fresh = true;
            match io.handle_read(machine, now) {
                Ok(Intake::Open) => pipe.paused = false,
                Ok(_) => {
                    pipe.paused = true;
                    break;
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            if pipe.waiting.is_empty() {
                break;
            }
        }
        let taken = before - (io.input().len() + pipe.waiting.len());
        pipe.taken += taken as u64;
        // It reads again when it took something, or would have.
        if (taken > 0 || !pipe.paused)
            && let Some(since) = pipe.paused_at.take()
            && self.watch.is_some()
        {
            let cable = index;
            self.seen.push(Seen::ReadsAgain { cable, side, since });
        }
        if pipe.paused {
            let moment = Moment::new(self.now, now);
            pipe.paused_at.get_or_insert(moment);
        }
        while pipe
            .records
            .front()
            .is_some_and(|record| record.end <= pipe.taken)
            && let Some(Record { written, note, .. }) = pipe.records.pop_front()
        {
            let cable = index;
            self.seen.push(Seen::Took {
                cable,
                side,
                written,
                note,
            });
        }
        host.dirty = true;
        host.inputs += 1;
        host.touched = self.now;
        let unblocked = core::mem::take(&mut pipe.blocked);
        if let Some(error) = failed {
            self.failed_input += 1;
            if self.watch.is_some() {
                self.seen.push(Seen::Fault {
                    cable: index,
                    side,
                    error,
                });
            }
        }
        let writer = self.cables[index].hosts[1 - side];
        if unblocked {
            if self.hosts[writer].clock.is_asleep() {
                self.cables[index].pipes[side].blocked = true;
            } else {
                self.write_again(index, 1 - side);
                self.hosts[writer].dirty = true;
            }
        }
        taken > 0
    }

    /// Reads again what was paused: draining may have cured it, or its time has come.
    pub(super) fn read_paused(&mut self, host: usize) {
        let mut at = 0;
        while let Some(index) = self.hosts[host].cables.get(at).copied() {
            at += 1;
            let side = usize::from(self.cables[index].hosts[STATION] == host);
            if self.cables[index].pipes[side].paused {
                let before = self.hosts[host].dirty;
                let taken = self.read(index, side);
                self.hosts[host].dirty = before || taken;
            }
        }
    }
}
