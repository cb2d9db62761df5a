//! What a transport's exporter is asked for (WIRE.md section 8).
//!
//! Decides: label and context. Leaves to others: the transport. Believes: no clock. Bounded by: fixed sizes.

use crate::NodeId;

/// The exporter's label; 32 bytes are asked for.
pub const EXPORTER_LABEL: &str = "EXPORTER-tidings-v1";

/// The exporter's context: the dialler's id, then the answerer's.
pub fn exporter_context(dialler: &NodeId, answerer: &NodeId) -> [u8; 64] {
    let mut context = [0; 64];
    let (first, second) = context.split_at_mut(32);
    first.copy_from_slice(dialler.as_bytes());
    second.copy_from_slice(answerer.as_bytes());
    context
}
