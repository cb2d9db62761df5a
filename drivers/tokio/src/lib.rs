//! The tokio driver of tidings.
