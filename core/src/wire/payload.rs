//! Payloads: any serde value in the one deterministic form.
//!
//! Decides: how a Rust value is written and read under the CBOR rule. Leaves to others: publishing it. Believes: no clock. Bounded by: 63
//! levels, 131,008 items; reading borrows from the bytes.
//!
//! Structs and maps are maps, their keys sorted; enums are tagged from outside (`"Unit"`, `{"Variant": …}`); `None` and `()` are `null`, so
//! that `Some(())` comes back as `None`; `char` is text; floats are binary64. Integers travel as i64, and a value that does not fit, or a
//! float that is not finite, is refused on this side. Types that tell readers for people from readers for machines are written for
//! machines.

mod de;
mod ser;

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::cbor::{Bounds, CborFault, MAX_DEPTH, MAX_ITEMS, Simples, walk};

/// The deepest nesting of a payload: it rides inside one map.
pub const MAX_PAYLOAD_DEPTH: usize = MAX_DEPTH - 1;

/// The most items of a payload this side sends; the rest is for what surrounds it.
pub const MAX_PAYLOAD_ITEMS: u32 = MAX_ITEMS - 64;

/// Why a value cannot travel, or bytes are not the value asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PayloadError {
    /// The bytes break the CBOR rule: write them with [`to_payload`].
    Cbor(CborFault),
    /// The type itself refused, while reading or writing.
    Custom,
    /// A field occurs twice while reading.
    DuplicateField(&'static str),
    /// Two keys of a map are written alike: make them differ.
    DuplicateKey,
    /// A float that is not finite: send something else for it.
    Float,
    /// An integer outside the range of i64: send it as text or bytes.
    IntegerRange,
    /// More or fewer items than the type holds.
    InvalidLength,
    /// Another kind of value than the type wants.
    InvalidType,
    /// The right kind, but not a value of the type.
    InvalidValue,
    /// A map key that is neither text nor integer: use keys that are.
    KeyKind,
    /// A field the type needs is not there.
    MissingField(&'static str),
    /// Over 63 levels: flatten it.
    TooDeep,
    /// Over 131,008 items: send less at once.
    TooManyItems,
    /// A field the type does not know and refuses.
    UnknownField,
    /// An enum variant the type does not know.
    UnknownVariant,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cbor(fault) => return write!(f, "the bytes break the CBOR rule: {fault}"),
            Self::DuplicateField(name) => return write!(f, "field `{name}` occurs twice"),
            Self::MissingField(name) => return write!(f, "field `{name}` is missing"),
            Self::Custom => "refused by the type",
            Self::DuplicateKey => "two keys of a map are written alike",
            Self::Float => "a float that is not finite",
            Self::IntegerRange => "an integer outside the range of i64",
            Self::InvalidLength => "more or fewer items than the type holds",
            Self::InvalidType => "another kind of value than the type wants",
            Self::InvalidValue => "not a value of the type",
            Self::KeyKind => "a map key that is neither text nor integer",
            Self::TooDeep => "over 63 levels deep",
            Self::TooManyItems => "over 131008 items",
            Self::UnknownField => "a field the type does not know",
            Self::UnknownVariant => "a variant the type does not know",
        })
    }
}

impl core::error::Error for PayloadError {}

/// Writes a value as a payload.
///
/// # Errors
/// What the wire cannot carry.
pub fn to_payload<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, PayloadError> {
    ser::to_vec(value)
}

/// Reads a payload as a value, which may borrow text and bytes from it. The bytes are checked first.
///
/// # Errors
/// When the bytes break the rule or are not such a value.
pub fn from_payload<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, PayloadError> {
    check_received(bytes).map_err(PayloadError::Cbor)?;
    de::from_checked(bytes)
}

/// Whether bytes may be sent as a payload: one value under the rule, within 63 levels and 131,008 items.
///
/// # Errors
/// The first thing that breaks the rule.
pub fn check_payload(bytes: &[u8]) -> Result<(), CborFault> {
    walk(
        bytes,
        Simples::Anywhere,
        Bounds {
            depth: MAX_PAYLOAD_DEPTH,
            items: MAX_PAYLOAD_ITEMS,
        },
    )
}

/// What was received may use the items a sender of ours leaves free.
fn check_received(bytes: &[u8]) -> Result<(), CborFault> {
    walk(
        bytes,
        Simples::Anywhere,
        Bounds {
            depth: MAX_PAYLOAD_DEPTH,
            items: MAX_ITEMS,
        },
    )
}

#[cfg(test)]
mod tests;
