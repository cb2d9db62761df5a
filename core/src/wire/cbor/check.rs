//! The one walk that decides whether bytes keep the rule.
//!
//! Decides: the first thing that breaks it. Leaves to others: meaning. Believes: no clock. Bounded by: 64 levels on the stack, one pass
//! (values deeper than eight levels are begun a second time, with the large stack).

use super::major::{ARRAY, BYTES, MAP, NEGATIVE, OTHER, TAG, TEXT, UNSIGNED};
use super::{CborFault, MAX_DEPTH, MAX_ITEMS};

/// Where `false`, `true` and `null` may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Simples {
    /// Anywhere: a payload of its own.
    Anywhere,
    /// Nowhere: frames.
    Nowhere,
    /// Inside the value of the top map's key `payload`: `tbs` of a publication.
    InPayload,
}

/// Checks `bytes` against the rule: one whole value and nothing after it. `simples` says whether `false`, `true` and `null` may stand in
/// it, as they may in a payload.
///
/// # Errors
/// The first thing, from the front, that breaks the rule.
pub fn check(bytes: &[u8], simples: bool) -> Result<(), CborFault> {
    let simples = if simples {
        Simples::Anywhere
    } else {
        Simples::Nowhere
    };
    walk(bytes, simples, Bounds::WHOLE)
}

/// How deep and how long a value may be.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) depth: usize,
    pub(crate) items: u32,
}

impl Bounds {
    /// A value of its own.
    pub(crate) const WHOLE: Self = Self {
        depth: MAX_DEPTH,
        items: MAX_ITEMS,
    };
}

pub(crate) fn walk(bytes: &[u8], simples: Simples, bounds: Bounds) -> Result<(), CborFault> {
    // Most values are shallow, and a small stack is cheaper to set up than a large one.
    match walk_with::<8>(bytes, simples, bounds) {
        Ok(done) => done,
        Err(StackFull) => {
            walk_with::<MAX_DEPTH>(bytes, simples, bounds).unwrap_or(Err(CborFault::TooDeep))
        }
    }
}

struct StackFull;

#[derive(Clone, Copy)]
struct Level<'a> {
    /// Items still to come, keys and values alike.
    left: u64,
    map: bool,
    /// The encoded key before the one to come.
    previous: &'a [u8],
}

const PAYLOAD_KEY: &[u8] = b"\x67payload";

fn walk_with<const N: usize>(
    bytes: &[u8],
    simples: Simples,
    bounds: Bounds,
) -> Result<Result<(), CborFault>, StackFull> {
    macro_rules! refuse {
        ($fault:ident) => {
            return Ok(Err(CborFault::$fault))
        };
    }
    let mut stack = [Level {
        left: 0,
        map: false,
        previous: &[],
    }; N];
    let mut depth = 0usize;
    let mut level = Level {
        left: 1,
        map: false,
        previous: &[],
    };
    let mut allowed = simples == Simples::Anywhere;
    let mut items = 0u32;
    let mut rest = bytes;

    loop {
        while level.left == 0 {
            if depth == 0 {
                if !rest.is_empty() {
                    refuse!(Trailing);
                }
                return Ok(Ok(()));
            }
            depth -= 1;
            match stack.get(depth) {
                Some(parent) => level = *parent,
                None => return Err(StackFull),
            }
        }
        let is_key = level.map && level.left & 1 == 0;
        level.left -= 1;
        // What the payload may hold, the key after it may not.
        let top_key = is_key && depth == 1 && simples == Simples::InPayload;
        if top_key {
            allowed = false;
        }

        let item = rest;
        let Some((&first, after)) = rest.split_first() else {
            refuse!(Truncated);
        };
        rest = after;
        let kind = first >> 5;
        let info = first & 0x1f;
        let argument = if info < 24 {
            u64::from(info)
        } else {
            macro_rules! wide {
                ($n:literal, $type:ty, $shortest:expr) => {{
                    let Some((wide, after)) = rest.split_first_chunk::<$n>() else {
                        refuse!(Truncated);
                    };
                    rest = after;
                    let value = u64::from(<$type>::from_be_bytes(*wide));
                    if value < $shortest && kind != OTHER {
                        refuse!(LongHead);
                    }
                    value
                }};
            }
            match info {
                24 => wide!(1, u8, 24),
                25 => wide!(2, u16, 1 << 8),
                26 => wide!(4, u32, 1 << 16),
                27 => wide!(8, u64, 1 << 32),
                31 => refuse!(Indefinite),
                _ => refuse!(ReservedHead),
            }
        };
        match kind {
            UNSIGNED | NEGATIVE if argument > i64::MAX as u64 => refuse!(IntegerRange),
            TAG => refuse!(Tag),
            OTHER => match info {
                20..=22 if allowed => {}
                27 if f64::from_bits(argument).is_finite() => {}
                25..=27 => refuse!(Float),
                _ => refuse!(Simple),
            },
            _ => {}
        }
        if is_key && !matches!(kind, UNSIGNED | NEGATIVE | TEXT) {
            refuse!(BadKey);
        }
        items += 1;
        if items > bounds.items {
            refuse!(TooManyItems);
        }
        match kind {
            BYTES | TEXT => {
                let split = usize::try_from(argument)
                    .ok()
                    .and_then(|len| rest.split_at_checked(len));
                let Some((contents, after)) = split else {
                    refuse!(Truncated);
                };
                rest = after;
                if kind == TEXT && !is_text(contents) {
                    refuse!(BadText);
                }
            }
            ARRAY | MAP => {
                if depth >= bounds.depth {
                    refuse!(TooDeep);
                }
                let Some(slot) = stack.get_mut(depth) else {
                    return Err(StackFull);
                };
                *slot = level;
                depth += 1;
                let map = kind == MAP;
                level = Level {
                    // A count that saturates cannot be reached by any input; even, because its parity tells keys from values.
                    left: if map {
                        argument.saturating_mul(2) & !1
                    } else {
                        argument
                    },
                    map,
                    previous: &[],
                };
            }
            _ => {}
        }
        if is_key {
            // What was consumed of `item` is the encoded key.
            let length = item.len() - rest.len();
            let key = item.get(..length).unwrap_or(item);
            if !level.previous.is_empty() && key <= level.previous {
                if key == level.previous {
                    refuse!(DuplicateKey);
                }
                refuse!(KeyOrder);
            }
            level.previous = key;
            if top_key {
                allowed = key == PAYLOAD_KEY;
            }
        }
    }
}

/// Most texts are short and ASCII.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    bytes.is_ascii() || core::str::from_utf8(bytes).is_ok()
}
