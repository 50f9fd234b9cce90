//! All limits of this crate.

/// One event of a stream, including framing. Images arrive as one event, so the limit is not small.
pub const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of an error body that are quoted in a message.
pub const ERROR_QUOTE_BYTES_MAX: usize = 512;

/// Parallel tool calls of one streamed response.
pub const TOOL_CALLS_MAX: usize = 1024;
