//! What a dedup is told, and what it answers.
//!
//! Decides: nothing. Leaves to others: all of it (the dedup). Believes: no clock. Bounded by: nothing of its own.

use core::fmt;

use crate::id::PublicationHash;
use crate::time::WallMs;

/// 112 bits of a keyed hash over key id and signature, and 16 of one over the key id alone; only [`Dedup::signature_key`](super::Dedup::signature_key) makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureKey(pub(super) [u64; 2]);

/// Names an entry until it ends; never another one after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef {
    pub(super) index: u32,
    pub(super) mark: u32,
}

/// What to remember of a verified publication.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// Its identity.
    pub id: &'a PublicationHash,
    /// Its signature and its publisher's share, see [`Dedup::signature_key`](super::Dedup::signature_key).
    pub signature: SignatureKey,
    /// The last wall millisecond at which a copy could still be accepted.
    pub until: WallMs,
    /// The caller's number for early reuse, such as one for each numbering. Nothing is counted by it.
    pub tag: u32,
    /// The caller's mark for early reuse, such as its seq.
    pub seq: u64,
}

/// Why a publication could not be remembered. Nothing changed; [`Dedup::make_room`](super::Dedup::make_room) may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Full {
    /// More than half of the table is full and this publisher, with those that share its counter, holds a quarter of it: only their own
    /// entries make room for it.
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
