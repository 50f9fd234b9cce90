//! Every bound of this crate in one place.

/// Most connections that read at a time.
pub const READERS_MAX: u32 = 4;
/// Bytes of events after which a page of them ends: each of many slow readers holds one.
pub const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Most lines of an account of usage.
pub const USAGE_LINES_MAX: usize = 10_000;
/// Most writes that wait for the one that is under way; whoever comes later waits outside.
pub const WRITES_WAITING_MAX: usize = 1_024;
/// Most writes in one transaction.
pub const WRITES_TOGETHER_MAX: usize = 256;
