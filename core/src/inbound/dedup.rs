//! Which publications were here before.
//!
//! Decides: whether a publication is known, and how long that is remembered. Leaves to others: verifying before [`Dedup::commit`], and which
//! entries may be reused early. Believes: both clocks, and of the two the one that says last that a life is over. Bounded by: its slots; each
//! call looks at a bounded number of them.
//!
//! Looking and remembering are two calls, because a peer can lie between them: a forged copy is looked up and never recorded. An entry is
//! found by the first 16 bytes of the publication's hash or by 16 bytes made of its signature, which cost no SHA-384 to make. An entry
//! never moves: slots come into use one by one, and the index grows a group at a time, so growth never stops the world. Entries wait for their
//! end in lists by monotonic time, 16 s to a list, so that ended ones are found without looking for them; whether the wall has passed, too, is
//! judged when a list is due, and an entry for which it has not waits in a later one.

mod entry;
mod hashes;
mod lists;
#[cfg(feature = "alloc")]
mod looks;
mod shares;

use core::hint::black_box;

pub use self::entry::{EntryRef, Full, NewEntry, SignatureKey};
use self::hashes::{Hashes, prefix};
use self::lists::{FREE_BACK, FREE_FRONT, Lists, WAITING, grains};
pub use self::shares::SHARES;
use self::shares::Shares;
use crate::id::PublicationHash;
pub use crate::numbers::{Group, groups_for};
use crate::numbers::{Index, LOAD, MOST, Place};
use crate::rng::Rng;
use crate::storage::Room;
use crate::time::{Duration, Instant, Now, WallMs};

/// With one commit of so many due entries are looked at, in one go.
const SWEEP_EVERY: u32 = 4;

/// How many these are: one that comes makes up for two that end.
const SWEPT: usize = 2 * SWEEP_EVERY as usize;

/// Due entries looked at before a publication is refused.
const SWEPT_WHEN_FULL: usize = 256;

/// How much longer an entry may be kept than it must be.
const GRAIN: Duration = Duration::from_secs(16);

/// Due entries looked at together.
const BATCH: usize = SWEPT;

/// Slots a heap storage begins with, and those in use below which nothing is given back.
const SMALLEST: usize = 64;

/// Slots a heap storage grows by at most: 4 MiB.
const LARGEST_STEP: usize = 65_536;

/// No slot.
const NONE: u32 = u32::MAX;

/// The two indexes of every entry.
const BY_ID: usize = 0;
const BY_SIGNATURE: usize = 1;

/// One place of a dedup's storage, 64 bytes. With its part of the index, an entry takes 75. (Not aligned to cache lines: allocators extend
/// such vectors by copying.)
#[derive(Clone, Debug)]
pub struct Slot {
    /// What the entry is found by, in each index.
    keys: [[u64; 2]; 2],
    until: WallMs,
    seq: u64,
    /// Neighbours in the list the slot is in.
    links: [u32; 2],
    tag: u32,
    /// Odd while the slot holds an entry; changes with every use.
    mark: u32,
}

impl Slot {
    /// A slot that was never used.
    pub const EMPTY: Self = Self {
        keys: [[0; 2]; 2],
        until: WallMs::new(0),
        seq: 0,
        links: [NONE; 2],
        tag: 0,
        mark: 0,
    };

