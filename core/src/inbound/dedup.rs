//! Which publications were here before.
//!
//! Decides: whether a publication is known, and how long that is remembered. Leaves to others: verifying before [`Dedup::commit`], and which
//! entries may be reused early. Believes: both clocks, and of the two the one that says last that a life is over. Bounded by: its slots; each
//! call looks at a bounded number of them.
//!
//! Looking and remembering are two calls, because a peer can lie between them: a forged copy is looked up and never recorded. An entry is
//! found by the first 16 bytes of the publication's hash or by 16 bytes made of its signature, which cost no SHA-384 to make. Entries are
//! chained in buckets that are split one at a time as slots come into use, so growth never moves an entry and never stops the world.

use core::fmt;

use crate::id::PublicationHash;
use crate::rng::Rng;
use crate::storage::Room;
use crate::time::{Duration, Instant, Now, WallMs};

/// Slots looked at for ended lives with each commit.
const SWEPT_PER_COMMIT: usize = 4;

/// Slots looked at when there is no free one.
const SWEPT_WHEN_FULL: usize = 256;

/// Slots a heap storage begins with, and those in use below which nothing is given back.
const SMALLEST: usize = 64;

/// No slot.
const NONE: u32 = u32::MAX;

/// The two indexes of every entry.
const BY_ID: usize = 0;
const BY_SIGNATURE: usize = 1;

/// One place of a dedup's storage: 80 bytes, of which 16 are the index.
#[derive(Clone, Debug)]
pub struct Slot {
    keys: [[u64; 2]; 2],
    until: WallMs,
    at_least: Instant,
    seq: u64,
    /// First entry of the bucket that has this slot's number, in each index.
    heads: [u32; 2],
    /// Next entry of the bucket this entry is in, in each index; of a free slot, its neighbours in the list of free ones.
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
        at_least: Instant::ORIGIN,
        seq: 0,
        heads: [NONE; 2],
        links: [NONE; 2],
        tag: 0,
        mark: 0,
    };

    fn holds_entry(&self) -> bool {
        self.mark % 2 == 1
    }

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
pub type HeapDedup = Dedup<alloc::vec::Vec<Slot>, alloc::vec::Vec<u32>>;

/// The memory of one client or station. See the module's text.
///
/// `S` are the entries, `C` a counter for each publisher. Getters and looking up take no time; commands take both clocks.
///
/// ```
/// use tidings::inbound::dedup::{Dedup, NewEntry, Slot};
/// use tidings::{Instant, Now, PublicationHash, Seed, WallMs};
///
/// let slots: [Slot; 8] = [const { Slot::EMPTY }; 8];
/// let mut dedup = Dedup::new(slots, [0u32; 2], &mut Seed::new([7; 32]).fork("dedup"));
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
pub struct Dedup<S, C> {
    slots: S,
    room: Room<S>,
    counts: C,
    counts_room: Room<C>,
    hashes: Hashes,
    /// Slots in use from the first on, which is also the number of buckets in each index.
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
    /// allocated until the first entry. Storage grows by an eighth and is given back as entries end.
    pub fn with_capacity(capacity: usize, max_tags: usize, rng: &mut Rng) -> Self {
        Self::build(
            alloc::vec::Vec::new(),
            Room::heap(capacity.min(NONE as usize)),
            alloc::vec::Vec::new(),
            Room::heap(max_tags),
            rng,
        )
    }
}

impl<S: AsRef<[Slot]> + AsMut<[Slot]>, C: AsRef<[u32]> + AsMut<[u32]>> Dedup<S, C> {
    /// As many entries as there are slots. `counts` are zeros, one for each tag; a tag beyond them shares the counter of a lower one, and with no
    /// counter at all no publisher is held to its quarter.
    pub fn new(slots: S, counts: C, rng: &mut Rng) -> Self {
        let room = Room::fixed(slots.as_ref().len());
        let counts_room = Room::fixed(counts.as_ref().len());
        Self::build(slots, room, counts, counts_room, rng)
    }

