//! Reading one field: kind, shape and range.
//!
//! Decides: whether a value fits its key. Leaves to others: which keys there are. Believes: no clock. Bounded by: the value.

use super::cbor::Value;
use super::frame::{MAX_MAX_FRAME, MIN_MAX_FRAME};
use super::frames::{Position, ResumeOutcome, Role, Route, Via};
use super::publication::NUMBER_LIMIT;
use crate::code::{
    CloseReason, HandshakeRefusal, OutcomeCode, PublishRefusal, ResumeCode, SkipReason,
    SubscribeRefusal,
};
use crate::{RunId, WallMs};

/// Binds one `Option` per key of a map, in one pass over its entries. Leaves the calling function with `UnknownField` at a key that is
/// none of them, and with `BadField` at a value its reader refuses.
macro_rules! fields {
    ($entries:expr; $($name:ident: $key:literal => $read:expr),* $(,)?) => {
        $(let mut $name = None;)*
        let mut entries = $entries;
        while let Some(entry) = entries.next_entry() {
            let Some((key, value)) = entry else {
                return Err(LinkError::BadField);
            };
            match key {
                b"version" | b"frame_type" => {
                    let _: Value<'_> = value;
                }
                $($key => match $read(value) {
                    Some(read) => $name = Some(read),
                    None => return Err(LinkError::BadField),
                },)*
                _ => return Err(LinkError::UnknownField),
            }
        }
    };
}
pub(super) use fields;

/// A number below 2^53.
pub(super) fn uint(value: Value<'_>) -> Option<u64> {
    value.unsigned().filter(|number| *number < NUMBER_LIMIT)
}

/// A number from 1 to 2^53 − 1.
pub(super) fn id(value: Value<'_>) -> Option<u64> {
    uint(value).filter(|number| *number > 0)
}

pub(super) fn wall(value: Value<'_>) -> Option<WallMs> {
    uint(value).map(WallMs::new)
}

pub(super) fn version_number(value: Value<'_>) -> Option<u8> {
    u8::try_from(id(value)?).ok()
}

pub(super) fn max_frame(value: Value<'_>) -> Option<u32> {
    let value = u32::try_from(value.unsigned()?).ok()?;
    (MIN_MAX_FRAME..=MAX_MAX_FRAME)
        .contains(&value)
        .then_some(value)
}

pub(super) fn bytes<'a, const N: usize>(value: Value<'a>) -> Option<&'a [u8; N]> {
    value.array_of()
}

pub(super) fn text(value: Value<'_>) -> Option<&str> {
    value.text()
}

pub(super) fn detail(value: Value<'_>) -> Option<&str> {
    value
        .text()
        .filter(|text| text.len() <= super::frames::MAX_DETAIL)
}

/// A publication for the frame: any map.
pub(super) fn object(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Map(bytes) => Some(bytes),
        _ => None,
    }
}

pub(super) fn empty_map(value: Value<'_>) -> Option<()> {
    object(value).filter(|bytes| *bytes == [0xa0]).map(|_| ())
}

pub(super) fn role(value: Value<'_>) -> Option<Role> {
    Role::from_text(value.text()?)
}

pub(super) fn route(value: Value<'_>) -> Option<Route> {
    Route::from_text(value.text()?)
}

pub(super) fn via(value: Value<'_>) -> Option<Via> {
    Via::from_text(value.text()?)
}

pub(super) fn handshake_refusal(value: Value<'_>) -> Option<HandshakeRefusal> {
    HandshakeRefusal::from_text(value.text()?)
}

pub(super) fn subscribe_refusal(value: Value<'_>) -> Option<SubscribeRefusal> {
    SubscribeRefusal::from_text(value.text()?)
}

pub(super) fn publish_refusal(value: Value<'_>) -> Option<PublishRefusal> {
    PublishRefusal::from_text(value.text()?)
}

pub(super) fn skip_reason(value: Value<'_>) -> Option<SkipReason> {
    SkipReason::from_text(value.text()?)
}

/// The reasons that travel; the others are local.
pub(super) fn close_reason(value: Value<'_>) -> Option<CloseReason> {
    CloseReason::from_text(value.text()?)
        .filter(|reason| !matches!(reason, CloseReason::Io | CloseReason::Refused))
}

/// The outcomes that travel; the others are local.
pub(super) fn outcome(value: Value<'_>) -> Option<OutcomeCode> {
    OutcomeCode::from_text(value.text()?)
        .filter(|outcome| !matches!(outcome, OutcomeCode::Unknown | OutcomeCode::Cancelled))
}

pub(super) fn position(value: Value<'_>) -> Option<Position> {
    let mut entries = value.entries()?;
    let (mut run, mut offset) = (None, None);
    while let Some(entry) = entries.next_entry() {
        match entry? {
            (b"run", value) => run = Some(RunId::new(*value.array_of()?)),
            (b"offset", value) => offset = Some(uint(value)?),
            _ => return None,
        }
    }
    Some(Position {
        run: run?,
        offset: offset?,
    })
}

pub(super) fn resume(value: Value<'_>) -> Option<ResumeOutcome> {
    let mut entries = value.entries()?;
    let (mut count, mut oldest, mut outcome) = (None, None, None);
    while let Some(entry) = entries.next_entry() {
        match entry? {
            (b"count", value) => count = Some(uint(value)?),
            (b"oldest", value) => oldest = Some(uint(value)?),
            (b"outcome", value) => outcome = Some(ResumeCode::from_text(value.text()?)?),
            _ => return None,
        }
    }
    match (outcome?, count, oldest) {
        (ResumeCode::None, None, None) => Some(ResumeOutcome::None),
        (ResumeCode::Resumed, Some(count), None) => Some(ResumeOutcome::Resumed { count }),
        (ResumeCode::Expired, None, Some(oldest)) => Some(ResumeOutcome::Expired { oldest }),
        _ => None,
    }
}
