//! All limits of this crate.

/// Maximum number of requests queued while the model answers another. Further requests are refused.
pub const QUEUE_MAX: usize = 16;
/// Tokens of prompt and answer together, unless configured. The model's own limit applies too.
pub const CONTEXT_TOKENS: u32 = 8192;
/// Maximum configurable context.
pub const CONTEXT_TOKENS_MAX: u32 = 131_072;
/// Tokens of a prompt per batch. Cancellation is checked between batches, and evaluated prompts are reused in whole
/// batches.
pub const BATCH_TOKENS: usize = 64;
/// Memory for the states of evaluated prompts beside that of the latest, and for one of them.
pub const PROMPT_STATES_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const PROMPT_STATE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum size of a prompt in bytes, checked before tokens are counted.
pub const PROMPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum size of a schema that is enforced, as JSON text.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// Maximum nesting depth of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Maximum number of stop sequences, and their maximum length.
pub const STOPS_MAX: usize = 16;
pub const STOP_BYTES_MAX: usize = 1024;
/// Events buffered for a slow reader before generation blocks.
pub const EVENTS_WAITING_MAX: usize = 64;
/// Tokens reserved for closing an answer under a schema: minimum and maximum.
pub const RESERVE_TOKENS_MIN: u64 = 24;
pub const RESERVE_TOKENS_MAX: u64 = 256;
/// Maximum size of the chat template in a file.
pub const TEMPLATE_BYTES_MAX: usize = 256 * 1024;
/// Stack size of the model's thread, which builds grammars by recursion.
pub const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Retry delay that a refused caller receives.
pub const RETRY_AFTER_MS: u64 = 2000;
/// Maximum size of an encoder's weights, and its maximum width and depth.
pub const ENCODER_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
pub const WIDTH_MAX: usize = 8192;
pub const LAYERS_MAX: usize = 64;
pub const POSITIONS_MAX: usize = 8192;
/// Maximum header size of a safetensors file, and maximum size of the tokenizer or configuration.
pub const HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;
pub const TOKENIZER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of texts of one embeddings request, and their maximum total size.
pub const TEXTS_MAX: usize = 2048;
pub const TEXTS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of tokens per batch of the encoder. Cancellation is checked between batches.
pub const ROWS_MAX: usize = 512;
/// Maximum number of concurrent embeddings calls.
pub const AT_ONCE_MAX: usize = 64;
