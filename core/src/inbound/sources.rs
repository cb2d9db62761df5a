//! Whether a verified publisher may speak: verdicts that are kept, lookups that are asked for, and how many facts wait for one.
//!
//! Decides: whether a fact is admitted, refused, dropped, or waits, and whether its publisher is looked up. Leaves to others: what a verdict is
//! found by (realm, source and publisher), the lookup itself, and the facts that wait. Believes: mono for deadlines; both clocks for the end of a
//! verdict, and of the two the one that says first. Bounded by: its slots and [`SourceLimits`].
//!
//! A verdict is never extended by use, and one that was seen to be over stays over, whatever the wall does. A publisher that was admitted is
//! remembered as such for one more `cache_ttl_ms`, which is what the kept half of a [`Window`] is for; where all slots are taken, the oldest
//! of those whose verdict is over makes room, and nobody else does.

mod entry;
mod limits;
mod said;
mod slots;
mod window;

use self::entry::{Asking, End, Entry, Verdict};
pub use self::limits::{SourceLimits, SourceLimitsFault};
pub use self::said::{Judgement, Lookup, LookupId, Settled, SourceAnswer, SourceDrop};
pub use self::slots::Slot;
use self::slots::{List, Slots};
pub use self::window::{Share, Window};
use crate::code::SourceRefusal;
use crate::rng::Rng;
use crate::storage::Room;
use crate::table::TableKey;
use crate::time::{Instant, Now, WallMs};

/// Verdicts looked at, the oldest first, for one that is over and can make room.
const MAKE_ROOM: usize = 64;

/// The place of a lookup that may begin.
struct Place {
    /// Its publisher was admitted before, lately enough to count.
    known: bool,
    /// It is the one of a verdict that is over.
    kept: bool,
    /// The one that is given up for it.
    makes_room: Option<u32>,
}

/// Verdicts by key, in a storage of slots. See the module's text.
///
/// Getters: [`admitted`](Self::admitted), [`lookups`](Self::lookups), [`held`](Self::held), [`verdict`](Self::verdict), `poll_timeout`. Inputs:
/// [`judge`](Self::judge), [`stops`](Self::stops), [`answer`](Self::answer), [`leave`](Self::leave), [`sweep`](Self::sweep), `handle_timeout`, which
/// settles one lookup per call and is called until it has none.
///
/// ```
/// use tidings::inbound::sources::{
///     Judgement, Settled, Slot, SourceAnswer, SourceLimits, Sources, Window,
/// };
/// use tidings::{Instant, NodeId, Now, Seed, WallMs};
///
/// let limits = SourceLimits::default();
/// let slots = [Slot::<NodeId>::EMPTY; 10];
/// let mut sources = Sources::new(slots, limits, &mut Seed::new([7; 32]).fork("sources"))?;
/// let mut window = Window::new([None; 2]);
/// let at = |ms| Now::new(Instant::from_millis(ms), WallMs::new(1_000_000 + ms));
/// let publisher = NodeId::new([1; 32]);
/// let budget = |known| window.take(at(0).mono, &limits, known, "link");
/// let Judgement::Ask(lookup) = sources.judge(at(0), &publisher, budget) else {
///     panic!("nobody knows it");
/// };
/// let answer = SourceAnswer::Admit { until: WallMs::new(1_060_000) };
/// assert_eq!(sources.answer(at(20), lookup.id, answer), Some(Settled::Admit));
/// assert_eq!(sources.judge(at(21), &publisher, |_| false), Judgement::Admit(None));
/// # Ok::<(), tidings::inbound::sources::SourceLimitsFault>(())
/// ```
#[derive(Debug)]
pub struct Sources<K, S> {
    slots: Slots<K, S>,
    limits: SourceLimits,
    /// Refusals there may be; the other slots are for whoever was admitted or is looked up.
    most_refusals: usize,
    /// The one answered longest ago is first.
    verdicts: List,
    refusals: List,
    /// All are as patient, so the one asked first is due first.
    asked: List,
    turn: u32,
    held: usize,
}

