//! Every byte that travels (WIRE.md).
//!
//! Decides: what is well formed, and the one encoding of each value. Leaves to others: signatures (`crypto`), what frames mean (the
//! machines). Believes: no clock but the one handed to [`Publication::freshness`]. Bounded by: 64 levels, 131,072 items, the frame cap;
//! views borrow, only writers to `Vec` allocate.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod cbor;
mod fields;
mod frame;
mod frames;
pub mod object;
#[cfg(feature = "alloc")]
mod payload;
#[cfg(feature = "alloc")]
mod positions;
mod publication;

pub use frame::{
    DEFAULT_MAX_FRAME, FrameFault, HANDSHAKE_CAP, MAX_HEAD, MAX_MAX_FRAME, MIN_MAX_FRAME, PREFIX,
    Split, next_frame,
};
#[cfg(feature = "alloc")]
pub(crate) use frame::{EVENT_REST, EventStart, event_rest, whole_frame};
#[cfg(feature = "alloc")]
pub use frame::{begin_frame, end_frame, event_head, publish_head};
#[cfg(feature = "alloc")]
pub(crate) use frames::plain_event;
pub use frames::{
    Challenge, Connect, Event, Frame, Goodbye, Hello, Interest, InterestEntries, InterestEntry,
    MAX_DETAIL, Opener, Phase, Position, Progress, Publish, Published, Refused, ResumeOutcome,
    Role, Route, Skipped, Subscribe, Subscribed, VERSION, Via,
};
pub use object::Object;
#[cfg(feature = "alloc")]
pub use payload::{
    MAX_PAYLOAD_DEPTH, MAX_PAYLOAD_ITEMS, PayloadError, check_payload, from_payload, to_payload,
};
#[cfg(feature = "alloc")]
pub use positions::{LanePosition, Positions, PositionsFault, StationPosition};
#[cfg(feature = "alloc")]
pub(crate) use publication::freshness;
pub use publication::{
    Body, DEFAULT_TTL_MS, Draft, MAX_TTL_MS, NUMBER_LIMIT, Publication, SKEW_MS, Sealed,
};
