//! Limits of temporary media.

/// Default size above which media is stored in a file instead of memory.
pub const THRESHOLD_BYTES: u64 = 64 * 1024;
/// Default maximum size of all files.
pub const STORE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes in memory while media is written to or read from a file; a multiple of three.
pub const CHUNK_BYTES: usize = 192 * 1024;
/// Retry delay sent to a client when the store is full.
pub const FULL_RETRY_MS: u64 = 10_000;
