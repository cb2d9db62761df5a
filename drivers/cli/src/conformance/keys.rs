//! `keys`: questions about the keys of a group, their answers, and a member's keyring in time.
//!
//! Decides: nothing. Leaves to others: the entries; they are judged by the same hand as in the core's own tests. Believes: the times of the
//! entry. Bounded by: the entry.

#[path = "../../../../core/tests/vectors_wire/keys.rs"]
mod hand;

use serde_json::Value;

use super::{Broken, Judged, refuse};

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    hand::judge(entry).map(|judged| judged.map_err(|reason| refuse(&reason)))
}
