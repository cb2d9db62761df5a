//! Framing: a length and a body (WIRE.md section 1).
//!
//! Decides: where a frame ends and whether its length is allowed. Leaves to others: the body. Believes: no clock. Bounded by: the cap the
//! caller hands in; a length above it is refused from its four bytes.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "alloc")]
use super::frames::{Route, Via};

/// The bytes of a length.
pub const PREFIX: usize = 4;

/// The longest body before the handshake has ended.
pub const HANDSHAKE_CAP: u32 = 4096;

/// The least `max_frame` a side may announce.
pub const MIN_MAX_FRAME: u32 = 512;

/// The `max_frame` a side announces unless told otherwise.
pub const DEFAULT_MAX_FRAME: u32 = 1_048_576;

/// The greatest `max_frame` a side may announce.
pub const MAX_MAX_FRAME: u32 = 0xff_ffff;

/// The longest body of an `event` or `publish` without its publication: a sender leaves so much room for it.
pub const MAX_HEAD: usize = 128;

/// The most bytes of an `event` between its id and its publication.
#[cfg(feature = "alloc")]
pub(crate) const EVENT_REST: usize = 65;

/// What stands at the front of a read buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a reader handles whole and not whole, and there is no third"
)]
pub enum Split<'a> {
    /// A whole frame: its body, and how many bytes of the buffer it takes, its length included.
    Frame {
        /// The body.
        body: &'a [u8],
        /// The bytes to take off the buffer.
        taken: usize,
    },
    /// Not whole yet: so many bytes more, at least.
    More(usize),
}

/// A length above the cap: `frame_too_large`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFault {
    /// The length declared.
    pub length: u32,
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a frame of {} bytes is longer than allowed", self.length)
    }
}

impl core::error::Error for FrameFault {}

/// The frame at the front of `buffered`, if it is whole. `cap` is the longest body allowed now.
///
/// # Errors
/// When the declared length is above `cap`, from its four bytes.
pub fn next_frame(buffered: &[u8], cap: u32) -> Result<Split<'_>, FrameFault> {
    let Some((prefix, after)) = buffered.split_first_chunk::<PREFIX>() else {
        return Ok(Split::More(PREFIX - buffered.len()));
    };
    let length = u32::from_be_bytes(*prefix);
    if length > cap {
        return Err(FrameFault { length });
    }
    let length = length as usize;
    Ok(match after.get(..length) {
        Some(body) => Split::Frame {
            body,
            taken: PREFIX + length,
        },
        None => Split::More(length - after.len()),
    })
}

/// The body of the frame at the front of `buffered`, and what is behind it, if it is whole and allowed.
#[cfg(feature = "alloc")]
#[inline(always)]
pub(crate) fn whole_frame(buffered: &[u8], cap: u32) -> Option<(&[u8], &[u8])> {
    let (prefix, after) = buffered.split_first_chunk::<PREFIX>()?;
    let length = u32::from_be_bytes(*prefix);
    after
        .split_at_checked(length as usize)
        .filter(|_| length <= cap)
}

/// Leaves room for a length at the end of `out`; what is appended after is the body. Hand the mark to [`end_frame`].
#[cfg(feature = "alloc")]
#[must_use]
pub fn begin_frame(out: &mut Vec<u8>) -> usize {
    let mark = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    mark
}

/// Writes the length of what was appended since `mark`.
#[cfg(feature = "alloc")]
pub fn end_frame(out: &mut [u8], mark: usize) {
    let length = out.len().saturating_sub(mark.saturating_add(PREFIX)) as u32;
    if let Some(room) = out.get_mut(mark..mark.saturating_add(PREFIX)) {
        room.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends everything of an `event` frame before its publication; `publication_len` bytes of publication object follow it on the wire.
#[cfg(feature = "alloc")]
pub fn event_head(out: &mut Vec<u8>, id: u64, via: Via, offset: u64, publication_len: usize) {
    split_frame(out, publication_len, |out| {
        super::frames::event_entries(out, id, via, offset);
    });
}

/// The longest of an [`EventStart`], its length aside: four bytes of text and a number.
#[cfg(feature = "alloc")]
const EVENT_ID: usize = 13;

/// The beginning of the `event` frames of one subscription: what differs from link to link. Encoded once, as there are many.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventStart {
    id: [u8; EVENT_ID],
    len: u8,
}

#[cfg(feature = "alloc")]
impl EventStart {
    /// The most bytes [`put`](Self::put) appends.
    pub(crate) const MOST: usize = PREFIX + EVENT_ID;

    pub(crate) fn new(id: u64) -> Self {
        let mut text = Vec::with_capacity(EVENT_ID);
        super::frames::event_id(&mut text, id);
        let len = text.len() as u8;
        text.resize(EVENT_ID, 0);
        let mut id = [0; EVENT_ID];
        id.copy_from_slice(&text);
        Self { id, len }
    }

    /// Appends it. `rest` bytes follow it on the wire, of [`event_rest`] and the publication.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>, rest: usize) {
        let len = usize::from(self.len);
        out.extend_from_slice(&((len + rest) as u32).to_be_bytes());
        // A copy of fixed size is two moves; what is too much of it goes again.
        let end = out.len() + len;
        out.extend_from_slice(&self.id);
        out.truncate(end);
    }

    /// The bytes of its id and what comes before that, lengths aside.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Puts it into each of the whole frames in `frames`, whose starts are as long.
    #[inline]
    pub(crate) fn put_right(&self, mut frames: &mut [u8]) {
        let id = self.id.get(..self.len()).unwrap_or_default();
        while let Some((prefix, rest)) = frames.split_first_chunk_mut::<PREFIX>() {
            let length = u32::from_be_bytes(*prefix) as usize;
            let Some((body, next)) = rest.split_at_mut_checked(length) else {
                return;
            };
            if let Some(there) = body.get_mut(..id.len()) {
                there.copy_from_slice(id);
            }
            frames = next;
        }
    }
}

/// Appends what stands between that and the publication, at most [`EVENT_REST`] bytes.
#[cfg(feature = "alloc")]
pub(crate) fn event_rest(out: &mut Vec<u8>, via: Via, offset: u64) {
    super::frames::event_rest(out, via, offset);
}

/// Appends everything of a `publish` frame before its publication; `publication_len` bytes of publication object follow it on the wire.
#[cfg(feature = "alloc")]
pub fn publish_head(out: &mut Vec<u8>, id: u64, route: Route, publication_len: usize) {
    split_frame(out, publication_len, |out| {
        super::frames::publish_entries(out, id, route);
    });
}

#[cfg(feature = "alloc")]
fn split_frame(out: &mut Vec<u8>, tail: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let mark = begin_frame(out);
    write(out);
    let head = out.len().saturating_sub(mark.saturating_add(PREFIX));
    let length = head.saturating_add(tail) as u32;
    if let Some(room) = out.get_mut(mark..mark.saturating_add(PREFIX)) {
        room.copy_from_slice(&length.to_be_bytes());
    }
}