#[cfg(feature = "alloc")]
impl<K: TableKey + Copy> Sources<K, alloc::vec::Vec<Slot<K>>> {
    /// With storage that grows and shrinks as needed.
    ///
    /// # Errors
    /// The first setting that contradicts another or itself.
    pub fn growing(limits: SourceLimits, rng: &mut Rng) -> Result<Self, SourceLimitsFault> {
        limits.check()?;
        Ok(Self::heap(limits, rng))
    }

    /// The same with limits that were checked.
    pub(crate) fn heap(limits: SourceLimits, rng: &mut Rng) -> Self {
        let room = |_| Room::heap(limits.slots());
        let slots = Slots::new(alloc::vec::Vec::new(), room, rng);
        Self::build(slots, limits)
    }
}

impl<K: TableKey + Copy, S: AsRef<[Slot<K>]> + AsMut<[Slot<K>]>> Sources<K, S> {
    /// On slots whose contents are given up; [`SourceLimits::slots`] says how many have a use. With fewer, a fifth of them is for refusals.
    ///
    /// # Errors
    /// The first setting that contradicts another or itself.
    pub fn new(slots: S, limits: SourceLimits, rng: &mut Rng) -> Result<Self, SourceLimitsFault> {
        limits.check()?;
        let room = |slots: usize| Room::fixed(slots.min(limits.slots()));
        Ok(Self::build(Slots::new(slots, room, rng), limits))
    }

    fn build(slots: Slots<K, S>, limits: SourceLimits) -> Self {
        let most_refusals = match slots.capacity() {
            all if all == limits.slots() => limits.refusals(),
            few => few / 5,
        };
        Self {
            slots,
            limits,
            most_refusals,
            verdicts: List::new(0),
            refusals: List::new(0),
            asked: List::new(1),
            turn: 0,
            held: 0,
        }
    }

    /// The bounds it was made with.
    pub fn limits(&self) -> &SourceLimits {
        &self.limits
    }

    /// A fact of this publisher came. `budget` answers whether a lookup may begin for one who was admitted before, or for a stranger; it is asked
    /// once at most, and only where nothing else stands in the way. A fact that waits counts until its lookup is settled, or it
    /// [leaves](Self::leave). Where `poll_timeout` has come, call `handle_timeout` first: what joins a lookup that is due waits for one that no
    /// answer settles any more.
    #[inline]
    pub fn judge(&mut self, now: Now, key: &K, budget: impl FnOnce(bool) -> bool) -> Judgement {
        let Some((at, entry)) = self.slots.find(key) else {
            return self.ask(now, key, None, budget);
        };
        match entry.verdict {
            Verdict::Admitted(end) if !end.is_over(now) => {
                let margin = self.limits.refresh_margin_ms;
                if margin == 0 || !end.is_within(now, margin) {
                    return Judgement::Admit(None);
                }
                self.refresh(now, at, budget)
            }
            Verdict::Refused(end, reason) if !end.is_over(now) => Judgement::Refuse(reason),
            _ => self.wait(now, at, key, budget),
        }
    }

    /// What is known of this publisher, without asking: that it is admitted, or why it is refused.
    pub fn verdict(&self, now: Now, key: &K) -> Option<Result<(), SourceRefusal>> {
        let (_, entry) = self.slots.find(key)?;
        match entry.verdict {
            Verdict::Admitted(end) if !end.is_over(now) => Some(Ok(())),
            Verdict::Refused(end, reason) if !end.is_over(now) => Some(Err(reason)),
            _ => None,
        }
    }

