//! The goals, by what they measure.

pub(crate) mod allocations;
pub(crate) mod codec;
pub(crate) mod publish;
pub(crate) mod receive;
