//! Every bound of talking to a server under test.

/// Largest answer that is read.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most modules of a server that are looked at.
pub(crate) const MODULES_MAX: usize = 64;
/// Most requests of one check; a check that wants more is wrong.
pub(crate) const REQUESTS_PER_CHECK_MAX: usize = 8;
/// Most messages of a WebSocket that are read.
pub(crate) const MESSAGES_MAX: usize = 100_000;
/// Largest file with an input.
pub(crate) const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
