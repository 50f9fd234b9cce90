//! Limits of requests to a server under test.

/// Size limit of a response.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Limit of modules of a server.
pub(crate) const MODULES_MAX: usize = 64;
/// Limit of requests of one check.
pub(crate) const REQUESTS_PER_CHECK_MAX: usize = 8;
/// Limit of messages of a WebSocket.
pub(crate) const MESSAGES_MAX: usize = 100_000;
/// Size limit of an input file.
pub(crate) const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
