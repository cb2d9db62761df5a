//! What stations answer to a subscription, and what its readers are told of it.
//!
//! Decides: which carriers a wire subscription has, when a station that refused is asked again, how long lanes wait for a replay. Leaves
//! to others: what an interruption is (the continuity machine), facts (receive). Believes: mono for waiting, wall in notices. Bounded by:
//! one carrier per link, and as many positions of stations that do not carry.

use alloc::vec::Vec;
use core::time::Duration;

use super::lanes::LaneSlot;
use super::redial::Redial;
use super::subscriptions::Refusal;
use super::timers::Timer;
use super::{Client, LaneId, WireId};
use crate::LinkId;
use crate::code::{CloseReason, DiagnosticCode, SkipReason, SubscribeRefusal};
use crate::error::LinkError;
use crate::inbound::continuity::{Accepted, Moved, Resume, Skip, Told};
use crate::notice::Notice;
use crate::time::Now;
use crate::wire::{self, ResumeOutcome};

/// Lanes are told so often that a replay goes on; they wait ten times as long for more of it.
const HOLD_EVERY: Duration = Duration::from_secs(1);

impl Client {
    pub(super) fn handle_subscribed(
        &mut self,
        now: Now,
        link: LinkId,
        subscribed: &wire::Subscribed,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, subscribed.id)? else {
            return Ok(());
        };
        let (Some(wire), Some(side)) = (self.wires.get_mut(id), self.links.get(link)) else {
            return Ok(());
        };
        let asked = wire.asked.iter().position(|(on, _)| *on == link);
        let (Some(peer), Some(asked)) = (side.base.peer(), asked) else {
            // Accepted before: its position is moved by its reader alone.
            self.counts.unasked_frames += 1;
            return Ok(());
        };
        let (_, asked) = wire.asked.swap_remove(asked);
        let said = side.base.said(now);
        wire.refusals.retain(|refusal| refusal.link != link);
        let accepted = Accepted {
            link,
            station: peer.id,
            mesh: peer.mesh.unwrap_or(*peer.id.as_bytes()),
            since: if said.mono < asked.mono { asked } else { said },
            resume: match subscribed.resume {
                ResumeOutcome::Resumed { count } => Resume::Resumed { count },
                ResumeOutcome::Expired { .. } => Resume::Expired,
                _ => Resume::None,
            },
            position: subscribed.position,
        };
        let told = wire.continuity.handle_accepted(now, accepted);
        let replays = wire.continuity.is_replaying();
        for holder in &wire.holders {
            if let Some(found) = self.subscriptions.get_mut(*holder) {
                found.accepted.get_or_insert(now.wall);
                found.refused = None;
            }
        }
        self.begin_commits(id, link);
        self.tell(id, told);
        if replays {
            self.hold_lanes(now, id);
        }
        Ok(())
    }

    pub(super) fn handle_refused(
        &mut self,
        now: Now,
        link: LinkId,
        refused: &wire::Refused,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, refused.id)? else {
            return Ok(());
        };
        let Some(side) = self.links.get_mut(link) else {
            return Ok(());
        };
        side.wires.remove(&refused.id);
        let station = side.station;
        let reason: SubscribeRefusal = refused.reason;
        self.carrier_ended(now, id, link, CloseReason::Refused);
        let news = self.ask_later(now, id, link, reason);
        if news {
            let code = DiagnosticCode::RegistrationRefused;
            self.report(code, Some(station), reason.text());
        }
        let holders = self.wires.get(id).map(|wire| wire.holders.clone());
        for holder in holders.unwrap_or_default() {
            let found = self.subscriptions.get_mut(holder);
            let known = found.and_then(|found| found.refused.replace(reason));
            // A station that says the same again is no news but to who has not heard it.
            if news || known.is_none() {
                self.notify(holder, Notice::SubscriptionRefused { station, reason });
            }
        }
        Ok(())
    }

    /// Leaves a station that refused alone for a while. Answers whether that is news: it had accepted, or says another reason.
    fn ask_later(&mut self, now: Now, id: WireId, link: LinkId, reason: SubscribeRefusal) -> bool {
        let Some(wire) = self.wires.get_mut(id) else {
            return false;
        };
        let known = wire.refusals.iter().position(|one| one.link == link);
        let before = known.map(|known| wire.refusals.swap_remove(known));
        let news = before.as_ref().is_none_or(|one| one.reason != reason);
        let mut waits = before.map_or_else(
            || {
                self.asking.below(2);
                Redial::new(self.asking.clone())
            },
            |before| before.waits,
        );
        // Somebody has to change something first.
        let patient = matches!(
            reason,
            SubscribeRefusal::BadFilter | SubscribeRefusal::NotAllowed | SubscribeRefusal::Purged
        );
        let wait = waits.after(Duration::ZERO, patient);
        wire.refusals.push(Refusal {
            link,
            reason,
            waits,
        });
        let at = now.mono.saturating_add(wait);
        self.timers.insert((at, Timer::Again(id, link)));
        news
    }

    /// A station that refused is asked again, unless it was meanwhile.
    pub(super) fn ask_again(&mut self, now: Now, id: WireId, link: LinkId) {
        let Some(side) = self.links.get(link) else {
            return;
        };
        if side.is_live() && !side.wires.values().any(|wire| *wire == id) {
            self.ask(now, link, id);
        }
    }

    /// A link no longer carries a wire subscription.
    pub(super) fn carrier_ended(
        &mut self,
        now: Now,
        id: WireId,
        link: LinkId,
        reason: CloseReason,
    ) {
        let Some(wire) = self.wires.get_mut(id) else {
            return;
        };
        wire.asked.retain(|(asked, _)| *asked != link);
        if reason != CloseReason::Refused {
            wire.refusals.retain(|refusal| refusal.link != link);
        }
        let replayed = wire.continuity.is_replaying();
        let told = wire.continuity.handle_ended(now, link, reason);
        if replayed && !wire.continuity.is_replaying() {
            self.release_lanes(now, id);
        }
        self.tell(id, told);
    }

    pub(super) fn handle_progress(
        &mut self,
        now: Now,
        link: LinkId,
        progress: &wire::Progress,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, progress.id)? else {
            return Ok(());
        };
        let said = self.links.get(link).map(|side| side.base.said(now));
        let moved = self.wires.get_mut(id).and_then(|wire| {
            let continuity = &mut wire.continuity;
            continuity.handle_progress(now, link, progress.offset, progress.behind_ms, said)
        });
        match moved {
            Some(Moved::Live) => {}
            Some(moved) => self.replay_moved(now, id, moved),
            None => self.counts.unasked_frames += 1,
        }
        Ok(())
    }

    /// A live station gave publications up at this place.
    pub(super) fn handle_skipped(
        &mut self,
        now: Now,
        link: LinkId,
        skipped: &wire::Skipped,
    ) -> Result<(), LinkError> {
        let Some(id) = self.wire_of(link, skipped.id)? else {
            return Ok(());
        };
        let side = self.links.get(link);
        let said = side.map_or(now, |side| side.base.said(now));
        let wire = self.wires.get_mut(id);
        let Some(wire) = wire.filter(|wire| wire.carries(link)) else {
            self.counts.unasked_frames += 1;
            return Ok(());
        };
        // Ages count from when it was said, be it before a suspend in which mono stood still.
        let under_way = now.longest_since(said).as_micros();
        let under_way = u64::try_from(under_way.div_ceil(1000)).unwrap_or(u64::MAX);
        let skip = Skip {
            from: skipped.from.saturating_add(under_way),
            to: skipped.to,
            count: skipped.count,
            peer: skipped
                .peer
                .filter(|_| skipped.reason == SkipReason::PeerInterrupted),
        };
        let told = wire.continuity.handle_skipped(now, link, &skip);
        self.tell(id, told);
        Ok(())
    }

    /// An event came under a wire subscription: its reader's position moves. Whether it belongs to a replay; `None` when that link does not
    /// carry it.
    #[inline]
    pub(super) fn moved(
        &mut self,
        now: Now,
        id: WireId,
        link: LinkId,
        offset: u64,
    ) -> Option<bool> {
        let wire = self.wires.get_mut(id)?;
        match wire.continuity.handle_event(link, offset)? {
            Moved::Live => Some(false),
            moved => {
                self.replay_moved(now, id, moved);
                Some(moved != Moved::LiveAfterReplay)
            }
        }
    }

    /// Whether a link carries a wire subscription of which nothing is replayed.
    pub(super) fn reads_live(&self, id: WireId, link: LinkId) -> bool {
        let wire = self.wires.get(id);
        wire.is_some_and(|wire| wire.carries(link) && !wire.continuity.is_replaying())
    }

    #[cold]
    fn replay_moved(&mut self, now: Now, id: WireId, moved: Moved) {
        let Some(wire) = self.wires.get(id) else {
            return;
        };
        if moved != Moved::Replayed && !wire.continuity.is_replaying() {
            self.release_lanes(now, id);
            self.tell(id, None);
        } else if now.mono.saturating_since(wire.held) >= HOLD_EVERY {
            self.hold_lanes(now, id);
        }
    }

    /// A replay that may hold what is missing goes on: gaps are not timed meanwhile.
    fn hold_lanes(&mut self, now: Now, id: WireId) {
        if let Some(wire) = self.wires.get_mut(id) {
            wire.held = now.mono;
        }
        for lane in self.lanes_of(id) {
            if let Some(work) = self.lanes.get_mut(lane).and_then(LaneSlot::work) {
                work.lane.replay_progress(now);
                self.touch(lane);
            }
        }
    }

    fn release_lanes(&mut self, now: Now, id: WireId) {
        for lane in self.lanes_of(id) {
            if let Some(work) = self.lanes.get_mut(lane).and_then(LaneSlot::work) {
                work.lane.replay_end(now);
                self.touch(lane);
            }
        }
    }

    /// The same for a lane that gets a fact while one goes on.
    pub(super) fn hold_lane(&mut self, now: Now, lane: LaneId) {
        if !self.replays {
            return;
        }
        let Some(slot) = self.lanes.get_mut(lane) else {
            return;
        };
        let found = self.subscriptions.at(slot.subscription);
        let wire = found.and_then(|(_, found)| self.wires.get(found.wire));
        if wire.is_some_and(|wire| wire.continuity.is_replaying())
            && let Some(work) = slot.work()
        {
            work.lane.replay_progress(now);
        }
    }

    fn lanes_of(&self, id: WireId) -> Vec<LaneId> {
        let Some(wire) = self.wires.get(id) else {
            return Vec::new();
        };
        let of_it = self.lanes.iter();
        let of_it = of_it.filter(|(_, slot)| wire.holders.iter().any(|holder| slot.is_of(*holder)));
        of_it.map(|(lane, _)| lane).collect()
    }

    /// Whether the stations of a subscription replay.
    pub(super) fn is_replaying(&self, id: WireId) -> bool {
        self.wires
            .get(id)
            .is_some_and(|wire| wire.continuity.is_replaying())
    }

    /// A mesh was waited for long enough.
    pub(super) fn wire_timeout(&mut self, now: Now, id: WireId) {
        let Some(wire) = self.wires.get_mut(id) else {
            return;
        };
        wire.armed = None;
        let told = wire.continuity.handle_timeout(now);
        self.tell(id, told);
    }

    /// Tells every reader of a wire subscription, and keeps what is derived from its continuity.
    fn tell(&mut self, id: WireId, told: Option<Told>) {
        self.replays = self
            .wires
            .iter()
            .any(|(_, wire)| wire.continuity.is_replaying());
        let Some(wire) = self.wires.get_mut(id) else {
            return;
        };
        let due = wire.continuity.poll_timeout();
        let armed = core::mem::replace(&mut wire.armed, due);
        let holders = match told {
            Some(_) => wire.holders.clone(),
            None => Vec::new(),
        };
        if armed != due {
            self.disarm(armed, Timer::Wire(id));
            self.timers.extend(due.map(|at| (at, Timer::Wire(id))));
        }
        let Some(told) = told else {
            return;
        };
        let (code, reason) = match told {
            Told::Gap { reason, .. } => (DiagnosticCode::DeliveryGap, reason.text()),
            Told::Interrupted { reason, .. } => {
                (DiagnosticCode::DeliveryInterrupted, reason.text())
            }
            Told::Resumed { .. } => (DiagnosticCode::DeliveryResumed, ""),
        };
        self.report(code, None, reason);
        for holder in holders {
            self.notify(
                holder,
                match told {
                    Told::Gap {
                        from,
                        to,
                        reason,
                        count,
                    } => Notice::Gap {
                        from,
                        to,
                        reason,
                        count,
                    },
                    Told::Interrupted { from, reason } => Notice::Interrupted { from, reason },
                    Told::Resumed { recovered } => Notice::Resumed { recovered },
                },
            );
        }
    }
}
