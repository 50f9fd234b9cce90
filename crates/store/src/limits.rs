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
/// Maximum number of queued writes: some for each run in progress.
pub const WRITE_QUEUE_MAX: usize = 65_536;
/// Maximum number of writes in one transaction.
pub const WRITE_BATCH_MAX: usize = 256;
/// Maximum number of relayed calls in progress; each has reserved the place of its end record.
pub const ACCOUNTS_OPEN_MAX: usize = 100_000;
/// Time until the first record of the accounting log is applied; records that arrive meanwhile go with it.
pub const ACCOUNTS_APPLY_INTERVAL: Duration = Duration::from_millis(100);
/// The same after a failure.
pub const ACCOUNTS_RETRY: Duration = Duration::from_millis(500);
/// Maximum size of an accounting log that a killed process has left.
pub const ACCOUNTS_FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
