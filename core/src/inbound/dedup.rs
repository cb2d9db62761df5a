//! Which publications were here before.
//!
//! Decides: whether a publication is known, and how long that is remembered. Leaves to others: verifying before [`Dedup::commit`], and which
//! entries may be reused early. Believes: both clocks, and of the two the one that says last that a life is over. Bounded by: its slots; each
//! call looks at a bounded number of them.
//!
//! Looking and remembering are two calls, because a peer can lie between them: a forged copy is looked up and never recorded. An entry is
//! found by the first 16 bytes of the publication's hash or by 16 bytes made of its signature, which cost no SHA-384 to make. An entry
//! never moves: slots come into use one by one, and the index grows a group at a time, so growth never stops the world.

mod hashes;
mod index;

use core::fmt;

pub use self::index::{Group, groups_for};
use self::hashes::{Hashes, prefix};
use self::index::{Index, Place};
use crate::id::PublicationHash;
use crate::rng::Rng;
use crate::storage::Room;
use crate::time::{Duration, Instant, Now, WallMs};

/// Slots looked at for ended lives with each commit.
const SWEPT_PER_COMMIT: usize = 4;

/// Slots looked at before one that was never used is taken: what is over goes first, so that memory follows what is alive.
const SWEPT_TO_STAY_SMALL: usize = 16;

/// Slots looked at before a publication is refused.
const SWEPT_WHEN_FULL: usize = 256;

/// Slots a heap storage begins with, and those in use below which nothing is given back.
const SMALLEST: usize = 64;

/// Slots a heap storage grows by at most: 4 MiB.
const LARGEST_STEP: usize = 65_536;

/// No slot.
const NONE: u32 = u32::MAX;

/// The two indexes of every entry.
const BY_ID: usize = 0;
const BY_SIGNATURE: usize = 1;

/// One place of a dedup's storage: one cache line. With its part of the index, an entry takes 75 bytes.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Slot {
    /// What the entry is found by, in each index; of a free slot, its neighbours in the list of free ones.
    keys: [[u64; 2]; 2],
    until: WallMs,
    at_least: Instant,
    seq: u64,
    tag: u32,
    /// Odd while the slot holds an entry; changes with every use.
    mark: u32,
}

impl Slot {
    /// A slot that was never used.
    pub const EMPTY: Self = Self {
        keys: [[0; 2]; 2],
        until: WallMs::new(0),
        at_least: Instant::ORIGIN,
        seq: 0,
        tag: 0,
        mark: 0,
    };

    #[inline]
    fn holds_entry(&self) -> bool {
        self.mark % 2 == 1
    }

    #[inline]
    fn is_over(&self, now: Now) -> bool {
        now.wall > self.until && now.mono >= self.at_least
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// 128 bits of a keyed hash over key id and signature; only [`Dedup::signature_key`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureKey([u64; 2]);

/// Names an entry until it ends; never another one after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef {
    index: u32,
    mark: u32,
}

/// What to remember of a verified publication.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// Its identity.
    pub id: &'a PublicationHash,
    /// Its signature, see [`Dedup::signature_key`].
    pub signature: SignatureKey,
    /// The last wall millisecond at which a copy could still be accepted.
    pub until: WallMs,
    /// The caller's number for its publisher. Small numbers: one counter is kept for each up to the greatest.
    pub tag: u32,
    /// The caller's mark for early reuse, such as its seq.
    pub seq: u64,
}

/// Why a publication could not be remembered. Nothing changed; [`Dedup::make_room`] may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Full {
    /// More than half of the table is full and this publisher holds a quarter of it: only its own entries make room for it.
    Share,
    /// Every slot holds an entry whose life is not over.
    Table,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Share => "the publisher holds its quarter of the dedup table",
            Self::Table => "the dedup table is full",
        })
    }
}

impl core::error::Error for Full {}

