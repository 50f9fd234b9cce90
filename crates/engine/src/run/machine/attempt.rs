//! One call of one back-end.

use ir::Usage;
use ir::event::FinishReason;

#[derive(Debug)]
pub(super) struct Attempt {
    /// Its place in the plan.
    pub(super) backend: usize,
    /// The model that says it answers.
    pub(super) model: Option<String>,
    /// The text so far, word for word.
    pub(super) reply: String,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<FinishReason>,
    /// When it last said anything.
    pub(super) heard_ms: u64,
    /// When the first text came that may still be buffered.
    pub(super) unflushed_since: Option<u64>,
}

impl Attempt {
    pub(super) fn new(backend: usize, now_ms: u64) -> Self {
        Self {
            backend,
            model: None,
            reply: String::new(),
            usage: None,
            finish: None,
            heard_ms: now_ms,
            unflushed_since: None,
        }
    }
}
