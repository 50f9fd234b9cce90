//! Configuration of an embedded model.

use std::path::PathBuf;

use crate::limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The back-end's name.
    pub name: String,
    /// The model name in `meta.model`; requests for another model are refused.
    pub model: String,
    /// The weights, one GGUF file.
    pub path: PathBuf,
    /// Tokens of prompt and answer together.
    pub context_tokens: u32,
    /// Number of compute threads.
    pub threads: usize,
    /// Maximum number of queued requests.
    pub queue_max: usize,
}

impl Options {
    pub fn new(name: impl Into<String>, model: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            model: model.into(),
            path: path.into(),
            context_tokens: limits::CONTEXT_TOKENS,
            threads: default_threads(),
            queue_max: limits::QUEUE_MAX,
        }
    }
}

/// One core stays free: threads of the runtime spin while they wait for each other, so that a busy machine
/// with a thread on every core answers many times slower.
pub(crate) fn default_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_sub(1).max(1)
}
