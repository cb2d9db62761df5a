//! The node's deadlines, in one ordered index.
//!
//! Decides: nothing of its own; calls what is due. Leaves to others: what is done then. Believes: mono. Bounded by: one entry per link,
//! lane, ticket, question, stream, group and station; 256 of them per call; lookups that are due when a fact comes end with it.

use core::time::Duration;

use super::{Client, LaneId, WireId};
use crate::action::{StationRef, Turn};
use crate::inbound::sources::LookupId;
use crate::time::{Instant, Now};
use crate::{GroupId, LinkId, SubscriptionId, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A question that nobody answered.
    Ask,
    /// A station that refused a subscription is asked again.
    Again(WireId, LinkId),
    /// A station to be dialled again.
    Dial(StationRef),
    /// A stream whose episode of drops ends.
    Episode(SubscriptionId),
    /// A key of a group that is due, or over.
    Group(GroupId),
    /// A missing number, or a lane that fell silent.
    Lane(LaneId),
    /// A handshake or a frame that is not whole.
    Link(LinkId),
    /// What was counted of a name is reported.
    Report,
    /// A subscription its station has not answered, and how long its link had not been read.
    Subscribe(LinkId, u64, Duration),
    /// What is remembered may have expired.
    Sweep,
    /// Facts that wait for a lookup longer than they live.
    Hold(LookupId),
    /// A lookup of a source that nobody answered.
    Lookup,
    /// A publication nobody answered.
    Ticket(Ticket),
    /// A mesh that does not come back.
    Wire(WireId),
}

/// Deadlines worked off in one call.
const PER_CALL: usize = 256;
/// How often expired memory is looked for while there is any.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Entries looked at per sweep.
const SWEEP_ENTRIES: usize = 1 << 16;

impl Client {
    /// Time has passed. `More`: call again.
    pub fn handle_timeout(&mut self, now: Now) -> Turn {
        let now = self.at(now);
        for _ in 0..PER_CALL {
            let Some((at, timer)) = self.timers.first().copied() else {
                return Turn::Done;
            };
            if at > now.mono {
                return Turn::Done;
            }
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Ask => self.ask_timeout(now),
                Timer::Again(wire, link) => self.ask_again(now, wire, link),
                Timer::Dial(station) => self.dial(station),
                Timer::Episode(subscription) => self.episode_timeout(now, subscription),
                Timer::Group(group) => self.group_timeout(now, group),
                Timer::Hold(lookup) => self.hold_timeout(now, lookup),
                Timer::Lane(lane) => self.lane_timeout(now, lane),
                Timer::Lookup => self.lookup_timeout(now),
                Timer::Link(link) => self.link_timeout(now, link),
                Timer::Report => self.report_timeout(now),
                Timer::Subscribe(link, id, unread) => self.subscribe_timeout(now, link, id, unread),
                Timer::Sweep => {
                    self.sweeping = false;
                    self.dedup.sweep(now, SWEEP_ENTRIES);
                    self.sweep_lanes(now, SWEEP_ENTRIES);
                    self.sweep_resting(now, SWEEP_ENTRIES);
                    self.tags.sweep(now);
                    self.publishers.sweep();
                    self.verdicts.machine.sweep(now, SWEEP_ENTRIES);
                    self.arm_sweep(now);
                }
                Timer::Ticket(ticket) => self.ticket_timeout(ticket),
                Timer::Wire(wire) => self.wire_timeout(now, wire),
            }
        }
        match self.timers.first() {
            Some((at, _)) if *at <= now.mono => Turn::More,
            _ => Turn::Done,
        }
    }

    /// Keeps the sweep armed while there is something that can expire.
    pub(super) fn arm_sweep(&mut self, now: Now) {
        if self.sweeping {
            return;
        }
        let nothing = self.dedup.is_empty()
            && self.lanes.len() == 0
            && self.resting.is_empty()
            && self.tags.is_empty()
            && self.publishers.is_empty()
            && self.verdicts.machine.is_empty();
        if nothing {
            return;
        }
        self.sweeping = true;
        self.timers
            .insert((now.mono.saturating_add(SWEEP_EVERY), Timer::Sweep));
    }

    pub(super) fn disarm(&mut self, armed: Option<Instant>, timer: Timer) {
        if let Some(at) = armed {
            self.timers.remove(&(at, timer));
        }
    }
}
