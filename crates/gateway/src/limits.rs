//! Every limit of this crate.

use std::time::Duration;

/// Largest request body that is read.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Default memory for request bodies that are being read, parsed or used by a call.
pub const BODY_MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Memory of one JSON value beyond its text, as an estimate for that budget.
pub const JSON_VALUE_BYTES: usize = 256;
/// Requests with a body up to this size are handled between other tasks of a worker.
pub const BODY_INLINE_BYTES: usize = 128 * 1024;
/// Bodies of this size, and trees with so many values, are not counted.
pub const BODY_FREE_BYTES: usize = 16 * 1024;
pub const JSON_FREE_VALUES: usize = 4_096;
/// A call holds the memory of a body above this estimate until it has ended.
pub const BODY_HELD_BYTES: usize = 1024 * 1024;
/// Timeout of waiting for that memory.
pub const BODY_WAIT: Duration = Duration::from_secs(10);
/// Most bodies of one caller that are being read; further ones wait.
pub const BODIES_PER_CALLER_MAX: usize = 256;
/// Largest body that is read for a caller without a run permit, because it may resume a run.
pub const REFUSED_BODY_BYTES_MAX: usize = 64 * 1024;
/// Callers whose share is kept before those without a body are dropped.
pub const BODY_CALLERS_MAX: usize = 1_024;
/// Largest form with files that is read.
pub const FORM_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most bytes that are read of a refused body, so that its client receives the response.
pub const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long they are read.
pub const DISCARD_TIME: Duration = Duration::from_secs(5);
/// Most multipart forms in memory at a time, and twice as many as of one caller; further ones wait to be read.
pub const FORMS_MAX: usize = 128;
/// Longest boundary of a form (RFC 2046, 5.1.1).
pub const FORM_BOUNDARY_BYTES_MAX: usize = 70;
/// Most bytes before a form's first part, and of the headers of each part.
pub const PART_HEADER_BYTES_MAX: usize = 16 * 1024;
/// Most fields of a form.
pub const FORM_FIELDS_MAX: usize = 64;
/// Most bytes of all fields of a form that are not files.
pub const FORM_TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Default interval between heartbeats of a stream.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// Default time for runs to end after the server was asked to stop.
pub const DRAIN: Duration = Duration::from_secs(10);
/// Time for connections to close after that.
pub const CLOSE: Duration = Duration::from_secs(2);
/// Default limit of open connections; further ones wait to be accepted.
pub const CONNECTIONS_MAX: usize = 20_000;
/// Least age at which a connection without a request is closed for another one.
pub const HALF_OPEN_MIN: Duration = Duration::from_secs(1);
/// Least time between two log lines about refused connections.
pub const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Default timeout for request headers and for idle connections.
pub const HEADER_READ: Duration = Duration::from_secs(30);
/// Default timeout for a request body.
pub const BODY_READ: Duration = Duration::from_secs(60);
/// Default time after which a connection without write progress is closed.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
/// Timeout of a TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// Most bytes of the headers of one request, and of the read buffer of one HTTP/1 connection.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Most concurrent requests on one HTTP/2 connection.
pub const REQUESTS_PER_CONNECTION_MAX: u32 = 256;
/// Bytes of one HTTP/2 body that a client may send ahead of its reading.
pub const BODY_WINDOW_BYTES: u32 = 128 * 1024;
/// Send buffer of one HTTP/2 stream.
pub const SEND_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Default limit of open streams per client.
pub const STREAMS_PER_CLIENT_MAX: usize = 10_000;
/// Most concurrent runs on one WebSocket.
pub const SOCKET_RUNS_MAX: usize = 64;
/// Outgoing queue of one WebSocket; senders wait when it is full.
pub const SOCKET_QUEUE_MAX: usize = 32;
/// Longest run id that a client may choose on a WebSocket.
pub const SOCKET_ID_BYTES_MAX: usize = 256;
/// Longest reason in a close frame.
pub const CLOSE_REASON_BYTES_MAX: usize = 120;
/// Largest file of certificates or keys.
pub const PEM_BYTES_MAX: u64 = 1024 * 1024;
/// Longest key or token that is parsed.
pub const CREDENTIAL_BYTES_MAX: usize = 16 * 1024;
/// Lifetime of a cached key; a revoked key is accepted at most this much longer.
pub const KEY_CACHE_TTL: Duration = Duration::from_secs(1);
/// Most cached keys, and most cached ids of keys that do not exist.
pub const KEY_CACHE_MAX: usize = 10_000;
pub const UNKNOWN_KEYS_MAX: usize = 10_000;
/// Age at which a key set is fetched again.
pub const KEY_SET_AGE_MAX: Duration = Duration::from_secs(600);
/// Age up to which it is used when it cannot be fetched.
pub const KEY_SET_STALE_MAX: Duration = Duration::from_secs(3_600);
/// Minimum time between two fetches.
pub const KEY_SET_PAUSE: Duration = Duration::from_secs(10);
/// Lifetime of a ticket.
pub const TICKET_MS: u64 = 60_000;
/// Most unused tickets, in total and per caller.
pub const TICKETS_MAX: usize = 10_000;
pub const TICKETS_PER_CALLER_MAX: usize = 500;
/// Rate buckets before full ones are dropped.
pub const RATE_BUCKETS_MAX: usize = 10_000;
/// Default limit of concurrent runs.
pub const RUNS_MAX: usize = 10_000;
/// Default length of the run queue.
pub const QUEUE_MAX: usize = 1_000;
/// Default time in the run queue.
pub const QUEUE_WAIT: Duration = Duration::from_secs(10);
/// Estimated duration of a run before the first one has ended.
pub const INITIAL_RUN_ESTIMATE: Duration = Duration::from_secs(5);
/// Bounds of `retry_after_ms`.
pub const RETRY_MIN: Duration = Duration::from_secs(1);
pub const RETRY_MAX: Duration = Duration::from_secs(60);
/// Longest idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// Limit and default of the runs on one page of a list.
pub const PAGE_RUNS_MAX: usize = 200;
pub const PAGE_RUNS: usize = 50;
/// Longest comment of a reviewer.
pub const COMMENT_BYTES_MAX: usize = 10_000;
/// Most warnings beside one response of a vendor API.
pub const WARNINGS_MAX: usize = 16;
/// Most models that are named in an error about a missing one.
pub const MODELS_SHOWN_MAX: usize = 8;
/// Most schema errors of an answer that are reported.
pub const SCHEMA_ERRORS_MAX: usize = 10;
/// How often an answer that does not match its schema is repaired or requested again.
pub const REPAIRS_MAX: usize = 2;
/// Most open sessions of older MCP clients, in total and per client; the least recently used are closed.
pub const MCP_SESSIONS_MAX: usize = 10_000;
pub const MCP_SESSIONS_PER_CLIENT_MAX: usize = 256;
/// Idle timeout of such a session: a host may be idle for most of a working day.
pub const MCP_SESSION_IDLE: Duration = Duration::from_secs(8 * 3_600);
/// Tools, resources or prompts on one page of a list.
pub const MCP_PAGE_MAX: usize = 1_000;
/// Longest tool name that every host accepts.
pub const MCP_NAME_CHARS_MAX: usize = 64;
/// Minimum time between two progress notifications of a call.
pub const MCP_PROGRESS_PAUSE: Duration = Duration::from_millis(100);
/// Time without events before a progress notification that the run is still running.
pub const MCP_PROGRESS_SILENCE: Duration = Duration::from_secs(5);
/// Timeout for the confirmation of a call.
pub const MCP_CONFIRM: Duration = Duration::from_secs(600);
/// Most characters of an input that are shown for confirmation.
pub const MCP_SHOWN_CHARS_MAX: usize = 2_000;
/// Most arguments of a prompt; a module with more has no prompt.
pub const MCP_ARGUMENTS_MAX: usize = 32;
