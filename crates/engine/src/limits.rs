//! Every bound of this crate in one place.

use std::time::Duration;

/// Most upstream events that are taken before what they made is journaled and sent.
pub const BATCH_EVENTS_MAX: usize = 64;
/// Most events of a live run that are held for its readers; slower ones read the journal.
pub const RING_EVENTS_MAX: usize = 256;
/// Most bytes of them.
pub const RING_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of them once the run has ended.
pub const RING_ENDED_BYTES_MAX: usize = 64 * 1024;
/// Most entries that are read from the journal at once.
pub const PAGE_ENTRIES_MAX: usize = 256;
/// Most attempts of one run, whatever the plan says.
pub const ATTEMPTS_MAX: u32 = 8;
/// Most answers of one run that are thrown away for a better one.
pub const REASKS_MAX: u32 = 4;
/// Most copies of requests that are under way for comparison only.
pub const MIRRORS_MAX: u32 = 32;
/// Largest fleet whose plan is told in the trace of every run.
pub const EXPLAINED_MAX: usize = 64;
/// Most runs whose attempts can be looked up after their end.
pub const TRACES_MAX: usize = 1_024;
/// Most bytes of one relayed answer that are held before they can be shown.
pub const RELAY_BUFFER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What an event that is held counts for, besides its text.
pub const BUFFERED_EVENT_BYTES: usize = 64;
/// Longest time that a relayed call waits for its turn at a back-end; beyond it, its caller is told.
pub const RELAY_WAIT_MS: u64 = 10_000;
/// How long a back-end that has given its whole answer may take to hang up.
pub const LINGER_MS: u64 = 1_000;
/// Most texts of one request that are asked one by one, and how many of them at once.
pub const UNARY_BATCH_MAX: usize = 256;
pub const UNARY_BATCH_CONCURRENCY: usize = 4;
/// Most bytes of a reply that are kept back because they may be calls of tools; a longer one is text.
pub const CALLS_BYTES_MAX: usize = 1024 * 1024;
/// Most calls of tools in one reply; a longer list is text.
pub const CALLS_MAX: usize = 128;
/// Longest recording that is let in where no module says otherwise.
pub const AUDIO_MS_MAX: u64 = 4 * 60 * 60 * 1_000;
/// Longest model reply that is gathered.
pub const REPLY_BYTES_MAX: usize = module::limits::REPLY_BYTES_MAX;
/// Most remarks of a back-end that its answer carries; of the others, their number is told.
pub const BACKEND_WARNINGS_MAX: usize = 16;
/// Most of one remark that is told.
pub const BACKEND_WARNING_BYTES_MAX: usize = 1_024;
/// Most media items of one run.
pub const MEDIA_ITEMS_MAX: usize = 32;
/// Most bytes of media that one run sends on, together.
pub const MEDIA_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Most media items that are looked at at the same time.
pub const MEDIA_INSPECTIONS_MAX: usize = 2;
/// How long looking at one may take.
pub const MEDIA_INSPECTION_MS: u64 = 60_000;
/// Most items that are fetched or unpacked at the same time: each may take much room on disk.
pub const MEDIA_LOADS_MAX: usize = 16;
/// Media of more bytes than this lies in a file and not in memory, where nobody says otherwise.
pub const MEDIA_STORE_THRESHOLD: u64 = 64 * 1024;
/// How much media of all runs lies in files, where nobody says otherwise.
pub const MEDIA_STORE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// How much of media is in memory while it is written to a file or read from one: whole groups of three bytes.
pub const MEDIA_CHUNK_BYTES: usize = 192 * 1024;
/// What a client is told to wait when there is no room for its media.
pub const MEDIA_STORE_RETRY_MS: u64 = 10_000;
/// Inline media beyond this gets a hint.
pub const INLINE_HINT_BYTES: u64 = 5 * 1024 * 1024;
/// How long a client's name for a run is remembered.
pub const IDEMPOTENCY_WINDOW_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long it is, where more is kept than may be: whoever lost an answer asks again soon.
pub const IDEMPOTENCY_WINDOW_MIN_MS: u64 = 10 * 60 * 1_000;
/// Longest end of a run that is booked; a longer one is written at once.
pub const SPOOLED_EVENT_BYTES_MAX: usize = 64 * 1024;
/// What a client is told to wait when the journal is full.
pub const JOURNAL_FULL_RETRY_MS: u64 = 30_000;
/// How long finished runs are kept, where nobody says.
pub const KEEP_RUNS_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// How much the journal holds, where nobody says.
pub const KEEP_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// How long it is known what was used, where nobody says.
pub const KEEP_USAGE_MS: u64 = 400 * 24 * 60 * 60 * 1_000;
/// Most runs that are thrown away in one step.
pub const SWEEP_RUNS_MAX: usize = 50;
/// Between two steps.
pub const PRUNE_PAUSE: Duration = Duration::from_millis(100);
/// Between two sweeps.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Most notes about steps that wait to be heard; more are dropped.
pub const STEP_PROGRESS_QUEUE_MAX: usize = 64;
/// Most warnings of steps that are told.
pub const STEP_WARNINGS_MAX: usize = 64;
/// Most reasons for a review that come from steps.
pub const STEP_REASONS_MAX: usize = 16;
/// Most of a broken answer that is shown to the model when it is asked once more.
pub const REASK_REPLY_BYTES_MAX: usize = 64 * 1024;
/// Between two tries to close a run in a journal that could not be written.
pub const CLOSE_RETRY: Duration = Duration::from_secs(1);