    /// Whether a fact of this publisher would be refused or dropped now: what costs more than that need not be done for it. `budget` answers, as
    /// in [`judge`](Self::judge), whether a lookup could begin; none does, and nothing else changes but that an end that has come is noted.
    pub fn stops(
        &mut self,
        now: Now,
        key: &K,
        budget: impl FnOnce(bool) -> bool,
    ) -> Option<Judgement> {
        let at = self.slots.find(key).map(|(at, _)| at);
        let entry = at.and_then(|at| self.slots.get_mut(at));
        let mut new = Entry::NEW;
        let entry = entry.unwrap_or(&mut new);
        match entry.verdict {
            Verdict::Admitted(end) if !end.is_over(now) => return None,
            Verdict::Refused(end, reason) if !end.is_over(now) => {
                return Some(Judgement::Refuse(reason));
            }
            _ => entry.fade(self.limits.cache_ttl_ms),
        }
        let Entry {
            verdict, asking, ..
        } = *entry;
        let dropped = match asking {
            Some(asking) if asking.held < self.limits.held_per_key => return None,
            Some(_) => SourceDrop::HoldFull,
            None => match self.place(now, verdict) {
                Err(full) => full,
                Ok(place) if budget(place.known) => return None,
                Ok(_) => SourceDrop::WindowSpent,
            },
        };
        Some(Judgement::Drop(dropped))
    }

    /// Its verdict is about to end: the fact does not wait for the next.
    fn refresh(&mut self, now: Now, at: u32, budget: impl FnOnce(bool) -> bool) -> Judgement {
        let entry = self.slots.get(at);
        let may =
            entry.is_some_and(|(_, entry)| entry.asking.is_none() && entry.rests_until <= now.mono);
        Judgement::Admit(match may && budget(true) {
            true => Some(self.begin(now, at, 0)),
            false => None,
        })
    }

    /// No verdict is there, but an entry.
    #[inline(never)]
    fn wait(&mut self, now: Now, at: u32, key: &K, budget: impl FnOnce(bool) -> bool) -> Judgement {
        let most = self.limits.held_per_key;
        let remembered = self.limits.cache_ttl_ms;
        let Some(entry) = self.slots.get_mut(at) else {
            return Judgement::Drop(SourceDrop::VerdictsFull);
        };
        entry.fade(remembered);
        if let Some(asking) = &mut entry.asking {
            if asking.held >= most {
                return Judgement::Drop(SourceDrop::HoldFull);
            }
            asking.held += 1;
            let id = LookupId {
                slot: at,
                turn: asking.turn,
            };
            self.held += 1;
            return Judgement::Wait(id);
        }
        self.ask(now, key, Some(at), budget)
    }

    /// Nobody has asked for it, whose slot is known if it has one.
    #[inline(never)]
    fn ask(
        &mut self,
        now: Now,
        key: &K,
        at: Option<u32>,
        budget: impl FnOnce(bool) -> bool,
    ) -> Judgement {
        let verdict = at.and_then(|at| self.slots.get(at));
        let verdict = verdict.map_or(Verdict::None, |(_, entry)| entry.verdict);
        let Place {
            known,
            kept,
            makes_room,
        } = match self.place(now, verdict) {
            Ok(place) => place,
            Err(full) => return Judgement::Drop(full),
        };
        if !budget(known) {
            return Judgement::Drop(SourceDrop::WindowSpent);
        }
        if let Some(over) = makes_room {
            self.forget(over);
        }
        // A refusal that is over gives its place among them up.
        if let (Some(at), Verdict::Refused(..)) = (at, verdict) {
            self.forget(at);
        }
        let at = match at.filter(|_| kept) {
            Some(at) => Some(at),
            None => self.slots.insert(*key, Entry::NEW),
        };
        let Some(at) = at else {
            return Judgement::Drop(SourceDrop::VerdictsFull);
        };
        self.held += 1;
        Judgement::Ask(self.begin(now, at, 1))
    }

    /// Where a lookup would have its place.
    fn place(&self, now: Now, verdict: Verdict) -> Result<Place, SourceDrop> {
        let known = matches!(verdict, Verdict::Before(until) if now.mono < until);
        let kept = matches!(verdict, Verdict::Before(_));
        let makes_room = match kept || self.has_room() {
            true => None,
            false => Some(self.oldest_over(now).ok_or(SourceDrop::VerdictsFull)?),
        };
        Ok(Place {
            known,
            kept,
            makes_room,
        })
    }

