//! Pages about more than one item: [writing a driver](driver), and [who can do what](threats).

#[doc = include_str!("manual/driver.md")]
pub mod driver {}

#[doc = include_str!("manual/threats.md")]
pub mod threats {}
