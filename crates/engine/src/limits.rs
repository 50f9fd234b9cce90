//! Every bound of this crate in one place.

use std::time::Duration;

/// Most upstream events that are processed before their output is journaled and sent.
pub const BATCH_EVENTS_MAX: usize = 64;
/// Most events in the ring buffer of a broadcast; slower readers read the journal.
pub const RING_EVENTS_MAX: usize = 256;
/// Most bytes in the ring buffer.
pub const RING_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes in the ring buffer once the run has ended.
pub const RING_ENDED_BYTES_MAX: usize = 64 * 1024;
/// Most entries per read of the journal.
pub const PAGE_ENTRIES_MAX: usize = 256;
/// Most attempts of one run, independent of the route plan.
pub const ATTEMPTS_MAX: u32 = 8;
/// Most reasks of one run.
pub const REASKS_MAX: u32 = 4;
/// Most mirrored requests in flight.
pub const MIRRORS_MAX: u32 = 32;
/// Largest fleet whose route plan is included in the trace of every run.
pub const EXPLAINED_MAX: usize = 64;
/// Most runs in the trace store.
pub const TRACES_MAX: usize = 1_024;
/// Most bytes of one relayed response that are buffered before they can be sent.
pub const RELAY_BUFFER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Size that a buffered event counts for, besides its text.
pub const BUFFERED_EVENT_BYTES: usize = 64;
/// Longest wait of a relayed call before an attempt; beyond it the caller gets an error.
pub const RELAY_WAIT_MS: u64 = 10_000;
/// How long a back-end may take to close the stream after a complete answer.
pub const LINGER_MS: u64 = 1_000;
/// Most texts of one request that are sent as separate unary calls, and how many of these run concurrently.
pub const UNARY_BATCH_MAX: usize = 256;
pub const UNARY_BATCH_CONCURRENCY: usize = 4;
/// Most bytes of a reply that are buffered as possible tool calls; a longer reply is text.
pub const CALLS_BYTES_MAX: usize = 1024 * 1024;
/// Most tool calls in one reply; a longer list is text.
pub const CALLS_MAX: usize = 128;
/// Longest audio that is accepted if the module sets no limit.
pub const AUDIO_MS_MAX: u64 = 4 * 60 * 60 * 1_000;
/// Longest model reply that is accumulated.
pub const REPLY_BYTES_MAX: usize = module::limits::REPLY_BYTES_MAX;
/// Most back-end warnings in an answer; the others are only counted.
pub const BACKEND_WARNINGS_MAX: usize = 16;
/// Most bytes of one back-end warning.
pub const BACKEND_WARNING_BYTES_MAX: usize = 1_024;
/// Most media items of one run.
pub const MEDIA_ITEMS_MAX: usize = 32;
/// Most bytes of media that one run sends, in total.
pub const MEDIA_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Most concurrent inspections of media items.
pub const MEDIA_INSPECTIONS_MAX: usize = 2;
/// Timeout of one inspection.
pub const MEDIA_INSPECTION_MS: u64 = 60_000;
/// Most items that are fetched or unpacked concurrently: each may need much disk space.
pub const MEDIA_LOADS_MAX: usize = 16;
/// Longest text of inline media in a journaled input; a longer one is in a file of its run.
pub const JOURNALED_MEDIA_CHARS_MAX: usize = 64 * 1024;
/// Most different URLs in a chat, and how long checking them may take.
pub const CHAT_URLS_MAX: usize = 100;
pub const CHAT_URLS_MS: u64 = 5_000;
/// Size above which inline media gets a hint.
pub const INLINE_HINT_BYTES: u64 = 5 * 1024 * 1024;
/// How long an idempotency key is stored.
pub const IDEMPOTENCY_WINDOW_MS: u64 = 24 * 60 * 60 * 1_000;
/// The same while the journal is above its maximum size: a client that lost an answer retries soon.
pub const IDEMPOTENCY_WINDOW_MIN_MS: u64 = 10 * 60 * 1_000;
/// Retry delay sent to a client when the journal is full.
pub const JOURNAL_FULL_RETRY_MS: u64 = 30_000;
/// Default retention of finished runs.
pub const KEEP_RUNS_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Default maximum size of the journal.
pub const KEEP_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Default retention of usage records.
pub const KEEP_USAGE_MS: u64 = 400 * 24 * 60 * 60 * 1_000;
/// Most runs that are pruned in one batch.
pub const SWEEP_RUNS_MAX: usize = 50;
/// Pause between two batches.
pub const PRUNE_PAUSE: Duration = Duration::from_millis(100);
/// How far the wall clock may run ahead of the monotonic one, which stops while the machine is suspended.
pub const CLOCK_JUMP_MAX_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Interval between two sweeps.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Most queued progress events of steps; more are dropped.
pub const STEP_PROGRESS_QUEUE_MAX: usize = 64;
/// Most warnings of steps in an envelope.
pub const STEP_WARNINGS_MAX: usize = 64;
/// Most review reasons of steps in an envelope.
pub const STEP_REASONS_MAX: usize = 16;
/// Most bytes of an invalid answer that a reask contains.
pub const REASK_REPLY_BYTES_MAX: usize = 64 * 1024;
/// Pause between two attempts to close a run in a journal that could not be written.
pub const CLOSE_RETRY: Duration = Duration::from_secs(1);
/// Stack of a thread that compiles or applies a schema: both are recursive.
pub const SCHEMA_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of these threads; further work waits.
pub const SCHEMA_THREADS_MAX: usize = 4;
