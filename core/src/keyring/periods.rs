//! The key periods a keyring holds, in the storage it was given.
//!
//! Decides: which period is found, which one is sealed under, which makes room, and when one is wiped. Leaves to others: where they come
//! from. Believes: both clocks, the one that says first. Bounded by: its slots, of which 65,535 have a use; a key never moves, so no copy of
//! it is left in memory.

use core::fmt;

use super::KeyPeriod;
use crate::crypto::PeriodKey;
use crate::time::{Instant, Now, WallMs, soonest};
use crate::wire::SKEW_MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Held,
    /// It is over and its key is gone; that it was here is known.
    Over,
}

/// One place of the storage for key periods.
pub struct PeriodSlot {
    key: PeriodKey,
    issued_at: WallMs,
    publish_until: WallMs,
    accept_until: WallMs,
    /// When this side's clock says that it is not sealed under any more.
    seals_end: Instant,
    /// When this side's clock says that it is over.
    ends: Instant,
    state: State,
}

impl PeriodSlot {
    /// A slot that holds nothing.
    pub const EMPTY: Self = Self {
        key: PeriodKey::EMPTY,
        issued_at: WallMs::new(0),
        publish_until: WallMs::new(0),
        accept_until: WallMs::new(0),
        seals_end: Instant::ORIGIN,
        ends: Instant::ORIGIN,
        state: State::Free,
    };

    /// The last moment at which the wall lets it open.
    fn last_wall(&self) -> WallMs {
        self.accept_until.saturating_add(SKEW_MS)
    }

    fn is_over(&self, now: Now) -> bool {
        now.wall > self.last_wall() || now.mono >= self.ends
    }

    fn seals(&self, now: Now) -> bool {
        self.state == State::Held
            && self.issued_at <= now.wall
            && now.wall < self.publish_until
            && now.mono < self.seals_end
    }
}

impl Default for PeriodSlot {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for PeriodSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeriodSlot")
            .field("key", &self.key)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What is known of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Held(u16),
    Over,
    Nothing,
}

#[derive(Debug)]
pub(super) struct Periods<P> {
    slots: P,
    /// Slots that were in use once; those behind were not.
    begun: usize,
    held: usize,
}

/// This instant, so many wall milliseconds from `now`; at once when that is past.
fn mono_at(now: Now, wall: WallMs) -> Instant {
    let millis = u64::try_from(wall.since(now.wall)).unwrap_or(0);
    now.mono.saturating_add_millis(millis)
}

impl<P: AsRef<[PeriodSlot]> + AsMut<[PeriodSlot]>> Periods<P> {
    pub(super) fn new(mut slots: P) -> Self {
        slots.as_mut().fill_with(PeriodSlot::default);
        Self {
            slots,
            begun: 0,
            held: 0,
        }
    }

    fn used(&self) -> &[PeriodSlot] {
        self.slots.as_ref().get(..self.begun).unwrap_or_default()
    }

    pub(super) fn find(&self, id: &[u8; 8]) -> Found {
        let found = self.used().iter().enumerate();
        let found = found
            .filter(|(_, slot)| slot.key.id() == id)
            .find(|(_, slot)| slot.state != State::Free);
        match found {
            Some((at, slot)) if slot.state == State::Held => Found::Held(at as u16),
            Some(_) => Found::Over,
            None => Found::Nothing,
        }
    }

    #[inline]
    pub(super) fn key(&self, at: u16) -> &PeriodKey {
        &self.slots.as_ref()[usize::from(at)].key
    }

    /// The newest one that is sealed under now.
    pub(super) fn sealing(&self, now: Now) -> Option<u16> {
        let found = self.used().iter().enumerate();
        let found = found.filter(|(_, slot)| slot.seals(now));
        found
            .max_by_key(|(_, slot)| slot.issued_at)
            .map(|(at, _)| at as u16)
    }

    /// The newest, sealed under or not: its beginning and end.
    pub(super) fn newest(&self) -> Option<(WallMs, WallMs)> {
        let held = self.used().iter().filter(|slot| slot.state == State::Held);
        let newest = held.max_by_key(|slot| slot.issued_at)?;
        Some((newest.issued_at, newest.publish_until))
    }