    /// Begins a lookup.
    fn begin(&mut self, now: Now, at: u32, held: u32) -> Lookup {
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let wait = self.limits.lookup_timeout_ms;
        let deadline = now.mono.saturating_add_millis(wait);
        if let Some(entry) = self.slots.get_mut(at) {
            entry.asking = Some(Asking {
                turn,
                deadline,
                held,
            });
        }
        self.slots.attach(&mut self.asked, at);
        let id = LookupId { slot: at, turn };
        Lookup { id, deadline }
    }

    /// Those who were admitted or are looked up, the refused aside, are fewer than may be.
    fn has_room(&self) -> bool {
        let most = self.slots.capacity() - self.most_refusals;
        self.slots.len() - self.refusals.len() < most
    }

    /// The first whose verdict is over, among those that were answered longest ago.
    fn oldest_over(&self, now: Now) -> Option<u32> {
        let mut oldest = self.slots.walk(&self.verdicts).take(MAKE_ROOM);
        let over = oldest.find(|(_, entry)| {
            let over = match entry.verdict {
                Verdict::Admitted(end) => end.is_over(now),
                _ => true,
            };
            over && entry.asking.is_none()
        });
        over.map(|(at, _)| at)
    }

    /// Gives up what is known of somebody who is not looked up.
    fn forget(&mut self, at: u32) {
        self.unlist(at);
        self.slots.remove(at);
    }

    /// Takes a verdict out of the list it is in.
    fn unlist(&mut self, at: u32) {
        match self.slots.get(at).map(|(_, entry)| entry.verdict) {
            Some(Verdict::Admitted(_) | Verdict::Before(_)) => {
                self.slots.detach(&mut self.verdicts, at);
            }
            Some(Verdict::Refused(..)) => self.slots.detach(&mut self.refusals, at),
            Some(Verdict::None) | None => {}
        }
    }

    /// A lookup has its answer. `None`, and nothing has changed, where it comes too late: the lookup was settled before, or its deadline has
    /// come, whether that was handled or not.
    pub fn answer(&mut self, now: Now, id: LookupId, answer: SourceAnswer) -> Option<Settled> {
        let at = self.slot_of(id)?;
        let asking = self.slots.get(at)?.1.asking?;
        if asking.deadline <= now.mono {
            return None;
        }
        Some(self.settle(now, at, answer, SourceDrop::Undecided))
    }

    /// The publisher a lookup is about, while it is under way.
    pub fn key(&self, id: LookupId) -> Option<&K> {
        self.slots.get(self.slot_of(id)?).map(|(key, _)| key)
    }

    fn slot_of(&self, id: LookupId) -> Option<u32> {
        let (_, entry) = self.slots.get(id.slot)?;
        let asking = entry.asking.filter(|asking| asking.turn == id.turn);
        asking.map(|_| id.slot)
    }

    /// Gives up one lookup whose deadline has come, the first asked first. Call until `None`.
    pub fn handle_timeout(&mut self, now: Now) -> Option<(LookupId, Settled)> {
        let at = self.asked.first()?;
        let asking = self.slots.get(at)?.1.asking?;
        if asking.deadline > now.mono {
            return None;
        }
        let id = LookupId {
            slot: at,
            turn: asking.turn,
        };
        let settled = self.settle(now, at, SourceAnswer::Unknown, SourceDrop::Unanswered);
        Some((id, settled))
    }

