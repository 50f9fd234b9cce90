//! Every bound of this crate in one place.

use std::time::Duration;

/// Largest request body that is read.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
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
/// Largest file of certificates or keys.
pub const PEM_BYTES_MAX: u64 = 1024 * 1024;