    /// Takes a period in unless it is here; one that is here stays as it was. Where all slots are in use the one that is over, or is over
    /// first, makes room; answers the id of one that was held.
    pub(super) fn merge(&mut self, now: Now, period: &KeyPeriod) -> Merged {
        let mut here = self.used().iter();
        let here =
            here.position(|slot| slot.state != State::Free && slot.key.id() == period.key.id());
        let at = match here {
            Some(at) if self.used()[at].state == State::Held => {
                let here = &self.used()[at];
                let same = here.key.is_same(&period.key)
                    && here.issued_at == period.issued_at
                    && here.publish_until == period.publish_until;
                return match same {
                    true => Merged::Known,
                    false => Merged::Contradicts,
                };
            }
            // A wall that ran ahead ended it, and it is given out again.
            Some(at) => Some(at),
            None => self.place(period.accept_until),
        };
        let Some(at) = at else {
            return Merged::Full;
        };
        let slot = &mut self.slots.as_mut()[at];
        let gone = (slot.state == State::Held).then_some(*slot.key.id());
        slot.key.set(&period.key);
        slot.issued_at = period.issued_at;
        slot.publish_until = period.publish_until;
        slot.accept_until = period.accept_until;
        slot.seals_end = mono_at(now, period.publish_until);
        slot.ends = mono_at(now, period.accept_until.saturating_add(SKEW_MS + 1));
        slot.state = State::Held;
        self.held += usize::from(gone.is_none());
        Merged::New { gone }
    }

    fn place(&mut self, accept_until: WallMs) -> Option<usize> {
        let used = self.used().iter().enumerate();
        if let Some((at, _)) = used.clone().find(|(_, slot)| slot.state == State::Free) {
            return Some(at);
        }
        if self.begun < self.capacity() {
            self.begun += 1;
            return Some(self.begun - 1);
        }
        let key = |slot: &PeriodSlot| (slot.state == State::Held, slot.accept_until);
        let (at, first) = used.min_by_key(|(_, slot)| key(slot))?;
        let room = first.state == State::Over || first.accept_until < accept_until;
        room.then_some(at)
    }

    /// Wipes one that is over and answers its id. Called until there is none.
    pub(super) fn end(&mut self, now: Now) -> Option<[u8; 8]> {
        let begun = self.begun;
        let slots = self.slots.as_mut().iter_mut().take(begun);
        let mut held = slots.filter(|slot| slot.state == State::Held);
        let slot = held.find(|slot| slot.is_over(now))?;
        slot.key.wipe();
        slot.state = State::Over;
        self.held -= 1;
        Some(*slot.key.id())
    }

    /// When the first is over: by either clock.
    pub(super) fn ends(&self) -> (Option<Instant>, Option<WallMs>) {
        let held = self.used().iter().filter(|slot| slot.state == State::Held);
        held.fold((None, None), |(mono, wall), slot| {
            let last = slot.last_wall();
            let wall: Option<WallMs> = wall;
            (
                soonest(mono, Some(slot.ends)),
                Some(wall.map_or(last, |wall| wall.min(last))),
            )
        })
    }

    /// Wipes all.
    pub(super) fn clear(&mut self) {
        self.slots.as_mut().fill_with(PeriodSlot::default);
        (self.begun, self.held) = (0, 0);
    }

    pub(super) fn len(&self) -> usize {
        self.held
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.as_ref().len().min(usize::from(u16::MAX))
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(self.slots.as_ref())
    }
}

/// What became of a period that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// It was here; what was here stays.
    Known,
    /// It was here with another key or end; what was here stays.
    Contradicts,
    /// It is held from now on; another one that was held made room.
    New { gone: Option<[u8; 8]> },
    /// All that is held is over later than it.
    Full,
}

#[cfg(test)]
impl<P: AsRef<[PeriodSlot]> + AsMut<[PeriodSlot]>> Periods<P> {
    /// No slot that is not held has a secret.
    pub(super) fn is_wiped(&self) -> bool {
        let slots = self.slots.as_ref().iter();
        let mut rest = slots.filter(|slot| slot.state != State::Held);
        rest.all(|slot| slot.key.is_wiped())
    }
}
