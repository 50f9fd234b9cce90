//! Every bound of this crate in one place.

/// Requests that may wait for the model while it answers another. The next one is refused.
pub const QUEUE_MAX: usize = 16;
/// Tokens of prompt and answer together, unless the options say otherwise. The model's own limit holds too.
pub const CONTEXT_TOKENS: u32 = 8192;
/// Longest context that may be asked for.
pub const CONTEXT_TOKENS_MAX: u32 = 131_072;
/// Tokens of a prompt that are evaluated at once. Between two batches a cancelled call is noticed.
pub const BATCH_TOKENS: usize = 64;
/// Longest prompt in bytes, before any of it is counted in tokens.
pub const PROMPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest schema that answers are held to, as JSON text.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// Deepest schema.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Most stop sequences, and the longest of them.
pub const STOPS_MAX: usize = 16;
pub const STOP_BYTES_MAX: usize = 1024;
/// Events that wait for a slow reader before the model waits too.
pub const EVENTS_WAITING_MAX: usize = 64;
/// Tokens kept back for bringing an answer under a schema to its end: at least, and at most.
pub const RESERVE_TOKENS_MIN: u64 = 24;
pub const RESERVE_TOKENS_MAX: u64 = 256;
/// Longest chat template that a file may carry.
pub const TEMPLATE_BYTES_MAX: usize = 256 * 1024;
/// Stack of the thread that runs the model.
pub const STACK_BYTES: usize = 8 * 1024 * 1024;
/// What a refused caller is told to wait.
pub const RETRY_AFTER_MS: u64 = 2000;
/// Largest weights of an encoder, and its widest and deepest shape.
pub const ENCODER_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
pub const WIDTH_MAX: usize = 8192;
pub const LAYERS_MAX: usize = 64;
pub const POSITIONS_MAX: usize = 8192;
/// Longest header of a safetensors file, and the largest tokenizer or configuration beside it.
pub const HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;
pub const TOKENIZER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most texts of one request for embeddings, and most bytes of all of them together.
pub const TEXTS_MAX: usize = 2048;
pub const TEXTS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most tokens that are worked on in one go. Between two of them a cancelled call is noticed.
pub const ROWS_MAX: usize = 512;
/// Most calls for embeddings that are worked on at once.
pub const AT_ONCE_MAX: usize = 64;
