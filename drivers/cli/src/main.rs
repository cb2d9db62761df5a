//! The tidings command.
fn main() {}
