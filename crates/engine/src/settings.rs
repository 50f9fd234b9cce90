//! Settings of an engine that the operator can change.

use crate::gate::Gates;

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Minimum confidence and maximum risk of answers.
    pub gates: Gates,
    /// Most concurrent runs; more are refused.
    pub runs_max: usize,
    /// How long a stream without readers continues.
    pub resume_grace_ms: u64,
    /// Longest time that text is buffered, to be sent together with the text that follows.
    pub flush_ms: u64,
    /// Delay before a client resumes, and how often it may try; sent in `recovery`.
    pub retry_after_ms: u64,
    pub max_retries: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gates: Gates::default(),
            runs_max: 10_000,
            resume_grace_ms: 60_000,
            flush_ms: 50,
            retry_after_ms: 1_000,
            max_retries: 3,
        }
    }
}
