//! Every bound of this crate in one place.

use std::time::Duration;

/// Largest request body that is read.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest form with files that is read.
pub const FORM_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most forms with files that lie here at a time; more wait to be read.
pub const FORMS_MAX: usize = 128;
/// Most fields of a form.
pub const FORM_FIELDS_MAX: usize = 64;
/// Longest field of a form that is no file.
pub const FORM_TEXT_BYTES_MAX: usize = 1024 * 1024;
/// How long the headers of a stream wait for its first events.
pub const FIRST_EVENT_WAIT: Duration = Duration::from_millis(10);
/// Silence on a stream before a sign of life, where the module does not say.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long runs may go on after the server was told to stop, where nobody says.
pub const DRAIN: Duration = Duration::from_secs(10);
/// How long connections may take to close after that.
pub const CLOSE: Duration = Duration::from_secs(2);
/// Connections at a time, where nobody says; more wait to be accepted.
pub const CONNECTIONS_MAX: usize = 20_000;
/// For the headers of a request, and between two requests, where nobody says.
pub const HEADER_READ: Duration = Duration::from_secs(30);
/// For the body of a request, where nobody says.
pub const BODY_READ: Duration = Duration::from_secs(60);
/// How long a reader may take nothing before it is given up, where nobody says.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
/// For a TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// Most bytes of the headers of one request, and of what is buffered of one HTTP/1 connection.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Most requests at a time on one HTTP/2 connection.
pub const REQUESTS_PER_CONNECTION_MAX: u32 = 256;
/// Most bytes that wait to be sent on one HTTP/2 request.
pub const SEND_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Streams that one client may have open, where nobody says.
pub const STREAMS_PER_CLIENT_MAX: usize = 10_000;
/// Most runs on one WebSocket at a time.
pub const SOCKET_RUNS_MAX: usize = 64;
/// Most messages that wait to be sent on one WebSocket; whoever makes more of them waits.
pub const SOCKET_QUEUE_MAX: usize = 32;
/// Longest id that a client may give to a run on a WebSocket.
pub const SOCKET_ID_BYTES_MAX: usize = 256;
/// Longest reason in a farewell.
pub const CLOSE_REASON_BYTES_MAX: usize = 120;
/// Largest file of certificates or keys.
pub const PEM_BYTES_MAX: u64 = 1024 * 1024;
/// Longest key or token that is looked at.
pub const CREDENTIAL_BYTES_MAX: usize = 16 * 1024;
/// How long a key is remembered: so long may a revoked one still open.
pub const KEY_CACHE_TTL: Duration = Duration::from_secs(1);
/// Most keys that are remembered.
pub const KEY_CACHE_MAX: usize = 10_000;
/// How long a set of signing keys is used before it is fetched again.
pub const KEY_SET_AGE_MAX: Duration = Duration::from_secs(600);
/// How long it is used at most when it cannot be fetched.
pub const KEY_SET_STALE_MAX: Duration = Duration::from_secs(3_600);
/// The least time between two fetches.
pub const KEY_SET_PAUSE: Duration = Duration::from_secs(10);
/// How long a ticket for the events of a run can be used.
pub const TICKET_MS: u64 = 60_000;
/// Most tickets that wait to be used.
pub const TICKETS_MAX: usize = 10_000;
/// Callers whose rate is counted before those who have paused are forgotten.
pub const RATE_BUCKETS_MAX: usize = 10_000;
/// Runs at a time, where nobody says.
pub const RUNS_MAX: usize = 10_000;
/// Requests that wait for a place, where nobody says.
pub const QUEUE_MAX: usize = 1_000;
/// How long they wait, where nobody says.
pub const QUEUE_WAIT: Duration = Duration::from_secs(10);
/// How long a run takes, as long as none has ended.
pub const INITIAL_RUN_ESTIMATE: Duration = Duration::from_secs(5);
/// The shortest and the longest time after which somebody is told to come back.
pub const RETRY_MIN: Duration = Duration::from_secs(1);
pub const RETRY_MAX: Duration = Duration::from_secs(60);
/// Longest name that a client may give a request.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// Runs on one page of a list, and where nobody says how many.
pub const PAGE_RUNS_MAX: usize = 200;
pub const PAGE_RUNS: usize = 50;
/// Longest remark of a reviewer.
pub const COMMENT_BYTES_MAX: usize = 10_000;
/// Most things that are said beside one answer of a vendor's edge.
pub const WARNINGS_MAX: usize = 16;
/// Most misfits of an answer that are told.
pub const SCHEMA_ERRORS_MAX: usize = 10;
/// How often an answer that does not fit its schema is mended or asked for again.
pub const REPAIRS_MAX: usize = 2;
/// Sessions that older MCP clients have open, together and each; those used longest ago go first.
pub const MCP_SESSIONS_MAX: usize = 10_000;
pub const MCP_SESSIONS_PER_CLIENT_MAX: usize = 256;
/// How long such a session lasts without being used: a host may sit idle for most of a working day.
pub const MCP_SESSION_IDLE: Duration = Duration::from_secs(8 * 3_600);
/// Tools, resources or prompts on one page of a list.
pub const MCP_PAGE_MAX: usize = 1_000;
/// Longest name of a tool that every host takes.
pub const MCP_NAME_CHARS_MAX: usize = 64;
/// Between two notes about how far a call is.
pub const MCP_PROGRESS_PAUSE: Duration = Duration::from_millis(100);
/// Silence of a run before a note that it goes on.
pub const MCP_PROGRESS_SILENCE: Duration = Duration::from_secs(5);
/// How long a person may take to confirm a call.
pub const MCP_CONFIRM: Duration = Duration::from_secs(600);
/// How much of an input is shown to whoever confirms it.
pub const MCP_SHOWN_CHARS_MAX: usize = 2_000;
/// Most arguments of a prompt; a module with more of them is none.
pub const MCP_ARGUMENTS_MAX: usize = 32;
