//! Judging and pulling in one go, where the keys and kinds to come are known.
//!
//! Decides: whether what comes next is what must, in its one encoding. Leaves to others: why not (`check.rs` says). Believes: no clock. Bounded
//! by: the bytes; one step for each part, and a walk over each value whose kind is open.

use super::major::{BYTES, MAP, TEXT, UNSIGNED};
use super::{Bounds, Reader, Simples, is_text, walk};

/// A pull reader over bytes nobody has checked. After `None` it is of no use.
#[derive(Clone, Copy)]
pub(crate) struct Strict<'a> {
    rest: &'a [u8],
}

impl<'a> Strict<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Passes over `encoded` when it comes next.
    #[inline]
    pub(crate) fn passes(&mut self, encoded: &[u8]) -> bool {
        match self.rest.strip_prefix(encoded) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    /// Itself, behind `encoded`, which must come next.
    #[inline]
    pub(crate) fn after(&mut self, encoded: &[u8]) -> Option<&mut Self> {
        self.passes(encoded).then_some(self)
    }

    /// The argument of a head of this kind, in as few bytes as can be.
    #[inline]
    fn head(&mut self, kind: u8) -> Option<u64> {
        let (&first, after) = self.rest.split_first()?;
        if first >> 5 != kind {
            return None;
        }
        let shortest = |argument: u64, least| (argument >= least).then_some(argument);
        let (argument, after) = match first & 0x1f {
            info @ 0..24 => (u64::from(info), after),
            24 => {
                let (&byte, after) = after.split_first()?;
                (shortest(byte.into(), 24)?, after)
            }
            25 => {
                let (wide, after) = after.split_first_chunk()?;
                (shortest(u16::from_be_bytes(*wide).into(), 1 << 8)?, after)
            }
            26 => {
                let (wide, after) = after.split_first_chunk()?;
                (shortest(u32::from_be_bytes(*wide).into(), 1 << 16)?, after)
            }
            27 => {
                let (wide, after) = after.split_first_chunk()?;
                (shortest(u64::from_be_bytes(*wide), 1 << 32)?, after)
            }
            _ => return None,
        };
        self.rest = after;
        Some(argument)
    }

    #[inline]
    pub(crate) fn unsigned(&mut self) -> Option<u64> {
        self.head(UNSIGNED)
            .filter(|value| *value <= i64::MAX as u64)
    }

    /// One below `limit`, which is 2^63 at most.
    #[inline]
    pub(crate) fn number(&mut self, limit: u64) -> Option<u64> {
        self.head(UNSIGNED).filter(|value| *value < limit)
    }

    /// So many entries follow.
    #[inline]
    pub(crate) fn map(&mut self) -> Option<u64> {
        self.head(MAP)
    }

    #[inline]
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, after) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = after;
        Some(taken)
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.head(BYTES)?;
        self.take(len)
    }

    /// What is in the byte string that is all of `encoded`.
    #[inline]
    pub(crate) fn only_bytes(encoded: &'a [u8]) -> Option<&'a [u8]> {
        // Most have a length of two bytes, and that is known.
        if encoded.len() >= 3 + (1 << 8)
            && let [0x59, high, low, string @ ..] = encoded
            && string.len() == usize::from(u16::from_be_bytes([*high, *low]))
        {
            return Some(string);
        }
        let mut r = Self::new(encoded);
        let string = r.bytes()?;
        r.rest.is_empty().then_some(string)
    }

    #[inline]
    pub(crate) fn array_of<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        self.bytes()?.try_into().ok()
    }

    /// The bytes of a text, which may be none.
    #[inline]
    pub(crate) fn text_bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.head(TEXT)?;
        self.take(len)
    }

    /// Any value within these bounds, as its bytes.
    pub(crate) fn value(&mut self, simples: Simples, bounds: Bounds) -> Option<&'a [u8]> {
        let whole = self.rest;
        match whole.first()? >> 5 {
            // Strings are most of what is sent, and need no walk.
            BYTES => {
                self.bytes()?;
            }
            TEXT => {
                is_text(self.text_bytes()?).then_some(())?;
            }
            _ => {
                let value = Reader::new(whole).skip()?;
                walk(value, simples, bounds).ok()?;
                self.rest = whole.get(value.len()..)?;
            }
        }
        whole.get(..whole.len() - self.rest.len())
    }
}