    fn build(slots: S, room: Room<S>, counts: C, counts_room: Room<C>, rng: &mut Rng) -> Self {
        Self {
            slots,
            room,
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
        self.link(BY_ID, index);
        self.link(BY_SIGNATURE, index);
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

    /// Bytes of slots and counters.
    pub fn memory(&self) -> usize {
        size_of_val(self.slots.as_ref()) + size_of_val(self.counts.as_ref())
    }

    fn holds_its_share(&self, tag: u32) -> bool {
        self.counts_room.max > 0 && self.held_by(tag) as usize >= self.room.max.div_ceil(4)
    }

    fn slot(&self, entry: EntryRef) -> Option<&Slot> {
        let slots = &self.slots.as_ref()[..self.used];
        let slot = slots.get(entry.index as usize)?;
        (slot.mark == entry.mark && slot.holds_entry()).then_some(slot)
    }

    fn bucket(&self, which: usize, key: [u64; 2], buckets: usize) -> usize {
        let hash = if which == BY_ID {
            self.hashes.id(key)
        } else {
            key[0]
        };
        let mask = buckets.next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < buckets {
            bucket
        } else {
            bucket & (mask >> 1)
        }
    }

    fn find(&self, which: usize, key: [u64; 2]) -> Option<EntryRef> {
        if self.used == 0 {
            return None;
        }
        let slots = self.slots.as_ref();
        let mut index = slots[self.bucket(which, key, self.used)].heads[which];
        while index != NONE {
            let slot = &slots[index as usize];
            if slot.keys[which] == key {
                let mark = slot.mark;
                return Some(EntryRef { index, mark });
            }
            index = slot.links[which];
        }
        None
    }

    fn link(&mut self, which: usize, index: u32) {
        let key = self.slots.as_ref()[index as usize].keys[which];
        let bucket = self.bucket(which, key, self.used);
        let slots = self.slots.as_mut();
        slots[index as usize].links[which] = slots[bucket].heads[which];
        slots[bucket].heads[which] = index;
    }

    fn unlink(&mut self, which: usize, index: u32) {
        let key = self.slots.as_ref()[index as usize].keys[which];
        let bucket = self.bucket(which, key, self.used);
        let slots = self.slots.as_mut();
        let next = slots[index as usize].links[which];
        let mut at = slots[bucket].heads[which];
        if at == index {
            slots[bucket].heads[which] = next;
            return;
        }
        while at != NONE {
            let link = &mut slots[at as usize].links[which];
            if *link == index {
                *link = next;
                return;
            }
            at = *link;
        }
    }

    fn remove(&mut self, index: u32) {
        self.unlink(BY_ID, index);
        self.unlink(BY_SIGNATURE, index);
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
            let step = (slots / 8).max(SMALLEST);
            self.room.ask(&mut self.slots, slots.saturating_add(step));
        }
        let index = self.used;
        let marks = self.marks_used;
        *self.slots.as_mut().get_mut(index)? = Slot {
            mark: marks,
            ..Slot::EMPTY
        };
        self.used += 1;
        self.split();
        Some(index as u32)
    }

    /// Moves to the newest bucket what belongs there.
    fn split(&mut self) {
        let newest = self.used - 1;
        let Some(buddy) = buddy(newest) else { return };
        for which in [BY_ID, BY_SIGNATURE] {
            let mut index = self.slots.as_ref()[buddy].heads[which];
            let mut heads = [NONE; 2];
            while index != NONE {
                let slot = &self.slots.as_ref()[index as usize];
                let (key, next) = (slot.keys[which], slot.links[which]);
                let moves = usize::from(self.bucket(which, key, self.used) == newest);
                self.slots.as_mut()[index as usize].links[which] = heads[moves];
                heads[moves] = index;
                index = next;
            }
            let slots = self.slots.as_mut();
            slots[buddy].heads[which] = heads[0];
            slots[newest].heads[which] = heads[1];
        }
    }

    /// Moves what is in the newest bucket to where it was before the split.
    fn merge(&mut self) {
        let newest = self.used - 1;
        let Some(buddy) = buddy(newest) else { return };
        let slots = self.slots.as_mut();
        for which in [BY_ID, BY_SIGNATURE] {
            let mut index = slots[newest].heads[which];
            while index != NONE {
                let next = slots[index as usize].links[which];
                slots[index as usize].links[which] = slots[buddy].heads[which];
                slots[buddy].heads[which] = index;
                index = next;
            }
        }
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
            self.merge();
            // Even, and above every mark this slot had: a reference to it stays dead when the slot comes back.
            self.marks_used = self.marks_used.max(self.slots.as_ref()[last].mark);
            self.used = last;
        }
        let slots = self.slots.as_ref().len();
        if slots > SMALLEST && self.used <= slots / 2 {
            self.room
                .ask(&mut self.slots, (self.used + self.used / 8).max(SMALLEST));
        }
    }

