//! The progress of a run for an observer in the same process, such as a terminal. The run writes it; it has no
//! influence on the run.

use std::sync::{Mutex, PoisonError};

/// What a model has generated so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenerationProgress {
    /// Tokens as the runtime counts them; a back-end may count others.
    pub tokens: u64,
    /// The field that is being written.
    pub field: String,
}

#[derive(Debug, Default)]
pub struct ProgressMeter(Mutex<GenerationProgress>);

impl ProgressMeter {
    pub(crate) fn record(&self, tokens: u64, field: &str) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress.tokens = tokens;
        if progress.field != field {
            progress.field = String::from(field);
        }
    }

    pub fn read(&self) -> GenerationProgress {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