    #[inline]
    fn holds_entry(&self) -> bool {
        self.mark % 2 == 1
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// A dedup on the heap.
#[cfg(feature = "alloc")]
pub type HeapDedup = Dedup<alloc::vec::Vec<Slot>, alloc::vec::Vec<Group>, alloc::vec::Vec<u32>>;

/// The memory of one client or station. See the module's text.
///
/// `S` are the entries, `I` the index, `C` counters for the publishers' shares. Getters and looking up take no time; commands take both clocks.
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
    index: Index<I, 2>,
    shares: Shares<C>,
    hashes: Hashes,
    /// Slots in use, from the first on.
    used: usize,
    len: usize,
    lists: Lists,
    /// The grain whose list is due or next.
    grain: u64,
    /// The latest time seen.
    mono: Instant,
    room_hand: usize,
    /// Commits, counted round.
    commits: u32,
    /// Above the mark of every slot that was given back.
    marks_used: u32,
}

#[cfg(feature = "alloc")]
impl HeapDedup {
    /// At most `capacity` entries, 2^24 at most, and `shares` counters, rounded down to a power of two ([`SHARES`] when nothing speaks for another number, at
    /// most 65,536), of 4 bytes each; with none no publisher is held to its quarter. Nothing is allocated until the first entry, and then all
    /// counters are. Slots grow by a sixteenth, at most 4 MiB at a time; the index by a sixth, is cleared in one go (11 MiB for a million
    /// entries) and taken over group by group. Both are given back as entries end, the counters when the last one did.
    pub fn with_capacity(capacity: usize, shares: usize, rng: &mut Rng) -> Self {
        let capacity = capacity.min(MOST);
        Self::build(
            alloc::vec::Vec::new(),
            Room::heap(capacity),
            Index::heap(capacity),
            Shares::heap(shares),
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
    /// As many entries as there are slots, 2^24 at most, if there are [`groups_for`] as many groups, else as many as the groups suit. `counts` are zeros, of
    /// which a power of two is used, 65,536 at most: the more, the fewer publishers share one. With no counter at all no publisher is held to
    /// its quarter.
    pub fn new(slots: S, groups: I, counts: C, rng: &mut Rng) -> Self {
        let suited = groups.as_ref().len() / 2 * LOAD;
        let room = Room::fixed(slots.as_ref().len().min(suited).min(MOST));
        let index = Index::new(groups, room.max);
        Self::build(slots, room, index, Shares::new(counts), rng)
    }

    fn build(
        slots: S,
        room: Room<S>,
        index: Index<I, 2>,
        shares: Shares<C>,
        rng: &mut Rng,
    ) -> Self {
        Self {
            slots,
            room,
            index,
            shares,
            hashes: Hashes::new(rng),
            used: 0,
            len: 0,
            lists: Lists::EMPTY,
            grain: 0,
            mono: Instant::ORIGIN,
            room_hand: 0,
            commits: 0,
            marks_used: 0,
        }
    }

    /// The key under which a publication's signature is known, and its publisher counted. About 10 ns.
    #[inline]
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
    /// as it had left now, and at most 16 s longer. (Of a life beyond 136 minutes the monotonic half is held to that.) One that is known already keeps
    /// its entry as it is: a repeat is no new sighting.
    ///
    /// # Errors
    /// [`Full`]; nothing changed but that ended entries may have gone.
    pub fn commit(&mut self, now: Now, new: NewEntry<'_>) -> Result<EntryRef, Full> {
        let keys = [prefix(new.id), new.signature.0];
        let hashes = self.reach(keys);
        match self.lookup_rare(BY_ID, hashes[BY_ID], keys[BY_ID]) {
            Some((index, slot)) => Ok(EntryRef {
                index,
                mark: slot.mark,
            }),
            None => self.add(now, new, hashes),
        }
    }

    /// [`commit`](Self::commit) of a publication that was looked up since anything was remembered, and is not known.
    #[cfg(feature = "alloc")]
    pub(crate) fn commit_new(&mut self, now: Now, new: NewEntry<'_>) -> Result<EntryRef, Full> {
        let hashes = self.reach([prefix(new.id), new.signature.0]);
        self.add(now, new, hashes)
    }

    fn add(&mut self, now: Now, new: NewEntry<'_>, hashes: [u64; 2]) -> Result<EntryRef, Full> {
        let id = prefix(new.id);
        debug_assert!(self.find(BY_ID, id).is_none(), "it was looked up");
        self.mono = self.mono.max(now.mono);
        self.commits = self.commits.wrapping_add(1);
        if self.commits.is_multiple_of(SWEEP_EVERY) {
            // More when lists are overdue, so that a table that slept has caught up long before its horizon comes near.
            let overdue = grains(now.mono)
                .saturating_sub(self.grain)
                .min(WAITING as u64 - 2);
            self.end_due(now, SWEPT + overdue as usize * 2);
        }
        if self.len == self.room.max {
            self.end_due(now, SWEPT_WHEN_FULL);
        }
        if self.len == self.room.max {
            return Err(Full::Table);
        }
        if self.len > self.room.max / 2 && self.holds_its_share(new.signature) {
            return Err(Full::Share);
        }
        let Some(index) = self.take_slot() else {
            return Err(Full::Table);
        };
        self.adapt_index();
        let slot = &mut self.slots.as_mut()[index as usize];
        slot.keys = [id, new.signature.0];
        slot.until = new.until;
        slot.tag = new.tag;
        slot.seq = new.seq;
        slot.mark = slot.mark.wrapping_add(1);
        let mark = slot.mark;
        self.len += 1;
        self.shares.count(new.signature.0, 1);
        for place in both(hashes) {
            self.index.insert(place, index);
        }
        self.wait(index, now.wall);
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

    /// Lets entries go whose life is over, looking at `budget` due ones at most; answers how many went. Every fourth commit does a little of this by
    /// itself: call it from a timer, every few seconds, so that memory is given back when nothing comes any more.
    pub fn sweep(&mut self, now: Now, budget: usize) -> usize {
        let gone = self.end_due(now, budget);
        if self.len == 0 {
            self.shares.give_back();
        }
        gone
    }

    fn end_due(&mut self, now: Now, budget: usize) -> usize {
        self.mono = self.mono.max(now.mono);
        let current = grains(self.mono);
        // After a long sleep every list is due, and once round is enough.
        self.grain = self.grain.max(current.saturating_sub(WAITING as u64 - 1));
        let before = self.len;
        let mut left = budget;
        while left > 0 {
            let due = self.grain as usize % WAITING;
            if !self.lists.is_empty(due) {
                left -= self.end_batch(now, left.min(BATCH));
            } else if self.grain < current {
                self.grain += 1;
            } else {
                break;
            }
        }
        self.give_back(budget);
        before - self.len
    }

    /// Looks at so many entries of the list that is due or next, [`BATCH`] at most; answers how many there were. All that is to be read of
    /// them is on its way before the first is judged.
    fn end_batch(&mut self, now: Now, most: usize) -> usize {
        let mut batch = [NONE; BATCH];
        let due = self.grain as usize % WAITING;
        let slots = self.slots.as_mut();
        let found = self.lists.take(slots, due, &mut batch[..most]);
        let mut hashes = [[0; 2]; BATCH];
        for (hashes, index) in hashes.iter_mut().zip(&batch[..found]) {
            *hashes = self.reach(self.slots.as_ref()[*index as usize].keys);
        }
        for (hashes, index) in hashes.into_iter().zip(&batch[..found]) {
            let until = self.slots.as_ref()[*index as usize].until;
            if now.wall > until {
                self.end(hashes, *index);
            } else {
                self.wait(*index, now.wall);
            }
        }
        found
    }

    /// Looks at `budget` slots, from where it stopped last, and forgets the entries that are `covered(tag, seq)` by something else the caller
    /// remembers, such as a lane's edge, besides those whose life is over. Answers how many went. For when [`commit`](Self::commit) said `full` to
    /// a publication with this signature: after [`Full::Share`] none goes but those of its publisher and of whoever shares its counter.
    pub fn make_room(
        &mut self,
        now: Now,
        full: Full,
        signature: SignatureKey,
        budget: usize,
        mut covered: impl FnMut(u32, u64) -> bool,
    ) -> usize {
        let before = self.len;
        self.end_due(now, budget);
        let own = (full == Full::Share).then(|| self.shares.of(signature.0));
        for _ in 0..budget.min(self.used) {
            if self.room_hand >= self.used {
                self.room_hand = 0;
            }
            let slot = &self.slots.as_ref()[self.room_hand];
            let (tag, seq, key) = (slot.tag, slot.seq, slot.keys[BY_SIGNATURE]);
            let suits = own.is_none_or(|own| self.shares.of(key) == own);
            if slot.holds_entry() && suits && covered(tag, seq) {
                self.remove(self.room_hand as u32);
            }
            self.room_hand += 1;
        }
        before - self.len
    }

    /// Entries held, those included whose life ended a moment ago.
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

    /// Entries of the publisher that this key was made for, and of those that share its counter; 0 when nothing is counted.
    pub fn held_by(&self, signature: SignatureKey) -> u32 {
        self.shares.held(signature.0).unwrap_or(0)
    }

    /// Bytes of slots, index and counters.
    pub fn memory(&self) -> usize {
        size_of_val(self.slots.as_ref()) + self.index.memory() + self.shares.memory()
    }

    fn holds_its_share(&self, signature: SignatureKey) -> bool {
        let held = self.shares.held(signature.0);
        held.is_some_and(|held| held as usize >= self.room.max.div_ceil(4))
    }

    fn slot(&self, entry: EntryRef) -> Option<&Slot> {
        let slots = &self.slots.as_ref()[..self.used];
        let slot = slots.get(entry.index as usize)?;
        (slot.mark == entry.mark && slot.holds_entry()).then_some(slot)
    }

    #[inline]
    fn find(&self, which: usize, key: [u64; 2]) -> Option<EntryRef> {
        let hash = self.hashes.of(which, key);
        self.find_at(which, hash, key)
    }

    #[inline]
    fn find_at(&self, which: usize, hash: u64, key: [u64; 2]) -> Option<EntryRef> {
        let (index, slot) = self.lookup(which, hash, key)?;
        let mark = slot.mark;
        Some(EntryRef { index, mark })
    }

    #[inline(always)]
    fn lookup(&self, which: usize, hash: u64, key: [u64; 2]) -> Option<(u32, &Slot)> {
        let slots = self.slots.as_ref();
        let is_it = move |index| is_it(slots, which, key, index);
        self.index.find(Place { which, hash }, is_it)
    }

    /// The same, of what mostly is new.
    #[inline(always)]
    fn lookup_rare(&self, which: usize, hash: u64, key: [u64; 2]) -> Option<(u32, &Slot)> {
        let slots = self.slots.as_ref();
        let is_it = move |index| is_it(slots, which, key, index);
        self.index.find_rare(Place { which, hash }, is_it)
    }

    /// Reads where these keys are, or will be, in the indexes, and answers their hashes. Nothing waits for what is read, so that a line is on its way from memory while the
    /// one before is worked on: in a large table almost every line looked at comes from there.
    #[inline]
    fn reach(&self, keys: [[u64; 2]; 2]) -> [u64; 2] {
        let hashes = self.hashes.both(keys);
        let [id, signature] = both(hashes).map(|place| self.index.peek(place));
        black_box(id ^ signature);
        hashes
    }

    /// Lets the index follow the slots in use, a group at a time.
    #[inline]
    fn adapt_index(&mut self) -> bool {
        let (slots, hashes) = (self.slots.as_ref(), &self.hashes);
        self.index.adapt(self.used, |which, number| {
            hashes.of(which, slots[number as usize].keys[which])
        })
    }

    fn remove(&mut self, index: u32) {
        let hashes = self.hashes.both(self.slots.as_ref()[index as usize].keys);
        self.detach(index);
        self.end(hashes, index);
    }

    /// Ends an entry that is in no list.
    fn end(&mut self, hashes: [u64; 2], index: u32) {
        for place in both(hashes) {
            self.index.remove(place, index);
        }
        let slot = &mut self.slots.as_mut()[index as usize];
        slot.mark = slot.mark.wrapping_add(1);
        let key = slot.keys[BY_SIGNATURE];
        self.len -= 1;
        self.shares.count(key, -1);
        let front = (index as usize) < self.used / 2;
        self.attach(if front { FREE_FRONT } else { FREE_BACK }, index);
    }

    /// Puts an entry in the list that is due when as much monotonic time has gone by as its life has left on the wall.
    fn wait(&mut self, index: u32, wall: WallMs) {
        let until = self.slots.as_ref()[index as usize].until;
        let left = until.as_millis().saturating_sub(wall.as_millis());
        let over = self.mono.saturating_add_millis(left);
        // The first grain that begins after the life is over; what is beyond the horizon is looked at again there.
        let grain = grains(over).saturating_add(1);
        let last = self.grain.saturating_add(WAITING as u64 - 1);
        self.attach(grain.min(last) as usize % WAITING, index);
    }

    #[inline]
    fn attach(&mut self, list: usize, index: u32) {
        self.lists.attach(self.slots.as_mut(), list, index);
    }

    #[inline]
    fn detach(&mut self, index: u32) {
        self.lists.detach(self.slots.as_mut(), index);
    }

    /// A slot for an entry: a free one, or the next one never used.
    fn take_slot(&mut self) -> Option<u32> {
        for list in [FREE_FRONT, FREE_BACK] {
            let mut free = [NONE];
            if self.lists.take(self.slots.as_mut(), list, &mut free) == 1 {
                return Some(free[0]);
            }
        }
        let slots = self.slots.as_ref().len();
        if self.used == slots {
            let step = (slots / 16).clamp(SMALLEST, LARGEST_STEP);
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
    /// the front half are taken first, so the end empties as lives end there.
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
            self.detach(last as u32);
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
}

/// The slot of that number, if it has this key.
#[inline]
fn is_it(slots: &[Slot], which: usize, key: [u64; 2], index: u32) -> Option<(u32, &Slot)> {
    let slot = slots.get(index as usize)?;
    (slot.keys[which] == key).then_some((index, slot))
}

/// The places of both hashes of one entry.
#[inline]
fn both([id, signature]: [u64; 2]) -> [Place; 2] {
    [(BY_ID, id), (BY_SIGNATURE, signature)].map(|(which, hash)| Place { which, hash })
}

#[cfg(test)]
mod tests;