    /// When the first lookup is given up.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (_, entry) = self.slots.get(self.asked.first()?)?;
        entry.asking.map(|asking| asking.deadline)
    }

    fn settle(&mut self, now: Now, at: u32, answer: SourceAnswer, unknown: SourceDrop) -> Settled {
        self.slots.detach(&mut self.asked, at);
        let rests = self.limits.lookup_timeout_ms;
        if let Some(entry) = self.slots.get_mut(at) {
            let asking = entry.asking.take();
            self.held -= asking.map_or(0, |asking| asking.held as usize);
            entry.rests_until = now.mono.saturating_add_millis(rests);
        }
        match answer {
            SourceAnswer::Admit { until } if until > now.wall => {
                let end = End::after(now, self.limits.cache_ttl_ms, until);
                self.unlist(at);
                self.set(at, Verdict::Admitted(end));
                self.slots.attach(&mut self.verdicts, at);
                Settled::Admit
            }
            SourceAnswer::Admit { .. } => self.refuse(now, at, SourceRefusal::Expired),
            SourceAnswer::Refuse(reason) => self.refuse(now, at, reason),
            SourceAnswer::Unknown => {
                let verdict = self.slots.get(at).map(|(_, entry)| entry.verdict);
                if let Some(Verdict::None) = verdict {
                    self.slots.remove(at);
                }
                Settled::Drop(unknown)
            }
        }
    }

    fn set(&mut self, at: u32, verdict: Verdict) {
        if let Some(entry) = self.slots.get_mut(at) {
            entry.verdict = verdict;
        }
    }

    fn refuse(&mut self, now: Now, at: u32, reason: SourceRefusal) -> Settled {
        self.unlist(at);
        let lasts = self.limits.refusal_ttl_ms;
        if lasts == 0 || self.most_refusals == 0 {
            self.set(at, Verdict::None);
            self.slots.remove(at);
            return Settled::Refuse(reason);
        }
        if self.refusals.len() >= self.most_refusals
            && let Some(oldest) = self.refusals.first()
        {
            self.forget(oldest);
        }
        let end = End::after(now, lasts, WallMs::new(u64::MAX));
        self.set(at, Verdict::Refused(end, reason));
        self.slots.attach(&mut self.refusals, at);
        Settled::Refuse(reason)
    }

    /// A fact that waited for a lookup waits no more: its life is over, or nobody wants it. The lookup goes on.
    pub fn leave(&mut self, id: LookupId) {
        let Some(at) = self.slot_of(id) else { return };
        if let Some(entry) = self.slots.get_mut(at)
            && let Some(asking) = &mut entry.asking
            && asking.held > 0
        {
            asking.held -= 1;
            self.held -= 1;
        }
    }

    /// Forgets verdicts that nothing is asked of any more, the oldest first and `budget` at most.
    pub fn sweep(&mut self, now: Now, budget: usize) {
        for _ in 0..budget {
            let Some(at) = self.refusals.first() else {
                break;
            };
            let over = self.slots.get(at).is_some_and(
                |(_, entry)| matches!(entry.verdict, Verdict::Refused(end, _) if end.is_over(now)),
            );
            if !over {
                break;
            }
            self.forget(at);
        }
        let remembered = self.limits.cache_ttl_ms;
        for _ in 0..budget {
            let Some(at) = self.verdicts.first() else {
                break;
            };
            let long_over = self.slots.get(at).is_some_and(|(_, entry)| {
                let until = match entry.verdict {
                    Verdict::Admitted(end) => end.mono.saturating_add_millis(remembered),
                    Verdict::Before(until) => until,
                    Verdict::None | Verdict::Refused(..) => now.mono,
                };
                entry.asking.is_none() && until <= now.mono
            });
            if !long_over {
                break;
            }
            self.forget(at);
        }
        self.slots.shrink();
    }

    /// Publishers that are admitted now. Looks at every verdict.
    pub fn admitted(&self, now: Now) -> usize {
        let verdicts = self.slots.walk(&self.verdicts);
        let live = verdicts.filter(
            |(_, entry)| matches!(entry.verdict, Verdict::Admitted(end) if !end.is_over(now)),
        );
        live.count()
    }

    /// Lookups under way.
    pub fn lookups(&self) -> usize {
        self.asked.len()
    }

    /// Facts that wait for one.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Publishers of whom something is kept.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// Publishers there is room for.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Bytes of the slots.
    pub fn memory(&self) -> usize {
        self.slots.memory()
    }
}

#[cfg(test)]
mod tests;