/// A dedup on the heap.
#[cfg(feature = "alloc")]
pub type HeapDedup = Dedup<alloc::vec::Vec<Slot>, alloc::vec::Vec<Group>, alloc::vec::Vec<u32>>;

/// The memory of one client or station. See the module's text.
///
/// `S` are the entries, `I` the index, `C` a counter for each publisher. Getters and looking up take no time; commands take both clocks.
///
/// ```
/// use tidings::inbound::dedup::{Dedup, Group, NewEntry, Slot, groups_for};
/// use tidings::{Instant, Now, PublicationHash, Seed, WallMs};
///
/// let slots: [Slot; 8] = [const { Slot::EMPTY }; 8];
/// let groups: [Group; groups_for(8)] = [const { Group::EMPTY }; groups_for(8)];
/// let mut dedup = Dedup::new(slots, groups, [0u32; 2], &mut Seed::new([7; 32]).fork("dedup"));
/// let now = Now::new(Instant::ORIGIN, WallMs::new(1_000));
/// let id = PublicationHash::new([9; 48]);
/// let signature = dedup.signature_key(&[1; 32], &[2; 64]);
/// assert!(dedup.check_signature(signature).is_none());
/// assert!(dedup.check(&id).is_none());
/// let entry = NewEntry { id: &id, signature, until: WallMs::new(2_000), tag: 0, seq: 1 };
/// assert!(dedup.commit(now, entry).is_ok());
/// assert!(dedup.check(&id).is_some());
/// assert!(dedup.check_signature(signature).is_some());
/// ```
#[derive(Debug)]
pub struct Dedup<S, I, C> {
    slots: S,
    room: Room<S>,
    index: Index<I>,
    counts: C,
    counts_room: Room<C>,
    hashes: Hashes,
    /// Slots in use, from the first on.
    used: usize,
    len: usize,
    /// Ends of the list of free slots among those in use.
    free: u32,
    free_last: u32,
    hand: usize,
    room_hand: usize,
    /// Above the mark of every slot that was given back.
    marks_used: u32,
}

#[cfg(feature = "alloc")]
impl HeapDedup {
    /// At most `capacity` entries, and a counter for each of the tags below `max_tags`; tags beyond share counters with lower ones. Nothing is
    /// allocated until the first entry. Slots grow by an eighth, at most 4 MiB at a time; the index doubles, is cleared in one go (11 MiB for a
    /// million entries) and taken over group by group. Both are given back as entries end.
    pub fn with_capacity(capacity: usize, max_tags: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.min(NONE as usize);
        Self::build(
            alloc::vec::Vec::new(),
            Room::heap(capacity),
            Index::heap(capacity),
            alloc::vec::Vec::new(),
            Room::heap(max_tags),
            rng,
        )
    }
}

