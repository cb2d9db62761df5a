//! Pulling values out of bytes that were checked.
//!
//! Decides: nothing. Leaves to others: the rule (`check.rs`). Believes: no clock. Bounded by: the bytes; on bytes that were never checked
//! every answer is `None` or wrong, never a panic and never a step back.

use super::major::{ARRAY, BYTES, MAP, NEGATIVE, OTHER, TAG, TEXT, UNSIGNED};

/// One item; containers are given whole, as their bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// An array: its encoded bytes.
    Array(&'a [u8]),
    /// `false` or `true`.
    Bool(bool),
    /// A byte string.
    Bytes(&'a [u8]),
    /// A float.
    Float(f64),
    /// A map: its encoded bytes.
    Map(&'a [u8]),
    /// A negative integer.
    Negative(i64),
    /// `null`.
    Null,
    /// A text string.
    Text(&'a str),
    /// An unsigned integer.
    Unsigned(u64),
}

impl<'a> Value<'a> {
    /// The unsigned integer, if it is one.
    pub const fn unsigned(self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// The byte string, if it is one.
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(value) => Some(value),
            _ => None,
        }
    }

    /// The byte string of exactly `N` bytes, if it is one.
    pub fn array_of<const N: usize>(self) -> Option<&'a [u8; N]> {
        self.bytes()?.try_into().ok()
    }

    /// The text, if it is one.
    pub const fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The entries, if it is a map with text keys.
    pub fn entries(self) -> Option<Entries<'a>> {
        match self {
            Self::Map(bytes) => Reader::new(bytes).entries(),
            _ => None,
        }
    }
}

/// A pull reader over checked bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Over bytes that [`check`](super::check()) accepted.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is not yet read.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything is read.
    pub const fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Major type, additional information and argument of the next head.
    #[inline]
    pub(crate) fn head(&mut self) -> Option<(u8, u8, u64)> {
        let (&first, after) = self.rest.split_first()?;
        let info = first & 0x1f;
        if info < 24 {
            self.rest = after;
            return Some((first >> 5, info, u64::from(info)));
        }
        self.wide_head(first >> 5, info, after)
    }

    fn wide_head(&mut self, kind: u8, info: u8, after: &'a [u8]) -> Option<(u8, u8, u64)> {
        let (argument, after) = match info {
            24 => {
                let (&byte, after) = after.split_first()?;
                (u64::from(byte), after)
            }
            25 => {
                let (wide, after) = after.split_first_chunk()?;
                (u64::from(u16::from_be_bytes(*wide)), after)
            }
            26 => {
                let (wide, after) = after.split_first_chunk()?;
                (u64::from(u32::from_be_bytes(*wide)), after)
            }
            27 => {
                let (wide, after) = after.split_first_chunk()?;
                (u64::from_be_bytes(*wide), after)
            }
            _ => return None,
        };
        self.rest = after;
        Some((kind, info, argument))
    }

    #[inline]
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, after) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = after;
        Some(taken)
    }

    fn counted(&mut self, kind: u8) -> Option<u64> {
        let mut ahead = *self;
        let (found, _, count) = ahead.head()?;
        (found == kind).then(|| {
            *self = ahead;
            count
        })
    }

    /// The next item as an unsigned integer; nothing is consumed when it is none.
    pub fn unsigned(&mut self) -> Option<u64> {
        self.counted(UNSIGNED)
    }

    /// The next item as a byte string; nothing is consumed when it is none.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let len = ahead.counted(BYTES)?;
        let bytes = ahead.take(len)?;
        *self = ahead;
        Some(bytes)
    }

    /// The next item as text; nothing is consumed when it is none.
    pub fn text(&mut self) -> Option<&'a str> {
        let mut ahead = *self;
        let len = ahead.counted(TEXT)?;
        let text = core::str::from_utf8(ahead.take(len)?).ok()?;
        *self = ahead;
        Some(text)
    }

    /// The bytes of the next item's text, not judged again; for comparing keys.
    pub(crate) fn key(&mut self) -> Option<&'a [u8]> {
        let len = self.counted(TEXT)?;
        self.take(len)
    }

    /// The next item's head as a map of so many entries; nothing is consumed when it is none.
    pub fn map(&mut self) -> Option<u64> {
        self.counted(MAP)
    }

    /// The next item's head as an array of so many items; nothing is consumed when it is none.
    pub fn array(&mut self) -> Option<u64> {
        self.counted(ARRAY)
    }

    /// The next item as a map with text keys, to be walked entry by entry.
    pub fn entries(mut self) -> Option<Entries<'a>> {
        let left = self.map()?;
        Some(Entries { reader: self, left })
    }

    /// Passes over the next item, contents and all, and gives its bytes.
    pub fn skip(&mut self) -> Option<&'a [u8]> {
        let whole = self.rest;
        let mut pending = 1u64;
        while pending > 0 {
            let (kind, _, argument) = self.head()?;
            pending -= 1;
            match kind {
                BYTES | TEXT => {
                    self.take(argument)?;
                }
                ARRAY => pending = pending.checked_add(argument)?,
                MAP => pending = pending.checked_add(argument.checked_mul(2)?)?,
                _ => {}
            }
        }
        whole.get(..whole.len() - self.rest.len())
    }

    /// The next item.
    pub fn value(&mut self) -> Option<Value<'a>> {
        let whole = self.rest;
        let mut ahead = *self;
        let (kind, info, argument) = ahead.head()?;
        let value = match kind {
            UNSIGNED => Value::Unsigned(argument),
            NEGATIVE => Value::Negative(-1 - i64::try_from(argument).ok()?),
            BYTES => Value::Bytes(ahead.take(argument)?),
            TEXT => Value::Text(core::str::from_utf8(ahead.take(argument)?).ok()?),
            ARRAY | MAP => {
                ahead = Self { rest: whole };
                let bytes = ahead.skip()?;
                if kind == MAP {
                    Value::Map(bytes)
                } else {
                    Value::Array(bytes)
                }
            }
            OTHER => match info {
                20 => Value::Bool(false),
                21 => Value::Bool(true),
                22 => Value::Null,
                27 => Value::Float(f64::from_bits(argument)),
                _ => return None,
            },
            TAG.. => return None,
        };
        *self = ahead;
        Some(value)
    }
}

/// The entries of a map with text keys.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    reader: Reader<'a>,
    left: u64,
}

impl<'a> Entries<'a> {
    /// The next key, as the bytes of its text, and its value: `None` at the end, `Some(None)` when the key is no text.
    pub fn next_entry(&mut self) -> Option<Option<(&'a [u8], Value<'a>)>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.entry())
    }

    fn entry(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        Some((self.reader.key()?, self.reader.value()?))
    }
}
