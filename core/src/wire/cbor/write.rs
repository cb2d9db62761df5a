//! Writing values under the rule.
//!
//! Decides: shortest heads. Leaves to others: the order of keys, which the caller writes sorted. Believes: no clock. Bounded by: the sink.

use core::fmt;

use super::major::{ARRAY, BYTES, MAP, NEGATIVE, TEXT, UNSIGNED};

/// Where bytes go.
pub trait Sink {
    /// Takes all of `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

/// A sink that can hand out what it takes, to be filled where it stands.
pub trait RoomSink: Sink {
    /// Takes `len` bytes and hands them out; what they hold is the caller's to write. `None` when there is not that much room, or when
    /// bytes are counted only.
    fn room(&mut self, len: usize) -> Option<&mut [u8]>;
}

#[cfg(feature = "alloc")]
impl Sink for alloc::vec::Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(feature = "alloc")]
impl RoomSink for alloc::vec::Vec<u8> {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        let at = self.len();
        self.resize(at.checked_add(len)?, 0);
        self.get_mut(at..)
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn put(&mut self, bytes: &[u8]) {
        (**self).put(bytes);
    }
}

/// Counts and keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter(pub(crate) usize);

impl Sink for Counter {
    fn put(&mut self, bytes: &[u8]) {
        self.0 = self.0.saturating_add(bytes.len());
    }
}

impl RoomSink for Counter {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0 = self.0.saturating_add(len);
        None
    }
}

/// A slice that was too short; nothing in it is meant to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// How many bytes would have been enough.
    pub needed: usize,
}

impl fmt::Display for TooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the buffer is too small, {} bytes are needed",
            self.needed
        )
    }
}

impl core::error::Error for TooSmall {}

/// A sink over a slice. Counts on past its end, so that the caller learns how much was needed.
#[derive(Debug)]
pub struct SliceSink<'a> {
    slice: &'a mut [u8],
    written: usize,
}

impl<'a> SliceSink<'a> {
    /// Writes from the front of `slice`.
    pub const fn new(slice: &'a mut [u8]) -> Self {
        Self { slice, written: 0 }
    }

    /// How many bytes were written.
    ///
    /// # Errors
    /// When the slice was too short for them.
    pub const fn finish(self) -> Result<usize, TooSmall> {
        if self.written > self.slice.len() {
            Err(TooSmall {
                needed: self.written,
            })
        } else {
            Ok(self.written)
        }
    }
}

impl Sink for SliceSink<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.written.saturating_add(bytes.len());
        if let Some(room) = self.slice.get_mut(self.written..end) {
            room.copy_from_slice(bytes);
        }
        self.written = end;
    }
}

impl RoomSink for SliceSink<'_> {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        let at = self.written;
        self.written = at.saturating_add(len);
        self.slice.get_mut(at..self.written)
    }
}

/// Writes items with shortest heads.
#[derive(Debug)]
pub struct Writer<'a, S: ?Sized>(&'a mut S);

impl<'a, S: Sink + ?Sized> Writer<'a, S> {
    /// Writes to `sink`.
    pub const fn new(sink: &'a mut S) -> Self {
        Self(sink)
    }

    fn head(&mut self, kind: u8, argument: u64) {
        let kind = kind << 5;
        let [.., c, d, e, f, g, h] = argument.to_be_bytes();
        match argument {
            0..24 => self.0.put(&[kind | h]),
            24..0x100 => self.0.put(&[kind | 24, h]),
            0x100..0x1_0000 => self.0.put(&[kind | 25, g, h]),
            0x1_0000..0x1_0000_0000 => self.0.put(&[kind | 26, e, f, g, h]),
            _ => {
                let [a, b, ..] = argument.to_be_bytes();
                self.0.put(&[kind | 27, a, b, c, d, e, f, g, h]);
            }
        }
    }

    /// An unsigned integer.
    #[inline]
    pub fn unsigned(&mut self, value: u64) -> &mut Self {
        match value {
            0..24 => self.0.put(&[UNSIGNED << 5 | value as u8]),
            _ => self.head(UNSIGNED, value),
        }
        self
    }

    /// An integer.
    pub fn integer(&mut self, value: i64) -> &mut Self {
        // −1 − n in two's complement is !n.
        if value < 0 {
            self.head(NEGATIVE, !value as u64);
        } else {
            self.head(UNSIGNED, value as u64);
        }
        self
    }

    /// A byte string.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.bytes_head(value.len());
        self.0.put(value);
        self
    }

    /// The head of a byte string whose contents follow by [`raw`](Self::raw).
    pub fn bytes_head(&mut self, len: usize) -> &mut Self {
        self.head(BYTES, len as u64);
        self
    }

    /// A text string.
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.head(TEXT, value.len() as u64);
        self.0.put(value.as_bytes());
        self
    }

    /// The head of a map of `entries` entries, which follow with their keys sorted.
    pub fn map(&mut self, entries: usize) -> &mut Self {
        self.head(MAP, entries as u64);
        self
    }

    /// The head of an array of `items` items, which follow.
    pub fn array(&mut self, items: usize) -> &mut Self {
        self.head(ARRAY, items as u64);
        self
    }

    /// A float, as binary64. Not finite is not allowed by the rule; the caller checks.
    pub fn float(&mut self, value: f64) -> &mut Self {
        let [a, b, c, d, e, f, g, h] = value.to_bits().to_be_bytes();
        self.0.put(&[0xfb, a, b, c, d, e, f, g, h]);
        self
    }

    /// `false` or `true`; inside payloads alone.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.0.put(&[if value { 0xf5 } else { 0xf4 }]);
        self
    }

    /// `null`; inside payloads alone.
    pub fn null(&mut self) -> &mut Self {
        self.0.put(&[0xf6]);
        self
    }

    /// Bytes that are encoded already.
    pub fn raw(&mut self, encoded: &[u8]) -> &mut Self {
        self.0.put(encoded);
        self
    }
}
