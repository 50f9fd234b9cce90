//! Every bound of this crate in one place.

/// Most connections that read at a time.
pub const READERS_MAX: u32 = 4;
/// Most lines of an account of usage.
pub const USAGE_LINES_MAX: usize = 10_000;