    fn put_free(&mut self, index: u32) {
        let to_front = self.len * 2 >= self.used || (index as usize) < self.used / 2;
        let (before, after) = if to_front {
            (NONE, self.free)
        } else {
            (self.free_last, NONE)
        };
        self.slots.as_mut()[index as usize].links = [before, after];
        self.join(before, index);
        self.join(index, after);
    }

    fn take_free(&mut self, index: u32) {
        let [before, after] = self.slots.as_ref()[index as usize].links;
        self.join(before, after);
    }

    /// Makes two free slots neighbours; `NONE` stands for the end of the list on that side.
    fn join(&mut self, before: u32, after: u32) {
        match self.slots.as_mut().get_mut(before as usize) {
            Some(slot) if before != NONE => slot.links[1] = after,
            _ => self.free = after,
        }
        match self.slots.as_mut().get_mut(after as usize) {
            Some(slot) if after != NONE => slot.links[0] = before,
            _ => self.free_last = before,
        }
    }
}

/// The bucket that was split to make bucket `newest`.
fn buddy(newest: usize) -> Option<usize> {
    newest
        .checked_ilog2()
        .map(|highest| newest - (1 << highest))
}

/// Which counter a tag has among `len`, of which there may once be `max`.
fn counter(len: usize, max: usize, tag: u32) -> Option<usize> {
    let index = (tag as usize).checked_rem(max)?;
    (index < len).then_some(index)
}

fn prefix(id: &PublicationHash) -> [u64; 2] {
    [word(id.as_bytes(), 0), word(id.as_bytes(), 1)]
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
    u64::from_le_bytes(eight)
}

/// The keyed hashes, their keys secret and never used elsewhere.
///
/// For signatures: two passes of the sum of products of key-masked words (NH, as in UMAC), the key of the second shifted by two words. Two
/// different inputs chosen without knowing the key agree in one pass with a chance of at most 2⁻⁶⁴. That is enough, though it is no
/// cryptographic hash: nothing computed with the key ever leaves the process, so collisions cannot be searched for, and entries are made
/// of verified signatures only, so a table holds nothing a stranger put there.
#[derive(Clone)]
struct Hashes {
    id: [u64; 2],
    signature: [u64; 14],
}

impl Hashes {
    fn new(rng: &mut Rng) -> Self {
        Self {
            id: [rng.next_u64(), rng.next_u64()],
            signature: core::array::from_fn(|_| rng.next_u64()),
        }
    }

    fn id(&self, id: [u64; 2]) -> u64 {
        let product = u128::from(id[0] ^ self.id[0]) * u128::from(id[1] ^ self.id[1]);
        product as u64 ^ (product >> 64) as u64
    }

    fn signature(&self, publisher: &[u8; 32], signature: &[u8; 64]) -> SignatureKey {
        let mut sums = [0u128; 2];
        for pair in 0..6 {
            let (a, b) = if pair < 2 {
                (word(publisher, pair * 2), word(publisher, pair * 2 + 1))
            } else {
                (word(signature, pair * 2 - 4), word(signature, pair * 2 - 3))
            };
            for (pass, sum) in sums.iter_mut().enumerate() {
                let key = (pair + pass) * 2;
                let a = a.wrapping_add(self.signature[key]);
                let b = b.wrapping_add(self.signature[key + 1]);
                *sum = sum.wrapping_add(u128::from(a) * u128::from(b));
            }
        }
        let [first, second] = sums;
        SignatureKey([
            first as u64 ^ (second >> 64) as u64,
            (first >> 64) as u64 ^ second as u64,
        ])
    }
}

impl fmt::Debug for Hashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hashes")
    }
}
