//! What the sockets did.
//!
//! Decides: nothing. Leaves to others: what the machine did (`status()`). Believes: no clock.
//! Bounded by: six numbers.

/// Reads and writes of one node or station since it started, all links together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoCounters {
    /// Reads that brought bytes.
    pub reads: u64,
    /// Bytes they brought.
    pub bytes_read: u64,
    /// Writes that took bytes.
    pub writes: u64,
    /// Bytes they took.
    pub bytes_written: u64,
    /// Writes that took only a part of what they were given.
    pub partial_writes: u64,
    /// Connections that could not be accepted (out of file descriptors), were turned away at the doors (more than the limits take) or
    /// came to no link.
    pub refused_connections: u64,
}

impl IoCounters {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, more: Self) {
        self.reads += more.reads;
        self.bytes_read += more.bytes_read;
        self.writes += more.writes;
        self.bytes_written += more.bytes_written;
        self.partial_writes += more.partial_writes;
        self.refused_connections += more.refused_connections;
    }
}
