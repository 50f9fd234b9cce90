//! Every bound of this crate in one place.

use std::time::Duration;

/// Most connections that read at a time.
pub const READERS_MAX: u32 = 4;
/// Pages that a connection that reads keeps at most.
pub const READER_CACHE_KIB: u32 = 512;
/// The same for the one that writes runs: what many runs dirty at once, and the ends of all trees.
pub const WRITER_CACHE_KIB: u32 = 1024;
/// Pages in the write-ahead log before they are carried into the file: those that are written again and again, the ends of
/// all trees, are carried once.
pub const WAL_CHECKPOINT_PAGES: u32 = 4_000;
/// Pages that come into the log before carrying is tried again.
pub const LOG_PAGES_MORE: u32 = 1_000;
/// How often what came meanwhile is carried behind the rest.
pub const LOG_TRIES_MAX: usize = 4;
/// Pages in the log from which on whoever writes has to wait until they are carried.
pub const LOG_PAGES_MAX: u32 = 16_000;
/// Bytes of events after which a page of them ends: each of many slow readers holds one.
pub const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Most lines of an account of usage.
pub const USAGE_LINES_MAX: usize = 10_000;
/// Most writes that wait for the one that is under way; whoever comes later waits outside.
pub const WRITES_WAITING_MAX: usize = 1_024;
/// Most writes in one transaction.
pub const WRITE_BATCH_MAX: usize = 256;
/// Rows of bookings that are written however many others wait to write.
pub const BOOKED_ROWS_TOGETHER: usize = 64;
/// Most bookings of calls that wait to get into the tables.
pub const CALLS_WAITING_MAX: usize = 200_000;
/// Most bytes of a run's events that are booked; more are written at once.
pub const SPOOL_RUN_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of lines that wait to be written to the log together.
pub const CALLS_ADDED_BYTES_MAX: usize = 64 * 1024;
/// Room for lines of the log that is kept for the next ones.
pub const CALLS_LINE_BYTES_KEPT: usize = 16 * 1024;
/// Most bytes of a log of bookings that somebody left behind.
pub const CALLS_LOG_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Between two steps in which bookings get into the tables: what comes meanwhile shares the next one.
pub const SPOOL_FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// The same, when the tables took nothing.
pub const CALLS_RETRY: Duration = Duration::from_millis(500);
