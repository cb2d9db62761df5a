//! Pages about more than one item: [writing a driver](driver), and [who can do what](threats).
//!
//! Decides: nothing; it is text. Leaves to others: each item's own page. Believes: no clock. Bounded by: what fits on a page.

#[doc = include_str!("manual/driver.md")]
pub mod driver {}

#[doc = include_str!("manual/threats.md")]
pub mod threats {}
