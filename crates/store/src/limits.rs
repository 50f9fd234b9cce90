//! All limits of this crate.

use std::time::Duration;

/// Maximum number of read connections.
pub const READERS_MAX: usize = 4;
/// Page cache of a read connection.
pub const READER_CACHE_KIB: u32 = 512;
/// Page cache of the connection that writes runs: the pages that many runs modify at once, and the right edge
/// of every B-tree.
pub const WRITER_CACHE_KIB: u32 = 1024;
/// Pages in the write-ahead log before a checkpoint: pages that are modified repeatedly, such as the right
/// edge of every B-tree, are copied once.
pub const WAL_CHECKPOINT_PAGES: u32 = 4_000;
/// Additional pages before a checkpoint is tried again.
pub const LOG_PAGES_MORE: u32 = 1_000;
/// Maximum number of checkpoints in a row for pages that were added meanwhile.
pub const LOG_TRIES_MAX: usize = 4;
/// Pages in the log at which a writer waits for the checkpoint.
pub const LOG_PAGES_MAX: u32 = 16_000;
/// Bytes of events at which a page of them ends: each of many slow readers buffers one page.
pub const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of rows of a usage report.
pub const USAGE_LINES_MAX: usize = 10_000;
/// Capacity of the write queue; further writers wait for a free slot.
pub const WRITES_WAITING_MAX: usize = 1_024;
/// Maximum number of writes in one transaction.
pub const WRITE_BATCH_MAX: usize = 256;
/// Rows of lifecycle records that are written regardless of contention.
pub const BOOKED_ROWS_TOGETHER: usize = 64;
/// Maximum number of lifecycle records in the spool.
pub const CALLS_WAITING_MAX: usize = 200_000;
/// Maximum bytes of a run's events in the spool; more are written synchronously.
pub const SPOOL_RUN_BYTES_MAX: usize = 16 * 1024;
/// Maximum bytes of spool records that are written in one call.
pub const CALLS_ADDED_BYTES_MAX: usize = 64 * 1024;
/// Capacity of the record buffer that is retained between writes.
pub const CALLS_LINE_BYTES_KEPT: usize = 16 * 1024;
/// Maximum size of an orphaned spool.
pub const CALLS_LOG_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Interval between flushes of the spool; records that arrive in between share the next flush.
pub const SPOOL_FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// The same after a failed flush.
pub const CALLS_RETRY: Duration = Duration::from_millis(500);
