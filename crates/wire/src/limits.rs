//! Every bound of this crate, by name.

/// One event of a stream, framing included. Pictures come as one event, so it is not small.
pub const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// An error body that is quoted in a message.
pub const ERROR_QUOTE_BYTES_MAX: usize = 512;

/// Parallel tool calls of one streamed answer.
pub const TOOL_CALLS_MAX: usize = 1024;
