//! The CBOR rule (WIRE.md section 2), and readers and writers that keep it.
//!
//! Decides: whether bytes are the one encoding of a value. Leaves to others: what the value means. Believes: no clock. Bounded by: 64
//! levels, 131,072 items, one pass; nothing is allocated from a declared count.

mod check;
mod read;
mod strict;
mod write;

use core::fmt;

pub use check::check;
pub(crate) use check::{Bounds, Simples, is_text, walk};
pub use read::{Entries, Reader, Value};
pub(crate) use strict::Strict;
pub(crate) use write::Counter;
pub use write::{RoomSink, Sink, SliceSink, TooSmall, Writer};

/// The deepest nesting of arrays and maps; the outermost is level 1.
pub const MAX_DEPTH: usize = 64;

/// The most items of one value: containers, keys and values alike count one each.
pub const MAX_ITEMS: u32 = 131_072;

/// Why bytes are not a value under the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CborFault {
    /// A map key that is neither text nor integer.
    BadKey,
    /// A text string that is not UTF-8.
    BadText,
    /// A map key equal to the one before it.
    DuplicateKey,
    /// A half or single float, or one that is not finite.
    Float,
    /// An item of indefinite length, or a lone break.
    Indefinite,
    /// An integer outside −2^63 ..= 2^63−1.
    IntegerRange,
    /// A map key that does not sort after the one before it.
    KeyOrder,
    /// An argument in more bytes than it needs.
    LongHead,
    /// Additional information 28, 29 or 30.
    ReservedHead,
    /// A simple value that may not stand here.
    Simple,
    /// A tag.
    Tag,
    /// A 65th level.
    TooDeep,
    /// Item number 131,073.
    TooManyItems,
    /// Bytes after the top item.
    Trailing,
    /// The input ends inside an item, or is empty.
    Truncated,
}

impl CborFault {
    /// Every fault, in the order of their names.
    pub const ALL: &'static [Self] = &[
        Self::BadKey,
        Self::BadText,
        Self::DuplicateKey,
        Self::Float,
        Self::Indefinite,
        Self::IntegerRange,
        Self::KeyOrder,
        Self::LongHead,
        Self::ReservedHead,
        Self::Simple,
        Self::Tag,
        Self::TooDeep,
        Self::TooManyItems,
        Self::Trailing,
        Self::Truncated,
    ];

    /// Its text, as in WIRE.md.
    pub const fn text(self) -> &'static str {
        match self {
            Self::BadKey => "bad_key",
            Self::BadText => "bad_text",
            Self::DuplicateKey => "duplicate_key",
            Self::Float => "float",
            Self::Indefinite => "indefinite",
            Self::IntegerRange => "integer_range",
            Self::KeyOrder => "key_order",
            Self::LongHead => "long_head",
            Self::ReservedHead => "reserved_head",
            Self::Simple => "simple",
            Self::Tag => "tag",
            Self::TooDeep => "too_deep",
            Self::TooManyItems => "too_many_items",
            Self::Trailing => "trailing",
            Self::Truncated => "truncated",
        }
    }
}

impl fmt::Display for CborFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for CborFault {}

/// The major types, as the top three bits of a head.
pub(crate) mod major {
    pub(crate) const UNSIGNED: u8 = 0;
    pub(crate) const NEGATIVE: u8 = 1;
    pub(crate) const BYTES: u8 = 2;
    pub(crate) const TEXT: u8 = 3;
    pub(crate) const ARRAY: u8 = 4;
    pub(crate) const MAP: u8 = 5;
    pub(crate) const TAG: u8 = 6;
    pub(crate) const OTHER: u8 = 7;
}

#[cfg(test)]
mod tests;