impl<S, I, C> Dedup<S, I, C>
where
    S: AsRef<[Slot]> + AsMut<[Slot]>,
    I: AsRef<[Group]> + AsMut<[Group]>,
    C: AsRef<[u32]> + AsMut<[u32]>,
{
    /// As many entries as there are slots, if there are [`groups_for`] as many groups, else as many as the groups suit. `counts` are zeros, one for each tag; a tag beyond them shares the counter of a lower one, and with no
    /// counter at all no publisher is held to its quarter.
    pub fn new(slots: S, groups: I, counts: C, rng: &mut Rng) -> Self {
        let suited = groups.as_ref().len() / 2 * index::LOAD;
        let room = Room::fixed(slots.as_ref().len().min(suited).min(NONE as usize));
        let index = Index::new(groups, room.max);
        let counts_room = Room::fixed(counts.as_ref().len());
        Self::build(slots, room, index, counts, counts_room, rng)
    }

    fn build(
        slots: S,
        room: Room<S>,
        index: Index<I>,
        counts: C,
        counts_room: Room<C>,
        rng: &mut Rng,
    ) -> Self {
        Self {
            slots,
            room,
            index,
            counts,
            counts_room,
            hashes: Hashes::new(rng),
            used: 0,
            len: 0,
            free: NONE,
            free_last: NONE,
            hand: 0,
            room_hand: 0,
            marks_used: 0,
        }
    }

    /// The key under which a publication's signature is known. About 10 ns.
    pub fn signature_key(&self, publisher: &[u8; 32], signature: &[u8; 64]) -> SignatureKey {
        self.hashes.signature(publisher, signature)
    }

    /// Looks a verified publication's signature up. A copy with other bytes under a known signature is a copy all the same.
    pub fn check_signature(&self, signature: SignatureKey) -> Option<EntryRef> {
        self.find(BY_SIGNATURE, signature.0)
    }

    /// Looks a publication up by its identity.
    pub fn check(&self, id: &PublicationHash) -> Option<EntryRef> {
        self.find(BY_ID, prefix(id))
    }

    /// The caller's tag and mark of an entry.
    pub fn entry(&self, entry: EntryRef) -> Option<(u32, u64)> {
        let slot = self.slot(entry)?;
        Some((slot.tag, slot.seq))
    }

    /// Remembers a publication that was verified and is wanted, until the wall has passed `until` **and** as much monotonic time has gone by
    /// as it had left now. One that is known already keeps its entry, until the later of both ends.
    ///
    /// # Errors
    /// [`Full`]; nothing changed but that ended entries may have gone.
    pub fn commit(&mut self, now: Now, new: NewEntry<'_>) -> Result<EntryRef, Full> {
        let left = u64::try_from(new.until.since(now.wall)).unwrap_or(0);
        let at_least = now.mono.saturating_add(Duration::from_millis(left));
        let id = prefix(new.id);
        if let Some(known) = self.find(BY_ID, id) {
            let slot = &mut self.slots.as_mut()[known.index as usize];
            slot.until = slot.until.max(new.until);
            slot.at_least = slot.at_least.max(at_least);
            return Ok(known);
        }
        self.sweep(now, SWEPT_PER_COMMIT);
        if self.len == self.room.max {
            self.sweep(now, SWEPT_WHEN_FULL);
        } else if self.len == self.used {
            self.sweep(now, SWEPT_TO_STAY_SMALL);
        }
        if self.len == self.room.max {
            return Err(Full::Table);
        }
        if self.len > self.room.max / 2 && self.holds_its_share(new.tag) {
            return Err(Full::Share);
        }
        let Some(index) = self.take_slot() else {
            return Err(Full::Table);
        };
        self.adapt_index();
        let slot = &mut self.slots.as_mut()[index as usize];
        slot.keys = [id, new.signature.0];
        slot.until = new.until;
        slot.at_least = at_least;
        slot.tag = new.tag;
        slot.seq = new.seq;
        slot.mark = slot.mark.wrapping_add(1);
        let mark = slot.mark;
        self.len += 1;
        self.count(new.tag, 1);
        for which in [BY_ID, BY_SIGNATURE] {
            let place = self.place(which, index);
            self.index.insert(place, index);
        }
        Ok(EntryRef { index, mark })
    }

    /// Forgets a publication, so that a later copy gets another chance. Answers whether it was known.
    pub fn forget(&mut self, id: &PublicationHash) -> bool {
        let Some(entry) = self.find(BY_ID, prefix(id)) else {
            return false;
        };
        self.remove(entry.index);
        true
    }

    /// Forgets an entry. Answers whether it was still there.
    pub fn forget_entry(&mut self, entry: EntryRef) -> bool {
        let known = self.slot(entry).is_some();
        if known {
            self.remove(entry.index);
        }
        known
    }

    /// Looks at the next `budget` slots and lets ended entries go; answers how many those were. Every commit does a little of this by itself:
    /// call it from a timer, so that memory is given back when nothing comes any more.
    pub fn sweep(&mut self, now: Now, budget: usize) -> usize {
        let before = self.len;
        for _ in 0..budget.min(self.used) {
            if self.hand >= self.used {
                self.hand = 0;
            }
            let slot = &self.slots.as_ref()[self.hand];
            if slot.holds_entry() && slot.is_over(now) {
                self.remove(self.hand as u32);
            }
            self.hand += 1;
        }
        self.give_back(budget);
        before - self.len
    }

    /// Looks at `budget` slots, from where it stopped last, and forgets the entries that are over or `covered(tag, seq)` by something else the caller
    /// remembers, such as a lane's edge. Answers how many went. For when [`commit`](Self::commit) said [`Full`].
    pub fn make_room(
        &mut self,
        now: Now,
        budget: usize,
        mut covered: impl FnMut(u32, u64) -> bool,
    ) -> usize {
        let before = self.len;
        for _ in 0..budget.min(self.used) {
            if self.room_hand >= self.used {
                self.room_hand = 0;
            }
            let slot = &self.slots.as_ref()[self.room_hand];
            if slot.holds_entry() && (slot.is_over(now) || covered(slot.tag, slot.seq)) {
                self.remove(self.room_hand as u32);
            }
            self.room_hand += 1;
        }
        before - self.len
    }

    /// Entries held, those included whose life ended since the hand last came by.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries it may hold.
    pub fn capacity(&self) -> usize {
        self.room.max
    }

    /// How full it is, in per cent, rounded down; 100 when it can hold nothing.
    pub fn fill(&self) -> u8 {
        (self.len as u64 * 100)
            .checked_div(self.room.max as u64)
            .map_or(100, |fill| fill as u8)
    }

    /// How many seconds of `per_second` new publications find room even if no entry ends; `None` when that is for ever.
    pub fn seconds_of_room(&self, per_second: u64) -> Option<u64> {
        ((self.room.max - self.len) as u64).checked_div(per_second)
    }

    /// Entries of the publisher with this tag, and of those that share its counter.
    pub fn held_by(&self, tag: u32) -> u32 {
        let counts = self.counts.as_ref();
        counter(counts.len(), self.counts_room.max, tag).map_or(0, |index| counts[index])
    }

    /// Bytes of slots, index and counters.
    pub fn memory(&self) -> usize {
        let counts = size_of_val(self.counts.as_ref());
        size_of_val(self.slots.as_ref()) + self.index.memory() + counts
    }

    fn holds_its_share(&self, tag: u32) -> bool {
        self.counts_room.max > 0 && self.held_by(tag) as usize >= self.room.max.div_ceil(4)
    }

    fn slot(&self, entry: EntryRef) -> Option<&Slot> {
        let slots = &self.slots.as_ref()[..self.used];
        let slot = slots.get(entry.index as usize)?;
        (slot.mark == entry.mark && slot.holds_entry()).then_some(slot)
    }

    fn find(&self, which: usize, key: [u64; 2]) -> Option<EntryRef> {
        let slots = self.slots.as_ref();
        let hash = self.hashes.of(which, key);
        let is_it = |index: u32| slots[index as usize].keys[which] == key;
        let index = self.index.find(Place { which, hash }, is_it)?;
        let mark = slots[index as usize].mark;
        Some(EntryRef { index, mark })
    }

    fn place(&self, which: usize, index: u32) -> Place {
        let key = self.slots.as_ref()[index as usize].keys[which];
        let hash = self.hashes.of(which, key);
        Place { which, hash }
    }

    /// Lets the index follow the slots in use, a group at a time.
    fn adapt_index(&mut self) -> bool {
        let (slots, hashes) = (self.slots.as_ref(), &self.hashes);
        self.index.adapt(self.used, |which, number| {
            hashes.of(which, slots[number as usize].keys[which])
        })
    }

    fn remove(&mut self, index: u32) {
        for which in [BY_ID, BY_SIGNATURE] {
            let place = self.place(which, index);
            self.index.remove(place, index);
        }
        let slot = &mut self.slots.as_mut()[index as usize];
        slot.mark = slot.mark.wrapping_add(1);
        let tag = slot.tag;
        self.len -= 1;
        self.count(tag, -1);
        self.put_free(index);
    }

    fn count(&mut self, tag: u32, change: i32) {
        let wanted = (tag as usize).saturating_add(1).min(self.counts_room.max);
        if self.counts.as_ref().len() < wanted {
            self.counts_room
                .ask(&mut self.counts, wanted.next_power_of_two());
        }
        let counts = self.counts.as_mut();
        if let Some(index) = counter(counts.len(), self.counts_room.max, tag) {
            counts[index] = counts[index].saturating_add_signed(change);
        }
    }

    /// A slot for an entry: a free one, or the next one never used.
    fn take_slot(&mut self) -> Option<u32> {
        if self.free != NONE {
            let index = self.free;
            self.take_free(index);
            return Some(index);
        }
        let slots = self.slots.as_ref().len();
        if self.used == slots {
            let step = (slots / 8).clamp(SMALLEST, LARGEST_STEP);
            self.room.ask(&mut self.slots, slots.saturating_add(step));
        }
        let index = self.used;
        let marks = self.marks_used;
        *self.slots.as_mut().get_mut(index)? = Slot {
            mark: marks,
            ..Slot::EMPTY
        };
        self.used += 1;
        Some(index as u32)
    }

    /// Gives slots at the end back, at most `budget`, when less than half of those in use hold entries and the last ones hold none. Free slots in
    /// the front half are taken first (see `put_free`), so the end empties as lives end there.
    fn give_back(&mut self, budget: usize) {
        if !self.room.grows {
            return;
        }
        for _ in 0..budget {
            if self.used <= SMALLEST || self.len * 2 >= self.used {
                break;
            }
            let last = self.used - 1;
            if self.slots.as_ref()[last].holds_entry() {
                break;
            }
            self.take_free(last as u32);
            // Even, and above every mark this slot had: a reference to it stays dead when the slot comes back.
            self.marks_used = self.marks_used.max(self.slots.as_ref()[last].mark);
            self.used = last;
        }
        let slots = self.slots.as_ref().len();
        if slots > SMALLEST && self.used <= slots / 2 {
            self.room
                .ask(&mut self.slots, (self.used + self.used / 8).max(SMALLEST));
        }
        for _ in 0..budget / 16 {
            if !self.adapt_index() {
                break;
            }
        }
    }

    fn put_free(&mut self, index: u32) {
        let to_front = self.len * 2 >= self.used || (index as usize) < self.used / 2;
        let (before, after) = if to_front {
            (NONE, self.free)
        } else {
            (self.free_last, NONE)
        };
        self.slots.as_mut()[index as usize].keys[0] = [u64::from(before), u64::from(after)];
        self.join(before, index);
        self.join(index, after);
    }

    fn take_free(&mut self, index: u32) {
        let [before, after] = self.slots.as_ref()[index as usize].keys[0];
        self.join(before as u32, after as u32);
    }

    /// Makes two free slots neighbours; `NONE` stands for the end of the list on that side.
    fn join(&mut self, before: u32, after: u32) {
        match self.slots.as_mut().get_mut(before as usize) {
            Some(slot) if before != NONE => slot.keys[0][1] = u64::from(after),
            _ => self.free = after,
        }
        match self.slots.as_mut().get_mut(after as usize) {
            Some(slot) if after != NONE => slot.keys[0][0] = u64::from(before),
            _ => self.free_last = before,
        }
    }
}

/// Which counter a tag has among `len`, of which there may once be `max`.
fn counter(len: usize, max: usize, tag: u32) -> Option<usize> {
    let index = (tag as usize).checked_rem(max)?;
    (index < len).then_some(index)
}

#[cfg(test)]
mod tests;
