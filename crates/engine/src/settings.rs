//! What the person who runs an engine may turn.

use crate::gate::Gates;

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How sure and how harmless answers must be.
    pub gates: Gates,
    /// Most runs at a time; more are refused.
    pub runs_max: usize,
    /// How long a stream goes on with nobody listening.
    pub resume_grace_ms: u64,
    /// Longest time that text is held back to be sent together with what follows.
    pub flush_ms: u64,
    /// How long the first events of a run wait for those of its back-end.
    pub opening_ms: u64,
    /// What a client is told to wait before it resumes, and how often it may try.
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
            opening_ms: 5,
            retry_after_ms: 1_000,
            max_retries: 3,
        }
    }
}
