//! How the path of every publication looks it up.
//!
//! Decides: nothing; as `check` and `check_signature`, and how long the entry lives at once. Leaves to others: all of it (the dedup). Believes:
//! no clock. Bounded by: one lookup.

use super::hashes::prefix;
use super::{BY_ID, BY_SIGNATURE, HeapDedup, SignatureKey};
use crate::id::PublicationHash;
use crate::time::WallMs;

impl HeapDedup {
    /// [`check_signature`](Self::check_signature), and the last wall millisecond of its life.
    #[inline(always)]
    pub(crate) fn until_by_signature(&self, SignatureKey(key): SignatureKey) -> Option<WallMs> {
        let hash = self.hashes.of(BY_SIGNATURE, key);
        let (_, slot) = self.lookup_rare(BY_SIGNATURE, hash, key)?;
        Some(slot.until)
    }

    /// [`check`](Self::check), and the last wall millisecond of its life.
    #[inline(always)]
    pub(crate) fn until_by_id(&self, id: &PublicationHash) -> Option<WallMs> {
        let key = prefix(id);
        let (_, slot) = self.lookup(BY_ID, self.hashes.of(BY_ID, key), key)?;
        Some(slot.until)
    }

    /// A keyed hash of an identity, to find by what is not remembered yet.
    #[inline]
    pub(crate) fn place_of(&self, id: &PublicationHash) -> u64 {
        self.hashes.of(BY_ID, prefix(id))
    }
}
